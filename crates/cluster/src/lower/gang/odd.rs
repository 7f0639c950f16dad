//! What is odd about where a gang is, or says it is to be: levels that nobody knows, wishes that do not
//! go together, slices that do not come out even, and members that run where they must not.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{GroupKey, LevelRule, Name};
use phalanx_objects::ObjectRef;

use super::super::Lowering;
use super::super::forest::{CLIQUE, Source, Tree};
use super::super::slice::Note;
use super::super::workload::{LevelName, Marks, RoleRecord, TOGETHER, UNDECLARED, Wish};
use super::rules::Kept;
use super::{Draft, Shown};
use crate::finding::Severity;
use crate::words;

/// Most members that are named.
const NAMED_MAX: usize = 6;

/// What there is to say of a rule, and the object that it is said of, where that is not the gang's.
type OfRule = (Option<ObjectRef>, Note);

/// What its marks say that does not go together, once each.
pub(super) fn notes(drafts: &[Draft]) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    let mut counts: BTreeMap<Name, u32> = BTreeMap::new();
    for draft in drafts {
        let marks = draft.marks.as_deref();
        notes.extend(marks.into_iter().flat_map(|marks| marks.doubts.iter().cloned()));
        for wish in outer_slices(draft) {
            *counts.entry(wish.field.clone()).or_default() += draft.len();
        }
    }
    for draft in drafts {
        for wish in outer_slices(draft) {
            let (Some(size), Some(pods)) = (wish.segment, counts.get(&wish.field).copied()) else {
                continue;
            };
            // Of pods of several roles the counts are not those of one pod set.
            let alone = drafts.iter().filter(|other| other.wishes().contains(wish)).all(|other| {
                other.line.of.is_none() && draft.line.of.is_none() || other.line.of == draft.line.of
            });
            // But of the pods of one template Kueue makes one set, whatever their roles.
            let one_set = draft.marks.as_deref().and_then(|marks| marks.together.as_ref());
            let one_set = one_set.is_some_and(|name| name.is_empty());
            if alone || one_set {
                notes.extend(uneven(wish, size, pods));
            }
            if one_set && !alone && size > 1 {
                let message = format!(
                    "Kueue counts slices of {size} over the {pods} pods of this template, the leader among \
                     them; here those of the leader and those of the workers are counted apart, so that the \
                     leader and the first workers may be in different domains."
                );
                notes.push((Severity::Warning, wish.field.to_string(), message));
            }
        }
    }
    let mut seen = BTreeSet::new();
    notes.retain(|(_, field, message)| seen.insert((field.clone(), message.clone())));
    notes
}

/// The slices of a role; of slices within slices the widest alone, for each divides the one before.
fn outer_slices(draft: &Draft) -> impl Iterator<Item = &Wish> {
    let mut seen: Option<&Name> = None;
    draft.wishes().iter().filter(move |wish| {
        is_slice(wish) && seen.replace(&wish.field).is_none_or(|before| *before != wish.field)
    })
}

/// Kueue's slices; of other APIs a smaller last part is no mistake.
fn is_slice(wish: &Wish) -> bool {
    wish.segment.is_some() && is_of_slices(&wish.field)
}

/// Whether a field is one of Kueue's slices.
fn is_of_slices(field: &Name) -> bool {
    field.as_str().contains("podset-slice-")
}

/// Slices that are to be in one domain of a wider level than all pods of their template.
fn inverted(shown: &Shown) -> Vec<OfRule> {
    let of_set = |field: &Name| {
        let field = field.as_str();
        field.contains("podset-required-topology") || field.contains("podset-preferred-topology")
    };
    let mut notes = Vec::new();
    let slices = shown.rules.iter().filter(|kept| is_of_slices(&kept.field));
    for Kept { rule: slices, field, whose } in slices {
        let narrower = |Kept { rule, field, .. }: &Kept| {
            of_set(field)
                && rule.roles == slices.roles
                && rule.topology == slices.topology
                && rule.level > slices.level
        };
        if shown.rules.iter().any(narrower) {
            let message = "Slices in domains of a wider level than the one that all pods of the template \
                           are to be in: Kueue does not place that. Here both are kept.";
            let note = (Severity::Warning, field.to_string(), message.to_owned());
            notes.push((whose.object.clone(), note));
        }
    }
    notes
}

fn uneven(wish: &Wish, size: u32, pods: u32) -> Option<Note> {
    let message = if size > pods {
        let there = match pods {
            1 => "the 1 pod that there is".to_owned(),
            pods => format!("the {pods} pods that there are"),
        };
        format!(
            "Slices of {size} pods are more than {there}: Kueue refuses that. All of them are taken as one \
             slice."
        )
    } else if !pods.is_multiple_of(size) {
        format!(
            "{pods} pods do not come out even in slices of {size}: Kueue places whole slices, and a smaller \
             last one only with its gate TASPartialSlices. Here the last slice is taken to have {}.",
            pods % size
        )
    } else {
        return None;
    };
    Some((Severity::Warning, wish.field.to_string(), message))
}

/// Who names a group by the marks of its pods alone.
fn namer(field: &str) -> &'static str {
    if field.contains("kueue.x-k8s.io/pod-group-name") {
        "a pod group of Kueue"
    } else if field.contains("koordinator.sh/") || field.contains("scheduling.sigs.k8s.io/") {
        "a gang of Koordinator"
    } else {
        "a group of a LeaderWorkerSet"
    }
}

/// Groups of one name whose pods are named by different controllers: no object tells them apart.
pub(super) fn merged(key: &GroupKey, drafts: &[Draft]) -> Option<Note> {
    if key.kind.as_str() != UNDECLARED {
        return None;
    }
    let named = drafts.iter().filter_map(|draft| draft.marks.as_deref()?.gang.as_ref());
    let mut namers: BTreeMap<&str, &Name> = BTreeMap::new();
    for gang in named {
        namers.entry(namer(gang.field.as_str())).or_insert(&gang.field);
    }
    let (_, field) = namers.last_key_value().filter(|_| namers.len() > 1)?;
    let each: Vec<String> = namers.keys().map(ToString::to_string).collect();
    let message = format!(
        "{} are called {} in this namespace, and are taken as one group here; call one of them otherwise.",
        words::list(&each),
        key.object.name
    );
    Some((Severity::Error, field.to_string(), message))
}

/// Where all pods of a role are to be: each level, and whether it is required.
fn places(role: &RoleRecord) -> BTreeSet<(LevelName, bool)> {
    let wishes = role.marks.as_deref().into_iter().flat_map(|marks| &marks.wishes);
    let whole = wishes.filter(|wish| wish.segment.is_none());
    whole.map(|wish| (wish.level.clone(), wish.required)).collect()
}

impl Lowering {
    /// What Kueue refuses of pod sets that are to be placed together: it takes two, of which one is one pod,
    /// with one wish.
    pub(super) fn together(&self, key: &GroupKey, drafts: &[Draft]) -> Vec<Note> {
        let named = |marks: &Marks| marks.together.as_ref().is_some_and(|name| !name.is_empty());
        if !drafts.iter().any(|draft| draft.marks.as_deref().is_some_and(named)) {
            return Vec::new();
        }
        let mut notes = Vec::new();
        for (workload, roles) in self.roles_of_gang(key) {
            let Some(record) = self.objects.workloads.get(&workload) else { continue };
            let mut sets: BTreeMap<&Name, BTreeMap<&Name, &RoleRecord>> = BTreeMap::new();
            for role in roles.iter().filter_map(|at| record.roles.get(usize::from(*at))) {
                let marks = role.marks.as_deref().filter(|marks| named(marks));
                if let Some(name) = marks.and_then(|marks| marks.together.as_ref()) {
                    sets.entry(name).or_default().insert(&role.name, role);
                }
            }
            let pods = |name: &Name| {
                let of = |draft: &&Draft| {
                    draft.line.of.as_ref().is_some_and(|of| of.0 == workload) && draft.name == *name
                };
                drafts.iter().filter(of).map(Draft::len).fold(0, u32::saturating_add)
            };
            for (name, roles) in sets {
                let roles: Vec<(&Name, &RoleRecord)> = roles.into_iter().collect();
                let field = format!("metadata.annotations[{TOGETHER:?}]");
                let marks = roles.iter().filter_map(|(_, role)| role.marks.as_deref());
                // One that is refused by itself is told of already.
                if marks.flat_map(|marks| &marks.doubts).any(|(_, at, _)| *at == field) {
                    continue;
                }
                let why = match roles.as_slice() {
                    [(one, first), (other, second)] => {
                        if places(first) != places(second) {
                            "that places its two pod sets differently".to_owned()
                        } else if pods(one) > 1 && pods(other) > 1 {
                            "of two pod sets of which neither is a single pod".to_owned()
                        } else {
                            continue;
                        }
                    }
                    all => {
                        let sets = words::count(all.len() as u64, "pod set has", "pod sets have");
                        format!("that {sets}, for it takes exactly two")
                    }
                };
                let message = format!(
                    "Kueue refuses a podset-group-name {why}. Here the pod sets of the name {name} are \
                     placed together."
                );
                notes.push((Severity::Warning, field, message));
            }
        }
        notes
    }

    /// Rules that select by the number of a pod, where pods are kept together slice by slice.
    pub(super) fn unnumbered_slices(&self, drafts: &[Draft]) -> Vec<Note> {
        let mut notes: Vec<Note> = Vec::new();
        for draft in drafts.iter().filter(|draft| !draft.line.planned.is_empty()) {
            let Some((workload, at)) = &draft.line.of else { continue };
            let record = self.objects.workloads.get(workload);
            let role = record.and_then(|record| record.roles.get(usize::from(*at)));
            let Some((record, role)) = record.zip(role) else { continue };
            let label = self.unnumbered(workload, record.kind, role);
            let slices = draft.wishes().iter().find(|wish| wish.segment.is_some());
            let Some((label, slices)) = label.zip(slices) else { continue };
            let message = format!(
                "A rule about other pods selects by the label {label}, which numbers pods. Pods that are \
                 kept together in slices are not told apart by it here: the rule passes over those that \
                 are yet to be made."
            );
            let note = (Severity::Warning, slices.field.to_string(), message);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }

    /// How many pods are to be together in Kueue's slices of a gang, where it has any.
    pub(crate) fn slice_size(&self, key: &GroupKey) -> Option<u32> {
        let rules = &self.shown.gangs.get(key)?.rules;
        rules.iter().filter(|kept| is_of_slices(&kept.field)).find_map(|kept| kept.rule.segment)
    }

    /// Levels that the gang names, which no node has a label for and no topology: with the nearest that
    /// there is.
    pub(super) fn unknown_levels(&self, shown: &Shown) -> Vec<OfRule> {
        let mut notes = inverted(shown);
        for Kept { rule, field, whose } in &shown.rules {
            let Some(tree) = self.shown.trees.get(&rule.topology) else { continue };
            let Tree::Labels(Source::Group, labels) = tree else { continue };
            let Some(label) = labels.first() else { continue };
            if self.objects.nodes.is_empty() || self.has_places(&rule.topology) {
                continue;
            }
            let levels = self.levels_in_use();
            let names: Vec<String> = levels.iter().map(ToString::to_string).collect();
            let then = match rule.required {
                true => whose.not_placed(),
                false => "the wish for it is passed over".to_owned(),
            };
            let instead = match names.as_slice() {
                [] => "No other level is known.".to_owned(),
                names => format!("Levels that there are: {}.", words::list(names)),
            };
            let severity = if rule.required { Severity::Error } else { Severity::Warning };
            let message = match label.as_str() {
                // Nothing else says it.
                CLIQUE => format!(
                    "No node says its NVLink clique in the label {CLIQUE}, which it has once its \
                     fabric is registered (state COMPLETED), so that {then}."
                ),
                _ => format!("No node has the label {label}, so that {then}. {instead}"),
            };
            notes.push((whose.object.clone(), (severity, field.to_string(), message)));
        }
        notes
    }

    /// Levels of which nodes are in some domain.
    pub(crate) fn levels_in_use(&self) -> BTreeSet<Name> {
        let used = self.shown.trees.iter().filter(|(key, _)| self.has_places(key));
        used.flat_map(|(_, tree)| tree.levels().into_vec()).collect()
    }

    /// Labels that gangs name as levels and no node has: of each the object that it is told on, and the
    /// field.
    pub(crate) fn labels_of_no_node(&self) -> Vec<(ObjectRef, Name, Name)> {
        let used = self.levels_in_use();
        let mut found = Vec::new();
        for shown in self.shown.gangs.values() {
            let Some(about) = &shown.about else { continue };
            for Kept { rule, field, whose } in &shown.rules {
                let tree = self.shown.trees.get(&rule.topology);
                let label = tree.and_then(|tree| match tree {
                    Tree::Labels(Source::Group, labels) => labels.first(),
                    Tree::Labels(Source::Object(_) | Source::Labels, _) | Tree::Places(_) => None,
                });
                if let Some(label) = label.filter(|label| !used.contains(*label)) {
                    let object = whose.object.as_ref().unwrap_or(about);
                    found.push((object.clone(), label.clone(), field.clone()));
                }
            }
        }
        found
    }

    /// Members that run in several domains where one is required for all of them.
    pub(super) fn broken(&self, shown: &Shown) -> Vec<OfRule> {
        let whole = |kept: &&Kept| kept.rule.required && kept.rule.segment.is_none();
        let mut notes = Vec::new();
        for Kept { rule, field, whose } in shown.rules.iter().filter(whole) {
            let Some(tree) = self.shown.trees.get(&rule.topology) else { continue };
            let levels = tree.levels();
            let Some(level) = levels.get(usize::from(rule.level)) else { continue };
            let members = self.members_in(shown, rule);
            let domains: BTreeSet<&String> = members.iter().map(|(_, domain)| domain).collect();
            if domains.len() < 2 {
                continue;
            }
            let each = members.iter().take(NAMED_MAX);
            let mut each: Vec<String> =
                each.map(|(pod, domain)| format!("{pod} in {domain}")).collect();
            let more = members.len().saturating_sub(NAMED_MAX);
            if more > 0 {
                each.push(words::count(more as u64, "more", "more"));
            }
            let message = format!(
                "All of {} is required to be in one {level}, and its members run in {}: {}. What is \
                 placed can't mend that.",
                whose.it(),
                domains.len(),
                words::list(&each)
            );
            notes.push((whose.object.clone(), (Severity::Warning, field.to_string(), message)));
        }
        notes
    }

    /// The running members that a rule is about, each with its domain.
    fn members_in(&self, shown: &Shown, rule: &LevelRule) -> Vec<(String, String)> {
        let about = |at: usize| {
            rule.roles.is_empty() || rule.roles.iter().any(|role| usize::from(*role) == at)
        };
        let lines = shown.lines.iter().enumerate();
        let lines = lines.filter(|(at, line)| about(*at) && line.running && !line.going);
        let mut members = Vec::new();
        for pod in lines.flat_map(|(_, line)| &line.pods) {
            let node = self.objects.pods.get(pod).and_then(|record| record.life.node());
            let domains = node.and_then(|node| self.place_in(&rule.topology, node));
            let path = domains.as_deref().and_then(|path| path.get(..=usize::from(rule.level)));
            if let Some(path) = path.filter(|path| path.last().is_some_and(Option::is_some)) {
                members.push((pod.0.name.to_string(), words::path_of(path)));
            }
        }
        members.sort();
        members
    }
}
