//! Trees of topology that are made to be hard.

use super::World;

fn hyper_node(name: &str, tier: usize, members: &str) -> String {
    format!(
        "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {{name: {name}}}\n\
         spec: {{tier: {tier}, members: [{members}]}}\n---\n"
    )
}

fn node(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\nstatus: {{allocatable: {{pods: 10}}}}\n---\n"
    )
}

fn keys(world: &World) -> Vec<String> {
    world.lowering.tree_infos().into_iter().map(|tree| tree.key.0.to_string()).collect()
}

#[test]
fn hypernodes_that_all_hold_each_other_are_each_looked_at_once() {
    let member = "{type: HyperNode, selector: {regexMatch: {pattern: '.*'}}}";
    let mut text =
        node("n1") + &hyper_node("last", 0, "{type: Node, selector: {exactMatch: {name: n1}}}");
    for at in 0..40 {
        text += &hyper_node(&format!("s{at:02}"), at + 1, member);
    }
    let world = World::of(&text);
    let tree = world.lowering.tree_infos().remove(0);
    let domains = tree.nodes.values().next().expect("the node is in all of them");
    assert_eq!((domains.len(), domains.iter().flatten().count()), (41, 41));
}

#[test]
fn a_long_chain_of_hypernodes_ends() {
    let mut text =
        node("n1") + &hyper_node("s0", 0, "{type: Node, selector: {exactMatch: {name: n1}}}");
    for at in 1..1000 {
        let below = format!("{{type: HyperNode, selector: {{exactMatch: {{name: s{}}}}}}}", at - 1);
        text += &hyper_node(&format!("s{at}"), at, &below);
    }
    let world = World::of(&text);
    let tree = world.lowering.tree_infos().remove(0);
    let domains = tree.nodes.values().next().expect("the node is in all of them");
    assert!(domains.iter().all(Option::is_some));
}

#[test]
fn no_tree_takes_the_key_of_another() {
    let text = node("n1")
        + "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Topology\nmetadata: {name: hypernodes}\n\
           spec: {levels: [{nodeLabel: a/rack}]}\n---\n"
        + &hyper_node("s", 1, "{type: Node, selector: {exactMatch: {name: n1}}}");
    assert_eq!(keys(&World::of(&text)), ["hypernodes", "hypernodes.topology.volcano.sh"]);
}

#[test]
fn sums_of_absurd_minima_end_at_the_highest() {
    let text = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n\
                metadata: {name: a, namespace: default}\n\
                spec: {minMember: 2, minTaskMember: {a: 2147483647, b: 2147483647}}\n---\n\
                apiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\n\
                metadata: {name: k, namespace: default}\n\
                spec: {podSets: [{name: a, count: 2147483647}, {name: b, count: 2147483647}]}\n\
                ---\napiVersion: v1\nkind: Pod\n\
                metadata: {name: a-0, namespace: default, annotations: \
                {scheduling.k8s.io/group-name: a}}\n\
                spec: {containers: [{name: main}]}\n---\napiVersion: v1\nkind: Pod\n\
                metadata: {name: k-0, namespace: default, labels: \
                {kueue.x-k8s.io/pod-group-name: k}}\n\
                spec: {containers: [{name: main}]}\n";
    let world = World::of(text);
    assert!(world.group("podgroup.scheduling.volcano.sh", "a").is_some());
    let kueue =
        world.group(crate::lower::workload::UNDECLARED, "k").expect("pods of a group of Kueue");
    assert!(kueue.roles[0].admits.is_some(), "it needs more pods than there are");
}
