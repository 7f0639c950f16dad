//! What is another in each run stands in the data as a symbol, numbered as it first appears: `$uid1`,
//! `$v1`, `$name1`, `$token1`; times are `$time`. Requests name what was answered before by its symbol.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The symbols of one sequence.
#[derive(Debug)]
pub(super) struct Symbols {
    namespace: String,
    /// By what the server says, its symbol.
    known: BTreeMap<String, String>,
    /// By version, its symbol.
    versions: BTreeMap<u64, String>,
    /// How many there are of each sort.
    made: BTreeMap<&'static str, usize>,
}

impl Symbols {
    pub(super) fn new(namespace: &str) -> Self {
        let namespace = namespace.to_owned();
        let (known, versions, made) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { namespace, known, versions, made }
    }

    /// A step with what the server said in the place of symbols.
    pub(super) fn fill(&self, step: &Value) -> Value {
        map(step.clone(), &mut |text| self.filled(&text))
    }

    fn filled(&self, text: &str) -> String {
        let mut filled = text.replace("$ns", &self.namespace);
        let versions = self.versions.iter().map(|(version, symbol)| (version.to_string(), symbol));
        let known = self.known.iter().map(|(said, symbol)| (said.clone(), symbol));
        let mut all: Vec<(String, &String)> = versions.chain(known).collect();
        // `$v1` is no beginning of `$v12`.
        all.sort_by_key(|(_, symbol)| std::cmp::Reverse(symbol.len()));
        for (said, symbol) in all {
            filled = filled.replace(symbol.as_str(), &said);
        }
        filled
    }

    /// An answer, or an event of a watch, with symbols.
    pub(super) fn seen(&mut self, mut answer: Value) -> Value {
        match answer.get_mut("object") {
            // Of a watch.
            Some(object) => *object = self.object(object.take()),
            None => answer = self.object(answer),
        }
        answer
    }

    fn object(&mut self, mut object: Value) -> Value {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        if kind == "Status" {
            // For people, and no part of what is promised.
            strike(&mut object, "message");
        }
        let annotations = object.pointer("/metadata/annotations");
        let ends = annotations.is_some_and(|all| all.get("k8s.io/initial-events-end").is_some());
        let is_list = object.get("items").is_some();
        if let Some(metadata) = object.get_mut("metadata") {
            self.metadata(metadata, is_list || ends);
        }
        if let Some(items) = object.get_mut("items").and_then(Value::as_array_mut) {
            for item in items {
                *item = self.object(item.take());
            }
        }
        map(object, &mut |text| self.symbol_of(text))
    }

    fn metadata(&mut self, metadata: &mut Value, is_list: bool) {
        let Some(fields) = metadata.as_object_mut() else { return };
        fields.remove("managedFields");
        if let Some(made) = fields.get("generateName").and_then(Value::as_str).map(str::to_owned)
            && let Some(name) = fields.get("name").and_then(Value::as_str)
            && name.starts_with(&made)
        {
            self.named("name", name.to_owned());
        }
        if let Some(token) = fields.get("continue").and_then(Value::as_str) {
            self.named("token", token.to_owned());
        }
        let version = fields.get("resourceVersion").and_then(Value::as_str);
        let Some(version) = version.and_then(|version| version.parse().ok()) else { return };
        let symbol = if is_list {
            // It is the store's, which others write to as well.
            match self.versions.range(..=version).next_back() {
                Some((_, symbol)) => format!("{symbol} or later"),
                None => "before all".to_owned(),
            }
        } else {
            self.version(version)
        };
        fields.insert("resourceVersion".to_owned(), symbol.into());
    }

    fn version(&mut self, version: u64) -> String {
        if !self.versions.contains_key(&version) {
            let symbol = self.next("v");
            self.versions.insert(version, symbol);
        }
        self.versions.get(&version).cloned().unwrap_or_default()
    }

    fn named(&mut self, sort: &'static str, said: String) -> String {
        if let Some(symbol) = self.known.get(&said) {
            return symbol.clone();
        }
        let symbol = self.next(sort);
        self.known.insert(said, symbol.clone());
        symbol
    }

    fn next(&mut self, sort: &'static str) -> String {
        let made = self.made.entry(sort).or_default();
        *made += 1;
        format!("${sort}{made}")
    }

    fn symbol_of(&mut self, text: String) -> String {
        if is_uid(&text) {
            self.named("uid", text)
        } else if is_time(&text) {
            "$time".to_owned()
        } else if let Some(symbol) = self.known.get(&text) {
            symbol.clone()
        } else {
            text.replace(&self.namespace, "$ns")
        }
    }

    /// All versions, the earliest first.
    pub(super) fn versions_in_order(&self) -> Value {
        json!(self.versions.values().collect::<Vec<_>>())
    }
}

/// Every text in a value, as something else. Keys stay.
fn map(value: Value, with: &mut impl FnMut(String) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(with(text)),
        Value::Array(all) => all.into_iter().map(|value| map(value, with)).collect(),
        Value::Object(all) => all.into_iter().map(|(key, value)| (key, map(value, with))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// Takes a field away wherever it is.
fn strike(value: &mut Value, field: &str) {
    match value {
        Value::Object(all) => {
            all.remove(field);
            all.values_mut().for_each(|value| strike(value, field));
        }
        Value::Array(all) => all.iter_mut().for_each(|value| strike(value, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a symbol stands in it of which the server has said nothing.
pub(super) fn is_left_open(step: &Value) -> bool {
    let text = step.to_string();
    let mut after = text.split('$').skip(1);
    after.any(|rest| {
        let name = rest.trim_start_matches(|c: char| c.is_ascii_lowercase());
        let sort = &rest[..rest.len() - name.len()];
        let is_sort = ["ns", "uid", "v", "name", "token"].contains(&sort);
        is_sort && (sort == "ns" || name.starts_with(|c: char| c.is_ascii_digit()))
    })
}

fn is_uid(text: &str) -> bool {
    let is = |(at, c): (usize, char)| match at {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.chars().enumerate().all(is)
}

fn is_time(text: &str) -> bool {
    let is = |(at, c): (usize, char)| match at {
        4 | 7 => c == '-',
        10 => c == 'T',
        13 | 16 => c == ':',
        _ => c.is_ascii_digit(),
    };
    text.len() >= 20 && text.ends_with('Z') && text.chars().take(19).enumerate().all(is)
}
