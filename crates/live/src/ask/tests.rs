//! Each write's form on the wire, by hand from the API's conventions.

use phalanx_objects::scheduling::SchedulingKind;
use phalanx_objects::topology::PlacementPhase;

use super::*;
use crate::discover::Served;

fn board() -> Board {
    let served = |api_version: &str, plural: &str| Served {
        api_version: api_version.to_owned(),
        plural: plural.to_owned(),
    };
    Board::from([
        (Kind::Pod, served("v1", "pods")),
        (Kind::ResourceClaim, served("resource.k8s.io/v1", "resourceclaims")),
        (Kind::Placement, served("phalanx.dev/v1alpha1", "placements")),
    ])
}

fn asked(write: Write, version: Option<&str>) -> Ask {
    asked_where(write, version, false)
}

fn asked_where(write: Write, version: Option<&str>, stands: bool) -> Ask {
    let guard = Guard { uid: "u".to_owned(), version: version.map(str::to_owned), epoch: 1 };
    let now = "2026-11-30T10:00:00.123456789Z".parse().expect("a time");
    let board = board();
    let scene = Scene { board: &board, now, scheduler: "phalanx", instance: "phalanx-a", stands };
    ask(&Effect { id: EffectId(1), guard, write }, scene).expect("it is served")
}

fn claim(text: &str) -> Box<ResourceClaim> {
    Box::new(serde_json::from_str(text).expect("a claim"))
}

const ALLOCATED: &str = r#"{"metadata": {"name": "c", "namespace": "ml", "uid": "u",
    "finalizers": ["example.com/other", "resource.kubernetes.io/delete-protection"]},
    "status": {"allocation": {"devices": {"results":
        [{"request": "gpu", "driver": "d", "pool": "n1", "device": "gpu-0"}]}},
    "reservedFor": [{"resource": "pods", "name": "p", "uid": "pu"}]}}"#;

#[test]
fn a_finalizer_is_added_to_those_of_others() {
    let ask = asked(Write::Seat(raise::Write::Finalize(claim(ALLOCATED))), Some("7"));
    assert_eq!(ask.method, Method::PATCH);
    assert_eq!(ask.path, "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims/c");
    assert_eq!(ask.content, STRATEGIC);
    let metadata = json!({"finalizers": [FINALIZER], "uid": "u", "resourceVersion": "7"});
    assert_eq!(ask.body, json!({"metadata": metadata}));
}

#[test]
fn a_claim_is_given_devices_and_users_in_one_write() {
    let ask = asked(Write::Seat(raise::Write::ClaimStatus(claim(ALLOCATED))), Some("8"));
    assert_eq!(ask.path, "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims/c/status");
    assert_eq!(ask.body["metadata"], json!({"uid": "u", "resourceVersion": "8"}));
    let status = &ask.body["status"];
    assert_eq!(status["allocation"]["devices"]["results"][0]["device"], "gpu-0");
    assert_eq!(status["reservedFor"], json!([{"resource": "pods", "name": "p", "uid": "pu"}]));
    assert!(status.get("devices").is_none(), "what drivers say is left alone: {status}");
}

#[test]
fn an_allocation_that_stands_is_not_written_again_with_another_user() {
    let write = Write::Seat(raise::Write::ClaimStatus(claim(ALLOCATED)));
    let ask = asked_where(write, Some("8"), true);
    let users = json!([{"resource": "pods", "name": "p", "uid": "pu"}]);
    assert_eq!(ask.body["status"], json!({"reservedFor": users}));
}

#[test]
fn the_owner_of_a_placement_is_named_in_the_version_that_is_served() {
    let mut placement = Placement::default();
    placement.metadata.namespace = "ml".to_owned();
    let owner = |api_version: &str| OwnerReference {
        api_version: api_version.to_owned(),
        kind: "PodGroup".to_owned(),
        name: "g".to_owned(),
        uid: "gu".to_owned(),
        controller: Some(true),
    };
    for (known, written) in [
        ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3"),
        // Of another project, and not served here.
        ("scheduling.volcano.sh/v1beta1", "scheduling.volcano.sh/v1beta1"),
    ] {
        placement.metadata.owner_references = vec![owner(known)];
        let mut board = board();
        let kind = Kind::Scheduling(SchedulingKind::PodGroup);
        let (api_version, plural) =
            ("scheduling.k8s.io/v1alpha3".to_owned(), "podgroups".to_owned());
        board.insert(kind, Served { api_version, plural });
        let now = "2026-11-30T10:00:00Z".parse().expect("a time");
        let scene =
            Scene { board: &board, now, scheduler: "phalanx", instance: "a", stands: false };
        let write = Write::CreatePlacement(Box::new(placement.clone()));
        let effect = Effect { id: EffectId(1), guard: Guard::default(), write };
        let ask = ask(&effect, scene).expect("it is served");
        assert_eq!(ask.body["metadata"]["ownerReferences"][0]["apiVersion"], written);
    }
}

#[test]
fn a_claim_that_is_given_up_loses_all_three_in_one_write() {
    let bare = r#"{"metadata": {"name": "c", "namespace": "ml"}}"#;
    let ask = asked(Write::Seat(raise::Write::ClaimStatus(claim(bare))), Some("9"));
    let status = json!({"allocation": null, "reservedFor": null, "devices": null});
    assert_eq!(ask.body["status"], status);
}

#[test]
fn a_binding_names_the_pod_that_was_meant() {
    let bind = Bind {
        namespace: "ml".to_owned(),
        pod: "p".to_owned(),
        uid: "pu".to_owned(),
        planned: false,
        spec_of: of(Kind::Pod, "ml", "p"),
        role: 0,
        node: "n1".to_owned(),
    };
    let ask = asked(Write::Seat(raise::Write::Bind(bind)), None);
    assert_eq!(
        (ask.method, ask.path.as_str()),
        (Method::POST, "/api/v1/namespaces/ml/pods/p/binding")
    );
    assert_eq!(ask.body["metadata"]["uid"], "pu");
    assert_eq!(ask.body["target"], json!({"apiVersion": "v1", "kind": "Node", "name": "n1"}));
}

#[test]
fn a_condition_is_put_beside_the_others() {
    let pod = PodName { namespace: "ml".to_owned(), name: "p".to_owned() };
    let condition = PodConditionWrite {
        pod,
        uid: "u".to_owned(),
        reason: "Unschedulable",
        message: "No node has room.".to_owned(),
    };
    let ask = asked(Write::PodCondition(condition), None);
    assert_eq!(ask.path, "/api/v1/namespaces/ml/pods/p/status");
    assert_eq!(ask.content, STRATEGIC);
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "No node has room.", "lastTransitionTime": "2026-11-30T10:00:00Z"});
    assert_eq!(ask.body["status"]["conditions"], json!([condition]));
    assert_eq!(ask.body["metadata"], json!({"uid": "u"}));
}

#[test]
fn a_placement_is_replaced_in_what_is_ours() {
    let mut placement = Placement::default();
    placement.metadata.name = "podgroup-a".to_owned();
    placement.metadata.namespace = "ml".to_owned();
    placement.spec.phase = Some(PlacementPhase::Held);
    let ask = asked(Write::UpdatePlacement(Box::new(placement)), Some("3"));
    assert_eq!((ask.method, ask.content), (Method::PATCH, STEPS));
    let paths: Vec<&str> = ask
        .body
        .as_array()
        .expect("steps")
        .iter()
        .filter_map(|step| step["path"].as_str())
        .collect();
    assert_eq!(paths, ["/metadata/uid", "/metadata/resourceVersion", "/spec", "/status"]);
    assert_eq!(ask.body[2]["value"]["phase"], "Held");
}

#[test]
fn what_is_deleted_must_be_what_was_meant() {
    let pod = PodName { namespace: "ml".to_owned(), name: "p".to_owned() };
    let ask = asked(Write::DeletePod(pod), None);
    assert_eq!(ask.method, Method::DELETE);
    assert_eq!(ask.body["preconditions"], json!({"uid": "u"}));
}

#[test]
fn an_event_is_about_its_object() {
    let event = EventWrite {
        regarding: of(Kind::Pod, "ml", "p"),
        uid: "u".to_owned(),
        of_type: phalanx_cluster::control::EventType::Warning,
        reason: "FailedScheduling",
        action: "Scheduling",
        note: "No node has room.".to_owned(),
    };
    let ask = asked(Write::Event(event), None);
    assert_eq!(ask.path, "/apis/events.k8s.io/v1/namespaces/ml/events");
    assert_eq!(ask.body["eventTime"], "2026-11-30T10:00:00.123456Z");
    // generateName would have to end in a letter: the server holds it to the rule of names.
    let name = ask.body["metadata"]["name"].as_str().expect("a name");
    assert!(name.starts_with("p.") && name.len() > 10, "{name}");
    assert_eq!(ask.body["regarding"]["uid"], "u");
    assert_eq!(ask.body["note"], "No node has room.");
}
