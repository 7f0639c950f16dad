//! Objects without what gives their cluster away: a dump that can be shown to others and that is
//! planned alike. Reading and printing are left to the command.
//!
//! What is not read is not there to be written: of the annotations, of the environment, of commands,
//! arguments and images nothing reaches an [`Object`]. What is left are names and values of labels.
//! Each word of them is replaced by a code, the same everywhere, and codes are in the order of the
//! words ([`names`]). [`fields`] says which text is a name.

mod fields;
mod names;

use std::collections::{BTreeMap, BTreeSet};

use phalanx_cel::{Program, ReadSet};
use phalanx_objects::Object;
use serde_json::{Map, Value};

use crate::world::World;

use fields::{Act, Reading};
use names::{Codes, Words};

/// The objects of a world, masked.
#[derive(Debug)]
pub struct Mask<'a> {
    objects: Vec<&'a Object>,
    reading: Reading,
    codes: Codes,
}

impl<'a> Mask<'a> {
    /// Looks at every object of a world, as it is without those that something else supersedes.
    /// None where the world keeps no objects.
    ///
    /// # Errors
    /// An object can't be written, which no object that was read is.
    pub fn new(world: &'a World) -> Result<Option<Self>, serde_json::Error> {
        let Some(objects) = world.objects() else { return Ok(None) };
        let objects = objects.in_order();
        let environment = world.lowering().environment();
        let mut expressions = BTreeSet::new();
        for object in &objects {
            fields::expressions(&serde_json::to_value(object)?, &mut expressions);
        }
        let compiled = expressions.iter().filter_map(|text| {
            let selector = Program::compile(text, environment);
            // What derives an attribute is no selector, and reads alike.
            selector.or_else(|_| Program::compile_attribute(text, environment)).ok()
        });
        let reads: Vec<ReadSet> =
            compiled.map(|program| program.reads().attributes.clone()).collect();
        let mut mask = Self { objects, reading: Reading::new(reads), codes: Codes::default() };
        let mut words = Words::default();
        for object in &mask.objects {
            let mut value = written(object)?;
            mask.reading.each(&mut value, &mut |act, text| match act {
                Act::Mask => words.hide(text),
                Act::Keep => words.keep(text),
            });
        }
        mask.codes = words.codes();
        Ok(Some(mask))
    }

    /// Each object, masked, in the order of the input.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn objects(&self) -> impl Iterator<Item = Result<Value, serde_json::Error>> {
        self.objects.iter().map(|object| {
            let mut value = written(object)?;
            self.reading.each(&mut value, &mut |act, text| match act {
                Act::Mask => *text = self.codes.mask(text),
                Act::Keep => {}
            });
            Ok(value)
        })
    }

    /// What each code stands for: with it the answers to a masked dump can be read.
    pub fn codes(&self) -> &BTreeMap<String, String> {
        self.codes.meanings()
    }

    /// A text with words for their codes: what an answer to the masked dump says.
    pub fn reveal(&self, text: &str) -> String {
        self.codes.reveal(text)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

/// An object as it is written, without what drivers alone understand: it may hold anything.
fn written(object: &Object) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(object)?;
    forget_parameters(&mut value);
    Ok(value)
}

fn forget_parameters(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::Object(opaque)) = map.get_mut("opaque") {
                opaque.insert("parameters".to_owned(), Value::Object(Map::new()));
            }
            map.values_mut().for_each(forget_parameters);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_parameters),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
