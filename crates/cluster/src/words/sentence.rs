//! One sentence for one case of a reason.

use phalanx_engine::{DeviceFacts, Example, Facts, Level, Name, Reason, Unmet};

use super::{amount, around, count, domain, joint, taint};
use crate::finding::UNREAD;
use crate::lower::{Failing, MAKER};

/// What lowering can tell beside the example: names behind the numbers.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// The name of the claim (or of the pod's entry for it) that the example is about.
    pub claim: Option<String>,
    /// The extended resource that the request stands for, with the class that serves it.
    pub extended: Option<String>,
    /// The selector that says no, or ends in an error, for the example's device.
    pub selector: Option<SelectorWords>,
    /// The example's device's value of the attribute that a constraint reads.
    pub value: Option<String>,
    /// The pods that a rule means, or the one that is in the way.
    pub pods: Option<String>,
    /// The requests that can't be met together, in the order of the facts.
    pub parts: Vec<PartWords>,
    /// The names of the devices by which values or domains are named, in their order.
    pub leaders: Vec<String>,
    /// The values, where they are known.
    pub values: Vec<Option<String>>,
    /// The role of a group that an example is about, where it has several.
    pub role: Option<String>,
    /// The level in one domain of which a segment of a group must be.
    pub level: Option<String>,
}

/// A request of several, as a sentence names it.
#[derive(Clone, Debug, Default)]
pub struct PartWords {
    /// The first time: `request gpu of claim gpus`.
    pub long: String,
    /// After that: `gpu`.
    pub short: String,
}

/// What a selector says of a device.
#[derive(Clone, Debug, Default)]
pub struct SelectorWords {
    /// The part of the expression that decides.
    pub part: String,
    /// What it finds: `memory is 24Gi`, or the error's text.
    pub finds: String,
}

/// What a selector found, in words: `memory is 24Gi`, or the error in which it ended.
pub fn selector(failing: &Failing) -> SelectorWords {
    let values = failing.values.iter();
    let values: Vec<String> =
        values.map(|(path, value)| format!("{} is {value}", last_part(path))).collect();
    let finds = failing.error.clone().unwrap_or_else(|| super::list(&values));
    SelectorWords { part: failing.part.clone(), finds }
}

/// `memory` of `device.capacity["gpu.nvidia.com"].memory`, and what is in the brackets where the
/// path ends with them: a domain has dots of its own.
fn last_part(path: &str) -> &str {
    let quotes = ['"', '\''];
    match path.strip_suffix(']') {
        Some(bare) => bare.trim_end_matches(quotes).rsplit(quotes).next().unwrap_or(path),
        None => path.rsplit('.').next().unwrap_or(path),
    }
}

/// The sentence for a case, for a place where the node is already named.
pub fn sentence(reason: Reason, example: &Example, words: &Words) -> String {
    write(reason, example, words, example.device.as_ref().map(|d| d.device.to_string()))
}

/// The sentence for a case that stands for many nodes: it names the one it is about.
pub fn sentence_on_node(reason: Reason, example: &Example, words: &Words) -> String {
    let Some(node) = &example.node else { return sentence(reason, example, words) };
    let device = example.device.as_ref().map(|d| format!("{}/{}", node.0, d.device));
    let prefix = device.clone().unwrap_or_default();
    let text = write(reason, example, words, device);
    if !prefix.is_empty() && text.starts_with(&prefix) {
        return text;
    }
    format!("{}: {text}", node.0)
}

fn write(reason: Reason, example: &Example, words: &Words, device: Option<String>) -> String {
    match &example.facts {
        Facts::Devices(facts) => {
            let pool = example.device.as_ref().map(|d| d.pool.pool.as_str());
            devices(&Case { reason, facts, words, device: device.as_deref(), pool })
        }
        Facts::Label { asked, has } => label_unmet(asked, has),
        Facts::Amount { resource, asked, free, allocatable, unhealthy } => {
            let printed = amount::of_node(resource, &[*asked, *free, *allocatable]);
            if reason == Reason::TooManyPods {
                return format!(
                    "the node takes no more pods, {} free of {}",
                    printed[1], printed[2]
                );
            }
            if reason == Reason::VolumeLimit {
                return format!(
                    "asks {} of {resource}, {} free of the {} that it can attach to the node",
                    count(u64::try_from(*asked).unwrap_or(0), "volume", "volumes"),
                    free.max(&0),
                    allocatable
                );
            }
            let more = match unhealthy {
                0 => String::new(),
                1 => "; one more is unhealthy".to_owned(),
                more => format!("; {more} more are unhealthy"),
            };
            format!("asks {} {resource}, {} free of {}{more}", printed[0], printed[1], printed[2])
        }
        Facts::Volume(facts) => super::volume::sentence(reason, facts),
        Facts::Group(facts) => super::group::short(facts, words),
        Facts::Taint(found) => {
            let who = device.as_deref().unwrap_or("the node");
            format!("{who} has the taint {}, which is not tolerated", taint(found))
        }
        Facts::Claim { claim, at } => claim_held(reason, &claim.0.name, at.as_ref()),
        Facts::Binding { claim, failure } => {
            let condition = match failure.after {
                None => format!("reports {}", failure.condition),
                Some(_) => format!("did not report {} in time", failure.condition),
            };
            format!(
                "claim {} is allocated, and its device {} {condition}: that allocation has failed",
                claim.0.name, failure.device.device
            )
        }
        Facts::Port { asked, taken } => around::port_taken(asked, taken, words.pods.as_deref()),
        Facts::Spread { key, value, here, least, max_skew } => {
            around::spread(key, value.as_ref(), (*here, *least, *max_skew))
        }
        Facts::Pods { key, value, .. } => {
            around::near(reason, key, value.as_ref(), words.pods.as_deref())
        }
        Facts::Subject { subject, .. } if reason == Reason::AlignUnmet => counted(subject),
        Facts::Subject { subject, detail } => object(reason, Some(subject), detail),
        Facts::None => {
            let none = Name::new("");
            let node = example.node.as_ref().map(|node| &node.0);
            object(reason, node, &none)
        }
    }
}

/// A node that counts what is wished to be near.
fn counted(resource: &str) -> String {
    format!(
        "the node counts {resource}, and the kubelet chooses the devices of a counter: no required \
         level of phalanx.dev/align can be kept"
    )
}

fn label_unmet(asked: &str, has: &str) -> String {
    let key = asked.split('=').next().unwrap_or(asked);
    if has.is_empty() {
        return format!("the pod asks for nodes labelled {asked}, and the node has no label {key}");
    }
    format!("the pod asks for nodes labelled {asked}, and the node has {key}={has}")
}

fn claim_held(reason: Reason, claim: &Name, at: Option<&Name>) -> String {
    if reason != Reason::ClaimElsewhere {
        return object(reason, Some(claim), &Name::new(""));
    }
    match at {
        Some(at) => format!("claim {claim} is allocated on {at} and can't be used from this node"),
        None => format!("claim {claim} is allocated and can't be used from this node"),
    }
}

/// An object that is there and could not be read.
fn unread(reason: Reason, name: &str) -> String {
    let what = if reason == Reason::ClassMissing {
        "device class"
    } else if reason == Reason::TemplateMissing {
        "claim template"
    } else {
        "claim"
    };
    format!("{what} {name} could not be read")
}

/// Reasons of objects and nodes that carry no numbers: `subject` is what they are about.
#[expect(clippy::too_many_lines, reason = "all of them in one match")]
fn object(reason: Reason, subject: Option<&Name>, detail: &Name) -> String {
    let name = subject.map_or("", Name::as_str);
    if reason == Reason::Gated && name.is_empty() {
        // The engine lists all the gates in the detail.
        return format!("scheduling gates keep it back: {detail}");
    }
    if detail.as_str() == UNREAD {
        return unread(reason, name);
    }
    let of_pod = |what: &str, says: &str| match detail.as_str() {
        "" => format!("{what} {name} {says}"),
        entry => format!("{what} {name} {says} (claim {entry} of the pod)"),
    };
    let text = match reason {
        Reason::AdmissionRefused if name == MAKER => "it can't be made".to_owned(),
        Reason::AdmissionRefused => "the API server would refuse the pod".to_owned(),
        Reason::QuotaExceeded => format!("ResourceQuota {name} is in the way"),
        Reason::Gated => format!("the scheduling gate {name} keeps it back"),
        Reason::GroupIncomplete => format!("the group starts whole, and {name}"),
        Reason::ClaimMissing => return of_pod("claim", "does not exist"),
        Reason::TemplateMissing => return of_pod("claim template", "does not exist"),
        Reason::ClaimOfOther => return of_pod("claim", "was made for another pod"),
        Reason::ClaimDeleting => return of_pod("claim", "is being deleted"),
        Reason::ClassMissing if detail.is_empty() => format!("device class {name} does not exist"),
        Reason::ClassMissing => {
            return format!("request {detail} names the device class {name}, which does not exist");
        }
        Reason::SelectorInvalid => format!("a selector of {name} does not compile"),
        Reason::RequestUnsupported if name == "constraints" => {
            "a constraint can't be kept".to_owned()
        }
        Reason::RequestUnsupported => format!("{name} can't be granted"),
        Reason::TooManyDevices => {
            format!("request {name} asks for more than the 32 devices that an allocation can hold")
        }
        Reason::TooManyUsers => format!("claim {name} has as many users as the API allows"),
        Reason::NodeName => format!("the pod names another node: {name}"),
        Reason::NodeUnschedulable => "the node is cordoned (spec.unschedulable)".to_owned(),
        Reason::NodeAffinity => {
            "the node does not match the pod's node selector or required affinity".to_owned()
        }
        Reason::PoolIncomplete => {
            format!("pool {name} is being republished: its slices are not as many as it says")
        }
        Reason::PoolInvalid => format!("pool {name} contradicts itself"),
        Reason::SearchBound => {
            return "the search ended at its bound before every set was tried".to_owned();
        }
        Reason::DiskInUse => format!("a pod on the node has disk {name} already"),
        Reason::DriverMissing => {
            format!("CSI driver {name} is not installed on the node, and its pods stay away then")
        }
        Reason::FeatureMissing => {
            format!("the pod needs the feature {name}, which the node does not declare")
        }
        Reason::NoNodes
        | Reason::GroupShort
        | Reason::VolumeClaimMissing
        | Reason::VolumeClaimNotMade
        | Reason::VolumeClaimLost
        | Reason::VolumeClaimDeleting
        | Reason::VolumeClaimOfOther
        | Reason::VolumeClaimUnbound
        | Reason::VolumeMissing
        | Reason::VolumeClaimInUse
        | Reason::VolumeLimit
        | Reason::VolumeElsewhere
        | Reason::NoVolume
        | Reason::StorageShort
        | Reason::VolumeGone
        | Reason::VolumeZone
        | Reason::NodeTaint
        | Reason::PortsTaken
        | Reason::TooManyPods
        | Reason::InsufficientCpu
        | Reason::InsufficientMemory
        | Reason::InsufficientEphemeral
        | Reason::InsufficientScalar
        | Reason::SpreadKeyMissing
        | Reason::SpreadUnmet
        | Reason::PodAffinityUnmet
        | Reason::PodAntiAffinityUnmet
        | Reason::RepelledByPod
        | Reason::ClaimElsewhere
        | Reason::BindingFailed
        | Reason::NoDevices
        | Reason::SelectorError
        | Reason::SelectorFalse
        | Reason::TooFewDevices
        | Reason::DevicesKeptBack
        | Reason::DeviceTainted
        | Reason::DevicesTaken
        | Reason::CapacityShort
        | Reason::CountersShort
        | Reason::AttributeMissing
        | Reason::MatchUnmet
        | Reason::DistinctUnmet
        | Reason::LinksUnknown
        | Reason::AlignUnmet
        | Reason::NotTogether => super::short(reason).to_owned(),
    };
    if detail.is_empty() { text } else { format!("{text}: {detail}") }
}

/// `request gpu of claim gpus`.
pub fn request(facts: &DeviceFacts, words: &Words) -> String {
    if let Some(resource) = &words.extended {
        return resource.clone();
    }
    match (&facts.request, &words.claim) {
        (Some(request), Some(claim)) => format!("request {request} of claim {claim}"),
        (Some(request), None) => format!("request {request}"),
        (None, Some(claim)) => format!("claim {claim}"),
        (None, None) => "the request".to_owned(),
    }
}

struct Case<'a> {
    reason: Reason,
    facts: &'a DeviceFacts,
    words: &'a Words,
    device: Option<&'a str>,
    pool: Option<&'a str>,
}

impl Case<'_> {
    fn request(&self) -> String {
        request(self.facts, self.words)
    }

    fn pool(&self) -> String {
        self.pool.map_or_else(|| "a pool that the node sees".to_owned(), |p| format!("pool {p}"))
    }

    fn asks(&self) -> String {
        if self.facts.all {
            return format!("{} asks all devices that match", self.request());
        }
        let devices = count(u64::from(self.facts.asked), "device", "devices");
        format!("{} asks {devices}", self.request())
    }

    /// `gpu-3: EXPRESSION is false: memory is 24Gi`, where the selector and the device are known.
    fn selector(&self, says: &str) -> Option<String> {
        let selector = self.words.selector.as_ref()?;
        let device = self.device?;
        if selector.part.trim() == "false" {
            return Some(format!("{device}: the selector is `false`, which no device passes"));
        }
        let finds =
            if selector.finds.is_empty() { String::new() } else { format!(": {}", selector.finds) };
        Some(format!("{device}: {} {says}{finds}", selector.part))
    }
}

#[expect(clippy::too_many_lines, reason = "all of them in one match")]
fn devices(case: &Case<'_>) -> String {
    let f = case.facts;
    match case.reason {
        Reason::NoDevices => format!("{}, and the node sees none", case.asks()),
        Reason::SelectorError | Reason::SelectorFalse | Reason::TooFewDevices => selected(case),
        Reason::DevicesKeptBack => kept_back(case),
        Reason::DeviceTainted => tainted(case),
        Reason::DevicesTaken => {
            format!("{}, {} free of {} that would do", case.asks(), f.free, f.tolerated)
        }
        Reason::CapacityShort => amounts(case),
        Reason::CountersShort => joint::counters(f, &case.asks(), case.device),
        Reason::AttributeMissing => attribute_missing(case),
        Reason::MatchUnmet => match_unmet(case),
        Reason::DistinctUnmet => distinct_unmet(case),
        Reason::LinksUnknown => format!(
            "one {} is required, and nothing is known of the node's links: no NodeTopology names \
             them",
            domain(f.level.unwrap_or(Level::Island))
        ),
        Reason::AlignUnmet => align_unmet(case),
        Reason::NotTogether => joint::not_together(f, case.words, case.device),
        Reason::SearchBound => format!(
            "the search for {} ended at its bound before every set was tried",
            case.request()
        ),
        Reason::PoolIncomplete => format!(
            "{} is incomplete: it has fewer slices than it says, or more, because the driver is \
             republishing it or because the input lacks some",
            case.pool()
        ),
        Reason::PoolInvalid => {
            format!("{} contradicts itself, so no device of it is used", case.pool())
        }
        Reason::TooManyDevices => format!("{}, and an allocation can hold 32", case.asks()),
        Reason::AdmissionRefused
        | Reason::QuotaExceeded
        | Reason::Gated
        | Reason::VolumeClaimMissing
        | Reason::VolumeClaimNotMade
        | Reason::VolumeClaimLost
        | Reason::VolumeClaimDeleting
        | Reason::VolumeClaimOfOther
        | Reason::VolumeClaimUnbound
        | Reason::VolumeMissing
        | Reason::DiskInUse
        | Reason::VolumeClaimInUse
        | Reason::DriverMissing
        | Reason::VolumeLimit
        | Reason::VolumeElsewhere
        | Reason::NoVolume
        | Reason::StorageShort
        | Reason::VolumeGone
        | Reason::VolumeZone
        | Reason::FeatureMissing
        | Reason::ClaimMissing
        | Reason::TemplateMissing
        | Reason::ClaimOfOther
        | Reason::ClaimDeleting
        | Reason::ClassMissing
        | Reason::SelectorInvalid
        | Reason::RequestUnsupported
        | Reason::TooManyUsers
        | Reason::GroupIncomplete
        | Reason::GroupShort
        | Reason::NoNodes
        | Reason::NodeName
        | Reason::NodeUnschedulable
        | Reason::NodeTaint
        | Reason::NodeAffinity
        | Reason::PortsTaken
        | Reason::TooManyPods
        | Reason::InsufficientCpu
        | Reason::InsufficientMemory
        | Reason::InsufficientEphemeral
        | Reason::InsufficientScalar
        | Reason::SpreadKeyMissing
        | Reason::SpreadUnmet
        | Reason::PodAffinityUnmet
        | Reason::PodAntiAffinityUnmet
        | Reason::RepelledByPod
        | Reason::ClaimElsewhere
        | Reason::BindingFailed => super::short(case.reason).to_owned(),
    }
}

/// How far the selectors let devices through, with one that they stop.
fn selected(case: &Case<'_>) -> String {
    let f = case.facts;
    let error = case.reason == Reason::SelectorError;
    let stopped = case.selector(if error { "ends in an error" } else { "is false" });
    if case.reason == Reason::TooFewDevices {
        let pass = if f.selected == 1 { "passes" } else { "pass" };
        let text = format!("{}, {} of {} {pass} the selectors", case.asks(), f.selected, f.seen);
        return stopped.map_or_else(|| text.clone(), |why| format!("{text}; {why}"));
    }
    let passing = if f.selected == 0 {
        format!("{}, none of {} passes", case.asks(), f.seen)
    } else {
        format!("{}, {} of {} pass", case.asks(), f.selected, f.seen)
    };
    match stopped {
        Some(text) => format!("{text} ({passing})"),
        None if error => {
            format!("a selector ends in an error on devices that could do ({passing})")
        }
        None => format!("{passing} the selectors"),
    }
}

/// Devices that are selected and not given out. A feature of nodes is named as its gate is.
fn kept_back(case: &Case<'_>) -> String {
    let f = case.facts;
    let device = case.device.unwrap_or("a device");
    let pass = if f.selected == 1 { "passes" } else { "pass" };
    let tail = format!("{}, {} {pass} the selectors", case.asks(), f.selected);
    match f.resource.as_ref().map(Name::as_str) {
        Some("DRAOptionalNodeOperations") => format!(
            "{device} skips operations of the node (skipNodeOperations), which needs a node that \
             declares the feature DRAOptionalNodeOperations and the feature gate of that name \
             ({tail})"
        ),
        Some(gate) => format!(
            "{device} needs the feature gate {gate}, which is off in this Kubernetes ({tail})"
        ),
        None => format!("{device} is not given out here ({tail})"),
    }
}

fn attribute(facts: &DeviceFacts) -> &str {
    facts.attribute.as_ref().map_or("the attribute", Name::as_str)
}

fn tainted(case: &Case<'_>) -> String {
    let f = case.facts;
    let are = if f.tolerated == 1 { "is" } else { "are" };
    let tail = format!("{}, {} of {} {are} left", case.asks(), f.tolerated, f.selected);
    match (&f.taint, case.device) {
        (Some(found), Some(device)) => {
            format!("{device} has the taint {}, which is not tolerated ({tail})", taint(found))
        }
        (Some(found), None) => {
            format!("devices have the taint {}, which is not tolerated ({tail})", taint(found))
        }
        (None, _) => format!("devices have taints that are not tolerated ({tail})"),
    }
}

fn amounts(case: &Case<'_>) -> String {
    let f = case.facts;
    let device = case.device.map(|device| format!("{device}: ")).unwrap_or_default();
    let name = f.resource.as_ref().map_or("", Name::as_str);
    match f.amount {
        Some((asked, _)) if asked < 0 => {
            let printed = amount::of_devices(name, &[asked]);
            format!("{device}asks {} of the capacity {name}, which is below zero", printed[0])
        }
        Some((asked, left)) => {
            let printed = amount::of_devices(name, &[asked, left.max(0)]);
            let asks = format!("{device}asks {} of the capacity {name}", printed[0]);
            match f.unmet {
                Some(Unmet::Lacking) => {
                    format!("{asks}, which the device does not publish under that name")
                }
                Some(Unmet::Policy) if asked > left => {
                    format!("{asks}, of which at most {} may be asked", printed[1])
                }
                Some(Unmet::Policy) => format!("{asks}, which its request policy does not allow"),
                Some(Unmet::Absurd | Unmet::Short) | None => format!("{asks}, {} left", printed[1]),
            }
        }
        None => format!("{device}too little capacity is left for all that are asked"),
    }
}

fn attribute_missing(case: &Case<'_>) -> String {
    let f = case.facts;
    let attribute = attribute(f);
    let (publish, eligible) = f.published.unwrap_or((0, f.tolerated));
    if let Some(joint) = f.joint.as_deref() {
        return joint::unpublished(joint, case.words, attribute, (publish, eligible));
    }
    if publish == 0 {
        let eligible = count(u64::from(eligible), "eligible device", "eligible devices");
        return format!("none of the {eligible} for {} publishes {attribute}", case.request());
    }
    let verb = if publish == 1 { "publishes" } else { "publish" };
    let eligible = count(u64::from(eligible), "eligible device", "eligible devices");
    format!(
        "only {publish} of {eligible} for {} {verb} {attribute}, {} asked",
        case.request(),
        f.asked
    )
}

fn match_unmet(case: &Case<'_>) -> String {
    let f = case.facts;
    if let Some(joint) = f.joint.as_deref() {
        return joint::unmet(f, joint, case.words);
    }
    let beside = format!(" for {}{}", case.request(), joint::beside(f));
    let attribute = attribute(f);
    let eligible = count(u64::from(f.asked), "eligible device", "eligible devices");
    let has = match &case.words.value {
        Some(value) => format!("{value} has {}", f.together),
        None => format!("the most common has {}", f.together),
    };
    if f.together_if_free > f.together {
        let of = count(u64::from(f.together_if_free), "device", "devices");
        let eligible = count(u64::from(f.asked), "free device", "free devices");
        return format!(
            "no value of {attribute} has {eligible}{beside}: {has}; with every device free it would be \
             {of}"
        );
    }
    format!("no value of {attribute} has {eligible}{beside}: {has}")
}

fn distinct_unmet(case: &Case<'_>) -> String {
    let f = case.facts;
    if let Some(joint) = f.joint.as_deref() {
        return joint::distinct(f, joint, case.words);
    }
    let eligible = count(u64::from(f.asked), "eligible device", "eligible devices");
    let none = format!(
        "no {eligible} for {}{} differ in {}",
        case.request(),
        joint::beside(f),
        attribute(f)
    );
    match (f.asked, f.together) {
        (0..=2, _) => none,
        (_, 0 | 1) => format!("{none}: not even 2 do"),
        (_, most) => format!("{none}: at most {most} do"),
    }
}

fn align_unmet(case: &Case<'_>) -> String {
    let f = case.facts;
    if let Some(joint) = f.joint.as_deref() {
        return joint::unmet(f, joint, case.words);
    }
    let domain = domain(f.level.unwrap_or(Level::Island));
    let beside = format!(" for {}{}", case.request(), joint::beside(f));
    if f.together_if_free > f.together {
        return format!(
            "no {domain} has {} free{beside}: the best has {}; with every device free it would be {}",
            f.asked, f.together, f.together_if_free
        );
    }
    format!("no {domain} holds {}{beside}: the largest has {}", f.asked, f.together)
}

#[cfg(test)]
mod tests {
    use super::*;
    use phalanx_engine::{ClaimKey, DeviceKey, Effect, NodeKey, PoolKey, Scoped, Taint};

    fn name(text: &str) -> Name {
        Name::new(text)
    }

    fn device(text: &str) -> DeviceKey {
        let pool = PoolKey { driver: name("gpu.nvidia.com"), pool: name("n1") };
        DeviceKey { pool, device: name(text) }
    }

    fn on(facts: Facts, with: Option<&str>) -> Example {
        Example {
            node: Some(NodeKey(name("n1"))),
            device: with.map(device),
            facts,
            ..Example::default()
        }
    }

    fn facts() -> DeviceFacts {
        DeviceFacts {
            request: Some(name("gpu")),
            asked: 3,
            seen: 4,
            selected: 3,
            tolerated: 3,
            free: 3,
            together: 2,
            together_if_free: 2,
            ..DeviceFacts::default()
        }
    }

    fn says(reason: Reason, facts: DeviceFacts, with: Option<&str>, words: &Words) -> String {
        sentence(reason, &on(Facts::Devices(Box::new(facts)), with), words)
    }

    #[test]
    fn amounts_are_named() {
        let facts = Facts::Amount {
            resource: name("cpu"),
            asked: 23_000,
            free: 22_000,
            allocatable: 62_000,
            unhealthy: 0,
        };
        let example = on(facts, None);
        let words = Words::default();
        let text = sentence(Reason::InsufficientCpu, &example, &words);
        assert_eq!(text, "asks 23 cpu, 22 free of 62");
        let text = sentence_on_node(Reason::InsufficientCpu, &example, &words);
        assert_eq!(text, "n1: asks 23 cpu, 22 free of 62");
    }

    #[test]
    fn a_selector_says_what_it_found() {
        let expression =
            r#"device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0"#;
        let selector =
            SelectorWords { part: expression.to_owned(), finds: "memory is 24Gi".into() };
        let words = Words { selector: Some(selector), ..Words::default() };
        let few = says(Reason::TooFewDevices, facts(), Some("gpu-3"), &words);
        assert!(few.ends_with(&format!("; gpu-3: {expression} is false: memory is 24Gi")), "{few}");
        assert!(few.starts_with("request gpu asks 3 devices, 3 of 4 pass the selectors"), "{few}");
        let none = on(Facts::Devices(Box::new(facts())), Some("gpu-3"));
        let none = sentence_on_node(Reason::SelectorFalse, &none, &words);
        assert!(none.starts_with(&format!("n1/gpu-3: {expression} is false: ")), "{none}");
    }

    #[test]
    fn a_selector_says_what_it_read_by_its_last_name() {
        let failing = |path: &str, error: Option<&str>| Failing {
            part: "p".into(),
            values: vec![(path.into(), "24Gi".into())],
            error: error.map(str::to_owned),
        };
        let finds = |path, error| selector(&failing(path, error)).finds;
        assert_eq!(finds(r#"device.capacity["gpu.nvidia.com"].memory"#, None), "memory is 24Gi");
        assert_eq!(finds(r#"device.attributes["a.example"]"#, None), "a.example is 24Gi");
        assert_eq!(finds("device.driver", None), "driver is 24Gi");
        assert_eq!(finds("device.driver", Some("no such key: memory")), "no such key: memory");
    }

    #[test]
    fn domains_are_named() {
        let mut facts = facts();
        facts.attribute = Some(name("gpu.nvidia.com/nvlinkDomain"));
        let words = Words { value: Some("a".into()), ..Words::default() };
        assert_eq!(
            says(Reason::MatchUnmet, facts.clone(), Some("gpu-0"), &words),
            "no value of gpu.nvidia.com/nvlinkDomain has 3 eligible devices for request gpu: a has 2"
        );
        let differ = |asked, together| {
            let facts = DeviceFacts { asked, together, ..facts.clone() };
            let text = says(Reason::DistinctUnmet, facts, None, &words);
            text.strip_suffix(" do").and_then(|t| Some(t.split_once(": ")?.1.to_owned()))
        };
        assert_eq!(differ(2, 1), None);
        assert_eq!(differ(3, 1).as_deref(), Some("not even 2"));
        assert_eq!(differ(4, 3).as_deref(), Some("at most 3"));
        facts.together = 0;
        facts.together_if_free = 0;
        assert_eq!(
            says(Reason::AttributeMissing, facts.clone(), None, &words),
            "none of the 3 eligible devices for request gpu publishes gpu.nvidia.com/nvlinkDomain"
        );
        facts.level = Some(Level::Island);
        (facts.asked, facts.together, facts.together_if_free) = (4, 2, 2);
        assert_eq!(
            says(Reason::AlignUnmet, facts.clone(), None, &words),
            "no island holds 4 for request gpu: the largest has 2"
        );
        facts.together_if_free = 4;
        assert!(says(Reason::AlignUnmet, facts, None, &words).starts_with("no island has 4 free"));
    }

    #[test]
    fn taints_and_claims_are_named() {
        let found = Taint {
            key: name("gpu.example.com/unhealthy"),
            value: name("xid79"),
            effect: Effect::NoExecute,
        };
        let words = Words::default();
        let text = sentence(Reason::NodeTaint, &on(Facts::Taint(found.clone()), None), &words);
        let shown = "gpu.example.com/unhealthy=xid79:NoExecute";
        assert_eq!(text, format!("the node has the taint {shown}, which is not tolerated"));
        let tainted = DeviceFacts { taint: Some(found), tolerated: 2, ..facts() };
        let text = says(Reason::DeviceTainted, tainted, Some("gpu-5"), &words);
        assert!(text.starts_with(&format!("gpu-5 has the taint {shown}")), "{text}");
        let claim = ClaimKey(Scoped { namespace: name("ml"), name: name("shared") });
        let held = Facts::Claim { claim, at: Some(name("n1")) };
        let text = sentence(Reason::ClaimElsewhere, &on(held, None), &words);
        assert_eq!(text, "claim shared is allocated on n1 and can't be used from this node");
    }

    #[test]
    fn a_search_that_ended_says_so_in_a_sentence() {
        let text = sentence_on_node(Reason::SearchBound, &on(Facts::None, None), &Words::default());
        assert_eq!(text, "n1: the search ended at its bound before every set was tried");
    }

    #[test]
    fn every_reason_has_a_sentence_whatever_the_facts() {
        let every = [
            Facts::None,
            Facts::Subject { subject: name("x"), detail: name("because") },
            Facts::Devices(Box::default()),
            Facts::Claim {
                claim: ClaimKey(Scoped { namespace: name("ml"), name: name("c") }),
                at: None,
            },
        ];
        for reason in Reason::ALL {
            for facts in &every {
                let text = sentence_on_node(reason, &on(facts.clone(), None), &Words::default());
                assert!(text.len() > "n1: ".len(), "{reason:?}");
                assert!(!text.ends_with('.'), "{reason:?}: {text}");
            }
        }
    }
}
