//! Lowering: Kubernetes objects become changes of the engine's state.
//!
//! `absorb` keeps of each object a compact contribution and marks what must be lowered again;
//! `settle` lowers what is marked, each thing once, however many objects made it so. The result
//! depends on which objects there are, and not on the order in which they came. Deciding is the
//! engine's; sentences about decisions, edits and writes are the other modules' of this crate.

mod absent;
mod absorb;
mod admission;
mod amount;
mod around;
mod claim;
mod erring;
mod events;
mod extended;
mod forest;
mod found;
mod gang;
mod intern;
mod kinds;
mod links;
mod look;
mod meant;
mod parts;
mod place;
mod placements;
mod pod;
mod pools;
mod published;
mod record;
mod rules;
mod running;
mod selector;
mod settle;
mod sharing;
mod slice;
mod spreading;
mod valid;
mod volumes;
mod workload;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_engine::{
    ClaimKey, Consumption, DeviceKey, GroupKey, Match, Name, NodeKey, PodKey, PoolKey, ProfileId,
    Request, Scoped, SelectorId, Shared, TopologyKey, Traits,
};
use phalanx_objects::scheduling::SchedulingKind;
use phalanx_objects::workload::{TrainingRuntime, Workload};
use phalanx_objects::{Object, ObjectRef};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::compat::Compat;
use crate::finding::{Finding, Severity, Source};
use admission::{Admission, Played};
use claim::{Class, SpecId, Specs};
use events::Graves;
use intern::{Attributes, Names};
use meant::Meant;
use record::{
    ClaimRecord, DeviceKind, NamespaceRecord, NodeRecord, PodRecord, PodShape, PriorityRecord,
    SchedulingRecord, SliceRecord, TaintRuleRecord, TemplateRecord, TopologyRecord,
};
use selector::{Live, Selectors};
use slice::{Alike, Profiles};
use spreading::Spreading;
use workload::WorkloadRecord;

pub(crate) use absorb::conditions_of;
pub(crate) use admission::{
    Added, Asker, Bound, DEVICES as QUOTA_DEVICES, ENFORCE_LABEL, Excess, Kept, Level, MAKER,
    QuotaVerdict, Refusal, Violations,
};
pub(crate) use amount::{
    device_kind, is_device_counter, is_extended, requests as pod_requests, unhealthy,
};
pub use claim::SpecText;
pub(crate) use erring::shortened;
pub(crate) use events::named;
pub(crate) use extended::{IMPLICIT as IMPLICIT_RESOURCE, asks as extended_asks, may_be_served};
pub(crate) use forest::TreeInfo;
pub(crate) use gang::RunningMember;
pub(crate) use gang::declaring;
pub use look::{ClaimInfo, ClaimName, DeviceInfo, Failing, GroupInfo, PodInfo, RoleInfo};
pub(crate) use meant::{LabelRule, PodSet, Requirement};
pub(crate) use placements::{group_of as placed_group, pod_key};
pub(crate) use pod::node_of;
pub(crate) use pools::PoolTrouble;
pub(crate) use rules::shut_by;
pub(crate) use selector::unite;
pub(crate) use settle::workload_kind;
pub use sharing::GroupOwner;
pub(crate) use valid::unmet;
pub(crate) use volumes::ZONES;
pub(crate) use workload::{manager, metas, pod_spec, recognise, task_name};

/// Something that happened to an object.
#[derive(Clone, Debug)]
pub enum ObjectEvent {
    /// It exists now, in this state.
    Applied(Box<Object>, Source),
    /// It is gone.
    Deleted(Gone),
}

/// An object that is gone. Made from a bare reference it is the object of that name, whichever it
/// was; with a version or a UID it can be told from another of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Which.
    pub object: ObjectRef,
    /// Its UID; empty where it is not known.
    pub uid: String,
    /// The `resourceVersion` of its deletion, else its last; empty where none is known.
    pub resource_version: String,
}

impl From<ObjectRef> for Gone {
    fn from(object: ObjectRef) -> Self {
        Self { object, uid: String::new(), resource_version: String::new() }
    }
}

/// The objects that there are, in compact form, and what must be lowered again. A clone is a fork
/// for a question in a changed world.
#[derive(Clone, Debug)]
pub struct Lowering {
    compat: Compat,
    /// Only pods of this scheduler are placed; none is every scheduler's.
    scheduler: Option<Box<str>>,
    /// Nodes are scored as kube-scheduler scores them.
    scored: bool,
    interned: Interned,
    objects: Objects,
    storage: volumes::Records,
    index: Index,
    dirty: Dirty,
    shown: Shown,
    played: Played,
    specs: Specs,
    selectors: Selectors,
    live: Live,
    profiles: Profiles,
    meant: Meant,
    spreading: Spreading,
    findings: Findings,
    /// What devices took of counters that a slice published before, as it last did.
    vanished: FxHashMap<DeviceKey, Consumption>,
    graves: Graves,
    /// Objects that are there and could not be read.
    unread: BTreeSet<ObjectRef>,
}

/// Values that many objects share.
#[derive(Clone, Debug, Default)]
struct Interned {
    names: Names,
    attributes: Attributes,
    shapes: FxHashSet<Shared<PodShape>>,
    kinds: FxHashSet<Shared<DeviceKind>>,
    requests: FxHashSet<Shared<Request>>,
    traits: FxHashSet<Shared<Traits>>,
}

/// The compact forms.
#[derive(Clone, Debug, Default)]
struct Objects {
    nodes: FxHashMap<Name, NodeRecord>,
    pods: FxHashMap<PodKey, Arc<PodRecord>>,
    workloads: BTreeMap<GroupKey, WorkloadRecord>,
    /// Workloads that are expanded by another object, and those objects.
    expanding: BTreeMap<GroupKey, (Arc<Workload>, Source)>,
    runtimes: BTreeMap<ObjectRef, Arc<TrainingRuntime>>,
    claims: FxHashMap<ClaimKey, ClaimRecord>,
    templates: BTreeMap<Scoped, TemplateRecord>,
    classes: BTreeMap<Name, Class>,
    priorities: BTreeMap<Name, PriorityRecord>,
    slices: FxHashMap<Name, Arc<SliceRecord>>,
    pools: BTreeMap<PoolKey, PoolRecord>,
    taint_rules: BTreeMap<Name, TaintRuleRecord>,
    topologies: BTreeMap<Name, Arc<TopologyRecord>>,
    /// The seats that a controller has decided on.
    placements: BTreeMap<Scoped, placements::PlacementRecord>,
    /// What schedulers are told of groups and places.
    scheduling: BTreeMap<(SchedulingKind, Scoped), SchedulingRecord>,
    namespaces: BTreeMap<Name, NamespaceRecord>,
    admission: Admission,
}

impl Objects {
    /// Whether the input has the namespaces of a cluster, and not manifests of some alone.
    fn says_namespaces(&self) -> bool {
        self.namespaces.values().any(|namespace| namespace.header.is_made())
    }

    /// The namespaces, where the input has those of a cluster.
    fn named_namespaces(&self) -> Option<&BTreeMap<Name, NamespaceRecord>> {
        self.says_namespaces().then_some(&self.namespaces)
    }
}

/// The slices of a pool, and what they were lowered to.
#[derive(Clone, Debug, Default)]
struct PoolRecord {
    slices: BTreeMap<Name, Arc<SliceRecord>>,
    profiles: BTreeMap<ProfileId, Alike>,
}

/// What depends on a thing that may change without it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Dependent {
    Pod(PodKey),
    /// A role of a workload, by its number.
    Role(GroupKey, u16),
}

/// Who must be lowered again when something else changes.
#[derive(Clone, Debug, Default)]
struct Index {
    /// By template.
    template: BTreeMap<Scoped, BTreeSet<Dependent>>,
    /// By claim that a pod names or says was made for it.
    claim: BTreeMap<ClaimKey, BTreeSet<PodKey>>,
    /// By pod, the claims that were made for it.
    made: BTreeMap<PodKey, BTreeSet<ClaimKey>>,
    /// By priority class; the empty name is the global default.
    priority: BTreeMap<Name, BTreeSet<Dependent>>,
    /// By workload, the pods that may be part of it, and the workloads that name it as their owner.
    owned: BTreeMap<GroupKey, BTreeSet<PodKey>>,
    children: BTreeMap<GroupKey, BTreeSet<GroupKey>>,
    /// By what stands before the numbers in the names of their pods, workloads.
    bases: BTreeMap<Scoped, BTreeSet<GroupKey>>,
    /// By namespace, the workloads that have claims on volumes made for their pods.
    mounting: BTreeMap<Name, BTreeSet<GroupKey>>,
    /// By runtime, the workloads that are expanded by it.
    runtime: BTreeMap<ObjectRef, BTreeSet<GroupKey>>,
    /// By gang, the pods that say that they are of it, and the roles whose templates do.
    members: BTreeMap<GroupKey, BTreeSet<PodKey>>,
    gang_roles: BTreeMap<GroupKey, BTreeSet<(GroupKey, u16)>>,
    /// By label that gangs name as a level of topology, those gangs.
    levels: BTreeMap<Name, BTreeSet<GroupKey>>,
    /// By label that says itself what it is a level of, how many nodes have it.
    known_labels: BTreeMap<Name, u32>,
    /// By claim and by template, the PodGroups whose claims are of it.
    shared_claims: BTreeMap<ClaimKey, BTreeSet<Scoped>>,
    shared_templates: BTreeMap<Scoped, BTreeSet<Scoped>>,
    /// By spec, the claims and templates that have it.
    spec_claims: BTreeMap<SpecId, BTreeSet<ClaimKey>>,
    spec_templates: BTreeMap<SpecId, BTreeSet<Scoped>>,
    /// By node, the pools that have a slice of it, and how many.
    node_pools: BTreeMap<NodeKey, BTreeMap<PoolKey, u32>>,
    /// By node, the NodeTopology objects about it.
    topologies: BTreeMap<NodeKey, BTreeSet<Name>>,
    /// By pool that a topology names outright, the nodes.
    pool_topologies: BTreeMap<PoolKey, BTreeSet<NodeKey>>,
    /// By extended resource, the pods and workloads that wait for it.
    asks: BTreeMap<Name, BTreeSet<Dependent>>,
    /// By who waits, what classes serve of its extended resources; and by spec, who that is.
    served: BTreeMap<Dependent, Vec<extended::Served>>,
    spec_served: BTreeMap<SpecId, BTreeSet<Dependent>>,
    /// By device, the claims that hold it, and whether as a share.
    holders: BTreeMap<DeviceKey, BTreeSet<(ClaimKey, bool)>>,
}

/// What must be lowered again.
#[derive(Clone, Debug, Default)]
struct Dirty {
    nodes: Vec<Name>,
    pods: Vec<PodKey>,
    workloads: Vec<GroupKey>,
    gangs: Vec<GroupKey>,
    /// Namespaces of which all gangs are marked.
    gang_namespaces: BTreeSet<Name>,
    /// Trees of topology may be others, or nodes in other places of all of them.
    trees: bool,
    /// Who asks for extended resources that another class may serve now.
    served: Vec<Dependent>,
    claims: Vec<ClaimKey>,
    templates: Vec<Scoped>,
    /// PodGroups whose claims may be others.
    sharing: Vec<Scoped>,
    pools: Vec<PoolKey>,
    links: Vec<NodeKey>,
    all_pools: bool,
}

impl Dirty {
    /// About how many changes come of it: a pod is a group and a member.
    fn changes(&self) -> usize {
        self.nodes.len() + 2 * self.pods.len() + self.claims.len() + self.pools.len()
    }
}

/// What the engine has been told of, where a later "gone" must be told too.
#[derive(Clone, Debug, Default)]
struct Shown {
    pods: FxHashSet<PodKey>,
    workloads: BTreeSet<GroupKey>,
    /// Gangs, with how they were lowered.
    gangs: BTreeMap<GroupKey, gang::Shown>,
    /// The gang that a pod was shown in.
    gang_of: FxHashMap<PodKey, GroupKey>,
    trees: BTreeMap<TopologyKey, forest::Tree>,
    links: BTreeSet<NodeKey>,
    /// By PodGroup, its claims that are still to be made.
    sharing: BTreeMap<Scoped, Vec<ClaimKey>>,
    /// Verdicts that were given.
    verdicts: FxHashMap<(SelectorId, ProfileId), Match>,
    /// The profiles on which a selector ends in an error.
    erring: BTreeMap<SelectorId, BTreeSet<ProfileId>>,
}

/// Findings by the object that they are about.
#[derive(Clone, Debug, Default)]
struct Findings {
    /// Made while the object was read.
    read: BTreeMap<ObjectRef, Vec<Finding>>,
    /// Made while it was lowered among the others.
    lowered: BTreeMap<ObjectRef, Vec<Finding>>,
    /// Objects that stand in the input twice and differ.
    repeated: BTreeMap<ObjectRef, Finding>,
    /// Kinds that are not read, with where the first was seen.
    unknown: BTreeMap<(String, String), Source>,
}

impl Findings {
    fn set(of: &mut BTreeMap<ObjectRef, Vec<Finding>>, object: &ObjectRef, found: Vec<Finding>) {
        if found.is_empty() {
            if !of.is_empty() {
                of.remove(object);
            }
        } else {
            of.insert(object.clone(), found);
        }
    }

    fn of_unknown(&self) -> impl Iterator<Item = Finding> {
        self.unknown.iter().map(|((api_version, kind), source)| {
            let (severity, message) = kinds::unread(api_version, kind);
            let (file, line) = (Arc::clone(&source.file), source.line);
            Finding { severity, object: None, file, line, path: String::new(), message }
        })
    }
}

impl Lowering {
    /// A lowering that has seen nothing, for this version of Kubernetes.
    #[must_use]
    pub fn new(compat: Compat) -> Self {
        Self {
            scheduler: None,
            scored: false,
            interned: Interned::default(),
            objects: Objects::default(),
            storage: volumes::Records::default(),
            index: Index::default(),
            dirty: Dirty::default(),
            shown: Shown::default(),
            played: Played::default(),
            specs: Specs::default(),
            selectors: Selectors::new(compat.version()),
            live: Live::default(),
            profiles: Profiles::default(),
            meant: Meant::default(),
            spreading: Spreading::default(),
            findings: Findings::default(),
            vanished: FxHashMap::default(),
            graves: Graves::default(),
            unread: BTreeSet::new(),
            compat,
        }
    }

    /// Narrows what is placed to the pods of one scheduler (`spec.schedulerName`, where an empty
    /// one is `default-scheduler`). Others' pending pods are neither decided nor counted. To be
    /// said before the first object.
    #[must_use]
    pub fn for_scheduler(mut self, name: &str) -> Self {
        self.scheduler = Some(name.into());
        self
    }

    /// Keeps what only kube-scheduler's scores look at: the images of nodes and pods, and whom
    /// Services and controllers select. To be said before the first object; without it these
    /// scores are equal on all nodes.
    #[must_use]
    pub fn for_scores(mut self) -> Self {
        self.scored = true;
        self
    }

    /// Whether it keeps what scores look at.
    #[must_use]
    pub fn is_scored(&self) -> bool {
        self.scored
    }

    /// The scheduler whose pods are placed; none is every scheduler's.
    #[must_use]
    pub fn scheduler_name(&self) -> Option<&str> {
        self.scheduler.as_deref()
    }

    /// The version and gates that it lowers for.
    #[must_use]
    pub fn compat(&self) -> &Compat {
        &self.compat
    }

    /// Takes note of an object of a kind that is not read. Each kind is named once.
    pub fn skip(&mut self, api_version: &str, kind: &str, source: Source) {
        let key = (api_version.to_owned(), kind.to_owned());
        let first = self.findings.unknown.entry(key).or_insert_with(|| source.clone());
        if source.ordinal < first.ordinal {
            *first = source;
        }
    }

    /// Takes note that an object is in the input and could not be read: who names it is told so, and
    /// not that it does not exist.
    pub fn unread(&mut self, mut reference: ObjectRef) {
        if reference.kind.is_namespaced() && reference.namespace.is_empty() {
            "default".clone_into(&mut reference.namespace);
        }
        self.mark_namers(&reference);
        self.unread.insert(reference);
    }

    /// Takes note that an object stands in the input twice with different content, and that no
    /// `resourceVersion` says which is the newer state. The later one counts.
    pub fn repeated(&mut self, object: ObjectRef, earlier: &Source, later: &Source) {
        let message = format!(
            "The object is in the input twice with different content: at {}:{} and here. No \
             resourceVersion says which is newer; this one, the later, is used.",
            earlier.file, earlier.line
        );
        let finding = Finding {
            severity: Severity::Warning,
            object: Some(object.clone()),
            file: Arc::clone(&later.file),
            line: later.line,
            path: String::new(),
            message,
        };
        self.findings.repeated.insert(object, finding);
    }

    /// What is wrong with the objects that there are, once [`settle`](Self::settle)d: all of it, in
    /// order of severity, object and place, each once. Nothing of it is worked out before somebody
    /// asks, for no decision needs it.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let kept = &self.findings;
        let of_objects = kept.read.values().chain(kept.lowered.values()).flatten().cloned();
        let mut all: Vec<Finding> =
            of_objects.chain(kept.repeated.values().cloned()).chain(kept.of_unknown()).collect();
        all.extend(self.of_classes());
        all.extend(self.of_pools().map(|(_, finding)| finding));
        all.extend(self.erring());
        all.extend(self.of_namespaces());
        all.extend(self.of_trees());
        all.extend(self.of_gangs());
        all.extend(self.name_clashes());
        all.extend(self.refused_claims());
        all.sort();
        all.dedup();
        all
    }

    /// Takes in one event: a compact form is kept, and what depends on the object is marked. Of
    /// two states of an object the one with the higher `resourceVersion` counts where both have
    /// one, else the one that stands later in the input. Being gone is such a state.
    pub fn absorb(&mut self, event: ObjectEvent) {
        match events::named(event) {
            ObjectEvent::Applied(object, source) => {
                let reference = object.reference();
                if let Some(header) = self.news(&reference, &object, &source, false) {
                    self.applied(&reference, &object, header);
                }
            }
            ObjectEvent::Deleted(gone) => {
                if self.ends(&gone) {
                    self.deleted(&gone.object);
                }
            }
        }
    }

    /// The namespace of an object that names none is `default`, as kubectl has it.
    fn scoped(&mut self, namespace: &str, name: &str) -> Scoped {
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        Scoped { namespace: self.interned.names.get(namespace), name: Name::new(name) }
    }
}
