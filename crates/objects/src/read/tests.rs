//! Every kind of bad input with its line, column, path and message, and that the rest is read.

use super::{Item, Problem, Severity, read};
use crate::object::Object;

/// What a text holds, a line each: `2 Node n1`, `4 unknown example.com/v1 Foo`, or
/// `7:12 spec.nodeName: message`.
fn items(bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    read("dump", bytes, &mut |item| {
        lines.push(match item {
            Item::Object(object, source) => format!("{} {}", source.line, object.reference()),
            Item::Gone(object, source) => format!("{} gone {}", source.line, object.reference()),
            Item::Unknown { api_version, kind, source } => {
                format!("{} unknown {api_version} {kind}", source.line)
            }
            Item::Problem(problem) => {
                assert_eq!(&*problem.file, "dump");
                let Problem { severity, line, column, path, message, .. } = *problem;
                let warning = if severity == Severity::Warning { "warning " } else { "" };
                format!("{warning}{line}:{column} {path}: {message}")
            }
        });
    });
    lines
}

fn problems(bytes: &[u8]) -> Vec<Problem> {
    let mut problems = Vec::new();
    read("dump", bytes, &mut |item| {
        if let Item::Problem(problem) = item {
            problems.push(*problem);
        }
    });
    problems
}

/// A node in one line of JSON, which is YAML too.
fn node(name: &str) -> String {
    format!(r#"{{"apiVersion": "v1", "kind": "Node", "metadata": {{"name": "{name}"}}}}"#)
}

const QUOTES: &str = "and a string is expected here; put it in quotes.";

#[test]
fn yaml_documents_are_read_one_by_one() {
    let text = "# a fleet\n---\napiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n--- # next\n\n---\n\
        apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team}\n...\n%YAML 1.2\n---\n\
        apiVersion: example.com/v1\nkind: Foo\n";
    let expected = ["3 Node n1", "10 Pod team/p", "16 unknown example.com/v1 Foo"];
    assert_eq!(items(text.as_bytes()), expected);
}

#[test]
fn a_mark_and_carriage_returns_are_no_content() {
    let yaml =
        "\u{FEFF}apiVersion: v1\r\nkind: Node\r\nmetadata:\r\n  name: n1\r\n---\r\nkind: Node\r\n";
    let missing = "6:1 apiVersion: The object has no `apiVersion`, so it is not known what it is.";
    assert_eq!(items(yaml.as_bytes()), ["1 Node n1", missing]);
    let json = format!("\u{FEFF}\r\n{}\r\n", node("n2"));
    assert_eq!(items(json.as_bytes()), ["2 Node n2"]);
    let wide = problems(b"\xFF\xFE{\0}\0");
    assert_eq!(wide[0].message, "The file is in UTF-16; save it as UTF-8.");
}

#[test]
fn lists_of_every_kind_are_read() {
    let yaml = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n\
        - metadata: {name: b}\nkind: NodeList\n";
    assert_eq!(items(yaml.as_bytes()), ["3 Node a", "6 Node b"]);
    let first = "kind: PodList\napiVersion: v1\nitems:\n- metadata: {name: a}\n";
    assert_eq!(items(first.as_bytes()), ["4 Pod a"]);
    let json = format!("{{\"items\": [\n{},\n{}\n], \"kind\": \"List\"}}\n", node("a"), node("b"));
    assert_eq!(items(json.as_bytes()), ["2 Node a", "3 Node b"]);
    let typed = r#"{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}"#;
    assert_eq!(items(typed.as_bytes()), ["1 Pod a"]);
    let bare = format!("[{},\n {}]", node("a"), node("b"));
    assert_eq!(items(bare.as_bytes()), ["1 Node a", "2 Node b"]);
    assert_eq!(items(b"kind: List\napiVersion: v1\nitems: []\n"), [""; 0]);
    let none = br#"{"kind":"PodList","apiVersion":"v1","items":null}"#;
    assert_eq!(items(none), [""; 0]);
    assert_eq!(items(b"kind: PodList\napiVersion: v1\nitems:\n"), [""; 0]);
    assert_eq!(items(b"kind: AllowList\napiVersion: x/v1\n"), ["1 unknown x/v1 AllowList"]);
    assert_eq!(items(b""), [""; 0]);
    assert_eq!(items(b"# nothing\n---\n"), [""; 0]);
}

#[test]
fn a_list_in_a_list_is_named() {
    let inner = r#"{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}"#;
    let nested = format!(r#"{{"kind":"List","apiVersion":"v1","items":[{inner}]}}"#);
    let yaml = format!("kind: List\napiVersion: v1\nitems:\n- {inner}\n");
    for nested in [nested, yaml] {
        let found = items(nested.as_bytes());
        assert!(found.len() == 1 && found[0].ends_with(" a"), "{found:?}");
    }
    let text = r#"{"kind":"List","apiVersion":"v1","items":[{"kind":"List","apiVersion":"v1"}]}"#;
    let expected = "1:43 : A List without items is not read; give its items.";
    assert_eq!(items(text.as_bytes()), [expected]);
}

#[test]
fn json_is_read_in_lines_and_joined() {
    let text = format!("{}\n{}{}\n---\n{}\n", node("a"), node("b"), node("c"), node("d"));
    assert_eq!(items(text.as_bytes()), ["1 Node a", "2 Node b", "2 Node c", "4 Node d"]);
}

#[test]
fn what_an_object_is_may_stand_anywhere_and_once() {
    let late = r#"{"metadata":{"name":"a"},"kind":"Node","apiVersion":"v1"}"#;
    assert_eq!(items(late.as_bytes()), ["1 Node a"]);
    let escaped = r#"{"apiVersion":"v1","kind":"N\u006fde","metadata":{"name":"a"}}"#;
    assert_eq!(items(escaped.as_bytes()), ["1 Node a"]);
    // The list says what its items are: before them, or behind them.
    let own = r#"{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}"#;
    let bare = r#"{"metadata":{"name":"p"}}"#;
    for list in [
        format!(r#"{{"kind":"PodList","apiVersion":"v1","items":[{own},{bare}]}}"#),
        format!(r#"{{"apiVersion":"v1","items":[{own},{bare}],"kind":"PodList"}}"#),
        format!(r#"{{"items":[{bare},{own}],"apiVersion":"v1","kind":"PodList"}}"#),
    ] {
        let mut found = items(list.as_bytes());
        found.sort();
        assert_eq!(found, ["1 Node n", "1 Pod p"], "{list}");
    }
    // What has items and is no list is an object.
    let other = r#"{"apiVersion":"x/v1","items":[{"key":"a"}],"kind":"Foo"}"#;
    assert_eq!(items(other.as_bytes()), ["1 unknown x/v1 Foo"]);
    let twice = "The key occurs twice in one map; remove one of the two.";
    for (key, value) in [("kind", "Pod"), ("apiVersion", "v2")] {
        let text = format!(r#"{},"{key}":"{value}"}}"#, own.trim_end_matches("}"));
        let text = format!("{}\n{}", text.replace(r#""n","#, r#""n"},"#), node("b"));
        let column = text.find(&format!("\"{value}\"}}")).unwrap() + 1;
        assert_eq!(
            items(text.as_bytes()),
            [format!("1:{column} {key}: {twice}"), "2 Node b".into()]
        );
    }
}

#[test]
fn a_place_far_down_is_found() {
    let mut text = String::new();
    for line in 0..200 {
        text.push_str(&node(&format!("n{line}")));
        text.push('\n');
        for broken in [63, 64, 127, 128] {
            if line == broken {
                text.push_str("{\"x\" 1}\n");
            }
        }
    }
    let places: Vec<_> = problems(text.as_bytes())
        .iter()
        .map(|problem| (problem.line, problem.column, problem.text.clone()))
        .collect();
    let expected = [65, 67, 131, 133].map(|line| (line, 6, "{\"x\" 1}".to_owned()));
    assert_eq!(places, expected);
}

#[test]
fn a_syntax_error_in_yaml_costs_its_document() {
    let text = "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n bad: [\n---\n\
        apiVersion: v1\nkind: Node\nmetadata:\n\tname: tab\n---\nx: \"open\n---\n\
        apiVersion: v1\nkind: Node\nmetadata: {name: n2}\n";
    let found = items(text.as_bytes());
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found[0].starts_with("5:2 : This is not valid YAML: "), "{found:?}");
    assert!(found[1].starts_with("10:2 : This is not valid YAML: a tab stands "), "{found:?}");
    assert!(found[2].starts_with("12:"), "{found:?}");
    assert_eq!(found[3], "14 Node n2");
    let problem = &problems(text.as_bytes())[0];
    assert_eq!((problem.text.as_str(), problem.text_column), (" bad: [", 2));
}

#[test]
fn a_type_error_names_path_place_and_object() {
    let yaml = "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\nspec:\n  taints:\n  - key: a\n\
        \x20   value: 1\n";
    let expected = format!("8:12 spec.taints[0].value: This is the integer 1, {QUOTES}");
    assert_eq!(items(yaml.as_bytes()), [expected]);
    let problem = &problems(yaml.as_bytes())[0];
    assert_eq!(problem.object.as_ref().unwrap().to_string(), "Node n1");
    assert_eq!(problem.text, "    value: 1");

    let json =
        "{\"kind\": \"List\", \"items\": [\n  {\"apiVersion\": \"v1\", \"kind\": \"Pod\",\n   \
        \"metadata\": {\"name\": \"ü\", \"labels\": {\"x/y\": 5}}},\n  NODE]}"
            .replace("NODE", &node("a"));
    let expected = format!("3:48 metadata.labels[\"x/y\"]: This is the integer 5, {QUOTES}");
    assert_eq!(items(json.as_bytes()), [expected.as_str(), "4 Node a"]);
}

#[test]
fn types_are_named_in_words() {
    let pod = |spec: &str| {
        let text = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {spec}\n");
        items(text.as_bytes()).remove(0)
    };
    let cases = [
        ("7", "4:7 spec: This is the integer 7, and a map of fields is expected here."),
        ("{tolerations: {}}", "4:21 spec.tolerations: This is a map, and a list is expected here."),
        (
            "{priority: high}",
            "4:18 spec.priority: This is the string \"high\", and an integer of 32 bits is expected here.",
        ),
        (
            "{priority: 5000000000}",
            "4:18 spec.priority: This is the integer 5000000000, and an integer of 32 bits is expected here.",
        ),
        (
            "{nodeSelector: {a: yes}}",
            "4:26 spec.nodeSelector.a: This is the truth value true, and a string is expected here; put it in quotes, for y, n, yes, no, on and off are truth values in YAML.",
        ),
        (
            "{nodeName: 1.5}",
            "4:18 spec.nodeName: This is the number 1.5, and a string is expected here; put it in quotes.",
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(pod(spec), expected, "{spec}");
    }
    let time = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, creationTimestamp: today}\n";
    let found = items(time.as_bytes());
    assert!(found[0].starts_with("3:40 metadata.creationTimestamp: "), "{found:?}");
}

#[test]
fn a_list_is_no_struct_by_the_order_of_its_fields() {
    let message = "1:49 metadata: This is a list, and a map of fields is expected here.";
    for text in [
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": ["a", "b"]}"#,
        r#"{apiVersion: v1,      kind: Pod,      metadata: ["a", "b"]}"#,
    ] {
        assert_eq!(items(text.as_bytes()), [message]);
    }
}

#[test]
fn nulls_are_absent_fields() {
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, creationTimestamp: null, labels: null}\n\
        spec: {containers: null, priority: ~, nodeSelector: {a: null}}\nstatus:\n";
    assert_eq!(items(text.as_bytes()), ["1 Pod p"]);
}

#[test]
fn a_quantity_that_does_not_parse_is_named() {
    let text = "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec:\n\
        \x20 driver: gpu.example.com\n  pool: {name: n1}\n  devices:\n  - name: gpu-0\n    capacity:\n\
        \x20     memory: {value: 80GB}\n";
    let expected = "10:23 spec.devices[0].capacity.memory.value: `80GB` is not a quantity; write a \
        number and, without a space, a suffix, such as 500m, 1.5 or 16Gi.";
    assert_eq!(items(text.as_bytes()), [expected]);
}

#[test]
fn numbers_are_read_as_kubernetes_tools_read_them() {
    let text = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus:\n  capacity: {a: 010, b: 0.1, \
        c: 2, d: 1e3, e: 18446744073709551615}\n";
    let mut found = None;
    read("dump", text.as_bytes(), &mut |item| found = Some(item));
    let Some(Item::Object(crate::Object::Node(node), _)) = found else { panic!("{found:?}") };
    let texts: Vec<String> = node.status.capacity.values().map(ToString::to_string).collect();
    assert_eq!(texts, ["8", "100m", "2", "1k", "18446744073709551615"]);
    for number in [".inf", "-.inf", ".nan", "1e400", "99999999999999999999999999999999999999999"] {
        let text = format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: n1}}\nstatus: {{capacity: {{cpu: {number}}}}}\n"
        );
        let found = items(text.as_bytes());
        assert!(found.len() == 1 && found[0].starts_with("4:26 "), "{number}: {found:?}");
    }
}

#[test]
fn a_key_that_occurs_twice_costs_its_object() {
    let message = "The key occurs twice in one map; remove one of the two.";
    let yaml = format!(
        "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  name: b\n---\n{}\n",
        node("c")
    );
    assert_eq!(
        items(yaml.as_bytes()),
        [format!("5:9 metadata.name: {message}"), "7 Node c".into()]
    );
    let list = "kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: a}, metadata: {}}\n\
        - {apiVersion: v1, kind: Node, metadata: {name: b}}\n";
    assert_eq!(items(list.as_bytes()), [format!("4:63 metadata: {message}"), "5 Node b".into()]);
    let json = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"c"},"status":{"capacity":{"cpu":"1","cpu":"2"}}}"#;
    assert_eq!(items(json.as_bytes()), [format!("1:96 status.capacity.cpu: {message}")]);
    let json = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"c","name":"d"}}"#;
    assert_eq!(items(json.as_bytes()), [format!("1:64 metadata.name: {message}")]);
}

#[test]
fn a_document_that_explodes_or_nests_too_deep_is_refused() {
    let message = "This document costs more to read than its size allows (aliases that multiply, or \
        values nested more than 48 deep), so it is not read.";
    let mut laughs = String::from("a: &a [x,x,x,x,x,x,x,x,x,x]\n");
    for (last, name) in ('a'..'j').zip('b'..='j') {
        let aliases = vec![format!("*{last}"); 10].join(",");
        laughs.push_str(&format!("{name}: &{name} [{aliases}]\n"));
    }
    let flow = format!("x: {}{}\n", "[".repeat(5000), "]".repeat(5000));
    let block: String = (0..300).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    for text in [laughs, flow, block] {
        let text = format!("{text}---\n{}\n", node("n"));
        let found = items(text.as_bytes());
        assert!(found.len() == 2 && found[0].ends_with(message), "{found:?}");
        assert!(found[1].ends_with("Node n"));
    }
    let json = format!("{{\"x\": {}{}}}\n{}", "[".repeat(100_000), "]".repeat(100_000), node("n"));
    let found = items(json.as_bytes());
    assert_eq!(found[0], "1:135 : This is not valid JSON: values are nested more than 128 deep.");
    assert_eq!(found[1], "2 Node n");
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let yaml = b"apiVersion: v1\nkind: No\0de\n---\nkind: N\xFFde\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\n";
    let found = items(yaml);
    assert!(found[0].starts_with("2:9 : This is not valid YAML: "), "{found:?}");
    assert_eq!(found[1], "4:8 : This byte is not UTF-8; the document cannot be read.");
    assert_eq!(found[2], "6 Node n1");
    for (bad, meaning) in [
        ("\0", "a control character"),
        ("\u{1}", "a control character"),
        ("\\q", "a backslash begins no escape"),
        ("\\ud800", "an escape for a character"),
    ] {
        let json = format!("{}\n{}", node(bad), node("n"));
        let found = items(json.as_bytes());
        assert!(
            found[0].starts_with("1:") && found[0].contains(&format!("not valid JSON: {meaning}")),
            "{bad:?} {found:?}"
        );
        assert_eq!(found[1], "2 Node n");
    }
    let mut json = node("x").into_bytes();
    json[55] = 0xFF;
    assert!(items(&json)[0].starts_with("1:"), "{:?}", items(&json));
}

#[test]
fn a_bad_item_of_a_json_list_costs_itself() {
    let text = format!(
        "{{\"kind\": \"List\", \"items\": [\n{},\n{{\"a\" 5}},\n17,\n{}\n{},\n{{\"apiVersion\": \"v1\" \"kind\": 1}},\n{}]}}",
        node("a"),
        node("b"),
        node("c"),
        node("d"),
    );
    let expected = [
        "2 Node a",
        "3:6 : This is not valid JSON: a colon is expected here.",
        "4:1 : This is not valid JSON: an object is expected here.",
        "5 Node b",
        "6:1 : This is not valid JSON: a comma is expected here.",
        "6 Node c",
        "7:21 : This is not valid JSON: a comma or a closing brace is expected here.",
        "8 Node d",
    ];
    assert_eq!(items(text.as_bytes()), expected);
}

#[test]
fn a_json_list_that_breaks_off_gives_what_is_whole() {
    let text = format!("{{\"kind\": \"List\", \"items\": [\n{},\n{{\"apiVersion\": \"v", node("a"));
    let expected = "3:16 : This is not valid JSON: a string begins here and does not end on its line. \
        The list is lost from here to the next line that begins with a brace.";
    assert_eq!(items(text.as_bytes()), ["2 Node a", expected]);
    let text = format!(
        "{{\"kind\": \"List\", \"items\": [\n{},\n{{\"a\": [}}, 1]\n{}",
        node("a"),
        node("b")
    );
    let found = items(text.as_bytes());
    assert_eq!(found[0], "2 Node a");
    assert!(found[1].starts_with("3:8 : This is not valid JSON: this bracket closes"), "{found:?}");
    assert_eq!(found[2], "4 Node b");
}

#[test]
fn a_bad_line_of_json_costs_itself() {
    let text = format!("{}\n{{\"kind\": \"Node}}\nrubbish\n{}\n", node("a"), node("b"));
    let expected =
        "2:10 : This is not valid JSON: a string begins here and does not end on its line.";
    assert_eq!(items(text.as_bytes()), ["1 Node a", expected, "4 Node b"]);
}

#[test]
fn what_is_no_object_is_named() {
    let expected = "1:1 : This is the string \"hello world\", and an object is expected here.";
    assert_eq!(items(b"hello world\n"), [expected]);
    let kind = "1:1 kind: The object has no `kind`, so it is not known what it is.";
    assert_eq!(items(b"apiVersion: v1\n"), [kind]);
    assert_eq!(items(b"{\"apiVersion\": \"v1\", \"kind\": \"\"}"), [kind]);
    let second = kind.replacen("1:1", "2:3", 1);
    assert_eq!(items(b"- x\n- y\n"), [kind.replacen("1:1", "1:3", 1), second]);
}

#[test]
fn a_long_line_is_shown_around_the_column() {
    let filler = "ü".repeat(1000);
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n","uid":"{filler}","namespace":5,"x":"{filler}"}}}}"#
    );
    let problem = &problems(text.as_bytes())[0];
    assert_eq!((problem.line, problem.path.as_str()), (1, "metadata.namespace"));
    let shown: String =
        problem.text.chars().skip(problem.text_column as usize - 1).take(2).collect();
    assert_eq!(shown, "5,", "{problem:?}");
    assert!(problem.text.len() <= 162, "{}", problem.text.len());
}

#[test]
fn what_the_api_server_would_refuse_is_dropped() {
    let cases = [
        ("v1", "Node", "metadata: {}", "3:11 metadata.name: The name is missing."),
        (
            "v1",
            "Pod",
            "metadata: {name: p}\nspec: {containers: [{name: c, resources: {requests: {cpu: -1}}}]}",
            "4:59 spec.containers[0].resources.requests.cpu: The quantity is -1; it cannot be negative.",
        ),
        (
            "batch/v1",
            "Job",
            "metadata: {name: j}\nspec: {parallelism: -2}",
            "4:21 spec.parallelism: The count is -2; it cannot be negative.",
        ),
        (
            "resource.k8s.io/v1",
            "ResourceClaim",
            "metadata: {name: c}\nspec: {devices: {requests: [{name: r, exactly: {count: -1}}]}}",
            "4:56 spec.devices.requests[0].exactly.count: The count is -1; it cannot be negative.",
        ),
        (
            "resource.k8s.io/v1",
            "ResourceSlice",
            "metadata: {name: s}\nspec: {driver: d, pool: {resourceSliceCount: 1}, nodeName: n1}",
            "4:25 spec.pool.name: The name is missing.",
        ),
        (
            "resource.k8s.io/v1alpha3",
            "DeviceTaintRule",
            "metadata: {name: t}\nspec: {deviceSelector: {deviceClassName: gpu}}",
            "4:24 spec.deviceSelector: The rule selects by class or by CEL, which v1alpha3 alone could; select by driver, pool and device instead.",
        ),
    ];
    for (version, kind, rest, expected) in cases {
        let text = format!("apiVersion: {version}\nkind: {kind}\n{rest}\n");
        assert_eq!(items(text.as_bytes()), [expected], "{kind}");
    }
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: t}\n\
        spec: {resourceClaims: [{name: gpu}]}\n";
    let expected = "4:25 spec.resourceClaims[0]: The claim names neither `resourceClaimName` nor \
        `resourceClaimTemplateName`; name exactly one.";
    assert_eq!(items(text.as_bytes()), [expected]);
    let text = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\n\
        spec: {devices: {requests: [{name: r}]}}\n";
    let warning = "warning 4:29 spec.devices.requests[0]: The request has neither `exactly` nor \
        `firstAvailable`, so no device can meet it; in resource.k8s.io/v1 the class and the count \
        stand under `exactly`.";
    assert_eq!(items(text.as_bytes()), [warning, "1 ResourceClaim c"]);
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\n";
    assert_eq!(items(text.as_bytes()), ["1 Pod without a name"]);
    let text = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, namespace: x}\n";
    let warning = "warning 3:33 metadata.namespace: The object belongs to no namespace; the namespace x is ignored.";
    assert_eq!(items(text.as_bytes()), [warning, "1 Node n1"]);
}

#[test]
fn what_is_read_and_looks_wrong_is_said() {
    let said = |kind: &str, spec: &str| {
        let version = if kind == "Pod" { "v1" } else { "resource.k8s.io/v1" };
        items(
            format!(
                "apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\nspec: {{{spec}}}\n"
            )
            .as_bytes(),
        )
    };
    let cases = [
        (
            "ResourceSlice",
            "driver: d, pool: {name: p, resourceSliceCount: 1}",
            "gives no node",
            "which nodes it is of, so that no node sees",
        ),
        (
            "ResourceSlice",
            "driver: d, pool: {name: p, resourceSliceCount: 1}, nodeName: n1, allNodes: true",
            "two ways",
            "nodeName and allNodes",
        ),
        ("ResourceSlice", "driver: d, pool: {name: p}, nodeName: n1", "no count", "has 0 slices"),
        (
            "ResourceClaim",
            "devices: {requests: [{name: r, exactly: {allocationMode: All, count: 2}}]}",
            "all with a count",
            "the count 2 means nothing",
        ),
        (
            "ResourceClaim",
            "devices: {requests: [{name: r, exactly: {}}, {name: r, exactly: {}}]}",
            "twice",
            "Two requests of the claim are named r",
        ),
        (
            "ResourceClaim",
            "devices: {requests: [{name: r, exactly: {}}], constraints: [{requests: [r, s], matchAttribute: a/b}]}",
            "unknown",
            "names the request s",
        ),
        (
            "Pod",
            "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Inn, values: [b]}]}]}}}",
            "operator",
            "The operator Inn is not known",
        ),
    ];
    for (kind, spec, why, expected) in cases {
        let found = said(kind, spec);
        assert_eq!(found.len(), 2, "{why}: {found:?}");
        assert!(found[0].starts_with("warning") && found[0].contains(expected), "{found:?}");
    }
    let list = "devices: {requests: [{name: r, firstAvailable: [{name: a}]}], constraints: [{requests: [r/a], matchAttribute: a/b}]}";
    assert_eq!(said("ResourceClaim", list), ["1 ResourceClaim x"]);
}

#[test]
fn a_field_that_is_nearly_a_known_one_is_named() {
    let pod = |uid: &str, spec: &str| {
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, uid: '{uid}'}}\nspec: {{{spec}}}\n"
        );
        items(text.as_bytes())
    };
    let error = "4:19 spec.containrs: The field `containrs` is not known here; write `containers` if \
        that is meant. `kubectl apply` would refuse the object, so it is left out.";
    assert_eq!(pod("", "containrs: [{name: a}]"), [error]);
    let in_json = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containrs": []}}"#;
    assert!(items(in_json.as_bytes())[0].contains("write `containers`"));
    assert_eq!(pod("u-1", "containrs: [{name: a}]"), ["1 Pod p"], "the API server made it");
    let known = "hostIPC: true, hostPID: true, resources: {}, workloadRef: {}";
    assert_eq!(pod("", known), ["1 Pod p"]);
    let cases = [
        ("anything: 1", "the spec of a pod has none"),
        ("resourceClaim: []", "`resourceClaims`"),
        ("containers: [{name: a, resource: {}}]", "spec.containers[0].resource: "),
        ("containers: [{resources: {request: {}}}]", "`requests`"),
        ("nodeselector: {a: b}", "`nodeSelector`"),
    ];
    for (spec, part) in cases {
        let found = pod("", spec);
        assert!(found.len() == 1 && found[0].contains(part), "{spec}: {found:?}");
    }
    let text = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t}\n\
        spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClass: gpu}}], constraint: []}}}\n";
    let found = items(text.as_bytes());
    assert!(found.len() == 2 && found[1].contains("write `constraints` if"), "{found:?}");
    let claim = |version: &str| {
        let text = format!(
            "apiVersion: resource.k8s.io/{version}\nkind: ResourceClaim\nmetadata: {{name: t}}\n\
             spec: {{devices: {{requests: [{{name: r, deviceClassName: gpu}}]}}}}\n"
        );
        items(text.as_bytes())
    };
    assert_eq!(claim("v1beta1"), ["1 ResourceClaim t"]);
    let found = claim("v1");
    assert!(found.len() == 1 && found[0].contains("`exactly` of a request has it"), "{found:?}");
}

/// Kubernetes' own kinds of groups have no other fields; those of others may have more in another
/// version, and only what is nearly a known one is told.
#[test]
fn fields_of_groups_and_of_custom_workloads_are_known() {
    let found = |version: &str, kind: &str, spec: &str| {
        let text = format!(
            "apiVersion: {version}\nkind: {kind}\nmetadata: {{name: g}}\nspec: {{{spec}}}\n"
        );
        items(text.as_bytes())
    };
    let (beta, alpha) = ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3");
    let ray = "ray.io/v1";
    let cases = [
        (
            beta,
            "PodGroup",
            "schedulingPolicy: {gang: {minimumCount: 2}}",
            "`gang` has only `minCount`.",
        ),
        (alpha, "PodGroup", "schedulingPolicy: {gang: {minCont: 2}}", "write `minCount`"),
        (beta, "PodGroup", "minCount: 2", "`gang` has it, the spec of a PodGroup has not"),
        (
            beta,
            "PodGroup",
            "schedulingConstraints: {topologies: []}",
            "`schedulingConstraints` has only `topology`.",
        ),
        (
            alpha,
            "CompositePodGroup",
            "schedulingPolicy: {gang: {minCount: 2}}",
            "only `minGroupCount`",
        ),
        (
            beta,
            "Workload",
            "podGroupTemplates: [{name: a, policy: {}}]",
            "a template of a PodGroup has none",
        ),
        ("scheduling.volcano.sh/v1beta1", "PodGroup", "minMembers: 2", "write `minMember`"),
        ("batch.volcano.sh/v1alpha1", "Job", "minAvailabel: 2", "write `minAvailable`"),
        ("batch.volcano.sh/v1alpha1", "Job", "tasks: [{replica: 2}]", "write `replicas`"),
        (ray, "RayCluster", "workerGroupSpecs: [{replica: 2}]", "write `replicas`"),
        (ray, "RayJob", "rayClusterSpec: {headGroupSpecs: {}}", "write `headGroupSpec`"),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainer: {numNode: 2}", "write `numNodes`"),
        (
            "grove.io/v1alpha1",
            "PodCliqueSet",
            "template: {cliques: [{name: a, spec: {replica: 2}}]}",
            "write `replicas`",
        ),
    ];
    for (version, kind, spec, part) in cases {
        let found = found(version, kind, spec);
        assert!(found.len() == 1 && found[0].contains(part), "{kind} {spec}: {found:?}");
    }
    let others = [
        (beta, "PodGroup", "schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: {all: {}}"),
        ("scheduling.k8s.io/v1alpha2", "PodGroup", "podGroupTemplateRef: {}"),
        (
            "batch.volcano.sh/v1alpha1",
            "Job",
            "somethingElse: 2, tasks: [{replicas: 1, another: 1}]",
        ),
        ("scheduling.volcano.sh/v1beta1", "PodGroup", "minMember: 2, another: 2"),
    ];
    for (version, kind, spec) in others {
        assert_eq!(found(version, kind, spec), [format!("1 {kind} g")], "{spec}");
    }
}

#[test]
fn rules_about_other_pods_are_read() {
    let text = "
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  hostNetwork: true
  containers: [{ports: [{containerPort: 80, hostPort: 8080, hostIP: 10.0.0.1, protocol: UDP}]}]
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, nodeTaintsPolicy: Honor}
  volumes: [{name: a, emptyDir: {}}, {name: b, persistentVolumeClaim: {claimName: c}}]
  affinity:
    podAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 5, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {a: b}}}}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: host, namespaceSelector: {}, matchLabelKeys: [a]}
";
    let mut pods = Vec::new();
    read("dump", text.as_bytes(), &mut |item| pods.push(item));
    let [Item::Object(Object::Pod(pod), _)] = pods.as_slice() else { panic!("{pods:?}") };
    let spec = &pod.spec;
    assert!(spec.host_network);
    assert_eq!(spec.volumes.placed.len(), 1);
    let port = &spec.containers[0].ports[0];
    assert_eq!((port.host_port, &*port.host_ip, &*port.protocol), (8080, "10.0.0.1", "UDP"));
    let spread = &spec.topology_spread_constraints[0];
    assert_eq!(spread.when_unsatisfiable.as_str(), "ScheduleAnyway");
    assert_eq!(spread.node_taints_policy.as_ref().map(|p| p.as_str()), Some("Honor"));
    assert_eq!(spread.node_affinity_policy, None);
    let affinity = spec.affinity.as_ref().expect("affinity");
    let near = &affinity.pod_affinity.preferred_during_scheduling_ignored_during_execution[0];
    assert_eq!((near.weight, &*near.pod_affinity_term.topology_key), (5, "zone"));
    let far = &affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution[0];
    assert_eq!(far.namespace_selector, Some(crate::core::LabelSelector::default()));
    assert_eq!((&far.label_selector, far.match_label_keys.len()), (&None, 1));
}

#[test]
fn our_own_objects_are_read_strictly() {
    let topology = |spec: &str| {
        let text = format!(
            "apiVersion: phalanx.dev/v1alpha1\nkind: NodeTopology\nmetadata: {{name: x}}\nspec: {{{spec}}}\n"
        );
        items(text.as_bytes())
    };
    assert_eq!(
        topology("source: assumed, islands: [{name: i, fabric: nvswitch, members: [a, b]}]"),
        ["1 NodeTopology x"]
    );
    let cases = [
        ("island: []", "4:16 spec.island: The field `island` is not known here; the fields are "),
        (
            "islands: [{name: i, fabric: nvswich, members: [a]}]",
            "4:36 spec.islands[0].fabric: `nvswich` is not known here; write one of nvswitch, bridge, ",
        ),
        (
            "islands: [{name: i, members: [a, a]}]",
            "4:41 spec.islands[0].members[1]: The member a is named twice.",
        ),
        (
            "links: [{a: x, b: x, links: 4}]",
            "4:26 spec.links[0].b: The link leads from x to itself.",
        ),
        (
            "links: [{a: x, b: z}]",
            "4:16 spec.links[0]: The link has neither `class` nor `links`; say what it is.",
        ),
        (
            "links: [{a: x, b: z, class: NV}]",
            "4:36 spec.links[0].class: `NV` is not known here; write one of NVSwitch, NVL, PIX, PXB, PHB, NODE, SYS.",
        ),
    ];
    for (spec, expected) in cases {
        let found = topology(spec);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{spec}: {found:?}");
    }
}

#[test]
fn a_field_that_a_workload_does_not_have_is_named() {
    let said = |kind: &str, version: &str, rest: &str| -> Vec<String> {
        let text = format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n{rest}\n");
        let all = items(text.as_bytes());
        all.into_iter().filter(|line| line.contains("not known here")).collect()
    };
    let cases = [
        ("Deployment", "apps/v1", "spec: {replica: 2}", "write `replicas`"),
        ("Deployment", "apps/v1", "spec: {containers: []}", "the spec of a pod has it"),
        ("Deployment", "apps/v1", "spec: {shape: round}", "a Deployment has none"),
        ("Deployment", "apps/v1", "spec: {template: {metadta: {}}}", "write `metadata`"),
        ("Job", "batch/v1", "spec: {paralellism: 2}", "write `parallelism`"),
        ("CronJob", "batch/v1", "spec: {jobTemplate: {spec: {completion: 2}}}", "`completions`"),
        (
            "JobSet",
            "jobset.x-k8s.io/v1alpha2",
            "spec: {replicatedJobs: [{name: w, replica: 2}]}",
            "write `replicas`",
        ),
        (
            "PyTorchJob",
            "kubeflow.org/v1",
            "spec: {pytorchReplicaSpecs: {Worker: {replica: 2}}}",
            "write `replicas`",
        ),
    ];
    for (kind, version, rest, part) in cases {
        let all = said(kind, version, rest);
        assert!(all.len() == 1 && all[0].contains(part), "{rest}: {all:?}");
    }
    assert_eq!(said("JobSet", "jobset.x-k8s.io/v1alpha2", "spec: {shape: round}").len(), 0);
    assert_eq!(said("Job", "batch/v1", "spec: {parallelism: 2}").len(), 0);
}

#[test]
fn a_watch_tells_what_came_and_what_went() {
    let json = r#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{}}}
{"type":"DELETED","object":{"metadata":{"name":"b"},"kind":"Pod","apiVersion":"v1","spec":{}}}
{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1"}}
{"type":"ERROR","object":{"kind":"Status","message":"too old"}}
{"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"c"},"spec":{}},"type":"MODIFIED"}
{"type":"SHRUNK","object":{"kind":"Pod","apiVersion":"v1"}}
"#;
    let error = "The watch ended here with an error (too old); what changed afterwards is not in the \
                 input.";
    let told = format!("warning 4:1 object: {error}");
    let none = "6:1 kind: The object has no `kind`, so it is not known what it is.";
    let all = ["1 Pod a", "2 gone Pod b", &told, "5 Pod c", none];
    assert_eq!(items(json.as_bytes()), all);
    let yaml: String = json.lines().map(|line| format!("{line}\n---\n")).collect();
    let in_yaml = items(yaml.as_bytes());
    assert_eq!(in_yaml.len(), all.len(), "{in_yaml:?}");
}

#[test]
fn what_the_api_server_refused_is_missing() {
    let json = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "Unauthorized", "code": 401}"#;
    let told = "The API server refused what it was asked for here (code 401): Unauthorized. What it would \
                have given is missing from the input; ask for it again with the rights that it takes.";
    let first = format!("1:1 : {told}");
    let other = node("n");
    assert_eq!(items(format!("{json}\n{other}").as_bytes()), [first.clone(), "2 Node n".into()]);
    let list = format!(r#"{{"kind": "List", "apiVersion": "v1", "items": [{json}, {other}]}}"#);
    assert_eq!(items(list.as_bytes()).len(), 2);
    let yaml = "apiVersion: v1\nkind: Status\nstatus: Failure\nmessage: Unauthorized\ncode: 401\n";
    assert_eq!(items(yaml.as_bytes()), [first]);
    let done = json.replace("Failure", "Success");
    assert_eq!(items(done.as_bytes()), ["1 unknown v1 Status"]);
    let gone = json.replace("Unauthorized", "Expired").replace("401", "410");
    let told = "The API server answered with an error here (code 410): Expired. What it was asked for is \
                missing from the input; ask for it again.";
    assert_eq!(items(gone.as_bytes()), [format!("1:1 : {told}")]);
}

#[test]
fn what_is_no_yaml_is_said_in_our_words() {
    let all = [
        ("a: b: c", "a colon stands where no key ends"),
        ("a: \"b", "a quote opens and is not closed"),
        ("a: [b", "a bracket or a brace opens"),
        ("a: {b: 1", "a bracket or a brace opens"),
        ("a: *b", "an alias (*name) stands before its anchor"),
        ("a: 1\n  b: 2", "look at the indentation"),
        ("a: @b", "the character @ can't stand here"),
        ("a: \"\\q\"", "a backslash begins no escape"),
        ("a: b]\n]", "a bracket or a brace"),
    ];
    for (text, meaning) in all {
        let found = items(text.as_bytes()).join("\n");
        assert!(found.contains(meaning), "{text}: {found}");
    }
}

#[test]
fn what_is_said_beside_the_objects_is_passed_over() {
    let pod = "{\"kind\": \"Pod\", \"apiVersion\": \"v1\", \"metadata\": {\"name\": \"a\"}}\n";
    let remark = "This line is a message of kubectl and no object; it is passed over.";
    for text in [format!("Warning: old\n\n{pod}"), format!("Warning: old\n---\n{pod}")] {
        assert_eq!(items(text.as_bytes()), [format!("warning 1:1 : {remark}"), "3 Pod a".into()]);
    }
    let text = format!("{pod}I0101 00:00:00.5 1 a.go:1] here\n{pod}");
    let told = items(text.as_bytes());
    assert_eq!(told, ["1 Pod a".into(), format!("warning 2:1 : {remark}"), "3 Pod a".into()]);
}
