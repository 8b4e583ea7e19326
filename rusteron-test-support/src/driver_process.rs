//! A media driver in a process of its own.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{ChildProcess, media_driver};

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
