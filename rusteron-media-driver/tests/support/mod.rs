//! The helpers that the tests share: drivers in this process and in others, clients, small file
//! systems.

#![allow(dead_code, unused_imports, unreachable_pub, reason = "every test file uses a part of it")]

#[path = "../../../rusteron-client/tests/support/mod.rs"]
mod client;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

pub use client::*;
use rusteron_client::{Aeron, ExclusivePublication, Subscription};
use rusteron_media_driver::{Context, ThreadingMode};

/// Settings for a driver that tests launch in a directory of their own.
pub fn driver_context() -> Context {
    let mut context = Context::new().expect("a context");
    context.set_threading_mode(ThreadingMode::Shared).expect("a mode");
    context
}

pub fn driver_context_in(dir: &Path) -> Context {
    let mut context = driver_context();
    context
        .set_dir(dir)
        .and_then(|context| context.set_dir_warn_if_exists(false))
        .expect("valid settings");
    context
}

/// Sends messages of random lengths and contents, and checks that all arrive in their order.
pub fn exchange(
    publication: &mut ExclusivePublication,
    subscription: &mut Subscription,
    count: usize,
) {
    exchange_with(publication, &mut [subscription], count);
}

/// As [`exchange`], with several subscriptions that get the same.
pub fn exchange_with(
    publication: &mut ExclusivePublication,
    subscriptions: &mut [&mut Subscription],
    count: usize,
) {
    let message = |number: usize| {
        let mut random = Random::new(number as u64 + 1);
        let length = 8 + random.below(2000);
        let mut message = random.bytes(length);
        message[..8].copy_from_slice(&(number as u64).to_le_bytes());
        message
    };
    let (mut sent, mut received) = (0, vec![0; subscriptions.len()]);
    await_that("all messages", || {
        while sent < count && publication.offer(&message(sent)).is_ok() {
            sent += 1;
        }
        for (subscription, received) in subscriptions.iter_mut().zip(&mut received) {
            subscription
                .poll(
                    |bytes, _| {
                        assert!(bytes == message(*received), "message {received} is another");
                        *received += 1;
                    },
                    10,
                )
                .expect("an open subscription");
        }
        received.iter().all(|received| *received == count)
    });
}

/// A driver in a process of its own; killed, if it still runs, when dropped.
pub struct DriverProcess {
    pub child: Child,
    /// `None` once the output is not read any more.
    output: Option<BufReader<ChildStdout>>,
}

impl DriverProcess {
    /// In SHARED mode, in a directory.
    #[cfg(feature = "binary")]
    pub fn start(dir: &Path, options: &[&str]) -> Self {
        Self::run(
            media_driver()
                .args(["--threading-mode", "shared", "--dir"])
                .arg(dir)
                .args(options)
                .env("AERON_DIR_WARN_IF_EXISTS", "false"),
        )
    }

    pub fn run(command: &mut Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program");
        let output = child.stdout.take().map(BufReader::new);
        Self { child, output }
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().expect("its output").read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Closes its standard output on this side.
    pub fn stop_reading(&mut self) {
        self.output = None;
    }

    /// The next line that is not one of C's or of statistics.
    pub fn line_that_begins(&mut self, beginning: &str) -> String {
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "the output ended before {beginning:?}");
            if line.starts_with(beginning) {
                return line;
            }
        }
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent =
            Command::new("kill").args(["-s", name, &pid]).status().expect("the command kill");
        assert!(sent.success());
    }

    /// The exit status of the program, and its standard error.
    pub fn end(&mut self) -> (i32, String) {
        let status = self.child.wait().expect("its end");
        let mut errors = String::new();
        let stderr = self.child.stderr.as_mut().expect("its error output");
        stderr.read_to_string(&mut errors).expect("text");
        (status.code().unwrap_or(-1), errors)
    }
}

impl Drop for DriverProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program, with nothing in the environment that changes a driver.
#[cfg(feature = "binary")]
pub fn media_driver() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_media_driver"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("AERON_") || text == "RUSTERON_DIR_ACCESS" {
            command.env_remove(name);
        }
    }
    command
}

/// A small file system of its own; only the superuser can make one.
pub struct SmallFileSystem(tempfile::TempDir);

impl SmallFileSystem {
    /// `None`, with the reason on the standard error output, where it is not permitted;
    /// `RUSTERON_REQUIRE_MOUNT=1` makes that a failure.
    pub fn mount(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(dir.path())
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            let required = std::env::var_os("RUSTERON_REQUIRE_MOUNT");
            let is_required = required.is_some_and(|value| value == "1");
            assert!(!is_required, "RUSTERON_REQUIRE_MOUNT=1, but a file system cannot be mounted");
            // Not what the test harness keeps to itself when a test succeeds.
            let _ = writeln!(std::io::stderr(), "skipped: a file system cannot be mounted");
        }
        mounted.then_some(Self(dir))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}
