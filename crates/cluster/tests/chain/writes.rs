//! The writes of a plan from end to end, and that objects and facts are told the same events.

use phalanx_cluster::raise::{GuardVersion, manifests, raise};
use phalanx_cluster::{Gone, ObjectEvent, Source};
use phalanx_objects::read::{Item, read};
use phalanx_objects::{Kind, Object, ObjectRef};

use serde_json::json;

use super::support::{
    add, carry_out, cpu_pod, decided, document, gpus, node, pod, shared_claim, user_of, world,
};

#[test]
fn a_claim_that_moves_is_released_in_a_write_of_its_own() {
    let held = "finalizers: [resource.kubernetes.io/delete-protection], resourceVersion: '5'";
    let claim = shared_claim("idle").replace("uid: idle-uid", &format!("uid: idle-uid, {held}"))
        + "status: {allocation: {devices: {results: [{request: gpu, driver: gpu.nvidia.com, pool: n1, \
           device: gpu-0}]}, nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, \
           operator: In, values: [n1]}]}]}}}\n";
    let fleet = gpus("n1") + &gpus("n2") + &cpu_pod("busy", "62", "n1");
    let mut world = world(&(fleet + &claim + &user_of("next", "idle")));
    let plan = decided(&mut world);
    let effects = raise(&world, &plan);
    let versions: Vec<&GuardVersion> = effects.iter().map(|e| &e.guard.version).collect();
    let first = effects[0].id;
    assert_eq!(
        versions,
        [&GuardVersion::Read("5".to_owned()), &GuardVersion::LeftBy(first), &GuardVersion::Any]
    );
    let documents = manifests(&effects);
    let kinds: Vec<&str> = documents.iter().filter_map(|d| d["kind"].as_str()).collect();
    assert_eq!(kinds, ["ResourceClaim", "ResourceClaim", "Binding"]);
    assert_eq!(documents[0].pointer("/status/allocation"), Some(&json!(null)));
    let to = documents[1].pointer("/status/allocation/devices/results/0/pool");
    assert_eq!(to.and_then(serde_json::Value::as_str), Some("n2"));
    let said = document(&mut world);
    let notes = &pod(&said, "next").notes;
    assert!(notes.iter().any(|note| note.contains("claim idle is allocated so")), "{notes:?}");
}

/// Two init containers, two containers, and a class that serves what they ask.
const SERVED: &str = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\n\
    metadata: {name: served}\n\
    spec: {extendedResourceName: example.com/gpu, config: [{opaque: {driver: gpu.nvidia.com, \
    parameters: {a: 1}}}]}\n";

fn asker(name: &str) -> String {
    let gpus =
        |count: u32| format!("resources: {{requests: {{cpu: '1', example.com/gpu: {count}}}}}");
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default, uid: {name}-uid}}\n\
         spec:\n  initContainers: [{{name: fetch, {}}}, {{name: warm, {}}}]\n  \
         containers: [{{name: main, {}}}, {{name: side, {}}}]\n",
        gpus(3),
        gpus(4),
        gpus(1),
        gpus(1)
    )
}

/// What devices serve of extended resources is written as kube-scheduler writes it, and once it is
/// written it is held once.
#[test]
fn a_claim_for_extended_resources_is_made_allocated_and_named_in_the_status() {
    let mut world = world(&(gpus("n1") + SERVED + &asker("first")));
    let plan = decided(&mut world);
    let effects = raise(&world, &plan);
    let documents = manifests(&effects);
    let kinds: Vec<&str> = documents.iter().filter_map(|d| d["kind"].as_str()).collect();
    assert_eq!(kinds, ["ResourceClaim", "Pod", "Binding"]);
    let claim = &documents[0];
    let mark =
        claim.pointer("/metadata/annotations/resource.kubernetes.io~1extended-resource-claim");
    assert_eq!(mark, Some(&json!("true")));
    assert_eq!(claim["metadata"]["ownerReferences"][0]["uid"], json!("first-uid"));
    let asked = claim["spec"]["devices"]["requests"].as_array().expect("requests");
    let asked: Vec<_> =
        asked.iter().map(|r| (r["name"].clone(), r["exactly"]["count"].clone())).collect();
    assert_eq!(
        asked,
        [
            (json!("container-1-request-1"), json!(2)),
            (json!("container-2-request-1"), json!(1)),
            (json!("container-3-request-1"), json!(1)),
        ]
    );
    let results = claim.pointer("/status/allocation/devices/results").and_then(|r| r.as_array());
    assert_eq!(results.map(Vec::len), Some(4));
    let config = claim.pointer("/status/allocation/devices/config/0").expect("the class' own");
    assert_eq!(config["source"], json!("FromClass"));
    assert_eq!(claim["status"]["reservedFor"][0]["name"], json!("first"));
    let status = &documents[1]["status"]["extendedResourceClaimStatus"];
    assert_eq!(status["resourceClaimName"], claim["metadata"]["name"]);
    let mapped = status["requestMappings"].as_array().expect("mappings");
    let mapped: Vec<String> = mapped
        .iter()
        .map(|m| format!("{} {}", m["containerName"], m["requestName"]).replace('"', ""))
        .collect();
    assert_eq!(
        mapped,
        [
            "main container-2-request-1",
            "side container-3-request-1",
            "fetch container-2-request-1",
            "fetch container-3-request-1",
            "fetch container-1-request-1",
            "warm container-2-request-1",
            "warm container-3-request-1",
            "warm container-1-request-1",
        ]
    );
    carry_out(&mut world, &effects);
    add(&mut world, &asker("next"));
    let said = document(&mut world);
    let message = &pod(&said, "next").reasons[0].message;
    assert_eq!(
        message,
        "n1: example.com/gpu (served by DeviceClass served) asks 2 devices, 0 free of 4 that would do"
    );
}

fn versioned(cpu: &str, uid: &str, version: &str) -> Object {
    let meta = format!("{{name: n1, uid: {uid}, resourceVersion: '{version}', labels");
    let text = node("n1", cpu).replace("{name: n1, labels", &meta);
    let mut found = None;
    read("node.yaml", text.as_bytes(), &mut |item| {
        if let Item::Object(object, _) = item {
            found = Some(object);
        }
    });
    found.expect("a node")
}

#[test]
fn objects_and_facts_are_told_the_same_events() {
    let reference = ObjectRef { kind: Kind::Node, namespace: String::new(), name: "n1".into() };
    let put = |cpu: &str, uid: &str, version: &str| {
        ObjectEvent::Applied(Box::new(versioned(cpu, uid, version)), Source::default())
    };
    let end = |uid: &str, version: &str| {
        let (object, uid) = (reference.clone(), uid.to_owned());
        ObjectEvent::Deleted(Gone { object, uid, resource_version: version.to_owned() })
    };
    let mut world = world(&cpu_pod("p", "3", ""));
    let mut then = |events: Vec<ObjectEvent>, expected: Option<&str>| {
        events.into_iter().for_each(|event| world.absorb(event));
        world.settle();
        let kept = world.objects().expect("objects").get(&reference);
        assert_eq!(kept.map(|node| node.metadata().uid.as_str()), expected);
        assert_eq!(world.nodes_len(), usize::from(expected.is_some()));
    };
    then(vec![put("4", "a", "3"), put("2", "a", "2")], Some("a"));
    then(vec![end("a", "5"), put("4", "a", "4")], None);
    then(vec![put("8", "b", "7"), end("a", "5")], Some("b"));
    assert_eq!(pod(&document(&mut world), "p").node.as_deref(), Some("n1"));
}

/// What a failed attempt has left of a pod's extended resources is deleted, its finalizer first, and
/// another claim is made.
#[test]
fn a_claim_that_an_attempt_has_left_is_deleted_before_another_is_made() {
    let left = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n\
        metadata: {name: first-extended-resources-x7k2p, namespace: default, uid: left-uid, \
        resourceVersion: '7', finalizers: [resource.kubernetes.io/delete-protection], \
        annotations: {resource.kubernetes.io/extended-resource-claim: 'true'}, ownerReferences: \
        [{apiVersion: v1, kind: Pod, name: first, uid: first-uid, controller: true}]}\n\
        spec: {devices: {requests: [{name: r, exactly: {deviceClassName: served}}]}}\n";
    let held = "status: {allocation: {devices: {results: [{request: r, driver: gpu.nvidia.com, \
        pool: n1, device: gpu-0}]}}, reservedFor: [{resource: pods, name: first, uid: first-uid}]}\n";
    for left in [left.to_owned(), format!("{left}{held}")] {
        let mut world = world(&(gpus("n1") + SERVED + &asker("first") + &left));
        let plan = decided(&mut world);
        let effects = raise(&world, &plan);
        let versions: Vec<&GuardVersion> = effects.iter().map(|e| &e.guard.version).collect();
        assert_eq!(versions[0], &GuardVersion::Read("7".to_owned()));
        assert_eq!(versions[1], &GuardVersion::LeftBy(effects[0].id));
        let documents = manifests(&effects);
        let kinds: Vec<&str> = documents.iter().filter_map(|d| d["kind"].as_str()).collect();
        assert_eq!(kinds, ["ResourceClaim", "ResourceClaim", "Pod", "Binding"]);
        let gone = &documents[0]["metadata"];
        assert_eq!(gone["annotations"]["phalanx.dev/deleted"], json!("true"));
        assert_eq!(gone.get("finalizers"), None);
        assert_eq!(documents[0].pointer("/status/allocation"), None);
        carry_out(&mut world, &effects);
        let of = |name: &str| ObjectRef {
            kind: Kind::ResourceClaim,
            namespace: "default".to_owned(),
            name: name.to_owned(),
        };
        let objects = world.objects().expect("objects");
        assert!(objects.get(&of("first-extended-resources-x7k2p")).is_none());
    }
}

/// A class, a volume of it on one node, a class whose volumes are made, a claim on each, and a pod that
/// mounts both.
const VOLUMES: &str = "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: local}\n\
    provisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n\
    ---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: made}\n\
    provisioner: disk.example.com\nvolumeBindingMode: WaitForFirstConsumer\n\
    ---\napiVersion: v1\nkind: PersistentVolume\n\
    metadata: {name: disk-2, uid: disk-2-uid, resourceVersion: '7'}\n\
    spec: {capacity: {storage: 100Gi}, accessModes: [ReadWriteOnce], storageClassName: local, \
    nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n2]}]}]}}}\n\
    status: {phase: Available}\n\
    ---\napiVersion: v1\nkind: PersistentVolumeClaim\n\
    metadata: {name: data, namespace: default, uid: data-uid, resourceVersion: '8'}\n\
    spec: {storageClassName: local, accessModes: [ReadWriteOnce], resources: {requests: {storage: 50Gi}}}\n\
    ---\napiVersion: v1\nkind: PersistentVolumeClaim\n\
    metadata: {name: scratch, namespace: default, uid: scratch-uid, resourceVersion: '9'}\n\
    spec: {storageClassName: made, accessModes: [ReadWriteOnce], resources: {requests: {storage: 5Gi}}}\n\
    ---\napiVersion: v1\nkind: Pod\nmetadata: {name: trainer, namespace: default, uid: trainer-uid}\n\
    spec: {containers: [{name: main}], volumes: [{name: scratch, persistentVolumeClaim: {claimName: \
    scratch}}, {name: config, configMap: {name: c}}, {name: data, persistentVolumeClaim: {claimName: data}}]}\n";

#[test]
fn volumes_are_kept_and_made_before_the_pod_is_bound() {
    let mut world = world(&(node("n1", "8") + &node("n2", "8") + VOLUMES));
    let plan = decided(&mut world);
    let effects = raise(&world, &plan);
    let documents = manifests(&effects);
    assert_eq!(
        documents,
        [
            json!({
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": "scratch",
                    "namespace": "default",
                    "uid": "scratch-uid",
                    "annotations": {"volume.kubernetes.io/selected-node": "n2"},
                },
            }),
            json!({
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {
                    "name": "disk-2",
                    "uid": "disk-2-uid",
                    "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
                },
                "spec": {"claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": "default",
                    "name": "data",
                    "uid": "data-uid",
                    "resourceVersion": "8",
                }},
            }),
            json!({
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "trainer", "namespace": "default", "uid": "trainer-uid"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n2"},
            }),
        ]
    );
    let bind = effects.last().expect("a binding");
    assert_eq!(bind.after.len(), 2, "the binding waits for both");
    carry_out(&mut world, &effects);
    assert!(decided(&mut world).decision.acts.is_empty(), "nothing is left to decide");
}
