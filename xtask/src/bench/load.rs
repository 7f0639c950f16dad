//! A dump of 5,000 nodes and 150,000 pods, read: our reader beside the library that parses for it,
//! which puts the same text into the same types in the same run and does no more.
//!
//! Ours does more: it finds the kind of each object, checks it, keeps its line, and loses none that
//! stands beside a bad one. After that the time until it is lowered, and the most memory held until
//! then, the bytes of the file among it.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use phalanx_cluster::world::World;
use phalanx_cluster::{Compat, Lowering, ObjectEvent, Source, Version};
use phalanx_objects::core::{Node, Pod};
use phalanx_objects::{Item, Object, read};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{median, memory_bytes, resident_bytes, time};
use crate::run::{Done, root};

/// What is written and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
}

/// A size of dump, and the figures to reach.
struct Target {
    extension: &'static str,
    peer: &'static str,
    time_ratio: f64,
    memory_ratio: f64,
}

impl Format {
    fn target(self) -> Target {
        match self {
            Self::Json => {
                Target { extension: "json", peer: "serde_json", time_ratio: 2.0, memory_ratio: 3.0 }
            }
            Self::Yaml => Target {
                extension: "yaml",
                peer: "serde-saphyr",
                time_ratio: 1.5,
                memory_ratio: 8.0,
            },
        }
    }
}

/// Pods on each node.
pub(super) const PODS: u32 = 30;

/// A list as kubectl writes it.
#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

/// Measures one format.
pub(crate) fn measure(format: Format, runs: usize, count: u32) -> Done {
    let (nodes, pods) = written(format, count).map_err(|e| format!("a dump to read: {e}."))?;
    let wrong = |e: std::io::Error| format!("a dump to read: {e}.");
    let target = format.target();
    let (nodes, pods) = (fs::read(nodes).map_err(wrong)?, fs::read(pods).map_err(wrong)?);
    let bytes = (nodes.len() + pods.len()) as f64;
    println!(
        "   {count} nodes and {} pods in {:.0} MiB of {}",
        count * PODS,
        bytes / f64::from(1 << 20),
        target.extension
    );
    let (loaded, world) = time(|| world(&[&nodes, &pods]));
    let peak = resident_bytes()? / bytes;
    let kept = (memory_bytes("VmRSS:")? - bytes) / f64::from(count * PODS).max(1.0);
    if world.nodes_len() != count as usize {
        return Err(format!("{} nodes were read of {count}.", world.nodes_len()));
    }
    drop(world);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let (taken, mine) = time(|| objects(&nodes).len() + objects(&pods).len());
        ours.push(taken);
        let (taken, other) = time(|| parsed(format, &nodes, &pods));
        theirs.push(taken);
        if mine != other? {
            return Err("the two did not read the same objects.".to_owned());
        }
    }
    let (ours, theirs): (Duration, Duration) = (median(ours), median(theirs));
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    let met = |value: f64, most: f64| if value <= most { "met" } else { "MISSED" };
    println!(
        "   read in {ours:.2?}, by {} alone {theirs:.2?}: ratio {ratio:.2}  target {}  {}",
        target.peer,
        target.time_ratio,
        met(ratio, target.time_ratio)
    );
    println!(
        "   read and lowered in {loaded:.2?} (once); kept beside the text {:.1} KB a pod",
        kept / 1e3
    );
    println!(
        "   most memory {peak:.2} times the text  target {}  {}",
        target.memory_ratio,
        met(peak, target.memory_ratio)
    );
    Ok(())
}

fn objects(text: &[u8]) -> Vec<Object> {
    let mut all = Vec::new();
    read("dump", text, &mut |item| match item {
        Item::Object(object, _) => all.push(object),
        Item::Gone(..) | Item::Unknown { .. } | Item::Problem(_) => {}
    });
    all
}

/// How many objects the library reads.
fn parsed(format: Format, nodes: &[u8], pods: &[u8]) -> Result<usize, String> {
    match format {
        Format::Json => {
            let nodes: List<Node> = serde_json::from_slice(nodes).map_err(|e| e.to_string())?;
            let pods: List<Pod> = serde_json::from_slice(pods).map_err(|e| e.to_string())?;
            Ok(nodes.items.len() + pods.items.len())
        }
        Format::Yaml => {
            let mut options = serde_saphyr::Options::default();
            // Its usual bounds are for small files.
            options.budget = None;
            let text = |bytes| std::str::from_utf8(bytes).map_err(|e| e.to_string());
            let nodes: List<Node> =
                serde_saphyr::from_str_with_options(text(nodes)?, options.clone())
                    .map_err(|e| e.to_string())?;
            let pods: List<Pod> = serde_saphyr::from_str_with_options(text(pods)?, options)
                .map_err(|e| e.to_string())?;
            Ok(nodes.items.len() + pods.items.len())
        }
    }
}

/// The texts read as the command reads them, and lowered.
fn world(texts: &[&[u8]]) -> World {
    let mut world = World::new(Lowering::new(Compat::new(Version::default())));
    let mut ordinal = 0;
    for text in texts {
        read("dump", text, &mut |item| {
            if let Item::Object(object, source) = item {
                ordinal += 1;
                let source = Source { file: source.file, line: source.line, ordinal };
                world.absorb(ObjectEvent::Applied(Box::new(object), source));
            }
        });
    }
    world.settle();
    world
}

/// Writes the dump: a file of nodes and a file of pods.
fn written(format: Format, count: u32) -> std::io::Result<(PathBuf, PathBuf)> {
    let folder = root().join("target/bench");
    fs::create_dir_all(&folder)?;
    let file = |name: &str| folder.join(format!("{name}.{}", format.target().extension));
    let (nodes, pods) = (file("nodes"), file("pods"));
    write(format, &nodes, (0..count).map(node))?;
    write(format, &pods, (0..count * PODS).map(pod))?;
    Ok((nodes, pods))
}

/// Writes a list as `kubectl get -o json` or `-o yaml` does, an item at a time.
fn write(format: Format, path: &Path, items: impl Iterator<Item = Value>) -> std::io::Result<()> {
    let mut out = BufWriter::new(fs::File::create(path)?);
    match format {
        Format::Json => {
            out.write_all(b"{\n    \"apiVersion\": \"v1\",\n    \"items\": [")?;
            for (at, item) in items.enumerate() {
                out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
                let indent = serde_json::ser::PrettyFormatter::with_indent(b"    ");
                let mut text = Vec::new();
                let mut serializer = serde_json::Serializer::with_formatter(&mut text, indent);
                serde::Serialize::serialize(&item, &mut serializer)?;
                indented(&mut out, &text, "        ", "        ")?;
            }
            out.write_all(b"\n    ],\n    \"kind\": \"List\"\n}\n")?;
        }
        Format::Yaml => {
            out.write_all(b"apiVersion: v1\nitems:\n")?;
            for item in items {
                let text = serde_saphyr::to_string(&item).map_err(std::io::Error::other)?;
                indented(&mut out, text.trim_end().as_bytes(), "- ", "  ")?;
                out.write_all(b"\n")?;
            }
            out.write_all(b"kind: List\n")?;
        }
    }
    out.flush()
}

fn indented(
    out: &mut impl std::io::Write,
    text: &[u8],
    first: &str,
    rest: &str,
) -> std::io::Result<()> {
    for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if at > 0 {
            out.write_all(b"\n")?;
        }
        out.write_all(if at == 0 { first } else { rest }.as_bytes())?;
        out.write_all(line)?;
    }
    Ok(())
}

/// A node with what a cluster says of it, most of which nobody reads.
pub(super) fn node(n: u32) -> Value {
    let name = format!("node-{n:05}");
    let amounts = json!({"cpu": "192", "memory": "2113409884Ki", "pods": "110",
        "ephemeral-storage": "7570663468Ki", "hugepages-1Gi": "0", "nvidia.com/gpu": "8"});
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({"type": kind, "status": status, "reason": reason,
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "message": "the kubelet tells how it is"})
    };
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": uid(1, n), "resourceVersion": (1_000 + n).to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true"},
            "labels": {"beta.kubernetes.io/arch": "amd64", "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "gpu-8",
                "topology.kubernetes.io/region": "r1", "topology.kubernetes.io/zone": "r1-a",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"}},
        "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]},
        "status": {"addresses": [{"address": "192.0.2.1", "type": "InternalIP"},
                {"address": name, "type": "Hostname"}],
            "allocatable": amounts, "capacity": amounts,
            "conditions": [condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                condition("Ready", "True", "KubeletReady")],
            "images": [{"names": ["registry.invalid/train@sha256:00", "registry.invalid/train:1"],
                "sizeBytes": 9_876_543_210_u64}],
            "nodeInfo": {"architecture": "amd64", "kubeletVersion": "v1.37.2",
                "kernelVersion": "6.8.0", "operatingSystem": "linux",
                "osImage": "Linux", "containerRuntimeVersion": "containerd://2.1.0"}}})
}

/// A pod on a node, as a Job's pod is stored.
pub(super) fn pod(n: u32) -> Value {
    let job = n / 8;
    let (name, node) = (format!("train-{job:05}-{}-x{:04}", n % 8, n % 9_973), n / PODS);
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "lastProbeTime": null,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": format!("team-{}", job % 40),
            "uid": uid(2, n), "resourceVersion": (100_000 + n).to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generateName": format!("train-{job:05}-{}-", n % 8),
            "annotations": {"batch.kubernetes.io/job-completion-index": (n % 8).to_string()},
            "finalizers": ["batch.kubernetes.io/job-tracking"],
            "labels": {"batch.kubernetes.io/controller-uid": uid(3, job),
                "batch.kubernetes.io/job-name": format!("train-{job:05}"),
                "batch.kubernetes.io/job-completion-index": (n % 8).to_string(),
                "app": "train", "team": format!("team-{}", job % 40)},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "controller": true,
                "blockOwnerDeletion": true, "name": format!("train-{job:05}"),
                "uid": uid(3, job)}]},
        "spec": {"containers": [{"name": "main", "image": "registry.invalid/train:1",
                "command": ["python", "-m", "train"], "args": ["--epochs", "3"],
                "env": [{"name": "NCCL_DEBUG", "value": "INFO"},
                    {"name": "NODE_NAME",
                        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}}],
                "imagePullPolicy": "IfNotPresent",
                "resources": {"requests": {"cpu": "4", "memory": "32Gi"},
                    "limits": {"memory": "32Gi"}},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "volumeMounts": [{"mountPath": "/data", "name": "data"},
                    {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                        "name": "kube-api-access", "readOnly": true}]}],
            "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "priority": 0,
            "nodeName": format!("node-{node:05}"), "preemptionPolicy": "PreemptLowerPriority",
            "restartPolicy": "Never", "schedulerName": "default-scheduler",
            "securityContext": {}, "serviceAccount": "default", "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "tolerations": [
                {"effect": "NoExecute", "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists", "tolerationSeconds": 300},
                {"effect": "NoExecute", "key": "node.kubernetes.io/unreachable",
                    "operator": "Exists", "tolerationSeconds": 300}],
            "volumes": [{"name": "data", "emptyDir": {}},
                {"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt",
                        "items": [{"key": "ca.crt", "path": "ca.crt"}]}}]}}]},
        "status": {"phase": "Running", "hostIP": "192.0.2.1", "podIP": "10.0.0.1",
            "podIPs": [{"ip": "10.0.0.1"}], "qosClass": "Burstable",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [condition("PodReadyToStartContainers"), condition("Initialized"),
                condition("Ready"), condition("ContainersReady"), condition("PodScheduled")],
            "containerStatuses": [{"name": "main", "ready": true, "restartCount": 0,
                "started": true, "image": "registry.invalid/train:1",
                "imageID": "registry.invalid/train@sha256:00", "containerID": "containerd://00",
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "lastState": {}}]}})
}

fn uid(kind: u32, n: u32) -> String {
    format!("{kind:08x}-0000-4000-8000-{n:012x}")
}
