//! Reads an edit from its line of English.

use std::str::FromStr;

use phalanx_objects::scheduling::SchedulingKind;
use phalanx_objects::topology::AlignLevel;
use phalanx_objects::workload::WorkloadKind;
use phalanx_objects::{Kind, Quantity};

use super::{Edit, EditError, Ill, Minimum, Relaxation, Setting, Target};

const FORMS: &str = "an edit is one of `+N nodes like NODE`, `heal NODE`, `heal NODE/DEVICE`, \
    `without KIND/NAME`, `relax KIND/NAME CONSTRAINT` and `set KIND/NAME WHAT to VALUE`";

/// A kind as users type it: in lower case, singular.
pub fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Node => "node",
        Kind::Pod => "pod",
        Kind::Namespace => "namespace",
        Kind::Service => "service",
        Kind::ReplicationController => "replicationcontroller",
        Kind::ServiceAccount => "serviceaccount",
        Kind::PriorityClass => "priorityclass",
        Kind::RuntimeClass => "runtimeclass",
        Kind::LimitRange => "limitrange",
        Kind::ResourceQuota => "resourcequota",
        Kind::ResourceSlice => "resourceslice",
        Kind::ResourceClaim => "resourceclaim",
        Kind::ResourceClaimTemplate => "resourceclaimtemplate",
        Kind::DeviceClass => "deviceclass",
        Kind::DeviceTaintRule => "devicetaintrule",
        Kind::PersistentVolume => "persistentvolume",
        Kind::PersistentVolumeClaim => "persistentvolumeclaim",
        Kind::StorageClass => "storageclass",
        Kind::CSINode => "csinode",
        Kind::CSIDriver => "csidriver",
        Kind::CSIStorageCapacity => "csistoragecapacity",
        Kind::VolumeAttachment => "volumeattachment",
        Kind::NodeTopology => "nodetopology",
        Kind::Placement => "placement",
        Kind::Workload(kind) => kind.word(),
        Kind::Scheduling(kind) => kind.word(),
    }
}

/// Other words for a kind: kubectl's short names, and plurals.
fn kind(word: &str) -> Option<Kind> {
    let word = word.to_ascii_lowercase();
    let short = match word.as_str() {
        "po" => Some(Kind::Pod),
        "no" => Some(Kind::Node),
        "ns" => Some(Kind::Namespace),
        "svc" => Some(Kind::Service),
        "rc" => Some(Kind::ReplicationController),
        "sa" => Some(Kind::ServiceAccount),
        "pc" => Some(Kind::PriorityClass),
        "limits" => Some(Kind::LimitRange),
        "quota" => Some(Kind::ResourceQuota),
        "pv" => Some(Kind::PersistentVolume),
        "pvc" => Some(Kind::PersistentVolumeClaim),
        "sc" | "storageclasses" => Some(Kind::StorageClass),
        "csistoragecapacities" => Some(Kind::CSIStorageCapacity),
        "claim" | "claims" => Some(Kind::ResourceClaim),
        "claimtemplate" | "claimtemplates" | "template" => Some(Kind::ResourceClaimTemplate),
        "priorityclasses" => Some(Kind::PriorityClass),
        "runtimeclasses" => Some(Kind::RuntimeClass),
        "deviceclasses" => Some(Kind::DeviceClass),
        "nodetopologies" => Some(Kind::NodeTopology),
        word => {
            let mut workloads = WorkloadKind::ALL.iter().copied();
            let workload = workloads.find(|kind| kind.short_words().contains(&word));
            let mut others = SchedulingKind::ALL.iter().copied();
            let mut other = || others.find(|kind| kind.short_words().contains(&word));
            workload.map(Kind::Workload).or_else(|| other().map(Kind::Scheduling))
        }
    };
    short.or_else(|| {
        let singular = word.strip_suffix('s');
        let named = |kind: &&Kind| kind_word(**kind) == word || Some(kind_word(**kind)) == singular;
        Kind::ALL.iter().find(named).copied()
    })
}

/// Reads `KIND/NAME` or `KIND/NAMESPACE/NAME`.
///
/// # Errors
/// Says which part is missing, or which kinds there are.
pub fn parse_target(text: &str) -> Result<Target, EditError> {
    let mut parts = text.split('/');
    let word = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    if rest.is_empty() || rest.len() > 2 || rest.iter().any(|part| part.is_empty()) {
        return Err(EditError(format!(
            "`{text}` names no object: write KIND/NAME or KIND/NAMESPACE/NAME, such as pod/trainer"
        )));
    }
    let Some(kind) = kind(word) else {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind_word(*kind)).collect();
        return Err(EditError(format!(
            "`{word}` in `{text}` is no kind that is read: the kinds are {}",
            known.join(", ")
        )));
    };
    match (rest.as_slice(), kind.is_namespaced()) {
        ([namespace, name], true) => {
            let namespace = Some((*namespace).to_owned());
            Ok(Target { kind, namespace, name: (*name).to_owned() })
        }
        ([name], _) => Ok(Target { kind, namespace: None, name: (*name).to_owned() }),
        _ => Err(EditError(format!(
            "`{text}`: a {} is in no namespace: write {}/NAME",
            kind_word(kind),
            kind_word(kind)
        ))),
    }
}

impl FromStr for Edit {
    type Err = EditError;

    fn from_str(text: &str) -> Result<Self, EditError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some((verb, rest)) = words.split_first() else {
            return Err(EditError(format!("the edit is empty: {FORMS}")));
        };
        let edit = match *verb {
            "heal" => heal(rest),
            "without" => without(rest),
            "relax" => relax(rest),
            "set" => set(rest),
            verb if verb.starts_with('+') => add_nodes(verb, rest),
            verb => Err(EditError(format!("`{verb}` is no edit: {FORMS}"))),
        };
        edit.map_err(|error| EditError(format!("`{text}`: {error}")))
    }
}

fn expected<T>(what: &str) -> Result<T, EditError> {
    Err(EditError(format!("expected {what}")))
}

/// The API's own bound on counts.
const COUNT_MAX: u32 = i32::MAX.unsigned_abs();

fn number(word: &str, what: &str, max: u32) -> Result<u32, EditError> {
    if word.is_empty() || !word.bytes().all(|b| b.is_ascii_digit()) {
        return expected(&format!("{what} as a whole number, found `{word}`"));
    }
    match word.parse() {
        Ok(number) if number <= max => Ok(number),
        Ok(_) | Err(_) => expected(&format!("{what}, at most {max}, found `{word}`")),
    }
}

/// Most nodes that one edit adds.
const NODES_MAX: u32 = 10_000;

fn add_nodes(verb: &str, rest: &[&str]) -> Result<Edit, EditError> {
    let count = number(&verb[1..], "the number of nodes after `+`", NODES_MAX)?;
    if count == 0 {
        return expected(&format!("between 1 and {NODES_MAX} nodes"));
    }
    match rest {
        ["node" | "nodes", "like", node] => Ok(Edit::AddNodes { count, like: (*node).to_owned() }),
        _ => expected(&format!("`+{count} nodes like NODE`")),
    }
}

/// The things that a verb is done to: separated by commas, each once, in order.
fn things<T: Ord>(
    rest: &[&str],
    one: impl Fn(&str) -> Result<T, EditError>,
) -> Result<Vec<T>, EditError> {
    let text = rest.join(" ");
    let things: Result<Vec<T>, EditError> = text.split(',').map(str::trim).map(one).collect();
    let mut things = things?;
    things.sort();
    things.dedup();
    Ok(things)
}

fn heal(rest: &[&str]) -> Result<Edit, EditError> {
    Ok(Edit::Heal { ills: things(rest, ill)? })
}

fn ill(text: &str) -> Result<Ill, EditError> {
    if text.is_empty() || text.contains(' ') {
        return expected("`heal NODE` or `heal NODE/DEVICE`");
    }
    match text.rsplit_once('/') {
        Some((node, device)) if !node.is_empty() && !device.is_empty() => {
            Ok(Ill::Device { node: node.to_owned(), device: device.to_owned() })
        }
        Some(_) => expected("`heal NODE/DEVICE`"),
        None => Ok(Ill::Node(text.to_owned())),
    }
}

fn without(rest: &[&str]) -> Result<Edit, EditError> {
    Ok(Edit::Without { objects: things(rest, parse_target)? })
}

fn relax(rest: &[&str]) -> Result<Edit, EditError> {
    let Some((object, rest)) = rest.split_first() else {
        return expected("`relax KIND/NAME CONSTRAINT`");
    };
    let object = parse_target(object)?;
    let own = |word: &&str| (**word).to_owned();
    let what = match rest {
        ["matchAttribute", attribute] => Relaxation::MatchAttribute(own(attribute)),
        ["distinctAttribute", attribute] => Relaxation::DistinctAttribute(own(attribute)),
        ["selectors", "of", request] => Relaxation::Selectors(own(request)),
        ["align", word] => match AlignLevel::ALL.iter().find(|level| level.as_str() == *word) {
            Some(level) => Relaxation::Align(*level),
            None => return expected("a level after `align`: island, switch, root, numa or rail"),
        },
        ["topology", level] => Relaxation::Topology(own(level)),
        ["nodeSelector", key] => Relaxation::NodeSelector(own(key)),
        ["nodeAffinity"] => Relaxation::NodeAffinity,
        ["hostPort", port] => match port.parse() {
            Ok(port @ 1..) => Relaxation::HostPort(port),
            Ok(_) | Err(_) => return expected("the number of a port after `hostPort`"),
        },
        ["podAffinity"] => Relaxation::PodAffinity,
        ["podAntiAffinity"] => Relaxation::PodAntiAffinity,
        ["spread", key] => Relaxation::Spread(own(key)),
        ["nodeName"] => Relaxation::NodeName,
        ["gate", name] => Relaxation::Gate(own(name)),
        ["taint", key] => Relaxation::Taint(own(key)),
        ["taint", key, "of", request] => {
            Relaxation::DeviceTaint { key: own(key), request: own(request) }
        }
        _ => {
            return expected(
                "a constraint: `matchAttribute ATTRIBUTE`, `distinctAttribute ATTRIBUTE`, \
                 `selectors of REQUEST`, `align LEVEL`, `topology LEVEL`, `nodeSelector KEY`, \
                 `nodeAffinity`, `podAffinity`, `podAntiAffinity`, `spread KEY`, `hostPort PORT`, `nodeName`, \
                 `gate NAME`, `taint KEY` or `taint KEY of REQUEST`",
            );
        }
    };
    Ok(Edit::Relax { object, what })
}

fn set(rest: &[&str]) -> Result<Edit, EditError> {
    let Some((object, rest)) = rest.split_first() else {
        return expected("`set KIND/NAME WHAT to VALUE`");
    };
    let object = parse_target(object)?;
    let what = match rest {
        ["count", "of", request, "to", count] => {
            let count = number(count, "the count of devices", COUNT_MAX)?;
            if count == 0 {
                return expected("a count of at least 1");
            }
            Setting::Count { request: (*request).to_owned(), count }
        }
        ["replicas", "to", count] => {
            Setting::Replicas(number(count, "the number of pods", COUNT_MAX)?)
        }
        ["minimum", "to", count] => minimum(false, None, count)?,
        ["minimum", "of", part, "to", count] => minimum(false, Some(part), count)?,
        ["minimum", "groups", "to", count] => minimum(true, None, count)?,
        ["minimum", "groups", "of", part, "to", count] => minimum(true, Some(part), count)?,
        ["name", "of", resource, "to", other] => {
            let (resource, other) = ((*resource).to_owned(), (*other).to_owned());
            Setting::Name { resource, other }
        }
        [resource, "to", quantity] => {
            match quantity.parse::<Quantity>() {
                Ok(amount) if amount.as_f64() < 0.0 => {
                    return expected(&format!("a quantity of 0 or more, found `{quantity}`"));
                }
                Ok(_) => {}
                Err(error) => {
                    return expected(&format!("a quantity, found `{quantity}`: {error}"));
                }
            }
            let (resource, quantity) = ((*resource).to_owned(), (*quantity).to_owned());
            Setting::Resource { resource, quantity }
        }
        _ => {
            return expected(
                "`count of REQUEST to N`, `replicas to N`, `minimum to N`, `minimum of PART to N`, \
                 `minimum groups to N`, `minimum groups of PART to N`, `name of RESOURCE to RESOURCE` or \
                 `RESOURCE to QUANTITY`",
            );
        }
    };
    Ok(Edit::Set { object, what })
}

fn minimum(groups: bool, of: Option<&str>, count: &str) -> Result<Setting, EditError> {
    let what = if groups { "the fewest groups" } else { "the fewest pods" };
    let count = number(count, what, COUNT_MAX)?;
    if count == 0 {
        return expected("a minimum of at least 1");
    }
    Ok(Setting::Minimum(Minimum { groups, of: of.map(str::to_owned), count }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        let lines = [
            "+2 nodes like n1",
            "+1 node like gpu-node-7.example",
            "heal n1",
            "heal n1/gpu-5",
            "heal n1, n1/gpu-5, n1/gpu-6",
            "without pod/x",
            "without pod/a, pod/team-b/b",
            "without node/n2",
            "relax resourceclaimtemplate/ml/pair matchAttribute gpu.nvidia.com/nvlinkDomain",
            "relax resourceclaim/shared distinctAttribute gpu.nvidia.com/numa",
            "relax resourceclaim/shared selectors of gpu/big",
            "relax pod/x align island",
            "relax podgroup/x topology example.com/rack",
            "relax pod/x nodeSelector example.com/zone",
            "relax pod/x nodeAffinity",
            "relax pod/x podAffinity",
            "relax pod/x podAntiAffinity",
            "relax pod/x spread topology.kubernetes.io/zone",
            "relax pod/x hostPort 8080",
            "relax pod/x nodeName",
            "relax pod/x gate example.com/quota",
            "relax job/x taint example.com/dedicated",
            "relax resourceclaim/ml/c taint example.com/unhealthy of gpu",
            "set resourceclaimtemplate/pair count of gpu to 2",
            "set deployment/web replicas to 3",
            "set podgroup/x minimum to 6",
            "set vcjob/x minimum of worker to 2",
            "set compositepodgroup/x minimum groups to 1",
            "set podgroup.scheduling.run.ai/x minimum groups of decode to 1",
            "set pod/x nvidia.com/gpu to 3",
            "set pod/x name of nvidia.com/gpu to nvidia.com/mig-3g.40gb",
            "set pod/x cpu to 500m",
        ];
        for line in lines {
            let edit: Edit = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(edit.to_string(), line);
        }
    }

    #[test]
    fn other_spellings_are_read_as_the_one_that_is_printed() {
        for (line, printed) in [
            ("+1 nodes like n1", "+1 node like n1"),
            ("without pods/b,po/a", "without pod/a, pod/b"),
            ("without  ResourceClaims/c", "without resourceclaim/c"),
            ("relax claimtemplate/t align numa", "relax resourceclaimtemplate/t align numa"),
        ] {
            let edit: Edit = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(edit.to_string(), printed);
        }
    }

    #[test]
    fn errors_say_what_was_expected() {
        for (line, says) in [
            ("", "the edit is empty"),
            ("drain n1", "`drain` is no edit: an edit is one of `+N nodes like NODE`"),
            ("+x nodes like n1", "the number of nodes after `+` as a whole number, found `x`"),
            ("+2 nodes", "expected `+2 nodes like NODE`"),
            ("+0 nodes like n1", "expected between 1 and 10000 nodes"),
            ("+99999999999 nodes like n1", "at most 10000, found `99999999999`"),
            ("set job/x replicas to 5000000000", "at most 2147483647"),
            ("set pod/x cpu to -5", "expected a quantity of 0 or more, found `-5`"),
            ("heal", "expected `heal NODE` or `heal NODE/DEVICE`"),
            ("heal n1/", "expected `heal NODE/DEVICE`"),
            ("without x", "`x` names no object"),
            ("without foo/x", "`foo` in `foo/x` is no kind that is read"),
            ("without node/a/b", "a node is in no namespace"),
            ("relax pod/x", "expected a constraint: `matchAttribute ATTRIBUTE`"),
            ("relax pod/x align socket", "expected a level after `align`"),
            ("set pod/x count of gpu to 0", "expected a count of at least 1"),
            ("set pod/x cpu to fast", "expected a quantity, found `fast`"),
        ] {
            let error = line.parse::<Edit>().unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
