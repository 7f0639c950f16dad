//! What `lint` says of a scenario's world, held against the plan: nothing that is placed or waits is
//! called impossible, what is refused has an error, and the order of the input does not matter.

use std::collections::BTreeSet;

use phalanx_cluster::Severity;
use phalanx_cluster::edit::{kind_word, parse_target};
use phalanx_cluster::lint::{Rule, lint};
use phalanx_cluster::plan::PlanOptions;
use phalanx_cluster::view::{Document, VerdictWord};
use phalanx_cluster::world::World;

/// What was found, without places in the input: rule, object, path and message.
pub(crate) type Found = BTreeSet<(Rule, String, String, String)>;

/// Lints a world and holds the findings against its plan.
pub(crate) fn linted(
    way: &str,
    world: &World,
    options: &PlanOptions,
    document: &Document,
    wrong: &mut Vec<String>,
) -> Found {
    let all = lint(world, options);
    let name = |kind: &str, namespace: &str, name: &str| format!("{kind}/{namespace}/{name}");
    let mut never = BTreeSet::new();
    let mut found = Found::new();
    for one in &all {
        let object = one.object.as_ref();
        let object =
            object.map_or_else(String::new, |o| name(kind_word(o.kind), &o.namespace, &o.name));
        if one.rule == Rule::NeverFits {
            never.insert(object.clone());
        }
        found.insert((one.rule, object, one.path.clone(), one.message.clone()));
    }
    let any_error = all.iter().any(|one| one.severity == Severity::Error);
    let pods = document.pods.iter().map(|pod| {
        let own = name("pod", &pod.namespace, &pod.name);
        let group = pod.group.as_deref().and_then(|group| parse_target(group).ok());
        let group = group.map(|g| name(kind_word(g.kind), &pod.namespace, &g.name));
        (group.unwrap_or(own), pod.verdict)
    });
    for (pod, verdict) in pods {
        match verdict {
            VerdictWord::Placed | VerdictWord::Waits => {
                if never.contains(&pod) {
                    wrong.push(format!(
                        "{way}, lint calls {pod} impossible, and it is not refused."
                    ));
                }
            }
            VerdictWord::Refused => {
                // Without nodes or devices there is nothing to try, and no fault of the pod's.
                if !any_error && world.nodes_len() > 0 && world.devices_len() > 0 {
                    wrong.push(format!("{way}, {pod} is refused, and lint finds no error."));
                }
            }
            VerdictWord::GaveUp => {}
        }
    }
    found
}
