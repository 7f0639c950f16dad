//! What to end: pods, workloads whose pods are still to come, and allocations that nobody uses; as
//! few as do, and of as few the ones that are missed least.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{
    Act, CureKind, Facts, GroupKey, Name, NodeKey, NodeReport, PodKey, Reason, Scoped, Seat,
};
use phalanx_objects::core::Pod;
use phalanx_objects::{Kind, Object, ObjectRef};

use super::{Lab, NODES_MAX};
use crate::edit::{Edit, Target};

/// Most things of which every two are tried.
pub(super) const PAIRS_MAX: usize = 24;

/// Most nodes on which things are ended together.
const SETS_MAX: usize = 64;

/// Something that could be ended, and how much that would harm: less first. A gang that runs is ended
/// whole, for a part of it makes no progress.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Thing {
    harm: Harm,
    targets: Vec<Target>,
    nodes: Vec<String>,
    /// A whole gang of pods.
    gang: bool,
}

/// Compared field by field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Harm {
    pods: usize,
    priority: i32,
    claims: usize,
    cpu_milli: i64,
    memory: i64,
}

fn make(things: &[Thing]) -> Edit {
    let mut objects: Vec<Target> =
        things.iter().flat_map(|thing| &thing.targets).cloned().collect();
    objects.sort();
    objects.dedup();
    Edit::Without { objects }
}

/// The smallest set of things found whose end places the group.
///
/// Where there are few, any of them may be in it. Else those on one node with the users of the claims
/// in its way, for the nodes that lack least, or on several of these nodes.
pub(super) fn ends(
    lab: &mut Lab<'_>,
    nearest: &[&NodeReport],
    place: &BTreeSet<NodeKey>,
) -> Option<Edit> {
    if lab.is_refused() {
        return None;
    }
    let things = things(lab);
    if things.len() <= PAIRS_MAX {
        let light: Vec<Thing> = things.iter().filter(|thing| !thing.gang).cloned().collect();
        let one = smallest(lab, &light, Thorough::Yes, make);
        if light.len() == things.len() || one.as_ref().is_some_and(|edit| size(edit) <= 2) {
            return one;
        }
        let other = smallest(lab, &things, Thorough::Yes, make);
        return one.into_iter().chain(other).min_by_key(size);
    }
    if let Some(edit) = user_of_full_claim(lab) {
        return Some(edit);
    }
    let mut sets = on_nodes(lab, nearest, &things);
    sets.sort_by_key(|set| (!place.contains(&set.node), set.room.len()));
    let one = on_one_node(lab, &sets);
    if one.as_ref().is_some_and(|edit| size(edit) <= 2) {
        return one;
    }
    let several = on_several_nodes(lab, &sets);
    let found = one.into_iter().chain(several).min_by_key(size);
    // Pods are in the way on some node: a set that was not tried may do.
    lab.cut |= found.is_none() && !sets.is_empty();
    found
}

fn size(edit: &Edit) -> usize {
    if let Edit::Without { objects } = edit { objects.len() } else { 0 }
}

/// What could be ended for one node.
struct Set {
    /// The node.
    node: NodeKey,
    /// Things that by their requests leave the node enough room, as few as do.
    room: Vec<Thing>,
    /// All.
    all: Vec<Thing>,
}

/// The smallest set found on one of the first nodes.
fn on_one_node(lab: &mut Lab<'_>, sets: &[Set]) -> Option<Edit> {
    let mut best: Option<Edit> = None;
    for set in sets.iter().take(NODES_MAX) {
        let smallest_yet = best.as_ref().map_or(usize::MAX, size);
        if set.room.len() >= smallest_yet {
            break;
        }
        let found = smallest(lab, &set.all, Thorough::No, make);
        if let Some(edit) = found.filter(|edit| size(edit) < smallest_yet) {
            best = Some(edit);
        }
    }
    best
}

/// A set on several nodes of which no member can be left out: for many pods, and for those who come
/// after others that need the room too.
fn on_several_nodes(lab: &mut Lab<'_>, sets: &[Set]) -> Option<Edit> {
    let mut most = 2;
    while most <= SETS_MAX && most / 2 < sets.len() {
        let mut union: Vec<Thing> =
            sets.iter().take(most).flat_map(|set| &set.room).cloned().collect();
        union.sort();
        union.dedup();
        if lab.works(&make(&union))? {
            return Some(make(&spare_none(lab, &union, make)?));
        }
        most *= 2;
    }
    None
}

/// The end of one user of a claim that has as many as the API allows: the last that came.
fn user_of_full_claim(lab: &mut Lab<'_>) -> Option<Edit> {
    let is_full = |(reason, _): &&(Reason, _)| *reason == Reason::TooManyUsers;
    let full = lab.report.object.iter().find(is_full)?;
    let Facts::Subject { subject, .. } = &full.1.facts else { return None };
    let namespace = lab.subject.group.object.namespace.to_string();
    let name = subject.to_string();
    let claim = ObjectRef { kind: Kind::ResourceClaim, namespace: namespace.clone(), name };
    let Some(Object::ResourceClaim(claim)) = lab.objects.get(&claim) else { return None };
    let last = claim.status.reserved_for.iter().rev().find(|user| user.resource == "pods")?;
    let pod = ObjectRef { kind: Kind::Pod, namespace, name: last.name.clone() };
    let edit = Edit::Without { objects: vec![Target::from(&pod)] };
    lab.works(&edit)?.then_some(edit)
}

/// Everything that could be ended, but for the group's own: those missed least first.
fn things(lab: &Lab<'_>) -> Vec<Thing> {
    let seats = seats(lab);
    let mut things = Vec::new();
    let mut gangs: BTreeMap<&GroupKey, Vec<Thing>> = BTreeMap::new();
    for object in lab.objects.of_kind(Kind::Pod) {
        let Object::Pod(pod) = object else { continue };
        let reference = object.reference();
        let key = PodKey(Scoped {
            namespace: Name::new(&pod.metadata.namespace),
            name: Name::new(&pod.metadata.name),
        });
        if is_own(lab, object) || lab.subject.own.contains(&key) || pod.status.phase.is_terminal() {
            continue;
        }
        let seat = seats.get(&Target::from(&reference)).map(|seat| seat.node.0.to_string());
        let bound = crate::lower::node_of(pod).map(str::to_owned);
        let nodes = bound.or(seat).into_iter().collect();
        let targets = vec![Target::from(&reference)];
        let thing = Thing { harm: harm(pod), targets, nodes, gang: false };
        match lab.world.lowering().gang_of(&key) {
            Some(gang) => gangs.entry(gang).or_default().push(thing),
            None => things.push(thing),
        }
    }
    for (gang, pods) in gangs {
        things.extend(of_gang(lab, gang, pods));
    }
    for (group, _) in &lab.plan.decision.verdicts {
        let Some(info) = lab.world.lowering().group(group) else { continue };
        let is_workload = matches!(info.kind, Kind::Workload(_));
        if !is_workload || *group == lab.subject.group {
            continue;
        }
        let pods: usize = info.roles.iter().map(|role| role.pods.len()).sum();
        let target = workload(group, info.kind);
        let nodes = seats.get(&target).map(|seat| seat.node.0.to_string()).into_iter().collect();
        // All its pods go, which is worse than any one that runs.
        let harm = Harm { pods: 1 + pods, priority: 0, claims: 0, cpu_milli: 0, memory: 0 };
        things.push(Thing { harm, targets: vec![target], nodes, gang: false });
    }
    things.extend(unused_allocations(lab));
    things.sort();
    things
}

/// Whether the object is one of those that say what the group's pods are like, or is made by one.
fn is_own(lab: &Lab<'_>, object: &Object) -> bool {
    let reference = object.reference();
    lab.subject.parts.iter().any(|part| {
        let own = &part.spec_of;
        let made = reference.namespace == own.namespace && crate::edit::is_of(object, own);
        reference == *own || made
    })
}

/// What could be ended of a gang of which these pods exist: as many pods one by one as it does not need,
/// those of the highest names; and all of it.
fn of_gang(lab: &Lab<'_>, gang: &GroupKey, mut pods: Vec<Thing>) -> Vec<Thing> {
    // What neither runs nor is seated by this plan holds nothing.
    pods.retain(|pod| !pod.nodes.is_empty());
    pods.sort_by(|a, b| a.targets.cmp(&b.targets));
    if pods.is_empty() {
        return Vec::new();
    }
    let beyond = lab.world.lowering().beyond_needed(gang);
    let mut things: Vec<Thing> = pods.iter().rev().take(beyond).cloned().collect();
    let declared = crate::lower::declaring(gang);
    let by_workload =
        matches!(declared.kind, Kind::Workload(_)) && lab.objects.get(&declared).is_some();
    let targets = match by_workload {
        true => vec![Target::from(&declared)],
        false => pods.iter().flat_map(|pod| pod.targets.clone()).collect(),
    };
    let mut nodes: Vec<String> = pods.iter().flat_map(|pod| pod.nodes.clone()).collect();
    nodes.sort();
    nodes.dedup();
    let sum =
        |of: fn(&Harm) -> i64| pods.iter().map(|pod| of(&pod.harm)).fold(0, i64::saturating_add);
    let harm = Harm {
        pods: pods.len(),
        priority: pods.iter().map(|pod| pod.harm.priority).max().unwrap_or_default(),
        claims: pods.iter().map(|pod| pod.harm.claims).sum(),
        cpu_milli: sum(|harm| harm.cpu_milli),
        memory: sum(|harm| harm.memory),
    };
    things.push(Thing { harm, targets, nodes, gang: pods.len() > 1 });
    things
}

fn workload(group: &GroupKey, kind: Kind) -> Target {
    let (namespace, name) = (group.object.namespace.to_string(), group.object.name.to_string());
    Target { kind, namespace: Some(namespace), name }
}

/// The first seat that this plan gives each pod or workload.
///
/// Pods of a group have each its own.
fn seats<'a>(lab: &Lab<'a>) -> BTreeMap<Target, &'a Seat> {
    let mut seats = BTreeMap::new();
    for act in &lab.plan.decision.acts {
        let Act::Place(group, placed, _) = act else { continue };
        let Some(info) = lab.world.lowering().group(group) else { continue };
        if let Some(seat) = placed.first() {
            seats.insert(workload(group, info.kind), seat);
        }
        for seat in placed.iter().filter(|_| info.gang) {
            let Some(pod) = &seat.pod else { continue };
            let (namespace, name) = (pod.0.namespace.to_string(), pod.0.name.to_string());
            seats.insert(Target { kind: Kind::Pod, namespace: Some(namespace), name }, seat);
        }
    }
    seats
}

/// Claims that hold devices for nobody, but for the group's own, which it may move.
fn unused_allocations(lab: &Lab<'_>) -> Vec<Thing> {
    let parts = lab.subject.parts.iter();
    let own: BTreeSet<&ObjectRef> = parts.flat_map(|part| part.claims.iter().flatten()).collect();
    let mut things = Vec::new();
    for object in lab.objects.of_kind(Kind::ResourceClaim) {
        let Object::ResourceClaim(claim) = object else { continue };
        let unused = claim.status.allocation.is_some() && claim.status.reserved_for.is_empty();
        let reference = object.reference();
        if unused && !own.contains(&reference) {
            let harm = Harm { pods: 0, priority: 0, claims: 1, cpu_milli: 0, memory: 0 };
            let targets = vec![Target::from(&reference)];
            things.push(Thing { harm, targets, nodes: Vec::new(), gang: false });
        }
    }
    things
}

fn harm(pod: &Pod) -> Harm {
    let of = |name: &str| -> i64 {
        let asked = |c: &phalanx_objects::core::Container| {
            let amount = c.resources.requests.get(name);
            amount.map_or(0, |q| if name == "cpu" { q.milli_ceil() } else { q.value_ceil() })
        };
        pod.spec.containers.iter().map(asked).fold(0, i64::saturating_add)
    };
    Harm {
        pods: 1,
        priority: pod.spec.priority.unwrap_or_default(),
        claims: pod.spec.resource_claims.len(),
        cpu_milli: of("cpu"),
        memory: of("memory"),
    }
}

/// For each node on which ending something can help, what there is to end.
fn on_nodes(lab: &Lab<'_>, nearest: &[&NodeReport], things: &[Thing]) -> Vec<Set> {
    let mut by_node: BTreeMap<&str, Vec<&Thing>> = BTreeMap::new();
    let mut by_target: BTreeMap<&Target, &Thing> = BTreeMap::new();
    for thing in things {
        for node in &thing.nodes {
            by_node.entry(node).or_default().push(thing);
        }
        by_target.extend(thing.targets.iter().map(|target| (target, thing)));
    }
    let is_claim = |thing: &&Thing| {
        thing.nodes.is_empty() && thing.targets.iter().any(|t| t.kind == Kind::ResourceClaim)
    };
    let unused: Vec<&Thing> = things.iter().filter(is_claim).collect();
    let mut sets = Vec::new();
    // Of a gang one member may fit where the next does not.
    let of_use = |node: &&&NodeReport| lab.subject.gang || held_by_pods(node);
    for node in nearest.iter().filter(of_use) {
        let here = by_node.get(node.node.0.as_str()).map_or(&[][..], Vec::as_slice);
        let users = users_of_claims(lab, node);
        let users = users.iter().filter_map(|user| by_target.get(user).copied());
        let mut all: Vec<Thing> =
            here.iter().copied().chain(users).chain(unused.iter().copied()).cloned().collect();
        all.sort();
        all.dedup();
        let room = match lab.subject.gang {
            true => Some(all.clone()).filter(|all| !all.is_empty()),
            false => room(node, &all),
        };
        if let Some(room) = room {
            sets.push(Set { node: node.node.clone(), room, all });
        }
    }
    sets
}

/// Things that by their requests leave the node enough room: the one missed least that does alone,
/// else the greatest. All of them where not only room by CPU and memory is missing; none if all are
/// not enough.
fn room(node: &NodeReport, all: &[Thing]) -> Option<Vec<Thing>> {
    if all.is_empty() {
        return None;
    }
    let mut missing = Vec::new();
    for (_, _, example) in &node.checks {
        let Facts::Amount { resource, asked, free, .. } = &example.facts else {
            return Some(all.to_vec());
        };
        let of: fn(&Harm) -> i64 = match resource.as_str() {
            "cpu" => |harm| harm.cpu_milli,
            "memory" => |harm| harm.memory,
            _ => return Some(all.to_vec()),
        };
        missing.push((of, asked.saturating_sub(*free)));
    }
    if all.iter().any(|thing| thing.targets.iter().any(|target| target.kind != Kind::Pod)) {
        return Some(all.to_vec());
    }
    let is_enough = |some: &[&Thing]| {
        missing.iter().all(|(of, missing)| {
            some.iter().map(|thing| of(&thing.harm)).fold(0, i64::saturating_add) >= *missing
        })
    };
    if let Some(one) = all.iter().find(|thing| is_enough(&[thing])) {
        return Some(vec![one.clone()]);
    }
    let mut greatest: Vec<&Thing> = all.iter().collect();
    if let Some((of, _)) = missing.first() {
        greatest.sort_by_key(|thing| std::cmp::Reverse(of(&thing.harm)));
    }
    let count = (1..=greatest.len()).find(|count| is_enough(&greatest[..*count]))?;
    Some(greatest[..count].iter().map(|thing| (*thing).clone()).collect())
}

/// Whether every check that fails on the node is one that ending pods can mend.
fn held_by_pods(node: &NodeReport) -> bool {
    !node.checks.is_empty()
        && node.checks.iter().all(|(reason, _, example)| {
            let if_free = example
                .facts
                .devices()
                .is_some_and(|f| f.together_if_free >= f.asked || f.free < f.tolerated);
            reason.cure() == CureKind::EndPods || if_free
        })
}

/// The users of claims that are allocated where the node can't have them.
fn users_of_claims(lab: &Lab<'_>, node: &NodeReport) -> Vec<Target> {
    let mut users = Vec::new();
    for (reason, _, example) in &node.checks {
        if let (Reason::VolumeClaimInUse, Facts::Volume(facts)) = (reason, &example.facts) {
            users.extend(users_of_volume(lab, &facts.claim));
            continue;
        }
        let (Facts::Claim { claim, .. } | Facts::Binding { claim, .. }) = &example.facts else {
            continue;
        };
        if ![Reason::ClaimElsewhere, Reason::BindingFailed].contains(reason) {
            continue;
        }
        let namespace = claim.0.namespace.to_string();
        let name = claim.0.name.to_string();
        let claim = ObjectRef { kind: Kind::ResourceClaim, namespace: namespace.clone(), name };
        let Some(Object::ResourceClaim(found)) = lab.objects.get(&claim) else { continue };
        for user in found.status.reserved_for.iter().filter(|user| user.resource == "pods") {
            let namespace = Some(namespace.clone());
            users.push(Target { kind: Kind::Pod, namespace, name: user.name.clone() });
        }
    }
    users
}

/// The pods that mount a claim on a volume in the group's namespace.
fn users_of_volume(lab: &Lab<'_>, claim: &str) -> Vec<Target> {
    let namespace = lab.subject.group.object.namespace.as_str();
    let mounts = |pod: &Pod| {
        let claims =
            pod.spec.volumes.placed.iter().filter_map(|v| v.persistent_volume_claim.as_ref());
        pod.metadata.namespace == namespace && claims.into_iter().any(|c| c.claim_name == claim)
    };
    let is_one = |object: &&Object| if let Object::Pod(pod) = object { mounts(pod) } else { false };
    let pods = lab.objects.of_kind(Kind::Pod).filter(is_one);
    pods.map(|pod| Target::from(&pod.reference())).collect()
}

/// How a set is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thorough {
    /// Every one and every two are tried, whatever becomes of more: healing or ending more may also
    /// help another group to the room.
    Yes,
    /// Only if all together work is less tried.
    No,
}

/// The smallest set of these that works: the first alone that does, else the first two, else one of
/// which no member can be left out.
pub(super) fn smallest<T: Clone>(
    lab: &mut Lab<'_>,
    all: &[T],
    thorough: Thorough,
    make: impl Fn(&[T]) -> Edit,
) -> Option<Edit> {
    if all.is_empty() || (thorough == Thorough::No && !lab.works(&make(all))?) {
        return None;
    }
    for one in all {
        let edit = make(std::slice::from_ref(one));
        if lab.works(&edit)? {
            return Some(edit);
        }
    }
    let paired = if all.len() <= PAIRS_MAX { all } else { &[] };
    for (at, second) in paired.iter().enumerate() {
        for first in &paired[..at] {
            let edit = make(&[first.clone(), second.clone()]);
            if lab.works(&edit)? {
                return Some(edit);
            }
        }
    }
    let left = spare_none(lab, all, &make)?;
    Some(make(&left))
}

/// The set without what can be left out: what is missed most first.
fn spare_none<T: Clone>(
    lab: &mut Lab<'_>,
    all: &[T],
    make: impl Fn(&[T]) -> Edit,
) -> Option<Vec<T>> {
    let missed_most_first: Vec<T> = all.iter().rev().cloned().collect();
    least(
        missed_most_first,
        |some| {
            if some.is_empty() { Some(false) } else { lab.works(&make(some)) }
        },
    )
}

/// A subset of `all` that still works and of which no member can be left out; those in front are
/// left out first. None if all together do not work, or it can't be told.
///
/// Leaving out is tried in halves, then quarters, down to one by one, so that few of many are found
/// in few trials.
fn least<T: Clone>(all: Vec<T>, mut works: impl FnMut(&[T]) -> Option<bool>) -> Option<Vec<T>> {
    if !works(&all)? {
        return None;
    }
    let mut kept = all;
    let mut chunk = kept.len().div_ceil(2);
    while chunk > 0 {
        let mut at = 0;
        while at < kept.len() {
            let end = (at + chunk).min(kept.len());
            let without: Vec<T> = kept[..at].iter().chain(&kept[end..]).cloned().collect();
            if works(&without)? {
                kept = without;
            } else {
                at = end;
            }
        }
        chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works with at least `need` of weight.
    fn enough(need: u32) -> impl FnMut(&[u32]) -> Option<bool> {
        move |some| Some(some.iter().sum::<u32>() >= need)
    }

    #[test]
    fn what_is_left_can_spare_none() {
        assert_eq!(least(vec![1, 1, 1, 1, 4], enough(4)), Some(vec![4]));
        assert_eq!(least(vec![1, 2, 3], enough(5)), Some(vec![2, 3]));
        assert_eq!(least(vec![1, 2, 3], enough(7)), None);
        assert_eq!(least(vec![1], |_| None), None, "the trials are spent");
        for need in 1..=64 {
            let left = least((0..64).map(|_| 1).collect(), enough(need)).expect("a set");
            assert_eq!(left.len(), need as usize);
        }
    }
}
