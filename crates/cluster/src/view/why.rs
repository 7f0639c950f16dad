//! The answer to `why`: the pods that an object concerns, with every node and every failing check
//! where the object is about pods, and with one node where it is about that.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{GroupKey, Name, NodeKey, NodeReport, PodKey, Reason, Report, Scoped};
use phalanx_objects::core::PodSpec;
use phalanx_objects::{Kind, Object, ObjectRef};

use super::ViewOptions;
use super::build::{Builder, account, alternatives, held_devices, home_of, look_up, who_sits};
use super::cures::{CuresFound, cures_of_all};
use super::members::gates_of;
use super::schema::{CheckView, Document, NodeView, PodView, VerdictWord, status};
use crate::lower::{ClaimName, GroupInfo, PodInfo, pod_key};
use crate::plan::{PlanOptions, plan, why_node};
use crate::words;
use crate::world::World;

/// Most groups of one question that get an account of every node each: an account costs a plan.
const ACCOUNTS_MAX: usize = 4;

/// How far a question about an object goes.
enum Depth {
    /// What this node is to each pod.
    OneNode(NodeKey),
    /// Every node and the cures, for the first [`ACCOUNTS_MAX`] groups, those not placed first.
    EveryNode,
    /// The verdicts alone: the object may concern every pod there is.
    Verdicts,
}

/// Everything about an object that was read: of a pod, a workload, a claim or a template its pods
/// or those that ask for it, with every node and with cures; of a node, its slices or its topology
/// every pending pod on that node alone; of anything else the verdict of each pod that it concerns.
pub fn why_document(
    world: &mut World,
    object: &ObjectRef,
    options: &PlanOptions,
    view: &ViewOptions,
) -> Document {
    let plan = plan(world, options);
    let groups: Vec<GroupKey> = plan
        .decision
        .verdicts
        .iter()
        .map(|(group, _)| group.clone())
        .filter(|group| {
            let info = world.lowering().group(group);
            info.is_some_and(|info| concerns(world, object, &info))
        })
        .collect();
    // By group, one for each role where one node is looked at.
    let mut reports: BTreeMap<GroupKey, Vec<Report>> = BTreeMap::new();
    let mut healing = BTreeMap::new();
    match depth(world, object) {
        Depth::OneNode(node) => {
            for report in why_node(world, &node, options) {
                reports.entry(report.group.clone()).or_default().push(report);
            }
        }
        Depth::EveryNode => {
            let whole = |group: &&GroupKey| {
                let verdict = plan.decision.verdicts.iter().find(|(of, _)| of == *group);
                verdict.is_some_and(|(_, verdict)| verdict.is_whole())
            };
            let (placed, open): (Vec<&GroupKey>, Vec<&GroupKey>) = groups.iter().partition(whole);
            let chosen: Vec<GroupKey> =
                open.into_iter().chain(placed).take(ACCOUNTS_MAX).cloned().collect();
            let asked = pod_asked(object);
            let mut known: BTreeMap<GroupKey, Report> = BTreeMap::new();
            for group in &chosen {
                let role = asked.as_ref().and_then(|pod| role_of(world, group, pod));
                if let Some(report) = account(world, &plan, group, role) {
                    known.insert(group.clone(), report);
                }
            }
            healing = cures_of_all((world, &plan), &chosen, asked.as_ref(), &known, view);
            reports.extend(known.into_iter().map(|(group, report)| (group, vec![report])));
            let rest = groups.iter().filter(|group| !chosen.contains(group) && !whole(group));
            if view.trials.is_some() {
                healing.extend(rest.map(|group| (group.clone(), CuresFound::untried(group))));
            }
        }
        Depth::Verdicts => {}
    }
    let chosen: BTreeSet<&GroupKey> = groups.iter().collect();
    // Who waits for whom is a question about groups.
    let gangs = groups.iter().any(|group| world.lowering().is_gang(group)) || {
        // One of which no pod waits may be half there.
        let mut all = world.lowering().gangs();
        groups.is_empty() && all.any(|group| crate::lower::declaring(group) == *object)
    };
    let held = if gangs { crate::deadlock::findings(world, &plan) } else { Vec::new() };
    let mut builder = Builder::new(world, &plan, healing);
    for (group, verdict) in plan.decision.verdicts.iter().filter(|(g, _)| chosen.contains(g)) {
        let from = builder.pods.len();
        builder.group(group, verdict);
        let info = world.lowering().group(group);
        if let (Some(info), Some(reports)) = (info, reports.get(group)) {
            attach(world, &info, reports, object, &mut builder.pods[from..]);
            for report in reports {
                attach_choice(world, &info, report, &mut builder.pods[from..]);
            }
        }
    }
    let asked = |pod: &PodView| pod.name == object.name && pod.namespace == object.namespace;
    if object.kind == Kind::Pod && !builder.pods.iter().any(asked) {
        builder.pods.extend(running(world, object));
    }
    builder.finish(&held, |pod| object.kind != Kind::Pod || asked(pod))
}

fn depth(world: &World, object: &ObjectRef) -> Depth {
    if let Some(node) = node_asked(world, object) {
        return Depth::OneNode(NodeKey(Name::new(&node)));
    }
    match object.kind {
        Kind::Pod
        | Kind::Workload(_)
        | Kind::Scheduling(_)
        | Kind::ResourceClaim
        | Kind::ResourceClaimTemplate
        | Kind::PersistentVolumeClaim
        | Kind::Placement => Depth::EveryNode,
        Kind::Node
        | Kind::NodeTopology
        | Kind::ResourceSlice
        | Kind::Namespace
        | Kind::Service
        | Kind::ReplicationController
        | Kind::ServiceAccount
        | Kind::PriorityClass
        | Kind::RuntimeClass
        | Kind::LimitRange
        | Kind::ResourceQuota
        | Kind::DeviceClass
        | Kind::DeviceTaintRule
        | Kind::PersistentVolume
        | Kind::StorageClass
        | Kind::CSINode
        | Kind::CSIDriver
        | Kind::CSIStorageCapacity
        | Kind::VolumeAttachment => Depth::Verdicts,
    }
}

/// The pod that is asked about, where one is.
fn pod_asked(object: &ObjectRef) -> Option<PodKey> {
    (object.kind == Kind::Pod).then(|| pod_key(&object.namespace, &object.name))
}

/// The role of a pod in its group.
fn role_of(world: &World, group: &GroupKey, pod: &PodKey) -> Option<u16> {
    let info = world.lowering().group(group)?;
    let at = info.roles.iter().position(|role| role.pods.iter().any(|own| own.key == *pod))?;
    u16::try_from(at).ok()
}

/// The report stands on the pod that is asked about, else on the group's first pod of the role that it is about
/// which is not placed, or on its first: its other pods are like it. It is about what is missing of a group: a
/// pod that is placed beside that gets none. Where one node is asked about, each pod has that of its role.
fn attach(
    world: &World,
    info: &GroupInfo,
    reports: &[Report],
    asked: &ObjectRef,
    pods: &mut [PodView],
) {
    let open = |pod: &PodView| pod.verdict != VerdictWord::Placed;
    let any_open = pods.iter().any(open);
    let roles = (0_u16..).zip(&info.roles);
    let about: Vec<(u16, &PodInfo)> =
        roles.flat_map(|(at, role)| role.pods.iter().map(move |pod| (at, pod))).collect();
    // A row of one node is little enough to stand on each.
    if node_asked(world, asked).is_some() {
        for (pod, (role, about)) in pods.iter_mut().zip(&about) {
            let report = reports.iter().find(|report| report.role == *role);
            if let Some(report) = report.filter(|_| !any_open || open(pod)) {
                show(world, info, (report, about), asked, pod);
            }
        }
        return;
    }
    let Some(report) = reports.first() else { return };
    let named = |pod: &PodView| asked.kind == Kind::Pod && pod.name == asked.name;
    let of_role =
        |(pod, (role, _)): (&PodView, &(u16, &PodInfo))| open(pod) && *role == report.role;
    let one = pods.iter().position(named);
    let one = one.or_else(|| pods.iter().zip(&about).position(of_role));
    let one = one.or_else(|| pods.iter().position(open)).unwrap_or(0);
    if let (Some(pod), Some((_, about))) = (pods.get_mut(one), about.get(one))
        && (!any_open || open(pod))
    {
        show(world, info, (report, about), asked, pod);
        pod.fit_error = fit_error(world, report, about);
    }
}

/// Writes what stands before any node is looked at, and the nodes, on a pod.
fn show(
    world: &World,
    info: &GroupInfo,
    (report, about): (&Report, &PodInfo),
    asked: &ObjectRef,
    pod: &mut PodView,
) {
    let gates = gates_of(world, about);
    // Gates of others of its group are not in its own way.
    let own = report.object.iter().filter(|(reason, _)| !is_of_others(*reason, info, &gates));
    let checks = own.map(|(reason, example)| CheckView {
        code: reason.code(),
        check: reason.check(),
        status: "UnschedulableAndUnresolvable",
        message: match (info.gang, reason) {
            (true, Reason::Gated) => words::gated(&gates),
            (_, reason) => {
                words::sentence(*reason, example, &look_up(world, info, Some(about), example))
            }
        },
    });
    let checks: Vec<CheckView> = checks.collect();
    let nodes = report.nodes.iter();
    let mut nodes: Vec<NodeView> =
        nodes.map(|node| node_view(world, info, Some(about), node, checks.is_empty())).collect();
    if nodes.is_empty() && !checks.is_empty() {
        nodes = not_looked_at(world, asked);
    }
    (pod.checks, pod.nodes) = (Some(checks), Some(nodes));
}

/// Whether a reason that stands before any node is looked at is one of other pods of the group.
fn is_of_others(reason: Reason, info: &GroupInfo, own_gates: &[String]) -> bool {
    info.gang && reason == Reason::Gated && own_gates.is_empty()
}

/// What kube-scheduler says of the pod, over all nodes; of one that names its node, or that others of its group
/// keep from being tried, it says nothing.
fn fit_error(world: &World, report: &Report, about: &PodInfo) -> Option<String> {
    if world.objects().is_some_and(|objects| objects.names_node(&about.key)) {
        return None;
    }
    let gated = report.object.iter().any(|(reason, _)| *reason == Reason::Gated);
    if gated && gates_of(world, about).is_empty() {
        return None;
    }
    let nodes = match report.nodes.len() {
        0 => world.lowering().all(Kind::Node).len(),
        some => some,
    };
    words::fit_error(report, nodes, &about.key)
}

/// What keeps a pod of a role from the node that a report is about, check by check.
pub fn checks_on(world: &World, report: &Report, node: &NodeKey) -> Vec<CheckView> {
    let Some(info) = world.lowering().group(&report.group) else { return Vec::new() };
    let about = info.roles.get(usize::from(report.role)).and_then(|role| role.pods.first());
    let mut of_node = report.nodes.iter().filter(|one| one.node == *node);
    let checks = of_node.next().map(|node| node_view(world, &info, about, node, true).checks);
    checks.unwrap_or_default()
}

/// What else could have been chosen stands on the pod that the choice was made for.
fn attach_choice(world: &World, info: &GroupInfo, report: &Report, pods: &mut [PodView]) {
    let Some(choice) = &report.choice else { return };
    let Some(sits) = who_sits(&choice.best.seat, info) else { return };
    let is = |pod: &&mut PodView| {
        pod.verdict == VerdictWord::Placed
            && *pod.name == *sits.0.name
            && pod.namespace == *sits.0.namespace
    };
    if let Some(pod) = pods.iter_mut().find(is) {
        pod.choice = Some(super::choice::view(world, choice));
    }
}

/// Where something stands before any node is looked at: each node, which is not fit then.
fn not_looked_at(world: &World, asked: &ObjectRef) -> Vec<NodeView> {
    let bare = |name: String| NodeView { name, fits: false, checks: Vec::new() };
    if let Some(node) = node_asked(world, asked) {
        return vec![bare(node)];
    }
    let nodes = world.lowering().all(Kind::Node);
    nodes.into_iter().map(|node| bare(node.name)).collect()
}

fn node_view(
    world: &World,
    info: &GroupInfo,
    about: Option<&PodInfo>,
    report: &NodeReport,
    open: bool,
) -> NodeView {
    let checks = report.checks.iter().map(|(reason, code, example)| CheckView {
        code: reason.code(),
        check: reason.check(),
        status: status(*code),
        message: words::sentence(*reason, example, &look_up(world, info, about, example)),
    });
    NodeView {
        name: report.node.0.to_string(),
        fits: open && report.offer.is_some(),
        checks: checks.collect(),
    }
}

/// A pod that is on a node already.
fn running(world: &World, object: &ObjectRef) -> Option<PodView> {
    let Some(Object::Pod(pod)) = world.objects()?.get(object) else { return None };
    let on = crate::lower::node_of(pod)?;
    let info = world.lowering().group(&key_of(object, "pod"));
    // A workload that is not in the input still has a name.
    let named = pod.metadata.controller();
    let named = named.map(|owner| format!("{}/{}", owner.kind.to_ascii_lowercase(), owner.name));
    let own = info.as_ref().and_then(|info| info.roles.first()?.pods.first());
    let claims = pod.spec.resource_claims.iter().filter_map(|entry| {
        let made = pod.status.resource_claim_statuses.iter().find(|s| s.name == entry.name);
        let made = made.and_then(|status| status.resource_claim_name.as_deref());
        entry.resource_claim_name.as_deref().or(made)
    });
    let key = |name: &str| {
        phalanx_engine::ClaimKey(phalanx_engine::Scoped {
            namespace: phalanx_engine::Name::new(&object.namespace),
            name: phalanx_engine::Name::new(name),
        })
    };
    let mut notes = vec![format!("it is on {on} already: nothing is decided")];
    let mut devices = Vec::new();
    for name in claims {
        let held = held_devices(world, &key(name));
        let reference =
            ObjectRef { kind: Kind::ResourceClaim, name: name.to_owned(), ..object.clone() };
        if let Some(Object::ResourceClaim(claim)) = world.objects()?.get(&reference) {
            notes.extend(alternatives(&claim.spec.devices, &held));
        }
        devices.extend(held);
    }
    Some(PodView {
        namespace: object.namespace.clone(),
        name: object.name.clone(),
        planned: false,
        group: info
            .as_ref()
            .and_then(|info| info.owner.as_ref())
            .map(ToString::to_string)
            .or(named),
        role: own.map(|pod| pod.role_name.to_string()).filter(|name| !name.is_empty()),
        index: own.and_then(|pod| pod.index),
        counted: 0,
        rank: own.and_then(|pod| pod.rank),
        verdict: VerdictWord::Placed,
        node: Some(on.to_owned()),
        devices,
        optimal: None,
        stays_until: None,
        reasons: Vec::new(),
        cures: Vec::new(),
        effort: None,
        notes,
        choice: None,
        fit_error: None,
        checks: None,
        nodes: None,
    })
}

/// The group of an object of the kind that users type so.
fn key_of(object: &ObjectRef, word: &str) -> GroupKey {
    let (namespace, name) = (Name::new(&object.namespace), Name::new(&object.name));
    GroupKey { object: Scoped { namespace, name }, kind: Name::new(word) }
}

/// The node that the object is about: of a node, a topology or a node's slice.
pub fn node_asked(world: &World, object: &ObjectRef) -> Option<String> {
    match object.kind {
        Kind::Node | Kind::CSINode => Some(object.name.clone()),
        Kind::NodeTopology | Kind::ResourceSlice | Kind::VolumeAttachment => {
            match world.objects()?.get(object)? {
                Object::NodeTopology(topology) => Some(topology.node_name().to_owned()),
                Object::ResourceSlice(slice) => slice.spec.node_name.clone(),
                Object::VolumeAttachment(attachment) => Some(attachment.spec.node_name.clone()),
                Object::Node(_)
                | Object::Pod(_)
                | Object::Namespace(_)
                | Object::Service(_)
                | Object::ReplicationController(_)
                | Object::ServiceAccount(_)
                | Object::PriorityClass(_)
                | Object::RuntimeClass(_)
                | Object::LimitRange(_)
                | Object::ResourceQuota(_)
                | Object::ResourceClaim(_)
                | Object::ResourceClaimTemplate(_)
                | Object::DeviceClass(_)
                | Object::DeviceTaintRule(_)
                | Object::PersistentVolume(_)
                | Object::PersistentVolumeClaim(_)
                | Object::StorageClass(_)
                | Object::CSINode(_)
                | Object::CSIDriver(_)
                | Object::CSIStorageCapacity(_)
                | Object::Placement(_)
                | Object::Scheduling(_)
                | Object::Workload(_) => None,
            }
        }
        Kind::Pod
        | Kind::Placement
        | Kind::Namespace
        | Kind::Service
        | Kind::ReplicationController
        | Kind::ServiceAccount
        | Kind::PriorityClass
        | Kind::RuntimeClass
        | Kind::LimitRange
        | Kind::ResourceQuota
        | Kind::ResourceClaim
        | Kind::ResourceClaimTemplate
        | Kind::DeviceClass
        | Kind::DeviceTaintRule
        | Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::StorageClass
        | Kind::CSIDriver
        | Kind::CSIStorageCapacity
        | Kind::Scheduling(_)
        | Kind::Workload(_) => None,
    }
}

/// Whether a question about the object is a question about the group.
fn concerns(world: &World, object: &ObjectRef, info: &GroupInfo) -> bool {
    let same_namespace = *info.key.object.namespace == *object.namespace;
    let pods = || info.roles.iter().flat_map(|role| &role.pods);
    let any_spec = |is: &dyn Fn(&PodSpec) -> bool| {
        let spec_of = |pod: &PodInfo| {
            let objects = world.objects()?;
            crate::lower::pod_spec(objects, &home_of(pod), pod.role)
        };
        let mut pods = info.roles.iter().filter_map(|role| role.pods.first());
        pods.any(|pod| spec_of(pod).is_some_and(|spec| is(&spec)))
    };
    match object.kind {
        Kind::Pod => {
            let is = |pod: &PodInfo| *pod.key.0.name == *object.name;
            same_namespace && pods().any(is)
        }
        Kind::Workload(kind) => {
            let asked = key_of(object, kind.word());
            // Who is absorbed is asked through the workload that absorbs it.
            let root = world.lowering().root(&asked);
            [asked, root].iter().any(|key| info.key == *key || info.above.contains(key))
        }
        // Of groups that are called the same by two APIs both are meant.
        Kind::Scheduling(kind) => {
            let named = same_namespace && *info.key.object.name == *object.name;
            info.gang && (named || !kind.is_group())
        }
        Kind::ResourceClaim => {
            let is = |claim: &ClaimName| *claim.key().0.name == *object.name;
            same_namespace && pods().any(|pod| pod.claims.iter().any(|c| is(&c.claim)))
        }
        Kind::ResourceClaimTemplate => {
            let is = |name: &phalanx_engine::Name| **name == *object.name;
            let of = |pod: &PodInfo| pod.claims.iter().any(|c| c.template.as_ref().is_some_and(is));
            same_namespace && pods().any(of)
        }
        Kind::DeviceClass => pods().flat_map(|pod| &pod.claims).any(|claim| {
            claim.spec.requests.iter().any(|request| {
                let exactly = request.exactly.iter().map(|e| &e.device_class_name);
                let any = request.first_available.iter().map(|s| &s.device_class_name);
                exactly.chain(any).any(|class| *class == object.name)
            })
        }),
        Kind::Namespace => *info.key.object.namespace == *object.name,
        Kind::PriorityClass => any_spec(&|spec| spec.priority_class_name == object.name),
        Kind::RuntimeClass => {
            any_spec(&|spec| spec.runtime_class_name.as_deref() == Some(&object.name))
        }
        // Whom they select is not kept of a pod: all of the namespace may be.
        Kind::LimitRange
        | Kind::ResourceQuota
        | Kind::Service
        | Kind::ServiceAccount
        | Kind::ReplicationController => same_namespace,
        Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::StorageClass
        | Kind::CSIDriver
        | Kind::CSIStorageCapacity => {
            let mounts = |pod: &PodInfo| {
                let objects = world.objects();
                let spec = objects.and_then(|o| crate::lower::pod_spec(o, &home_of(pod), pod.role));
                spec.is_some_and(|spec| super::mounts::mounts(world, object, pod, &spec))
            };
            pods().any(mounts)
        }
        Kind::Node
        | Kind::CSINode
        | Kind::VolumeAttachment
        | Kind::NodeTopology
        | Kind::ResourceSlice
        | Kind::DeviceTaintRule => true,
        Kind::Placement => world.lowering().placed_group(object) == Some(info.key.clone()),
    }
}
