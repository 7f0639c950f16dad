//! What a PodGroup of Volcano says: the fewest pods, of all, of tasks and of subgroups, and where they are to
//! be.
//!
//! A pod is of a subgroup by its labels: of the first policy of `subGroupPolicy` whose `labelSelector` takes it
//! and all of whose `matchLabelKeys` it has, the one of its values of these. Which of a policy's subgroups
//! start is a choice where not all must. A policy without `matchLabelKeys` makes no subgroups for Volcano; here
//! they are of so many pods each in their order, which is told.

use phalanx_engine::{GroupKey, Name};
use phalanx_objects::scheduling::{
    Scheduling, SchedulingKind, VolcanoPodGroup, VolcanoPodGroupSpec, VolcanoSubGroup,
};

use super::super::Lowering;
use super::super::meant::{LabelRule, PodLabels, holds, label_rule};
use super::super::slice::Note;
use super::super::workload::{Wish, volcano_wish};
use super::Draft;
use super::spec::{Part, Segment, Spec, class, fewest, number, total};
use super::units::{Node, units};
use crate::finding::Severity;
use crate::words;

/// How the pods of a group are told to be of its subgroups.
pub(super) struct Subgroups(Vec<Labelled>);

/// A policy that makes subgroups by labels.
struct Labelled {
    name: String,
    /// Which pods it takes; none where its selector is not valid.
    selects: Option<LabelRule>,
    keys: Vec<String>,
}

impl Subgroups {
    /// The subgroup that labels say; an empty name where they say none.
    pub(super) fn of(&self, labels: &PodLabels) -> Name {
        let named = self.0.iter().find_map(|policy| {
            let takes = policy.selects.as_ref().is_some_and(|rule| holds(rule, &labels.labels));
            let value = |key: &String| labels.value(key).filter(|value| !value.is_empty());
            let values: Option<Vec<&str>> =
                policy.keys.iter().map(|key| value(key).map(Name::as_str)).collect();
            values.filter(|_| takes).map(|values| subgroup(&policy.name, &values.join("-")))
        });
        named.unwrap_or_else(|| Name::new(""))
    }
}

/// The name of a subgroup: its policy or task, and which of its subgroups it is.
pub(super) fn subgroup(policy: &str, which: &str) -> Name {
    Name::new(&format!("{policy}/{which}"))
}

impl Lowering {
    /// How the pods of a group are told to be of its subgroups; none where labels do not tell.
    pub(super) fn subgroups_of(&mut self, key: &GroupKey) -> Option<Subgroups> {
        let kind = SchedulingKind::VolcanoPodGroup;
        if key.kind.as_str() != kind.word() {
            return None;
        }
        let record = self.objects.scheduling.get(&(kind, key.object.clone()))?;
        let Scheduling::VolcanoPodGroup(of) = &*record.object else { return None };
        let names = &mut self.interned.names;
        let labelled = |policy: &VolcanoSubGroup| Labelled {
            name: policy.name.clone(),
            selects: match &policy.label_selector {
                Some(selector) => label_rule(selector, names).ok().map(Into::into),
                None => Some(LabelRule::default()),
            },
            keys: policy.match_label_keys.clone(),
        };
        let by_labels = of.spec.sub_group_policy.iter().filter(|policy| is_by_labels(policy));
        let all: Vec<Labelled> = by_labels.map(labelled).collect();
        (!all.is_empty()).then_some(Subgroups(all))
    }
}

fn is_by_labels(policy: &VolcanoSubGroup) -> bool {
    !policy.match_label_keys.is_empty()
}

/// What a PodGroup says of the gang that these pods are.
pub(super) fn spec(of: &VolcanoPodGroup, drafts: &[Draft]) -> Spec {
    let spec = &of.spec;
    let mut notes = Vec::new();
    let min = fewest(spec.min_member, 0, "spec.minMember", &mut notes);
    let mut all = match spec.sub_group_policy.iter().any(is_by_labels) {
        true => by_labels(spec, min, drafts),
        false => in_order(spec, min),
    };
    let own = spec.network_topology.as_ref();
    all.wishes.extend(own.and_then(|of| volcano_wish(of, "spec.networkTopology")));
    notes.extend(spec.sub_group_policy.iter().enumerate().filter_map(|(at, of)| no_labels(of, at)));
    all.notes = notes;
    all.priority = class(&spec.priority_class_name);
    all
}

/// That a policy names no labels by which its subgroups are told.
fn no_labels(of: &VolcanoSubGroup, at: usize) -> Option<Note> {
    if is_by_labels(of) {
        return None;
    }
    let selector = match &of.label_selector {
        Some(_) => ", whatever its labelSelector says",
        None => "",
    };
    let message = format!(
        "Volcano tells the subgroups of {} by the labels that matchLabelKeys names, and it names none: for \
         Volcano no pod is of one. Here the pods are taken in their order, so many for each subgroup\
         {selector}.",
        of.name
    );
    Some((Severity::Warning, format!("spec.subGroupPolicy[{at}].matchLabelKeys"), message))
}

/// Each task with the fewest of its pods that start. A minimum below the sum of these means any so many pods.
fn tasks(spec: &VolcanoPodGroupSpec) -> impl Iterator<Item = (&String, u32)> {
    let by_task: i64 = spec.min_task_member.values().copied().map(i64::from).sum();
    let tasks = spec.min_task_member.iter().filter(move |_| i64::from(spec.min_member) >= by_task);
    tasks.map(|(task, least)| (task, number(Some(*least)).unwrap_or(0)))
}

fn of_task(task: &str, min: u32) -> Part {
    Part { names: vec![Name::new(task)], min: Some(min), ..Part::default() }
}

/// Where each subgroup of a policy is to be.
fn wish(of: &VolcanoSubGroup, at: usize) -> Option<Wish> {
    let field = format!("spec.subGroupPolicy[{at}].networkTopology");
    of.network_topology.as_ref().and_then(|of| volcano_wish(of, &field))
}

/// Subgroups of so many pods each in their order.
fn in_order(spec: &VolcanoPodGroupSpec, min: u32) -> Spec {
    let policies = || spec.sub_group_policy.iter();
    let wishes = policies().enumerate().filter_map(|(at, policy)| {
        let segment = number(policy.sub_group_size).filter(|size| *size > 0);
        Some(Wish { segment, ..wish(policy, at)? })
    });
    let by_part = policies().map(|policy| {
        let size = number(policy.sub_group_size).unwrap_or(1);
        number(policy.min_sub_groups).unwrap_or(0).saturating_mul(size)
    });
    let segment = match spec.sub_group_policy.as_slice() {
        [only] => number(only.sub_group_size)
            .filter(|size| *size > 1)
            .map(|size| Segment { name: Name::new(&only.name), size }),
        _ => None,
    };
    Spec {
        min: Some(min.max(total(by_part))),
        parts: tasks(spec).map(|(task, least)| of_task(task, least)).collect(),
        segment,
        wishes: wishes.collect(),
        ..Spec::default()
    }
}

/// What is made of a policy's subgroups.
struct Policy<'o> {
    of: &'o VolcanoSubGroup,
    at: usize,
    size: u32,
    /// Those of which pods are there, in order.
    names: Vec<Name>,
    /// So many must start.
    fewest: u32,
}

impl Policy<'_> {
    /// Pods of those that must start.
    fn pods(&self) -> u32 {
        self.fewest.saturating_mul(self.size)
    }

    /// Raises how many must start until so many pods more do, as far as there are any.
    fn raise(&mut self, pods: u32) {
        let all = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let raised = self.fewest.saturating_add(pods.div_ceil(self.size)).min(all);
        self.fewest = self.fewest.max(raised);
    }
}

/// The subgroups of the policies that tell them by labels.
fn policies<'o>(spec: &'o VolcanoPodGroupSpec, drafts: &[Draft]) -> Vec<Policy<'o>> {
    let labelled = spec.sub_group_policy.iter().enumerate().filter(|(_, of)| is_by_labels(of));
    let policy = |(at, of): (usize, &'o VolcanoSubGroup)| {
        let before = subgroup(&of.name, "");
        let own = drafts.iter().filter_map(|draft| draft.subgroup.as_ref());
        let own = own.filter(|name| name.starts_with(before.as_str()));
        let mut names: Vec<Name> = own.cloned().collect();
        let value = |name: &Name| name.strip_prefix(before.as_str())?.parse::<u64>().ok();
        names.sort_by_cached_key(|name| (value(name), name.clone()));
        names.dedup();
        // One without a size is there with its first pod.
        let size = number(of.sub_group_size).unwrap_or(1).max(1);
        Policy { of, at, size, names, fewest: number(of.min_sub_groups).unwrap_or(0) }
    };
    labelled.map(policy).collect()
}

/// Subgroups by labels. What the whole group and its tasks need of pods in subgroups comes as whole
/// subgroups, whichever; the rest are pods of none.
fn by_labels(spec: &VolcanoPodGroupSpec, min: u32, drafts: &[Draft]) -> Spec {
    let mut policies = policies(spec, drafts);
    let mut parts = Vec::new();
    let mut in_tasks = 0_u32;
    for (task, least) in tasks(spec) {
        let of_it = || drafts.iter().filter(|draft| draft.part.as_deref() == Some(task));
        let all_of = |policy: &&mut Policy<'_>| {
            let is =
                |draft: &Draft| draft.subgroup.as_ref().is_some_and(|n| policy.names.contains(n));
            of_it().next().is_some() && of_it().all(is)
        };
        match policies.iter_mut().find(all_of) {
            Some(policy) => policy.raise(least.saturating_sub(policy.pods())),
            None => {
                in_tasks = in_tasks.saturating_add(least);
                parts.push(of_task(task, least));
            }
        }
    }
    let there = |is: &dyn Fn(&Draft) -> bool| {
        total(drafts.iter().filter(|draft| !draft.line.going && is(draft)).map(Draft::len))
    };
    let of_none = there(&|draft| draft.subgroup.as_ref().is_none_or(|name| name.is_empty()));
    let in_subgroups = |policies: &[Policy<'_>]| total(policies.iter().map(Policy::pods));
    for at in 0..policies.len() {
        let lacking = min.saturating_sub(of_none.saturating_add(in_subgroups(&policies)));
        policies[at].raise(lacking);
    }
    let rest = min.saturating_sub(in_subgroups(&policies)).min(of_none).saturating_sub(in_tasks);
    if rest > 0 {
        parts.push(of_task("", rest));
    }
    let all = there(&|_| true);
    let few = (all < min).then(|| words::too_few(None, u64::from(min), u64::from(all)));
    let lacking = policies.iter().find(|of| (of.names.len() as u64) < u64::from(of.fewest));
    let lacking =
        lacking.map(|of| words::too_few_subgroups(&of.of.name, of.fewest, of.names.len()));
    let mut nodes = Vec::new();
    for policy in policies.iter().filter(|policy| !policy.names.is_empty()) {
        let parent = Some(nodes.len());
        let name = Name::new(&policy.of.name);
        nodes.push(Node { name, parent: None, fewest: Some(policy.fewest) });
        let below = policy.names.iter();
        nodes.extend(below.map(|name| Node { name: name.clone(), parent, fewest: None }));
    }
    let units = units(None, &nodes);
    for policy in &policies {
        for name in &policy.names {
            let at = nodes.iter().position(|node| node.name == *name);
            parts.push(Part {
                names: vec![name.clone()],
                min: Some(policy.size),
                unit: at.and_then(|at| units.of.get(at).copied().flatten()),
                wishes: wish(policy.of, policy.at).into_iter().collect(),
                object: None,
            });
        }
    }
    Spec { parts, units, few: few.or(lacking), ..Spec::default() }
}
