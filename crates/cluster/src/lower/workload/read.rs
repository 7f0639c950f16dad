//! From an expansion to what is kept of the workload.

use std::sync::Arc;

use phalanx_engine::{GroupKey, Shared};
use phalanx_objects::core::{PodSpec, PodTemplateSpec};
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::topology::ALIGN_ANNOTATION;
use phalanx_objects::workload::{Workload, WorkloadKind};

use super::super::admission::Made;
use super::super::claim::Wish;
use super::super::meant::PodLabels;
use super::super::pod::{PodReader, wish};
use super::super::record::{Header, Uid};
use super::super::volumes::volume_claim;
use super::marks::Named;
use super::{Expansion, RolePlan, RoleRecord, UNDECLARED, WorkloadRecord, manager, marks};
use crate::finding::{Severity, Source};

impl PodReader<'_> {
    /// The compact form of a workload.
    pub(crate) fn workload(
        &mut self,
        workload: &Workload,
        expansion: Expansion<'_>,
        source: Source,
    ) -> WorkloadRecord {
        let meta = workload.metadata();
        let kind = workload.kind();
        let roles = expansion.roles.into_iter().map(|role| self.role(workload, role)).collect();
        self.notes.extend(expansion.notes);
        // Roles may be of one template.
        self.notes.sort();
        self.notes.dedup();
        let owner = manager(kind, meta).map(|(kind, name, uid)| {
            let object = self.scoped(&meta.namespace, &name);
            (GroupKey { object, kind: self.names.get(kind.word()) }, Uid::new(&uid))
        });
        WorkloadRecord {
            header: Header::new(meta, source),
            kind,
            owner,
            roles,
            keeps_leaving: expansion.keeps_leaving,
            keeps_ended: expansion.keeps_ended,
            aside: expansion.aside || meta.deletion_timestamp.is_some(),
            attempt: expansion.attempt,
            while_due: expansion.while_due.into(),
            wish: self.workload_wish(meta),
            gang: expansion.gang,
        }
    }

    fn role(&mut self, workload: &Workload, role: RolePlan<'_>) -> RoleRecord {
        let mut spec = std::borrow::Cow::Borrowed(&role.template.spec);
        if spec.active_deadline_seconds.is_none() && role.deadline_seconds.is_some() {
            spec.to_mut().active_deadline_seconds = role.deadline_seconds;
        }
        if adds_volumes(workload.kind()) {
            let PodSpec { containers, init_containers, .. } = spec.to_mut();
            for container in containers.iter_mut().chain(init_containers) {
                container.volume_mounts.names = Box::default();
                container.volume_devices.names = Box::default();
            }
        }
        let labels = self.labels_of(workload, &role);
        let template = Arc::new(PodTemplateSpec {
            metadata: role.template.metadata.clone(),
            spec: spec.clone().into_owned(),
        });
        let at = role.at.strip_suffix("spec").unwrap_or(&role.at);
        let made = Made::Of(template);
        let (shape, draft) = self.admitted(&labels, at, made, role.refused.into());
        let claims = role.volume_claims.iter();
        let volume_claims = claims.map(|claim| volume_claim(claim, self.names)).collect();
        let mut marks = marks(&role.template.metadata, &spec, self.names);
        if !role.wishes.is_empty() {
            let marks = marks.get_or_insert_default();
            marks.wishes = marks.wishes.iter().cloned().chain(role.wishes).collect();
        }
        if let Some(marks) = marks.as_mut().filter(|_| role.is_of_one_set) {
            marks.together.get_or_insert_default();
        }
        let own = role.gang.filter(|_| marks.as_ref().is_none_or(|marks| marks.gang.is_none()));
        let gang_is_own = own.is_some();
        if let Some((name, field)) = own {
            let (name, field) = (self.names.get(&name), self.names.get(&field));
            let kind = self.names.get(UNDECLARED);
            let gang = Named { field, kind, name, min: None, own: None };
            marks.get_or_insert_default().gang = Some(gang);
        }
        RoleRecord {
            gang_is_own,
            volume_claims,
            marks,
            least: role.least,
            part_size: role.part_size,
            name: self.names.get(&role.name),
            sign: self.names.get(&role.sign),
            shape,
            labels,
            draft,
            priority: self.priority(&spec, false),
            run_max_millis: spec.active_deadline_seconds.map(|s| s.saturating_mul(1000)),
            // Another scheduler's pods are neither decided nor counted.
            wanted: if self.is_ours(&spec) { role.wanted } else { 0 },
            indexes: role.indexes,
            span: role.span,
            places: role.places,
            rank: role.rank,
            stands_for: role.stands_for,
            after: role.after,
        }
    }

    /// The labels of the pods of a role: those of their template, and those that the controller gives
    /// them.
    fn labels_of(&mut self, workload: &Workload, role: &RolePlan<'_>) -> Shared<PodLabels> {
        let mut labels = role.template.metadata.labels.clone();
        let own = role.labels.iter();
        labels.extend(own.map(|(key, value)| ((*key).to_owned(), value.clone())));
        self.labels(&workload.metadata().namespace, &labels)
    }

    /// The wish on the workload itself, which holds for those of its pods that have none.
    fn workload_wish(&mut self, meta: &ObjectMeta) -> Wish {
        let wish = wish(meta, self.names);
        if let Err(message) = &wish {
            self.notes.push((
                Severity::Error,
                format!("metadata.annotations[{ALIGN_ANNOTATION}]"),
                format!("{message} No pod of it is placed, for the wish might be required."),
            ));
        }
        wish
    }
}

/// Whether a kind's controller gives its pods volumes that their template does not name, so that what
/// is mounted can't be judged by the template.
fn adds_volumes(kind: WorkloadKind) -> bool {
    match kind {
        WorkloadKind::Job
        | WorkloadKind::CronJob
        | WorkloadKind::Deployment
        | WorkloadKind::ReplicaSet
        | WorkloadKind::StatefulSet
        | WorkloadKind::DaemonSet
        | WorkloadKind::LeaderWorkerSet => false,
        WorkloadKind::JobSet
        | WorkloadKind::MpiJob
        | WorkloadKind::PyTorchJob
        | WorkloadKind::TfJob
        | WorkloadKind::XgBoostJob
        | WorkloadKind::PaddleJob
        | WorkloadKind::JaxJob
        | WorkloadKind::TrainJob
        | WorkloadKind::TrainingRuntime
        | WorkloadKind::ClusterTrainingRuntime
        | WorkloadKind::RayCluster
        | WorkloadKind::RayJob
        | WorkloadKind::RayService
        | WorkloadKind::VolcanoJob
        | WorkloadKind::PodCliqueSet
        | WorkloadKind::AppWrapper => true,
    }
}
