//! A world as the facts that make it up; how it becomes changes, how it is printed, and how a
//! failing one is made smaller.

use std::collections::BTreeMap;
use std::fmt;

use super::Outcome;
use crate::state::StorageFacts;
use crate::*;

#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) nodes: BTreeMap<NodeKey, Node>,
    pub(super) pools: BTreeMap<PoolKey, Pool>,
    pub(super) links: BTreeMap<NodeKey, Links>,
    pub(super) topologies: BTreeMap<TopologyKey, Topology>,
    pub(super) domains: BTreeMap<(NodeKey, TopologyKey), Domains>,
    pub(super) groups: BTreeMap<GroupKey, Group>,
    pub(super) members: BTreeMap<PodKey, Member>,
    pub(super) claims: BTreeMap<ClaimKey, Claim>,
    pub(super) matches: BTreeMap<(SelectorId, ProfileId), Match>,
    pub(super) storage: StorageFacts,
}

impl World {
    /// Every fact as a change, in order of kind and key.
    pub(super) fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        changes.extend(self.nodes.iter().map(|(k, f)| Change::Node(k.clone(), Some(f.clone()))));
        changes.extend(self.pools.iter().map(|(k, f)| Change::Pool(k.clone(), Some(f.clone()))));
        changes.extend(self.links.iter().map(|(k, f)| Change::Links(k.clone(), Some(f.clone()))));
        let trees = self.topologies.iter();
        changes.extend(trees.map(|(k, f)| Change::Topology(k.clone(), Some(f.clone()))));
        let domains = self.domains.iter();
        changes.extend(
            domains.map(|((n, k), f)| Change::Domains(n.clone(), k.clone(), Some(f.clone()))),
        );
        changes.extend(self.groups.iter().map(|(k, f)| Change::Group(k.clone(), Some(f.clone()))));
        let members = self.members.iter();
        changes.extend(members.map(|(k, f)| Change::Member(k.clone(), Some(f.clone()))));
        changes.extend(self.claims.iter().map(|(k, f)| Change::Claim(k.clone(), Some(f.clone()))));
        let s = &self.storage;
        changes.extend(s.volumes.iter().map(|(k, f)| Change::Volume(k.clone(), Some(f.clone()))));
        let claims = s.claims.iter();
        changes.extend(claims.map(|(k, f)| Change::VolumeClaim(k.clone(), Some(f.clone()))));
        let classes = s.classes.iter();
        changes.extend(classes.map(|(k, f)| Change::StorageClass(k.clone(), Some(f.clone()))));
        let drivers = s.drivers.iter();
        changes.extend(drivers.map(|(k, f)| Change::StorageDriver(k.clone(), Some(*f))));
        let nodes = s.nodes.iter();
        changes.extend(nodes.map(|(k, f)| Change::NodeStorage(k.clone(), Some(f.clone()))));
        changes.extend(self.matches.iter().map(|((s, p), m)| Change::Match(*s, *p, *m)));
        changes
    }

    /// Groups with a seat that no bound pod fills, in queue order: priority, time, namespace, name.
    pub(super) fn queue(&self) -> Vec<GroupKey> {
        let mut queue: Vec<_> = self
            .groups
            .iter()
            .filter(|(key, group)| {
                group.roles.iter().enumerate().any(|(role, r)| r.max > self.bound(key, role))
            })
            .map(|(k, g)| (-i64::from(g.priority), g.since, k.object.clone(), k.clone()))
            .collect();
        queue.sort();
        queue.into_iter().map(|(.., key)| key).collect()
    }

    /// How many pods of a role are bound.
    pub(super) fn bound(&self, group: &GroupKey, role: usize) -> u32 {
        let of = |m: &&Member| m.group == *group && usize::from(m.role) == role;
        self.members.values().filter(of).filter(|m| !m.phase.is_pending()).count() as u32
    }

    /// What a member asks for.
    pub(super) fn request_of(&self, member: &Member) -> Option<Shared<Request>> {
        let group = self.groups.get(&member.group)?;
        Some(group.roles.get(usize::from(member.role))?.request.clone())
    }

    /// Worlds that are smaller by one thing.
    fn smaller(&self) -> Vec<Self> {
        let mut all = Vec::new();
        fn drop_each<K: Ord + Clone, V>(
            world: &World,
            all: &mut Vec<World>,
            of: impl Fn(&mut World) -> &mut BTreeMap<K, V>,
        ) {
            let keys: Vec<K> = of(&mut world.clone()).keys().cloned().collect();
            for key in keys {
                let mut less = world.clone();
                of(&mut less).remove(&key);
                all.push(less);
            }
        }
        drop_each(self, &mut all, |w| &mut w.groups);
        drop_each(self, &mut all, |w| &mut w.members);
        drop_each(self, &mut all, |w| &mut w.nodes);
        drop_each(self, &mut all, |w| &mut w.pools);
        drop_each(self, &mut all, |w| &mut w.links);
        drop_each(self, &mut all, |w| &mut w.claims);
        drop_each(self, &mut all, |w| &mut w.topologies);
        drop_each(self, &mut all, |w| &mut w.domains);
        drop_each(self, &mut all, |w| &mut w.matches);
        drop_each(self, &mut all, |w| &mut w.storage.volumes);
        drop_each(self, &mut all, |w| &mut w.storage.claims);
        drop_each(self, &mut all, |w| &mut w.storage.classes);
        drop_each(self, &mut all, |w| &mut w.storage.drivers);
        drop_each(self, &mut all, |w| &mut w.storage.nodes);
        self.fewer_devices(&mut all);
        self.plainer_nodes(&mut all);
        self.plainer_groups(&mut all);
        self.plainer_claims(&mut all);
        all
    }

    fn fewer_devices(&self, all: &mut Vec<Self>) {
        for (key, pool) in &self.pools {
            for (s, slice) in pool.slices.iter().enumerate() {
                for d in 0..slice.devices.len() {
                    let mut less = self.clone();
                    let slice = &mut less.pools.get_mut(key).unwrap().slices[s];
                    let mut devices = slice.devices.to_vec();
                    devices.remove(d);
                    slice.devices = devices.into();
                    all.push(less);
                    let plain = [
                        |t: &mut Traits| t.taints = Box::default(),
                        |t: &mut Traits| t.attributes = Box::default(),
                        |t: &mut Traits| t.capacity = Box::default(),
                        |t: &mut Traits| t.counters = Box::default(),
                        |t: &mut Traits| t.shareable = false,
                        |t: &mut Traits| t.binding = None,
                    ];
                    for make_plain in plain {
                        let mut traits: Traits =
                            (*self.pools[key].slices[s].devices[d].traits).clone();
                        make_plain(&mut traits);
                        if traits != *self.pools[key].slices[s].devices[d].traits {
                            let mut less = self.clone();
                            let slice = &mut less.pools.get_mut(key).unwrap().slices[s];
                            slice.devices[d].traits = Shared::new(traits);
                            all.push(less);
                        }
                    }
                }
            }
        }
        for (key, links) in &self.links {
            for at in 0..links.pairs.len() {
                let mut less = self.clone();
                less.links.get_mut(key).unwrap().pairs.remove(at);
                all.push(less);
            }
            for (m, member) in links.members.iter().enumerate() {
                for level in (0..5).filter(|l| member.domains[*l].is_some()) {
                    let mut less = self.clone();
                    less.links.get_mut(key).unwrap().members[m].domains[level] = None;
                    all.push(less);
                }
            }
        }
    }

    fn plainer_nodes(&self, all: &mut Vec<Self>) {
        for (key, node) in &self.nodes {
            let mut edit = |make_plain: fn(&mut Node)| {
                let mut plain = node.clone();
                make_plain(&mut plain);
                if plain != *node {
                    let mut less = self.clone();
                    less.nodes.insert(key.clone(), plain);
                    all.push(less);
                }
            };
            edit(|n| n.taints = Box::default());
            edit(|n| n.labels = Box::default());
            edit(|n| n.unschedulable = false);
            edit(|n| n.allocatable.scalars = Box::default());
            edit(|n| n.unhealthy = Box::default());
        }
    }

    fn plainer_groups(&self, all: &mut Vec<Self>) {
        for (key, group) in &self.groups {
            let mut put = |group: Group| {
                let mut less = self.clone();
                less.groups.insert(key.clone(), group);
                all.push(less);
            };
            if group.gate != Gate::Open {
                put(Group { gate: Gate::Open, ..group.clone() });
            }
            for rule in 0..group.rules.len() {
                let mut fewer = group.clone();
                fewer.rules.remove(rule);
                put(fewer);
            }
            if group.parts.fewest > 0 {
                let mut fewer = group.clone();
                fewer.parts.fewest -= 1;
                put(fewer);
            }
            if !group.parts.any.is_empty() {
                let mut fewer = group.clone();
                fewer.parts.any = Box::default();
                put(fewer);
            }
            if !group.parts.all.is_empty() {
                let mut fewer = group.clone();
                fewer.parts.all.pop();
                put(fewer);
            }
            for (r, role) in group.roles.iter().enumerate() {
                if role.admits.is_some() {
                    let mut open = group.clone();
                    open.roles[r].admits = None;
                    put(open);
                }
                if role.max > 1 {
                    let mut fewer = group.clone();
                    fewer.roles[r].max -= 1;
                    fewer.roles[r].min = role.min.min(role.max - 1);
                    put(fewer);
                }
                for request in plainer_requests(&role.request) {
                    let mut plain = group.clone();
                    plain.roles[r].request = Shared::new(request);
                    put(plain);
                }
            }
        }
    }

    fn plainer_claims(&self, all: &mut Vec<Self>) {
        for (key, claim) in &self.claims {
            let mut edit = |make_plain: fn(&mut Claim)| {
                let mut plain = claim.clone();
                make_plain(&mut plain);
                if plain != *claim {
                    let mut less = self.clone();
                    less.claims.insert(key.clone(), plain);
                    all.push(less);
                }
            };
            edit(|c| c.held = None);
            edit(|c| c.users.clear());
            edit(|c| c.deleting = false);
            edit(|c| c.failed = None);
            for spec in plainer_specs(&claim.spec) {
                let mut less = self.clone();
                less.claims.get_mut(key).unwrap().spec = Shared::new(spec);
                all.push(less);
            }
        }
    }
}

fn plainer_requests(request: &Request) -> Vec<Request> {
    let mut all = Vec::new();
    if request.node != NodeRules::default() {
        all.push(Request { node: NodeRules::default(), ..request.clone() });
    }
    if request.resources != Resources::default() {
        all.push(Request { resources: Resources::default(), ..request.clone() });
    }
    if !request.align.is_empty() {
        all.push(Request { align: Box::default(), ..request.clone() });
    }
    if !request.ports.is_empty() {
        all.push(Request { ports: Box::default(), ..request.clone() });
    }
    if !request.matched.is_empty() {
        all.push(Request { matched: Box::default(), ..request.clone() });
    }
    if let Some(near) = &request.near {
        let mut put = |near| all.push(Request { near, ..request.clone() });
        put(None);
        for edit in [
            |near: &mut PodRules| near.affinity = None,
            |near: &mut PodRules| near.anti = Box::default(),
            |near: &mut PodRules| near.spread = Box::default(),
            |near: &mut PodRules| near.wishes = Box::default(),
            |near: &mut PodRules| near.welcomes = Box::default(),
            |near: &mut PodRules| near.spread_wishes = Box::default(),
        ] {
            let mut plain = (**near).clone();
            edit(&mut plain);
            if plain != **near {
                put(Some(Shared::new(plain)));
            }
        }
    }
    if !request.features.is_empty() {
        all.push(Request { features: Box::default(), ..request.clone() });
    }
    for at in 0..request.volumes.len() {
        let mut fewer = request.volumes.to_vec();
        fewer.remove(at);
        all.push(Request { volumes: fewer.into(), ..request.clone() });
    }
    if !request.extended.is_empty() {
        all.push(Request { extended: Box::default(), ..request.clone() });
    }
    for (at, claim) in request.claims.iter().enumerate() {
        let mut fewer = request.claims.to_vec();
        fewer.remove(at);
        all.push(Request { claims: fewer.into(), ..request.clone() });
        if let ClaimUse::Own(spec) = claim {
            for plain in plainer_specs(spec) {
                let mut claims = request.claims.clone();
                claims[at] = ClaimUse::Own(Shared::new(plain));
                all.push(Request { claims, ..request.clone() });
            }
        }
    }
    all
}

fn plainer_specs(spec: &ClaimSpec) -> Vec<ClaimSpec> {
    let mut all = Vec::new();
    if !spec.constraints.is_empty() {
        all.push(ClaimSpec { constraints: Box::default(), ..spec.clone() });
    }
    if !spec.align.is_empty() {
        all.push(ClaimSpec { align: Box::default(), ..spec.clone() });
    }
    for at in 0..spec.requests.len() {
        if spec.requests.len() > 1 {
            let mut requests = spec.requests.to_vec();
            requests.remove(at);
            all.push(ClaimSpec { requests: requests.into(), ..spec.clone() });
        }
        for alternative in 0..spec.requests[at].alternatives.len() {
            let mut edit = |make_plain: fn(&mut Alternative)| {
                let mut plain = spec.clone();
                make_plain(&mut plain.requests[at].alternatives[alternative]);
                if plain != *spec {
                    all.push(plain);
                }
            };
            edit(|a| a.capacity = Box::default());
            edit(|a| a.tolerations = Box::default());
            edit(|a| a.admin = false);
            edit(|a| a.selectors = Box::default());
            edit(|a| {
                if let Amount::Count(n) = a.amount {
                    a.amount = Amount::Count(n.max(2) - 1);
                }
            });
        }
        if spec.requests[at].alternatives.len() > 1 {
            for drop in 0..spec.requests[at].alternatives.len() {
                let mut plain = spec.clone();
                let mut alternatives = plain.requests[at].alternatives.to_vec();
                alternatives.remove(drop);
                plain.requests[at].alternatives = alternatives.into();
                all.push(plain);
            }
        }
    }
    all
}

/// Takes things away one by one while the property still fails.
pub(super) fn shrink(
    mut world: World,
    mut wrong: String,
    property: &mut impl FnMut(&World) -> Outcome,
) -> (World, String) {
    'again: loop {
        for less in world.smaller() {
            if let Err(still) = property(&less) {
                (world, wrong) = (less, still);
                continue 'again;
            }
        }
        return (world, wrong);
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for change in self.changes() {
            writeln!(f, "  {change:?}")?;
        }
        Ok(())
    }
}
