//! Dumps as tools leave them: folders, archives, packed files, and what lies beside the objects.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::common::{NODE, POD, Scratch, pod, run, run_with, run_with_bytes};

pub(crate) fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).expect("bytes in memory");
    encoder.finish().expect("bytes in memory")
}

pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        // As it is: who writes to disk would refuse some.
        let field = &mut header.as_ustar_mut().expect("a header of ustar").name;
        field[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, *bytes).expect("bytes in memory");
    }
    builder.into_inner().expect("bytes in memory")
}

const NODES: &str = r#"{"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": [
  {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}}}]}"#;

#[test]
fn a_cluster_info_dump_is_read_as_it_is() {
    let scratch = Scratch::new();
    scratch.file("nodes.json", NODES);
    scratch.file(
        "team/pods.json",
        r#"{"kind": "PodList", "apiVersion": "v1", "items": [
          {"metadata": {"name": "a", "namespace": "team"}, "spec": {"containers": [{"name": "c"}]}}]}"#,
    );
    scratch.file("team/events.json", r#"{"kind": "EventList", "apiVersion": "v1", "items": null}"#);
    scratch.file("team/a/logs.txt", "{\"kind\": \"Pod\"}: not an object");
    let document = run(&["plan", "-f", &scratch.path(), "-o", "json"]).code(0).json();
    assert_eq!(pod(&document, "team/a")["node"], "n1");
}

#[test]
fn a_cluster_info_dump_may_be_one_text_with_logs_between_its_lists() {
    let pods = r#"{"kind": "PodList", "apiVersion": "v1", "items": [
      {"metadata": {"name": "a", "namespace": "team"}, "spec": {"containers": [{"name": "c"}]}}]}"#;
    let text = format!(
        "{NODES}\n==== START logs for container c of pod team/a ====\n{{\"level\": \"info\"\n\
         ]]\n==== END logs for container c of pod team/a ====\n{pods}\n{{\"kind\": \"Pod\"}}\n"
    );
    let ran = run_with(&["plan", "-f", "-", "-o", "json"], &text).code(1);
    let document = ran.json();
    assert_eq!(pod(&document, "team/a")["node"], "n1");
    let findings = document["findings"].as_array().unwrap();
    // What is wrong behind the logs is where it stands in the text.
    assert_eq!((findings.len(), &findings[0]["line"]), (1, &9.into()), "{findings:#?}");
}

#[test]
fn a_must_gather_is_read_as_it_is() {
    let scratch = Scratch::new();
    let root = "quay-io-openshift/";
    scratch.file(&format!("{root}cluster-scoped-resources/core/nodes/n1.yaml"), NODE);
    let pod_text = format!("---\n{}", POD.replace("default", "team"));
    scratch.file(&format!("{root}namespaces/team/pods/a/a.yaml"), &pod_text);
    scratch.file(&format!("{root}namespaces/team/pods/a/main/main/logs/current.log"), "ok");
    scratch.file(&format!("{root}monitoring/alerts.json"), r#"{"status": "success", "data": []}"#);
    scratch.file(&format!("{root}timestamp"), "2026-11-28 10:00:00");
    scratch.file("event-filter.html", "<html>");
    let ran = run(&["plan", "-f", &scratch.path(), "-o", "json"]).code(0);
    let document = ran.json();
    assert_eq!(pod(&document, "team/a")["node"], "n1");
    let findings = document["findings"].as_array().unwrap();
    let left = findings.iter().find(|finding| finding["severity"] == "info").unwrap();
    assert!(left["file"].as_str().unwrap().ends_with("monitoring/alerts.json"), "{left}");
    assert_eq!(
        left["message"],
        "1 of 3 files in directories holds no object of Kubernetes and is left out."
    );
}

#[test]
fn a_sosreport_names_files_by_their_command_and_keeps_links_that_lead_nowhere() {
    let scratch = Scratch::new();
    let commands = "sos_commands/kubernetes/cluster-info/";
    let name = "kubectl_--kubeconfig_.etc.kubernetes.admin.conf_get_-o_json_nodes";
    scratch.file(&format!("{commands}{name}"), NODES);
    scratch.file(&format!("{commands}kubectl_get_pods_-A"), "NAMESPACE  NAME\nteam  a\n");
    scratch.file("pod.yaml", POD);
    std::os::unix::fs::symlink("/no/such/target.yaml", format!("{}/gone.yaml", scratch.path()))
        .expect("a link");
    let document = run(&["plan", "-f", &scratch.path(), "-o", "json"]).code(0).json();
    assert_eq!(pod(&document, "default/a")["node"], "n1");
}

#[test]
fn packed_files_are_unpacked_wherever_they_are() {
    let both = format!("{NODE}---\n{POD}");
    run_with_bytes(&["plan", "-f", "-"], &packed(both.as_bytes())).code(0).says(&["default/a"]);
    let scratch = Scratch::new();
    let named = scratch.bytes("nodes.yaml.gz", &packed(NODE.as_bytes()));
    scratch.bytes("pods/pod.yaml.gz", &packed(POD.as_bytes()));
    scratch.bytes("pods/core.log.gz", b"no gzip at all");
    run(&["plan", "-f", &named, "-f", &format!("{}/pods", scratch.path())]).code(0).says(&["n1"]);
    // What is wrong in a packed file is shown as in any other.
    let bad = scratch.bytes("bad.yaml.gz", &packed(b"apiVersion: v1\nkind: Pod\nspec: [a\n"));
    run(&["plan", "-f", &named, "-f", &bad]).code(1).says(&["bad.yaml.gz:", "spec: [a"]);
}

#[test]
fn a_packed_file_that_breaks_off_is_an_error_where_it_is_named_and_a_finding_where_it_lies() {
    let scratch = Scratch::new();
    let whole = packed(POD.repeat(50).as_bytes());
    let broken = scratch.bytes("in/broken.yaml.gz", &whole[..whole.len() / 2]);
    scratch.file("in/node.yaml", NODE);
    run(&["plan", "-f", &broken]).code(2).complains(&["broken.yaml.gz can't be read"]);
    let ran = run(&["plan", "-f", &format!("{}/in", scratch.path())]).code(1);
    ran.says(&["broken.yaml.gz: This can't be read"]);
}

#[test]
fn an_archive_is_read_as_the_directory_that_it_holds() {
    let pod_text = POD.replace("name: a", "name: b");
    let files: [(&str, &[u8]); 5] = [
        ("./dump/pods.yaml", pod_text.as_bytes()),
        ("./dump/nodes.json", NODES.as_bytes()),
        ("./dump/.hidden.yaml", b"not: [read"),
        ("./dump/notes.txt", b"not read"),
        ("./dump/values.yaml", b"replicas: 3\n"),
    ];
    let tar = archive(&files);
    let scratch = Scratch::new();
    for (name, bytes) in [("dump.tar", tar.clone()), ("dump.tar.gz", packed(&tar))] {
        let path = scratch.bytes(name, &bytes);
        let document = run(&["plan", "-f", &path, "-o", "json"]).code(0).json();
        assert_eq!(pod(&document, "default/b")["node"], "n1", "{name}");
        let file = document["findings"][0]["file"].as_str().unwrap().to_owned();
        assert!(file.ends_with(&format!("{name}/dump/values.yaml")), "{file}");
    }
    let none = scratch.bytes("none.tar", &archive(&[("a.txt", b"a")]));
    run(&["plan", "-f", &none]).code(2).complains(&["the archive holds no .yaml"]);
}

#[test]
fn a_member_of_an_archive_may_lie_anywhere() {
    let files: [(&str, &[u8]); 4] = [
        ("/dump/pods.yaml", POD.as_bytes()),
        ("../../nodes.json", NODES.as_bytes()),
        ("/.hidden/x.yaml", b"not: [read"),
        ("../dump/bad.yaml", b"kind: [Pod"),
    ];
    let scratch = Scratch::new();
    let path = scratch.bytes("abs.tar", &archive(&files));
    let ran = run(&["plan", "-f", &path, "-o", "json"]).code(1);
    let document = ran.json();
    assert_eq!(pod(&document, "default/a")["node"], "n1");
    let findings = document["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 1, "{findings:?}");
    let file = findings[0]["file"].as_str().expect("a file");
    assert!(file.ends_with("abs.tar/../dump/bad.yaml"), "{file}");
}

#[test]
fn lines_may_end_in_a_carriage_return_alone() {
    let scratch = Scratch::new();
    let text = format!("{NODE}---\n{POD}").replace('\n', "\r");
    let path = scratch.file("old.yaml", &text);
    let document = run(&["plan", "-f", &path, "-o", "json"]).code(0).json();
    assert_eq!(pod(&document, "default/a")["node"], "n1");
    let path = scratch.file("bad.yaml", &format!("{text}---\rkind: [Pod\r"));
    let lines = text.matches('\r').count() + 2;
    let ran = run(&["plan", "-f", &path]).code(1);
    ran.says(&["This is not valid YAML: ", &format!("bad.yaml:{lines}:")]);
}

#[test]
fn what_the_api_server_refused_is_an_error() {
    let scratch = Scratch::new();
    let status = r#"{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "pods is forbidden", "reason": "Forbidden", "code": 403}"#;
    scratch.file("pods.json", status);
    let path = scratch.file("nodes.json", NODES);
    let ran = run(&["plan", "-f", &scratch.path()]).code(1);
    ran.says(&["pods.json", "The API server refused", "(code 403): pods is forbidden."]);
    let alone = path.replace("nodes.json", "pods.json");
    run(&["plan", "-f", &alone]).code(2).complains(&["pods is forbidden", "holds no object"]);
}

#[test]
fn a_file_of_a_directory_that_holds_objects_has_each_fault_told() {
    let scratch = Scratch::new();
    scratch.file("node.yaml", NODE);
    scratch.file("mixed.yaml", &format!("replicas: 3\n---\n{POD}"));
    run(&["plan", "-f", &scratch.path()]).code(1).says(&["mixed.yaml:1", "default/a"]);
    let named = scratch.file("values.yaml", "replicas: 3\n");
    run(&["plan", "-f", &named]).code(2).complains(&["has no `kind`"]);
}

#[test]
fn what_is_packed_twice_is_read_and_what_is_packed_otherwise_is_named() {
    let both = format!("{NODE}---\n{POD}");
    let twice = packed(&packed(both.as_bytes()));
    run_with_bytes(&["plan", "-f", "-"], &twice).code(0).says(&["default/a"]);
    let scratch = Scratch::new();
    for (begins, name, says) in [
        (&b"\xFD7zXZ\0 and so on"[..], "d.tar.xz", "run `xz -d d.tar.xz`"),
        (b"BZh91AY&SY", "d.json.bz2", "run `bzip2 -d d.json.bz2`"),
        (b"PK\x03\x04 and so on", "d.zip", "run `unzip d.zip`"),
        (b"\x28\xB5\x2F\xFD and so on", "d.zst", "run `zstd -d d.zst`"),
    ] {
        let path = scratch.bytes(name, begins);
        run(&["plan", "-f", &path]).code(2).complains(&[says]);
    }
}

#[test]
fn what_kubectl_prints_for_people_is_told_from_objects() {
    let scratch = Scratch::new();
    let table =
        scratch.file("pods.yaml", "NAME   READY   STATUS    AGE\na      1/1     Running   3d\n");
    run(&["plan", "-f", &table]).code(2).complains(&["is a table", "kubectl get … -o yaml"]);
    let text = "Name:         a\nNamespace:    team\nLabels:       <none>\nStatus:       Pending\n";
    let described = scratch.file("pod.yaml", text);
    run(&["plan", "-f", &described]).code(2).complains(&["`kubectl describe`", "-o yaml"]);
}

/// What was read before the cut counts, and that the rest is missing is an error.
#[test]
fn an_archive_that_is_cut_off_is_read_as_far_as_it_goes() {
    let scratch = Scratch::new();
    let large = format!("{NODE}# {}\n", "x".repeat(5000)).replace("n1", "n2");
    let files = [("a.yaml", NODE.as_bytes()), ("b.yaml", large.as_bytes())];
    let whole = archive(&files);
    for (name, bytes) in
        [("in-a-file.tar", &whole[..3000]), ("in-a-header.tar", &whole[..1024 + 100])]
    {
        let path = scratch.bytes(name, bytes);
        let document = run(&["status", "-f", &path, "-o", "json"]).code(1).json();
        let lost = &document["findings"][0];
        assert_eq!(lost["severity"], "error", "{document}");
        let message = lost["message"].as_str().unwrap();
        assert!(message.contains("the archive is cut off at "), "{message}");
        assert!(message.contains("1 file before that is read"), "{message}");
    }
    let nothing = scratch.bytes("nothing.tar", &whole[..600]);
    run(&["plan", "-f", &nothing])
        .code(2)
        .complains(&["cut off at a.yaml", "nothing of it is read"]);
    let packed = packed(&whole);
    let half = scratch.bytes("half.tar.gz", &packed[..packed.len() - 20]);
    run(&["plan", "-f", &half]).says(&["the archive is cut off at "]);
    let text = packed_half(NODES.as_bytes());
    let text = scratch.bytes("nodes.json.gz", &text);
    run(&["plan", "-f", &text]).code(2).complains(&["it is cut off", "gzip -t nodes.json.gz"]);
}

/// Of a good archive a file that breaks off costs only itself.
#[test]
fn a_packed_file_that_breaks_off_in_an_archive_spares_those_beside_it() {
    let scratch = Scratch::new();
    let (node, pod) = (NODE.as_bytes(), packed(POD.as_bytes()));
    let half = packed_half(POD.replace("name: a", "name: b").as_bytes());
    let files = [("a.yaml", node), ("b.yaml.gz", &half), ("c.yaml.gz", &pod)];
    let path = scratch.bytes("all.tar", &archive(&files));
    let ran = run(&["plan", "-f", &path]).code(1);
    ran.says(&["default/a", "all.tar/b.yaml.gz: This can't be read: it is cut off"]);
    let path = scratch.bytes("whole.tar", &archive(&[files[0], files[2]]));
    run(&["plan", "-f", &path]).code(0).says(&["default/a"]);
    let path = scratch.bytes("none.tar", &archive(&[files[1]]));
    run(&["plan", "-f", &path]).code(2).complains(&["none.tar/b.yaml.gz", "holds no object"]);
}

/// gzip itself reads on where another stream follows, and leaves out what is none.
#[test]
fn what_follows_a_packed_text_is_left_out_and_said_unless_it_is_filling() {
    let scratch = Scratch::new();
    let (node, pod) = (packed(NODE.as_bytes()), packed(b"---\n"));
    let pod = [pod, packed(POD.as_bytes())].concat();
    for (filling, said) in
        [(&b""[..], false), (&[0; 700], false), (b"\0x", true), (b"garbage", true)]
    {
        let text = [node.as_slice(), &pod, filling].concat();
        let path = scratch.bytes("all.yaml.gz", &text);
        let document = run(&["plan", "-f", &path, "-o", "json"]).code(0).json();
        assert_eq!(pod_of(&document), "n1");
        let findings = document["findings"].as_array().unwrap();
        let told = findings.iter().filter(|f| f["message"].as_str().unwrap().contains("gzip"));
        let told: Vec<_> = told.collect();
        assert_eq!(told.len(), usize::from(said), "{findings:?}");
        assert!(told.iter().all(|f| f["severity"] == "warning" && f["file"] == path.as_str()));
    }
}

fn pod_of(document: &serde_json::Value) -> &str {
    pod(document, "default/a")["node"].as_str().unwrap()
}

fn packed_half(text: &[u8]) -> Vec<u8> {
    let mut all = packed(text);
    all.truncate(all.len() / 2);
    all
}

#[test]
fn an_archive_in_a_directory_is_said_to_be_left() {
    let scratch = Scratch::new();
    let inner =
        scratch.bytes("must-gather.tar.gz", &packed(&archive(&[("n.yaml", NODE.as_bytes())])));
    run(&["plan", "-f", &scratch.path()]).code(2).complains(&["but an archive", "with -f"]);
    scratch.file("node.yaml", NODE);
    let ran = run(&["plan", "-f", &scratch.path(), "-f", &inner, "-o", "json"]).code(0);
    ran.says(&["This archive lies in a directory and is not opened"]);
}

#[test]
fn a_dump_without_pods_and_pods_without_their_node_are_said() {
    let dumped =
        NODE.replacen("metadata: {", "metadata: {uid: 6ba7b810-9dad-11d1-80b4-00c04fd430c8, ", 1);
    assert_ne!(dumped, NODE);
    run_with(&["status", "-f", "-", "-o", "json"], &dumped).says(&["There is no Pod in the input"]);
    let by_hand = run_with(&["status", "-f", "-", "-o", "json"], NODE);
    assert!(!by_hand.out.contains("There is no Pod"), "{}", by_hand.out);
    let lost = POD.replacen("spec: {", "spec: {nodeName: gone, ", 1).replacen(
        "name: a",
        "name: a, uid: a",
        1,
    );
    let lost = format!("{NODE}---\n{lost}");
    run_with(&["status", "-f", "-", "-o", "json"], &lost)
        .says(&["1 pod, default/a, is on node gone, which is not in the input"]);
}
