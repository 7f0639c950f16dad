//! Commands about a cluster, where there is none: what is said, and that a program is told too. With one
//! they are held against a real control plane in `tests/kubernetes`.

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;

use crate::common::run;

/// A kubeconfig of a server that nobody runs.
fn nobodys(name: &str) -> PathBuf {
    let config = "{apiVersion: v1, kind: Config, current-context: c,
        clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {}}],
        contexts: [{name: c, context: {cluster: c, user: u}}]}";
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, config).expect("it can be written");
    path
}

#[test]
fn a_kubeconfig_that_is_missing_is_named() {
    for command in [&["dump"][..], &["controller"], &["plan"], &["why", "pod/a"]] {
        let args = [command, &["--kubeconfig", "no/such/file"]].concat();
        run(&args)
            .code(2)
            .complains(&["The kubeconfig no/such/file can't be used", "No such file"]);
    }
}

#[test]
fn a_server_that_does_not_answer_is_named() {
    let path = nobodys("nobodys.kubeconfig");
    let path = path.to_str().expect("text");
    let said = "The API server http://127.0.0.1:1 can't be asked for its version";
    run(&["controller", "--kubeconfig", path]).code(2).complains(&[said]);
    let ran = run(&["status", "--kubeconfig", path, "-o", "json"]);
    let document = ran.code(2).json();
    let message = document["findings"][0]["message"].as_str().expect("a message");
    assert!(message.starts_with(said) && message.ends_with('.'), "{message}");
}

#[test]
fn a_context_that_the_kubeconfig_lacks_is_named() {
    let path = nobodys("contexts.kubeconfig");
    let path = path.to_str().expect("text");
    run(&["dump", "--kubeconfig", path, "--context", "elsewhere"])
        .code(2)
        .complains(&["elsewhere"]);
}

#[test]
fn without_a_file_or_a_cluster_the_command_line_is_wrong() {
    run(&["plan"]).code(2).complains(&["--filename <PATH>"]);
}

#[test]
fn a_plugin_of_kubectl_asks_about_its_cluster() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let plugin = folder.join("kubectl-phalanx");
    // One of an earlier run is of an earlier build.
    let _ = fs::remove_file(&plugin);
    std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin!("phalanx"), &plugin).expect("a link");
    let mut command = Command::new(&plugin);
    let path = nobodys("plugin.kubeconfig");
    let ran = command.args(["why", "pod/a"]).env("KUBECONFIG", path).output().expect("it starts");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("The API server http://127.0.0.1:1 can't be asked"), "{said}");
    assert_eq!(ran.status.code(), Some(2));
}
