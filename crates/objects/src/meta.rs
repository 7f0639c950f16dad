//! `ObjectMeta`, lean. Managed fields are never kept, and of the annotations only those that some
//! part of Phalanx reads: a cluster's pods carry kilobytes of others.

use std::collections::BTreeMap;
use std::ops::Deref;

use jiff::Timestamp;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::macros::{Field, object};
use crate::storage;

/// Labels as name to value.
pub type Labels = BTreeMap<String, String>;

object! {
    /// The metadata of an object.
    pub struct ObjectMeta {
        /// Name; empty only in templates and in objects that ask for a generated name.
        pub name: String,
        /// Prefix from which the API server makes a name.
        pub generate_name: String,
        /// Namespace; empty for cluster-scoped objects and where the input names none.
        pub namespace: String,
        /// Identity over time; empty for objects that do not exist yet.
        pub uid: String,
        /// Version as the store gave it; only equality means anything.
        pub resource_version: String,
        /// When the API server created the object; none if it does not exist yet.
        pub creation_timestamp: Option<Timestamp>,
        /// When the object was asked to go; the object still exists.
        pub deletion_timestamp: Option<Timestamp>,
        /// Labels.
        pub labels: Labels,
        /// The annotations that are read, see [`Annotations::keeps`].
        pub annotations: Annotations,
        /// Owners; at most one is the controller.
        pub owner_references: Vec<OwnerReference>,
        /// What must be done before the object may go.
        pub finalizers: Vec<String>,
    }

    /// A pointer to an owner in the same namespace, or to a cluster-scoped one.
    pub struct OwnerReference {
        /// API group and version of the owner.
        pub api_version: String,
        /// Kind of the owner.
        pub kind: String,
        /// Name of the owner.
        pub name: String,
        /// UID of the owner.
        pub uid: String,
        /// Whether this owner manages the object.
        pub controller: Option<bool>,
    }

    /// A condition of an object's status, lean.
    pub struct Condition {
        /// Its type, such as `Ready`.
        #[serde(rename = "type")]
        pub kind: String,
        /// `True`, `False` or `Unknown`.
        pub status: String,
        /// One word that says why.
        pub reason: String,
        /// When the status changed last.
        pub last_transition_time: Option<Timestamp>,
    }
}

impl ObjectMeta {
    /// The owner that manages this object.
    #[must_use]
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller == Some(true))
    }
}

/// The annotations that are read; the others are dropped while reading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Annotations(BTreeMap<String, String>);

impl Annotations {
    /// Whether an annotation with this name is kept.
    #[must_use]
    pub fn keeps(name: &str) -> bool {
        const PREFIXES: [&str; 6] = [
            "phalanx.dev/",
            "resource.kubernetes.io/",
            "batch.kubernetes.io/",
            "kueue.x-k8s.io/",
            "gang.scheduling.koordinator.sh/",
            "kai.scheduler/",
        ];
        // A mirror pod (static pod) cannot be evicted through the API; PodNodeSelector adds to the pods
        // of a namespace; the others say of a pod or a workload whom it is scheduled with, and on
        // which side of a topology.
        const NAMES: [&str; 8] = [
            "kubernetes.io/config.mirror",
            "scheduler.alpha.kubernetes.io/node-selector",
            "scheduling.k8s.io/group-name",
            "scheduling.volcano.sh/group-name",
            "pod-group-name",
            "alpha.jobset.sigs.k8s.io/exclusive-topology",
            "leaderworkerset.sigs.k8s.io/exclusive-topology",
            "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology",
        ];
        // What volumes, their claims and classes and CSINodes say only there.
        const OF_VOLUMES: [&str; 7] = [
            storage::CLASS_ANNOTATION,
            storage::BIND_COMPLETED_ANNOTATION,
            storage::BOUND_BY_CONTROLLER_ANNOTATION,
            storage::SELECTED_NODE_ANNOTATION,
            storage::MIGRATED_PLUGINS_ANNOTATION,
            storage::DEFAULT_CLASS_ANNOTATION,
            storage::BETA_DEFAULT_CLASS_ANNOTATION,
        ];
        OF_VOLUMES.contains(&name)
            || NAMES.contains(&name)
            || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    }
}

impl Field<'_> for Annotations {}

impl Deref for Annotations {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromIterator<(String, String)> for Annotations {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(iter: I) -> Self {
        Self(iter.into_iter().filter(|(name, _)| Self::keeps(name)).collect())
    }
}

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keep;
        impl<'de> Visitor<'de> for Keep {
            type Value = Annotations;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a map of annotations")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Annotations, A::Error> {
                let mut kept = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    if Annotations::keeps(&name) {
                        let value = map.next_value::<Option<String>>()?.unwrap_or_default();
                        kept.insert(name, value);
                    } else {
                        map.next_value::<serde::de::IgnoredAny>()?;
                    }
                }
                Ok(Annotations(kept))
            }
        }
        deserializer.deserialize_map(Keep)
    }
}
