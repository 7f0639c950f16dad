//! What is asked of an object's pods by the path of their spec: how many there are to be, how many are
//! missing, and which groups they are in. What groups and workloads are is left to their modules.

use phalanx_engine::{GroupKey, Name, NodeKey, PodKey, admits, healed};
use phalanx_objects::workload::WorkloadKind;
use phalanx_objects::{Kind, ObjectRef};

use super::Lowering;
use super::look::group_of;
use super::record::{NodeRecord, PodShape};
use super::settle::object;
use super::workload::{Marks, RoleRecord};

impl Lowering {
    /// How many pods of a kind an object wants at a time, by the path of their spec: of anything but
    /// a workload, one.
    #[must_use]
    pub(crate) fn pods_wanted(&self, object: &ObjectRef, at: &str) -> u32 {
        let Some(record) = self.objects.workloads.get(&group_of(object)) else { return 1 };
        let of = |role: &&RoleRecord| at.strip_suffix("spec") == Some(&*role.draft.at);
        record.roles.iter().filter(of).map(|role| role.wanted).sum()
    }

    /// Whether a workload has pods to make, those of any group.
    pub(crate) fn has_due(&self, key: &GroupKey) -> bool {
        let Some(record) = self.objects.workloads.get(key) else { return false };
        if record.kind == WorkloadKind::DaemonSet {
            return self.missing(key, record, 0) > 0;
        }
        self.due(key, record).iter().any(|due| !due.is_empty())
    }

    /// The objects of the groups that the pods of an object are in whose spec is at this path, nearest
    /// first.
    pub(crate) fn groups_at(&self, of: &ObjectRef, at: &str) -> Vec<ObjectRef> {
        let namespace = Name::new(&of.namespace);
        let groups = self.makes_at(of, at).into_iter();
        let groups = groups.flat_map(|(marks, _)| self.groups_named(&namespace, marks));
        groups.map(|(kind, scoped)| object(Kind::Scheduling(kind), &scoped)).collect()
    }

    /// How many nodes, once they are healthy, those pods may go to, room or not.
    pub(crate) fn nodes_open_to(&self, object: &ObjectRef, at: &str) -> usize {
        let shapes = self.makes_at(object, at);
        let open = |(name, record): &(&Name, &NodeRecord)| {
            let (key, node) = (NodeKey((*name).clone()), healed(&record.node));
            shapes.iter().any(|(_, shape)| admits(&shape.node, &key, &node))
        };
        self.objects.nodes.iter().filter(open).count()
    }

    /// The PodGroup whose claim an entry of those pods' `resourceClaims` is.
    pub(crate) fn sharer_at(&self, object: &ObjectRef, at: &str, entry: &str) -> Option<Name> {
        let namespace = Name::new(&object.namespace);
        self.makes_at(object, at).into_iter().find_map(|(marks, shape)| {
            let claim = shape.claims.iter().find(|claim| *claim.name == *entry)?;
            Some(self.reserved_for(&namespace, marks, claim)?.name)
        })
    }

    /// How the pods are of an object whose spec is at this path.
    fn makes_at(&self, object: &ObjectRef, at: &str) -> Vec<(Option<&Marks>, &PodShape)> {
        let key = group_of(object);
        if let Some(record) = self.objects.workloads.get(&key) {
            let roles = record.roles.iter();
            let of = roles.filter(|role| at.strip_suffix("spec") == Some(&*role.draft.at));
            return of.map(|role| (role.marks.as_deref(), &*role.shape)).collect();
        }
        let pod = self.objects.pods.get(&PodKey(key.object));
        pod.map(|record| (record.marks.as_deref(), &*record.shape)).into_iter().collect()
    }

    /// How many of those do not exist yet.
    #[must_use]
    pub(crate) fn pods_missing(&self, object: &ObjectRef, at: &str) -> u32 {
        let key = group_of(object);
        let Some(record) = self.objects.workloads.get(&key) else { return 1 };
        let roles = (0_u16..).zip(&record.roles);
        let of = roles.filter(|(_, role)| at.strip_suffix("spec") == Some(&*role.draft.at));
        of.map(|(number, _)| self.missing(&key, record, number)).sum()
    }
}
