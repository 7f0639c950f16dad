//! Pods (`core/validation`, `ValidatePodSpec`): the rules about what scheduling reads, and that what one
//! part of a pod names is another. Images, commands, probes and where volumes are mounted are not
//! checked, for they are not read.

use std::collections::BTreeSet;

use phalanx_objects::core::{
    Container, NodeSelectorOperator, NodeSelectorRequirement, PodAffinityTerm, PodResourceClaim,
    PodSpec, RestartPolicy, TaintEffect, Toleration, TolerationOperator, TopologySpreadConstraint,
    UnsatisfiableConstraintAction,
};
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::storage::Volume;

use super::name::{bad_object_name, is_label};
use super::{Found, Invalid, resources, volume_claim};
use crate::lower::intern::nanos;
use crate::lower::rules::{is_label_value, is_qualified_name};
use crate::lower::volumes::{modes, size};

/// Most names that a sentence lists.
const NAMES_SHOWN: usize = 8;

/// The rules, in the order in which they are told.
const RULES: [fn(&PodSpec, &mut Found); 10] = [
    containers,
    host_ports,
    restart,
    volumes,
    claims,
    claims_used,
    tolerations,
    node_selection,
    affinity,
    spread,
];

/// What is refused of a pod, as admission leaves it. Of a pod of its own the metadata are given.
pub(crate) fn pod(meta: Option<&ObjectMeta>, spec: &PodSpec) -> Vec<Invalid> {
    let mut found = Found::default();
    if let Some(why) = meta.and_then(|meta| bad_object_name(&meta.name)) {
        found.add("metadata.name", why);
    }
    for rule in RULES {
        rule(spec, &mut found);
    }
    found.0
}

/// Each container with its path.
fn each(spec: &PodSpec) -> impl Iterator<Item = (String, &Container)> {
    let of = |list: &'static str| move |(at, c)| (format!("spec.{list}[{at}]"), c);
    let init = spec.init_containers.iter().enumerate().map(of("initContainers"));
    spec.containers.iter().enumerate().map(of("containers")).chain(init)
}

fn containers(spec: &PodSpec, found: &mut Found) {
    if spec.containers.is_empty() {
        found.add("spec.containers", "it has no containers (`spec.containers` is empty)");
    }
    let mut names = BTreeSet::new();
    for (at, container) in each(spec) {
        let name = container.name.as_str();
        if name.is_empty() {
            found.add(format!("{at}.name"), format!("a container has no name (`{at}.name`)"));
        } else if !is_label(name) {
            let why = format!(
                "{name:?} is no name of a container: at most 63 lower case letters, digits and `-`"
            );
            found.add(format!("{at}.name"), why);
        } else if !names.insert(name) {
            let why = format!("two of its containers are called {name} (`{at}.name`)");
            found.add(format!("{at}.name"), why);
        }
        resources::check(container, &at, found);
    }
}

fn host_ports(spec: &PodSpec, found: &mut Found) {
    let mut taken = BTreeSet::new();
    for (at, container) in each(spec) {
        let mut names = BTreeSet::new();
        for (index, port) in container.ports.iter().enumerate() {
            let at = format!("{at}.ports[{index}]");
            let valid = |port: i32| (1..=65_535).contains(&port);
            if !valid(port.container_port) {
                let why = format!("{} is no `containerPort`, 1 to 65535", port.container_port);
                found.add(format!("{at}.containerPort"), why);
            }
            if !["", "TCP", "UDP", "SCTP"].contains(&port.protocol.as_str()) {
                let why = format!("{} is no `protocol`: TCP, UDP or SCTP", port.protocol);
                found.add(format!("{at}.protocol"), why);
            }
            if !port.name.is_empty() && !names.insert(port.name.as_str()) {
                let why =
                    format!("two ports of container {} are called {}", container.name, port.name);
                found.add(format!("{at}.name"), why);
            }
            if port.host_port == 0 {
                continue;
            }
            if !valid(port.host_port) {
                let why = format!("{} is no `hostPort`, 1 to 65535", port.host_port);
                found.add(format!("{at}.hostPort"), why);
            } else if spec.host_network && port.host_port != port.container_port {
                let why = format!(
                    "with `hostNetwork` the `hostPort` {} must be the containerPort {}",
                    port.host_port, port.container_port
                );
                found.add(format!("{at}.hostPort"), why);
            }
            let protocol = if port.protocol.is_empty() { "TCP" } else { &port.protocol };
            // A container that has ended leaves its ports to the next.
            let counts = at.starts_with("spec.containers");
            if counts && !taken.insert((protocol.to_owned(), &port.host_ip, port.host_port)) {
                let why = format!("it names the `hostPort` {} twice", port.host_port);
                found.add(format!("{at}.hostPort"), why);
            }
        }
    }
}

fn restart(spec: &PodSpec, found: &mut Found) {
    if let RestartPolicy::Other(word) = &spec.restart_policy {
        let why = format!("{word} is no `restartPolicy`: Always, OnFailure or Never");
        found.add("spec.restartPolicy", why);
    }
    if spec.active_deadline_seconds.is_some_and(|seconds| seconds < 1) {
        found.add("spec.activeDeadlineSeconds", "its `activeDeadlineSeconds` is less than 1");
    }
}

/// Volumes have names of their own, and containers mount those of their pod.
fn volumes(spec: &PodSpec, found: &mut Found) {
    let mut names = BTreeSet::new();
    for name in spec.volumes.names() {
        if !is_label(name) {
            let why = format!(
                "{name:?} is no name of a volume: at most 63 lower case letters, digits and `-`"
            );
            found.add("spec.volumes", why);
        } else if !names.insert(name) {
            found.add("spec.volumes", format!("two of its `volumes` are called {name}"));
        }
    }
    for volume in &spec.volumes.placed {
        ephemeral(volume, found);
    }
    for (at, container) in each(spec) {
        let mounts = ("volumeMounts", &container.volume_mounts.names);
        for (field, used) in [mounts, ("volumeDevices", &container.volume_devices.names)] {
            for (index, name) in used.iter().enumerate().filter(|(_, of)| !names.contains(&***of)) {
                let why = format!(
                    "container {} uses the volume {name:?}, which is none of the pod's `volumes`{}",
                    container.name,
                    among(names.iter().copied())
                );
                found.add(format!("{at}.{field}[{index}].name"), why);
            }
        }
    }
}

/// The claim that is made for the pod.
fn ephemeral(volume: &Volume, found: &mut Found) {
    let Some(ephemeral) = &volume.ephemeral else { return };
    let name = &volume.name;
    let Some(template) = &ephemeral.volume_claim_template else {
        let why = format!("its ephemeral volume {name} has no `volumeClaimTemplate`");
        return found.add("spec.volumes", why);
    };
    let spec = &template.spec;
    let size = size(&spec.resources.requests).map(nanos);
    if let Some((field, why)) = volume_claim(size, modes(&spec.access_modes)) {
        let why = format!("of the claim of its ephemeral volume {name}, {why} (`{field}`)");
        found.add("spec.volumes", why);
    }
}

/// What there is instead, for the end of a sentence.
fn among<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.take(NAMES_SHOWN).collect();
    if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
}

fn claims(spec: &PodSpec, found: &mut Found) {
    let mut names = BTreeSet::new();
    for (index, claim) in spec.resource_claims.iter().enumerate() {
        let at = format!("spec.resourceClaims[{index}]");
        let PodResourceClaim { name, resource_claim_name, resource_claim_template_name } = claim;
        if !is_label(name) {
            let why = format!(
                "{name:?} is no name of a claim: at most 63 lower case letters, digits and `-`"
            );
            found.add(format!("{at}.name"), why);
        } else if !names.insert(name.as_str()) {
            let why = format!("two of its `resourceClaims` are called {name}");
            found.add(format!("{at}.name"), why);
        }
        if resource_claim_name.is_some() == resource_claim_template_name.is_some() {
            let which = if resource_claim_name.is_some() { "both" } else { "neither" };
            let why = format!(
                "its claim {name} has {which} of `resourceClaimName` and \
                 `resourceClaimTemplateName`, and needs one"
            );
            found.add(at, why);
        }
    }
    let mut gates = BTreeSet::new();
    for (index, gate) in spec.scheduling_gates.iter().enumerate() {
        let at = format!("spec.schedulingGates[{index}]");
        if !is_qualified_name(&gate.name) {
            found.add(at, format!("{:?} is no name of one of its `schedulingGates`", gate.name));
        } else if !gates.insert(gate.name.as_str()) {
            found.add(at, format!("it has the scheduling gate {} twice", gate.name));
        }
    }
    if !spec.node_name.is_empty() && !spec.scheduling_gates.is_empty() {
        found.add("spec.nodeName", "it names its node (`nodeName`) and has `schedulingGates`");
    }
}

/// A container uses claims of its pod, each once.
fn claims_used(spec: &PodSpec, found: &mut Found) {
    let names: Vec<&str> = spec.resource_claims.iter().map(|claim| claim.name.as_str()).collect();
    for (at, container) in each(spec) {
        let mut used: BTreeSet<(&str, &str)> = BTreeSet::new();
        for (index, claim) in container.resources.claims.iter().enumerate() {
            let at = format!("{at}.resources.claims[{index}]");
            let (name, part) = (claim.name.as_str(), claim.request.as_str());
            if !names.contains(&name) {
                let why = format!(
                    "container {} uses the claim {name:?}, which is none of the pod's \
                     `resourceClaims`{}",
                    container.name,
                    among(names.iter().copied())
                );
                found.add(format!("{at}.name"), why);
            }
            // Without a request the whole claim is meant.
            let again = |(of, other): &(&str, &str)| {
                *of == name && (*other == part || other.is_empty() || part.is_empty())
            };
            if used.iter().any(again) {
                let why = format!("container {} uses the claim {name} twice", container.name);
                found.add(at, why);
            }
            used.insert((name, part));
        }
    }
}

fn tolerations(spec: &PodSpec, found: &mut Found) {
    for (index, toleration) in spec.tolerations.iter().enumerate() {
        if let Some((field, why)) = bad_toleration(toleration) {
            let why = format!("{why} (`tolerations[{index}].{field}`)");
            found.add(format!("spec.tolerations[{index}].{field}"), why);
        }
    }
}

fn bad_toleration(of: &Toleration) -> Option<(&'static str, String)> {
    if !of.key.is_empty() && !is_qualified_name(&of.key) {
        return Some(("key", format!("{:?} is no key of a taint", of.key)));
    }
    match &of.operator {
        TolerationOperator::Other(word) => {
            return Some((
                "operator",
                format!("{word} is no operator of a toleration: Equal or Exists"),
            ));
        }
        TolerationOperator::Exists if !of.value.is_empty() => {
            return Some(("operator", format!("with Exists the value {} has no place", of.value)));
        }
        TolerationOperator::Equal if of.key.is_empty() => {
            let why = "a toleration without a key needs the operator Exists";
            return Some(("operator", why.to_owned()));
        }
        TolerationOperator::Equal if !is_label_value(&of.value) => {
            return Some(("value", format!("{:?} is no value of a taint", of.value)));
        }
        // Refused as long as their gate is off, which the version decides and not the pod.
        TolerationOperator::Equal
        | TolerationOperator::Exists
        | TolerationOperator::Gt
        | TolerationOperator::Lt => {}
    }
    match &of.effect {
        TaintEffect::None | TaintEffect::Other(_) => {
            let known = "NoSchedule, PreferNoSchedule or NoExecute";
            Some(("effect", format!("{} is no effect of a taint: {known}", of.effect)))
        }
        TaintEffect::Unset
        | TaintEffect::NoSchedule
        | TaintEffect::PreferNoSchedule
        | TaintEffect::NoExecute => {
            let timed = of.toleration_seconds.is_some() && of.effect != TaintEffect::NoExecute;
            let why = "with `tolerationSeconds` the effect must be NoExecute";
            timed.then(|| ("effect", why.to_owned()))
        }
    }
}

fn node_selection(spec: &PodSpec, found: &mut Found) {
    for (key, value) in &spec.node_selector {
        if !is_qualified_name(key) || !is_label_value(value) {
            found.add(
                "spec.nodeSelector",
                format!("{key}={value} in its `nodeSelector` is no label"),
            );
        }
    }
    let Some(affinity) = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref()) else {
        return;
    };
    let at = "spec.affinity.nodeAffinity";
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref();
    if let Some(required) = required {
        let at = format!("{at}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
        if required.node_selector_terms.is_empty() {
            found.add(&at, "its required node affinity has no `nodeSelectorTerms`");
        }
        for (index, term) in required.node_selector_terms.iter().enumerate() {
            requirements(&format!("{at}[{index}]"), &term.match_expressions, found);
        }
    }
    let wishes = &affinity.preferred_during_scheduling_ignored_during_execution;
    for (index, wish) in wishes.iter().enumerate() {
        let at = format!("{at}.preferredDuringSchedulingIgnoredDuringExecution[{index}]");
        weight(&at, wish.weight, found);
        requirements(&format!("{at}.preference"), &wish.preference.match_expressions, found);
    }
}

fn weight(at: &str, weight: i32, found: &mut Found) {
    if !(1..=100).contains(&weight) {
        let why = format!("{weight} is no `weight` of a preferred term, 1 to 100");
        found.add(format!("{at}.weight"), why);
    }
}

fn requirements(at: &str, all: &[NodeSelectorRequirement], found: &mut Found) {
    use NodeSelectorOperator as Op;
    for (index, of) in all.iter().enumerate() {
        let at = format!("{at}.matchExpressions[{index}]");
        let word = of.operator.as_str();
        let (field, why) = match (&of.operator, of.values.len()) {
            (Op::In | Op::NotIn, 0) => ("values", format!("{word} needs `values`")),
            (Op::Exists | Op::DoesNotExist, 1..) => {
                ("values", format!("with {word} there are no `values`"))
            }
            (Op::Gt | Op::Lt, 0 | 2..) => ("values", format!("{word} needs one of `values`")),
            // An operator that is not known is said when the pod is read.
            (Op::In | Op::NotIn | Op::Gt | Op::Lt, _)
            | (Op::Exists | Op::DoesNotExist, 0)
            | (Op::Unset | Op::Other(_), _) => continue,
        };
        found.add(format!("{at}.{field}"), format!("in the node affinity to {}, {why}", of.key));
    }
}

fn affinity(spec: &PodSpec, found: &mut Found) {
    let Some(affinity) = &spec.affinity else { return };
    let both =
        [("podAffinity", &affinity.pod_affinity), ("podAntiAffinity", &affinity.pod_anti_affinity)];
    for (name, terms) in both {
        let at = format!("spec.affinity.{name}");
        let required = &terms.required_during_scheduling_ignored_during_execution;
        for (index, term) in required.iter().enumerate() {
            let at = format!("{at}.requiredDuringSchedulingIgnoredDuringExecution[{index}]");
            keyed(name, &at, term, found);
        }
        let wishes = &terms.preferred_during_scheduling_ignored_during_execution;
        for (index, wish) in wishes.iter().enumerate() {
            let at = format!("{at}.preferredDuringSchedulingIgnoredDuringExecution[{index}]");
            weight(&at, wish.weight, found);
            keyed(name, &format!("{at}.podAffinityTerm"), &wish.pod_affinity_term, found);
        }
    }
}

fn keyed(name: &str, at: &str, term: &PodAffinityTerm, found: &mut Found) {
    let at = format!("{at}.topologyKey");
    if term.topology_key.is_empty() {
        found.add(at, format!("a term of its {name} has no `topologyKey`"));
    } else if !is_qualified_name(&term.topology_key) {
        let why =
            format!("{:?} is no key of a label (`topologyKey` of its {name})", term.topology_key);
        found.add(at, why);
    }
}

fn spread(spec: &PodSpec, found: &mut Found) {
    let mut seen = BTreeSet::new();
    for (index, of) in spec.topology_spread_constraints.iter().enumerate() {
        let at = format!("spec.topologySpreadConstraints[{index}]");
        let bad = bad_spread(of);
        for (field, why) in bad {
            let why = format!("{why} (`topologySpreadConstraints[{index}].{field}`)");
            found.add(format!("{at}.{field}"), why);
        }
        if !seen.insert((&of.topology_key, &of.when_unsatisfiable)) {
            let why = format!(
                "two of its `topologySpreadConstraints` have the topologyKey {} and the \
                 whenUnsatisfiable {}",
                of.topology_key, of.when_unsatisfiable
            );
            found.add(at, why);
        }
    }
}

fn bad_spread(of: &TopologySpreadConstraint) -> Vec<(&'static str, String)> {
    use UnsatisfiableConstraintAction as Action;
    let mut all = Vec::new();
    if of.topology_key.is_empty() {
        all.push(("topologyKey", "a spread constraint has no topologyKey".to_owned()));
    } else if !is_qualified_name(&of.topology_key) {
        all.push(("topologyKey", format!("{:?} is no key of a label", of.topology_key)));
    }
    if of.max_skew < 1 {
        all.push(("maxSkew", format!("its maxSkew is {}, and must be at least 1", of.max_skew)));
    }
    match &of.when_unsatisfiable {
        Action::Other(word) => {
            let why = format!("{word} is not known: DoNotSchedule or ScheduleAnyway");
            all.push(("whenUnsatisfiable", why));
        }
        Action::ScheduleAnyway if of.min_domains.is_some() => {
            let why = "minDomains has a place with DoNotSchedule alone".to_owned();
            all.push(("minDomains", why));
        }
        Action::ScheduleAnyway | Action::DoNotSchedule => {}
    }
    if let Some(least) = of.min_domains.filter(|least| *least < 1) {
        all.push(("minDomains", format!("its minDomains is {least}, and must be at least 1")));
    }
    if of.label_selector.is_none() && !of.match_label_keys.is_empty() {
        all.push(("matchLabelKeys", "matchLabelKeys need a labelSelector".to_owned()));
    }
    all
}
