//! Nodes and pods of a world made by chance.

use serde_json::{Value, json};

use super::super::chance::Chance;
use super::{devices, owners, storage};

pub(super) const ZONE: &str = "topology.kubernetes.io/zone";
pub(super) const HOST: &str = "kubernetes.io/hostname";

/// Features of the kubelet that a pod can need.
const FEATURES: [&str; 2] =
    ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"];

/// Images that nodes have and containers name; of those without a tag the latest.
const IMAGES: [(&str, &str, u64); 5] = [
    ("a:1", "a:1", 40 << 20),
    ("b", "b:latest", 900 << 20),
    ("reg.io/c:2", "reg.io/c:2", 300 << 20),
    ("d:1", "d:1", 2500 << 20),
    ("reg.io:5000/e", "reg.io:5000/e:latest", 700 << 20),
];

/// The world of a seed: objects, and pods that wait one after the other.
pub(super) fn world_of(seed: u64) -> Value {
    let chance = &mut Chance::new(seed);
    let mut objects = Vec::new();
    for (name, team) in [("a", "x"), ("b", "y")] {
        let labels = json!({"kubernetes.io/metadata.name": name, "team": team});
        objects.push(json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": labels}}));
    }
    let nodes = 2 + chance.below(5);
    objects.extend((1..=nodes).map(|at| node(chance, at)));
    let volumes = storage::Storage::new(chance, nodes);
    objects.extend(owners::objects(chance));
    let devices = chance.one_in(4);
    if devices {
        objects.extend(devices::slices(chance, nodes));
    }
    for at in 0..chance.below(12) {
        let mut other = pod(chance, &format!("p{at}"));
        let on = 1 + chance.below(nodes);
        other["spec"]["nodeName"] = json!(format!("n{on}"));
        volumes.mount_there(chance, &mut other);
        other["status"] = status(chance, &other);
        if chance.one_in(8) {
            other["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            other["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        }
        objects.push(other);
    }
    let mut pods = Vec::new();
    for at in 0..1 + chance.below(4) {
        let mut pending = pod(chance, &format!("w{at}"));
        if chance.one_in(40) {
            pending["spec"]["schedulingGates"] = json!([{"name": "wait"}]);
        }
        objects.extend(volumes.mount(chance, &mut pending, at));
        if devices && chance.one_in(2) {
            objects.extend(devices::claims(chance, &mut pending));
        }
        pods.push(pending);
    }
    for at in 0..chance.below(5).saturating_sub(2) {
        // What is promised to pods that come later: their turn is after that of the others.
        let mut promised = pod(chance, &format!("x{at}"));
        promised["spec"]["priority"] = json!(0 - i64::from(chance.one_in(3)));
        let node = format!("n{}", 1 + chance.below(nodes));
        promised["status"] = json!({"phase": "Pending", "nominatedNodeName": node});
        objects.push(promised);
    }
    objects.extend(volumes.objects);
    let promised = objects.iter().any(|object| object["status"]["nominatedNodeName"].is_string());
    if promised {
        // A known difference: with a node promised to others, an empty selector counts them there.
        objects.iter_mut().chain(&mut pods).for_each(select_some);
    }
    if !chance.one_in(3) {
        objects.iter_mut().chain(&mut pods).for_each(ease);
    }
    json!({"name": format!("chance-{seed}"), "objects": objects, "pods": pods})
}

/// Gives an object's empty selectors of spread something to select.
fn select_some(object: &mut Value) {
    let rules = object.pointer_mut("/spec/topologySpreadConstraints").and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        if rule["labelSelector"] == json!({}) {
            rule["labelSelector"] = json!({"matchLabels": {"app": "web"}});
        }
    }
}

/// Takes from an object what keeps most pods from most nodes, so that more is decided by scores, and
/// pods see what those before them took.
fn ease(object: &mut Value) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    if object["kind"] == "Node" {
        object["spec"]["unschedulable"] = json!(false);
        for taint in object["spec"]["taints"].as_array_mut().into_iter().flatten() {
            taint["effect"] = json!("PreferNoSchedule");
        }
        for (name, amount) in [("cpu", "12"), ("memory", "20Gi"), ("pods", "110")] {
            object["status"]["allocatable"][name] = json!(amount);
        }
        object["status"]["declaredFeatures"] = json!(FEATURES);
    } else if object["kind"] == "Pod" {
        let spec = &mut object["spec"];
        let rules = ["nodeAffinity", "podAffinity"];
        let rules =
            rules.map(|kind| spec["affinity"][kind].as_object_mut().map(|r| r.remove(REQUIRED)));
        if rules.iter().flatten().any(Option::is_some) {
            spec.as_object_mut().map(|spec| spec.remove("nodeSelector"));
        }
    }
}

fn node(chance: &mut Chance, at: u64) -> Value {
    let name = format!("n{at}");
    let mut labels = json!({});
    if !chance.one_in(6) {
        labels[HOST] = json!(name);
    }
    if !chance.one_in(5) {
        labels[ZONE] = json!(chance.pick(&["za", "zb", "zc"]));
    }
    if chance.one_in(2) {
        labels["disk"] = json!(chance.pick(&["ssd", "hdd", "10", "7"]));
    }
    let mut taints = Vec::new();
    for key in ["gpu", "soft", "health"] {
        if chance.one_in(5) {
            let effect = chance.pick(&["NoSchedule", "PreferNoSchedule", "NoExecute"]);
            taints.push(json!({"key": key, "value": chance.pick(&["", "x"]), "effect": effect}));
        }
    }
    let mut allocatable = json!({
        "cpu": chance.pick(&["2", "3500m", "8", "1999m"]),
        "memory": chance.pick(&["4Gi", "8Gi", "7999999999", "16Gi"]),
        "ephemeral-storage": "100Gi",
        "pods": chance.pick(&["110", "3", "110", "1"]),
    });
    if chance.one_in(2) {
        allocatable["nvidia.com/gpu"] = json!(chance.pick(&["0", "1", "4"]));
    }
    let images: Vec<Value> = IMAGES
        .iter()
        .filter_map(|(_, name, size)| {
            let here = chance.one_in(2);
            // Nodes need not agree on a size.
            let size = size + (chance.below(3) << 20);
            let digest = format!("{name}@sha256:00");
            here.then(|| json!({"names": [digest, name], "sizeBytes": size}))
        })
        .collect();
    let features: Vec<&str> = FEATURES.into_iter().filter(|_| !chance.one_in(3)).collect();
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {"taints": taints, "unschedulable": chance.one_in(10)},
        "status": {"allocatable": allocatable, "images": images, "declaredFeatures": features}})
}

/// The state of a pod on a node, with a change of its resources under way in some.
fn status(chance: &mut Chance, pod: &Value) -> Value {
    let phase = chance.pick(&["Running", "Running", "Running", "Pending", "Succeeded"]);
    let mut status = json!({"phase": phase});
    if chance.one_in(3) {
        let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
        let statuses: Vec<Value> = containers
            .map(|container| {
                let mut one = json!({"name": container["name"], "image": "", "imageID": "",
                    "ready": true, "restartCount": 0});
                for field in ["allocatedResources", "resources"] {
                    if chance.one_in(2) {
                        let amounts = amounts(chance);
                        let wrapped = json!({"requests": amounts});
                        one[field] = if field == "resources" { wrapped } else { amounts };
                    }
                }
                one
            })
            .collect();
        status["containerStatuses"] = json!(statuses);
    }
    if chance.one_in(5) {
        let reason = chance.pick(&["Infeasible", "Deferred"]);
        let pending = json!({"type": "PodResizePending", "status": "True", "reason": reason});
        status["conditions"] = json!([pending]);
    }
    if pod["spec"].get("resources").is_some() && chance.one_in(2) {
        status["resources"] = json!({"requests": amounts(chance)});
        if chance.one_in(2) {
            status["allocatedResources"] = amounts(chance);
        }
    }
    status
}

fn amounts(chance: &mut Chance) -> Value {
    json!({"cpu": chance.pick(&["100m", "700m", "2"]), "memory": chance.pick(&["64Mi", "2Gi"])})
}

fn pod(chance: &mut Chance, name: &str) -> Value {
    let containers: Vec<Value> =
        (0..1 + chance.below(2)).map(|at| container(chance, &format!("c{at}"))).collect();
    let mut spec = json!({"containers": containers, "schedulerName": "default-scheduler"});
    if chance.one_in(4) {
        let mut first = container(chance, "i");
        if chance.one_in(2) {
            first["restartPolicy"] = json!("Always");
        }
        spec["initContainers"] = json!([first]);
    }
    if chance.one_in(6) {
        spec["nodeSelector"] = json!({"disk": chance.pick(&["ssd", "hdd"])});
    }
    if chance.one_in(8) {
        spec["overhead"] = json!({"cpu": "100m"});
    }
    if chance.one_in(8) {
        // As the API server stores it: it fills in what containers ask for.
        spec["resources"] = json!({"requests": amounts(chance)});
    }
    if chance.one_in(15) {
        spec["hostNetwork"] = json!(true);
        spec["hostUsers"] = json!(false);
        for container in spec["containers"].as_array_mut().into_iter().flatten() {
            for port in container["ports"].as_array_mut().into_iter().flatten() {
                port["containerPort"] = port["hostPort"].clone();
            }
        }
    }
    if chance.one_in(12) {
        let image = IMAGES[chance.index(IMAGES.len())].0;
        spec["volumes"] = json!([{"name": "files", "image": {"reference": image}}]);
    }
    spec["tolerations"] = tolerations(chance);
    let mut affinity = json!({});
    for (kind, make) in [
        ("nodeAffinity", node_affinity as fn(&mut Chance) -> Value),
        ("podAffinity", pod_affinity),
        ("podAntiAffinity", pod_affinity),
    ] {
        if chance.one_in(4) {
            affinity[kind] = make(chance);
        }
    }
    spec["affinity"] = affinity;
    if chance.one_in(3) {
        let rules: Vec<Value> = (0..1 + chance.below(2)).map(|_| spread(chance)).collect();
        // The API server refuses two constraints of one key and kind.
        let kind = |rule: &Value| (rule["topologyKey"].clone(), rule["whenUnsatisfiable"].clone());
        if rules.len() == 1 || kind(&rules[0]) != kind(&rules[1]) {
            spec["topologySpreadConstraints"] = json!(rules);
        }
    }
    let namespace = chance.pick(&["a", "a", "b"]);
    let mut labels = json!({"app": chance.pick(&["web", "db", "train"])});
    if chance.one_in(3) {
        labels["tier"] = json!(chance.pick(&["front", "back"]));
    }
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "uid": name, "namespace": namespace, "labels": labels},
        "spec": spec, "status": {"phase": "Pending"}});
    owners::own(chance, &mut pod);
    pod
}

fn container(chance: &mut Chance, name: &str) -> Value {
    let mut requests = json!({});
    if !chance.one_in(4) {
        requests["cpu"] = json!(chance.pick(&["100m", "0", "500m", "1", "2500m"]));
    }
    if !chance.one_in(4) {
        requests["memory"] = json!(chance.pick(&["64Mi", "1Gi", "3Gi", "1500m"]));
    }
    if chance.one_in(8) {
        requests["nvidia.com/gpu"] = json!(chance.pick(&["1", "2"]));
    }
    let image = IMAGES[chance.index(IMAGES.len())].0;
    let mut made = json!({"name": name, "image": image, "resources": {"requests": requests}});
    if requests.get("nvidia.com/gpu").is_some() {
        made["resources"]["limits"] = json!({"nvidia.com/gpu": requests["nvidia.com/gpu"]});
    }
    if chance.one_in(6) {
        let port = json!({"containerPort": 80, "hostPort": 8000 + chance.below(2),
            "protocol": chance.pick(&["TCP", "UDP"]), "hostIP": chance.pick(&["", "127.0.0.1"])});
        made["ports"] = json!([port]);
    }
    if chance.one_in(15) {
        let codes = json!({"operator": "In", "values": [1]});
        let rule = json!({"action": "RestartAllContainers", "exitCodes": codes});
        made["restartPolicy"] = json!("Never");
        made["restartPolicyRules"] = json!([rule]);
    }
    made
}

fn tolerations(chance: &mut Chance) -> Value {
    let mut all = Vec::new();
    for key in ["gpu", "soft", "health", "node.kubernetes.io/unschedulable"] {
        if chance.one_in(3) {
            let mut one = json!({"key": key, "operator": chance.pick(&["Exists", "Equal"])});
            if one["operator"] == "Equal" {
                one["value"] = json!(chance.pick(&["", "x"]));
            }
            one["effect"] = json!(chance.pick(&["", "NoSchedule", "PreferNoSchedule"]));
            all.push(one);
        }
    }
    json!(all)
}

fn node_term(chance: &mut Chance) -> Value {
    let asked = match chance.below(6) {
        0 => json!({"key": "disk", "operator": "In", "values": ["ssd", "10"]}),
        1 => json!({"key": "disk", "operator": "NotIn", "values": ["hdd"]}),
        2 => json!({"key": ZONE, "operator": "Exists"}),
        3 => json!({"key": ZONE, "operator": "DoesNotExist"}),
        4 => json!({"key": "disk", "operator": "Gt", "values": ["8"]}),
        _ => json!({"key": ZONE, "operator": "In", "values": ["za", "zb"]}),
    };
    let mut term = json!({"matchExpressions": [asked]});
    if chance.one_in(5) {
        let node = format!("n{}", 1 + chance.below(4));
        let operator = chance.pick(&["In", "In", "NotIn"]);
        let field = json!({"key": "metadata.name", "operator": operator, "values": [node]});
        term["matchFields"] = json!([field]);
    }
    term
}

fn node_affinity(chance: &mut Chance) -> Value {
    let mut rules = json!({});
    if chance.one_in(2) {
        let terms: Vec<Value> = (0..1 + chance.below(2)).map(|_| node_term(chance)).collect();
        rules["requiredDuringSchedulingIgnoredDuringExecution"] =
            json!({"nodeSelectorTerms": terms});
    }
    let wished: Vec<Value> = (0..chance.below(3))
        .map(|_| json!({"weight": 1 + chance.below(100), "preference": node_term(chance)}))
        .collect();
    rules["preferredDuringSchedulingIgnoredDuringExecution"] = json!(wished);
    rules
}

fn selector(chance: &mut Chance) -> Value {
    match chance.below(5) {
        0 => json!({}),
        1 => json!({"matchExpressions": [
            {"key": "app", "operator": "NotIn", "values": [chance.pick(&["web", "db"])]}]}),
        _ => json!({"matchLabels": {"app": chance.pick(&["web", "db", "train"])}}),
    }
}

fn pod_term(chance: &mut Chance) -> Value {
    let mut term = json!({"topologyKey": chance.pick(&[ZONE, HOST, "disk"]),
        "labelSelector": selector(chance)});
    match chance.below(5) {
        0 => term["namespaces"] = json!(["b"]),
        1 => term["namespaceSelector"] = json!({}),
        2 => term["namespaceSelector"] = json!({"matchLabels": {"team": "y"}}),
        _ => {}
    }
    term
}

fn pod_affinity(chance: &mut Chance) -> Value {
    let mut rules = json!({});
    if chance.one_in(2) {
        let terms: Vec<Value> = (0..1 + chance.below(2)).map(|_| pod_term(chance)).collect();
        rules["requiredDuringSchedulingIgnoredDuringExecution"] = json!(terms);
    }
    let wished: Vec<Value> = (0..chance.below(3))
        .map(|_| json!({"weight": 1 + chance.below(100), "podAffinityTerm": pod_term(chance)}))
        .collect();
    rules["preferredDuringSchedulingIgnoredDuringExecution"] = json!(wished);
    rules
}

fn spread(chance: &mut Chance) -> Value {
    let when = chance.pick(&["DoNotSchedule", "ScheduleAnyway"]);
    let mut rule = json!({"maxSkew": 1 + chance.below(3), "whenUnsatisfiable": when,
        "topologyKey": chance.pick(&[ZONE, HOST, "disk"]), "labelSelector": selector(chance)});
    if when == "DoNotSchedule" && chance.one_in(4) {
        rule["minDomains"] = json!(1 + chance.below(4));
    }
    for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if chance.one_in(3) {
            rule[policy] = json!(chance.pick(&["Honor", "Ignore"]));
        }
    }
    rule
}
