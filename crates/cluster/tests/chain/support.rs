//! Small worlds, and what is asked of them.

use std::sync::Arc;

use phalanx_cluster::audit::audit_objects;
use phalanx_cluster::cure::Trials;
use phalanx_cluster::edit::{Edit, parse_target};
use phalanx_cluster::plan::{Plan, PlanOptions, plan};
use phalanx_cluster::raise::{Effect, Write, raise};
use phalanx_cluster::view::{Document, PodView, ViewOptions, plan_document, why_document};
use phalanx_cluster::world::World;
use phalanx_cluster::{Compat, Gone, Lowering, ObjectEvent, Source, Version};
use phalanx_objects::read::{Item, read};
use phalanx_objects::storage::SELECTED_NODE_ANNOTATION;
use phalanx_objects::{Kind, Object, ObjectRef};

/// The world of these documents. A problem in them fails the test.
pub(crate) fn world(yaml: &str) -> World {
    let mut world = World::new(Lowering::new(Compat::new(Version::default())));
    let mut ordinal = 0;
    read("test.yaml", yaml.as_bytes(), &mut |item| match item {
        Item::Object(object, source) => {
            let source = Source { file: "test.yaml".into(), line: source.line, ordinal };
            ordinal += 1;
            world.absorb(ObjectEvent::Applied(Box::new(object), source));
        }
        Item::Gone(object, _) => panic!("{} is gone", object.reference()),
        Item::Unknown { .. } | Item::Problem(_) => panic!("{item:?}"),
    });
    world.settle();
    world
}

pub(crate) fn options() -> PlanOptions {
    PlanOptions::default()
}

/// A plan that both audits pass.
pub(crate) fn decided(world: &mut World) -> Plan {
    let plan = plan(world, &options());
    let violations = phalanx_engine::audit(world.state(), &plan.decision);
    assert!(violations.is_empty(), "{violations:?}");
    let effects = raise(world, &plan);
    let violations = audit_objects(world.objects().expect("objects"), &effects);
    assert!(violations.is_empty(), "{violations:?}");
    plan
}

pub(crate) fn document(world: &mut World) -> Document {
    let plan = decided(world);
    let view = ViewOptions { trials: Some(Trials::for_plan(world)), alone: false };
    plan_document(world, &plan, &view)
}

pub(crate) fn why(world: &mut World, target: &str) -> Document {
    let object = parse_target(target).expect(target).reference("default");
    let view = ViewOptions { trials: Some(Trials::for_why(world)), alone: true };
    why_document(world, &object, &options(), &view)
}

pub(crate) fn pod<'a>(document: &'a Document, name: &str) -> &'a PodView {
    let found = document.pods.iter().find(|pod| pod.name == name);
    found.unwrap_or_else(|| panic!("no pod {name} among {:?}", document.pods))
}

pub(crate) fn edited(world: &World, edit: &str) -> World {
    let edit: Edit = edit.parse().unwrap_or_else(|error| panic!("{edit}: {error}"));
    let mut fork = world.clone();
    fork.edit(&edit, "default").unwrap_or_else(|error| panic!("{edit}: {error}"));
    fork
}

/// Every cure that is named works when it is asked verbatim.
pub(crate) fn cures_work(world: &World, document: &Document) {
    for pod in &document.pods {
        for cure in &pod.cures {
            let mut fork = edited(world, &cure.edit);
            let after = document_of(&mut fork);
            let cured = after.pods.iter().filter(|p| p.name == pod.name);
            for cured in cured {
                assert_eq!(cured.verdict.as_str(), "placed", "{}: {}", pod.name, cure.edit);
            }
        }
    }
}

pub(crate) fn document_of(world: &mut World) -> Document {
    let plan = decided(world);
    plan_document(world, &plan, &ViewOptions::default())
}

pub(crate) fn node(name: &str, cpu: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}}}}}\n\
         status: {{allocatable: {{cpu: '{cpu}', memory: 64Gi, pods: '110'}}}}\n"
    )
}

pub(crate) fn cpu_pod(name: &str, cpu: &str, on: &str) -> String {
    let on = if on.is_empty() { String::new() } else { format!("nodeName: {on}, ") };
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default, uid: {name}-uid}}\n\
         spec: {{{on}containers: [{{name: c, resources: {{requests: {{cpu: '{cpu}'}}}}}}]}}\n"
    )
}

/// A class, and a node with four GPUs of which 0 and 1, and 2 and 3, are joined by NVLink; gpu-3
/// has less memory.
pub(crate) fn gpus(name: &str) -> String {
    let device = |index: usize| {
        let (domain, memory) =
            (["a", "a", "b", "b"][index], ["80Gi", "80Gi", "80Gi", "24Gi"][index]);
        format!(
            "  - {{name: gpu-{index}, attributes: {{nvlinkDomain: {{string: {domain}}}}}, \
             capacity: {{memory: {{value: {memory}}}}}}}\n"
        )
    };
    let devices: String = (0..4).map(device).collect();
    node(name, "62")
        + "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu.nvidia.com}\nspec: {}\n"
        + &format!(
            "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: {name}-gpus}}\n\
             spec:\n  driver: gpu.nvidia.com\n  nodeName: {name}\n\
             \x20 pool: {{name: {name}, generation: 1, resourceSliceCount: 1}}\n  devices:\n{devices}"
        )
}

pub(crate) fn topology(name: &str, islands: &[&[usize]]) -> String {
    let island = |(index, members): (usize, &&[usize])| {
        let members: Vec<String> = members.iter().map(|m| format!("gpu-{m}")).collect();
        format!("  - {{name: i{index}, members: [{}]}}\n", members.join(", "))
    };
    let islands: String = islands.iter().enumerate().map(island).collect();
    format!(
        "---\napiVersion: phalanx.dev/v1alpha1\nkind: NodeTopology\nmetadata: {{name: {name}}}\n\
         spec:\n  islands:\n{islands}"
    )
}

/// A template for `count` GPUs and a pod that uses it; `more` are further fields of the claim, and
/// `align` the wish.
pub(crate) fn gpu_pod(name: &str, count: u32, more: &str, align: &str) -> String {
    let align = if align.is_empty() {
        String::new()
    } else {
        format!(", annotations: {{phalanx.dev/align: {align}}}")
    };
    format!(
        "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\n\
         metadata: {{name: {name}-gpus, namespace: default}}\n\
         spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu.nvidia.com, \
         count: {count}}}}}]{more}}}}}}}\n\
         ---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default, uid: {name}-uid{align}}}\n\
         spec:\n  containers: [{{name: c, resources: {{requests: {{cpu: '1'}}, claims: [{{name: gpus}}]}}}}]\n\
         \x20 resourceClaims: [{{name: gpus, resourceClaimTemplateName: {name}-gpus}}]\n"
    )
}

pub(crate) const MATCH: &str = ", constraints: [{matchAttribute: gpu.nvidia.com/nvlinkDomain}]";

/// Adds these documents to a world.
pub(crate) fn add(world: &mut World, yaml: &str) {
    let mut ordinal = 1_000;
    read("more.yaml", yaml.as_bytes(), &mut |item| {
        if let Item::Object(object, source) = item {
            let source = Source { file: "more.yaml".into(), line: source.line, ordinal };
            ordinal += 1;
            world.absorb(ObjectEvent::Applied(Box::new(object), source));
        }
    });
    world.settle();
}

/// Makes the writes, as an API server and the controllers would show them.
pub(crate) fn carry_out(world: &mut World, effects: &[Effect]) {
    for effect in effects {
        let object = match &effect.write {
            Write::CreateClaim(claim)
            | Write::Finalize(claim)
            | Write::Unprotect(claim)
            | Write::ClaimStatus(claim) => Object::from((**claim).clone()),
            Write::DeleteClaim(claim) => {
                let gone = Gone::from(Object::from((**claim).clone()).reference());
                world.absorb(ObjectEvent::Deleted(gone));
                continue;
            }
            Write::PodStatus(write) => {
                let (namespace, name) = (write.namespace.clone(), write.pod.clone());
                let of = ObjectRef { kind: Kind::Pod, namespace, name };
                let of = world.objects().expect("objects").get(&of).expect("a pod");
                let Object::Pod(pod) = of else { panic!("{write:?} is of no pod") };
                let mut pod = pod.clone();
                Arc::make_mut(&mut pod).status.extended_resource_claim_status =
                    Some(write.status.clone());
                Object::Pod(pod)
            }
            Write::KeepVolume(write) => {
                let (kind, namespace) = (Kind::PersistentVolume, String::new());
                let of = ObjectRef { kind, namespace, name: write.volume.clone() };
                let of = world.objects().expect("objects").get(&of).expect("a volume");
                let Object::PersistentVolume(volume) = of else { panic!("{write:?}") };
                let mut volume = volume.clone();
                Arc::make_mut(&mut volume).spec.claim_ref = Some((*write.claim).clone());
                Object::PersistentVolume(volume)
            }
            Write::SelectNode(write) => {
                let (kind, namespace) = (Kind::PersistentVolumeClaim, write.namespace.clone());
                let of = ObjectRef { kind, namespace, name: write.claim.clone() };
                let of = world.objects().expect("objects").get(&of).expect("a claim");
                let Object::PersistentVolumeClaim(claim) = of else { panic!("{write:?}") };
                let mut claim = claim.clone();
                let told = (SELECTED_NODE_ANNOTATION.to_owned(), write.node.clone());
                Arc::make_mut(&mut claim).metadata.annotations = [told].into_iter().collect();
                Object::PersistentVolumeClaim(claim)
            }
            Write::Bind(bind) => {
                let of = world.objects().expect("objects").get(&bind.spec_of).expect("a pod");
                let Object::Pod(pod) = of else { panic!("{bind:?} is of no pod") };
                let mut pod = pod.clone();
                Arc::make_mut(&mut pod).spec.node_name = bind.node.clone();
                Object::Pod(pod)
            }
        };
        let source = Source { file: "test.yaml".into(), line: 0, ordinal: 999 };
        world.absorb(ObjectEvent::Applied(Box::new(object), source));
    }
    world.settle();
}

/// A claim on one GPU.
pub(crate) fn shared_claim(name: &str) -> String {
    format!(
        "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n\
         metadata: {{name: {name}, namespace: default, uid: {name}-uid}}\n\
         spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu.nvidia.com}}}}]}}}}\n"
    )
}

/// A pod that uses a claim by name.
pub(crate) fn user_of(name: &str, claim: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default, uid: {name}-uid}}\n\
         spec:\n  containers: [{{name: c, resources: {{requests: {{cpu: '1'}}, claims: [{{name: gpus}}]}}}}]\n\
         \x20 resourceClaims: [{{name: gpus, resourceClaimName: {claim}}}]\n"
    )
}

/// A job that is not created yet.
pub(crate) fn job(name: &str, parallelism: u32, cpu: &str) -> String {
    format!(
        "---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, namespace: default}}\n\
         spec: {{parallelism: {parallelism}, completions: {parallelism}, template: {{spec: \
         {{restartPolicy: Never, containers: [{{name: c, resources: {{requests: {{cpu: '{cpu}'}}}}}}]}}}}}}\n"
    )
}
