//! Does a plan answer what a scenario expects?

use std::collections::BTreeSet;

use phalanx_cluster::view::{CureView, Document, GroupView, PodView, ReasonView, VerdictWord};

use crate::scenario::{Expect, Scenario};

/// Everything in which the plan differs, a sentence each.
pub(crate) fn judge(scenario: &Scenario, document: &Document) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, expect) in scenario.expect.iter() {
        match name.split_once('/') {
            Some((kind, group)) => {
                match document.groups.iter().find(|g| g.kind == kind && g.name == group) {
                    Some(view) => judge_group(name, expect, view, &mut wrong),
                    None => wrong.push(format!("{name} is not in the plan.")),
                }
            }
            None => match document.pods.iter().find(|pod| pod.name == name) {
                Some(view) => judge_pod(name, expect, view, &mut wrong),
                None => wrong.push(format!("{name} is not in the plan.")),
            },
        }
    }
    for pod in document.pods.iter().filter(|pod| pod.group.is_none()) {
        if scenario.expect.get(&pod.name).is_none() {
            wrong.push(format!("{} is in the plan and nothing is expected of it.", pod.name));
        }
    }
    judge_codes(scenario, document, &mut wrong);
    judge_findings(scenario, document, &mut wrong);
    wrong
}

fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    expected: &Option<T>,
    found: &T,
    wrong: &mut Vec<String>,
) {
    if let Some(expected) = expected
        && expected != found
    {
        wrong.push(format!("{what}: expected {expected:?}, found {found:?}."));
    }
}

fn judge_pod(name: &str, expect: &Expect, pod: &PodView, wrong: &mut Vec<String>) {
    let (verdict, codes) = expected(expect);
    if verdict.is_some_and(|verdict| verdict != pod.verdict) {
        let reasons: Vec<&str> = pod.reasons.iter().map(|r| r.message.as_str()).collect();
        wrong.push(format!("{name}: its verdict is {}: {reasons:?}.", pod.verdict.as_str()));
        return;
    }
    same(&format!("{name}, node"), &expect.node, &pod.node.clone().unwrap_or_default(), wrong);
    same(&format!("{name}, devices"), &expect.devices, &devices(pod), wrong);
    let optimal = pod.optimal.unwrap_or_default().to_owned();
    same(&format!("{name}, optimal"), &expect.optimal, &optimal, wrong);
    same(&format!("{name}, reasons"), &codes.cloned(), &codes_of(&pod.reasons), wrong);
    judge_cures(name, expect, &pod.cures, wrong);
}

fn judge_group(name: &str, expect: &Expect, group: &GroupView, wrong: &mut Vec<String>) {
    let (verdict, codes) = expected(expect);
    if verdict.is_some_and(|verdict| verdict != group.verdict) {
        wrong.push(format!("{name}: its verdict is {}.", group.verdict.as_str()));
    }
    same(&format!("{name}, placed"), &expect.placed, &group.placed, wrong);
    same(&format!("{name}, short"), &expect.short, &group.short, wrong);
    same(&format!("{name}, reasons"), &codes.cloned(), &codes_of(&group.reasons), wrong);
    judge_cures(name, expect, &group.cures, wrong);
}

/// The verdict that is expected, where it is one alone, and the codes.
fn expected(expect: &Expect) -> (Option<VerdictWord>, Option<&Vec<String>>) {
    if let Some(codes) = &expect.waits {
        (Some(VerdictWord::Waits), Some(codes))
    } else if let Some(codes) = &expect.refused {
        (Some(VerdictWord::Refused), Some(codes))
    } else if let Some(codes) = &expect.gave_up {
        (Some(VerdictWord::GaveUp), Some(codes))
    } else {
        (Some(VerdictWord::Placed), None)
    }
}

fn devices(pod: &PodView) -> Vec<String> {
    let name = |device: &phalanx_cluster::view::DeviceView| {
        if pod.node.as_ref() == Some(&device.pool) {
            device.device.clone()
        } else {
            format!("{}/{}", device.pool, device.device)
        }
    };
    pod.devices.iter().map(name).collect()
}

fn codes_of(reasons: &[ReasonView]) -> Vec<String> {
    reasons.iter().map(|reason| reason.code.to_owned()).collect()
}

fn judge_cures(name: &str, expect: &Expect, cures: &[CureView], wrong: &mut Vec<String>) {
    for edit in expect.cures.iter().flatten() {
        if !cures.iter().any(|cure| cure.edit == *edit) {
            let found: Vec<&str> = cures.iter().map(|cure| cure.edit.as_str()).collect();
            wrong.push(format!("{name}: `{edit}` is none of its cures {found:?}."));
        }
    }
}

/// Each code of `decides` is the deciding one of some pod or workload, which comes first; none of
/// `spares` comes at all.
fn judge_codes(scenario: &Scenario, document: &Document, wrong: &mut Vec<String>) {
    let all = document.pods.iter().map(|pod| &pod.reasons);
    let all: Vec<&Vec<ReasonView>> =
        all.chain(document.groups.iter().map(|group| &group.reasons)).collect();
    let decided: BTreeSet<&str> =
        all.iter().filter_map(|reasons| reasons.first()).map(|reason| reason.code).collect();
    let named: BTreeSet<&str> = all.iter().flat_map(|r| r.iter()).map(|r| r.code).collect();
    for code in scenario.decides.iter().filter(|code| !decided.contains(code.as_str())) {
        wrong.push(format!("{code} decides nothing here."));
    }
    for code in scenario.spares.iter().filter(|code| named.contains(code.as_str())) {
        wrong.push(format!("{code} is not spared."));
    }
}

fn judge_findings(scenario: &Scenario, document: &Document, wrong: &mut Vec<String>) {
    let found: Vec<&str> = document.findings.iter().map(|f| f.message.as_str()).collect();
    let expected = &scenario.findings;
    let equal = found.len() == expected.len()
        && found.iter().zip(expected).all(|(message, part)| message.contains(part));
    if !equal {
        wrong.push(format!("findings: expected {expected:?}, found {found:?}."));
    }
}
