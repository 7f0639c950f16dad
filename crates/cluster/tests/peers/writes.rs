//! What is written of the recorded worlds, in the default order, where the gates of 1.37 are on.

use phalanx_cluster::world::World;
use phalanx_cluster::{Gate, Lowering, ObjectEvent, Source};

use super::question::Question;
use super::shared::lines;
use super::written::{Checked, check};

/// Gates without which fields of devices are not looked at.
const NEEDED: [Gate; 5] = [
    Gate::DRAAdminAccess,
    Gate::DRAConsumableCapacity,
    Gate::DRADeviceBindingConditions,
    Gate::DRADeviceTaints,
    Gate::DRAPrioritizedList,
];

#[test]
fn generated_worlds_are_written_as_the_api_accepts_them() {
    let Some(worlds) = lines("dra/generated-worlds.jsonl") else { return };
    let mut all = Checked::default();
    for recorded in &worlds {
        let question = Question::of(recorded);
        let compat = question.compat();
        if !NEEDED.iter().all(|gate| compat.is_on(*gate)) {
            continue;
        }
        let mut world = World::new(Lowering::new(compat));
        for (ordinal, object) in (0..).zip(question.objects().expect(&question.name)) {
            let source = Source { ordinal, ..Source::default() };
            world.absorb(ObjectEvent::Applied(Box::new(object), source));
        }
        world.settle();
        let before = all.wrong.len();
        check(&mut world, &mut all);
        let new = all.wrong.get(before..).unwrap_or_default();
        assert!(new.is_empty(), "{}: {new:#?}", question.name);
    }
    println!("looked at {:?}", all.seen);
    assert!(all.seen.get("allocations").is_some_and(|n| *n >= 500), "{:?}", all.seen);
    assert!(all.seen.get("shares").is_some_and(|n| *n >= 100), "{:?}", all.seen);
}
