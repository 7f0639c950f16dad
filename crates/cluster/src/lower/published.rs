//! Taking in what is published of devices: slices, the rules that taint their devices, and the links of
//! nodes.

use std::sync::Arc;

use phalanx_engine::{DeviceKey, Name, PoolKey, Reach};
use phalanx_objects::resource::{DeviceTaintRule, ResourceSlice};
use phalanx_objects::topology::NodeTopology;

use super::absorb::change;
use super::record::{Header, SliceRecord, TaintRuleRecord, TopologyRecord};
use super::slice::{Note, Reader, device_taint};
use super::{Lowering, links};
use crate::compat::Gate;
use crate::finding::Severity;

impl Lowering {
    /// The gate of DeviceTaintRules.
    fn rules_gate(&self) -> Gate {
        match self.compat.version() {
            crate::compat::Version::V1_34 => Gate::DRADeviceTaints,
            crate::compat::Version::V1_35
            | crate::compat::Version::V1_36
            | crate::compat::Version::V1_37 => Gate::DRADeviceTaintRules,
        }
    }

    /// Whether DeviceTaintRules have any effect.
    pub(crate) fn heeds_rules(&self) -> bool {
        self.compat.is_on(self.rules_gate()) && self.compat.is_on(Gate::DRADeviceTaints)
    }

    pub(super) fn taint_rule(&mut self, rule: &DeviceTaintRule, header: Header) -> Vec<Note> {
        let (gate, on) = (self.rules_gate(), self.heeds_rules());
        let names = &mut self.interned.names;
        let selector = rule.spec.device_selector.as_ref();
        let mut part = |of: Option<&String>| of.map(|text| names.get(text));
        let record = TaintRuleRecord {
            header,
            selects: on && selector.is_some(),
            driver: part(selector.and_then(|s| s.driver.as_ref())),
            pool: part(selector.and_then(|s| s.pool.as_ref())),
            device: part(selector.and_then(|s| s.device.as_ref())),
            taint: device_taint(&rule.spec.taint, names),
        };
        let name = names.get(&rule.metadata.name);
        self.taint_rule_changed(&record);
        if let Some(old) = self.objects.taint_rules.insert(name, record) {
            self.taint_rule_changed(&old);
        }
        if on {
            return Vec::new();
        }
        let message = format!(
            "The rule has no effect: the feature gate {} is off in Kubernetes {}.",
            gate.as_str(),
            self.compat.version()
        );
        vec![(Severity::Warning, "spec".to_owned(), message)]
    }

    pub(super) fn taint_rule_changed(&mut self, rule: &TaintRuleRecord) {
        let touched = self.objects.pools.keys().filter(|pool| rule.may_touch(pool));
        self.dirty.pools.extend(touched.cloned());
    }

    pub(super) fn slice(&mut self, slice: &ResourceSlice, header: Header) -> Vec<Note> {
        let name = self.interned.names.get(&slice.metadata.name);
        let mut reader = Reader {
            names: &mut self.interned.names,
            attributes: &mut self.interned.attributes,
            kinds: &mut self.interned.kinds,
            compat: &self.compat,
            notes: Vec::new(),
        };
        let record = Arc::new(reader.slice(slice, header));
        let notes = std::mem::take(&mut reader.notes);
        self.slice_gone(&name);
        self.index_slice(&record, true);
        let pool = self.objects.pools.entry(record.pool.clone()).or_default();
        pool.slices.insert(name.clone(), Arc::clone(&record));
        self.objects.slices.insert(name, record);
        notes
    }

    pub(super) fn slice_gone(&mut self, name: &str) {
        let Some(old) = self.objects.slices.remove(name) else { return };
        self.index_slice(&old, false);
        for device in old.devices.iter().filter(|device| !device.kind.counters.is_empty()) {
            let key = DeviceKey { pool: old.pool.clone(), device: device.name.clone() };
            self.vanished.insert(key, device.kind.consumption());
        }
        if let Some(pool) = self.objects.pools.get_mut(&old.pool) {
            pool.slices.remove(name);
        }
    }

    fn index_slice(&mut self, slice: &SliceRecord, enter: bool) {
        self.dirty.pools.push(slice.pool.clone());
        self.mark_links(&slice.pool);
        let Reach::Node(node) = &slice.reach else { return };
        let pools = self.index.node_pools.entry(node.clone()).or_default();
        let count = pools.entry(slice.pool.clone()).or_default();
        *count = if enter { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            pools.remove(&slice.pool);
        }
        if pools.is_empty() {
            self.index.node_pools.remove(node);
        }
        if self.index.topologies.contains_key(node) {
            self.dirty.links.push(node.clone());
        }
    }

    /// Marks the links of the nodes whose topology names the pool.
    fn mark_links(&mut self, pool: &PoolKey) {
        let nodes = self.index.pool_topologies.get(pool).into_iter().flatten().cloned();
        self.dirty.links.extend(nodes);
    }

    pub(super) fn topology(&mut self, topology: &NodeTopology, header: Header) -> Vec<Note> {
        let name = self.interned.names.get(&topology.metadata.name);
        let mut notes = Vec::new();
        let record = links::read(topology, header, &mut self.interned.names, &mut notes);
        self.topology_gone(&name);
        self.index_topology(&name, &record, true);
        self.objects.topologies.insert(name, Arc::new(record));
        notes
    }

    pub(super) fn topology_gone(&mut self, name: &str) {
        if let Some(old) = self.objects.topologies.remove(name) {
            let name = self.interned.names.get(name);
            self.index_topology(&name, &old, false);
        }
    }

    fn index_topology(&mut self, name: &Name, record: &TopologyRecord, enter: bool) {
        change(&mut self.index.topologies, record.node.clone(), name.clone(), enter);
        for pool in named_pools(record) {
            change(&mut self.index.pool_topologies, pool, record.node.clone(), enter);
        }
        self.dirty.links.push(record.node.clone());
    }
}

/// The pools that a topology names outright: its links are lowered again when they change, for
/// they need not be published under the node's name.
pub(super) fn named_pools(record: &TopologyRecord) -> Vec<PoolKey> {
    let mut pools = Vec::new();
    for hint in &record.hints {
        if let Some(driver) = &hint.driver {
            let pool = hint.pool.clone().unwrap_or_else(|| record.node.0.clone());
            pools.push(PoolKey { driver: driver.clone(), pool });
        }
    }
    pools.sort();
    pools.dedup();
    pools
}
