//! Tests of lowering: what each object becomes, and that the order of events does not matter.
#![expect(clippy::wildcard_enum_match_arm, reason = "a test picks one kind of change of many")]

mod admission;
mod amounts;
mod around;
mod devices;
mod findings;
mod gangs;
mod kinds;
mod orders;
mod pods;
mod trees;

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{
    Change, Claim, Group, GroupKey, Links, Match, Member, Node, PodSelectorId, Pool, ProfileId,
    Reason, SelectorId,
};
use phalanx_objects::{Item, Object, read};

use super::{Lowering, ObjectEvent};
use crate::compat::Compat;
use crate::finding::{Finding, Source};

/// A lowering, and the state that its changes add up to.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) lowering: Lowering,
    facts: BTreeMap<String, Change>,
    matches: BTreeMap<(SelectorId, ProfileId), Match>,
    pub(super) findings: Vec<Finding>,
}

/// The objects of a text, with their places in the input.
pub(super) fn objects(text: &str) -> Vec<(Object, Source)> {
    let mut all = Vec::new();
    read("test.yaml", text.as_bytes(), &mut |item| match item {
        Item::Object(object, source) => {
            let ordinal = all.len() as u64;
            all.push((object, Source { file: source.file, line: source.line, ordinal }));
        }
        Item::Gone(object, _) => panic!("{} is gone", object.reference()),
        Item::Unknown { kind, .. } => panic!("unknown kind {kind}"),
        Item::Problem(problem) => assert!(
            problem.severity != phalanx_objects::Severity::Error,
            "line {}: {}: {}",
            problem.line,
            problem.path,
            problem.message
        ),
    });
    all
}

impl World {
    pub(super) fn new(lowering: Lowering) -> Self {
        Self { lowering, facts: BTreeMap::new(), matches: BTreeMap::new(), findings: Vec::new() }
    }

    /// A world of the objects of a text, for the default version.
    pub(super) fn of(text: &str) -> Self {
        Self::with(Compat::default(), text)
    }

    pub(super) fn with(compat: Compat, text: &str) -> Self {
        let mut world = Self::new(Lowering::new(compat));
        world.add(text);
        world
    }

    pub(super) fn add(&mut self, text: &str) {
        for (object, source) in objects(text) {
            self.lowering.absorb(ObjectEvent::Applied(Box::new(object), source));
        }
        self.settle();
    }

    pub(super) fn settle(&mut self) {
        let changes = self.lowering.settle();
        self.findings = self.lowering.findings();
        for change in changes {
            self.apply(change);
        }
    }

    fn apply(&mut self, change: Change) {
        let (key, there) = match &change {
            Change::Node(key, value) => (format!("{key:?}"), value.is_some()),
            Change::Pool(key, value) => (format!("{key:?}"), value.is_some()),
            Change::Links(key, value) => (format!("links {key:?}"), value.is_some()),
            Change::Group(key, value) => (format!("{key:?}"), value.is_some()),
            Change::Member(key, value) => (format!("{key:?}"), value.is_some()),
            Change::Claim(key, value) => (format!("{key:?}"), value.is_some()),
            Change::Volume(key, value) => (format!("{key:?}"), value.is_some()),
            Change::VolumeClaim(key, value) => (format!("{key:?}"), value.is_some()),
            Change::StorageClass(key, value) => (format!("class {key:?}"), value.is_some()),
            Change::StorageDriver(key, value) => (format!("driver {key:?}"), value.is_some()),
            Change::NodeStorage(key, value) => (format!("storage {key:?}"), value.is_some()),
            Change::Match(selector, profile, verdict) => {
                self.matches.insert((*selector, *profile), *verdict);
                return;
            }
            Change::Derived(of, profile, value) => {
                (format!("derived {of:?} {profile:?}"), value.is_some())
            }
            Change::Topology(key, value) => (format!("{key:?}"), value.is_some()),
            Change::Domains(node, key, value) => (format!("{node:?} {key:?}"), value.is_some()),
            Change::Queue(..) | Change::Hold(..) | Change::Assume(..) | Change::Settle(..) => {
                panic!("nobody lowers {change:?}")
            }
        };
        if there {
            self.facts.insert(key, change);
        } else {
            self.facts.remove(&key);
        }
    }

    /// The facts as text in which numbers of selectors and profiles are told by what they mean.
    pub(super) fn canonical(&self) -> Vec<String> {
        let raw: Vec<String> = self.facts.values().map(|change| format!("{change:?}")).collect();
        // The selectors of each alternative: the first that does not say yes decides.
        let rows: BTreeSet<Vec<u32>> = raw
            .iter()
            .flat_map(|line| line.split("selectors: [").skip(1))
            .filter_map(|rest| Some(numbers(rest.split(']').next()?, "SelectorId(")))
            .collect();
        let text = |id: u32| {
            let text = self.lowering.selector_text(SelectorId(id)).unwrap_or("?");
            format!("selector {text:?}")
        };
        let verdicts = |id: u32| {
            let said = |s: &u32| (*s, self.matches.get(&(SelectorId(*s), ProfileId(id))));
            let mut all: Vec<String> = rows
                .iter()
                .map(|row| {
                    let texts: Vec<String> = row.iter().map(|s| text(*s)).collect();
                    let first = row.iter().map(said).find(|(_, said)| *said != Some(&Match::Yes));
                    format!("{texts:?} {:?}", first.map(|(s, said)| (text(s), said)))
                })
                .collect();
            all.sort();
            format!("{all:?}")
        };
        let meant = |id: u32| format!("{:?}", self.lowering.pods_meant(PodSelectorId(id)));
        raw.iter()
            .map(|line| replaced(&sorted_meant(line, &meant), "ProfileId(", verdicts))
            .map(|line| replaced(&line, "SelectorId(", text))
            .collect()
    }

    pub(super) fn group(&self, kind: &str, name: &str) -> Option<&Group> {
        self.facts.values().find_map(|change| match change {
            Change::Group(key, Some(group)) if is(key, kind, name) => Some(group),
            _ => None,
        })
    }

    /// The reason for which a pod or workload can't be placed whatever the nodes.
    pub(super) fn fault(&self, kind: &str, name: &str) -> Option<Reason> {
        let request = &self.group(kind, name).expect("the group").roles[0].request;
        let of_claims = request.claims.iter().filter_map(|claim| match claim {
            phalanx_engine::ClaimUse::Own(spec) => spec.fault.clone(),
            _ => None,
        });
        request.fault.iter().cloned().chain(of_claims).map(|fault| fault.reason).min()
    }

    pub(super) fn member(&self, name: &str) -> Option<&Member> {
        self.facts.values().find_map(|change| match change {
            Change::Member(key, Some(member)) if key.0.name.as_str() == name => Some(member),
            _ => None,
        })
    }

    pub(super) fn claim(&self, name: &str) -> Option<&Claim> {
        self.facts.values().find_map(|change| match change {
            Change::Claim(key, Some(claim)) if key.0.name.as_str() == name => Some(claim),
            _ => None,
        })
    }

    pub(super) fn node(&self, name: &str) -> Option<&Node> {
        self.facts.values().find_map(|change| match change {
            Change::Node(key, Some(node)) if key.0.as_str() == name => Some(node),
            _ => None,
        })
    }

    pub(super) fn pool(&self, name: &str) -> Option<&Pool> {
        self.facts.values().find_map(|change| match change {
            Change::Pool(key, Some(pool)) if key.pool.as_str() == name => Some(pool),
            _ => None,
        })
    }

    pub(super) fn links(&self, node: &str) -> Option<&Links> {
        self.facts.values().find_map(|change| match change {
            Change::Links(key, Some(links)) if key.0.as_str() == node => Some(links),
            _ => None,
        })
    }

    /// What the selectors of a workload's first request say of a device.
    pub(super) fn verdicts(&self, pool: &str, device: &str) -> BTreeMap<String, Match> {
        let devices = self.pool(pool).expect("the pool").slices.iter().flat_map(|s| &s.devices);
        let found = devices.clone().find(|d| d.name.as_str() == device).expect("the device");
        self.matches
            .iter()
            .filter(|((_, profile), _)| *profile == found.traits.profile)
            .map(|((selector, _), verdict)| {
                (self.lowering.selector_text(*selector).unwrap_or("?").to_owned(), *verdict)
            })
            .collect()
    }

    /// The findings as lines: severity, object, path, sentence.
    pub(super) fn said(&self) -> Vec<String> {
        let line = |f: &Finding| {
            let object = f.object.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} {object} {}: {}", f.severity.as_str(), f.path, f.message)
        };
        self.findings.iter().map(line).collect()
    }

    pub(super) fn says(&self, parts: &[&str]) -> bool {
        self.said().iter().any(|line| parts.iter().all(|part| line.contains(part)))
    }
}

fn is(key: &GroupKey, kind: &str, name: &str) -> bool {
    key.kind.as_str() == kind && key.object.name.as_str() == name
}

/// The numbers that follow a mark in a text.
fn numbers(text: &str, mark: &str) -> Vec<u32> {
    let parts = text.split(mark).skip(1);
    parts.filter_map(|part| part.split(')').next()?.parse().ok()).collect()
}

/// The text with the numbers of pods' selectors replaced by what they mean, and lists of them sorted
/// by that.
fn sorted_meant(line: &str, meant: &impl Fn(u32) -> String) -> String {
    let mut parts = line.split("matched: [");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (list, rest) = part.split_once(']').expect("a list that ends");
        let mut all: Vec<String> = numbers(list, "PodSelectorId(").into_iter().map(meant).collect();
        all.sort();
        out.push_str(&format!("matched: {all:?}{rest}"));
    }
    replaced(&out, "PodSelectorId(", meant)
}

/// The text with each `mark…)` in it replaced by what its number means.
fn replaced(text: &str, mark: &str, meaning: impl Fn(u32) -> String) -> String {
    let mut parts = text.split(mark);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_once(')').expect("a closed number");
        out.push_str(&meaning(number.parse().expect("a number")));
        out.push_str(rest);
    }
    out
}
