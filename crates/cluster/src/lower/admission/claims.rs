//! Claims on volumes that do not exist yet: what the API server asks of each (`core/validation`,
//! `ValidatePersistentVolumeClaimSpec`), and the LimitRanges of their namespace (LimitRanger). A manifest's
//! own, those that a workload has made for its pods, and those of ephemeral volumes.

use std::collections::BTreeMap;

use phalanx_engine::{GroupKey, Name, PodKey, Scoped, VolumeClaim, VolumeClaimKey};
use phalanx_objects::Kind;
use phalanx_objects::admission::LimitType;

use super::Admission;
use crate::finding::{Finding, Severity};
use crate::lower::Lowering;
use crate::lower::absorb::findings;
use crate::lower::intern::nanos;
use crate::lower::record::Life;
use crate::lower::settle::{object, workload_kind};
use crate::lower::valid::{CLAIM_SIZE, volume_claim};
use crate::lower::volumes::PodVolume;
use crate::lower::workload::WorkloadRecord;

/// The resource that says how large a volume is.
const STORAGE: &str = "storage";

impl Admission {
    /// The bound that a claim of a size does not keep, for a sentence.
    fn breach(&self, namespace: &str, claim: &str, size_nanos: Option<i128>) -> Option<String> {
        // What asks for no size is refused for that, whatever the ranges say.
        let size = size_nanos?;
        self.limits_of(namespace).find_map(|(range, items)| {
            let of_claims =
                items.iter().filter(|item| item.r#type == LimitType::PersistentVolumeClaim);
            of_claims.into_iter().find_map(|item| {
                let least = item.min.get(STORAGE).filter(|least| nanos(least) > size);
                let most = item.max.get(STORAGE).filter(|most| nanos(most) < size);
                match (least, most) {
                    (Some(least), _) => Some(format!(
                        "LimitRange {range} wants at least {least} of storage, and the claim {claim} \
                         asks for less"
                    )),
                    (None, Some(most)) => Some(format!(
                        "LimitRange {range} allows at most {most} of storage, and the claim {claim} \
                         asks for more"
                    )),
                    (None, None) => None,
                }
            })
        })
    }
}

impl Lowering {
    /// Why the API server would refuse a claim that is not made yet, for a sentence.
    pub(in crate::lower) fn claim_refused(
        &self,
        namespace: &Name,
        name: &str,
        claim: &VolumeClaim,
    ) -> Option<String> {
        match unfit_to_come(claim) {
            Some((_, why)) => Some(format!("of the claim {name}, {why}")),
            None => self.out_of_range(namespace, name, claim),
        }
    }

    /// The bound of a LimitRange that a claim that is not made yet does not keep, for a sentence.
    fn out_of_range(&self, namespace: &Name, name: &str, claim: &VolumeClaim) -> Option<String> {
        let ranges = &self.objects.admission;
        if !claim.to_come || ranges.limit_ranges.is_empty() {
            return None;
        }
        ranges.breach(namespace, name, claim.size_nanos)
    }

    /// The claims of the input that the API server would refuse.
    pub(in crate::lower) fn refused_claims(&self) -> Vec<Finding> {
        let mut all = Vec::new();
        for (key, (header, claim)) in &self.storage.claims {
            let unfit = unfit_to_come(claim).map(|(field, why)| (field, why.to_owned()));
            let range = || self.out_of_range(&key.0.namespace, &key.0.name, claim);
            let refused = unfit.or_else(|| Some((CLAIM_SIZE, range()?)));
            let Some((field, why)) = refused else { continue };
            let message = format!("The API server would refuse the claim: {why}.");
            let note = (Severity::Error, format!("spec.{field}"), message);
            let reference = object(Kind::PersistentVolumeClaim, &key.0);
            all.extend(findings(&reference, &header.source, vec![note]));
        }
        if !self.objects.admission.limit_ranges.is_empty() {
            all.extend(self.refused_of_pods());
        }
        for key in self.making() {
            let Some(record) = self.objects.workloads.get(key) else { continue };
            all.extend(self.refused_of_roles(key, record));
            let given = record.roles.iter().any(|role| !role.volume_claims.is_empty());
            // Most workloads have none made.
            let due = if given { self.due(key, record) } else { continue };
            let why = record.roles.iter().zip(&due).find_map(|(role, due)| {
                let mut runs = self.runs(key, record.kind, role, due).into_iter();
                runs.find_map(|run| self.unclaimed(&key.object.namespace, role, run))
            });
            let Some(why) = why else { continue };
            let message = format!("The API server would refuse the claims of its pods: {why}.");
            let note = (Severity::Error, "spec".to_owned(), message);
            let reference = object(workload_kind(key), &key.object);
            all.extend(findings(&reference, &record.header.source, vec![note]));
        }
        all
    }

    /// Of the ephemeral volumes of pods that wait.
    fn refused_of_pods(&self) -> Vec<Finding> {
        let waiting = self.objects.pods.iter().filter(|(_, pod)| pod.life == Life::Pending);
        let told = waiting.filter_map(|(key, pod)| {
            let why = self.refused_of(&key.0.namespace, &pod.shape.volumes, Some(key))?;
            let message = format!("The API server would refuse the claim of a volume: {why}.");
            let note = (Severity::Error, "spec.volumes".to_owned(), message);
            Some((key, findings(&object(Kind::Pod, &key.0), &pod.header.source, vec![note])))
        });
        told.collect::<BTreeMap<_, _>>().into_values().flatten().collect()
    }

    /// Of the ephemeral volumes of pods that a workload is still to make.
    fn refused_of_roles(&self, key: &GroupKey, record: &WorkloadRecord) -> Vec<Finding> {
        let roles = record.roles.iter().zip(0_u16..);
        let told = roles.filter_map(|(role, number)| {
            let why = self.refused_of(&key.object.namespace, &role.shape.volumes, None)?;
            let due = self.missing(key, record, number) > 0;
            let message = format!("The API server would refuse the claim of a volume: {why}.");
            due.then(|| (Severity::Error, format!("{}spec.volumes", role.draft.at), message))
        });
        let notes = told.collect();
        findings(&object(workload_kind(key), &key.object), &record.header.source, notes)
    }

    /// Why the claim of an ephemeral volume would be refused, where it is not there.
    fn refused_of(
        &self,
        namespace: &Name,
        volumes: &[PodVolume],
        pod: Option<&PodKey>,
    ) -> Option<String> {
        volumes.iter().find_map(|volume| {
            let PodVolume::Ephemeral(name, asks) = volume else { return None };
            let claim = pod.map(|pod| Name::new(&format!("{}-{name}", pod.0.name)));
            let there = claim.as_ref().is_some_and(|name| {
                let scoped = Scoped { namespace: namespace.clone(), name: name.clone() };
                self.has_volume_claim(&VolumeClaimKey(scoped))
            });
            let name = claim.as_ref().unwrap_or(name);
            // What is wrong with it by itself is wrong with the pod that has it.
            if there { None } else { self.out_of_range(namespace, name, asks) }
        })
    }
}

/// As [`volume_claim`], of a claim that is not made yet.
fn unfit_to_come(claim: &VolumeClaim) -> Option<(&'static str, &'static str)> {
    volume_claim(claim.size_nanos, claim.modes).filter(|_| claim.to_come)
}
