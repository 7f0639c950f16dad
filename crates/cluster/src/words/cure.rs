//! What a cure asks of the reader, in one sentence.

use crate::edit::{Edit, Ill, Relaxation, Setting, Target, kind_word};

use phalanx_engine::GroupKey;

use super::{count, list};

fn thing(target: &Target) -> String {
    format!("{} {}", kind_word(target.kind), target.name)
}

/// The sentence of a cure: what to do so that it fits.
pub fn cure_sentence(edit: &Edit) -> String {
    match edit {
        Edit::AddNodes { count: number, like } => {
            let nodes = count(u64::from(*number), "node", "nodes");
            format!("It fits with {nodes} more like {like}.")
        }
        Edit::Heal { ills } => {
            let things: Vec<String> = ills.iter().map(ill).collect();
            format!("It fits once {} {} healthy again.", list(&things), is_or_are(things.len()))
        }
        Edit::Without { objects } => {
            let things: Vec<String> = objects.iter().map(thing).collect();
            format!("It fits once {} {} ended.", list(&things), is_or_are(things.len()))
        }
        Edit::Relax { object, what } => relax(object, what),
        Edit::Set { object, what } => match what {
            Setting::Count { request, count: number } => {
                let devices = count(u64::from(*number), "device", "devices");
                format!("It fits if request {request} of {} asks {devices}.", thing(object))
            }
            Setting::Replicas(number) => {
                let pods = count(u64::from(*number), "pod", "pods");
                format!("It fits if {} has {pods} at a time.", thing(object))
            }
            Setting::Minimum(number) => {
                let pods = count(u64::from(*number), "pod", "pods");
                format!("It starts with {pods} if no more of {} must start at once.", thing(object))
            }
            Setting::Name { resource, other } => {
                format!("It fits if {} asks for {other} in place of {resource}.", thing(object))
            }
            Setting::Resource { resource, quantity } => {
                format!("It fits if {} requests {quantity} of {resource}.", thing(object))
            }
        },
    }
}

/// That the trials were spent before every cure was tried, and where there are more: in a question
/// about this group alone.
pub fn cures_cut(alone: Option<&GroupKey>) -> String {
    let said = "cures were not all tried: the bound on trial plans was reached";
    match alone {
        Some(group) => {
            format!(
                "{said}; run `phalanx why -n {} {group}` on the same input",
                group.object.namespace
            )
        }
        None => said.to_owned(),
    }
}

fn ill(ill: &Ill) -> String {
    match ill {
        Ill::Node(node) => format!("node {node}"),
        Ill::Device { node, device } => format!("device {device} of {node}"),
    }
}

fn is_or_are(number: usize) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

fn relax(object: &Target, what: &Relaxation) -> String {
    let object = thing(object);
    match what {
        Relaxation::MatchAttribute(attribute) => {
            format!("It fits if the devices of {object} need not agree on {attribute}.")
        }
        Relaxation::DistinctAttribute(attribute) => {
            format!("It fits if the devices of {object} need not differ in {attribute}.")
        }
        Relaxation::Selectors(request) => {
            format!("It fits if request {request} of {object} drops its own selectors.")
        }
        Relaxation::Align(level) => {
            format!("It fits if {object} does without phalanx.dev/align {level}.")
        }
        Relaxation::Topology(level) => {
            format!("It fits if {object} wishes for one {level} and does not require it.")
        }
        Relaxation::NodeSelector(key) => {
            format!("It fits if {object} drops the label {key} from its nodeSelector.")
        }
        Relaxation::NodeAffinity => {
            format!("It fits if {object} drops its required node affinity.")
        }
        Relaxation::HostPort(port) => {
            format!("It fits if {object} does without the host port {port}.")
        }
        Relaxation::PodAffinity => {
            format!("It fits if {object} drops its required affinity to other pods.")
        }
        Relaxation::PodAntiAffinity => {
            format!("It fits if {object} drops its required anti-affinity to other pods.")
        }
        Relaxation::Spread(key) => {
            format!("It fits if {object} need not be spread over {key}.")
        }
        Relaxation::NodeName => format!("It fits if {object} names no node itself."),
        Relaxation::Gate(name) => {
            format!("It fits once the scheduling gate {name} of {object} is lifted.")
        }
        Relaxation::Taint(key) => format!("It fits if {object} tolerates the node taint {key}."),
        Relaxation::DeviceTaint { key, request } => {
            format!("It fits if request {request} of {object} tolerates the device taint {key}.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cures_are_whole_sentences() {
        for (edit, sentence) in [
            ("+2 nodes like n1", "It fits with 2 nodes more like n1."),
            ("without pod/a, pod/b", "It fits once pod a and pod b are ended."),
            ("heal n1", "It fits once node n1 is healthy again."),
            ("heal n1, n1/gpu-5", "It fits once node n1 and device gpu-5 of n1 are healthy again."),
            ("without pod/a", "It fits once pod a is ended."),
            (
                "set resourceclaimtemplate/pair count of gpu to 2",
                "It fits if request gpu of resourceclaimtemplate pair asks 2 devices.",
            ),
            (
                "relax pod/x gate example.com/quota",
                "It fits once the scheduling gate example.com/quota of pod x is lifted.",
            ),
        ] {
            let edit: Edit = edit.parse().expect(edit);
            assert_eq!(cure_sentence(&edit), sentence);
        }
    }
}
