//! Node selectors and label selectors as data. Whether one matches is decided where it is lowered.

use crate::macros::{object, words};
use crate::meta::Labels;

object! {
    /// Rules about the node of a pod.
    pub struct NodeAffinity {
        /// What must hold; none means no condition, present and empty matches nothing.
        pub required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
        /// What is preferred.
        pub preferred_during_scheduling_ignored_during_execution: Vec<PreferredSchedulingTerm>,
    }

    /// Terms of which one must match.
    pub struct NodeSelector {
        /// The terms, alternatives to each other.
        pub node_selector_terms: Vec<NodeSelectorTerm>,
    }

    /// Requirements that must all hold; a term without any matches nothing.
    pub struct NodeSelectorTerm {
        /// Requirements on labels.
        pub match_expressions: Vec<NodeSelectorRequirement>,
        /// Requirements on fields; only `metadata.name` exists.
        pub match_fields: Vec<NodeSelectorRequirement>,
    }

    /// One requirement.
    pub struct NodeSelectorRequirement {
        /// Label or field.
        pub key: String,
        /// Relation.
        pub operator: NodeSelectorOperator,
        /// Values.
        pub values: Vec<String>,
    }

    /// A term with its weight.
    pub struct PreferredSchedulingTerm {
        /// 1 to 100.
        pub weight: i32,
        /// The term.
        pub preference: NodeSelectorTerm,
    }

    /// A selector of objects by their labels; both parts must hold, and an empty one matches all.
    pub struct LabelSelector {
        /// Labels with exact values.
        pub match_labels: Labels,
        /// Requirements.
        pub match_expressions: Vec<LabelSelectorRequirement>,
    }

    /// One requirement on labels.
    pub struct LabelSelectorRequirement {
        /// Label.
        pub key: String,
        /// Relation.
        pub operator: LabelSelectorOperator,
        /// Values.
        pub values: Vec<String>,
    }
}

words! {
    /// The relation of a node selector's requirement.
    pub enum NodeSelectorOperator {
        /// Not named: invalid.
        Unset = "",
        /// The value is one of these.
        In = "In",
        /// The value is none of these, or the label is absent.
        NotIn = "NotIn",
        /// The label is there.
        Exists = "Exists",
        /// The label is absent.
        DoesNotExist = "DoesNotExist",
        /// The label's integer is greater.
        Gt = "Gt",
        /// The label's integer is less.
        Lt = "Lt",
    }

    /// The relation of a label selector's requirement.
    pub enum LabelSelectorOperator {
        /// Not named: invalid.
        Unset = "",
        /// The value is one of these.
        In = "In",
        /// The value is none of these, or the label is absent.
        NotIn = "NotIn",
        /// The label is there.
        Exists = "Exists",
        /// The label is absent.
        DoesNotExist = "DoesNotExist",
    }
}
