//! Grove's PodCliqueSet: so many copies of its cliques, and in each so many of its scaling groups.
//! Each clique of each of them is a role, as each is a PodClique of its own.

use std::borrow::Cow;

use phalanx_objects::core::PodTemplateSpec;
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::workload::{PodClique, PodCliqueScalingGroup, PodCliqueSet};

use super::{Expansion, ROLES_MAX, RolePlan, count};

/// A PodCliqueSet.
pub(super) fn pod_clique_set(set: &PodCliqueSet) -> Expansion<'_> {
    let mut expansion = Expansion::default();
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
            let gang = format!("{}-{copy}", set.metadata.name);
            expansion.roles.push(role(set, at, clique, &name, &gang));
        }
        for group in &groups {
            let in_base = group.min_available.map_or(1, count);
            for number in 0..group.replicas.map_or(1, count) {
                // Those that are beyond the fewest are gangs of their own.
                let base = format!("{}-{copy}", set.metadata.name);
                let gang = match number.checked_sub(in_base) {
                    Some(beyond) => format!("{base}-{}-{beyond}", group.name),
                    None => base,
                };
                let members = template.cliques.iter().enumerate();
                for (at, clique) in members.filter(|(_, c)| has(group, c)) {
                    let name = format!("{copy}-{}-{number}-{}", group.name, clique.name);
                    expansion.roles.push(role(set, at, clique, &name, &gang));
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

fn role<'a>(
    set: &PodCliqueSet,
    at: usize,
    clique: &PodClique,
    name: &str,
    gang: &str,
) -> RolePlan<'a> {
    let mut spec = clique.spec.pod_spec.clone();
    // Grove puts a gate of its own in their place, and lifts it itself.
    spec.scheduling_gates.clear();
    let class = &set.spec.template.priority_class_name;
    if spec.priority_class_name.is_empty() {
        spec.priority_class_name.clone_from(class);
    }
    let base = format!("{}-{name}", set.metadata.name);
    let mut labels = clique.labels.clone();
    labels.insert("grove.io/podgang".to_owned(), gang.to_owned());
    labels.insert("grove.io/podclique".to_owned(), base.clone());
    let metadata =
        ObjectMeta { labels, annotations: clique.annotations.clone(), ..ObjectMeta::default() };
    let template = PodTemplateSpec { metadata, spec };
    let at = format!("spec.template.cliques[{at}].spec.podSpec");
    // 0 is read as not given.
    let wanted = count(clique.spec.replicas).max(1);
    let bare = PodTemplateSpec::default();
    let role = RolePlan::numbered(name, &base, &bare, &at, wanted).into_owned();
    let least = Some(clique.spec.min_available.map_or(wanted, count));
    RolePlan { template: Cow::Owned(template), least, ..role }
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
        let (all, least) = (group.replicas.unwrap_or(1), group.min_available.unwrap_or(1));
        if all != 0 && !(1..=all).contains(&least) {
            let message = format!(
                "Scaling group {} has {all} replicas, of which at least {least} start together; a set \
                 like this is refused.",
                group.name
            );
            expansion.refuse(&format!("{at}.minAvailable"), message);
        }
        let known = |name: &&String| template.cliques.iter().any(|clique| clique.name == **name);
        if let Some(name) = group.clique_names.iter().find(|name| !known(name)) {
            let message =
                format!("A set that names the clique {name}, which it has not, is refused.");
            expansion.refuse(&format!("{at}.cliqueNames"), message);
        }
    }
}
