//! The worlds that are measured, as facts of the engine: equal devices on nodes of different sizes,
//! and pods in a few shapes. Drawn by a generator of our own, so that every run sees the same.

use std::sync::Arc;

use phalanx_engine::{
    Access, Align, Allocation, Alternative, Amount, AttributeValue, Capacity, Change, Claim,
    ClaimKey, ClaimSpec, ClaimUse, Constraint, Consumption, Device, DeviceRequest, Gate, Granting,
    Group, GroupKey, HeldDevice, Match, Member, Minimum, Name, Node, NodeKey, NodeRequirement,
    NodeRules, Phase, Place, PodKey, Pool, PoolKey, ProfileId, Reach, Request, Resources, Role,
    Scoped, Seat, SelectorId, Shared, Since, Slice, Timestamp, Traits, User,
};

use crate::run::root;

/// The one selector, and the one profile that it matches.
const SELECTOR: SelectorId = SelectorId(0);
const PROFILE: ProfileId = ProfileId(0);

/// Nodes and their devices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fleet {
    /// Nodes.
    pub(crate) nodes: u32,
    /// Devices on each.
    pub(crate) devices: u32,
    /// NUMA nodes that the devices are dealt out to in equal runs.
    pub(crate) numa: u32,
}

/// Names that occur often, made once.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    driver: Name,
    namespace: Name,
    pod: Name,
    empty: Name,
    numa: Name,
    class: Name,
    request: Name,
}

impl Names {
    /// The names.
    pub(crate) fn new() -> Self {
        Self {
            driver: "gpu.nvidia.com".into(),
            namespace: "default".into(),
            pod: "pod".into(),
            empty: "".into(),
            numa: "gpu.nvidia.com/numa".into(),
            class: "gpu.nvidia.com".into(),
            request: "gpu".into(),
        }
    }

    fn scoped(&self, name: &str) -> Scoped {
        Scoped { namespace: self.namespace.clone(), name: name.into() }
    }
}

/// Numbers that look random and are the same in every run (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }
}

/// CPU of a node, in thousandths: the sizes of GPU nodes in production differ.
pub(crate) fn node_cpu(node: u32) -> i64 {
    [96_000, 104_000, 96_000, 128_000, 104_000][node as usize % 5]
}

impl Fleet {
    /// All changes that make the fleet, one node after the other.
    pub(crate) fn changes<'n>(&self, names: &'n Names) -> impl Iterator<Item = Change> + 'n {
        let fleet = *self;
        let traits: Arc<[Shared<Traits>]> = (0..self.numa).map(|n| traits(names, n)).collect();
        let devices: Arc<[Name]> =
            (0..self.devices).map(|d| Name::new(&format!("gpu-{d:02}"))).collect();
        let nodes = (0..self.nodes).flat_map(move |n| {
            let key = node_key(n);
            let node = fleet.node(n);
            let pool = fleet.pool(&key, &devices, &traits);
            let pool_key = PoolKey { driver: names.driver.clone(), pool: key.0.clone() };
            [Change::Node(key, Some(node)), Change::Pool(pool_key, Some(pool))]
        });
        std::iter::once(Change::Match(SELECTOR, PROFILE, Match::Yes)).chain(nodes)
    }

    /// CPU of all nodes, in thousandths.
    fn cpu_milli(&self) -> i64 {
        (0..self.nodes).map(node_cpu).sum()
    }

    /// Pods until nine tenths of the devices or of the CPUs are asked for: their shapes, by chance.
    pub(crate) fn pods(&self, shapes: &[Shape]) -> Vec<usize> {
        let devices = i64::from(self.nodes * self.devices) * 9 / 10;
        let cpu = self.cpu_milli() * 9 / 10;
        let mut pods = Vec::new();
        let mut used = (0, 0);
        let mut dice = Dice(7);
        while used.0 < devices && used.1 < cpu {
            let at = dice.below(shapes.len());
            used.0 += i64::from(shapes[at].devices);
            used.1 += shapes[at].cpu_milli;
            pods.push(at);
        }
        pods
    }

    fn node(&self, n: u32) -> Node {
        Node {
            allocatable: Resources {
                cpu_milli: node_cpu(n),
                memory_bytes: 1 << 40,
                ephemeral_bytes: 1 << 42,
                pods: 110,
                scalars: Box::default(),
            },
            unhealthy: Box::default(),
            labels: Box::default(),
            taints: Box::default(),
            unschedulable: false,
            features: Box::default(),
            images: Box::default(),
        }
    }

    fn pool(&self, node: &NodeKey, devices: &[Name], traits: &[Shared<Traits>]) -> Pool {
        let per_numa = (self.devices / self.numa).max(1);
        let device = |(at, name): (usize, &Name)| {
            let numa = (at as u32 / per_numa).min(self.numa - 1);
            Device { name: name.clone(), traits: traits[numa as usize].clone() }
        };
        let slice = Slice {
            name: node.0.clone(),
            generation: 1,
            slice_count: 1,
            reach: Reach::Node(node.clone()),
            devices: devices.iter().enumerate().map(device).collect(),
            counters: Box::default(),
            granting: Granting::Always,
            opaque: false,
        };
        Pool { slices: vec![slice] }
    }
}

/// The key of node `n`.
pub(crate) fn node_key(n: u32) -> NodeKey {
    NodeKey(Name::new(&format!("node-{n:06}")))
}

fn traits(names: &Names, numa: u32) -> Shared<Traits> {
    Shared::new(Traits {
        profile: PROFILE,
        attributes: [(names.numa.clone(), AttributeValue::Int(i64::from(numa)))].into(),
        capacity: [Capacity {
            name: "memory".into(),
            nanos: 85_899_345_920_000_000_000,
            policy: None,
        }]
        .into(),
        counters: Box::default(),
        taints: Box::default(),
        place: Place { numa: Some(Name::new(&numa.to_string())), ..Place::default() },
        shareable: false,
        binds_to_node: false,
        binding: None,
        reach: None,
        access: Access::Open,
        groups: Box::default(),
    })
}

/// What a pod asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// CPU in thousandths.
    pub(crate) cpu_milli: i64,
    /// Devices.
    pub(crate) devices: u32,
    /// Whether they must agree on their NUMA node.
    pub(crate) agree: bool,
}

/// A shape as the engine's request.
pub(crate) fn request(names: &Names, shape: Shape) -> Shared<Request> {
    let Shape { cpu_milli, devices, agree } = shape;
    let exactly = Alternative {
        name: None,
        class: names.class.clone(),
        selectors: [SELECTOR].into(),
        class_selectors: 0,
        amount: Amount::Count(devices),
        admin: false,
        tolerations: Box::default(),
        capacity: Box::default(),
        derived: Box::default(),
    };
    let constraint =
        Constraint { attribute: names.numa.clone(), distinct: false, requests: Box::default() };
    let spec = ClaimSpec {
        requests: [DeviceRequest { name: names.request.clone(), alternatives: [exactly].into() }]
            .into(),
        constraints: if agree { [constraint].into() } else { Box::default() },
        align: Box::<[Align]>::default(),
        fault: None,
    };
    Shared::new(Request {
        resources: Resources {
            cpu_milli,
            memory_bytes: 8 << 30,
            ephemeral_bytes: 0,
            pods: 1,
            scalars: Box::default(),
        },
        node: NodeRules::default(),
        claims: [ClaimUse::Own(Shared::new(spec))].into(),
        ..Request::default()
    })
}

/// Fifty templates: the fifty most frequent pairs of CPU and GPUs of the openb trace where the
/// shared data is there, else sizes like them; and which of the two it was.
pub(crate) fn mixed() -> (Vec<Shape>, bool) {
    let (sizes, real) = match openb() {
        Some(sizes) => (sizes, true),
        None => {
            ((0..50).map(|i| (2_000 + 613 * i, [1, 1, 1, 2, 4][i as usize % 5])).collect(), false)
        }
    };
    let shapes = sizes.into_iter().map(|(cpu_milli, gpus)| {
        let devices = gpus.clamp(1, 4);
        Shape { cpu_milli, devices, agree: devices == 2 }
    });
    (shapes.collect(), real)
}

fn openb() -> Option<Vec<(i64, u32)>> {
    let shared = std::env::var("PHALANX_SHARED").unwrap_or_else(|_| "../shared".to_owned());
    let path = root().join(shared).join("data/openb/openb_pod_list_default.csv");
    let text = std::fs::read_to_string(path).ok()?;
    let mut counts = std::collections::BTreeMap::new();
    for line in text.lines().skip(1) {
        let mut fields = line.split(',').skip(1);
        let cpu: i64 = fields.next()?.parse().ok()?;
        let gpus: u32 = fields.nth(1)?.parse().ok()?;
        *counts.entry((cpu, gpus)).or_insert(0_u32) += 1;
    }
    let mut sizes: Vec<((i64, u32), u32)> = counts.into_iter().collect();
    sizes.sort_by_key(|(size, count)| (std::cmp::Reverse(*count), *size));
    sizes.truncate(50);
    Some(sizes.into_iter().map(|(size, _)| size).collect())
}

/// A pod: its keys, and what it asks for.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    group: GroupKey,
    pod: PodKey,
    claim: ClaimKey,
    request: Shared<Request>,
    since: i64,
}

impl Pod {
    /// Pod number `n`.
    pub(crate) fn new(names: &Names, n: u64, request: &Shared<Request>) -> Self {
        let name = format!("p-{n:08}");
        let object = names.scoped(&name);
        Self {
            group: GroupKey { object: object.clone(), kind: names.pod.clone() },
            pod: PodKey(object),
            claim: ClaimKey(names.scoped(&format!("{name}-gpu"))),
            request: request.clone(),
            since: n as i64,
        }
    }

    fn group(&self, names: &Names) -> Group {
        Group {
            queue: None,
            priority: 0,
            since: Since::Created(Timestamp(self.since)),
            parent: None,
            roles: vec![Role {
                name: names.empty.clone(),
                request: self.request.clone(),
                min: 1,
                max: 1,
                segment: None,
                first_rank: 0,
                admits: None,
            }],
            minimum: Minimum::Each,
            parts: phalanx_engine::Parts::default(),
            rules: Vec::new(),
            shared: Vec::new(),
            run_max_millis: None,
            disruption: phalanx_engine::Disruption::default(),
            gate: Gate::Open,
        }
    }

    fn member(&self, phase: Phase, claim: Option<ClaimKey>) -> Member {
        Member {
            group: self.group.clone(),
            role: 0,
            index: Some(0),
            phase,
            claims: [claim].into(),
            expected_end: None,
            nominated: None,
        }
    }

    /// What it asks for.
    pub(crate) fn request(&self) -> &Shared<Request> {
        &self.request
    }

    /// It comes, and waits.
    pub(crate) fn starts(&self, names: &Names) -> [Change; 2] {
        let member = self.member(Phase::Pending, None);
        [
            Change::Group(self.group.clone(), Some(self.group(names))),
            Change::Member(self.pod.clone(), Some(member)),
        ]
    }

    /// The board shows it on its node, with its devices.
    pub(crate) fn is_bound(&self, seat: &Seat) -> [Change; 2] {
        let devices = seat.grants.iter().map(|grant| HeldDevice {
            device: grant.device.clone(),
            admin: grant.admin,
            share: grant.share.is_some(),
            consumed: grant.share.clone().unwrap_or_default(),
            consumes: Consumption::default(),
        });
        self.holds(&seat.node, devices.collect())
    }

    /// The board shows it on `node` with these devices.
    pub(crate) fn holds(&self, node: &NodeKey, devices: Box<[HeldDevice]>) -> [Change; 2] {
        let ClaimUse::Own(spec) = &self.request.claims[0] else { return self.ends() };
        let here: Box<[NodeRequirement]> = [NodeRequirement::NameIs(node.0.clone())].into();
        let claim = Claim {
            spec: spec.clone(),
            held: Some(Allocation { devices, nodes: Some([here].into()), early: 0 }),
            users: vec![User::Pod(self.pod.clone())],
            failed: None,
            deleting: false,
        };
        let member = self.member(Phase::Bound(node.clone()), Some(self.claim.clone()));
        [
            Change::Claim(self.claim.clone(), Some(claim)),
            Change::Member(self.pod.clone(), Some(member)),
        ]
    }

    /// It ends, and its claim with it. (The group goes with [`forgets`](Self::forgets).)
    pub(crate) fn ends(&self) -> [Change; 2] {
        [Change::Claim(self.claim.clone(), None), Change::Member(self.pod.clone(), None)]
    }

    /// Its group is gone.
    pub(crate) fn forgets(&self) -> Change {
        Change::Group(self.group.clone(), None)
    }
}

/// The device `at` of node `n`.
pub(crate) fn device(names: &Names, node: &NodeKey, at: u32) -> HeldDevice {
    HeldDevice {
        device: phalanx_engine::DeviceKey {
            pool: PoolKey { driver: names.driver.clone(), pool: node.0.clone() },
            device: Name::new(&format!("gpu-{at:02}")),
        },
        admin: false,
        share: false,
        consumed: Box::default(),
        consumes: Consumption::default(),
    }
}
