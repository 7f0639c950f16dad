//! The API server takes what `phalanx plan --output manifests` writes, from kube-scheduler's identity
//! and in its order, and keeps it as it was written.

use std::io::Write;

use kube::Client;
use phalanx_kubernetes::{Cluster, Failure, Identity, Kubernetes, Setup};
use serde_json::{Value, json};

use crate::board::{
    RESOURCE, SCHEDULING, api_of, documents, dump, get, pod, put, text, until_claims_are_made,
};
use crate::planned::Planned;
use crate::writer;

const FIRST: &str = include_str!("worlds/accepts.yaml");
const SECOND: &str = include_str!("worlds/accepts-second.yaml");
const GANG: &str = include_str!("worlds/gang.yaml");

#[tokio::test]
async fn each_kind_of_claim_is_taken_as_it_is_written() {
    let setup = Setup { gates: gates(), ..Setup::default() };
    Cluster::test(setup, each_kind_of_claim).await;
}

async fn each_kind_of_claim(cluster: &mut Cluster) -> Result<(), Failure> {
    let board = Board::of(cluster, gates()).await?;

    put(&board.admin, &documents(FIRST)).await;
    let first = board.plan_and_write().await?;
    let placed = [
        "alternative",
        "counted",
        "first",
        "memory-a",
        "memory-b",
        "mover",
        "own",
        "plain",
        "watcher",
    ];
    assert_eq!(bound_pods(&first), placed);
    board.kinds_are_there().await;

    // `first` holds the claim that both share: `second` joins it.
    put(&board.admin, &documents(SECOND)).await;
    let second = board.plan_and_write().await?;
    assert_eq!(bound_pods(&second), ["second"]);
    assert_eq!(users(&board.claim("default", "shared").await).len(), 2);
    let node = |pod: &Value| text(pod, "/spec/nodeName").to_owned();
    assert_eq!(node(&pod(&board.admin, "second").await), node(&pod(&board.admin, "first").await));

    Ok(())
}

#[tokio::test]
async fn the_claim_of_a_gang_is_taken_once_for_all_of_it() {
    if Kubernetes::of_this_run() < Kubernetes::V1_37 {
        // Past the test runner, which keeps to itself what a test that passes prints.
        let _ = writeln!(std::io::stderr(), "left out: gangs, before 1.37 there is no PodGroup.");
        return;
    }
    let apis = vec![SCHEDULING.to_owned()];
    let setup = Setup { gates: gang_gates(), apis, ..Setup::default() };
    Cluster::test(setup, the_claim_of_a_gang).await;
}

fn gang_gates() -> Vec<String> {
    ["GenericWorkload", "DRAWorkloadResourceClaims"].map(str::to_owned).to_vec()
}

async fn the_claim_of_a_gang(cluster: &mut Cluster) -> Result<(), Failure> {
    let board = Board::of(cluster, gang_gates()).await?;

    put(&board.admin, &documents(GANG)).await;
    let written = board.plan_and_write().await?;
    assert_eq!(bound_pods(&written), ["gang-0", "gang-1"]);
    let gang = pod(&board.admin, "gang-0").await;
    let made = text(&gang, "/status/resourceClaimStatuses/0/resourceClaimName");
    let users = users(&board.claim("default", made).await);
    assert_eq!(users.len(), 1, "{users:?}");
    assert_eq!((&users[0]["resource"], &users[0]["name"]), (&json!("podgroups"), &json!("gang")));

    Ok(())
}

/// Gates of what the newest version has switched on by itself.
fn gates() -> Vec<String> {
    let gates: &[&str] = match Kubernetes::of_this_run() {
        Kubernetes::V1_34 => &["DRAConsumableCapacity", "DRAExtendedResource"],
        Kubernetes::V1_37 => &[],
    };
    gates.iter().map(|gate| (*gate).to_owned()).collect()
}

/// The pods that the documents bind, in order of name.
fn bound_pods(documents: &[Value]) -> Vec<&str> {
    let bindings = documents.iter().filter(|document| text(document, "/kind") == "Binding");
    let mut pods: Vec<&str> = bindings.map(|binding| text(binding, "/metadata/name")).collect();
    pods.sort_unstable();
    pods
}

/// Who uses a claim.
fn users(claim: &Value) -> Vec<Value> {
    let users = claim.pointer("/status/reservedFor").and_then(Value::as_array);
    users.cloned().unwrap_or_default()
}

struct Board {
    admin: Client,
    scheduler: Client,
    gates: Vec<String>,
}

impl Board {
    async fn of(cluster: &Cluster, gates: Vec<String>) -> Result<Self, Failure> {
        let admin = cluster.client(Identity::Admin).await?;
        let scheduler = cluster.client(Identity::KubeScheduler).await?;
        Ok(Self { admin, scheduler, gates })
    }

    /// Plans what stands there, writes it as kube-scheduler, and holds what then stands there to it.
    async fn plan_and_write(&self) -> Result<Vec<Value>, Failure> {
        until_claims_are_made(&self.admin).await?;
        let planned = Planned::of(&dump(&self.admin).await?, &self.gates);
        assert_eq!(planned.findings, Vec::<String>::new(), "what a server holds is right");
        let documents = planned.manifests();
        writer::write(&self.scheduler, &documents).await?;
        for (at, document) in documents.iter().enumerate() {
            let later = documents.get(at + 1..).unwrap_or_default();
            // Of a claim that is given up first and then allocated anew, the last counts.
            if !later.iter().any(|other| same_object(other, document)) {
                self.is_as_written(document).await;
            }
        }
        let again = Planned::of(&dump(&self.admin).await?, &self.gates);
        assert_eq!(again.manifests(), Vec::<Value>::new(), "nothing is left to be written");
        Ok(documents)
    }

    async fn is_as_written(&self, document: &Value) {
        let (name, namespace) =
            (text(document, "/metadata/name"), text(document, "/metadata/namespace"));
        if text(document, "/kind") == "Binding" {
            let pod = get(&self.admin, ("v1", "Pod"), namespace, name).await;
            assert_eq!(text(&pod, "/spec/nodeName"), text(document, "/target/name"), "{pod}");
            return;
        }
        let found = api_of(&self.admin, document).get(name).await;
        let found = serde_json::to_value(found.unwrap_or_else(|e| panic!("{name}: {e}")));
        let found = found.expect("an object");
        for (field, written) in document["status"].as_object().into_iter().flatten() {
            assert_eq!(&found["status"][field], written, "{field} of {name}");
        }
        let finalizers = document.pointer("/metadata/finalizers");
        assert_eq!(found.pointer("/metadata/finalizers"), finalizers, "{name}");
    }

    async fn claim(&self, namespace: &str, name: &str) -> Value {
        get(&self.admin, (RESOURCE, "ResourceClaim"), namespace, name).await
    }

    /// By hand: what makes each claim one of its kind.
    async fn kinds_are_there(&self) {
        let result = |claim: &Value| claim.pointer("/status/allocation/devices/results/0").cloned();

        let own = pod(&self.admin, "own").await;
        let made = text(&own, "/status/resourceClaimStatuses/0/resourceClaimName").to_owned();
        let own = result(&self.claim("default", &made).await).expect("a device");
        assert_eq!(text(&own, "/driver"), "gpu.example.com");

        let alternative = result(&self.claim("default", "alternative").await).expect("a device");
        assert_eq!(alternative["request"], "gpu/any", "none is as big as the first choice");

        let watcher = result(&self.claim("ops", "watcher").await).expect("a device");
        assert_eq!(watcher["adminAccess"], true);

        let memory =
            [self.claim("default", "memory-a").await, self.claim("default", "memory-b").await];
        let memory = memory.each_ref().map(|claim| result(claim).expect("a share"));
        assert_eq!(
            memory[0]["consumedCapacity"],
            json!({"memory": "16Gi"}),
            "rounded up by its policy"
        );
        assert_eq!(memory[0]["device"], memory[1]["device"], "the two share one device");
        assert_ne!(memory[0]["shareID"], memory[1]["shareID"]);

        let mover = self.claim("default", "idle").await;
        let selected = mover
            .pointer("/status/allocation/nodeSelector/nodeSelectorTerms/0/matchFields/0/values/0");
        assert_ne!(selected, Some(&json!("full")), "the claim has moved");

        let counted = pod(&self.admin, "counted").await;
        let status = &counted["status"]["extendedResourceClaimStatus"];
        let made = self.claim("default", text(status, "/resourceClaimName")).await;
        let results = made.pointer("/status/allocation/devices/results").and_then(Value::as_array);
        assert_eq!(results.map(Vec::len), Some(2), "{made}");
        assert_eq!(text(status, "/requestMappings/0/resourceName"), "example.com/card");
    }
}

fn same_object(a: &Value, b: &Value) -> bool {
    ["/kind", "/metadata/namespace", "/metadata/name"].iter().all(|at| text(a, at) == text(b, at))
}
