//! Which Kubernetes is meant: its version and its feature gates.
//!
//! Both are inputs, never guesses: they come from the cluster, the dump or a flag, and are printed
//! with the answer. The table holds the gates that an answer depends on, and those beside them that
//! a user copies from kube-scheduler's command line; what a gate does stands where it is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A minor version of Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 1.34, the first with `resource.k8s.io/v1`.
    V1_34,
    /// 1.35.
    V1_35,
    /// 1.36.
    V1_36,
    /// 1.37.
    #[default]
    V1_37,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Self; 4] = [Self::V1_34, Self::V1_35, Self::V1_36, Self::V1_37];

    /// Its text, such as `1.37`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1_34 => "1.34",
            Self::V1_35 => "1.35",
            Self::V1_36 => "1.36",
            Self::V1_37 => "1.37",
        }
    }

    /// Reads `1.36`, `v1.36`, `1.36.2` or `v1.36.2-gke.100`.
    ///
    /// # Errors
    /// When it is no version, or one that is not known.
    pub fn parse(text: &str) -> Result<Self, CompatError> {
        let bare = text.strip_prefix('v').unwrap_or(text);
        let known = |version: &Self| {
            bare.strip_prefix(version.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '+', '-']))
        };
        let found = Self::ALL.iter().copied().find(known);
        found.ok_or_else(|| CompatError::Version(text.to_owned()))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How far a gate has come in one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not there.
    Absent,
    /// Alpha: off.
    Alpha,
    /// Beta, off unless switched on.
    BetaOff,
    /// Beta, on.
    BetaOn,
    /// Stable, on, and can still be switched off.
    Stable,
    /// Stable, on for good.
    Locked,
}

impl Stage {
    fn default_on(self) -> bool {
        match self {
            Self::Absent | Self::Alpha | Self::BetaOff => false,
            Self::BetaOn | Self::Stable | Self::Locked => true,
        }
    }
}

macro_rules! gates {
    ($( $(#[$meta:meta])* $name:ident: $v34:ident $v35:ident $v36:ident $v37:ident, )*) => {
        /// A feature gate of Kubernetes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Gate {
            $( $(#[$meta])* $name, )*
        }

        impl Gate {
            /// Every gate in the table, by name.
            pub const ALL: &'static [Self] = &[$( Self::$name, )*];

            /// Its name as kube-scheduler spells it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$name => stringify!($name), )* }
            }

            fn stages(self) -> [Stage; 4] {
                match self {
                    $( Self::$name => [Stage::$v34, Stage::$v35, Stage::$v36, Stage::$v37], )*
                }
            }
        }
    };
}

// Source: pkg/features/kube_features.go of each version.
gates! {
    /// Group for a gang of a kind above PodGroup.
    CompositePodGroup: Absent Absent Absent Alpha,
    /// `adminAccess` of requests.
    DRAAdminAccess: BetaOn BetaOn Locked Locked,
    /// `allowMultipleAllocations`, `capacity.requests` and `distinctAttribute`.
    DRAConsumableCapacity: Alpha Alpha BetaOn BetaOn,
    /// `derivedAttributes` of requests.
    DRADerivedAttributes: Absent Absent Absent Alpha,
    /// `bindingConditions` of devices.
    DRADeviceBindingConditions: Alpha Alpha BetaOn BetaOn,
    /// `compatibilityGroups` of devices.
    DRADeviceCompatibilityGroups: Absent Absent Absent Alpha,
    /// DeviceTaintRule objects.
    DRADeviceTaintRules: Absent Alpha BetaOff Stable,
    /// Taints of devices and their tolerations.
    DRADeviceTaints: Alpha Alpha BetaOn Stable,
    /// Extended resources that a DeviceClass serves.
    DRAExtendedResource: Alpha Alpha BetaOn Locked,
    /// Fractions in the ranges of consumable capacities. On by default only where the cluster's
    /// minimum compatibility version is 1.37; by itself a 1.37 is compatible with 1.36.
    DRAFractionalCapacityRange: Absent Absent Absent BetaOff,
    /// Attributes that are lists.
    DRAListTypeAttributes: Absent Absent Alpha Alpha,
    /// Devices that count against a node's CPU and memory.
    DRANodeAllocatableResources: Absent Absent Alpha Alpha,
    /// `skipNodeOperations` of slices.
    DRAOptionalNodeOperations: Absent Absent Absent Alpha,
    /// Shared counters and `perDeviceNodeSelection`.
    DRAPartitionableDevices: Alpha Alpha BetaOn BetaOn,
    /// `partitionTypeAttribute` of slices.
    DRAPartitionableDevicesType: Absent Absent Absent Alpha,
    /// `firstAvailable` of requests.
    DRAPrioritizedList: BetaOn BetaOn Stable Locked,
    /// `status.devices` of claims.
    DRAResourceClaimDeviceStatus: BetaOn BetaOn BetaOn Locked,
    /// Finer rights on a claim's status.
    DRAResourceClaimGranularStatusAuthorization: Absent Absent BetaOn BetaOn,
    /// ResourcePoolStatusRequest objects.
    DRAResourcePoolStatus: Absent Absent Alpha Alpha,
    /// A time limit for the allocator on each node.
    DRASchedulerFilterTimeout: BetaOn BetaOn BetaOn BetaOn,
    /// Claims of PodGroups.
    DRAWorkloadResourceClaims: Absent Absent Alpha BetaOff,
    /// Dynamic resource allocation as such.
    DynamicResourceAllocation: Stable Locked Locked Locked,
    /// Workload and PodGroup objects.
    GenericWorkload: Absent Alpha Alpha BetaOff,
    /// Features of the kubelet that a pod needs are looked at by kube-scheduler.
    NodeDeclaredFeatures: Absent Alpha BetaOn Locked,
    /// `nominatedNodeName` as a hint.
    NominatedNodeNameForExpectation: Alpha BetaOn BetaOn BetaOn,
    /// One decision for many equal pods.
    OpportunisticBatching: Absent BetaOn BetaOn BetaOn,
    /// `preemptionPolicy` of PodGroups.
    PodGroupPreemptionPolicy: Absent Absent Absent Alpha,
    /// Health of devices in a pod's status.
    ResourceHealthStatus: Alpha Alpha BetaOn BetaOn,
    /// Writes of the scheduler beside its cycle.
    SchedulerAsyncAPICalls: BetaOff BetaOff BetaOff BetaOff,
    /// Preemption beside the scheduling cycle.
    SchedulerAsyncPreemption: BetaOn BetaOn BetaOn BetaOn,
    /// Pods leave the back-off when nothing else waits.
    SchedulerPopFromBackoffQ: BetaOn BetaOn BetaOn BetaOn,
    /// Hints before the queue.
    SchedulerPreQueueingHints: Absent Absent Absent Alpha,
    /// Nodes are scored by the room that is left for volumes.
    StorageCapacityScoring: Alpha Alpha Alpha BetaOn,
    /// Topology of PodGroups.
    TopologyAwareWorkloadScheduling: Absent Absent Alpha Alpha,
    /// `preventPodSchedulingIfMissing` of CSI drivers.
    VolumeLimitScaling: Absent Alpha Alpha BetaOn,
}

impl Gate {
    /// Whether an answer depends on it. The others are in the table because they stand on
    /// kube-scheduler's command line beside those that do.
    fn is_read(self) -> bool {
        match self {
            Self::DRAAdminAccess
            | Self::DRAConsumableCapacity
            | Self::DRADerivedAttributes
            | Self::DRADeviceBindingConditions
            | Self::DRADeviceCompatibilityGroups
            | Self::DRADeviceTaintRules
            | Self::DRADeviceTaints
            | Self::DRAExtendedResource
            | Self::DRAFractionalCapacityRange
            | Self::DRAListTypeAttributes
            | Self::DRAOptionalNodeOperations
            | Self::DRAPartitionableDevices
            | Self::DRAPartitionableDevicesType
            | Self::DRAPrioritizedList
            | Self::DRAResourceClaimDeviceStatus
            | Self::DRAWorkloadResourceClaims
            | Self::NodeDeclaredFeatures
            | Self::StorageCapacityScoring
            | Self::VolumeLimitScaling => true,
            Self::CompositePodGroup
            | Self::DRANodeAllocatableResources
            | Self::DRAResourceClaimGranularStatusAuthorization
            | Self::DRAResourcePoolStatus
            | Self::DRASchedulerFilterTimeout
            | Self::DynamicResourceAllocation
            | Self::GenericWorkload
            | Self::NominatedNodeNameForExpectation
            | Self::OpportunisticBatching
            | Self::PodGroupPreemptionPolicy
            | Self::ResourceHealthStatus
            | Self::SchedulerAsyncAPICalls
            | Self::SchedulerAsyncPreemption
            | Self::SchedulerPopFromBackoffQ
            | Self::SchedulerPreQueueingHints
            | Self::TopologyAwareWorkloadScheduling => false,
        }
    }
}

/// What a decision lacks where one of these gates is on, for nothing reads them.
const LACKING: [(Gate, &str); 1] = [(
    Gate::DRANodeAllocatableResources,
    "what devices take of a node's CPU and memory is not counted",
)];

/// An allocator of kube-scheduler's (`structured/internal` of its module).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// What has been stable for long.
    Stable,
    /// What is in beta.
    Incubating,
    /// What is in alpha.
    Experimental,
}

/// The version and the gates that an answer is given for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compat {
    version: Version,
    on: BTreeMap<Gate, bool>,
    /// Gates that were switched and are not in the table.
    unread: Vec<String>,
    /// Admission plugins that are enabled beside the API server's defaults.
    plugins: BTreeSet<Plugin>,
}

/// An admission plugin of the API server that is off by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Plugin {
    /// Pods that ask for an extended resource tolerate the taint of its name.
    ExtendedResourceToleration,
    /// Pods get the node selector of their namespace's annotation.
    PodNodeSelector,
}

impl Plugin {
    /// Every plugin that can be enabled.
    pub const ALL: [Self; 2] = [Self::ExtendedResourceToleration, Self::PodNodeSelector];

    /// Its name as kube-apiserver spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ExtendedResourceToleration => "ExtendedResourceToleration",
            Self::PodNodeSelector => "PodNodeSelector",
        }
    }
}

impl Default for Compat {
    fn default() -> Self {
        Self::new(Version::default())
    }
}

impl Compat {
    /// A version with its own defaults.
    #[must_use]
    pub fn new(version: Version) -> Self {
        let state = |gate: &Gate| (*gate, gate.stages()[version as usize].default_on());
        let on = Gate::ALL.iter().map(state).collect();
        Self { version, on, unread: Vec::new(), plugins: BTreeSet::new() }
    }

    /// Whether an admission plugin is enabled that is off by default.
    #[must_use]
    pub fn has_plugin(&self, plugin: Plugin) -> bool {
        self.plugins.contains(&plugin)
    }

    /// The admission plugins that are enabled beside the defaults.
    pub fn plugins(&self) -> impl Iterator<Item = Plugin> {
        self.plugins.iter().copied()
    }

    /// Enables admission plugins as kube-apiserver's `--enable-admission-plugins` does: names with
    /// commas between them.
    ///
    /// # Errors
    /// When a name is none of a plugin that is off by default and played here.
    pub fn with_plugins(mut self, text: &str) -> Result<Self, CompatError> {
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let plugin = Plugin::ALL.into_iter().find(|plugin| plugin.as_str() == name);
            self.plugins.insert(plugin.ok_or_else(|| CompatError::Plugin(name.to_owned()))?);
        }
        Ok(self)
    }

    /// The version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether a gate is on.
    #[must_use]
    pub fn is_on(&self, gate: Gate) -> bool {
        self.on.get(&gate).copied().unwrap_or(false)
    }

    /// These gates on and all others off, whatever the version makes of them: what a cluster was
    /// asked for that says it runs so.
    #[must_use]
    pub fn exactly(version: Version, on: impl IntoIterator<Item = Gate>) -> Self {
        let mut compat = Self::new(version);
        compat.on.values_mut().for_each(|is| *is = false);
        compat.on.extend(on.into_iter().map(|gate| (gate, true)));
        compat
    }

    /// The allocator that kube-scheduler takes for these gates: the first that supports all that
    /// are on.
    #[must_use]
    pub fn allocator(&self) -> Allocator {
        use Gate as G;
        let alpha = [
            G::DRADerivedAttributes,
            G::DRADeviceCompatibilityGroups,
            G::DRAListTypeAttributes,
            G::DRAOptionalNodeOperations,
        ];
        let beta = [G::DRAConsumableCapacity, G::DRAFractionalCapacityRange];
        let is_on = |gate: &Gate| self.is_on(*gate);
        if alpha.iter().any(is_on) {
            Allocator::Experimental
        } else if beta.iter().any(is_on) || self.awaits_conditions() {
            Allocator::Incubating
        } else {
            Allocator::Stable
        }
    }

    /// Whether binding conditions of allocated devices are heeded (kube-scheduler's
    /// `isClaimReadyForBinding`).
    #[must_use]
    pub fn awaits_conditions(&self) -> bool {
        self.is_on(Gate::DRADeviceBindingConditions)
            && self.is_on(Gate::DRAResourceClaimDeviceStatus)
    }

    /// The gates that differ from the version's defaults, by name.
    #[must_use]
    pub fn changed(&self) -> Vec<(&'static str, bool)> {
        let switched = self.on.iter().filter(|(gate, _)| self.is_switched(**gate));
        switched.map(|(gate, on)| (gate.as_str(), *on)).collect()
    }

    /// What is to be said of gates that were switched without effect, for Kubernetes may have them
    /// and nothing here reads them: a sentence each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let say = |name: &String| {
            let near = self.near(name).join(", ");
            format!(
                "Phalanx reads no feature gate `{name}`, so it changes nothing in this answer. The \
                 nearest names that it reads for Kubernetes {} are {near}.",
                self.version
            )
        };
        let idle = |gate: &&Gate| !gate.is_read() && self.is_switched(**gate);
        let tell = |gate: &Gate| {
            let name = gate.as_str();
            let lack = LACKING.iter().find(|(g, _)| g == gate && self.is_on(*g));
            let lack = lack.map(|(_, lack)| format!(": {lack}")).unwrap_or_default();
            format!("No answer of Phalanx depends on feature gate `{name}` yet{lack}.")
        };
        let idle = Gate::ALL.iter().filter(idle).map(tell);
        self.unread.iter().map(say).chain(idle).collect()
    }

    /// Whether the gate is not as the version has it.
    fn is_switched(&self, gate: Gate) -> bool {
        self.is_on(gate) != gate.stages()[self.version as usize].default_on()
    }

    /// Switches gates as `--feature-gates` of kube-scheduler does: `A=true,B=false`, with
    /// `AllAlpha` and `AllBeta` for all that are not named.
    ///
    /// # Errors
    /// When an entry is no switch, contradicts another, or names a gate that the version does not
    /// have or has on for good. Gates that are not in the table are no error: see
    /// [`warnings`](Self::warnings).
    pub fn with_gates(mut self, text: &str) -> Result<Self, CompatError> {
        let mut named = Vec::new();
        let mut all = Vec::new();
        let mut said: BTreeMap<&str, bool> = BTreeMap::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (name, on) = switch(entry)?;
            if said.insert(name, on).is_some_and(|before| before != on) {
                return Err(CompatError::Twice(name.to_owned()));
            }
            match name {
                "AllAlpha" => all.push((Stage::Alpha, on)),
                "AllBeta" => all.extend([(Stage::BetaOff, on), (Stage::BetaOn, on)]),
                name => match self.known(name, on)? {
                    Some(gate) => named.push((gate, on)),
                    None if self.unread.iter().any(|unread| unread == name) => {}
                    None => self.unread.push(name.to_owned()),
                },
            }
        }
        for (stage, on) in all {
            for gate in Gate::ALL.iter().filter(|g| g.stages()[self.version as usize] == stage) {
                self.on.insert(*gate, on);
            }
        }
        self.on.extend(named);
        Ok(self)
    }

    /// The gate of that name, where it is in the table.
    fn known(&self, name: &str, on: bool) -> Result<Option<Gate>, CompatError> {
        let gate = Gate::ALL.iter().copied().find(|gate| gate.as_str() == name);
        match gate.map(|gate| gate.stages()[self.version as usize]) {
            Some(Stage::Absent) => Err(CompatError::UnknownGate {
                name: name.to_owned(),
                version: self.version,
                near: self.near(name),
            }),
            Some(Stage::Locked) if !on => {
                Err(CompatError::Locked { name: name.to_owned(), version: self.version })
            }
            Some(Stage::Alpha | Stage::BetaOff | Stage::BetaOn | Stage::Stable | Stage::Locked)
            | None => Ok(gate),
        }
    }

    /// The three gates of the version whose names are nearest to `name`.
    fn near(&self, name: &str) -> Vec<&'static str> {
        let there = |g: &&Gate| g.is_read() && g.stages()[self.version as usize] != Stage::Absent;
        let mut near: Vec<_> = Gate::ALL
            .iter()
            .filter(there)
            .map(|gate| (distance(name, gate.as_str()), gate.as_str()))
            .collect();
        near.sort_unstable();
        near.into_iter().take(3).map(|(_, name)| name).collect()
    }
}

/// Splits `Name=bool`; the words for true and false are those of Go's `strconv.ParseBool`.
fn switch(entry: &str) -> Result<(&str, bool), CompatError> {
    let bad = || CompatError::Switch(entry.to_owned());
    let (name, value) = entry.split_once('=').ok_or_else(bad)?;
    match value.trim() {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok((name.trim(), true)),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok((name.trim(), false)),
        _ => Err(bad()),
    }
}

/// Edits between two names, letters' case aside (Levenshtein).
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<u8> = b.bytes().map(|c| c.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.bytes().map(|c| c.to_ascii_lowercase()).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// A version or a gate that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompatError {
    /// No version that is known.
    Version(String),
    /// Not of the form `Name=true` or `Name=false`.
    Switch(String),
    /// Switched on and off at once.
    Twice(String),
    /// No gate of this name in this version, though there is in others.
    UnknownGate {
        /// The name.
        name: String,
        /// The version.
        version: Version,
        /// Gates with names near it.
        near: Vec<&'static str>,
    },
    /// The gate is on for good.
    Locked {
        /// The name.
        name: String,
        /// The version.
        version: Version,
    },
    /// No admission plugin that is off by default and played here.
    Plugin(String),
}

impl fmt::Display for CompatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(text) => write!(
                f,
                "`{text}` is not a Kubernetes version that Phalanx knows. Use one of 1.34, 1.35, 1.36 and 1.37."
            ),
            Self::Switch(entry) => write!(
                f,
                "`{entry}` does not switch a feature gate. Write `Name=true` or `Name=false`, separated by commas."
            ),
            Self::Twice(name) => {
                write!(f, "Feature gate `{name}` is switched on and off at once. Name it once.")
            }
            Self::UnknownGate { name, version, near } => {
                let near = near.join(", ");
                write!(
                    f,
                    "Kubernetes {version} has no feature gate `{name}` that matters here. The nearest names are {near}."
                )
            }
            Self::Locked { name, version } => write!(
                f,
                "Feature gate `{name}` is on for good in Kubernetes {version}. Leave it out."
            ),
            Self::Plugin(name) => write!(
                f,
                "`{name}` is no admission plugin that Phalanx can enable. Those that are off by default and \
                 played here are {}.",
                Plugin::ALL.map(Plugin::as_str).join(" and ")
            ),
        }
    }
}

impl std::error::Error for CompatError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_clusters_print_them() {
        for (text, version) in [
            ("1.34", Version::V1_34),
            ("v1.35.4", Version::V1_35),
            ("v1.36.2-gke.100", Version::V1_36),
            ("1.37+", Version::V1_37),
        ] {
            assert_eq!(Version::parse(text), Ok(version), "{text}");
        }
        for text in ["1.33", "1.3", "1.370", "", "latest"] {
            assert!(Version::parse(text).is_err(), "{text}");
        }
    }

    /// By version, from 1.34 on; `-` where the version does not have the gate.
    #[test]
    fn gates_have_the_defaults_of_their_version() {
        let table = [
            ("DynamicResourceAllocation", "on on on on"),
            ("DRAAdminAccess", "on on on on"),
            ("DRAPrioritizedList", "on on on on"),
            ("DRAResourceClaimDeviceStatus", "on on on on"),
            ("DRADeviceTaints", "off off on on"),
            ("DRADeviceTaintRules", "- off off on"),
            ("DRAExtendedResource", "off off on on"),
            ("DRAPartitionableDevices", "off off on on"),
            ("DRAConsumableCapacity", "off off on on"),
            ("DRADeviceBindingConditions", "off off on on"),
            ("DRASchedulerFilterTimeout", "on on on on"),
            ("DRAFractionalCapacityRange", "- - - off"),
            ("DRAListTypeAttributes", "- - off off"),
            ("DRANodeAllocatableResources", "- - off off"),
            ("DRAWorkloadResourceClaims", "- - off off"),
            ("DRAResourcePoolStatus", "- - off off"),
            ("DRAResourceClaimGranularStatusAuthorization", "- - on on"),
            ("DRADerivedAttributes", "- - - off"),
            ("DRADeviceCompatibilityGroups", "- - - off"),
            ("DRAPartitionableDevicesType", "- - - off"),
            ("DRAOptionalNodeOperations", "- - - off"),
            ("ResourceHealthStatus", "off off on on"),
            ("NodeDeclaredFeatures", "- off on on"),
            ("VolumeLimitScaling", "- off off on"),
            ("StorageCapacityScoring", "off off off on"),
        ];
        for (name, wanted) in table {
            let gate = Gate::ALL.iter().find(|gate| gate.as_str() == name).expect(name);
            let state = |version: &Version| {
                if gate.stages()[*version as usize] == Stage::Absent {
                    "-"
                } else if Compat::new(*version).is_on(*gate) {
                    "on"
                } else {
                    "off"
                }
            };
            let states: Vec<&str> = Version::ALL.iter().map(state).collect();
            assert_eq!(states.join(" "), wanted, "{name}");
        }
    }

    #[test]
    fn a_gate_without_an_answer_is_told() {
        let compat = Compat::default().with_gates("DRANodeAllocatableResources=true");
        let warnings = compat.expect("no error").warnings();
        assert_eq!(
            warnings,
            ["No answer of Phalanx depends on feature gate `DRANodeAllocatableResources` yet: \
                 what devices take of a node's CPU and memory is not counted."]
        );
        let read = Compat::default().with_gates("DRAListTypeAttributes=true").expect("no error");
        assert_eq!(read.warnings(), Vec::<String>::new());
    }

    #[test]
    fn a_named_gate_wins_over_all_of_its_stage() -> Result<(), CompatError> {
        let compat = Compat::default().with_gates("DRADerivedAttributes=false, AllAlpha=true")?;
        assert!(compat.is_on(Gate::DRAListTypeAttributes));
        assert!(!compat.is_on(Gate::DRADerivedAttributes));
        assert!(compat.changed().contains(&("DRAListTypeAttributes", true)));
        Ok(())
    }

    #[test]
    fn a_gate_that_nothing_reads_is_warned_of_with_the_nearest_names() {
        let compat = Compat::default().with_gates("DRADeviceTaint=true,DRADeviceTaint=true");
        let warnings = compat.expect("no error").warnings();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("are DRADeviceTaints,"), "{warnings:?}");
        let twice = Compat::default().with_gates("Other=true,DRADeviceTaints=true,Other=false");
        assert_eq!(twice, Err(CompatError::Twice("Other".to_owned())));
        assert!(Compat::default().with_gates("DRAAdminAccess=false").is_err());
        assert!(Compat::default().with_gates("DRAAdminAccess").is_err());
        assert!(Compat::new(Version::V1_34).with_gates("DRAListTypeAttributes=true").is_err());
    }
}
