//! Links laid over the devices that a node sees: where each sits, and what joins each pair.
//!
//! A device's domain at a level is what links say, else what its own attributes say. What is under one
//! PCIe switch is under one root complex, and what is under one root complex is on one NUMA node:
//! where nobody names the wider domain, the narrower one stands for it.

use rustc_hash::FxHashMap;

use super::shape::{Found, ShapeDevice, canonical, first_seen, ranks};
use crate::facts::{Level, Link, LinkClass, LinkMember, Links, UNNAMED_DOMAIN};
use crate::name::{Name, PoolKey};

/// Numbers from here on are of names that only attributes give.
const OF_ATTRIBUTES: u16 = 1 << 14;

const ISLAND: usize = Level::Island as usize;
const SWITCH: usize = Level::Switch as usize;
const ROOT: usize = Level::Root as usize;
const NUMA: usize = Level::Numa as usize;

/// The devices with their domains, and the links between them.
pub(super) fn overlay(found: &[Found<'_>], links: Option<&Links>) -> (Vec<ShapeDevice>, Vec<Link>) {
    let members = links.map_or(&[][..], |l| &l.members);
    let mut index: FxHashMap<(&PoolKey, &Name), usize> = FxHashMap::default();
    for (at, member) in members.iter().enumerate() {
        if let Some(device) = &member.device {
            index.entry((&device.pool, &device.device)).or_insert(at);
        }
    }
    let member_of: Vec<Option<usize>> =
        found.iter().map(|f| index.get(&(f.of.key, f.device)).copied()).collect();
    let ranks = ranks(found);
    let traits = canonical(found);
    let domains = domains(found, links, &member_of);
    let pairs = links.map_or_else(Vec::new, |l| pairs(l, &member_of, &domains));
    let mut numbers: [Vec<u16>; 5] = Default::default();
    let mut devices = Vec::with_capacity(found.len());
    for (at, (f, traits)) in found.iter().zip(traits).enumerate() {
        let member: Option<&LinkMember> = member_of[at].map(|m| &members[m]);
        let mut domains = domains[at];
        for (domain, known) in domains.iter_mut().zip(&mut numbers) {
            let number = |d: u16| {
                let number = u16::try_from(first_seen(known, d)).ok();
                number.map(|n| n | d & UNNAMED_DOMAIN)
            };
            *domain = domain.and_then(number);
        }
        devices.push(ShapeDevice {
            driver: f.of.key.driver.clone(),
            pool: f.ordinal,
            nic: member.map_or(f.traits.place.nic, |m| m.nic),
            traits,
            rank: ranks[at],
            domains,
            accelerator: member.map(|m| m.accelerator),
            node_local: f.local,
            barred: f.barred.or(f.traits.barred()).cloned(),
        });
    }
    (devices, pairs)
}

/// The domain of each device at each level, by any numbers.
fn domains(
    found: &[Found<'_>],
    links: Option<&Links>,
    member_of: &[Option<usize>],
) -> Vec<[Option<u16>; 5]> {
    let mut known: [Vec<&Name>; 2] = Default::default();
    let named = links.map_or(&[][..], |l| &l.names);
    let mut all = Vec::with_capacity(found.len());
    for (f, member) in found.iter().zip(member_of) {
        let member = links.zip(*member).and_then(|(l, m)| l.members.get(m));
        let mut domains = member.map_or([None; 5], |m| m.domains);
        let place = &f.traits.place;
        let own = [(Level::Root, &place.root), (Level::Numa, &place.numa)];
        for ((level, name), known) in own.into_iter().zip(&mut known) {
            let (None, Some(name)) = (domains[level as usize], name) else { continue };
            let of_links = named.iter().find(|(l, n, _)| *l == level && n == name);
            domains[level as usize] = match of_links {
                Some((.., number)) => Some(*number),
                None => u16::try_from(first_seen(known, name)).ok().map(|n| n | OF_ATTRIBUTES),
            };
        }
        all.push(domains);
    }
    widen(&mut all, SWITCH, ROOT);
    widen(&mut all, ROOT, NUMA);
    all
}

/// Gives those whose domain at `wide` is not known the one of the others in their `narrow` domain;
/// where nobody there knows it, the narrow domain stands for it. Where they contradict each other it
/// stays unknown.
fn widen(all: &mut [[Option<u16>; 5]], narrow: usize, wide: usize) {
    let mut of: FxHashMap<u16, Option<u16>> = FxHashMap::default();
    for domains in all.iter() {
        if let (Some(narrow), Some(wide)) = (domains[narrow], domains[wide]) {
            let one = of.entry(narrow).or_insert(Some(wide));
            *one = one.filter(|known| *known == wide);
        }
    }
    let mut numbers = Vec::new();
    for domains in all.iter_mut() {
        let Some(own) = domains[narrow] else { continue };
        let number = first_seen(&mut numbers, own);
        if domains[wide].is_some() {
            continue;
        }
        domains[wide] = match of.get(&own) {
            Some(of_others) => *of_others,
            None => u16::try_from(number).ok().map(|n| n | UNNAMED_DOMAIN),
        };
    }
}

/// The path of each pair: as links name it, else what the narrowest domain that holds both tells,
/// which is no worse than that.
fn pairs(links: &Links, member_of: &[Option<usize>], domains: &[[Option<u16>; 5]]) -> Vec<Link> {
    if member_of.iter().all(Option::is_none) {
        return Vec::new();
    }
    let mut device_of: Vec<Option<usize>> = vec![None; links.members.len()];
    for (device, member) in member_of.iter().enumerate() {
        if let Some(member) = member {
            device_of[*member].get_or_insert(device);
        }
    }
    let n = member_of.len();
    let mut pairs = vec![Link::UNKNOWN; n * n];
    for a in 0..n {
        for b in 0..a {
            let link = by_domain(links, &domains[a], &domains[b]);
            pairs[a * n + b] = link;
            pairs[b * n + a] = link;
        }
    }
    for (a, b, link) in &links.pairs {
        let device = |m: u16| device_of.get(usize::from(m)).copied().flatten();
        if let (Some(a), Some(b)) = (device(*a), device(*b)) {
            pairs[a * n + b] = *link;
            pairs[b * n + a] = *link;
        }
    }
    pairs
}

fn by_domain(links: &Links, a: &[Option<u16>; 5], b: &[Option<u16>; 5]) -> Link {
    let both = |level: usize| a[level].filter(|domain| b[level] == Some(*domain));
    if let Some(island) = both(ISLAND) {
        let gbps = links.island_gbps.get(usize::from(island)).copied().unwrap_or(0);
        return Link::new(LinkClass::Nvlink, gbps);
    }
    let known =
        [(SWITCH, LinkClass::Switch), (ROOT, LinkClass::HostBridge), (NUMA, LinkClass::Numa)];
    if let Some((_, class)) = known.into_iter().find(|(level, _)| both(*level).is_some()) {
        return class.into();
    }
    let named = |domain: Option<u16>| domain.is_some_and(|d| d < UNNAMED_DOMAIN);
    if named(a[NUMA]) && named(b[NUMA]) { LinkClass::System.into() } else { Link::UNKNOWN }
}
