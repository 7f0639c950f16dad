//! Groups of several ranks that ask for MIG devices. These have no peer access, neither over NVLink nor
//! over PCIe, not even to each other on one GPU (NVIDIA's MIG user guide), so that NCCL can't connect
//! ranks by them.

use std::collections::BTreeMap;

use phalanx_objects::resource::{DeviceAttribute, DeviceSelector};

use super::bench::{Bench, texts};
use crate::finding::{Finding, Severity};
use crate::lower::{ClaimInfo, GroupInfo, PodInfo};
use crate::view::{counters_of, home_of};
use crate::words;
use crate::world::World;

/// Compute slices of a whole GPU, of every model that can be partitioned (MIG user guide).
const SLICES: u64 = 7;

/// What tells whether a device is a partition, and of which profile, by NVIDIA's driver.
const TYPE: &str = "gpu.nvidia.com/type";
const PROFILE: &str = "gpu.nvidia.com/profile";

/// What a group asks for.
#[derive(Debug, Default)]
struct Asked {
    /// MIG devices of all its pods, by profile.
    profiles: BTreeMap<String, u64>,
    /// How they are asked for.
    by: Vec<String>,
}

/// Looks at groups one by one.
pub(crate) struct Partitions<'w> {
    world: &'w World,
    /// Made when the first claim is to be tried on devices.
    bench: Option<Bench<'w>>,
}

impl<'w> Partitions<'w> {
    pub(crate) fn new(world: &'w World) -> Self {
        Self { world, bench: None }
    }

    /// What there is to say of a group; nothing of one that does not start whole, or of one pod.
    pub(crate) fn of(&mut self, info: &GroupInfo) -> Option<Finding> {
        if !info.gang || self.world.lowering().needed(&info.key) < 2 {
            return None;
        }
        let mut asked = Asked::default();
        let mut pods = 0;
        for role in &info.roles {
            let Some(first) = role.pods.first() else { continue };
            pods += role.pods.len() as u64;
            counted(self.world, first, role.pods.len() as u64, &mut asked);
            if first.claims.iter().any(|claim| self.speaks_of_partitions(claim)) {
                let bench = self.bench.get_or_insert_with(|| Bench::new(self.world));
                claimed(bench, first, role.pods.len() as u64, &mut asked);
            }
        }
        if asked.profiles.is_empty() {
            return None;
        }
        asked.by.sort();
        asked.by.dedup();
        let lowering = self.world.lowering();
        let object = lowering.object_of_group(&info.key);
        let source = lowering.source(&object).unwrap_or(&info.source);
        Some(Finding {
            severity: Severity::Warning,
            object: Some(object.clone()),
            file: source.file.clone(),
            line: source.line,
            path: String::new(),
            message: message(pods, &asked),
        })
    }

    /// Whether a claim could mean partitions alone: it, or a class that it names, has a word of them.
    fn speaks_of_partitions(&self, claim: &ClaimInfo) -> bool {
        let says =
            |selectors: &[DeviceSelector]| texts(selectors).any(|(_, text)| text.contains("mig"));
        let class = |name: &str| {
            let class = self.world.lowering().class(name);
            name.contains("mig") || class.is_some_and(|class| says(&class.spec.selectors))
        };
        claim.spec.requests.iter().any(|request| {
            let exactly = request.exactly.iter();
            let subs = request.first_available.iter();
            exactly.into_iter().any(|e| class(&e.device_class_name) || says(&e.selectors))
                || subs.into_iter().any(|s| class(&s.device_class_name) || says(&s.selectors))
        })
    }
}

/// MIG devices that a role's pods ask for as counters.
fn counted(world: &World, pod: &PodInfo, pods: u64, asked: &mut Asked) {
    let Some(objects) = world.objects() else { return };
    let Some(spec) = crate::lower::pod_spec(objects, &home_of(pod), pod.role) else { return };
    for (resource, amount) in counters_of(&spec) {
        let Some((_, profile)) = resource.split_once("/mig-") else { continue };
        let amount = u64::try_from(amount).unwrap_or(0).saturating_mul(pods);
        let of_profile = asked.profiles.entry(profile.to_owned()).or_default();
        *of_profile = of_profile.saturating_add(amount);
        asked.by.push(resource);
    }
}

/// MIG devices that a role's pods ask for by claims: where every device that a request could get is one.
fn claimed(bench: &Bench<'_>, pod: &PodInfo, pods: u64, asked: &mut Asked) {
    for claim in &pod.claims {
        for request in &claim.spec.requests {
            let exactly =
                request.exactly.iter().map(|e| (&e.device_class_name, &e.selectors, e.count));
            let subs = request.first_available.iter();
            let subs = subs.map(|s| (&s.device_class_name, &s.selectors, s.count));
            let partitions = exactly.chain(subs).map(|(class, selectors, count)| {
                let of_class = bench.of_class(class).unwrap_or_default();
                let found = bench.passing(selectors, of_class);
                let each: Option<Vec<String>> =
                    found.iter().map(|at| partition(bench, *at)).collect();
                Some((each?.into_iter().next()?, count))
            });
            let partitions: Option<Vec<(String, i64)>> = partitions.collect();
            let Some((profile, count)) = partitions.and_then(|all| all.into_iter().next()) else {
                continue;
            };
            let count = u64::try_from(count).unwrap_or(0).max(1).saturating_mul(pods);
            let of_profile = asked.profiles.entry(profile).or_default();
            *of_profile = of_profile.saturating_add(count);
            asked.by.push(format!("request {} of claim {}", request.name, claim.pod_claim));
        }
    }
}

/// The profile of a device that is a partition.
fn partition(bench: &Bench<'_>, at: usize) -> Option<String> {
    let device = bench.world.lowering().device(&bench.alike.get(at)?.first)?;
    let text = |name: &str| {
        let found = device.attributes.iter().find(|(own, _)| own.as_str() == name);
        match found {
            Some((_, DeviceAttribute::String(text))) => Some(text.clone()),
            Some(_) | None => None,
        }
    };
    text(TYPE).filter(|kind| kind == "mig")?;
    Some(text(PROFILE).unwrap_or_default())
}

fn message(pods: u64, asked: &Asked) -> String {
    // `3g.40gb` has three compute slices.
    let slices = |(profile, count): (&String, &u64)| {
        let number = profile.split('g').next().and_then(|number| number.parse::<u64>().ok());
        number.unwrap_or(1).saturating_mul(*count)
    };
    let all = asked.profiles.iter().map(slices).fold(0, u64::saturating_add);
    let devices = asked.profiles.values().copied().fold(0, u64::saturating_add);
    let whole = all.div_ceil(SLICES).max(1);
    let by = words::list(&asked.by);
    let gpus = words::count(whole, "whole GPU", "whole GPUs");
    let ranks = match devices {
        0 | 1 => String::new(),
        many => format!("; with a GPU for each of the {many} ranks they are connected"),
    };
    format!(
        "Its {pods} pods start together and ask for {} ({by}). MIG devices have no peer access, neither \
         over NVLink nor over PCIe, not even on one GPU, so that NCCL can't connect ranks by them. The \
         smallest request of whole GPUs with as much to compute with is {gpus} in one pod{ranks}.",
        words::count(devices, "MIG device", "MIG devices"),
    )
}
