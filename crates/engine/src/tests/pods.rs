//! Rules about other pods, put upon some of the worlds: they are tried by every property.

use super::chance::Chance;
use super::world::World;
use crate::*;

/// Node labels that worlds have.
const KEYS: [&str; 2] = ["zone", "num"];

/// Gives the pods of every sixth world ports and rules about each other, and promises nodes to some.
pub(super) fn rule(world: &mut World, seed: u64) {
    let mut chance = Chance::new(seed ^ 0x00C0_FFEE);
    if !chance.percent(17) {
        return;
    }
    let c = &mut chance;
    for role in world.groups.values_mut().flat_map(|group| &mut group.roles) {
        let mut request = (*role.request).clone();
        // Little else stands in the way.
        if c.percent(60) {
            request.claims = Box::default();
            request.fault = None;
        }
        request.matched = (0..3).filter(|_| c.percent(50)).map(PodSelectorId).collect();
        if c.percent(30) {
            request.ports = (0..1 + c.below(2)).map(|_| port(c)).collect();
        }
        if c.percent(70) {
            request.near = Some(Shared::new(rules(c)));
        }
        role.request = Shared::new(request);
    }
    for member in world.members.values_mut() {
        if member.phase.is_pending() && c.percent(30) {
            member.nominated = Some(NodeKey(Name::new(c.word(&["n0", "n1", "n2"]))));
        }
        // Claims that were made stay the claim's own affair.
        let group = world.groups.get(&member.group);
        let claims = group.and_then(|g| g.roles.get(usize::from(member.role)));
        if claims.is_some_and(|role| role.request.claims.is_empty()) {
            member.claims = Box::default();
        }
    }
}

fn port(c: &mut Chance) -> HostPort {
    HostPort {
        port: *c.pick(&[80, 80, 81]),
        protocol: Name::new(c.word(&["TCP", "TCP", "UDP"])),
        address: Name::new(c.word(&["0.0.0.0", "10.0.0.1", "::"])),
    }
}

fn rules(c: &mut Chance) -> PodRules {
    let key = |c: &mut Chance| Name::new(c.word(&["zone", "zone", "num"]));
    let some = |c: &mut Chance| PodSelectorId(c.below(3) as u32);
    let mut rules = PodRules::default();
    if c.percent(35) {
        let all = c.percent(30);
        let keys = KEYS.iter().map(|key| Name::new(key)).filter(|key| all || **key == *"zone");
        rules.affinity = Some(PodAffinity { pods: some(c), keys: keys.collect() });
    }
    let term = |c: &mut Chance| PodTerm { pods: some(c), key: key(c) };
    rules.anti = (0..c.below(5).saturating_sub(2)).map(|_| term(c)).collect();
    let spread = |c: &mut Chance| SpreadRule {
        pods: c.percent(85).then(|| some(c)),
        own: c.percent(60),
        key: key(c),
        max_skew: c.between(1, 2) as i32,
        min_domains: c.between(1, 3) as i32,
        honors_affinity: c.percent(60),
        honors_taints: c.percent(40),
    };
    rules.spread = (0..c.below(5).saturating_sub(2)).map(|_| spread(c)).collect();
    rules.spread_wishes = (0..c.below(4).saturating_sub(2)).map(|_| spread(c)).collect();
    rules.wishes = (0..c.below(4).saturating_sub(1))
        .map(|_| {
            let weight = *c.pick(&[-3, -1, 1, 2]);
            PodWish { pods: some(c), key: key(c), weight }
        })
        .collect();
    rules.welcomes = (0..c.below(3).saturating_sub(1)).map(|_| term(c)).collect();
    rules
}

/// An image that some nodes have, and spread by default.
pub(super) fn scored() -> Scored {
    let rule = |key: &str, max_skew| SpreadRule {
        pods: Some(PodSelectorId(0)),
        own: false,
        key: Name::new(key),
        max_skew,
        min_domains: 1,
        honors_affinity: true,
        honors_taints: false,
    };
    Scored { images: [Name::new("image")].into(), spread: KEYS.map(|key| rule(key, 3)).into() }
}

/// Rules and pods are on every one of a node's labels, so that worlds say something.
#[test]
fn rules_about_pods_decide_some_worlds() {
    let (mut ruled, mut promised) = (0, 0);
    super::for_worlds(0..2_000, |world| {
        let requests = world.groups.values().flat_map(|group| &group.roles);
        ruled += usize::from(requests.clone().any(|role| role.request.near.is_some()));
        promised += usize::from(world.members.values().any(|m| m.nominated.is_some()));
        Ok(())
    });
    assert!(ruled > 200 && promised > 80, "{ruled} ruled, {promised} promised");
}
