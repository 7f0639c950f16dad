//! kube-scheduler's scores, for comparison: the plugins of its default profile with their weights,
//! each from 0 to 100 over the nodes that fit, in its own arithmetic.
//!
//! What the scores alone look at (images, spread by default) is given by lowering where it is told that
//! nodes are scored. Of equal totals the first node by name is taken, where kube-scheduler takes one
//! by its order of nodes.

use std::sync::Arc;

use super::search::Ask;
use crate::check::fact::{term_matches, tolerated};
use crate::check::spread::{Grid, Lacking, Spread};
use crate::check::volumes as mounted;
use crate::cost::Cost;
use crate::facts::{Effect, Node, Toleration};
use crate::name::{Name, NodeKey};
use crate::scored::ALTERNATIVES_MAX;
use crate::state::{Ledger, State};

/// The highest score of a plugin.
const MOST: i64 = 100;

/// A node that fits: the rank of its name, its slot, and what a seat there costs.
pub(super) type Candidate = (u32, u32, Cost);

/// The node with the highest total, the first by name among equals.
pub(super) fn best(state: &State, ask: &Ask, nodes: &[Candidate]) -> Option<u32> {
    let totals = totals(state, ask, nodes);
    let all = nodes.iter().zip(totals);
    let best = all.max_by_key(|((rank, ..), total)| (*total, std::cmp::Reverse(*rank)));
    best.map(|((_, slot, _), _)| *slot)
}

/// The weighted sum of each node's scores.
pub(super) fn totals(state: &State, ask: &Ask, nodes: &[Candidate]) -> Vec<i64> {
    let mut totals = vec![0; nodes.len()];
    let mut add = |weight: i64, scores: Vec<i64>| {
        for (total, score) in totals.iter_mut().zip(scores) {
            *total += weight * score;
        }
    };
    let slots: Vec<u32> = nodes.iter().map(|(_, slot, _)| *slot).collect();
    add(3, taints(state, ask, &slots));
    add(2, node_affinity(state, ask, &slots));
    add(1, of_each(state, &slots, |node, ledger| least_allocated(ask, node, ledger)));
    add(1, balanced(state, ask, &slots));
    add(2, ask.pod_affinity_scores(state, &slots));
    add(2, ask.spread_scores(state, &slots));
    add(2, spread_by_default(state, ask, &slots));
    add(2, devices(ask, nodes));
    add(1, volumes(state, ask, &slots));
    add(1, images(state, ask, &slots));
    totals
}

fn of_each(state: &State, slots: &[u32], of: impl Fn(&Node, &Ledger) -> i64) -> Vec<i64> {
    let score = |slot: &u32| {
        let row = state.nodes.at(*slot);
        row.fact.as_ref().map_or(0, |node| of(node, &row.ledger))
    };
    slots.iter().map(score).collect()
}

/// Raw scores as parts of the highest, or of what is missing to it (`DefaultNormalizeScore`).
fn normalized(raw: Vec<i64>, reverse: bool) -> Vec<i64> {
    let most = raw.iter().copied().max().unwrap_or(0);
    let part = |score: i64| match (most, reverse) {
        (0, true) => MOST,
        (0, false) => score,
        (_, true) => MOST - MOST * score / most,
        (_, false) => MOST * score / most,
    };
    raw.into_iter().map(part).collect()
}

/// TaintToleration: fewer `PreferNoSchedule` taints that are not tolerated are better.
fn taints(state: &State, ask: &Ask, slots: &[u32]) -> Vec<i64> {
    let soft = |toleration: &&Toleration| {
        toleration.effect.is_none_or(|effect| effect == Effect::PreferNoSchedule)
    };
    let tolerations: Vec<Toleration> =
        ask.request.node.tolerations.iter().filter(soft).cloned().collect();
    let raw = of_each(state, slots, |node, _| {
        let repelling = node.taints.iter().filter(|taint| {
            taint.effect == Effect::PreferNoSchedule && !tolerated(&tolerations, taint)
        });
        repelling.count() as i64
    });
    normalized(raw, true)
}

/// NodeAffinity: the weights of the preferred terms that match.
fn node_affinity(state: &State, ask: &Ask, slots: &[u32]) -> Vec<i64> {
    let raw = slots.iter().map(|slot| {
        let (key, row) = (state.nodes.key(*slot), state.nodes.at(*slot));
        let labels = row.fact.as_ref().map_or(&[][..], |node| &node.labels);
        let met = ask
            .request
            .node
            .preferred
            .iter()
            .filter(|(_, term)| !term.is_empty() && term_matches(term, key, labels));
        met.map(|(weight, _)| i64::from(*weight)).sum()
    });
    normalized(raw.collect(), false)
}

/// NodeResourcesFit with LeastAllocated: the mean of what would be left of CPU and memory, where a
/// container without a request counts as if it asked a little.
fn least_allocated(ask: &Ask, node: &Node, ledger: &Ledger) -> i64 {
    let padded = &ask.request.padded;
    let (mut sum, mut of) = (0, 0);
    for (allocatable, used) in [
        (node.allocatable.cpu_milli, ledger.padded.0.saturating_add(padded.asked.0)),
        (node.allocatable.memory_bytes, ledger.padded.1.saturating_add(padded.asked.1)),
    ] {
        if allocatable <= 0 {
            continue;
        }
        of += 1;
        if used <= allocatable {
            sum += ((i128::from(allocatable) - i128::from(used)) * 100 / i128::from(allocatable))
                as i64;
        }
    }
    if of == 0 { 0 } else { sum / of }
}

/// NodeResourcesBalancedAllocation: how much evener the pod makes the use of CPU and memory.
fn balanced(state: &State, ask: &Ask, slots: &[u32]) -> Vec<i64> {
    let asked = &ask.request.resources;
    if asked.cpu_milli == 0 && asked.memory_bytes == 0 {
        return vec![0; slots.len()];
    }
    of_each(state, slots, |node, ledger| {
        let evenness = |cpu: i64, memory: i64| {
            let mut parts =
                [(cpu, node.allocatable.cpu_milli), (memory, node.allocatable.memory_bytes)]
                    .into_iter()
                    .filter(|(_, allocatable)| *allocatable > 0)
                    .map(|(used, allocatable)| (used as f64 / allocatable as f64).min(1.0));
            let deviation = match (parts.next(), parts.next()) {
                (Some(a), Some(b)) => ((a - b) / 2.0).abs(),
                (Some(_) | None, _) => 0.0,
            };
            ((1.0 - deviation) * 100.0) as i64
        };
        let with = evenness(
            ledger.cpu_milli.saturating_add(asked.cpu_milli),
            ledger.memory_bytes.saturating_add(asked.memory_bytes),
        );
        let without = evenness(ledger.cpu_milli, ledger.memory_bytes);
        50 + (50 + with - without) / 2
    })
}

/// DynamicResources: earlier choices of `firstAvailable` lists are better. Those of claims that are
/// allocated count beside those that are to be made, and not by themselves.
fn devices(ask: &Ask, nodes: &[Candidate]) -> Vec<i64> {
    if ask.wanted.claims.is_empty() {
        return vec![0; nodes.len()];
    }
    let made: u32 = ask.pinned.iter().map(|claim| claim.early).sum();
    let requests = ask.wanted.claims.iter().flat_map(|(_, spec)| &spec.requests);
    let lists = requests.filter(|r| r.alternatives.iter().any(|a| a.name.is_some())).count();
    let most = i64::from(made) + i64::from(ALTERNATIVES_MAX) * lists as i64;
    let raw = nodes.iter().map(|(.., cost)| (most - i64::from(cost.alternatives)).max(0));
    normalized(raw.collect(), false)
}

/// PodTopologySpread of a pod that says nothing of spread.
fn spread_by_default(state: &State, ask: &Ask, slots: &[u32]) -> Vec<i64> {
    let rules = ask.request.scored.as_ref().map_or(&[][..], |scored| &scored.spread);
    let grid = || Arc::new(Grid::new(state, &ask.request.node, rules, Lacking::Nameless));
    let spread = if rules.is_empty() { None } else { Spread::of(state, rules, &grid()) };
    spread.map_or_else(|| vec![0; slots.len()], |spread| spread.scores(state, rules, slots))
}

/// VolumeBinding: volumes that are less full than others are better.
fn volumes(state: &State, ask: &Ask, slots: &[u32]) -> Vec<i64> {
    let Some(mounts) = &ask.mounts else { return vec![0; slots.len()] };
    slots.iter().map(|slot| mounted::score(state, mounts, *slot)).collect()
}

/// Images smaller than this are as good as missing; in bytes.
const IMAGE_LEAST: i64 = 23 << 20;
/// Larger images count no more; in bytes.
const IMAGE_MOST: i64 = 1000 << 20;

/// ImageLocality: nodes that have the pod's images are better, the larger and the more common these
/// are. An image has one size everywhere, that which the first node by name says.
fn images(state: &State, ask: &Ask, slots: &[u32]) -> Vec<i64> {
    let asked = ask.request.scored.as_ref().map_or(&[][..], |scored| &scored.images);
    let worth: Vec<i64> = asked.iter().map(|image| image_worth(state, image)).collect();
    if worth.iter().all(|worth| *worth == 0) {
        return vec![0; slots.len()];
    }
    let most = IMAGE_MOST.saturating_mul(asked.len() as i64);
    of_each(state, slots, |node, _| {
        let here = asked.iter().zip(&worth).filter(|(image, _)| size_on(node, image).is_some());
        let sum = here.fold(0_i64, |sum, (_, worth)| sum.saturating_add(*worth));
        let sum = i128::from(sum.clamp(IMAGE_LEAST, most) - IMAGE_LEAST);
        (i128::from(MOST) * sum / i128::from(most - IMAGE_LEAST)) as i64
    })
}

/// What it is worth to have an image: its size, by the part of the nodes that have it.
fn image_worth(state: &State, image: &Name) -> i64 {
    let mut nodes = 0_u32;
    let mut having: Vec<(&NodeKey, i64)> = Vec::new();
    for (_, key, row) in state.nodes.iter() {
        let Some(node) = &row.fact else { continue };
        nodes += 1;
        having.extend(size_on(node, image).map(|size| (key, size)));
    }
    let Some((_, size)) = having.iter().min_by_key(|(key, _)| *key) else { return 0 };
    (*size as f64 * (having.len() as f64 / f64::from(nodes))) as i64
}

fn size_on(node: &Node, image: &Name) -> Option<i64> {
    let at = node.images.binary_search_by(|(name, _)| name.cmp(image)).ok()?;
    Some(node.images[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::claims::{Pinned, Resolved, Wanted};
    use crate::scored::place;
    use crate::{
        Alternative, Amount, Change, ClaimKey, ClaimSpec, DeviceKey, DeviceRequest, Engine, Grant,
        Name, NodeKey, NodeRequirement, NodeRules, Padded, PoolKey, Request, Resources, Scoped,
        Scored, Shared, Taint,
    };

    const GI: i64 = 1 << 30;

    fn node(cpu_milli: i64, labels: &[(&str, &str)]) -> Node {
        let allocatable =
            Resources { cpu_milli, memory_bytes: 8 * GI, pods: 9, ..Resources::default() };
        let labels = labels.iter().map(|(key, value)| (Name::new(key), Name::new(value))).collect();
        Node { allocatable, labels, ..Node::default() }
    }

    fn request() -> Request {
        let resources =
            Resources { cpu_milli: 1000, memory_bytes: 2 * GI, pods: 1, ..Resources::default() };
        let padded = Padded { asked: (1000, 2 * GI), held: (1000, 2 * GI) };
        Request { resources, padded, ..Request::default() }
    }

    fn scores(nodes: &[Node], request: Request) -> Vec<i64> {
        let costs = vec![Cost::default(); nodes.len()];
        scores_with(nodes, &costs, request, |_| Resolved::default())
    }

    fn scores_with(
        nodes: &[Node],
        costs: &[Cost],
        request: Request,
        resolved: impl Fn(&State) -> Resolved,
    ) -> Vec<i64> {
        let mut engine = Engine::new();
        let key = |at: usize| NodeKey(Name::new(&format!("n{at}")));
        let facts = nodes.iter().enumerate();
        engine.apply(facts.map(|(at, node)| Change::Node(key(at), Some(node.clone()))));
        let state = engine.state();
        let candidate = |(at, cost): (usize, &Cost)| {
            let slot = state.nodes.slot(&key(at)).expect("a node");
            (at as u32, slot, *cost)
        };
        let ask = Ask::new(0, Shared::new(request), resolved(state));
        let all: Vec<Candidate> = costs.iter().enumerate().map(candidate).collect();
        totals(state, &ask, &all)
    }

    /// By hand: no soft taints 3 · 100; LeastAllocated 75, and (50 + 75) / 2; evenness unchanged 75,
    /// and from 100 to 87, which is 50 + 37 / 2.
    #[test]
    fn free_and_even_nodes_score_higher() {
        assert_eq!(scores(&[node(4000, &[]), node(2000, &[])], request()), [450, 430]);
    }

    #[test]
    fn soft_taints_and_preferred_labels_weigh() {
        let mut repelling = node(4000, &[]);
        let (key, value) = (Name::new("soft"), Name::new(""));
        repelling.taints = [Taint { key, value, effect: Effect::PreferNoSchedule }].into();
        assert_eq!(scores(&[repelling, node(4000, &[])], request()), [150, 450]);
        let here: crate::NodeTerm =
            [NodeRequirement::In(Name::new("zone"), [Name::new("a")].into())].into();
        let there: crate::NodeTerm = [NodeRequirement::Exists(Name::new("zone"))].into();
        let preferred = [(1, here), (3, there)].into();
        let wishing =
            Request { node: NodeRules { preferred, ..NodeRules::default() }, ..request() };
        let nodes = [node(4000, &[("zone", "a")]), node(4000, &[("zone", "b")]), node(4000, &[])];
        assert_eq!(scores(&nodes, wishing), [650, 600, 450]);
    }

    /// By hand: two, one and no taint in the way are 0, 50 and 100 of 100. Only tolerations of this effect
    /// or of all count, and only taints of this effect.
    #[test]
    fn soft_taints_are_counted_but_for_those_tolerated() {
        let tainted = |taints: &[(&str, Effect)]| Node {
            taints: taints
                .iter()
                .map(|(key, effect)| Taint {
                    key: Name::new(key),
                    value: Name::new(""),
                    effect: *effect,
                })
                .collect(),
            ..node(4000, &[])
        };
        let soft = Effect::PreferNoSchedule;
        let nodes = [
            tainted(&[("a", soft), ("b", soft)]),
            tainted(&[("b", soft)]),
            tainted(&[("c", Effect::NoSchedule)]),
        ];
        let tolerating = |effect| {
            let one = Toleration { key: Some(Name::new("a")), equals: None, effect };
            let tolerations = [one].into();
            Request { node: NodeRules { tolerations, ..NodeRules::default() }, ..request() }
        };
        assert_eq!(scores(&nodes, tolerating(Some(Effect::NoExecute))), [150, 300, 450]);
        assert_eq!(scores(&nodes, tolerating(Some(soft))), [150, 150, 450]);
        assert_eq!(scores(&nodes, tolerating(None)), [150, 150, 450]);
    }

    #[test]
    fn a_preference_without_a_rule_says_nothing() {
        let preferred = [(5, crate::NodeTerm::default())].into();
        let wishing =
            Request { node: NodeRules { preferred, ..NodeRules::default() }, ..request() };
        assert_eq!(scores(&[node(4000, &[])], wishing), [450]);
    }

    /// By hand: a pod that asks for CPU alone makes an even node uneven, from 100 to 87, which is
    /// 50 + 37 / 2; a node without memory is as even as before, and has 75 of its CPU left.
    #[test]
    fn what_a_node_or_a_pod_lacks_is_not_balanced() {
        let resources = Resources { cpu_milli: 1000, pods: 1, ..Resources::default() };
        let asking = Request { resources, ..request() };
        assert_eq!(scores(&[node(4000, &[])], asking.clone()), [443]);
        let mut lacking = node(4000, &[]);
        lacking.allocatable.memory_bytes = 0;
        assert_eq!(scores(&[lacking], asking), [450]);
    }

    fn device_request(names: &[Option<&str>]) -> DeviceRequest {
        let alternative = |name: &Option<&str>| Alternative {
            name: name.map(Name::new),
            class: Name::new("class"),
            selectors: Box::default(),
            class_selectors: 0,
            amount: Amount::Count(1),
            admin: false,
            tolerations: Box::default(),
            capacity: Box::default(),
            derived: Box::default(),
        };
        let alternatives = names.iter().map(alternative).collect();
        DeviceRequest { name: Name::new("r"), alternatives }
    }

    fn two_lists_and_another() -> ClaimSpec {
        let list = || device_request(&[Some("large"), Some("small")]);
        ClaimSpec {
            requests: [list(), device_request(&[None]), list()].into(),
            constraints: Box::default(),
            align: Box::default(),
            fault: None,
        }
    }

    /// By hand: two lists are worth 16 and an allocated claim's one 5; with all first choices that is 21,
    /// with 3 later 18, which is 85 of 100, twice.
    #[test]
    fn first_choices_of_lists_score_higher() {
        let costs = [0, 3].map(|alternatives| Cost { alternatives, ..Cost::default() });
        let nodes = [node(4000, &[]), node(4000, &[])];
        let claim = ClaimKey(Scoped { namespace: Name::new("ns"), name: Name::new("c") });
        let pinned = Pinned { claim, nodes: None, movable: false, failed: None, early: 5 };
        let resolved = |claims: &[(u16, ClaimSpec)]| {
            let claims = claims.iter().cloned().map(|(at, spec)| (at, Shared::new(spec))).collect();
            let wanted = Wanted { claims, align: Box::default() };
            Resolved { pinned: vec![pinned.clone()], wanted, mounts: None }
        };
        let with = |claims: &[(u16, ClaimSpec)]| {
            scores_with(&nodes, &costs, request(), |_| resolved(claims))
        };
        assert_eq!(with(&[(0, two_lists_and_another())]), [650, 620]);
        // Where all is allocated nothing is scored.
        assert_eq!(with(&[]), [450, 450]);
    }

    #[test]
    fn a_choice_is_early_by_its_place_in_its_list() {
        let spec = two_lists_and_another();
        assert_eq!(spec.early([(0, 0), (0, 0), (1, 0), (2, 1)]), 8 + 7);
        assert_eq!(spec.early([(1, 0)]), 0);
        let key = DeviceKey {
            pool: PoolKey { driver: Name::new("d"), pool: Name::new("p") },
            device: Name::new("g"),
        };
        let grant =
            Grant { claim: 3, request: 2, alternative: 1, device: key, admin: false, share: None };
        assert_eq!(spec.early([place(&grant)]), 7);
    }

    /// By hand: 200 MiB on both of two nodes and 1000 MiB on one count 200 and 500 of 2 · 1000, of which
    /// 23 count for nothing: 100 · 177 / 1977 and 100 · 677 / 1977.
    #[test]
    fn images_count_by_size_and_by_how_many_nodes_have_them() {
        let with = |images: &[(&str, i64)]| Node {
            images: images.iter().map(|(name, mib)| (Name::new(name), mib << 20)).collect(),
            ..node(4000, &[])
        };
        let images = [Name::new("a"), Name::new("b")].into();
        let scored = Some(Shared::new(Scored { images, ..Scored::default() }));
        let asking = Request { scored, ..request() };
        let nodes = [with(&[("a", 200)]), with(&[("a", 900), ("b", 1000)])];
        assert_eq!(scores(&nodes, asking.clone()), [458, 484]);
        assert_eq!(scores(&[with(&[("b", 20)])], asking), [450]);
    }

    #[test]
    fn a_pod_that_asks_for_nothing_is_padded_and_not_balanced() {
        let padded = Padded { asked: (100, 200 << 20), held: (100, 200 << 20) };
        let nothing = Request { padded, ..Request::default() };
        // 3900 of 4000 and 7992 of 8192 Mi: 97 each.
        assert_eq!(scores(&[node(4000, &[])], nothing), [397]);
    }
}
