//! NodeResourcesFit: requests against allocatable minus what the pods on the node asked for.
//!
//! Every short resource is named. One that is asked for beyond allocatable makes the answer
//! UnschedulableAndUnresolvable, but for the number of pods, which never does.

use super::Failing;
use crate::decision::Facts;
use crate::facts::{Extended, Node, Request};
use crate::name::Name;
use crate::reason::{Reason, Status};
use crate::state::{Charge, Ledger};

/// One resource of one node, against one request.
struct Line<'a> {
    reason: Reason,
    name: &'a str,
    asked: i64,
    allocatable: i64,
    used: i64,
    unhealthy: i64,
}

impl Line<'_> {
    fn free(&self) -> i64 {
        self.allocatable.wrapping_sub(self.used)
    }

    /// Zero requests pass, even on a node that is over-committed; the number of pods is always
    /// asked for.
    fn is_short(&self) -> bool {
        self.asked > 0 && self.asked > self.free()
    }

    fn failing(&self) -> Failing {
        let beyond = self.asked > self.allocatable && self.reason != Reason::TooManyPods;
        let status =
            if beyond { Status::UnschedulableAndUnresolvable } else { Status::Unschedulable };
        let missing = self.asked.saturating_sub(self.free()).max(0);
        let share = i128::from(missing) * 1000 / i128::from(self.asked.max(1));
        let close = 1000u32.saturating_sub(u32::try_from(share).unwrap_or(u32::MAX));
        let facts = Facts::Amount {
            resource: Name::new(self.name),
            asked: self.asked,
            free: self.free(),
            allocatable: self.allocatable,
            unhealthy: self.unhealthy,
        };
        Failing { close, ..Failing::new(self.reason, status).with(facts) }
    }
}

/// Whether there is room: no facts are made up for the common answer. What is left wraps at 64 bits, as
/// in kube-scheduler: beyond them no answer means much, but theirs is given.
pub(crate) fn fits(charge: &Charge, node: &Node, ledger: &Ledger) -> bool {
    let a = &node.allocatable;
    let short = |asked: i64, allocatable: i64, used: i64| {
        asked > 0 && asked > allocatable.wrapping_sub(used)
    };
    !(short(charge.pods, a.pods, ledger.pods)
        || short(charge.cpu_milli, a.cpu_milli, ledger.cpu_milli)
        || short(charge.memory_bytes, a.memory_bytes, ledger.memory_bytes)
        || short(charge.ephemeral_bytes, a.ephemeral_bytes, ledger.ephemeral_bytes)
        || charge.scalars.iter().any(|(id, asked)| {
            let (allocatable, used) = ledger.scalar(*id);
            let by_devices = allocatable <= 0 && charge.served.contains(id);
            !by_devices && short(*asked, allocatable, used)
        }))
}

/// Every resource that is short, in kube-scheduler's order; scalars by name. What devices serve on
/// the node is theirs to be short of. `ledger` is empty for a node looked at as if no pod were on it.
pub(crate) fn all(
    request: &Request,
    node: &Node,
    ledger: &Ledger,
    scalar: impl Fn(&Name) -> (i64, i64),
) -> Vec<Failing> {
    let (r, a) = (&request.resources, &node.allocatable);
    let line = |reason, name, asked, allocatable, used| {
        let unhealthy = 0;
        Line { reason, name, asked, allocatable, used, unhealthy }
    };
    let mut lines = vec![
        line(Reason::TooManyPods, "pods", r.pods, a.pods, ledger.pods),
        line(Reason::InsufficientCpu, "cpu", r.cpu_milli, a.cpu_milli, ledger.cpu_milli),
        line(
            Reason::InsufficientMemory,
            "memory",
            r.memory_bytes,
            a.memory_bytes,
            ledger.memory_bytes,
        ),
        line(
            Reason::InsufficientEphemeral,
            "ephemeral-storage",
            r.ephemeral_bytes,
            a.ephemeral_bytes,
            ledger.ephemeral_bytes,
        ),
    ];
    lines.extend(r.scalars.iter().filter_map(|(name, asked)| {
        let (allocatable, used) = scalar(name);
        let is_it = |e: &Extended| e.resource == *name;
        let by_devices = allocatable <= 0 && request.extended.iter().any(is_it);
        let unhealthy = node.unhealthy.iter().find(|(of, _)| of == name).map_or(0, |of| of.1);
        (!by_devices).then(|| Line {
            unhealthy,
            ..line(Reason::InsufficientScalar, name, *asked, allocatable, used)
        })
    }));
    let mut failing: Vec<Failing> =
        lines.iter().filter(|l| l.is_short()).map(Line::failing).collect();
    // kube-scheduler gives one status for the plugin: the worst of its reasons.
    if failing.iter().any(|f| f.status == Status::UnschedulableAndUnresolvable) {
        for f in &mut failing {
            f.status = Status::UnschedulableAndUnresolvable;
        }
    }
    failing
}
