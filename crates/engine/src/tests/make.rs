//! Worlds by chance: small enough to try everything, with every rule in play.

use std::collections::BTreeSet;

use super::chance::Chance;
use super::world::World;
use crate::*;

/// Attribute that constraints are about.
pub(super) const MODEL: &str = "gpu/model";
/// A second one, that takes the values of Kubernetes' standard attribute.
pub(super) const NUMA: &str = "resource.kubernetes.io/numaNode";
const GI: i128 = 1_000_000_000;
/// A Mi in billionths.
const MI: i128 = GI << 20;

/// The world of a seed.
pub(super) fn world(seed: u64) -> World {
    let mut chance = Chance::new(seed);
    let easy = chance.percent(60);
    // A stream of their own, so that volumes come on top of what was there without them.
    let volumes = Chance::new(!seed);
    let mut maker = Maker { chance, volumes, world: World::default(), names: Vec::new(), easy };
    maker.make();
    super::pods::rule(&mut maker.world, seed);
    maker.world
}

fn name(text: &str) -> Name {
    Name::new(text)
}

pub(super) fn scoped(text: &str) -> Scoped {
    Scoped { namespace: name("ns"), name: name(text) }
}

pub(super) fn pod(text: &str) -> PodKey {
    PodKey(scoped(text))
}

struct Maker {
    chance: Chance,
    volumes: Chance,
    world: World,
    /// Nodes.
    names: Vec<NodeKey>,
    /// Little stands in the way here.
    easy: bool,
}

impl Maker {
    fn make(&mut self) {
        for selector in 0..3 {
            for profile in 0..3 {
                let most = if self.easy { 15 } else { 20 };
                let says = match self.chance.below(most) {
                    0..=13 => Match::Yes,
                    14..=17 => Match::No,
                    _ => Match::Error,
                };
                self.world.matches.insert((SelectorId(selector), ProfileId(profile)), says);
            }
        }
        let nodes = if self.chance.percent(2) { 0 } else { 1 + self.chance.below(3) };
        for at in 0..nodes {
            let key = NodeKey(name(&format!("n{at}")));
            let node = self.node();
            self.world.nodes.insert(key.clone(), node);
            self.names.push(key);
        }
        let counted = self.chance.percent(15);
        for at in 0..nodes {
            self.local_pool(at, counted);
        }
        if self.chance.percent(30) && nodes > 0 {
            self.wide_pool();
        }
        for at in 0..nodes {
            self.node_links(at);
        }
        self.named_claims();
        super::mounts::storage(&mut self.volumes, &mut self.world);
        self.bound_pods();
        let groups = 1 + self.chance.below(3);
        for at in 0..groups {
            self.pending(at);
        }
    }

    fn node(&mut self) -> Node {
        let (few, many) = if self.easy { (5, 9) } else { (2, 6) };
        let ill = u64::from(!self.easy);
        let c = &mut self.chance;
        let mut labels = Vec::new();
        if c.percent(30) {
            labels.push((name("num"), name(c.word(&["3", "7", "x"]))));
        }
        if c.percent(70) {
            labels.push((name("zone"), name(c.word(&["a", "b"]))));
        }
        let mut taints = Vec::new();
        for (key, effect, percent) in [
            ("dedicated", Effect::NoSchedule, 8 * ill),
            ("node.kubernetes.io/not-ready", Effect::NoExecute, 6 * ill),
            ("soft", Effect::PreferNoSchedule, 12),
        ] {
            if c.percent(percent) {
                let value = name(c.word(&["", "v"]));
                taints.push(Taint { key: name(key), value, effect });
            }
        }
        let mut scalars = Vec::new();
        if c.percent(40) {
            scalars.push((name("example.com/nic"), c.between(0, 3)));
        }
        if c.percent(20) {
            scalars.push((name("hugepages-2Mi"), c.between(0, 3)));
        }
        let cpu_milli = c.between(few, many);
        let unhealthy = (1..=cpu_milli % 3).filter(|_| ill > 0 && !taints.is_empty()).take(1);
        let unhealthy: Vec<_> = unhealthy.map(|more| (name("example.com/nic"), more)).collect();
        Node {
            allocatable: Resources {
                cpu_milli,
                memory_bytes: c.between(few, many),
                ephemeral_bytes: c.between(few, many),
                pods: c.between(few - 1, many - 1),
                scalars: scalars.into(),
            },
            unhealthy: unhealthy.into(),
            labels: labels.into(),
            taints: taints.into(),
            unschedulable: c.percent(3 + 5 * ill),
            features: if c.percent(50) {
                [name("DRAOptionalNodeOperations")].into()
            } else {
                Box::default()
            },
            images: (0..cpu_milli % 2).map(|_| (name("image"), 200 << 20)).collect(),
        }
    }

    fn traits(&mut self, counted: bool, shared: bool) -> Shared<Traits> {
        let c = &mut self.chance;
        let mut attributes = Vec::new();
        if c.percent(80) {
            let value = match c.below(24) {
                0..=10 => AttributeValue::Int(0),
                11..=18 => AttributeValue::Int(1),
                19 => AttributeValue::Bool(true),
                20 | 21 => AttributeValue::String(name("0")),
                22 => AttributeValue::Version(name("0")),
                _ if c.percent(50) => AttributeValue::Unset,
                _ => {
                    let most = c.between(0, 2);
                    AttributeValue::List((0..=most).map(AttributeValue::Int).collect())
                }
            };
            attributes.push((name(MODEL), value));
        }
        let place = place(c);
        if let (Some(numa), true) = (&place.numa, c.percent(50)) {
            let numa = if **numa == *"0" { 0 } else { 1 };
            attributes.push((name(NUMA), AttributeValue::Int(numa)));
        }
        let mut taints = Vec::new();
        if c.percent(10) {
            let effect =
                *c.pick(&[Effect::NoSchedule, Effect::NoExecute, Effect::PreferNoSchedule]);
            taints.push(Taint { key: name("sick"), value: name(""), effect });
        }
        let capacity: Box<[Capacity]> = if shared || c.percent(20) {
            let policy = c.percent(30).then(|| Box::new(policy(c)));
            [Capacity { name: name("mem"), nanos: i128::from(c.between(2, 6)) * MI, policy }].into()
        } else {
            Box::default()
        };
        let counters: Box<[CounterUse]> = if counted && c.percent(80) {
            let amount = i128::from(c.between(1, 2)) * GI;
            [CounterSet { name: name("set"), counters: [(name("slots"), amount)].into() }].into()
        } else {
            Box::default()
        };
        let groups: Vec<Name> = match c.below(8) {
            0 | 1 => vec![name("a")],
            2 => vec![name("b")],
            3 => vec![name("a"), name("b")],
            _ => Vec::new(),
        };
        let grouped = !groups.is_empty() && !counters.is_empty();
        let groups = if grouped { [(name("set"), groups.into())].into() } else { Box::default() };
        Shared::new(Traits {
            profile: ProfileId(*c.pick(&[0, 0, 1, 2])),
            attributes: attributes.into(),
            capacity,
            counters,
            taints: taints.into(),
            place,
            shareable: shared,
            binds_to_node: c.percent(5),
            binding: c.percent(4).then(|| {
                let conditions = [name("ready")].into();
                Box::new(Binding { conditions, failures: Box::default() })
            }),
            reach: None,
            access: match c.below(40) {
                0 => Access::Hidden(name("DRADeviceBindingConditions")),
                1 => Access::Barred(name("DRAPartitionableDevices")),
                _ => Access::Open,
            },
            groups,
        })
    }

    /// The devices of a node, in one pool of its own.
    fn local_pool(&mut self, at: usize, counted: bool) {
        let devices = self.chance.below(5).max(if self.easy { self.chance.below(4) } else { 0 });
        if devices == 0 && self.chance.percent(70) {
            return;
        }
        let shared = self.chance.percent(12);
        let mut list = Vec::new();
        let mut known = self.traits(counted, shared);
        for d in 0..devices {
            if self.chance.percent(35) {
                known = self.traits(counted, shared);
            }
            // Not always in order of name: upstream's order is the slice's.
            let label =
                if self.chance.percent(90) { format!("g{d}") } else { format!("f{}", 9 - d) };
            list.push(Device { name: name(&label), traits: known.clone() });
        }
        let reach = Reach::Node(self.names[at].clone());
        let key = PoolKey { driver: name("gpu"), pool: self.names[at].0.clone() };
        let mut pool = self.pool_of(list, reach, counted);
        self.spoil(&mut pool);
        self.world.pools.insert(key, pool);
    }

    fn pool_of(&mut self, devices: Vec<Device>, reach: Reach, counted: bool) -> Pool {
        let c = &mut self.chance;
        let split = if devices.len() > 1 && c.percent(25) { 1 } else { devices.len() };
        let counters: Box<[CounterSet]> = if counted {
            let amount = i128::from(c.between(1, 5)) * GI;
            [CounterSet { name: name("set"), counters: [(name("slots"), amount)].into() }].into()
        } else {
            Box::default()
        };
        let (first, second) = devices.split_at(split);
        let slice_count = if second.is_empty() { 1 } else { 2 };
        let granting = match c.below(30) {
            0 => Granting::IfDeclared(name("DRAOptionalNodeOperations")),
            1 => Granting::Never(name("DRAOptionalNodeOperations")),
            _ => Granting::Always,
        };
        let slice = |label: &str, devices: &[Device], counters: Box<[CounterSet]>| Slice {
            name: name(label),
            generation: 1,
            slice_count,
            reach: reach.clone(),
            devices: devices.into(),
            counters,
            granting: granting.clone(),
            opaque: false,
        };
        let mut slices = vec![slice("s0", first, counters)];
        if !second.is_empty() {
            slices.push(slice("s1", second, Box::default()));
        }
        Pool { slices }
    }

    /// Sometimes a pool is republished or contradicts itself.
    fn spoil(&mut self, pool: &mut Pool) {
        let c = &mut self.chance;
        match c.below(60) {
            0..=2 => pool.slices[0].slice_count += 1,
            3 | 4 => {
                if let Some(device) = pool.slices[0].devices.first().cloned() {
                    let mut twice = pool.slices[0].devices.to_vec();
                    twice.push(device);
                    pool.slices[0].devices = twice.into();
                }
            }
            5 => pool.slices.iter_mut().for_each(|s| s.counters = Box::default()),
            6 => {
                // A newer generation that is not there yet, or an old slice left behind.
                let mut other = pool.slices[0].clone();
                other.name = name("s9");
                other.generation = *c.pick(&[0, 2]);
                pool.slices.push(other);
            }
            7 => {
                // The newer generation is on other nodes.
                let mut other = pool.slices[0].clone();
                other.name = name("s9");
                other.generation = 2;
                other.reach = Reach::Node(NodeKey(name("elsewhere")));
                pool.slices.push(other);
                pool.slices[0].slice_count += i64::from(c.percent(50));
            }
            _ => {}
        }
    }

    /// Devices that several nodes can use.
    fn wide_pool(&mut self) {
        let driver = name(self.chance.word(&["gpu", "nic", "nic"]));
        let mut list = Vec::new();
        for d in 0..1 + self.chance.below(2) {
            let traits = self.traits(false, false);
            list.push(Device { name: name(&format!("w{d}")), traits });
        }
        let term: NodeTerm = [NodeRequirement::In(name("zone"), [name("a")].into())].into();
        let reach = match self.chance.below(8) {
            0..=2 => Reach::All,
            3..=5 => Reach::Selector(term.clone()),
            6 => Reach::PerDevice,
            _ => Reach::Unknown,
        };
        if reach == Reach::PerDevice {
            for device in &mut list {
                let own = match self.chance.below(4) {
                    0 => Some(Reach::All),
                    1 => Some(Reach::Selector(term.clone())),
                    2 => Some(Reach::Node(self.names[0].clone())),
                    _ => None,
                };
                device.traits = Shared::new(Traits { reach: own, ..(*device.traits).clone() });
            }
        }
        let pool = self.pool_of(list, reach, false);
        self.world.pools.insert(PoolKey { driver, pool: name("wide") }, pool);
    }

    fn node_links(&mut self, at: usize) {
        if !self.chance.percent(60) {
            return;
        }
        let node = self.names[at].clone();
        let c = &mut self.chance;
        let wide_nic = c.percent(70);
        let mut members = Vec::new();
        for (key, pool) in &self.world.pools {
            let local = key.pool == node.0;
            if !local && (key.pool != name("wide") || !wide_nic) {
                continue;
            }
            let devices: BTreeSet<&Name> =
                pool.slices.iter().flat_map(|s| &s.devices).map(|d| &d.name).collect();
            for device in devices {
                if c.percent(10) {
                    continue;
                }
                let accelerator = *key.driver == *"gpu";
                let mut domains = [None; 5];
                for (level, domain) in domains.iter_mut().enumerate() {
                    let known = if level == 0 { 75 } else { 40 };
                    if c.percent(known) && (level > 0 || accelerator) {
                        *domain = Some(c.below(2) as u16);
                    }
                }
                members.push(LinkMember {
                    label: device.clone(),
                    device: Some(DeviceKey { pool: key.clone(), device: device.clone() }),
                    accelerator,
                    nic: !accelerator && c.percent(80),
                    domains,
                });
            }
        }
        let mut pairs = Vec::new();
        for a in 0..members.len() as u16 {
            for b in a + 1..members.len() as u16 {
                if c.percent(35) {
                    let class = *c.pick(&[LinkClass::Nvlink, LinkClass::Switch, LinkClass::System]);
                    let gbps = *c.pick(&[0, 25, 50]);
                    pairs.push((a, b, Link::new(class, gbps)));
                }
            }
        }
        let island_gbps = (0..c.below(3)).map(|_| *c.pick(&[0, 50])).collect();
        let mut names = Vec::new();
        for (level, known) in [(Level::Root, ["r0", "r1"]), (Level::Numa, ["0", "1"])] {
            for (number, text) in (0..).zip(known).filter(|_| c.percent(40)) {
                names.push((level, name(text), number));
            }
        }
        self.world.links.insert(node, Links { members, pairs, island_gbps, names, nominal: false });
    }

    /// Claims that exist by name.
    fn named_claims(&mut self) {
        for at in 0..self.chance.below(4) {
            let spec = self.spec();
            let mut users: Vec<User> = Vec::new();
            let mut held = None;
            if self.chance.percent(60) {
                held = self.allocation();
            }
            match self.chance.below(10) {
                0 | 1 if held.is_some() => users.push(User::Pod(pod("p0"))),
                2 | 3 if held.is_some() => users.push(User::Other(name("podgroup/x"))),
                5 if self.chance.percent(40) => {
                    users
                        .extend((0..256).map(|i| User::Other(Name::from(format!("{i}").as_str()))));
                }
                _ => {}
            }
            let deleting = self.chance.percent(6);
            let failed = match &held {
                Some(held) if self.chance.percent(15) => held.devices.first().map(|held| {
                    let after =
                        self.chance.pick(&[None, Some(Timestamp(-1)), Some(Timestamp(i64::MAX))]);
                    let (device, condition) = (held.device.clone(), name("Failed"));
                    BindingFailure { device, condition, after: *after }
                }),
                Some(_) | None => None,
            };
            let claim = Claim { spec, held, users, failed, deleting };
            self.world.claims.insert(ClaimKey(scoped(&format!("c{at}"))), claim);
        }
    }

    /// Devices that somebody holds, with the node from which they can be used.
    fn allocation(&mut self) -> Option<Allocation> {
        let (key, pool) = {
            let pools: Vec<_> = self.world.pools.iter().collect();
            if pools.is_empty() {
                return None;
            }
            let (key, pool) = self.chance.pick(&pools);
            ((*key).clone(), (*pool).clone())
        };
        let c = &mut self.chance;
        let devices: Vec<&Device> = pool.slices.iter().flat_map(|s| &s.devices).collect();
        let mut held = Vec::new();
        for device in devices {
            if held.len() == 2 || c.percent(50) {
                continue;
            }
            let share = device.traits.shareable;
            let consumed: Box<[(Name, i128)]> = if share {
                [(name("mem"), i128::from(c.between(1, 3)) * MI)].into()
            } else {
                Box::default()
            };
            held.push(HeldDevice {
                device: DeviceKey { pool: key.clone(), device: device.name.clone() },
                admin: c.percent(6),
                share,
                consumed,
                consumes: Consumption::default(),
            });
        }
        if held.is_empty() {
            return None;
        }
        let nodes: Option<Box<[NodeTerm]>> = if *key.pool == *"wide" {
            None
        } else {
            Some([[NodeRequirement::NameIs(key.pool.clone())].into()].into())
        };
        Some(Allocation { devices: held.into(), nodes, early: 0 })
    }

    /// Pods that run, and the claims that they hold.
    fn bound_pods(&mut self) {
        if self.names.is_empty() {
            return;
        }
        for at in 0..self.chance.below(4) {
            let node = self.chance.pick(&self.names).clone();
            let key = pod(&format!("b{at}"));
            let group = GroupKey { object: key.0.clone(), kind: name("pod") };
            let mut request = self.request();
            request.node = NodeRules::default();
            request.features = Box::default();
            request.volumes = super::mounts::held(&mut self.volumes, &self.world);
            request.fault = None;
            request.align = Box::default();
            request.claims = Box::default();
            let mut claims: Vec<Option<ClaimKey>> = Vec::new();
            let held = if self.chance.percent(60) { self.allocation() } else { None };
            if let Some(held) = held {
                let spec = self.spec();
                let own = ClaimKey(scoped(&format!("b{at}-own")));
                let users = vec![User::Pod(key.clone())];
                let claim = Claim {
                    spec: spec.clone(),
                    held: Some(held),
                    users,
                    failed: None,
                    deleting: false,
                };
                self.world.claims.insert(own.clone(), claim);
                request.claims = [ClaimUse::Own(spec)].into();
                claims.push(Some(own));
            }
            let phase = if self.chance.percent(20) {
                Phase::Terminating(node, Timestamp(5))
            } else {
                Phase::Bound(node)
            };
            self.world.groups.insert(group.clone(), lone(request, 0, 0));
            let member = Member {
                group,
                role: 0,
                index: None,
                phase,
                claims: claims.into(),
                expected_end: None,
                nominated: None,
            };
            self.world.members.insert(key, member);
        }
    }

    fn pending(&mut self, at: usize) {
        let mut request = self.request();
        let several = self.chance.percent(18);
        if several {
            // A claim to come that has a name is one pod's.
            let is_one = |mounted: &VolumeUse| match mounted {
                VolumeUse::Ephemeral(made) => made.claim.is_none() || made.planned.is_none(),
                VolumeUse::Claim(_) | VolumeUse::Disk { .. } => true,
            };
            request.volumes = request.volumes.iter().filter(|v| is_one(v)).cloned().collect();
        }
        let label = format!("p{at}");
        let kind = name(if several { "job" } else { "pod" });
        let key = GroupKey { object: scoped(&label), kind };
        let priority = *self.chance.pick(&[0, 0, 1]);
        let mut group = lone(request, priority, *self.chance.pick(&[1, 1, 2]));
        if self.chance.percent(2) {
            group.gate = Gate::Gated([name("example.com/wait")].into());
        }
        if self.chance.percent(2) {
            let fault = fault(&mut self.chance, &[Reason::QuotaExceeded]);
            group.roles[0].admits =
                Some(Box::new(Admits { most: self.chance.below(3) as u32, fault }));
        }
        let mut pods = 1;
        if several {
            let count = 2 + self.chance.below(2) as u32;
            group.roles[0].max = count;
            group.roles[0].min = count;
            if self.chance.percent(10) {
                group.minimum = Minimum::Gang;
            }
            pods = self.chance.below(count as usize + 1);
            if self.chance.percent(25) {
                group.since = Since::Input(at as u64);
            }
        }
        let claims: Vec<Option<ClaimKey>> = vec![None; group.roles[0].request.claims.len()];
        for p in 0..pods {
            let index = several.then_some(p as u32);
            let pod_key = if several { pod(&format!("{label}-{p}")) } else { pod(&label) };
            let member = Member {
                group: key.clone(),
                role: 0,
                index,
                phase: Phase::Pending,
                claims: claims.clone().into(),
                expected_end: None,
                nominated: None,
            };
            self.world.members.insert(pod_key, member);
        }
        self.world.groups.insert(key, group);
    }

    fn request(&mut self) -> Request {
        let mut claims = Vec::new();
        let count = *self.chance.pick(&[0, 1, 1, 1, 1, 1, 2]);
        for _ in 0..count {
            claims.push(self.claim_use(&claims));
        }
        let align = if count > 0 { self.align(10) } else { Box::default() };
        let node = self.rules();
        let c = &mut self.chance;
        let mut scalars = Vec::new();
        if c.percent(15) {
            scalars.push((name("example.com/nic"), c.between(0, 2)));
        }
        let served = scalars.first().is_some_and(|(_, asked)| *asked > 0) && c.percent(60);
        if c.percent(5) {
            scalars.push((name("hugepages-2Mi"), c.between(1, 2)));
        }
        let some = |c: &mut Chance| if c.percent(60) { 1 } else { c.between(0, 4) };
        let resources = Resources {
            cpu_milli: some(c),
            memory_bytes: some(c),
            ephemeral_bytes: some(c),
            pods: 1,
            scalars: scalars.into(),
        };
        let fault = (!self.easy && c.percent(7)).then(|| fault(c, &REQUEST_FAULTS));
        let extended = if served { self.extended(&resources) } else { Box::default() };
        let align = if served && align.is_empty() { self.align(20) } else { align };
        let volumes = super::mounts::volumes(&mut self.volumes, &self.world);
        let needy = self.volumes.percent(3);
        let features =
            if needy { [name("DRAOptionalNodeOperations")].into() } else { Box::default() };
        // What is scored refuses nothing: it draws no chance of its own.
        let scored = (resources.cpu_milli == 1).then(|| Shared::new(super::pods::scored()));
        Request {
            resources,
            node,
            claims: claims.into(),
            extended,
            align,
            volumes,
            features,
            fault,
            scored,
            ..Request::default()
        }
    }

    /// What devices serve where a node has no NICs to count.
    fn extended(&mut self, asked: &Resources) -> Box<[Extended]> {
        let (resource, count) = asked.scalars[0].clone();
        let own = self.alternative(None);
        let (amount, admin) = (Amount::Count(count as u32), false);
        let own = Alternative { amount, admin, capacity: Box::default(), ..own };
        let request =
            DeviceRequest { name: name("container-0-request-0"), alternatives: [own].into() };
        let fault =
            (!self.easy && self.chance.percent(7)).then(|| fault(&mut self.chance, &SPEC_FAULTS));
        [Extended { resource, requests: [request].into(), fault }].into()
    }

    fn claim_use(&mut self, before: &[ClaimUse]) -> ClaimUse {
        let c = &mut self.chance;
        if c.percent(38) {
            let known = self.world.claims.keys().filter(|k| k.0.name.starts_with('c')).cloned();
            let known: Vec<ClaimKey> = known.collect();
            let key = if known.is_empty() || c.percent(6) {
                ClaimKey(scoped("missing"))
            } else {
                c.pick(&known).clone()
            };
            let named = ClaimUse::Named(key.clone());
            if (*key.0.name != *"missing" || c.percent(12)) && !before.contains(&named) {
                return named;
            }
        }
        ClaimUse::Own(self.spec())
    }

    fn align(&mut self, percent: u64) -> Box<[Align]> {
        let c = &mut self.chance;
        if !c.percent(percent) {
            return Box::default();
        }
        let level =
            *c.pick(&[Level::Island, Level::Island, Level::Switch, Level::Numa, Level::Root]);
        [Align { level, required: c.percent(60) }].into()
    }

    fn spec(&mut self) -> Shared<ClaimSpec> {
        let count = if self.chance.percent(80) { 1 } else { 2 };
        let requests: Vec<DeviceRequest> = (0..count).map(|at| self.device_request(at)).collect();
        let align = self.align(12);
        let c = &mut self.chance;
        let mut constraints = Vec::new();
        if c.percent(35) {
            let attribute = name(c.word(&[MODEL, MODEL, MODEL, NUMA]));
            let covers = match c.below(5) {
                0 if count > 1 => vec![name("r0")],
                1 => vec![name("r0/s0")],
                _ => Vec::new(),
            };
            let requests = covers.into();
            constraints.push(Constraint { attribute, distinct: c.percent(40), requests });
        }
        let fault = (!self.easy && c.percent(7)).then(|| fault(c, &SPEC_FAULTS));
        Shared::new(ClaimSpec {
            requests: requests.into(),
            constraints: constraints.into(),
            align,
            fault,
        })
    }

    fn device_request(&mut self, at: usize) -> DeviceRequest {
        let alternatives: Box<[Alternative]> = if self.chance.percent(15) {
            (0..2).map(|s| self.alternative(Some(name(&format!("s{s}"))))).collect()
        } else {
            [self.alternative(None)].into()
        };
        DeviceRequest { name: name(&format!("r{at}")), alternatives }
    }

    fn alternative(&mut self, label: Option<Name>) -> Alternative {
        let c = &mut self.chance;
        let mut selectors = vec![SelectorId(0)];
        if c.percent(40) {
            selectors.push(SelectorId(c.between(1, 2) as u32));
        }
        let amount = match c.below(20) {
            0 | 1 => Amount::All,
            2..=12 => Amount::Count(1),
            13..=18 => Amount::Count(2),
            _ => Amount::Count(3),
        };
        let tolerations: Box<[Toleration]> = if c.percent(20) {
            let effect = c.percent(30).then_some(Effect::NoSchedule);
            [Toleration { key: Some(name("sick")), equals: None, effect }].into()
        } else {
            Box::default()
        };
        let capacity: Box<[(Name, i128)]> = if c.percent(10) {
            [(
                name(c.word(&["mem", "mem", "mem", "mem", "other"])),
                i128::from(c.between(1, 4)) * MI,
            )]
            .into()
        } else {
            Box::default()
        };
        Alternative {
            name: label,
            class: name("class"),
            selectors: selectors.into(),
            class_selectors: 1,
            amount,
            admin: c.percent(4),
            tolerations,
            capacity,
            derived: Box::default(),
        }
    }

    fn rules(&mut self) -> NodeRules {
        let hard = u64::from(!self.easy);
        let c = &mut self.chance;
        let mut rules = NodeRules::default();
        if c.percent(5 * hard) {
            rules.name = Some(name(c.word(&["n0", "n1", "nowhere"])));
        }
        if c.percent(4 + 8 * hard) {
            rules.selector = [(name("zone"), name(c.word(&["a", "b"])))].into();
        }
        if c.percent(4 + 8 * hard) {
            let term: NodeTerm = requirement(c).into_iter().collect();
            rules.required = Some(if c.percent(90) { [term].into() } else { Box::default() });
        }
        if c.percent(25) {
            let term: NodeTerm = requirement(c).into_iter().collect();
            rules.preferred = [(c.between(1, 3) as i32, term)].into();
        }
        if c.percent(35) {
            let key = match c.below(5) {
                0 => None,
                1 => Some(name("node.kubernetes.io/unschedulable")),
                2 => Some(name("node.kubernetes.io/not-ready")),
                3 => Some(name("dedicated")),
                _ => Some(name("soft")),
            };
            let equals = (key.is_some() && c.percent(40)).then(|| name("v"));
            let effect = c.percent(40).then(|| {
                *c.pick(&[Effect::NoSchedule, Effect::NoExecute, Effect::PreferNoSchedule])
            });
            rules.tolerations = [Toleration { key, equals, effect }].into();
        }
        rules
    }
}

/// Where a device says that it sits.
fn place(c: &mut Chance) -> Place {
    let some = |c: &mut Chance, names: &[&'static str]| c.percent(25).then(|| name(c.word(names)));
    let (mut root, mut numa) = (None, None);
    if c.percent(30) {
        root = some(c, &["r0", "r1"]);
        numa = some(c, &["0", "1"]);
    }
    Place { root, numa, nic: c.percent(15) }
}

fn requirement(c: &mut Chance) -> Option<NodeRequirement> {
    let zones: Box<[Name]> = [name("a")].into();
    Some(match c.below(10) {
        0 => NodeRequirement::In(name("zone"), zones),
        1 => NodeRequirement::NotIn(name("zone"), zones),
        2 => NodeRequirement::Exists(name("zone")),
        3 => NodeRequirement::DoesNotExist(name("zone")),
        4 => NodeRequirement::Gt(name("num"), 4),
        5 => NodeRequirement::Lt(name("num"), 4),
        6 => NodeRequirement::NameIs(name("n1")),
        7 => NodeRequirement::NameIsNot(name("n0")),
        8 => NodeRequirement::Never,
        _ => return None,
    })
}

fn policy(c: &mut Chance) -> CapacityPolicy {
    let unit = |n: i64| i128::from(n) * MI;
    let default = c.percent(60).then(|| unit(c.between(1, 2)));
    if c.percent(50) {
        let valid = [unit(1), unit(3)].into();
        CapacityPolicy { default, valid, ..CapacityPolicy::default() }
    } else {
        let step = c.percent(50).then(|| unit(2));
        let max = c.percent(50).then(|| unit(4));
        let range = Some((Some(unit(1)), max, step));
        CapacityPolicy { default, range, ..CapacityPolicy::default() }
    }
}

const REQUEST_FAULTS: [Reason; 4] =
    [Reason::TemplateMissing, Reason::ClaimOfOther, Reason::ClaimMissing, Reason::AdmissionRefused];
const SPEC_FAULTS: [Reason; 4] = [
    Reason::ClassMissing,
    Reason::SelectorInvalid,
    Reason::RequestUnsupported,
    Reason::TooManyDevices,
];

fn fault(c: &mut Chance, of: &[Reason]) -> Fault {
    Fault { reason: *c.pick(of), subject: name("subject"), detail: name("detail") }
}

pub(super) fn lone(request: Request, priority: i32, at: i64) -> Group {
    let request = Shared::new(request);
    let name = Name::new("");
    Group {
        queue: None,
        priority,
        since: Since::Created(Timestamp(at)),
        parent: None,
        roles: vec![Role {
            name,
            request,
            min: 1,
            max: 1,
            segment: None,
            first_rank: 0,
            admits: None,
        }],
        minimum: Minimum::Each,
        parts: Parts::default(),
        rules: Vec::new(),
        shared: Vec::new(),
        run_max_millis: None,
        disruption: Disruption::Single,
        gate: Gate::Open,
    }
}

/// Adds a roomy node, and a pod that uses a claim and asks for nothing else.
pub(super) fn add_user(world: &mut World, pod: &PodKey, claim: &ClaimKey) {
    let allocatable = Resources { pods: 9, ..Resources::default() };
    let node = Node { allocatable, ..Node::default() };
    world.nodes.insert(NodeKey(name("n0")), node);
    let request = Request {
        resources: Resources { pods: 1, ..Resources::default() },
        node: NodeRules::default(),
        claims: [ClaimUse::Named(claim.clone())].into(),
        ..Request::default()
    };
    let group = GroupKey { object: pod.0.clone(), kind: name("pod") };
    world.groups.insert(group.clone(), lone(request, 0, 0));
    let (role, index, phase) = (0, None, Phase::Pending);
    let claims = [None].into();
    let (expected_end, nominated) = (None, None);
    let member = Member { group, role, index, phase, claims, expected_end, nominated };
    world.members.insert(pod.clone(), member);
}
