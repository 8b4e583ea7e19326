//! Child processes of a test, and media drivers among them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::DEADLINE;

/// A child process. Dropping it kills the process.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    /// `None` if the test does not read the output, or has stopped reading it.
    stdout: Option<BufReader<ChildStdout>>,
    /// Reads from the start on: a process that fills the pipe would wait for ever.
    stderr: Option<JoinHandle<String>>,
    /// The status of a process that was waited for. Its id may belong to another process.
    status: Option<ExitStatus>,
}

impl ChildProcess {
    /// Starts a process. Output that the command pipes can be read.
    pub fn spawn(command: &mut Command) -> Self {
        Self::try_spawn(command).expect("the program starts")
    }

    pub(crate) fn try_spawn(command: &mut Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().map(BufReader::new);
        let stderr = child.stderr.take().map(|stderr| thread::spawn(|| read(stderr)));
        Ok(Self { child, stdout, stderr, status: None })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Reads a line of output, without its end. The line is empty at the end of the output.
    pub fn line(&mut self) -> String {
        self.read_line(Instant::now() + DEADLINE).trim_end().to_owned()
    }

    /// Reads lines of output until one begins with a text. Returns that line.
    pub fn await_line(&mut self, prefix: &str) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let line = self.read_line(deadline);
            assert!(!line.is_empty(), "no line begins with {prefix:?}");
            if line.starts_with(prefix) {
                return line.trim_end().to_owned();
            }
        }
    }

    /// Reads on a thread for each line, so that [`hang_up`](Self::hang_up) can close the pipe between
    /// two lines.
    fn read_line(&mut self, deadline: Instant) -> String {
        let mut stdout = self.stdout.take().expect("its output");
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let result = stdout.read_line(&mut line).map(|_| line);
            // The receiver has gone after the deadline.
            let _ = sender.send((stdout, result));
        });
        let timeout = deadline.saturating_duration_since(Instant::now());
        let (stdout, line) = receiver.recv_timeout(timeout).expect("a line before the deadline");
        self.stdout = Some(stdout);
        line.expect("UTF-8")
    }

    /// Writes a line to the input, which the command pipes.
    pub fn write_line(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().expect("its input");
        writeln!(stdin, "{line}").expect("a process that reads");
    }

    /// Closes this end of the input.
    pub fn close_input(&mut self) {
        self.child.stdin = None;
    }

    /// Closes this end of the output.
    pub fn hang_up(&mut self) {
        self.stdout = None;
    }

    /// Sends a signal by its name to a process that was not waited for.
    #[cfg(unix)]
    #[track_caller]
    pub fn signal(&self, name: &str) {
        assert_eq!(self.status, None, "the process has ended");
        crate::send_signal(self.id(), name);
    }

    /// Kills the process, so that it cannot clean up, and waits for its end.
    pub fn kill(&mut self) {
        self.child.kill().expect("a process of our own");
        self.wait();
    }

    /// Returns the exit status of a process that has ended.
    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        self.status = self.child.try_wait().expect("a status");
        self.status
    }

    pub fn wait(&mut self) -> ExitStatus {
        let status = self.child.wait().expect("its end");
        self.status = Some(status);
        status
    }

    /// Waits for the end. Returns the exit status, the rest of the output, and the error output if
    /// the command pipes it.
    pub fn finish(&mut self) -> (ExitStatus, String, String) {
        let stdout = self.stdout.take().map(read).unwrap_or_default();
        let status = self.wait();
        let stderr = self.stderr.take().map(|reader| reader.join().expect("UTF-8"));
        (status, stdout, stderr.unwrap_or_default())
    }
}

fn read(stream: impl Read) -> String {
    std::io::read_to_string(stream).expect("UTF-8")
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // A process that has ended is neither killed nor waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A driver in a process of its own. Dropping it kills the process.
#[derive(Debug)]
pub struct DriverProcess(ChildProcess);

impl DriverProcess {
    /// Starts the program `media_driver` at a path, in SHARED mode, in a directory.
    pub fn start(program: impl AsRef<Path>, dir: &Path, options: &[&str]) -> Self {
        Self::run(
            media_driver(program)
                .args(["--threading-mode", "shared", "--dir"])
                .arg(dir)
                .args(options)
                .env("AERON_DIR_WARN_IF_EXISTS", "false"),
        )
    }

    pub fn run(command: &mut Command) -> Self {
        Self(ChildProcess::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped())))
    }

    /// Waits for the end. Returns the exit code and the error output; -1 stands for a signal.
    pub fn end(&mut self) -> (i32, String) {
        let (status, _, errors) = self.finish();
        (status.code().unwrap_or(-1), errors)
    }
}

impl Deref for DriverProcess {
    type Target = ChildProcess;

    fn deref(&self) -> &ChildProcess {
        &self.0
    }
}

impl DerefMut for DriverProcess {
    fn deref_mut(&mut self) -> &mut ChildProcess {
        &mut self.0
    }
}

/// The program in the directory of another one of the same build.
pub fn media_driver_beside(program: &str) -> PathBuf {
    let folder = Path::new(program).parent().expect("a directory");
    program_in(folder, "media_driver", "rusteron-media-driver")
}

/// The archive with its media driver, in the same directory.
pub fn archiving_media_driver_beside(program: &str) -> PathBuf {
    let folder = Path::new(program).parent().expect("a directory");
    program_in(folder, "archiving_media_driver", "rusteron-archive-server")
}

/// Where the programs of `rusteron-archive-server` are: in the folder that `RUSTERON_ARCHIVE_PROGRAMS` names, or in that
/// of the build that this test belongs to.
#[cfg(any(unix, feature = "archive"))]
pub(crate) fn folder_of_archives() -> PathBuf {
    std::env::var_os("RUSTERON_ARCHIVE_PROGRAMS").map_or_else(folder_of_programs, PathBuf::from)
}

#[cfg(any(unix, feature = "archive"))]
fn folder_of_programs() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let folder = test.parent().expect("a directory");
    // Unit tests and tests of a crate's face are among the libraries.
    let is_below = folder.file_name().is_some_and(|name| name == "deps");
    if is_below { folder.parent().expect("a directory") } else { folder }.to_owned()
}

/// The program of a package in a directory of programs.
///
/// `cargo test --workspace` has built it. With a single package it may be missing, and is built once.
pub(crate) fn program_in(folder: &Path, name: &str, package: &str) -> PathBuf {
    // Threads of one process would start cargo several times.
    static BUILDING: Mutex<()> = Mutex::new(());
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let _lock = BUILDING.lock();
    if !path.is_file() {
        build_into(folder, name, package);
    }
    path
}

/// Builds it into a directory that cargo has for a profile, such as `target/debug`.
fn build_into(dir: &Path, name: &str, package: &str) {
    let profile = match dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let status = Command::new(env!("CARGO"))
        .args(["build", "--package", package, "--bin", name])
        .args(["--profile", profile, "--target-dir"])
        .arg(dir.parent().expect("a target directory"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(status.expect("cargo starts").success(), "{name} cannot be built");
}

/// The program at a path, with nothing in the environment that changes a driver.
pub fn media_driver(program: impl AsRef<Path>) -> Command {
    crate::program::without_settings(program.as_ref())
}
