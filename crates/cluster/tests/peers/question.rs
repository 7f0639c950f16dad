//! A recorded world as objects, and a pod that asks for its claims. The benchmark beside upstream's
//! allocator puts the same questions, through this very file.

use phalanx_cluster::{Compat, Gate, Version};
use phalanx_objects::Object;
use phalanx_objects::core::{Node, Pod};
use phalanx_objects::resource::{DeviceClass, ResourceClaim, ResourceSlice};
use serde_json::{Value, json};

/// Whether claims may be had on a node: objects as Kubernetes stores them.
pub(crate) struct Question {
    pub(crate) name: String,
    /// The gates that are on; whatever else there is is off, also what 1.37 has on for good.
    pub(crate) features: Vec<String>,
    pub(crate) node: Value,
    pub(crate) slices: Vec<Value>,
    pub(crate) classes: Vec<Value>,
    /// The claims asked for, in order.
    pub(crate) claims: Vec<Value>,
    /// Claims that hold what is in use.
    pub(crate) held: Vec<Value>,
}

impl Question {
    /// The question of a recorded world.
    pub(crate) fn of(recorded: &Value) -> Self {
        let mut claims = list(recorded, "/claims");
        for (at, claim) in claims.iter_mut().enumerate() {
            claim["metadata"] = json!({"name": claim_name(at), "namespace": "default"});
            claim["status"] = json!({});
        }
        let features = list(recorded, "/features");
        Self {
            name: recorded["name"].as_str().unwrap_or_default().to_owned(),
            features: features.iter().filter_map(|gate| Some(gate.as_str()?.to_owned())).collect(),
            node: recorded["node"].clone(),
            slices: slices(list(recorded, "/slices")),
            classes: list(recorded, "/classes"),
            claims,
            held: held(&recorded["allocatedState"]),
        }
    }

    /// What the cluster is that is asked.
    pub(crate) fn compat(&self) -> Compat {
        let named = |gate: &Gate| self.features.iter().any(|name| name == gate.as_str());
        let on = Gate::ALL.iter().copied().filter(named);
        Compat::exactly(Version::V1_37, on.chain([Gate::DynamicResourceAllocation]))
    }

    /// The objects, with the pod `asks` that uses the claims. Past the reader's validation, for some
    /// recorded worlds are none that an API server would store.
    pub(crate) fn objects(&self) -> Result<Vec<Object>, String> {
        let mut node = self.node.clone();
        node["status"]["allocatable"] = json!({"cpu": "64", "memory": "512Gi", "pods": "110"});
        let mut objects = vec![object::<Node>(&node)?];
        for slice in &self.slices {
            objects.push(object::<ResourceSlice>(slice)?);
        }
        for class in &self.classes {
            objects.push(object::<DeviceClass>(class)?);
        }
        for claim in self.claims.iter().chain(&self.held) {
            objects.push(object::<ResourceClaim>(claim)?);
        }
        let uses: Vec<Value> = (0..)
            .zip(&self.claims)
            .map(|(at, claim): (usize, _)| {
                json!({"name": format!("c{at}"), "resourceClaimName": claim["metadata"]["name"]})
            })
            .collect();
        objects.push(object::<Pod>(&json!({
            "metadata": {"name": "asks", "namespace": "default"},
            "spec": {"containers": [{"name": "c"}], "resourceClaims": uses},
        }))?);
        Ok(objects)
    }
}

/// The name that a recorded claim is given by its place.
pub(crate) fn claim_name(at: usize) -> String {
    format!("claim-{at}")
}

fn object<T: serde::de::DeserializeOwned>(value: &Value) -> Result<Object, String>
where
    Object: From<T>,
{
    let object: T = serde_json::from_value(value.clone()).map_err(|e| format!("{value}: {e}."))?;
    Ok(Object::from(object))
}

fn list(of: &Value, pointer: &str) -> Vec<Value> {
    of.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The slices in their order. Names are keys in a cluster, and in a few worlds they are not: here
/// each has its own, and they sort as the recorded ones do, equal ones by their place.
fn slices(recorded: Vec<Value>) -> Vec<Value> {
    let mut order: Vec<usize> = (0..recorded.len()).collect();
    order.sort_by_key(|at| recorded[*at]["metadata"]["name"].as_str().unwrap_or("").to_owned());
    let mut named = recorded;
    for (rank, at) in order.into_iter().enumerate() {
        named[at]["metadata"]["name"] = json!(format!("slice-{rank:04}"));
    }
    named
}

/// Claims that hold the devices and shares in use. The capacity that the shares of a device take
/// together is on the first of them.
fn held(state: &Value) -> Vec<Value> {
    let key = |d: &Value| [&d["driver"], &d["pool"], &d["device"]].map(Clone::clone);
    let result = |d: &Value| json!({"request": "r", "driver": d["driver"], "pool": d["pool"], "device": d["device"]});
    let mut all: Vec<Value> = list(state, "/allocatedDevices").iter().map(result).collect();
    let taken = list(state, "/aggregatedCapacity");
    let mut first = Vec::new();
    for share in list(state, "/allocatedSharedDeviceIDs") {
        let mut one = result(&share);
        one["shareID"] = share["shareID"].clone();
        if !first.contains(&key(&share)) {
            first.push(key(&share));
            if let Some(taken) = taken.iter().find(|taken| key(taken) == key(&share)) {
                one["consumedCapacity"] = taken["consumedCapacity"].clone();
            }
        }
        all.push(one);
    }
    for taken in taken.iter().filter(|taken| !first.contains(&key(taken))) {
        let mut share = result(taken);
        share["shareID"] = json!("aaaaaaaa-aaaa-4aaa-aaaa-aaaaaaaaaaab");
        share["consumedCapacity"] = taken["consumedCapacity"].clone();
        all.push(share);
    }
    let claim = |(index, result): (usize, Value)| {
        json!({
            "metadata": {"name": format!("held-{index}"), "namespace": "others"},
            "spec": {"devices": {}},
            "status": {
                "allocation": {"devices": {"results": [result]}},
                "reservedFor": [{"resource": "pods", "name": "other", "uid": "other"}],
            },
        })
    };
    all.into_iter().enumerate().map(claim).collect()
}
