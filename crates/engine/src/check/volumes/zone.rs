//! VolumeZone: zones and regions that the labels of a bound volume name.

use super::{Binding, Failing, Mounts, NEVER, failing};
use crate::check::fact::label;
use crate::name::Name;
use crate::reason::Reason;
use crate::state::State;

/// Labels of nodes that say where they are, and for the old ones what they are called now.
const ZONES: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];

pub(super) fn check(state: &State, mounts: &Mounts, slot: u32) -> Result<(), Failing> {
    let Some(node) = &state.nodes.at(slot).fact else { return Ok(()) };
    if ZONES.iter().all(|(key, _)| label(&node.labels, key).is_none()) {
        return Ok(());
    }
    for mount in mounts.claims.iter().filter(|mount| mount.zoned) {
        let Binding::Bound(key) = &mount.state else { continue };
        let Some(volume) = state.storage.volume(key) else { continue };
        for (zone, values) in &volume.zones {
            let now = ZONES.iter().find(|(old, _)| *old == zone.as_str()).map(|(_, now)| *now);
            let own = label(&node.labels, zone).or_else(|| label(&node.labels, now?));
            if own.is_some_and(|own| values.contains(own)) {
                continue;
            }
            let all: Vec<&str> = values.iter().map(Name::as_str).collect();
            let asked = Name::new(&format!("{zone}={}", all.join("__")));
            return Err(failing(Reason::VolumeZone, NEVER, &mount.name, |facts| {
                facts.volume = Some(key.0.clone());
                facts.label = Some((asked, own.cloned()));
            }));
        }
    }
    Ok(())
}
