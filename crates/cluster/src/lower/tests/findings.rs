//! What is said of input that is not wrong in one object alone, and of what is not checked.

use phalanx_engine::Reason;
use phalanx_objects::{Kind, ObjectRef};

use super::{ObjectEvent, World};
use crate::compat::{Compat, Version};

const NODE: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 4, pods: 10}}
---
";

fn slice(name: &str, spec: &str, devices: &str) -> String {
    format!(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: {name}}}\nspec:\n  \
         driver: d\n  nodeName: n1\n  {spec}\n  devices: [{devices}]\n---\n"
    )
}

fn pod(name: &str, spec: &str) -> String {
    let containers = if spec.contains("containers") { "" } else { "containers: [{name: c}], " };
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{{containers}{spec}}}\n---\n"
    )
}

fn gone(world: &mut World, kind: Kind, namespace: &str, name: &str) {
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    world.lowering.absorb(ObjectEvent::Deleted(ObjectRef { kind, namespace, name }.into()));
    world.settle();
}

#[test]
fn a_counter_keeps_no_required_nearness() {
    let asks = "spec: {restartPolicy: Never, containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2}}}]}";
    let text = |wish: &str| {
        format!(
            "{NODE}apiVersion: v1\nkind: Pod\n\
             metadata: {{name: p, annotations: {{phalanx.dev/align: island={wish}}}}}\n{asks}\n---\n\
             apiVersion: batch/v1\nkind: Job\n\
             metadata: {{name: j, annotations: {{phalanx.dev/align: island={wish}}}}}\n\
             spec: {{template: {{{asks}}}}}\n"
        )
    };
    let world = World::of(&text("required"));
    for kind in [("pod", "p"), ("job", "j")] {
        assert_eq!(world.fault(kind.0, kind.1), Some(Reason::RequestUnsupported), "{kind:?}");
    }
    let request = &world.group("pod", "p").expect("p").roles[0].request;
    let fault = request.fault.as_ref().expect("a fault");
    assert_eq!(fault.subject.as_str(), "island=required for nvidia.com/gpu");
    assert!(fault.detail.contains("ask for them by a ResourceClaim"), "{}", fault.detail);
    let world = World::of(&text("preferred"));
    assert_eq!((world.fault("pod", "p"), world.fault("job", "j")), (None, None));
    for object in ["Pod default/p", "Job default/j"] {
        let parts = ["warning", object, "island=preferred has no effect on nvidia.com/gpu"];
        assert!(world.says(&parts), "{:?}", world.said());
    }
}

#[test]
fn a_pool_that_lacks_slices_or_contradicts_itself_is_named() {
    let pool = |n: u32| format!("pool: {{name: p, generation: 2, resourceSliceCount: {n}}}");
    let mut world = World::of(&slice("s1", &pool(3), "{name: d0}"));
    let parts = ["warning ResourceSlice s1", "Pool p of driver d", "1 of 3 slices of generation 2"];
    assert!(world.says(&parts), "{:?}", world.said());
    world.add(&slice("s2", &pool(3), "{name: d1}"));
    assert!(world.says(&["2 of 3 slices"]));
    world.add(&slice("s3", &pool(3), "{name: d0}"));
    assert!(world.says(&["contradicts itself: device d0 is there twice"]), "{:?}", world.said());
    gone(&mut world, Kind::ResourceSlice, "", "s3");
    let uses = "{name: d2, consumesCounters: [{counterSet: memory, counters: {a: {value: 1}}}]}";
    world.add(&slice("s3", &pool(3), uses));
    let parts = ["ResourceSlice s3", "device d2 counts on counter set memory, which it lacks"];
    assert!(world.says(&parts), "{:?}", world.said());
    world.add(&slice("s3", &pool(3), "{name: d2}"));
    assert_eq!(world.said(), Vec::<String>::new());
}

#[test]
fn two_nodes_may_have_devices_of_one_name() {
    let pool = "pool: {name: p, generation: 1, resourceSliceCount: 2}";
    let other = slice("s2", pool, "{name: d0}").replace("nodeName: n1", "nodeName: n2");
    let world = World::of(&(slice("s1", pool, "{name: d0}") + &other));
    assert!(!world.says(&["twice"]), "{:?}", world.said());
}

#[test]
fn what_claims_hold_is_compared_with_slices_and_with_each_other() {
    let claim = |name: &str, device: &str| {
        format!(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: {name}}}\n\
             spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: c}}}}]}}}}\n\
             status: {{allocation: {{devices: {{results: [{{request: r, driver: d, pool: p, \
             device: {device}}}]}}}}}}\n---\n"
        )
    };
    let pool = "pool: {name: p, generation: 1, resourceSliceCount: 1}";
    let text = slice("s1", pool, "{name: d0}") + &claim("a", "d0") + &claim("b", "d7");
    let mut world = World::of(&text);
    let lost = ["warning ResourceClaim default/b", "device d7 of pool p (driver d), which no"];
    assert!(world.says(&lost), "{:?}", world.said());
    assert!(!world.says(&["so does claim"]));
    gone(&mut world, Kind::ResourceClaim, "default", "b");
    world.add(&claim("b", "d0"));
    assert!(!world.says(&lost));
    let twice =
        ["warning ResourceClaim default/b", "device d0 of pool p, and so does claim default/a"];
    assert!(world.says(&twice), "{:?}", world.said());
    gone(&mut world, Kind::ResourceClaim, "default", "a");
    assert!(!world.says(&["so does claim"]));
}

#[test]
fn a_set_that_is_not_linked_all_to_all_is_said_to_be_no_island() {
    let topology = |spec: &str| {
        World::of(&format!(
            "apiVersion: phalanx.dev/v1alpha1\nkind: NodeTopology\nmetadata: {{name: n1}}\n\
             spec: {{{spec}}}\n"
        ))
    };
    let ring = "{a: a, b: b, links: 4}, {a: b, b: c, links: 4}, {a: c, b: d, links: 4}, {a: d, b: a, links: 4}";
    let world = topology(&format!("links: [{ring}]"));
    let parts =
        ["info NodeTopology n1 spec.links", "join 4 devices, a among", "2 of their 6 pairs"];
    assert!(world.says(&parts), "{:?}", world.said());
    let world = topology("links: [{a: a, b: b, class: NVL, links: 4}]");
    assert!(!world.says(&["no island"]));
    let members = &world.links("n1").expect("links").members;
    assert!(members[0].domains[0].is_some() && members[0].domains[0] == members[1].domains[0]);
    let twins = topology(
        "devices: [{name: a, uuid: GPU-1, pciBusID: '01:00.0'}, {name: b, uuid: gpu-1, pciBusID: '0000:01:00.0'}]",
    );
    assert!(twins.says(&["warning", "spec.devices[1].uuid", "Devices a and b have the same uuid"]));
    assert!(twins.says(&["spec.devices[1].pciBusID"]), "{:?}", twins.said());
}

#[test]
fn what_could_not_be_read_is_not_called_missing() {
    let claims = "resourceClaims: [{name: c, resourceClaimTemplateName: t}, {name: e, resourceClaimName: x}]";
    let template = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t}\n\
        spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}\n---\n";
    let mut world = World::of(&(NODE.to_owned() + &pod("p", claims)));
    let detail = |world: &World| {
        let request = &world.group("pod", "p").expect("p").roles[0].request;
        let fault = request.fault.clone().expect("a fault");
        (fault.reason, fault.detail.to_string())
    };
    assert_eq!(detail(&world), (Reason::ClaimMissing, "e".to_owned()));
    let unread = |world: &mut World, kind: Kind, namespace: &str, name: &str| {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        world.lowering.unread(ObjectRef { kind, namespace, name });
        world.settle();
    };
    unread(&mut world, Kind::ResourceClaim, "", "x");
    assert_eq!(detail(&world), (Reason::ClaimMissing, "could not be read".to_owned()));
    gone(&mut world, Kind::ResourceClaim, "default", "x");
    assert_eq!(detail(&world), (Reason::ClaimMissing, "e".to_owned()));
    world.add(template);
    assert!(world.says(&["names DeviceClass gpu, which is not in the input"]));
    unread(&mut world, Kind::DeviceClass, "", "gpu");
    assert_eq!(world.said(), Vec::<String>::new());
    unread(&mut world, Kind::ResourceClaimTemplate, "default", "t");
    world.add(template);
    assert_eq!(detail(&world).1, "e", "it has been read since");
}

#[test]
fn an_extended_resource_follows_the_class_that_serves_it() {
    let class = |name: &str, at: u32, resource: &str| {
        format!(
            "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: {name}, \
             creationTimestamp: '2026-01-0{at}T00:00:00Z'}}\n\
             spec: {{extendedResourceName: {resource}}}\n---\n"
        )
    };
    let asks =
        |name: &str| format!("containers: [{{name: c, resources: {{limits: {{{name}: 2}}}}}}]");
    let implicit = "deviceclass.resource.kubernetes.io/gpu";
    let text = NODE.to_owned() + &pod("p", &asks("example.com/gpu")) + &pod("q", &asks(implicit));
    let mut world = World::of(&text);
    let of = |world: &World, name: &str| {
        let request = &world.group("pod", name).expect("a pod").roles[0].request;
        let class = |e: &phalanx_engine::Extended| {
            assert_eq!(e.requests[0].name.as_str(), "container-0-request-0");
            e.requests[0].alternatives[0].class.to_string()
        };
        request.extended.iter().map(class).collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!((of(&world, "p"), of(&world, "q")), (vec![], vec![]));
    world.add(&class("gpu", 2, "example.com/gpu"));
    assert_eq!((of(&world, "p"), of(&world, "q")), (vec!["gpu".into()], vec!["gpu".into()]));
    world.add(&class("older", 1, "example.com/gpu"));
    assert_eq!(of(&world, "p"), ["gpu"]);
    world.add(&class("also", 2, "example.com/gpu"));
    assert_eq!(of(&world, "p"), ["also"], "of equally old ones the first by name");
    gone(&mut world, Kind::DeviceClass, "", "also");
    gone(&mut world, Kind::DeviceClass, "", "gpu");
    assert_eq!(of(&world, "p"), ["older"]);
    assert_eq!(of(&world, "q"), none);
    world.add(&class("older", 1, "example.com/other"));
    assert_eq!(of(&world, "p"), none);
    let old = Compat::new(Version::V1_35);
    let served = World::with(old, &(text + &class("gpu", 1, "example.com/gpu")));
    assert_eq!(of(&served, "p"), none, "the gate is off");
}
