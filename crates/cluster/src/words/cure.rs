//! What a cure asks of the reader, in one sentence.

use phalanx_objects::Kind;
use phalanx_objects::scheduling::SchedulingKind;
use phalanx_objects::workload::WorkloadKind;

use crate::edit::{Edit, Ill, Minimum, Relaxation, Setting, Target, kind_word};

use super::{count, list};

fn thing(target: &Target) -> String {
    format!("{} {}", kind_word(target.kind), target.name)
}

/// Whom a cure is said of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cured {
    /// A pod by itself, or all that is to be of a workload.
    All,
    /// A pod of a gang.
    Pod,
    /// A gang, of which so many pods more are placed; whether it runs already.
    Group {
        /// It has started.
        started: bool,
        /// Pods.
        more: u32,
    },
}

/// The sentence of a cure: what to do so that it is placed, and how many pods of its group wait all the same.
pub fn cure_sentence(edit: &Edit, whom: Cured, waiting: u32) -> String {
    let how = match edit {
        Edit::AddNodes { count: number, like } => {
            let nodes = count(u64::from(*number), "node", "nodes");
            format!("with {nodes} more like {like}")
        }
        Edit::Heal { ills } => {
            let things: Vec<String> = ills.iter().map(ill).collect();
            format!("once {} {} healthy again", list(&things), is_or_are(things.len()))
        }
        Edit::Without { objects } => {
            let things: Vec<String> = objects.iter().map(thing).collect();
            format!("once {} {} ended", list(&things), is_or_are(things.len()))
        }
        Edit::Relax { object, what } => relax(object, what),
        Edit::Set { object, what } => set(object, what),
    };
    let minimum = matches!(edit, Edit::Set { what: Setting::Minimum(_), .. });
    let it = match whom {
        Cured::All => "It fits".to_owned(),
        Cured::Pod if minimum => "It starts".to_owned(),
        Cured::Pod => "It fits".to_owned(),
        Cured::Group { started: false, .. } => "It starts".to_owned(),
        Cured::Group { started: true, more: 1 } => "1 more of its pods is placed".to_owned(),
        Cured::Group { started: true, more } => format!("{more} more of its pods are placed"),
    };
    let rest = match (whom, waiting) {
        (Cured::All, _) | (_, 0) => String::new(),
        (Cured::Pod, 1) => ", and 1 other pod of its group still waits".to_owned(),
        (Cured::Pod, many) => format!(", and {many} other pods of its group still wait"),
        (Cured::Group { .. }, 1) => ", and 1 of its pods still waits".to_owned(),
        (Cured::Group { .. }, many) => format!(", and {many} of its pods still wait"),
    };
    format!("{it} {how}{rest}.")
}

fn set(object: &Target, what: &Setting) -> String {
    let on = thing(object);
    match what {
        Setting::Count { request, count: number } => {
            let devices = count(u64::from(*number), "device", "devices");
            format!("if request {request} of {on} asks {devices}")
        }
        Setting::Replicas(number) => {
            format!("if {on} has {} at a time", count(u64::from(*number), "pod", "pods"))
        }
        Setting::Minimum(Minimum { groups, of, count: number }) => {
            let (what, part) = counted(object.kind, *groups);
            let of = of.as_ref().map_or_else(String::new, |of| format!("{part} {of} of "));
            let number = count(u64::from(*number), what, &format!("{what}s"));
            format!("if no more than {number} of {of}{on} must start at once")
        }
        Setting::Name { resource, other } => {
            format!("if {on} asks for {other} in place of {resource}")
        }
        Setting::Resource { resource, quantity } => {
            format!("if {on} requests {quantity} of {resource}")
        }
    }
}

/// What a minimum of an object of this kind counts, and what the parts are that have one.
fn counted(kind: Kind, groups: bool) -> (&'static str, &'static str) {
    let is = |of: SchedulingKind| kind == Kind::Scheduling(of);
    let is_job = kind == Kind::Workload(WorkloadKind::VolcanoJob);
    if is(SchedulingKind::VolcanoPodGroup) || is_job {
        return match (groups, is_job) {
            (false, _) => ("pod", "task"),
            (true, true) => ("partition", "task"),
            (true, false) => ("subgroup", "policy"),
        };
    }
    match (groups, is(SchedulingKind::KaiPodGroup)) {
        (true, true) => ("subgroup", "subgroup"),
        (true, false) => ("group", "subgroup"),
        (false, true) => ("pod", "subgroup"),
        (false, false) => ("pod", "clique"),
    }
}

/// That the trials were spent before every cure was tried, and where there are more: in a question about this
/// alone, by its namespace and name.
pub fn cures_cut(alone: Option<(&str, &str)>) -> String {
    let said = "cures were not all tried: the bound on trial plans was reached";
    match alone {
        Some(of) => format!("{said}; {}", ask_alone(of)),
        None => said.to_owned(),
    }
}

/// That of a pod no more is known than what places one that is like it and comes first.
pub fn cures_of_like(first: &str, alone: (&str, &str)) -> String {
    format!(
        "not all that places pod {first}, which is like it and comes first, places this pod as well; {}",
        ask_alone(alone)
    )
}

fn ask_alone((namespace, name): (&str, &str)) -> String {
    format!("run `phalanx why -n {namespace} {name}` on the same input")
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
            format!("if the devices of {object} need not agree on {attribute}")
        }
        Relaxation::DistinctAttribute(attribute) => {
            format!("if the devices of {object} need not differ in {attribute}")
        }
        Relaxation::Selectors(request) => {
            format!("if request {request} of {object} drops its own selectors")
        }
        Relaxation::Align(level) => {
            format!("if {object} does without phalanx.dev/align {level}")
        }
        Relaxation::Topology(level) => {
            format!("if {object} wishes for one {level} and does not require it")
        }
        Relaxation::NodeSelector(key) => {
            format!("if {object} drops the label {key} from its nodeSelector")
        }
        Relaxation::NodeAffinity => {
            format!("if {object} drops its required node affinity")
        }
        Relaxation::HostPort(port) => {
            format!("if {object} does without the host port {port}")
        }
        Relaxation::PodAffinity => {
            format!("if {object} drops its required affinity to other pods")
        }
        Relaxation::PodAntiAffinity => {
            format!("if {object} drops its required anti-affinity to other pods")
        }
        Relaxation::Spread(key) => {
            format!("if {object} need not be spread over {key}")
        }
        Relaxation::NodeName => format!("if {object} names no node itself"),
        Relaxation::Gate(name) => {
            format!("once the scheduling gate {name} of {object} is lifted")
        }
        Relaxation::Taint(key) => format!("if {object} tolerates the node taint {key}"),
        Relaxation::DeviceTaint { key, request } => {
            format!("if request {request} of {object} tolerates the device taint {key}")
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
            (
                "set podgroup/x minimum to 4",
                "It starts if no more than 4 pods of podgroup x must start at once.",
            ),
            (
                "set compositepodgroup/x minimum groups to 1",
                "It starts if no more than 1 group of compositepodgroup x must start at once.",
            ),
            (
                "set podgroup.scheduling.run.ai/x minimum of two to 1",
                "It starts if no more than 1 pod of subgroup two of podgroup.scheduling.run.ai x must start at \
                 once.",
            ),
            (
                "set vcjob/x minimum groups of worker to 2",
                "It starts if no more than 2 partitions of task worker of vcjob x must start at once.",
            ),
        ] {
            let edit: Edit = edit.parse().expect(edit);
            let minimum = matches!(edit, Edit::Set { what: Setting::Minimum(_), .. });
            let whom = if minimum { Cured::Pod } else { Cured::All };
            assert_eq!(cure_sentence(&edit, whom, 0), sentence);
        }
    }

    #[test]
    fn of_a_gang_it_says_how_many_wait() {
        let edit: Edit = "+1 node like n1".parse().expect("an edit");
        let said = |whom, waiting| cure_sentence(&edit, whom, waiting);
        let start = Cured::Group { started: false, more: 2 };
        assert_eq!(said(start, 0), "It starts with 1 node more like n1.");
        assert_eq!(
            said(start, 1),
            "It starts with 1 node more like n1, and 1 of its pods still waits."
        );
        let more = |more| Cured::Group { started: true, more };
        assert_eq!(
            said(more(1), 4),
            "1 more of its pods is placed with 1 node more like n1, and 4 of its pods still wait."
        );
        assert_eq!(said(more(3), 0), "3 more of its pods are placed with 1 node more like n1.");
        assert_eq!(
            said(Cured::Pod, 1),
            "It fits with 1 node more like n1, and 1 other pod of its group still waits."
        );
    }
}
