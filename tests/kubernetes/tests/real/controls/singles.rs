//! Pods on their own: bound, told why they wait, or left to others; and what else the command answers
//! about the same cluster.

use kube::Client;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use phalanx_kubernetes::{Cluster, Failure, Identity, Part, Setup, until};
use serde_json::{Value, json};

use super::command::{Running, apply, deployed, phalanx};
use crate::board::{RESOURCE, api, documents, get, object, pod, put, text, until_pod};
use crate::writer;

const WORLD: &str = include_str!("../worlds/singles.yaml");

#[tokio::test]
async fn pods_are_bound_or_told_why_not() {
    let setup = Setup { kubelets: true, ..Setup::default() };
    Cluster::test(setup, bound_or_told).await;
}

async fn bound_or_told(cluster: &mut Cluster) -> Result<(), Failure> {
    let admin = deployed(cluster).await?;
    apply(cluster, "deploy/admission");
    let mut controller = Running::start(cluster, &admin).await?;
    put(&admin, &documents(WORLD)).await;

    let runs = |pod: &Value| text(pod, "/status/phase") == "Running";
    let plain = until_pod(&admin, "plain", "runs", runs).await?;
    assert_eq!(text(&plain, "/spec/nodeName"), "plain-1", "the other has 2 CPUs");
    let claims = until_pod(&admin, "claims", "runs", runs).await?;
    assert_eq!(text(&claims, "/spec/nodeName"), "gpu-1");
    holds_its_claim(&admin, &claims).await;
    let told = is_told(&admin).await?;
    is_left(&admin).await;
    others_are_kept_off(&admin).await?;

    answers_about_the_cluster(cluster, &told);
    let metrics = controller.page("/metrics").await.1;
    assert!(metrics.contains("phalanx_pods_bound_total 2\n"), "{metrics}");
    assert!(metrics.contains("answer=\"written\""), "{metrics}");
    assert!(!metrics.contains("answer=\"refused\""), "{metrics}");
    assert_eq!(controller.page("/healthz").await.0, 200);
    controller.assert_rights_suffice();
    assert_eq!(controller.stop().code(), Some(0), "{}", controller.log());
    Ok(())
}

/// The claim has what kube-scheduler would have written: finalizer, device and user.
async fn holds_its_claim(client: &Client, pod: &Value) {
    let name = text(pod, "/status/resourceClaimStatuses/0/resourceClaimName");
    let claim = get(client, (RESOURCE, "ResourceClaim"), "default", name).await;
    let finalizers = claim.pointer("/metadata/finalizers");
    assert_eq!(finalizers, Some(&json!(["resource.kubernetes.io/delete-protection"])));
    let result =
        |field: &str| text(&claim, &format!("/status/allocation/devices/results/0/{field}"));
    assert_eq!((result("driver"), result("pool")), ("gpu.nvidia.com", "gpu-1"));
    assert_eq!(text(&claim, "/status/reservedFor/0/uid"), text(pod, "/metadata/uid"));
}

/// The pod that fits nowhere says so in its condition, and in an event.
async fn is_told(client: &Client) -> Result<String, Failure> {
    let told = |pod: &Value| text(pod, "/status/conditions/0/type") == "PodScheduled";
    let pod = until_pod(client, "too-large", "is told why it waits", told).await?;
    let condition = |field: &str| text(&pod, &format!("/status/conditions/0/{field}")).to_owned();
    assert_eq!(
        (condition("status"), condition("reason")),
        ("False".into(), "Unschedulable".into())
    );
    let message = condition("message");
    assert!(message.contains("64"), "it names the amount: {message}");
    let events = api(client, "events.k8s.io/v1", "Event", "default");
    until("the event is there", async || {
        let events = events.list(&ListParams::default()).await?;
        let found = events.items.iter().any(|event| {
            text(&event.data, "/reason") == "FailedScheduling"
                && text(&event.data, "/regarding/name") == "too-large"
                && text(&event.data, "/note") == message
        });
        Ok(found.then_some(()))
    })
    .await?;
    Ok(message)
}

/// The pod of another scheduler is as it was.
async fn is_left(client: &Client) {
    let theirs = pod(client, "theirs").await;
    assert_eq!(text(&theirs, "/spec/nodeName"), "");
    assert_eq!(theirs.pointer("/status/conditions"), None);
}

/// Under the shipped policy nobody else gives out devices of the driver, be it the administrator.
async fn others_are_kept_off(client: &Client) -> Result<(), Failure> {
    let claims = api(client, RESOURCE, "ResourceClaim", "default");
    let result =
        json!({"request": "gpu", "driver": "gpu.nvidia.com", "pool": "gpu-1", "device": "gpu-1"});
    let patch = Patch::Merge(json!({"status": {"allocation": {"devices": {"results": [result]}}}}));
    // A policy holds a moment after it was made; until then nothing is to come of it.
    let params = PatchParams { dry_run: true, ..PatchParams::default() };
    until("the policy refuses it", async || {
        match claims.patch_status("loose", &params, &patch).await {
            Err(kube::Error::Api(status)) => {
                assert!(status.message.contains("schedulerName: phalanx"), "{}", status.message);
                Ok(Some(()))
            }
            Err(error) => Err(error.into()),
            Ok(_) => Ok(None),
        }
    })
    .await
}

/// `dump` and `why` of the same cluster, the second as well of the first's output, and what the pod was
/// told is what they say.
fn answers_about_the_cluster(cluster: &Cluster, told: &str) {
    let kubeconfig = cluster.kubeconfig(Identity::Admin);
    let run = |args: &[&str]| {
        let done = phalanx().args(args).arg("--kubeconfig").arg(&kubeconfig).output();
        let done = done.expect("it starts");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    };
    let (code, dump, said) = run(&["dump", "--output=json"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(dump.contains("\"name\":\"too-large\"") && !dump.contains("\"kind\":\"Secret\""));
    let (code, direct, said) = run(&["why", "pod/too-large", "--output=json"]);
    assert_eq!(code, Some(1), "it waits: {said}");
    let document: Value = serde_json::from_str(&direct).expect("JSON");
    assert_eq!(text(&document, "/pods/0/reasons/0/message"), told, "{direct}");

    let path = cluster.folder().join("dump.json");
    std::fs::write(&path, dump).expect("it can be written");
    let version = phalanx_kubernetes::Kubernetes::of_this_run().to_string();
    let mut why = phalanx();
    why.args(["why", "pod/too-large", "--output=json", "--kubernetes-version", &version, "-f"]);
    why.arg(&path);
    let dumped = why.output().expect("it starts");
    assert_eq!(
        String::from_utf8_lossy(&dumped.stdout),
        direct,
        "the dump says what the cluster says"
    );
}

#[tokio::test]
async fn restarts_of_the_api_server_and_of_etcd_are_survived() {
    Cluster::test(Setup::default(), restarts).await;
}

async fn restarts(cluster: &mut Cluster) -> Result<(), Failure> {
    let admin = deployed(cluster).await?;
    let mut controller = Running::start(cluster, &admin).await?;
    let (early, late): (Vec<Value>, Vec<Value>) =
        documents(WORLD).into_iter().partition(|d| text(d, "/metadata/name") != "plain");
    put(&admin, &early).await;
    let bound = |pod: &Value| !text(pod, "/spec/nodeName").is_empty();
    until_pod(&admin, "claims", "is bound", bound).await?;
    // While it starts the server does not know its roles yet, and forbids.
    controller.assert_rights_suffice();

    cluster.restart(Part::ApiServer).await?;
    let admin = cluster.client(Identity::Admin).await?;
    put(&admin, &late).await;
    until_pod(&admin, "plain", "is bound after the restart", bound).await?;

    cluster.restart(Part::Etcd).await?;
    let mut last = late;
    last[0]["metadata"]["name"] = json!("last");
    last[0]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("1");
    let (pods, last) = (api(&admin, "v1", "Pod", "default"), object(&last[0]));
    until("a pod can be created", async || {
        Ok(pods.create(&PostParams::default(), &last).await.ok().map(|_| ()))
    })
    .await?;
    until_pod(&admin, "last", "is bound after the store was restarted", bound).await?;
    assert_eq!(controller.stop().code(), Some(0), "{}", controller.log());
    Ok(())
}

#[tokio::test]
async fn in_the_shadow_differences_are_told_and_nothing_is_written() {
    Cluster::test(Setup::default(), shadows).await;
}

async fn shadows(cluster: &mut Cluster) -> Result<(), Failure> {
    let admin = deployed(cluster).await?;
    put(&admin, &documents(WORLD)).await;
    let mut controller = Running::start_with(cluster, &admin, &["--shadow"]).await?;
    let decided = ["Pod default/plain", "Pod default/too-large"];
    until("both pods were decided", async || {
        let log = controller.log();
        Ok(decided.iter().all(|pod| log.contains(pod)).then_some(()))
    })
    .await?;

    // It has 2 CPUs and the pod asks for 3: another may do so, we would not.
    let binding = json!({"apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": "plain", "namespace": "default"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "gpu-1"}});
    writer::write(&admin, &[binding]).await?;
    until("the difference is told", async || {
        let metrics = controller.page("/metrics").await.1;
        Ok(metrics.contains("phalanx_differences_total 1\n").then_some(()))
    })
    .await?;
    let log = controller.log();
    let told = log.lines().find(|line| line.contains("\"theirs\":\"gpu-1\"")).unwrap_or_default();
    assert!(told.contains("\"ours\":\"plain-1\"") && told.contains("Pod default/plain"), "{log}");
    let metrics = controller.page("/metrics").await.1;
    assert!(!metrics.contains("phalanx_writes_total{"), "{metrics}");
    assert_eq!(pod(&admin, "too-large").await.pointer("/status/conditions"), None);
    assert_eq!(controller.stop().code(), Some(0), "{}", controller.log());
    Ok(())
}
