//! The two shapes that every object is made of: a struct whose fields may be absent or null, and
//! an enum of words that keeps a word it does not know. What a field means stays with its type.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The type of a field, read as Kubernetes reads it: `null` is the default.
pub(crate) trait Field<'de>: Deserialize<'de> + Default {
    /// Reads the field's value.
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<Self>::deserialize(deserializer)?.unwrap_or_default())
    }
}

impl Field<'_> for bool {}
impl Field<'_> for i32 {}
impl Field<'_> for i64 {}
impl Field<'_> for String {}
impl Field<'_> for serde_json::Value {}
impl<'de, T: Deserialize<'de>> Field<'de> for Option<T> {}

/// A list that holds no more memory than it needs: most have one entry, where a list that grows as
/// it is read would make room for four.
impl<'de, T: Deserialize<'de>> Field<'de> for Vec<T> {
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Exact<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Exact<T> {
            type Value = Vec<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_none<E: Error>(self) -> Result<Vec<T>, E> {
                Ok(Vec::new())
            }

            fn visit_unit<E: Error>(self) -> Result<Vec<T>, E> {
                Ok(Vec::new())
            }

            fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Vec<T>, D::Error> {
                inner.deserialize_seq(self)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
                let mut list = Vec::new();
                while let Some(entry) = entries.next_element()? {
                    if list.is_empty() {
                        list.reserve_exact(1);
                    }
                    list.push(entry);
                }
                list.shrink_to_fit();
                Ok(list)
            }
        }
        deserializer.deserialize_option(Exact(PhantomData))
    }
}

/// A map whose values may be null and whose keys may not repeat: serde's own keeps the last of two.
impl<'de, V: Deserialize<'de> + Default> Field<'de> for BTreeMap<String, V> {
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Unique<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de> + Default> Visitor<'de> for Unique<V> {
            type Value = BTreeMap<String, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
                Ok(BTreeMap::new())
            }

            fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
                inner.deserialize_map(self)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                let mut map = BTreeMap::new();
                while let Some(key) = entries.next_key::<String>()? {
                    let value = entries.next_value::<Option<V>>()?.unwrap_or_default();
                    if map.contains_key(&key) {
                        return Err(A::Error::custom(format_args!(
                            "The key `{key}` occurs twice."
                        )));
                    }
                    map.insert(key, value);
                }
                Ok(map)
            }
        }
        deserializer.deserialize_option(Unique(PhantomData))
    }
}

/// Whether a field holds its default and is left out when written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A struct read as Kubernetes reads it: absent and null fields are the default, unknown fields are
/// skipped, and a default is not written.
macro_rules! object {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $( $(#[$field_meta:meta])* $field_vis:vis $field:ident : $type:ty ),* $(,)?
        }
    )*) => {$(
        #[derive(Clone, Debug, Default, PartialEq, ::serde::Deserialize, ::serde::Serialize)]
        $(#[$meta])*
        #[serde(rename_all = "camelCase", remote = "Self")]
        $vis struct $name {
            $(
                $(#[$field_meta])*
                #[serde(
                    default,
                    deserialize_with = "crate::macros::Field::read",
                    skip_serializing_if = "crate::macros::is_default"
                )]
                $field_vis $field: $type,
            )*
        }

        impl $crate::macros::Field<'_> for $name {}

        // What serde derives is the type's own function; the traits are these.
        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::deserialize($crate::macros::Map(deserializer))
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }
    )*};
}

/// Gives a struct its fields from a map alone: what serde derives would take a list as well, by the
/// order of the fields.
pub(crate) struct Map<D>(pub(crate) D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Map<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Fields(visitor))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

/// What takes fields by name and nothing else.
struct Fields<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for Fields<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(fields)
    }
}

/// An enum of words as one API spells them. The empty word is the default variant; a word that is
/// not listed is kept in `Other`, for upstream treats unknown words by rules of their own.
macro_rules! words {
    ($(
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(#[$first_meta:meta])* $first:ident = $first_word:literal,
            $( $(#[$word_meta:meta])* $variant:ident = $word:literal, )*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[$first_meta])* #[default] $first,
            $( $(#[$word_meta])* $variant, )*
            /// A word that this version does not know.
            Other(Box<str>),
        }

        impl $name {
            /// The word as the API spells it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    Self::$first => $first_word,
                    $( Self::$variant => $word, )*
                    Self::Other(word) => word,
                }
            }
        }

        impl $crate::macros::Field<'_> for $name {}

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $first_word => Self::$first,
                    $( $word => Self::$variant, )*
                    other if other.is_empty() => Self::$first,
                    other => Self::Other(other.into()),
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <::std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Ok(Self::from(word.as_ref()))
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    )*};
}

/// An enum of words of our own API: a word that is not listed is refused, with the words that are.
macro_rules! closed_words {
    ($(
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$word_meta:meta])* $variant:ident = $word:literal, )* }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(::serde::Deserialize, ::serde::Serialize)]
        pub enum $name { $( $(#[$word_meta])* #[serde(rename = $word)] $variant, )* }

        impl $name {
            /// The word as manifests spell it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word, )* }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

/// Whether a list has an entry of a kind, of which nothing else is kept: what is not checked costs a
/// byte. It is not written back.
macro_rules! flags {
    ($( $(#[$meta:meta])* pub struct $name:ident: $entry:ty, $asks:expr; )*) => {$(
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $(#[$meta])*
        pub struct $name(pub bool);

        impl $crate::macros::Field<'_> for $name {}

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let asks: fn(&$entry) -> bool = $asks;
                $crate::macros::any(deserializer, asks).map(Self)
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                ::serde::Serializer::collect_seq(serializer, [(); 0])
            }
        }
    )*};
}

/// Whether an entry of a list passes a test; all are read, so that a wrong one is found.
pub(crate) fn any<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    asks: fn(&T) -> bool,
) -> Result<bool, D::Error> {
    struct Any<T>(fn(&T) -> bool);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Any<T> {
        type Value = bool;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<bool, A::Error> {
            let mut found = false;
            while let Some(entry) = entries.next_element::<T>()? {
                found |= (self.0)(&entry);
            }
            Ok(found)
        }
    }
    deserializer.deserialize_seq(Any(asks))
}

/// Declares a family of kinds: the enums and their tables from one list. Of each: its type, its
/// name in manifests, its word and other words for it on a command line, and the groups and versions
/// in which it is read, that in which it is written first.
macro_rules! family {
    (
        $(#[$kind_meta:meta])* $kinds:ident;
        $(#[$object_meta:meta])* $objects:ident;
        $( $(#[$meta:meta])* $name:ident($type:ident): $kind:literal, $word:literal $(| $short:literal)*,
        [$first:literal $(, $version:literal)*]; )*
    ) => {
        $(#[$kind_meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $kinds {
            $( $(#[$meta])* $name, )*
        }

        $(#[$object_meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $objects {
            $( $(#[$meta])* $name(Box<$type>), )*
        }

        impl $kinds {
            /// All of them.
            pub const ALL: &'static [Self] = &[$( Self::$name, )*];

            /// The kind's name as manifests spell it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$name => $kind, )* }
            }

            /// The kind as users type it: in lower case, singular, and no other kind's.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $( Self::$name => $word, )* }
            }

            /// Other words for it: kubectl's short names.
            #[must_use]
            pub const fn short_words(self) -> &'static [&'static str] {
                match self { $( Self::$name => &[$($short),*], )* }
            }

            /// Groups and versions in which it is read, that in which it is written first.
            #[must_use]
            pub const fn versions(self) -> &'static [&'static str] {
                match self { $( Self::$name => &[$first $(, $version)*], )* }
            }

            /// Reads an object of the kind.
            pub(crate) fn read<'de, D: ::serde::Deserializer<'de>>(
                self,
                from: D,
            ) -> Result<$objects, D::Error> {
                match self {
                    $( Self::$name => {
                        <$type as ::serde::Deserialize>::deserialize(from).map(|of| $objects::$name(Box::new(of)))
                    } )*
                }
            }
        }

        impl $objects {
            /// Its kind.
            #[must_use]
            pub const fn kind(&self) -> $kinds {
                match self { $( Self::$name(_) => $kinds::$name, )* }
            }

            /// Its metadata.
            #[must_use]
            pub fn metadata(&self) -> &$crate::meta::ObjectMeta {
                match self { $( Self::$name(of) => &of.metadata, )* }
            }

            /// Its metadata, to be changed.
            pub fn metadata_mut(&mut self) -> &mut $crate::meta::ObjectMeta {
                match self { $( Self::$name(of) => &mut of.metadata, )* }
            }
        }

        impl ::serde::Serialize for $objects {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $( Self::$name(of) => of.serialize(serializer), )* }
            }
        }
    };
}

pub(crate) use {closed_words, family, flags, object, words};
