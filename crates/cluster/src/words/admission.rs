//! What admission adds and refuses, in sentences.

use phalanx_objects::core::ResourceList;

use super::list;
use crate::lower::{Added, Asker, Bound, Excess, QuotaVerdict, Refusal, Violations};

/// The finding on what the API server refuses.
pub(crate) fn refused(refusal: &Refusal) -> String {
    format!("The API server would refuse the pod: {}.", why_refused(refusal))
}

/// Why, for a sentence.
pub(crate) fn why_refused(refusal: &Refusal) -> String {
    match refusal {
        Refusal::RuntimeClassMissing { class, unread } => missing("RuntimeClass", class, *unread),
        Refusal::Overhead { class: None } => {
            "it gives an overhead and names no RuntimeClass; leave the overhead to the class"
                .to_owned()
        }
        Refusal::Overhead { class: Some(class) } => format!(
            "it gives another overhead than RuntimeClass {class} has; leave the overhead to the class"
        ),
        Refusal::Selector { by, key, adds, own } => {
            format!("{by} adds the node selector {key}={adds}, and the pod has {key}={own}")
        }
        Refusal::PriorityClassMissing { class, unread } => missing("PriorityClass", class, *unread),
        Refusal::Priority { given, class, value } => format!(
            "it gives the priority {given}, and {} has {value}; leave the priority to the class",
            of_class(class)
        ),
        Refusal::Preemption { given, class, policy } => format!(
            "it gives the preemptionPolicy {given}, and {} has {policy}; leave it to the class",
            of_class(class)
        ),
        Refusal::AboveLimit { container, resource, request, limit } => format!(
            "container {container} requests {request} of {resource} and is limited to {limit}"
        ),
        Refusal::Bound(bound) => broken(bound),
        Refusal::Insecure { namespace, level, broken } => {
            insecure(namespace, level.as_str(), broken)
        }
        Refusal::Namespace { name, going: false } => {
            format!("namespace {name} does not exist")
        }
        Refusal::Namespace { name, going: true } => {
            format!("namespace {name} is being deleted, and nothing new is made in it")
        }
        Refusal::AccountMissing { account, unread } => missing("ServiceAccount", account, *unread),
        Refusal::Invalid(invalid) => invalid.why.clone(),
    }
}

/// The finding on a pod that names its node.
pub(crate) fn names_node(node: &str) -> String {
    format!(
        "The pod names its node, {node}: no scheduler places it. It is planned as the kubelet there \
         would take it: by room, host ports, node selector, required node affinity and taints that \
         evict. A kubelet that does not take it ends it as Failed, and where there is no node {node} it \
         is deleted."
    )
}

/// Words that begin a sentence and are in lower case within one.
const BEGINNINGS: [&str; 8] = ["A", "An", "The", "No", "Two", "There", "Each", "Parts"];

/// The same where the workload is refused: a sentence on it as a part of another.
pub(crate) fn of_maker(message: &str) -> String {
    let message = message.strip_suffix('.').unwrap_or(message);
    match message.split_once(' ') {
        Some((first, rest)) if BEGINNINGS.contains(&first) => {
            format!("{} {rest}", first.to_lowercase())
        }
        Some(_) | None => message.to_owned(),
    }
}

/// What a level of PodSecurity forbids and demands.
fn insecure(namespace: &str, level: &str, broken: &Violations) -> String {
    let verb = |verb: &str, what: &[String]| {
        if what.is_empty() { Vec::new() } else { vec![format!("{verb} {}", list(what))] }
    };
    let mut said = verb("forbids", &broken.forbidden);
    said.extend(verb("demands", &broken.demanded));
    format!(
        "namespace {namespace} enforces the level {level} of PodSecurity, which {}",
        list(&said)
    )
}

fn of_class(class: &str) -> String {
    match class {
        "" => "a pod that names no PriorityClass".to_owned(),
        class => format!("PriorityClass {class}"),
    }
}

fn broken(bound: &Bound) -> String {
    let Bound { range, of, bound, resource, amount, has } = bound;
    let rule = match *bound {
        "min" => format!("wants at least {amount} of {resource}"),
        "max" => format!("allows at most {amount} of {resource}"),
        _ => format!("allows a limit of {resource} of at most {amount} times the request"),
    };
    format!("LimitRange {range} {rule}, and {of} has {has}")
}

/// What is said of a RuntimeClass where the input has none at all.
pub(crate) fn runtime_class_unknown(class: &str) -> String {
    format!(
        "RuntimeClass {class} is not in the input. Its overhead, node selector and tolerations, if it \
         has some, come on top: add the RuntimeClasses of the cluster."
    )
}

/// A class that is named and that nothing is known of.
fn missing(kind: &str, class: &str, unread: bool) -> String {
    if unread {
        format!("{kind} {class} could not be read, which counts as if it did not exist")
    } else {
        format!("{kind} {class} does not exist")
    }
}

/// What admission adds.
pub(crate) fn added(added: &[Added]) -> String {
    let said: Vec<String> = added.iter().map(one).collect();
    format!("Admission adds {}.", said.join("; "))
}

fn one(added: &Added) -> String {
    match added {
        Added::Container { range, container, what, amounts } => {
            format!("{what} {} to container {container} (LimitRange {range})", all(amounts))
        }
        Added::Overhead { class, amounts } => {
            format!("the overhead {} (RuntimeClass {class})", all(amounts))
        }
        Added::NodeSelector { by, labels } => {
            let pairs: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
            format!("the node selector {} ({by})", list(&pairs))
        }
        Added::Tolerations { by, keys } => {
            let keys: Vec<String> = keys
                .iter()
                .map(|key| if key.is_empty() { "every taint".to_owned() } else { key.clone() })
                .collect();
            format!("a toleration of {} ({by})", list(&keys))
        }
    }
}

fn all(amounts: &ResourceList) -> String {
    let pairs: Vec<String> = amounts.iter().map(|(name, q)| format!("{name}={q}")).collect();
    list(&pairs)
}

/// The finding on what a quota keeps out. Claims are refused after their pod is made.
pub(crate) fn exceeded(verdict: &QuotaVerdict) -> String {
    let QuotaVerdict { namespace, quota, excess, open, wanted, workload } = verdict;
    let why = why_exceeded(excess);
    let of_claims = match excess {
        Excess::Amount { who, .. } => *who == Asker::Claims,
        Excess::Unset { .. } => false,
    };
    let what = match (workload, of_claims, open) {
        (false, true, _) => {
            "The API server would refuse a claim of the pod, and the pod would wait for it"
                .to_owned()
        }
        (false, false, _) => "The API server would refuse the pod".to_owned(),
        (true, true, _) if *wanted == 1 => {
            "The API server would refuse a claim of its pod, and the pod would wait for it"
                .to_owned()
        }
        (true, false, _) if *wanted == 1 => "Its pod would not be made".to_owned(),
        (true, true, open) => format!(
            "Of its {wanted} pods {} would wait for claims that the API server refuses",
            wanted.saturating_sub(*open)
        ),
        (true, false, 0) => format!("None of its {wanted} pods would be made"),
        (true, false, open) => format!("Of its {wanted} pods {open} would be made"),
    };
    format!("{what}: ResourceQuota {namespace}/{quota} is in the way: {why}.")
}

/// What a quota lacks, after its name.
pub(crate) fn why_exceeded(excess: &Excess) -> String {
    match excess {
        Excess::Unset { resource, container } => format!(
            "it counts {resource}, so every container must set it, and container {container} does not"
        ),
        Excess::Amount { resource, hard, used, before, asked, who } => {
            let who = match who {
                Asker::Workload => "the workload asks",
                Asker::Pod => "a pod asks",
                Asker::Claims => "claims that are still to be made ask",
            };
            let before = if before.is_zero() {
                String::new()
            } else {
                format!(", {before} for what is made before")
            };
            format!("it allows {hard} of {resource}: {used} in use{before}, and {who} for {asked}")
        }
    }
}

/// Why a quota never lets a pod be made, for a sentence.
pub(crate) fn why_never(verdict: &QuotaVerdict) -> String {
    format!("ResourceQuota {} is in the way: {}", verdict.quota, why_exceeded(&verdict.excess))
}
