//! The order in which facts come, how often they come, and what came and went in between leave no
//! trace.

use super::chance::Chance;
use super::world::World;
use super::{BEST, POLICIES, decide, engine_of, for_worlds, make, probes, same};
use crate::*;

/// The fact's end, and (where it makes sense) the fact as it never was.
fn gone(change: &Change) -> Option<Change> {
    Some(match change {
        Change::Node(key, _) => Change::Node(key.clone(), None),
        Change::Pool(key, _) => Change::Pool(key.clone(), None),
        Change::Links(key, _) => Change::Links(key.clone(), None),
        Change::Group(key, _) => Change::Group(key.clone(), None),
        Change::Member(key, _) => Change::Member(key.clone(), None),
        Change::Claim(key, _) => Change::Claim(key.clone(), None),
        Change::Volume(key, _) => Change::Volume(key.clone(), None),
        Change::VolumeClaim(key, _) => Change::VolumeClaim(key.clone(), None),
        Change::StorageClass(key, _) => Change::StorageClass(key.clone(), None),
        Change::StorageDriver(key, _) => Change::StorageDriver(key.clone(), None),
        Change::NodeStorage(key, _) => Change::NodeStorage(key.clone(), None),
        Change::Match(selector, profile, _) => Change::Match(*selector, *profile, Match::Error),
        Change::Topology(..)
        | Change::Domains(..)
        | Change::Queue(..)
        | Change::Hold(..)
        | Change::Derived(..)
        | Change::Assume(..)
        | Change::Settle(_) => return None,
    })
}

/// Applies a world in any order, with facts that come twice, facts of another world that go again,
/// and decisions that were in flight and failed.
fn stormy(world: &World, seed: u64) -> Engine {
    let mut chance = Chance::new(seed);
    let mut engine = Engine::new();
    let mut noise = make::world(seed ^ 0xABCD).changes();
    chance.shuffle(&mut noise);
    noise.truncate(12);
    engine.apply(noise.clone());
    let mut changes = world.changes();
    chance.shuffle(&mut changes);
    for (at, change) in changes.iter().enumerate() {
        engine.apply([change.clone()]);
        if chance.percent(25) {
            engine.apply(gone(change));
            engine.apply([change.clone()]);
        }
        if chance.percent(15) {
            engine.apply([change.clone()]);
        }
        if chance.percent(12) {
            flight(&mut engine, at as u64, &mut chance);
        }
    }
    // What only the noise knew goes; what both knew is said again.
    let facts = noise.iter().filter(|c| !matches!(c, Change::Match(..)));
    let ends: Vec<Change> = facts.filter_map(gone).collect();
    engine.apply(ends);
    chance.shuffle(&mut changes);
    engine.apply(changes.clone());
    // What is remembered of another life of one fact must not show in this one.
    for change in &changes {
        let other = if chance.percent(35) { altered(change, &mut chance) } else { None };
        if let Some(other) = other {
            engine.apply([other]);
            decide(&mut engine, &BEST);
            engine.apply([change.clone()]);
        }
    }
    engine
}

/// The fact as it could be.
fn altered(change: &Change, chance: &mut Chance) -> Option<Change> {
    let mut other = change.clone();
    match &mut other {
        Change::Node(_, Some(node)) => {
            let zone = (Name::new("zone"), Name::new(chance.word(&["a", "b"])));
            node.labels = [zone].into();
        }
        Change::Claim(_, Some(claim)) => {
            let node = Name::new(chance.word(&["n0", "n1", "n2"]));
            claim.held.as_mut()?.nodes = Some([[NodeRequirement::NameIs(node)].into()].into());
            claim.users.clear();
        }
        Change::Pool(_, Some(pool)) if chance.percent(30) => pool.slices[0].slice_count += 1,
        Change::Links(_, Some(links)) => links.pairs.clear(),
        Change::Volume(_, Some(volume)) => volume.nodes = None,
        Change::VolumeClaim(_, Some(claim)) => claim.bound = !claim.bound,
        Change::StorageClass(_, Some(class)) => class.waits = !class.waits,
        Change::StorageDriver(_, Some(driver)) => driver.must_be_there ^= true,
        Change::NodeStorage(_, Some(storage)) => storage.drivers = Box::default(),
        Change::Match(_, _, says) if chance.percent(30) => *says = Match::Yes,
        Change::Node(..)
        | Change::Pool(..)
        | Change::Links(..)
        | Change::Topology(..)
        | Change::Domains(..)
        | Change::Queue(..)
        | Change::Group(..)
        | Change::Member(..)
        | Change::Claim(..)
        | Change::Volume(..)
        | Change::VolumeClaim(..)
        | Change::StorageClass(..)
        | Change::StorageDriver(..)
        | Change::NodeStorage(..)
        | Change::Hold(..)
        | Change::Match(..)
        | Change::Derived(..)
        | Change::Assume(..)
        | Change::Settle(_) => return None,
    }
    Some(other)
}

/// Sends a decision off, lets something happen meanwhile, and lets it fail.
fn flight(engine: &mut Engine, id: u64, chance: &mut Chance) {
    let decision = decide(engine, chance.pick(&POLICIES));
    let mut sent = Vec::new();
    for act in decision.acts {
        if let Act::Place(group, seats, _) = act {
            let id = FlightId(id * 100 + sent.len() as u64);
            engine.apply([Change::Assume(id, group, seats)]);
            sent.push(id);
        }
    }
    if chance.percent(50) {
        decide(engine, &BEST);
    }
    chance.shuffle(&mut sent);
    engine.apply(sent.into_iter().map(Change::Settle));
}

#[test]
fn no_order_and_no_history_shows() {
    let mut seed = 300_000;
    for_worlds(300_000..302_000, |world| {
        seed += 1;
        let (mut plain, mut stormy) = (engine_of(world), stormy(world, seed));
        let groups: Vec<GroupKey> = world.groups.keys().cloned().collect();
        for policy in [BEST, POLICIES[seed as usize % 4]] {
            same("history", &decide(&mut plain, &policy), &decide(&mut stormy, &policy))?;
            let (one, other) =
                (probes(&mut plain, &policy, &groups), probes(&mut stormy, &policy, &groups));
            if one != other {
                return Err(format!("reports differ: {one:#?}\n{other:#?}"));
            }
        }
        Ok(())
    });
}

/// A world that is taken down to nothing leaves an empty state.
#[test]
fn what_is_gone_leaves_nothing() {
    for_worlds(310_000..310_500, |world| {
        let mut engine = engine_of(world);
        decide(&mut engine, &BEST);
        let mut changes = world.changes();
        Chance::new(changes.len() as u64).shuffle(&mut changes);
        engine.apply(changes.iter().filter_map(gone));
        let state = engine.state();
        let rows = [
            state.nodes.iter().count(),
            state.pools.iter().count(),
            state.claims.iter().count(),
            state.groups.iter().count(),
            state.members.iter().count(),
            state.requests.iter().count(),
            state.pending.len(),
            state.wide_pools.len(),
            state.nominated.len(),
            usize::from(!state.around.is_empty()),
        ];
        if rows == [0; 10] { Ok(()) } else { Err(format!("rows left: {rows:?}")) }
    });
}
