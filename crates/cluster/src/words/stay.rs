//! What is said of a placement that is not for good yet, or for a time only: the bind waits for
//! conditions of devices, or a taint will evict the pod.

use super::list;

/// A stay that ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StayWords {
    /// `node n1`, `device gpu-0`.
    pub of: String,
    /// The taint, as `key=value:NoExecute`.
    pub taint: String,
    /// For how many seconds it is tolerated; none where no toleration names the effect NoExecute.
    pub seconds: Option<i64>,
    /// Until when, RFC 3339, where that is known.
    pub until: Option<String>,
}

/// Until when a pod may stay; `over` is that the time has passed.
pub fn stay_note(stay: &StayWords, over: bool) -> String {
    let StayWords { of, taint, seconds, until } = stay;
    let Some(seconds) = seconds else {
        return format!(
            "{of} has the taint {taint}, and no toleration of it names the effect NoExecute: the pod \
             is let in and evicted again by DeviceTaintEviction, which heeds no other"
        );
    };
    let end = match until {
        Some(until) if over => format!("that time ended at {until}"),
        Some(until) => format!("it may stay until {until}"),
        None => "it may stay no longer than that".to_owned(),
    };
    format!("{of} has the taint {taint}, which the pod tolerates for {seconds} s: {end}")
}

/// The finding on a placement that would not last.
pub fn evicted_at_once(node: &str, note: &str) -> String {
    format!("Placed on {node} the pod would be evicted at once: {note}.")
}

/// Which conditions of which devices the bind waits for.
pub fn awaits_note(devices: &[(String, Vec<String>)]) -> Option<String> {
    if devices.is_empty() {
        return None;
    }
    let one = |(device, conditions): &(String, Vec<String>)| {
        format!("{device} must report {}", list(conditions))
    };
    let devices: Vec<String> = devices.iter().map(one).collect();
    Some(format!(
        "the bind waits for conditions of devices: {}; kube-scheduler waits 10 minutes at most and \
         gives the allocation up then",
        list(&devices)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bind_that_waits_names_devices_and_conditions() {
        let devices = [("gpu-0".to_owned(), vec!["Attached".to_owned(), "Ready".to_owned()])];
        let note = awaits_note(&devices).expect("a note");
        assert!(note.contains("gpu-0 must report Attached and Ready; kube-scheduler"), "{note}");
        assert_eq!(awaits_note(&[]), None);
    }

    #[test]
    fn a_stay_says_when_it_ends() {
        let mut stay = StayWords {
            of: "device gpu-0".into(),
            taint: "sick:NoExecute".into(),
            seconds: Some(60),
            until: Some("2026-01-01T00:01:00Z".into()),
        };
        let said = "device gpu-0 has the taint sick:NoExecute, which the pod tolerates for 60 s: it may \
                    stay until 2026-01-01T00:01:00Z";
        assert_eq!(stay_note(&stay, false), said);
        assert!(stay_note(&stay, true).ends_with("that time ended at 2026-01-01T00:01:00Z"));
        stay.until = None;
        assert!(stay_note(&stay, false).ends_with("no longer than that"));
        stay.seconds = None;
        let finding = evicted_at_once("n1", &stay_note(&stay, true));
        assert!(finding.starts_with("Placed on n1 the pod would be evicted at once: device gpu-0"));
    }
}
