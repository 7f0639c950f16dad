//! What of a device an expression can read, found without a device.
//!
//! Two devices that agree on it get the same answer at the same cost. A path that is written out
//! (also through `cel.bind`) reads one entry; a map that goes anywhere else (a macro over it, a
//! comparison, a key that is computed) is read whole.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::device::{AttributeValue, Device, Entry};
use crate::ir::{Ir, Op, StepId, Table};
use crate::value::Value;

/// Entries of one table (attributes, or capacities) that can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadSet {
    /// The whole table, which domains there are included.
    pub all: bool,
    /// Domains that are read whole.
    pub domains: BTreeSet<String>,
    /// Entries by domain and identifier.
    pub entries: BTreeSet<(String, String)>,
}

impl ReadSet {
    /// Whether the entry can matter.
    pub fn contains(&self, domain: &str, id: &str) -> bool {
        self.all
            || self.domains.contains(domain)
            || self.entries.iter().any(|(d, i)| d == domain && i == id)
    }

    /// Whether nothing of the table can matter.
    pub fn is_empty(&self) -> bool {
        !self.all && self.domains.is_empty() && self.entries.is_empty()
    }
}

/// What of a device can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// `device.driver`
    pub driver: bool,
    /// `device.allowMultipleAllocations`
    pub allow_multiple_allocations: bool,
    /// `device.attributes`
    pub attributes: ReadSet,
    /// `device.capacity`
    pub capacity: ReadSet,
}

/// What an expression sees of a device. Equal projections get equal answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Projection(String);

impl Reads {
    /// The device as far as it can be read.
    pub fn project(&self, device: &Device<'_>) -> Projection {
        let mut text = String::new();
        if self.driver {
            // Writing to a text cannot fail, here and below.
            let _ = write!(text, "driver={:?};", device.driver);
        }
        if self.allow_multiple_allocations {
            let _ = write!(text, "multiple={};", device.allow_multiple_allocations);
        }
        let attribute = |value: &AttributeValue<'_>| {
            let value = Value::attribute(value);
            let element = match &value {
                Value::List(list) => list.get(0).map_or("", |first| first.type_name()),
                _ => "",
            };
            format!("{}{element} {}", value.type_name(), Whole(&value))
        };
        project(&mut text, "attribute", &self.attributes, &device.attributes, attribute);
        project(&mut text, "capacity", &self.capacity, &device.capacity, |q| q.to_string());
        Projection(text)
    }
}

/// A value written out in full, where its usual form leaves out the end of long lists.
struct Whole<'v>(&'v Value<'v>);

impl std::fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Value::List(list) => list.iter().try_for_each(|element| write!(f, "{element},")),
            other => write!(f, "{other}"),
        }
    }
}

fn project<T>(
    text: &mut String,
    table: &str,
    set: &ReadSet,
    entries: &[Entry<'_, T>],
    show: impl Fn(&T) -> String,
) {
    for e in entries.iter().filter(|e| set.contains(e.domain, e.id)) {
        let _ = write!(text, "{table} {:?} {:?}={};", e.domain, e.id, show(&e.value));
    }
}

/// What is known of a value in advance: whether it is the device or a part of it.
#[derive(Clone, Debug)]
enum Known {
    Device,
    Domains(Table),
    Domain(Table, String),
    Other,
}

/// Finds out what a program can read.
pub(crate) fn reads(ir: &Ir) -> Reads {
    let mut finder = Finder { ir, reads: Reads::default(), locals: Vec::new() };
    let result = finder.visit(ir.root);
    finder.escape(&result);
    finder.reads
}

struct Finder<'a> {
    ir: &'a Ir,
    reads: Reads,
    locals: Vec<Known>,
}

impl Finder<'_> {
    fn table(&mut self, table: Table) -> &mut ReadSet {
        match table {
            Table::Attributes => &mut self.reads.attributes,
            Table::Capacity => &mut self.reads.capacity,
        }
    }

    fn entry(&mut self, table: Table, domain: &str, id: &str) {
        self.table(table).entries.insert((domain.to_owned(), id.to_owned()));
    }

    /// The value goes where it cannot be followed: all of it counts as read.
    fn escape(&mut self, known: &Known) {
        match known {
            Known::Other => {}
            Known::Domain(table, domain) => {
                self.table(*table).domains.insert(domain.clone());
            }
            Known::Domains(table) => self.table(*table).all = true,
            Known::Device => {
                self.reads.driver = true;
                self.reads.allow_multiple_allocations = true;
                self.reads.attributes.all = true;
                self.reads.capacity.all = true;
            }
        }
    }

    fn escaping(&mut self, step: StepId) {
        let known = self.visit(step);
        self.escape(&known);
    }

    /// A field or constant key of a value.
    fn access(&mut self, known: Known, key: &str) -> Known {
        match known {
            Known::Other => Known::Other,
            Known::Device => match key {
                "attributes" => Known::Domains(Table::Attributes),
                "capacity" => Known::Domains(Table::Capacity),
                "driver" => {
                    self.reads.driver = true;
                    Known::Other
                }
                _ => {
                    self.reads.allow_multiple_allocations = true;
                    Known::Other
                }
            },
            Known::Domains(table) => Known::Domain(table, key.to_owned()),
            Known::Domain(table, domain) => {
                self.entry(table, &domain, key);
                Known::Other
            }
        }
    }

    fn constant_text(&self, step: StepId) -> Option<String> {
        match &self.ir.step(step).op {
            Op::Constant(Value::Str(text)) => Some(text.to_string()),
            _ => None,
        }
    }

    fn scoped(&mut self, variables: Vec<Known>, body: StepId) -> Known {
        let outside = self.locals.len();
        self.locals.extend(variables);
        let known = self.visit(body);
        self.locals.truncate(outside);
        known
    }

    fn visit(&mut self, id: StepId) -> Known {
        let ir = self.ir;
        match &ir.step(id).op {
            Op::Constant(_) => Known::Other,
            Op::Device => Known::Device,
            Op::Local(slot) => self.locals.get(*slot as usize).cloned().unwrap_or(Known::Other),
            Op::Driver => self.access(Known::Device, "driver"),
            Op::AllowMultipleAllocations => self.access(Known::Device, "allowMultipleAllocations"),
            Op::Domains(table) => Known::Domains(*table),
            Op::Domain(table, domain) => Known::Domain(*table, domain.to_string()),
            Op::Entry(table, domain, name) => {
                self.entry(*table, domain, name);
                Known::Other
            }
            Op::Select { operand, field, .. } => {
                let known = self.visit(*operand);
                self.access(known, field)
            }
            Op::Has { operand, field } => {
                // Whether a domain is there is not asked: it always is.
                let known = self.visit(*operand);
                self.access(known, field);
                Known::Other
            }
            Op::Index { operand, index, .. } => {
                let known = self.visit(*operand);
                match self.constant_text(*index) {
                    Some(key) => self.access(known, &key),
                    None => {
                        self.escape(&known);
                        self.escaping(*index);
                        Known::Other
                    }
                }
            }
            Op::In { value, within, .. } => self.membership(*value, *within),
            Op::Bind { init, body } => {
                let init = self.visit(*init);
                self.scoped(vec![init], *body)
            }
            Op::OptMap { target, body, .. } => {
                let target = self.visit(*target);
                let body = self.scoped(vec![target], *body);
                self.escape(&body);
                Known::Other
            }
            Op::Fold(fold) => {
                self.escaping(fold.range);
                let variables = vec![Known::Other; 1 + usize::from(fold.two)];
                for part in fold.filter.into_iter().chain([fold.body]) {
                    let known = self.scoped(variables.clone(), part);
                    self.escape(&known);
                }
                Known::Other
            }
            other => {
                operands(other, &mut |step| self.escaping(step));
                Known::Other
            }
        }
    }

    fn membership(&mut self, value: StepId, within: StepId) -> Known {
        let key = self.constant_text(value);
        match (self.visit(within), key) {
            (Known::Domain(table, domain), Some(key)) => self.entry(table, &domain, &key),
            // A domain is there if any of its entries is.
            (Known::Domains(table), Some(key)) => {
                self.table(table).domains.insert(key);
            }
            (known, _) => {
                self.escape(&known);
                self.escaping(value);
            }
        }
        Known::Other
    }
}

/// Calls `visit` with the operands of a step.
pub(crate) fn operands(op: &Op, visit: &mut impl FnMut(StepId)) {
    match op {
        Op::Constant(_)
        | Op::Device
        | Op::Local(_)
        | Op::Driver
        | Op::AllowMultipleAllocations
        | Op::Domains(_)
        | Op::Domain(..)
        | Op::Entry(..) => {}
        Op::Select { operand, .. } | Op::Has { operand, .. } => visit(*operand),
        Op::Not(operand) | Op::Negate(operand) => visit(*operand),
        Op::Index { operand: a, index: b, .. }
        | Op::Arithmetic(_, _, a, b)
        | Op::Compare(_, _, a, b)
        | Op::Equal(a, b)
        | Op::NotEqual(a, b)
        | Op::In { value: a, within: b, .. }
        | Op::OrElse { optional: a, other: b }
        | Op::OrValue { optional: a, other: b }
        | Op::Bind { init: a, body: b }
        | Op::OptMap { target: a, body: b, .. } => {
            visit(*a);
            visit(*b);
        }
        Op::And(steps) | Op::Or(steps) | Op::Call(_, _, steps) => {
            steps.iter().copied().for_each(visit);
        }
        Op::Regex { arguments, .. } => arguments.iter().copied().for_each(visit),
        Op::Conditional { condition, then, other } => {
            visit(*condition);
            visit(*then);
            visit(*other);
        }
        Op::List(elements) => elements.iter().for_each(|(step, _)| visit(*step)),
        Op::Map(entries) => entries.iter().for_each(|(key, value, _)| {
            visit(*key);
            visit(*value);
        }),
        Op::Fold(fold) => {
            visit(fold.range);
            fold.filter.iter().copied().for_each(&mut *visit);
            visit(fold.body);
        }
    }
}
