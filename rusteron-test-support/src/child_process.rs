//! A child process of a test.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus};

/// A child process. Dropping it kills the process.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    /// `None` if the test does not read the output, or has stopped reading it.
    stdout: Option<BufReader<ChildStdout>>,
}

impl ChildProcess {
    /// Starts a process. Output that the command pipes can be read.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let stdout = child.stdout.take().map(BufReader::new);
        Self { child, stdout }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Reads a line of output, without its end. The line is empty at the end of the output.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().expect("its output").read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Reads lines of output until one begins with a text. Returns that line.
    pub fn await_line(&mut self, prefix: &str) -> String {
        loop {
            let mut line = String::new();
            let stdout = self.stdout.as_mut().expect("its output");
            let length = stdout.read_line(&mut line).expect("a line");
            assert!(length > 0, "no line begins with {prefix:?}");
            if line.starts_with(prefix) {
                return line.trim_end().to_owned();
            }
        }
    }

    /// Closes this end of the output.
    pub fn hang_up(&mut self) {
        self.stdout = None;
    }

    /// Sends a signal by its name.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        crate::send_signal(self.id(), name);
    }

    /// Kills the process, so that it cannot clean up, and waits for its end.
    pub fn kill(&mut self) {
        self.child.kill().expect("a process of our own");
        self.wait();
    }

    /// Returns the exit status of a process that has ended.
    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a status")
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("its end")
    }

    /// Waits for the end. Returns the exit status, the rest of the output, and the error output if
    /// the command pipes it.
    pub fn finish(&mut self) -> (ExitStatus, String, String) {
        let stdout = self.stdout.take().map(read).unwrap_or_default();
        let status = self.wait();
        let stderr = self.child.stderr.take().map(read).unwrap_or_default();
        (status, stdout, stderr)
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
