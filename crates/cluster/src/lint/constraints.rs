//! Constraints that can't be met by what is published: the attribute is not there, or its types or
//! values never agree.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{Name, NodeKey};
use phalanx_objects::resource::DeviceConstraint;

use super::asked::{Ask, Holder, asks};
use super::bench::Bench;
use super::near::{cut, nearest, quoted};
use super::selectors::article;
use super::{Lint, Rule};
use crate::finding::Severity;
use crate::words::{count, list};

/// How many published names a finding lists.
const NAMES_SHOWN: usize = 12;

pub(super) fn find(bench: &Bench<'_>, found: &mut Vec<Lint>) {
    for holder in &bench.holders {
        for (index, constraint) in holder.devices.constraints.iter().enumerate() {
            let at = format!("{}.constraints[{index}]", holder.at);
            Comparison::of(bench, holder, constraint, &at).into_iter().for_each(|c| c.find(found));
        }
    }
}

/// A request, and the devices of its class.
type Compared<'a> = (Ask<'a>, Vec<usize>);

/// A constraint, and who is compared.
struct Comparison<'a> {
    bench: &'a Bench<'a>,
    holder: &'a Holder<'a>,
    attribute: &'a str,
    is_match: bool,
    path: String,
    asks: Vec<Compared<'a>>,
}

impl<'a> Comparison<'a> {
    /// None where it compares nothing, or what is compared is not known.
    fn of(
        bench: &'a Bench<'a>,
        holder: &'a Holder<'a>,
        constraint: &'a DeviceConstraint,
        at: &str,
    ) -> Option<Self> {
        let (attribute, is_match, path) =
            match (&constraint.match_attribute, &constraint.distinct_attribute) {
                (Some(attribute), None) => (attribute, true, format!("{at}.matchAttribute")),
                (None, Some(attribute)) => (attribute, false, format!("{at}.distinctAttribute")),
                (None, None) | (Some(_), Some(_)) => return None,
            };
        let covered = |ask: &Ask<'_>| {
            let main = main_of(&ask.label);
            let names = &constraint.requests;
            names.is_empty() || names.iter().any(|name| *name == ask.label || name == main)
        };
        let known = |ask: Ask<'a>| Some((bench.of_class(ask.class)?, ask));
        let of_classes = asks(holder.devices, holder.at).into_iter().filter(covered);
        let asks = of_classes.filter_map(known).filter(|(devices, _)| !devices.is_empty());
        let asks = asks.map(|(devices, ask)| (ask, devices.to_vec())).collect();
        Some(Self { bench, holder, attribute, is_match, path, asks })
    }

    fn find(&self, found: &mut Vec<Lint>) {
        let derived =
            |(ask, _): &Compared<'_>| ask.derived.iter().any(|d| d.name == self.attribute);
        if self.asks.iter().any(derived) {
            // Its values are computed, and not published.
            return;
        }
        let without: Vec<&Compared<'_>> =
            self.asks.iter().filter(|(_, devices)| !self.publishes(devices)).collect();
        if !without.is_empty() {
            if !self.add_to_refusal(&without, found) {
                found.push(self.not_published(&without));
            }
        } else if self.is_match {
            found.extend(self.types_differ().or_else(|| self.values_apart()));
        }
    }

    fn publishes(&self, devices: &[usize]) -> bool {
        let alike = devices.iter().filter_map(|at| self.bench.alike.get(*at));
        alike.into_iter().any(|alike| {
            let kinds = alike.published.get(self.attribute);
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| !kind.is_empty()))
        })
    }

    fn not_published(&self, without: &[&Compared<'_>]) -> Lint {
        // Of a list of alternatives another may do.
        let spared = |main: &str| {
            let mut others = self.asks.iter().filter(|(ask, _)| main_of(&ask.label) == main);
            others.any(|(_, devices)| self.publishes(devices))
        };
        let fatal = without.iter().any(|(ask, _)| !spared(main_of(&ask.label)));
        let classes: BTreeMap<&str, u64> =
            without.iter().map(|(ask, at)| (ask.class, self.bench.count(at))).collect();
        let said: Vec<String> = classes
            .iter()
            .map(|(class, number)| {
                format!("{} ({})", cut(class), count(*number, "device", "devices"))
            })
            .collect();
        let published = self.published(without);
        let names = nearest(self.attribute, published.iter().map(|name| name.as_str()));
        let names = match names.as_slice() {
            [] => "They publish no attribute at all.".to_owned(),
            names => format!("Published are, nearest name first: {}.", quoted(names, NAMES_SHOWN)),
        };
        let class = if classes.len() == 1 { "class" } else { "the classes" };
        let never = if fatal { "can never be met" } else { "leaves out these alternatives" };
        let message = format!(
            "No device of {class} {} publishes the attribute {}, so that the constraint {never}. {names} \
             {}",
            list(&said),
            cut(self.attribute),
            self.ways_out(without),
        );
        let lint = Lint::new(Rule::AttributeNotPublished, self.holder.place(), &self.path, message);
        if fatal { lint } else { lint.graded(Severity::Warning) }
    }

    /// Where the API server refuses the name already, it is only said which name is near.
    fn add_to_refusal(&self, without: &[&Compared<'_>], found: &mut [Lint]) -> bool {
        let is = |one: &&mut Lint| {
            one.rule == Rule::FieldValueInvalid
                && one.object.as_ref() == Some(&self.holder.reference)
                && one.path == self.path
        };
        let Some(refusal) = found.iter_mut().find(is) else { return false };
        let names = self.published(without);
        if let Some(near) = nearest(self.attribute, names.iter().map(|name| name.as_str())).first()
        {
            refusal.message.push_str(&format!(" The nearest name that is published is `{near}`."));
        }
        true
    }

    /// The names of all attributes that these devices publish.
    fn published(&self, devices: &[&Compared<'_>]) -> BTreeSet<&Name> {
        let alike = devices.iter().flat_map(|(_, devices)| devices);
        let alike = alike.filter_map(|at| self.bench.alike.get(*at));
        alike.flat_map(|alike| alike.published.keys()).collect()
    }

    fn ways_out(&self, without: &[&Compared<'_>]) -> String {
        if !self.is_match {
            return "If none of these is meant, a node agent has to publish the attribute in the node's \
                    slices."
                .to_owned();
        }
        // What is published already keeps devices together at a wider level.
        let levels =
            [("pcieRoot", "root", "under one PCIe root"), ("numaNode", "numa", "on one NUMA node")];
        let published = self.published(without);
        let known = levels.iter().find_map(|(attribute, level, keeps)| {
            let is = |name: &&&Name| name.rsplit('/').next() == Some(*attribute);
            let name = published.iter().find(is)?;
            Some(format!(
                " What is published, `{name}`, keeps them {keeps}: compare that, or wish for \
                 `phalanx.dev/align: {level}=required`."
            ))
        });
        format!(
            "If none of these is meant, there are two ways out: a node agent that publishes the \
             attribute in the node's slices; or the links of the nodes as NodeTopology objects, with \
             the wish `phalanx.dev/align: island=required` as an annotation of the pod in place of \
             the constraint.{}",
            known.unwrap_or_default()
        )
    }

    /// Two requests whose devices publish the attribute with no type in common.
    fn types_differ(&self) -> Option<Lint> {
        let kinds = |devices: &[usize]| -> BTreeSet<&String> {
            let alike = devices.iter().filter_map(|at| self.bench.alike.get(*at));
            alike.flat_map(|alike| alike.published.get(self.attribute)).flatten().collect()
        };
        let (one, other) = self.pair(|a, b| kinds(a).is_disjoint(&kinds(b)))?;
        let first = |devices: &[usize]| {
            kinds(devices).into_iter().next().map(|kind| article(kind)).unwrap_or_default()
        };
        let message = format!(
            "The attribute {} is {} on devices of class {} (request {}) and {} on devices of class {} \
             (request {}). Values of different types never match, so that the constraint can't be met. \
             Compare an attribute that both publish with one type.",
            cut(self.attribute),
            first(&one.1),
            cut(one.0.class),
            cut(&one.0.label),
            first(&other.1),
            cut(other.0.class),
            cut(&other.0.label),
        );
        Some(Lint::new(Rule::AttributeTypesDiffer, self.holder.place(), &self.path, message))
    }

    /// Two requests whose devices have no value in common on any node.
    fn values_apart(&self) -> Option<Lint> {
        let apart = |a: &[usize], b: &[usize]| {
            let (a, b) = (self.values(a), self.values(b));
            let together: Vec<_> =
                a.iter().filter_map(|(node, a)| Some((a, b.get(node)?))).collect();
            // What is not of one node may meet anything.
            let local = !a.contains_key(&None) && !b.contains_key(&None);
            local && !together.is_empty() && together.iter().all(|(a, b)| a.is_disjoint(b))
        };
        let (one, other) = self.pair(apart)?;
        let (a, b) = (self.values(&one.1), self.values(&other.1));
        let (node, left, right) = a.iter().find_map(|(node, a)| {
            let node = node.as_ref()?;
            Some((node, a, b.get(&Some(node.clone()))?))
        })?;
        let shown = |values: &BTreeSet<String>| {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            quoted(&values, 3)
        };
        let message = format!(
            "On no node do devices of class {} (request {}) and of class {} (request {}) have a value \
             of {} in common, so that the constraint is met nowhere. On {}, such as it is published, \
             the former have {} and the latter {}. If the same thing is spelled in two ways, have one \
             of the drivers publish the other's spelling.",
            cut(one.0.class),
            cut(&one.0.label),
            cut(other.0.class),
            cut(&other.0.label),
            cut(self.attribute),
            node.0,
            shown(left),
            shown(right),
        );
        Some(Lint::new(Rule::AttributeValuesApart, self.holder.place(), &self.path, message))
    }

    /// The values by node.
    fn values(&self, devices: &[usize]) -> BTreeMap<Option<NodeKey>, BTreeSet<String>> {
        let mut all: BTreeMap<Option<NodeKey>, BTreeSet<String>> = BTreeMap::new();
        for alike in devices.iter().filter_map(|at| self.bench.alike.get(*at)) {
            for (node, values) in alike.values.get(self.attribute).into_iter().flatten() {
                all.entry(node.clone()).or_default().extend(values.iter().cloned());
            }
        }
        all
    }

    /// The first two requests, and not alternatives of one, of which it holds.
    fn pair(
        &self,
        holds: impl Fn(&[usize], &[usize]) -> bool,
    ) -> Option<(&Compared<'a>, &Compared<'a>)> {
        let other = |a: &Ask<'_>, b: &Ask<'_>| main_of(&a.label) != main_of(&b.label);
        self.asks.iter().enumerate().find_map(|(at, one)| {
            let mut later = self.asks.iter().skip(at + 1);
            later.find(|b| other(&one.0, &b.0) && holds(&one.1, &b.1)).map(|b| (one, b))
        })
    }
}

/// The request of `main` or `main/sub`.
fn main_of(label: &str) -> &str {
    label.split('/').next().unwrap_or(label)
}
