//! What is refused of the objects that declare gangs: fields that the API server does not take (the rules
//! stand with the types of `scheduling.k8s.io`), groups of groups that go in a circle or too deep, which
//! kube-scheduler does not place (KEP-6012), and subgroups that KAI's webhook does not take. Of a gang with
//! such an object no pod is placed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{GroupKey, Name, Scoped};
use phalanx_objects::scheduling::{
    KaiPodGroup, KaiSubGroup, PodGroupSpec, Scheduling, SchedulingKind,
};
use phalanx_objects::{Kind, ObjectRef};

use super::super::settle::object;
use super::super::{Lowering, Objects};
use super::Told;
use super::spec::Spec;
use crate::finding::Severity;
use crate::words;

/// Most groups of groups above a PodGroup through which kube-scheduler finds the first of all.
const ABOVE_MAX: usize = 4;

/// Levels of a tree of groups that Kubernetes allows, the PodGroup counted.
const LEVELS_MAX: usize = 4;

/// Most levels of topology that a group names.
const TOPOLOGY_MAX: usize = 1;

/// Most claims that a group shares.
const CLAIMS_MAX: usize = 4;

/// Most names of subgroups that a sentence lists.
const NAMES_MAX: usize = 8;

/// How far groups of groups are followed.
const CLIMB_MAX: usize = 8;

/// A field that is refused, by whom, and why.
struct Refused {
    about: ObjectRef,
    field: String,
    by: &'static str,
    why: String,
}

/// The groups of groups above a group, nearest first.
pub(super) struct Ascent {
    pub(super) names: Vec<Name>,
    /// The one that is met again, where they go in a circle.
    again: Option<Name>,
    /// There are more above the last.
    cut: bool,
}

impl Objects {
    /// Follows the parents of a PodGroup.
    pub(super) fn ascent(&self, group: &Scoped) -> Ascent {
        let mut ascent = Ascent { names: Vec::new(), again: None, cut: false };
        let mut next = self.pod_group_parent(group).map(Name::new);
        while let Some(name) = next.take() {
            if ascent.names.contains(&name) {
                ascent.again = Some(name);
                break;
            }
            if ascent.names.len() >= CLIMB_MAX {
                ascent.cut = true;
                break;
            }
            let parent = self.composite_spec(&group.namespace, &name);
            let parent = parent.and_then(|of| of.parent_composite_pod_group_name.as_deref());
            next = parent.filter(|name| !name.is_empty()).map(Name::new);
            ascent.names.push(name);
        }
        ascent
    }

    fn composite_spec(&self, namespace: &Name, name: &Name) -> Option<&PodGroupSpec> {
        let scoped = Scoped { namespace: namespace.clone(), name: name.clone() };
        let record = self.scheduling.get(&(SchedulingKind::CompositePodGroup, scoped))?;
        let Scheduling::CompositePodGroup(of) = &*record.object else { return None };
        Some(&of.spec)
    }
}

impl Lowering {
    /// Keeps a gang back where an object of it is refused, and says so on the object.
    pub(super) fn refuse(&self, key: &GroupKey, kind: SchedulingKind, spec: &mut Spec) {
        let refused = match kind {
            SchedulingKind::CompositePodGroup => self.refused_below(key, spec),
            SchedulingKind::PodGroup | SchedulingKind::KaiPodGroup => {
                self.refused_object(kind, &key.object)
            }
            SchedulingKind::Templates
            | SchedulingKind::KueueWorkload
            | SchedulingKind::Coscheduling
            | SchedulingKind::VolcanoPodGroup
            | SchedulingKind::PodGang
            | SchedulingKind::KueueTopology
            | SchedulingKind::KaiTopology
            | SchedulingKind::HyperNode
            | SchedulingKind::ComputeDomain => Vec::new(),
        };
        for Refused { about, field, by, why } in refused {
            let (kind, name) = (about.kind, &about.name);
            let few = format!("{kind} {name} is refused by {by}: {why} ({field})");
            spec.few.get_or_insert(few);
            let message = format!("Refused by {by}: {why}. No pod of the group is placed.");
            spec.told.push((about, (Severity::Error, field, message)));
        }
    }

    fn refused_object(&self, kind: SchedulingKind, scoped: &Scoped) -> Vec<Refused> {
        let Some(record) = self.objects.scheduling.get(&(kind, scoped.clone())) else {
            return Vec::new();
        };
        let about = object(Kind::Scheduling(kind), scoped);
        let (by, found) = match &*record.object {
            Scheduling::PodGroup(of) => ("the API server", group(&of.spec, "pods")),
            Scheduling::CompositePodGroup(of) => ("the API server", group(&of.spec, "groups")),
            Scheduling::KaiPodGroup(of) => ("KAI's webhook", kai(of)),
            Scheduling::Templates(_)
            | Scheduling::KueueWorkload(_)
            | Scheduling::Coscheduling(_)
            | Scheduling::VolcanoPodGroup(_)
            | Scheduling::PodGang(_)
            | Scheduling::KueueTopology(_)
            | Scheduling::KaiTopology(_)
            | Scheduling::HyperNode(_)
            | Scheduling::ComputeDomain(_) => return Vec::new(),
        };
        let refused = |(field, why)| Refused { about: about.clone(), field, by, why };
        found.into_iter().map(refused).collect()
    }

    /// Of a group of groups: of each object in it, and of how they hang together.
    fn refused_below(&self, key: &GroupKey, spec: &mut Spec) -> Vec<Refused> {
        let mut all = self.refused_object(SchedulingKind::CompositePodGroup, &key.object);
        let mut seen: BTreeSet<Name> = [key.object.name.clone()].into();
        let composite = |name: &Name| {
            let scoped = Scoped { namespace: key.object.namespace.clone(), name: name.clone() };
            (object(Kind::Scheduling(SchedulingKind::CompositePodGroup), &scoped), scoped)
        };
        for group in self.objects.groups_below(&key.object) {
            all.extend(self.refused_object(SchedulingKind::PodGroup, &group));
            let Ascent { names, again, cut } = self.objects.ascent(&group);
            for name in &names {
                if seen.insert(name.clone()) {
                    let (_, scoped) = composite(name);
                    all.extend(self.refused_object(SchedulingKind::CompositePodGroup, &scoped));
                }
            }
            if let Some((again, last)) = again.as_ref().zip(names.last()) {
                let why = match again == last {
                    true => "it is its own parent".to_owned(),
                    false => {
                        let circle = names.iter().skip_while(|name| *name != again);
                        let circle: Vec<&str> = circle.chain([again]).map(Name::as_str).collect();
                        format!("the parents go in a circle, {}", circle.join(" under "))
                    }
                };
                let about = composite(last).0;
                if !all.iter().any(|known| known.about == about && known.field == PARENT) {
                    let field = PARENT.to_owned();
                    all.push(Refused { about, field, by: "kube-scheduler", why });
                }
            } else if let Some((is_refused, why)) = self.too_deep(&group, &names, cut) {
                let about = object(Kind::Scheduling(SchedulingKind::PodGroup), &group);
                let field = PARENT.to_owned();
                if is_refused {
                    all.push(Refused { about, field, by: "kube-scheduler", why });
                } else {
                    spec.told.push((about, (Severity::Warning, field, why)));
                }
            }
        }
        all
    }

    /// That more groups of groups are above a PodGroup than Kubernetes allows: whether kube-scheduler places
    /// nothing of it, and in words. Up to four of them it looks no further up than from a group that names a
    /// level of topology, so that only that of the topmost is too deep for it.
    fn too_deep(&self, group: &Scoped, above: &[Name], cut: bool) -> Option<(bool, String)> {
        let top = above.last().filter(|_| above.len() >= LEVELS_MAX)?;
        let more = if cut { "more than " } else { "" };
        let (count, nearest) = (above.len(), if cut { "the nearest are " } else { "" });
        let above: Vec<String> = above.iter().map(ToString::to_string).collect();
        let deep = format!(
            "{more}{count} CompositePodGroups are above it ({nearest}{}), and Kubernetes allows \
             {LEVELS_MAX} levels of groups, the PodGroup among them",
            words::list(&above)
        );
        if cut || count > ABOVE_MAX {
            return Some((true, deep));
        }
        let constraints = self.objects.composite_spec(&group.namespace, top);
        let constraints = constraints.and_then(|of| of.scheduling_constraints.as_ref());
        Some(match constraints.is_some_and(|of| !of.topology.is_empty()) {
            true => (true, format!("{deep}; and {top}, the topmost, names a level of topology")),
            false => {
                let message = format!(
                    "Too deep: {deep}. kube-scheduler places such a group as long as {top}, the topmost, \
                     names no level of topology."
                );
                (false, message)
            }
        })
    }
}

/// The field that names the group of groups above.
const PARENT: &str = "spec.parentCompositePodGroupName";

/// What the API server refuses of a PodGroup or a CompositePodGroup: each field, and why.
fn group(of: &PodGroupSpec, members: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut add = |field: &str, why: String| found.push((field.to_owned(), why));
    let policy = &of.scheduling_policy;
    match (policy.basic.is_some(), policy.gang.is_some()) {
        (true, false) | (false, true) => {}
        (true, true) => add(
            "spec.schedulingPolicy",
            format!("it has both basic and gang, which say differently how its {members} start"),
        ),
        (false, false) => add(
            "spec.schedulingPolicy",
            format!("it has neither basic nor gang, of which one says how its {members} start"),
        ),
    }
    let levels = of.scheduling_constraints.as_ref().map_or(0, |of| of.topology.len());
    if levels > TOPOLOGY_MAX {
        add(
            "spec.schedulingConstraints.topology",
            format!("it names {levels} levels of topology, and may name one"),
        );
    }
    let claims = of.resource_claims.len();
    if claims > CLAIMS_MAX {
        let why = format!("it shares {claims} claims, and may share {CLAIMS_MAX}");
        add("spec.resourceClaims", why);
    }
    found
}

/// What KAI's webhook refuses of a PodGroup's subgroups: each field, and why.
fn kai(of: &KaiPodGroup) -> Vec<(String, String)> {
    let subs = &of.spec.sub_groups;
    let mut found = doubled(of);
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, sub) in subs.iter().enumerate() {
        let (name, field) = (&sub.name, || format!("spec.subGroups[{at}].name"));
        if name.to_lowercase() != *name {
            found.push((field(), format!("the name of subgroup {name} has upper case letters")));
        }
        match names.entry(name) {
            Entry::Vacant(entry) => drop(entry.insert(at)),
            Entry::Occupied(_) => {
                found.push((field(), format!("two subgroups are called {name}")));
            }
        }
    }
    let named = |sub: &KaiSubGroup| sub.parent.clone().filter(|name| !name.is_empty());
    let above: Vec<Option<usize>> = subs
        .iter()
        .map(|sub| named(sub).and_then(|name| names.get(name.as_str()).copied()))
        .collect();
    let circles = in_circles(&above);
    for (at, (sub, above)) in subs.iter().zip(&above).enumerate() {
        let name = &sub.name;
        let why = match (named(sub), above) {
            (Some(parent), None) => {
                format!("subgroup {name} is under {parent}, which is not there")
            }
            (Some(_), Some(_)) if circles.get(at) == Some(&true) => {
                format!("subgroup {name} is under itself")
            }
            (Some(_), Some(_)) | (None, _) => continue,
        };
        found.push((format!("spec.subGroups[{at}].parent"), why));
    }
    // How many are under each is known where that is sound.
    if found.is_empty() {
        let mut below = vec![0_u64; subs.len()];
        for above in above.iter().flatten() {
            if let Some(count) = below.get_mut(*above) {
                *count += 1;
            }
        }
        found.extend(minima(of, &below));
        found.extend(pods_of(subs, &below));
    }
    found
}

/// Both a minimum of pods and one of subgroups, of the PodGroup or of a subgroup.
fn doubled(of: &KaiPodGroup) -> Vec<(String, String)> {
    let own = ("spec".to_owned(), "it".to_owned(), of.spec.min_member, of.spec.min_sub_group);
    let sub = |(at, sub): (usize, &KaiSubGroup)| {
        let name = format!("subgroup {}", sub.name);
        (format!("spec.subGroups[{at}]"), name, sub.min_member, sub.min_sub_group)
    };
    let all = std::iter::once(own).chain(of.spec.sub_groups.iter().enumerate().map(sub));
    let both = all.filter(|(_, _, pods, groups)| pods.is_some() && groups.is_some());
    let why = |(field, who, ..): (String, String, _, _)| {
        let why =
            format!("{who} has both minMember and minSubGroup, of which one says how it starts");
        (format!("{field}.minMember"), why)
    };
    both.map(why).collect()
}

/// Subgroups of pods without a minimum, and minima of pods of subgroups that have others under them.
fn pods_of(subs: &[KaiSubGroup], below: &[u64]) -> Vec<(String, String)> {
    let wrong = |(at, (sub, below)): (usize, (&KaiSubGroup, &u64))| {
        let name = &sub.name;
        let why = match (*below, sub.min_member) {
            (0, None) => format!("subgroup {name} has no minMember"),
            (1.., Some(1..)) => format!(
                "subgroup {name} has others under it, so that its minSubGroup says how many of these \
                 start, and not a minMember"
            ),
            (0, Some(_)) | (1.., _) => return None,
        };
        Some((format!("spec.subGroups[{at}].minMember"), why))
    };
    subs.iter().zip(below).enumerate().filter_map(wrong).collect()
}

/// More subgroups that must start than there are, or none.
fn minima(of: &KaiPodGroup, below: &[u64]) -> Vec<(String, String)> {
    let subs = &of.spec.sub_groups;
    let all: u64 = below.iter().sum();
    let top = (subs.len() as u64).saturating_sub(all);
    let own = ("spec".to_owned(), "the PodGroup", of.spec.min_sub_group, top);
    let each = subs.iter().zip(below).enumerate().map(|(at, (sub, below))| {
        (format!("spec.subGroups[{at}]"), sub.name.as_str(), sub.min_sub_group, *below)
    });
    let wrong = |(field, name, parts, below): (String, &str, Option<i32>, u64)| {
        let parts = parts?;
        let name = if field == "spec" { name.to_owned() } else { format!("subgroup {name}") };
        let why = if u64::try_from(parts).is_ok_and(|parts| parts > below) {
            format!("it has {}", words::count(below, "subgroup", "subgroups"))
        } else if parts < 1 {
            "it is to be one at least".to_owned()
        } else {
            return None;
        };
        let why = format!("{parts} of the subgroups of {name} must start, and {why}");
        Some((format!("{field}.minSubGroup"), why))
    };
    std::iter::once(own).chain(each).filter_map(wrong).collect()
}

/// Of each whether who is above it leads back to it.
fn in_circles(above: &[Option<usize>]) -> Vec<bool> {
    let mut circles = vec![false; above.len()];
    // On which way up each was met first.
    let mut ways: Vec<Option<usize>> = vec![None; above.len()];
    for start in 0..above.len() {
        let mut next = Some(start);
        while let Some(at) = next {
            match ways.get_mut(at) {
                Some(way @ None) => *way = Some(start),
                Some(Some(way)) if *way == start && circles.get(at) == Some(&false) => {
                    if let Some(circle) = circles.get_mut(at) {
                        *circle = true;
                    }
                }
                Some(Some(_)) | None => break,
            }
            next = above.get(at).copied().flatten();
        }
    }
    circles
}

/// Pods of a PodGroup of KAI whose label names a subgroup that it does not have: what to say of them.
pub(super) fn strays(of: &KaiPodGroup, pods: &[(ObjectRef, Name)]) -> Vec<Told> {
    let names: BTreeSet<&str> = of.spec.sub_groups.iter().map(|sub| sub.name.as_str()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let mut shown: Vec<String> = names.iter().take(NAMES_MAX).map(ToString::to_string).collect();
    let more = names.len().saturating_sub(NAMES_MAX);
    if more > 0 {
        shown.push(words::count(more as u64, "more", "more"));
    }
    let shown = words::list(&shown);
    let told = |(pod, name): &(ObjectRef, Name)| {
        let message = format!(
            "PodGroup {} has no subgroup {name}, but {shown}: the pod counts for none of them.",
            of.metadata.name
        );
        let field = "metadata.labels[\"kai.scheduler/subgroup-name\"]".to_owned();
        (pod.clone(), (Severity::Warning, field, message))
    };
    pods.iter().filter(|(_, name)| !names.contains(name.as_str())).map(told).collect()
}
