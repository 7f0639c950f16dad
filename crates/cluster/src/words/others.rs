//! What is said of what else is free, where a counter is short or asked for in part.

use phalanx_objects::Quantity;

use super::list;

/// Another name that is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherName {
    /// The resource.
    pub name: String,
    /// How much of it is free on the node.
    pub free: i64,
    /// How much of it the node has.
    pub allocatable: i64,
    /// The node that has most of it free.
    pub node: String,
}

/// Devices that are still to be had, of one driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherDevices {
    /// The driver.
    pub driver: String,
    /// The first of them.
    pub first: String,
    /// Its node, where only one can have it.
    pub node: Option<String>,
    /// How many there are.
    pub number: u64,
    /// How many of them several claims may share.
    pub shared: u64,
}

/// What else is free, as the end of a reason's sentence; none where nothing is.
pub fn others(names: &[OtherName], devices: &[OtherDevices]) -> Option<String> {
    let name = |other: &OtherName| {
        format!("{} ({} free of {} on {})", other.name, other.free, other.allocatable, other.node)
    };
    let mut said = Vec::new();
    if !names.is_empty() {
        let names: Vec<String> = names.iter().map(name).collect();
        said.push(format!("other names that are free: {}", list(&names)));
    }
    if !devices.is_empty() {
        let devices: Vec<String> = devices.iter().map(of_driver).collect();
        said.push(format!("free, to be asked for by a ResourceClaim: {}", list(&devices)));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

fn of_driver(devices: &OtherDevices) -> String {
    let on = devices.node.as_ref().map_or_else(String::new, |node| format!(" of {node}"));
    let more = match devices.number {
        0 | 1 => String::new(),
        number => format!(" and {} more", number - 1),
    };
    let shared = match devices.shared {
        0 => String::new(),
        1 if devices.number == 1 => " (it may be shared)".to_owned(),
        shared if shared == devices.number => " (they may be shared)".to_owned(),
        shared => format!(" ({shared} of them may be shared)"),
    };
    format!("{}{on}{more} of driver {}{shared}", devices.first, devices.driver)
}

/// What is asked of a counter that counts whole devices: the subject of a reason.
pub fn part(resource: &str, quantity: &str) -> String {
    format!("{quantity} of {resource}")
}

/// Why an amount of an extended resource can't be granted that the API server calls no whole number:
/// for the end of a sentence.
pub fn uncountable(amount: &Quantity) -> &'static str {
    if amount.is_whole() {
        return "it is more than can be counted, and the API server refuses the pod";
    }
    "an extended resource is counted in whole units, and the API server refuses the pod; a part of a \
     device is a partition or a share that has a name of its own, or a device that claims may share"
}

/// The resource in a subject that [`part`] has made.
pub fn part_of(subject: &str) -> Option<&str> {
    let (quantity, resource) = subject.split_once(" of ")?;
    (quantity.starts_with(|c: char| c.is_ascii_digit()) && resource.contains('/'))
        .then_some(resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_listed_with_their_numbers() {
        let name = OtherName {
            name: "nvidia.com/mig-3g.40gb".into(),
            free: 1,
            allocatable: 2,
            node: "n1".into(),
        };
        let devices = OtherDevices {
            driver: "gpu.nvidia.com".into(),
            first: "gpu-3".into(),
            node: Some("n2".into()),
            number: 3,
            shared: 1,
        };
        assert_eq!(
            others(&[name], &[devices]).as_deref(),
            Some(
                "other names that are free: nvidia.com/mig-3g.40gb (1 free of 2 on n1); free, to be \
                 asked for by a ResourceClaim: gpu-3 of n2 and 2 more of driver gpu.nvidia.com (1 \
                 of them may be shared)"
            )
        );
        assert_eq!(others(&[], &[]), None);
    }

    #[test]
    fn a_part_is_read_back() {
        assert_eq!(part_of(&part("nvidia.com/gpu", "500m")), Some("nvidia.com/gpu"));
        assert_eq!(part_of("island=required for nvidia.com/gpu"), None);
    }
}
