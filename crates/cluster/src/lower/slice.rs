//! Slices of pools: from `ResourceSlice` objects to the engine's `Pool`.
//!
//! Of a device's attributes the engine gets only what a live constraint compares, where it sits, and a
//! profile: the number of its projection on what live selectors read. Devices that no live selector
//! can tell apart share a profile, and with it every verdict.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_engine::{
    Access, AttributeValue, Binding, Capacity, CapacityPolicy, CounterSet, Device, Granting, Name,
    Place, Pool, PoolKey, ProfileId, Reach, Shared, Slice, Taint, Traits,
};
use phalanx_objects::Quantity;
use phalanx_objects::core::NodeSelector;
use phalanx_objects::resource::{
    CounterSet as ObjectCounterSet, Device as ObjectDevice, DeviceAttribute, DeviceCapacity,
    DeviceTaint, ResourceSlice,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::intern::{AttributeName, Attributes, Names, Value, Written, comparable, nanos};
use super::place::Seat;
use super::record::{DeviceKind, DeviceRecord, Header, SliceRecord, TaintRuleRecord};
use super::rules;
use super::selector::Live;
use crate::compat::{Allocator, Compat, Gate};

/// A note about an object: path and sentence. What it is worth is said where it is made.
pub(crate) type Note = (crate::finding::Severity, String, String);

/// What reading a slice needs and fills.
pub(crate) struct Reader<'a> {
    pub(crate) names: &'a mut Names,
    pub(crate) attributes: &'a mut Attributes,
    pub(crate) kinds: &'a mut FxHashSet<Shared<DeviceKind>>,
    pub(crate) compat: &'a Compat,
    pub(crate) notes: Vec<Note>,
}

impl Reader<'_> {
    /// The compact form of a slice.
    pub(crate) fn slice(&mut self, object: &ResourceSlice, header: Header) -> SliceRecord {
        let spec = &object.spec;
        let driver = self.names.get(&spec.driver);
        let partitionable = self.compat.is_on(Gate::DRAPartitionableDevices);
        let per_device = spec.per_device_node_selection == Some(true);
        let hidden = !partitionable
            && (spec.per_device_node_selection.is_some() || !spec.shared_counters.is_empty());
        let reach = if hidden {
            // It still counts among the pool's slices, but no node sees it.
            Reach::Unknown
        } else {
            self.reach(
                spec.node_name.as_deref(),
                spec.node_selector.as_ref(),
                spec.all_nodes,
                per_device,
                "spec",
            )
        };
        let mut devices = Vec::with_capacity(spec.devices.len());
        let kinds = Vec::with_capacity(spec.devices.len());
        let mut beside = Beside { kinds, ..Beside::default() };
        for (index, device) in spec.devices.iter().enumerate() {
            devices.push(self.device(&driver, device, per_device.then_some(index), &mut beside));
        }
        SliceRecord {
            header,
            name: self.names.get(&object.metadata.name),
            generation: spec.pool.generation,
            slice_count: spec.pool.resource_slice_count,
            reach,
            devices: devices.into(),
            counters: self.counter_sets(&spec.shared_counters),
            granting: self.granting(&spec.skip_node_operations),
            opaque: self.opaque(&spec.devices),
            pool: PoolKey { driver, pool: self.names.get(&spec.pool.name) },
        }
    }

    /// What the gates that are off make of a device.
    fn access(&mut self, device: &ObjectDevice) -> Access {
        let (binding, partitions) =
            (Gate::DRADeviceBindingConditions, Gate::DRAPartitionableDevices);
        if !device.binding_conditions.is_empty() && !self.compat.is_on(binding) {
            return Access::Hidden(self.names.get(binding.as_str()));
        }
        if !device.consumes_counters.is_empty() && !self.compat.is_on(partitions) {
            return Access::Barred(self.names.get(partitions.as_str()));
        }
        Access::Open
    }

    /// Only kube-scheduler's newest allocator looks at `skipNodeOperations`.
    fn granting(&mut self, skipped: &[String]) -> Granting {
        if skipped.is_empty() || self.compat.allocator() != Allocator::Experimental {
            return Granting::Always;
        }
        let name = self.names.get(Gate::DRAOptionalNodeOperations.as_str());
        if self.compat.is_on(Gate::DRAOptionalNodeOperations) {
            Granting::IfDeclared(name)
        } else {
            Granting::Never(name)
        }
    }

    /// A slice with compatibility groups does not exist for an allocator that doesn't know them.
    fn opaque(&mut self, devices: &[ObjectDevice]) -> bool {
        let groups = |d: &ObjectDevice| {
            d.consumes_counters.iter().any(|uses| !uses.compatibility_groups.is_empty())
        };
        let gate = Gate::DRADeviceCompatibilityGroups;
        let found = devices.iter().any(groups) && !self.compat.is_on(gate);
        if found {
            let message = format!(
                "A device has compatibility groups, and the feature gate {} is off in Kubernetes \
                 {}. The slice is left out, so that its pool is incomplete.",
                gate.as_str(),
                self.compat.version()
            );
            let note = (crate::finding::Severity::Warning, "spec.devices".to_owned(), message);
            self.notes.push(note);
        }
        found
    }

    fn reach(
        &mut self,
        node: Option<&str>,
        selector: Option<&NodeSelector>,
        all: Option<bool>,
        per_device: bool,
        path: &str,
    ) -> Reach {
        if let Some(node) = node.filter(|node| !node.is_empty()) {
            return Reach::Node(phalanx_engine::NodeKey(self.names.get(node)));
        }
        if all == Some(true) {
            return Reach::All;
        }
        if let Some(selector) = selector {
            if let [term] = selector.node_selector_terms.as_slice() {
                return Reach::Selector(rules::term(term, self.names));
            }
            self.notes.push((
                crate::finding::Severity::Error,
                format!("{path}.nodeSelector.nodeSelectorTerms"),
                format!(
                    "A selector of nodes for devices has exactly one term, and this one has {}. \
                     No node is taken to reach the devices.",
                    selector.node_selector_terms.len()
                ),
            ));
            return Reach::Unknown;
        }
        if per_device { Reach::PerDevice } else { Reach::Unknown }
    }

    /// The compact form of a device; with its index where each device says which nodes reach it.
    fn device<'o>(
        &mut self,
        driver: &Name,
        device: &'o ObjectDevice,
        reaching: Option<usize>,
        beside: &mut Beside<'o>,
    ) -> DeviceRecord {
        let place = self.attributes(driver, device, beside);
        let Beside { attributes, sorted, .. } = &mut *beside;
        sorted.clear();
        sorted.extend(attributes.iter().map(|a| (a.id, !a.full, a.value)));
        // Where a name stands with and without the driver's domain, the full one counts.
        sorted.sort_unstable();
        sorted.dedup_by_key(|(id, ..)| *id);
        let attributes = sorted.iter().map(|(id, _, value)| (*id, *value)).collect();
        let kind = match beside.kind(device, &place).filter(|_| reaching.is_none()) {
            Some(alike) => alike,
            None => self.kind(device, place, reaching),
        };
        beside.kinds.push((device, kind.clone()));
        DeviceRecord { name: self.names.get(&device.name), attributes, kind }
    }

    /// Reads the attributes of a device; answers where it sits.
    fn attributes<'o>(
        &mut self,
        driver: &Name,
        device: &'o ObjectDevice,
        beside: &mut Beside<'o>,
    ) -> Place {
        std::mem::swap(&mut beside.before, &mut beside.attributes);
        beside.attributes.clear();
        let mut before = beside.before.iter().copied().peekable();
        let mut seat = Seat::default();
        for (spelled, value) in &device.attributes {
            while before.next_if(|known| known.spelled < spelled.as_str()).is_some() {}
            let known = before.next_if(|known| known.spelled == spelled);
            let id = match &known {
                Some(known) => known.id,
                None => self.attributes.name(driver, spelled),
            };
            let same = known.filter(|k| self.attributes.value_of(k.value) == Some(value));
            let value = match same {
                Some(known) => known.value,
                None => self.attributes.value(value),
            };
            seat.see(self.attributes.tells(id), value);
            let full = known.map_or_else(|| spelled.contains('/'), |known| known.full);
            beside.attributes.push(Attribute { spelled, full, id, value });
        }
        seat.place(self.attributes, self.names)
    }

    fn kind(
        &mut self,
        device: &ObjectDevice,
        place: Place,
        reaching: Option<usize>,
    ) -> Shared<DeviceKind> {
        let kind = self.new_kind(device, place, reaching);
        match self.kinds.get(&kind) {
            Some(shared) => shared.clone(),
            None => {
                self.kinds.insert(kind.clone());
                kind
            }
        }
    }

    fn new_kind(
        &mut self,
        device: &ObjectDevice,
        place: Place,
        reaching: Option<usize>,
    ) -> Shared<DeviceKind> {
        let multiple = device.allow_multiple_allocations;
        let capacity = device.capacity.iter().map(|(name, c)| self.capacity(name, c)).collect();
        let reach = reaching.map(|index| {
            self.reach(
                device.node_name.as_deref(),
                device.node_selector.as_ref(),
                device.all_nodes,
                false,
                &format!("spec.devices[{index}]"),
            )
        });
        Shared::new(DeviceKind {
            place,
            capacity,
            written: device.capacity.values().map(|c| Written(c.value)).collect(),
            counters: self.consumed(device),
            taints: self.taints(&device.taints),
            shareable: multiple == Some(true) && self.compat.is_on(Gate::DRAConsumableCapacity),
            allow_multiple: multiple,
            // The stable allocator does not know the field.
            binds_to_node: device.binds_to_node == Some(true)
                && self.compat.allocator() != Allocator::Stable,
            binding: self.binding(device),
            reach,
            access: self.access(device),
            groups: self.groups(device),
        })
    }

    /// What a device takes of counter sets, which nobody counts while the gate is off.
    fn consumed(&mut self, device: &ObjectDevice) -> Box<[CounterSet]> {
        if !self.compat.is_on(Gate::DRAPartitionableDevices) {
            return Box::default();
        }
        let uses = device.consumes_counters.iter();
        uses.map(|uses| self.counter_set(&uses.counter_set, &uses.counters)).collect()
    }

    /// Its compatibility groups, set by set.
    fn groups(&mut self, device: &ObjectDevice) -> Box<[(Name, Box<[Name]>)]> {
        if !self.compat.is_on(Gate::DRADeviceCompatibilityGroups) {
            return Box::default();
        }
        let uses = device.consumes_counters.iter();
        uses.filter(|uses| !uses.compatibility_groups.is_empty())
            .map(|uses| {
                let groups = uses.compatibility_groups.iter().map(|g| self.names.get(g)).collect();
                (self.names.get(&uses.counter_set), groups)
            })
            .collect()
    }

    fn capacity(&mut self, name: &str, capacity: &DeviceCapacity) -> Capacity {
        let fractions = self.compat.is_on(Gate::DRAFractionalCapacityRange);
        let policy = capacity.request_policy.as_ref().map(|policy| {
            let some = |q: &Option<Quantity>| q.as_ref().map(nanos);
            let range = policy
                .valid_range
                .as_ref()
                .map(|range| (some(&range.min), some(&range.max), some(&range.step)));
            Box::new(CapacityPolicy {
                default: some(&policy.default),
                valid: policy.valid_values.iter().map(nanos).collect(),
                range,
                exact: fractions && range.is_some_and(is_exact),
            })
        });
        Capacity { name: self.names.get(name), nanos: nanos(&capacity.value), policy }
    }

    fn counter_sets(&mut self, sets: &[ObjectCounterSet]) -> Box<[CounterSet]> {
        if !self.compat.is_on(Gate::DRAPartitionableDevices) {
            return Box::default();
        }
        sets.iter().map(|set| self.counter_set(&set.name, &set.counters)).collect()
    }

    fn counter_set(
        &mut self,
        name: &str,
        counters: &BTreeMap<String, phalanx_objects::resource::Counter>,
    ) -> CounterSet {
        let counters =
            counters.iter().map(|(name, c)| (self.names.get(name), nanos(&c.value))).collect();
        CounterSet { name: self.names.get(name), counters }
    }

    fn taints(&mut self, taints: &[DeviceTaint]) -> Box<[Taint]> {
        if !self.compat.is_on(Gate::DRADeviceTaints) {
            return Box::default();
        }
        taints.iter().filter_map(|t| device_taint(t, self.names)).collect()
    }

    fn binding(&mut self, device: &ObjectDevice) -> Option<Box<Binding>> {
        if device.binding_conditions.is_empty() {
            return None;
        }
        let mut all = |names: &[String]| names.iter().map(|n| self.names.get(n)).collect();
        Some(Box::new(Binding {
            conditions: all(&device.binding_conditions),
            failures: all(&device.binding_failure_conditions),
        }))
    }
}

/// The devices of a slice that were read already: the next is mostly like one of them.
#[derive(Default)]
struct Beside<'o> {
    /// Attributes of the last, in the order of their names as it spells them.
    attributes: Vec<Attribute<'o>>,
    /// Those of the one before it.
    before: Vec<Attribute<'o>>,
    /// Those of the last by number of the name; whether it stands without its domain is between.
    sorted: Vec<(AttributeName, bool, Value)>,
    kinds: Vec<(&'o ObjectDevice, Shared<DeviceKind>)>,
}

/// An attribute as a device spells it.
#[derive(Clone, Copy)]
struct Attribute<'o> {
    spelled: &'o str,
    /// Whether it is spelled with its domain.
    full: bool,
    id: AttributeName,
    value: Value,
}

/// How many devices are compared with the next, before it is read by itself.
const BESIDE_MAX: usize = 4;

impl Beside<'_> {
    /// What one of the last devices has in common with this one, if that is all but name and
    /// attributes.
    fn kind(&self, device: &ObjectDevice, place: &Place) -> Option<Shared<DeviceKind>> {
        let mut last = self.kinds.iter().rev().take(BESIDE_MAX);
        let alike = last.find(|(other, kind)| kind.place == *place && is_alike(other, device))?;
        Some(alike.1.clone())
    }
}

/// Whether two devices differ in nothing but their names, attributes and the nodes that they name.
fn is_alike(a: &ObjectDevice, b: &ObjectDevice) -> bool {
    let mut amounts = a.capacity.values().zip(b.capacity.values());
    a.allow_multiple_allocations == b.allow_multiple_allocations
        && a.capacity == b.capacity
        && a.consumes_counters == b.consumes_counters
        && a.taints == b.taints
        && a.binds_to_node == b.binds_to_node
        && a.binding_conditions == b.binding_conditions
        && a.binding_failure_conditions == b.binding_failure_conditions
        && amounts.all(|(a, b)| Written(a.value) == Written(b.value))
}

/// Whether kube-scheduler counts the steps of a range in thousandths: all of it are multiples of one
/// that 64 bits hold, and a step is at least one.
fn is_exact((min, max, step): (Option<i128>, Option<i128>, Option<i128>)) -> bool {
    const MILLI: i128 = 1_000_000;
    let fits = |nanos: i128| nanos % MILLI == 0 && i64::try_from(nanos / MILLI).is_ok();
    [min, max, step].into_iter().flatten().all(fits) && step.is_none_or(|step| step >= MILLI)
}

/// A device taint, where it keeps anything away: only `NoSchedule` and `NoExecute` do.
pub(crate) fn device_taint(taint: &DeviceTaint, names: &mut Names) -> Option<Taint> {
    rules::taint(&taint.key, &taint.value, &taint.effect, names)
        .filter(|taint| taint.effect != phalanx_engine::Effect::PreferNoSchedule)
}

/// What live selectors can tell about a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Projection {
    pub(crate) driver: Name,
    pub(crate) allow_multiple: bool,
    pub(crate) attributes: Vec<(AttributeName, Value)>,
    pub(crate) capacity: Vec<(Name, Written)>,
}

/// All projections that ever were, and how many pools have each now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profiles {
    ids: FxHashMap<Arc<Projection>, ProfileId>,
    entries: Vec<(Arc<Projection>, u32)>,
    /// Profiles that no pool had before.
    pub(crate) fresh: Vec<ProfileId>,
}

impl Profiles {
    fn add(&mut self, projection: &Projection) -> ProfileId {
        if let Some(id) = self.ids.get(projection) {
            return *id;
        }
        let id = ProfileId(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        let projection = Arc::new(projection.clone());
        self.ids.insert(Arc::clone(&projection), id);
        self.entries.push((projection, 0));
        id
    }

    /// One more pool has the profile.
    pub(crate) fn take(&mut self, id: ProfileId) {
        if let Some((_, pools)) = self.entries.get_mut(id.0 as usize) {
            *pools += 1;
            if *pools == 1 {
                self.fresh.push(id);
            }
        }
    }

    /// One pool fewer has it.
    pub(crate) fn give(&mut self, id: ProfileId) {
        if let Some((_, pools)) = self.entries.get_mut(id.0 as usize) {
            *pools = pools.saturating_sub(1);
        }
    }

    pub(crate) fn get(&self, id: ProfileId) -> Option<&Projection> {
        self.entries.get(id.0 as usize).map(|(projection, _)| &**projection)
    }

    /// The profiles that some pool has.
    pub(crate) fn live(&self) -> Vec<ProfileId> {
        let ids = (0..).map(ProfileId).zip(&self.entries);
        ids.filter(|(_, (_, pools))| *pools > 0).map(|(id, _)| id).collect()
    }
}

/// The devices of a pool that live selectors can't tell apart, of its newest generation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alike {
    pub(crate) count: u64,
    /// The first of them, in order of slices; none where older generations alone have such.
    pub(crate) first: Option<Name>,
}

/// What lowering a pool needs and fills.
pub(crate) struct PoolLowering<'a> {
    pub(crate) names: &'a mut Names,
    pub(crate) attributes: &'a Attributes,
    pub(crate) live: &'a Live,
    pub(crate) compat: &'a Compat,
    pub(crate) profiles: &'a mut Profiles,
    pub(crate) traits: &'a mut FxHashSet<Shared<Traits>>,
    pub(crate) rules: &'a BTreeMap<Name, TaintRuleRecord>,
    /// The attributes that live constraints compare and some device has.
    pub(crate) compared: Vec<(Name, AttributeName)>,
}

/// The devices of a pool that were lowered already: the next is mostly like one of them.
struct Lowered<'a> {
    projection: Projection,
    last: Vec<(&'a Shared<DeviceKind>, Shared<Traits>)>,
}

impl PoolLowering<'_> {
    /// The pool, and the profiles of its devices.
    pub(crate) fn pool(
        &mut self,
        key: &PoolKey,
        slices: &BTreeMap<Name, Arc<SliceRecord>>,
    ) -> (Pool, BTreeMap<ProfileId, Alike>) {
        let rules: Vec<TaintRuleRecord> =
            self.rules.values().filter(|rule| rule.may_touch(key)).cloned().collect();
        let newest = slices.values().map(|slice| slice.generation).max();
        let mut profiles: BTreeMap<ProfileId, Alike> = BTreeMap::new();
        let (attributes, capacity) = (Vec::new(), Vec::new());
        let projection =
            Projection { driver: key.driver.clone(), allow_multiple: false, attributes, capacity };
        let mut beside = Lowered { projection, last: Vec::new() };
        let mut lowered = Vec::with_capacity(slices.len());
        for (name, slice) in slices {
            let mut devices = Vec::with_capacity(slice.devices.len());
            for device in slice.devices.iter().filter(|_| !slice.opaque) {
                let traits = self.traits(device, &rules, &mut beside);
                let alike = profiles.entry(traits.profile).or_default();
                if Some(slice.generation) == newest {
                    alike.count += 1;
                    alike.first.get_or_insert_with(|| device.name.clone());
                }
                devices.push(Device { name: device.name.clone(), traits });
            }
            lowered.push(Slice {
                name: name.clone(),
                generation: slice.generation,
                slice_count: slice.slice_count,
                reach: slice.reach.clone(),
                devices: devices.into(),
                counters: slice.counters.clone(),
                granting: slice.granting.clone(),
                opaque: slice.opaque,
            });
        }
        (Pool { slices: lowered }, profiles)
    }

    fn traits<'d>(
        &mut self,
        device: &'d DeviceRecord,
        rules: &[TaintRuleRecord],
        beside: &mut Lowered<'d>,
    ) -> Shared<Traits> {
        let kind = &device.kind;
        self.project(device, &mut beside.projection);
        let profile = self.profiles.add(&beside.projection);
        let attributes = self.attributes_compared(device);
        let is_it = |(other, traits): &&(&Shared<DeviceKind>, Shared<Traits>)| {
            other.same(kind) && traits.profile == profile && *traits.attributes == *attributes
        };
        let mut last = beside.last.iter().rev().take(BESIDE_MAX);
        if rules.is_empty()
            && let Some((_, traits)) = last.find(is_it)
        {
            return traits.clone();
        }
        let mut taints: Vec<Taint> = kind.taints.to_vec();
        let names_it =
            |rule: &&TaintRuleRecord| rule.device.as_ref().is_none_or(|name| *name == device.name);
        taints.extend(rules.iter().filter(names_it).filter_map(|rule| rule.taint.clone()));
        let consumable = self.compat.is_on(Gate::DRAConsumableCapacity);
        let traits = Shared::new(Traits {
            profile,
            attributes: attributes.into(),
            capacity: if consumable { kind.capacity.clone() } else { sizes(&kind.capacity) },
            counters: kind.counters.clone(),
            taints: taints.into(),
            place: kind.place.clone(),
            shareable: kind.shareable,
            binds_to_node: kind.binds_to_node,
            binding: kind.binding.clone(),
            reach: kind.reach.clone(),
            access: kind.access.clone(),
            groups: kind.groups.clone(),
        });
        let traits = match self.traits.get(&traits) {
            Some(shared) => shared.clone(),
            None => {
                self.traits.insert(traits.clone());
                traits
            }
        };
        beside.last.push((kind, traits.clone()));
        traits
    }

    /// What live selectors can tell about a device of the projection's driver.
    fn project(&self, device: &DeviceRecord, to: &mut Projection) {
        let reads = |(name, value): &&(AttributeName, Value)| {
            self.live.reads_attribute(*name) || self.attributes.is_broken(*value)
        };
        to.attributes.clear();
        to.attributes.extend(device.attributes.iter().filter(reads));
        let capacities = device.kind.capacity.iter().zip(&device.kind.written);
        let read = capacities.filter(|(c, _)| self.live.reads_capacity(&to.driver, &c.name));
        to.capacity.clear();
        to.capacity.extend(read.map(|(c, written)| (c.name.clone(), *written)));
        to.allow_multiple = self.live.reads_sharing() && device.kind.allow_multiple == Some(true);
    }

    /// The attributes that a live constraint compares.
    fn attributes_compared(&mut self, device: &DeviceRecord) -> Vec<(Name, AttributeValue)> {
        let lists = self.compat.is_on(Gate::DRAListTypeAttributes);
        let mut compared = Vec::new();
        for (name, id) in &self.compared {
            let found = device.attributes.binary_search_by_key(id, |(name, _)| *name);
            let Some(value) = found.ok().and_then(|at| device.attributes.get(at)) else { continue };
            let Some(value) = self.attributes.value_of(value.1) else { continue };
            if let Some(value) = comparable_if(value, lists, self.names) {
                compared.push((name.clone(), value));
            }
        }
        compared
    }
}

/// A value as constraints see it. Without list attributes a list is not looked at, and is as no
/// value at all; with them an attribute without a value is as none.
pub(crate) fn comparable_if(
    value: &DeviceAttribute,
    lists: bool,
    names: &mut Names,
) -> Option<AttributeValue> {
    match comparable(value, names) {
        AttributeValue::Unset if lists => None,
        AttributeValue::List(_) if !lists => Some(AttributeValue::Unset),
        value @ (AttributeValue::Int(_)
        | AttributeValue::Bool(_)
        | AttributeValue::String(_)
        | AttributeValue::Version(_)
        | AttributeValue::List(_)
        | AttributeValue::Unset) => Some(value),
    }
}

/// Capacities as sizes alone: without `DRAConsumableCapacity` nobody asks for a part of them, and
/// their policies are not read.
fn sizes(of: &[Capacity]) -> Box<[Capacity]> {
    let sound = of.iter().filter(|capacity| capacity.nanos >= 0);
    sound.map(|capacity| Capacity { policy: None, ..capacity.clone() }).collect()
}
