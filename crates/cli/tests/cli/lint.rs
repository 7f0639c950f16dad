//! `phalanx lint`: findings, documents, exit codes, lines, and hostile input.

use crate::common::{NODE, Scratch, run, run_with};

const SLICE: &str = "\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-gpu}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {model: {string: X1}}, capacity: {memory: {value: 24Gi}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {selectors: [{cel: {expression: 'device.driver == \"gpu.example.com\"'}}]}
";

const TEMPLATE: &str = "\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: pair}
spec:
  spec:
    devices:
      requests:
      - name: gpus
        exactly:
          deviceClassName: gpu.example.com
          selectors:
          - cel: {expression: 'device.capacity[\"gpu.example.com\"].memory >= 40'}
      constraints:
      - matchAttribute: gpu.example.com/modell
";

fn all() -> String {
    format!("{NODE}---\n{SLICE}---\n{TEMPLATE}")
}

fn fine() -> String {
    all()
        .replace(".memory >= 40", ".memory.compareTo(quantity(\"20Gi\")) >= 0")
        .replace("modell", "model")
}

#[test]
fn a_clean_input_says_so_in_one_line() {
    let ran = run_with(&["lint", "-f", "-"], &fine()).code(0);
    assert_eq!(ran.out, "Nothing is wrong: 4 objects read, Kubernetes 1.37\n");
    assert_eq!(ran.err, "");
    let document = run_with(&["lint", "-f", "-", "-o", "json"], &fine()).code(0).json();
    assert_eq!(document["apiVersion"], "phalanx.dev/lint/v1");
    assert_eq!(document["findings"], serde_json::json!([]));
    assert_eq!(document["summary"]["objects"], 4);
}

#[test]
fn findings_have_a_code_a_line_and_a_place_in_the_expression() {
    let ran = run_with(&["lint", "-f", "-", "--output", "json"], &all()).code(1);
    let document = ran.json();
    let findings = document["findings"].as_array().unwrap();
    let codes: Vec<&str> = findings.iter().map(|f| f["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["SelectorInvalid", "AttributeNotPublished"]);
    let selector = &findings[0];
    assert_eq!(selector["object"], "resourceclaimtemplate/default/pair");
    assert_eq!(selector["file"], "-");
    let line = 1 + all().lines().position(|line| line.contains(">= 40")).unwrap();
    assert_eq!(selector["line"], line);
    assert_eq!(
        selector["path"],
        "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression"
    );
    assert_eq!(selector["position"], serde_json::json!({"line": 1, "column": 43}));
    assert_eq!(findings[1]["line"], line + 2);
    assert_eq!(findings[1].get("position"), None);
    assert_eq!(document["summary"]["errors"], 2);
    let ran = run_with(&["lint", "-f", "-"], &all()).code(1);
    ran.says(&[
        "[SelectorInvalid]",
        "column 43 of the expression",
        "matchAttribute: gpu.example.com/modell",
        "2 errors; 4 objects read; Kubernetes 1.37",
        "exit code 1",
    ]);
}

#[test]
fn the_severity_narrows_what_is_shown_and_not_what_counts() {
    let text = all().replace("resourceSliceCount: 1", "resourceSliceCount: 2");
    let document =
        run_with(&["lint", "-f", "-", "-o", "json", "--severity", "error"], &text).code(1).json();
    let severe = |f: &serde_json::Value| f["severity"] == "error";
    assert!(document["findings"].as_array().unwrap().iter().all(severe), "{document:#}");
    assert!(document["summary"]["warnings"].as_u64().unwrap() > 0, "{document:#}");
    let warned = fine().replace("resourceSliceCount: 1", "resourceSliceCount: 2");
    let ran = run_with(&["lint", "-f", "-"], &warned);
    ran.says(&["[PoolIncomplete]"]);
}

#[test]
fn the_version_and_the_gates_are_asked() {
    let text = fine().replace(
        "deviceClassName: gpu.example.com",
        "deviceClassName: gpu.example.com\n          capacity: {requests: {memory: 1Gi}}",
    );
    run_with(&["lint", "-f", "-", "--kubernetes-version", "1.35"], &text)
        .says(&["[FieldDropped]", "DRAConsumableCapacity"]);
    let gates = [
        "lint",
        "-f",
        "-",
        "--kubernetes-version",
        "1.35",
        "--feature-gates",
        "DRAConsumableCapacity=true",
    ];
    let ran = run_with(&gates, &text).code(0);
    assert!(!ran.out.contains("FieldDropped"), "{}", ran.out);
}

#[test]
fn misuse_exits_with_two_and_still_prints_a_document() {
    for args in [
        vec!["lint", "-o", "json"],
        vec!["lint", "-o", "json", "-f", "no/such/file.yaml"],
        vec!["lint", "--output=json", "-f", "examples", "--severity", "nonsense"],
        vec!["lint", "-ojson", "-f", "examples", "--kubernetes-version", "1.20"],
    ] {
        let document = run(&args).code(2).json();
        assert_eq!(document["apiVersion"], "phalanx.dev/lint/v1", "{args:?}");
        assert_eq!(document["findings"][0]["severity"], "error", "{args:?}");
    }
    run_with(&["lint", "-f", "-"], "").code(2).complains(&["holds no object"]);
}

#[test]
fn what_cannot_be_read_is_a_finding_of_its_file() {
    let scratch = Scratch::new();
    let good = scratch.file("a/fleet.yaml", &format!("{NODE}---\n{SLICE}"));
    let bad = scratch.file("b/claim.yaml", "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: [oops}\n");
    let document = run(&["lint", "-f", &good, "-f", &bad, "-o", "json"]).code(1).json();
    assert_eq!(document["findings"][0]["code"], "ObjectUnreadable");
    assert_eq!(document["findings"][0]["file"], bad.as_str());
}

#[test]
fn the_same_field_is_told_once_whoever_found_it() {
    let text = fine().replace(
        "constraints:\n",
        "constraints:\n      - {requests: [gpux], matchAttribute: gpu.example.com/model}\n",
    );
    let document = run_with(&["lint", "-f", "-", "-o", "json"], &text).code(1).json();
    assert_eq!(document["findings"].as_array().unwrap().len(), 1, "{document:#}");
    assert_eq!(document["findings"][0]["code"], "FieldValueInvalid");
}

/// Also where the plan knows the same of the pod.
#[test]
fn plan_tells_once_what_is_refused_of_a_pod() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: r}\nspec: {containers: [{name: c, resources: {claims: [{name: y}]}}]}\n";
    let text = format!("{NODE}---\n{pod}");
    let document = run_with(&["plan", "-f", "-", "-o", "json"], &text).code(1).json();
    let findings = document["findings"].as_array().unwrap();
    let errors = findings.iter().filter(|finding| finding["severity"] == "error");
    assert_eq!(errors.count(), 1, "{document:#}");
}

#[test]
fn plan_tells_what_the_api_server_would_refuse_of_what_it_has_not_made() {
    let claim = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c, META}\nspec:\n  devices:\n    requests:\n    - {name: main, exactly: {deviceClassName: gpu.example.com}}\n    constraints: [{requests: [other], matchAttribute: model}]\n";
    let plan = |meta: &str| {
        let text = format!("{NODE}---\n{SLICE}---\n{}", claim.replace("META", meta));
        run_with(&["plan", "-f", "-", "-o", "json"], &text).json()
    };
    let document = plan("labels: {}");
    let findings = document["findings"].as_array().unwrap();
    let refused: Vec<&str> = findings
        .iter()
        .filter(|f| f["severity"] == "error")
        .map(|f| f["path"].as_str().unwrap())
        .collect();
    assert_eq!(
        refused,
        ["spec.devices.constraints[0].requests[0]", "spec.devices.constraints[0].matchAttribute"],
        "{document:#}"
    );
    assert_eq!(findings.len(), 2, "{document:#}");
    assert_eq!(findings[0]["line"], findings[1]["line"]);
    let line = NODE.lines().count() + SLICE.lines().count() + 2 + claim.lines().count();
    assert_eq!(findings[0]["line"], line, "{document:#}");
    // What the API server has made it has taken.
    let document = plan("uid: 0b0b");
    let severe = |f: &serde_json::Value| f["severity"] == "error";
    assert!(!document["findings"].as_array().unwrap().iter().any(severe), "{document:#}");
}

#[test]
fn plan_tells_of_a_container_that_uses_a_claim_the_pod_lacks() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  \
               - {name: main, resources: {claims: [{name: gpu}]}}\n  \
               resourceClaims: [{name: gpus, resourceClaimTemplateName: pair}]\n";
    let plan = |pod: &str| {
        let text =
            format!("{NODE}---\n{SLICE}---\n{}---\n{pod}", TEMPLATE.replace("modell", "model"))
                .replace(".memory >= 40", ".memory.isGreaterThan(quantity(\"1Gi\"))");
        run_with(&["plan", "-f", "-"], &text)
    };
    plan(pod).code(1).says(&["container main uses the claim gpu,", "If `gpus` is meant"]);
    plan(&pod.replace("{name: gpu}", "{name: gpus}")).code(0);
    plan(&pod.replace("{name: gpu}", "{name: gpus}, {name: gpus, request: gpus}"))
        .code(1)
        .says(&["container main uses the claim gpus twice"]);
    plan(
        &pod.replace("{name: gpu}", "{name: gpus}")
            .replace(", resourceClaimTemplateName: pair", ""),
    )
    .code(1)
    .says(&["the claim gpus needs a resourceClaimName or a resourceClaimTemplateName"]);
}

#[test]
fn a_field_at_a_place_that_does_not_have_it_is_told() {
    let text = format!(
        "{NODE}---\n{SLICE}---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n\
         metadata: {{name: c}}\nspec:\n  devices:\n    requests:\n    - name: r\n      \
         firstAvailable: [{{name: a, deviceClassName: gpu.example.com, adminAccess: true}}]\n"
    );
    let said = "The field `adminAccess` is not known here: `exactly` of a request has it, an \
                alternative of `firstAvailable` has not.";
    for command in ["plan", "lint"] {
        run_with(&[command, "-f", "-"], &text).code(1).says(&[said]);
    }
    let fine = text.replace(", adminAccess: true", ", count: 1");
    assert!(!run_with(&["lint", "-f", "-"], &fine).code(0).out.contains("not known here"));
}

#[test]
fn what_can_not_be_answered_is_counted_too() {
    let document = run(&["lint", "-f", "no-such-file", "-o", "json"]).code(2).json();
    assert_eq!(document["summary"]["errors"], 1, "{document:#}");
}

#[test]
fn admin_access_needs_a_labelled_namespace_for_plan_too() {
    let text = format!(
        "{NODE}---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: team-a}}\n---\n\
         apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: c, namespace: team-a}}\n\
         spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: gpu.example.com, adminAccess: true}}}}]}}}}\n---\n{SLICE}"
    );
    run_with(&["plan", "-f", "-"], &text).code(1).says(&["admin access is only for namespaces"]);
    let labelled = text.replace(
        "{name: team-a}",
        "{name: team-a, labels: {resource.kubernetes.io/admin-access: 'true'}}",
    );
    run_with(&["plan", "-f", "-"], &labelled).code(0);
}

#[test]
fn hostile_input_ends_in_findings() {
    let deep = "[".repeat(20_000);
    let long = "x".repeat(100_000);
    for text in [
        format!("{}{deep}", all()),
        all().replace("modell", &long),
        all().replace(".memory >= 40", &"(".repeat(9_000)),
        all().replace("name: pair", "name: \"\u{1b}[31m\u{0}\""),
        all().replace("resourceSliceCount: 1", "resourceSliceCount: 99999999999999999999"),
    ] {
        let ran = run_with(&["lint", "-f", "-"], &text).code(1);
        assert!(!ran.out.contains('\u{1b}') && ran.out.len() < 200_000, "{}", ran.out.len());
    }
}
