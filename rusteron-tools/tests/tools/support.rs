//! The helpers that the tests share.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rusteron_client::{Aeron, IdleStrategyKind};
use rusteron_media_driver::{Context as DriverContext, MediaDriver, ThreadingMode};
use serde_json::Value;

pub(crate) use rusteron_test_support::{
    DEADLINE, await_some, await_that, connected_pair, free_port, has_java, java_run, launch,
    launch_with, offer, receive, udp_channel,
};

#[cfg(unix)]
pub(crate) use rusteron_test_support::media_driver_beside;

pub(crate) const STREAM_ID: i32 = 1001;

/// The program, with the settings that it needs to find a driver, and without the settings of the
/// tests' own environment.
pub(crate) fn rusteron<S: AsRef<OsStr>>(
    dir: &Path,
    arguments: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rusteron"));
    command.env_remove("AERON_DIR").arg("--dir").arg(dir).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The output and status of a program that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn run(mut command: Command) -> Finished {
    let output = command.output().expect("the program runs");
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

impl Finished {
    /// Returns the printed text, if all went well.
    #[track_caller]
    pub(crate) fn text(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{}", self.stdout);
        assert!(!self.stdout.contains('\x1b'), "{}", self.stdout);
        self.stdout
    }
}

/// Runs the program, and returns the printed text, if all goes well.
#[track_caller]
pub(crate) fn text(dir: &Path, arguments: &[&str]) -> String {
    run(rusteron(dir, arguments)).text()
}

/// Runs the program with `--json`, and returns the printed value, if all goes well.
#[track_caller]
pub(crate) fn json(dir: &Path, arguments: &[&str]) -> Value {
    let text = text(dir, &[arguments, &["--json"]].concat());
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

/// The array of a name in an object.
#[track_caller]
pub(crate) fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("no array {name} in {value:#}"))
}

/// A driver in this process, in a directory that it does not delete when it ends.
pub(crate) fn launch_in(dir: &Path) -> MediaDriver {
    let mut context = DriverContext::new().expect("settings");
    context
        .set_dir(dir)
        .and_then(|context| context.set_dir_delete_on_shutdown(false))
        .and_then(|context| context.set_threading_mode(ThreadingMode::Shared))
        .and_then(|context| context.set_shared_idle_strategy(IdleStrategyKind::Backoff))
        .expect("valid settings");
    MediaDriver::launch(context).expect("a driver")
}

pub(crate) fn connect(dir: &Path) -> Aeron {
    Aeron::connect(rusteron_test_support::context(dir)).expect("a client")
}

/// Sends a signal by its name.
#[cfg(unix)]
pub(crate) fn send_signal(pid: u32, name: &str) {
    // The shell's own command: not every machine has one besides.
    let sent = Command::new("sh").args(["-c", &format!("kill -s {name} {pid}")]).status();
    assert!(sent.expect("a shell").success());
}

/// A driver in a process of its own, which is killed when this is dropped.
pub(crate) struct DriverProcess(Child);

impl DriverProcess {
    pub(crate) fn start(dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "support::a_driver_for_other_tests", "--ignored", "--nocapture"])
            .env(HOST_DIR, dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let process = Self(child);
        let mut lines = stdout.lines().map(|line| line.expect("UTF-8"));
        assert!(lines.any(|line| line.contains(READY)), "the driver does not start");
        process
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Ends the process so that it can do nothing about it.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }
}

impl Drop for DriverProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const HOST_DIR: &str = "RUSTERON_TEST_HOST_DIR";
const READY: &str = "the driver is ready";

/// The test that a [`DriverProcess`] runs.
#[test]
#[ignore = "other tests start it, as a process of its own"]
fn a_driver_for_other_tests() {
    let Some(dir) = std::env::var_os(HOST_DIR) else { return };
    let _driver = launch_in(dir.as_ref());
    println!("{READY}");
    // Until it is killed, or until the parent process is gone.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).expect("the end");
}
