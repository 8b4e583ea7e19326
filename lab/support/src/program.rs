//! Programs that run, and their output: for the tests of the examples and of the benchmarks.

use std::ffi::OsStr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::ChildProcess;

/// Any program, with some arguments and without the settings of the tests' own environment. Java programs that it
/// starts spend less on compiling and loading classes.
pub fn command<S: AsRef<OsStr>>(path: &str, arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = without_settings(path);
    // Tests are too short to win back the time of the second compiler and of parallel collectors.
    command.env("RUSTERON_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto");
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The program at a path, with nothing in the environment that changes a client or a driver.
pub fn without_settings(path: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        // `lab/java/run` reads settings of its own.
        let is_own = text.starts_with("RUSTERON_") && !text.starts_with("RUSTERON_JAVA_");
        if is_own || text.starts_with("AERON_") {
            command.env_remove(name);
        }
    }
    command
}

/// The output and status of a program that has ended.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// The directories of its embedded drivers and archives that are still there.
    pub left_behind: Vec<PathBuf>,
}

impl Finished {
    /// Asserts an exit code, and that nothing is left behind.
    #[track_caller]
    pub fn assert_exit_code(&self, code: i32) {
        assert_eq!(self.status.code(), Some(code), "{self:#?}");
        assert!(self.left_behind.is_empty(), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
    }

    /// Asserts that each text is a line of the output.
    #[track_caller]
    pub fn assert_lines<const N: usize>(&self, expected: [&str; N]) {
        for expected in expected {
            assert!(self.stdout.lines().any(|line| line == expected), "{expected}: {self:#?}");
        }
    }

    /// The number of the output's lines that begin with a text.
    pub fn count_lines(&self, prefix: &str) -> usize {
        self.stdout.lines().filter(|line| line.starts_with(prefix)).count()
    }
}

/// Runs a program to its end.
pub fn run(mut command: Command) -> Finished {
    let start = SystemTime::now();
    let child = command.spawn().expect("the program starts");
    let pid = child.id();
    let output = child.wait_with_output().expect("the program ends");
    Finished {
        status: output.status,
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        left_behind: embedded_dirs(pid, start),
    }
}

/// Runs a program to its good end, without a word on its error output.
#[track_caller]
pub fn succeed(command: Command) -> Finished {
    let finished = run(command);
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "", "{finished:#?}");
    finished
}

/// The directories of embedded drivers and archives of a process. A killed process of the same id may have left some before
/// the start.
fn embedded_dirs(pid: u32, start: SystemTime) -> Vec<PathBuf> {
    // Clocks of file systems lag by some milliseconds.
    let start = start - Duration::from_secs(1);
    let is_later = |path: &Path| {
        path.metadata().and_then(|about| about.modified()).is_ok_and(|modified| modified >= start)
    };
    let prefixes = [format!("rusteron-{pid}-"), format!("rusteron-own-archive-{pid}-")];
    let is_own = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let bases = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
    let entries = bases.iter().filter_map(|base| base.read_dir().ok()).flatten();
    entries
        .filter_map(Result::ok)
        .filter(|entry| is_own(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .filter(|path| is_later(path))
        .collect()
}

/// A program that runs. Dropping it kills the program and removes the files that it leaves behind.
#[derive(Debug)]
pub struct Running {
    child: ChildProcess,
    start: SystemTime,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        Self { start: SystemTime::now(), child: ChildProcess::spawn(&mut command) }
    }

    /// The one directory of its embedded driver.
    pub fn driver_dir(&self) -> PathBuf {
        let dirs = embedded_dirs(self.id(), self.start);
        assert_eq!(dirs.len(), 1, "{dirs:?}");
        dirs[0].clone()
    }

    /// Waits for the end.
    pub fn finish(mut self) -> Finished {
        let (status, stdout, stderr) = self.child.finish();
        Finished { status, stdout, stderr, left_behind: embedded_dirs(self.id(), self.start) }
    }
}

impl Deref for Running {
    type Target = ChildProcess;

    fn deref(&self) -> &ChildProcess {
        &self.child
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut ChildProcess {
        &mut self.child
    }
}

/// Sends a process a signal by its name.
#[cfg(unix)]
pub fn send_signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status();
    assert!(status.expect("kill starts").success());
}

impl Drop for Running {
    fn drop(&mut self) {
        // A program that still runs could make its directories again.
        self.kill();
        for dir in embedded_dirs(self.id(), self.start) {
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

/// The report in a file.
pub fn report(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("a report");
    serde_json::from_str(&text).expect("JSON")
}

/// The number at a path such as `/publisher/messages`.
#[track_caller]
pub fn number(report: &Value, pointer: &str) -> f64 {
    let value = report.pointer(pointer).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("no number {pointer} in {report:#}"))
}
