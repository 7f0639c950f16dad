//! A scenario whose names are masked: planned as before, and with the names put back the same is said
//! of it.

use std::sync::Arc;

use phalanx_cluster::mask::Mask;
use phalanx_cluster::view::Document;
use phalanx_cluster::world::World;
use phalanx_cluster::{Lowering, ObjectEvent, Source};
use phalanx_objects::Object;
use serde_json::Value;

use crate::scenario::ScenarioError;

/// Objects masked, as text, and what puts names back.
pub(crate) struct Masked {
    world: World,
}

impl Masked {
    /// Takes the objects in, in their order.
    pub(crate) fn new<'a>(lowering: Lowering, objects: impl Iterator<Item = &'a Object>) -> Self {
        let mut world = World::new(lowering);
        for (at, object) in objects.enumerate() {
            let source = Source { file: Arc::from(""), line: 0, ordinal: at as u64 };
            world.absorb(ObjectEvent::Applied(Box::new(object.clone()), source));
        }
        world.settle();
        Self { world }
    }

    fn mask(&self) -> Result<Mask<'_>, ScenarioError> {
        let failed = |error| ScenarioError(format!("An object can't be masked: {error}."));
        let kept = || ScenarioError("The world keeps no objects.".to_owned());
        Mask::new(&self.world).map_err(failed)?.ok_or_else(kept)
    }

    /// A dump with codes for names.
    pub(crate) fn dump(&self) -> Result<String, ScenarioError> {
        let failed = |error| ScenarioError(format!("An object can't be masked: {error}."));
        let mut dump = String::new();
        for object in self.mask()?.objects() {
            dump.push_str(&object.map_err(failed)?.to_string());
            dump.push('\n');
        }
        Ok(dump)
    }

    /// Where the plan of the dump, its names put back, differs from the plan of what was masked.
    pub(crate) fn differs(
        &self,
        plain: &Document,
        masked: &Document,
    ) -> Result<Option<String>, ScenarioError> {
        let failed = |error| ScenarioError(format!("A plan can't be written: {error}."));
        let mask = self.mask()?;
        let plain = serde_json::to_value(plain).map_err(failed)?;
        let masked = serde_json::to_value(masked).map_err(failed)?;
        Ok(difference(&plain, &masked, &mask, ""))
    }
}

/// The first place in which two documents differ, and how.
fn difference(plain: &Value, masked: &Value, mask: &Mask<'_>, path: &str) -> Option<String> {
    match (plain, masked) {
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            a.iter().zip(b).find_map(|((key, a), (other, b))| {
                // A share's id is made from names.
                if key == other && key == "shareID" {
                    return None;
                }
                let path = format!("{path}.{key}");
                if key == other { difference(a, b, mask, &path) } else { Some(path) }
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut pairs = a.iter().zip(b).enumerate();
            pairs.find_map(|(at, (a, b))| difference(a, b, mask, &format!("{path}[{at}]")))
        }
        (Value::String(a), Value::String(b)) => {
            let back = mask.reveal(b);
            (*a != back).then(|| format!("{path}: {a:?} is {back:?} of {b:?}"))
        }
        (a, b) => (a != b).then(|| format!("{path}: {a} is {b}")),
    }
}
