//! What `phalanx plan` answers to a dump: the same calls as the command's.

use std::collections::BTreeMap;

use phalanx_cluster::plan::{PlanOptions, plan};
use phalanx_cluster::raise::{self, Effect, Write};
use phalanx_cluster::world::World;
use phalanx_cluster::{Compat, Lowering, ObjectEvent, Source, Version};
use phalanx_kubernetes::Kubernetes;
use phalanx_objects::read::{self, Item};
use serde_json::Value;

/// A plan.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Its writes.
    pub(crate) effects: Vec<Effect>,
    /// The findings on the objects, as sentences.
    pub(crate) findings: Vec<String>,
}

impl Planned {
    /// What is decided about the world of a dump of this run's Kubernetes with these gates on.
    ///
    /// # Panics
    /// When there is anything in it that is not read, or that looks wrong: what a real server holds
    /// is right.
    pub(crate) fn of(dump: &str, gates: &[String]) -> Self {
        let version = Version::parse(Kubernetes::of_this_run().as_str()).expect("a version");
        let on: Vec<String> = gates.iter().map(|gate| format!("{gate}=true")).collect();
        let compat = Compat::new(version).with_gates(&on.join(",")).expect("known gates");
        let mut world = World::new(Lowering::new(compat));
        let mut ordinal = 0;
        read::read("dump.json", dump.as_bytes(), &mut |item| match item {
            Item::Object(object, source) => {
                ordinal += 1;
                let source = Source { file: source.file, line: source.line, ordinal };
                world.absorb(ObjectEvent::Applied(Box::new(object), source));
            }
            Item::Gone(..) | Item::Unknown { .. } | Item::Problem(_) => {
                panic!("a dump of a real server holds {item:?}")
            }
        });
        world.settle();
        let options = PlanOptions { now: world.newest_time(), ..PlanOptions::default() };
        let plan = plan(&mut world, &options);
        let effects = raise::raise(&world, &plan);
        let findings = world.findings().iter().map(|finding| format!("{finding:?}")).collect();
        Self { effects, findings }
    }

    /// What `--output manifests` prints.
    pub(crate) fn manifests(&self) -> Vec<Value> {
        raise::manifests(&self.effects)
    }

    /// Each pod that is placed, and its node.
    pub(crate) fn nodes(&self) -> BTreeMap<String, String> {
        let bound = |effect: &Effect| match &effect.write {
            Write::Bind(bind) => Some((bind.pod.clone(), bind.node.clone())),
            Write::CreateClaim(_)
            | Write::Finalize(_)
            | Write::Unprotect(_)
            | Write::DeleteClaim(_)
            | Write::ClaimStatus(_)
            | Write::PodStatus(_)
            | Write::KeepVolume(_)
            | Write::SelectNode(_) => None,
        };
        self.effects.iter().filter_map(bound).collect()
    }
}
