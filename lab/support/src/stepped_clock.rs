//! A wall clock for child processes that a test can step.

use std::fs::File;
use std::io::BufRead;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use rusteron_client::CncFile;
use rusteron_core::cnc::epoch;
use tempfile::TempDir;

use crate::{ChildProcess, DEADLINE, await_that};

/// Less than any step, and more than the time between two heartbeats.
const TOLERANCE_MS: u64 = 5_000;
const JOB: &str = "RUSTERON_TEST_JOB";

/// A directory for a driver, and the clock of the processes around it.
#[derive(Debug)]
pub struct SteppedHome {
    pub dir: TempDir,
    pub clock: SteppedClock,
}

impl SteppedHome {
    #[allow(clippy::new_without_default, reason = "it compiles a library")]
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory"), clock: SteppedClock::new() }
    }

    /// The driver's directory.
    pub fn aeron_dir(&self) -> PathBuf {
        self.dir.path().join("driver")
    }

    /// Starts a client in a process of its own, which runs the ignored test
    /// `clock_steps::client_process` of this program with a [`job`], and awaits its line `ready`.
    pub fn client(&self, kind: &str) -> ChildProcess {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--exact", "clock_steps::client_process", "--ignored", "--nocapture"])
            .env(JOB, format!("{kind} {}", self.aeron_dir().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut client = ChildProcess::spawn(self.clock.set(&mut command));
        client.await_line("ready");
        client
    }

    pub fn cnc(&self) -> CncFile {
        CncFile::open(self.aeron_dir(), DEADLINE).expect("a driver")
    }

    /// Steps the clock, and waits as [`SteppedClock::step_and_look`] does.
    pub fn step(&mut self, step: impl FnOnce(&mut SteppedClock)) {
        let cnc = self.cnc();
        self.clock.step_and_look(&cnc, step);
    }
}

/// Returns the kind of a process of [`SteppedHome::client`], and the driver's directory.
pub fn job() -> (String, PathBuf) {
    let job = std::env::var(JOB).expect("a job");
    let (kind, dir) = job.split_once(' ').expect("a directory");
    (kind.to_owned(), dir.into())
}

/// Awaits a line of the parent process. Returns whether there was one.
pub fn read_line() -> bool {
    std::io::stdin().lock().read_line(&mut String::new()).expect("a line") > 0
}

/// A wall clock that all processes share that were started [with it](Self::set). The machine's
/// clock stays as it is.
///
/// Works for programs in any language whose C library is linked dynamically: the library of this
/// clock is preloaded. It is compiled with the C compiler in `CC`, or `cc`.
#[derive(Debug)]
pub struct SteppedClock {
    dir: TempDir,
    step: File,
    step_ns: i64,
}

impl SteppedClock {
    #[allow(clippy::new_without_default, reason = "it compiles a library")]
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let source = dir.path().join("stepped_clock.c");
        std::fs::write(&source, include_str!("stepped_clock.c")).expect("a source file");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let mut words = compiler.split_whitespace();
        let output = Command::new(words.next().expect("a compiler"))
            .args(words)
            .args(["-std=gnu11", "-O2", "-shared", "-fPIC", "-o"])
            .args([&Self::library(dir.path()), &source])
            .arg("-ldl")
            .output()
            .expect("a C compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let step = File::create_new(dir.path().join("step")).expect("a file");
        let clock = Self { dir, step, step_ns: 0 };
        clock.write();
        clock
    }

    /// Gives the processes that the command starts this clock.
    pub fn set<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("LD_PRELOAD", Self::library(self.dir.path()))
            .env("RUSTERON_CLOCK_STEP", self.dir.path().join("step"))
    }

    /// Steps the clock of all processes forward, from one instruction to the next.
    pub fn step_forward(&mut self, by: Duration) {
        self.step_ns += i64::try_from(by.as_nanos()).expect("a short step");
        self.write();
    }

    /// Steps the clock of all processes back.
    pub fn step_back(&mut self, by: Duration) {
        self.step_ns -= i64::try_from(by.as_nanos()).expect("a short step");
        self.write();
    }

    /// Steps the clock, and waits until the driver and each client has looked at the others twice.
    /// Their heartbeats have to follow the clock, because Java compares them with it.
    ///
    /// # Panics
    /// If the driver times out a client.
    pub fn step_and_look(&mut self, cnc: &CncFile, step: impl FnOnce(&mut Self)) {
        let mut before = heartbeats(cnc);
        step(self);
        for _ in 0..2 {
            await_that("heartbeats", || {
                let now = heartbeats(cnc);
                assert_eq!(now.len(), before.len(), "the driver has timed out a client");
                now.iter().zip(&before).all(|(now, before)| now != before)
            });
            before = heartbeats(cnc);
        }
        await_that("heartbeats of the stepped clock", || {
            let now = epoch::millis(SystemTime::now()) + self.step_ns / 1_000_000;
            heartbeats(cnc).iter().all(|heartbeat| heartbeat.abs_diff(now) < TOLERANCE_MS)
        });
    }

    fn library(dir: &Path) -> PathBuf {
        dir.join("stepped_clock.so")
    }

    fn write(&self) {
        self.step.write_all_at(&self.step_ns.to_ne_bytes(), 0).expect("a written file");
    }
}

/// The heartbeats of the driver and its clients, in milliseconds since 1970.
fn heartbeats(cnc: &CncFile) -> Vec<i64> {
    const CLIENT: i32 = 11;
    let counters = cnc.counters();
    let clients = counters.iter().filter(|counter| counter.type_id == CLIENT);
    let driver = cnc.heartbeat().map_or(-1, epoch::millis);
    std::iter::once(driver).chain(clients.map(|counter| counter.value)).collect()
}
