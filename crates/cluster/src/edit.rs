//! Changes of the world to ask about: the closed vocabulary of `--if`, and of cures.
//!
//! An [`Edit`] is read from and printed as one line of English (`docs/what-if.md` is its grammar).
//! It acts on objects, through the same door as every other change of an object, so that a question
//! asked with `--if` has the answer that the change made by hand would have. Which edit cures what
//! is left to [`cure`](crate::cure).

mod apply;
mod parse;

use std::fmt;

use phalanx_objects::topology::AlignLevel;
use phalanx_objects::{Kind, ObjectRef};

pub(crate) use apply::{Put, apply};
pub(crate) use apply::{healthy, is_of, levels, minima, replicas};
pub use parse::{kind_word, parse_target};

/// One change of the world.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edit {
    /// `+2 nodes like n1`: healthy copies of a node, with its devices and links and no pods.
    AddNodes {
        /// How many.
        count: u32,
        /// The node that they are like.
        like: String,
    },
    /// `heal n1, n1/gpu-5`: nodes and devices are healthy again.
    Heal {
        /// What is healed; not empty.
        ills: Vec<Ill>,
    },
    /// `without pod/a, pod/b`: the objects are gone, and what they alone own or hold.
    Without {
        /// The objects; not empty.
        objects: Vec<Target>,
    },
    /// `relax pod/x nodeAffinity`: one constraint is given up.
    Relax {
        /// The object that has the constraint.
        object: Target,
        /// Which one.
        what: Relaxation,
    },
    /// `set job/x replicas to 3`: a number or a name is changed.
    Set {
        /// The object that has it.
        object: Target,
        /// Which one, and its new value.
        what: Setting,
    },
}

/// What can be healed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ill {
    /// The node is uncordoned, loses its `node.kubernetes.io/` taints, and gives out all devices that
    /// it counts.
    Node(String),
    /// The device loses its taints.
    Device {
        /// The node, or the pool.
        node: String,
        /// The device.
        device: String,
    },
}

/// An object as users name it: `pod/trainer`, `pod/team-a/trainer`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Kind.
    pub kind: Kind,
    /// Namespace; none means the namespace that the question is asked in.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// A constraint that can be given up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relaxation {
    /// The `matchAttribute` constraints of a claim on this attribute.
    MatchAttribute(String),
    /// The `distinctAttribute` constraints of a claim on this attribute.
    DistinctAttribute(String),
    /// The selectors of a request of a claim (those of its class stay). `request/subrequest` names
    /// an alternative.
    Selectors(String),
    /// A level of `phalanx.dev/align`, required or preferred.
    Align(AlignLevel),
    /// The level of topology in one domain of which a group, or part of it, is required to be: it is
    /// wished instead, where the API has wishes.
    Topology(String),
    /// A label of the pod's node selector.
    NodeSelector(String),
    /// The pod's required node affinity.
    NodeAffinity,
    /// The host port of this number.
    HostPort(i32),
    /// The pod's required affinity to other pods.
    PodAffinity,
    /// The pod's required anti-affinity to other pods.
    PodAntiAffinity,
    /// The pod's required spread over the values of this node label.
    Spread(String),
    /// The node that the pod names itself.
    NodeName,
    /// A scheduling gate.
    Gate(String),
    /// Intolerance of node taints with this key: a toleration is added to the pod.
    Taint(String),
    /// Intolerance of device taints with this key: a toleration is added to the request.
    DeviceTaint {
        /// The taint's key.
        key: String,
        /// The request.
        request: String,
    },
}

/// The fewest of something that start at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minimum {
    /// Groups or subgroups are counted, and not pods.
    pub groups: bool,
    /// The part that it is of, by name (a subgroup, a task, a clique); none is the group itself.
    pub of: Option<String>,
    /// How many.
    pub count: u32,
}

/// A number or a name that can be changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// The count of devices of a request of a claim.
    Count {
        /// The request.
        request: String,
        /// Devices.
        count: u32,
    },
    /// The pods of a workload at a time.
    Replicas(u32),
    /// The fewest of a group that start at once.
    Minimum(Minimum),
    /// The name under which a pod requests what it requests under another.
    Name {
        /// The resource.
        resource: String,
        /// The other.
        other: String,
    },
    /// What a pod requests of a resource, as a quantity.
    Resource {
        /// The resource.
        resource: String,
        /// The quantity, as written.
        quantity: String,
    },
}

/// Why an edit can't be read or can't be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditError(pub String);

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EditError {}

impl Target {
    /// The object, where the question is asked in `namespace`.
    pub fn reference(&self, namespace: &str) -> ObjectRef {
        let namespace = match (&self.namespace, self.kind.is_namespaced()) {
            (_, false) => String::new(),
            (Some(own), true) => own.clone(),
            (None, true) => namespace.to_owned(),
        };
        ObjectRef { kind: self.kind, namespace, name: self.name.clone() }
    }
}

impl From<&ObjectRef> for Target {
    fn from(object: &ObjectRef) -> Self {
        let namespace = object.kind.is_namespaced().then(|| object.namespace.clone());
        Self { kind: object.kind, namespace, name: object.name.clone() }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(kind_word(self.kind))?;
        if let Some(namespace) = &self.namespace {
            write!(f, "/{namespace}")?;
        }
        write!(f, "/{}", self.name)
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddNodes { count: 1, like } => write!(f, "+1 node like {like}"),
            Self::AddNodes { count, like } => write!(f, "+{count} nodes like {like}"),
            Self::Heal { ills } => listed(f, "heal", ills),
            Self::Without { objects } => listed(f, "without", objects),
            Self::Relax { object, what } => write!(f, "relax {object} {what}"),
            Self::Set { object, what } => write!(f, "set {object} {what}"),
        }
    }
}

/// A verb and what it is done to, separated by commas.
fn listed<T: fmt::Display>(f: &mut fmt::Formatter<'_>, verb: &str, items: &[T]) -> fmt::Result {
    f.write_str(verb)?;
    for (index, item) in items.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(f, "{comma} {item}")?;
    }
    Ok(())
}

impl fmt::Display for Ill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => f.write_str(node),
            Self::Device { node, device } => write!(f, "{node}/{device}"),
        }
    }
}

impl fmt::Display for Relaxation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MatchAttribute(attribute) => write!(f, "matchAttribute {attribute}"),
            Self::DistinctAttribute(attribute) => write!(f, "distinctAttribute {attribute}"),
            Self::Selectors(request) => write!(f, "selectors of {request}"),
            Self::Align(level) => write!(f, "align {level}"),
            Self::Topology(level) => write!(f, "topology {level}"),
            Self::NodeSelector(key) => write!(f, "nodeSelector {key}"),
            Self::NodeAffinity => f.write_str("nodeAffinity"),
            Self::HostPort(port) => write!(f, "hostPort {port}"),
            Self::PodAffinity => f.write_str("podAffinity"),
            Self::PodAntiAffinity => f.write_str("podAntiAffinity"),
            Self::Spread(key) => write!(f, "spread {key}"),
            Self::NodeName => f.write_str("nodeName"),
            Self::Gate(name) => write!(f, "gate {name}"),
            Self::Taint(key) => write!(f, "taint {key}"),
            Self::DeviceTaint { key, request } => write!(f, "taint {key} of {request}"),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { request, count } => write!(f, "count of {request} to {count}"),
            Self::Replicas(count) => write!(f, "replicas to {count}"),
            Self::Minimum(Minimum { groups, of, count }) => {
                let groups = if *groups { " groups" } else { "" };
                let of = of.as_ref().map_or_else(String::new, |of| format!(" of {of}"));
                write!(f, "minimum{groups}{of} to {count}")
            }
            Self::Name { resource, other } => write!(f, "name of {resource} to {other}"),
            Self::Resource { resource, quantity } => write!(f, "{resource} to {quantity}"),
        }
    }
}
