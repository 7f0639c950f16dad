//! Claims on volumes: those that exist, and those that are yet to be made with their pod.

use phalanx_engine::{Name, NodeKey, VolumeClaim, VolumeClaimKey, VolumeKey};
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::storage::{
    BIND_COMPLETED_ANNOTATION, ClaimPhase, PersistentVolumeClaim, PersistentVolumeClaimSpec,
    SELECTED_NODE_ANNOTATION, VolumeMode,
};

use super::super::Lowering;
use super::super::intern::{Names, nanos};
use super::super::record::Header;
use super::{class_of, label_term, modes, size};

impl Lowering {
    pub(in crate::lower) fn volume_claim(&mut self, claim: &PersistentVolumeClaim, header: Header) {
        let (meta, spec) = (&claim.metadata, &claim.spec);
        let key = VolumeClaimKey(self.scoped(&meta.namespace, &meta.name));
        let names = &mut self.interned.names;
        let owner = meta.controller();
        let selected = meta.annotations.get(SELECTED_NODE_ANNOTATION);
        let fact = VolumeClaim {
            uid: Name::new(&meta.uid),
            owner: owner.map(|owner| (names.get(&owner.name), Name::new(&owner.uid))),
            bound: meta.annotations.contains_key(BIND_COMPLETED_ANNOTATION),
            lost: claim.status.phase == ClaimPhase::Lost,
            deleting: meta.deletion_timestamp.is_some(),
            selected_node: selected.map(|node| NodeKey(names.get(node))),
            ..asked(meta, spec, names)
        };
        self.storage.dirty.claims.insert(key.clone());
        self.storage.claims.insert(key, (header, fact));
    }
}

/// What a claim asks for. One that the API server has not seen gets the default class where it names
/// none.
pub(super) fn asked(
    meta: &ObjectMeta,
    spec: &PersistentVolumeClaimSpec,
    names: &mut Names,
) -> VolumeClaim {
    let created = !meta.uid.is_empty() || meta.creation_timestamp.is_some();
    let class = class_of(meta).or(spec.storage_class_name.as_ref());
    let none = created.then_some("");
    let attributes = spec.volume_attributes_class_name.as_deref().unwrap_or_default();
    let volume = &spec.volume_name;
    VolumeClaim {
        size_nanos: size(&spec.resources.requests).map(nanos),
        block: spec.volume_mode == Some(VolumeMode::Block),
        attributes: names.get(attributes),
        modes: modes(&spec.access_modes),
        selector: spec.selector.as_ref().map(|selector| label_term(selector, names)),
        class: class.map(String::as_str).or(none).map(|class| names.get(class)),
        to_come: !created,
        volume: (!volume.is_empty()).then(|| VolumeKey(names.get(volume))),
        ..VolumeClaim::default()
    }
}
