//! Cases of groups that start whole.

use super::super::Rule;
use super::Case;
use super::rules::case;

const NODE: &str = "\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {example.com/rack: r1}}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10, nvidia.com/gpu: 4, nvidia.com/mig-1g.10gb: 4}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: racks}
spec: {levels: [{nodeLabel: example.com/rack}]}
---
";

fn group(place: &str) -> String {
    format!(
        "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {{name: a}}\nspec: \
         {{schedulingPolicy: {{gang: {{minCount: 2}}}}{place}}}\n---\n"
    )
}

fn pod(name: &str, asked: &str, on: &str) -> String {
    let status = if on.is_empty() { "" } else { "status: {phase: Running}\n" };
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{{on}schedulingGroup: \
         {{podGroupName: a}}, containers: [{{name: c, resources: {{limits: {{{asked}}}}}}}]}}\n{status}---\n"
    )
}

pub(super) fn cases() -> Vec<Case> {
    let misspelt = group(", schedulingConstraints: {topology: [{key: example.com/rakc}]}");
    let two = |asked: &str| [pod("a-0", asked, ""), pod("a-1", asked, "")].concat();
    let half = [pod("a-0", "cpu: 3", "nodeName: n1, "), pod("a-1", "cpu: 2", "")].concat();
    vec![
        case(
            Rule::TopologyLevelUnknown,
            "spec.schedulingConstraints.topology",
            &["No node has the label example.com/rakc", "If example.com/rack is meant, name that."],
            format!("{NODE}{misspelt}{}", two("cpu: 1")),
            ("rakc", "rack"),
        ),
        case(
            Rule::GroupInPart,
            "",
            &["podgroup/a has 1 pod of the 2 it starts with, and does not start."],
            format!("{NODE}{}{half}", group("")),
            ("cpu: 2", "cpu: 1"),
        ),
        case(
            Rule::PartitionsApart,
            "",
            &["Its 2 pods start together and ask for 2 MIG devices", "1 whole GPU in one pod"],
            format!("{NODE}{}{}", group(""), two("nvidia.com/mig-1g.10gb: 1")),
            ("minCount: 2", "minCount: 1"),
        ),
    ]
}
