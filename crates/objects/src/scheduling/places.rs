//! Which nodes are near each other: Topology of Kueue and of KAI, HyperNode of Volcano, ComputeDomain.

use crate::core::LabelSelector;
use crate::macros::object;
use crate::meta::ObjectMeta;

object! {
    /// A tree whose levels are labels of nodes, of Kueue or of KAI.
    pub struct LabelTopology {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// Its levels.
        pub spec: LabelTopologySpec,
    }

    /// The levels of a tree.
    pub struct LabelTopologySpec {
        /// Widest first.
        pub levels: Vec<TopologyLevel>,
    }

    /// A level of a tree.
    pub struct TopologyLevel {
        /// The label of nodes.
        pub node_label: String,
    }

    /// A place of Volcano's topology: nodes, or places of a lower tier.
    pub struct HyperNode {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What it is.
        pub spec: HyperNodeSpec,
    }

    /// What a HyperNode is.
    pub struct HyperNodeSpec {
        /// Its tier; lower is nearer.
        pub tier: i32,
        /// The name of its tier.
        pub tier_name: String,
        /// What is in it.
        pub members: Vec<HyperNodeMember>,
    }

    /// What is in a HyperNode.
    pub struct HyperNodeMember {
        /// `Node` or `HyperNode`.
        pub r#type: String,
        /// Which.
        pub selector: HyperNodeSelector,
    }

    /// Which members: one of the three.
    pub struct HyperNodeSelector {
        /// That of this name.
        pub exact_match: Option<ExactMatch>,
        /// Those whose names match.
        pub regex_match: Option<RegexMatch>,
        /// Those whose labels match.
        pub label_match: Option<LabelSelector>,
    }

    /// A name.
    pub struct ExactMatch {
        /// The name.
        pub name: String,
    }

    /// A regular expression.
    pub struct RegexMatch {
        /// The expression.
        pub pattern: String,
    }

    /// Nodes that share memory over NVLink for a job.
    pub struct ComputeDomain {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: ComputeDomainSpec,
        /// What is.
        pub status: ComputeDomainStatus,
    }

    /// What a ComputeDomain wants.
    pub struct ComputeDomainSpec {
        /// Nodes.
        pub num_nodes: i32,
        /// How pods get at it.
        pub channel: Option<ComputeDomainChannel>,
    }

    /// How pods get at a ComputeDomain.
    pub struct ComputeDomainChannel {
        /// The template of claims that is made for it.
        pub resource_claim_template: ClaimTemplateName,
    }

    /// A template of claims.
    pub struct ClaimTemplateName {
        /// Its name.
        pub name: String,
    }

    /// What is known of a ComputeDomain.
    pub struct ComputeDomainStatus {
        /// `Ready` or `NotReady`.
        pub status: String,
        /// Its nodes.
        pub nodes: Vec<ComputeDomainNode>,
    }

    /// A node of a ComputeDomain.
    pub struct ComputeDomainNode {
        /// The node.
        pub name: String,
        /// Its clique: cluster UUID and number.
        #[serde(rename = "cliqueID")]
        pub clique_id: String,
    }
}
