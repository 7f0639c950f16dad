//! Workloads: the sum of their pods, running, waiting and not created yet.

use std::collections::BTreeMap;

use phalanx_engine::{Decision, GroupKey, Name, Scoped, Verdict};

use super::cures::CuresFound;
use super::schema::{GroupView, PodView, ReasonView, VerdictWord};
use crate::world::World;

/// The workloads of these pods, in the order of their first pods; `told` is what is said of some as a
/// whole, and `cures` what was found for them.
pub(super) fn groups(
    (world, decision): (&World, &Decision),
    pods: &[PodView],
    told: &BTreeMap<(String, String), Vec<ReasonView>>,
    cures: &BTreeMap<GroupKey, CuresFound>,
) -> Vec<GroupView> {
    let mut views: Vec<GroupView> = Vec::new();
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for pod in pods {
        let Some(group) = &pod.group else { continue };
        let place = *places.entry((&pod.namespace, group)).or_insert_with(|| {
            views.push(empty(&pod.namespace, group));
            views.len() - 1
        });
        let Some(view) = views.get_mut(place) else { continue };
        view.wanted += 1;
        if pod.verdict == VerdictWord::Placed {
            view.placed += 1;
        } else if view.short == 0 {
            let said = told.get(&(pod.namespace.clone(), group.clone()));
            view.reasons.clone_from(said.unwrap_or(&pod.reasons));
            // Of a gang they are its own.
            let own = key_of(view);
            match cures.get(&own).filter(|_| world.lowering().is_gang(&own)) {
                Some(found) => {
                    view.cures.clone_from(&found.of_group.cures);
                    view.notes.extend(found.of_group.note.clone());
                }
                None => {
                    view.cures.clone_from(&pod.cures);
                    view.notes.clone_from(&pod.notes);
                }
            }
            view.verdict = pod.verdict;
            view.short = 1;
        } else {
            view.short += 1;
            view.verdict = view.verdict.min(pod.verdict);
        }
    }
    for view in &mut views {
        if view.placed > 0 {
            view.verdict = VerdictWord::Placed;
        }
        view.missing_subgroups = missing_parts(decision, view);
        let running = running(world, view);
        view.wanted += running;
        view.placed += running;
    }
    super::places::place(world, decision, pods, &mut views);
    views
}

fn empty(namespace: &str, group: &str) -> GroupView {
    let (kind, name) = group.split_once('/').unwrap_or(("", group));
    GroupView {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        kind: kind.to_owned(),
        verdict: VerdictWord::Placed,
        wanted: 0,
        placed: 0,
        short: 0,
        missing_subgroups: Vec::new(),
        reasons: Vec::new(),
        cures: Vec::new(),
        notes: Vec::new(),
        ranks: Vec::new(),
        places: Vec::new(),
    }
}

/// The parts of a group that need not start and are not there.
fn missing_parts(decision: &Decision, view: &GroupView) -> Vec<String> {
    let key = key_of(view);
    let mut verdicts = decision.verdicts.iter().filter(|(group, _)| *group == key);
    let parts = verdicts.find_map(|(_, verdict)| match verdict {
        Verdict::Placed { short, .. } => short.as_ref().map(|short| &short.parts),
        Verdict::Waits(why) | Verdict::Refused(why) | Verdict::GaveUp(why, _) => Some(&why.parts),
    });
    parts.into_iter().flatten().map(ToString::to_string).collect()
}

/// Pods of the workload that are on nodes.
fn running(world: &World, view: &GroupView) -> u32 {
    world.lowering().running(&key_of(view))
}

fn key_of(view: &GroupView) -> GroupKey {
    let object = Scoped { namespace: Name::new(&view.namespace), name: Name::new(&view.name) };
    GroupKey { object, kind: Name::new(&view.kind) }
}
