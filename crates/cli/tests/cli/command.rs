//! Exit codes, messages, documents and pipes, with good and bad input.

use crate::common::{NODE, POD, Scratch, pod, run, run_with};
use std::io::Read as _;
use std::process::Stdio;

fn both() -> String {
    format!("{NODE}---\n{POD}")
}

#[test]
fn everything_placed_exits_with_zero() {
    run_with(&["plan", "-f", "-"], &both()).code(0).says(&["default/a", "n1", "placed"]);
}

#[test]
fn something_waiting_exits_with_one() {
    let text = both().replace("cpu: '1'", "cpu: '9'");
    run_with(&["plan", "-f", "-"], &text).code(1).says(&["default/a", "exit code 1"]);
}

#[test]
fn a_document_is_printed_whatever_the_exit_code() {
    for (text, code) in [
        (both(), 0),
        (both().replace("cpu: '1'", "cpu: '9'"), 1),
        (both().replace("cpu: '1'", "cpu: lots"), 1),
        ("not: [an object".to_owned(), 2),
    ] {
        let document = run_with(&["plan", "-f", "-", "-o", "json"], &text).code(code).json();
        for field in ["apiVersion", "compat", "policy", "pods", "groups", "findings", "summary"] {
            assert!(document.get(field).is_some(), "{field} in {document:#}");
        }
    }
}

#[test]
fn misuse_exits_with_two_and_still_prints_a_document() {
    for args in [
        vec!["plan", "-o", "json"],
        vec!["plan", "--output=json", "-f", "no/such/file.yaml"],
        vec!["plan", "-ojson", "-f", "examples", "--nonsense"],
        vec!["plan", "-o", "json", "-f", "examples", "--kubernetes-version", "1.20"],
        vec!["plan", "-o", "json", "-f", "examples", "--feature-gates", "NoSuchGate=maybe"],
        vec!["plan", "-o", "json", "-f", "examples", "--if", "make it so"],
        vec!["plan", "-o", "json", "-f", "examples", "--if", "without pod/nobody"],
        vec!["why", "-o", "json", "-f", "examples", "pod/nobody"],
        vec!["why", "-o", "json", "-f", "examples", "trainer"],
        vec!["devices", "-o", "json", "-f", "examples", "--class", "nope"],
    ] {
        let ran = run(&args).code(2);
        assert!(!ran.err.is_empty(), "{args:?}");
        let document = ran.json();
        assert_eq!(document["findings"][0]["severity"], "error", "{args:?}");
        assert!(!document["findings"][0]["message"].as_str().unwrap().is_empty(), "{args:?}");
    }
}

#[test]
fn a_document_without_an_answer_holds_no_words_for_people() {
    let message = |args: &[&str]| {
        let document = run(args).code(2).json();
        assert_eq!(document["compat"]["now"], serde_json::Value::Null);
        document["findings"][0].clone()
    };
    let finding = message(&["plan", "-o", "json", "-f", "no/such/file.yaml"]);
    assert_eq!(finding["file"], "no/such/file.yaml");
    let finding = message(&["plan", "-ojson", "-f", "examples", "--now", "soon"]);
    let text = finding["message"].as_str().unwrap();
    assert!(text.starts_with("invalid value 'soon' for '--now <TIME>': it is no time"), "{text}");
    assert!(text.ends_with("2026-11-28T10:00:00Z"), "{text}");
    let missing = message(&["plan", "-o", "json"]);
    assert!(!missing["message"].as_str().unwrap().contains('\n'), "{missing}");
}

#[test]
fn a_gate_that_nothing_reads_is_warned_of_and_one_told_both_ways_refused() {
    let args = |gates| ["plan", "-f", "-", "--feature-gates", gates];
    let ran = run_with(&args("InPlacePodVerticalScaling=true"), &both()).code(0);
    ran.says(&["Phalanx reads no feature gate `InPlacePodVerticalScaling`"]);
    run_with(&args("X=true,X=false"), &both()).code(2).complains(&["on and off at once"]);
    run_with(&args("X"), &both()).code(2).complains(&["does not switch a feature gate"]);
}

#[test]
fn a_bad_change_is_quoted_once() {
    let ran = run_with(&["plan", "-f", "-", "--if", "set pod/a cpu to -5"], &both()).code(2);
    assert_eq!(ran.err.matches("set pod/a cpu to -5").count(), 1, "{}", ran.err);
    ran.complains(&["expected a quantity of 0 or more, found `-5`."]);
    let ran = run_with(&["plan", "-f", "-", "--if", "set pod/a cpu to 1x"], &both()).code(2);
    assert!(!ran.err.contains(".."), "{}", ran.err);
    for change in ["relax pod/a nodeName", "relax pod/a nodeAffinity"] {
        let ran = run_with(&["plan", "-f", "-", "--if", change], &both()).code(2);
        ran.complains(&["can't be done: it "]);
    }
}

#[test]
fn devices_fail_with_a_document_of_their_own() {
    for args in [
        vec!["devices", "-o", "json"],
        vec!["devices", "-o", "json", "-f", "examples", "--where", "device.nope"],
        vec!["devices", "-o", "json", "-f", "no/such/file.yaml"],
    ] {
        let document = run(&args).code(2).json();
        assert_eq!(document["apiVersion"], "phalanx.dev/devices/v1", "{args:?}");
        assert_eq!(document["devices"], serde_json::json!([]), "{args:?}");
        assert_eq!(document["findings"][0]["severity"], "error", "{args:?}");
    }
}

#[test]
fn where_nothing_is_an_object_the_document_says_what_was_wrong() {
    let document = run_with(&["plan", "-f", "-", "-o", "json"], "a: [").code(2).json();
    let findings = document["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["line"] == 1), "{findings:#?}");
}

#[test]
fn a_syntax_error_is_shown_with_its_line() {
    let scratch = Scratch::new();
    let bad = scratch.file("bad.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: [a\n");
    let good = scratch.file("good.yaml", &both());
    let ran = run(&["plan", "-f", &good, "-f", &bad]).code(1);
    ran.says(&["bad.yaml:", "metadata: {name: [a", "default/a"]);
}

#[test]
fn a_wrong_type_is_shown_with_its_path() {
    let text =
        format!("{}---\n{}", both(), POD.replace("name: a", "name: b").replace("'1'", "[1]"));
    let ran = run_with(&["plan", "-f", "-"], &text).code(1);
    ran.says(&["spec.containers[0].resources.requests", "default/a"]);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    run(&["plan", "-f", "no/such/file.yaml"]).code(2).complains(&["no/such/file.yaml"]);
}

#[test]
fn directories_are_read_whole_and_in_order() {
    let scratch = Scratch::new();
    scratch.file("deep/er/node.yml", NODE);
    scratch.file("pod.json", r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"j","namespace":"default"},"spec":{"containers":[{"name":"main"}]}}"#);
    scratch.file("notes.txt", "not read");
    scratch.file(".hidden.yaml", "not: [read");
    run(&["plan", "-f", &scratch.path()]).code(0).says(&["default/j", "n1"]);
}

#[test]
fn an_empty_directory_is_said_to_be_empty() {
    let scratch = Scratch::new();
    run(&["plan", "-f", &scratch.path()]).code(2).complains(&["no .yaml, .yml or .json"]);
}

#[test]
fn unknown_kinds_are_named_once() {
    let other = "---\napiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}\n";
    let ran = run_with(&["plan", "-f", "-"], &format!("{}{other}{other}", both())).code(0);
    assert_eq!(ran.out.matches("Gadget").count(), 1, "{}", ran.out);
}

#[test]
fn colours_are_off_in_a_pipe_and_on_where_asked() {
    assert!(!run_with(&["plan", "-f", "-"], &both()).out.contains('\u{1b}'));
    assert!(run_with(&["plan", "-f", "-", "--color", "always"], &both()).out.contains('\u{1b}'));
    let never = run_with(&["plan", "-f", "-", "--color", "never"], &both());
    assert!(!never.out.contains('\u{1b}'));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let binary = assert_cmd::cargo::cargo_bin!("phalanx");
    let mut child = std::process::Command::new(binary)
        .current_dir(crate::common::root())
        .args(["devices", "-f", "examples", "-o", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().expect("standard error").read_to_string(&mut said).expect("text");
    assert!(child.wait().expect("an end").success(), "{said}");
    assert!(!said.contains("error") && !said.contains("panicked"), "{said}");
}

#[test]
fn what_the_answer_depends_on_is_printed() {
    let args = [
        "plan",
        "-f",
        "-",
        "-o",
        "json",
        "--now",
        "2026-11-28T10:00:00Z",
        "--kubernetes-version",
        "1.35",
        "--feature-gates",
        "DRADeviceTaints=true",
    ];
    let document = run_with(&args, &both()).code(0).json();
    let compat = &document["compat"];
    assert_eq!(compat["kubernetesVersion"], "1.35");
    assert_eq!(compat["featureGates"]["DRADeviceTaints"], true);
    assert!(compat["now"].as_str().unwrap().starts_with("2026-11-28T10:00:00"));
}

#[test]
fn where_no_time_was_read_or_given_none_is_printed() {
    let args = ["plan", "-f", "-", "-o", "json"];
    let document = run_with(&args, &both()).code(0).json();
    assert_eq!(document["compat"].get("now"), Some(&serde_json::Value::Null), "{document:#}");
    let dated = both().replace("name: a,", "name: a, creationTimestamp: 2026-11-28T10:00:00Z,");
    let document = run_with(&args, &dated).code(0).json();
    assert_eq!(document["compat"]["now"], "2026-11-28T10:00:00Z", "{dated}");
}

#[test]
fn strictness_is_refused_where_it_would_do_nothing() {
    for order in [&[][..], &["--device-order", "best"]] {
        let args = [&["plan", "-f", "-", "--strict-cel"], order].concat();
        let ran = run_with(&args, &both()).code(2);
        ran.complains(&["--strict-cel has an effect only with --device-order upstream"]);
    }
    let args = ["plan", "-f", "-", "--strict-cel", "--device-order", "upstream"];
    run_with(&args, &both()).code(0);
    run(&["plan", "--help"]).code(0).says(&["Only with `--device-order upstream`"]);
}

#[test]
fn only_pods_of_the_named_scheduler_are_decided() {
    let mine = POD.replace("name: a", "name: mine").replace("spec: {", "spec: {schedulerName: x, ");
    let text = format!("{}---\n{mine}", both());
    let args = ["plan", "-f", "-", "-o", "json", "--scheduler-name", "x"];
    let document = run_with(&args, &text).code(0).json();
    assert_eq!(document["pods"].as_array().unwrap().len(), 1);
    assert_eq!(pod(&document, "default/mine")["verdict"], "placed");
}

#[test]
fn a_list_as_kubectl_prints_it_is_read() {
    let text = r#"{"apiVersion":"v1","kind":"List","items":[
        {"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},
         "status":{"allocatable":{"cpu":"8","memory":"32Gi","pods":"110"}}},
        {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"default"},
         "spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"1"}}}]}}]}"#;
    run_with(&["plan", "-f", "-"], text).code(0).says(&["default/a", "n1"]);
}

#[test]
fn help_teaches_with_examples() {
    for command in [
        "plan",
        "why",
        "devices",
        "lint",
        "status",
        "diff",
        "mask",
        "dump",
        "controller",
        "completion",
    ] {
        run(&[command, "--help"]).code(0).says(&["Examples:", "phalanx "]);
    }
    run(&["--help"]).code(0).says(&["Exit codes:", "plan", "why", "devices"]);
    run(&["--version"]).code(0).says(&["phalanx "]);
}

#[test]
fn completion_scripts_name_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        run(&["completion", shell]).code(0).says(&["phalanx", "devices"]);
    }
}

#[test]
fn a_selector_that_does_not_compile_is_drawn_with_a_caret() {
    let claim = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: x}\n\
        ---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n\
        metadata: {name: c, namespace: default}\n\
        spec: {devices: {requests: [{name: r, exactly: {deviceClassName: x, selectors: \
        [{cel: {expression: 'device.drivr == \"a\"'}}]}}]}}\n";
    let ran = run_with(&["plan", "-f", "-"], &format!("{}{claim}", both())).code(1);
    ran.says(&["requests[0].exactly.selectors[0].cel.expression", "^", "drivr", "default/c"]);
}

#[test]
fn no_input_makes_it_panic() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:";
    let inputs = [
        String::new(),
        "\u{feff}".to_owned(),
        "---\n---\n".to_owned(),
        "[".repeat(20_000),
        "{\"a\":".repeat(20_000),
        "- ".repeat(5_000),
        "&a [*a, *a]".to_owned(),
        format!("{pod} {{priority: 99999999999999999999999}}"),
        format!("{pod} {{containers: {{a: b}}}}"),
        format!("{pod} {{containers: [{{name: c, resources: {{requests: {{cpu: 1e999}}}}}}]}}"),
        format!("{pod} {{containers: [{{name: c, resources: {{requests: {{memory: -5Gi}}}}}}]}}"),
        "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[1,null,{}".to_owned(),
        "apiVersion: v1\nkind: List\nitems: {}\n".to_owned(),
        "\u{1b}[2J: \u{0}".to_owned(),
    ];
    for input in inputs {
        for command in ["plan", "devices"] {
            let ran = run_with(&[command, "-f", "-", "-o", "json"], &input);
            assert!(ran.code <= 2 && !ran.err.contains("panicked"), "{input:.80}: {}", ran.err);
            ran.json();
        }
    }
}

#[test]
fn devices_that_no_node_sees_are_not_counted() {
    let slice = |node: &str, generation: u32| {
        format!(
            "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n\
             metadata: {{name: {node}-{generation}}}\n\
             spec: {{driver: a.example, nodeName: {node}, devices: [{{name: g{generation}}}], \
             pool: {{name: shared, generation: {generation}, resourceSliceCount: 1}}}}\n"
        )
    };
    let devices = |text: &str| {
        let json = run_with(&["plan", "-f", "-", "-o", "json"], text).json();
        json["summary"]["devices"].as_u64()
    };
    let gone = format!("{NODE}{}", slice("gone", 1));
    assert_eq!(devices(&gone), Some(0));
    // Each node goes by the newest slices that reach it.
    let two = format!("{NODE}---\n{}", NODE.replace("n1", "n2"));
    assert_eq!(devices(&format!("{two}{}{}", slice("n1", 1), slice("n2", 2))), Some(2));
    assert_eq!(devices(&format!("{NODE}{}{}", slice("n1", 1), slice("n1", 2))), Some(1));
}

#[test]
fn what_only_the_answer_finds_is_among_the_findings() {
    let text = format!(
        "{NODE}---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: n1-gpus}}\n\
         spec:\n  driver: a.example\n  nodeName: n1\n  pool: {{name: n1, generation: 1, resourceSliceCount: 1}}\n\
         \x20 devices: [{{name: g0, taints: [{{key: sick, effect: NoExecute, timeAdded: 2026-03-01T11:00:00Z}}]}}]\n\
         ---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: gpu}}\nspec: {{}}\n\
         ---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: c}}\n\
         spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: gpu, \
         tolerations: [{{key: sick, operator: Exists, effect: NoExecute, tolerationSeconds: 60}}]}}}}]}}}}\n\
         ---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\n\
         spec: {{containers: [{{name: c, image: x, resources: {{claims: [{{name: c}}]}}}}], \
         resourceClaims: [{{name: c, resourceClaimName: c}}]}}\n"
    );
    let evicted = "the pod would be evicted at once";
    for (now, found) in [("2026-03-01T12:00:00Z", true), ("2026-03-01T11:00:30Z", false)] {
        let args = ["plan", "-f", "-", "--now", now];
        assert_eq!(run_with(&args, &text).code(0).out.contains(evicted), found, "{now}");
        let json = run_with(&[&args[..], &["-o", "json"]].concat(), &text).json();
        assert_eq!(json["findings"].to_string().contains(evicted), found, "{now}: {json}");
    }
}
