//! What is told of decisions on the board: the condition `PodScheduled` of pods that wait, which autoscalers
//! read, events, and the status of Placements. Each when its sentence changes, and not in each step.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{Act, GroupKey, PodKey, Reason, Timestamp, Verdict};
use phalanx_objects::topology::{
    Placement, PlacementGroup, PlacementPhase, PlacementStatus, PlacementTally,
};
use phalanx_objects::{Kind, ObjectRef};

use super::flight::{Cause, Flight, phase, pod_reference, record_name};
use super::write::{EventType, EventWrite, PodConditionWrite, PodName, Write};
use super::{Controller, Told};
use crate::lower::{GroupInfo, PodInfo};
use crate::plan::Plan;
use crate::raise::Bind;
use crate::view::first_reason;
use crate::words;

/// The reason of the condition that autoscalers look for.
const UNSCHEDULABLE: &str = "Unschedulable";

/// An event's note may have so many bytes.
const NOTE_MAX: usize = 1024;

/// What was told.
#[derive(Clone, Debug, Default)]
pub(super) struct Tellings {
    /// The verdict of each group, of which no sentence is made again as long as it stands, and how many of
    /// its pods waited then.
    groups: BTreeMap<GroupKey, (Verdict, usize)>,
    /// By pod its UID and the sentence.
    pods: BTreeMap<PodKey, (String, String)>,
    /// Objects of which something is still to be told.
    owed: BTreeSet<ObjectRef>,
    /// By pod its UID, where its binding was told.
    bound: BTreeMap<PodKey, String>,
}

impl Tellings {
    /// A pod is gone: nothing was told of another of its name.
    pub(super) fn pod_gone(&mut self, pod: &PodKey) {
        self.pods.remove(pod);
        self.bound.remove(pod);
        let of_pod = |group: &GroupKey| group.object == pod.0 && group.kind.as_str() == "pod";
        self.groups.retain(|group, _| !of_pod(group));
    }

    /// What was last written of an object may be lost, or could not be written: once it can be, it is told
    /// again.
    pub(super) fn owe(&mut self, object: &ObjectRef) {
        if object.kind == Kind::Pod {
            let pod = crate::lower::pod_key(&object.namespace, &object.name);
            self.pods.remove(&pod);
        }
        self.owed.insert(object.clone());
    }

    /// An object is another, or can be written again. Whether something of it is still to be told.
    pub(super) fn is_owed(&mut self, object: &ObjectRef) -> bool {
        let owed = self.owed.remove(object);
        if owed {
            self.groups.clear();
        }
        owed
    }
}

impl Controller {
    /// Tells what a decision says of each group.
    pub(super) fn tell_all(&mut self, plan: &Plan, now: Timestamp) {
        let mut before = std::mem::take(&mut self.told.groups);
        for (group, verdict) in &plan.decision.verdicts {
            let waits = self.backoffs.get(group).is_some_and(|backoff| backoff.until > now);
            let known = before.remove(group);
            if group.kind.as_str() == "pod"
                && known.as_ref().is_some_and(|(known, _)| known == verdict)
            {
                self.told.groups.extend(known.map(|known| (group.clone(), known)));
                continue;
            }
            let Some(info) = self.world.lowering().group(group) else { continue };
            let pods: usize = info.roles.iter().map(|role| role.pods.len()).sum();
            let same = known.as_ref().is_some_and(|(old, of)| old == verdict && *of == pods);
            self.told.groups.insert(group.clone(), (verdict.clone(), pods));
            if !same && !waits {
                self.tell_group(&info, verdict, plan);
            }
        }
    }

    fn tell_group(&mut self, info: &GroupInfo, verdict: &Verdict, plan: &Plan) {
        let mut first = None;
        let roles = plan.decision.roles.iter().filter(|(of, ..)| *of == info.key);
        let beside: BTreeMap<u16, &Verdict> = roles.map(|(_, role, own)| (*role, own)).collect();
        let seated = plan.decision.acts.iter().filter_map(|act| {
            let Act::Place(of, seats, _) = act else { return None };
            (*of == info.key).then_some(seats)
        });
        let seated: Vec<&PodKey> = seated.flatten().filter_map(|seat| seat.pod.as_ref()).collect();
        for (role, at) in info.roles.iter().zip(0_u16..) {
            let own = beside.get(&at).copied().unwrap_or(verdict);
            for pod in role.pods.iter().filter(|pod| !seated.contains(&&pod.key)) {
                let Some((code, message)) =
                    first_reason(&self.world, info, (usize::from(at), pod), own)
                else {
                    continue;
                };
                first.get_or_insert_with(|| (code, message.clone()));
                // Of what gates hold back the API server says so itself.
                if code != Reason::Gated.code() {
                    self.tell_pod(pod, &message);
                }
            }
        }
        let (code, message) = first.unwrap_or_default();
        let told = Told {
            group: crate::lower::declaring(&info.key),
            verdict: word(verdict),
            code,
            message,
        };
        if info.gang && !self.options.shadow {
            self.tell_record(info, verdict, &told);
        }
        self.out.told.push(told);
    }

    /// Why a pod waits.
    fn tell_pod(&mut self, pod: &PodInfo, message: &str) {
        let known = self.told.pods.get(&pod.key);
        let same = known.is_some_and(|(uid, old)| *uid == pod.uid && old == message);
        if same || pod.uid.is_empty() || self.options.shadow {
            return;
        }
        let name = PodName {
            namespace: pod.key.0.namespace.to_string(),
            name: pod.key.0.name.to_string(),
        };
        let condition = PodConditionWrite {
            pod: name,
            uid: pod.uid.clone(),
            reason: UNSCHEDULABLE,
            message: message.to_owned(),
        };
        let guard = self.of_uid(&pod.uid);
        if !self.emit(None, guard, Write::PodCondition(condition)) {
            self.told.owe(&pod_reference(&pod.key));
            return;
        }
        self.told.pods.insert(pod.key.clone(), (pod.uid.clone(), message.to_owned()));
        let event = self.event_of(&pod.key, &pod.uid, "FailedScheduling", message);
        self.emit(None, self.of_uid(""), Write::Event(event));
    }

    fn event_of(&self, pod: &PodKey, uid: &str, reason: &'static str, note: &str) -> EventWrite {
        let (of_type, action) = match reason {
            "Scheduled" => (EventType::Normal, "Binding"),
            "Released" => (EventType::Warning, "Releasing"),
            _ => (EventType::Warning, "Scheduling"),
        };
        let mut note = note.to_owned();
        if note.len() > NOTE_MAX {
            let mut end = NOTE_MAX - '…'.len_utf8();
            while !note.is_char_boundary(end) {
                end -= 1;
            }
            note.truncate(end);
            note.push('…');
        }
        let regarding = pod_reference(pod);
        EventWrite { regarding, uid: uid.to_owned(), of_type, reason, action, note }
    }

    /// A pod is bound, as kube-scheduler tells it.
    pub(super) fn tell_bound(&mut self, bind: &Bind) {
        let pod = crate::lower::pod_key(&bind.namespace, &bind.pod);
        if self.told.bound.get(&pod) == Some(&bind.uid) {
            return;
        }
        self.told.pods.remove(&pod);
        self.told.bound.insert(pod.clone(), bind.uid.clone());
        let note = words::assigned(&bind.namespace, &bind.pod, &bind.node);
        let event = self.event_of(&pod, &bind.uid, "Scheduled", &note);
        self.emit(None, self.of_uid(""), Write::Event(event));
    }

    /// A flight was given up: its pods that wait are told why, and the group is left alone for a while.
    pub(super) fn tell_ended(&mut self, flight: &Flight, now: Timestamp) {
        self.back_off(&flight.group, now);
        let Some(cause) = &flight.back else { return };
        if matches!(cause, Cause::PodGone | Cause::Stopped) {
            self.forget_backoff(&flight.group);
        }
        let pods = flight.uids.keys().cloned().collect::<Vec<_>>();
        self.tell_cause(flight, &pods, cause);
    }

    /// Seats were given up alone.
    pub(super) fn tell_dropped(&mut self, flight: &Flight) {
        for (pod, cause) in &flight.dropping {
            self.tell_cause(flight, std::slice::from_ref(pod), cause);
        }
    }

    fn tell_cause(&mut self, flight: &Flight, pods: &[PodKey], cause: &Cause) {
        let Some(info) = self.world.lowering().group(&flight.group) else { return };
        let message = words::given_up(cause);
        let all = info.roles.iter().flat_map(|role| &role.pods);
        for pod in all.filter(|pod| pods.contains(&pod.key)) {
            let waits = self.pod(&pod.key).is_some_and(|found| found.spec.node_name.is_empty());
            if waits && !matches!(cause, Cause::PodGone | Cause::Stopped) {
                self.tell_pod(pod, &message);
            }
        }
    }

    /// A pod of a group that did not come to run is ended.
    pub(super) fn tell_released(&mut self, pod: &PodKey, uid: &str, flight: &Flight) {
        let Some(cause) = &flight.back else { return };
        let event = self.event_of(pod, uid, "Released", &words::given_up(cause));
        self.emit(None, self.of_uid(""), Write::Event(event));
    }

    /// Why a group waits that starts whole, in its Placement: whoever may read in its namespace alone
    /// reads it there.
    fn tell_record(&mut self, info: &GroupInfo, verdict: &Verdict, told: &Told) {
        let of = record_name(&info.key);
        if told.message.is_empty() || self.readers.contains_key(&of) {
            return;
        }
        let found = self.record(&of).cloned();
        if found.as_ref().is_some_and(|found| {
            found.spec.epoch > self.options.epoch
                || !matches!(phase(found), PlacementPhase::Waiting | PlacementPhase::Done)
        }) {
            return;
        }
        let status = status(verdict, told);
        if found.as_ref().is_some_and(|found| found.status == status) {
            return;
        }
        let mut placement = found.unwrap_or_else(|| {
            let mut fresh = Placement::default();
            fresh.metadata.name = of.name;
            fresh.metadata.namespace = of.namespace;
            fresh.metadata.owner_references.extend(self.owner_of(&info.key));
            fresh.spec.phase = Some(PlacementPhase::Waiting);
            fresh.spec.group = PlacementGroup {
                kind: info.key.kind.to_string(),
                name: info.key.object.name.to_string(),
            };
            fresh
        });
        placement.spec.scheduler_name.clone_from(&self.options.scheduler_name);
        placement.spec.epoch = self.options.epoch;
        placement.status = status;
        let of = record_name(&info.key);
        if !self.emit_record(None, placement) {
            self.told.owe(&of);
        }
    }
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Placed { .. } => "placed",
        Verdict::Waits(_) => "waits",
        Verdict::Refused(_) => "refused",
        Verdict::GaveUp(..) => "gaveUp",
    }
}

fn status(verdict: &Verdict, told: &Told) -> PlacementStatus {
    let why = match verdict {
        Verdict::Waits(why) | Verdict::Refused(why) | Verdict::GaveUp(why, _) => Some(why),
        Verdict::Placed { short, .. } => short.as_ref().map(|short| &short.why),
    };
    let tally = why.iter().flat_map(|why| &why.tally).map(|row| PlacementTally {
        reason: row.reason.code().to_owned(),
        nodes: i64::from(row.nodes),
        devices: i64::from(row.devices),
    });
    PlacementStatus {
        verdict: told.verdict.to_owned(),
        reason: told.code.to_owned(),
        message: told.message.clone(),
        tally: tally.collect(),
        nearest: why
            .and_then(|why| why.nearest.as_ref())
            .map(|node| node.0.to_string())
            .unwrap_or_default(),
        expected_start: None,
    }
}
