//! The servers and callers, each a process of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{ChildProcess, Finished, command, launch_with, run};

/// A server's language.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "names of languages")]
pub enum Server {
    Rust,
    Java,
    Python,
}

/// A caller's language.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "names of languages")]
pub enum Caller {
    Rust,
    Java,
    Python,
    C,
    Go,
}

/// All servers.
pub const SERVERS: [Server; 3] = [Server::Rust, Server::Java, Server::Python];

/// All callers.
pub const CALLERS: [Caller; 5] =
    [Caller::Rust, Caller::Java, Caller::Python, Caller::C, Caller::Go];

/// Longer than any call takes on a machine that still works.
pub const LONG: &[&str] = &["--timeout-ms", "60000"];

impl Server {
    /// Starts the server. Its messages and errors are lines of its output.
    pub fn start(self, driver: &MediaDriver, options: &[&str]) -> ChildProcess {
        self.start_in(path(driver.aeron_dir()), options)
    }

    /// The same, with the directory of a driver.
    pub fn start_in(self, aeron_dir: &str, options: &[&str]) -> ChildProcess {
        let program = match self {
            Self::Rust => vec![beside_this("server")],
            Self::Java => vec![in_project("java/run"), "Server".to_owned()],
            Self::Python => vec![in_project("python/run"), "server".to_owned()],
        };
        start_server(&program, &[&["--aeron-dir", aeron_dir], options])
    }
}

impl Caller {
    /// The caller's command line, with output and errors piped.
    pub fn command(self, driver: &MediaDriver, options: &[&[&str]]) -> Command {
        self.command_in(path(driver.aeron_dir()), options)
    }

    /// The same, with the directory of a driver.
    pub fn command_in(self, aeron_dir: &str, options: &[&[&str]]) -> Command {
        let (program, first) = match self {
            Self::Rust => (beside_this("caller"), None),
            Self::Java => (in_project("java/run"), Some("Caller")),
            Self::Python => (in_project("python/run"), Some("caller")),
            Self::C => (in_project("c/target/caller"), None),
            Self::Go => (in_project("go/target/caller"), None),
        };
        let options = options.concat();
        command(&program, first.into_iter().chain(["--aeron-dir", aeron_dir]).chain(options))
    }

    /// Runs the caller to its end.
    pub fn run(self, driver: &MediaDriver, options: &[&[&str]]) -> Finished {
        run(self.command(driver, options))
    }

    /// Asserts that the caller gets the expected results.
    pub fn check(self, driver: &MediaDriver, encoding: &str, options: &[&str]) {
        let cases = file("cases", &crate::cases());
        let mode = ["--encoding", encoding, "--check", path(&cases)];
        let finished = self.run(driver, &[&mode, LONG, options]);
        assert_output(&finished, include_str!("../expected.txt"));
    }
}

/// Starts a server, and waits until it serves. Its messages and errors are lines of its output.
pub(crate) fn start_server(program: &[String], options: &[&[&str]]) -> ChildProcess {
    let arguments = ["-c", r#"exec "$0" "$@" 2>&1"#].into_iter();
    let arguments = arguments.chain(program.iter().map(String::as_str)).chain(options.concat());
    let mut server = ChildProcess::spawn(&mut command("bash", arguments));
    server.await_line("serving");
    server
}

/// Asserts a successful end, and the output line by line.
pub fn assert_output(finished: &Finished, expected: &str) {
    for (line, expected) in finished.stdout.lines().zip(expected.lines()) {
        assert_eq!(line, expected, "{}", finished.stderr);
    }
    assert_eq!(finished.stdout.lines().count(), expected.lines().count(), "{}", finished.stderr);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
}

/// A media driver in this process, in a directory of its own.
pub fn driver() -> MediaDriver {
    launch_with(|context| Ok(context))
}

/// A file with a text, which is removed when it is dropped.
pub fn file(prefix: &str, text: &str) -> tempfile::TempPath {
    let file = tempfile::Builder::new().prefix(prefix).tempfile().expect("a file");
    std::fs::write(file.path(), text).expect("a written file");
    file.into_temp_path()
}

/// A path as an argument.
pub fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A program of the Rust service. Cargo puts it beside this program, or above this test.
fn beside_this(name: &str) -> String {
    let this = std::env::current_exe().expect("a path");
    let path = this.with_file_name(name);
    existing(if path.exists() { path } else { this.with_file_name("..").join(name) })
}

pub(crate) fn in_project(name: &str) -> String {
    existing(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name))
}

fn existing(path: PathBuf) -> String {
    assert!(path.exists(), "{} is missing: run cross-language/build first", path.display());
    path.to_str().expect("UTF-8").to_owned()
}
