//! Marks on pods and on pod templates: of which gang they are, and where they are to be. What becomes
//! of them is for the gangs.

use phalanx_engine::{GroupKey, Name, Scoped};
use phalanx_objects::core::PodSpec;
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::scheduling::SchedulingKind;

use super::super::intern::Names;
use super::super::rules::is_qualified_name;
use super::super::slice::Note;
use super::RolePlan;
use crate::finding::Severity;

/// The kind of gangs that no object declares but the marks of their pods alone.
pub(crate) const UNDECLARED: &str = "group";

/// Annotations of Kueue that ask for places: it gives them to all pods of a workload at once.
const AT_ONCE: [&str; 5] = [REQUIRED, PREFERRED, UNCONSTRAINED, SLICES, LAYERS];

/// The level in one domain of which all pods must be.
const REQUIRED: &str = "kueue.x-k8s.io/podset-required-topology";

/// The level in one domain of which all pods wish to be.
const PREFERRED: &str = "kueue.x-k8s.io/podset-preferred-topology";

/// Wherever there is room.
const UNCONSTRAINED: &str = "kueue.x-k8s.io/podset-unconstrained-topology";

/// The level in one domain of which each slice must be.
const SLICES: &str = "kueue.x-k8s.io/podset-slice-required-topology";

/// Slices within slices: a list of levels and sizes, the widest first.
const LAYERS: &str = "kueue.x-k8s.io/podset-slice-required-topology-constraints";

/// Pod sets of one name here are placed together.
pub(crate) const TOGETHER: &str = "kueue.x-k8s.io/podset-group-name";

/// One layer of those.
#[derive(serde::Deserialize)]
struct Layer {
    topology: String,
    size: u32,
}

/// The index of the first pod of a pod set.
const OFFSET: &str = "kueue.x-k8s.io/pod-index-offset";

/// Most layers of slices within slices.
const LAYERS_MAX: usize = 3;

/// What Go takes for a truth value.
const TRUTHS: [&str; 12] =
    ["1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False"];

/// How many pods of consecutive index are in one domain together.
const SLICE_SIZE: &str = "kueue.x-k8s.io/podset-slice-size";

/// A level of topology, as an API names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LevelName {
    /// A label of nodes.
    Label(Name),
    /// A label of nodes, of a Topology of KAI.
    OfKai(Name, Name),
    /// A tier of HyperNodes, by number: the widest that is allowed.
    Tier(i32),
    /// A tier of HyperNodes, by name.
    TierName(Name),
}

/// Where some pods are to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) level: LevelName,
    pub(crate) required: bool,
    /// So many at a time are together, rather than all.
    pub(crate) segment: Option<u32>,
    /// The field that says so.
    pub(crate) field: Name,
}

/// The gang that a pod says it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// The field that says so.
    pub(crate) field: Name,
    /// The kind of the gang, as users type it.
    pub(crate) kind: Name,
    /// Its name.
    pub(crate) name: Name,
    /// Fewest pods that start at once, where the pods themselves say it.
    pub(crate) min: Option<u32>,
    /// Of gangs that are bound together the one that it is itself.
    pub(crate) own: Option<Name>,
}

/// Between the names of gangs that are bound together; no name of an object has it.
pub(crate) const BOUND: char = '+';

/// What a pod's metadata and spec say of its gang and its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) gang: Option<Named>,
    /// The part of the gang that it is in.
    pub(crate) part: Option<Name>,
    /// Its rank.
    pub(crate) rank: Option<u32>,
    /// Where pods of its role are to be.
    pub(crate) wishes: Box<[Wish]>,
    /// Roles of one name here are taken together where wishes are about a role; an empty one is that of the
    /// pods of one template.
    pub(crate) together: Option<Name>,
    /// What of it does not go together, or can't be read.
    pub(crate) doubts: Box<[Note]>,
}

impl Marks {
    /// The key of its gang, if it is of one.
    pub(crate) fn group_in(&self, namespace: &Name) -> Option<GroupKey> {
        let gang = self.gang.as_ref()?;
        let object = Scoped { namespace: namespace.clone(), name: gang.name.clone() };
        Some(GroupKey { object, kind: gang.kind.clone() })
    }
}

/// The marks of a pod or a template; none where it has none.
pub(crate) fn marks(meta: &ObjectMeta, spec: &PodSpec, names: &mut Names) -> Option<Box<Marks>> {
    let mut reader = Reader { meta, spec, names };
    let gang = reader.gang();
    let gang = gang.map(|named| reader.bound(named));
    let mut marks = Marks { gang, ..Marks::default() };
    if meta.labels.is_empty() && meta.annotations.is_empty() && marks.gang.is_none() {
        return None;
    }
    marks.part = reader.first_label(&[
        "kai.scheduler/subgroup-name",
        "grove.io/podclique",
        "volcano.sh/task-spec",
    ]);
    if let Some(own) = marks.gang.as_ref().and_then(|gang| gang.own.clone()) {
        marks.part = Some(own);
    }
    marks.rank = reader.rank();
    reader.places(&mut marks);
    (marks != Marks::default()).then(|| Box::new(marks))
}

struct Reader<'a> {
    meta: &'a ObjectMeta,
    spec: &'a PodSpec,
    names: &'a mut Names,
}

impl Reader<'_> {
    fn first_label(&mut self, keys: &[&str]) -> Option<Name> {
        let value = keys.iter().find_map(|key| self.meta.labels.get(*key))?;
        Some(self.names.get(value)).filter(|name| !name.is_empty())
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.meta.annotations.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn number(&self, key: &str) -> Option<u32> {
        self.annotation(key)?.parse().ok()
    }

    fn label_field(&mut self, key: &str) -> Name {
        self.names.get(&format!("metadata.labels[{key:?}]"))
    }

    fn annotation_field(&mut self, key: &str) -> Name {
        self.names.get(&format!("metadata.annotations[{key:?}]"))
    }

    fn named(&mut self, field: Name, kind: &str, name: &str, min: Option<u32>) -> Option<Named> {
        let (kind, name) = (self.names.get(kind), self.names.get(name));
        (!name.is_empty()).then_some(Named { field, kind, name, min, own: None })
    }

    /// The same where Koordinator binds its gang together with others of the namespace, as the pod itself
    /// says: a gang of gangs.
    fn bound(&mut self, named: Named) -> Named {
        let listed = self.annotation("gang.scheduling.koordinator.sh/groups");
        let listed = listed.and_then(|list| serde_json::from_str::<Vec<String>>(list).ok());
        let namespace = match self.meta.namespace.as_str() {
            "" => "default",
            given => given,
        };
        let here = listed.into_iter().flatten().filter_map(|entry| match entry.split_once('/') {
            Some((of, name)) => (of == namespace).then(|| name.to_owned()),
            None => Some(entry),
        });
        let mut names: Vec<String> = here.collect();
        names.sort();
        names.dedup();
        let own = named.name.to_string();
        if named.kind.as_str() != UNDECLARED || names.len() < 2 || !names.contains(&own) {
            return named;
        }
        let all = names.join(&BOUND.to_string());
        let name = self.names.get(&all);
        Named { own: Some(named.name.clone()), name, ..named }
    }

    /// The gang that it names, by the strongest of the marks that it has.
    fn gang(&mut self) -> Option<Named> {
        if let Some(group) = &self.spec.scheduling_group
            && let Some(name) = &group.pod_group_name
        {
            let field = self.names.get("spec.schedulingGroup.podGroupName");
            return self.named(field, SchedulingKind::PodGroup.word(), name, None);
        }
        if let Some(of) = &self.spec.workload_ref {
            let field = self.names.get("spec.workloadRef");
            let parts = [&of.name, &of.pod_group, &of.pod_group_replica_key];
            let parts: Vec<&str> =
                parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            return self.named(field, SchedulingKind::Templates.word(), &parts.join("."), None);
        }
        self.by_label().or_else(|| self.by_annotation())
    }

    fn by_label(&mut self) -> Option<Named> {
        let coscheduling = SchedulingKind::Coscheduling.word();
        let least = "gang.scheduling.koordinator.sh/min-available";
        let sigs = "pod-group.scheduling.sigs.k8s.io/min-available";
        let by_sigs = self.meta.labels.get(sigs).and_then(|least| least.parse().ok());
        let labels = [
            ("scheduling.x-k8s.io/pod-group", coscheduling, self.number(least)),
            ("pod-group.scheduling.sigs.k8s.io/name", UNDECLARED, by_sigs),
            ("kueue.x-k8s.io/pod-group-name", UNDECLARED, {
                self.number("kueue.x-k8s.io/pod-group-total-count")
            }),
            ("grove.io/podgang", SchedulingKind::PodGang.word(), None),
        ];
        let (key, kind, min) =
            labels.into_iter().find(|(key, ..)| self.meta.labels.contains_key(*key))?;
        let name = self.meta.labels.get(key).cloned().unwrap_or_default();
        let field = self.label_field(key);
        self.named(field, kind, &name, min)
    }

    fn by_annotation(&mut self) -> Option<Named> {
        let volcano = SchedulingKind::VolcanoPodGroup.word();
        let annotations = [
            ("scheduling.k8s.io/group-name", volcano, None),
            ("scheduling.volcano.sh/group-name", volcano, None),
            ("gang.scheduling.koordinator.sh/name", UNDECLARED, {
                self.number("gang.scheduling.koordinator.sh/min-available")
            }),
            ("pod-group-name", SchedulingKind::KaiPodGroup.word(), None),
        ];
        let (key, kind, min) =
            annotations.into_iter().find(|(key, ..)| self.annotation(key).is_some())?;
        let name = self.annotation(key).unwrap_or_default().to_owned();
        let field = self.annotation_field(key);
        self.named(field, kind, &name, min)
    }

    fn rank(&self) -> Option<u32> {
        let koordinator = self.number("gang.scheduling.koordinator.sh/network-topology-index");
        let label = self.annotation("kueue.x-k8s.io/pod-group-pod-index-label");
        let label = label.unwrap_or("kueue.x-k8s.io/pod-group-pod-index");
        let index = self.meta.labels.get(label).and_then(|index| index.parse::<u32>().ok());
        let offset = self.number(OFFSET).unwrap_or(0);
        koordinator.or_else(|| index?.checked_sub(offset))
    }

    /// What Kueue's annotations and KAI's say of places.
    fn places(&mut self, marks: &mut Marks) {
        let mut wishes = Vec::new();
        let asked = [(REQUIRED, true), (PREFERRED, false)];
        for (key, required) in asked {
            let Some(level) = self.annotation(key).map(str::to_owned) else { continue };
            let field = self.annotation_field(key);
            let level = LevelName::Label(self.names.get(&level));
            wishes.push(Wish { level, required, segment: None, field });
        }
        let size = self.number(SLICE_SIZE).filter(|size| *size > 0);
        marks.doubts = self.doubts(&wishes, size).into();
        if let Some(level) = self.annotation(SLICES).map(str::to_owned) {
            let field = self.annotation_field(SLICES);
            let level = LevelName::Label(self.names.get(&level));
            wishes.push(Wish { level, required: true, segment: size, field });
        }
        let layers = self.annotation(LAYERS).map(serde_json::from_str::<Vec<Layer>>);
        match layers {
            Some(Ok(layers)) if !layers.is_empty() && layers.iter().all(|layer| layer.size > 0) => {
                let doubts = self.layered(&layers);
                marks.doubts = marks.doubts.iter().cloned().chain(doubts).collect();
                let field = self.annotation_field(LAYERS);
                wishes.extend(layers.into_iter().map(|Layer { topology, size }| Wish {
                    level: LevelName::Label(self.names.get(&topology)),
                    required: true,
                    segment: Some(size),
                    field: field.clone(),
                }));
            }
            Some(_) => {
                let message = "It is no list of levels and sizes such as \
                               [{\"topology\": \"example.com/rack\", \"size\": 4}]: Kueue refuses that. There \
                               are no slices.";
                let at = self.annotation_field(LAYERS).to_string();
                let doubt = (Severity::Error, at, message.to_owned());
                marks.doubts = marks.doubts.iter().cloned().chain([doubt]).collect();
            }
            None => {}
        }
        let together = self.annotation(TOGETHER).map(str::to_owned);
        marks.together = together.map(|name| self.names.get(&name));
        marks.wishes = wishes.into();
    }
}

impl Reader<'_> {
    /// Levels that are no keys of labels.
    fn unlike_labels(&self) -> Vec<Note> {
        let keys = [REQUIRED, PREFERRED, SLICES];
        let unlike = keys.iter().filter_map(|key| {
            let level = self.meta.annotations.get(*key).filter(|level| !is_qualified_name(level))?;
            let message = format!(
                "{level:?} is no key of a label, and so no level: Kueue refuses that, and no node has it."
            );
            Some((Severity::Error, format!("metadata.annotations[{key:?}]"), message))
        });
        unlike.collect()
    }

    /// The first index of its pods, which is a number and none where pod sets are placed together.
    fn offset(&self) -> Option<Note> {
        let offset = self.annotation(OFFSET)?;
        let why = if self.annotation(TOGETHER).is_some() {
            "beside a podset-group-name, which numbers its pods itself"
        } else if offset.parse::<i32>().is_ok_and(|offset| offset >= 0) {
            return None;
        } else {
            "that is no whole number of at least 0"
        };
        let message = format!("Kueue refuses a pod-index-offset {why}.");
        Some((Severity::Warning, format!("metadata.annotations[{OFFSET:?}]"), message))
    }

    /// What Kueue refuses of slices within slices.
    fn layered(&mut self, layers: &[Layer]) -> Vec<Note> {
        let mut doubts = Vec::new();
        let at = self.annotation_field(LAYERS).to_string();
        let mut doubt = |why: String| {
            let message = format!("Kueue refuses slices within slices {why}. Here each is kept.");
            doubts.push((Severity::Warning, at.clone(), message));
        };
        for key in [SLICES, SLICE_SIZE] {
            if self.annotation(key).is_some() {
                doubt(format!("beside the annotation {key}"));
            }
        }
        if layers.len() > LAYERS_MAX {
            doubt(format!("of more than {LAYERS_MAX} layers"));
        }
        let pairs = layers.iter().zip(layers.iter().skip(1));
        for (outer, inner) in pairs.clone() {
            if !outer.size.is_multiple_of(inner.size) {
                let why = format!(
                    "whose sizes do not divide: slices of {} pods do not come out even in slices of {}",
                    outer.size, inner.size
                );
                doubt(why);
            }
        }
        let again = |(at, layer): &(usize, &Layer)| {
            layers.iter().take(*at).any(|other| other.topology == layer.topology)
        };
        if let Some((_, layer)) = layers.iter().enumerate().find(again) {
            doubt(format!("that name the level {} twice", layer.topology));
        }
        doubts
    }

    /// What Kueue's annotations say that does not go together.
    fn doubts(&mut self, wishes: &[Wish], size: Option<u32>) -> Vec<Note> {
        let mut doubts = Vec::new();
        let field = |key: &str| format!("metadata.annotations[{key:?}]");
        // Whatever it says: Kueue asks whether it is there.
        let said = self.meta.annotations.get(UNCONSTRAINED);
        let unconstrained_at = field(UNCONSTRAINED);
        let unconstrained = said.is_some();
        if let Some(said) = said.filter(|said| !TRUTHS.contains(&said.as_str())) {
            let message = format!(
                "{said:?} is neither true nor false: Kueue refuses that. The pods are to be nowhere in \
                 particular, as with true."
            );
            doubts.push((Severity::Error, unconstrained_at, message));
        }
        if let Some(name) = self.annotation(TOGETHER) {
            let sliced = [SLICE_SIZE, SLICES, LAYERS];
            let why = if sliced.iter().any(|key| self.annotation(key).is_some()) {
                Some("with slices")
            } else if wishes.is_empty() {
                Some("without podset-required-topology or podset-preferred-topology")
            } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
                Some("that is a number")
            } else {
                None
            };
            let said = |why| {
                format!(
                    "Kueue refuses a podset-group-name {why}. Here the pod sets of that name are placed \
                     together."
                )
            };
            doubts.extend(why.map(|why| (Severity::Warning, field(TOGETHER), said(why))));
        }
        if wishes.len() + usize::from(unconstrained) > 1 {
            let message = "Kueue refuses pods of one template with more than one of \
                           podset-required-topology, podset-preferred-topology and \
                           podset-unconstrained-topology. What is required is kept here, and a level \
                           that is preferred is wished beside it.";
            let at = wishes.last().map_or_else(String::new, |wish| wish.field.to_string());
            doubts.push((Severity::Warning, at, message.to_owned()));
        }
        doubts.extend(self.unlike_labels());
        doubts.extend(self.offset());
        let slices = self.annotation(SLICES).is_some();
        let given = self.annotation(SLICE_SIZE).map(str::to_owned);
        match (slices, given, size) {
            (true, Some(text), None) => {
                let message = format!(
                    "{text:?} is no size of a slice: Kueue refuses what is not a whole number of at \
                     least 1. All pods of the template are taken as one slice."
                );
                doubts.push((Severity::Error, field(SLICE_SIZE), message));
            }
            (true, None, _) => {
                let message = "Slices without podset-slice-size: Kueue refuses that. All pods of the \
                               template are taken as one slice.";
                let at = field(SLICES);
                doubts.push((Severity::Error, at, message.to_owned()));
            }
            (false, Some(_), _) => {
                let message = "A size of slices without podset-slice-required-topology: Kueue \
                               refuses that. There are no slices.";
                doubts.push((Severity::Warning, field(SLICE_SIZE), message.to_owned()));
            }
            (true, Some(_), Some(_)) | (false, None, _) => {}
        }
        doubts
    }
}

/// Whether the pods of a template say that they start together.
pub(super) fn is_of_gang(role: &RolePlan<'_>) -> bool {
    let (meta, spec) = (&role.template.metadata, &role.template.spec);
    let mut names = Names::default();
    of_template(role).is_some() || Reader { meta, spec, names: &mut names }.gang().is_some()
}

/// The annotation of Kueue by which pods of a template are placed at once, as a path in its workload.
pub(super) fn of_template(role: &RolePlan<'_>) -> Option<String> {
    let before = role.at.strip_suffix("spec")?;
    let has = |key: &&str| role.template.metadata.annotations.contains_key(*key);
    let field = AT_ONCE.iter().find(|key| has(key))?;
    Some(format!("{before}metadata.annotations[{field:?}]"))
}
