//! Filling and churning a fleet, and asking for what can't be.

use phalanx_engine::{
    Act, Decision, DeviceOrder, Effort, Engine, Policy, Request, Seat, Shared, Timestamp, Verdict,
    decide_fresh,
};

use super::world::{Dice, Fleet, Names, Pod, Shape, mixed, node_key, request};
use super::{median, rate, thousands, time};
use crate::run::Done;

/// What is to be reached, in pods a second.
#[derive(Debug)]
pub(crate) struct Targets {
    identical: f64,
    mixed: f64,
    churn: f64,
}

/// For 500 nodes.
pub(crate) const SMALL: Targets = Targets { identical: 1e5, mixed: 3e4, churn: 3e4 };
/// For 5,000 nodes.
pub(crate) const LARGE: Targets = Targets { identical: 5e4, mixed: 2e4, churn: 2e4 };

/// Ends and starts of one run of churn.
const CHURN: usize = 100_000;

const NOW: Timestamp = Timestamp(0);

fn decide(engine: &mut Engine) -> Decision {
    engine.decide(&Policy::default(), NOW, Effort::default())
}

/// The seats of a decision in which everything was placed, or how many groups were not.
pub(crate) fn seats(decision: &Decision) -> Vec<&Seat> {
    let placed = decision.acts.iter().filter_map(|act| match act {
        Act::Place(_, seats, _) => Some(seats),
        Act::Admit(_) | Act::Hold(..) | Act::Release(..) | Act::Evict { .. } => None,
    });
    placed.flatten().collect()
}

/// Upstream's allocator beside ours, where Go is there.
fn upstream(nodes: u32, devices: u32) {
    match super::upstream::fill(nodes, devices) {
        Ok((first, all)) => {
            for (what, found) in [("first fit", first), ("all nodes tried", all)] {
                let text = format!("upstream's allocator alone (Go), {what}");
                println!("   {text:<58} {:>12}", thousands(found));
            }
        }
        Err(error) => println!("   left out: {error}"),
    }
}

/// A fleet at rest, and how often each figure is taken.
struct Bench<'n> {
    names: &'n Names,
    start: Engine,
    runs: usize,
}

/// Pods that are to come: what each shape asks for, and which shape each pod has.
struct Load {
    requests: Vec<Shared<Request>>,
    pods: Vec<Pod>,
}

impl Load {
    fn new(names: &Names, requests: Vec<Shared<Request>>, which: &[usize]) -> Self {
        let pods = which.iter().enumerate();
        let pods = pods.map(|(n, at)| Pod::new(names, n as u64, &requests[*at])).collect();
        Self { requests, pods }
    }

    fn of_shapes(names: &Names, shapes: &[Shape], which: &[usize]) -> Self {
        Self::new(names, shapes.iter().map(|shape| request(names, *shape)).collect(), which)
    }
}

/// Both rows of figures for a fleet of this size.
pub(crate) fn fill_and_churn(nodes: u32, devices: u32, targets: &Targets, runs: usize) -> Done {
    let names = Names::new();
    let fleet = Fleet { nodes, devices, numa: devices / 2 };
    let mut start = Engine::new();
    start.apply(fleet.changes(&names));
    let bench = Bench { names: &names, start, runs };
    println!(
        "   {nodes} nodes with {devices} devices, a selector and matchAttribute; pods a second"
    );
    let pair = [Shape { cpu_milli: 4_000, devices: 2, agree: true }];
    let (templates, real) = mixed();
    let source = if real { "sizes of openb" } else { "sizes like openb's, no shared data" };
    let [of_pair, of_templates] =
        [&pair[..], &templates].map(|shapes| Load::of_shapes(&names, shapes, &fleet.pods(shapes)));
    bench.fill("identical pods", &of_pair, targets.identical);
    bench.fill(&format!("50 templates, {source}"), &of_templates, targets.mixed);
    bench.churn("identical pods", &of_pair, targets.churn);
    bench.churn("50 templates", &of_templates, targets.churn);
    for (what, shapes) in [("identical pods", &pair[..]), ("50 templates", &templates[..])] {
        from_objects(&fleet, what, shapes, runs)?;
    }
    bench.first_fit(&of_pair);
    upstream(nodes, devices);
    Ok(())
}

/// The same rows where devices and claims are of every kind: alternatives, partitions that share
/// counters, devices that are shared.
pub(crate) fn every_kind(nodes: u32, devices: u32, targets: &Targets, runs: usize) -> Done {
    let names = Names::new();
    let fleet = super::kinds::Fleet { nodes, devices };
    let (changes, requests) = fleet.lowered()?;
    let mut start = Engine::new();
    start.apply(changes);
    let bench = Bench { names: &names, start, runs };
    let (plain, parted, shared) = fleet.parts();
    println!(
        "   {nodes} nodes with {plain} whole devices, {parted} in partitions, {shared} shared; \
         pods a second"
    );
    let load = Load::new(&names, requests, &fleet.pods());
    bench.fill("six kinds of claims", &load, targets.mixed);
    bench.churn("six kinds of claims", &load, targets.churn);
    Ok(())
}

/// The same from objects to decision.
fn from_objects(fleet: &Fleet, what: &str, shapes: &[Shape], runs: usize) -> Done {
    let which = fleet.pods(shapes);
    let objects = super::objects::Bench::new(fleet.nodes, fleet.devices, runs);
    let (at_once, each) = objects.fill(shapes, &which)?;
    let churn = objects.churn(shapes, &which)?;
    for (how, found) in
        [("one decide for all", at_once), ("one decide a pod", each), ("churn", churn)]
    {
        let text = format!("from objects: {what}, {how}");
        println!("   {text:<58} {:>12}", thousands(found));
    }
    Ok(())
}

fn print(what: &str, found: f64, target: f64) {
    let verdict = if found >= target { "met" } else { "MISSED" };
    let (found, target) = (thousands(found), thousands(target));
    println!("   {what:<58} {found:>12}  target {target:>9}  {verdict}");
}

impl Bench<'_> {
    fn fill(&self, what: &str, load: &Load, target: f64) {
        let (mut at_once, mut each) = (Vec::new(), Vec::new());
        let mut placed = (0, 0);
        for _ in 0..self.runs {
            let mut engine = self.start.fork();
            // The caches of what a node sees are filled on first use: that is part of the start.
            warm(&mut engine, self.names, &load.requests);
            let waiting: Vec<_> = load.pods.iter().flat_map(|pod| pod.starts(self.names)).collect();
            let mut all = engine.fork();
            all.apply(waiting);
            let (taken, decision) = time(|| decide(&mut all));
            placed.0 = seats(&decision).len();
            at_once.push(taken);
            let mut count = 0;
            let (taken, ()) = time(|| {
                for pod in &load.pods {
                    count += usize::from(start(&mut engine, self.names, pod));
                }
            });
            placed.1 = count;
            each.push(taken);
        }
        let of = load.pods.len();
        let part = |n: usize| format!("{}/{of} placed", n);
        let all = rate(of, median(at_once));
        print(&format!("{what}, one decide for all ({})", part(placed.0)), all, target);
        let each = rate(of, median(each));
        print(&format!("{what}, one decide a pod ({})", part(placed.1)), each, target);
    }

    /// At nine tenths full one ends and one starts, each decided.
    fn churn(&self, what: &str, load: &Load, target: f64) {
        let mut engine = self.start.fork();
        let mut running: Vec<Pod> = Vec::new();
        for pod in &load.pods {
            if start(&mut engine, self.names, pod) {
                running.push(pod.clone());
            }
        }
        let mut times = Vec::new();
        let mut waited = 0;
        for run in 0..self.runs {
            let mut churn = Churn {
                names: self.names,
                engine: engine.fork(),
                running: running.clone(),
                dice: Dice(run as u64),
                next: load.pods.len() as u64,
                waited: 0,
            };
            let (taken, ()) = time(|| (0..CHURN).for_each(|_| churn.turn(&load.requests)));
            times.push(taken);
            waited = churn.waited;
        }
        let text = format!("{what}, churn at 90 % full ({waited} did not fit at once)");
        print(&text, rate(CHURN, median(times)), target);
    }

    /// Ours with upstream's order of devices and nothing remembered, for the ratio.
    fn first_fit(&self, load: &Load) {
        let policy = Policy { device_order: DeviceOrder::Upstream, ..Policy::default() };
        let mut engine = self.start.fork();
        engine.apply(load.pods.iter().take(200).flat_map(|pod| pod.starts(self.names)));
        let state = engine.state();
        let (taken, decision) = time(|| decide_fresh(state, &policy, NOW, Effort::default()));
        let count = seats(&decision).len();
        let text = format!("upstream's device order, nothing remembered ({count} pods)");
        println!("   {text:<58} {:>12}", thousands(rate(count, taken)));
    }
}

/// A fleet in which pods come and go.
struct Churn<'n> {
    names: &'n Names,
    engine: Engine,
    running: Vec<Pod>,
    dice: Dice,
    next: u64,
    waited: u32,
}

impl Churn<'_> {
    /// One ends and one of some shape starts, each decided. Where that one does not fit, another of
    /// the shape that ended takes its place.
    fn turn(&mut self, shapes: &[Shared<Request>]) {
        let at = self.dice.below(self.running.len());
        let gone = self.running.swap_remove(at);
        self.engine.apply(gone.ends().into_iter().chain([gone.forgets()]));
        decide(&mut self.engine);
        let shape = &shapes[self.dice.below(shapes.len())];
        if !self.comes(shape) {
            self.waited += 1;
            self.comes(gone.request());
        }
    }

    fn comes(&mut self, shape: &Shared<Request>) -> bool {
        let pod = Pod::new(self.names, self.next, shape);
        self.next += 1;
        let placed = start(&mut self.engine, self.names, &pod);
        if placed {
            self.running.push(pod);
        }
        placed
    }
}

/// One pod of each shape comes, is decided and goes.
fn warm(engine: &mut Engine, names: &Names, shapes: &[Shared<Request>]) {
    for (at, shape) in shapes.iter().enumerate() {
        let pod = Pod::new(names, u64::MAX - at as u64, shape);
        engine.apply(pod.starts(names));
        decide(engine);
        engine.apply(pod.ends().into_iter().chain([pod.forgets()]));
    }
}

/// The pod comes, is decided, and is bound where it was placed; or it goes again.
fn start(engine: &mut Engine, names: &Names, pod: &Pod) -> bool {
    engine.apply(pod.starts(names));
    let decision = decide(engine);
    if let Some(seat) = seats(&decision).first() {
        engine.apply(pod.is_bound(seat));
        true
    } else {
        engine.apply(pod.ends().into_iter().chain([pod.forgets()]));
        false
    }
}

/// Requests that no node can meet, over 5,000 nodes: the reason in at most ten milliseconds.
pub(crate) fn never(runs: usize) {
    let names = Names::new();
    let cases = [
        ("17 of 32 equal devices on one of two NUMA nodes", 32, 17, true, 0),
        ("8 devices where 7 of 8 are free", 8, 8, false, 1),
        ("9 devices of 8", 8, 9, false, 0),
    ];
    println!("   5,000 nodes; time until the reason stands, first time and again");
    for (what, devices, asked, agree, held) in cases {
        let (mut first, mut again) = (Vec::new(), Vec::new());
        let mut reason = String::new();
        let fleet = Fleet { nodes: 5_000, devices, numa: 2 };
        let mut start = Engine::new();
        start.apply(fleet.changes(&names));
        let one = request(&names, Shape { cpu_milli: 100, devices: 1, agree: false });
        for node in 0..if held > 0 { fleet.nodes } else { 0 } {
            let pod = Pod::new(&names, 1_000_000 + u64::from(node), &one);
            let key = node_key(node);
            start.apply(pod.starts(&names));
            start.apply(pod.holds(&key, [super::world::device(&names, &key, 0)].into()));
        }
        warm(&mut start, &names, std::slice::from_ref(&one));
        for _ in 0..runs {
            let mut engine = start.fork();
            let shape = request(&names, Shape { cpu_milli: 100, devices: asked, agree });
            engine.apply(Pod::new(&names, 0, &shape).starts(&names));
            let (taken, decision) = time(|| decide(&mut engine));
            first.push(taken);
            let (taken, _) = time(|| decide(&mut engine));
            again.push(taken);
            reason = told(&decision);
        }
        let (first, again) = (median(first), median(again));
        let met = if first.as_millis() < 10 { "met" } else { "MISSED" };
        println!("   {what:<50} {first:>10.2?} {again:>10.2?}  target 10ms  {met}  {reason}");
    }
}

/// What became of the first group.
pub(crate) fn told(decision: &Decision) -> String {
    match decision.verdicts.first().map(|(_, verdict)| verdict) {
        Some(Verdict::Waits(why)) => format!("waits: {}", why.first.code()),
        Some(Verdict::Refused(why)) => format!("refused: {}", why.first.code()),
        Some(Verdict::GaveUp(why, _)) => format!("gave up: {}", why.first.code()),
        Some(Verdict::Placed { .. }) => "placed".to_owned(),
        None => "nothing".to_owned(),
    }
}
