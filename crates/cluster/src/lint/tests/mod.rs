//! Each rule over small worlds: one that breaks it, and one that just doesn't.

mod groups;
mod limits;
mod once;
mod pods;
mod room;
mod rules;

use std::collections::BTreeSet;

use phalanx_objects::{Item, read};

use super::{Lint, Rule, lint, refusals};
use crate::compat::{Compat, Version};
use crate::finding::Source;
use crate::lower::{Lowering, ObjectEvent};
use crate::plan::PlanOptions;
use crate::world::World;

/// A world that breaks a rule in one field, and one that just doesn't.
pub(super) struct Case {
    pub(super) rule: Rule,
    pub(super) path: &'static str,
    pub(super) says: &'static [&'static str],
    pub(super) text: String,
    /// The text in which it is not broken.
    pub(super) mended: String,
}

/// The world of a text. What the reader finds is not looked at.
pub(super) fn world_of(compat: Compat, text: &str) -> World {
    let mut world = World::new(Lowering::new(compat));
    let mut ordinal = 0;
    read("test.yaml", text.as_bytes(), &mut |item| {
        ordinal += 1;
        match item {
            Item::Object(object, source) => {
                let source = Source { file: source.file, line: source.line, ordinal };
                world.absorb(ObjectEvent::Applied(Box::new(object), source));
            }
            Item::Gone(object, _) => panic!("{} is gone", object.reference()),
            Item::Unknown { api_version, kind, source } => {
                let source = Source { file: source.file, line: source.line, ordinal };
                world.skip(&api_version, &kind, source);
            }
            Item::Problem(problem) => problem.object.into_iter().for_each(|of| world.unread(of)),
        }
    });
    world.settle();
    world
}

pub(super) fn found_with(compat: Compat, text: &str) -> Vec<Lint> {
    lint(&world_of(compat, text), &PlanOptions::default())
}

pub(super) fn found(text: &str) -> Vec<Lint> {
    found_with(Compat::default(), text)
}

pub(super) fn shown(found: &[Lint]) -> String {
    let line = |one: &Lint| format!("{} {}: {}\n", one.rule.code(), one.path, one.message);
    found.iter().map(line).collect()
}

/// Tries a case: the rule speaks of the field, in these words, and is silent when it is mended.
fn failing(case: &Case) -> Option<String> {
    let all = found(&case.text);
    let is = |one: &&Lint| one.rule == case.rule && one.path == case.path;
    let own: Vec<&Lint> = all.iter().filter(is).collect();
    let what = format!("{} at {}", case.rule.code(), case.path);
    let [one] = own.as_slice() else {
        return Some(format!("{what}: said {} times:\n{}", own.len(), shown(&all)));
    };
    let message = &one.message;
    if let Some(part) = case.says.iter().find(|part| !message.contains(**part)) {
        return Some(format!("{what}: {part:?} is missing: {message}"));
    }
    if !message.ends_with('.') || message.contains("  ") {
        return Some(format!("{what}: no sentence: {message}"));
    }
    let after = found(&case.mended);
    after
        .iter()
        .any(|one| is(&one))
        .then(|| format!("{what}: still there when mended:\n{}", shown(&after)))
}

#[test]
fn every_rule_speaks_where_it_is_broken_and_nowhere_else() {
    let cases: Vec<Case> = {
        let all = rules::cases().into_iter().chain(limits::cases());
        all.chain(pods::cases()).chain(room::cases()).chain(groups::cases()).collect()
    };
    let failures: Vec<String> = cases.iter().filter_map(failing).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let tried: BTreeSet<Rule> = cases.iter().map(|case| case.rule).collect();
    let by_the_reader = [Rule::ObjectUnreadable];
    let elsewhere = [Rule::NoDevicesRead, Rule::NoNodesRead, Rule::KindNotRead];
    for rule in Rule::ALL.iter().filter(|r| !by_the_reader.contains(r) && !elsewhere.contains(r)) {
        assert!(tried.contains(rule), "no case breaks {}", rule.code());
    }
}

#[test]
fn the_guide_explains_every_rule_and_no_other() {
    let page = include_str!("../../../../../docs/guide/lint.md");
    let row = |line: &str| {
        let (code, rest) = line.strip_prefix("| `")?.split_once('`')?;
        Some((code.to_owned(), rest.split('|').nth(1)?.trim().to_owned()))
    };
    let explained: Vec<(String, String)> = page.lines().filter_map(row).collect();
    for rule in Rule::ALL {
        let of_rule: Vec<_> = explained.iter().filter(|(code, _)| code == rule.code()).collect();
        let [(_, severity)] = of_rule.as_slice() else { panic!("{} {of_rule:?}", rule.code()) };
        assert!(severity.contains(rule.severity().as_str()), "{} {severity}", rule.code());
    }
    assert_eq!(explained.len(), Rule::ALL.len());
}

#[test]
fn what_could_not_be_tried_is_said_once() {
    let only = |text: &str| {
        let all = found(text);
        let rules: Vec<Rule> = all.iter().map(|one| one.rule).collect();
        assert!(all.iter().all(|one| one.object.is_none()), "{}", shown(&all));
        rules
    };
    let parts: Vec<&str> = rules::CLEAN.to_vec();
    let without = |left: usize| {
        let kept = parts.iter().enumerate().filter(|(at, _)| *at != left);
        kept.map(|(_, part)| *part).collect::<Vec<_>>().join("---\n")
    };
    let nodeless = only(&without(0));
    assert_eq!(nodeless, [Rule::NoNodesRead]);
    assert_eq!(only(&without(1)), [Rule::NoDevicesRead]);
}

#[test]
fn pods_that_are_refused_for_one_cause_are_told_together() {
    let pods = |names: &[&str]| -> String {
        names.iter().map(|name| format!("---\n{}", rules::POD.replace("trainer", name))).collect()
    };
    let text = rules::clean().replace("count: 2", "count: 3") + &pods(&["second", "third"]);
    let all = found(&text);
    assert_eq!(all.len(), 1, "{}", shown(&all));
    assert_eq!(all[0].object.as_ref().map(|object| object.name.as_str()), Some("trainer"));
    assert!(
        all[0].message.ends_with("So it is with 2 more pods, such as second."),
        "{}",
        shown(&all)
    );
}

#[test]
fn what_is_placed_or_ended_is_not_blamed() {
    let full = rules::clean().replace("cpu: 1}", "cpu: 9}");
    for there in [
        "status: {phase: Running}\nspec:\n  nodeName: n1\n  containers",
        "status: {phase: Failed}\nspec:\n  containers",
    ] {
        let text = full.replace("spec:\n  containers", there);
        assert_eq!(shown(&found(&text)), "");
    }
    assert!(!found(&full).is_empty());
}

#[test]
fn a_clean_world_says_nothing() {
    assert_eq!(shown(&found(&rules::clean())), "");
}

#[test]
fn what_the_api_server_has_made_breaks_none_of_its_limits() {
    let claim = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\n\
                 metadata: {name: Not_A_Name, UID}\n";
    assert!(!found(&claim.replace(", UID", "")).is_empty());
    assert_eq!(shown(&found(&claim.replace("UID", "uid: 1234"))), "");
    assert_eq!(shown(&found(&claim.replace("UID", "resourceVersion: '7'"))), "");
}

#[test]
fn a_gate_that_is_off_is_told_with_its_version() {
    let text = rules::clean().replace("count: 2", "count: 2, capacity: {requests: {memory: 1Gi}}");
    let all = found_with(Compat::new(Version::V1_35), &text);
    let dropped = all.iter().find(|one| one.rule == Rule::FieldDropped).map(|one| &one.message);
    assert!(
        dropped.is_some_and(|m| m.contains("DRAConsumableCapacity") && m.contains("1.35")),
        "{all:?}"
    );
    assert!(found(&text).iter().all(|one| one.rule != Rule::FieldDropped));
}

#[test]
fn an_expression_is_compiled_as_the_api_server_of_that_version_would() {
    let expression = "!has(device.attributes[\"gpu.example.com\"].list) || \
                      device.attributes[\"gpu.example.com\"].list.exists(x, x == \"a\")";
    let text = rules::selecting(expression);
    let invalid = |text: &str, gates: &str| {
        let compat = Compat::default().with_gates(gates).expect("gates");
        let all = found_with(compat, text);
        all.iter().any(|one| one.rule == Rule::SelectorInvalid)
    };
    assert!(invalid(&text, ""), "macros over attributes need lists");
    assert!(!invalid(&text, "DRAListTypeAttributes=true"));
    // What was accepted once is compiled as a scheduler compiles it.
    assert!(!invalid(&text.replace("{name: pair}", "{name: pair, uid: u}"), ""));
    let refused = |text: &str| -> Vec<Rule> {
        let world = world_of(Compat::default(), text);
        let objects = world.objects().expect("objects");
        let templates = objects.of_kind(phalanx_objects::Kind::ResourceClaimTemplate);
        let all = templates.flat_map(|object| refusals(object, &Compat::default()));
        all.map(|refusal| refusal.rule).collect()
    };
    assert_eq!(refused(&text), [Rule::SelectorInvalid]);
    assert_eq!(refused(&rules::selecting("device.nonsense")), [Rule::SelectorInvalid]);
    assert_eq!(refused(&rules::selecting("true")), []);
}

#[test]
fn derived_attributes_are_compiled_where_their_gate_is_on() {
    let derived = |expression: &str| {
        let list = format!(
            "count: 2, derivedAttributes: [{{name: gpu.example.com/domain, expression: '{expression}'}}]"
        );
        rules::clean().replace("count: 2", &list)
    };
    let found = |expression: &str| -> Vec<(Rule, String)> {
        let compat = Compat::default().with_gates("DRADerivedAttributes=true").expect("gates");
        let all = found_with(compat, &derived(expression));
        let of_limits = all.into_iter().filter(|one| one.rule != Rule::InputDoubtful);
        of_limits.map(|one| (one.rule, one.path)).collect()
    };
    let path = "spec.spec.devices.requests[0].exactly.derivedAttributes[0].expression";
    assert_eq!(found("device.nonsense"), [(Rule::SelectorInvalid, path.to_owned())]);
    assert_eq!(found("device.driver"), []);
    let compat = Compat::default().with_gates("DRADerivedAttributes=true").expect("gates");
    let elsewhere =
        derived("device.driver").replace("[{name: gpu.example.com/domain", "[{name: example.com/x");
    let all = found_with(compat, &elsewhere);
    assert!(
        shown(&all).contains("no constraint on request `gpus` compares `example.com/x`"),
        "{}",
        shown(&all)
    );
}

#[test]
fn a_field_that_is_dropped_may_leave_what_is_refused() {
    let old = Compat::new(Version::V1_34);
    let text = rules::clean().replace("matchAttribute", "distinctAttribute");
    let of_attribute = |all: &[Lint]| -> Vec<Rule> {
        let is = |one: &&Lint| {
            one.path.ends_with("distinctAttribute") && one.rule != Rule::InputDoubtful
        };
        all.iter().filter(is).map(|one| one.rule).collect()
    };
    assert_eq!(of_attribute(&found_with(old, &text)), [Rule::FieldValueRequired]);
    assert_eq!(of_attribute(&found(&text)), []);
}

#[test]
fn the_order_of_the_input_is_the_order_of_the_findings() {
    let text = rules::clean().replace("gpu.example.com}\nspec", "gpu_example}\nspec");
    let all = found(&text.replace("name: pair", "name: Pair"));
    let ordinals: Vec<u64> = all.iter().map(|one| one.source.ordinal).collect();
    assert!(ordinals.len() > 1 && ordinals.is_sorted(), "{}", shown(&all));
}

#[test]
fn hostile_objects_are_findings_and_nothing_worse() {
    let long = "x".repeat(50_000);
    let deep = format!("{}true{}", "(".repeat(4_000), ")".repeat(4_000));
    for (from, to) in [
        ("gpu.example.com\"", long.as_str()),
        ("name: pair", &format!("name: {long}")),
        ("count: 2", "count: 9223372036854775807"),
        ("generation: 1", "generation: -9223372036854775808"),
        ("resourceSliceCount: 1", "resourceSliceCount: 9223372036854775807"),
        ("value: 80Gi", "value: -99999999999999999999999E"),
        ("device.driver == \"gpu.example.com\"", &deep),
        ("matchAttribute: gpu.example.com/domain", &format!("matchAttribute: {long}")),
        ("{string: a}", "{version: '1.2.3.4.5'}"),
        ("deviceClassName: gpu.example.com", "deviceClassName: '\"]["),
    ] {
        let text = rules::clean();
        assert!(text.contains(from), "{from}");
        for one in found(&text.replace(from, to)) {
            assert!(one.message.len() < 20_000, "{}", one.rule.code());
        }
    }
}

/// What is advised of each object: name, verdict, grounds.
fn advised(text: &str) -> Vec<(String, &'static str, Vec<&'static str>, bool)> {
    let all = super::advise(&world_of(Compat::default(), text));
    all.iter()
        .map(|one| {
            let grounds = one.grounds.iter().map(|ground| ground.kind.code()).collect();
            let name = one.object.name.clone();
            (name, one.verdict(), grounds, one.unknown.is_some())
        })
        .collect()
}

#[test]
fn a_move_is_advised_only_with_a_ground() {
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {pods: 9, \
                nvidia.com/gpu: 4}}\n---\n";
    let pod = |name: &str, gpus: u32| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c, \
             resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}]}}\n---\n"
        )
    };
    let topology = "apiVersion: phalanx.dev/v1alpha1\nkind: NodeTopology\nmetadata: {name: n1}\nspec:\n  \
                    devices: [{name: g0}, {name: g1}, {name: g2}, {name: g3}]\n  islands: [{name: a, \
                    members: [g0, g1]}, {name: b, members: [g2, g3]}]\n---\n";
    let pods = pod("one", 1) + &pod("two", 2) + &pod("four", 4);
    let row = |name: &str, verdict, grounds: &[&'static str], unknown| {
        (name.to_owned(), verdict, grounds.to_vec(), unknown)
    };
    let suffice = |name: &str, unknown| row(name, "countsSuffice", &[], unknown);
    let bare = format!("{node}{pods}");
    assert_eq!(
        advised(&bare),
        [suffice("one", false), suffice("two", true), suffice("four", false)]
    );
    let islands = format!("{node}{topology}{pods}");
    assert_eq!(
        advised(&islands),
        [suffice("one", false), row("two", "needsDRA", &["align"], false), suffice("four", false)]
    );
    // Where the pods may not go to that node, its links are no ground; parts of devices have none.
    let elsewhere = islands.replace(
        "metadata: {name: n1}\nstatus",
        "metadata: {name: n1}\nspec: {unschedulable: true}\nstatus",
    );
    assert_eq!(advised(&elsewhere)[1], suffice("two", false));
    let parts = bare.replace("nvidia.com/gpu:", "nvidia.com/mig-1g.10gb:");
    assert_eq!(advised(&parts)[1], suffice("two", false));
    let one_island = islands
        .replace("[g0, g1]", "[g0, g1, g2, g3]")
        .replace(", {name: b, members: [g2, g3]}", "");
    assert_eq!(
        advised(&one_island),
        [suffice("one", false), suffice("two", false), suffice("four", false)]
    );
    // Claims: the constraint of the clean world, and without it.
    let clean = rules::clean();
    assert_eq!(advised(&clean), [row("trainer", "needsDRA", &["matchAttribute"], false)]);
    let plain =
        clean.replace("      constraints:\n      - matchAttribute: gpu.example.com/domain\n", "");
    assert_eq!(advised(&plain), [suffice("trainer", false)]);
    let choosy = |model: &str| {
        plain.replace("count: 2", &format!(
            "count: 1, selectors: [{{cel: {{expression: 'device.attributes[\"gpu.example.com\"].index == {model}'}}}}]"
        ))
    };
    assert_eq!(advised(&choosy("1")), [row("trainer", "needsDRA", &["attribute"], false)]);
    assert_eq!(advised(&choosy("1 || true")), [suffice("trainer", false)]);
}

/// Wishes of a group and of a claim are as good as the pod's own; of one device they say nothing.
#[test]
fn wishes_of_groups_and_claims_and_shared_claims_are_grounds() {
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {pods: 9, \
                nvidia.com/gpu: 8}}\n---\n";
    let group = |wish: &str, claims: &str| {
        format!(
            "apiVersion: scheduling.k8s.io/v1alpha3\nkind: PodGroup\nmetadata: {{name: g, annotations: \
             {{{wish}}}}}\nspec: {{schedulingPolicy: {{gang: {{minCount: 2}}}}{claims}}}\n---\n"
        )
    };
    let wish = "phalanx.dev/align: numa=preferred";
    let spec = |gpus: u32| {
        format!(
            "{{schedulingGroup: {{podGroupName: g}}, restartPolicy: Never, containers: [{{name: c, \
             resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}]}}"
        )
    };
    let pod =
        |gpus| format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {}\n", spec(gpus));
    let job = |gpus| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j}}\nspec: {{parallelism: 2, template: \
             {{spec: {}}}}}\n",
            spec(gpus)
        )
    };
    let only = |text: &str| {
        let all = advised(text);
        let [(_, verdict, grounds, _)] = all.as_slice() else { panic!("{all:?}") };
        (*verdict, grounds.clone())
    };
    let suffice = ("countsSuffice", Vec::new());
    for object in [pod(2), job(2)] {
        let wishing = format!("{node}{}{object}", group(wish, ""));
        assert_eq!(only(&wishing), ("needsDRA", vec!["align"]));
        assert_eq!(only(&format!("{node}{}{object}", group("", ""))), suffice);
    }
    for object in [pod(1), job(1)] {
        assert_eq!(only(&format!("{node}{}{object}", group(wish, ""))), suffice);
    }
    let claims = |wish: &str, count: u32| {
        format!(
            "{node}apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {{name: t, \
             annotations: {{{wish}}}}}\nspec: {{spec: {{devices: {{requests: [{{name: r, exactly: \
             {{deviceClassName: gpu.example.com, count: {count}}}}}]}}}}}}\n---\n"
        )
    };
    let with = |job: &str| {
        let entry = "resourceClaims: [{name: r, resourceClaimTemplateName: t}]";
        job.replace("limits: {nvidia.com/gpu: 2}", "claims: [{name: r}]")
            .replace("restartPolicy: Never", &format!("restartPolicy: Never, {entry}"))
    };
    let none = group("", "");
    assert_eq!(
        only(&format!("{}{none}{}", claims(wish, 2), with(&pod(2)))),
        ("needsDRA", vec!["align"])
    );
    assert_eq!(only(&format!("{}{none}{}", claims(wish, 1), with(&pod(2)))), suffice);
    let entry = ", resourceClaims: [{name: r, resourceClaimTemplateName: t}]";
    let shared = format!("{}{}{}", claims("", 1), group("", entry), with(&job(2)));
    let on = Compat::default().with_gates("DRAWorkloadResourceClaims=true").unwrap();
    let grounds = |compat| {
        let all = super::advise(&world_of(compat, &shared));
        all[0].grounds.iter().map(|ground| ground.kind.code()).collect::<Vec<_>>()
    };
    assert_eq!(grounds(on), ["sharing"]);
    assert_eq!(grounds(Compat::default()), [""; 0]);
}

/// What makes pods that are of another's group is looked at as any workload.
#[test]
fn a_workload_whose_pods_are_of_a_group_is_looked_at() {
    let text = |pool: &str, gpus: u32| {
        format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: n1, labels: {{pool: gpu}}}}\nstatus: \
             {{allocatable: {{pods: 9, nvidia.com/gpu: 8}}}}\n---\napiVersion: \
             scheduling.k8s.io/v1alpha3\nkind: PodGroup\nmetadata: {{name: g}}\nspec: {{schedulingPolicy: \
             {{gang: {{minCount: 2}}}}}}\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: \
             j}}\nspec: {{parallelism: 2, template: {{spec: {{nodeSelector: {{pool: {pool}}}, \
             schedulingGroup: {{podGroupName: g}}, restartPolicy: Never, containers: [{{name: c, \
             resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}]}}}}}}\n"
        )
    };
    assert_eq!(shown(&found(&text("gpu", 4))), "");
    assert!(shown(&found(&text("gpux", 4))).contains("NodeSelectorUnmet spec.template.spec"));
    let large = shown(&found(&text("gpu", 5)));
    assert!(large.starts_with("NeverFits spec.template.spec"), "{large}");
    assert_eq!(large.lines().count(), 1, "{large}");
}
