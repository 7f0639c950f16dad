//! The one place where sentences are made: from a reason, the names and numbers of its example, and
//! what lowering can look up. Which reason holds is decided elsewhere, and so is where the sentence
//! is shown.

mod admission;
mod amount;
mod around;
mod choice;
mod control;
mod cure;
mod deadlock;
mod fit_error;
mod group;
mod joint;
mod others;
mod place;
mod sentence;
mod stay;
mod volume;

pub(crate) use admission::{
    added, exceeded, names_node, of_maker, refused, runtime_class_unknown, why_exceeded, why_never,
    why_refused,
};
pub use amount::{of_devices, of_node};
pub(crate) use around::pods;
pub use around::promised_note;
pub use choice::{costs_more, equal_sets, rival};
pub(crate) use control::{assigned, elsewhere, given_up, would_wait};
pub use cure::{Cured, cure_sentence, cures_cut, cures_of_like};
pub(crate) use deadlock::{WaitsFor, deadlock, half_started};
pub(crate) use fit_error::fit_error;
pub(crate) use group::{
    comes_after, gated, held_by_gates, of_member, path_of, too_few, too_few_groups, too_few_parts,
    too_few_subgroups, undecided, waits_with,
};
pub use group::{missing_subgroups, place};
pub use others::{OtherDevices, OtherName, others, part, part_of, uncountable};
pub use place::{
    AlignWords, Counted, Nodes, align_notes, alternative_note, choice_note, counter_note,
    extended_note, in_one, release_note, served, spread_note, within,
};
pub use sentence::{
    PartWords, SelectorWords, Words, request, selector, sentence, sentence_on_node,
};
pub use stay::{StayWords, awaits_note, evicted_at_once, stay_note};

use phalanx_engine::{Level, LinkClass, Reason, Taint};
use phalanx_objects::resource::DeviceAttribute;

/// What a reason means, in a few words that follow a count of nodes: "2 nodes with too little cpu".
pub fn short(reason: Reason) -> &'static str {
    match reason {
        Reason::AdmissionRefused => "the API server would refuse the pod",
        Reason::QuotaExceeded => "a quota of the namespace leaves no room",
        Reason::Gated => "held back by a scheduling gate",
        Reason::VolumeClaimMissing => "a PersistentVolumeClaim does not exist",
        Reason::VolumeClaimNotMade => "a PersistentVolumeClaim is yet to be made for the pod",
        Reason::VolumeClaimLost => "a PersistentVolumeClaim has lost its volume",
        Reason::VolumeClaimDeleting => "a PersistentVolumeClaim is being deleted",
        Reason::VolumeClaimOfOther => "a PersistentVolumeClaim was not made for the pod",
        Reason::VolumeClaimUnbound => "a PersistentVolumeClaim is not bound",
        Reason::VolumeMissing => "a PersistentVolume does not exist",
        Reason::ClaimMissing => "a claim does not exist",
        Reason::TemplateMissing => "a claim template does not exist",
        Reason::ClaimOfOther => "a claim was made for another pod",
        Reason::ClaimDeleting => "a claim is being deleted",
        Reason::ClassMissing => "a device class does not exist",
        Reason::SelectorInvalid => "a selector does not compile",
        Reason::RequestUnsupported => "a request can't be granted by anyone",
        Reason::TooManyDevices => "more devices asked than an allocation can hold",
        Reason::TooManyUsers => "a claim has as many users as the API allows",
        Reason::GroupIncomplete => "too few members of the group are there",
        Reason::GroupShort => "too few members of the group fit together",
        Reason::NoNodes => "there is no node",
        Reason::NodeName => "not the node that the pod names",
        Reason::NodeUnschedulable => "cordoned",
        Reason::NodeTaint => "with a taint that is not tolerated",
        Reason::NodeAffinity => "outside the pod's node selector or affinity",
        Reason::PortsTaken => "where a host port is taken",
        Reason::TooManyPods => "full of pods",
        Reason::InsufficientCpu => "with too little cpu",
        Reason::InsufficientMemory => "with too little memory",
        Reason::InsufficientEphemeral => "with too little ephemeral storage",
        Reason::InsufficientScalar => "with too little of an extended resource",
        Reason::DiskInUse => "where a pod has the same disk",
        Reason::VolumeClaimInUse => "shut out by a PersistentVolumeClaim that another pod uses",
        Reason::DriverMissing => "without the CSI driver of a volume",
        Reason::VolumeLimit => "that can attach no more volumes",
        Reason::VolumeElsewhere => "out of reach of a PersistentVolume",
        Reason::NoVolume => "without a volume for a PersistentVolumeClaim",
        Reason::StorageShort => "with too little room to make a volume",
        Reason::VolumeGone => "asked for a PersistentVolume that does not exist",
        Reason::VolumeZone => "outside the zone of a PersistentVolume",
        Reason::SpreadKeyMissing => "without the label of a spread constraint",
        Reason::SpreadUnmet => "where one more pod would skew the spread",
        Reason::PodAffinityUnmet => "without the pods that it must be near",
        Reason::PodAntiAffinityUnmet => "with pods that it must be away from",
        Reason::RepelledByPod => "with pods that must be away from it",
        Reason::ClaimElsewhere => "out of reach of an allocated claim",
        Reason::BindingFailed => "where the allocation of a claim has failed",
        Reason::PoolIncomplete => "with a pool that is being republished",
        Reason::PoolInvalid => "with a pool that contradicts itself",
        Reason::NoDevices => "without devices",
        Reason::SelectorError => "where a selector ends in an error",
        Reason::SelectorFalse => "where no device passes the selectors",
        Reason::TooFewDevices => "where too few devices pass the selectors",
        Reason::DevicesKeptBack => "where devices need a feature that is off",
        Reason::DeviceTainted => "where devices have a taint that is not tolerated",
        Reason::DevicesTaken => "where the devices are taken",
        Reason::CapacityShort => "where too little capacity of a device is left",
        Reason::CountersShort => "where a shared counter is spent",
        Reason::AttributeMissing => "where an attribute is not published",
        Reason::MatchUnmet => "where no set of devices agrees on an attribute",
        Reason::DistinctUnmet => "where no set of devices differs in an attribute",
        Reason::LinksUnknown => "whose links are unknown",
        Reason::AlignUnmet => "where no domain of the required level holds the set",
        Reason::NotTogether => "where the requests can't be met together",
        Reason::SearchBound => "where the search ended at its bound",
        Reason::FeatureMissing => "that do not declare a feature that the pod needs",
    }
}

/// The sentence of what is in the way even when nothing else is.
pub fn even_then(sentence: &str) -> String {
    format!("{EVEN_THEN}, {sentence}")
}

/// How a sentence begins that says what never goes away by itself.
pub const EVEN_THEN: &str = "even with every other pod gone and everything healed";

/// A domain of a level, as a sentence names it.
fn domain(level: Level) -> &'static str {
    match level {
        Level::Island => "island",
        Level::Switch => "PCIe switch",
        Level::Root => "PCIe root",
        Level::Numa => "NUMA node",
        Level::Rail => "rail",
    }
}

/// A path between devices, as a sentence names it.
fn path(class: LinkClass) -> &'static str {
    match class {
        LinkClass::Nvlink => "NVLink",
        LinkClass::Switch => "one PCIe switch (PIX)",
        LinkClass::Switches => "several PCIe switches (PXB)",
        LinkClass::HostBridge => "a PCIe host bridge (PHB)",
        LinkClass::Numa => "the host bridges of one NUMA node (NODE)",
        LinkClass::System => "the link between NUMA nodes (SYS)",
        LinkClass::Unknown => "a path that nothing is known of",
    }
}

/// A class of paths as `nvidia-smi topo -m` abbreviates it.
pub(crate) fn class_word(class: LinkClass) -> &'static str {
    match class {
        LinkClass::Nvlink => "NVLink",
        LinkClass::Switch => "PIX",
        LinkClass::Switches => "PXB",
        LinkClass::HostBridge => "PHB",
        LinkClass::Numa => "NODE",
        LinkClass::System => "SYS",
        LinkClass::Unknown => "unknown",
    }
}

/// A taint as kubectl prints it: `key=value:Effect`.
pub fn taint(taint: &Taint) -> String {
    use phalanx_engine::Effect;
    let effect = match taint.effect {
        Effect::NoSchedule => "NoSchedule",
        Effect::NoExecute => "NoExecute",
        Effect::PreferNoSchedule => "PreferNoSchedule",
    };
    if taint.value.is_empty() {
        format!("{}:{effect}", taint.key)
    } else {
        format!("{}={}:{effect}", taint.key, taint.value)
    }
}

/// An attribute's value as a sentence shows it.
pub fn attribute(value: &DeviceAttribute) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    match value {
        DeviceAttribute::Int(int) => int.to_string(),
        DeviceAttribute::Bool(truth) => truth.to_string(),
        DeviceAttribute::String(text) | DeviceAttribute::Version(text) => text.clone(),
        DeviceAttribute::Ints(all) => list(all.iter().map(ToString::to_string).collect()),
        DeviceAttribute::Bools(all) => list(all.iter().map(ToString::to_string).collect()),
        DeviceAttribute::Strings(all) | DeviceAttribute::Versions(all) => list(all.clone()),
        DeviceAttribute::Empty => "no value".to_owned(),
        DeviceAttribute::Unknown(kind) => format!("a value of the unknown kind {kind}"),
    }
}

/// An element of a list attribute's value.
pub fn element(value: &DeviceAttribute, at: usize) -> Option<String> {
    match value {
        DeviceAttribute::Ints(all) => all.get(at).map(ToString::to_string),
        DeviceAttribute::Bools(all) => all.get(at).map(ToString::to_string),
        DeviceAttribute::Strings(all) | DeviceAttribute::Versions(all) => all.get(at).cloned(),
        DeviceAttribute::Int(_)
        | DeviceAttribute::Bool(_)
        | DeviceAttribute::String(_)
        | DeviceAttribute::Version(_)
        | DeviceAttribute::Empty
        | DeviceAttribute::Unknown(_) => None,
    }
}

/// `1 device`, `2 devices`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// `a`, `a and b`, `a, b and c`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn lists_and_counts_read_as_english() {
        let items = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        assert_eq!(list(&items), "a, b and c");
        assert_eq!(list(&items[..1]), "a");
        assert_eq!(count(1, "device", "devices"), "1 device");
    }
}
