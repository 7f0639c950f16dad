//! In the shadow of another scheduler: what we would do is remembered, and compared with what it does.

use std::collections::BTreeMap;

use phalanx_engine::{Act, PodKey, Verdict};
use phalanx_objects::ObjectRef;

use super::flight::pod_of;
use super::{Controller, Difference};
use crate::plan::Plan;
use crate::view::first_reason;
use crate::words;

/// What we would do with pods that wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadow {
    pods: BTreeMap<PodKey, Would>,
}

/// What we would do with a pod.
#[derive(Clone, Debug)]
struct Would {
    uid: String,
    /// The node that we would take, or why none.
    node: Result<String, String>,
}

impl Controller {
    /// Remembers what a decision would do.
    pub(super) fn shadow_plan(&mut self, plan: &Plan) {
        let mut pods = BTreeMap::new();
        let seats = plan.decision.acts.iter().filter_map(|act| match act {
            Act::Place(_, seats, _) => Some(seats),
            Act::Admit(_) | Act::Hold(..) | Act::Release(..) | Act::Evict { .. } => None,
        });
        for seat in seats.flatten() {
            let Some(pod) = &seat.pod else { continue };
            let uid = self.pod(pod).map(|pod| pod.metadata.uid.clone()).unwrap_or_default();
            pods.insert(pod.clone(), Would { uid, node: Ok(seat.node.0.to_string()) });
        }
        for (group, verdict) in &plan.decision.verdicts {
            if matches!(verdict, Verdict::Placed { short: None, .. }) {
                continue;
            }
            let Some(info) = self.world.lowering().group(group) else { continue };
            let roles = info.roles.iter().enumerate();
            for (at, pod) in roles.flat_map(|(at, of)| of.pods.iter().map(move |pod| (at, pod))) {
                let why = first_reason(&self.world, &info, (at, pod), verdict);
                let (_, message) = why.unwrap_or_default();
                let would = Would { uid: pod.uid.clone(), node: Err(message) };
                pods.entry(pod.key.clone()).or_insert(would);
            }
        }
        self.shadow.pods = pods;
    }

    /// A pod is seen anew: where it is bound otherwise than we would, that is told.
    pub(super) fn seen_in_shadow(&mut self, of: &ObjectRef) {
        if !self.options.shadow {
            return;
        }
        let key = crate::lower::pod_key(&of.namespace, &of.name);
        let objects = self.world.objects();
        let Some(pod) = objects.and_then(|objects| pod_of(objects, &key)) else { return };
        let (uid, theirs) = (pod.metadata.uid.clone(), pod.spec.node_name.clone());
        if theirs.is_empty() {
            return;
        }
        let Some(would) = self.shadow.pods.remove(&key).filter(|would| would.uid == uid) else {
            return;
        };
        let message = match &would.node {
            Ok(ours) if *ours == theirs => return,
            Ok(ours) => words::elsewhere(&key.0.name, &theirs, ours),
            Err(why) => words::would_wait(&key.0.name, &theirs, why),
        };
        self.out.differences.push(Difference {
            pod: of.clone(),
            ours: would.node.ok(),
            theirs: Some(theirs),
            message,
        });
    }
}
