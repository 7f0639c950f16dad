//! Pods of a workload that are on nodes.

use phalanx_engine::GroupKey;

use super::Lowering;
use super::record::Life;

impl Lowering {
    /// How many pods of a workload are on nodes, those that are being deleted left out.
    #[must_use]
    pub fn running(&self, workload: &GroupKey) -> u32 {
        let pods = self.index.owned.get(workload).into_iter().flatten();
        let records = pods.filter_map(|pod| self.objects.pods.get(pod));
        let bound = records.filter(|record| match record.life {
            Life::Bound(_) => true,
            Life::Pending | Life::Foreign | Life::Leaving | Life::Terminating(..) | Life::Ended => {
                false
            }
        });
        u32::try_from(bound.count()).unwrap_or(u32::MAX)
    }
}
