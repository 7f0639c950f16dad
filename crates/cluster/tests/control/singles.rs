//! Pods alone: they are bound where a plan of the same objects says, in kube-scheduler's order of writes.

use std::collections::BTreeMap;

use phalanx_cluster::plan::{PlanOptions, plan};
use phalanx_cluster::world::World;
use phalanx_cluster::{Compat, Lowering, ObjectEvent, Source, Version};
use phalanx_engine::{Act, Timestamp};
use phalanx_objects::Kind;

use super::board::{Board, named};
use super::chance::Chance;
use super::client::{Client, Faults, options, run};
use super::worlds::{fleet, of_template, pod, template};

const START: Timestamp = Timestamp(1_000_000);
const END: Timestamp = Timestamp(2_000_000);

/// What a plan of the board says: pods by name with their nodes.
fn planned(board: &Board) -> BTreeMap<String, String> {
    let lowering = Lowering::new(Compat::new(Version::default())).for_scheduler("phalanx");
    let mut world = World::new(lowering);
    for (ordinal, object) in board.objects.values().enumerate() {
        let source = Source { file: "board".into(), line: 0, ordinal: ordinal as u64 };
        world.absorb(ObjectEvent::Applied(Box::new(object.clone()), source));
    }
    world.settle();
    let options = PlanOptions { now: Some(START), ..PlanOptions::default() };
    let acts = plan(&mut world, &options).decision.acts;
    let seats = acts
        .into_iter()
        .filter_map(|act| if let Act::Place(_, seats, _) = act { Some(seats) } else { None });
    let seats = seats.flatten();
    seats
        .map(|seat| (seat.pod.expect("a pod").0.name.to_string(), seat.node.0.to_string()))
        .collect()
}

fn bound(board: &Board) -> BTreeMap<String, String> {
    let all = board.pods().filter(|pod| !pod.spec.node_name.is_empty());
    all.map(|pod| (pod.metadata.name.clone(), pod.spec.node_name.clone())).collect()
}

const SHARED: &str = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n\
    metadata: {name: shared, namespace: default}\n\
    spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}\n";

const EXTENDED: &str = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\n\
    metadata: {name: served}\nspec: {extendedResourceName: example.com/gpu}\n\
    ---\napiVersion: v1\nkind: Pod\nmetadata: {name: extended, namespace: default}\n\
    spec:\n  schedulerName: phalanx\n  priority: 0\n\
    \x20 containers: [{name: c, resources: {requests: {cpu: '1', example.com/gpu: '1'}, limits: {example.com/gpu: '1'}}}]\n";

fn all_kinds() -> Board {
    let mut yaml = fleet(3, 4) + &template("two", 2) + SHARED + EXTENDED;
    yaml += &pod("plain", "phalanx", "");
    yaml += &pod("other", "default-scheduler", "");
    for at in 0..3 {
        yaml += &pod(&format!("gpus-{at}"), "phalanx", &of_template("two"));
    }
    for at in 0..2 {
        let claim = "  resourceClaims: [{name: gpus, resourceClaimName: shared}]\n";
        yaml += &pod(&format!("shares-{at}"), "phalanx", claim);
    }
    Board::new(&yaml)
}

#[test]
fn pods_are_bound_where_the_plan_says() {
    for seed in 0..60 {
        let mut board = all_kinds();
        let wanted = planned(&board);
        assert_eq!(wanted.len(), 7, "{wanted:?}");
        let mut chance = Chance::new(seed);
        let mut clients = [Client::new(options("phalanx"), &board, START)];
        run(&mut board, &mut clients, (&mut chance, &Faults::NONE), (START, END), |_| false);
        assert_eq!(bound(&board), wanted, "seed {seed}: {:#?}", board.written);
        assert_eq!(board.devices_twice(), Vec::<String>::new(), "seed {seed}");
        let starts = |pod: &&phalanx_objects::core::Pod| {
            pod.metadata.name == "other" || pod.status.phase.as_str() == "Running"
        };
        assert!(board.pods().all(|pod| starts(&pod)), "seed {seed}");
        assert_eq!(clients[0].controller.flights_len(), 0, "seed {seed}");
    }
}

#[test]
fn lost_answers_and_repeated_watches_lead_to_the_same_end() {
    for seed in 0..60 {
        let mut board = all_kinds();
        let wanted = planned(&board).len();
        let mut chance = Chance::new(seed);
        let faults = Faults { lost: 4, repeats: true, ..Faults::NONE };
        let mut clients = [Client::new(options("phalanx"), &board, START)];
        run(&mut board, &mut clients, (&mut chance, &faults), (START, END), |_| false);
        assert_eq!(bound(&board).len(), wanted, "seed {seed}: {:#?}", board.written);
        assert_eq!(board.devices_twice(), Vec::<String>::new(), "seed {seed}");
        assert_eq!(clients[0].controller.flights_len(), 0, "seed {seed}");
    }
}

#[test]
fn a_pod_with_a_claim_is_written_in_kube_schedulers_order() {
    let yaml = fleet(1, 2) + &template("two", 2) + &pod("p", "phalanx", &of_template("two"));
    let mut board = Board::new(&yaml);
    let mut clients = [Client::new(options("phalanx"), &board, START)];
    run(&mut board, &mut clients, (&mut Chance::new(1), &Faults::NONE), (START, END), |_| false);
    let claim = "ResourceClaim default/p-gpus-x";
    let wanted = [
        format!("finalize {claim}"),
        format!("allocate {claim}"),
        "bind Pod default/p".to_owned(),
        "event".to_owned(),
    ];
    assert_eq!(board.written, wanted);
    assert_eq!(board.events[0].reason, "Scheduled");
    assert_eq!(board.events[0].note, "Successfully assigned default/p to n0");
}

#[test]
fn extended_resources_that_devices_serve_get_their_claim_first() {
    let mut board = Board::new(&(fleet(1, 2) + EXTENDED));
    let mut clients = [Client::new(options("phalanx"), &board, START)];
    run(&mut board, &mut clients, (&mut Chance::new(1), &Faults::NONE), (START, END), |_| false);
    let words: Vec<&str> =
        board.written.iter().map(|write| write.split(' ').next().unwrap_or_default()).collect();
    assert_eq!(
        words,
        ["create", "finalize", "allocate", "say", "bind", "event"],
        "{:?}",
        board.written
    );
    let pod = board.pod("extended").expect("the pod");
    let status = pod.status.extended_resource_claim_status.as_ref().expect("a claim");
    let claim = named(Kind::ResourceClaim, "default", &status.resource_claim_name);
    assert!(board.objects.contains_key(&claim), "{claim}");
}

/// Seats that a controller holds are nobody else's in a plan of a dump; once its Placement says that they
/// are given back, they are.
#[test]
fn a_plan_of_a_dump_keeps_the_seats_of_placements_that_are_held() {
    for (phase, free) in [("Held", false), ("Committing", false), ("Releasing", true)] {
        let mut board = Board::new(
            &(fleet(2, 1) + &template("one", 1) + &super::worlds::gang("g", 2, "phalanx", "one")),
        );
        let seat = |at: usize| {
            let uid = &board.pod(&format!("g-{at}")).expect("a member").metadata.uid;
            format!(
                "{{pod: g-{at}, uid: {uid}, index: {at}, node: n{at}, grants: [{{claim: gpus, request: gpu, \
                 pool: {at}, devices: [gpu-0]}}]}}"
            )
        };
        let placement = format!(
            "---\napiVersion: phalanx.dev/v1alpha1\nkind: Placement\n\
             metadata: {{name: podgroup-g, namespace: default}}\n\
             spec: {{group: {{kind: podgroup, name: g}}, phase: {phase}, pools: [{{driver: \
             gpu.example.com, name: n0}}, {{driver: gpu.example.com, name: n1}}], seats: [{}, {}]}}\n",
            seat(0),
            seat(1)
        );
        board.add(&(placement + &pod("p", "phalanx", &of_template("one"))));
        let planned = planned(&board);
        assert_eq!(!planned.is_empty(), free, "{phase}: {planned:?}");
    }
}
