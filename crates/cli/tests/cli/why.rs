//! `why` of all kinds of objects, and the command that `plan` advises.

use crate::common::{NODE, POD, Scratch, phalanx, pod, run, run_with};

const JOB: &str = "\
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: research}
spec:
  parallelism: 3
  template: {spec: {restartPolicy: Never, containers: [{name: m, resources: {requests: {cpu: '3'}}}]}}
";

fn world() -> String {
    format!("{NODE}---\n{}---\n{POD}---\n{JOB}", NODE.replace("n1", "n2").replace("'8'", "'2'"))
}

#[test]
fn a_node_is_explained_alone_with_a_line_for_each_pod() {
    let why = run_with(&["why", "-f", "-", "node/n2"], &world()).code(1);
    for (name, line) in [("default/a", "yes"), ("research/j-2", "asks 3 cpu, 2 free of 2")] {
        let found = why.out.lines().find(|text| text.contains(name)).expect(name);
        assert!(found.contains(line), "{found}");
    }
    let json = run_with(&["why", "-f", "-", "node/n2", "-o", "json"], &world()).code(1).json();
    for pod in json["pods"].as_array().unwrap() {
        for node in pod["nodes"].as_array().into_iter().flatten() {
            assert_eq!(node["name"], "n2", "{pod:#}");
        }
    }
    assert_eq!(pod(&json, "default/a")["nodes"][0]["fits"], true);
}

#[test]
fn a_node_shows_its_devices_and_who_holds_them() {
    let why = run(&["why", "-f", "examples", "node/hgx-1"]).code(1);
    why.says(&["node hgx-1 has", "held:", "HELD BY", "claim "]);
    let topology = run(&["why", "-f", "examples", "nodetopology/pcie-1"]).code(1);
    topology.says(&["node pcie-1 has", "default/quad", "no island holds 4"]);
}

#[test]
fn namespaces_and_classes_are_answered_by_verdicts() {
    let why = run_with(&["why", "-f", "-", "namespace/research"], &world()).code(1);
    why.says(&["research/j-0", "research/j-2", "placed", "waits"]);
    let class = run(&["why", "-f", "examples", "deviceclass/gpu.nvidia.com", "-o", "json"]).code(1);
    let class = class.json();
    let pods = class["pods"].as_array().unwrap();
    assert!(pods.len() > 3 && pods.iter().all(|pod| pod.get("nodes").is_none()), "{class:#}");
}

#[test]
fn a_workload_shows_every_pod_of_it() {
    let why = run_with(&["why", "-f", "-", "-n", "research", "job/j"], &world()).code(1);
    why.says(&["2 of 3 pods placed", "research/j-0", "research/j-1", "pod research/j-2 waits"]);
    // One of them is shown alone, and the workload is still the sum of all.
    let why = run_with(&["why", "-f", "-", "-n", "research", "pod/j-0"], &world()).code(0);
    why.says(&["2 of 3 pods placed, 1 missing", "pod research/j-0 is placed on n1"]);
}

#[test]
fn a_miss_without_devices_shows_the_amounts() {
    let big = world().replace("cpu: '1'", "cpu: '9'");
    let why = run_with(&["why", "-f", "-", "pod/a"], &big).code(1);
    let said = "0/2 nodes are available: 2 Insufficient cpu.";
    why.says(&[
        "Nearest miss: n1\n  NodeResourcesFit: asks 9 cpu",
        &format!("kube-scheduler would say: {said}"),
    ]);
    let json = run_with(&["why", "-f", "-", "pod/a", "-o", "json"], &big).code(1).json();
    assert_eq!(pod(&json, "default/a")["fitError"], said);
}

#[test]
fn where_the_pod_itself_is_in_the_way_every_node_is_named_and_none_fits() {
    let pods =
        POD.replace("spec: {", "spec: {resourceClaims: [{name: c, resourceClaimName: gone}], ");
    let text = format!("{NODE}---\n{pods}");
    let json = run_with(&["why", "-f", "-", "pod/a", "-o", "json"], &text).code(1).json();
    let nodes = serde_json::json!([{"name": "n1", "fits": false, "checks": []}]);
    assert_eq!(pod(&json, "default/a")["nodes"], nodes);
    let all = run_with(&["why", "-f", "-", "pod/a", "--all"], &text).code(1);
    assert!(!all.out.contains("FITS"), "{}", all.out);
    all.says(&["No node was looked at"]);
}

#[test]
fn the_command_that_plan_advises_asks_in_the_same_world() {
    let scratch = Scratch::new();
    let file = scratch.file("it's here.yaml", &world().replace("parallelism: 3", "parallelism: 6"));
    let plan = run(&[
        "plan",
        "-f",
        &file,
        "--if",
        "set job/research/j replicas to 5",
        "--now",
        "2026-11-28T10:00:00Z",
        "--kubernetes-version",
        "1.36",
        "--feature-gates",
        "DRADeviceTaints=true",
        "--device-order",
        "upstream",
        "--strict-cel",
    ]);
    let plan = plan.code(1);
    let command = plan.out.lines().find_map(|line| line.strip_prefix("Why: ")).expect("a command");
    for part in ["--if 'set job/research/j replicas to 5'", "pod/research/j-2", "--strict-cel"] {
        assert!(command.contains(part), "{command}");
    }
    let binary = assert_cmd::cargo::cargo_bin!("phalanx").display().to_string();
    let script = format!("phalanx() {{ '{binary}' \"$@\"; }}\n{command}");
    let ran = assert_cmd::Command::new("sh").args(["-c", &script]).output().expect("a shell");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(said.contains("pod research/j-2 waits"), "{command}\n{said}\n{ran:?}");
    // A namespace of its own is enough where nothing is changed.
    phalanx(&["why", "-f", &file, "-n", "research", "pod/j-2"]).assert().code(1);
    let lost = run(&["why", "-f", &file, "pod/j-2"]).code(2);
    lost.complains(&["namespace research has one: add -n research"]);
}

#[test]
fn a_pod_that_could_not_be_read_is_told_with_what_is_wrong() {
    let text = format!("{NODE}---\n{}", POD.replace("cpu: '1'", "cpu: 'lots'"));
    let why = run_with(&["why", "-f", "-", "pod/a"], &text).code(2);
    why.complains(&["`lots` is not a quantity", "Pod default/a is in the input and was left out"]);
    let why = run_with(&["why", "-f", "-", "-n", "other", "pod/a"], &text).code(2);
    why.complains(&["There is no Pod other/a. Pod default/a is in the input", "add -n default"]);
    let json = run_with(&["why", "-f", "-", "pod/a", "-o", "json"], &text).code(2).json();
    let said = json["findings"].to_string();
    assert!(said.contains("left out") && said.contains("is not a quantity"), "{said}");
}

/// A node with two kinds of GPU, and a pod with a list of alternatives.
fn listed(first: &str) -> String {
    format!(
        "{NODE}---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: s}}\n\
         spec: {{driver: g.example.com, nodeName: n1, pool: {{name: n1, generation: 1, \
         resourceSliceCount: 1}}, devices: [{{name: gpu-0, attributes: {{kind: {{string: small}}}}}}]}}\n\
         ---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: g}}\nspec: {{}}\n\
         ---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n\
         metadata: {{name: c, namespace: default}}\nspec:\n  devices:\n    requests:\n    \
         - name: gpu\n      firstAvailable:\n      \
         - {{name: large, deviceClassName: g, selectors: [{{cel: {{expression: \
         'device.attributes[\"g.example.com\"].kind == \"{first}\"'}}}}]}}\n      \
         - {{name: any, deviceClassName: g}}\n---\n{}",
        POD.replace("spec: {", "spec: {resourceClaims: [{name: c, resourceClaimName: c}], ")
    )
}

#[test]
fn the_alternative_that_is_taken_is_named() {
    for (first, said) in [
        ("large", "request gpu is met by any, the second of its 2 alternatives"),
        ("small", "request gpu is met by large, the first of its 2 alternatives"),
    ] {
        run_with(&["why", "-f", "-", "pod/a"], &listed(first)).code(0).says(&[said]);
        run_with(&["plan", "-f", "-"], &listed(first)).code(0).says(&[said]);
    }
}

#[test]
fn an_object_that_is_not_there_is_answered_with_the_nearest_names() {
    let pods: String = (0..9)
        .map(|n| format!("---\n{}", POD.replace("name: a,", &format!("name: web-{n},"))))
        .collect();
    let job = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: sweep, namespace: default}\nspec: \
               {parallelism: 2, completions: 2, template: {spec: {restartPolicy: Never, containers: \
               [{name: main, image: x}]}}}\n";
    let text = format!("{NODE}{pods}{job}");
    let why = run_with(&["why", "-f", "-", "pod/wep-3"], &text).code(2);
    why.complains(&[
        "of the 11 in its namespace those with the nearest names are Pod default/web-3, ",
    ]);
    // Pods that are still to be made count.
    let why = run_with(&["why", "-f", "-", "pod/sweep-9"], &text).code(2);
    why.complains(&["those with the nearest names are Pod default/sweep-0, Pod default/sweep-1"]);
    let why = run_with(&["why", "-f", "-", "job/swep"], &text).code(2);
    why.complains(&["in its namespace there is one Job, Job default/sweep"]);
    let why = run_with(&["why", "-f", "-", "pod/nope"], NODE).code(2);
    why.complains(&["no Pod was read, and none is to be made"]);
}

#[test]
fn rows_that_are_alike_are_one() {
    let job = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: sweep, namespace: default}\nspec: \
               {parallelism: 20, completions: 20, template: {spec: {restartPolicy: Never, containers: \
               [{name: main, image: x, resources: {requests: {cpu: '9'}}}]}}}\n";
    let plan = run_with(&["plan", "-f", "-"], &format!("{NODE}{job}")).code(1);
    plan.says(&["default/sweep-0…sweep-19 (20 pods)", "20 refused"]);
    let few = run_with(&["plan", "-f", "-"], &format!("{NODE}{}", job.replace("20", "5"))).code(1);
    few.says(&["default/sweep-4 "]);
}

#[test]
fn a_kind_that_is_misspelt_is_an_error() {
    let text = format!("{NODE}---\n{}", POD.replace("kind: Pod", "kind: Pods"));
    let plan = run_with(&["plan", "-f", "-"], &text).code(1);
    plan.says(&["Kubernetes has no kind Pods in v1", "`kind: Pod`"]);
}

#[test]
fn a_part_of_a_device_is_told_with_its_line() {
    let gpu = POD.replace("requests: {cpu: '1'}", "limits: {nvidia.com/gpu: '1.5'}");
    let plan =
        run_with(&["plan", "-f", "-", "-o", "json"], &format!("{NODE}---\n{gpu}")).code(1).json();
    let finding = &plan["findings"][0];
    assert_eq!(
        (&finding["severity"], finding["line"].is_number()),
        (&"error".into(), true),
        "{finding}"
    );
    assert!(finding["message"].as_str().unwrap().contains("counted in whole units"), "{finding}");
    let huge = gpu.replace("1.5", "100000000000000000001");
    let plan = run_with(&["plan", "-f", "-", "-o", "json"], &format!("{NODE}---\n{huge}")).json();
    let said = plan["findings"].to_string() + &plan["pods"].to_string();
    assert!(!said.contains("whole units"), "{said}");
}

#[test]
fn a_group_of_which_there_are_several_by_number_is_hinted_at() {
    let scratch = Scratch::new();
    let set = "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: l, \
               namespace: default}\nspec: {replicas: 2, leaderWorkerTemplate: {size: 2, workerTemplate: \
               {metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: a/rack}}, spec: \
               {containers: [{name: main}]}}}}\n";
    let path = scratch.file("set.yaml", &format!("{NODE}---\n{set}"));
    let hint = "the groups whose names begin so are group/l-0 and group/l-1.";
    run(&["why", "-f", &path, "group/l"]).code(2).complains(&[hint]);
    run(&["why", "-f", &path, "group/l-0"]).code(1).says(&["l-0"]);
}

/// Two pods of a gang: the first asks for 1 CPU, the second as is said.
fn gang(second: &str) -> String {
    let member = |name: &str, spec: &str, cpu: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default}}\nspec: \
             {{schedulingGroup: {{podGroupName: g}}, {spec}containers: [{{name: m, resources: {{requests: \
             {{cpu: '{cpu}'}}}}}}]}}\n"
        )
    };
    let second = match second.strip_prefix("gated ") {
        Some(cpu) => member("p-1", "schedulingGates: [{name: example.com/held}], ", cpu),
        None => member("p-1", "", second),
    };
    format!(
        "{NODE}---\napiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {{name: g, namespace: \
         default}}\nspec: {{schedulingPolicy: {{gang: {{minCount: 2}}}}}}\n---\n{}---\n{second}",
        member("p-0", "", "1")
    )
}

#[test]
fn the_nearest_miss_of_another_pod_of_the_group_is_named() {
    let why = |pod: &str| run_with(&["why", "-f", "-", pod], &gang("9")).code(1);
    why("pod/p-0").says(&["Nearest miss of pod p-1: n1", "asks 9 cpu"]);
    why("pod/p-1").says(&["Nearest miss: n1", "asks 9 cpu"]);
    // What it meets itself is another thing.
    let json = run_with(&["why", "-f", "-", "pod/p-0", "-o", "json"], &gang("9")).code(1).json();
    assert_eq!(pod(&json, "default/p-0")["nodes"][0]["fits"], true);
    let node = run_with(&["why", "-f", "-", "node/n1", "-o", "json"], &gang("9")).code(1).json();
    let fits = |name: &str| pod(&node, name)["nodes"][0]["fits"].as_bool();
    assert_eq!((fits("default/p-0"), fits("default/p-1")), (Some(true), Some(false)));
}

#[test]
fn a_pod_without_a_gate_is_told_whose_gate_holds_its_group() {
    let why = |pod: &str| run_with(&["why", "-f", "-", pod], &gang("gated 1")).code(1);
    let blocked = "Scheduling is blocked due to non-empty scheduling gates";
    let open = why("pod/p-0").says(&["too few of those are without scheduling gates: pod p-1 has"]);
    assert!(!open.out.contains(blocked), "{}", open.out);
    why("pod/p-1").says(&["scheduling gates keep it back: example.com/held", blocked]);
}

#[test]
fn of_a_group_it_is_said_what_would_place_more_of_it() {
    let why = run_with(&["why", "-f", "-", "podgroup/g"], &gang("gated 1")).code(1);
    why.says(&["What would place podgroup/g (add one", "It starts once the scheduling gate"]);
    let pod = run_with(&["why", "-f", "-", "pod/p-0"], &gang("gated 1")).code(1);
    pod.says(&["What would place it (add one", "It fits once the scheduling gate"]);
}
