//! A map in the order in which it is written, with ranges in its keys.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// Names and values in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordered<V>(Vec<(String, V)>);

impl<V> Ordered<V> {
    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// `gpu-0..3` as gpu-0, gpu-1, gpu-2, gpu-3; any other name as itself.
pub(super) fn names(name: &str) -> Vec<String> {
    let range = name.split_once("..").and_then(|(left, last)| {
        let prefix = left.trim_end_matches(|c: char| c.is_ascii_digit());
        let first: u32 = left[prefix.len()..].parse().ok()?;
        let last: u32 = last.parse().ok()?;
        (last >= first && last - first < 1000).then_some((prefix, first..=last))
    });
    match range {
        Some((prefix, numbers)) => numbers.map(|n| format!("{prefix}{n}")).collect(),
        None => vec![name.to_owned()],
    }
}

impl<'de, V: Deserialize<'de> + Clone> Deserialize<'de> for Ordered<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de> + Clone> Visitor<'de> for Map<V> {
            type Value = Ordered<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered<V>, A::Error> {
                let mut entries: Vec<(String, V)> = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    let value: V = map.next_value()?;
                    for name in names(&key) {
                        if entries.iter().any(|(n, _)| *n == name) {
                            return Err(A::Error::custom(format!("`{name}` is there twice")));
                        }
                        entries.push((name, value.clone()));
                    }
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Map(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_stands_for_its_names() {
        assert_eq!(names("gpu-2..4"), ["gpu-2", "gpu-3", "gpu-4"]);
        for one in ["gpu-2", "gpu-4..2", "a..b", "x..3"] {
            assert_eq!(names(one), [one]);
        }
    }

    #[test]
    fn the_order_of_the_file_is_kept_and_no_name_comes_twice() {
        let map: Ordered<u32> = serde_saphyr::from_str("b: 1\na0..1: 2\n").unwrap();
        assert_eq!(map.iter().collect::<Vec<_>>(), [("b", &1), ("a0", &2), ("a1", &2)]);
        assert!(serde_saphyr::from_str::<Ordered<u32>>("a0: 1\na0..1: 2\n").is_err());
    }
}
