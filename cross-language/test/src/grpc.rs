//! The servers and callers over gRPC. `cross-language/grpc/build` builds them.

use std::process::Command;

use rusteron_test_support::{ChildProcess, Finished, command, run};

use crate::programs::{LONG, assert_output, file, in_project, path, start_server};

/// A language with a server and a caller over gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "names of languages")]
pub enum Language {
    Rust,
    Java,
    Python,
    Go,
}

/// All languages.
pub const LANGUAGES: [Language; 4] =
    [Language::Rust, Language::Java, Language::Python, Language::Go];

impl Language {
    /// Starts the server, which listens to `HOST:PORT` or `unix:PATH`.
    pub fn start_server(self, address: &str, options: &[&str]) -> ChildProcess {
        let program = match self {
            Self::Rust => vec![in_project("target/release/grpc_server")],
            Self::Java => vec![in_project("grpc/java/run"), "GrpcServer".to_owned()],
            Self::Python => vec![in_project("grpc/python/run"), "server".to_owned()],
            Self::Go => vec![in_project("grpc/go/target/server")],
        };
        start_server(&program, &[&["--listen", address], options])
    }

    /// The command line of the caller, with output and errors piped.
    pub fn caller(self, address: &str, options: &[&[&str]]) -> Command {
        let (program, first) = match self {
            Self::Rust => (in_project("target/release/grpc_caller"), None),
            Self::Java => (in_project("grpc/java/run"), Some("GrpcCaller")),
            Self::Python => (in_project("grpc/python/run"), Some("caller")),
            Self::Go => (in_project("grpc/go/target/caller"), None),
        };
        let options = options.concat();
        command(&program, first.into_iter().chain(["--server", address]).chain(options))
    }

    /// Asserts that the caller gets the expected results from a new server.
    pub fn check(self, address: &str) {
        let cases = file("cases", &crate::cases());
        let finished: Finished = run(self.caller(address, &[&["--check", path(&cases)], LONG]));
        assert_output(&finished, include_str!("../expected.txt"));
    }
}
