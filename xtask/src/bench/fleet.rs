//! A fleet larger than anyone runs, in one process: memory, building it, one more pod.

use phalanx_engine::{Change, Effort, Engine, Policy, Timestamp};

use super::world::{Dice, Fleet, Names, Pod, Shape, device, mixed, node_key, request};
use super::{median, resident_bytes, thousands, time};
use crate::run::Done;

const NODES: u32 = 100_000;
/// Pods bound on each node, with one device each.
const PODS: u32 = 4;
/// Decisions of one pod each that the median is taken of.
const DECISIONS: usize = 1_001;

/// 100,000 nodes with eight devices, 400,000 pods bound, then single pods.
pub(crate) fn measure() -> Done {
    let names = Names::new();
    let fleet = Fleet { nodes: NODES, devices: 8, numa: 2 };
    let single = request(&names, Shape { cpu_milli: 8_000, devices: 1, agree: false });
    let mut engine = Engine::new();
    let (built, ()) = time(|| {
        engine.apply(fleet.changes(&names));
        for node in 0..NODES {
            let key = node_key(node);
            for at in 0..PODS {
                let pod = Pod::new(&names, u64::from(node * PODS + at), &single);
                let held = [device(&names, &key, at)].into();
                let changes: Vec<Change> =
                    pod.starts(&names).into_iter().chain(pod.holds(&key, held)).collect();
                engine.apply(changes);
            }
        }
    });
    let pods = f64::from(NODES * PODS);
    println!("   {} nodes, {} pods bound", thousands(f64::from(NODES)), thousands(pods));
    println!("   built in {built:.1?}");
    let (shapes, _) = mixed();
    // What the bound pods leave of the smallest node takes all of these.
    let shapes: Vec<_> = shapes
        .into_iter()
        .filter(|shape| shape.cpu_milli <= 60_000)
        .map(|shape| request(&names, shape))
        .collect();
    let mut dice = Dice(3);
    let (mut first, mut times) = (Vec::new(), Vec::new());
    for n in 0..shapes.len() + DECISIONS {
        let new = shapes.get(n);
        let shape = new.unwrap_or_else(|| &shapes[dice.below(shapes.len())]);
        let pod = Pod::new(&names, u64::from(u32::MAX) + n as u64, shape);
        engine.apply(pod.starts(&names));
        let (taken, decision) =
            time(|| engine.decide(&Policy::default(), Timestamp(0), Effort::default()));
        let Some(seat) = super::rows::seats(&decision).first().copied() else {
            return Err("a pod that fits was not placed.".to_owned());
        };
        engine.apply(pod.is_bound(seat));
        if new.is_some() { first.push(taken) } else { times.push(taken) }
    }
    let (first, middle) = (median(first), median(times));
    let met = if middle.as_micros() < 100 { "met" } else { "MISSED" };
    println!("   a pod of a shape never seen before: median {first:.2?}");
    println!(
        "   a pod of one of {} shapes, each bound: median {middle:.2?}  target 100µs  {met}",
        shapes.len()
    );
    let gib = resident_bytes()? / f64::from(1 << 30);
    let met = if gib < 4.0 { "met" } else { "MISSED" };
    println!("   resident {gib:.2} GiB  target 4 GiB  {met}");
    Ok(())
}
