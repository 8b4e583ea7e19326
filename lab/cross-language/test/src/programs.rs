//! The servers and callers, each a process of its own. `lab/cross-language/build` builds them.

use std::path::{Path, PathBuf};
use std::process::Command;

use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{ChildProcess, command, launch_with, run};

/// A language of a server, a caller or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "names of languages")]
pub enum Language {
    Rust,
    Java,
    Python,
    C,
    Go,
}

use Language::{C, Go, Java, Python, Rust};

/// The languages with a server over Aeron, and one over gRPC.
pub const SERVERS: [Language; 3] = [Rust, Java, Python];
/// The languages with a caller over Aeron, and one in the service's process.
pub const CALLERS: [Language; 5] = [Rust, Java, Python, C, Go];
/// The languages with a caller over gRPC.
pub const GRPC_CALLERS: [Language; 4] = [Rust, Java, Python, Go];

/// Longer than any call takes on a machine that still works.
pub const LONG: &[&str] = &["--timeout-ms", "60000"];

impl Language {
    /// The name on command lines and in results.
    pub fn name(self) -> &'static str {
        match self {
            Rust => "rust",
            Java => "java",
            Python => "python",
            C => "c",
            Go => "go",
        }
    }

    /// Starts the server, and waits until it serves. Its messages and errors are lines of its output.
    pub fn start(self, aeron_dir: &Path, options: &[&str]) -> ChildProcess {
        self.start_server("server", &[&["--aeron-dir", path(aeron_dir)], options])
    }

    /// The same over gRPC. The server listens to `HOST:PORT` or `unix:PATH`.
    pub fn start_grpc(self, address: &str) -> ChildProcess {
        self.start_server("grpc-server", &[&["--listen", address]])
    }

    fn start_server(self, program: &str, options: &[&[&str]]) -> ChildProcess {
        let program = self.program(program, options);
        let words = std::iter::once(program.get_program()).chain(program.get_args());
        let words = words.map(|word| word.to_str().expect("UTF-8"));
        let shell = ["-c", r#"exec "$0" "$@" 2>&1"#];
        let mut shell = command("bash", shell.into_iter().chain(words));
        shell.env(RUST_DIRECTORY, directory());
        let mut server = ChildProcess::spawn(&mut shell);
        server.await_line("serving");
        server
    }

    /// The caller's command line, with output and errors piped.
    pub fn caller(self, aeron_dir: &Path, options: &[&[&str]]) -> Command {
        self.program("caller", &[&["--aeron-dir", path(aeron_dir)], &options.concat()])
    }

    /// The same over gRPC.
    pub fn grpc_caller(self, address: &str, options: &[&[&str]]) -> Command {
        self.program("grpc-caller", &[&["--server", address], &options.concat()])
    }

    /// The same in the process of the service in Rust.
    pub fn in_process_caller(self, options: &[&[&str]]) -> Command {
        self.program("in-process-caller", options)
    }

    /// The caller in C of a process that answers each `ping` over a Unix socket.
    pub fn socket_caller(options: &[&[&str]]) -> Command {
        C.program("socket-caller", options)
    }

    fn program(self, program: &str, options: &[&[&str]]) -> Command {
        let words = [self.name(), program].into_iter().chain(options.concat());
        let mut command = command(path(&project().join("run")), words);
        command.env(RUST_DIRECTORY, directory());
        command
    }

    /// Asserts that the caller gets the expected results.
    pub fn check(self, driver: &MediaDriver, options: &[&str]) {
        check(|check| self.caller(driver.aeron_dir(), &[check, options]));
    }
}

/// Asserts that a caller with options gets the expected results.
pub fn check(caller: impl FnOnce(&[&str]) -> Command) {
    let cases = file("cases", &crate::cases::input());
    let options = [&["--check", path(&cases)], LONG].concat();
    let finished = run(caller(&options));
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let (results, expected) =
        (crate::cases::results(&finished.stdout), include_str!("../expected.txt"));
    for (line, expected) in results.lines().zip(expected.lines()) {
        assert_eq!(line, expected, "{}", finished.stderr);
    }
    assert_eq!(results.lines().count(), expected.lines().count(), "{}", finished.stderr);
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

/// The folder `cross-language`.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Tells `run` the directory of the Rust programs.
const RUST_DIRECTORY: &str = "CROSS_LANGUAGE_RUST";

/// The directory of the Rust programs. Cargo puts them beside this program, or above this test.
fn directory() -> PathBuf {
    let this = std::env::current_exe().expect("a path");
    let beside = this.parent().expect("a directory");
    if beside.ends_with("deps") { beside.join("..") } else { beside.to_owned() }
}
