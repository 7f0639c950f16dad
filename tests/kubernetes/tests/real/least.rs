//! The shipped role is no wider than what is used: each verb on each resource that it grants is asked of
//! the API server in this test, or stands here with its reason. That it is no narrower every test shows,
//! for nothing may be forbidden in any.

use std::collections::BTreeSet;

use kube::Client;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use phalanx_kubernetes::{CONTROLLER, Cluster, Failure, Kubernetes, Setup, until};
use serde_json::{Value, json};

use crate::board::{RESOURCE, SCHEDULING, api, documents, object, pod, put, text, until_pod};
use crate::controls::{Running, deployed};

const ROLE: &str = include_str!("../../../../deploy/role.yaml");
const WORLD: &str = include_str!("worlds/least.yaml");

/// Verb, group and resource.
type Right = (String, String, String);

/// What is granted and not asked for here, and why it is granted.
const UNSEEN: [(&str, &str, &str, &str); 3] = [
    (
        "patch",
        "resource.k8s.io",
        "resourceclaims/binding",
        "The API server asks whether it is allowed when an allocation is written: it is no request of its own.",
    ),
    ("list", "scheduling.sigs.k8s.io", "podgroups", OLDER),
    ("watch", "scheduling.sigs.k8s.io", "podgroups", OLDER),
];

const OLDER: &str =
    "The older group of the coscheduling plugin, followed where the newer is not served.";

/// Kinds of others that the role lets the controller see: group, version, plural, kind.
const OTHERS: [(&str, &str, &str, &str); 9] = [
    ("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"),
    ("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"),
    ("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup"),
    ("kueue.x-k8s.io", "v1beta2", "workloads", "Workload"),
    ("kueue.x-k8s.io", "v1beta2", "topologies", "Topology"),
    ("kai.scheduler", "v1alpha1", "topologies", "Topology"),
    ("topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode"),
    ("scheduler.grove.io", "v1alpha1", "podgangs", "PodGang"),
    ("resource.nvidia.com", "v1beta1", "computedomains", "ComputeDomain"),
];

#[tokio::test]
async fn each_right_of_the_shipped_role_is_used() {
    // Those before serve fewer kinds.
    if Kubernetes::of_this_run() >= Kubernetes::V1_37 {
        let gates = [
            "GenericWorkload",
            "TopologyAwareWorkloadScheduling",
            "CompositePodGroup",
            "DRADeviceTaintRules",
            // So that lists are asked for, as of servers that can't begin a watch with one.
            "WatchList=false",
        ];
        let apis = [SCHEDULING, "scheduling.k8s.io/v1alpha3", "resource.k8s.io/v1beta2"];
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let setup = Setup { gates: all(&gates), apis: all(&apis), kubelets: false };
        Cluster::test(setup, each_right_is_used).await;
    }
}

async fn each_right_is_used(cluster: &mut Cluster) -> Result<(), Failure> {
    let admin = deployed(cluster).await?;
    serve_others(&admin).await?;
    // Nothing runs here: a group that was bound is released after a second.
    let mut controller = Running::start_with(cluster, &admin, &["--start-within=1"]).await?;
    let world = documents(WORLD);
    put(&admin, &world).await;
    volume_is_there(&admin).await?;

    let bound = |pod: &Value| !text(pod, "/spec/nodeName").is_empty();
    for name in ["claims", "extended"] {
        until_pod(&admin, name, "is bound", bound).await?;
    }
    let told = |pod: &Value| text(pod, "/status/conditions/0/reason") == "Unschedulable";
    let waits = until_pod(&admin, "waits", "is told why", told).await?;
    leave_over(&admin, &waits).await?;
    members_go(&admin).await?;

    let granted = granted();
    let unused = async || -> Result<BTreeSet<Right>, Failure> {
        let asked = cluster.asked()?.into_iter();
        let ours = asked.filter(|asked| asked.user == CONTROLLER && asked.code < 300);
        let used: BTreeSet<Right> =
            ours.map(|asked| (asked.verb, asked.group, asked.resource)).collect();
        Ok(granted.difference(&used).cloned().collect())
    };
    let unseen = |(verb, group, resource, _): (&str, &str, &str, &str)| {
        (verb.to_owned(), group.to_owned(), resource.to_owned())
    };
    let unseen: BTreeSet<Right> = UNSEEN.map(unseen).into();
    let left = until("each right was used", async || {
        let unused = unused().await?;
        Ok(unused.is_subset(&unseen).then_some(unused))
    });
    let left = match left.await {
        Ok(left) => left,
        Err(_) => unused().await?,
    };
    assert_eq!(left, unseen, "granted, and not used (or no more in need of a reason)");
    assert_eq!(controller.stop().code(), Some(0), "{}", controller.log());
    Ok(())
}

/// What the role grants.
fn granted() -> BTreeSet<Right> {
    let role = documents(ROLE).remove(0);
    let mut granted = BTreeSet::new();
    let all = |rule: &Value, field: &str| -> Vec<String> {
        let all = rule[field].as_array().expect("a list").iter();
        all.map(|one| one.as_str().expect("a text").to_owned()).collect()
    };
    for rule in role["rules"].as_array().expect("rules") {
        for verb in all(rule, "verbs") {
            for group in all(rule, "apiGroups") {
                for resource in all(rule, "resources") {
                    assert!(![&verb, &resource].contains(&&"*".to_owned()), "{rule}");
                    granted.insert((verb.clone(), group.clone(), resource));
                }
            }
        }
    }
    granted
}

/// Lets the server serve the kinds of others, with whatever in them.
async fn serve_others(admin: &Client) -> Result<(), Failure> {
    let definitions = api(admin, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "");
    for (group, version, plural, kind) in OTHERS {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}"), "annotations": {
                "api-approved.kubernetes.io": "unapproved, a stand-in for tests"}},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural},
                "versions": [{"name": version, "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema}}],
            },
        });
        definitions.create(&PostParams::default(), &object(&definition)).await?;
    }
    for (group, version, _, kind) in OTHERS {
        let served = api(admin, &format!("{group}/{version}"), kind, "");
        until("the kinds of others are served", async || {
            Ok(served.list(&ListParams::default()).await.ok().map(|_| ()))
        })
        .await?;
    }
    Ok(())
}

/// What the controller of volumes says of a new one; it does not run here.
async fn volume_is_there(admin: &Client) -> Result<(), Failure> {
    let volumes = api(admin, "v1", "PersistentVolume", "");
    let status = Patch::Merge(json!({"status": {"phase": "Available"}}));
    volumes.patch_status("local-1", &PatchParams::default(), &status).await?;
    Ok(())
}

/// A claim that a failed attempt has left for a pod that waits: it is deleted.
async fn leave_over(admin: &Client, pod: &Value) -> Result<(), Failure> {
    let request =
        json!({"name": "container-0-request-0", "exactly": {"deviceClassName": "gpu", "count": 8}});
    let claim = json!({
        "apiVersion": RESOURCE,
        "kind": "ResourceClaim",
        "metadata": {
            "name": "left-over",
            "namespace": "default",
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": text(pod, "/metadata/name"),
                "uid": text(pod, "/metadata/uid"), "controller": true}],
        },
        "spec": {"devices": {"requests": [request]}},
    });
    put(admin, &[claim]).await;
    let claims = api(admin, RESOURCE, "ResourceClaim", "default");
    until("the claim that was left over is gone", async || {
        Ok(claims.get_opt("left-over").await?.is_none().then_some(()))
    })
    .await
}

/// The group is bound, does not come to run, and is released: its pods go, and when they are gone so does
/// its Placement.
async fn members_go(admin: &Client) -> Result<(), Failure> {
    let pods = api(admin, "v1", "Pod", "default");
    for name in ["gang-0", "gang-1"] {
        let goes = |pod: &Value| pod.pointer("/metadata/deletionTimestamp").is_some();
        until_pod(admin, name, "is released", goes).await?;
        assert_eq!(text(&pod(admin, name).await, "/spec/nodeName"), "n1");
        // No kubelet is here to end it.
        pods.delete(name, &DeleteParams::default().grace_period(0)).await?;
    }
    let placements = api(admin, "phalanx.dev/v1alpha1", "Placement", "default");
    until("the Placement is gone", async || {
        Ok(placements.list(&ListParams::default()).await?.items.is_empty().then_some(()))
    })
    .await
}
