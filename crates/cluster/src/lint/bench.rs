//! The devices of the input, put to the test: those that no expression can tell apart count as one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_cel::{COST_LIMIT, CompileError, Program, Projection, Reads, Verdict};
use phalanx_engine::{DeviceKey, Name, NodeKey, Reach};
use phalanx_objects::resource::{DeviceAttribute, DeviceSelector};
use phalanx_objects::{Kind, Object};

use super::asked::{Holder, asks, holders};
use super::claims::{Waiting, waiting};
use super::limits::expression::{Fault, environment, fault};
use crate::world::World;

/// Devices that look alike to every expression of the input.
#[derive(Clone, Debug)]
pub(super) struct Alike {
    /// The first of them.
    pub(super) first: DeviceKey,
    /// How many there are.
    pub(super) count: u64,
    /// The kinds of value that each of their attributes has.
    pub(super) published: BTreeMap<Name, BTreeSet<String>>,
    /// The names of their capacities, with their domains.
    pub(super) measured: BTreeSet<String>,
    /// Of attributes that constraints compare: the values by node, where one node sees the device.
    pub(super) values: BTreeMap<Name, BTreeMap<Option<NodeKey>, BTreeSet<String>>>,
}

/// What an expression says of devices that look alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Yes,
    No,
    Error(String),
}

/// An expression: compiled, or why it is not.
pub(super) type Compiled = Result<Arc<Program>, Box<CompileError>>;

/// The devices, the expressions, and what each says of each.
pub(super) struct Bench<'w> {
    pub(super) world: &'w World,
    pub(super) holders: Vec<Holder<'w>>,
    /// What is not placed yet.
    pub(super) waiting: Vec<Waiting<'w>>,
    pub(super) alike: Vec<Alike>,
    programs: BTreeMap<String, Compiled>,
    outcomes: BTreeMap<String, Vec<Outcome>>,
    /// Why the API server would refuse an expression that it has not seen.
    refused: BTreeMap<String, Fault>,
    classes: BTreeMap<String, Vec<usize>>,
}

impl<'w> Bench<'w> {
    pub(super) fn new(world: &'w World) -> Self {
        let holders = holders(world);
        let mut programs = BTreeMap::new();
        let stored = world.lowering().environment();
        let new = environment(world.lowering().compat());
        let mut refused = BTreeMap::new();
        for expression in expressions(world, &holders) {
            if let Some(fault) = fault(expression, &new) {
                refused.insert(expression.to_owned(), fault);
            }
            programs.entry(expression.to_owned()).or_insert_with(|| {
                Program::compile(expression, stored).map(Arc::new).map_err(Box::new)
            });
        }
        let mut bench = Self {
            world,
            holders,
            waiting: waiting(world),
            alike: Vec::new(),
            programs,
            outcomes: BTreeMap::new(),
            refused,
            classes: BTreeMap::new(),
        };
        bench.alike = bench.gather();
        let all = bench.programs.iter();
        let tried = all.filter_map(|(text, program)| {
            let program = program.as_ref().ok()?;
            Some((
                text.clone(),
                bench.alike.iter().map(|alike| bench.ask(program, alike)).collect(),
            ))
        });
        bench.outcomes = tried.collect();
        let everything = bench.everything();
        let classes = world.lowering().classes().filter_map(|name| {
            let class = world.lowering().class(name)?;
            Some((name.to_string(), bench.passing(&class.spec.selectors, &everything)))
        });
        bench.classes = classes.collect();
        bench
    }

    /// The devices of the newest slices, those together that no expression tells apart.
    fn gather(&self) -> Vec<Alike> {
        let mut reads = Reads::default();
        for program in self.programs.values().flatten() {
            crate::lower::unite(&mut reads, program.reads());
        }
        let compared: BTreeSet<&str> = self.holders.iter().flat_map(compared).collect();
        let lowering = self.world.lowering();
        let mut places: BTreeMap<(Name, Option<Projection>), usize> = BTreeMap::new();
        let mut all: Vec<Alike> = Vec::new();
        for device in lowering.devices() {
            let seen = |seen: Result<phalanx_cel::Device<'_>, _>| {
                seen.ok().map(|seen| reads.project(&seen))
            };
            let projection = lowering.with_device(&device.key, seen).flatten();
            let place = (device.key.pool.driver.clone(), projection);
            let at = *places.entry(place).or_insert_with(|| {
                all.push(Alike {
                    first: device.key.clone(),
                    count: 0,
                    published: BTreeMap::new(),
                    measured: BTreeSet::new(),
                    values: BTreeMap::new(),
                });
                all.len() - 1
            });
            let Some(alike) = all.get_mut(at) else { continue };
            alike.count += 1;
            let driver = &device.key.pool.driver;
            let qualified = device.capacity.iter().map(|(name, _)| match name.contains('/') {
                true => name.to_string(),
                false => format!("{driver}/{name}"),
            });
            alike.measured.extend(qualified);
            let node =
                if let Reach::Node(node) = &device.reach { Some(node.clone()) } else { None };
            for (name, value) in &device.attributes {
                let kinds = alike.published.entry(name.clone()).or_default();
                if !kinds.contains(value.kind()) {
                    kinds.insert(value.kind().to_owned());
                }
                if compared.contains(name.as_str()) {
                    let of_node = alike.values.entry(name.clone()).or_default();
                    of_node.entry(node.clone()).or_default().insert(told(value));
                }
            }
        }
        all
    }

    fn ask(&self, program: &Program, alike: &Alike) -> Outcome {
        let asked = self.world.lowering().with_device(&alike.first, |seen| match seen {
            Err(error) => Outcome::Error(error.to_string()),
            Ok(device) => match program.evaluate(&device, COST_LIMIT).verdict {
                Verdict::Yes => Outcome::Yes,
                Verdict::No => Outcome::No,
                Verdict::Error(error) => Outcome::Error(error.in_words()),
            },
        });
        asked.unwrap_or(Outcome::No)
    }

    /// The expression, compiled.
    pub(super) fn program(&self, expression: &str) -> Option<&Compiled> {
        self.programs.get(expression)
    }

    /// Why the API server would refuse the expression, were it new.
    pub(super) fn refused(&self, expression: &str) -> Option<&Fault> {
        self.refused.get(expression)
    }

    /// What an expression says of the devices; nothing where it does not compile.
    pub(super) fn outcome(&self, expression: &str, alike: usize) -> Option<&Outcome> {
        self.outcomes.get(expression)?.get(alike)
    }

    /// The devices that pass all of these selectors, of those given. Selectors that can't be used
    /// are left out.
    pub(super) fn passing(&self, selectors: &[DeviceSelector], from: &[usize]) -> Vec<usize> {
        let passes = |at: &usize| {
            texts(selectors).all(|(_, text)| match self.outcome(text, *at) {
                Some(outcome) => *outcome == Outcome::Yes,
                None => true,
            })
        };
        from.iter().copied().filter(passes).collect()
    }

    /// The devices of a class; none where it is not in the input.
    pub(super) fn of_class(&self, class: &str) -> Option<&[usize]> {
        self.classes.get(class).map(Vec::as_slice)
    }

    /// All devices.
    pub(super) fn everything(&self) -> Vec<usize> {
        (0..self.alike.len()).collect()
    }

    /// How many devices these are.
    pub(super) fn count(&self, among: &[usize]) -> u64 {
        among.iter().filter_map(|at| self.alike.get(*at)).map(|alike| alike.count).sum()
    }
}

/// Every expression of a class, a template or a claim that waits.
fn expressions<'w>(world: &'w World, holders: &[Holder<'w>]) -> BTreeSet<&'w str> {
    let mut all = BTreeSet::new();
    for class in world.objects().into_iter().flat_map(|o| o.of_kind(Kind::DeviceClass)) {
        if let Object::DeviceClass(class) = class {
            all.extend(texts(&class.spec.selectors).map(|(_, text)| text));
        }
    }
    for holder in holders {
        for ask in asks(holder.devices, holder.at) {
            all.extend(texts(ask.selectors).map(|(_, text)| text));
        }
    }
    all
}

/// The expressions of selectors, each with its place in the list.
pub(super) fn texts(selectors: &[DeviceSelector]) -> impl Iterator<Item = (usize, &str)> {
    let expressions = selectors.iter().enumerate();
    expressions.filter_map(|(at, selector)| Some((at, selector.cel.as_ref()?.expression.as_str())))
}

/// The attributes that a claim's constraints compare.
fn compared<'w>(holder: &Holder<'w>) -> Vec<&'w str> {
    let constraints = holder.devices.constraints.iter();
    constraints
        .filter_map(|c| c.match_attribute.as_deref().or(c.distinct_attribute.as_deref()))
        .collect()
}

/// A value with its kind, as constraints compare it.
fn told(value: &DeviceAttribute) -> String {
    format!("{} ({})", crate::words::attribute(value), value.kind())
}
