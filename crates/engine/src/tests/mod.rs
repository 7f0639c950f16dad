//! The engine's properties, over small worlds made by chance.
//!
//! [`make`] makes a [`World`](world::World) from a seed; [`oracle`] answers for it from the rules,
//! naively and without the engine; each property module states one promise. A failure prints the
//! seed and the world, shrunk as far as it still fails.

mod audited;
mod brute;
mod chance;
mod choices;
mod counted;
mod flights;
mod fresh;
mod gangs;
mod make;
mod mounts;
mod oracle;
mod order;
mod pods;
mod refused;
mod scores;
mod told;
mod world;

use crate::{
    Decision, DeviceOrder, Effort, Engine, GroupKey, NodeOrder, Policy, State, Timestamp,
    decide_fresh,
};
use world::World;

const BEST: Policy =
    Policy { node_order: NodeOrder::Best, device_order: DeviceOrder::Best, strict_cel: false };
const UPSTREAM: Policy = Policy { device_order: DeviceOrder::Upstream, ..BEST };
const POLICIES: [Policy; 4] = [
    BEST,
    UPSTREAM,
    Policy { node_order: NodeOrder::Scores, ..BEST },
    Policy { strict_cel: true, ..UPSTREAM },
];
const NOW: Timestamp = Timestamp(0);

/// What one property says of one world: nothing, or what is wrong.
type Outcome = Result<(), String>;

fn engine_of(world: &World) -> Engine {
    let mut engine = Engine::new();
    engine.apply(world.changes());
    engine
}

fn decide(engine: &mut Engine, policy: &Policy) -> Decision {
    plain(engine.decide(policy, NOW, Effort::default()))
}

fn fresh(state: &State, policy: &Policy) -> Decision {
    plain(decide_fresh(state, policy, NOW, Effort::default()))
}

/// A decision without what is allowed to differ: how many changes led there, and the effort, which
/// is less where answers are remembered.
fn plain(decision: Decision) -> Decision {
    Decision { on: crate::Revision(0), spent: Effort::of_steps(0), ..decision }
}

fn probes(engine: &mut Engine, policy: &Policy, groups: &[GroupKey]) -> Vec<Option<crate::Report>> {
    groups.iter().map(|g| engine.probe(policy, (g, None), NOW, Effort::default())).collect()
}

/// Says where two decisions part.
fn same(what: &str, one: &Decision, other: &Decision) -> Outcome {
    if one == other {
        return Ok(());
    }
    if one.acts != other.acts {
        return Err(format!("{what}: acts\n  {:?}\n  {:?}", one.acts, other.acts));
    }
    for (a, b) in one.verdicts.iter().zip(&other.verdicts) {
        if a != b {
            return Err(format!("{what}: verdicts\n  {a:?}\n  {b:?}"));
        }
    }
    Err(format!("{what}:\n  {:?}\n  {:?}", one.verdicts, other.verdicts))
}

/// Looks at worlds of these seeds; the first that fails is shrunk and printed.
fn for_worlds(seeds: std::ops::Range<u64>, mut property: impl FnMut(&World) -> Outcome) {
    for seed in seeds {
        let world = make::world(seed);
        if let Err(wrong) = property(&world) {
            let (small, wrong) = world::shrink(world, wrong, &mut property);
            panic!("seed {seed}: {wrong}\nin the world\n{small}");
        }
    }
}
