//! What there is to ask of devices: the requests of claims and templates, with the place of each.

use phalanx_objects::resource::{
    DerivedAttribute, DeviceClaim, DeviceRequest, DeviceSelector, DeviceToleration, ResourceClaim,
};
use phalanx_objects::{Kind, Object, ObjectRef};

use crate::finding::Source;
use crate::world::World;

/// A claim that waits, or a template.
#[derive(Clone, Debug)]
pub(super) struct Holder<'w> {
    pub(super) reference: ObjectRef,
    pub(super) source: Source,
    pub(super) devices: &'w DeviceClaim,
    /// Where the devices stand in the object.
    pub(super) at: &'static str,
}

/// A request without alternatives, or one of its alternatives.
#[derive(Clone, Debug)]
pub(super) struct Ask<'w> {
    /// `main` or `main/sub`.
    pub(super) label: String,
    /// The field that holds class and selectors.
    pub(super) path: String,
    pub(super) class: &'w str,
    pub(super) selectors: &'w [DeviceSelector],
    pub(super) tolerations: &'w [DeviceToleration],
    pub(super) derived: &'w [DerivedAttribute],
}

impl Holder<'_> {
    /// Object and place, as a finding takes them.
    pub(super) fn place(&self) -> (&ObjectRef, &Source) {
        (&self.reference, &self.source)
    }
}

/// The claims that are not allocated yet, and the templates. A claim that was made from a template
/// of the input is left out: what is wrong with it stands there.
pub(super) fn holders(world: &World) -> Vec<Holder<'_>> {
    let objects = world.objects().into_iter();
    let of = |kind| objects.clone().flat_map(move |objects| objects.of_kind(kind));
    let mut all = Vec::new();
    for object in of(Kind::ResourceClaimTemplate).chain(of(Kind::ResourceClaim)) {
        if let Object::ResourceClaim(claim) = object
            && (!waits(claim) || made(world, claim))
        {
            continue;
        }
        let Some((devices, at)) = object.device_claim() else { continue };
        let reference = object.reference();
        let source = world.lowering().source(&reference).cloned().unwrap_or_default();
        all.push(Holder { reference, source, devices, at });
    }
    all
}

fn waits(claim: &ResourceClaim) -> bool {
    claim.status.allocation.is_none() && claim.metadata.deletion_timestamp.is_none()
}

/// Whether the claim was made for a pod, from a template that is in the input.
fn made(world: &World, claim: &ResourceClaim) -> bool {
    let Some(owner) = claim.metadata.controller().filter(|owner| owner.kind == "Pod") else {
        return false;
    };
    let namespace = claim.metadata.namespace.as_str();
    let Some(objects) = world.objects() else { return false };
    let reference = |kind, name: &str| ObjectRef {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let Some(Object::Pod(pod)) = objects.get(&reference(Kind::Pod, &owner.name)) else {
        return false;
    };
    let mut templates =
        pod.spec.resource_claims.iter().filter_map(|c| c.resource_claim_template_name.as_deref());
    templates.any(|name| {
        let template = objects.get(&reference(Kind::ResourceClaimTemplate, name));
        matches!(template, Some(Object::ResourceClaimTemplate(template))
            if template.spec.spec == claim.spec)
    })
}

/// The requests of a claim, each alternative by itself.
pub(super) fn asks<'w>(devices: &'w DeviceClaim, at: &str) -> Vec<Ask<'w>> {
    let requests = devices.requests.iter().enumerate();
    requests
        .flat_map(|(index, request)| of_request(request, &format!("{at}.requests[{index}]")))
        .collect()
}

fn of_request<'w>(request: &'w DeviceRequest, path: &str) -> Vec<Ask<'w>> {
    let exactly = request.exactly.iter().map(|exactly| Ask {
        label: request.name.clone(),
        path: format!("{path}.exactly"),
        class: &exactly.device_class_name,
        selectors: &exactly.selectors,
        tolerations: &exactly.tolerations,
        derived: &exactly.derived_attributes,
    });
    let alternatives = request.first_available.iter().enumerate().map(|(index, sub)| Ask {
        label: format!("{}/{}", request.name, sub.name),
        path: format!("{path}.firstAvailable[{index}]"),
        class: &sub.device_class_name,
        selectors: &sub.selectors,
        tolerations: &sub.tolerations,
        derived: &sub.derived_attributes,
    });
    exactly.chain(alternatives).collect()
}
