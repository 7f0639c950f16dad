//! Each identity may do what roles give it, and nothing else: what a test allows, a cluster allows.

use kube::Client;
use kube::api::{ListParams, PostParams};
use phalanx_kubernetes::{Cluster, Identity, Kubernetes, Setup};
use serde_json::json;

use crate::board::{api, object};

#[tokio::test]
async fn an_identity_may_do_what_its_roles_give_it() {
    Cluster::test(Setup::default(), async |cluster| {
        let admin = cluster.client(Identity::Admin).await?;
        let version = admin.apiserver_version().await?;
        let version = format!("{}.{}", version.major, version.minor);
        assert_eq!(version, Kubernetes::of_this_run().as_str());

        let scheduler = cluster.client(Identity::KubeScheduler).await?;
        let phalanx = cluster.client(Identity::Phalanx).await?;
        let answers = [list(&admin).await, list(&scheduler).await, list(&phalanx).await];
        assert_eq!(answers, [200, 200, 403], "who may list pods");
        let answers = [create(&admin).await, create(&scheduler).await, create(&phalanx).await];
        assert_eq!(answers, [201, 403, 403], "who may create a pod");
        Ok(())
    })
    .await;
}

async fn list(client: &Client) -> u16 {
    code(200, api(client, "v1", "Pod", "default").list(&ListParams::default()).await)
}

async fn create(client: &Client) -> u16 {
    let containers = json!([{"name": "c", "image": "i"}]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": containers}});
    let pods = api(client, "v1", "Pod", "default");
    code(201, pods.create(&PostParams::default(), &object(&pod)).await)
}

/// The server's code, `done` where it did what it was asked.
fn code<T>(done: u16, answer: Result<T, kube::Error>) -> u16 {
    match answer {
        Ok(_) => done,
        Err(kube::Error::Api(status)) => status.code,
        Err(other) => panic!("{other}"),
    }
}
