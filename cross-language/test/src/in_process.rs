//! The callers in the service's own process. `cross-language/in-process/build` builds them.

use std::process::Command;

use rusteron_test_support::{command, run};

use crate::programs::{assert_output, file, in_project, path};

/// A language, and its way to the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "names of languages and interfaces")]
pub enum InProcess {
    Rust,
    C,
    JavaJni,
    JavaFfm,
    PythonCtypes,
    PythonPyo3,
    Go,
}

/// All callers.
pub const IN_PROCESS: [InProcess; 7] = [
    InProcess::Rust,
    InProcess::C,
    InProcess::JavaJni,
    InProcess::JavaFfm,
    InProcess::PythonCtypes,
    InProcess::PythonPyo3,
    InProcess::Go,
];

impl InProcess {
    /// The language, and behind a hyphen the interface, where a language has two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::C => "c",
            Self::JavaJni => "java-jni",
            Self::JavaFfm => "java-ffm",
            Self::PythonCtypes => "python-ctypes",
            Self::PythonPyo3 => "python-pyo3",
            Self::Go => "go",
        }
    }

    /// The command line of the caller, with output and errors piped.
    pub fn command(self, options: &[&[&str]]) -> Command {
        let (program, first) = match self {
            Self::Rust => ("in-process/target/release/in_process_caller", None),
            Self::C => ("in-process/c/target/caller", None),
            Self::JavaJni => ("in-process/java/run", Some("Jni")),
            Self::JavaFfm => ("in-process/java/run", Some("Ffm")),
            Self::PythonCtypes => ("in-process/python/run", Some("ctypes")),
            Self::PythonPyo3 => ("in-process/python/run", Some("pyo3")),
            Self::Go => ("in-process/go/target/caller", None),
        };
        command(&in_project(program), first.into_iter().chain(options.concat()))
    }

    /// Asserts that the caller gets the expected results.
    pub fn check(self, encoding: &str) {
        let cases = file("cases", &crate::cases());
        let finished = run(self.command(&[&["--encoding", encoding, "--check", path(&cases)]]));
        assert_output(&finished, include_str!("../expected.txt"));
    }
}
