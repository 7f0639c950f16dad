//! Selectors: numbered, compiled once, asked once for each profile; and what the live ones read.
//! The only module that calls the evaluator.
//!
//! The evaluator's limit of cost and its view of a device are Kubernetes'. What an error means for
//! an allocation is the engine's.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use phalanx_cel::{COST_LIMIT, Device, DeviceError, Environment, Program, Reads, Step, Verdict};
use phalanx_engine::{Derived, Match, Name, SelectorId};
use phalanx_objects::resource::DeviceAttribute;
use rustc_hash::FxHashMap;

use super::claim::Specs;
use super::intern::{AttributeName, Attributes, Names};
use super::record::DeviceRecord;
use super::slice::{Projection, comparable_if};
use crate::compat::Version;

/// All selectors that ever were.
#[derive(Clone, Debug)]
pub(crate) struct Selectors {
    environment: Environment,
    ids: FxHashMap<(Asks, Name), SelectorId>,
    entries: Vec<Entry>,
}

/// What an entry asks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Asks {
    /// Whether it is selected.
    Selected,
    /// The value of a derived attribute.
    Derived,
    /// The value that it publishes for an attribute: the text is the attribute's name.
    Published,
}

#[derive(Clone, Debug)]
struct Entry {
    asks: Asks,
    text: Name,
    /// Compiled when somebody asks; none where nothing is evaluated.
    program: OnceLock<Option<Compiled>>,
}

/// A program, or why there is none.
type Compiled = Result<Arc<Program>, Name>;

impl Selectors {
    pub(crate) fn new(version: Version) -> Self {
        let minor = match version {
            Version::V1_34 => 34,
            Version::V1_35 => 35,
            Version::V1_36 => 36,
            Version::V1_37 => 37,
        };
        let version = phalanx_cel::Version::new(1, minor);
        let environment = Environment::stored(version);
        Self { environment, ids: FxHashMap::default(), entries: Vec::new() }
    }

    /// What an expression may use.
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The number of a selector.
    pub(crate) fn intern(&mut self, text: &str, names: &mut Names) -> SelectorId {
        self.add(Asks::Selected, names.get(text))
    }

    /// The number of an expression for a derived attribute.
    pub(crate) fn intern_derived(&mut self, text: &str, names: &mut Names) -> SelectorId {
        self.add(Asks::Derived, names.get(text))
    }

    /// The number of the question what devices publish for an attribute.
    pub(crate) fn intern_published(&mut self, attribute: &Name) -> SelectorId {
        self.add(Asks::Published, attribute.clone())
    }

    fn add(&mut self, asks: Asks, text: Name) -> SelectorId {
        if let Some(id) = self.ids.get(&(asks, text.clone())) {
            return *id;
        }
        let id = SelectorId(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        self.ids.insert((asks, text.clone()), id);
        self.entries.push(Entry { asks, text, program: OnceLock::new() });
        id
    }

    fn compile(&self, asks: Asks, text: &str) -> Option<Compiled> {
        let program = match asks {
            Asks::Selected => Program::compile(text, &self.environment),
            Asks::Derived => Program::compile_attribute(text, &self.environment),
            Asks::Published => return None,
        };
        Some(program.map(Arc::new).map_err(|error| Name::new(&error.to_string())))
    }

    fn compiled(&self, id: SelectorId) -> Option<&Compiled> {
        let entry = self.entries.get(id.0 as usize)?;
        entry.program.get_or_init(|| self.compile(entry.asks, &entry.text)).as_ref()
    }

    fn program(&self, id: SelectorId) -> Option<&Program> {
        self.compiled(id)?.as_ref().ok().map(|program| &**program)
    }

    /// Whether the number is of an attribute's value rather than of a selector.
    pub(crate) fn is_derived(&self, id: SelectorId) -> bool {
        self.entries.get(id.0 as usize).is_some_and(|entry| entry.asks != Asks::Selected)
    }

    /// What is read of devices besides what programs read.
    fn published(&self, id: SelectorId) -> Option<&Name> {
        let entry = self.entries.get(id.0 as usize)?;
        (entry.asks == Asks::Published).then_some(&entry.text)
    }

    /// The expression.
    pub(crate) fn text(&self, id: SelectorId) -> Option<&str> {
        self.entries.get(id.0 as usize).map(|entry| entry.text.as_str())
    }

    /// Why the expression can't be used, if it can't.
    pub(crate) fn error(&self, id: SelectorId) -> Option<&Name> {
        self.compiled(id)?.as_ref().err()
    }

    /// The same of a selector that need not be known.
    pub(crate) fn error_of(&self, text: &str) -> Option<Name> {
        match self.ids.get(&(Asks::Selected, Name::new(text))) {
            Some(id) => self.error(*id).cloned(),
            None => self.compile(Asks::Selected, text)?.err(),
        }
    }

    /// What a selector says of a device. One that does not compile says no: its spec has a fault,
    /// and nobody asks.
    pub(crate) fn judge(&self, id: SelectorId, on: &Result<Device<'_>, DeviceError>) -> Match {
        match self.ask(id, on) {
            Ok(true) => Match::Yes,
            Ok(false) => Match::No,
            Err(_) => Match::Error,
        }
    }

    /// As [`judge`](Self::judge), with the text of the error.
    pub(crate) fn ask(
        &self,
        id: SelectorId,
        on: &Result<Device<'_>, DeviceError>,
    ) -> Result<bool, String> {
        let Some(program) = self.program(id) else { return Ok(false) };
        match on {
            Err(error) => Err(error.to_string()),
            Ok(device) => match program.evaluate(device, COST_LIMIT).verdict {
                Verdict::Yes => Ok(true),
                Verdict::No => Ok(false),
                Verdict::Error(error) => Err(error.in_words()),
            },
        }
    }

    /// The value of an attribute on all devices of a profile, as constraints compare it; none where
    /// they lack it. `lists` says whether lists are compared.
    pub(crate) fn derive(
        &self,
        id: SelectorId,
        on: &Projection,
        all: &Attributes,
        lists: bool,
        names: &mut Names,
    ) -> Option<Derived> {
        let value = match self.published(id) {
            Some(name) => {
                let id = all.find(name)?;
                let (_, value) = on.attributes.iter().find(|(name, _)| *name == id)?;
                all.value_of(*value)?.clone()
            }
            None => match self.attribute(id, &seen(on, all)) {
                Ok(value) => value,
                Err(_) => return Some(Derived::Error),
            },
        };
        comparable_if(&value, lists, names).map(Derived::Value)
    }

    /// The value that an expression gives, or the text of its error.
    pub(crate) fn attribute(
        &self,
        id: SelectorId,
        on: &Result<Device<'_>, DeviceError>,
    ) -> Result<DeviceAttribute, String> {
        let Some(program) = self.program(id) else {
            return Err(self.error(id).map(ToString::to_string).unwrap_or_default());
        };
        match on {
            Err(error) => Err(error.to_string()),
            Ok(device) => {
                let value = program.evaluate_attribute(device, COST_LIMIT).value;
                value.map_err(|error| error.in_words())
            }
        }
    }

    /// The parts of a selector that make it refuse a device.
    pub(crate) fn explain(&self, id: SelectorId, device: &Device<'_>) -> Vec<Step> {
        self.program(id).map(|program| program.explain(device)).unwrap_or_default()
    }
}

/// The devices of a profile as expressions see them.
pub(crate) fn seen<'a>(on: &'a Projection, all: &'a Attributes) -> Result<Device<'a>, DeviceError> {
    let attributes = on
        .attributes
        .iter()
        .filter_map(|(name, value)| Some((all.name_of(*name)?.as_str(), all.value_of(*value)?)));
    let capacity = on.capacity.iter().map(|(name, written)| (name.as_str(), &written.0));
    Device::from_parts(&on.driver, on.allow_multiple, attributes, capacity)
}

/// A published device as an expression sees it, with all of its attributes and capacities.
///
/// # Errors
/// When one of its attributes has no value that an expression could see.
pub(crate) fn device<'a>(
    driver: &'a str,
    record: &'a DeviceRecord,
    all: &'a Attributes,
) -> Result<Device<'a>, DeviceError> {
    let attributes = record
        .attributes
        .iter()
        .filter_map(|(name, value)| Some((all.name_of(*name)?.as_str(), all.value_of(*value)?)));
    let capacities = record.kind.capacity.iter().zip(&record.kind.written);
    let capacity = capacities.map(|(capacity, written)| (capacity.name.as_str(), &written.0));
    Device::from_parts(driver, record.kind.allow_multiple == Some(true), attributes, capacity)
}

/// What live specs read of devices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    selectors: BTreeSet<SelectorId>,
    /// The selectors of each alternative, in order: one is asked only where those before it say yes.
    chains: BTreeSet<Box<[SelectorId]>>,
    /// Whether any of them derives an attribute.
    derives: bool,
    /// The union of what the selectors read.
    reads: Reads,
    /// By number of the name, whether a selector reads the attribute.
    known: Vec<bool>,
    /// Attributes that constraints compare.
    compared: BTreeSet<Name>,
}

impl Live {
    /// What the specs that somebody has read.
    pub(crate) fn of(specs: &Specs, selectors: &Selectors) -> Self {
        let mut live = Self::default();
        for spec in specs.live().filter(|spec| spec.fault.is_none()) {
            for request in &spec.requests {
                for alternative in &request.alternatives {
                    live.selectors.extend(alternative.selectors.iter().copied());
                    live.chains.insert(alternative.selectors.clone());
                    let derived = alternative.derived.iter().map(|(_, id)| *id);
                    live.selectors.extend(derived.clone());
                    live.chains.extend(derived.map(|id| Box::from([id])));
                }
            }
            live.compared.extend(spec.constraints.iter().map(|c| c.attribute.clone()));
        }
        live.derives = live.selectors.iter().any(|id| selectors.is_derived(*id));
        for program in live.selectors.iter().filter_map(|id| selectors.program(*id)) {
            unite(&mut live.reads, program.reads());
        }
        for name in live.selectors.iter().filter_map(|id| selectors.published(*id)) {
            let (domain, id) = name.split_once('/').unwrap_or(("", name));
            live.reads.attributes.entries.insert((domain.to_owned(), id.to_owned()));
        }
        live
    }

    pub(crate) fn selectors(&self) -> &BTreeSet<SelectorId> {
        &self.selectors
    }

    pub(crate) fn chains(&self) -> &BTreeSet<Box<[SelectorId]>> {
        &self.chains
    }

    /// Whether any of the selectors derives an attribute.
    pub(crate) fn derives(&self) -> bool {
        self.derives
    }

    /// Whether devices look the same through both.
    pub(crate) fn reads_like(&self, other: &Self) -> bool {
        self.compared == other.compared && self.reads == other.reads
    }

    /// Looks at the names of attributes that came up since it was asked last.
    pub(crate) fn learn(&mut self, attributes: &Attributes) {
        for name in attributes.names_from(self.known.len()) {
            let (domain, id) = name.split_once('/').unwrap_or(("", name));
            self.known.push(self.reads.attributes.contains(domain, id));
        }
    }

    pub(crate) fn reads_attribute(&self, name: AttributeName) -> bool {
        self.known.get(name.0 as usize).copied().unwrap_or(true)
    }

    pub(crate) fn reads_capacity(&self, driver: &str, name: &str) -> bool {
        if self.reads.capacity.is_empty() {
            return false;
        }
        let (domain, id) = name.split_once('/').unwrap_or((driver, name));
        self.reads.capacity.contains(domain, id)
    }

    pub(crate) fn reads_sharing(&self) -> bool {
        self.reads.allow_multiple_allocations
    }

    /// The attributes that constraints compare and some device has, by name.
    pub(crate) fn compared_of(&self, attributes: &Attributes) -> Vec<(Name, AttributeName)> {
        let known = |name: &Name| Some((name.clone(), attributes.find(name)?));
        self.compared.iter().filter_map(known).collect()
    }
}

pub(crate) fn unite(all: &mut Reads, more: &Reads) {
    all.driver |= more.driver;
    all.allow_multiple_allocations |= more.allow_multiple_allocations;
    for (all, more) in
        [(&mut all.attributes, &more.attributes), (&mut all.capacity, &more.capacity)]
    {
        all.all |= more.all;
        all.domains.extend(more.domains.iter().cloned());
        all.entries.extend(more.entries.iter().cloned());
    }
}
