//! Services and replication controllers, as far as they select pods: by these selectors
//! kube-scheduler spreads pods that say nothing of spreading.

use crate::macros::object;
use crate::meta::{Labels, ObjectMeta};

object! {
    /// A service; only whom it selects is read.
    pub struct Service {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: ServiceSpec,
    }

    /// Whom a service is for.
    pub struct ServiceSpec {
        /// Labels of its pods; none selects none.
        pub selector: Labels,
    }

    /// A replication controller; only whom it selects is read.
    pub struct ReplicationController {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: ReplicationControllerSpec,
    }

    /// Whom a replication controller is for.
    pub struct ReplicationControllerSpec {
        /// Labels of its pods; none means those of its template.
        pub selector: Labels,
        /// Its pods.
        pub template: ReplicationTemplate,
    }

    /// The pods of a replication controller; only their labels are read.
    pub struct ReplicationTemplate {
        /// Metadata of the pods.
        pub metadata: ObjectMeta,
    }
}
