//! Slices, selectors, taint rules and links.

use phalanx_engine::{
    AttributeValue, DeviceKey, Effect, Match, PoolKey, Reach, Reason, SelectorId, Traits,
};

use phalanx_objects::{Kind, ObjectRef};

use super::{ObjectEvent, World};
use crate::compat::{Compat, Version};

/// A node of four GPUs, the last with less memory; `domain` is theirs in pairs.
const FLEET: &str = r#"
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s1}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {domain: {string: a}, uuid: {string: GPU-AA}, index: {int: 0}}, capacity: {memory: {value: 80Gi}}}
  - {name: gpu-1, attributes: {domain: {string: a}, uuid: {string: GPU-AB}, index: {int: 1}}, capacity: {memory: {value: 81920Mi}}}
  - {name: gpu-2, attributes: {domain: {string: b}, uuid: {string: GPU-AC}, index: {int: 2}}, capacity: {memory: {value: 80Gi}}, taints: [{key: sick, effect: NoSchedule}, {key: note, effect: None}]}
  - {name: gpu-3, attributes: {domain: {string: b}, uuid: {string: GPU-AD}, index: {int: 3}}, capacity: {memory: {value: 24Gi}}}
---
"#;

fn template(name: &str, devices: &str) -> String {
    format!(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {{name: {name}}}\n\
         spec:\n  spec:\n    devices:\n{devices}\n---\n"
    )
}

const LARGE: &str = r#"
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu
          count: 2
          selectors:
          - {cel: {expression: 'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'}}
      constraints: [{matchAttribute: gpu.example.com/domain}]
"#;

fn traits<'a>(world: &'a World, device: &str) -> &'a Traits {
    let devices = world.pool("n1").expect("pool").slices.iter().flat_map(|s| &s.devices);
    let mut found = devices.filter(|d| d.name.as_str() == device);
    &found.next().expect("the device").traits
}

fn selector_of(world: &World, text: &str) -> SelectorId {
    let is = |id: &SelectorId| world.lowering.selector_text(*id) == Some(text);
    (0..9).map(SelectorId).find(is).expect("the selector")
}

#[test]
fn selectors_are_asked_once_for_devices_that_are_alike_to_them() {
    let world = World::of(&format!("{FLEET}{}", template("large", LARGE)));
    let large = "device.capacity[\"gpu.example.com\"].memory.compareTo(quantity(\"40Gi\")) >= 0";
    assert_eq!(world.verdicts("n1", "gpu-0").get(large), Some(&Match::Yes));
    assert_eq!(world.verdicts("n1", "gpu-3").get(large), Some(&Match::No));
    let class = "device.driver == \"gpu.example.com\"";
    assert_eq!(world.verdicts("n1", "gpu-3").get(class), Some(&Match::Yes));
    assert_eq!(traits(&world, "gpu-0").profile, traits(&world, "gpu-2").profile);
    assert_ne!(traits(&world, "gpu-0").profile, traits(&world, "gpu-3").profile);
    let selector = selector_of(&world, large);
    let key = |device: &str| DeviceKey {
        pool: PoolKey { driver: "gpu.example.com".into(), pool: "n1".into() },
        device: device.into(),
    };
    assert_eq!(world.lowering.explain(selector, &key("gpu-0")), None);
    let failing = world.lowering.explain(selector, &key("gpu-3")).expect("a part");
    assert_eq!(failing.values[0].1, "24Gi");
    let domain = ("gpu.example.com/domain".into(), AttributeValue::String("a".into()));
    assert_eq!(*traits(&world, "gpu-0").attributes, [domain]);
}

#[test]
fn a_selector_that_reads_more_lowers_the_pools_again() {
    let mut world = World::of(FLEET);
    assert!(traits(&world, "gpu-0").attributes.is_empty());
    assert_eq!(traits(&world, "gpu-0").profile, traits(&world, "gpu-3").profile);
    world.add(&template("large", LARGE));
    let index = r#"
      requests:
      - {name: r, exactly: {deviceClassName: gpu, selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].index < 2'}}]}}
"#;
    world.add(&template("low", index));
    let low = "device.attributes[\"gpu.example.com\"].index < 2";
    assert_eq!(world.verdicts("n1", "gpu-1").get(low), Some(&Match::Yes));
    assert_eq!(world.verdicts("n1", "gpu-2").get(low), Some(&Match::No));
    assert_ne!(traits(&world, "gpu-0").profile, traits(&world, "gpu-2").profile);
}

fn gone(kind: Kind, namespace: &str, name: &str) -> ObjectEvent {
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    ObjectEvent::Deleted(ObjectRef { kind, namespace, name }.into())
}

#[test]
fn what_nobody_compares_any_more_is_not_lowered() {
    let slice = FLEET.replace("index: {int: 0}", "resource.kubernetes.io/numaNode: {int: 1}");
    let mut world = World::of(&format!("{slice}{}", template("large", LARGE)));
    assert_eq!(traits(&world, "gpu-0").attributes.len(), 1);
    // Where it sits is known beside that, whoever wishes for nearness.
    assert_eq!(traits(&world, "gpu-0").place.numa.as_deref(), Some("1"));
    world.lowering.absorb(gone(Kind::ResourceClaimTemplate, "default", "large"));
    world.settle();
    assert_eq!(traits(&world, "gpu-0").attributes.len(), 0);
    assert_eq!(traits(&world, "gpu-0").profile, traits(&world, "gpu-3").profile);
}

#[test]
fn errors_are_values_and_a_broken_attribute_is_one_for_every_selector() {
    let slice = r#"
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s2}
spec:
  driver: gpu.example.com
  nodeName: n2
  pool: {name: n2, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: fine, attributes: {index: {int: 0}}}
  - {name: broken, attributes: {index: {int: 0}, v: {version: 'one'}}}
---
"#;
    let ask = r#"
      requests:
      - {name: r, exactly: {deviceClassName: gpu, selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "x"'}}]}}
"#;
    let world = World::of(&format!("{FLEET}{slice}{}", template("t", ask)));
    let class = "device.driver == \"gpu.example.com\"";
    let model = "device.attributes[\"gpu.example.com\"].model == \"x\"";
    assert_eq!(world.verdicts("n2", "fine").get(class), Some(&Match::Yes));
    assert_eq!(world.verdicts("n2", "fine").get(model), Some(&Match::Error));
    assert_eq!(world.verdicts("n2", "broken").get(class), Some(&Match::Error));
}

#[test]
fn an_expression_that_does_not_compile_is_a_fault_and_a_finding() {
    let bad = r#"
      requests:
      - {name: r, exactly: {deviceClassName: gpu, selectors: [{cel: {expression: 'device.capacity["gpu.example.com"].memory >= 40'}}]}}
"#;
    let text = format!(
        "{FLEET}{}apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\n\
         spec: {{containers: [{{name: c}}], resourceClaims: [{{name: c, resourceClaimTemplateName: bad}}]}}\n",
        template("bad", bad)
    );
    let world = World::of(&text);
    assert_eq!(world.fault("pod", "p"), Some(Reason::SelectorInvalid));
    let path = "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression";
    assert!(
        world.says(&["error ResourceClaimTemplate default/bad", path, "1:"]),
        "{:?}",
        world.said()
    );
}

#[test]
fn what_can_not_be_asked_is_a_fault() {
    let fault = |compat: Compat, devices: &str| {
        let text = format!(
            "{FLEET}{}apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\n\
             spec: {{containers: [{{name: c}}], resourceClaims: [{{name: c, resourceClaimTemplateName: t}}]}}\n",
            template("t", devices)
        );
        World::with(compat, &text).fault("pod", "p")
    };
    let now = |devices: &str| fault(Compat::default(), devices);
    let exactly = |body: &str| {
        now(&format!("      requests: [{{name: r, exactly: {{deviceClassName: gpu, {body}}}}}]"))
    };
    let unsupported = Some(Reason::RequestUnsupported);
    assert_eq!(exactly("count: 32"), None);
    assert_eq!(exactly("count: 33"), Some(Reason::TooManyDevices));
    assert_eq!(exactly("allocationMode: Some"), unsupported);
    assert_eq!(exactly("derivedAttributes: [{name: a/b, expression: '1'}]"), unsupported);
    assert_eq!(exactly("selectors: [{}]"), unsupported);
    assert_eq!(now("      requests: [{name: r}]"), unsupported);
    assert_eq!(now("      constraints: [{}]"), unsupported);
    let missing = "      requests: [{name: r, exactly: {deviceClassName: none}}]";
    assert_eq!(now(missing), Some(Reason::ClassMissing));
    let list = "      requests: [{name: r, firstAvailable: [{name: a, deviceClassName: gpu, count: 40}, {name: b, deviceClassName: gpu}]}]";
    assert_eq!(now(list), None, "a list counts with its least alternative");
    let off = Compat::new(Version::V1_34).with_gates("DRAPrioritizedList=false").expect("gates");
    assert_eq!(fault(off, list), unsupported);
    let share = "      requests: [{name: r, exactly: {deviceClassName: gpu, capacity: {requests: {memory: 1Gi}}}}]";
    assert_eq!(fault(Compat::new(Version::V1_34), share), unsupported);
    assert_eq!(now(share), None);
}

#[test]
fn taint_rules_add_up_and_go() {
    let rule = |name: &str, selector: &str| {
        format!(
            "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {{name: {name}}}\n\
             spec: {{{selector} taint: {{key: {name}, effect: NoExecute}}}}\n---\n"
        )
    };
    let mut world = World::of(FLEET);
    let taints = |world: &World, device: &str| -> Vec<(String, Effect)> {
        traits(world, device).taints.iter().map(|t| (t.key.to_string(), t.effect)).collect()
    };
    let sick = ("sick".to_owned(), Effect::NoSchedule);
    assert_eq!(taints(&world, "gpu-2"), std::slice::from_ref(&sick));
    world.add(&rule("none", ""));
    world.add(&rule("one", "deviceSelector: {driver: gpu.example.com, device: gpu-2},"));
    world.add(&rule("other", "deviceSelector: {driver: nic.example.com},"));
    assert_eq!(taints(&world, "gpu-2"), [sick.clone(), ("one".to_owned(), Effect::NoExecute)]);
    assert_eq!(taints(&world, "gpu-0"), []);
    world.add(&rule("one", "deviceSelector: {},"));
    assert_eq!(taints(&world, "gpu-0").len(), 1);
    let old = World::with(
        Compat::new(Version::V1_36),
        &format!("{FLEET}{}", rule("one", "deviceSelector: {},")),
    );
    assert_eq!(taints(&old, "gpu-0"), []);
    assert!(old.says(&["warning DeviceTaintRule one", "DRADeviceTaintRules is off"]));
}

#[test]
fn the_three_ways_to_name_nodes() {
    let slice = |name: &str, reach: &str, devices: &str| {
        format!(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: {name}}}\n\
             spec:\n  driver: d\n  pool: {{name: {name}, generation: 1, resourceSliceCount: 1}}\n  \
             {reach}\n  devices: [{devices}]\n---\n"
        )
    };
    let term =
        "nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: z, operator: Exists}]}]}";
    let text = [
        slice("all", "allNodes: true", ""),
        slice("some", term, ""),
        slice("each", "perDeviceNodeSelection: true", "{name: d0, nodeName: n1}, {name: d1}"),
        slice("none", "", ""),
        slice("two", "nodeSelector: {nodeSelectorTerms: [{}, {}]}", ""),
    ];
    let world = World::of(&text.concat());
    let reach = |pool: &str| world.pool(pool).expect("pool").slices[0].reach.clone();
    assert_eq!(reach("all"), Reach::All);
    assert!(matches!(reach("some"), Reach::Selector(term) if term.len() == 1));
    assert_eq!((reach("each"), reach("none")), (Reach::PerDevice, Reach::Unknown));
    assert_eq!(reach("two"), Reach::Unknown);
    assert!(world.says(&["error ResourceSlice two", "exactly one term"]));
    let devices = &world.pool("each").expect("pool").slices[0].devices;
    assert!(matches!(&devices[0].traits.reach, Some(Reach::Node(node)) if node.0.as_str() == "n1"));
    assert_eq!(devices[1].traits.reach, Some(Reach::Unknown));
}

fn island(world: &World, label: &str) -> Option<u16> {
    let links = world.links("n1").expect("links");
    links.members.iter().find(|m| m.label.as_str() == label).expect("member").domains[0]
}

#[test]
fn members_are_matched_by_name_bus_or_uuid() {
    let topology = "
apiVersion: phalanx.dev/v1alpha1
kind: NodeTopology
metadata: {name: n1}
spec:
  devices:
  - {name: left, uuid: gpu-aa}
  - {name: far, uuid: GPU-ZZ}
  links: [{a: left, b: gpu-1, links: 4}]
  islands: [{name: bridge, members: [left, gpu-1]}, {name: other, members: [gpu-2, gpu-1]}]
";
    let mut world = World::of(topology);
    assert!(world.says(&["info NodeTopology n1", "No ResourceSlice publishes devices"]));
    world.add(FLEET);
    let links = world.links("n1").expect("links");
    let device = |label: &str| {
        let member = links.members.iter().find(|m| m.label.as_str() == label).expect("member");
        member.device.as_ref().map(|key| key.device.to_string())
    };
    assert_eq!(device("left").as_deref(), Some("gpu-0"));
    assert_eq!(device("gpu-1").as_deref(), Some("gpu-1"));
    assert_eq!(device("far"), None);
    let nvlinks = phalanx_engine::Link::new(phalanx_engine::LinkClass::Nvlink, 4);
    assert_eq!(links.pairs, [(0, 2, nvlinks)]);
    assert!(links.nominal, "no product and no bandwidth is given");
    assert!(world.says(&["warning NodeTopology n1", "has the device far"]), "{:?}", world.said());
    assert!(world.says(&["warning NodeTopology n1", "on island bridge and on island other"]));
    assert_eq!(island(&world, "left"), island(&world, "gpu-1"));
    assert_ne!(island(&world, "left"), island(&world, "gpu-2"));
    assert!(island(&world, "far").is_some(), "it is on no named island: alone");
}

#[test]
fn a_nic_that_no_slice_publishes_is_as_it_should_be() {
    let topology = "
apiVersion: phalanx.dev/v1alpha1
kind: NodeTopology
metadata: {name: n1}
spec:
  devices: [{name: gpu-0, kind: gpu}, {name: far, kind: KIND}]
  links: [{a: gpu-0, b: far, class: PIX}]
";
    let of = |kind: &str| World::of(&(topology.replace("KIND", kind) + "---\n" + FLEET));
    assert_eq!(of("nic").said(), Vec::<String>::new());
    assert!(of("gpu").says(&["warning NodeTopology n1", "has the device far. Its links"]));
}

#[test]
fn a_topology_may_name_pools_of_its_own_and_follows_them() {
    let mut world = World::of(
        "
apiVersion: phalanx.dev/v1alpha1
kind: NodeTopology
metadata: {name: other}
spec: {nodeName: n1, devices: [{name: d}]}
---
apiVersion: phalanx.dev/v1alpha1
kind: NodeTopology
metadata: {name: some}
spec: {nodeName: n1, devices: [{name: nic, driver: nic.example.com, pool: rack, device: d7}]}
",
    );
    assert!(world.says(&["warning NodeTopology some", "NodeTopology other speaks of node n1 too"]));
    world.lowering.absorb(gone(Kind::NodeTopology, "", "other"));
    world.settle();
    let device = |world: &World| world.links("n1").expect("links").members[0].device.clone();
    assert_eq!(device(&world), None);
    world.add(
        "
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: nic.example.com
  allNodes: true
  pool: {name: rack, generation: 1, resourceSliceCount: 1}
  devices: [{name: d7}]
",
    );
    assert!(device(&world).is_some());
    assert_eq!(world.said(), Vec::<String>::new());
}

#[test]
fn without_named_islands_nvlinks_make_one_where_every_pair_has_them() {
    let topology = |links: &str| {
        World::of(&format!(
            "apiVersion: phalanx.dev/v1alpha1\nkind: NodeTopology\nmetadata: {{name: n1}}\n\
             spec: {{links: [{links}]}}\n"
        ))
    };
    let pair = topology("{a: g0, b: g1, class: NVL}, {a: g1, b: g2, class: SYS}");
    assert!(island(&pair, "g0").is_some());
    assert_eq!(island(&pair, "g0"), island(&pair, "g1"));
    assert_ne!(island(&pair, "g0"), island(&pair, "g2"));
    let chain = topology(
        "{a: g0, b: g1, class: NVL}, {a: g1, b: g2, class: NVL}, {a: g0, b: g2, class: SYS}",
    );
    assert_eq!(island(&chain, "g0"), None, "joined, and not all to all");
    let twice = topology("{a: g0, b: g1, class: NVL}, {a: g1, b: g0, class: PIX}");
    assert!(twice.says(&["given twice and differently: NVLink and PIX"]));
}

/// A pod that waits for the devices of a template.
fn waiting(template: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: waits}}\nspec:\n  containers: [{{name: c}}]\n  \
         resourceClaims: [{{name: d, resourceClaimTemplateName: {template}}}]\n---\n"
    )
}

#[test]
fn a_selector_that_errs_on_a_device_says_so_while_a_pod_waits_for_it() {
    let devices = r#"
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu
          selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "H100"'}}]
"#;
    let (_, slice) = FLEET.split_once("---").expect("class and slice");
    let other = slice.replace("s1", "s2").replace("n1", "n2").replace("driver: gpu", "driver: nic");
    let mut world = World::of(&format!("{FLEET}{other}{}", template("t", devices)));
    assert!(!world.says(&["ends in an error"]), "nobody waits: {:?}", world.said());
    world.add(&waiting("t"));
    let parts = [
        "warning ResourceClaimTemplate default/t spec.spec.devices.requests[0].exactly.selectors[0]",
        "on 4 devices, such as gpu.example.com/n1/gpu-0: no such key: model.",
        "By default all 4 are left out",
    ];
    assert!(world.says(&parts), "{:?}", world.said());
    let by_driver = "device.driver == \"gpu.example.com\"";
    let by_index = "device.attributes[\"gpu.example.com\"].index < 3'}}, {cel: {expression: \
                    'device.attributes[\"gpu.example.com\"].sick";
    let class = FLEET.replace(by_driver, by_index);
    assert_ne!(class, FLEET);
    world.add(&class);
    let parts = ["warning DeviceClass gpu spec.selectors[1].cel.expression", "on 3 devices"];
    assert!(world.says(&parts), "{:?}", world.said());
    assert!(!world.says(&["ResourceClaimTemplate", "ends in an error"]), "{:?}", world.said());
    world.lowering.absorb(gone(Kind::Pod, "default", "waits"));
    world.settle();
    assert!(!world.says(&["ends in an error"]), "{:?}", world.said());
}

#[test]
fn bus_addresses_are_compared_in_their_long_form() {
    use crate::lower::links::bus_address;
    for text in ["0000:0F:00.0", "0f:00.0", "00000000:0f:00.0", " 0000:0f:00.0"] {
        assert_eq!(bus_address(text), "0000:0f:00.0", "{text}");
    }
    assert_eq!(bus_address("00010000:0F:00.0"), "10000:0f:00.0");
}

#[test]
fn contradicting_sources_are_named_with_both_values() {
    let world = World::of(
        "
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s1}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {resource.kubernetes.io/numaNode: {int: 1}, resource.kubernetes.io/pciBusID: {string: '0000:01:00.0'}}
  - name: gpu-0-mig
    attributes: {resource.kubernetes.io/pciBusID: {string: '0000:01:00.0'}}
---
apiVersion: phalanx.dev/v1alpha1
kind: NodeTopology
metadata: {name: n1}
spec:
  devices: [{name: card, pciBusID: '01:00.0', numaNode: 0}, {name: other, numaNode: 0}]
  links: [{a: card, b: other, class: PIX}]
",
    );
    assert!(world.says(&["warning NodeTopology n1", "on NUMA node 0 here and on NUMA node 1"]));
    let links = world.links("n1").expect("links");
    let parts: Vec<_> = links.members.iter().filter(|m| m.label.as_str() == "card").collect();
    assert_eq!(parts.len(), 2, "each part of a card is a member");
    assert_eq!(parts[0].domains, parts[1].domains);
    assert_eq!(links.pairs.len(), 2);
}

#[test]
fn what_a_partition_took_is_kept_when_its_slice_no_longer_has_it() {
    let slice = |device: &str| {
        format!(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: parts}}\n\
             spec:\n  driver: gpu.example.com\n  nodeName: n1\n  \
             pool: {{name: n1, generation: 1, resourceSliceCount: 2}}\n  devices:\n  \
             - {{name: {device}, consumesCounters: [{{counterSet: c, counters: {{memory: \
             {{value: 1}}}}}}]}}\n---\n"
        )
    };
    let rest = r#"
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: counters}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 2}
  sharedCounters: [{name: c, counters: {memory: {value: 2}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: held, namespace: default}
status:
  allocation: {devices: {results: [{request: r, driver: gpu.example.com, pool: n1, device: half}]}}
"#;
    let mut world = World::of(&format!("{}{rest}", slice("half")));
    let consumes = |world: &World| {
        let claim = world.claim("held").expect("the claim");
        claim.held.as_ref().expect("an allocation").devices[0].consumes.counters.len()
    };
    assert_eq!(consumes(&world), 0, "the slice says it");
    world.add(&slice("other"));
    assert_eq!(consumes(&world), 1, "the slice said it");
    let told = world.findings.iter().any(|f| f.message.contains("last published still counts"));
    assert!(told, "{:?}", world.findings);
    world.add(&slice("half"));
    assert_eq!(consumes(&world), 0, "the slice says it again");
}
