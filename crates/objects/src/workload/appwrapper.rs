//! `workload.codeflare.dev/v1beta2`: AppWrapper, and the objects in it.

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::macros::{Field, object};
use crate::meta::ObjectMeta;
use crate::object::Object;

object! {
    /// Objects that are queued as one.
    pub struct AppWrapper {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: AppWrapperSpec,
        /// What is.
        pub status: AppWrapperStatus,
    }

    /// What a wrapper wants.
    pub struct AppWrapperSpec {
        /// The objects.
        pub components: Vec<AppWrapperComponent>,
        /// Whether nothing is made for now.
        pub suspend: bool,
        /// The controller that makes the objects; none means the operator's own.
        pub managed_by: Option<String>,
    }

    /// One of the objects.
    pub struct AppWrapperComponent {
        /// The object.
        pub template: Wrapped,
        /// How many pods it makes, as the user says.
        pub pod_sets: Vec<AppWrapperPodSet>,
    }

    /// Pods of one make.
    pub struct AppWrapperPodSet {
        /// How many; none means 1.
        pub replicas: Option<i32>,
        /// Where in the object their template stands.
        pub path: String,
    }

    /// What is known of a wrapper.
    pub struct AppWrapperStatus {
        /// Such as `Suspended`, `Running`, `Succeeded` and `Failed`.
        pub phase: String,
    }
}

/// An object inside another. One that is not read leaves its type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wrapped {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// The object, if it is of a kind that is read and could be read.
    pub object: Option<Box<Object>>,
    /// Why it could not be read, if it is of such a kind.
    pub problem: String,
}

impl Field<'_> for Wrapped {}

impl<'de> Deserialize<'de> for Wrapped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let text = |key| value.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion").to_owned(), text("kind").to_owned());
        let mut wrapped = Self { api_version, kind, ..Self::default() };
        // A wrapper in a wrapper is refused, and would be read without end.
        if wrapped.kind == "AppWrapper" {
            return Ok(wrapped);
        }
        match crate::read::read_value(&wrapped.api_version, &wrapped.kind, value) {
            Some(Ok(object)) => wrapped.object = Some(Box::new(object)),
            Some(Err(problem)) => wrapped.problem = problem,
            None => {}
        }
        Ok(wrapped)
    }
}

impl Serialize for Wrapped {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Bare<'a> {
            api_version: &'a str,
            kind: &'a str,
        }
        match &self.object {
            Some(object) => object.serialize(serializer),
            None => Bare { api_version: &self.api_version, kind: &self.kind }.serialize(serializer),
        }
    }
}
