//! The same recorded worlds, put on a real API server one after the other, for three to answer: `phalanx
//! plan` on a `phalanx dump`, `phalanx controller`, and kube-scheduler. The controller binds where the plan
//! says, and a pod is bound by kube-scheduler if and only if it is by ours.
//!
//! A few worlds belong to every run; `cargo xtask e2e --worlds` takes 150 of predicates and 50 of devices.

mod load;
mod parts;
#[path = "../../../../crates/cluster/tests/peers/question.rs"]
#[expect(dead_code, reason = "the tests of `cluster` make worlds in memory of it")]
mod question;
mod recorded;
#[path = "../../../../crates/cluster/tests/peers/shared.rs"]
#[expect(dead_code, reason = "the tests of `cluster` make worlds in memory of it")]
mod shared;

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use kube::api::{DeleteParams, PostParams};
use phalanx_kubernetes::{Cluster, Failure, Identity, Kubernetes, Setup, until};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::board::{api, api_of, object, text};
use crate::controls::command::{Running, deployed, phalanx};
use crate::planned::Planned;
use recorded::World;

/// Worlds of predicates and of devices, in `cargo xtask e2e --worlds` and in every run.
const ALL: (usize, usize) = (150, 50);
const SAMPLE: (usize, usize) = (15, 5);

/// How far apart worlds lie that follow one another, so that each kind has its share.
const STRIDE: usize = 37;

/// How long a scheduler may take to see a change, for it follows each kind by itself.
const SEEN: Duration = Duration::from_millis(200);
/// How long is looked at a pod that need not be looked at by anybody.
const GATED: Duration = Duration::from_secs(1);
/// After so long a decision has been made, and what it waits for is played.
const DECIDED: Duration = Duration::from_millis(300);
/// How long a pod for which there is room is waited for.
const LONG: Duration = Duration::from_secs(15);

#[tokio::test]
async fn plan_controller_and_kube_scheduler_agree_on_recorded_worlds() {
    if Kubernetes::of_this_run() != Kubernetes::V1_37 {
        println!("left out: recorded worlds, which are of the rules of 1.37.");
        return;
    }
    let (Some(predicates), Some(devices)) =
        (shared::lines("predicates/worlds.jsonl"), shared::lines("dra/generated-worlds.jsonl"))
    else {
        return;
    };
    let count = match std::env::var_os("PHALANX_WORLDS") {
        Some(all) if all == "all" => ALL,
        _ => SAMPLE,
    };
    Cluster::test(Setup::default(), async |cluster| {
        let mut scene = Scene::of(cluster).await?;
        let worlds = predicates.iter().map(recorded::of_predicates).collect::<Vec<_>>();
        scene.ask(count.0, &worlds).await?;
        let of_default = devices.iter().filter(|world| recorded::has_default_gates(world));
        let worlds = of_default.map(recorded::of_devices).collect::<Vec<_>>();
        scene.ask(count.1, &worlds).await?;
        scene.end(count.0 + count.1);
        Ok(())
    })
    .await;
}

/// What was found.
#[derive(Debug, Default)]
struct Outcome {
    asked: usize,
    bound: usize,
    /// Why worlds were left out, and how many.
    left_out: BTreeMap<String, usize>,
    /// What the controller does that the plan does not say.
    strays: Vec<String>,
    /// Where kube-scheduler binds and we do not, or the other way round.
    differs: Vec<String>,
    /// Where kube-scheduler does not answer as in the recording: then another world was loaded.
    unlike: Vec<String>,
}

struct Scene<'c> {
    cluster: &'c Cluster,
    admin: Client,
    controller: Running,
    outcome: Outcome,
}

impl<'c> Scene<'c> {
    async fn of(cluster: &'c mut Cluster) -> Result<Self, Failure> {
        let admin = deployed(cluster).await?;
        // Its pod is run by the test, and a plan would find it another place.
        let deployments = api(&admin, "apps/v1", "Deployment", "phalanx-system");
        deployments.delete("phalanx", &DeleteParams::default()).await?;
        cluster.start_scheduler()?;
        let cluster = &*cluster;
        let controller = Running::start(cluster, &admin).await?;
        Ok(Self { cluster, admin, controller, outcome: Outcome::default() })
    }

    /// Asks about so many of the worlds that the server takes.
    async fn ask(&mut self, count: usize, worlds: &[Result<World, &str>]) -> Result<(), Failure> {
        let enough = self.outcome.asked + count;
        for at in (0..worlds.len()).map(|at| at * STRIDE % worlds.len()) {
            if self.outcome.asked == enough {
                break;
            }
            let left_out = match worlds.get(at) {
                Some(Ok(world)) => self.compare(world).await?.err(),
                Some(Err(why)) => Some((*why).to_owned()),
                None => None,
            };
            if let Some(why) = left_out {
                *self.outcome.left_out.entry(why).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Asks all three about a world; none if the server does not take it.
    async fn compare(&mut self, world: &World) -> Result<Result<(), String>, Failure> {
        if let Err(why) = load::load(&self.admin, world).await {
            load::clear(&self.admin).await?;
            return Ok(Err(why));
        }
        self.controller_has_seen().await?;
        let dump = self.dump();
        let pod = match self.submit(world, "phalanx").await {
            Ok(pod) => pod,
            Err(why) => {
                load::clear(&self.admin).await?;
                return Ok(Err(why));
            }
        };
        let planned = planned(dump, pod);
        let ours = self.decided(world).await?;
        load::clear(&self.admin).await?;

        load::load(&self.admin, world).await.expect("it was taken before");
        sleep(SEEN).await;
        self.submit(world, "default-scheduler").await.expect("it was taken before");
        let theirs = self.decided(world).await?;
        load::clear(&self.admin).await?;

        let Outcome { asked, bound, strays, differs, unlike, .. } = &mut self.outcome;
        *asked += 1;
        *bound += usize::from(ours.is_some());
        let name = &world.name;
        if planned != ours {
            strays.push(format!("{name}: planned on {planned:?}, bound to {ours:?}"));
        }
        if ours.is_some() != theirs.is_some() {
            differs.push(format!("{name}: ours {ours:?}, kube-scheduler's {theirs:?}"));
        }
        if theirs.is_some() != world.room {
            unlike.push(format!("{name}: kube-scheduler's {theirs:?}, recorded {}", world.room));
        }
        Ok(Ok(()))
    }

    /// Waits until nothing new comes to the controller.
    async fn controller_has_seen(&self) -> Result<(), Failure> {
        let mut before = None;
        until("the controller has taken all in", async || {
            sleep(SEEN).await;
            let metrics = self.controller.page("/metrics").await.1;
            let events = metrics.lines().find(|line| line.starts_with("phalanx_events_total"));
            let now = events.map(str::to_owned);
            let rests = now.is_some() && now == before;
            before = now;
            Ok(rests.then_some(()))
        })
        .await
    }

    /// What the command dumps.
    fn dump(&self) -> Value {
        let mut command = phalanx();
        command.args(["dump", "--output=json", "--kubeconfig"]);
        let done = command.arg(self.cluster.kubeconfig(Identity::Admin)).output();
        let done = done.expect("it starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).expect("JSON")
    }

    /// The pod as the server has taken it.
    async fn submit(&self, world: &World, scheduler: &str) -> Result<Value, String> {
        let mut pod = world.pod.clone();
        pod["spec"]["schedulerName"] = json!(scheduler);
        for field in ["uid", "resourceVersion"] {
            pod["metadata"].as_object_mut().and_then(|fields| fields.remove(field));
        }
        let made = api_of(&self.admin, &pod).create(&PostParams::default(), &object(&pod)).await;
        let made = made.map_err(|e| load::told(&pod, &e))?;
        Ok(serde_json::to_value(made).expect("an object"))
    }

    /// The node that the world's pod is bound to; none if it is told that it waits.
    async fn decided(&self, world: &World) -> Result<Option<String>, Failure> {
        let (pods, name) = (api_of(&self.admin, &world.pod), text(&world.pod, "/metadata/name"));
        let gates = world.pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
        if gates.is_some_and(|gates| !gates.is_empty()) {
            sleep(GATED).await;
        }
        let since = Instant::now();
        loop {
            let pod = serde_json::to_value(pods.get(name).await?).expect("an object");
            let node = text(&pod, "/spec/nodeName");
            if !node.is_empty() {
                return Ok(Some(node.to_owned()));
            }
            // With room it may have been looked at before all of the world was seen.
            if (waits(&pod) && !world.room) || since.elapsed() > LONG {
                return Ok(None);
            }
            if since.elapsed() > DECIDED {
                parts::play(&self.admin, text(&world.pod, "/metadata/namespace")).await?;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Says what was found. Fails where they do not agree.
    fn end(mut self, count: usize) {
        let outcome = &self.outcome;
        println!("{} worlds, in {} the pod is bound", outcome.asked, outcome.bound);
        for (why, times) in &outcome.left_out {
            println!("left out {times}: {why}");
        }
        assert_eq!(outcome.asked, count, "so many worlds can be asked about");
        let Outcome { strays, differs, unlike, .. } = outcome;
        assert_eq!(strays, &[""; 0], "the controller does as the plan says");
        // None of these worlds shows a row of docs/upstream-differences.md.
        assert_eq!(differs, &[""; 0], "kube-scheduler binds if and only if we do");
        assert_eq!(unlike, &[""; 0], "the world on the server is the one that was recorded");
        self.controller.assert_rights_suffice();
        assert_eq!(self.controller.stop().code(), Some(0), "{}", self.controller.log());
    }
}

/// Whether it is told that it waits.
fn waits(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|of| of["type"] == "PodScheduled" && of["status"] == "False")
}

/// Where the pod goes by a plan for what was dumped and the pod.
fn planned(mut dump: Value, mut pod: Value) -> Option<String> {
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    let name = text(&pod, "/metadata/name").to_owned();
    dump["items"].as_array_mut().expect("a list").push(pod);
    Planned::of(&dump.to_string(), &[]).nodes().get(&name).cloned()
}
