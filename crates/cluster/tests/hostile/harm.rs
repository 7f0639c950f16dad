//! Doing harm to one object, by chance.

use std::mem::discriminant;

use phalanx_objects::Quantity;
use serde_json::{Map, Value};

use super::chance::Chance;

/// Values that are well formed, and that few fields expect.
const VALUES: &str = include_str!("../../../objects/corpus/values.txt");

/// Harms an object in one to three places.
pub(crate) fn object(object: &mut Value, chance: &mut Chance) {
    let copy = object.clone();
    for _ in 0..=chance.below(3) {
        let place = somewhere(object, chance);
        harm(place, &copy, chance);
    }
}

/// A value inside, the deeper the likelier.
fn somewhere<'a>(value: &'a mut Value, chance: &mut Chance) -> &'a mut Value {
    let inside = match value {
        Value::Object(map) => map.len(),
        Value::Array(list) => list.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    if inside == 0 || chance.one_in(6) {
        return value;
    }
    let at = chance.index(inside);
    let inner = match value {
        Value::Object(map) => map.values_mut().nth(at),
        Value::Array(list) => list.get_mut(at),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    somewhere(inner.expect("a place inside"), chance)
}

fn harm(value: &mut Value, whole: &Value, chance: &mut Chance) {
    match (chance.below(6), &mut *value) {
        (0, Value::Array(list)) if !list.is_empty() => {
            let twin = list[chance.index(list.len())].clone();
            list.extend(vec![twin; 1 + chance.index(40)]);
        }
        (0, Value::Object(map)) if !map.is_empty() => {
            let at = chance.index(map.len());
            let gone = map.keys().nth(at).cloned().expect("a key");
            map.remove(&gone);
        }
        (1, _) => *value = somewhere(&mut whole.clone(), chance).clone(),
        (2, Value::Object(map)) => many(map, chance),
        (2, Value::String(text)) => {
            let long = "9".repeat(300);
            let at = (0..=text.len()).filter(|at| text.is_char_boundary(*at));
            let at: Vec<usize> = at.collect();
            text.insert_str(
                at[chance.index(at.len())],
                chance.pick(&["\0", " ", "/", "\u{1F600}", "A", "-", &long]),
            );
        }
        (2 | 3, Value::Number(_)) => {
            let odd = [i64::MAX, i64::MIN, -1, 0, 1, i64::from(i32::MAX), 1 << 40];
            *value = odd[chance.index(odd.len())].into();
        }
        _ => {
            // Half of them of the type that is there, or hardly an object would be read.
            let alike = chance.one_in(2);
            let fits = |other: &Value| !alike || discriminant(other) == discriminant(value);
            let values: Vec<Value> = VALUES
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .filter(fits)
                .collect();
            *value = values[chance.index(values.len())].clone();
        }
    }
}

/// Amounts that are whole and larger, or smaller, than any that is meant.
const AMOUNTS: [&str; 10] = [
    "9223372036854775807",
    "9223372036854775806",
    "9223372036854775807m",
    "8Ei",
    "7E",
    "99999999999Ei",
    "1n",
    "0",
    "4611686018427387904",
    "1e18",
];

/// Makes every other amount of an object absurd.
pub(crate) fn amounts(value: &mut Value, chance: &mut Chance) {
    match value {
        Value::Object(map) => map.values_mut().for_each(|value| amounts(value, chance)),
        Value::Array(list) => list.iter_mut().for_each(|value| amounts(value, chance)),
        Value::String(text) if chance.one_in(2) && text.parse::<Quantity>().is_ok() => {
            *text = chance.pick(&AMOUNTS).to_owned();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Adds more keys than anybody needs, made of those that are there.
fn many(map: &mut Map<String, Value>, chance: &mut Chance) {
    let Some((key, value)) = map.iter().next().map(|(key, value)| (key.clone(), value.clone()))
    else {
        return;
    };
    for number in 0..chance.below(500) {
        map.insert(format!("{key}{number}"), value.clone());
    }
}
