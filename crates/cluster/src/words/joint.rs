//! What is said of devices that can't be together: of one request under several rules, and of several
//! requests, each of which could be met alone.

use phalanx_engine::{Beside, DeviceFacts, Joint, JointGroup, Level, Name};

use super::place::within;
use super::sentence::{PartWords, Words};
use super::{amount, count, domain, list};

/// The other rules without which it would go: ` that are on one NUMA node and have one value of …`;
/// empty where there are none.
pub(super) fn beside(facts: &DeviceFacts) -> String {
    let rule = |of: &Beside| match of {
        Beside::Match(attribute) => format!("have one value of {attribute}"),
        Beside::Distinct(attribute) => format!("differ in {attribute}"),
        Beside::Level(level) => format!("are {}", within(*level)),
    };
    let rules: Vec<String> = facts.beside.iter().map(rule).collect();
    if rules.is_empty() { String::new() } else { format!(" that {}", list(&rules)) }
}

/// The same after what all must do: `, on one NUMA node and with one value of …`.
fn and(facts: &DeviceFacts) -> String {
    let rules: Vec<String> = facts.beside.iter().map(rule).collect();
    if rules.is_empty() { String::new() } else { format!(", {}", list(&rules)) }
}

fn rule(of: &Beside) -> String {
    match of {
        Beside::Match(attribute) => format!("with one value of {attribute}"),
        Beside::Distinct(attribute) => format!("that differ in {attribute}"),
        Beside::Level(level) => within(*level),
    }
}

/// `request gpu asks 2 devices and request nic asks 1 device`.
fn asks(joint: &Joint, words: &Words) -> String {
    let one = |(part, words): (&DeviceFacts, &PartWords)| {
        if part.all {
            return format!("{} asks all devices that match", words.long);
        }
        let devices = count(u64::from(part.asked), "device", "devices");
        format!("{} asks {devices}", words.long)
    };
    list(&joint.parts.iter().zip(&words.parts).map(one).collect::<Vec<_>>())
}

/// The sentence of a rule over values or domains that several requests can't keep together.
pub(super) fn unmet(facts: &DeviceFacts, joint: &Joint, words: &Words) -> String {
    let mut rules: Vec<String> = match (facts.level, &facts.attribute) {
        (Some(level), _) => vec![within(level)],
        (None, Some(attribute)) => vec![format!("with one value of {attribute}")],
        (None, None) => Vec::new(),
    };
    rules.extend(facts.beside.iter().map(rule));
    let asks = asks(joint, words);
    if joint.groups.is_empty() {
        return format!("{asks}, all {}, and no devices that would do are so", list(&rules));
    }
    let groups: Vec<String> = (0..joint.groups.len())
        .map(|at| format!("{} has {}", group_name(facts, words, at), has(joint, words, at)))
        .collect();
    let mut text = format!("{asks}, all {}: {}", list(&rules), groups.join("; "));
    let what = match facts.level {
        Some(level) => (domain(level).to_owned(), format!("{}s", plural(level))),
        None => ("value".to_owned(), "values".to_owned()),
    };
    match joint.more {
        0 => {}
        1 => text += &format!("; 1 {} more is no nearer", what.0),
        more => text += &format!("; {more} {} more are no nearer", what.1),
    }
    if joint.groups.first().is_some_and(|group| is_enough(joint, group)) {
        text += "; even those can't all be given together";
    }
    text
}

fn plural(level: Level) -> &'static str {
    match level {
        // The plural of a switch takes a vowel.
        Level::Switch => "PCIe switche",
        Level::Island | Level::Root | Level::Numa | Level::Rail => domain(level),
    }
}

/// A value as it is, or the domain of a device.
fn group_name(facts: &DeviceFacts, words: &Words, at: usize) -> String {
    let leader = words.leaders.get(at).map_or("one", String::as_str);
    match (facts.level, words.values.get(at).and_then(Option::as_ref)) {
        (Some(level), _) => format!("the {} of {leader}", domain(level)),
        (None, Some(value)) => value.clone(),
        (None, None) => format!("that of {leader}"),
    }
}

/// `1 for gpu and none for nic`.
fn has(joint: &Joint, words: &Words, at: usize) -> String {
    let Some(group) = joint.groups.get(at) else { return String::new() };
    let one = |((kind, free), all): ((&Vec<usize>, &u32), &u32)| {
        let number = match (free, all) {
            (0, 0) => "none".to_owned(),
            (0, all) => format!("none free of {all}"),
            (free, all) if free == all => free.to_string(),
            (free, all) => format!("{free} free of {all}"),
        };
        format!("{number} for {}", names(kind, words))
    };
    list(&joint.kinds.iter().zip(&group.free).zip(&group.all).map(one).collect::<Vec<_>>())
}

fn names(kind: &[usize], words: &Words) -> String {
    let short = kind.iter().filter_map(|at| words.parts.get(*at)).map(|part| part.short.clone());
    let names: Vec<String> = short.collect();
    if names.len() > 1 { format!("{} together", list(&names)) } else { list(&names) }
}

/// Whether the group has as many as are asked, kind by kind.
fn is_enough(joint: &Joint, group: &JointGroup) -> bool {
    let asked = |kind: &Vec<usize>| {
        let parts = kind.iter().filter_map(|at| joint.parts.get(*at));
        parts.fold(0u32, |sum, part| sum.saturating_add(part.asked))
    };
    joint.kinds.iter().zip(&group.free).all(|(kind, free)| asked(kind) <= *free)
}

/// The sentence of an attribute that too few of the devices for several requests publish.
pub(super) fn unpublished(
    joint: &Joint,
    words: &Words,
    attribute: &str,
    (publish, of): (u32, u32),
) -> String {
    let verb = if publish == 1 { "publishes" } else { "publish" };
    let eligible = count(u64::from(of), "eligible device", "eligible devices");
    format!("{}, and only {publish} of {eligible} {verb} {attribute}", asks(joint, words))
}

/// The sentence of requests that must all differ in an attribute.
pub(super) fn distinct(facts: &DeviceFacts, joint: &Joint, words: &Words) -> String {
    let attribute = facts.attribute.as_ref().map_or("the attribute", Name::as_str);
    let most = match facts.together_if_free.max(facts.together) {
        0 | 1 => "not even 2 devices do".to_owned(),
        most => format!("at most {most} devices do"),
    };
    format!("{}, which must all differ in {attribute}{}: {most}", asks(joint, words), and(facts))
}

/// The sentence of requests that are in each other's way.
pub(super) fn not_together(facts: &DeviceFacts, words: &Words, device: Option<&str>) -> String {
    let text = "each request could be met alone, but not all of them together";
    let Some(joint) = facts.joint.as_deref() else { return text.to_owned() };
    if facts.level.is_some() || (facts.attribute.is_some() && !joint.groups.is_empty()) {
        return format!("{text}: {}", unmet(facts, joint, words));
    }
    let asks = asks(joint, words);
    if let Some(attribute) = &facts.attribute {
        return format!("{text}: {asks}, which must all differ in {attribute}{}", and(facts));
    }
    if let (Some(device), Some(short)) = (device, short(facts)) {
        return format!("{text}: {asks}; beside what the others take, {device} would need {short}");
    }
    let asked = joint.parts.iter().fold(0u32, |sum, part| sum.saturating_add(part.asked));
    if joint.free < asked {
        let are =
            if joint.free == 1 { "device that would do is" } else { "devices that would do are" };
        return format!("{text}: {asks}, and only {} {are} free", joint.free);
    }
    format!("{text}: {asks}")
}

/// The amount of a counter or of a capacity that is short: `40Gi of the counter memory of counter set
/// gpu-0, 20Gi left`; or that no compatibility group joins.
pub(super) fn short(facts: &DeviceFacts) -> Option<String> {
    match (&facts.resource, facts.amount, &facts.set) {
        (Some(name), Some((asked, left)), set) => {
            let printed = amount::of_devices(name, &[asked, left.max(0)]);
            let what = match set {
                Some(set) => format!("counter {name} of counter set {set}"),
                None => format!("capacity {name}"),
            };
            Some(format!("{} of the {what}, {} left", printed[0], printed[1]))
        }
        (_, _, Some(set)) => Some(format!("a compatibility group of counter set {set} in common")),
        (Some(_) | None, _, None) => None,
    }
}

/// The sentence of shared counters that are not enough for all devices of a request.
pub(super) fn counters(facts: &DeviceFacts, asks: &str, device: Option<&str>) -> String {
    let short = short(facts);
    let (Some(device), Some(short)) = (device, short) else {
        return format!("{asks}, and too little of the shared counters is left for all of them");
    };
    if facts.resource.is_none() {
        let set = facts.set.as_ref().map_or("", Name::as_str);
        return format!(
            "{device}: no compatibility group joins all devices that would consume from the counter \
             set {set}"
        );
    }
    match facts.together {
        0 => format!("{device}: asks {short}"),
        most => format!(
            "{asks}, and the shared counters have enough left for {most}: beside {}, {device} would \
             need {short}",
            if most == 1 { "one" } else { "those" }
        ),
    }
}
