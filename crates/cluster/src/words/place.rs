//! What is said of a placement: what the chosen devices span, or that the choice is indifferent;
//! and what a counter can't know.

use std::cmp::Ordering::{Greater, Less};

use phalanx_engine::{
    DeviceKey, Level, Link, LinkClass, LinkMember, Links, Name, UNNAMED_DOMAIN, best_ring,
};
use phalanx_objects::topology::NodeTopology;

use super::{count, domain, list, path};

/// The note on a pod whose devices the kubelet chooses: by the device plugin's counter only their
/// number is known.
pub fn counter_note(resource: &str, amount: i64, node: &str) -> String {
    if amount == 1 {
        return format!(
            "{resource} is a counter: the kubelet of {node} will choose the device; its model, \
             memory and links are unknown to the counter"
        );
    }
    format!(
        "{resource} is a counter: the kubelet of {node} will choose the {amount} devices; their \
         model, memory and links are unknown to the counter"
    )
}

/// The note on a pod whose extended resource is given by devices.
pub fn extended_note(resource: &str, class: &str, node: &str) -> String {
    format!(
        "{node} has no {resource} to count: DeviceClass {class} serves it, and the scheduler makes \
         the pod a claim for it"
    )
}

/// An extended resource that a class serves, as the name of a request.
pub fn served(resource: &str, class: &str) -> String {
    format!("{resource} (served by DeviceClass {class})")
}

/// The note on which alternative of a firstAvailable list a request is met by: `at` counts from 0.
pub fn alternative_note(request: &str, taken: &str, at: usize, of: usize) -> String {
    if of == 1 {
        return format!("request {request} is met by {taken}, its only alternative");
    }
    let place = match at {
        0 => "the first".to_owned(),
        1 => "the second".to_owned(),
        2 => "the third".to_owned(),
        later => format!("number {}", later + 1),
    };
    format!("request {request} is met by {taken}, {place} of its {of} alternatives")
}

/// The note on a pod whose claim holds devices that it can't use, and gets others.
pub fn release_note(claim: &str) -> String {
    format!(
        "claim {claim} is allocated so that this pod can't use it, and no other pod uses it: it is \
         given up in one write and allocated again in the next"
    )
}

/// What is known of a pod's wishes for nearness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlignWords {
    /// Levels that are kept, each once.
    pub kept: Vec<Level>,
    /// Preferred levels that are not kept, as far as links tell.
    pub unmet: Vec<Level>,
    /// How many preferred levels are not kept, where that is known.
    pub unaligned: Option<u16>,
    /// Devices of which nothing tells where they sit, so that no kept level is about them.
    pub lost: Vec<Name>,
}

/// The notes on which wishes for nearness are kept, and which are not.
pub fn align_notes(found: &AlignWords) -> Vec<String> {
    let mut notes = Vec::new();
    if !found.kept.is_empty() {
        let kept: Vec<String> = found.kept.iter().map(|level| within(*level)).collect();
        notes.push(format!("aligned as phalanx.dev/align asks: {}", list(&kept)));
    }
    if !found.lost.is_empty() {
        let lost: Vec<String> = found.lost.iter().map(ToString::to_string).collect();
        notes.push(format!("not counted in it: {}, for nothing tells where that is", list(&lost)));
    }
    let names: Vec<String> =
        found.unmet.iter().map(|level| level_word(*level).to_owned()).collect();
    if !names.is_empty() {
        let level = if names.len() == 1 { "level" } else { "levels" };
        notes.push(format!(
            "not aligned: the preferred {level} {} of phalanx.dev/align can't be kept here",
            list(&names)
        ));
    } else if let Some(unaligned @ 1..) = found.unaligned {
        let level = count(u64::from(unaligned), "preferred level", "preferred levels");
        notes.push(format!("not aligned: {level} of phalanx.dev/align can't be kept here"));
    }
    notes
}

/// Being in one domain of a level, as a sentence says it.
pub fn within(level: Level) -> String {
    let word = match level {
        Level::Island => "in",
        Level::Switch | Level::Root => "under",
        Level::Numa | Level::Rail => "on",
    };
    format!("{word} one {}", domain(level))
}

/// A level as the annotation names it.
fn level_word(level: Level) -> &'static str {
    match level {
        Level::Island => "island",
        Level::Switch => "switch",
        Level::Root => "root",
        Level::Numa => "numa",
        Level::Rail => "rail",
    }
}

/// Whether those of these devices that links name are in one domain of a level; of islands only
/// accelerators count.
pub fn in_one(links: &Links, devices: &[DeviceKey], level: Level) -> bool {
    let members = devices.iter().filter_map(|device| position(links, device));
    let members = members.map(|at| &links.members[at]);
    let counts = |member: &&LinkMember| level != Level::Island || member.accelerator;
    let mut domains = members.filter(counts).map(|member| member.domains[index_of(level)]);
    let first = domains.next().flatten();
    first.is_some() && domains.all(|domain| domain == first)
}

/// Most sets of devices that are looked at for what a counter's devices may come to.
const SETS_MAX: usize = 20_000;

/// A counter's devices on a node whose links are known.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    /// How many the pod gets.
    pub amount: usize,
    /// How many the node has.
    pub allocatable: usize,
    /// Whether no other pod has any.
    pub all_free: bool,
    /// The node's links.
    pub links: &'a Links,
    /// And the object that they are of.
    pub topology: Option<&'a NodeTopology>,
    /// The node.
    pub node: &'a str,
}

/// What the devices that the kubelet will choose may span: at best, at worst, and where nothing is
/// in use what the device plugin prefers. None where the links are not those of the counter's
/// devices, or tell nothing.
pub fn spread_note(counted: &Counted<'_>) -> Option<String> {
    let Counted { amount, allocatable, all_free, links, topology, node } = *counted;
    let all: Vec<usize> =
        (0..links.members.len()).filter(|i| links.members[*i].accelerator).collect();
    if all.len() != allocatable || amount < 2 || amount > all.len() {
        return None;
    }
    let view = View { links, topology };
    let (best_pair, worst_pair) = view.range(&all)?;
    if best_pair == worst_pair {
        let shown = best_pair.shown();
        return Some(format!("whichever they are, every pair of them is joined by {shown}"));
    }
    let mut sets = Sets::of(&view, &all, amount)?;
    sets.speeds.sort_by(|a, b| if a.is_better(*b) { Less } else { Greater });
    sets.speeds.dedup();
    if sets.best.slowest == sets.worst.slowest {
        let slowest = sets.best.slowest.shown();
        return Some(format!("whichever they are, their slowest pair goes over {slowest}"));
    }
    let likely = if all_free {
        let names = view.names(&sets.best.members);
        format!("while no other pod has any, the device plugin is likely to prefer {names}")
    } else {
        format!("which of {node}'s are in use is not known, and so neither is which are likely")
    };
    Some(format!(
        "the counter's {} may have {} different speeds: at best {}; at worst {}; {likely}",
        count(amount as u64, "device", "devices"),
        sets.speeds.len(),
        view.set(&sets.best),
        view.set(&sets.worst),
    ))
}

/// Some members, and the slowest of their pairs.
#[derive(Clone, Debug)]
struct Span {
    members: Vec<usize>,
    slowest: Path,
    /// The sum of the pairs' classes: less is nearer.
    classes: usize,
}

impl Span {
    fn is_nearer(&self, other: &Self) -> bool {
        self.slowest.is_better(other.slowest)
            || (self.slowest == other.slowest && self.classes < other.classes)
    }
}

/// The best and the worst of all sets of a size, and how fast sets may be.
struct Sets {
    best: Span,
    worst: Span,
    speeds: Vec<Path>,
}

impl Sets {
    /// None where there are too many.
    fn of(view: &View<'_>, all: &[usize], size: usize) -> Option<Self> {
        let mut chosen: Vec<usize> = (0..size).collect();
        let mut sets: Option<Self> = None;
        for _ in 0..SETS_MAX {
            let members = chosen.iter().map(|at| all[*at]).collect();
            let span = view.span(members)?;
            match &mut sets {
                None => {
                    let (best, worst) = (span.clone(), span.clone());
                    sets = Some(Self { best, worst, speeds: vec![span.slowest] });
                }
                Some(sets) => {
                    if !sets.speeds.contains(&span.slowest) {
                        sets.speeds.push(span.slowest);
                    }
                    if span.is_nearer(&sets.best) {
                        sets.best = span;
                    } else if sets.worst.is_nearer(&span) {
                        sets.worst = span;
                    }
                }
            }
            // The next set in order of places: the last place that can move on, those after it close
            // up behind it.
            let last = (0..size).rev().find(|at| chosen[*at] < all.len() - size + at);
            let Some(at) = last else { return sets };
            chosen[at] += 1;
            for after in at + 1..size {
                chosen[after] = chosen[after - 1] + 1;
            }
        }
        None
    }
}

/// What the chosen devices span on their node, as far as links are known. None where fewer than two
/// of them were chosen.
pub fn choice_note(
    chosen: &[DeviceKey],
    links: Option<&Links>,
    topology: Option<&NodeTopology>,
    node: &str,
) -> Option<String> {
    if chosen.len() < 2 {
        return None;
    }
    let Some(links) = links else {
        return Some(format!("links of {node} are unknown: no NodeTopology describes it"));
    };
    let at: Option<Vec<usize>> = chosen.iter().map(|device| position(links, device)).collect();
    let Some(at) = at else {
        return Some(format!("links of {node} are unknown for some of the chosen devices"));
    };
    let accelerators: Vec<usize> =
        at.iter().copied().filter(|i| links.members[*i].accelerator).collect();
    if accelerators.len() < 2 {
        return None;
    }
    let all: Vec<usize> = (0..links.members.len())
        .filter(|i| links.members[*i].accelerator && links.members[*i].device.is_some())
        .collect();
    let view = View { links, topology };
    let (best, worst) = view.range(&all)?;
    if best == worst && best.link == Link::UNKNOWN {
        return Some(format!("links of {node} are unknown: its NodeTopology names no paths"));
    }
    let names = list(&accelerators.iter().map(|i| label(&links.members[*i])).collect::<Vec<_>>());
    if best == worst {
        return Some(format!(
            "the choice is indifferent as to links: every pair of the {} of {node} is joined by {}",
            count(all.len() as u64, "accelerator", "accelerators"),
            best.shown()
        ));
    }
    let (_, slowest) = view.range(&accelerators)?;
    let span = islands(links, &accelerators);
    let span = match span {
        Some(1) => format!("{names} are one island"),
        Some(islands) => format!("{names} span {islands} islands"),
        None => format!("{names} are on no known island"),
    };
    // A ring that runs at the speed of the slowest pair is not worth a word.
    let ring = view.ring(&accelerators).filter(|ring| ring.link != slowest.link);
    let ring = ring.map_or_else(String::new, |ring| {
        format!("; a ring goes around it, at worst over {}", ring.shown())
    });
    Some(format!(
        "{span}; the slowest pair goes over {}{ring}; pairs of {node} range from {} to {}",
        slowest.shown(),
        best.shown(),
        worst.shown()
    ))
}

fn label(member: &LinkMember) -> String {
    member.device.as_ref().map_or(&member.label, |device| &device.device).to_string()
}

fn position(links: &Links, device: &DeviceKey) -> Option<usize> {
    links.members.iter().position(|member| member.device.as_ref() == Some(device))
}

/// The links of some nodes, each with the object that they are of.
pub type Nodes<'a> = &'a [(&'a Links, Option<&'a NodeTopology>)];

/// A path as a sentence names it everywhere: by a pair of these nodes that has it, else by what the
/// path itself tells.
pub(super) fn link_words(link: Link, nodes: Nodes<'_>) -> String {
    let pair = |(links, topology): &(&Links, Option<&NodeTopology>)| {
        let view = View { links, topology: *topology };
        let mut pairs = (1..links.members.len()).flat_map(|a| (0..a).map(move |b| (b, a)));
        pairs.find(|(a, b)| view.link(*a, *b) == link).map(|(a, b)| view.path(a, b).shown())
    };
    nodes.iter().find_map(pair).unwrap_or_else(|| {
        // Numbers of NVLinks of unknown speed stand in the same place.
        let gbps = link.gbps().filter(|gbps| *gbps >= 10).map(f64::from);
        Path { link, gbps, count: None }.shown()
    })
}

/// How many islands these members are on; none where one is on none.
fn islands(links: &Links, members: &[usize]) -> Option<usize> {
    let island = |i: &usize| links.members[*i].domains[index_of(Level::Island)];
    let mut found: Vec<u16> = members.iter().map(island).collect::<Option<_>>()?;
    found.sort_unstable();
    found.dedup();
    Some(found.len())
}

fn index_of(level: Level) -> usize {
    Level::ALL.iter().position(|known| *known == level).unwrap_or_default()
}

/// The path of a pair, and what the NodeTopology says of its speed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Path {
    link: Link,
    /// 10^9 bytes a second each way: as the NodeTopology says, else by the product.
    gbps: Option<f64>,
    /// NVLinks.
    count: Option<u32>,
}

impl Path {
    fn shown(self) -> String {
        let count = self.count.map(|count| format!("NV{count}"));
        let gbps = self.gbps.map(|gbps| format!("{gbps} GB/s"));
        let known: Vec<String> = count.into_iter().chain(gbps).collect();
        match known.as_slice() {
            [] => path(self.link.class()).to_owned(),
            [..] => format!("{} ({})", path(self.link.class()), known.join(", ")),
        }
    }

    fn is_better(self, other: Self) -> bool {
        let speed = |path: Self| path.gbps.unwrap_or(0.0);
        self.link < other.link || (self.link == other.link && speed(self) > speed(other))
    }
}

struct View<'a> {
    links: &'a Links,
    topology: Option<&'a NodeTopology>,
}

impl View<'_> {
    /// The path of a pair as named, else what its domains tell.
    fn link(&self, a: usize, b: usize) -> Link {
        let (low, high) = (a.min(b), a.max(b));
        let named = self
            .links
            .pairs
            .iter()
            .find(|(x, y, _)| usize::from(*x) == low && usize::from(*y) == high)
            .map(|(_, _, link)| *link);
        named.unwrap_or_else(|| self.by_domain(a, b))
    }

    /// What the narrowest domain that holds both tells of their path: no worse than that.
    fn by_domain(&self, a: usize, b: usize) -> Link {
        let domain = |i: usize, level: Level| self.links.members[i].domains[index_of(level)];
        let both = |level: Level| domain(a, level).filter(|of| domain(b, level) == Some(*of));
        if let Some(island) = both(Level::Island) {
            let gbps = self.links.island_gbps.get(usize::from(island)).copied().unwrap_or(0);
            return Link::new(LinkClass::Nvlink, gbps);
        }
        let known = [
            (Level::Switch, LinkClass::Switch),
            (Level::Root, LinkClass::HostBridge),
            (Level::Numa, LinkClass::Numa),
        ];
        if let Some((_, class)) = known.into_iter().find(|(level, _)| both(*level).is_some()) {
            return class.into();
        }
        let named = |i: usize| domain(i, Level::Numa).is_some_and(|of| of < UNNAMED_DOMAIN);
        if named(a) && named(b) { LinkClass::System.into() } else { Link::UNKNOWN }
    }

    fn path(&self, a: usize, b: usize) -> Path {
        let (one, other) = (&*self.links.members[a].label, &*self.links.members[b].label);
        let spec = self.topology.map(|topology| &topology.spec);
        let mut links = spec.iter().flat_map(|spec| &spec.links);
        let given = links
            .find(|link| (link.a == one && link.b == other) || (link.a == other && link.b == one));
        let mut islands = spec.iter().flat_map(|spec| &spec.islands);
        let island = islands.find(|island| {
            let has = |name: &str| island.members.iter().any(|member| member == name);
            has(one) && has(other)
        });
        let link = self.link(a, b);
        let nvlink = link.class() == LinkClass::Nvlink;
        let count = given.and_then(|link| link.links).filter(|count| nvlink && *count > 0);
        let said = given.and_then(|link| link.gbps);
        let of_island = || island.filter(|_| nvlink)?.gbps;
        let by_product = || {
            let gbps = link.gbps().filter(|_| count.is_some() && !self.links.nominal);
            gbps.map(f64::from)
        };
        let gbps = said.or_else(by_product).or_else(of_island);
        Path { link, gbps, count }
    }

    /// These members with the slowest of their pairs.
    fn span(&self, members: Vec<usize>) -> Option<Span> {
        let (_, slowest) = self.range(&members)?;
        let mut classes = 0;
        for (index, a) in members.iter().enumerate() {
            classes += members[index + 1..]
                .iter()
                .map(|b| self.link(*a, *b).class() as usize)
                .sum::<usize>();
        }
        Some(Span { members, slowest, classes })
    }

    fn names(&self, members: &[usize]) -> String {
        list(&members.iter().map(|i| label(&self.links.members[*i])).collect::<Vec<_>>())
    }

    /// A set with what it spans.
    fn set(&self, span: &Span) -> String {
        let islands = match islands(self.links, &span.members) {
            Some(1) => "one island, ".to_owned(),
            Some(islands) => format!("{islands} islands, "),
            None => String::new(),
        };
        let names = self.names(&span.members);
        format!("{names} ({islands}the slowest pair over {})", span.slowest.shown())
    }

    /// The best and the worst path among the pairs of these members.
    fn range(&self, members: &[usize]) -> Option<(Path, Path)> {
        let mut found: Option<(Path, Path)> = None;
        for (index, a) in members.iter().enumerate() {
            for b in &members[index + 1..] {
                let path = self.path(*a, *b);
                let (best, worst) = found.unwrap_or((path, path));
                let best = if path.is_better(best) { path } else { best };
                let worst = if worst.is_better(path) { path } else { worst };
                found = Some((best, worst));
            }
        }
        found
    }

    /// The worst path of the best ring through three members or more: what a ring collective runs at.
    fn ring(&self, members: &[usize]) -> Option<Path> {
        if members.len() < 3 {
            return None;
        }
        let bottleneck = best_ring(members, |a, b| self.link(a, b));
        let pairs = (1..members.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        let mut paths = pairs.map(|(a, b)| self.path(members[a], members[b]));
        paths.find(|path| path.link == bottleneck)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phalanx_engine::{Name, PoolKey};

    fn device(name: &str) -> DeviceKey {
        let pool = PoolKey { driver: Name::new("gpu.nvidia.com"), pool: Name::new("n1") };
        DeviceKey { pool, device: Name::new(name) }
    }

    fn links(islands: &[u16]) -> Links {
        let member = |(index, island): (usize, &u16)| LinkMember {
            label: Name::new(&format!("gpu-{index}")),
            device: Some(device(&format!("gpu-{index}"))),
            accelerator: true,
            nic: false,
            domains: [Some(*island), None, None, None, None],
        };
        let members = islands.iter().enumerate().map(member).collect();
        Links { members, ..Links::default() }
    }

    #[test]
    fn equal_paths_make_the_choice_indifferent() {
        let chosen = [device("gpu-0"), device("gpu-1")];
        let note = choice_note(&chosen, Some(&links(&[0; 4])), None, "n1").expect("a note");
        assert_eq!(
            note,
            "the choice is indifferent as to links: every pair of the 4 accelerators of n1 is \
             joined by NVLink"
        );
    }

    #[test]
    fn a_ranked_choice_says_what_it_spans() {
        let mut links = links(&[0, 0, 1, 1]);
        links.pairs = vec![(1, 2, LinkClass::System.into())];
        let chosen = [device("gpu-1"), device("gpu-2")];
        let note = choice_note(&chosen, Some(&links), None, "n1").expect("a note");
        assert!(note.starts_with("gpu-1 and gpu-2 span 2 islands; the slowest pair goes over"));
        assert!(note.contains("(SYS)"), "{note}");
        let chosen = [device("gpu-0"), device("gpu-1")];
        let note = choice_note(&chosen, Some(&links), None, "n1").expect("a note");
        assert!(note.starts_with("gpu-0 and gpu-1 are one island"), "{note}");
    }

    #[test]
    fn bandwidths_are_named_where_they_are_known() {
        let topology: NodeTopology = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "n1"},
            "spec": {
                "links": [{"a": "gpu-1", "b": "gpu-2", "class": "SYS", "gbps": 11.5}],
                "islands": [
                    {"name": "left", "members": ["gpu-0", "gpu-1"], "gbps": 56.25},
                    {"name": "right", "members": ["gpu-2", "gpu-3"], "gbps": 56.25},
                ],
            },
        }))
        .expect("a topology");
        let mut links = links(&[0, 0, 1, 1]);
        links.pairs = vec![(1, 2, LinkClass::System.into())];
        let chosen = [device("gpu-0"), device("gpu-1")];
        let note = choice_note(&chosen, Some(&links), Some(&topology), "n1").expect("a note");
        assert!(note.contains("the slowest pair goes over NVLink (56.25 GB/s)"), "{note}");
    }

    #[test]
    fn what_is_not_known_is_said() {
        let chosen = [device("gpu-0"), device("gpu-1")];
        let note = choice_note(&chosen, None, None, "n1").expect("a note");
        assert_eq!(note, "links of n1 are unknown: no NodeTopology describes it");
        assert_eq!(choice_note(&chosen[..1], None, None, "n1"), None);
    }

    #[test]
    fn a_domain_in_common_tells_a_path() {
        let mut links = links(&[0, 1, 2, 3]);
        for (at, member) in links.members.iter_mut().enumerate() {
            let pair = u16::try_from(at / 2).expect("small");
            member.domains = [None, Some(pair), Some(0), Some(0), None];
        }
        let all: Vec<DeviceKey> = (0..4).map(|at| device(&format!("gpu-{at}"))).collect();
        let note = choice_note(&all[..2], Some(&links), None, "n1").expect("a note");
        let said = "goes over one PCIe switch (PIX); pairs of n1 range from one PCIe switch (PIX) \
                    to a PCIe host bridge (PHB)";
        assert!(note.ends_with(said), "{note}");
        assert!(in_one(&links, &all[..2], Level::Switch));
        assert!(!in_one(&links, &all, Level::Switch));
        assert!(in_one(&links, &all, Level::Root) && !in_one(&links, &all, Level::Rail));
    }

    #[test]
    fn wishes_are_named_by_their_levels() {
        let mut found = AlignWords {
            kept: vec![Level::Switch, Level::Numa],
            unmet: vec![Level::Island],
            unaligned: Some(1),
            lost: vec![Name::new("mlx0")],
        };
        assert_eq!(
            align_notes(&found),
            [
                "aligned as phalanx.dev/align asks: under one PCIe switch and on one NUMA node",
                "not counted in it: mlx0, for nothing tells where that is",
                "not aligned: the preferred level island of phalanx.dev/align can't be kept here",
            ]
        );
        (found.kept, found.unmet, found.lost) = <_>::default();
        assert!(align_notes(&found)[0].starts_with("not aligned: 1 preferred level of"));
        assert_eq!(align_notes(&AlignWords::default()), Vec::<String>::new());
    }

    fn counted<'a>(links: &'a Links, amount: usize, all_free: bool) -> Counted<'a> {
        let allocatable = links.members.len();
        Counted { amount, allocatable, all_free, links, topology: None, node: "n1" }
    }

    #[test]
    fn a_counters_devices_may_span_more_or_less() {
        let mut links = links(&[0, 0, 0, 1, 1, 1]);
        for member in &mut links.members {
            member.device = None;
        }
        for a in 0..3 {
            links.pairs.extend((3..6).map(|b| (a, b, LinkClass::System.into())));
        }
        let note = spread_note(&counted(&links, 3, true)).expect("a note");
        assert_eq!(
            note,
            "the counter's 3 devices may have 2 different speeds: at best gpu-0, gpu-1 and gpu-2 \
             (one island, the slowest pair over NVLink); at worst gpu-0, gpu-1 and gpu-3 (2 islands, \
             the slowest pair over the link between NUMA nodes (SYS)); while no other pod has any, \
             the device plugin is likely to prefer gpu-0, gpu-1 and gpu-2"
        );
        let note = spread_note(&counted(&links, 3, false)).expect("a note");
        assert!(note.ends_with("is not known, and so neither is which are likely"), "{note}");
        let note = spread_note(&counted(&links, 4, true)).expect("a note");
        assert!(note.starts_with("whichever they are, their slowest pair goes over"), "{note}");
        assert_eq!(spread_note(&counted(&links, 1, true)), None);
        let other = Counted { allocatable: 4, ..counted(&links, 2, true) };
        assert_eq!(spread_note(&other), None, "the links are of other devices");
    }

    #[test]
    fn equal_paths_leave_a_counter_nothing_to_choose() {
        let links = links(&[0; 4]);
        let note = spread_note(&counted(&links, 2, true)).expect("a note");
        assert_eq!(note, "whichever they are, every pair of them is joined by NVLink");
    }

    #[test]
    fn a_counter_says_what_it_does_not_know() {
        let note = counter_note("nvidia.com/gpu", 4, "n1");
        assert!(note.contains("the kubelet of n1 will choose the 4 devices"), "{note}");
    }
}
