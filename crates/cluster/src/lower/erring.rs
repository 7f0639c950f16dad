//! Selectors that end in an error on a device that somebody waits for: one finding a selector, on
//! the object that holds it.
//!
//! An error counts where the search could come to it: each selector before it in the request says
//! yes. What the error does to the allocation is the engine's.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_engine::{Alternative, DeviceKey, Match, PodKey, ProfileId, Scoped, SelectorId};
use phalanx_objects::{Kind, ObjectRef};

use super::absorb::findings;
use super::claim::SpecId;
use super::record::{ClaimRecord, Life, PodClaimSource};
use super::selector::seen;
use super::settle::{cluster_object, object};
use super::{Dependent, Lowering};
use crate::finding::{Finding, Severity};

/// Longest expression that a finding shows whole, in characters.
const EXPRESSION_MAX: usize = 80;

/// Where a selector stands: the object, and the field.
type Place = (ObjectRef, String);

/// The profiles on which selectors err, by where the selector stands.
type Cases = BTreeMap<Place, (SelectorId, BTreeSet<ProfileId>)>;

impl Lowering {
    /// The findings that there are now.
    pub(super) fn erring(&self) -> Vec<Finding> {
        let erring = &self.shown.erring;
        if !erring.keys().any(|selector| self.live.selectors().contains(selector)) {
            return Vec::new();
        }
        let mut cases = Cases::new();
        for (spec, templates) in &self.index.spec_templates {
            for key in templates.iter().filter(|key| self.is_awaited(key)) {
                let holder = object(Kind::ResourceClaimTemplate, key);
                self.erring_in(*spec, &holder, "spec.spec.devices", &mut cases);
            }
        }
        for (spec, claims) in &self.index.spec_claims {
            for key in claims {
                let record = self.objects.claims.get(key);
                if record.is_some_and(|record| self.is_asked(key, record)) {
                    let holder = object(Kind::ResourceClaim, &key.0);
                    self.erring_in(*spec, &holder, "spec.devices", &mut cases);
                }
            }
        }
        cases.iter().flat_map(|(place, (id, profiles))| self.told(place, *id, profiles)).collect()
    }

    /// Whether a pod that waits uses the template, or one that is to come.
    fn is_awaited(&self, template: &Scoped) -> bool {
        let users = self.index.template.get(template).into_iter().flatten();
        users.into_iter().any(|user| match user {
            Dependent::Pod(pod) => self.waits(pod),
            Dependent::Role(group, role) => self.is_making(group, *role),
        })
    }

    fn waits(&self, pod: &PodKey) -> bool {
        self.objects.pods.get(pod).is_some_and(|pod| pod.life == Life::Pending)
    }

    /// Whether a pod waits for the claim's devices. Of a claim that was made from a template it is
    /// said on the template, where that is known.
    fn is_asked(&self, key: &phalanx_engine::ClaimKey, claim: &ClaimRecord) -> bool {
        if claim.held.is_some() {
            return false;
        }
        let mut users = self.index.claim.get(key).into_iter().flatten();
        if let (Some((pod, _)), Some(name)) = (&claim.owner, &claim.pod_claim) {
            return self.waits(pod) && !self.has_template(pod, name);
        }
        users.any(|pod| self.waits(pod))
    }

    fn has_template(&self, pod: &PodKey, claim: &str) -> bool {
        let Some(record) = self.objects.pods.get(pod) else { return false };
        let mut sources = record.shape.claims.iter().filter(|c| c.name.as_str() == claim);
        sources.any(|claim| match &claim.source {
            PodClaimSource::Template(name) => {
                let namespace = pod.0.namespace.clone();
                self.objects.templates.contains_key(&Scoped { namespace, name: name.clone() })
            }
            PodClaimSource::Claim(_) | PodClaimSource::Invalid => false,
        })
    }

    /// Adds the selectors that err in a spec.
    fn erring_in(&self, spec: SpecId, holder: &ObjectRef, at: &str, cases: &mut Cases) {
        let Some(spec) = self.specs.resolved(spec).filter(|spec| spec.fault.is_none()) else {
            return;
        };
        for (index, request) in spec.requests.iter().enumerate() {
            for (sub, alternative) in request.alternatives.iter().enumerate() {
                let path = match alternative.name {
                    None => format!("{at}.requests[{index}].exactly"),
                    Some(_) => format!("{at}.requests[{index}].firstAvailable[{sub}]"),
                };
                for (selector, profile) in self.reached(alternative) {
                    let own = selector.checked_sub(usize::from(alternative.class_selectors));
                    let (object, path, at) = match own {
                        None => {
                            let class = cluster_object(Kind::DeviceClass, &alternative.class);
                            (class, "spec", selector)
                        }
                        Some(own) => (holder.clone(), path.as_str(), own),
                    };
                    let place = (object, format!("{path}.selectors[{at}].cel.expression"));
                    let Some(id) = alternative.selectors.get(selector) else { continue };
                    let case = cases.entry(place).or_insert_with(|| (*id, BTreeSet::new()));
                    case.1.insert(profile);
                }
                self.erring_derived(alternative, holder, &path, cases);
            }
        }
    }

    /// Adds the derived attributes that err on devices that pass the selectors.
    fn erring_derived(
        &self,
        alternative: &Alternative,
        holder: &ObjectRef,
        path: &str,
        cases: &mut Cases,
    ) {
        let passes = |profile: &ProfileId| {
            let says = |id: &SelectorId| self.shown.verdicts.get(&(*id, *profile)).copied();
            alternative.selectors.iter().all(|id| says(id) == Some(Match::Yes))
        };
        for (name, id) in &alternative.derived {
            let erring = self.shown.erring.get(id).into_iter().flatten();
            let profiles: BTreeSet<ProfileId> = erring.copied().filter(passes).collect();
            if !profiles.is_empty() {
                let place =
                    (holder.clone(), format!("{path}.derivedAttributes[{name}].expression"));
                cases.entry(place).or_insert_with(|| (*id, BTreeSet::new())).1.extend(profiles);
            }
        }
    }

    /// The errors that a search can come to: place of the selector, and the profile.
    fn reached(&self, alternative: &Alternative) -> Vec<(usize, ProfileId)> {
        let erring = |id: &SelectorId| self.shown.erring.get(id).into_iter().flatten().copied();
        let profiles: BTreeSet<ProfileId> = alternative.selectors.iter().flat_map(erring).collect();
        let first_no_yes = |profile: ProfileId| {
            let verdict = |id: &SelectorId| self.shown.verdicts.get(&(*id, profile)).copied();
            let mut verdicts = alternative.selectors.iter().map(verdict).enumerate();
            let (at, verdict) = verdicts.find(|(_, verdict)| *verdict != Some(Match::Yes))?;
            (verdict == Some(Match::Error)).then_some((at, profile))
        };
        profiles.into_iter().filter_map(first_no_yes).collect()
    }

    /// The finding, if a device has one of the profiles now.
    fn told(&self, place: &Place, id: SelectorId, on: &BTreeSet<ProfileId>) -> Vec<Finding> {
        let mut count = 0;
        let mut first: Option<(DeviceKey, ProfileId)> = None;
        for (pool, record) in &self.objects.pools {
            for (profile, alike) in record.profiles.iter().filter(|(id, _)| on.contains(id)) {
                count += alike.count;
                let device = alike.first.clone();
                let key = device.map(|device| DeviceKey { pool: pool.clone(), device });
                if let Some(key) = key.filter(|key| first.as_ref().is_none_or(|(f, _)| key < f)) {
                    first = Some((key, *profile));
                }
            }
        }
        let (reference, path) = place;
        let Some(header) = self.header(reference) else { return Vec::new() };
        let Some((device, profile)) = first else { return Vec::new() };
        let Some(projection) = self.profiles.get(profile) else { return Vec::new() };
        let seen = seen(projection, &self.interned.attributes);
        let (what, error) = if self.selectors.is_derived(id) {
            ("derived attribute", self.selectors.attribute(id, &seen).err())
        } else {
            ("selector", self.selectors.ask(id, &seen).err())
        };
        let message = sentence(
            what,
            self.selectors.text(id).unwrap_or_default(),
            &device,
            count,
            &error.unwrap_or_default(),
        );
        findings(reference, &header.source, vec![(Severity::Warning, path.clone(), message)])
    }
}

fn sentence(what: &str, expression: &str, device: &DeviceKey, count: u64, error: &str) -> String {
    let expression = shortened(expression);
    let device = format!("{}/{}/{}", device.pool.driver, device.pool.pool, device.device);
    let (on, left) = match count {
        0 | 1 => (format!("device {device}"), "it is left out".to_owned()),
        many => (format!("{many} devices, such as {device}"), format!("all {many} are left out")),
    };
    format!(
        "The {what} `{expression}` ends in an error on {on}: {error}. By default {left}; \
         kube-scheduler ends the pod's attempt when its search comes to such a device, and so does \
         `--device-order upstream --strict-cel`."
    )
}

/// An expression on one line, cut where it is long.
pub(crate) fn shortened(expression: &str) -> String {
    let line = expression.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= EXPRESSION_MAX {
        return line;
    }
    line.chars().take(EXPRESSION_MAX - 1).chain(['…']).collect()
}
