//! The fleet, two plans side by side, and dumps without names.

use crate::common::{NODE, POD, Scratch, run, run_with};

#[test]
fn the_fleet_is_shown_with_its_pieces_holders_and_those_who_wait() {
    run(&["status", "-f", "examples"]).code(0).says(&[
        "7 nodes: 7 ready",
        "NVIDIA H100 80GB HBM3 (gpu.nvidia.com)",
        "8: 100 % (100 %)",
        "links of 3 unknown",
        "pod/pretrain",
        "pod/finetune",
        "would start now",
    ]);
    let status = run(&["status", "-f", "examples", "-o", "json"]).code(0).json();
    assert_eq!(status["apiVersion"], "phalanx.dev/status/v1");
    let stock = &status["devices"][2];
    assert_eq!(
        (&stock["total"], &stock["used"], &stock["free"]),
        (&16.into(), &10.into(), &6.into())
    );
}

#[test]
fn a_fleet_without_devices_says_so_and_misuse_is_a_document() {
    run_with(&["status", "-f", "-"], NODE)
        .code(0)
        .says(&["1 node: 1 without a condition Ready", "No device was read"]);
    for command in ["status", "diff"] {
        let document = run(&[command, "-o", "json", "--nonsense"]).code(2).json();
        assert_eq!(document["apiVersion"], format!("phalanx.dev/{command}/v1"));
        assert_eq!(document["findings"][0]["severity"], "error");
    }
}

#[test]
fn plans_are_compared_and_the_exit_code_is_that_of_diff() {
    let scratch = Scratch::new();
    let plan = |name: &str, more: &[&str]| {
        let args = [&["plan", "-f", "examples"], more].concat();
        scratch.file(name, &run(&args).out)
    };
    let now = plan("now.json", &["-o", "json"]);
    let then = plan("then.yaml", &["-o", "yaml", "--if", "+2 nodes like hgx-1"]);
    run(&["diff", &now, &now]).code(0).says(&["The plans are the same: 10 pods."]);
    let packed =
        scratch.bytes("now.json.gz", &crate::dumps::packed(Scratch::read(&now).as_bytes()));
    run(&["diff", &packed, &now]).code(0).says(&["The plans are the same"]);
    run(&["diff", &now, &then]).code(1).says(&[
        "starts  research/finetune",
        "hgx-1-like-1 gpu-0",
        "1 start now; 9 the same",
    ]);
    let json = run(&["diff", &then, &now, "-o", "json"]).code(1).json();
    assert_eq!(json["changes"][0]["change"], "stops");
    assert_eq!(json["changes"][0]["after"]["node"], serde_json::Value::Null);
    let lint = scratch.file("lint.json", &run(&["lint", "-f", "examples", "-o", "json"]).out);
    run(&["diff", &now, &lint]).code(2).complains(&["lint.json is no plan"]);
    run(&["diff", &now, "no/such.json"]).code(2).complains(&["no/such.json can't be read"]);
    let failed = plan("failed.json", &["-f", "no/such.yaml", "-o", "json"]);
    let why = "failed.json is no plan: the command that wrote it had no answer: no/such.yaml can't be read";
    run(&["diff", &now, &failed]).code(2).complains(&[why]);
    let cut = scratch.file("cut.json", "{\"apiVersion\": 1,");
    let place = "cut.json is no plan: it can't be read as one from line 1, column";
    run(&["diff", &cut, &now]).code(2).complains(&[place]);
}

#[test]
fn a_masked_dump_shows_no_name_and_is_planned_alike() {
    let scratch = Scratch::new();
    let names = scratch.file("names.json", "");
    let masked = run(&["mask", "-f", "examples", "--names", &names]).code(0);
    for hidden in ["hgx", "research", "pretrain", "serving", "rack-", "image", "command"] {
        assert!(!masked.out.contains(hidden), "{hidden}");
    }
    for kept in ["NVIDIA H100 80GB HBM3", "nvidia.com/gpu", "1980Gi", "device.driver =="] {
        assert!(masked.out.contains(kept), "{kept}");
    }
    let key: std::collections::BTreeMap<String, String> =
        serde_json::from_str(&Scratch::read(&names)).unwrap();
    let plan = ["plan", "-f", "-", "-o", "json"];
    let hidden = run_with(&plan, &masked.out).code(1).json();
    let plain = run(&["plan", "-f", "examples", "-o", "json"]).code(1).json();
    let word = |value: &serde_json::Value| {
        let text = value.as_str().unwrap_or_default();
        let parts = text.split_inclusive(|c: char| !c.is_alphabetic());
        let back = parts.map(|part| {
            let word = part.trim_end_matches(|c: char| !c.is_alphabetic());
            key.get(word).map_or(part.to_owned(), |name| part.replace(word, name))
        });
        back.collect::<String>()
    };
    let of = |plan: &serde_json::Value, at: usize, field: &str| plan["pods"][at][field].clone();
    for at in 0..plain["pods"].as_array().unwrap().len() {
        for field in ["namespace", "name", "node"] {
            let plain = of(&plain, at, field).as_str().unwrap_or_default().to_owned();
            assert_eq!(word(&of(&hidden, at, field)), plain);
        }
        assert_eq!(of(&hidden, at, "verdict"), of(&plain, at, "verdict"));
        assert_eq!(of(&hidden, at, "choice"), of(&plain, at, "choice"));
    }
}

#[test]
fn a_masked_list_is_one_object_and_says_what_is_left_out() {
    let secret =
        "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {password: cGhhbGFueA==}\n";
    let pod =
        POD.replace("name: main", "name: main, image: registry/x, env: [{name: A, value: hush}]");
    let text = format!("{NODE}---\n{pod}{secret}");
    let ran = run_with(&["mask", "-f", "-", "-o", "json"], &text).code(0);
    let list = ran.json();
    assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&"List".into(), 2));
    assert!(
        !ran.out.contains("hush") && !ran.out.contains("registry") && !ran.out.contains("cGhh")
    );
    ran.complains(&["2 objects written", "1 object of a kind that is not read is left out"]);
    let broken = text.replace("cpu: '8'", "cpu: lots");
    // What is written all the same is no loss, however wrong.
    let wrong = text.replace("metadata: {name: a", "metadata: {name: A_");
    run_with(&["mask", "-f", "-"], &wrong).code(0).complains(&["2 objects written"]);
    run_with(&["mask", "-f", "-"], &broken).code(1).complains(&["lots", "1 object written"]);
}

#[test]
fn the_names_are_for_their_owner_alone_and_never_written_over_the_input() {
    let scratch = Scratch::new();
    let input = scratch.file("dump.yaml", NODE);
    run(&["mask", "-f", &input, "--names", &input]).code(2).complains(&["would be lost"]);
    assert_eq!(Scratch::read(&input), NODE);
    let names = format!("{}/names.json", scratch.path());
    run(&["mask", "-f", &input, "--names", &names]).code(0);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&names).expect("it is written").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

/// Secrets in the places where hostile users found some.
const SECRETS: &str = r#"
apiVersion: v1
kind: Node
metadata:
  name: zqsecret-1
  labels: {nvidia.com/tenant: zqsecret, node.kubernetes.io/reserved-for: zqsecret, zqsecret: a, zqsecret.io/b: c, zqsecret.nvidia.com/gpu.zqsecret: d}
  annotations: {phalanx.dev/note: zqsecret, batch.kubernetes.io/foo: zqsecret}
  finalizers: [zqsecret.example.com/x]
  uid: 6ba7b810-9dad-11d1-80b4-00c04fd430c8
spec: {taints: [{key: nvidia.com/gpu, value: zqsecret, effect: NoSchedule}, {key: zqsecret.io/b, effect: NoSchedule}]}
status:
  nodeInfo: {kubeletVersion: v1.34.0-zqsecret}
  conditions: [{type: zqsecret, status: 'False', reason: zqsecret, message: zqsecret}]
  allocatable: {cpu: '8', memory: 8Gi, pods: '10', zqsecret.io/gpu: '4', nvidia.com/gpu: '4', nvidia.com/zqsecret: '1'}
  capacity: {cpu: '8', zqsecret.io/gpu: '4'}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: zqsecret-1
  pool: {name: zqsecret-1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {owner: {string: zqsecret}, uuid: {string: GPU-6ba7b811-9dad-11d1-80b4-00c04fd430c8}}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: team}
spec: {hard: {zqsecret.storageclass.storage.k8s.io/requests.storage: 1Gi, requests.zqsecret.io/gpu: '4', count/zqsecrets.zqsecret.io: '1'}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: l, namespace: team}
spec: {limits: [{type: Container, max: {zqsecret.io/gpu: '4'}, default: {zqsecret.io/gpu: '1'}}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: team, labels: {zqsecret: a}, annotations: {scheduler.alpha.kubernetes.io/node-selector: zqsecret=a, zqsecret: a}}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: zqsecret-1}
spec: {drivers: [{name: csi.example.com, nodeID: zqsecret, topologyKeys: [zqsecret.io/b]}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {extendedResourceName: zqsecret.io/gpu, selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].owner == "zqsecret" // zqsecret'}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: team}
spec:
  tolerations: [{key: nvidia.com/gpu, value: zqsecret, effect: NoSchedule}, {key: zqsecret.io/b, operator: Exists}]
  nodeSelector: {zqsecret: a}
  affinity:
    nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zqsecret.io/b, operator: Exists}]}]}}
    podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zqsecret.io/b, matchLabelKeys: [zqsecret], labelSelector: {matchLabels: {zqsecret: a}, matchExpressions: [{key: zqsecret, operator: Exists}]}}]}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zqsecret.io/b, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {zqsecret: a}}}]
  containers: [{name: zqsecret, resources: {requests: {zqsecret.io/gpu: '1'}, limits: {zqsecret.io/gpu: '1'}}, ports: [{hostPort: 80, containerPort: 80, hostIP: 10.20.30.40}]}]
"#;

#[test]
fn a_name_that_looks_like_a_number_is_masked_where_another_object_names_it() {
    let objects = "\
apiVersion: scheduling.k8s.io/v1alpha3
kind: PodGroup
metadata: {name: '1e1', namespace: default}
spec: {schedulingPolicy: {gang: {minCount: 1}}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, labels: {team: e1}}
spec: {schedulingGroup: {podGroupName: '1e1'}, containers: [{name: main}]}
";
    let ran = run_with(&["mask", "-f", "-"], objects).code(0);
    for name in [": e1", ": 1e1", "\"e1\"", "\"1e1\"", "'1e1'"] {
        assert!(!ran.out.contains(name), "{name} is in\n{}", ran.out);
    }
}

#[test]
fn a_secret_that_is_compared_is_masked_wherever_it_stands() {
    let ran = run_with(&["mask", "-f", "-"], SECRETS).code(0);
    for secret in ["zqsecret", "10.20.30.40", "6ba7b81", "00c04fd430c8", "phalanx.dev/note"] {
        assert!(!ran.out.contains(secret), "{secret} is in\n{}", ran.out);
    }
    for kept in ["].owner ==", "gpu-0", "v1.34.0", "nvidia.com/gpu"] {
        assert!(ran.out.contains(kept), "{kept} is not in\n{}", ran.out);
    }
    // What takes texts apart would answer otherwise, and is said to stay.
    let apart = SECRETS.replace("owner == \"zqsecret\"", "owner.startsWith(\"zq\")");
    let ran = run_with(&["mask", "-f", "-"], &apart).code(0);
    assert!(ran.out.contains("startsWith("), "{}", ran.out);
    ran.complains(&["1 expression takes texts apart"]);
}
