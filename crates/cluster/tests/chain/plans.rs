//! Placements and the reasons of those that wait.

use phalanx_cluster::cure::Trials;
use phalanx_cluster::edit::parse_target;
use phalanx_cluster::plan::PlanOptions;
use phalanx_cluster::view::{ViewOptions, plan_document, why_document};
use phalanx_cluster::world::World;

use super::support::{
    MATCH, cpu_pod, cures_work, decided, document, gpu_pod, gpus, job, node, pod, shared_claim,
    topology, user_of, why, world,
};

#[test]
fn l1_the_ledger() {
    let base = node("n1", "62") + &cpu_pod("used", "40", "n1");
    let mut fits = world(&(base.clone() + &cpu_pod("p", "22", "")));
    assert_eq!(pod(&document(&mut fits), "p").node.as_deref(), Some("n1"));
    let mut short = world(&(base + &cpu_pod("p", "23", "")));
    let said = document(&mut short);
    let p = pod(&said, "p");
    assert_eq!(p.verdict.as_str(), "waits");
    assert_eq!(p.reasons[0].code, "InsufficientCPU");
    assert_eq!(p.reasons[0].check, "NodeResourcesFit");
    assert_eq!(p.reasons[0].message, "n1: asks 23 cpu, 22 free of 62");
    let edits: Vec<&str> = p.cures.iter().map(|cure| cure.edit.as_str()).collect();
    assert_eq!(
        edits,
        ["without pod/default/used", "set pod/default/p cpu to 22", "+1 node like n1"]
    );
    cures_work(&short, &said);
    let why = why(&mut short, "pod/p");
    let nodes = pod(&why, "p").nodes.clone().expect("nodes");
    assert_eq!(nodes.len(), 1);
    assert!(!nodes[0].fits);
    assert_eq!(nodes[0].checks[0].message, "asks 23 cpu, 22 free of 62");
    assert_eq!(nodes[0].checks[0].status, "Unschedulable");
}

#[test]
fn a_refused_pod_is_offered_no_more_nodes() {
    let mut world = world(&(node("n1", "8") + &cpu_pod("p", "9", "")));
    let said = document(&mut world);
    assert_eq!(pod(&said, "p").verdict.as_str(), "refused");
    let edits: Vec<&str> = pod(&said, "p").cures.iter().map(|c| c.edit.as_str()).collect();
    assert_eq!(edits, ["set pod/default/p cpu to 8"]);
    cures_work(&world, &said);
}

#[test]
fn nodes_are_offered_for_those_who_come_before_too() {
    let text = node("n1", "8") + &cpu_pod("a", "8", "") + &cpu_pod("b", "8", "");
    let mut world = world(&(text + &cpu_pod("c", "8", "")));
    let said = document(&mut world);
    assert_eq!(edits(&said, "b"), ["without pod/default/a", "+1 node like n1"]);
    let without = "without pod/default/a, pod/default/b";
    assert_eq!(edits(&said, "c"), [without, "+2 nodes like n1"]);
    cures_work(&world, &said);
}

#[test]
fn cures_that_were_not_tried_are_told_from_none() {
    let text = node("n1", "8") + &cpu_pod("a", "9", "") + &cpu_pod("b", "9", "");
    let mut world = world(&text);
    let plan = decided(&mut world);
    let said = |world: &mut World, trials: u32| {
        let view = ViewOptions { trials: Some(Trials(trials)), alone: false };
        plan_document(world, &plan, &view)
    };
    let cut = "cures were not all tried: the bound on trial plans was reached; run `phalanx why -n \
               default pod/b` on the same input";
    let few = said(&mut world, 1);
    assert_eq!((pod(&few, "b").cures.len(), &*pod(&few, "b").notes), (0, &[cut.to_owned()][..]));
    let many = said(&mut world, 1000);
    assert_eq!((pod(&many, "b").cures.len(), pod(&many, "b").notes.len()), (1, 0));
    let of_one = |world: &mut World, trials: u32| {
        let object = parse_target("pod/b").expect("a pod").reference("default");
        let view = ViewOptions { trials: Some(Trials(trials)), alone: true };
        let document = why_document(world, &object, &PlanOptions::default(), &view);
        pod(&document, "b").notes.clone()
    };
    assert_eq!(
        of_one(&mut world, 0),
        ["cures were not all tried: the bound on trial plans was reached"]
    );
    assert!(of_one(&mut world, 100).is_empty());
}

fn names(document: &phalanx_cluster::view::Document, of: &str) -> Vec<String> {
    pod(document, of).devices.iter().map(|device| device.device.clone()).collect()
}

fn edits(document: &phalanx_cluster::view::Document, of: &str) -> Vec<String> {
    pod(document, of).cures.iter().map(|cure| cure.edit.clone()).collect()
}

#[test]
fn d1_a_pair_comes_from_one_domain() {
    let mut world = world(&(gpus("n1") + &gpu_pod("trainer", 2, MATCH, "")));
    let said = document(&mut world);
    // Both domains hold two: the one with the smaller device is the tighter.
    assert_eq!(names(&said, "trainer"), ["gpu-2", "gpu-3"]);
    let trainer = pod(&said, "trainer");
    assert_eq!(trainer.optimal, Some("proven"));
    assert_eq!(trainer.devices[0].request, "gpu");
    assert_eq!(trainer.notes, ["links of n1 are unknown: no NodeTopology describes it"]);
}

#[test]
fn d2_three_of_one_domain_are_refused() {
    let mut world = world(&(gpus("n1") + &gpu_pod("trainer", 3, MATCH, "")));
    let said = document(&mut world);
    let trainer = pod(&said, "trainer");
    assert_eq!(trainer.verdict.as_str(), "refused");
    assert_eq!(trainer.reasons[0].code, "MatchAttributeUnmet");
    let message = &trainer.reasons[0].message;
    let says = "n1: no value of gpu.nvidia.com/nvlinkDomain has 3 eligible devices for request gpu: a has 2";
    assert_eq!(message, says);
    let template = "resourceclaimtemplate/default/trainer-gpus";
    assert_eq!(
        edits(&said, "trainer"),
        [
            format!("relax {template} matchAttribute gpu.nvidia.com/nvlinkDomain"),
            format!("set {template} count of gpu to 2"),
        ]
    );
    cures_work(&world, &said);
}

#[test]
fn d3_four_of_one_island_are_refused() {
    let islands = topology("n1", &[&[0, 1], &[2, 3]]);
    let pod_ = gpu_pod("quad", 4, "", "island=required");
    let mut world = world(&(gpus("n1") + &islands + &pod_));
    let said = document(&mut world);
    let quad = pod(&said, "quad");
    assert_eq!(quad.verdict.as_str(), "refused");
    assert_eq!(quad.reasons[0].message, "n1: no island holds 4 for request gpu: the largest has 2");
    assert_eq!(
        edits(&said, "quad"),
        [
            "relax pod/default/quad align island",
            "set resourceclaimtemplate/default/quad-gpus count of gpu to 2",
        ]
    );
    cures_work(&world, &said);
}

#[test]
fn i1_a_plain_pair_lands_on_one_island_and_says_so() {
    let islands = topology("n1", &[&[0, 1], &[2, 3]]);
    let mut world = world(&(gpus("n1") + &islands + &gpu_pod("pair", 2, "", "")));
    let said = document(&mut world);
    assert_eq!(names(&said, "pair"), ["gpu-2", "gpu-3"]);
    assert!(pod(&said, "pair").notes[0].starts_with("gpu-2 and gpu-3 are one island"), "{said:?}");
}

/// What else there was for a pod that is placed.
fn choice(text: &str, of: &str) -> phalanx_cluster::view::ChoiceView {
    let mut world = world(text);
    let object = parse_target(&format!("pod/{of}")).expect("a pod").reference("default");
    let view = ViewOptions { trials: None, alone: true };
    let said = why_document(&mut world, &object, &PlanOptions::default(), &view);
    pod(&said, of).choice.clone().expect("a choice")
}

#[test]
fn the_runner_up_is_told_with_what_it_would_have_cost() {
    let islands = topology("n1", &[&[0, 1], &[2, 3]]);
    let text = gpus("n1") + &gpus("n2") + &islands + &gpu_pod("pair", 2, "", "");
    let found = choice(&text, "pair");
    let slowest = found.cost.slowest.expect("a link");
    assert_eq!((slowest.class, found.cost.islands, found.equal_sets), ("NVLink", 0, Some(1)));
    // The other island is as near, and holds the larger devices.
    let second = found.runner_up.expect("a second set");
    let names: Vec<&str> = second.devices.iter().map(|d| d.device.as_str()).collect();
    assert_eq!((second.node.as_str(), names), ("n1", vec!["gpu-0", "gpu-1"]));
    assert!(second.message.contains("more are lost to later requests"), "{}", second.message);
    // Nothing is known of the links of the other node.
    let elsewhere = found.elsewhere.expect("another node");
    assert_eq!(elsewhere.node, "n2");
    let said = "the slowest link that must be used is a path that nothing is known of instead of";
    assert!(elsewhere.message.contains(said), "{}", elsewhere.message);
}

#[test]
fn a_lone_set_has_no_runner_up_and_equal_ones_are_counted() {
    let small = |name: &str| gpus(name).replace("24Gi", "80Gi");
    let all = choice(&(small("n1") + &gpu_pod("all", 4, "", "")), "all");
    assert_eq!((all.equal_sets, all.runner_up, all.elsewhere), (Some(1), None, None));
    assert_eq!(all.message.as_deref(), Some("no other set of devices of n1 would do"));
    let islands = topology("n1", &[&[0, 1, 2, 3]]);
    let pair = choice(&(small("n1") + &islands + &gpu_pod("pair", 2, "", "")), "pair");
    assert_eq!((pair.equal_sets, pair.runner_up), (Some(6), None));
    assert!(pair.message.expect("a sentence").starts_with("the choice is indifferent: 6 sets"));
}

#[test]
fn i7_equal_paths_make_the_choice_indifferent() {
    let islands = topology("n1", &[&[0, 1, 2, 3]]);
    let mut world = world(&(gpus("n1") + &islands + &gpu_pod("pair", 2, "", "")));
    let said = document(&mut world);
    assert!(pod(&said, "pair").notes[0].starts_with("the choice is indifferent"), "{said:?}");
}

#[test]
fn taken_devices_are_freed_by_the_fewest_pods() {
    let mut pods = String::new();
    for name in ["a", "b", "c", "d"] {
        pods += &gpu_pod(name, 1, "", "");
    }
    let mut first = world(&(gpus("n1") + &pods));
    let placed = document(&mut first);
    assert_eq!(placed.summary.placed, 4);
    let effects = {
        let plan = super::support::decided(&mut first);
        phalanx_cluster::raise::raise(&first, &plan)
    };
    let mut full = first.clone();
    super::support::carry_out(&mut full, &effects);
    let extra = gpu_pod("late", 2, MATCH, "");
    super::support::add(&mut full, &extra);
    let said = document(&mut full);
    let late = pod(&said, "late");
    assert_eq!(late.verdict.as_str(), "waits");
    assert_eq!(late.reasons[0].code, "DevicesTaken", "{late:?}");
    let ends: Vec<&String> =
        late.cures.iter().map(|c| &c.edit).filter(|e| e.starts_with("without")).collect();
    assert_eq!(ends.len(), 1, "{late:?}");
    assert_eq!(ends[0].matches("pod/").count(), 2, "{late:?}");
    cures_work(&full, &said);
}

#[test]
fn c1_a_counter_places_by_count_and_says_what_it_does_not_know() {
    let with_gpus =
        |name: &str| node(name, "62").replace("pods: '110'", "pods: '110', nvidia.com/gpu: '8'");
    let counted = cpu_pod("p", "1", "").replace("cpu: '1'", "nvidia.com/gpu: '4'");
    let mut world = world(&(with_gpus("n1") + &with_gpus("n2") + &counted));
    let said = document(&mut world);
    let p = pod(&said, "p");
    assert_eq!(p.node.as_deref(), Some("n1"));
    assert!(p.devices.is_empty());
    assert_eq!(
        p.notes,
        ["nvidia.com/gpu is a counter: the kubelet of n1 will choose the 4 devices; their model, \
          memory and links are unknown to the counter"]
    );
}

#[test]
fn d7_users_of_one_claim_go_to_one_node() {
    let pods = user_of("a", "shared") + &user_of("b", "shared");
    let mut world = world(&(gpus("n1") + &node("n2", "62") + &shared_claim("shared") + &pods));
    let said = document(&mut world);
    for name in ["a", "b"] {
        assert_eq!(pod(&said, name).node.as_deref(), Some("n1"), "{said:?}");
        assert_eq!(names(&said, name), ["gpu-3"], "the smallest that would do");
        assert_eq!(pod(&said, name).devices[0].claim, "shared");
    }
    let plan = super::support::decided(&mut world);
    let effects = phalanx_cluster::raise::raise(&world, &plan);
    let documents = phalanx_cluster::raise::manifests(&effects);
    let users = documents[0]["status"]["reservedFor"].as_array().expect("users");
    assert_eq!(users.len(), 2);
    assert_eq!(documents.len(), 3, "one claim and two Bindings");
}

#[test]
fn d8_a_claim_in_use_pins_its_users() {
    let base = gpus("n1") + &node("n2", "62") + &shared_claim("shared") + &user_of("a", "shared");
    let mut world = world(&base);
    let plan = super::support::decided(&mut world);
    let effects = phalanx_cluster::raise::raise(&world, &plan);
    super::support::carry_out(&mut world, &effects);
    let more =
        cpu_pod("full", "60", "n1") + &user_of("b", "shared").replace("cpu: '1'", "cpu: '3'");
    super::support::add(&mut world, &more);
    let said = document(&mut world);
    let b = pod(&said, "b");
    assert_eq!(b.verdict.as_str(), "waits");
    let messages: Vec<&str> = b.reasons.iter().map(|reason| reason.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "n1: asks 3 cpu, 1 free of 62",
            "n2: claim shared is allocated on n1 and can't be used from this node",
        ]
    );
    cures_work(&world, &said);
    let why = why(&mut world, "pod/b");
    assert_eq!(pod(&why, "b").nodes.as_ref().map(Vec::len), Some(2));
}

#[test]
fn a_job_is_the_sum_of_its_pods() {
    let mut world = world(&(node("n1", "8") + &job("sweep", 4, "3")));
    let said = document(&mut world);
    assert_eq!((said.summary.placed, said.summary.waits), (2, 2), "{said:?}");
    assert!(said.pods.iter().all(|pod| pod.planned && pod.group.as_deref() == Some("job/sweep")));
    let group = &said.groups[0];
    assert_eq!((group.wanted, group.placed, group.short), (4, 2, 2));
    assert_eq!((group.kind.as_str(), group.verdict.as_str()), ("job", "placed"));
    assert_eq!(group.reasons[0].code, "InsufficientCPU");
    let edits: Vec<&str> = group.cures.iter().map(|cure| cure.edit.as_str()).collect();
    assert_eq!(
        edits,
        [
            "set job/default/sweep cpu to 2",
            "set job/default/sweep replicas to 2",
            "+1 node like n1"
        ]
    );
    cures_work(&world, &said);
    let why = why(&mut world, "job/sweep");
    assert_eq!(why.pods.len(), 4);
    assert_eq!(why.pods.iter().filter(|pod| pod.nodes.is_some()).count(), 1);
}

#[test]
fn a_gated_pod_waits_until_its_gate_is_lifted() {
    let gated = cpu_pod("p", "1", "")
        .replace("spec: {", "spec: {schedulingGates: [{name: example.com/quota}], ");
    let mut world = world(&(node("n1", "8") + &gated));
    let said = document(&mut world);
    let p = pod(&said, "p");
    assert_eq!(p.verdict.as_str(), "waits");
    assert_eq!(p.reasons[0].message, "scheduling gates keep it back: example.com/quota");
    assert_eq!(p.reasons[0].nodes, 0);
    assert_eq!(edits(&said, "p"), ["relax pod/default/p gate example.com/quota"]);
    cures_work(&world, &said);
    let why = why(&mut world, "pod/p");
    let p = pod(&why, "p");
    assert_eq!(p.checks.as_ref().map(|checks| checks[0].code), Some("SchedulingGated"));
    assert!(p.nodes.as_ref().is_some_and(|nodes| nodes.iter().all(|node| !node.fits)));
}

#[test]
fn ill_nodes_and_devices_are_healed_together() {
    let ill = gpus("n1")
        .replace("gpu-0, attributes", "gpu-0, taints: [{key: xid, effect: NoExecute}], attributes")
        .replace("status: {alloc", "spec: {unschedulable: true}\nstatus: {alloc");
    let mut world = world(&(ill + &gpu_pod("all", 4, "", "")));
    let said = document(&mut world);
    assert_eq!(pod(&said, "all").verdict.as_str(), "waits");
    assert!(edits(&said, "all").contains(&"heal n1, n1/gpu-0".to_owned()), "{said:?}");
    cures_work(&world, &said);
}

#[test]
fn a_missing_claim_stands_alone() {
    let mut world = world(&(gpus("n1") + &user_of("a", "nowhere")));
    let said = document(&mut world);
    let a = pod(&said, "a");
    assert_eq!(a.reasons.len(), 1);
    assert_eq!(a.reasons[0].code, "ClaimMissing");
    assert_eq!(a.reasons[0].message, "claim nowhere does not exist (claim gpus of the pod)");
    assert_eq!(a.verdict.as_str(), "refused");
}

#[test]
fn l2_usage_is_never_read_and_equal_input_gives_equal_bytes() {
    let yaml = gpus("n1") + &gpu_pod("trainer", 2, MATCH, "") + &cpu_pod("p", "70", "");
    let bytes = |yaml: &str| {
        let mut world = world(yaml);
        serde_json::to_string(&document(&mut world)).expect("json")
    };
    assert_eq!(bytes(&yaml), bytes(&yaml));
}

/// The claim of the worked examples: two GPUs of at least 40Gi in one NVLink domain.
fn trainer(count: u32, expression: &str) -> String {
    let selector = format!(", selectors: [{{cel: {{expression: '{expression}'}}}}]");
    gpu_pod("trainer", count, MATCH, "")
        .replace(&format!("count: {count}"), &format!("count: {count}{selector}"))
}

const AT_LEAST_40: &str =
    r#"device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0"#;

#[test]
fn d1_the_selector_the_domain_and_the_writes() {
    let mut world = world(&(gpus("n1") + &trainer(2, AT_LEAST_40)));
    let said = document(&mut world);
    assert_eq!(names(&said, "trainer"), ["gpu-0", "gpu-1"], "{said:?}");
    let plan = super::support::decided(&mut world);
    let effects = phalanx_cluster::raise::raise(&world, &plan);
    let documents = phalanx_cluster::raise::manifests(&effects);
    assert_eq!(documents.len(), 2);
    let claim = &documents[0];
    assert_eq!(claim["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"], "gpus");
    assert_eq!(claim["metadata"]["annotations"]["phalanx.dev/planned"], "true");
    assert_eq!(claim["metadata"]["ownerReferences"][0]["uid"], "trainer-uid");
    assert_eq!(claim["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
    assert_eq!(claim["status"]["reservedFor"][0]["uid"], "trainer-uid");
    let results = &claim["status"]["allocation"]["devices"]["results"];
    assert_eq!(results[0]["device"], "gpu-0");
    assert_eq!(results[1]["device"], "gpu-1");
    assert_eq!(documents[1]["target"]["name"], "n1");
}

#[test]
fn d2_with_the_selector_names_what_falls_and_what_is_near() {
    let mut world = world(&(gpus("n1") + &trainer(3, AT_LEAST_40)));
    let said = document(&mut world);
    let trainer_ = pod(&said, "trainer");
    assert_eq!(trainer_.verdict.as_str(), "refused");
    assert_eq!(trainer_.reasons[0].code, "MatchAttributeUnmet");
    assert!(
        trainer_.reasons[0].message.contains("has 3 eligible devices for request gpu: a has 2"),
        "{trainer_:?}"
    );
    let mut four = super::support::world(&(gpus("n1") + &trainer(4, AT_LEAST_40)));
    let said = document(&mut four);
    let trainer_ = pod(&said, "trainer");
    assert_eq!(trainer_.reasons[0].code, "TooFewDevices");
    assert_eq!(
        trainer_.reasons[0].message,
        format!(
            "n1: request gpu asks 4 devices, 3 of 4 pass the selectors; n1/gpu-3: {AT_LEAST_40} is \
             false: memory is 24Gi"
        )
    );
    assert_eq!(trainer_.reasons[0].devices, 1);
    let example = trainer_.reasons[0].example.as_ref().expect("an example");
    assert_eq!(example.device.as_deref(), Some("gpu-3"));
    cures_work(&four, &said);
}

#[test]
fn d5_a_type_error_is_told_with_its_column() {
    let wrong = r#"device.capacity["gpu.nvidia.com"].memory >= 40"#;
    let mut world = world(&(gpus("n1") + &trainer(2, wrong)));
    let said = document(&mut world);
    let trainer_ = pod(&said, "trainer");
    assert_eq!(trainer_.reasons[0].code, "SelectorInvalid");
    assert!(trainer_.reasons[0].message.contains("does not compile: "), "{trainer_:?}");
    assert!(!said.findings.is_empty());
}

#[test]
fn d7_the_257th_user_waits_for_one_to_end() {
    let users: Vec<String> =
        (0..256).map(|n| format!("{{resource: pods, name: u{n}, uid: u{n}-uid}}")).collect();
    let status = format!(
        "status: {{reservedFor: [{}], allocation: {{devices: {{results: [{{request: gpu, driver: \
         gpu.nvidia.com, pool: n1, device: gpu-0}}]}}}}}}\n",
        users.join(", ")
    );
    let mut yaml = gpus("n1") + &shared_claim("shared") + &status + &user_of("late", "shared");
    for n in 0..256 {
        yaml += &user_of(&format!("u{n}"), "shared")
            .replace("containers", "nodeName: n1\n  containers")
            .replace("cpu: '1'", "cpu: '0'");
    }
    let mut world = world(&yaml.replace("pods: '110'", "pods: '300'"));
    let said = document(&mut world);
    let late = pod(&said, "late");
    assert_eq!(late.verdict.as_str(), "waits");
    assert_eq!(late.reasons[0].code, "TooManyClaimUsers");
    assert_eq!(late.reasons[0].message, "claim shared has as many users as the API allows: 256");
    assert_eq!(edits(&said, "late"), ["without pod/default/u255"]);
    cures_work(&world, &said);
}

#[test]
fn an_object_that_stands_twice_and_differs_is_named_with_both_places() {
    let pod = |cpu: u32, more: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{more}}}\n\
             spec: {{containers: [{{name: a, resources: {{requests: {{cpu: {cpu}}}}}}}]}}\n---\n"
        )
    };
    let said = |text: &str| -> Vec<String> {
        let text = format!("{text}{}", node("n1", "4"));
        world(&text).findings().iter().map(|f| format!("{} {}", f.line, f.message)).collect()
    };
    let found = said(&(pod(1, "") + &pod(2, "")));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("6 ") && found[0].contains("at test.yaml:1 and here"),
        "{found:?}"
    );
    assert_eq!(said(&(pod(1, "") + &pod(1, ", namespace: default"))), Vec::<String>::new());
    let numbered = pod(1, ", resourceVersion: '5'") + &pod(2, ", resourceVersion: '4'");
    assert_eq!(said(&numbered), Vec::<String>::new());
}

#[test]
fn who_names_what_could_not_be_read_is_told_so() {
    let text = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: p-uid}\n\
        spec: {resourceClaims: [{name: c, resourceClaimTemplateName: t}]}\n";
    let mut world = world(&(node("n1", "4") + text));
    let missing = "claim template t does not exist (claim c of the pod)";
    assert_eq!(pod(&document(&mut world), "p").reasons[0].message, missing);
    world.unread(phalanx_objects::ObjectRef {
        kind: phalanx_objects::Kind::ResourceClaimTemplate,
        namespace: String::new(),
        name: "t".to_owned(),
    });
    world.settle();
    let said = document(&mut world);
    let reason = &pod(&said, "p").reasons[0];
    assert_eq!(reason.code, "ClaimTemplateMissing");
    assert_eq!(reason.message, "claim template t could not be read");
}
