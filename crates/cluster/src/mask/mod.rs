//! Objects without what gives their cluster away: a dump that can be shown to others and that is
//! planned alike. Reading and printing are left to the command.
//!
//! What is not read is not there to be written: of the environment, of commands, arguments and images
//! nothing reaches an [`Object`]. Each text that is left is replaced unless a rule says that it stays
//! ([`fields`], [`keys`]); what of the whole dump decides on that is found first ([`reading`]). Each word is
//! replaced by a code, the same everywhere, and codes are in the order of the words ([`names`]).

mod fields;
mod keys;
mod names;
mod reading;
mod vocabulary;

use std::collections::BTreeMap;

use phalanx_objects::Object;
use serde_json::{Map, Value};

use crate::world::World;

use fields::Act;
use names::{Codes, Words};
use reading::Reading;

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
        let reading = Reading::new(&objects, world.lowering().environment())?;
        let mut mask = Self { objects, reading, codes: Codes::default() };
        let mut words = Words::default();
        for object in &mask.objects {
            fields::each(&mask.reading, &mut written(object)?, &mut |act, text| match act {
                Act::Mask => words.hide(text),
                Act::Address => words.hide_address(text),
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
            fields::each(&self.reading, &mut value, &mut |act, text| match act {
                Act::Mask => *text = self.codes.mask(text),
                Act::Address => *text = self.codes.address(text),
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

    /// How many expressions take texts apart (`startsWith`, `+`): those keep their texts, and the
    /// attributes that they read keep their values.
    pub fn open_expressions(&self) -> usize {
        self.reading.open_expressions()
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
