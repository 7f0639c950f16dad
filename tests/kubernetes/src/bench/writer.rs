//! A client that decides nothing: pod by pod it makes the writes that `phalanx controller` makes, with the
//! same watches open and as many writes under way. What no scheduler can beat on this server.

use std::collections::BTreeMap;

use http::Method;
use kube::Client;
use phalanx_kubernetes::Failure;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::world::{self, DEVICES, DRIVER};
use super::{Load, wire};

/// What the controller watches, as far as these servers serve it.
const WATCHED: [&str; 17] = [
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/api/v1/pods",
    "/apis/phalanx.dev/v1alpha1/nodetopologies",
    "/apis/phalanx.dev/v1alpha1/placements",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/resourceclaims",
    "/apis/resource.k8s.io/v1/resourceclaimtemplates",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/volumeattachments",
];

/// A pod, its claim where it has one, and where it goes.
#[derive(Clone, Debug)]
struct Seat {
    pod: Value,
    claim: Option<Value>,
    node: String,
    devices: [String; 2],
}

/// Makes the writes of all pods that are there; answers when all are made.
pub(super) async fn run(
    client: Client,
    load: Load,
    nodes: u32,
    at_once: usize,
) -> Result<(), Failure> {
    let mut watches = JoinSet::new();
    let groups = (load == Load::Gangs).then(|| format!("/apis/{}/podgroups", world::SCHEDULING));
    for path in WATCHED.iter().map(|path| (*path).to_owned()).chain(groups) {
        let client = client.clone();
        watches.spawn(async move { wire::watch(client, &path, |_| {}).await });
    }
    let seats = seats(&client, nodes).await?;
    let size = usize::try_from(load.together()).unwrap_or(1);
    let groups = seats.chunks(size).map(<[Seat]>::to_vec).zip(0..);
    let bind = |client: Client, (seats, n): (Vec<Seat>, u32)| async move {
        match load {
            Load::Plain | Load::Claims => one(&client, &seats).await,
            Load::Gangs => gang(&client, n, &seats).await,
        }
    };
    all(&client, (at_once / size).max(1), groups, bind).await?;
    // Last, as the controller does it.
    all(&client, at_once, seats.iter().cloned(), |client: Client, seat: Seat| async move {
        tell(&client, &seat).await
    })
    .await
}

/// The same for each, so many at once.
async fn all<T, F>(
    client: &Client,
    at_once: usize,
    mut of: impl Iterator<Item = T>,
    write: impl Fn(Client, T) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() < at_once {
            let Some(one) = of.next() else { break };
            under_way.spawn(write(client.clone(), one));
        }
        match under_way.join_next().await {
            None => return Ok(()),
            Some(Ok(written)) => written?,
            // A task that panics has said so.
            Some(Err(_)) => {}
        }
    }
}

/// Node after node, two devices a pod.
async fn seats(client: &Client, nodes: u32) -> Result<Vec<Seat>, Failure> {
    let claims = world::claims(client).await?.into_iter();
    let claims: BTreeMap<String, Value> =
        claims.map(|claim| (text(&claim, "/metadata/name"), claim)).collect();
    let pods = world::pods(client).await?.into_iter().zip(0_u32..);
    let seat = |(pod, n): (Value, u32)| {
        let claim = text(&pod, "/status/resourceClaimStatuses/0/resourceClaimName");
        let first = n / nodes % (DEVICES / 2) * 2;
        Seat {
            claim: claims.get(&claim).cloned(),
            node: world::node_name(n % nodes),
            devices: [world::device_name(first), world::device_name(first + 1)],
            pod,
        }
    };
    Ok(pods.map(seat).collect())
}

async fn one(client: &Client, seats: &[Seat]) -> Result<(), Failure> {
    for seat in seats {
        give(client, seat).await?;
        bind(client, seat).await?;
    }
    Ok(())
}

async fn gang(client: &Client, n: u32, seats: &[Seat]) -> Result<(), Failure> {
    let path = "/apis/phalanx.dev/v1alpha1/namespaces/default/placements";
    let name = format!("podgroup-{}", world::gang_name(n));
    let seat = |seat: &Seat| {
        json!({"role": 0, "index": 0, "pod": text(&seat.pod, "/metadata/name"),
            "uid": text(&seat.pod, "/metadata/uid"), "node": seat.node,
            "grants": [{"claim": "gpu", "request": "gpu", "pool": 0, "devices": seat.devices}]})
    };
    let mut spec = json!({"group": {"kind": "podgroup", "name": world::gang_name(n)},
        "schedulerName": "writer", "phase": "Held", "seats": seats.iter().map(seat).collect::<Vec<_>>()});
    let placement = json!({"apiVersion": "phalanx.dev/v1alpha1", "kind": "Placement",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec});
    wire::send(client, Method::POST, path, wire::JSON, &placement).await?;
    all(client, seats.len(), seats.iter().cloned(), |client: Client, seat: Seat| async move {
        give(&client, &seat).await
    })
    .await?;
    spec["phase"] = json!("Committing");
    let steps = json!([{"op": "add", "path": "/spec", "value": spec}]);
    let path = format!("{path}/{name}");
    wire::send(client, Method::PATCH, &path, wire::STEPS, &steps).await?;
    all(client, seats.len(), seats.iter().cloned(), |client: Client, seat: Seat| async move {
        bind(&client, &seat).await
    })
    .await
}

/// The claim's finalizer, then devices and user.
async fn give(client: &Client, seat: &Seat) -> Result<(), Failure> {
    let Some(claim) = &seat.claim else { return Ok(()) };
    let name = text(claim, "/metadata/name");
    let path = format!("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{name}");
    let guard = |of: &Value| json!({"uid": text(of, "/metadata/uid"), "resourceVersion": text(of, "/metadata/resourceVersion")});
    let mut body = json!({"metadata": guard(claim)});
    body["metadata"]["finalizers"] = json!(["resource.kubernetes.io/delete-protection"]);
    let left = wire::send(client, Method::PATCH, &path, wire::STRATEGIC, &body).await?;
    let results = seat.devices.iter().map(
        |device| json!({"request": "gpu", "driver": DRIVER, "pool": seat.node, "device": device}),
    );
    let fields = json!([{"key": "metadata.name", "operator": "In", "values": [seat.node]}]);
    let body = json!({"metadata": guard(&left), "status": {
        "allocation": {
            "devices": {"results": results.collect::<Vec<_>>()},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
        },
        "reservedFor": [{"resource": "pods", "name": text(&seat.pod, "/metadata/name"),
            "uid": text(&seat.pod, "/metadata/uid")}],
    }});
    wire::send(client, Method::PATCH, &format!("{path}/status"), wire::MERGE, &body).await?;
    Ok(())
}

/// The binding.
async fn bind(client: &Client, seat: &Seat) -> Result<(), Failure> {
    let (name, uid) = (text(&seat.pod, "/metadata/name"), text(&seat.pod, "/metadata/uid"));
    let path = format!("/api/v1/namespaces/default/pods/{name}/binding");
    let body = json!({"apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name, "namespace": "default", "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": seat.node}});
    wire::send(client, Method::POST, &path, wire::JSON, &body).await?;
    Ok(())
}

/// The event that tells of it.
async fn tell(client: &Client, seat: &Seat) -> Result<(), Failure> {
    let (name, uid) = (text(&seat.pod, "/metadata/name"), text(&seat.pod, "/metadata/uid"));
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": format!("{name}.1"), "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "writer",
        "reportingInstance": "writer-1", "action": "Binding", "reason": "Scheduled",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": name, "uid": uid},
        "note": format!("{name} was bound to {}.", seat.node), "type": "Normal"});
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    wire::send(client, Method::POST, path, wire::JSON, &event).await?;
    Ok(())
}

fn text(of: &Value, at: &str) -> String {
    of.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}
