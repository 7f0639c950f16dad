//! Grove's PodCliqueSet: so many copies of its cliques, and in each so many of its scaling groups.
//! Each clique of each of them is a role, as each is a PodClique of its own.

use std::borrow::Cow;

use phalanx_objects::core::PodTemplateSpec;
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::workload::{PodClique, PodCliqueScalingGroup, PodCliqueSet};

use super::{Expansion, ROLES_MAX, RolePlan, count};

/// A PodCliqueSet.
pub(super) fn pod_clique_set(set: &PodCliqueSet) -> Expansion<'_> {
    let mut expansion = Expansion {
        gang: Some("spec.template.cliques[].spec.minAvailable".to_owned()),
        ..Expansion::default()
    };
    refusals(set, &mut expansion);
    let template = &set.spec.template;
    let grouped = |clique: &PodClique| {
        let groups = template.pod_clique_scaling_groups.iter();
        groups.flat_map(|group| &group.clique_names).any(|name| *name == clique.name)
    };
    let has = |group: &PodCliqueScalingGroup, clique: &PodClique| {
        group.clique_names.contains(&clique.name)
    };
    // What makes nothing is not counted through.
    let groups = template.pod_clique_scaling_groups.iter();
    let groups: Vec<&PodCliqueScalingGroup> =
        groups.filter(|group| template.cliques.iter().any(|clique| has(group, clique))).collect();
    let copies = if template.cliques.is_empty() { 0 } else { count(set.spec.replicas) };
    for copy in 0..copies {
        for (at, clique) in template.cliques.iter().enumerate().filter(|(_, c)| !grouped(c)) {
            let name = format!("{copy}-{}", clique.name);
            expansion.roles.push(role(set, at, clique, &name));
        }
        for group in &groups {
            for number in 0..group.replicas.map_or(1, count) {
                let members = template.cliques.iter().enumerate();
                for (at, clique) in members.filter(|(_, c)| has(group, c)) {
                    let name = format!("{copy}-{}-{number}-{}", group.name, clique.name);
                    expansion.roles.push(role(set, at, clique, &name));
                }
                // Said of once, by who counts the roles.
                if expansion.roles.len() > ROLES_MAX {
                    return expansion;
                }
            }
        }
        if expansion.roles.len() > ROLES_MAX {
            return expansion;
        }
    }
    expansion
}

fn role<'a>(set: &PodCliqueSet, at: usize, clique: &PodClique, name: &str) -> RolePlan<'a> {
    let mut spec = clique.spec.pod_spec.clone();
    // Grove puts a gate of its own in their place, and lifts it itself.
    spec.scheduling_gates.clear();
    let class = &set.spec.template.priority_class_name;
    if spec.priority_class_name.is_empty() {
        spec.priority_class_name.clone_from(class);
    }
    let metadata = ObjectMeta {
        labels: clique.labels.clone(),
        annotations: clique.annotations.clone(),
        ..ObjectMeta::default()
    };
    let template = PodTemplateSpec { metadata, spec };
    let at = format!("spec.template.cliques[{at}].spec.podSpec");
    let base = format!("{}-{name}", set.metadata.name);
    // 0 is read as not given.
    let wanted = count(clique.spec.replicas).max(1);
    let bare = PodTemplateSpec::default();
    let role = RolePlan::numbered(name, &base, &bare, &at, wanted).into_owned();
    RolePlan { template: Cow::Owned(template), ..role }
}

/// What its webhook refuses.
fn refusals(set: &PodCliqueSet, expansion: &mut Expansion<'_>) {
    let template = &set.spec.template;
    for (index, clique) in template.cliques.iter().enumerate() {
        let at = format!("spec.template.cliques[{index}].spec");
        // The default of the fewest is worked out before that of the number.
        let least = clique.spec.min_available.unwrap_or(clique.spec.replicas);
        if least < 1 || count(least) > count(clique.spec.replicas).max(1) {
            let message = format!(
                "Clique {} has {} pods, of which at least {least} start together; a set like this is \
                 refused.",
                clique.name, clique.spec.replicas
            );
            expansion.refuse(&format!("{at}.minAvailable"), message);
        }
        if !clique.spec.pod_spec.node_name.is_empty() {
            let message = "A clique whose pods name their node is refused.";
            expansion.refuse(&format!("{at}.podSpec.nodeName"), message);
        }
    }
    for (index, group) in template.pod_clique_scaling_groups.iter().enumerate() {
        let at = format!("spec.template.podCliqueScalingGroups[{index}]");
        if group.replicas == Some(0) {
            expansion
                .refuse(&format!("{at}.replicas"), "A scaling group without replicas is refused.");
        }
        let known = |name: &&String| template.cliques.iter().any(|clique| clique.name == **name);
        if let Some(name) = group.clique_names.iter().find(|name| !known(name)) {
            let message = format!("There is no clique {name}; a set like this is refused.");
            expansion.refuse(&format!("{at}.cliqueNames"), message);
        }
    }
}
