//! Which events say something new: an object is in its latest state, and gone when that is the
//! latest that was heard of it, in whatever order the events come.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_objects::{Kind, Object, ObjectRef};

use super::record::{Header, Uid};
use super::{Gone, Lowering, ObjectEvent};
use crate::finding::Source;

/// How many deletions are remembered. What is older can't be told from news any more; a watch
/// repeats only what is recent.
const GRAVES_MAX: usize = 10_000;

/// Deletions of which the version is known, so that a state from before does not bring the object
/// back.
#[derive(Clone, Debug, Default)]
pub(super) struct Graves {
    graves: BTreeMap<ObjectRef, Grave>,
    /// The same by version, to forget the oldest.
    by_version: BTreeSet<(u64, ObjectRef)>,
}

#[derive(Clone, Debug)]
struct Grave {
    version: u64,
    uid: Uid,
}

impl Graves {
    fn dig(&mut self, object: &ObjectRef, version: u64, uid: Uid) {
        if self.graves.get(object).is_some_and(|grave| grave.version >= version) {
            return;
        }
        self.forget(object);
        self.graves.insert(object.clone(), Grave { version, uid });
        self.by_version.insert((version, object.clone()));
        if self.by_version.len() > GRAVES_MAX
            && let Some((_, oldest)) = self.by_version.pop_first()
        {
            self.graves.remove(&oldest);
        }
    }

    fn forget(&mut self, object: &ObjectRef) {
        if let Some(grave) = self.graves.remove(object) {
            self.by_version.remove(&(grave.version, object.clone()));
        }
    }

    /// Whether the state is of before the object's deletion.
    fn hold(&self, object: &ObjectRef, state: &Header) -> bool {
        self.graves.get(object).is_some_and(|grave| match state.version {
            Some(version) => version <= grave.version,
            None => !grave.uid.is_none() && grave.uid == state.uid,
        })
    }
}

impl Lowering {
    /// What is kept of the metadata of an object, named in full, if its state is later than what is
    /// known of it; `first` where the caller knows that nothing is.
    pub(crate) fn news(
        &self,
        reference: &ObjectRef,
        object: &Object,
        source: &Source,
        first: bool,
    ) -> Option<Header> {
        let state = Header::new(object.metadata(), source.clone());
        let known = if first { None } else { self.header(reference) };
        let later = known.is_none_or(|known| state.supersedes(known));
        (later && !self.graves.hold(reference, &state)).then_some(state)
    }

    /// Whether a deletion, of an object named in full, is later than what is known of it. It is
    /// remembered even where it comes too late.
    pub(crate) fn ends(&mut self, gone: &Gone) -> bool {
        let version = gone.resource_version.parse::<u64>().ok();
        let uid = Uid::new(&gone.uid);
        let late = self.header(&gone.object).is_some_and(|known| match (version, known.version) {
            (Some(gone), Some(known)) => gone < known,
            (Some(_) | None, Some(_) | None) => uid.differs(&known.uid),
        });
        if let Some(version) = version {
            self.graves.dig(&gone.object, version, uid);
        }
        !late
    }
}

/// The event with its object named in full: in `default` where it names no namespace, as kubectl
/// has it, and by its place in the input where it leaves its name to the API server, so that the
/// name is the same in every run.
pub(crate) fn named(event: ObjectEvent) -> ObjectEvent {
    match event {
        ObjectEvent::Applied(mut object, source) => {
            let kind = object.kind();
            let meta = object.metadata_mut();
            name_namespace(kind, &mut meta.namespace);
            if meta.name.is_empty() {
                meta.name = format!("{}plan{}", meta.generate_name, source.ordinal);
            }
            ObjectEvent::Applied(object, source)
        }
        ObjectEvent::Deleted(gone) => {
            let mut gone = gone;
            name_namespace(gone.object.kind, &mut gone.object.namespace);
            ObjectEvent::Deleted(gone)
        }
    }
}

fn name_namespace(kind: Kind, namespace: &mut String) {
    if !kind.is_namespaced() {
        namespace.clear();
    } else if namespace.is_empty() {
        "default".clone_into(namespace);
    }
}
