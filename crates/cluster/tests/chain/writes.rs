//! The writes of a plan from end to end, and that objects and facts are told the same events.

use phalanx_cluster::raise::{GuardVersion, manifests, raise};
use phalanx_cluster::{Gone, ObjectEvent, Source};
use phalanx_objects::read::{Item, read};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::support::{cpu_pod, decided, document, gpus, node, pod, shared_claim, user_of, world};

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
    assert_eq!(documents[0].pointer("/status/allocation"), None);
    let to = documents[1].pointer("/status/allocation/devices/results/0/pool");
    assert_eq!(to.and_then(serde_json::Value::as_str), Some("n2"));
    let said = document(&mut world);
    let notes = &pod(&said, "next").notes;
    assert!(notes.iter().any(|note| note.contains("claim idle is allocated where")), "{notes:?}");
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
