//! How long a placed pod may stay where taints with NoExecute are tolerated for a time. The scheduler
//! takes no notice of times; the controllers that evict do: DeviceTaintEviction counts from when a
//! device's taint was added, the node's taint manager from when the pod comes.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use phalanx_engine::{DeviceKey, PoolKey, Timestamp};
use phalanx_objects::core::{Node, PodSpec, TaintEffect, Toleration, TolerationOperator};
use phalanx_objects::resource::{DeviceRequestAllocationResult, DeviceTaint, DeviceToleration};
use phalanx_objects::{Kind, Object, ObjectRef};

use crate::compat::Gate;
use crate::words;
use crate::world::World;

/// Until when a pod may stay, and for which taint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stay {
    /// In milliseconds; none where it depends on a time that is not known.
    pub(super) until: Option<Timestamp>,
    /// `node n1`, `device gpu-0`.
    pub(super) of: String,
    /// The taint, as `key=value:NoExecute`.
    pub(super) taint: String,
    pub(super) why: Why,
}

/// What ends the stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The taint is tolerated for so many seconds.
    Seconds(i64),
    /// The toleration names no effect, which lets a pod in and does not keep it.
    NoEffect,
}

/// A device that a pod gets, with what it is tolerated for.
pub(super) struct Tolerated<'a> {
    pub(super) device: DeviceKey,
    pub(super) tolerations: &'a [DeviceToleration],
}

/// A device of a claim that is allocated.
pub(super) fn held(result: &DeviceRequestAllocationResult) -> Tolerated<'_> {
    let pool = PoolKey { driver: result.driver.as_str().into(), pool: result.pool.as_str().into() };
    let device = DeviceKey { pool, device: result.device.as_str().into() };
    Tolerated { device, tolerations: &result.tolerations }
}

impl Stay {
    /// What a sentence says of it.
    pub(super) fn words(&self, until: Option<String>) -> words::StayWords {
        let seconds = match self.why {
            Why::Seconds(seconds) => Some(seconds),
            Why::NoEffect => None,
        };
        words::StayWords { of: self.of.clone(), taint: self.taint.clone(), seconds, until }
    }
}

/// The taints of devices that evict, looked up when they are first asked about.
#[derive(Default)]
pub(super) struct Evicting(OnceCell<BTreeMap<DeviceKey, Vec<DeviceTaint>>>);

impl Evicting {
    /// The soonest end among the device taints.
    pub(super) fn of_devices(
        &self,
        world: &World,
        devices: &[Tolerated<'_>],
        now: Option<Timestamp>,
    ) -> Option<Stay> {
        let known = self.0.get_or_init(|| evicting(world));
        let mut stays = Vec::new();
        for tolerated in devices {
            let device = &tolerated.device;
            for taint in known.get(device).into_iter().flatten() {
                stays.extend(of_device(tolerated, taint, now));
            }
        }
        stays.into_iter().min_by_key(|stay| stay.until.map_or(i64::MAX, |until| until.0))
    }
}

/// Every device taint that evicts: those of slices, and by rules.
fn evicting(world: &World) -> BTreeMap<DeviceKey, Vec<DeviceTaint>> {
    let mut all: BTreeMap<DeviceKey, Vec<DeviceTaint>> = BTreeMap::new();
    let lowering = world.lowering();
    let Some(objects) = world.objects() else { return all };
    if !lowering.compat().is_on(Gate::DRADeviceTaints) {
        return all;
    }
    let rules = objects.of_kind(Kind::DeviceTaintRule).filter_map(|object| {
        let Object::DeviceTaintRule(rule) = object else { return None };
        let selector = rule.spec.device_selector.as_ref()?;
        let evicts = rule.spec.taint.effect == TaintEffect::NoExecute && lowering.heeds_rules();
        evicts.then_some((selector, &rule.spec.taint))
    });
    let rules: Vec<_> = rules.collect();
    for object in objects.of_kind(Kind::ResourceSlice) {
        let Object::ResourceSlice(slice) = object else { continue };
        let (driver, pool) = (&slice.spec.driver, &slice.spec.pool.name);
        for device in &slice.spec.devices {
            let is =
                |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|w| w == name);
            let own = device.taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute);
            let by_rule = rules.iter().filter(|(selector, _)| {
                is(&selector.driver, driver)
                    && is(&selector.pool, pool)
                    && is(&selector.device, &device.name)
            });
            let taints: Vec<DeviceTaint> =
                own.chain(by_rule.map(|(_, taint)| *taint)).cloned().collect();
            if !taints.is_empty() {
                let pool = PoolKey { driver: driver.as_str().into(), pool: pool.as_str().into() };
                all.insert(DeviceKey { pool, device: device.name.as_str().into() }, taints);
            }
        }
    }
    all
}

/// The end of the stay for one taint of a device; none where it is tolerated for good. A toleration
/// counts only where it names the effect (`claimEvictionTime` of DeviceTaintEviction).
fn of_device(on: &Tolerated<'_>, taint: &DeviceTaint, now: Option<Timestamp>) -> Option<Stay> {
    let matching = |t: &&DeviceToleration| tolerates(t, &taint.key, &taint.value);
    let named = on.tolerations.iter().filter(|t| t.effect == TaintEffect::NoExecute);
    let mut seconds: Option<i64> = None;
    for toleration in named.filter(matching) {
        let for_seconds = toleration.toleration_seconds?.max(0);
        seconds = Some(seconds.map_or(for_seconds, |least| least.min(for_seconds)));
    }
    // Where the manifest says no time, the API server will say the time at which it is made.
    let added = taint.time_added.map(|at| Timestamp(at.as_millisecond())).or(now);
    let why = seconds.map_or(Why::NoEffect, Why::Seconds);
    Some(Stay {
        until: added.map(|at| later(at, seconds.unwrap_or(0))),
        of: format!("device {}", on.device.device),
        taint: shown(&taint.key, &taint.value),
        why,
    })
}

/// The end of the stay for the taints of a node: of the first toleration of each taint the shortest
/// (`GetMatchingTolerations`, `getMinTolerationTime`), from the time that the pod comes.
pub(super) fn of_node(
    world: &World,
    name: &str,
    spec: &PodSpec,
    now: Option<Timestamp>,
) -> Option<Stay> {
    let (namespace, name) = (String::new(), name.to_owned());
    let node = world.objects()?.get(&ObjectRef { kind: Kind::Node, namespace, name })?;
    let Object::Node(node) = node else { return None };
    let stays = taints_of(node).filter_map(|(key, value)| {
        let heeds = |t: &&Toleration| {
            let effect = [TaintEffect::Unset, TaintEffect::NoExecute].contains(&t.effect);
            effect && tolerates(t, key, value)
        };
        let seconds = spec.tolerations.iter().find(heeds)?.toleration_seconds?.max(0);
        Some(Stay {
            until: now.map(|now| later(now, seconds)),
            of: format!("node {}", node.metadata.name),
            taint: shown(key, value),
            why: Why::Seconds(seconds),
        })
    });
    stays.min_by_key(|stay| match stay.why {
        Why::Seconds(seconds) => seconds,
        Why::NoEffect => 0,
    })
}

fn taints_of(node: &Node) -> impl Iterator<Item = (&str, &str)> {
    let evicts = node.spec.taints.iter().filter(|t| t.effect == TaintEffect::NoExecute);
    evicts.map(|taint| (taint.key.as_str(), taint.value.as_str()))
}

fn tolerates(toleration: &Toleration, key: &str, value: &str) -> bool {
    let of_key = toleration.key.is_empty() || toleration.key == key;
    let of_value = match toleration.operator {
        TolerationOperator::Exists => true,
        TolerationOperator::Equal => toleration.value == value,
        TolerationOperator::Gt | TolerationOperator::Lt | TolerationOperator::Other(_) => false,
    };
    of_key && of_value
}

fn later(at: Timestamp, seconds: i64) -> Timestamp {
    Timestamp(at.0.saturating_add(seconds.saturating_mul(1000)))
}

fn shown(key: &str, value: &str) -> String {
    let value = if value.is_empty() { String::new() } else { format!("={value}") };
    format!("{key}{value}:NoExecute")
}
