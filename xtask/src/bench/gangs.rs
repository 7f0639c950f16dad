//! Groups that start whole on trees of topology: one large one, one that does not fit, thousands of
//! small ones, one on a fleet larger than anyone runs, roles that differ, claims that are shared.
//!
//! Beside each stands the same pods placed one by one in the same run: what wholeness costs.

use std::time::Duration;

use phalanx_engine::{
    Change, Claim, ClaimKey, ClaimUse, Decision, Effort, Engine, Gate, Group, GroupKey, LevelRule,
    Minimum, Name, Policy, Request, Resources, Role, Scoped, Shared, Since, Timestamp, Topology,
    TopologyKey,
};

use super::rows::{seats, told};
use super::world::{Fleet, Names, Shape, node_key, request};
use super::{median, rate, thousands, time};
use crate::run::Done;

/// What the nodes of the device plugin count.
const COUNTED: &str = "nvidia.com/gpu";
const TREE: &str = "fabric";
/// Requests that are asked about before anything is measured.
const WARMED: usize = 8;
/// Devices on each node.
const DEVICES: u32 = 8;

/// A fleet on a tree.
struct Fabric {
    fleet: Fleet,
    /// Domains in each domain of the level above, the widest level first; the last is nodes.
    widths: Vec<u32>,
    /// Every second node counts its devices instead of publishing them.
    half_counted: bool,
}

impl Fabric {
    fn new(widths: &[u32], half_counted: bool) -> Self {
        let fleet = Fleet { nodes: widths.iter().product(), devices: DEVICES, numa: 2 };
        Self { fleet, widths: widths.to_vec(), half_counted }
    }

    fn engine(&self, names: &Names) -> Engine {
        let mut engine = Engine::new();
        engine.apply(self.fleet.changes(names).filter_map(|change| self.counted(change)));
        let tree = TopologyKey(TREE.into());
        let levels = (0..self.widths.len() - 1).map(|level| Name::new(&format!("level-{level}")));
        engine.apply([Change::Topology(tree.clone(), Some(Topology { levels: levels.collect() }))]);
        let domains =
            |n: u32| Change::Domains(node_key(n), tree.clone(), Some(self.domains(n).into()));
        engine.apply((0..self.fleet.nodes).map(domains));
        engine
    }

    /// The domain of a node at each level.
    fn domains(&self, node: u32) -> Vec<Option<Name>> {
        let below = |level: usize| self.widths[level + 1..].iter().product::<u32>();
        let levels = 0..self.widths.len() - 1;
        levels.map(|level| Some(Name::new(&format!("d{}", node / below(level))))).collect()
    }

    /// A change as it is where every second node has a device plugin.
    fn counted(&self, change: Change) -> Option<Change> {
        let number = |key: &str| key.rsplit('-').next().and_then(|n| n.parse::<u32>().ok());
        let is_counted = |key: &str| self.half_counted && number(key).is_some_and(|n| n % 2 == 1);
        if let Change::Pool(key, _) = &change
            && is_counted(key.pool.as_str())
        {
            return None;
        }
        if let Change::Node(key, Some(node)) = &change
            && is_counted(key.0.as_str())
        {
            let mut node = node.clone();
            node.allocatable.scalars = [(COUNTED.into(), i64::from(DEVICES))].into();
            return Some(Change::Node(key.clone(), Some(node)));
        }
        Some(change)
    }
}

/// A gang that is to come: how many of which, and the level that all of it must stay within.
struct Gang {
    roles: Vec<(u32, Shared<Request>)>,
    within: Option<u16>,
}

impl Gang {
    fn of(count: u32, request: &Shared<Request>) -> Self {
        Self { roles: vec![(count, request.clone())], within: None }
    }

    fn pods(&self) -> usize {
        self.roles.iter().map(|(count, _)| *count as usize).sum()
    }

    /// It comes: whole, or each pod by itself for comparison.
    fn starts(&self, n: usize, minimum: Minimum) -> Change {
        let object =
            Scoped { namespace: "default".into(), name: Name::new(&format!("gang-{n:06}")) };
        let roles = self.roles.iter().enumerate().map(|(at, (count, request))| Role {
            name: Name::new(&format!("role-{at}")),
            request: request.clone(),
            min: *count,
            max: *count,
            segment: None,
            first_rank: 0,
            admits: None,
        });
        let rule = |level| LevelRule {
            topology: TopologyKey(TREE.into()),
            level,
            required: true,
            roles: Box::default(),
            segment: None,
        };
        let group = Group {
            queue: None,
            priority: 0,
            since: Since::Created(Timestamp(n as i64)),
            parent: None,
            roles: roles.collect(),
            minimum,
            parts: phalanx_engine::Parts::default(),
            rules: self.within.into_iter().map(rule).collect(),
            shared: Vec::new(),
            run_max_millis: None,
            disruption: phalanx_engine::Disruption::default(),
            gate: Gate::Open,
        };
        Change::Group(GroupKey { object, kind: "podgroup".into() }, Some(group))
    }
}

/// So many devices of a claim, all on one NUMA node where `agree`.
fn claimed(names: &Names, devices: u32, agree: bool) -> Shared<Request> {
    request(names, Shape { cpu_milli: 4_000, devices, agree })
}

/// So many devices of a counter.
fn counted(devices: u32) -> Shared<Request> {
    let scalars = match devices {
        0 => Box::default(),
        devices => [(COUNTED.into(), i64::from(devices))].into(),
    };
    let resources =
        Resources { cpu_milli: 4_000, memory_bytes: 8 << 30, ephemeral_bytes: 0, pods: 1, scalars };
    Shared::new(Request { resources, ..Request::default() })
}

fn decide(engine: &mut Engine) -> Decision {
    engine.decide(&Policy::default(), Timestamp(0), Effort::default())
}

/// What was measured of some gangs in one fleet.
struct Measured {
    /// Until the first decision about them stands.
    first: Duration,
    /// The same decision again.
    again: Duration,
    placed: usize,
    told: String,
}

fn measured(start: &Engine, gangs: &[Gang], minimum: Minimum, runs: usize) -> Measured {
    let (mut first, mut again) = (Vec::new(), Vec::new());
    let (mut placed, mut reason) = (0, String::new());
    let mut start = start.fork();
    warm(&mut start, gangs, minimum);
    for _ in 0..runs {
        let mut engine = start.fork();
        engine.apply(gangs.iter().enumerate().map(|(n, gang)| gang.starts(n, minimum)));
        let (taken, decision) = time(|| decide(&mut engine));
        first.push(taken);
        (placed, reason) = (seats(&decision).len(), told(&decision));
        again.push(time(|| decide(&mut engine)).0);
    }
    Measured { first: median(first), again: median(again), placed, told: reason }
}

/// One pod of each request comes alone, is decided and goes: what nodes see is worked out on first use,
/// which is part of the start.
fn warm(engine: &mut Engine, gangs: &[Gang], minimum: Minimum) {
    let mut requests: Vec<&Shared<Request>> = Vec::new();
    for (_, request) in gangs.iter().flat_map(|gang| &gang.roles) {
        if requests.len() < WARMED && !requests.contains(&request) {
            requests.push(request);
        }
    }
    for request in requests {
        let Change::Group(key, one) = Gang::of(1, request).starts(usize::MAX, minimum) else {
            return;
        };
        engine.apply([Change::Group(key.clone(), one)]);
        decide(engine);
        engine.apply([Change::Group(key, None)]);
    }
}

/// A row about one gang, with its target for the first decision.
fn one(what: &str, start: &Engine, gang: &Gang, target: Duration, runs: usize) {
    let gangs = std::slice::from_ref(gang);
    let found = measured(start, gangs, Minimum::Gang, runs);
    let alone = measured(start, gangs, Minimum::Each, runs);
    let Measured { first, again, placed, told } = found;
    let met = if first < target { "met" } else { "MISSED" };
    let ratio = first.as_secs_f64() / alone.first.as_secs_f64().max(1e-9);
    println!(
        "   {what:<52} {first:>9.2?}  target {target:>5.0?}  {met:<6}  again {again:>9.2?}  \
         {ratio:.2} of one by one  {placed}/{} {told}",
        gang.pods()
    );
}

/// A row about many gangs.
fn many(what: &str, start: &Engine, gangs: &[Gang], target: Option<f64>, runs: usize) {
    let of: usize = gangs.iter().map(Gang::pods).sum();
    let found = measured(start, gangs, Minimum::Gang, runs);
    let alone = measured(start, gangs, Minimum::Each, runs);
    let (whole, each) = (rate(of, found.first), rate(of, alone.first));
    let judged = target.map_or_else(String::new, |target| {
        let met = if whole >= target { "met" } else { "MISSED" };
        format!("target {} {met}", thousands(target))
    });
    println!(
        "   {what:<52} {:>9} pods/s  {judged:<24} one by one {:>9}  {}/{of} placed",
        thousands(whole),
        thousands(each),
        found.placed
    );
}

/// All rows.
pub(crate) fn measure(runs: usize) -> Done {
    let names = Names::new();
    large(&names, runs);
    small(&names, runs);
    huge(&names, runs);
    Ok(())
}

/// One gang of 512 pods on a tree of 512 nodes, and one pod more than that.
fn large(names: &Names, runs: usize) {
    println!("   one gang of whole nodes on a tree of 4 x 8 x 8 x 2; until the decision stands");
    let fabric = Fabric::new(&[4, 8, 8, 2], false);
    let start = fabric.engine(names);
    let request = claimed(names, DEVICES, false);
    let (fits, more) = (Duration::from_millis(5), Duration::from_millis(10));
    one("512 pods", &start, &Gang::of(512, &request), fits, runs);
    one("513 pods: no room, with the reason", &start, &Gang::of(513, &request), more, runs);
    let within = Gang { within: Some(0), ..Gang::of(129, &request) };
    one("129 pods in one of four: no room, with the reason", &start, &within, more, runs);
}

/// Thousands of small gangs on 5,000 nodes.
fn small(names: &Names, runs: usize) {
    println!("   5,000 nodes of 8 devices on a tree of 10 x 25 x 20, half of them counted");
    let fabric = Fabric::new(&[10, 25, 20], true);
    let start = fabric.engine(names);
    let (by_claim, by_count) = (claimed(names, 2, true), counted(2));
    let gang = |n: usize| {
        let of = if n.is_multiple_of(2) { &by_claim } else { &by_count };
        Gang { within: (n % 4 < 2).then_some(1), ..Gang::of(4, of) }
    };
    let gangs: Vec<Gang> = (0..3_000).map(gang).collect();
    many("3,000 gangs of 4, half with claims that must agree", &start, &gangs, Some(5e4), runs);
    let led = |n: usize| {
        let worker = if n.is_multiple_of(2) { &by_claim } else { &by_count };
        let roles = vec![(1, counted(0)), (7, worker.clone())];
        Gang { roles, within: (n % 4 < 2).then_some(1) }
    };
    let gangs: Vec<Gang> = (0..1_000).map(led).collect();
    many("1,000 gangs of a launcher and 7 workers", &start, &gangs, None, runs);
    let mut sharing = start.fork();
    let spec = match &by_claim.claims[..] {
        [ClaimUse::Own(spec)] => spec.clone(),
        _ => return,
    };
    let key = |n: usize| {
        let name = Name::new(&format!("shared-{n:06}"));
        ClaimKey(Scoped { namespace: "default".into(), name })
    };
    let claim = Claim { spec, held: None, users: Vec::new(), failed: None, deleting: false };
    sharing.apply((0..1_000).map(|n| Change::Claim(key(n), Some(claim.clone()))));
    let shared = |n: usize| {
        let claims = [ClaimUse::Named(key(n))].into();
        Gang::of(4, &Shared::new(Request { claims, ..Request::clone(&counted(0)) }))
    };
    let gangs: Vec<Gang> = (0..1_000).map(shared).collect();
    many("1,000 gangs of 4 that share a claim", &sharing, &gangs, None, runs);
}

/// One gang of 4,096 pods on 100,000 nodes.
fn huge(names: &Names, runs: usize) {
    println!("   100,000 nodes of 8 devices on a tree of 10 x 25 x 20 x 20");
    let start = Fabric::new(&[10, 25, 20, 20], false).engine(names);
    let request = claimed(names, DEVICES, false);
    one("4,096 pods of 8", &start, &Gang::of(4_096, &request), Duration::from_millis(50), runs);
}
