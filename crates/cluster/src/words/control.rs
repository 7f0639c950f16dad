//! What a controller tells of what it does: sentences of events, conditions and Placements.

use crate::control::Cause;

/// Why seats were given up after they were decided.
pub(crate) fn given_up(cause: &Cause) -> String {
    match cause {
        Cause::PodGone => "The place was given up, for the pod is gone.".to_owned(),
        Cause::NoSeatLeft => {
            "The places of the group were given up one by one. It is decided again after a while."
                .to_owned()
        }
        Cause::ClaimGone(claim) => format!(
            "The place was given up, for the claim {claim} is gone, or is not the pod's. It is decided \
             again once the claim is there."
        ),
        Cause::Elsewhere(claim) => format!(
            "The place was given up, for the claim {claim} was allocated otherwise meanwhile. It is \
             decided again."
        ),
        Cause::Unusable(claim) => format!(
            "The place was given up, for a driver reports that the devices of the claim {claim} can't be \
             used, or did not report in time that they can. It is decided again."
        ),
        Cause::NotAllocated(claim) => format!(
            "The place was given up, for the pod that was to allocate the shared claim {claim} is not \
             placed now. It is decided again."
        ),
        Cause::Second { device, other: Some(other) } => format!(
            "The place was given up, for {other} was given the device {device} first by another \
             scheduler. It is decided again; keep other schedulers off the pool, or the pods off each \
             other's devices."
        ),
        Cause::Second { device, other: None } => format!(
            "The place was given up, for another scheduler has taken first what the device {device} \
             needs of its pool. It is decided again; keep other schedulers off the pool."
        ),
        Cause::Refused { code, message } => format!(
            "The place could not be written: the API server answers {code}, \"{message}\". It is tried \
             again after a while."
        ),
        Cause::NodeGone(node) => format!(
            "The place was given up, for the node {node} is gone. It is decided again."
        ),
        Cause::NodeShut { node, taint } => format!(
            "The place was given up, for the node {node} has the taint {taint} now, which the pod does not \
             tolerate. It is decided again."
        ),
        Cause::Waited { object, seconds } => format!(
            "The place was given up, for {object} made the pod wait for more than {seconds} s. It is \
             decided again; look at its events."
        ),
        Cause::NotProvisioned(claim) => format!(
            "The place was given up, for no volume could be made for the claim {claim} on its node. It is \
             decided again; look at the claim's events."
        ),
        Cause::Stopped => {
            "The place was given up, for the controller that held it was stopped. It is decided again."
                .to_owned()
        }
        Cause::NotStarted { ran, of, example } => {
            let example = example
                .as_ref()
                .map(|(pod, fate)| format!(": pod {pod} {fate}"))
                .unwrap_or_default();
            format!(
                "The group was released whole, for only {ran} of the {of} pods that it needs ran in \
                 time{example}. Look at that pod's events, mend what they tell, and create the pods \
                 again."
            )
        }
    }
}

/// That a pod is bound, in kube-scheduler's words.
pub(crate) fn assigned(namespace: &str, pod: &str, node: &str) -> String {
    format!("Successfully assigned {namespace}/{pod} to {node}")
}

/// That another scheduler took another node.
pub(crate) fn elsewhere(pod: &str, theirs: &str, ours: &str) -> String {
    format!("Pod {pod} was bound to {theirs}; Phalanx would have taken {ours}.")
}

/// That another scheduler bound a pod that we would let wait.
pub(crate) fn would_wait(pod: &str, theirs: &str, why: &str) -> String {
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    format!("Pod {pod} was bound to {theirs}; Phalanx would have let it wait{why}")
}
