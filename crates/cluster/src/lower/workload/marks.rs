//! Marks on pods that declare them part of a gang, whatever made them.

use phalanx_objects::core::PodSpec;
use phalanx_objects::meta::ObjectMeta;

use super::RolePlan;

/// Labels that name the group of a pod: of Kueue, and of the coscheduling plugin and its heirs.
const LABELS: [&str; 3] = [
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io/name",
    "kueue.x-k8s.io/pod-group-name",
];

/// Annotations that do: of Volcano and of Koordinator.
const ANNOTATIONS: [&str; 3] = [
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "gang.scheduling.koordinator.sh/name",
];

/// The field that declares a pod part of a gang, and the gang's name.
pub(crate) fn declared_by(meta: &ObjectMeta, spec: &PodSpec) -> Option<(String, String)> {
    let group = spec.scheduling_group.as_ref().and_then(|group| group.pod_group_name.as_ref());
    if let Some(name) = group {
        return Some(("spec.schedulingGroup.podGroupName".to_owned(), name.clone()));
    }
    let label = |key: &&str| Some((format!("metadata.labels[{key:?}]"), meta.labels.get(*key)?));
    let annotation =
        |key: &&str| Some((format!("metadata.annotations[{key:?}]"), meta.annotations.get(*key)?));
    let found = LABELS.iter().find_map(label).or_else(|| ANNOTATIONS.iter().find_map(annotation));
    found.map(|(field, name)| (field, name.clone()))
}

/// The same of the pods that a role makes, as a path in its workload.
pub(super) fn of_template(role: &RolePlan<'_>) -> Option<String> {
    let (field, _) = declared_by(&role.template.metadata, &role.template.spec)?;
    let before = role.at.strip_suffix("spec")?;
    Some(format!("{before}{field}"))
}
