//! The script behind `just run-cluster --rust`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rusteron_test_support::{
    ChildProcess, archiving_media_driver_beside, await_that, free_port_block, has_java, java_run,
    send_signal,
};

use crate::cluster::echo;

/// The script with one member, in a directory and at ports of its own.
struct Script {
    dir: tempfile::TempDir,
    port: u16,
}

impl Script {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        Self { dir, port: free_port_block() }
    }

    fn start(&self, arguments: &[&str]) -> ChildProcess {
        let service = env!("CARGO_BIN_EXE_cluster_echo_service");
        let mut script = Command::new(java_run().with_file_name("run-cluster"));
        script
            .args(["--rust", "--members", "1", "--service", service, "--archive"])
            .arg(archiving_media_driver_beside(service))
            .args(["--port", &self.port.to_string(), "--dir"])
            .arg(self.dir.path())
            .args(["-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Daeron.driver.timeout=60000"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        ChildProcess::spawn(&mut script)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("member-0").join(name)
    }

    /// The processes of the member: consensus module, archive with media driver, service.
    fn pids(&self) -> [u32; 3] {
        ["pid", "archive.pid", "service.pid"].map(|name| {
            fs::read_to_string(self.path(name)).expect("a pid").trim().parse().expect("a pid")
        })
    }

    fn echo(&self) {
        echo(&format!("0=localhost:{}", self.port + 2));
    }
}

fn has_process(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

#[test]
fn script_starts_and_ends_a_member() {
    if !has_java() {
        return;
    }
    let script = Script::new();
    let mut running = script.start(&[]);
    running.await_line("next: AERON_CLUSTER_INGRESS_ENDPOINTS=0=");
    script.echo();
    let pids = script.pids();
    assert!(pids.into_iter().all(has_process), "{pids:?}");
    running.signal("TERM");
    assert_eq!(running.wait().code(), Some(130));
    assert!(!pids.into_iter().any(has_process), "{pids:?}");
}

#[test]
fn killed_service_ends_its_member() {
    if !has_java() {
        return;
    }
    let script = Script::new();
    let mut running = script.start(&["--member", "0"]);
    running.await_line("member 0: service ");
    script.echo();
    let pids = script.pids();
    send_signal(pids[2], "KILL");
    // The consensus module notices the end of its service.
    await_that("the end of the member", || running.try_wait().is_some());
    assert!(!pids.into_iter().any(has_process), "{pids:?}");
}
