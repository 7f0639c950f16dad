//! `Placement`, an object of ours: the seats of one group that starts whole, from the moment they are
//! decided until it is gone. It is the record by which a controller that was stopped at any write goes on,
//! the place that others may not take meanwhile, the ranks as data, and in its status the account of
//! why the group waits.
//!
//! Four members on two nodes, one GPU each:
//! ```yaml
//! apiVersion: phalanx.dev/v1alpha1
//! kind: Placement
//! metadata: {name: podgroup-llama, namespace: ml}
//! spec:
//!   group: {kind: podgroup, name: llama}
//!   schedulerName: phalanx
//!   phase: Committing
//!   pools: [{driver: gpu.nvidia.com, name: n1}]
//!   seats:
//!   - pod: llama-0
//!     uid: 6b8c…
//!     node: n1
//!     grants: [{claim: gpu, request: gpu, devices: [gpu-0]}]
//! ```
//! Written compactly, for it may tell of thousands of pods: pools by their place in a list, devices of one
//! request in one entry, and what is 0 is left out.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::macros::{closed_words, object};
use crate::meta::ObjectMeta;
use crate::quantity::Quantity;

object! {
    /// The seats of one group, in the group's namespace.
    pub struct Placement {
        /// Metadata; the name is made of the group's kind and name.
        pub metadata: ObjectMeta,
        /// The seats, and how far they are written.
        pub spec: PlacementSpec,
        /// What is said of the group.
        pub status: PlacementStatus,
    }

    /// The seats of a group, and how far they are written.
    #[serde(deny_unknown_fields)]
    pub struct PlacementSpec {
        /// The group.
        pub group: PlacementGroup,
        /// The scheduler that writes this.
        pub scheduler_name: String,
        /// The reign of the leader that wrote this last: one of an earlier reign writes nothing more.
        pub epoch: i64,
        /// How far it is.
        pub phase: Option<PlacementPhase>,
        /// When the first member could be bound.
        pub committed_at: Option<Timestamp>,
        /// All that the group needs ran once: it is left to its owner, and not released whole any more.
        pub ran: bool,
        /// The pools that grants name by their place here.
        pub pools: Vec<PlacementPool>,
        /// The seats, by role and index.
        pub seats: Vec<PlacementSeat>,
    }

    /// The group, as a command line names it: `podgroup/llama`.
    #[serde(deny_unknown_fields)]
    pub struct PlacementGroup {
        /// Kind of the object that declares it, as users type it.
        pub kind: String,
        /// Its name.
        pub name: String,
    }

    /// A pool of devices.
    #[serde(deny_unknown_fields)]
    pub struct PlacementPool {
        /// Driver.
        pub driver: String,
        /// Name of the pool.
        pub name: String,
    }

    /// The place of one member.
    #[serde(deny_unknown_fields)]
    pub struct PlacementSeat {
        /// Number of its role in the group.
        pub role: i32,
        /// Its index in the role.
        pub index: i32,
        /// The pod.
        pub pod: String,
        /// UID of the pod.
        pub uid: String,
        /// The node.
        pub node: String,
        /// The devices that its claims are given.
        pub grants: Vec<PlacementGrant>,
    }

    /// Devices given to one request of one claim.
    #[serde(deny_unknown_fields)]
    pub struct PlacementGrant {
        /// The entry of the pod's `resourceClaims`; empty for the claim that is made for its extended
        /// resources.
        pub claim: String,
        /// `request` or `request/subrequest`.
        pub request: String,
        /// Place of the pool in `spec.pools`.
        pub pool: i32,
        /// Names of the devices.
        pub devices: Vec<String>,
        /// Of a device that is shared, how much of its capacities each of these takes.
        pub consumed: Option<BTreeMap<String, Quantity>>,
    }

    /// What is said of a group.
    #[serde(deny_unknown_fields)]
    pub struct PlacementStatus {
        /// `placed`, `waits`, `refused` or `gaveUp`.
        pub verdict: String,
        /// Code of the reason that decides.
        pub reason: String,
        /// The sentence.
        pub message: String,
        /// Each reason with the nodes that fell for it.
        pub tally: Vec<PlacementTally>,
        /// The nearest miss.
        pub nearest: String,
        /// When it is expected to start.
        pub expected_start: Option<Timestamp>,
    }

    /// A reason with the nodes that fell for it.
    #[serde(deny_unknown_fields)]
    pub struct PlacementTally {
        /// Code of the reason.
        pub reason: String,
        /// How many nodes.
        pub nodes: i64,
        /// How many devices on them.
        pub devices: i64,
    }
}

closed_words! {
    /// How far the seats of a group are written.
    pub enum PlacementPhase {
        /// The group holds nothing: only the status says something.
        Waiting = "Waiting",
        /// Claims are given their devices; nothing is bound. It may be taken back.
        Held = "Held",
        /// All devices are had and pods are bound. It is carried on until all of them run.
        Committing = "Committing",
        /// All of it ran.
        Done = "Done",
        /// What the seats have is given back.
        Releasing = "Releasing",
    }
}

impl PlacementSpec {
    /// The number of a pool in [`pools`](Self::pools), where it is put if it is not there yet.
    pub fn pool(&mut self, driver: &str, name: &str) -> i32 {
        let is = |pool: &PlacementPool| pool.driver == driver && pool.name == name;
        let at = self.pools.iter().position(is).unwrap_or_else(|| {
            self.pools.push(PlacementPool { driver: driver.to_owned(), name: name.to_owned() });
            self.pools.len() - 1
        });
        i32::try_from(at).unwrap_or(i32::MAX)
    }
}
