//! AppWrapper: the objects in it, each expanded as if it stood alone. One that exists already is an
//! object of its own, and the wrapper makes no more of it.

use phalanx_engine::Name;
use phalanx_objects::Object;
use phalanx_objects::core::{Pod, PodTemplateSpec};
use phalanx_objects::workload::{AppWrapper, AppWrapperComponent, Workload};

use super::record::{Numbers, Places, StandsFor};
use super::{Context, Declared, Expansion, RolePlan, count, expand};
use crate::finding::Severity;

const OPERATOR: &str = "workload.codeflare.dev/appwrapper-controller";

/// The workloads in a wrapper, with their places.
pub(super) fn workloads(wrapper: &AppWrapper) -> impl Iterator<Item = (usize, &Workload)> {
    let all = wrapper.spec.components.iter().enumerate();
    all.filter_map(|(at, component)| match component.template.object.as_deref() {
        Some(Object::Workload(workload)) => Some((at, workload)),
        Some(_) | None => None,
    })
}

/// An AppWrapper.
pub(super) fn app_wrapper<'a>(wrapper: &'a AppWrapper, context: &Context<'_, 'a>) -> Expansion<'a> {
    let phase = wrapper.status.phase.as_str();
    let mut expansion =
        Expansion { aside: ["Succeeded", "Failed"].contains(&phase), ..Expansion::default() };
    expansion.suspended(wrapper.spec.suspend, "spec.suspend", "AppWrapper");
    let by = wrapper.spec.managed_by.as_deref();
    expansion.managed(by, &[OPERATOR], "spec.managedBy", "AppWrapper");
    let several = wrapper.spec.components.len() > 1;
    for (index, component) in wrapper.spec.components.iter().enumerate() {
        let at = format!("spec.components[{index}]");
        match component.template.object.as_deref() {
            Some(Object::Workload(workload)) => {
                let inner = expand(workload, &Context { created: false, ..*context });
                // What is refused inside is not made.
                if !inner.aside && inner.roles.iter().all(|role| role.refused.is_empty()) {
                    compare(component, &inner, &at, &mut expansion);
                }
                take(inner, workload, &at, several, &mut expansion);
            }
            Some(Object::Pod(pod)) => expansion.roles.push(one(pod, &at)),
            Some(_) => {}
            None => unknown(component, &at, &mut expansion),
        }
    }
    expansion
}

/// Takes over what an object in the wrapper comes to.
fn take<'a>(
    inner: Expansion<'a>,
    workload: &Workload,
    at: &str,
    several: bool,
    expansion: &mut Expansion<'a>,
) {
    let name = workload.metadata().name.as_str();
    let path = |path: &str| format!("{at}.template.{path}");
    for role in inner.roles {
        let shown = match (several, role.name.is_empty()) {
            (true, true) => name.to_owned(),
            (true, false) => format!("{name}/{}", role.name),
            (false, _) => role.name.clone(),
        };
        expansion.roles.push(RolePlan {
            name: shown,
            at: format!("{at}.template.{}", role.at),
            wanted: if inner.aside { 0 } else { role.wanted },
            stands_for: Some(StandsFor::Object(workload.kind(), Some(name.into()))),
            refused: role.refused.iter().map(|(s, p, text)| (*s, path(p), text.clone())).collect(),
            ..role
        });
    }
    expansion.keeps_leaving |= inner.keeps_leaving;
    expansion.notes.extend(inner.notes.into_iter().map(|(s, p, text)| (s, path(&p), text)));
    let due = inner.while_due.into_iter().map(|(s, p, text)| (s, path(&p), text));
    expansion.while_due.extend(due);
    if expansion.gang.is_none() {
        expansion.gang = inner.gang.map(|declared| {
            let field = Name::new(&path(&declared.field));
            Declared { field, ..declared }
        });
    }
}

/// A pod in the wrapper.
fn one<'a>(pod: &Pod, at: &str) -> RolePlan<'a> {
    let name = &pod.metadata.name;
    let template = PodTemplateSpec { metadata: pod.metadata.clone(), spec: pod.spec.clone() };
    let bare = PodTemplateSpec::default();
    let role = RolePlan::numbered(name, name, &bare, &format!("{at}.template.spec"), 1);
    RolePlan {
        template: std::borrow::Cow::Owned(template),
        places: Places { numbers: Numbers::Bare, ..Places::plain(name) },
        ..role.into_owned()
    }
}

/// An object whose pods can't be told.
fn unknown(component: &AppWrapperComponent, at: &str, expansion: &mut Expansion<'_>) {
    let wrapped = &component.template;
    let pods: u64 =
        component.pod_sets.iter().map(|set| u64::from(set.replicas.map_or(1, count))).sum();
    let message = if !wrapped.problem.is_empty() {
        format!("The {} in it can't be read, and is left out: {}", wrapped.kind, wrapped.problem)
    } else if wrapped.kind == "AppWrapper" {
        "An AppWrapper in another is refused.".to_owned()
    } else {
        let (kind, version) = (&wrapped.kind, &wrapped.api_version);
        format!(
            "Objects of kind {kind} ({version}) are not read: the {pods} pods that its podSets name \
             are not planned."
        )
    };
    let refused = wrapped.kind == "AppWrapper" || !wrapped.problem.is_empty();
    let severity = if refused { Severity::Error } else { Severity::Warning };
    expansion.note(severity, &format!("{at}.template"), message);
}

/// The pod sets that are declared must be those that the object has.
fn compare(
    component: &AppWrapperComponent,
    inner: &Expansion<'_>,
    at: &str,
    expansion: &mut Expansion<'_>,
) {
    let sets = &component.pod_sets;
    if !sets.is_empty() && sets.len() != inner.roles.len() {
        let message = format!(
            "An AppWrapper that declares {} podSets for an object that has {} is refused.",
            sets.len(),
            inner.roles.len()
        );
        expansion.refuse(&format!("{at}.podSets"), message);
    }
}
