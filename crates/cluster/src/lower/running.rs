//! Pods of a workload that are on nodes, and what pods there take of counters.

use phalanx_engine::{GroupKey, Name, PodKey};

use super::Lowering;
use super::amount::is_device_counter;
use super::record::Life;

impl Lowering {
    /// How many pods of a workload are on nodes, those that are being deleted left out.
    #[must_use]
    pub fn running(&self, workload: &GroupKey) -> u32 {
        if let Some(shown) = self.shown.gangs.get(workload) {
            return self.running_of_gang(shown);
        }
        let Some(record) = self.objects.workloads.get(workload) else { return 0 };
        let records = self.owned(workload, record).map(|(_, pod)| pod);
        let bound = records.filter(|record| match record.life {
            Life::Bound(_) => true,
            Life::Pending | Life::Foreign | Life::Leaving | Life::Terminating(..) | Life::Ended => {
                false
            }
        });
        u32::try_from(bound.count()).unwrap_or(u32::MAX)
    }

    /// What a pod takes of resources that count devices.
    pub(crate) fn counted(&self, pod: &PodKey) -> impl Iterator<Item = (&Name, i64)> {
        let record = self.objects.pods.get(pod).into_iter();
        let scalars = record.flat_map(|record| &record.shape.resources.scalars);
        scalars
            .filter(|(name, count)| *count > 0 && is_device_counter(name))
            .map(|(name, count)| (name, *count))
    }
}
