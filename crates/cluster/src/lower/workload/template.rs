//! What the pods of a workload are like, for whoever looks at the objects themselves: the same
//! expansion as lowering's.

use std::borrow::Cow;

use phalanx_objects::core::{PodSpec, PodTemplateSpec};
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::workload::{TrainingRuntime, Workload};
use phalanx_objects::{Object, ObjectRef};

use super::{Context, expand};
use crate::world::Objects;

/// The spec of a pod, or of the pods of a workload's role.
pub(crate) fn pod_spec<'a>(
    objects: &'a Objects,
    of: &ObjectRef,
    role: u16,
) -> Option<Cow<'a, PodSpec>> {
    if let Object::Pod(pod) = objects.get(of)? {
        return Some(Cow::Borrowed(&pod.spec));
    }
    Some(match template(objects, of, role)? {
        Cow::Borrowed(template) => Cow::Borrowed(&template.spec),
        Cow::Owned(template) => Cow::Owned(template.spec),
    })
}

/// Metadata on which a pod's own wish may stand, that which counts first: of a pod its own, of a
/// workload's role the template's and then the workload's.
pub(crate) fn metas<'a>(
    objects: &'a Objects,
    of: &ObjectRef,
    role: u16,
) -> Vec<Cow<'a, ObjectMeta>> {
    let Some(object) = objects.get(of) else { return Vec::new() };
    let template = template(objects, of, role).map(|template| match template {
        Cow::Borrowed(template) => Cow::Borrowed(&template.metadata),
        Cow::Owned(template) => Cow::Owned(template.metadata),
    });
    template.into_iter().chain([Cow::Borrowed(object.metadata())]).collect()
}

/// The template of a workload's role.
fn template<'a>(
    objects: &'a Objects,
    of: &ObjectRef,
    role: u16,
) -> Option<Cow<'a, PodTemplateSpec>> {
    let Object::Workload(workload) = objects.get(of)? else { return None };
    let context = Context { created: false, runtime: &|of: &ObjectRef| runtime(objects, of) };
    let mut roles = expand(workload, &context).roles;
    let at = usize::from(role);
    (at < roles.len()).then(|| roles.swap_remove(at).template)
}

fn runtime<'a>(objects: &'a Objects, of: &ObjectRef) -> Option<&'a TrainingRuntime> {
    let Object::Workload(
        Workload::TrainingRuntime(runtime) | Workload::ClusterTrainingRuntime(runtime),
    ) = objects.get(of)?
    else {
        return None;
    };
    Some(runtime)
}
