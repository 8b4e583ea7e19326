//! A media driver in a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::media_driver;

/// A driver in a process of its own; killed, if it still runs, when dropped.
pub struct DriverProcess {
    pub child: Child,
    /// `None` once the output is not read any more.
    output: Option<BufReader<ChildStdout>>,
}

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
