//! Runs a scenario: from its manifests to one plan, four ways that must agree.
//!
//! *Directly*: objects, world, plan. *Dumped*: the objects written as YAML, read back as the command
//! would read a dump, then the same. *Reversed*: the input from the last object to the first.
//! *Masked*: with codes for names, which are put back in what is said. After each both audits look at
//! what was decided.

use std::sync::Arc;

use phalanx_cluster::audit::audit_objects;
use phalanx_cluster::cure::Trials;
use phalanx_cluster::edit::Edit;
use phalanx_cluster::plan::{Plan, PlanOptions, plan};
use phalanx_cluster::raise::raise;
use phalanx_cluster::view::{
    CureView, Document, GroupView, PodView, VerdictWord, ViewOptions, plan_document,
};
use phalanx_cluster::world::World;
use phalanx_cluster::{Compat, Lowering, ObjectEvent, Source, Version};
use phalanx_engine::{DeviceOrder, Effort, NodeOrder, Policy, Timestamp};
use phalanx_objects::Object;
use phalanx_objects::read::{Item, read};
use serde_json::Value;

use crate::judge::judge;
use crate::linted::{Found, linted};
use crate::masked::Masked;
use crate::says::says;
use crate::scenario::{DeviceOrderNote, NodeOrderNote, Scenario, ScenarioError};

/// What came of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Everything in which it differs from what is expected by hand, between the ways, or from the
    /// rules of the audits; a sentence each.
    pub wrong: Vec<String>,
    /// What is said of it.
    pub says: String,
}

/// Something read: an object, or a kind that is passed over.
#[derive(Clone, Debug)]
enum Thing {
    Object(Box<Object>),
    Unknown { api_version: String, kind: String, manifest: Value },
}

/// Runs a scenario, all four ways.
///
/// # Errors
/// Where it can't be run: a manifest that can't be read, a version that is not known.
pub fn run(scenario: &Scenario) -> Result<Outcome, ScenarioError> {
    let setting = Setting::new(scenario)?;
    let manifests = scenario.manifests()?;
    let things: Vec<Thing> = manifests.iter().map(thing).collect::<Result<_, _>>()?;
    let mut wrong = Vec::new();
    let (direct, found) = setting.plan("directly", &things, &mut wrong);
    let dumped = read_back(&things)?;
    let (dumped, _) = setting.plan("dumped", &dumped, &mut wrong);
    wrong.extend(setting.masked(&things, &direct)?);
    let reversed: Vec<Thing> = things.into_iter().rev().collect();
    let (reversed, found_reversed) = setting.plan("reversed", &reversed, &mut wrong);
    if found != found_reversed {
        let only = found.symmetric_difference(&found_reversed).next();
        wrong.push(format!("reversed, lint finds something else: {only:?}."));
    }
    for (way, other) in [("dumped", &dumped), ("reversed", &reversed)] {
        if *other != direct {
            let (ours, theirs) = (says(&direct), says(other));
            wrong.push(format!("{way} it is planned otherwise:\n{theirs}and directly:\n{ours}"));
        }
    }
    wrong.extend(judge(scenario, &direct));
    Ok(Outcome { wrong, says: says(&direct) })
}

fn parse_time(text: &str) -> Result<Timestamp, ScenarioError> {
    let time: jiff::Timestamp = text.parse().map_err(|e| error(format!("`now`: {e}.")))?;
    Ok(Timestamp(time.as_millisecond()))
}

fn error(message: impl Into<String>) -> ScenarioError {
    ScenarioError(message.into())
}

/// Reads one manifest.
fn thing(manifest: &Value) -> Result<Thing, ScenarioError> {
    let text = manifest.to_string();
    let mut things = read_all(&text)?;
    match (things.pop(), things.pop()) {
        (Some(thing), None) => Ok(thing),
        (None, _) | (Some(_), Some(_)) => Err(error(format!("One object was expected: {text}."))),
    }
}

/// Reads a text; what can't be read is an error of the scenario.
fn read_all(text: &str) -> Result<Vec<Thing>, ScenarioError> {
    let mut things = Vec::new();
    let mut problem = None;
    let mut gone = None;
    read("scenario", text.as_bytes(), &mut |item| match item {
        Item::Object(object, _) => things.push(Thing::Object(Box::new(object))),
        Item::Gone(object, _) => {
            let reference = object.reference();
            let message =
                format!("{reference} is gone; a scenario lists the objects that are there.");
            gone.get_or_insert(error(message));
        }
        Item::Unknown { api_version, kind, .. } => {
            let manifest = serde_json::json!({"apiVersion": api_version, "kind": kind});
            things.push(Thing::Unknown { api_version, kind, manifest });
        }
        Item::Problem(found) => {
            problem.get_or_insert(found);
        }
    });
    match (problem, gone) {
        (Some(found), _) => Err(error(format!("{}: {}", found.path, found.message))),
        (None, Some(gone)) => Err(gone),
        (None, None) => Ok(things),
    }
}

/// Writes everything as one YAML dump and reads that.
fn read_back(things: &[Thing]) -> Result<Vec<Thing>, ScenarioError> {
    let mut dump = String::new();
    for thing in things {
        let text = match thing {
            Thing::Object(object) => serde_saphyr::to_string(object),
            Thing::Unknown { manifest, .. } => serde_saphyr::to_string(manifest),
        };
        dump.push_str("---\n");
        dump.push_str(&text.map_err(|e| error(format!("An object can't be written: {e}.")))?);
        dump.push('\n');
    }
    read_all(&dump)
}

/// What a plan is asked with.
struct Setting {
    compat: Compat,
    now: Option<Timestamp>,
    policy: Policy,
    effort: Effort,
}

impl Setting {
    fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let version = match &scenario.compat.version {
            Some(text) => Version::parse(text).map_err(|e| error(e.to_string()))?,
            None => Version::default(),
        };
        let gates = scenario.compat.gates.as_deref().unwrap_or_default();
        let plugins = scenario.compat.plugins.as_deref().unwrap_or_default();
        let compat = Compat::new(version).with_gates(gates).and_then(|c| c.with_plugins(plugins));
        let compat = compat.map_err(|e| error(e.to_string()))?;
        let now = scenario.now.as_deref().map(parse_time).transpose()?;
        let device_order = match scenario.policy.device_order {
            DeviceOrderNote::Best => DeviceOrder::Best,
            DeviceOrderNote::Upstream => DeviceOrder::Upstream,
        };
        let node_order = match scenario.policy.node_order {
            NodeOrderNote::Best => NodeOrder::Best,
            NodeOrderNote::KubeScheduler => NodeOrder::Scores,
        };
        let policy = Policy { node_order, device_order, strict_cel: scenario.policy.strict_cel };
        let effort = scenario.policy.effort.map_or_else(Effort::default, Effort::of_steps);
        Ok(Self { compat, now, policy, effort })
    }

    fn lowering(&self) -> Lowering {
        let lowering = Lowering::new(self.compat.clone());
        match self.policy.node_order {
            NodeOrder::Best => lowering,
            NodeOrder::Scores => lowering.for_scores(),
        }
    }

    /// Plans the objects with codes for names; says where that is another plan.
    fn masked(&self, things: &[Thing], direct: &Document) -> Result<Vec<String>, ScenarioError> {
        let objects = things.iter().filter_map(|thing| match thing {
            Thing::Object(object) => Some(&**object),
            Thing::Unknown { .. } => None,
        });
        let masked = Masked::new(self.lowering(), objects);
        let mut hidden = read_all(&masked.dump()?)?;
        // What is not read is not written; it is named in a finding of the one and of the other.
        let unknown = things.iter().filter(|thing| matches!(thing, Thing::Unknown { .. }));
        hidden.extend(unknown.cloned());
        let mut wrong = Vec::new();
        let (document, _) = self.plan("masked", &hidden, &mut wrong);
        let differs = masked.differs(direct, &document)?;
        wrong.extend(differs.map(|place| format!("masked it is planned otherwise: {place}.")));
        Ok(wrong)
    }

    fn plan(&self, way: &str, things: &[Thing], wrong: &mut Vec<String>) -> (Document, Found) {
        let mut world = World::new(self.lowering());
        for (at, thing) in things.iter().enumerate() {
            let source = Source { file: Arc::from(""), line: 0, ordinal: at as u64 };
            match thing {
                Thing::Object(object) => world.absorb(ObjectEvent::Applied(object.clone(), source)),
                Thing::Unknown { api_version, kind, .. } => world.skip(api_version, kind, source),
            }
        }
        world.settle();
        let now = self.now.or(world.newest_time());
        let options = PlanOptions { now, policy: self.policy, effort: self.effort };
        let plan = plan(&mut world, &options);
        audits(way, &world, &plan, wrong);
        let view = ViewOptions { trials: Some(Trials::for_plan(&world)), alone: false };
        let document = plan_document(&mut world, &plan, &view);
        cures(way, &world, &options, &document, wrong);
        let found = linted(way, &world, &options, &document, wrong);
        (document, found)
    }
}

/// Each cure, made to the world by its own words, places the pod that it is named for; of a workload all that it
/// wants then, of a gang as many as it says. A cure of a gang itself places more of it.
fn cures(
    way: &str,
    world: &World,
    options: &PlanOptions,
    document: &Document,
    wrong: &mut Vec<String>,
) {
    let open = |pod: &&PodView| pod.verdict != VerdictWord::Placed;
    for pod in &document.pods {
        let own = |other: &PodView| {
            let same = match &pod.group {
                Some(_) => other.group == pod.group,
                None => other.name == pod.name,
            };
            other.namespace == pod.namespace && same
        };
        for cure in &pod.cures {
            let Some(after) = cured(way, (world, options), (cure, &pod.namespace), wrong) else {
                continue;
            };
            let left: Vec<&PodView> =
                after.pods.iter().filter(|pod| own(pod)).filter(open).collect();
            // Of a gang that starts some may wait all the same, as many as it says.
            if left.len() != cure.waiting as usize || left.iter().any(|one| one.name == pod.name) {
                wrong.push(format!("{way}, the cure `{}` does not cure {}.", cure.edit, pod.name));
            }
        }
    }
    for group in &document.groups {
        for cure in &group.cures {
            let Some(after) = cured(way, (world, options), (cure, &group.namespace), wrong) else {
                continue;
            };
            let is = |other: &&GroupView| {
                (&other.namespace, &other.kind, &other.name)
                    == (&group.namespace, &group.kind, &group.name)
            };
            let then = after.groups.iter().find(is);
            let more = then.is_none_or(|then| then.placed > group.placed || then.short == 0);
            let left = then.map_or(0, |then| then.short);
            if !more || (cure.waiting > 0 && left != cure.waiting) {
                wrong.push(format!(
                    "{way}, the cure `{}` does not cure {}/{}.",
                    cure.edit, group.kind, group.name
                ));
            }
        }
    }
}

/// What is planned once a cure is made to the world.
fn cured(
    way: &str,
    (world, options): (&World, &PlanOptions),
    (cure, namespace): (&CureView, &str),
    wrong: &mut Vec<String>,
) -> Option<Document> {
    let mut cured = world.clone();
    let change = cure.edit.parse::<Edit>();
    if let Err(error) = change.and_then(|edit| cured.edit(&edit, namespace)) {
        wrong.push(format!("{way}, the cure `{}` can't be made: {error}.", cure.edit));
        return None;
    }
    let plan = plan(&mut cured, options);
    Some(plan_document(&mut cured, &plan, &ViewOptions::default()))
}

fn audits(way: &str, world: &World, plan: &Plan, wrong: &mut Vec<String>) {
    let broken = phalanx_engine::audit(world.state(), &plan.decision);
    for violation in broken {
        wrong.push(format!("{way}, the decision breaks a rule: {violation:?}."));
    }
    let Some(objects) = world.objects() else { return };
    for violation in audit_objects(objects, &raise(world, plan)) {
        wrong.push(format!("{way}, the writes break a rule: {violation}."));
    }
}
