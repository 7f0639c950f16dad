//! What a test starts ends with it, however it ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use phalanx_kubernetes::{Cluster, Failure, Kubernetes, Programs, Setup, until};

/// Processes whose command line names the folder: every part's does.
fn processes(folder: &Path) -> usize {
    let folder = folder.display().to_string();
    let all = fs::read_dir("/proc").expect("the system's processes");
    let names_it = |path: PathBuf| {
        // One that ends in between has no command line.
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&folder)
    };
    all.filter_map(Result::ok).filter(|entry| names_it(entry.path())).count()
}

/// Waits: a process that has just been started shows no command line yet.
async fn until_run(count: usize, folder: &Path) -> Result<(), Failure> {
    let what = format!("{count} processes run");
    until(&what, async || Ok((processes(folder) == count).then_some(()))).await
}

/// A control plane that another process holds, and its folder.
fn up() -> (Child, PathBuf) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_phalanx-kubernetes"));
    command.args(["up", "--scheduler", "--kubernetes", Kubernetes::of_this_run().as_str()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let line = lines.next().expect("a line").expect("text");
    let kubeconfig = line.strip_prefix("KUBECONFIG=").expect("the path of a kubeconfig");
    let folder = Path::new(kubeconfig).parent().expect("a folder").to_owned();
    (child, folder)
}

#[tokio::test]
async fn a_process_that_is_killed_leaves_nothing_running() -> Result<(), Failure> {
    let Some(_) = Programs::or_left_out(Kubernetes::of_this_run())? else { return Ok(()) };
    let (mut child, folder) = up();
    // etcd, the server, its controllers, kwok and the scheduler.
    until_run(5, &folder).await?;
    child.kill().expect("it can be killed");
    child.wait().expect("it is gone");
    until_run(0, &folder).await?;
    fs::remove_dir_all(&folder).expect("what it could not clean up");

    // One that may end by itself cleans up as well.
    let (mut child, folder) = up();
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
    assert_eq!(processes(&folder), 0);
    assert!(!folder.exists());
    Ok(())
}

#[test]
fn a_test_that_fails_leaves_its_logs_and_nothing_running() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().expect("a runtime")
    };
    let mut folder = None;
    let test = async |cluster: &mut Cluster| {
        // etcd, the server and its controllers.
        until_run(3, folder.insert(cluster.folder().to_owned())).await?;
        panic!("this test fails, as it should");
    };
    let fails = AssertUnwindSafe(|| runtime().block_on(Cluster::test(Setup::default(), test)));
    let failed = std::panic::catch_unwind(fails).is_err();
    // None where there are no programs.
    let Some(folder) = folder else { return assert!(!failed) };
    assert_eq!(processes(&folder), 0, "each was waited for");
    let log = fs::read_to_string(folder.join("kube-apiserver.log")).expect("the log is kept");
    assert!(log.contains("Serving securely"), "{log}");
    fs::remove_dir_all(&folder).expect("it can be removed");
}
