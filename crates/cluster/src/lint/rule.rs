//! The rules of `lint`: one row each, with its stable code. What a rule looks at stands in the
//! module of its family.

use crate::finding::Severity;

macro_rules! rules {
    ($( $(#[$meta:meta])* $name:ident: $severity:ident, )*) => {
        /// A rule. The codes of limits are those of the API server's own causes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $( $(#[$meta])* $name, )*
        }

        impl Rule {
            /// Every rule, by family.
            pub const ALL: &'static [Self] = &[$( Self::$name, )*];

            /// Its stable name.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self { $( Self::$name => stringify!($name), )* }
            }

            /// How bad what it finds is, where the finding does not say otherwise.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $( Self::$name => Severity::$severity, )* }
            }
        }
    };
}

rules! {
    /// An object can't be read.
    ObjectUnreadable: Error,
    /// Something is read, but not as it was meant.
    InputDoubtful: Warning,
    /// Objects of a kind take no part in the answer.
    KindNotRead: Info,
    /// The API server asks for a field that is missing.
    FieldValueRequired: Error,
    /// A field has a form or a value that the API server refuses.
    FieldValueInvalid: Error,
    /// A field has none of the values that the API server knows.
    FieldValueNotSupported: Error,
    /// An entry of a list is there twice, and the API server refuses it.
    FieldValueDuplicate: Error,
    /// A name leads to nothing in the same object, and the API server refuses it.
    FieldValueNotFound: Error,
    /// The API server does not allow the field here.
    FieldValueForbidden: Error,
    /// A text is longer than the API server allows.
    FieldValueTooLong: Error,
    /// A list or map has more entries than the API server allows.
    FieldValueTooMany: Error,
    /// A feature gate is off, and the API server drops the field without a word.
    FieldDropped: Warning,
    /// Admission would refuse the pod.
    AdmissionRefused: Error,
    /// A quota has no room for the pod, or for all pods of the workload.
    QuotaExceeded: Error,
    /// A quota names something that is never charged.
    QuotaCountsNothing: Warning,
    /// An extended resource is asked for in part.
    ResourceFraction: Error,
    /// An extended resource has a request and no limit.
    ResourceLimitMissing: Error,
    /// The request of an extended resource is not its limit.
    ResourceLimitDiffers: Error,
    /// A selector does not compile.
    SelectorInvalid: Error,
    /// A selector may cost more than the API server allows.
    SelectorTooCostly: Error,
    /// A selector compares an attribute with a value of another type than any device publishes.
    SelectorTypesDiffer: Warning,
    /// A selector ends in an error on a device.
    SelectorError: Warning,
    /// A selector matches no device.
    SelectorMatchesNone: Error,
    /// A constraint compares an attribute that no device of the class publishes.
    AttributeNotPublished: Error,
    /// The devices that a constraint compares publish the attribute with different types.
    AttributeTypesDiffer: Error,
    /// The devices that a constraint compares never publish the same value.
    AttributeValuesApart: Warning,
    /// A pool lacks slices, or has too many.
    PoolIncomplete: Warning,
    /// A pool contradicts itself.
    PoolInvalid: Warning,
    /// A slice is of an older generation than its pool.
    SliceStale: Warning,
    /// A slice is of a node that is not in the input.
    SliceNodeMissing: Info,
    /// A claim holds what is not published, or what another claim holds.
    AllocationDoubtful: Warning,
    /// A DeviceClass that a request names does not exist.
    DeviceClassMissing: Error,
    /// A claim that a pod names does not exist.
    ClaimMissing: Error,
    /// A claim template that a pod names does not exist.
    ClaimTemplateMissing: Error,
    /// A container uses a request that the claim does not have.
    ClaimRequestMissing: Error,
    /// A claim of a pod that no container uses.
    ClaimUnused: Info,
    /// No node and no class has an extended resource of that name.
    ResourceUnknown: Error,
    /// No node has the labels of a node selector.
    NodeSelectorUnmet: Error,
    /// No node meets the required node affinity.
    NodeAffinityUnmet: Error,
    /// A toleration is nearly that of a taint that nodes have.
    TolerationMisspelt: Warning,
    /// A host port leaves room for one pod a node, and there are fewer nodes than pods.
    HostPortLimitsReplicas: Warning,
    /// A spread constraint can't be met, or not by all pods of the workload.
    SpreadUnmet: Error,
    /// A volume pins pods to nodes without room, while others have it.
    VolumePinsPods: Warning,
    /// No node could ever hold it.
    NeverFits: Error,
    /// A group names a level of topology for which no node has a label.
    TopologyLevelUnknown: Error,
    /// A group started in part and holds what it has without progress.
    GroupInPart: Warning,
    /// Ranks of one group ask for partitions of GPUs, which have no access to each other.
    PartitionsApart: Warning,
    /// The environment names GPUs that are not asked for.
    DevicesByEnvironment: Warning,
    /// A privileged container sees GPUs that are not asked for.
    DevicesByPrivilege: Info,
    /// A volume leads to the GPUs of the node, which are not asked for.
    DevicesByHostPath: Warning,
    /// The GPUs of a node are counted by a device plugin and published by a DRA driver.
    DevicesOfferedTwice: Warning,
    /// A label of a node contradicts what its device plugin counts.
    LabelContradictsCounter: Warning,
    /// A label of a node contradicts what its slices publish.
    LabelContradictsSlices: Warning,
    /// A toleration tolerates a taint that no device has.
    TolerationUnmatched: Info,
    /// A toleration is limited in time, and its effect is not.
    TolerationSecondsUnused: Info,
    /// Nearness is wished for at a level of which nothing is known.
    AlignLevelUnknown: Warning,
    /// There is no device to try selectors on.
    NoDevicesRead: Info,
    /// There is no node to try pods on.
    NoNodesRead: Info,
}
