//! The real controller, killed after its n-th write: when another has come and all is at rest, no gang is
//! half, no device is had twice, and nothing is stuck. Judged from the API server's objects alone.
//!
//! A spread of twenty n belongs to every run; `cargo xtask e2e --crash` takes every n, each at every
//! [`Moment`]. All are on one control plane: each has nodes, devices and a namespace of its own, and what
//! those before have left stands beside it.

mod judge;
mod proxy;

use std::cell::Cell;
use std::time::Duration;

use kube::Client;
use kube::api::ListParams;
use phalanx_kubernetes::{Cluster, Failure, Kubernetes, Setup, until};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::board::{RESOURCE, SCHEDULING, api, documents, put, until_claims_are_made};
use crate::controls::command::{Running, deployed, service_account};
use judge::{Stand, wrong};
use proxy::{Moment, Proxy, Stop};

const CLASSES: &str = include_str!("worlds/crash-classes.yaml");
const WORLD: &str = include_str!("worlds/crash.yaml");
/// Groups for which there is room.
const WHOLE: usize = 2;
/// How many of the n belong to every run.
const SAMPLE: usize = 20;
/// Nothing was written for so long: it is at rest.
const REST: Duration = Duration::from_millis(300);
/// How long a write more is waited for. After the last one none comes.
const NEXT: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_kill_after_any_write_leaves_no_half_gang_no_device_twice_and_nothing_stuck() {
    if Kubernetes::of_this_run() < Kubernetes::V1_37 {
        println!("left out: kills in the midst of gangs, before 1.37 there is no PodGroup.");
        return;
    }
    let (gates, apis) = (vec!["GenericWorkload".to_owned()], vec![SCHEDULING.to_owned()]);
    Cluster::test(Setup { gates, apis, kubelets: true }, killed_after_any_write).await;
}

async fn killed_after_any_write(cluster: &mut Cluster) -> Result<(), Failure> {
    let admin = deployed(cluster).await?;
    put(&admin, &documents(CLASSES)).await;
    let account = service_account(cluster, &admin).await;
    let proxy = Proxy::before(cluster, &account).await;
    let cluster = &*cluster;
    let scene = Scene { cluster, admin, proxy, late: Cell::new(0) };

    let writes = scene.undisturbed().await?;
    assert!(writes > SAMPLE, "only {writes} writes");
    let stops = match std::env::var_os("PHALANX_CRASHES") {
        Some(all) if all == "all" => every(writes),
        _ => spread(writes),
    };
    let mut failed = Vec::new();
    for (at, stop) in stops.iter().enumerate() {
        failed.extend(scene.killed(&format!("w{at}"), *stop).await?);
    }
    let count = stops.len();
    assert_eq!(failed, Vec::<String>::new(), "of {count} kills in {writes} writes");
    let late = scene.late.get();
    println!("{count} kills in {writes} writes; after {late} one more came late");
    assert!(late > 0, "nothing ever came late");
    Ok(())
}

/// Each n at each moment.
fn every(writes: usize) -> Vec<Stop> {
    let of = |after| Moment::ALL.map(|moment| Stop { after, moment });
    (1..=writes).flat_map(of).collect()
}

/// A few n from the first to the last, the moments in turn.
fn spread(writes: usize) -> Vec<Stop> {
    let moments = Moment::ALL.into_iter().cycle();
    let after = |at: usize| 1 + at * (writes - 1) / (SAMPLE - 1);
    (0..SAMPLE).zip(moments).map(|(at, moment)| Stop { after: after(at), moment }).collect()
}

struct Scene<'c> {
    cluster: &'c Cluster,
    admin: Client,
    proxy: Proxy,
    /// How many writes have reached the server when who had sent them was gone.
    late: Cell<usize>,
}

impl Scene<'_> {
    /// One that nobody kills. Answers how many writes it makes.
    async fn undisturbed(&self) -> Result<usize, Failure> {
        self.set_up("whole").await?;
        self.proxy.count(None);
        let mut controller = self.controller().await?;
        let wrong = self.at_rest("whole").await?;
        assert_eq!(wrong, Vec::<String>::new(), "{}", controller.log());
        controller.assert_rights_suffice();
        assert_eq!(controller.stop().code(), Some(0), "{}", controller.log());
        Ok(self.proxy.answered().len())
    }

    /// One that is killed there, and another that takes up what it left. Answers what is wrong in the end.
    async fn killed(&self, world: &str, stop: Stop) -> Result<Option<String>, Failure> {
        self.set_up(world).await?;
        self.proxy.count(Some(stop));
        let killed = self.controller().await?;
        self.until_shut(stop).await?;
        drop(killed);
        let before = self.proxy.answered();

        let late = self.proxy.open();
        let controller = self.controller().await?;
        if let Some(late) = late {
            self.proxy.send(&late).await;
            self.late.update(|count| count + 1);
        }
        let wrong = self.at_rest(world).await?;
        controller.assert_rights_suffice();
        if wrong.is_empty() {
            return Ok(None);
        }
        let after = self.proxy.answered().split_off(before.len());
        let log = controller.log();
        Ok(Some(format!("{stop:?}: {wrong:#?}\nbefore: {before:#?}\nafter: {after:#?}\n{log}")))
    }

    /// The objects, with all claims made, before any controller looks.
    async fn set_up(&self, world: &str) -> Result<(), Failure> {
        let mut objects = documents(&WORLD.replace("WORLD", world));
        for (group, count) in [("first", 3), ("second", 3), ("shared", 2), ("", 2)] {
            objects.extend((0..count).map(|at| pod(world, group, at)));
        }
        put(&self.admin, &objects).await;
        until_claims_are_made(&self.admin).await
    }

    async fn controller(&self) -> Result<Running, Failure> {
        Running::start_by(self.cluster, &self.proxy.kubeconfig, &[]).await
    }

    /// Waits for the stop, and where one write more is to come for that.
    async fn until_shut(&self, stop: Stop) -> Result<(), Failure> {
        let mut reached = None;
        until("the proxy is shut", async || {
            let count = self.proxy.answered().len();
            assert!(count <= stop.after, "{count} writes went through");
            if count == stop.after && reached.is_none() {
                reached = Some(Instant::now());
            }
            let enough = reached.is_some_and(|since| since.elapsed() > NEXT);
            Ok((self.proxy.is_shut() || enough).then_some(()))
        })
        .await
    }

    /// Waits until nothing is wrong and nothing is written any more. What is still wrong in the end is
    /// answered.
    async fn at_rest(&self, world: &str) -> Result<Vec<String>, Failure> {
        let mut told = Vec::new();
        let rest = until("all is right and at rest", async || {
            let before = self.proxy.answered().len();
            told = wrong(&self.stand(world).await?, WHOLE);
            if !told.is_empty() {
                return Ok(None);
            }
            sleep(REST).await;
            told = wrong(&self.stand(world).await?, WHOLE);
            Ok((told.is_empty() && self.proxy.answered().len() == before).then_some(()))
        });
        match rest.await {
            Ok(()) => Ok(Vec::new()),
            Err(late @ Failure::Late { .. }) => {
                told.push(late.to_string());
                Ok(told)
            }
            Err(other) => Err(other),
        }
    }

    async fn stand(&self, world: &str) -> Result<Stand, Failure> {
        Ok(Stand {
            pods: self.all(world, "v1", "Pod").await?,
            claims: self.all(world, RESOURCE, "ResourceClaim").await?,
            groups: self.all(world, SCHEDULING, "PodGroup").await?,
            placements: self.all(world, "phalanx.dev/v1alpha1", "Placement").await?,
        })
    }

    async fn all(&self, world: &str, of: &str, kind: &str) -> Result<Vec<Value>, Failure> {
        let list = api(&self.admin, of, kind, world).list(&ListParams::default()).await?;
        Ok(list.items.iter().map(|o| serde_json::to_value(o).expect("an object")).collect())
    }
}

/// A pod of a group, or of none, with a claim: its own, or the one that `shared` has.
fn pod(world: &str, group: &str, at: usize) -> Value {
    let claim = match group {
        "shared" => json!({"name": "gpu", "resourceClaimName": "both"}),
        _ => json!({"name": "gpu", "resourceClaimTemplateName": "one"}),
    };
    let name = if group.is_empty() { format!("alone-{at}") } else { format!("{group}-{at}") };
    let container = json!({"name": "c", "image": "example.com/i",
        "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}});
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": world},
        "spec": {
            "schedulerName": "phalanx",
            "nodeSelector": {"world": world},
            "resourceClaims": [claim],
            "containers": [container],
        },
    });
    if group == "second" {
        pod["spec"]["priorityClassName"] = json!("last");
    }
    if !group.is_empty() {
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": group});
    }
    pod
}

#[test]
fn the_spread_goes_from_the_first_write_to_the_last_at_every_moment() {
    let stops = spread(41);
    assert_eq!(stops.len(), SAMPLE);
    assert_eq!(stops.first(), Some(&Stop { after: 1, moment: Moment::Answered }));
    assert_eq!(stops.last().map(|stop| stop.after), Some(41));
    assert!(stops.windows(2).all(|two| two[0].after < two[1].after));
    assert_eq!(every(41).len(), 123);
}
