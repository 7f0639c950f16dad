//! `lint --advise`: whether counts suffice for what a workload asks, or what of it only DRA can
//! express. Without such a ground no move is recommended, either way.
//!
//! Counts suffice where every set of devices that a node could give is as good as any other: the
//! devices of each node are of one kind, and the paths between them are alike, or it takes one or all.
//! Only nodes that the pods may go to are looked at.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_cel::{COST_LIMIT, Verdict};
use phalanx_engine::{Links, Name, NodeKey, Reach};
use phalanx_objects::core::{Node, PodSpec};
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::resource::{DeviceAllocationMode, DeviceClaim, DeviceRequest};
use phalanx_objects::topology::ALIGN_ANNOTATION;
use phalanx_objects::{Kind, Object, ObjectRef};

use super::asked::{Ask, asks};
use super::bench::{Bench, texts};
use super::claims::{Waiting, holder_of};
use super::nodes::{bears_taints, meets};
use crate::finding::Source;
use crate::lower::{DeviceInfo, extended_asks, is_device_counter};
use crate::words::{count, list};
use crate::world::World;

/// How many nodes a sentence names.
const NODES_SHOWN: usize = 3;

/// What is said of one workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The pod or the workload.
    pub object: ObjectRef,
    /// Where it was read.
    pub source: Source,
    /// What each of its pods asks for: `4 nvidia.com/gpu`, `2 of gpu.nvidia.com`.
    pub asks: Vec<String>,
    /// Whether it asks by claims now.
    pub by_claims: bool,
    /// What only DRA can express; empty where counts suffice.
    pub grounds: Vec<Ground>,
    /// What could not be known, and might be a ground.
    pub unknown: Option<String>,
}

/// Something that a count can't say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ground {
    /// Its kind.
    pub kind: GroundKind,
    /// A sentence.
    pub message: String,
}

/// A kind of ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroundKind {
    /// Devices near each other.
    Align,
    /// Devices that agree on an attribute.
    MatchAttribute,
    /// Devices that differ in an attribute.
    DistinctAttribute,
    /// A kind of device among others on the same node.
    Attribute,
    /// Part of a device's capacity.
    Capacity,
    /// One device for several pods or containers.
    Sharing,
    /// A second choice.
    FirstAvailable,
    /// All devices of a kind, however many.
    All,
    /// Access beside whoever holds the device.
    AdminAccess,
}

impl GroundKind {
    /// Its stable name.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Align => "align",
            Self::MatchAttribute => "matchAttribute",
            Self::DistinctAttribute => "distinctAttribute",
            Self::Attribute => "attribute",
            Self::Capacity => "capacity",
            Self::Sharing => "sharing",
            Self::FirstAvailable => "firstAvailable",
            Self::All => "all",
            Self::AdminAccess => "adminAccess",
        }
    }
}

impl Advice {
    /// `countsSuffice` or `needsDRA`.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        if self.grounds.is_empty() { "countsSuffice" } else { "needsDRA" }
    }

    /// What to do, in a sentence.
    #[must_use]
    pub fn advice(&self) -> String {
        match (self.grounds.is_empty(), self.by_claims) {
            (true, true) => {
                "Counts would suffice as well. That is no ground to move: it may stay as it is."
                    .to_owned()
            }
            (true, false) => "Counts suffice: there is no ground to move to DRA.".to_owned(),
            (false, true) => "Only DRA can express it: it is asked as it must be.".to_owned(),
            (false, false) => {
                "Only DRA can express it: ask for the devices by a ResourceClaimTemplate."
                    .to_owned()
            }
        }
    }
}

/// What is said of each pod and workload that asks for devices and has pods to come, in the order of
/// the input.
#[must_use]
pub fn advise(world: &World) -> Vec<Advice> {
    let bench = Bench::new(world);
    let sites = Sites::of(world);
    let mut all: Vec<Advice> =
        bench.waiting.iter().filter_map(|waiting| one(&bench, &sites, waiting)).collect();
    all.sort_by(|a, b| (a.source.ordinal, &a.object).cmp(&(b.source.ordinal, &b.object)));
    all
}

fn one(bench: &Bench<'_>, sites: &Sites<'_>, waiting: &Waiting<'_>) -> Option<Advice> {
    let mut advice = Advice {
        object: waiting.reference.clone(),
        source: waiting.source.clone(),
        asks: Vec::new(),
        by_claims: false,
        grounds: Vec::new(),
        unknown: None,
    };
    let sites = &sites.open_to(waiting.spec);
    let mut all = 0_i64;
    for entry in &waiting.spec.resource_claims {
        let Some(holder) = holder_of(bench.world, &waiting.reference.namespace, entry) else {
            continue;
        };
        let Some((devices, _)) = holder.device_claim() else { continue };
        advice.by_claims = true;
        of_claim(bench, sites, devices, &mut advice);
        shared(bench.world, waiting, entry, &mut advice);
        let most = devices.requests.iter().map(most_of).fold(0, i64::saturating_add);
        all = all.saturating_add(most);
        if most > 1 {
            wishes_of_claim(holder, &mut advice);
        }
    }
    for asks in extended_asks(waiting.spec) {
        if is_device_counter(&asks.resource) {
            let counts = asks.requests.iter().map(|(_, count)| *count);
            let wanted = counts.fold(0_i64, i64::saturating_add);
            advice.asks.push(format!("{wanted} {}", asks.resource));
            all = all.saturating_add(wanted);
            sites.counted(&asks.resource, wanted, &mut advice);
        }
    }
    // One device alone is near itself.
    if all > 1 {
        wishes(bench.world, waiting, &mut advice);
    }
    advice.grounds.sort();
    advice.grounds.dedup();
    (!advice.asks.is_empty()).then_some(advice)
}

impl Advice {
    /// A wish for nearness, and whose it is.
    fn wish(&mut self, who: &str, wish: &str) {
        let message = format!(
            "{who} wishes for {ALIGN_ANNOTATION}: {wish}, and the devices of a count are chosen by the \
             kubelet, which knows no links."
        );
        self.ground(GroundKind::Align, message);
    }

    fn ground(&mut self, kind: GroundKind, message: String) {
        self.grounds.push(Ground { kind, message });
    }
}

/// Wishes for nearness: of the pod or its workload, else of the first of its groups that has one.
fn wishes(world: &World, waiting: &Waiting<'_>, advice: &mut Advice) {
    let own = waiting.metadata.iter().filter_map(|(metadata, _)| wish_on(metadata));
    let mut all: Vec<(String, &str)> = own.map(|wish| ("It".to_owned(), wish)).collect();
    if all.is_empty() {
        let groups = world.lowering().groups_at(&waiting.reference, &waiting.at);
        let of = groups.into_iter().find_map(|group| {
            let wish = wish_on(world.objects()?.get(&group)?.metadata())?;
            Some((format!("Its group {group}"), wish))
        });
        all.extend(of);
    }
    for (who, wish) in all {
        advice.wish(&who, wish);
    }
}

/// The wish of a claim: its own, or the one that its template gives it.
fn wishes_of_claim(holder: &Object, advice: &mut Advice) {
    let template =
        if let Object::ResourceClaimTemplate(template) = holder { Some(template) } else { None };
    let given = template.and_then(|template| wish_on(&template.spec.metadata));
    if let Some(wish) = given.or_else(|| wish_on(holder.metadata())) {
        advice.wish(&holder.reference().to_string(), wish);
    }
}

fn wish_on(metadata: &ObjectMeta) -> Option<&str> {
    metadata.annotations.get(ALIGN_ANNOTATION).map(|wish| &**wish)
}

/// How many devices a request asks for at most; of all that there are, several.
fn most_of(request: &DeviceRequest) -> i64 {
    let number = |mode: &DeviceAllocationMode, count: i64| {
        if *mode == DeviceAllocationMode::All { i64::MAX } else { count.max(1) }
    };
    let exactly = request.exactly.iter().map(|of| number(&of.allocation_mode, of.count));
    let listed = request.first_available.iter().map(|of| number(&of.allocation_mode, of.count));
    exactly.chain(listed).max().unwrap_or(0)
}

/// What a claim says that a count can't.
fn of_claim(bench: &Bench<'_>, sites: &Open<'_, '_>, claim: &DeviceClaim, advice: &mut Advice) {
    for constraint in &claim.constraints {
        if let Some(attribute) = &constraint.match_attribute {
            let message = format!("Its devices must agree on {attribute}.");
            advice.ground(GroundKind::MatchAttribute, message);
        }
        if let Some(attribute) = &constraint.distinct_attribute {
            let message = format!("Its devices must differ in {attribute}.");
            advice.ground(GroundKind::DistinctAttribute, message);
        }
    }
    for request in &claim.requests {
        let name = &request.name;
        if !request.first_available.is_empty() {
            let message = format!("Request {name} has a list of alternatives.");
            advice.ground(GroundKind::FirstAvailable, message);
        }
        if let Some(exactly) = &request.exactly {
            let class = &exactly.device_class_name;
            let all = exactly.allocation_mode == DeviceAllocationMode::All;
            let wanted = if all { "all".to_owned() } else { exactly.count.max(1).to_string() };
            advice.asks.push(format!("{wanted} of {class}"));
            if all {
                let message = format!("Request {name} asks for all devices that match.");
                advice.ground(GroundKind::All, message);
            }
            if exactly.admin_access == Some(true) {
                let message = format!("Request {name} asks for admin access.");
                advice.ground(GroundKind::AdminAccess, message);
            }
            if exactly.capacity.as_ref().is_some_and(|capacity| !capacity.requests.is_empty()) {
                let message = format!("Request {name} asks for a part of a device's capacity.");
                advice.ground(GroundKind::Capacity, message);
            }
        } else {
            let classes: BTreeSet<&str> =
                request.first_available.iter().map(|sub| sub.device_class_name.as_str()).collect();
            let classes: Vec<String> = classes.into_iter().map(str::to_owned).collect();
            advice.asks.push(format!("one of {}", classes.join(", ")));
        }
    }
    for ask in asks(claim, "") {
        if let Some(nodes) = sites.mixed(bench, &ask) {
            let message = format!(
                "Request {} takes some devices of class {} and not others of the same node ({}).",
                ask.label,
                ask.class,
                shown(&nodes)
            );
            advice.ground(GroundKind::Attribute, message);
        }
    }
}

/// One claim for several pods or containers.
fn shared(
    world: &World,
    waiting: &Waiting<'_>,
    entry: &phalanx_objects::core::PodResourceClaim,
    advice: &mut Advice,
) {
    let uses = |spec: &PodSpec| {
        let all = spec.containers.iter().chain(&spec.init_containers);
        all.filter(|c| c.resources.claims.iter().any(|claim| claim.name == entry.name)).count()
    };
    if uses(waiting.spec) > 1 {
        let message = format!("Several containers share the devices of claim {}.", entry.name);
        advice.ground(GroundKind::Sharing, message);
    }
    let (reference, at) = (&waiting.reference, &waiting.at);
    if let Some(group) = world.lowering().sharer_at(reference, at, &entry.name) {
        let members = world.objects().into_iter().flat_map(|objects| {
            objects.in_namespace(Kind::Pod, &reference.namespace).filter(|object| {
                let Object::Pod(pod) = object else { return false };
                let named = pod.spec.scheduling_group.as_ref();
                named.is_some_and(|of| of.pod_group_name.as_deref() == Some(group.as_str()))
            })
        });
        if world.lowering().pods_wanted(reference, at) > 1 || members.count() > 1 {
            let message = format!(
                "The pods of PodGroup {group} share the devices of its claim {}.",
                entry.name
            );
            advice.ground(GroundKind::Sharing, message);
        }
        return;
    }
    let Some(name) = &entry.resource_claim_name else { return };
    let pods = world.objects().into_iter().flat_map(|o| {
        o.in_namespace(Kind::Pod, &waiting.reference.namespace).filter(|object| {
            let Object::Pod(pod) = object else { return false };
            let mut claims = pod.spec.resource_claims.iter();
            claims.any(|claim| claim.resource_claim_name.as_ref() == Some(name))
        })
    });
    let wanted = u64::from(world.lowering().pods_wanted(&waiting.reference, &waiting.at));
    if wanted > 1 || pods.count() > 1 {
        let message = format!("Several pods share the devices of claim {name}.");
        advice.ground(GroundKind::Sharing, message);
    }
}

/// What is known of the devices of each node.
struct Sites<'w> {
    nodes: BTreeMap<NodeKey, Site<'w>>,
}

/// Those of them that are looked at.
struct Open<'s, 'w> {
    nodes: Vec<(&'s NodeKey, &'s Site<'w>)>,
}

#[derive(Default)]
struct Site<'w> {
    /// The node, where it is in the input.
    node: Option<&'w Node>,
    devices: Vec<DeviceInfo>,
    links: Option<Links>,
    /// Counters of devices, with how many there are.
    counters: BTreeMap<String, i64>,
}

impl<'w> Sites<'w> {
    fn of(world: &'w World) -> Self {
        let mut nodes: BTreeMap<NodeKey, Site<'w>> = BTreeMap::new();
        for device in world.lowering().devices() {
            if let Reach::Node(node) = device.reach.clone() {
                nodes.entry(node).or_default().devices.push(device);
            }
        }
        for (node, counters) in world.lowering().device_counters() {
            nodes.entry(node).or_default().counters = counters;
        }
        for (node, site) in &mut nodes {
            site.links = world.links(node).cloned();
        }
        for object in world.objects().into_iter().flat_map(|objects| objects.of_kind(Kind::Node)) {
            let Object::Node(node) = object else { continue };
            if let Some(site) = nodes.get_mut(&NodeKey(Name::new(&node.metadata.name))) {
                site.node = Some(node);
            }
        }
        Self { nodes }
    }

    /// Those that pods may go to.
    fn open_to(&self, spec: &PodSpec) -> Open<'_, 'w> {
        let open = |site: &Site<'w>| {
            site.node.is_none_or(|node| meets(node, spec) && bears_taints(node, spec))
        };
        Open { nodes: self.nodes.iter().filter(|(_, site)| open(site)).collect() }
    }
}

impl Open<'_, '_> {
    /// What a count of a device plugin does not say of the nodes that have as many.
    fn counted(&self, resource: &str, wanted: i64, advice: &mut Advice) {
        let has = |site: &Site<'_>| site.counters.get(resource).is_some_and(|has| *has >= wanted);
        // Parts of devices, and devices that several pods have, reach each other by no link.
        let linked = wanted > 1 && !is_part(resource);
        let mut apart = Vec::new();
        let mut mixed = Vec::new();
        let mut unknown = Vec::new();
        for (node, site) in self.nodes.iter().filter(|(_, site)| has(site)) {
            let has = site.counters.get(resource).copied().unwrap_or(0);
            if has == wanted {
                continue;
            }
            if site.kinds_of(resource) > 1 {
                mixed.push(node.0.to_string());
            }
            match site.links.as_ref().map(paths) {
                _ if !linked => {}
                Some(paths) if paths > 1 => apart.push(node.0.to_string()),
                Some(1) => {}
                Some(_) | None => unknown.push(node.0.to_string()),
            }
        }
        if !apart.is_empty() {
            let published = self.nodes.iter().any(|(node, site)| {
                apart.contains(&node.0.to_string()) && !site.devices.is_empty()
            });
            let first = if published {
                ""
            } else {
                " No driver for DRA publishes the devices of these nodes yet: one comes first."
            };
            let message = format!(
                "Some sets of {wanted} {resource} are joined by better paths than others ({}), and the \
                 kubelet chooses without knowing them: {ALIGN_ANNOTATION} on a claim chooses the best.\
                 {first}",
                shown(&apart)
            );
            advice.ground(GroundKind::Align, message);
        }
        if !mixed.is_empty() {
            let message = format!(
                "{resource} counts devices of several kinds under one name ({}): a selector tells them \
                 apart.",
                shown(&mixed)
            );
            advice.ground(GroundKind::Attribute, message);
        }
        if !unknown.is_empty() {
            advice.unknown = Some(format!(
                "Nothing is known of the links between devices ({}): with NodeTopology objects it can be \
                 said whether it matters which {wanted} a pod gets.",
                shown(&unknown)
            ));
        }
    }

    /// The nodes on which a request takes some devices of its class and not others.
    fn mixed(&self, bench: &Bench<'_>, ask: &Ask<'_>) -> Option<Vec<String>> {
        texts(ask.selectors).next()?;
        let class = bench.world.lowering().class(ask.class)?.clone();
        let passes = |selectors: &[phalanx_objects::resource::DeviceSelector],
                      device: &DeviceInfo| {
            texts(selectors).all(|(_, text)| {
                let Some(Ok(program)) = bench.program(text) else { return true };
                let asked = bench.world.lowering().with_device(&device.key, |seen| {
                    seen.is_ok_and(|device| {
                        program.evaluate(&device, COST_LIMIT).verdict == Verdict::Yes
                    })
                });
                asked.unwrap_or(false)
            })
        };
        let mixed = self.nodes.iter().filter(|(_, site)| {
            let of_class =
                site.devices.iter().filter(|device| passes(&class.spec.selectors, device));
            let answers: BTreeSet<bool> =
                of_class.map(|device| passes(ask.selectors, device)).collect();
            answers.len() > 1
        });
        let nodes: Vec<String> = mixed.map(|(node, _)| node.0.to_string()).collect();
        (!nodes.is_empty()).then_some(nodes)
    }
}

impl Site<'_> {
    /// How many kinds of devices the node has behind a counter, as far as slices tell: those whose
    /// driver is of the same domain.
    fn kinds_of(&self, resource: &str) -> usize {
        let domain = resource.split('/').next().unwrap_or(resource);
        let own = self.devices.iter().filter(|device| device.key.pool.driver.ends_with(domain));
        let kinds: BTreeSet<Vec<String>> = own.map(kind_of).collect();
        kinds.len()
    }
}

/// Whether a resource counts parts of devices (MIG), or devices that several pods have.
fn is_part(resource: &str) -> bool {
    let id = resource.rsplit('/').next().unwrap_or(resource);
    id.starts_with("mig-") || id.ends_with(".shared")
}

/// What devices of one make have in common: their model and what they hold.
fn kind_of(device: &DeviceInfo) -> Vec<String> {
    const MODEL: [&str; 5] = ["productName", "model", "architecture", "type", "profile"];
    let of_model = device
        .attributes
        .iter()
        .filter(|(name, _)| name.rsplit('/').next().is_some_and(|last| MODEL.contains(&last)));
    let model = of_model.map(|(name, value)| format!("{name}={}", crate::words::attribute(value)));
    let capacity = device.capacity.iter().map(|(name, amount)| format!("{name}={amount}"));
    model.chain(capacity).collect()
}

/// How many kinds of paths there are between accelerators; 0 where nothing is known.
fn paths(links: &Links) -> usize {
    let own: Vec<usize> =
        (0..links.members.len()).filter(|at| links.members[*at].accelerator).collect();
    let mut kinds = BTreeSet::new();
    for (at, a) in own.iter().enumerate() {
        for b in &own[at + 1..] {
            let named = |(x, y, _): &&(u16, u16, _)| (usize::from(*x), usize::from(*y)) == (*a, *b);
            let path = links.pairs.iter().find(named).map(|(_, _, link)| *link);
            let (a, b) = (&links.members[*a].domains, &links.members[*b].domains);
            let near: Vec<Option<bool>> =
                a.iter().zip(b).map(|(a, b)| a.zip(*b).map(|(a, b)| a == b)).collect();
            kinds.insert((path, near));
        }
    }
    kinds.len()
}

/// The first of some nodes.
fn shown(nodes: &[String]) -> String {
    let first: Vec<String> = nodes.iter().take(NODES_SHOWN).cloned().collect();
    match nodes.len().saturating_sub(NODES_SHOWN) {
        0 => list(&first),
        more => format!("{} and {} more", first.join(", "), count(more as u64, "node", "nodes")),
    }
}
