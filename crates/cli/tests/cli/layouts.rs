//! Dumps as the tools that make them lay them out, with what goes wrong there: the same object in
//! several files and states, files that break off, byte order marks, line ends of Windows, warnings.

use crate::common::{NODE, Scratch, pod, run};
use crate::dumps::packed;

/// A node and pods as the API server's clients write them, with what a dump is known by.
fn node(name: &str, version: u32, cpu: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n  uid: node-{name}\n  \
         resourceVersion: \"{version}\"\nstatus:\n  allocatable: {{cpu: \"{cpu}\", memory: 32Gi, pods: \"110\"}}\n"
    )
}

fn pod_json(namespace: &str, name: &str, version: u32, rest: &str) -> String {
    format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "{name}", "namespace": "{namespace}",
        "uid": "{namespace}-{name}", "resourceVersion": "{version}"}}, "spec": {{{rest}
        "containers": [{{"name": "c", "resources": {{"requests": {{"cpu": "1"}}}}}}]}}}}"#
    )
}

fn list(kind: &str, items: &[String]) -> String {
    format!(r#"{{"kind": "{kind}List", "apiVersion": "v1", "items": [{}]}}"#, items.join(",\n"))
}

fn plan(path: &str, code: i32) -> serde_json::Value {
    run(&["plan", "-f", path, "-o", "json"]).code(code).json()
}

/// The sentences of the findings.
fn said(document: &serde_json::Value) -> Vec<&str> {
    let findings = document["findings"].as_array().expect("findings");
    findings.iter().map(|finding| finding["message"].as_str().expect("a sentence")).collect()
}

/// In a must-gather a pod stands in the list of its namespace and in a file of its own, which was
/// written later.
#[test]
fn a_must_gather_has_each_pod_twice_and_the_newer_state_counts() {
    let scratch = Scratch::new();
    let root = "must-gather.local.123/quay-io-openshift-release-dev-sha256-0a/";
    let all = "cluster-scoped-resources/core/nodes";
    scratch.file(&format!("{root}{all}/n1.yaml"), &node("n1", 5, "1"));
    scratch.file(&format!("{root}{all}/n2.yaml"), &node("n2", 5, "8").replace('\n', "\r\n"));
    let space = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team, uid: a-team}\n";
    scratch.file(&format!("{root}namespaces/team/team.yaml"), space);
    let waits = [pod_json("team", "a", 10, ""), pod_json("team", "b", 11, "")];
    let pods = list("Pod", &waits).replace('\n', " ");
    scratch.file(&format!("{root}namespaces/team/core/pods.yaml"), &format!("---\n{pods}\n"));
    let runs = pod_json("team", "a", 12, r#""nodeName": "n1","#).replace('\n', " ");
    scratch.file(&format!("{root}namespaces/team/pods/a/a.yaml"), &format!("---\n{runs}\n"));
    let same = pod_json("team", "b", 11, "").replace('\n', " ");
    scratch
        .file(&format!("{root}namespaces/team/pods/b/b.yaml"), &format!("\u{FEFF}---\n{same}\n"));
    scratch.file(&format!("{root}namespaces/team/pods/b/c/c/logs/current.log"), "no: [object");
    scratch.bytes(&format!("{root}audit_logs/kube-apiserver/a.log.gz"), b"no gzip");
    scratch.file(&format!("{root}version"), "openshift/must-gather\n4.20\n");
    let document = plan(&scratch.path(), 0);
    assert_eq!(document["pods"].as_array().unwrap().len(), 1, "{document:#}");
    assert_eq!(pod(&document, "team/b")["node"], "n2");
    assert!(!said(&document).iter().any(|told| told.contains("twice")), "{document:#}");
}

/// The JSON of `kubectl_get_-o_json_…` and the tables beside it, in folders of namespaces.
#[test]
fn a_sosreport_with_all_objects_is_read_and_its_tables_are_not() {
    let scratch = Scratch::new();
    let root = "sosreport-host-1-2026-11-30/sos_commands/kubernetes/cluster-info/";
    let get = "kubectl_--kubeconfig_.etc.kubernetes.admin.conf_get";
    let nodes = list(
        "Node",
        &[r#"{"metadata": {"name": "n1", "uid": "n"}, "status": {"allocatable":
        {"cpu": "8", "memory": "32Gi", "pods": "110"}}}"#
            .to_owned()],
    );
    // Standard error goes to the same file.
    let warned = format!("Warning: v1 ComponentStatus is deprecated in v1.19+\n{nodes}");
    scratch.file(&format!("{root}{get}_-o_json_nodes"), &warned);
    let table = "NAME   STATUS   ROLES    AGE   VERSION\nn1     Ready    <none>   3d    v1.37.2\n";
    scratch.file(&format!("{root}{get}_nodes"), table);
    let pods = list("Pod", &[pod_json("team", "a", 3, "")]);
    scratch.file(&format!("{root}team/{get}_-o_json_--namespace.team_pods"), &pods);
    let none =
        r#"{"apiVersion": "v1", "items": [], "kind": "List", "metadata": {"resourceVersion": ""}}"#;
    scratch.file(&format!("{root}team/{get}_-o_json_--namespace.team_jobs"), none);
    let document = plan(&scratch.path(), 0);
    assert_eq!(pod(&document, "team/a")["node"], "n1");
    assert!(said(&document).iter().any(|told| told.contains("a message of kubectl")));
    let oc = "sosreport-ocp/sos_commands/openshift/";
    scratch.file(&format!("{oc}cluster_resources/nodes/oc_get_nodes"), table);
    let one = pod_json("kube-x", "b", 3, "");
    scratch.file(&format!("{oc}namespaces/kube-x/pods/b.yaml"), &one.replace('\n', " "));
    assert_eq!(pod(&plan(&scratch.path(), 0), "kube-x/b")["node"], "n1");
}

/// `kubectl cluster-info dump --output-directory`: a file that breaks off costs what is behind the
/// break, and is an error.
#[test]
fn a_cluster_info_dump_that_breaks_off_keeps_what_is_before_the_break() {
    let scratch = Scratch::new();
    scratch.file(
        "nodes.json",
        &serde_json::json!({"kind": "NodeList", "apiVersion": "v1",
        "metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "n1", "uid": "n"},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}}}]})
        .to_string(),
    );
    let whole = list("Pod", &[pod_json("team", "a", 3, ""), pod_json("team", "b", 3, "")]);
    let (before, _) = whole.split_once(r#""uid": "team-b"#).unwrap();
    scratch.file("team/pods.json", before);
    scratch.file(
        "team/daemonsets.json",
        r#"{"kind": "DaemonSetList", "apiVersion": "apps/v1", "items": null}"#,
    );
    scratch.file("team/a/logs.txt", "==== START logs for container c of pod team/a ====\n");
    let document = plan(&scratch.path(), 1);
    assert_eq!(document["pods"].as_array().unwrap().len(), 1, "{document:#}");
    assert_eq!(pod(&document, "team/a")["node"], "n1");
    assert!(said(&document).iter().any(|told| told.contains("is not valid JSON")));
}

/// PowerShell's `>` writes UTF-16 with a mark and line ends of its own.
#[test]
fn what_windows_shell_wrote_is_read() {
    let scratch = Scratch::new();
    let text = format!("{NODE}---\n{}", pod_json("default", "ä", 1, "").replace('\n', " "));
    let text = text.replace('\n', "\r\n");
    let mark = "\u{FEFF}";
    for (name, bytes) in [
        ("le.yaml", utf16(&format!("{mark}{text}"), u16::to_le_bytes)),
        ("be.yaml", utf16(&format!("{mark}{text}"), u16::to_be_bytes)),
        ("le.yaml.gz", packed(&utf16(&format!("{mark}{text}"), u16::to_le_bytes))),
    ] {
        let document = plan(&scratch.bytes(name, &bytes), 0);
        assert_eq!(pod(&document, "default/ä")["node"], "n1", "{name}");
    }
    let found = utf16(&format!("{mark}{}", list("Pod", &[])), u16::to_le_bytes);
    scratch.bytes("dump/kubectl_get_pods", &found);
    scratch.file("dump/node.yaml", NODE);
    assert!(said(&plan(&format!("{}/dump", scratch.path()), 0)).is_empty());
}

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(bytes).collect()
}

/// `kubectl get pods -w -o json --output-watch-events`: the last state of each object.
#[test]
fn of_a_watch_the_last_states_count() {
    let event = |word: &str, object: String| {
        format!("{{\"type\":\"{word}\",\"object\":{}}}\n", object.replace('\n', ""))
    };
    let gone = event("ADDED", pod_json("team", "gone", 1, ""));
    let mut watch = event("ADDED", pod_json("team", "a", 2, ""));
    watch += &gone;
    watch += &event("ADDED", pod_json("team", "again", 3, ""));
    watch += &event("MODIFIED", pod_json("team", "a", 4, r#""nodeName": "n1","#));
    watch += &event("DELETED", pod_json("team", "gone", 5, ""));
    watch += &event("DELETED", pod_json("team", "again", 6, ""));
    watch += &event("ADDED", pod_json("team", "again", 7, "").replace("team-again", "team-new"));
    watch +=
        &event("BOOKMARK", r#"{"kind": "Pod", "apiVersion": "v1", "metadata": {}}"#.to_owned());
    let scratch = Scratch::new();
    let node = scratch.file("node.yaml", NODE);
    let file = scratch.file("watch.json", &watch);
    let document = run(&["plan", "-f", &node, "-f", &file, "-o", "json"]).code(0).json();
    assert_eq!(document["pods"].as_array().unwrap().len(), 1, "{document:#}");
    assert_eq!(pod(&document, "team/again")["node"], "n1");
    let ended =
        r#"{"kind":"Status","apiVersion":"v1","message":"too old resource version","code":410}"#;
    scratch.file("watch.json", &(watch + &event("ERROR", ended.to_owned())));
    let document = run(&["plan", "-f", &node, "-f", &file, "-o", "json"]).code(0).json();
    assert!(said(&document).iter().any(|told| told.contains("too old resource version")));
    let yaml = format!(
        "type: ADDED\nobject: {}---\n{gone}",
        pod_json("x", "y", 1, "").replace('\n', "") + "\n"
    );
    let file = scratch.file("watch.yaml", &yaml);
    let document = run(&["plan", "-f", &node, "-f", &file, "-o", "json"]).code(0).json();
    assert_eq!(document["pods"].as_array().unwrap().len(), 2, "{document:#}");
}

#[test]
fn what_kubectl_says_beside_the_objects_is_passed_over_and_said() {
    let scratch = Scratch::new();
    let pod_text = pod_json("default", "a", 1, "");
    let lines = "W1130 08:45:29.123456   77 warnings.go:70] policy/v1beta1 is deprecated\n\
                 Error from server (Forbidden): nodes is forbidden: User \"dev\" cannot list\n";
    for text in [
        format!("{lines}{pod_text}\nerror: the server doesn't have a resource type \"x\"\n"),
        format!("{lines}{NODE}{lines}---\n{lines}{}\n", pod_text.replace('\n', " ")),
    ] {
        let file = scratch.file("all.txt", &text);
        let node = scratch.file("node.yaml", NODE);
        let document = run(&["plan", "-f", &node, "-f", &file, "-o", "json"]).code(0).json();
        assert_eq!(pod(&document, "default/a")["node"], "n1");
        let told = said(&document);
        assert!(told.iter().any(|told| told.contains("could not get something")), "{told:?}");
    }
    scratch.file("values/values.yaml", "error: none\nreplicas: 2\n");
    scratch.file("values/node.yaml", NODE);
    let document = plan(&format!("{}/values", scratch.path()), 0);
    assert_eq!(said(&document).len(), 1, "{document:#}");
}

#[test]
fn an_archive_in_an_archive_is_said_to_be_left() {
    let scratch = Scratch::new();
    let inner = crate::dumps::archive(&[("n.yaml", NODE.as_bytes())]);
    let both = [("must/node.yaml", NODE.as_bytes()), ("must/sos.tar.gz", &packed(&inner)[..])];
    let path = scratch.bytes("must-gather.tar", &crate::dumps::archive(&both));
    let document = plan(&path, 0);
    let left = &document["findings"][0];
    assert!(left["file"].as_str().unwrap().ends_with("must-gather.tar/must/sos.tar.gz"), "{left}");
    assert!(left["message"].as_str().unwrap().contains("lies in another"), "{left}");
    assert_eq!(left["severity"], "warning");
    let alone = scratch.bytes("alone.tar", &crate::dumps::archive(&both[1..]));
    run(&["plan", "-f", &alone]).code(2).complains(&["but an archive", "unpack this one"]);
}
