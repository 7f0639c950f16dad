//! Upstream's allocator on recorded worlds: with `--device-order upstream --strict-cel` its results
//! field by field and the scope of its errors, in the default order its yes or no. The objects go
//! the way of every plan, past the checks of what is read: upstream's cases are not all valid.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_cluster::audit::audit_objects;
use phalanx_cluster::plan::{PlanOptions, plan, why};
use phalanx_cluster::raise::{Write, raise};
use phalanx_cluster::world::World;
use phalanx_cluster::{Gate, Lowering, ObjectEvent, Source};
use phalanx_engine::{DeviceOrder, GroupKey, Name, NodeOrder, Policy, Scoped, Status, audit};
use phalanx_objects::Quantity;
use serde_json::{Map, Value, json};

use super::question::{Question, claim_name};
use super::shared::{lines, list, text};

/// Upstream's order, to the letter.
const UPSTREAM: Policy =
    Policy { node_order: NodeOrder::Best, device_order: DeviceOrder::Upstream, strict_cel: true };

/// Every share has this ID in the recorded results.
const SHARE: &str = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";

/// Worlds whose answer rests on a defect of upstream's that 1.37.2 has, or on a choice of ours, and
/// what the page on differences says of it.
type Known = (&'static str, &'static [&'static str]);

/// kubernetes#141829: `All` beside a pool that is incomplete or contradicts itself ends the attempt on
/// all nodes. Such a pool is one node's matter, and another node may fit.
const ALL_BESIDE_AN_UNSOUND_POOL: Known = (
    "`All` on a node that sees an incomplete or invalid pool",
    &[
        "gen-1-8",
        "gen-1-9",
        "gen-1-22",
        "gen-1-23",
        "gen-1-44",
        "gen-1-50",
        "gen-1-66",
        "gen-1-109",
        "gen-1-128",
        "gen-1-144",
        "gen-1-165",
        "gen-1-175",
        "gen-1-177",
        "gen-1-196",
        "gen-1-211",
        "gen-1-219",
        "gen-1-223",
        "gen-1-235",
        "gen-1-241",
        "gen-1-242",
        "gen-1-253",
        "gen-1-289",
        "gen-1-298",
        "gen-1-344",
        "gen-1-349",
        "gen-1-373",
        "gen-1-379",
        "gen-1-421",
        "gen-1-457",
        "gen-1-469",
        "gen-1-490",
        "gen-1-507",
        "gen-1-512",
        "gen-1-532",
        "gen-1-554",
        "gen-1-566",
        "gen-1-568",
        "gen-1-604",
        "gen-1-628",
        "gen-1-629",
        "gen-1-671",
        "gen-1-680",
        "gen-1-713",
        "gen-1-719",
        "gen-1-723",
        "gen-1-755",
        "gen-1-779",
        "gen-1-780",
        "gen-1-800",
        "gen-1-856",
        "gen-1-859",
        "gen-1-882",
        "gen-1-901",
        "gen-1-930",
        "gen-1-937",
        "gen-1-944",
        "gen-1-954",
        "gen-1-977",
        "gen-1-981",
        "gen-1-984",
    ],
);

/// kubernetes#140729: admin access needs and reserves counters. Who only looks takes none.
const ADMIN_TAKES_COUNTERS: Known = (
    "admin access to a device that consumes counters",
    &["gen-1-83", "gen-1-262", "gen-1-274", "gen-1-461", "gen-1-956"],
);

/// One counter that is overdrawn blocks the others of its pool.
const OVERDRAWN_SET: Known = ("a counter set that is overdrawn", &["gen-1-335"]);

/// An error of CEL leaves one device out, where upstream's search comes to it first.
const CEL_ERROR: Known = ("a selector ends in an error on a device", &["gen-1-188", "gen-1-774"]);

/// An amount that whole steps can't count leaves one device out, where upstream comes to it first.
const AMOUNT_ERROR: Known = (
    "an amount of a capacity that can't be counted",
    &["consumable-capacity-range-policy-overflow-aborts-not-skip"],
);

/// What came out.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    asked: usize,
    granted: usize,
    refused: usize,
    pod_errors: usize,
    node_errors: usize,
}

/// How a question ends.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    /// The allocations, claim by claim, in a form in which they can be compared.
    Granted(Vec<Value>),
    /// Not on this node.
    Refused,
    /// Not on this node, which sees a pool that contradicts itself.
    NodeError,
    /// The pod's attempt is over.
    PodError,
}

/// What differs, by world.
#[derive(Debug, Default)]
struct Outcome {
    count: Count,
    /// In upstream's order.
    letter: BTreeMap<String, String>,
    /// In the default order: yes or no, or a rule that is broken.
    best: BTreeMap<String, String>,
}

#[test]
fn generated_worlds_are_answered_as_upstream_answers_them() {
    let Some(worlds) = lines("dra/generated-worlds.jsonl") else { return };
    let outcome = compare_all(&worlds);
    let letter = [ALL_BESIDE_AN_UNSOUND_POOL, ADMIN_TAKES_COUNTERS, OVERDRAWN_SET];
    outcome.differs_only(&letter, &[CEL_ERROR]);
    let count = Count { asked: 1000, granted: 656, refused: 180, pod_errors: 133, node_errors: 31 };
    assert_eq!(outcome.count, count);
}

#[test]
fn upstreams_own_cases_are_answered_as_upstream_answers_them() {
    let Some(worlds) = lines("dra/allocator-cases.jsonl") else { return };
    // What ends because the caller's time is up is upstream's own: effort is counted here.
    let live = worlds.iter().filter(|world| text(world, "/group") != "interrupt");
    let outcome = compare_all(live);
    outcome.differs_only(&[], &[AMOUNT_ERROR]);
    let count = Count { asked: 203, granted: 122, refused: 57, pod_errors: 21, node_errors: 3 };
    assert_eq!(outcome.count, count);
}

impl Outcome {
    /// Fails where more differs than is known, or less, or where the page does not say so.
    fn differs_only(&self, letter: &[Known], best: &[Known]) {
        let page = include_str!("../../../../docs/upstream-differences.md");
        for (row, _) in letter.iter().chain(best) {
            assert!(page.contains(row), "docs/upstream-differences.md has no row on {row}");
        }
        let names = |of: &[Known]| -> BTreeSet<String> {
            of.iter().flat_map(|(_, names)| *names).map(|name| (*name).to_owned()).collect()
        };
        let found = |of: &BTreeMap<String, String>| of.keys().cloned().collect::<BTreeSet<_>>();
        let differing = (found(&self.letter), found(&self.best));
        let known = (names(letter), names(best));
        assert_eq!(differing, known, "{:#?}\n{:#?}", self.letter, self.best);
        let differing = (self.letter.len(), self.best.len());
        println!("differ in upstream's order and in the default order: {differing:?}");
    }
}

fn compare_all<'a>(worlds: impl IntoIterator<Item = &'a Value>) -> Outcome {
    let mut outcome = Outcome::default();
    for world in worlds {
        compare(world, &mut outcome);
    }
    println!("{:?}", outcome.count);
    outcome
}

fn compare(recorded: &Value, outcome: &mut Outcome) {
    let name = text(recorded, "/name").to_owned();
    let theirs = theirs(recorded);
    let count = &mut outcome.count;
    count.asked += 1;
    *match theirs {
        Answer::Granted(_) => &mut count.granted,
        Answer::Refused => &mut count.refused,
        Answer::NodeError => &mut count.node_errors,
        Answer::PodError => &mut count.pod_errors,
    } += 1;
    let ours = ask(recorded, UPSTREAM);
    if ours.answer != theirs {
        outcome.letter.insert(name.clone(), told(&ours, &theirs));
    }
    let ours = ask(recorded, Policy::default());
    let yes = |answer: &Answer| matches!(answer, Answer::Granted(_));
    if yes(&ours.answer) != yes(&theirs) || !ours.broken.is_empty() {
        outcome.best.insert(name, format!("{:?} {}", ours.broken, told(&ours, &theirs)));
    }
}

fn told(ours: &Asked, theirs: &Answer) -> String {
    let show = |answer: &Answer| match answer {
        Answer::Granted(all) => Value::Array(all.clone()).to_string(),
        Answer::Refused | Answer::NodeError | Answer::PodError => format!("{answer:?}"),
    };
    format!("{} {:?}, upstream {}", show(&ours.answer), ours.reasons, show(theirs))
}

fn theirs(recorded: &Value) -> Answer {
    match text(recorded, "/answer/errorScope") {
        "pod" => Answer::PodError,
        "node" => Answer::NodeError,
        _ if recorded["answer"]["results"].is_array() => {
            Answer::Granted(list(recorded, "/answer/results").iter().map(plain).collect())
        }
        _ => Answer::Refused,
    }
}

/// What Phalanx says.
struct Asked {
    answer: Answer,
    reasons: Vec<&'static str>,
    /// Rules that the decision breaks.
    broken: Vec<String>,
}

/// The plan for one pod that uses the world's claims.
fn ask(recorded: &Value, policy: Policy) -> Asked {
    let question = Question::of(recorded);
    let mut world = World::new(Lowering::new(question.compat()));
    for (ordinal, object) in (0..).zip(question.objects().expect(&question.name)) {
        let source = Source { file: "test.json".into(), line: 1, ordinal };
        world.absorb(ObjectEvent::Applied(Box::new(object), source));
    }
    world.settle();
    let options = PlanOptions { policy, ..PlanOptions::default() };
    let plan = plan(&mut world, &options);
    let mut broken: Vec<String> =
        audit(world.state(), &plan.decision).into_iter().map(|v| v.rule).collect();
    let writes = audit_objects(world.objects().expect("kept"), &raise(&world, &plan));
    // The audit knows no gates, and that of taints may be off.
    let taints = world.lowering().compat().is_on(Gate::DRADeviceTaints);
    let counts = |message: &String| taints || !message.starts_with("the taint ");
    broken.extend(writes.into_iter().map(|violation| violation.message).filter(counts));
    let pod = Scoped { namespace: Name::new("default"), name: Name::new("asks") };
    let pod = GroupKey { object: pod, kind: Name::new("pod") };
    let report = why(&mut world, &pod, None, &options).expect("the pod waits");
    let checks = report.nodes.iter().flat_map(|node| &node.checks);
    let over =
        !report.object.is_empty() || checks.clone().any(|(_, status, _)| *status == Status::Error);
    let reasons = checks.map(|(r, ..)| r).chain(report.object.iter().map(|(r, _)| r));
    let reasons = reasons.map(|reason| reason.code()).collect();
    let seen = seen(recorded);
    let contradicts = world.findings().iter().any(|finding| {
        let on = finding.object.as_ref().is_some_and(|object| seen.contains(&object.name));
        on && finding.message.contains("contradicts itself")
    });
    let answer = match granted(recorded, &world, &plan) {
        Some(granted) => Answer::Granted(granted),
        None if over => Answer::PodError,
        None if contradicts => Answer::NodeError,
        None => Answer::Refused,
    };
    Asked { answer, reasons, broken }
}

/// The allocations as they would be written, in the order of the claims.
fn granted(
    recorded: &Value,
    world: &World,
    plan: &phalanx_cluster::plan::Plan,
) -> Option<Vec<Value>> {
    let mut written = BTreeMap::new();
    let mut bound = false;
    for effect in raise(world, plan) {
        match effect.write {
            Write::ClaimStatus(claim) => {
                let allocation = serde_json::to_value(&claim.status.allocation).expect("JSON");
                written.insert(claim.metadata.name.clone(), plain(&allocation));
            }
            Write::Bind(_) => bound = true,
            Write::CreateClaim(_)
            | Write::Finalize(_)
            | Write::Unprotect(_)
            | Write::DeleteClaim(_)
            | Write::PodStatus(_)
            | Write::KeepVolume(_)
            | Write::SelectNode(_) => {}
        }
    }
    let claims = list(recorded, "/claims").len();
    let of = |at: usize| written.get(&claim_name(at)).cloned().unwrap_or_default();
    bound.then(|| (0..claims).map(of).collect())
}

/// An allocation with nothing that is empty, quantities by value, shares without their ID, and the
/// values of requirements as a set.
fn plain(allocation: &Value) -> Value {
    let mut plain = tidy(allocation);
    let results = plain.pointer_mut("/devices/results").and_then(Value::as_array_mut);
    for result in results.into_iter().flatten() {
        if result["shareID"].is_string() {
            result["shareID"] = json!(SHARE);
        }
        // The API server's default.
        let tolerations = result.get_mut("tolerations").and_then(Value::as_array_mut);
        for toleration in tolerations.into_iter().flatten().filter_map(Value::as_object_mut) {
            toleration.entry("operator").or_insert(json!("Equal"));
        }
        let consumed = result.get_mut("consumedCapacity").and_then(Value::as_object_mut);
        for amount in consumed.into_iter().flat_map(Map::values_mut) {
            let text = amount.as_str().unwrap_or_default();
            let exact: Quantity = text.parse().expect("a quantity");
            let (mantissa, scale) = exact.parts();
            *amount = json!(by_value(mantissa, scale));
        }
    }
    plain
}

/// Mantissa and power of ten without zeros at the end.
fn by_value(mut mantissa: i128, mut scale: i32) -> String {
    while mantissa != 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        scale += 1;
    }
    if mantissa == 0 { "0".to_owned() } else { format!("{mantissa}e{scale}") }
}

/// Without nulls, and without lists, maps and fields that are empty.
fn tidy(value: &Value) -> Value {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    match value {
        Value::Array(all) => Value::Array(all.iter().map(tidy).collect()),
        Value::Object(all) => {
            let tidied = all.iter().map(|(key, value)| (key.clone(), tidy(value)));
            Value::Object(tidied.filter(|(_, value)| !empty(value)).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The names of the slices of pools of which the node sees any.
fn seen(recorded: &Value) -> BTreeSet<String> {
    let node = text(recorded, "/node/metadata/name");
    let slices = Question::of(recorded).slices;
    let pool =
        |slice: &Value| (slice["spec"]["driver"].clone(), slice["spec"]["pool"]["name"].clone());
    let here = |slice: &&Value| ["", node].contains(&text(slice, "/spec/nodeName"));
    let pools: Vec<(Value, Value)> = slices.iter().filter(here).map(pool).collect();
    let of = slices.iter().filter(|slice| pools.contains(&pool(slice)));
    of.map(|slice| text(slice, "/metadata/name").to_owned()).collect()
}
