//! Where a gang is to be, as rules of the engine: each wish with the level of the tree that it means and
//! the roles that it is about.

use std::collections::BTreeSet;

use phalanx_engine::{GroupKey, LevelRule, Name, Scoped, TopologyKey};
use phalanx_objects::scheduling::{Scheduling, SchedulingKind};

use super::super::Lowering;
use super::super::forest::{CLIQUE, Trees};
use super::super::record::PodClaimSource;
use super::super::slice::Note;
use super::super::workload::{LevelName, Wish};
use super::Draft;
use super::spec::Spec;
use crate::finding::Severity;

impl Lowering {
    /// The rules of a gang, the labels that they name as levels, and what is wrong with them.
    pub(super) fn rules_of(
        &self,
        key: &GroupKey,
        spec: &Spec,
        drafts: &[Draft],
        trees: &Trees,
    ) -> (Vec<(LevelRule, Name)>, BTreeSet<Name>, Vec<Note>) {
        let mut found: Vec<(Vec<u16>, Wish)> = Vec::new();
        let all = |is: &dyn Fn(&Draft) -> bool| -> Vec<u16> {
            let at = drafts.iter().enumerate().filter(|(_, draft)| is(draft));
            at.filter_map(|(at, _)| u16::try_from(at).ok()).collect()
        };
        found.extend(spec.wishes.iter().map(|wish| (Vec::new(), wish.clone())));
        for part in &spec.parts {
            let roles = all(&|draft| draft.is_of(&part.names));
            if !roles.is_empty() {
                found.extend(part.wishes.iter().map(|wish| (roles.clone(), wish.clone())));
            }
        }
        for draft in drafts {
            let same = |other: &Draft| alike(draft, other);
            found.extend(draft.wishes().iter().map(|wish| (all(&same), wish.clone())));
        }
        found.extend(self.clique_wish(key, drafts));
        let mut rules: Vec<(LevelRule, Name)> = Vec::new();
        let (mut labels, mut notes) = (BTreeSet::new(), Vec::new());
        for (roles, wish) in found {
            let roles = if roles.len() == drafts.len() { Vec::new() } else { roles };
            let (topology, level) = match Self::level(trees, &wish.level) {
                Ok(found) => found,
                Err(error) => {
                    let then = match wish.required {
                        true => "no pod of it is placed",
                        false => "the wish is passed over",
                    };
                    let message = format!("The level can't be found, so that {then}: {error}.");
                    notes.push((Severity::Error, wish.field.to_string(), message));
                    if !wish.required {
                        continue;
                    }
                    // No node has a place in a tree that is not there.
                    (TopologyKey(Name::new("")), 0)
                }
            };
            if let LevelName::Label(label) = &wish.level {
                labels.insert(label.clone());
            }
            let rule = LevelRule {
                topology,
                level,
                required: wish.required,
                roles: roles.into(),
                segment: wish.segment,
            };
            if !rules.iter().any(|(known, _)| *known == rule) {
                rules.push((rule, wish.field.clone()));
            }
        }
        (rules, labels, notes)
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
