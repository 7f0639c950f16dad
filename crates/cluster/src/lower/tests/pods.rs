//! Pods and workloads: what they become, and which claims they get.

use std::sync::Arc;

use phalanx_engine::{
    ClaimUse, Gate, GroupKey, Name, NodeRequirement, Phase, Reason, Scoped, Since, Timestamp,
};
use phalanx_objects::workload::WorkloadKind;
use phalanx_objects::{Kind, Object, ObjectRef};

use super::{Lowering, ObjectEvent, World, objects};
use crate::compat::Compat;
use crate::lower::ClaimName;

#[test]
fn a_pods_life_decides_whether_it_is_pending_bound_or_gone() {
    let world = World::of(
        "
{apiVersion: v1, kind: Pod, metadata: {name: waits}, spec: {containers: [{name: a}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: runs}, spec: {nodeName: n1, activeDeadlineSeconds: 60},
 status: {phase: Running, startTime: 1970-01-01T00:00:10Z}}
---
{apiVersion: v1, kind: Pod, metadata: {name: ended}, spec: {nodeName: n1}, status: {phase: Failed}}
---
{apiVersion: v1, kind: Pod, metadata: {name: goes, deletionTimestamp: 1970-01-01T00:01:00Z},
 spec: {nodeName: n1}, status: {phase: Running}}
---
{apiVersion: v1, kind: Pod, metadata: {name: never, deletionTimestamp: 1970-01-01T00:01:00Z}, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: gated}, spec: {schedulingGates: [{name: g}]}}
",
    );
    let phase = |name: &str| world.member(name).map(|member| member.phase.clone());
    assert_eq!(phase("waits"), Some(Phase::Pending));
    assert!(matches!(phase("runs"), Some(Phase::Bound(node)) if node.0.as_str() == "n1"));
    assert_eq!(world.member("runs").expect("runs").expected_end, Some(Timestamp(70_000)));
    assert!(matches!(phase("goes"), Some(Phase::Terminating(_, Timestamp(60_000)))));
    assert_eq!((phase("ended"), phase("never")), (None, None));
    assert!(
        matches!(&world.group("pod", "gated").expect("gated").gate, Gate::Gated(g) if g.len() == 1)
    );
    assert_eq!(world.group("pod", "waits").expect("waits").since, Since::Input(0));
}

#[test]
fn a_pod_that_leaves_its_name_to_the_api_server_gets_one_of_ours() {
    let world = World::of(
        "
{apiVersion: v1, kind: Pod, metadata: {generateName: run-}, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {generateName: run-}, spec: {}}
",
    );
    let key = world.member("run-plan1").expect("the second").group.clone();
    assert!(world.member("run-plan0").is_some());
    assert!(world.lowering.group(&key).expect("info").roles[0].pods[0].planned);
}

#[test]
fn one_schedulers_pods_can_be_picked() {
    let mut world = World::new(Lowering::new(Compat::default()).for_scheduler("mine"));
    world.add(
        "
{apiVersion: v1, kind: Pod, metadata: {name: mine}, spec: {schedulerName: mine}}
---
{apiVersion: v1, kind: Pod, metadata: {name: default}, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: bound}, spec: {nodeName: n1}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: other}, spec: {template: {spec: {}}}}
",
    );
    assert!(world.member("mine").is_some() && world.member("bound").is_some());
    assert!(world.member("default").is_none());
    assert!(world.group("job", "other").is_none());
}

#[test]
fn priority_comes_from_the_pod_its_class_or_the_lowest_default() {
    let classes = "
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: d1}, value: 7, globalDefault: true}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: d2}, value: 5, globalDefault: true}
";
    let mut world = World::of(
        "
{apiVersion: v1, kind: Pod, metadata: {name: own, uid: u}, spec: {priority: 3, priorityClassName: high}}
---
{apiVersion: v1, kind: Pod, metadata: {name: class}, spec: {containers: [{name: c}], priorityClassName: high}}
---
{apiVersion: v1, kind: Pod, metadata: {name: none}, spec: {containers: [{name: c}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: made, creationTimestamp: 2026-01-01T00:00:00Z}, spec: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: system}, spec: {containers: [{name: c}], priorityClassName: system-node-critical}}
",
    );
    let priority = |world: &World, name: &str| world.group("pod", name).map(|group| group.priority);
    assert_eq!(priority(&world, "class"), Some(0));
    assert!(world.says(&["warning Pod default/class", "PriorityClass high is not in the input"]));
    world.add(classes);
    assert_eq!(world.said(), Vec::<String>::new());
    let all: Vec<_> = ["own", "class", "none", "made", "system"]
        .iter()
        .filter_map(|name| priority(&world, name))
        .collect();
    assert_eq!(all, [3, 1000, 5, 0, 2_000_001_000]);
}

#[test]
fn bad_requirements_never_match_and_leave_the_other_terms() {
    let world = World::of(
        "
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - {}
        - matchExpressions: [{key: a, operator: Gt, values: ['-5']}]
        - matchExpressions: [{key: a, operator: Gt, values: ['05']}]
          matchFields: [{key: metadata.name, operator: In, values: [n1]}]
        - matchExpressions: [{key: a, operator: Exists, values: [x]}]
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 0, preference: {matchExpressions: [{key: a, operator: Exists}]}}
      - {weight: 9, preference: {matchExpressions: [{key: a, operator: In, values: []}]}}
  tolerations:
  - {key: a, operator: Exists, effect: NoSchedule}
  - {operator: Exists}
  - {key: b, value: c}
  - {key: d, operator: Gt, value: '3'}
",
    );
    let node = &world.group("pod", "p").expect("p").roles[0].request.node;
    let required = node.required.as_ref().expect("required");
    assert!(required[0].is_empty());
    assert_eq!(*required[1], [NodeRequirement::Never]);
    let fifth = [NodeRequirement::Gt("a".into(), 5), NodeRequirement::NameIs("n1".into())];
    assert_eq!(*required[2], fifth);
    assert_eq!(*required[3], [NodeRequirement::Never]);
    assert_eq!(node.preferred.len(), 1);
    assert!(world.says(&["warning Pod", "preferred term can't be evaluated"]));
    assert_eq!(node.tolerations.len(), 3);
    assert!(node.tolerations[1].key.is_none() && node.tolerations[1].equals.is_none());
}

const JOB: &str = "
apiVersion: batch/v1
kind: Job
metadata: {name: train, uid: 0a000000-0000-4000-8000-000000000001}
spec:
  parallelism: 4
  completions: 8
  completionMode: Indexed
  template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}}
status: {succeeded: 3}
---
apiVersion: v1
kind: Pod
metadata:
  name: train-3-abcde
  annotations: {batch.kubernetes.io/job-completion-index: '3'}
  ownerReferences: [{kind: Job, name: train, uid: 0a000000-0000-4000-8000-000000000001, controller: true}]
spec: {nodeName: n1}
---
apiVersion: v1
kind: Pod
metadata:
  name: train-old
  ownerReferences: [{kind: Job, name: train, uid: 0a000000-0000-4000-8000-000000000009, controller: true}]
spec: {nodeName: n1}
";

#[test]
fn a_job_is_a_group_of_the_pods_that_do_not_exist_yet() {
    let mut world = World::of(JOB);
    let job = world.group("job", "train").expect("the job");
    assert_eq!((job.roles[0].max, job.roles[0].first_rank), (3, 4));
    let key = world.member("train-3-abcde").map(|member| member.group.clone()).expect("member");
    let parent = world.group("pod", "train-3-abcde").expect("pod").parent.clone();
    assert_eq!(parent.as_ref().map(ToString::to_string).as_deref(), Some("job/train"));
    assert_eq!(world.group("pod", "train-old").expect("pod").parent, None);
    let info = world.lowering.group(&parent.expect("parent")).expect("info");
    let names: Vec<&str> = info.roles[0].pods.iter().map(|pod| pod.key.0.name.as_str()).collect();
    assert_eq!(names, ["train-4", "train-5", "train-6"]);
    assert_eq!(world.lowering.group(&key).expect("pod").roles[0].pods[0].index, Some(3));
    let train = ObjectRef {
        kind: Kind::Workload(WorkloadKind::Job),
        namespace: "default".to_owned(),
        name: "train".to_owned(),
    };
    world.lowering.absorb(ObjectEvent::Deleted(train.into()));
    world.settle();
    assert!(world.group("job", "train").is_none());
    assert_eq!(world.group("pod", "train-3-abcde").expect("pod").parent, None);
}

#[test]
fn jobs_and_deployments_ask_for_what_their_controllers_would_make() {
    let count = |spec: &str| {
        let text = format!("apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j}}\n{spec}\n");
        World::of(&text).group("job", "j").map(|group| group.roles[0].max)
    };
    assert_eq!(count("spec: {template: {}}"), Some(1));
    assert_eq!(count("spec: {parallelism: 3, template: {}}"), Some(3));
    assert_eq!(count("spec: {parallelism: 3, template: {}}\nstatus: {succeeded: 1}"), None);
    assert_eq!(count("spec: {parallelism: 4, completions: 2, template: {}}"), Some(2));
    assert_eq!(count("spec: {parallelism: 0, template: {}}"), None);
    assert_eq!(count("spec: {suspend: true, parallelism: 2, template: {}}"), Some(2));
    let world = World::of(
        "
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web-app}, spec: {replicas: 3, template: {}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: web-app-5d4f-x
  labels: {pod-template-hash: 5d4f}
  ownerReferences: [{kind: ReplicaSet, name: web-app-5d4f, controller: true}]
spec: {nodeName: n1}
",
    );
    assert_eq!(world.group("deployment", "web-app").map(|group| group.roles[0].max), Some(2));
    assert!(world.group("pod", "web-app-5d4f-x").expect("pod").parent.is_some());
}

#[test]
fn a_job_that_has_ended_or_is_anothers_asks_for_nothing() {
    let job = |spec: &str, status: &str| {
        World::of(&format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j}}\n\
             spec: {{completions: 2, parallelism: 2, template: {{}}{spec}}}\nstatus: {status}\n"
        ))
    };
    let wants = |spec: &str, status: &str| {
        job(spec, status).group("job", "j").map_or(0, |group| group.roles[0].max)
    };
    assert_eq!(wants("", "{}"), 2);
    for kind in ["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"] {
        let status = |is: &str| format!("{{conditions: [{{type: {kind}, status: '{is}'}}]}}");
        assert_eq!(wants("", &status("True")), 0, "{kind}");
        assert_eq!(wants("", &status("False")), 2, "{kind}");
    }
    assert_eq!(wants("", "{conditions: [{type: Suspended, status: 'True'}]}"), 2);
    assert_eq!(wants(", backoffLimit: 1", "{failed: 1}"), 2);
    assert_eq!(wants(", backoffLimit: 1", "{failed: 2}"), 0);
    assert_eq!(wants(", managedBy: kubernetes.io/job-controller", "{}"), 2);
    assert_eq!(wants(", managedBy: kueue.x-k8s.io/multikueue", "{}"), 0);
    assert!(
        job(", managedBy: kueue.x-k8s.io/multikueue", "{}")
            .says(&["info Job default/j", "kueue.x-k8s.io/multikueue makes the pods"])
    );
}

#[test]
fn an_indexed_job_makes_exactly_the_indexes_that_it_lacks() {
    let object = Scoped { namespace: Name::new("default"), name: Name::new("j") };
    let job = GroupKey { object, kind: Name::new("job") };
    let planned = |count: u32, status: &str, more: &str| {
        let world = World::of(&format!(
            "
apiVersion: batch/v1
kind: Job
metadata: {{name: j}}
spec: {{completionMode: Indexed, completions: 8, parallelism: {count}, template: {{}}{more}}}
status: {status}
---
apiVersion: v1
kind: Pod
metadata:
  name: j-2-abcde
  labels: {{batch.kubernetes.io/job-completion-index: '2'}}
  ownerReferences: [{{kind: Job, name: j, controller: true}}]
spec: {{nodeName: n1}}
---
apiVersion: v1
kind: Pod
metadata:
  name: j-6-abcde
  deletionTimestamp: 2026-01-01T00:00:00Z
  labels: {{batch.kubernetes.io/job-completion-index: '6'}}
  ownerReferences: [{{kind: Job, name: j, controller: true}}]
spec: {{nodeName: n1}}
"
        ));
        let info = world.group("job", "j").map(|_| world.lowering.group(&job));
        let pods = info.iter().flatten().flat_map(|info| &info.roles[0].pods);
        pods.filter_map(|pod| pod.index).collect::<Vec<_>>()
    };
    let done = "{completedIndexes: '1,3-5,7', succeeded: 5}";
    assert_eq!(planned(8, done, ""), [0, 6]);
    assert_eq!(planned(8, done, ", podReplacementPolicy: Failed"), [0]);
    assert_eq!(planned(2, done, ""), [0]);
    // Whatever is written there, it takes no time.
    assert_eq!(planned(8, "{completedIndexes: '0-4294967295'}", ""), Vec::<u32>::new());
    assert_eq!(planned(2, "{completedIndexes: '0-1', failedIndexes: 1-x}", ""), [3]);
    assert_eq!(planned(8, "{completedIndexes: '1,3-5,7', failedIndexes: '0'}", ""), [6]);
    assert_eq!(planned(3, "{}", ""), [0, 1]);
    assert_eq!(planned(3, "{succeeded: 2}", ""), [3, 4]);
}

const CLASS: &str = "
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {}}
---
";

const TEMPLATE: &str = "
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one, annotations: {phalanx.dev/align: island=required}}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}
---
";

fn pod_with_template(extra: &str) -> String {
    format!(
        "{CLASS}{TEMPLATE}
apiVersion: v1
kind: Pod
metadata: {{name: p, uid: 0a000000-0000-4000-8000-000000000002}}
spec: {{resourceClaims: [{{name: c, resourceClaimTemplateName: one}}]}}
{extra}"
    )
}

fn claim(name: &str, owner: &str, body: &str) -> String {
    format!(
        "
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: {name}
  annotations: {{resource.kubernetes.io/pod-claim-name: c}}
  ownerReferences: [{{apiVersion: v1, kind: Pod, name: p, uid: {owner}, controller: true}}]
spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: gpu}}}}]}}}}
{body}
"
    )
}

const MINE: &str = "0a000000-0000-4000-8000-000000000002";
const OTHER: &str = "0a000000-0000-4000-8000-000000000003";
const HELD: &str =
    "status: {allocation: {devices: {results: [{request: r, driver: d, pool: p, device: x}]}}}";

#[test]
fn a_claim_to_be_made_is_the_pods_own() {
    let world = World::of(&pod_with_template(""));
    let request = &world.group("pod", "p").expect("p").roles[0].request;
    let [ClaimUse::Own(spec)] = &*request.claims else { panic!("{request:?}") };
    assert!(spec.align[0].required, "the template's wish holds");
    assert_eq!(*world.member("p").expect("p").claims, [None]);
    let info = world.lowering.group(&world.member("p").expect("p").group).expect("info");
    let claim = &info.roles[0].pods[0].claims[0];
    assert!(matches!(&claim.claim, ClaimName::Planned(key) if key.0.name.as_str() == "p-c-plan"));
    assert_eq!(claim.spec.requests[0].name, "r");
}

#[test]
fn a_claim_that_was_made_is_found_by_owner_or_by_status() {
    for status in ["", "status: {resourceClaimStatuses: [{name: c, resourceClaimName: p-c-x}]}"] {
        let world = World::of(&pod_with_template(&format!("{status}{}", claim("p-c-x", MINE, ""))));
        let request = &world.group("pod", "p").expect("p").roles[0].request;
        let [ClaimUse::Own(spec)] = &*request.claims else { panic!("{request:?}") };
        assert!(spec.align[0].required, "the template's wish holds for the claim made of it");
        let made = &world.member("p").expect("p").claims[0];
        assert_eq!(made.as_ref().map(|key| key.0.name.as_str()), Some("p-c-x"));
        let held =
            World::of(&pod_with_template(&format!("{status}{}", claim("p-c-x", MINE, HELD))));
        let request = &held.group("pod", "p").expect("p").roles[0].request;
        assert!(matches!(&*request.claims, [ClaimUse::Named(_)]), "{request:?}");
        assert!(held.claim("p-c-x").expect("claim").held.is_some());
    }
}

#[test]
fn a_claim_of_an_earlier_pod_of_that_name_is_not_the_pods() {
    let world = World::of(&pod_with_template(&claim("p-c-x", OTHER, HELD)));
    let request = &world.group("pod", "p").expect("p").roles[0].request;
    assert!(matches!(&*request.claims, [ClaimUse::Own(_)]), "{request:?}");
    assert_eq!(*world.member("p").expect("p").claims, [None]);
}

#[test]
fn claims_that_can_not_be_had_are_faults() {
    let status = "status: {resourceClaimStatuses: [{name: c, resourceClaimName: p-c-x}]}";
    let fault = |extra: &str| World::of(&pod_with_template(extra)).fault("pod", "p");
    assert_eq!(fault(status), Some(Reason::ClaimMissing));
    let other = format!("{status}{}", claim("p-c-x", OTHER, ""));
    assert_eq!(fault(&other), Some(Reason::ClaimOfOther));
    assert_eq!(fault(""), None);
    let text = pod_with_template("");
    let without = |part: &str| World::of(&text.replace(part, "")).fault("pod", "p");
    assert_eq!(without(TEMPLATE), Some(Reason::TemplateMissing));
    assert_eq!(without(CLASS), Some(Reason::ClassMissing));
    let named = "
{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}], resourceClaims: [{name: c, resourceClaimName: x}]}}
";
    assert_eq!(World::of(named).fault("pod", "p"), Some(Reason::ClaimMissing));
    let leaving = format!(
        "{named}\n---\n{{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {{name: x, \
         deletionTimestamp: 2026-01-01T00:00:00Z}}, spec: {{}}}}"
    );
    assert_eq!(World::of(&leaving).fault("pod", "p"), Some(Reason::ClaimDeleting));
    // The reader refuses such a pod; from an API server it could come.
    let (mut object, source) = objects(named).remove(0);
    if let Object::Pod(pod) = &mut object {
        Arc::make_mut(pod).spec.resource_claims[0].resource_claim_name = None;
    }
    let mut world = World::new(Lowering::new(Compat::default()));
    world.lowering.absorb(ObjectEvent::Applied(Box::new(object), source));
    world.settle();
    assert_eq!(world.fault("pod", "p"), Some(Reason::AdmissionRefused));
}

#[test]
fn a_wish_that_can_not_be_read_is_never_dropped() {
    let world = World::of(
        "
{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {phalanx.dev/align: rack=required}}, spec: {containers: [{name: c}]}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: j, annotations: {phalanx.dev/align: island}}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: k, annotations: {phalanx.dev/align: island=preferred}}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c}]}}}}
",
    );
    assert_eq!(world.fault("pod", "p"), Some(Reason::RequestUnsupported));
    assert_eq!(world.fault("job", "j"), Some(Reason::RequestUnsupported));
    assert!(world.says(&["error Pod default/p", "`rack` is not a level"]), "{:?}", world.said());
    assert!(world.says(&["error Job default/j", "LEVEL=STRENGTH"]), "{:?}", world.said());
    let align = &world.group("job", "k").expect("k").roles[0].request.align;
    assert!(align.len() == 1 && !align[0].required);
}
