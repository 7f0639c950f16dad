//! Volumes that writes keep for claims: nobody else's, of the claim's size at least, and in reach of
//! the node.

use phalanx_objects::{Kind, Object, ObjectRef};

use super::Audit;
use crate::raise::{VolumeClaimWrite, VolumeWrite};

impl Audit<'_> {
    /// A volume is kept for a claim.
    pub(super) fn volume(&mut self, write: &VolumeWrite) {
        let of = ObjectRef {
            kind: Kind::PersistentVolume,
            namespace: String::new(),
            name: write.volume.clone(),
        };
        let Some(Object::PersistentVolume(volume)) = self.objects.get(&of) else {
            return self.wrong(&of, "it is kept for a claim and does not exist".to_owned());
        };
        let claim = ObjectRef {
            kind: Kind::PersistentVolumeClaim,
            namespace: write.claim.namespace.clone(),
            name: write.claim.name.clone(),
        };
        let others =
            volume.spec.claim_ref.as_ref().is_some_and(|kept| {
                (&kept.namespace, &kept.name) != (&claim.namespace, &claim.name)
            });
        if others || !self.kept.insert(of.clone()) {
            self.wrong(&of, format!("it is another's, and is kept for {claim}"));
        }
        let Some(Object::PersistentVolumeClaim(found)) = self.objects.get(&claim) else {
            return self.wrong(&of, format!("it is kept for {claim}, which does not exist"));
        };
        let size = |list: &phalanx_objects::core::ResourceList| {
            list.get("storage").copied().unwrap_or_default()
        };
        if size(&volume.spec.capacity) < size(&found.spec.resources.requests) {
            self.wrong(&of, format!("it is smaller than {claim} asks for"));
        }
    }

    /// A claim is told on which node its volume is made.
    pub(super) fn select_node(&mut self, write: &VolumeClaimWrite) {
        let of = ObjectRef {
            kind: Kind::PersistentVolumeClaim,
            namespace: write.namespace.clone(),
            name: write.claim.clone(),
        };
        match self.objects.get(&of) {
            Some(Object::PersistentVolumeClaim(claim)) if claim.spec.volume_name.is_empty() => {}
            Some(_) | None => {
                self.wrong(&of, "a volume is made for it, and it has one or is gone".to_owned());
            }
        }
    }
}
