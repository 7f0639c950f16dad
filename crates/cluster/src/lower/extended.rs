//! Extended resources that a DeviceClass serves (KEP-5004): devices are not allocated by such a name
//! yet, and a pod that asks for it where no node counts it is told so.

use phalanx_engine::{Fault, Name, Reason, Resources};
use phalanx_objects::resource::DeviceClass;

use super::absorb::change;
use super::record::PodShape;
use super::{Dependent, Lowering};
use crate::compat::Gate;

/// Before the name of a class, the extended resource that every class serves.
pub(crate) const IMPLICIT: &str = "deviceclass.resource.kubernetes.io/";

/// What is asked or offered under a name of the extended form, with how much.
pub(super) fn extended(resources: &Resources) -> impl Iterator<Item = &Name> {
    let asked = |(name, amount): &&(Name, i64)| *amount > 0 && name.contains('/');
    resources.scalars.iter().filter(asked).map(|(name, _)| name)
}

impl Lowering {
    /// Enters who asks for extended resources, or takes it out.
    pub(super) fn index_asks(&mut self, shape: &PodShape, dependent: &Dependent, enter: bool) {
        for name in extended(&shape.resources) {
            change(&mut self.index.asks, name.clone(), dependent.clone(), enter);
        }
    }

    /// Counts a node among those that have extended resources, or no more.
    pub(super) fn index_offers(&mut self, allocatable: &Resources, enter: bool) {
        for name in extended(allocatable) {
            let count = self.index.offers.entry(name.clone()).or_default();
            let before = *count;
            *count = if enter { before + 1 } else { before.saturating_sub(1) };
            if *count == 0 {
                self.index.offers.remove(name);
            }
            if before == u32::from(!enter) {
                self.mark_askers(name);
            }
        }
    }

    /// Marks who asks for an extended resource that the class serves.
    pub(super) fn mark_served(&mut self, class: &DeviceClass) {
        if let Some(resource) = &class.spec.extended_resource_name {
            self.mark_askers(resource);
        }
        self.mark_askers(&format!("{IMPLICIT}{}", class.metadata.name));
    }

    fn mark_askers(&mut self, resource: &str) {
        let askers = self.index.asks.get(resource).cloned().unwrap_or_default();
        self.mark(askers);
    }

    /// What a pod can't be given because only devices would serve it.
    pub(super) fn unserved(&mut self, shape: &PodShape) -> Option<Fault> {
        if !self.compat.is_on(Gate::DRAExtendedResource) {
            return None;
        }
        let missing = |name: &&Name| !self.index.offers.contains_key(*name);
        let mut of_classes =
            extended(&shape.resources).filter(missing).filter_map(|name| self.served(name));
        let (resource, class) = of_classes.next()?;
        let detail = format!(
            "no node counts it, and DeviceClass {class} serves it with devices, which Phalanx does \
             not allocate by that name yet; ask for them by a ResourceClaim"
        );
        let detail = self.interned.names.get(&detail);
        Some(Fault { reason: Reason::RequestUnsupported, subject: resource, detail })
    }

    /// The resource, and the class that serves it.
    fn served(&self, resource: &Name) -> Option<(Name, Name)> {
        if let Some(class) = resource.strip_prefix(IMPLICIT) {
            let (name, _) = self.objects.classes.get_key_value(class)?;
            return Some((resource.clone(), name.clone()));
        }
        let serves = |(_, class): &(&Name, &super::claim::Class)| {
            class.object.spec.extended_resource_name.as_deref() == Some(resource.as_str())
        };
        let (name, _) = self.objects.classes.iter().find(serves)?;
        Some((resource.clone(), name.clone()))
    }
}
