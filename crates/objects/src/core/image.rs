//! The name of an image, as kube-scheduler looks for it on nodes.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::PodSpec;
use crate::macros::Field;
use crate::object::Object;

/// The tag of an image that has none.
const TAG: &str = ":latest";

/// An image as a container names it, with the tag that it has if none is said (ImageLocality's
/// `normalizedImageName`). A name without a digest or a tag is one without `:` behind its last `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageName(Box<str>);

impl ImageName {
    /// The name; empty if there is none.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ImageName {
    fn from(name: &str) -> Self {
        let last = name.rsplit('/').next().unwrap_or(name);
        if name.is_empty() || last.contains(':') {
            return Self(name.into());
        }
        Self(format!("{name}{TAG}").into())
    }
}

impl Field<'_> for ImageName {}

impl<'de> Deserialize<'de> for ImageName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Ok(Self::from(name.as_ref()))
    }
}

impl Serialize for ImageName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Object {
    /// Forgets the images of a node, or of the pods that it describes: they are many, and only scores
    /// look at them.
    pub fn forget_images(&mut self) {
        if let Self::Node(node) = self {
            if !node.status.images.is_empty() {
                Arc::make_mut(node).status.images = Vec::new();
            }
            return;
        }
        // Of pods there are many more than of all else.
        if let Self::Pod(pod) = self {
            if has_images(&pod.spec) {
                forget(&mut Arc::make_mut(pod).spec);
            }
            return;
        }
        if !self.pod_parts().iter().any(|part| has_images(part.spec)) {
            return;
        }
        self.pod_parts_mut().into_iter().for_each(|part| forget(part.spec));
    }
}

fn forget(spec: &mut PodSpec) {
    spec.volumes.of_images = Vec::new();
    let containers = spec.containers.iter_mut().chain(&mut spec.init_containers);
    containers.for_each(|container| container.image = ImageName::default());
}

fn has_images(spec: &PodSpec) -> bool {
    let mut containers = spec.containers.iter().chain(&spec.init_containers);
    !spec.volumes.of_images.is_empty()
        || containers.any(|container| container.image != ImageName::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_tag_is_the_latest() {
        for (name, wanted) in [
            ("b", "b:latest"),
            ("b:1", "b:1"),
            ("registry.example.com:5000/b", "registry.example.com:5000/b:latest"),
            ("registry.example.com/b@sha256:00", "registry.example.com/b@sha256:00"),
            ("", ""),
        ] {
            assert_eq!(ImageName::from(name).as_str(), wanted);
        }
    }
}
