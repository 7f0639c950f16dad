//! Selectors that do not compile, that match no device, that end in an error on one, or that compare
//! values of types that are never equal.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_cel::{Compared, Program};
use phalanx_engine::{DeviceKey, Name};
use phalanx_objects::resource::DeviceSelector;
use phalanx_objects::{Kind, Object, ObjectRef};

use super::asked::asks;
use super::bench::{Bench, Outcome, texts};
use super::limits::expression::{Fault, derived, environment, invalid};
use super::limits::is_new;
use super::near::meant;
use super::{Lint, Rule};
use crate::compat::Gate;
use crate::finding::{Severity, Source};
use crate::lower::shortened;
use crate::words::count;

/// The error of operators that do not take the types of their operands.
const NO_OVERLOAD: &str = "no such overload";

/// Selectors, and what is tried on them.
struct Trial<'a> {
    place: (&'a ObjectRef, &'a Source),
    /// The field that holds them.
    path: &'a str,
    selectors: &'a [DeviceSelector],
    /// The devices that come to the first of them.
    from: Vec<usize>,
    /// What these are, after their number: `of class gpu.nvidia.com`.
    of: String,
    /// How bad it is if none is left.
    none: Severity,
    /// Whether the API server has not seen them yet.
    is_new: bool,
}

pub(super) fn find(bench: &Bench<'_>, found: &mut Vec<Lint>) {
    let world = bench.world;
    let used: BTreeSet<&str> =
        bench.holders.iter().flat_map(|h| asks(h.devices, h.at)).map(|ask| ask.class).collect();
    for object in world.objects().into_iter().flat_map(|objects| objects.of_kind(Kind::DeviceClass))
    {
        let Object::DeviceClass(class) = object else { continue };
        let reference = object.reference();
        let Some(source) = world.lowering().source(&reference) else { continue };
        let is_used = used.contains(class.metadata.name.as_str());
        let trial = Trial {
            place: (&reference, source),
            path: "spec",
            selectors: &class.spec.selectors,
            from: bench.everything(),
            of: "of the input".to_owned(),
            none: if is_used { Severity::Error } else { Severity::Warning },
            is_new: is_new(object),
        };
        trial.run(bench, found);
    }
    for holder in &bench.holders {
        let object = world.objects().and_then(|objects| objects.get(&holder.reference));
        let is_new = object.is_some_and(is_new);
        let gate = Gate::DRADerivedAttributes;
        if is_new && world.lowering().compat().is_on(gate) {
            let environment = environment(world.lowering().compat());
            for (path, fault) in derived(holder.devices, holder.at, &environment) {
                found.push(faulty(holder.place(), &path, fault));
            }
        }
        for ask in asks(holder.devices, holder.at) {
            let trial = Trial {
                place: holder.place(),
                path: &ask.path,
                selectors: ask.selectors,
                from: bench.of_class(ask.class).unwrap_or_default().to_vec(),
                of: format!("of class {}", ask.class),
                none: Severity::Error,
                is_new,
            };
            trial.run(bench, found);
        }
    }
    if bench.alike.is_empty() && !bench.holders.is_empty() {
        let message = "No ResourceSlice of the input publishes a device, so that no selector and no \
                       constraint was tried. Add the ResourceSlices of the cluster.";
        found.push(Lint::of_input(Rule::NoDevicesRead, message));
    }
}

/// A finding about an expression.
fn faulty(place: (&ObjectRef, &Source), path: &str, (rule, message, at): Fault) -> Lint {
    let lint = Lint::new(rule, place, path, message);
    match at {
        Some((line, column)) => lint.at(line, column),
        None => lint,
    }
}

impl Trial<'_> {
    fn run(&self, bench: &Bench<'_>, found: &mut Vec<Lint>) {
        let mut left = self.from.clone();
        for (index, text) in texts(self.selectors) {
            let path = format!("{}.selectors[{index}].cel.expression", self.path);
            let refused = if self.is_new { bench.refused(text) } else { None };
            if let Some(fault) = refused {
                found.push(faulty(self.place, &path, fault.clone()));
            }
            match bench.program(text) {
                // What is refused is told: trying it only tells what is left for the next.
                Some(Ok(program)) if refused.is_some() => {
                    left = self.one(bench, program, &path, &left, &mut Vec::new());
                }
                Some(Ok(program)) => left = self.one(bench, program, &path, &left, found),
                Some(Err(error)) if refused.is_none() => {
                    found.push(faulty(self.place, &path, invalid(error)));
                }
                Some(Err(_)) | None => {}
            }
        }
    }

    /// Puts devices to one selector; answers those that pass.
    fn one(
        &self,
        bench: &Bench<'_>,
        program: &Program,
        path: &str,
        from: &[usize],
        found: &mut Vec<Lint>,
    ) -> Vec<usize> {
        let outcome = |at: &usize| bench.outcome(program.source(), *at);
        let with = |wanted: fn(&Outcome) -> bool| -> Vec<usize> {
            from.iter().copied().filter(|at| outcome(at).is_some_and(wanted)).collect()
        };
        let yes = with(|outcome| *outcome == Outcome::Yes);
        let erring = with(|outcome| matches!(outcome, Outcome::Error(_)));
        let none = yes.is_empty() && !from.is_empty();
        let fails = !erring.is_empty()
            && erring.iter().all(|at| outcome(at) == Some(&Outcome::Error(NO_OVERLOAD.to_owned())));
        let mut explained = false;
        for compared in program.compared() {
            let Some(kinds) = kinds_of(bench, from, &compared) else { continue };
            // A version that is compared with something else does not say no: it fails.
            let fails = fails && kinds.contains_key("version") && compared.operator != "in";
            let blames = fails || (none && compared.operator != "!=");
            explained |= blames;
            let message = never_equal(&compared, &kinds, fails);
            let lint = Lint::new(Rule::SelectorTypesDiffer, self.place, path, message)
                .at(compared.line, compared.column);
            found.push(if none && blames { lint.graded(self.none) } else { lint });
        }
        let erring = if explained && fails { Vec::new() } else { erring };
        if let Some(Outcome::Error(error)) = erring.first().and_then(outcome) {
            let message = self.error(bench, program, &erring, error);
            let lint = Lint::new(Rule::SelectorError, self.place, path, message);
            found.push(if none { lint.graded(self.none) } else { lint });
        } else if none && !explained {
            let message = self.none(bench, program, from);
            found.push(
                Lint::new(Rule::SelectorMatchesNone, self.place, path, message).graded(self.none),
            );
        }
        // Where none is left, the next selector is tried on what came to this one: each fault of a
        // list is told at once.
        if none { from.to_vec() } else { yes }
    }

    fn error(
        &self,
        bench: &Bench<'_>,
        program: &Program,
        on_devices: &[usize],
        error: &str,
    ) -> String {
        let number = bench.count(on_devices);
        let first =
            on_devices.iter().filter_map(|at| bench.alike.get(*at)).map(|alike| &alike.first).min();
        let device = first.map(written).unwrap_or_default();
        let on = match number {
            1 => format!("device {device}"),
            number => format!("{number} devices {}, such as {device}", self.of),
        };
        let hint = misspelt(bench, program, on_devices).unwrap_or_else(|| {
            match (missing_key(error), error == NO_OVERLOAD) {
                (Some(_), _) => GUARD.to_owned(),
                (None, true) => kinds_read(bench, program, on_devices).unwrap_or_default(),
                (None, false) => String::new(),
            }
        });
        format!(
            "The selector `{}` ends in an error on {on}: {error}. kube-scheduler ends the pod's \
             attempt when its search comes to such a device; Phalanx leaves it out.{hint}",
            shortened(program.source())
        )
    }

    fn none(&self, bench: &Bench<'_>, program: &Program, from: &[usize]) -> String {
        let mut nearest: Option<(usize, &DeviceKey, String)> = None;
        for alike in from.iter().filter_map(|at| bench.alike.get(*at)) {
            let steps = bench.world.lowering().with_device(&alike.first, |seen| match seen {
                Ok(device) => program.explain(&device),
                Err(_) => Vec::new(),
            });
            let steps = steps.unwrap_or_default();
            let Some(first) = steps.first() else { continue };
            let better = |(fewest, key, _): &(usize, &DeviceKey, String)| {
                (steps.len(), &alike.first) < (*fewest, *key)
            };
            if nearest.as_ref().is_none_or(better) {
                nearest = Some((steps.len(), &alike.first, first.to_string()));
            }
        }
        if program.source().trim() == "false" {
            let of = match bench.count(from) {
                1 => "the one device".to_owned(),
                number => format!("none of the {number} devices"),
            };
            let matches = if bench.count(from) == 1 { "does not match" } else { "matches" };
            return format!(
                "The selector is `false`, and so {matches} {of} {}. Leave it out.",
                self.of
            );
        }
        let whole = format!("`{}` is false: ", program.source());
        let near = nearest.map_or_else(String::new, |(_, device, why)| {
            // What is said of the whole is said already.
            let why = why.strip_prefix(&whole).unwrap_or(&why);
            format!(" On {}, one that comes nearest, {why}.", written(device))
        });
        let number = bench.count(from);
        let among = match number {
            1 => format!("does not match the one device {}", self.of),
            number => format!("matches none of the {number} devices {}", self.of),
        };
        let then = misspelt(bench, program, from)
            .unwrap_or_else(|| " Ask for what is published, or leave the selector out.".to_owned());
        format!("The selector `{}` {among}.{near}{then}", shortened(program.source()))
    }
}

/// What to do where a key is asked for that only some devices have.
const GUARD: &str = " Ask for it first, with `has(…) &&` before it, or read it as `.?name` with \
                     `orValue(…)` after it.";

/// Most attributes whose kinds are told.
const KINDS_SHOWN: usize = 3;

/// What kinds of values the attributes have that the selector reads of these devices.
fn kinds_read(bench: &Bench<'_>, program: &Program, on: &[usize]) -> Option<String> {
    let alike: Vec<_> = on.iter().filter_map(|at| bench.alike.get(*at)).collect();
    let kind_of = |(domain, id): &(String, String)| {
        let name = format!("{domain}/{id}");
        let of = |alike: &&super::bench::Alike| alike.published.get(&Name::new(&name)).cloned();
        let kinds: BTreeSet<String> = alike.iter().filter_map(of).flatten().collect();
        let kinds: Vec<String> = kinds.iter().map(|kind| article(kind)).collect();
        (!kinds.is_empty()).then(|| format!("`{name}` is {}", crate::words::list(&kinds)))
    };
    let entries = program.reads().attributes.entries.iter();
    let told: Vec<String> = entries.filter_map(kind_of).take(KINDS_SHOWN).collect();
    if told.is_empty() {
        return None;
    }
    Some(format!(
        " An operator or a function there does not take the types of its values: {}.",
        crate::words::list(&told)
    ))
}

/// The name that may be meant in place of one that the selector reads and that none of these devices
/// publishes.
fn misspelt(bench: &Bench<'_>, program: &Program, on: &[usize]) -> Option<String> {
    let alike: Vec<_> = on.iter().filter_map(|at| bench.alike.get(*at)).collect();
    let reads = program.reads();
    let published: BTreeSet<&str> =
        alike.iter().flat_map(|alike| alike.published.keys()).map(Name::as_str).collect();
    let measured: BTreeSet<&str> =
        alike.iter().flat_map(|alike| &alike.measured).map(String::as_str).collect();
    let tables =
        [(&reads.attributes, &published, "attributes"), (&reads.capacity, &measured, "capacity")];
    tables.into_iter().find_map(|(read, known, table)| {
        let names = read.entries.iter().map(|(domain, id)| format!("{domain}/{id}"));
        let mut unknown = names.filter(|name| !known.contains(name.as_str()));
        unknown.find_map(|name| {
            let near = meant(&name, known.iter().copied())?;
            let (domain, id) = near.split_once('/')?;
            Some(format!(
                " No such device publishes `{name}`; what is published is `{near}`: write \
                 `device.{table}[\"{domain}\"].{id}` if that is meant."
            ))
        })
    })
}

/// The key that a device lacks, of an error that says so.
fn missing_key(error: &str) -> Option<&str> {
    error.strip_prefix("no such key: ")?.split([' ', ',', '.']).next()
}

/// The kinds that devices publish an attribute with, where the comparison is with none of these.
fn kinds_of(
    bench: &Bench<'_>,
    among: &[usize],
    compared: &Compared,
) -> Option<BTreeMap<String, u64>> {
    let name = Name::new(&format!("{}/{}", compared.domain, compared.id));
    let mut kinds = BTreeMap::new();
    for alike in among.iter().filter_map(|at| bench.alike.get(*at)) {
        for kind in alike.published.get(&name).into_iter().flatten() {
            *kinds.entry(kind.clone()).or_insert(0) += alike.count;
        }
    }
    let differs = !kinds.is_empty() && !kinds.contains_key(compared.kind);
    differs.then_some(kinds)
}

fn never_equal(compared: &Compared, kinds: &BTreeMap<String, u64>, fails: bool) -> String {
    let all: Vec<String> = kinds
        .iter()
        .map(|(kind, number)| {
            format!("{} on {}", article(kind), count(*number, "device", "devices"))
        })
        .collect();
    let always = match (fails, compared.operator) {
        (true, _) => {
            "always ends in an error (no such overload), at which kube-scheduler ends the pod's attempt"
        }
        (false, "!=") => "is always true",
        (false, _) => "is always false",
    };
    let path = &compared.path;
    let instead = match (kinds.keys().next().map(String::as_str), compared.kind) {
        (Some("version"), "string") => format!(
            " Compare versions as in `{path}.isGreaterThan(semver(\"1.2.3\"))` or \
             `{path}.compareTo(semver(\"1.2.3\")) == 0`."
        ),
        (Some("string"), "version") => " Write the version as a text in quotes.".to_owned(),
        (Some("string"), "int" | "bool") => " Write the value in quotes.".to_owned(),
        (Some("int" | "bool"), "string") => " Write the value without quotes.".to_owned(),
        (Some(_) | None, _) => String::new(),
    };
    format!(
        "`{}` {always}: the attribute {}/{} is {}, and is compared with {}.{instead}",
        shortened(&compared.text),
        compared.domain,
        compared.id,
        crate::words::list(&all),
        article(compared.kind),
    )
}

pub(super) fn article(kind: &str) -> String {
    match kind {
        "int" => "an int".to_owned(),
        "ints" | "bools" | "strings" | "versions" => format!("a list of {kind}"),
        "" => "without a value".to_owned(),
        kind => format!("a {kind}"),
    }
}

/// A device as `driver/pool/device`.
pub(super) fn written(device: &DeviceKey) -> String {
    format!("{}/{}/{}", device.pool.driver, device.pool.pool, device.device)
}
