//! One cause is told once, and with what is near to what is wrong.

use super::super::Rule;
use super::{found, rules, shown};
use crate::finding::Severity;

/// The rules that a text breaks, with how bad that is.
fn broken(text: &str) -> Vec<(Rule, Severity)> {
    found(text).iter().map(|one| (one.rule, one.severity)).collect()
}

/// What is said of a text that breaks one rule.
fn said(text: &str) -> String {
    let all = found(text);
    assert_eq!(all.len(), 1, "{}", shown(&all));
    all[0].message.clone()
}

#[test]
fn a_selector_that_is_too_costly_is_not_blamed_for_its_errors_too() {
    let costly = format!("{0}{0}{0}{0}true))))", "device.driver.split(\"\").all(x, ");
    let text = rules::selecting(&costly);
    assert_eq!(broken(&text), [(Rule::SelectorTooCostly, Severity::Error)]);
}

#[test]
fn values_that_never_agree_say_for_whom_no_node_is() {
    let other = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n\
                 metadata: {name: n1-nic}\n\
                 spec: {driver: nic.example.com, nodeName: n1, \
                 pool: {name: n1, generation: 1, resourceSliceCount: 1}, \
                 devices: [{name: nic-0, attributes: {gpu.example.com/domain: {string: z}}}]}\n\
                 ---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\n\
                 metadata: {name: nic.example.com}\n\
                 spec: {selectors: [{cel: {expression: 'device.driver == \"nic.example.com\"'}}]}\n";
    let two = "exactly: {deviceClassName: gpu.example.com, count: 2}\n      \
               - name: nic\n        exactly: {deviceClassName: nic.example.com}";
    let text = rules::clean().replace("exactly: {deviceClassName: gpu.example.com, count: 2}", two)
        + other;
    assert_eq!(broken(&text), [(Rule::AttributeValuesApart, Severity::Error)]);
    assert!(said(&text).ends_with("No node of the input could ever hold Pod default/trainer."));
    let met = text.replace("{string: z}", "{string: a}");
    assert_eq!(broken(&met), []);
}

#[test]
fn an_amount_that_the_api_server_refuses_is_told_once() {
    let asking = |resources: &str| {
        let pod = format!("spec: {{containers: [{{name: c, resources: {{{resources}}}}}]}}\n");
        rules::clean() + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: other}\n" + &pod
    };
    let (one, two) = ("{example.com/gpu: 1}", "{example.com/gpu: 2}");
    let missing = asking(&format!("requests: {one}"));
    assert_eq!(broken(&missing), [(Rule::ResourceLimitMissing, Severity::Error)]);
    let differs = asking(&format!("requests: {one}, limits: {two}"));
    assert_eq!(broken(&differs), [(Rule::ResourceLimitDiffers, Severity::Error)]);
    // Of another name of the same container validation alone speaks.
    let nameless = asking("limits: {gpu: 1, example.com/gpu: 1}");
    assert_eq!(broken(&nameless), [(Rule::AdmissionRefused, Severity::Error)]);
    assert_eq!(broken(&asking(&format!("limits: {one}"))), []);
}

#[test]
fn a_part_of_a_unit_that_is_asked_and_limited_is_told_once() {
    let asking = |resources: &str| {
        let pod = format!("spec: {{containers: [{{name: c, resources: {{{resources}}}}}]}}\n");
        rules::clean() + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: other}\n" + &pod
    };
    let half = "{nvidia.com/gpu: 500m}";
    let same = asking(&format!("requests: {half}, limits: {half}"));
    let fractions = |text: &str| {
        broken(text).iter().filter(|(rule, _)| *rule == Rule::ResourceFraction).count()
    };
    assert_eq!(fractions(&same), 1);
    assert_eq!(fractions(&asking(&format!("limits: {half}"))), 1);
    let apart = format!("requests: {half}, limits: {{nvidia.com/gpu: 700m}}");
    assert_eq!(fractions(&asking(&apart)), 2);
}

#[test]
fn a_wish_of_a_group_that_can_not_be_read_is_not_told_again_of_its_pods() {
    let text = |wish: &str, count: u32| {
        let spec = "spec:\n  schedulingGroup: {podGroupName: g}";
        let pods =
            rules::clean().replacen("spec:\n  containers", &format!("{spec}\n  containers"), 1);
        pods + &format!(
            "---\napiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {{name: g, \
             annotations: {{phalanx.dev/align: {wish}}}}}\nspec: {{schedulingPolicy: {{gang: \
             {{minCount: {count}}}}}}}\n"
        )
    };
    let misspelt = text("nvma=required", 1);
    assert!(misspelt.contains("schedulingGroup"), "{misspelt}");
    assert_eq!(broken(&misspelt), [(Rule::InputDoubtful, Severity::Error)]);
    // A number that is wrong is read as another, and says nothing of the wish.
    let unmet = broken(&text("island=required", 0));
    assert!(unmet.len() == 2 && unmet[0].0 != unmet[1].0, "{unmet:?}");
}

#[test]
fn what_could_not_be_read_is_not_told_again_of_its_users() {
    let text = rules::clean().replace("count: 2", "count: two");
    assert_eq!(broken(&text), [], "the reader tells it");
    let text = rules::clean().replace("spec: {selectors: [", "spec: {selectors: [1, ");
    assert_eq!(broken(&text), []);
}

#[test]
fn a_claim_whose_name_is_misspelt_in_a_container_is_not_unused() {
    let text = rules::clean().replace("claims: [{name: gpus", "claims: [{name: gpu");
    assert_eq!(broken(&text), [(Rule::FieldValueNotFound, Severity::Error)]);
}

#[test]
fn kinds_that_are_not_read_are_hints() {
    let text =
        rules::clean() + "---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}\n";
    assert_eq!(broken(&text), [(Rule::KindNotRead, Severity::Info)]);
    assert!(said(&text).contains("Objects of kind Thing (example.com/v1) are not read"));
}

#[test]
fn the_nearest_level_that_is_known_is_offered() {
    let wishing = |wish: &str| {
        let named = format!("{{name: trainer, annotations: {{phalanx.dev/align: {wish}}}}}");
        rules::clean().replace("{name: trainer}", &named)
    };
    let rooted = |text: String| {
        text.replace(
            "index: {int: ",
            "resource.kubernetes.io/pcieRoot: {string: pci0000:00}, index: {int: ",
        )
    };
    let text = rooted(wishing("island=required"));
    assert!(
        said(&text).ends_with("`phalanx.dev/align: root=required` keeps them under one PCIe root.")
    );
    let text = rooted(wishing("numa=preferred"));
    assert!(said(&text).contains("`phalanx.dev/align: root=preferred` keeps them"));
    let bare = said(&wishing("island=required"));
    assert!(!bare.contains("What is known is"), "{bare}");
    let apart = rooted(rules::clean())
        .replace("matchAttribute: gpu.example.com/domain", "matchAttribute: gpu.example.com/link");
    assert!(
        said(&apart).contains("`resource.kubernetes.io/pcieRoot`, keeps them under one PCIe root")
    );
}

#[test]
fn a_misspelt_name_is_near_a_published_one_however_it_is_read() {
    for (selector, near) in [
        (
            "device.attributes[\"gpu.example.com\"].?modle.orValue(\"\") == \"X1\"",
            "gpu.example.com/model",
        ),
        ("has(device.attributes[\"gpu.example.com\"].modle)", "gpu.example.com/model"),
        ("device.attributes[\"gpu.exampel.com\"].model == \"X1\"", "gpu.example.com/model"),
        (
            "device.capacity[\"gpu.example.com\"].memry.compareTo(quantity(\"1Gi\")) > 0",
            "gpu.example.com/memory",
        ),
    ] {
        let said = said(&rules::selecting(selector));
        assert!(said.contains(&format!("what is published is `{near}`")), "{said}");
    }
    assert!(
        said(&rules::selecting("false")).starts_with("The selector is `false`, and so matches")
    );
}
