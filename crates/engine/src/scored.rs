//! What only kube-scheduler's scores look at: facts that refuse nothing and cost nothing, and that
//! lowering gives where nodes are to be scored.

use crate::facts::{ClaimSpec, Grant};
use crate::name::Name;
use crate::pods::SpreadRule;

/// Most alternatives of a list (`FirstAvailableDeviceRequestMaxSize` of resource.k8s.io/v1).
pub(crate) const ALTERNATIVES_MAX: u32 = 8;

impl ClaimSpec {
    /// How early in its lists the alternatives stand that it was given, each by its request and its
    /// place: 8 for one that is the first of its list, and less for later ones.
    pub fn early(&self, given: impl IntoIterator<Item = (u16, u16)>) -> u32 {
        let mut given: Vec<(u16, u16)> = given.into_iter().collect();
        given.sort_unstable();
        given.dedup();
        let of_list = |(request, _): &&(u16, u16)| {
            let request = self.requests.get(usize::from(*request));
            request.is_some_and(|r| r.alternatives.iter().any(|one| one.name.is_some()))
        };
        let early = |(_, place): &(u16, u16)| ALTERNATIVES_MAX.saturating_sub(u32::from(*place));
        given.iter().filter(of_list).map(early).sum()
    }
}

/// Request and alternative of a grant.
pub(crate) fn place(grant: &Grant) -> (u16, u16) {
    (grant.request, grant.alternative)
}

/// What of a pod the scores alone look at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scored {
    /// The images of its containers and volumes, each as often as it is named (ImageLocality).
    pub images: Box<[Name]>,
    /// How it is spread by default: where it says nothing of spread itself, and a Service or its
    /// controller selects it (PodTopologySpread's system defaults).
    pub spread: Box<[SpreadRule]>,
}
