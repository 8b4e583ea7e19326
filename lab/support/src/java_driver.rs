//! Java's media driver, and other programs of `lab/java`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rusteron_client::CncFile;

use crate::{ChildProcess, await_that, java_run};

/// A Java program.
pub fn java_program(arguments: &[&str]) -> Command {
    let mut command = Command::new(java_run());
    command
        .args(arguments)
        .args(["-XX:TieredStopAtLevel=1", "-Xmx256m", "-Xshare:auto"])
        .stdout(Stdio::piped());
    command
}

/// Aeron's driver, running.
pub fn java_driver(dir: &Path) -> ChildProcess {
    java_driver_with(dir, |command| command)
}

/// The same, with more options.
pub fn java_driver_with(
    dir: &Path,
    change: impl FnOnce(&mut Command) -> &mut Command,
) -> ChildProcess {
    let mut command = java_program(&[
        "io.aeron.driver.MediaDriver",
        &format!("-Daeron.dir={}", dir.display()),
        "-Daeron.threading.mode=SHARED",
        "-Daeron.shared.idle.strategy=backoff",
    ]);
    let mut java = ChildProcess::spawn(change(&mut command));
    await_that("the Java driver", || {
        let ended = java.try_wait();
        assert!(ended.is_none(), "{ended:?}");
        CncFile::open(dir, Duration::ZERO).is_ok_and(|cnc| cnc.is_active(Duration::from_secs(10)))
    });
    java
}
