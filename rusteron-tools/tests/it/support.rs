//! The helpers that the tests share.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use rusteron_client::{Aeron, IdleStrategyKind};
use rusteron_media_driver::{DriverContext, MediaDriver, ThreadingMode};
#[cfg(unix)]
pub(crate) use rusteron_test_support::send_signal;
pub(crate) use rusteron_test_support::{
    DEADLINE, DriverProcess, Finished, Running, await_some, await_that, connected_pair, free_port,
    has_java, java_driver_with, launch, launch_with, media_driver, media_driver_beside, offer,
    receive, run, udp_channel,
};
use serde_json::Value;

pub(crate) const STREAM_ID: i32 = 1001;

/// The commands that read a directory.
pub(crate) const COMMANDS: [&str; 7] =
    ["stat", "errors", "loss", "streams", "clients", "driver", "log"];

/// The commands with `--watch`.
#[cfg(unix)]
pub(crate) const WATCHED: [&str; 3] = ["stat", "streams", "clients"];

/// The program, without the settings of the tests' own environment.
pub(crate) fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    rusteron_test_support::command(env!("CARGO_BIN_EXE_rusteron"), arguments)
}

/// The same, with the directory of a driver.
pub(crate) fn rusteron<S: AsRef<OsStr>>(
    dir: &Path,
    arguments: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = command(["--dir"]);
    command.arg(dir).args(arguments);
    command
}

/// Returns the printed text, if all went well.
#[track_caller]
pub(crate) fn text_of(finished: Finished) -> String {
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "", "{finished:#?}");
    assert!(!finished.stdout.contains('\x1b'), "{finished:#?}");
    finished.stdout
}

/// Runs the program, and returns the printed text, if all goes well.
#[track_caller]
pub(crate) fn text(dir: &Path, arguments: &[&str]) -> String {
    text_of(run(rusteron(dir, arguments)))
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

/// A client with a name.
pub(crate) fn connect_as(dir: &Path, name: &str) -> Aeron {
    let mut context = rusteron_test_support::context(dir);
    context.set_client_name(name).expect("a name");
    Aeron::connect(context).expect("a client")
}
