//! Programs in Java, as processes of their own.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_test_support::programs::Process;

/// How much longer to wait for Java's signs of life than for those of our own threads. A Java
/// machine has to start, and to compile, on what may be a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Options that the script `lab/java/run` adds to those of the command line.
const OPTIONS: &str = "RUSTERON_JAVA_OPTIONS";

/// The Java contender, if there is one on this machine.
#[derive(Debug, Clone)]
pub struct Java {
    /// The options for the Java machine.
    options: Vec<String>,
    versions: String,
}

impl Java {
    /// Looks for Java and Aeron's artifacts, which the script `lab/java/run` fetches once.
    ///
    /// # Errors
    /// [`Failure::Run`] that says why they are not there; [`Failure::Interrupted`].
    pub fn find(options: &[String], interrupt: &ShutdownSignal) -> Result<Self, Failure> {
        let mut java = Self { options: options.to_vec(), versions: String::new() };
        // The first start may have to wait for Maven.
        let timeout = Duration::from_secs(300);
        let mut program = java.start("benchmarks/Versions.java", &[], &[], timeout)?;
        java.versions = program.line(interrupt)?;
        if let Some(options) = std::env::var_os(OPTIONS).filter(|options| !options.is_empty()) {
            java.versions.push_str(&format!(", {OPTIONS}={}", options.to_string_lossy()));
        }
        Ok(java)
    }

    /// The versions of Aeron, Java and Agrona's bounds checks, as Java says them. Options in the
    /// environment follow.
    pub fn versions(&self) -> &str {
        &self.versions
    }

    /// Starts a main class of Aeron's, or a program in `java/` if the name ends in `.java`.
    ///
    /// `timeout` is how long a line of its output is waited for.
    ///
    /// # Errors
    /// [`Failure::Run`] if it cannot be started.
    pub fn start(
        &self,
        main: &str,
        options: &[String],
        arguments: &[String],
        timeout: Duration,
    ) -> Result<Process, Failure> {
        start(main, self.command(main, options, arguments), timeout)
    }

    /// The command that [`start`](Self::start) runs.
    pub fn command(&self, main: &str, options: &[String], arguments: &[String]) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../java/run");
        let mut command = Command::new(script);
        command.arg(main).args(&self.options).args(options).args(arguments);
        command
    }
}

/// Starts a program by a [`command`](Java::command), perhaps a changed one.
///
/// # Errors
/// [`Failure::Run`] if it cannot be started.
pub fn start(main: &str, command: Command, timeout: Duration) -> Result<Process, Failure> {
    Process::start(format!("{main} in Java"), command, timeout + DEADLINE)
}

/// A number in a field of a program's output.
///
/// # Errors
/// [`Failure::Run`] that quotes the line if the field is none.
pub fn number<T: std::str::FromStr>(line: &str, field: Option<&str>) -> Result<T, Failure> {
    field
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| Failure::Run(format!("not understood: Java prints {line:?}")))
}
