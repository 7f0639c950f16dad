//! The schema's page and what is written are one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::*;

const WHOLE: &str = include_str!("../../../../docs/schema.md");

/// The page as far as it is about plans, which come first.
fn page() -> &'static str {
    WHOLE.split_once("\n# The JSON of ").map_or(WHOLE, |(page, _)| page)
}

/// The part of the page about another command.
fn page_of(command: &str) -> &'static str {
    let title = format!("\n# The JSON of `{command}`\n");
    let (_, rest) = WHOLE.split_once(&title).expect("the schema of the command");
    rest.split_once("\n# ").map_or(rest, |(page, _)| page)
}

/// Maps whose keys are names of the user's: their inside is no part of the schema.
const MAPS: [&str; 2] = ["compat.featureGates", "pods[].devices[].consumedCapacity"];

/// Arrays of what is described elsewhere on the page.
const AGAIN: [&str; 4] = [
    "groups[].reasons",
    "groups[].cures",
    "pods[].choice.runnerUp.cost",
    "pods[].choice.elsewhere",
];

fn check() -> CheckView {
    CheckView { code: "c", check: "k", status: "Error", message: "m".into() }
}

fn reason() -> ReasonView {
    let text = || Some("x".to_owned());
    let example = ExampleView { node: text(), driver: text(), pool: text(), device: text() };
    ReasonView {
        code: "c",
        check: "k",
        scope: "node",
        nodes: 1,
        devices: 1,
        example: Some(example),
        message: "m".into(),
    }
}

fn cure() -> CureView {
    CureView { edit: "heal n1".into(), message: "m".into(), waiting: 1 }
}

fn choice() -> ChoiceView {
    let link = || Some(LinkView { class: "NVLink", gbps: Some(25) });
    let cost = || CostView {
        alternatives: 0,
        unaligned: 0,
        islands: 0,
        slowest: link(),
        farthest: link(),
        off_switch: 0,
        off_root: 0,
        off_numa: 0,
        numa: 0,
        soft: 0,
        islands_broken: 0,
        wholes_used: 0,
        lost_mi: 0,
        shared_mi: 0,
        fragmentation: 0,
        nodes_broken: 0,
        scarce_left: 0,
    };
    let pick = PickView { driver: "d".into(), pool: "p".into(), device: "v".into() };
    let rival = || RivalView {
        node: "n1".into(),
        devices: vec![pick.clone()],
        cost: cost(),
        optimal: "proven",
        message: "m".into(),
    };
    ChoiceView {
        cost: cost(),
        equal_sets: Some(1),
        message: Some("m".into()),
        runner_up: Some(rival()),
        elsewhere: Some(rival()),
    }
}

fn pod() -> PodView {
    let device = DeviceView {
        claim: "c".into(),
        request: "r".into(),
        driver: "d".into(),
        pool: "p".into(),
        device: "v".into(),
        share_id: Some("s".into()),
        consumed_capacity: BTreeMap::from([("memory".into(), "1Gi".into())]),
        admin_access: true,
        binding_conditions: vec!["Attached".into()],
    };
    PodView {
        namespace: "n".into(),
        name: "p".into(),
        planned: true,
        group: Some("job/j".into()),
        role: Some(String::new()),
        index: Some(0),
        counted: 0,
        rank: Some(0),
        verdict: VerdictWord::Placed,
        node: Some("n1".into()),
        devices: vec![device],
        optimal: Some("proven"),
        reasons: vec![reason()],
        cures: vec![cure()],
        effort: Some(1),
        stays_until: Some("2026-01-01T00:00:00Z".into()),
        notes: vec!["note".into()],
        choice: Some(choice()),
        fit_error: Some("s".into()),
        checks: Some(vec![check()]),
        nodes: Some(vec![NodeView { name: "n1".into(), fits: false, checks: vec![check()] }]),
    }
}

/// A document in which nothing is left out.
fn full() -> Document {
    Document {
        api_version: API_VERSION,
        compat: CompatView {
            now: Some("2026-11-28T10:00:00Z".into()),
            kubernetes_version: "1.37".into(),
            feature_gates: BTreeMap::from([("G".into(), true)]),
            admission_plugins: vec!["P"],
        },
        policy: PolicyView {
            node_order: "best",
            device_order: "best",
            strict_cel: false,
            effort_steps: 1,
        },
        pods: vec![pod()],
        groups: vec![GroupView {
            namespace: "n".into(),
            name: "j".into(),
            kind: "job".into(),
            verdict: VerdictWord::Waits,
            wanted: 2,
            placed: 1,
            short: 1,
            missing_subgroups: vec!["s".into()],
            reasons: vec![reason()],
            cures: vec![cure()],
            notes: vec!["n".into()],
            ranks: vec![RankView { rank: 0, pod: "p".into(), node: "n".into(), devices: 1 }],
            places: vec![PlaceView {
                topology: "t".into(),
                source: "s".into(),
                fragmentation: Some(FragmentationView { before: 0, after: 1 }),
                levels: vec![LevelView {
                    level: "l".into(),
                    domains: vec!["d".into()],
                    without: 0,
                    crossings: 0,
                    busiest: Some("d".into()),
                    busiest_crossings: 0,
                }],
            }],
        }],
        findings: vec![FindingView {
            severity: "error".into(),
            object: None,
            file: None,
            line: None,
            path: None,
            message: "m".into(),
        }],
        unanswered: true,
        summary: Summary::default(),
    }
}

fn paths(value: &Value, at: &str, into: &mut BTreeSet<String>) {
    if let Value::Array(items) = value {
        for item in items {
            paths(item, &format!("{at}[]"), into);
        }
    }
    let Value::Object(fields) = value else { return };
    for (name, value) in fields {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        if !MAPS.contains(&path.as_str()) && !AGAIN.contains(&path.as_str()) {
            paths(value, &path, into);
        }
        into.insert(path);
    }
}

/// First cells of the page's tables.
fn described(page: &str) -> BTreeSet<String> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split_once('`'))
        .map(|(path, _)| path.to_owned())
        .collect()
}

#[test]
fn the_page_describes_every_field_and_no_other() {
    let document = serde_json::to_value(full()).expect("a document");
    let mut written = BTreeSet::new();
    paths(&document, "", &mut written);
    let described = described(page());
    let missing: Vec<_> = written.difference(&described).collect();
    let stale: Vec<_> = described.difference(&written).collect();
    assert!(missing.is_empty(), "docs/schema.md does not describe {missing:?}");
    assert!(stale.is_empty(), "docs/schema.md describes what is not written: {stale:?}");
    assert!(page().contains(API_VERSION));
}

#[test]
fn the_page_describes_the_schema_of_lint_too() {
    use crate::lint::{
        AdviceView, GroundView, LINT_API_VERSION, LintDocument, LintFindingView, LintSummary,
        PositionView,
    };
    let finding = LintFindingView {
        code: "c",
        severity: "error",
        object: None,
        file: None,
        line: None,
        path: None,
        position: Some(PositionView { line: 1, column: 1 }),
        message: "m".into(),
    };
    let document = LintDocument {
        api_version: LINT_API_VERSION,
        compat: full().compat,
        findings: vec![finding],
        advice: Some(vec![AdviceView {
            object: "pod/n/p".into(),
            asks: vec!["1 g".into()],
            by_claims: false,
            verdict: "needsDRA",
            grounds: vec![GroundView { code: "align", message: "m".into() }],
            unknown: Some("u".into()),
            message: "m".into(),
        }]),
        summary: LintSummary::default(),
    };
    let mut written = BTreeSet::new();
    paths(&serde_json::to_value(document).expect("a document"), "", &mut written);
    let page = page_of("lint");
    assert_eq!(described(page), written);
    assert!(page.contains(LINT_API_VERSION));
}

#[test]
fn the_page_describes_the_schema_of_status_too() {
    use crate::status::{
        FreeIslands, FreeNodes, HolderView, NodeCounts, STATUS_API_VERSION, StalledView,
        StatusDocument, StatusSummary, StockView, StrandedView, TopologyLevelView, TopologyView,
        WaitingView,
    };
    let text = || "x".to_owned();
    let stock = StockView {
        source: "slices",
        name: text(),
        model: None,
        nodes: 1,
        total: 1,
        used: 1,
        free: 0,
        unavailable: 0,
        unhealthy: 0,
        closed: 0,
        free_nodes: vec![FreeNodes { free: 1, nodes: 1 }],
        free_islands: vec![FreeIslands { free: 1, islands: 1 }],
        unlinked: 0,
        stranded: vec![StrandedView { size: 2, on_nodes: 0, in_islands: None }],
    };
    let holder = HolderView {
        namespace: text(),
        workload: text(),
        name: text(),
        pods: 1,
        devices: 1,
        shared: 0,
        unpublished: 0,
    };
    let waiting = WaitingView {
        namespace: text(),
        workload: text(),
        pods: 1,
        since: None,
        seconds: None,
        verdict: VerdictWord::Waits,
        code: text(),
        message: text(),
    };
    let document = StatusDocument {
        api_version: STATUS_API_VERSION,
        compat: full().compat,
        nodes: NodeCounts::default(),
        devices: vec![stock],
        topologies: vec![TopologyView {
            name: "t".into(),
            source: "s".into(),
            levels: vec![TopologyLevelView {
                level: "l".into(),
                domains: BTreeMap::new(),
                without: 0,
            }],
        }],
        holders: vec![holder],
        stalled: vec![StalledView { group: text(), message: text() }],
        waiting: vec![waiting],
        findings: Vec::new(),
        summary: StatusSummary::default(),
    };
    let mut written = BTreeSet::new();
    paths(&serde_json::to_value(document).expect("a document"), "", &mut written);
    assert_eq!(described(page_of("status")), written);
    assert!(page_of("status").contains(STATUS_API_VERSION));
}

#[test]
fn the_page_describes_the_schema_of_diff_too() {
    use crate::diff::{
        ChangeView, ChangeWord, DIFF_API_VERSION, DiffDocument, DiffSummary, SettingView, SideView,
    };
    let side = SideView {
        verdict: "waits".into(),
        node: None,
        devices: Vec::new(),
        reasons: Vec::new(),
        message: None,
    };
    let change = ChangeView {
        change: ChangeWord::Starts,
        namespace: "n".into(),
        name: "p".into(),
        group: None,
        before: Some(side),
        after: None,
    };
    let (before, after) = (Value::Null, Value::Null);
    let document = DiffDocument {
        api_version: DIFF_API_VERSION,
        settings: vec![SettingView { name: "x".into(), before, after }],
        changes: vec![change],
        findings: Vec::new(),
        summary: DiffSummary::default(),
    };
    let mut written = BTreeSet::new();
    paths(&serde_json::to_value(document).expect("a document"), "", &mut written);
    assert_eq!(described(page_of("diff")), written);
    assert!(page_of("diff").contains(DIFF_API_VERSION));
}

#[test]
fn what_the_page_calls_optional_is_left_out_and_nothing_else() {
    let mut bare = full();
    let pod = &mut bare.pods[0];
    pod.planned = false;
    pod.stays_until = None;
    pod.notes.clear();
    (pod.checks, pod.nodes) = (None, None);
    pod.choice = None;
    pod.fit_error = None;
    pod.reasons[0].example = None;
    pod.cures[0].waiting = 0;
    bare.groups[0].notes.clear();
    bare.groups[0].ranks.clear();
    bare.groups[0].places.clear();
    bare.groups[0].missing_subgroups.clear();
    let pod = &mut bare.pods[0];
    let device = &mut pod.devices[0];
    device.share_id = None;
    device.consumed_capacity.clear();
    device.admin_access = false;
    device.binding_conditions.clear();
    let (mut all, mut left) = (BTreeSet::new(), BTreeSet::new());
    paths(&serde_json::to_value(full()).expect("a document"), "", &mut all);
    paths(&serde_json::to_value(bare).expect("a document"), "", &mut left);
    for path in all.difference(&left) {
        let row = page().lines().find(|line| line.starts_with(&format!("| `{path}`")));
        let within = [".nodes[].", ".checks[].", ".choice.", ".ranks[].", ".places[]."];
        let parent = within.iter().any(|part| path.contains(part));
        assert!(
            parent || row.is_some_and(|row| row.contains("optional")),
            "docs/schema.md does not call {path} optional"
        );
    }
    for line in
        page().lines().filter(|line| line.starts_with("| `") && line.contains(", optional |"))
    {
        let path = line.trim_start_matches("| `").split('`').next().unwrap_or_default();
        assert!(
            !left.contains(path),
            "docs/schema.md calls {path} optional, and it is always there"
        );
    }
}
