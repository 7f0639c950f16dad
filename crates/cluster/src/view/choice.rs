//! What was chosen for a placed pod beside what else there was, as it is shown.

use phalanx_engine::{Choice, Cost, Link, Offered};

use super::schema::{ChoiceView, CostView, LinkView, PickView, RivalView};
use crate::words;
use crate::world::World;

/// The view of a choice.
pub(super) fn view(world: &World, choice: &Choice) -> ChoiceView {
    let Choice { best, equal, second, elsewhere } = choice;
    let node = &best.seat.node.0;
    let message = match best.seat.grants.is_empty() {
        true => None,
        false => words::equal_sets(node, *equal, second.is_some()),
    };
    ChoiceView {
        cost: cost(&best.cost),
        equal_sets: *equal,
        message,
        runner_up: second.as_ref().map(|other| rival(world, best, other)),
        elsewhere: elsewhere.as_ref().map(|other| rival(world, best, other)),
    }
}

fn rival(world: &World, best: &Offered, other: &Offered) -> RivalView {
    let node = other.seat.node.0.to_string();
    let devices = other.seat.grants.iter().map(|grant| PickView {
        driver: grant.device.pool.driver.to_string(),
        pool: grant.device.pool.pool.to_string(),
        device: grant.device.device.to_string(),
    });
    let devices: Vec<PickView> = devices.collect();
    let names: Vec<String> = devices.iter().map(|pick| pick.device.clone()).collect();
    let mut nodes = vec![&other.seat.node, &best.seat.node];
    nodes.dedup();
    let links = nodes.iter().filter_map(|node| Some((world.links(node)?, world.topology(node))));
    let more = words::costs_more(&best.cost, &other.cost, &links.collect::<Vec<_>>());
    RivalView {
        message: words::rival(&names, &node, &more),
        optimal: super::schema::proof(other.proof),
        node,
        devices,
        cost: cost(&other.cost),
    }
}

fn cost(cost: &Cost) -> CostView {
    let Cost { devices, harm, .. } = cost;
    CostView {
        alternatives: cost.alternatives,
        unaligned: devices.unaligned,
        islands: devices.islands,
        slowest: link(devices.slowest),
        farthest: link(devices.farthest),
        off_switch: devices.nics.off_switch,
        off_root: devices.nics.off_root,
        off_numa: devices.nics.off_numa,
        numa: devices.numa,
        soft: cost.soft,
        islands_broken: harm.islands_broken,
        wholes_used: harm.wholes_used,
        lost_mi: harm.lost_mi,
        shared_mi: harm.shared_mi,
        fragmentation: harm.fragmentation,
        nodes_broken: harm.nodes_broken,
        scarce_left: harm.scarce_left,
    }
}

/// A link, where one needs to be used.
fn link(link: Link) -> Option<LinkView> {
    (link != Link::IDEAL)
        .then(|| LinkView { class: words::class_word(link.class()), gbps: link.gbps() })
}
