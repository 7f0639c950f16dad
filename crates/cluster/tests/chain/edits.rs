//! Each edit against the same change made by hand.

use phalanx_cluster::edit::Edit;
use phalanx_cluster::view::Document;
use phalanx_cluster::world::World;

use super::support::{
    MATCH, carry_out, cpu_pod, decided, document_of, edited, gpu_pod, gpus, job, node, pod,
    shared_claim, topology, user_of, world,
};

/// Everything but the names that only an edit gives.
fn answer(world: &World) -> String {
    let said = document_of(&mut world.clone());
    serde_json::to_string(&(said.pods, said.groups, said.summary)).expect("json")
}

fn devices(document: &Document, of: &str) -> Vec<String> {
    pod(document, of).devices.iter().map(|device| device.device.clone()).collect()
}

fn refusal(world: &World, edit: &str) -> String {
    let edit: Edit = edit.parse().expect(edit);
    let before = answer(world);
    let mut fork = world.clone();
    let error = fork.edit(&edit, "default").expect_err("an error").to_string();
    assert_eq!(answer(&fork), before, "{edit}: a refused edit changes nothing");
    error
}

/// Each edit of the world before gives the answer of the world after.
fn by_hand(cases: &[(String, &str, String)]) {
    for (before, edit, after) in cases {
        let before = world(before);
        let asked = edited(&before, edit);
        assert_ne!(answer(&before), answer(&asked), "{edit} changes nothing");
        assert_eq!(answer(&asked), answer(&world(after)), "{edit}");
    }
}

fn cordoned() -> String {
    gpus("n1").replace("status: {alloc", "spec: {unschedulable: true}\nstatus: {alloc")
}

fn with_ill_device() -> String {
    let ill = "gpu-0, taints: [{key: xid, effect: NoExecute}], attributes";
    gpus("n1").replace("gpu-0, attributes", ill)
}

#[test]
fn nodes_and_devices_change_as_by_hand() {
    let four = gpu_pod("p", 4, "", "");
    let small = node("n1", "8");
    let p = cpu_pod("p", "4", "");
    by_hand(&[
        (cordoned() + &four, "heal n1", gpus("n1") + &four),
        (with_ill_device() + &four, "heal n1/gpu-0", gpus("n1") + &four),
        (small.clone() + &cpu_pod("used", "6", "n1") + &p, "without pod/used", small.clone() + &p),
        (small + &node("n2", "8") + &p, "without node/n1", node("n2", "8") + &p),
    ]);
}

#[test]
fn claims_change_as_by_hand() {
    let three = gpu_pod("p", 3, MATCH, "");
    let near = gpu_pod("p", 4, "", "\"island=required,numa=preferred\"");
    let base = gpus("n1") + &topology("n1", &[&[0, 1], &[2, 3]]);
    by_hand(&[
        (
            gpus("n1") + &three,
            "relax resourceclaimtemplate/p-gpus matchAttribute gpu.nvidia.com/nvlinkDomain",
            gpus("n1") + &gpu_pod("p", 3, "", ""),
        ),
        (
            gpus("n1") + &three,
            "set resourceclaimtemplate/p-gpus count of gpu to 2",
            gpus("n1") + &gpu_pod("p", 2, MATCH, ""),
        ),
        (
            base.clone() + &near,
            "relax pod/p align island",
            base + &gpu_pod("p", 4, "", "numa=preferred"),
        ),
    ]);
}

#[test]
fn pods_and_workloads_change_as_by_hand() {
    let tainted = node("n1", "8").replace(
        "status: {alloc",
        "spec: {taints: [{key: mine, effect: NoSchedule}]}\nstatus: {alloc",
    );
    let small = node("n1", "8");
    let p = cpu_pod("p", "1", "");
    let with = |field: &str| p.replace("{containers", &format!("{{{field}, containers"));
    by_hand(&[
        (
            tainted.clone() + &p,
            "relax pod/p taint mine",
            tainted + &with("tolerations: [{key: mine, operator: Exists}]"),
        ),
        (
            small.clone() + &with("schedulingGates: [{name: g}]"),
            "relax pod/p gate g",
            small.clone() + &p,
        ),
        (
            small.clone() + &with("nodeSelector: {disk: ssd}"),
            "relax pod/p nodeSelector disk",
            small.clone() + &p,
        ),
        (
            small.clone() + &cpu_pod("p", "9", ""),
            "set pod/p cpu to 8",
            small.clone() + &cpu_pod("p", "8", ""),
        ),
        (
            small.clone() + &job("sweep", 4, "3"),
            "set job/sweep replicas to 2",
            small + &job("sweep", 2, "3").replace("completions: 2", "completions: 4"),
        ),
    ]);
}

#[test]
fn copies_of_a_node_are_healthy_empty_and_have_devices_of_their_own() {
    let ill =
        with_ill_device().replace("status: {alloc", "spec: {unschedulable: true}\nstatus: {alloc");
    let islands = topology("n1", &[&[0, 1], &[2, 3]]);
    let pods = gpu_pod("a", 2, "", "island=required") + &gpu_pod("b", 4, "", "");
    let before = world(&(ill + &islands + &pods + &cpu_pod("used", "61", "n1")));
    let mut after = edited(&before, "+2 nodes like n1");
    let said = document_of(&mut after);
    assert_eq!(pod(&said, "a").node.as_deref(), Some("n1-like-1"));
    assert_eq!(devices(&said, "a"), ["gpu-2", "gpu-3"]);
    assert_eq!(pod(&said, "a").devices[0].pool, "n1-like-1");
    assert_eq!(pod(&said, "b").node.as_deref(), Some("n1-like-2"));
    let again = edited(&after, "+1 node like n1");
    assert_eq!(again.nodes_len(), 4);
    assert_eq!(again.devices_len(), 16);
}

#[test]
fn healing_one_device_of_a_rule_leaves_the_taint_on_the_others() {
    let rule = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: pool}\n\
                spec: {deviceSelector: {pool: n1}, taint: {key: ill, effect: NoSchedule}}\n";
    let before =
        world(&(gpus("n1") + rule + &gpu_pod("one", 1, "", "") + &gpu_pod("two", 1, "", "")));
    let mut after = edited(&before, "heal n1/gpu-2");
    let said = document_of(&mut after);
    assert_eq!(devices(&said, "one"), ["gpu-2"]);
    assert_eq!(pod(&said, "two").verdict.as_str(), "waits", "the others are tainted");
    let mut after = edited(&before, "without devicetaintrule/pool");
    assert_eq!(document_of(&mut after).summary.placed, 2);
}

#[test]
fn what_goes_takes_its_own_along_and_frees_what_it_alone_used() {
    let pods = user_of("a", "shared") + &user_of("b", "shared") + &gpu_pod("c", 1, "", "");
    let mut running = world(&(gpus("n1") + &shared_claim("shared") + &pods));
    let plan = decided(&mut running);
    let effects = phalanx_cluster::raise::raise(&running, &plan);
    carry_out(&mut running, &effects);
    super::support::add(&mut running, &gpu_pod("all", 4, "", ""));
    let free = |world: &World| {
        let said = document_of(&mut world.clone());
        pod(&said, "all").verdict.as_str().to_owned()
    };
    assert_eq!(free(&edited(&running, "without pod/a, pod/c")), "waits", "b still holds the claim");
    assert_eq!(free(&edited(&running, "without pod/a, pod/b")), "waits", "c still holds its claim");
    assert_eq!(free(&edited(&running, "without pod/a, pod/b, pod/c")), "placed");
}

#[test]
fn what_can_not_be_done_says_why() {
    let world = world(&(gpus("n1") + &gpu_pod("p", 2, MATCH, "") + &job("sweep", 1, "1")));
    for (edit, says) in [
        ("heal n9", "there is no node n9: there is only n1"),
        ("heal n1/gpu-9", "node n1 has no device gpu-9 of its own"),
        ("+1 node like n9", "there is no node n9"),
        ("without pod/x", "there is no pod default/x: there is only default/p"),
        ("relax pod/p gate g", "`relax pod/p gate g` can't be done: it has no scheduling gate g"),
        ("relax pod/p nodeAffinity", "it has no required node affinity"),
        ("relax pod/p nodeName", "it names no node itself"),
        (
            "relax resourceclaimtemplate/p-gpus selectors of gpu",
            "request gpu has no selectors of its own",
        ),
        ("relax pod/p matchAttribute a/b", "a pod asks for no devices itself"),
        ("relax node/n1 gate g", "a node makes no pods"),
        ("set pod/p replicas to 2", "a pod has no replicas"),
        ("set resourceclaimtemplate/p-gpus count of nic to 1", "it has no request nic"),
        ("set job/sweep memory to 1Gi", "no container requests memory"),
    ] {
        let error = refusal(&world, edit);
        assert!(error.contains(says), "{edit}: {error}");
    }
}
