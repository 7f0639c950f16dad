//! What no node could ever hold, judged as `plan` judges it: pods and workloads that wait, and
//! claims and templates that no pod uses yet, each with a pod that asks for nothing else.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::Reason;
use phalanx_objects::core::{Container, Pod, PodResourceClaim, PodSpec};
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::topology::ALIGN_ANNOTATION;
use phalanx_objects::{Kind, Object, ObjectRef};

use super::asked::asks;
use super::bench::Bench;
use super::{Lint, Rule};
use crate::edit::kind_word;
use crate::finding::{Finding, Severity, Source};
use crate::lower::{ObjectEvent, PodInfo};
use crate::plan::{PlanOptions, plan};
use crate::view::{ReasonView, VerdictWord, ViewOptions, document_with};
use crate::world::World;

pub(super) fn find(bench: &Bench<'_>, options: &PlanOptions, found: &mut Vec<Lint>) {
    let world = bench.world;
    if world.nodes_len() == 0 {
        if !bench.waiting.is_empty() {
            let message = "The input has no node, so that it was not tried whether any could hold the \
                           pods. Add the nodes of the cluster.";
            found.push(Lint::of_input(Rule::NoNodesRead, message));
        }
        return;
    }
    let blamed = blamed(found);
    let subjects = subjects(bench);
    let by_name: BTreeMap<&ObjectRef, &Subject> =
        subjects.iter().map(|subject| (&subject.reference, subject)).collect();
    let mut fork = world.clone();
    let tried = try_out(&mut fork, &subjects);
    let plan = plan(&mut fork, options);
    let held = crate::deadlock::findings(&fork, &plan);
    let document = document_with(&mut fork, &plan, &ViewOptions::default(), &held);
    found.extend(held.into_iter().filter_map(|finding| in_part(world, finding)));
    // Of a group that no workload makes, the pods are asked that exist.
    let of_workload = |group: &String| {
        let kind = group.split('/').next().unwrap_or_default();
        Kind::workloads().any(|of| kind_word(of) == kind)
    };
    let own = document.pods.iter().filter(|pod| !pod.group.as_ref().is_some_and(of_workload));
    let pods = own.map(|pod| {
        let name = (Kind::Pod, pod.namespace.clone(), pod.name.clone());
        (name, pod.verdict, &pod.reasons, pod.group.is_some())
    });
    let groups = document.groups.iter().filter_map(|group| {
        let kind = Kind::workloads().find(|kind| kind_word(*kind) == group.kind)?;
        let name = (kind, group.namespace.clone(), group.name.clone());
        Some((name, group.verdict, &group.reasons, false))
    });
    let makers = makers(&fork);
    let mut refused: BTreeMap<(BTreeSet<ObjectRef>, bool, String), Vec<&Subject>> = BTreeMap::new();
    for ((kind, namespace, name), verdict, reasons, member) in pods.chain(groups) {
        if verdict != VerdictWord::Refused {
            continue;
        }
        let own = ObjectRef { kind, namespace, name };
        let reference = tried.get(&own).or_else(|| makers.get(&own)).unwrap_or(&own);
        let Some(subject) = by_name.get(reference) else {
            continue;
        };
        let of_devices = |object: &ObjectRef| {
            matches!(object.kind, Kind::ResourceClaim | Kind::ResourceClaimTemplate)
        };
        // That there is no device at all is said once.
        let deviceless = bench.alike.is_empty() && subject.leans_on.iter().any(of_devices);
        // An object that could not be read is told where it is read.
        let unread = |object: &ObjectRef| world.lowering().is_unread(object);
        let blames = |object: &ObjectRef| blamed.contains(object) || unread(object);
        if deviceless || subject.leans_on.iter().any(blames) {
            continue;
        }
        if folded(subject, reasons, found) {
            continue;
        }
        if let Some(why) = why(reasons) {
            let of_group = member || reasons.first().is_some_and(|reason| reason.scope == "group");
            refused.entry((subject.cause(), of_group, why)).or_default().push(subject);
        }
    }
    for ((_, of_group, why), subjects) in refused {
        found.extend(told(subjects, of_group, &why));
    }
}

/// Of pods that are still to be made and are of another's group, the workload that makes them.
fn makers(world: &World) -> BTreeMap<ObjectRef, ObjectRef> {
    let lowering = world.lowering();
    let groups = lowering.gangs().filter_map(|key| Some((key, lowering.group(key)?)));
    let pods = groups.flat_map(|(key, group)| {
        let pods = group.roles.into_iter().flat_map(|role| role.pods);
        pods.filter(move |pod| pod.planned && pod.home != *key)
    });
    let pair = |pod: PodInfo| {
        let (namespace, name) = (pod.key.0.namespace.to_string(), pod.key.0.name.to_string());
        let maker = Kind::workloads().find(|kind| kind_word(*kind) == pod.home.kind.as_str())?;
        let maker = ObjectRef {
            kind: maker,
            namespace: namespace.clone(),
            name: pod.home.object.name.to_string(),
        };
        Some((ObjectRef { kind: Kind::Pod, namespace, name }, maker))
    };
    pods.filter_map(pair).collect()
}

/// A group that started in part.
fn in_part(world: &World, finding: Finding) -> Option<Lint> {
    let object = finding.object?;
    let read = Source { file: finding.file, line: finding.line, ordinal: 0 };
    let source = world.lowering().source(&object).cloned().unwrap_or(read);
    Some(Lint::new(Rule::GroupInPart, (&object, &source), "", finding.message))
}

/// What is refused for one cause: of pods that use the same claims one stands for all.
fn told(mut subjects: Vec<&Subject>, of_group: bool, why: &str) -> Option<Lint> {
    // Members of a group are told of in order of name, whichever was read first.
    let place = |subject: &&Subject| if of_group { 0 } else { subject.source.ordinal };
    subjects.sort_by_key(|subject| (place(subject), &subject.reference));
    // A workload with several such pods.
    subjects.dedup_by_key(|subject| &subject.reference);
    let (first, others) = subjects.split_first()?;
    let what = if first.tried { "a pod that uses it" } else { "it" };
    let more = match others.len() {
        0 => String::new(),
        1 => format!(" So it is with 1 more pod, {}.", others.first()?.reference.name),
        more => {
            format!(" So it is with {more} more pods, such as {}.", others.first()?.reference.name)
        }
    };
    let holds = match of_group {
        true => format!("The nodes of the input could never hold the whole of the group of {what}"),
        false => format!("No node of the input could ever hold {what}"),
    };
    let message = format!(
        "{holds}, even with every other pod gone and everything \
         healed: {why}.{more}"
    );
    Some(Lint::new(Rule::NeverFits, (&first.reference, &first.source), &first.path, message))
}

/// Whether it is refused for values that never agree, of which a finding tells already: that is then
/// an error, and says for whom.
fn folded(subject: &Subject, reasons: &[ReasonView], found: &mut [Lint]) -> bool {
    if reasons.first().is_none_or(|reason| reason.code != Reason::MatchUnmet.code()) {
        return false;
    }
    let is = |lint: &&mut Lint| {
        let leans = |object: &ObjectRef| subject.leans_on.contains(object);
        lint.rule == Rule::AttributeValuesApart && lint.object.as_ref().is_some_and(leans)
    };
    let Some(lint) = found.iter_mut().find(is) else { return false };
    if lint.severity != Severity::Error {
        lint.severity = Severity::Error;
        let who = &subject.reference;
        let what = if subject.tried { "a pod that uses it".to_owned() } else { who.to_string() };
        lint.message.push_str(&format!(" No node of the input could ever hold {what}."));
    }
    true
}

/// Why it is refused; that nothing else is in the way the sentence says already.
fn why(reasons: &[ReasonView]) -> Option<String> {
    let why = reasons.first()?.message.trim_end_matches('.');
    let why = match why.strip_prefix(crate::words::EVEN_THEN) {
        Some(rest) => rest.trim_start_matches([',', ' ']),
        None => why,
    };
    Some(why.to_owned())
}

/// The objects of which an error was found that keeps pods from being placed.
fn blamed(found: &[Lint]) -> BTreeSet<ObjectRef> {
    let keeps = |lint: &&Lint| {
        // Of a group it is the wish for nearness; a number that is wrong is read as another.
        let is_group =
            matches!(lint.object.as_ref().map(|object| object.kind), Some(Kind::Scheduling(_)));
        let of_spec = match is_group {
            true => lint.path.contains(ALIGN_ANNOTATION),
            false => {
                !lint.path.starts_with("metadata.name") && !lint.path.starts_with("metadata.labels")
            }
        };
        lint.severity == Severity::Error && of_spec
    };
    found.iter().filter(keeps).filter_map(|lint| lint.object.clone()).collect()
}

/// What is judged.
#[derive(Debug)]
struct Subject {
    reference: ObjectRef,
    source: Source,
    path: String,
    /// Whether it is judged with a pod of ours.
    tried: bool,
    /// The objects whose errors would be its own: itself, its claims and templates, their classes, its
    /// groups.
    leans_on: BTreeSet<ObjectRef>,
}

impl Subject {
    /// What it shares with those that are refused for the same: of a pod, its claims; of anything
    /// else nothing.
    fn cause(&self) -> BTreeSet<ObjectRef> {
        let mut cause = self.leans_on.clone();
        if self.reference.kind == Kind::Pod {
            cause.remove(&self.reference);
        }
        cause
    }
}

fn subjects(bench: &Bench<'_>) -> Vec<Subject> {
    let mut classes: BTreeMap<ObjectRef, BTreeSet<ObjectRef>> = BTreeMap::new();
    let holders = &bench.holders;
    for holder in holders {
        let named = asks(holder.devices, holder.at).into_iter().map(|ask| ObjectRef {
            kind: Kind::DeviceClass,
            namespace: String::new(),
            name: ask.class.to_owned(),
        });
        classes.insert(holder.reference.clone(), named.collect());
    }
    let mut used: BTreeSet<ObjectRef> = used(bench.world);
    let mut all = Vec::new();
    for waiting in &bench.waiting {
        let mut leans_on = BTreeSet::from([waiting.reference.clone()]);
        for reference in claims_of(&waiting.reference.namespace, waiting.spec) {
            leans_on.extend(classes.get(&reference).into_iter().flatten().cloned());
            leans_on.insert(reference.clone());
            used.insert(reference);
        }
        leans_on.extend(bench.world.lowering().groups_at(&waiting.reference, &waiting.at));
        let reference = waiting.reference.clone();
        let source = waiting.source.clone();
        all.push(Subject { reference, source, path: waiting.at.clone(), tried: false, leans_on });
    }
    for holder in holders.iter().filter(|holder| !used.contains(&holder.reference)) {
        let mut leans_on = classes.get(&holder.reference).cloned().unwrap_or_default();
        leans_on.insert(holder.reference.clone());
        let (reference, source) = (holder.reference.clone(), holder.source.clone());
        all.push(Subject { reference, source, path: holder.at.to_owned(), tried: true, leans_on });
    }
    all
}

/// The claims and templates that a pod uses, whatever became of it: that a running pod's template
/// fits is shown.
fn used(world: &World) -> BTreeSet<ObjectRef> {
    let mut used = BTreeSet::new();
    let Some(objects) = world.objects() else { return used };
    let kinds = Kind::workloads().chain([Kind::Pod]);
    for object in kinds.flat_map(|kind| objects.of_kind(kind)) {
        for part in object.pod_parts() {
            used.extend(claims_of(object.namespace(), part.spec));
        }
    }
    used
}

fn claims_of(namespace: &str, spec: &PodSpec) -> Vec<ObjectRef> {
    let reference = |kind, name: &String| ObjectRef {
        kind,
        namespace: namespace.to_owned(),
        name: name.clone(),
    };
    let claims = spec.resource_claims.iter();
    claims
        .flat_map(|claim| {
            let named = claim.resource_claim_name.iter();
            let named = named.map(|name| reference(Kind::ResourceClaim, name));
            let made = claim.resource_claim_template_name.iter();
            named.chain(made.map(|name| reference(Kind::ResourceClaimTemplate, name)))
        })
        .collect()
}

/// Adds a pod for each claim or template that none uses; answers whose each pod is.
fn try_out(fork: &mut World, subjects: &[Subject]) -> BTreeMap<ObjectRef, ObjectRef> {
    let mut whose = BTreeMap::new();
    for (index, subject) in subjects.iter().enumerate().filter(|(_, subject)| subject.tried) {
        let holder = &subject.reference;
        let name = format!("lint-{index}-{}", holder.name);
        let pod = ObjectRef { kind: Kind::Pod, namespace: holder.namespace.clone(), name };
        if fork.lowering().source(&pod).is_some() {
            continue;
        }
        let is_template = holder.kind == Kind::ResourceClaimTemplate;
        let claim = PodResourceClaim {
            name: "devices".to_owned(),
            resource_claim_name: (!is_template).then(|| holder.name.clone()),
            resource_claim_template_name: is_template.then(|| holder.name.clone()),
        };
        let metadata = ObjectMeta {
            name: pod.name.clone(),
            namespace: pod.namespace.clone(),
            ..ObjectMeta::default()
        };
        let container = Container { name: "any".to_owned(), ..Container::default() };
        let mut spec = PodSpec {
            resource_claims: vec![claim],
            containers: vec![container],
            ..PodSpec::default()
        };
        if let Some(scheduler) = fork.lowering().scheduler_name() {
            spec.scheduler_name = scheduler.to_owned();
        }
        let object = Pod { metadata, spec, ..Pod::default() };
        let source = subject.source.clone();
        fork.absorb(ObjectEvent::Applied(Box::new(Object::from(object)), source));
        whose.insert(pod, holder.clone());
    }
    fork.settle();
    whose
}
