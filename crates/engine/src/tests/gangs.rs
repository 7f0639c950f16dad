//! Groups that start whole, against brute force: placed exactly when there is an arrangement, and never
//! at a worse cost.

use super::brute::against_brute_force;
use super::chance::Chance;
use super::make;
use super::oracle::Board;
use super::world::{World, shrink};
use super::{BEST, NOW, Outcome, decide, engine_of, fresh, plain, same};
use crate::*;

/// A world of which a group or two start whole, over trees of topology.
fn gang_world(seed: u64) -> World {
    let mut world = make::world(seed);
    let mut chance = Chance::new(seed ^ 0x6a7e);
    let trees = *chance.pick(&[0, 1, 1, 1, 2]);
    for tree in 0..trees {
        let key = TopologyKey(Name::new(&format!("t{tree}")));
        let levels = 1 + chance.below(2);
        let names = (0..levels).map(|level| Name::new(&format!("level{level}"))).collect();
        world.topologies.insert(key.clone(), Topology { levels: names });
        for node in world.nodes.keys() {
            let domain = |chance: &mut Chance| {
                let name = *chance.pick(&["a", "a", "b"]);
                (!chance.percent(8)).then(|| Name::new(name))
            };
            let domains: Domains = (0..levels).map(|_| domain(&mut chance)).collect();
            world.domains.insert((node.clone(), key.clone()), domains);
        }
    }
    let keys: Vec<TopologyKey> = world.topologies.keys().cloned().collect();
    for group in world.groups.values_mut() {
        if !chance.percent(70) {
            continue;
        }
        group.minimum = Minimum::Gang;
        let role = &mut group.roles[0];
        role.max = role.max.max(1 + chance.below(3) as u32);
        role.min =
            if chance.percent(75) { role.max } else { 1 + chance.below(role.max as usize) as u32 };
        if chance.percent(30) && role.max < 3 {
            let mut other = role.clone();
            (other.min, other.max) = (1, 1);
            let mut request = (*other.request).clone();
            request.resources.cpu_milli = 1 - request.resources.cpu_milli.min(1);
            if chance.percent(50) {
                request.claims = Box::default();
            }
            other.request = Shared::new(request);
            group.roles.push(other);
        }
        grow_in_parts(group, &mut chance);
        any_of_them(group, &mut chance);
        for role in &mut group.roles {
            let mut request = (*role.request).clone();
            // No two pods have one claim on a volume that was made for one of them.
            for volume in &mut request.volumes {
                if let VolumeUse::Ephemeral(of) = volume {
                    of.claim = None;
                }
            }
            // Claims that are made for the group, or that it names.
            let shared = chance.percent(40);
            for claim in request.claims.iter_mut().filter(|_| shared) {
                if let ClaimUse::Named(key) = claim {
                    *claim = ClaimUse::PerGroup(key.clone());
                }
            }
            role.request = Shared::new(request);
        }
        for _ in 0..*chance.pick(&[0, 1, 1, 2]) {
            let Some(topology) = (!keys.is_empty()).then(|| chance.pick(&keys).clone()) else {
                break;
            };
            let levels = world.topologies[&topology].levels.len();
            group.rules.push(LevelRule {
                topology,
                level: chance.below(levels) as u16,
                required: chance.percent(60),
                roles: if chance.percent(15) { [0].into() } else { Box::default() },
                segment: chance.percent(20).then_some(2),
            });
        }
    }
    world
}

/// Gives some groups parts of which not all must start: what a role has beyond its minimum, members of
/// another role, or of both; or choices of which any is enough.
fn grow_in_parts(group: &mut Group, chance: &mut Chance) {
    if !chance.percent(40) {
        return;
    }
    let part = |at: usize, least: &[(u16, u32)], under| Part {
        name: Name::new(&format!("p{at}")),
        least: least.into(),
        under,
        ..Part::default()
    };
    let (first, most) = (group.roles[0].clone(), group.roles[0].max);
    let parts = &mut group.parts;
    if group.roles.len() > 1 || first.min < most {
        if chance.percent(50) && first.min < most {
            parts.all.push(part(0, &[(0, first.min + 1)], None));
        }
        if group.roles.len() > 1 {
            group.roles[1].min = 0;
            parts.all.push(part(1, &[(0, most), (1, 1)], None));
        }
    } else if most <= 2 {
        let mut other = first.clone();
        (other.min, other.max) = (0, 2);
        group.roles.push(other.clone());
        match chance.below(6) {
            0 => parts.all.push(part(0, &[(1, 2)], None)),
            1 => parts.all.extend([part(0, &[(1, 1)], None), part(1, &[(1, 2)], Some(0))]),
            2 => parts.all.push(part(0, &[(1, 1)], None)),
            // Either role, and the other after it.
            at => {
                group.roles[0].min = 0;
                let mut request = (*other.request).clone();
                request.resources.cpu_milli += chance.below(3) as i64 - 1;
                group.roles[1].request = Shared::new(request);
                group.roles[1].max = 1 + chance.below(2) as u32;
                let second = group.roles[1].max;
                parts.all.extend([part(0, &[(0, most)], None), part(1, &[(1, second)], None)]);
                if at == 5 {
                    // Below a part that is nothing but these.
                    let above = Part { fewest: 1, ..part(2, &[], None) };
                    parts.all.iter_mut().for_each(|part| part.under = Some(0));
                    parts.all.insert(0, above);
                }
                // A part without roles of its own may be one that need not start.
                parts.fewest = u32::from(at != 5 || chance.percent(50));
            }
        }
    }
    if chance.percent(50) {
        let own = parts.all.iter().filter(|part| part.under.is_none()).count();
        parts.fewest = parts.fewest.max(chance.below(own + 1) as u32);
    }
    if let Some(last) = parts.all.last_mut() {
        last.held = chance.percent(10);
    }
}

/// Lets some groups of several roles start with any so many of their members, the group itself or a part.
fn any_of_them(group: &mut Group, chance: &mut Chance) {
    let roles: Vec<u16> = (0..group.roles.len() as u16).collect();
    if roles.len() < 2 || !chance.percent(50) {
        return;
    }
    let all: u32 = group.roles.iter().map(|role| role.max).sum();
    let any = AnyOf { roles: roles.clone().into(), least: 1 + chance.below(all as usize) as u32 };
    if group.parts.all.is_empty() {
        group.roles.iter_mut().skip(chance.below(2)).for_each(|role| role.min = 0);
        group.parts.any = [any].into();
    } else if chance.percent(60) {
        // One part, of any of them.
        group.roles.iter_mut().for_each(|role| role.min = 0);
        let least = roles.iter().map(|role| (*role, 0)).collect();
        let name = Name::new("p0");
        let part = Part { name, least, any: [any].into(), ..Part::default() };
        group.parts = Parts { fewest: chance.below(2) as u32, all: vec![part], ..Parts::default() };
    }
    if chance.percent(20) {
        let fault =
            Fault { reason: Reason::QuotaExceeded, subject: Name::new("q"), detail: Name::new("") };
        let role = chance.below(roles.len());
        group.roles[role].admits = Some(Box::new(Admits { most: 0, fault }));
    }
}

/// Holds worlds against a property; what breaks it is told of in a world as small as possible.
pub(super) fn for_gang_worlds(
    seeds: std::ops::Range<u64>,
    mut property: impl FnMut(&World) -> Outcome,
) {
    for seed in seeds {
        let world = gang_world(seed);
        if let Err(wrong) = property(&world) {
            let (small, wrong) = shrink(world, wrong, &mut property);
            panic!("seed {seed}: {wrong}\nin the world\n{small}");
        }
    }
}

#[test]
fn gangs_are_placed_as_brute_force_places_them() {
    let (mut whole, mut short, mut none, mut ruled, mut parted) = (0, 0, 0, 0, 0);
    // Started with parts of which there was a choice; not with the first of them.
    let (mut chosen, mut others) = (0, 0);
    // Started with any of several roles; with more than must; without the first member.
    let (mut any, mut beyond, mut not_the_first) = (0, 0, 0);
    for_gang_worlds(600_000..601_000, |world| {
        for fate in against_brute_force(&BEST, world)? {
            let group = &world.groups[&fate.group];
            if group.minimum == Minimum::Gang {
                ruled += u32::from(!group.rules.is_empty());
                let in_part = fate.missing > 0 && !fate.seats.is_empty();
                parted += u32::from(!group.parts.all.is_empty() && in_part);
                let parts = &group.parts;
                let of = |part: &Part| part.least.first().map(|(role, _)| *role);
                let first = parts.all.iter().find(|part| !part.least.is_empty()).and_then(of);
                let choice = parts.fewest > 0 && parts.all.len() > parts.fewest as usize;
                if choice && !fate.seats.is_empty() {
                    chosen += 1;
                    others += u32::from(!fate.seats.iter().any(|seat| Some(seat.role) == first));
                }
                let quotas =
                    || parts.any.iter().chain(parts.all.iter().flat_map(|part| &*part.any));
                if let Some(of) = quotas().next()
                    && !fate.seats.is_empty()
                {
                    any += 1;
                    beyond += u32::from(fate.seats.len() as u32 > of.least);
                    not_the_first += u32::from(!fate.seats.iter().any(|seat| seat.role == 0));
                }
                let count = match (fate.missing, fate.fit) {
                    (0, _) => &mut whole,
                    (_, 0) => &mut none,
                    _ => &mut short,
                };
                *count += 1;
            }
        }
        Ok(())
    });
    println!(
        "gangs: {whole} whole, {short} short, {none} without any member; {ruled} with rules, \
         {parted} short with parts; {chosen} of a choice, {others} not with the first; {any} with any, \
         {beyond} with more than must, {not_the_first} without the first"
    );
    assert!(any > 40 && beyond > 10 && not_the_first > 3);
    assert!(chosen > 20 && others > 3);
    assert!(whole > 200 && short > 70 && ruled > 200 && parted > 30);
}

/// The group that goes first, alone in what waits.
fn first_alone(world: &World) -> Option<World> {
    let first = world.queue().into_iter().next()?;
    let mut alone = world.clone();
    alone.members.retain(|_, member| member.group == first || !member.phase.is_pending());
    for (key, group) in &mut alone.groups {
        if *key != first {
            group.roles.iter_mut().for_each(|role| (role.min, role.max) = (0, 0));
        }
    }
    (alone.groups[&first].minimum == Minimum::Gang && alone.queue() == [first]).then_some(alone)
}

/// What is counted and searched, rather than gone through for the cheapest, is found all the same; and of
/// more choices than are gone through it is never said that there is no place where there is one.
#[test]
fn counting_and_revisiting_find_what_brute_force_finds() {
    let (mut placed, mut none, mut undecided, mut of_few) = (0, 0, 0, 0);
    for_gang_worlds(640_000..641_000, |world| {
        let Some(world) = first_alone(world) else { return Ok(()) };
        let key = world.queue().remove(0);
        let board = Board::new(&world, &BEST);
        let starts = board.starts(&key).len() as u64;
        let fate = board.decide().remove(0);
        let mut engine = engine_of(&world);
        // Not every order of roles is searched in which pods of one mean something to those of another.
        let of = &world.groups[&key].roles;
        let apart = of.len() > 1 && of.iter().any(|role| role.request.near.is_some());
        for choices in [Effort::default().choices, 2, 1] {
            let effort = Effort { ways: 0, choices, ..Effort::default() };
            let decision = engine.decide(&BEST, NOW, effort);
            let violations = audit(engine.state(), &decision);
            let [(_, verdict)] = &decision.verdicts[..] else {
                return Err(format!("{:?}", decision.verdicts));
            };
            let found = matches!(verdict, Verdict::Placed { .. });
            let gave_up = matches!(verdict, Verdict::GaveUp(..));
            if gave_up && !apart && starts <= choices || !violations.is_empty() {
                return Err(format!("{choices}: {verdict:?}, {violations:?}"));
            }
            if gave_up {
                *(if apart { &mut undecided } else { &mut of_few }) += 1;
                continue;
            }
            if found == fate.seats.is_empty() {
                return Err(format!("{choices}: {verdict:?}\nbrute force: {fate:#?}"));
            }
            *(if found { &mut placed } else { &mut none }) += 1;
            same(
                "without caches",
                &plain(decision),
                &plain(decide_fresh(engine.state(), &BEST, NOW, effort)),
            )?;
        }
        Ok(())
    });
    println!("{placed} placed, {none} not, {undecided} undecided, {of_few} for more choices");
    assert!(placed > 450 && none > 150 && undecided < 30 && of_few < 120);
}

/// Moves a seat of a group that is kept in one domain to a node of another.
fn torn(world: &World, mut decision: Decision) -> Option<Decision> {
    for act in &mut decision.acts {
        let Act::Place(group, seats, _) = act else { continue };
        let rules = &world.groups[group].rules;
        let Some(rule) = rules.iter().find(|rule| {
            let known = world.topologies.contains_key(&rule.topology);
            known && rule.required && rule.roles.is_empty() && rule.segment.is_none()
        }) else {
            continue;
        };
        let domain = |node: &NodeKey| {
            let domains = world.domains.get(&(node.clone(), rule.topology.clone()));
            domains.map(|domains| domains[..=usize::from(rule.level)].to_vec())
        };
        let (Some(seat), true) = (seats.first().cloned(), seats.len() > 1) else { continue };
        if let Some(other) = world.nodes.keys().find(|node| domain(node) != domain(&seat.node)) {
            seats[0].node = other.clone();
            return Some(decision);
        }
    }
    None
}

/// Takes one seat away of a part that is there whole.
fn halved(world: &World, decision: &Decision) -> Option<Decision> {
    let mut decision = decision.clone();
    for act in &mut decision.acts {
        let Act::Place(group, seats, _) = act else { continue };
        let fact = &world.groups[group];
        let of_part = |part: &Part| {
            let all: u32 = part.least.iter().map(|(_, least)| least).sum();
            let own =
                part.least.iter().find(|(role, _)| fact.roles[usize::from(*role)].min == 0)?;
            (all > 1 && part.under.is_none() && fact.parts.all.len() == 1).then_some(own.0)
        };
        let Some(role) = fact.parts.all.iter().find_map(of_part) else { continue };
        let new = seats.iter().filter(|seat| seat.role == role).count() as u32;
        let (least, bound) =
            (fact.parts.all[0].least.to_vec(), world.bound(group, usize::from(role)));
        let others = least.iter().any(|(of, _)| *of != role && seats.iter().any(|s| s.role == *of));
        if bound == 0 && new > 0 && (new > 1 || others) {
            let last = seats.iter().rposition(|seat| seat.role == role)?;
            if others && new == 1 {
                // Of the other role what is beyond its minimum stays.
                let beyond = |of: u16| {
                    let role = usize::from(of);
                    let here = seats.iter().filter(|seat| seat.role == of).count() as u32;
                    here > fact.roles[role].min && world.bound(group, role) == 0
                };
                least.iter().find(|(of, _)| *of != role && beyond(*of))?;
            }
            seats.remove(last);
            return Some(decision);
        }
    }
    None
}

#[test]
fn the_audit_sees_a_group_that_is_torn_apart() {
    let (mut seen, mut parts) = (0, 0);
    for_gang_worlds(620_000..620_600, |world| {
        let mut engine = engine_of(world);
        let decision = decide(&mut engine, &BEST);
        let violations = audit(engine.state(), &decision);
        if !violations.is_empty() {
            return Err(format!("{violations:?} in {:?}", decision.acts));
        }
        if let Some(halved) = halved(world, &decision) {
            parts += 1;
            let violations = format!("{:?}", audit(engine.state(), &halved));
            if !violations.contains("so many parts as start") {
                return Err(format!("{violations} in {:?}", halved.acts));
            }
        }
        if let Some(torn) = torn(world, decision) {
            seen += 1;
            let violations = format!("{:?}", audit(engine.state(), &torn));
            if !violations.contains("one domain") {
                return Err(format!("{violations} in {:?}", torn.acts));
            }
        }
        Ok(())
    });
    assert!(seen > 5 && parts > 5, "{seen}, {parts}");
}

/// A device of which selectors can tell its kind.
fn of_kind(kind: u32) -> Device {
    let traits = Traits {
        profile: ProfileId(kind),
        attributes: Box::default(),
        capacity: Box::default(),
        counters: Box::default(),
        taints: Box::default(),
        place: Place::default(),
        shareable: false,
        binds_to_node: false,
        binding: None,
        reach: None,
        access: Access::Open,
        groups: Box::default(),
    };
    Device { name: Name::new(&format!("g{kind}")), traits: Shared::new(traits) }
}

/// So many members that ask for a device of which a selector says yes.
fn role_of(selector: u32, count: u32) -> Role {
    let alternative = Alternative {
        name: None,
        class: Name::new("class"),
        selectors: [SelectorId(selector)].into(),
        class_selectors: 1,
        amount: Amount::Count(1),
        admin: false,
        tolerations: Box::default(),
        capacity: Box::default(),
        derived: Box::default(),
    };
    let request = DeviceRequest { name: Name::new("r"), alternatives: [alternative].into() };
    let (constraints, align) = (Box::default(), Box::default());
    let spec = ClaimSpec { requests: [request].into(), constraints, align, fault: None };
    let resources = Resources { pods: 1, ..Resources::default() };
    let claims = [ClaimUse::Own(Shared::new(spec))].into();
    Role {
        name: Name::new(&format!("r{selector}")),
        request: Shared::new(Request { resources, claims, ..Request::default() }),
        min: count,
        max: count,
        segment: None,
        first_rank: 0,
        admits: None,
    }
}

/// Nodes with a device of each of these kinds, and a gang of three roles of which each takes the kinds
/// that its selector says yes to.
pub(super) fn of_three_roles(nodes: &[&[u32]], kinds: [&[u32]; 3]) -> World {
    let mut world = World::default();
    for (at, devices) in nodes.iter().enumerate() {
        let key = Name::new(&format!("n{at}"));
        make::add_user(&mut world, &make::pod("u"), &ClaimKey(make::scoped("c")));
        let mut node = world.nodes.values().next().unwrap().clone();
        node.allocatable.pods = 110;
        world.nodes.insert(NodeKey(key.clone()), node);
        let slice = Slice {
            name: key.clone(),
            generation: 1,
            slice_count: 1,
            reach: Reach::Node(NodeKey(key.clone())),
            devices: devices.iter().map(|kind| of_kind(*kind)).collect(),
            counters: Box::default(),
            granting: Granting::Always,
            opaque: false,
        };
        let pool = PoolKey { driver: Name::new("gpu"), pool: key };
        world.pools.insert(pool, Pool { slices: vec![slice] });
    }
    world.members.clear();
    let mut roles = Vec::new();
    for (at, yes) in (0..).zip(kinds) {
        for kind in 0..3 {
            let says = if yes.contains(&kind) { Match::Yes } else { Match::No };
            world.matches.insert((SelectorId(at), ProfileId(kind)), says);
        }
        roles.push(role_of(at, nodes.len() as u32));
    }
    let (key, group) = world.groups.iter_mut().next().unwrap();
    for (role, of) in (0..).zip(&roles) {
        for at in 0..of.max {
            let member = Member {
                group: key.clone(),
                role,
                index: None,
                phase: Phase::Pending,
                claims: [None].into(),
                expected_end: None,
                nominated: None,
            };
            world.members.insert(make::pod(&format!("{}-{at}", of.name)), member);
        }
    }
    (group.roles, group.minimum) = (roles, Minimum::Gang);
    world
}

/// Neither order of the roles finds a place for all by itself: who may have two kinds takes the one that
/// another needs (kubernetes#138765).
#[test]
fn a_choice_that_leaves_no_place_for_the_rest_is_taken_back() {
    let kinds: [&[u32]; 3] = [&[0, 1], &[0], &[0, 2]];
    let all: &[u32] = &[0, 1, 2];
    let decision = decide(&mut engine_of(&of_three_roles(&[all; 4], kinds)), &BEST);
    assert!(matches!(decision.verdicts[..], [(_, Verdict::Placed { .. })]), "{decision:?}");
    // One node without the kind that the first role can do with.
    let lacking = of_three_roles(&[all, all, all, &[0, 2]], kinds);
    let decision = decide(&mut engine_of(&lacking), &BEST);
    assert!(matches!(decision.verdicts[..], [(_, Verdict::Refused(_))]), "{decision:?}");
}

/// Of nodes that are alike the one is taken that breaks up least, however many stand before it by name;
/// and what is remembered of them says what is worked out anew.
#[test]
fn a_rack_in_use_is_found_behind_many_that_are_free() {
    let all: &[u32] = &[0, 1];
    let mut world = of_three_roles(&[all; 100], [all, all, all]);
    let tree = TopologyKey(Name::new("racks"));
    world.topologies.insert(tree.clone(), Topology { levels: vec![Name::new("rack")] });
    let key = |at: usize| NodeKey(Name::new(&format!("n{at}")));
    for at in 0..100 {
        let rack = Name::new(if at < 90 { "a" } else { "b" });
        world.domains.insert((key(at), tree.clone()), [Some(rack)].into());
    }
    let (group, mut fact) = world.groups.pop_first().unwrap();
    fact.roles.truncate(1);
    (fact.roles[0].min, fact.roles[0].max) = (2, 2);
    world.members.retain(|_, member| member.role == 0);
    while world.members.len() > 2 {
        world.members.pop_last();
    }
    let mut other = fact.clone();
    other.minimum = Minimum::Each;
    (other.roles[0].min, other.roles[0].max) = (1, 1);
    let mut request = (*other.roles[0].request).clone();
    request.claims = Box::default();
    request.resources.scalars = [(Name::new("example.com/gpu"), 1)].into();
    other.roles[0].request = Shared::new(request);
    let of_other = GroupKey { object: make::scoped("other"), kind: group.kind.clone() };
    let running = Member {
        group: of_other.clone(),
        role: 0,
        index: None,
        phase: Phase::Bound(key(95)),
        claims: Box::default(),
        expected_end: None,
        nominated: None,
    };
    world.members.insert(make::pod("other"), running);
    world.groups.extend([(group, fact), (of_other, other)]);
    let mut engine = engine_of(&world);
    let anew = fresh(engine.state(), &BEST);
    let decision = decide(&mut engine, &BEST);
    same("without caches", &decision, &anew).unwrap();
    let [Act::Place(_, seats, cost)] = &decision.acts[..] else { panic!("{decision:?}") };
    // Node 95 has both devices free as well and is in use already.
    assert!(seats.iter().all(|seat| seat.node == key(95)), "{seats:?}");
    assert_eq!(cost.harm.fragmentation, 0);
}

/// A role of one member that may start, with what it asks.
pub(super) fn of_one(name: &str, resources: Resources) -> Role {
    Role {
        name: Name::new(name),
        request: Shared::new(Request { resources, ..Request::default() }),
        min: 0,
        max: 1,
        segment: None,
        first_rank: 0,
        admits: None,
    }
}

/// A node with so much CPU, and a gang of members that ask for so much of it, of which any so many start.
fn any_of(cpus: std::ops::Range<i64>, least: u32, free: i64) -> World {
    let mut world = of_three_roles(&[&[0]], [&[0], &[0], &[0]]);
    world.members.clear();
    world.pools.clear();
    world.nodes.values_mut().for_each(|node| node.allocatable.cpu_milli = free);
    let group = world.groups.values_mut().next().unwrap();
    let role = |cpu_milli: i64| {
        let resources = Resources { pods: 1, cpu_milli, ..Resources::default() };
        of_one(&format!("r{cpu_milli}"), resources)
    };
    group.roles = cpus.map(role).collect();
    let roles = (0..group.roles.len() as u16).collect();
    group.parts = Parts { any: [AnyOf { roles, least }].into(), ..Parts::default() };
    world
}

/// The eight that ask least of sixteen ask for 44: more choices than are tried, and counting tells of all.
#[test]
fn that_any_so_many_find_no_place_is_counted() {
    let decision = decide(&mut engine_of(&any_of(2..18, 8, 44)), &BEST);
    let [Act::Place(_, seats, _)] = &decision.acts[..] else { panic!("{decision:?}") };
    let roles: Vec<u16> = seats.iter().map(|seat| seat.role).collect();
    assert_eq!(roles, (0..8).collect::<Vec<u16>>());
    let decision = decide(&mut engine_of(&any_of(2..18, 8, 43)), &BEST);
    assert!(matches!(decision.verdicts[..], [(_, Verdict::Refused(_))]), "{decision:?}");
}

/// Of four of which one must start as many start as there is room for, those that leave room for most.
#[test]
fn as_many_start_as_there_is_room_for() {
    let roles_with = |free: i64| -> Vec<u16> {
        let decision = decide(&mut engine_of(&any_of(1..5, 1, free)), &BEST);
        let [Act::Place(_, seats, _)] = &decision.acts[..] else { return Vec::new() };
        seats.iter().map(|seat| seat.role).collect()
    };
    let of = |free: i64, roles: &[u16]| assert_eq!(roles_with(free), roles, "{free}");
    of(0, &[]);
    of(2, &[0]);
    of(3, &[0, 1]);
    of(5, &[0, 1]);
    of(6, &[0, 1, 2]);
    of(9, &[0, 1, 2]);
    of(10, &[0, 1, 2, 3]);
}
