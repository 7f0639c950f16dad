//! Admission as it is played: what each plugin adds and refuses, and whom quotas keep out.

use phalanx_engine::Reason;

use phalanx_objects::{Kind, ObjectRef};

use super::{ObjectEvent, World};
use crate::compat::Compat;

/// A pod of the namespace `team` that is not made yet.
fn pod(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: team}}\nspec: {spec}\n"
    )
}

/// A pod that asks for so much CPU.
fn cpu(name: &str, cpu: &str) -> String {
    pod(name, &format!("{{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}"))
}

fn job(name: &str, parallelism: u32, spec: &str) -> String {
    format!(
        "---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, namespace: team}}\nspec: {{parallelism: \
         {parallelism}, completions: {parallelism}, template: {{spec: {spec}}}}}\n"
    )
}

fn limits(limits: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: LimitRange\nmetadata: {{name: usual, namespace: team}}\nspec: {{limits: \
         [{limits}]}}\n"
    )
}

fn quota(spec: &str, used: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: q, namespace: team}}\nspec: {spec}\nstatus: \
         {{used: {used}}}\n"
    )
}

/// How many of a group's first role are admitted; none where all are.
fn admitted(world: &World, kind: &str, name: &str) -> Option<u32> {
    let group = world.group(kind, name).expect("the group");
    group.roles[0].admits.as_ref().map(|admits| admits.most)
}

#[test]
fn bounds_hold_for_containers_and_for_pods() {
    let refused = Some(Reason::AdmissionRefused);
    let asks = |resources: &str| {
        pod("p", &format!("{{containers: [{{name: c, resources: {resources}}}]}}"))
    };
    for (bound, resources, fault) in [
        ("{type: Container, min: {cpu: 2}}", "{requests: {cpu: 1}}", refused),
        ("{type: Container, min: {cpu: 2}}", "{requests: {cpu: 2}}", None),
        // What is missing is the minimum then.
        ("{type: Container, min: {cpu: 2}}", "{}", None),
        ("{type: Container, max: {cpu: 2}}", "{limits: {cpu: 3}}", refused),
        ("{type: Container, max: {cpu: 2}}", "{}", None),
        ("{type: Pod, max: {cpu: 2}}", "{requests: {cpu: 1}}", refused),
        ("{type: Pod, max: {cpu: 2}}", "{limits: {cpu: 2}}", None),
        ("{type: Pod, min: {cpu: 2}}", "{}", refused),
        (
            "{type: Container, maxLimitRequestRatio: {cpu: 2}}",
            "{requests: {cpu: 1}, limits: {cpu: 3}}",
            refused,
        ),
        (
            "{type: Container, maxLimitRequestRatio: {cpu: 2}}",
            "{requests: {cpu: 1}, limits: {cpu: 2}}",
            None,
        ),
        ("{type: Container, maxLimitRequestRatio: {cpu: 2}}", "{}", refused),
        ("{type: PersistentVolumeClaim, max: {cpu: 1}}", "{limits: {cpu: 3}}", None),
    ] {
        let world = World::of(&format!("{}{}", limits(bound), asks(resources)));
        assert_eq!(world.fault("pod", "p"), fault, "{bound} {resources} {:?}", world.said());
    }
}

#[test]
fn a_default_enters_the_request() {
    let range = limits("{type: Container, default: {cpu: 3}, defaultRequest: {memory: 1Gi}}");
    let world = World::of(&format!("{range}{}", pod("p", "{containers: [{name: c}]}")));
    let resources = world.group("pod", "p").expect("the pod").roles[0].request.resources.clone();
    assert_eq!((resources.cpu_milli, resources.memory_bytes), (3000, 1 << 30));
    // What exists went through admission, and so did what is on a node.
    let made = pod("p", "{containers: [{name: c}]}").replace("team}", "team, uid: u}");
    let world = World::of(&format!("{range}{made}"));
    let resources = world.group("pod", "p").expect("the pod").roles[0].request.resources.clone();
    assert_eq!(resources.cpu_milli, 0);
}

#[test]
fn a_class_is_missing_only_where_there_are_others() {
    let text = pod("p", "{runtimeClassName: a, priorityClassName: b, containers: [{name: c}]}");
    let mut world = World::of(&text);
    assert_eq!(world.fault("pod", "p"), None);
    assert!(world.says(&["warning", "RuntimeClass a is not in the input"]));
    assert!(world.says(&["warning", "PriorityClass b is not in the input"]));
    world.add("{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: other}}");
    assert_eq!(world.fault("pod", "p"), Some(Reason::AdmissionRefused));
    assert!(world.says(&["error", "RuntimeClass a does not exist"]));
    world.add("{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: a}}");
    assert_eq!(world.fault("pod", "p"), None);
    world.add("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: other}, value: 1}");
    assert!(world.says(&["error", "PriorityClass b does not exist"]));
    assert_eq!(world.fault("pod", "p"), Some(Reason::AdmissionRefused));
}

#[test]
fn a_class_that_could_not_be_read_is_as_one_that_is_missing() {
    let text = pod("p", "{runtimeClassName: a, priorityClassName: b, containers: [{name: c}]}");
    let mut world = World::of(&text);
    for (kind, name) in [(Kind::RuntimeClass, "a"), (Kind::PriorityClass, "b")] {
        world.lowering.unread(ObjectRef { kind, namespace: String::new(), name: name.to_owned() });
    }
    world.settle();
    assert_eq!(world.fault("pod", "p"), None);
    world.add("{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: other}}");
    world.add("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: other}, value: 1}");
    assert_eq!(world.fault("pod", "p"), Some(Reason::AdmissionRefused));
    for class in ["RuntimeClass a", "PriorityClass b"] {
        assert!(world.says(&["error", class, "could not be read"]), "{:?}", world.said());
    }
}

#[test]
fn what_the_class_says_may_not_be_said_otherwise() {
    let class = "---\napiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: box}\noverhead: \
                 {podFixed: {cpu: 1}}\nscheduling: {nodeSelector: {a: b}}\n---\napiVersion: \
                 scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 9\n\
                 preemptionPolicy: Never\n";
    let refused = Some(Reason::AdmissionRefused);
    for (spec, fault) in [
        ("runtimeClassName: box, overhead: {cpu: 2}", refused),
        ("runtimeClassName: box, overhead: {cpu: 1000m}", None),
        ("overhead: {cpu: 1}", refused),
        ("runtimeClassName: box, nodeSelector: {a: c}", refused),
        ("runtimeClassName: box, nodeSelector: {a: b}", None),
        ("priorityClassName: high, priority: 8", refused),
        ("priorityClassName: high, priority: 9", None),
        ("priority: 8", refused),
        ("priorityClassName: high, preemptionPolicy: PreemptLowerPriority", refused),
        ("priorityClassName: high, preemptionPolicy: Never", None),
        ("priorityClassName: system-cluster-critical", None),
    ] {
        let text =
            format!("{class}{}", pod("p", &format!("{{{spec}, containers: [{{name: c}}]}}")));
        let world = World::of(&text);
        assert_eq!(world.fault("pod", "p"), fault, "{spec} {:?}", world.said());
    }
}

#[test]
fn quotas_are_charged_in_the_order_of_the_input() {
    let q = quota("{hard: {requests.cpu: 5}}", "{requests.cpu: 1}");
    let one = "{containers: [{name: c, resources: {requests: {cpu: 1}}}]}";
    let text = format!("{q}{}{}{}", cpu("a", "2"), job("j", 3, one), cpu("b", "1"));
    let world = World::of(&text);
    assert_eq!(admitted(&world, "pod", "a"), None);
    assert_eq!(admitted(&world, "job", "j"), Some(2));
    assert_eq!(admitted(&world, "pod", "b"), Some(0));
    assert!(world.says(&["warning Job team/j", "Of its 3 pods 2 would be made"]));
    assert!(world.says(&["error Pod team/b", "ResourceQuota team/q is in the way"]));
    assert_eq!(world.fault("pod", "b"), None);
    // More than there ever is, is refused.
    let world = World::of(&format!("{q}{}", cpu("a", "6")));
    assert_eq!(
        (admitted(&world, "pod", "a"), world.fault("pod", "a")),
        (None, Some(Reason::AdmissionRefused))
    );
}

#[test]
fn a_quota_without_a_status_counts_what_is_there() {
    let q = "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: team}\nspec: {hard: \
             {requests.cpu: 3, pods: 2}}\n";
    let there = cpu("there", "2")
        .replace("team}", "team, uid: u}")
        .replace("spec: {", "spec: {nodeName: n1, ");
    let mut world = World::of(&format!("{q}{there}{}{}", cpu("a", "1"), cpu("b", "0")));
    assert_eq!(admitted(&world, "pod", "a"), None);
    assert_eq!(admitted(&world, "pod", "b"), Some(0));
    let gone =
        ObjectRef { kind: Kind::Pod, namespace: "team".to_owned(), name: "there".to_owned() };
    world.lowering.absorb(ObjectEvent::Deleted(gone.into()));
    world.settle();
    assert_eq!(admitted(&world, "pod", "b"), None);
}

#[test]
fn scopes_choose_the_pods_that_are_counted() {
    let counted = |spec: &str, of: &str| {
        let q = quota(&format!("{{hard: {{pods: 1}}, {of}}}"), "{pods: 1}");
        admitted(&World::of(&format!("{q}{}", pod("p", spec))), "pod", "p").is_some()
    };
    let plain = "{containers: [{name: c}]}";
    let timed = "{activeDeadlineSeconds: 5, containers: [{name: c}]}";
    let asking = "{containers: [{name: c, resources: {requests: {cpu: 1}}}]}";
    let high = "{priorityClassName: high, containers: [{name: c}]}";
    let scope = |name: &str| format!("scopes: [{name}]");
    for (spec, name, is) in [
        (timed, "Terminating", true),
        (plain, "Terminating", false),
        (plain, "NotTerminating", true),
        (plain, "BestEffort", true),
        (asking, "BestEffort", false),
        (asking, "NotBestEffort", true),
    ] {
        assert_eq!(counted(spec, &scope(name)), is, "{spec} {name}");
    }
    let selector = |operator: &str, values: &str| {
        format!(
            "scopeSelector: {{matchExpressions: [{{scopeName: PriorityClass, operator: {operator}, values: \
             {values}}}]}}"
        )
    };
    for (spec, operator, values, is) in [
        (high, "In", "[high]", true),
        (high, "In", "[low]", false),
        (high, "NotIn", "[low]", true),
        (plain, "NotIn", "[low]", true),
        (high, "Exists", "[]", true),
        (plain, "Exists", "[]", false),
        (plain, "DoesNotExist", "[]", true),
    ] {
        assert_eq!(counted(spec, &selector(operator, values)), is, "{spec} {operator} {values}");
    }
}

#[test]
fn claims_are_charged_by_class() {
    let template = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t, \
                    namespace: team}\nspec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: \
                    gpu, count: 2}}, {name: b, firstAvailable: [{name: x, deviceClassName: gpu, allocationMode: \
                    All}, {name: z, deviceClassName: nic}]}]}}}\n";
    let uses =
        "{resourceClaims: [{name: c, resourceClaimTemplateName: t}], containers: [{name: c}]}";
    let kept_out = |hard: &str, text: &str| {
        let q = quota(&format!("{{hard: {{{hard}}}}}"), "{pods: 0}");
        let world = World::of(&format!("{q}{template}{text}"));
        let refused = world.fault("pod", "p") == Some(Reason::AdmissionRefused);
        admitted(&world, "pod", "p").is_some() || refused
    };
    let made = pod("p", uses).replace("team}", "team, uid: u}");
    for (hard, is) in [
        ("gpu.deviceclass.resource.k8s.io/devices: 34", false),
        ("gpu.deviceclass.resource.k8s.io/devices: 33", true),
        ("requests.deviceclass.resource.kubernetes.io/gpu: 33", true),
        ("nic.deviceclass.resource.k8s.io/devices: 0", true),
        ("count/resourceclaims.resource.k8s.io: 1", false),
        ("count/resourceclaims.resource.k8s.io: 0", true),
    ] {
        assert_eq!(kept_out(hard, &pod("p", uses)), is, "{hard}");
        // The pod may be there, and its claim not.
        assert_eq!(kept_out(hard, &made), is, "{hard}, of a pod that exists");
    }
    // A claim by name is charged by itself, and its pods wait with it.
    let claim = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: named, namespace: \
                 team}\nspec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu}}]}}\n";
    let named = pod(
        "p",
        "{resourceClaims: [{name: c, resourceClaimName: named}], containers: [{name: c}]}",
    );
    let text = format!("{claim}{named}");
    assert!(kept_out("gpu.deviceclass.resource.k8s.io/devices: 0", &text));
    assert!(!kept_out("gpu.deviceclass.resource.k8s.io/devices: 1", &text));
}

#[test]
fn a_claim_of_a_podgroup_is_charged_once() {
    let template = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t, \
                    namespace: team}\nspec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: \
                    gpu, count: 4}}]}}}\n";
    let group = "---\napiVersion: scheduling.k8s.io/v1alpha3\nkind: PodGroup\nmetadata: {name: g, namespace: \
                 team}\nspec: {schedulingPolicy: {gang: {minCount: 2}}, resourceClaims: [{name: c, \
                 resourceClaimTemplateName: t}]}\n";
    let spec = "{schedulingGroup: {podGroupName: g}, resourceClaims: [{name: c, resourceClaimTemplateName: t}], \
                containers: [{name: c}]}";
    let compat = Compat::default();
    let compat =
        compat.with_gates("GenericWorkload=true,DRAWorkloadResourceClaims=true").expect("gates");
    let kept_out = |devices: u32, users: &str| {
        let hard = format!("{{hard: {{gpu.deviceclass.resource.k8s.io/devices: {devices}}}}}");
        let q = quota(&hard, "{pods: 0}");
        let world = World::with(compat.clone(), &format!("{q}{template}{group}{users}"));
        world.findings.iter().any(|finding| finding.message.contains("ResourceQuota"))
    };
    let pods = pod("p", spec) + &pod("q", spec);
    for users in [pods, job("j", 2, spec)] {
        assert!(!kept_out(4, &users), "4 devices are enough for all: {users}");
        assert!(kept_out(3, &users), "3 devices are not: {users}");
    }
    let alone = spec.replace("schedulingGroup: {podGroupName: g}, ", "");
    assert!(
        kept_out(11, &job("j", 2, &alone)),
        "without the group one is made for each, and for it"
    );
    assert!(!kept_out(12, &job("j", 2, &alone)));
}

#[test]
fn a_workload_is_counted_as_an_object_too() {
    let one = "{containers: [{name: c}]}";
    let q = quota("{hard: {count/jobs.batch: 2}}", "{count/jobs.batch: 1}");
    let world = World::of(&format!("{q}{}{}", job("a", 1, one), job("b", 2, one)));
    assert_eq!((admitted(&world, "job", "a"), admitted(&world, "job", "b")), (None, Some(0)));
    let made = job("b", 2, one).replace("team}", "team, uid: u}");
    let world = World::of(&format!("{q}{}{made}", job("a", 1, one)));
    assert_eq!(admitted(&world, "job", "b"), None);
}
