//! `plan` and `why`: from the command line to the question, and from the answer to what is printed.

use std::collections::BTreeSet;

use phalanx_cluster::Compat;
use phalanx_cluster::cure::Trials;
use phalanx_cluster::edit::{Edit, EditError, kind_word, parse_target};
use phalanx_cluster::lint::nearest_names;
use phalanx_cluster::plan::PlanOptions;
use phalanx_cluster::raise;
use phalanx_cluster::view::{
    API_VERSION, Document, PodView, PolicyView, Summary, VerdictWord, ViewOptions, node_asked,
    node_order, plan_document, why_document,
};
use phalanx_cluster::world::World;
use phalanx_engine::{Effort, GroupKey, Name, Policy, Scoped, Timestamp};
use phalanx_objects::scheduling::SchedulingKind;
use phalanx_objects::{Kind, ObjectRef};

use crate::args::{
    DeviceOrder, InputArgs, NodeOrder, Output, PlanArgs, PlanOutput, QuestionArgs, WhyArgs,
};
use crate::document;
use crate::exit::{Answer, FINE, Failure, NOT_ALL, Printed};
use crate::input::{self, Input};
use crate::launch::{self, Launch};
use crate::nearest;
use crate::{node, plan as plan_text, why as why_text};

/// Answers `plan`.
pub(crate) fn plan(args: &PlanArgs) -> Result<Answer, Failure> {
    let mut input = changed_world(&args.input, &args.question)?;
    let options = options(&args.input, &args.question, &input.world);
    let plan = phalanx_cluster::plan::plan(&mut input.world, &options);
    // The table names no cures: `why` does.
    let view = match args.output {
        PlanOutput::Table
        | PlanOutput::Manifests
        | PlanOutput::Hostfile
        | PlanOutput::Rankfile
        | PlanOutput::Env => ViewOptions::default(),
        PlanOutput::Json | PlanOutput::Yaml => {
            ViewOptions { trials: Some(Trials::for_plan(&input.world)), alone: false }
        }
    };
    let mut document = plan_document(&mut input.world, &plan, &view);
    input.findings.take(&mut document);
    let findings = input.findings.render();
    let code = exit_code(&document);
    let ranks = |launch| Printed::Text(launch::render(&document, launch));
    let (out, messages) = match args.output {
        PlanOutput::Hostfile => (ranks(Launch::Hostfile), findings),
        PlanOutput::Rankfile => (ranks(Launch::Rankfile), findings),
        PlanOutput::Env => (ranks(Launch::Env), findings),
        PlanOutput::Table => {
            let command = |pod: &PodView| why_command(args, pod);
            let text = plan_text::render(&document, &findings, command);
            (Printed::Text(text), String::new())
        }
        PlanOutput::Json => (Printed::Document(document::json(&document)?), findings),
        PlanOutput::Yaml => (Printed::Document(document::yaml(&document)?), findings),
        PlanOutput::Manifests => {
            let writes = raise::manifests(&raise::raise(&input.world, &plan));
            (Printed::Document(document::yaml_stream(&writes)?), findings)
        }
    };
    Ok(Answer { out, messages, code })
}

/// Answers `why`.
pub(crate) fn why(args: &WhyArgs) -> Result<Answer, Failure> {
    let mut input = changed_world(&args.input, &args.question)?;
    let object = target(&args.target, &args.question.namespace, &input)?;
    let options = options(&args.input, &args.question, &input.world);
    let view = ViewOptions { trials: Some(Trials::for_why(&input.world)), alone: true };
    let mut document = why_document(&mut input.world, &object, &options, &view);
    input.findings.take(&mut document);
    let findings = input.findings.render_grave();
    // Of a pod it matters where that is, whatever became of its workload's others.
    let placed = |pod: &PodView| pod.verdict == VerdictWord::Placed;
    let alone = object.kind == Kind::Pod && document.pods.iter().all(placed);
    let fine = alone && !plan_text::any_error(&document);
    let code = if fine { FINE } else { exit_code(&document) };
    let (out, messages) = match args.output {
        Output::Table => {
            let text = why_answer(&document, &mut input.world, &object, args);
            (Printed::Text(text), findings)
        }
        Output::Json => (Printed::Document(document::json(&document)?), findings),
        Output::Yaml => (Printed::Document(document::yaml(&document)?), findings),
    };
    Ok(Answer { out, messages, code })
}

/// The answer to `why` as a text.
fn why_answer(
    document: &Document,
    world: &mut World,
    object: &ObjectRef,
    args: &WhyArgs,
) -> String {
    if let Some(node) = node_asked(world, object) {
        return node::render(document, world, &node);
    }
    let account = why_text::in_full(document).and_then(|pod| {
        let options = options(&args.input, &args.question, world);
        let plan = phalanx_cluster::plan::plan(world, &options);
        nearest::of_pod(pod, &plan, world)
    });
    why_text::render(document, account.as_ref(), object, args.all)
}

/// Reads the input and makes the changes of `--if`, in their order.
fn changed_world(args: &InputArgs, question: &QuestionArgs) -> Result<Input, Failure> {
    if question.strict_cel && question.device_order != DeviceOrder::Upstream {
        return Err(Failure::new(
            "--strict-cel has an effect only with --device-order upstream: add that, or leave it out."
                .to_owned(),
        ));
    }
    let asked = input::Asked {
        scheduler: question.scheduler_name.as_deref(),
        scored: question.policy == NodeOrder::KubeScheduler,
    };
    let mut input = input::read(args, asked)?;
    for change in &question.changes {
        let wrong = |error: EditError| {
            let error = error.to_string();
            let error = error.trim_end_matches('.');
            // An edit that can't be read is quoted by the reader.
            let bare = error.strip_prefix(&format!("`{change}`: ")).unwrap_or(error);
            Failure::new(format!("--if '{change}': {bare}."))
        };
        let edit: Edit = change.parse().map_err(wrong)?;
        input.world.edit(&edit, &question.namespace).map_err(wrong)?;
    }
    Ok(input)
}

/// The object that KIND/NAME names.
fn target(text: &str, namespace: &str, input: &Input) -> Result<ObjectRef, Failure> {
    let world = &input.world;
    let lowering = world.lowering();
    // A group by its name alone, whichever API declares it.
    let any = text.strip_prefix("group/").map(|rest| format!("podgroup/{rest}"));
    let target = parse_target(any.as_deref().unwrap_or(text));
    let object = target.map_err(|error| Failure::new(format!("{error}.")))?.reference(namespace);
    if object.kind == Kind::Scheduling(SchedulingKind::PodGroup) {
        let kinds = SchedulingKind::ALL.iter().filter(|kind| kind.is_group());
        let scope = Some(object.namespace.as_str());
        let mut found =
            kinds.flat_map(|kind| lowering.find(Kind::Scheduling(*kind), &object.name, scope));
        if let Some(found) = found.next() {
            return Ok(found);
        }
        // Its pods alone may name it.
        if lowering.has_gang(&object.namespace, &object.name) {
            return Ok(object);
        }
    }
    let scope = object.kind.is_namespaced().then_some(object.namespace.as_str());
    if !lowering.find(object.kind, &object.name, scope).is_empty() {
        return Ok(object);
    }
    if lowering.is_unread(&object) {
        let message = format!(
            "{object} is in the input and was left out, for it can't be read as one: mend what is said \
             of it above, and ask again."
        );
        return Err(Failure::new(message).after(&input.findings.of(&object)));
    }
    let mut elsewhere = lowering.find(object.kind, &object.name, None);
    // Dumps seldom hold namespaces themselves.
    let is_used = |kind| {
        let mut all = world.objects().into_iter();
        all.any(|objects| objects.in_namespace(kind, &object.name).next().is_some())
    };
    if object.kind == Kind::Namespace && Kind::workloads().chain([Kind::Pod]).any(is_used) {
        return Ok(object);
    }
    if object.kind == Kind::Pod {
        let planned = planned(world, Some(&object.name));
        if planned.contains(&object) {
            return Ok(object);
        }
        elsewhere.extend(planned);
    }
    let unread = lowering.unread_by_name(object.kind, &object.name);
    if let (Some(other), None) = (unread, elsewhere.first()) {
        let message = format!(
            "There is no {object}. {other} is in the input and was left out, for it can't be read as \
             one: mend what is said of it above, and add -n {}.",
            other.namespace
        );
        return Err(Failure::new(message).after(&input.findings.of(&other)));
    }
    let hint = match elsewhere.first() {
        Some(found) => {
            format!("namespace {} has one: add -n {}", found.namespace, found.namespace)
        }
        None => numbered(world, &object).unwrap_or_else(|| others(world, &object)),
    };
    Err(Failure::new(format!("There is no {object}: {hint}.")))
}

/// Most names of other objects that are listed.
const OTHERS_SHOWN: usize = 5;

/// The groups of its namespace whose names begin with that which is asked about and a number: of a
/// workload of which each replica starts whole. None where there is no such.
fn numbered(world: &World, object: &ObjectRef) -> Option<String> {
    let Kind::Scheduling(kind) = object.kind else { return None };
    let is_part = |name: &str| {
        let rest = name.strip_prefix(object.name.as_str()).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|rest| rest.parse::<u32>().is_ok())
    };
    let groups = world.lowering().gang_names(&object.namespace);
    let mut parts: Vec<&str> = groups.filter(|name| kind.is_group() && is_part(name)).collect();
    parts.sort_by_key(|name| (name.len(), *name));
    parts.dedup();
    let shown: Vec<String> =
        parts.iter().take(OTHERS_SHOWN).map(|name| format!("group/{name}")).collect();
    let shown = phalanx_cluster::words::list(&shown);
    match parts.len() {
        0 => None,
        1 => Some(format!("there is one group whose name begins so, {shown}")),
        count if count > OTHERS_SHOWN => {
            Some(format!("of the {count} groups whose names begin so the first are {shown}"))
        }
        _ => Some(format!("the groups whose names begin so are {shown}")),
    }
}

/// What there is instead of an object that is asked about: the nearest names first.
fn others(world: &World, object: &ObjectRef) -> String {
    let mut all = world.lowering().all(object.kind);
    if object.kind == Kind::Pod {
        all.extend(planned(world, None));
    }
    let kind = object.kind;
    let own: Vec<&ObjectRef> = all.iter().filter(|one| one.namespace == object.namespace).collect();
    let (scope, named) = match (own.as_slice(), all.as_slice()) {
        ([], []) => return format!("no {kind} was read, and none is to be made"),
        ([], all) => ("in other namespaces", all.iter().collect()),
        (own, _) if kind.is_namespaced() => ("in its namespace", own.to_vec()),
        (own, _) => ("in the input", own.to_vec()),
    };
    let names: BTreeSet<&str> = named.iter().map(|one| one.name.as_str()).collect();
    let nearest = nearest_names(&object.name, names.iter().copied());
    let shown: Vec<String> = nearest
        .iter()
        .filter_map(|name| named.iter().find(|one| one.name == *name))
        .take(OTHERS_SHOWN)
        .map(ToString::to_string)
        .collect();
    match (named.len(), nearest.len() > shown.len()) {
        (1, _) => format!("{scope} there is one {kind}, {}", shown.concat()),
        (count, true) => format!(
            "of the {count} {scope} those with the nearest names are {}",
            phalanx_cluster::words::list(&shown)
        ),
        (_, false) => format!("{scope} there are {}", phalanx_cluster::words::list(&shown)),
    }
}

/// Pods that workloads are still to make; those of one name, where that is given.
fn planned(world: &World, name: Option<&str>) -> Vec<ObjectRef> {
    let lowering = world.lowering();
    let workloads = Kind::workloads().flat_map(|kind| lowering.all(kind));
    // Its name is its workload's with a number.
    let might =
        |workload: &ObjectRef| name.is_none_or(|name| name.starts_with(workload.name.as_str()));
    let key = |workload: ObjectRef| GroupKey {
        object: Scoped {
            namespace: Name::new(&workload.namespace),
            name: Name::new(&workload.name),
        },
        kind: Name::new(kind_word(workload.kind)),
    };
    let groups = workloads.filter(might).filter_map(|workload| lowering.group(&key(workload)));
    let pods = groups.flat_map(|group| group.roles).flat_map(|role| role.pods);
    let pods = pods.map(|pod| pod.key.0);
    let pods = pods.filter(|pod| name.is_none_or(|name| *pod.name == *name));
    let reference = |pod: Scoped| ObjectRef {
        kind: Kind::Pod,
        namespace: pod.namespace.to_string(),
        name: pod.name.to_string(),
    };
    let mut all: Vec<ObjectRef> = pods.map(reference).collect();
    // Some of them exist.
    all.sort();
    all.dedup();
    all
}

fn options(args: &InputArgs, question: &QuestionArgs, world: &World) -> PlanOptions {
    let now = args.now.map(|now| Timestamp(now.as_millisecond()));
    let device_order = match question.device_order {
        DeviceOrder::Best => phalanx_engine::DeviceOrder::Best,
        DeviceOrder::Upstream => phalanx_engine::DeviceOrder::Upstream,
    };
    let node_order = match question.policy {
        NodeOrder::Best => phalanx_engine::NodeOrder::Best,
        NodeOrder::KubeScheduler => phalanx_engine::NodeOrder::Scores,
    };
    PlanOptions {
        now: now.or_else(|| world.newest_time()),
        policy: Policy { node_order, device_order, strict_cel: question.strict_cel },
        effort: Effort::default(),
    }
}

/// The command that asks why about a pod in the world of this plan, to be pasted into a shell.
fn why_command(args: &PlanArgs, pod: &PodView) -> String {
    let (input, question) = (&args.input, &args.question);
    let mut words: Vec<String> = ["phalanx", "why"].map(str::to_owned).into();
    let mut option = |name: &str, value: &str| {
        words.extend([name.to_owned(), why_text::word(value)]);
    };
    for path in &input.filenames {
        option("-f", &path.display().to_string());
    }
    let kubeconfig = input.cluster.kubeconfig.as_ref().map(|path| path.display().to_string());
    let texts = [
        ("--kubeconfig", kubeconfig),
        ("--context", input.cluster.context.clone()),
        ("--now", input.now.map(|now| now.to_string())),
        ("--kubernetes-version", input.kubernetes_version.clone()),
        ("--feature-gates", input.feature_gates.clone()),
        ("--scheduler-name", question.scheduler_name.clone()),
    ];
    for (name, value) in texts {
        value.iter().for_each(|value| option(name, value));
    }
    for change in &question.changes {
        option("--if", change);
    }
    if question.policy == NodeOrder::KubeScheduler {
        option("--policy", "kube-scheduler");
    }
    if question.device_order == DeviceOrder::Upstream {
        option("--device-order", "upstream");
    }
    // The changes keep the namespace in which they were asked.
    let own = question.changes.is_empty() || question.namespace == pod.namespace;
    let namespace = if own { &pod.namespace } else { &question.namespace };
    option("-n", namespace);
    if question.strict_cel {
        words.push("--strict-cel".to_owned());
    }
    let scope = if own { String::new() } else { format!("{}/", pod.namespace) };
    words.push(why_text::word(&format!("pod/{scope}{}", pod.name)));
    words.join(" ")
}

fn exit_code(document: &Document) -> u8 {
    let fine = plan_text::all_placed(document) && !plan_text::any_error(document);
    if fine { FINE } else { NOT_ALL }
}

/// The document where there is no answer: empty, but for what is wrong.
pub(crate) fn no_answer(failure: &Failure) -> Document {
    let policy = Policy::default();
    Document {
        api_version: API_VERSION,
        compat: input::compat_view(&Compat::default(), None),
        policy: PolicyView {
            node_order: node_order(policy.node_order),
            device_order: match policy.device_order {
                phalanx_engine::DeviceOrder::Best => "best",
                phalanx_engine::DeviceOrder::Upstream => "upstream",
            },
            strict_cel: policy.strict_cel,
            effort_steps: Effort::default().steps,
        },
        pods: Vec::new(),
        groups: Vec::new(),
        findings: failure.findings(),
        unanswered: true,
        summary: Summary::default(),
    }
}
