//! What admission reads when the API server makes a pod: RuntimeClass, LimitRange and ResourceQuota.
//! What it adds and refuses is for lowering.

use crate::core::{ResourceList, Toleration};
use crate::macros::{object, words};
use crate::meta::{Labels, ObjectMeta};

object! {
    /// A `node.k8s.io` runtime class.
    pub struct RuntimeClass {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What a pod of the class takes beside its containers.
        pub overhead: Option<Overhead>,
        /// Where pods of the class can run.
        pub scheduling: Option<RuntimeScheduling>,
    }

    /// What a runtime takes of a node.
    pub struct Overhead {
        /// For each pod.
        pub pod_fixed: ResourceList,
    }

    /// Where a runtime is found.
    pub struct RuntimeScheduling {
        /// Labels that the node must have.
        pub node_selector: Labels,
        /// Tolerations that pods get.
        pub tolerations: Vec<Toleration>,
    }

    /// Bounds and defaults of what pods of a namespace ask for.
    pub struct LimitRange {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// The bounds.
        pub spec: LimitRangeSpec,
    }

    /// The bounds of a [`LimitRange`].
    pub struct LimitRangeSpec {
        /// One for each kind of thing that is bounded.
        pub limits: Vec<LimitRangeItem>,
    }

    /// Bounds for one kind of thing.
    pub struct LimitRangeItem {
        /// What is bounded.
        pub r#type: LimitType,
        /// Most.
        pub max: ResourceList,
        /// Least.
        pub min: ResourceList,
        /// Limits that containers without one get.
        pub default: ResourceList,
        /// Requests that containers without one get.
        pub default_request: ResourceList,
        /// How many times its request a limit may be.
        pub max_limit_request_ratio: ResourceList,
    }

    /// What a namespace may use.
    pub struct ResourceQuota {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What may be used.
        pub spec: ResourceQuotaSpec,
        /// What is used.
        pub status: ResourceQuotaStatus,
    }

    /// What may be used.
    pub struct ResourceQuotaSpec {
        /// Most, by name as quotas spell them: `requests.cpu`, `pods`,
        /// `requests.nvidia.com/gpu`, `gpu.nvidia.com.deviceclass.resource.k8s.io/devices`.
        pub hard: ResourceList,
        /// What pods it counts; all of these must hold.
        pub scopes: Vec<QuotaScope>,
        /// The same, with values.
        pub scope_selector: Option<ScopeSelector>,
    }

    /// Which pods a quota counts.
    pub struct ScopeSelector {
        /// All must hold.
        pub match_expressions: Vec<ScopedRequirement>,
    }

    /// A requirement on pods that a quota counts.
    pub struct ScopedRequirement {
        /// What is looked at.
        pub scope_name: QuotaScope,
        /// Relation.
        pub operator: ScopeOperator,
        /// Values, of `In` and `NotIn`.
        pub values: Vec<String>,
    }

    /// What is used of a quota.
    pub struct ResourceQuotaStatus {
        /// Most, as the controller has taken it over.
        pub hard: ResourceList,
        /// What the namespace uses.
        pub used: ResourceList,
    }
}

words! {
    /// What a bound is about.
    pub enum LimitType {
        /// It does not say.
        Unset = "",
        /// Each container.
        Container = "Container",
        /// A pod as a whole.
        Pod = "Pod",
        /// A volume claim.
        PersistentVolumeClaim = "PersistentVolumeClaim",
    }

    /// Which pods are counted.
    pub enum QuotaScope {
        /// It does not say.
        Unset = "",
        /// Those that are limited in time.
        Terminating = "Terminating",
        /// Those that are not.
        NotTerminating = "NotTerminating",
        /// Those that request and limit neither CPU nor memory.
        BestEffort = "BestEffort",
        /// Those that do.
        NotBestEffort = "NotBestEffort",
        /// Those of a priority class.
        PriorityClass = "PriorityClass",
        /// Those with affinity to pods of other namespaces.
        CrossNamespacePodAffinity = "CrossNamespacePodAffinity",
    }

    /// How a scope's values are compared.
    pub enum ScopeOperator {
        /// It does not say.
        Unset = "",
        /// One of the values.
        In = "In",
        /// None of them.
        NotIn = "NotIn",
        /// There is one.
        Exists = "Exists",
        /// There is none.
        DoesNotExist = "DoesNotExist",
    }
}

impl LimitRange {
    /// The bounds with the defaults that the API server fills in when the object is made: of
    /// containers, a limit where there is a maximum, a request where there is a default limit or a
    /// minimum (`SetDefaults_LimitRangeItem`).
    #[must_use]
    pub fn defaulted(&self) -> Vec<LimitRangeItem> {
        let fill = |into: &mut ResourceList, from: &ResourceList| {
            for (name, amount) in from {
                into.entry(name.clone()).or_insert(*amount);
            }
        };
        let mut limits = self.spec.limits.clone();
        for item in limits.iter_mut().filter(|item| item.r#type == LimitType::Container) {
            let (max, min) = (item.max.clone(), item.min.clone());
            fill(&mut item.default, &max);
            let default = item.default.clone();
            fill(&mut item.default_request, &default);
            fill(&mut item.default_request, &min);
        }
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Quantity;

    #[test]
    fn a_limit_range_fills_itself_in() {
        let text = r#"{"spec": {"limits": [
            {"type": "Container", "max": {"cpu": "4"}, "min": {"memory": "1Gi"}},
            {"type": "Pod", "max": {"cpu": "8"}}]}}"#;
        let range: LimitRange = serde_json::from_str(text).unwrap();
        let filled = range.defaulted();
        assert_eq!(filled[0].default.get("cpu"), Some(&Quantity::from_int(4)));
        assert_eq!(filled[0].default_request.get("cpu"), Some(&Quantity::from_int(4)));
        assert!(filled[0].default_request.contains_key("memory"));
        assert!(filled[1].default.is_empty());
    }
}
