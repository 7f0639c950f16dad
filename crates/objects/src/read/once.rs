//! An object's own fields, with an eye on those that say what it is: by them its type was chosen, so
//! that none may follow that says it otherwise.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};

/// Gives a map as it is, and fails at the first `apiVersion` or `kind` beyond so many.
pub(super) struct Once<D> {
    pub(super) from: D,
    pub(super) fields: usize,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Once<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.from.deserialize_map(Once { from: visitor, fields: self.fields })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Once<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.from.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.from.visit_map(Once { from: map, fields: self.fields })
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Once<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Some(Text(key)) = self.from.next_key()? else { return Ok(None) };
        if matches!(key.as_ref(), "apiVersion" | "kind") {
            let Some(left) = self.fields.checked_sub(1) else {
                let message = format!("`{key}` stands behind other fields or a second time");
                return Err(A::Error::custom(message));
            };
            self.fields = left;
        }
        seed.deserialize(key.into_deserializer()).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.from.next_value_seed(seed)
    }
}

/// A string without a copy where it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);
