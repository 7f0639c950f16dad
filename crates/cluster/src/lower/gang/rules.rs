//! Where a gang is to be, as rules of the engine: each wish with the level of the tree that it means and
//! the roles that it is about.

use std::collections::BTreeSet;

use phalanx_engine::{GroupKey, LevelRule, Name, Scoped, TopologyKey};
use phalanx_objects::ObjectRef;
use phalanx_objects::scheduling::{Scheduling, SchedulingKind};

use super::super::Lowering;
use super::super::forest::{CLIQUE, Trees};
use super::super::record::PodClaimSource;
use super::super::slice::Note;
use super::super::workload::{LevelName, Wish};
use super::spec::{Part, Spec};
use super::{Draft, Told};
use crate::finding::Severity;

/// A rule, and who says it.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) rule: LevelRule,
    pub(super) field: Name,
    pub(super) whose: Whose,
}

/// Of whom a rule is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Whose {
    /// The object that says it, where it is not the gang's.
    pub(super) object: Option<ObjectRef>,
    /// The part that it is about, where that has no object.
    pub(super) part: Option<Name>,
}

impl Whose {
    fn of(part: &Part) -> Self {
        let name = part.names.first().filter(|_| part.object.is_none());
        Self { object: part.object.clone(), part: name.cloned() }
    }

    /// What it is said of, in the words of its object.
    pub(super) fn it(&self) -> String {
        self.part.as_ref().map_or_else(|| "it".to_owned(), |part| format!("its subgroup {part}"))
    }

    /// What becomes of it where a level is required that is not there.
    pub(super) fn not_placed(&self) -> String {
        format!("no pod of {} is placed", self.it())
    }
}

/// The rules of a gang.
#[derive(Default)]
pub(super) struct Rules {
    pub(super) kept: Vec<Kept>,
    /// Labels that they name as levels.
    pub(super) labels: BTreeSet<Name>,
    /// What is wrong with them.
    pub(super) notes: Vec<Note>,
    /// What is wrong with those of other objects.
    pub(super) told: Vec<Told>,
}

impl Lowering {
    /// The rules of a gang.
    pub(super) fn rules_of(
        &self,
        key: &GroupKey,
        spec: &Spec,
        drafts: &[Draft],
        trees: &Trees,
    ) -> Rules {
        let mut found: Vec<(Vec<u16>, Wish, Whose)> = Vec::new();
        let all = |is: &dyn Fn(&Draft) -> bool| -> Vec<u16> {
            let at = drafts.iter().enumerate().filter(|(_, draft)| is(draft));
            at.filter_map(|(at, _)| u16::try_from(at).ok()).collect()
        };
        let of_gang = Whose::default;
        found.extend(spec.wishes.iter().map(|wish| (Vec::new(), wish.clone(), of_gang())));
        for part in &spec.parts {
            let roles = all(&|draft| draft.is_of(&part.names));
            if !roles.is_empty() {
                let wishes = part.wishes.iter();
                found.extend(wishes.map(|wish| (roles.clone(), wish.clone(), Whose::of(part))));
            }
        }
        for draft in drafts {
            let same = |other: &Draft| alike(draft, other);
            let wishes = draft.wishes().iter();
            found.extend(wishes.map(|wish| (all(&same), wish.clone(), of_gang())));
        }
        let clique = self.clique_wish(key, drafts);
        found.extend(clique.map(|(roles, wish)| (roles, wish, of_gang())));
        let mut rules = Rules::default();
        for (roles, wish, whose) in found {
            let roles = if roles.len() == drafts.len() { Vec::new() } else { roles };
            let (topology, level) = match Self::level(trees, &wish.level) {
                Ok(found) => found,
                Err(error) => {
                    let then = match wish.required {
                        true => whose.not_placed(),
                        false => "the wish is passed over".to_owned(),
                    };
                    let message = format!("The level can't be found, so that {then}: {error}.");
                    let note = (Severity::Error, wish.field.to_string(), message);
                    match &whose.object {
                        Some(object) => rules.told.push((object.clone(), note)),
                        None => rules.notes.push(note),
                    }
                    if !wish.required {
                        continue;
                    }
                    // No node has a place in a tree that is not there.
                    (TopologyKey(Name::new("")), 0)
                }
            };
            if let LevelName::Label(label) = &wish.level {
                rules.labels.insert(label.clone());
            }
            let rule = LevelRule {
                topology,
                level,
                required: wish.required,
                roles: roles.into(),
                segment: wish.segment,
            };
            if !rules.kept.iter().any(|known| known.rule == rule) {
                rules.kept.push(Kept { rule, field: wish.field.clone(), whose });
            }
        }
        rules
    }

    /// Pods that share memory over NVLink are in one clique, which no claim says.
    fn clique_wish(&self, key: &GroupKey, drafts: &[Draft]) -> Option<(Vec<u16>, Wish)> {
        let namespace = &key.object.namespace;
        let domains = self.objects.scheduling_in(SchedulingKind::ComputeDomain, namespace);
        let domains = domains.filter_map(|(scoped, object)| {
            let Scheduling::ComputeDomain(of) = object else { return None };
            Some((scoped, &of.spec.channel.as_ref()?.resource_claim_template.name))
        });
        let templates: Vec<(&Scoped, &String)> = domains.collect();
        let of = |draft: &Draft| {
            draft.line.of.as_ref().and_then(|(workload, role)| {
                let record = self.objects.workloads.get(workload)?;
                Some(&record.roles.get(usize::from(*role))?.shape)
            })
        };
        let asks = |draft: &Draft| {
            let pod = draft.line.pods.first().and_then(|pod| self.objects.pods.get(pod));
            let shape = pod.map(|pod| &pod.shape).or_else(|| of(draft))?;
            shape.claims.iter().find_map(|claim| match &claim.source {
                PodClaimSource::Template(name) => templates
                    .iter()
                    .find(|(_, template)| template.as_str() == name.as_str())
                    .map(|(scoped, _)| &scoped.name),
                PodClaimSource::Claim(_) | PodClaimSource::Invalid => None,
            })
        };
        let domain = drafts.iter().find_map(asks)?;
        let roles = (0_u16..).zip(drafts).filter(|(_, draft)| asks(draft) == Some(domain));
        let wish = Wish {
            level: LevelName::Label(Name::new(CLIQUE)),
            required: true,
            segment: None,
            field: Name::new("spec.channel.resourceClaimTemplate"),
        };
        Some((roles.map(|(at, _)| at).collect(), wish))
    }
}

/// Whether what the marks of one role wish is about the other as well: it is the same role of the same
/// workload, or they are said to be taken together.
fn alike(one: &Draft, other: &Draft) -> bool {
    let together = |draft: &Draft| draft.marks.as_deref().and_then(|marks| marks.together.clone());
    let of_one = one.line.of.as_ref();
    match (together(one), of_one) {
        (Some(name), _) => together(other) == Some(name),
        (None, Some(of)) => other.line.of.as_ref() == Some(of),
        (None, None) => one.wishes() == other.wishes() && other.line.of.is_none(),
    }
}
