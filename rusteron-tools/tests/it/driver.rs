//! `rusteron driver`.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusteron_client::CncFile;
use serde_json::Value;

use crate::support::{
    DriverProcess, await_that, json, launch, launch_in, media_driver, media_driver_beside, run,
    rusteron, text,
};

#[test]
fn alive_driver_is_described() {
    let driver = launch();
    let status = json(driver.aeron_dir(), &["driver"]);
    assert_eq!(status["dir"], driver.aeron_dir().to_string_lossy().as_ref());
    assert_eq!((&status["state"], &status["pid"]), (&"alive".into(), &std::process::id().into()));
    assert_eq!(status["aeron_version"], rusteron_client::AERON_VERSION);
    assert!(status["protocol_version"].as_str().is_some_and(|v| v.starts_with("0.2.")));
    assert!(status["start_time"].as_str().is_some_and(|time| time.ends_with('Z')));
    assert!(status["heartbeat_age_ms"].as_u64().is_some());
    assert_eq!(status["client_liveness_timeout_ms"], 10_000);
    let lines = text(driver.aeron_dir(), &["driver"]);
    assert!(lines.contains("alive, heartbeat"), "{lines}");
}

#[test]
fn ended_driver_exits_3() {
    let home = tempfile::tempdir().expect("a directory");
    drop(launch_in(home.path()));
    let finished = run(rusteron(home.path(), ["driver", "--json"]));
    assert_eq!((finished.status.code(), finished.stderr.as_str()), (Some(3), ""));
    let status: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!((&status["state"], &status["heartbeat_age_ms"]), (&"ended".into(), &Value::Null));
    // There is no driver to ask.
    let finished = run(rusteron(home.path(), ["driver", "--terminate"]));
    assert_eq!((finished.status.code(), finished.stderr.as_str()), (Some(3), ""));
    assert!(finished.stdout.contains("ended in good order"), "{finished:?}");
}

#[test]
fn check_exits_0_or_1() {
    let home = tempfile::tempdir().expect("a directory");
    let check = |arguments: &[&str]| {
        let finished = run(rusteron(home.path(), [&["driver", "--check"], arguments].concat()));
        (finished.status.code(), finished.stdout, finished.stderr)
    };
    let (code, _, errors) = check(&[]);
    assert!(code == Some(1) && errors.ends_with(": no driver\n"), "{errors}");
    let driver = launch_in(home.path());
    let pid = std::process::id();
    for arguments in [&[][..], &["--pid", &pid.to_string()]] {
        let (code, line, errors) = check(arguments);
        assert_eq!((code, errors.as_str()), (Some(0), ""));
        assert!(
            line.contains(": alive, heartbeat") && line.ends_with(&format!("process {pid}\n")),
            "{line}"
        );
    }
    // The driver of another process, such as the predecessor of a service.
    let (code, line, errors) = check(&["--pid", "1"]);
    assert_eq!((code, line.as_str()), (Some(1), ""));
    assert!(errors.ends_with(&format!("process {pid}, not 1\n")), "{errors}");
    drop(driver);
    let (code, _, errors) = check(&[]);
    assert!(code == Some(1) && errors.contains("ended in good order"), "{errors}");
}

#[cfg(target_os = "linux")]
#[test]
fn check_of_stopped_driver_exits_1() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut command = media_driver(media_driver_beside(env!("CARGO_BIN_EXE_rusteron")));
    command.args(["--threading-mode", "shared", "--dir"]).arg(&dir);
    let mut driver = DriverProcess::run(&mut command);
    assert!(driver.line().starts_with("media driver ready"));
    let code = || {
        let arguments = ["--driver-timeout", "3s", "driver", "--check"];
        run(rusteron(&dir, arguments)).status.code()
    };
    await_that("a heartbeat", || code() == Some(0));
    // The process still exists, but its heartbeat does not go on.
    driver.signal("STOP");
    await_that("an old heartbeat", || code() == Some(1));
    driver.signal("CONT");
    await_that("a new heartbeat", || code() == Some(0));
}

/// How many bytes of commands the driver has been given: the tail of the ring buffer that follows the
/// metadata of its file.
fn commands_written(dir: &Path) -> i64 {
    const METADATA_LENGTH: usize = 128;
    const TRAILER_LENGTH: usize = 768;
    const TAIL: usize = 128;
    let cnc = CncFile::open(dir, Duration::ZERO).expect("the file");
    let length = usize::try_from(cnc.constants().to_driver_buffer_length).expect("a length");
    let bytes = fs::read(cnc.filename()).expect("the file");
    let tail = &bytes[METADATA_LENGTH + length - TRAILER_LENGTH + TAIL..];
    i64::from_le_bytes(*tail.first_chunk().expect("a number"))
}

#[test]
fn termination_waits_for_end() {
    for is_replaced in [false, true] {
        let home = tempfile::tempdir().expect("a directory");
        let driver = launch_in(home.path());
        let dir = driver.aeron_dir().to_owned();
        let arguments = ["driver", "--terminate", "--timeout", "60s", "--json"];
        let waiting = thread::spawn({
            let dir = dir.clone();
            move || run(rusteron(&dir, arguments))
        });
        await_that("the request", || commands_written(&dir) > 0 || waiting.is_finished());
        assert!(!waiting.is_finished());
        drop(driver);
        let successor = is_replaced.then(|| launch_in(home.path()));
        let finished = waiting.join().expect("no panic");
        assert_eq!((finished.status.code(), finished.stderr.as_str()), (Some(0), ""));
        let status: Value = serde_json::from_str(&finished.stdout).expect("JSON");
        // A successor begins by deleting the directory.
        let state = status["state"].as_str().expect("a state");
        assert!(state == "ended" || is_replaced && state == "absent", "{state}");
        drop(successor);
    }
}

#[test]
fn validator_decides_on_termination() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let start = |validator: Option<&str>| {
        let mut command = media_driver(media_driver_beside(env!("CARGO_BIN_EXE_rusteron")));
        command.envs(validator.map(|name| ("AERON_DRIVER_TERMINATION_VALIDATOR", name)));
        command.args(["--threading-mode", "shared", "--dir"]).arg(&dir);
        let mut driver = DriverProcess::run(&mut command);
        assert_eq!(driver.line(), format!("media driver ready: {}", dir.display()));
        driver
    };
    let mut driver = start(Some("allow"));
    let status = json(&dir, &["driver", "--terminate", "--token", "please", "--timeout", "60s"]);
    assert_eq!((&status["state"], &status["pid"]), (&"ended".into(), &driver.id().into()));
    assert_eq!(driver.line(), format!("media driver closed: {}", dir.display()));
    assert_eq!(driver.end(), (0, String::new()));

    // As in Aeron's program, no client may end the driver unless that is allowed.
    let mut driver = start(None);
    let finished = run(rusteron(&dir, ["driver", "--terminate", "--timeout", "300ms"]));
    assert_eq!((finished.status.code(), finished.stdout.as_str()), (Some(1), ""), "{finished:?}");
    assert!(finished.stderr.contains("termination validator"), "{finished:?}");
    assert!(driver.try_wait().is_none());
}
