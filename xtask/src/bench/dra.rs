//! Upstream's recorded allocator cases and generated worlds: our answer in our own order beside that
//! of the allocator that kube-scheduler uses, in the same run on the same machine. Both begin with
//! parsed objects and end with the answer; neither puts it into words.
//!
//! The two do not the same work for it. Upstream's takes the slices as they lie and answers for one
//! node, yes or no; where it ends before it comes to a device (a field whose gate is off, no slice of
//! the node, a pool that is not whole under a request for all devices) it has read none. Ours is the
//! way that a plan goes: the node, the pod and its claims are lowered with all slices, names are
//! interned, objects are kept for edits and writes, the best set is searched for and not the first,
//! and a refusal comes with its reason, its counts, its nearest miss, and whether the emptied and
//! healed cluster would refuse too. All of that is on our clock and nothing of it on upstream's; where
//! upstream compiled no selector it is what is compared.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use phalanx_cluster::plan::{PlanOptions, plan};
use phalanx_cluster::world::World;
use phalanx_cluster::{Lowering, ObjectEvent, Source};
use phalanx_engine::Act;
use serde_json::{Value, json};

use super::question::Question;
use super::{median, time, upstream};
use crate::run::{Done, root};

/// Files of recorded worlds.
const FILES: [&str; 2] = ["dra/allocator-cases.jsonl", "dra/generated-worlds.jsonl"];

/// Upstream compiles a selector in no less: where it took less in all, it answered before any.
const COMPILED: Duration = Duration::from_micros(30);

/// How many of the slowest are printed; those above upstream's are printed all.
const SLOWEST: usize = 10;

/// How long one side took, or the other.
#[derive(Clone, Debug)]
pub(crate) struct Compared {
    pub(crate) name: String,
    pub(crate) ours: Duration,
    /// Our time by its parts: taking objects in, lowering, deciding.
    pub(crate) parts: [Duration; 3],
    /// With no program of CEL compiled yet.
    pub(crate) cold: Duration,
    /// With the ten programs that were used last kept.
    pub(crate) warm: Duration,
    pub(crate) answer: &'static str,
    /// Our steps.
    pub(crate) steps: u64,
    pub(crate) theirs: String,
}

impl Compared {
    fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.cold.as_secs_f64().max(1e-9)
    }

    fn ratio_warm(&self) -> f64 {
        self.ours.as_secs_f64() / self.warm.as_secs_f64().max(1e-9)
    }
}

/// Our answer.
struct Asked {
    ours: Duration,
    parts: [Duration; 3],
    placed: bool,
    steps: u64,
}

/// Measures every recorded world.
pub(crate) fn measure(runs: usize) -> Done {
    for file in FILES {
        let Some(questions) = recorded(file)? else {
            println!("   left out: there is no {file}; set PHALANX_SHARED");
            continue;
        };
        println!("   {file}: from parsed objects to the answer, medians of {runs} runs");
        report(&compare(&questions, runs)?);
    }
    Ok(())
}

/// Asks both sides each question.
pub(crate) fn compare(questions: &[Question], runs: usize) -> Result<Vec<Compared>, String> {
    let mut input = String::new();
    for question in questions {
        writeln!(input, "{}", to_json(question)).map_err(|e| e.to_string())?;
    }
    let theirs = answers(&input, runs)?;
    let theirs = theirs.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let mut all = Vec::new();
    for (question, theirs) in questions.iter().zip(theirs) {
        let [name, cold, warm, answer] = theirs[..] else {
            return Err(format!("upstream's allocator printed {theirs:?}."));
        };
        if name != question.name {
            return Err(format!("upstream's allocator answered {name}, not {}.", question.name));
        }
        let nanos = |text: &str| text.parse().map(Duration::from_nanos).unwrap_or_default();
        let Asked { ours, parts, placed, steps } = ask(question, runs)?;
        all.push(Compared {
            name: name.to_owned(),
            ours,
            parts,
            cold: nanos(cold),
            warm: nanos(warm),
            answer: if placed { "yes" } else { "no" },
            steps,
            theirs: answer.to_owned(),
        });
    }
    Ok(all)
}

/// What upstream's program prints.
fn answers(input: &str, runs: usize) -> Result<String, String> {
    let wrong = |e: std::io::Error| format!("upstream's allocator: {e}.");
    let mut child = Command::new(upstream::build()?)
        .args(["cases", &runs.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(wrong)?;
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        child.wait_with_output()
    });
    let output = output.map_err(wrong)?;
    if !output.status.success() {
        return Err(format!("upstream's allocator failed ({}).", output.status));
    }
    String::from_utf8(output.stdout).map_err(|e| format!("upstream's allocator: {e}."))
}

fn report(all: &[Compared]) {
    let count = |test: &dyn Fn(&Compared) -> bool| all.iter().filter(|c| test(c)).count();
    let sum = |of: &dyn Fn(&Compared) -> Duration| all.iter().map(of).sum::<Duration>();
    let (ours, cold, warm) = (sum(&|c| c.ours), sum(&|c| c.cold), sum(&|c| c.warm));
    println!(
        "   {} asked; in all ours {ours:.1?}, upstream's {cold:.1?} with an empty cache of CEL, {warm:.1?} with a warm one",
        all.len()
    );
    let part = |at: usize| sum(&|c| c.parts.get(at).copied().unwrap_or_default());
    let [absorb, settle, decide] = [0, 1, 2].map(part);
    println!(
        "   of ours {absorb:.1?} to take objects in, {settle:.1?} to lower, {decide:.1?} to decide"
    );
    let differ = count(&|c| (c.answer == "yes") != (c.theirs == "yes"));
    println!("   the answer differs in {differ}");
    let above = count(&|c| c.ours > c.cold);
    let met = if above == 0 { "met" } else { "MISSED" };
    println!("   ours above upstream's with an empty cache: {above}  target 0  {met}");
    let early = count(&|c| c.ours > c.cold && c.cold < COMPILED);
    println!("   of these upstream compiled no selector in {early}");
    println!("   ours above upstream's with a warm cache:   {}", count(&|c| c.ours > c.warm));
    let mut sorted: Vec<&Compared> = all.iter().collect();
    sorted.sort_by_key(|one| std::cmp::Reverse(one.ours));
    println!("   our slowest");
    table(&sorted, SLOWEST);
    sorted.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
    println!("   ours above upstream's, its cache empty: all of them");
    table(&sorted, above);
    sorted.sort_by(|a, b| b.ratio_warm().total_cmp(&a.ratio_warm()));
    println!("   those with the highest ratio, upstream's cache warm");
    table(&sorted, SLOWEST);
}

fn table(sorted: &[&Compared], most: usize) {
    println!("     {:<66} {:>9} {:>9} {:>9}", "", "ours", "empty", "warm");
    for Compared { name, ours, cold, warm, parts, .. } in sorted.iter().take(most) {
        let [ours_f, cold_f, warm_f] = [ours, cold, warm].map(Duration::as_secs_f64);
        println!(
            "     {name:<66} {ours:>9.1?} {cold:>9.1?} {warm:>9.1?}  ratio {:.2} / {:.2}  {:.1?}",
            ours_f / cold_f,
            ours_f / warm_f,
            parts
        );
    }
}

/// What upstream's side is asked.
fn to_json(question: &Question) -> Value {
    json!({"name": question.name, "features": question.features, "node": question.node,
        "slices": question.slices, "classes": question.classes, "claims": question.claims,
        "held": question.held})
}

/// The median time until the answer stands, and the answer.
fn ask(question: &Question, runs: usize) -> Result<Asked, String> {
    let objects = question.objects()?;
    let compat = question.compat();
    let mut times = Vec::new();
    let mut parts: [Vec<Duration>; 3] = Default::default();
    let (mut placed, mut steps) = (false, 0);
    // The first run finds nothing in the processor's caches; upstream has one before as well.
    for run in 0..=runs {
        let events: Vec<ObjectEvent> = (0..)
            .zip(objects.iter().cloned())
            .map(|(ordinal, object)| {
                let source = Source { ordinal, ..Source::default() };
                ObjectEvent::Applied(Box::new(object), source)
            })
            .collect();
        let compat = compat.clone();
        let (absorbed, mut world) = time(|| {
            let mut world = World::new(Lowering::new(compat));
            for event in events {
                world.absorb(event);
            }
            world
        });
        let (settled, ()) = time(|| world.settle());
        let (decided, plan) = time(|| plan(&mut world, &PlanOptions::default()));
        placed = plan.decision.acts.iter().any(|act| matches!(act, Act::Place(..)));
        steps = plan.decision.spent.steps;
        if run > 0 {
            times.push(absorbed + settled + decided);
            for (all, one) in parts.iter_mut().zip([absorbed, settled, decided]) {
                all.push(one);
            }
        }
    }
    Ok(Asked { ours: median(times), parts: parts.map(median), placed, steps })
}

/// The recorded worlds of a file in which the caller has time; none where the file is not there.
fn recorded(file: &str) -> Result<Option<Vec<Question>>, String> {
    let shared = std::env::var("PHALANX_SHARED").unwrap_or_else(|_| "../shared".to_owned());
    let path = root().join(shared).join("data").join(file);
    if !path.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}.", path.display()))?;
    let mut all = Vec::new();
    for line in text.lines() {
        let world: Value = serde_json::from_str(line).map_err(|e| format!("{file}: {e}."))?;
        if world["context"] == "live" {
            all.push(Question::of(&world));
        }
    }
    Ok(Some(all))
}
