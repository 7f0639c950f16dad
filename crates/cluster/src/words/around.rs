//! What is said of the pods around a node: ports that are taken, pods that must be near or away, and
//! how evenly they are spread.

use phalanx_engine::{HostPort, Name, Reason};

use super::list;
use crate::lower::{LabelRule, PodSet, Requirement};

/// Some pods, as a sentence names them: `pods with app=db`.
pub(crate) fn pods(sets: &[PodSet]) -> String {
    let all: Vec<String> = sets.iter().map(set).collect();
    list(&all)
}

fn set(of: &PodSet) -> String {
    let pods = match &of.pods {
        None => return "no pod at all (there is no labelSelector)".to_owned(),
        Some(rule) if rule.is_empty() => "pods".to_owned(),
        Some(rule) => format!("pods with {}", labels(rule)),
    };
    let mut places = Vec::new();
    match of.namespaces.as_ref() {
        [] => {}
        [one] => places.push(format!("namespace {one}")),
        several => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            places.push(format!("namespaces {}", list(&names)));
        }
    }
    match &of.namespace_rule {
        Some(rule) if rule.is_empty() => places.push("any namespace".to_owned()),
        Some(rule) => places.push(format!("namespaces with {}", labels(rule))),
        None => {}
    }
    format!("{pods} in {}", places.join(" or in "))
}

fn labels(rule: &LabelRule) -> String {
    let values = |all: &[Name]| all.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
    let all: Vec<String> = rule
        .iter()
        .map(|requirement| match requirement {
            Requirement::In(key, one) if one.len() == 1 => format!("{key}={}", values(one)),
            Requirement::In(key, all) => format!("{key} in ({})", values(all)),
            Requirement::NotIn(key, one) if one.len() == 1 => format!("{key}!={}", values(one)),
            Requirement::NotIn(key, all) => format!("{key} not in ({})", values(all)),
            Requirement::Exists(key) => format!("the label {key}"),
            Requirement::DoesNotExist(key) => format!("no label {key}"),
        })
        .collect();
    list(&all)
}

/// A host port: `8080/TCP`, with its address where it is of one.
fn port(of: &HostPort) -> String {
    let HostPort { port, protocol, address } = of;
    if address.as_str() == HostPort::EVERY_ADDRESS {
        format!("{port}/{protocol}")
    } else {
        format!("{port}/{protocol} of {address}")
    }
}

/// A host port that is taken; `by` is the pod that has it.
pub(super) fn port_taken(asked: &HostPort, taken: &HostPort, by: Option<&str>) -> String {
    let by = by.unwrap_or("a pod on the node");
    if asked == taken {
        return format!("{by} has the host port {}", port(asked));
    }
    format!(
        "asks for the host port {}, and {by} has {}; without an address a port is one of every \
         address",
        port(asked),
        port(taken)
    )
}

/// A topology spread constraint that is not kept.
pub(super) fn spread(
    key: &str,
    value: Option<&Name>,
    (here, least, max_skew): (u32, Option<u32>, i32),
) -> String {
    let Some(value) = value else {
        return format!("the node has no label {key}, over which the pod is to be spread");
    };
    let pods = super::count(u64::from(here), "pod that counts", "pods that count");
    let least = match least {
        Some(least) => format!("the emptiest {key} has {least}"),
        None => {
            format!(
                "there are fewer values of {key} than `minDomains` asks for, so that one counts as empty"
            )
        }
    };
    format!("{key}={value} has {pods}, and {least}: one more is above maxSkew {max_skew}")
}

/// Pods that must be in a domain, or must not be; `which` are those that the pod's rule means, or
/// the one whose rule means this pod.
pub(super) fn near(reason: Reason, key: &str, value: Option<&Name>, which: Option<&str>) -> String {
    let meant = which.unwrap_or("the pods that its rule means");
    let Some(value) = value else {
        return format!("the node has no label {key}, by which the pod must be near {meant}");
    };
    if reason == Reason::PodAffinityUnmet {
        format!("the pod must be near {meant}, and {key}={value} has none")
    } else if reason == Reason::PodAntiAffinityUnmet {
        format!("the pod must be away from {meant}, and {key}={value} has one")
    } else {
        let by = which.unwrap_or("a pod");
        format!("{key}={value} has {by}, which must be away from pods like this one")
    }
}

/// The note on a pod that goes to the node that was promised to it.
pub fn promised_note(node: &str) -> String {
    format!("{node} was promised to it (status.nominatedNodeName): no other node was looked at")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text)
    }

    #[test]
    fn pods_are_named_by_their_labels_and_namespaces() {
        let rule: LabelRule = [
            Requirement::In(name("app"), [name("db")].into()),
            Requirement::NotIn(name("tier"), [name("a"), name("b")].into()),
            Requirement::DoesNotExist(name("old")),
        ]
        .into();
        let mut of = PodSet {
            namespaces: [name("ml")].into(),
            namespace_rule: None,
            unlisted: false,
            pods: Some(rule),
        };
        assert_eq!(
            pods(std::slice::from_ref(&of)),
            "pods with app=db, tier not in (a, b) and no label old in namespace ml"
        );
        of.namespaces = Box::default();
        of.namespace_rule = Some(Box::default());
        of.pods = Some(Box::default());
        assert_eq!(pods(std::slice::from_ref(&of)), "pods in any namespace");
        of.pods = None;
        assert!(pods(&[of]).starts_with("no pod at all"));
    }

    #[test]
    fn ports_are_named_with_their_address() {
        let here = HostPort { port: 80, protocol: name("TCP"), address: name("10.0.0.1") };
        let all = HostPort { address: name("0.0.0.0"), ..here.clone() };
        assert_eq!(port_taken(&all, &all, None), "a pod on the node has the host port 80/TCP");
        let text = port_taken(&all, &here, Some("pod a"));
        assert!(
            text.starts_with("asks for the host port 80/TCP, and pod a has 80/TCP of 10.0.0.1")
        );
    }

    #[test]
    fn an_emptiest_domain_may_be_none_at_all() {
        let a = name("a");
        assert_eq!(
            spread("zone", Some(&a), (1, Some(0), 1)),
            "zone=a has 1 pod that counts, and the emptiest zone has 0: one more is above maxSkew 1"
        );
        let few = spread("zone", Some(&a), (2, None, 1));
        assert!(
            few.contains("2 pods that count, and there are fewer values of zone than `minDomains`")
        );
    }
}
