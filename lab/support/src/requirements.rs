//! Requirements of some tests that not every machine fulfils.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// Says why a test does nothing, unless a variable such as `RUSTERON_REQUIRE_JAVA` is 1: then that is a failure.
pub fn skip(variable: &str, reason: &str) {
    assert!(!is_required(variable), "{variable}=1, but {reason}");
    // The test harness would keep `eprintln!` to itself when the test succeeds.
    let _ = writeln!(io::stderr(), "skipped: {reason}");
}

fn is_required(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

/// The script that starts Aeron's Java programs; every package of the workspace is beside its folder.
pub fn java_run() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../java/run")
}

/// Returns whether the programs that [`java_run`] needs are there, and fetches Aeron's artifacts if they are not here
/// yet. If something is missing, prints it, and the test is over. `RUSTERON_REQUIRE_JAVA=1` makes that a failure.
pub fn has_java() -> bool {
    is_there(java())
}

/// As [`has_java`], for tests that do without Java: prints nothing.
#[cfg(feature = "archive")]
pub(crate) fn java_or_required() -> bool {
    if is_required("RUSTERON_REQUIRE_JAVA") { has_java() } else { java().is_ok() }
}

/// Returns what is missing of Java, if anything.
fn java() -> &'static Result<(), String> {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    let prepare = || prepare_java(&mut Command::new(java_run()), "io.aeron.driver.MediaDriver");
    FOUND.get_or_init(prepare)
}

/// Returns whether something was found. If not, says what is missing, or fails if Java is required.
pub(crate) fn is_there(found: &Result<(), String>) -> bool {
    if let Err(missing) = found {
        skip("RUSTERON_REQUIRE_JAVA", missing);
    }
    found.is_ok()
}

/// Copies Aeron's artifacts, archives their classes and compiles a program of `java`, unless that was done before.
/// `script` is [`java_run`].
/// Deadlines that wait for the program begin afterwards.
///
/// # Errors
/// A requirement of the script that is missing, or the output of Maven or the compiler.
pub fn prepare_java(script: &mut Command, program: &str) -> Result<(), String> {
    script.args(["--prepare", program, "-Xshare:auto"]);
    let output = script.output().map_err(|error| error.to_string())?;
    let errors = || String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(errors()) }
}

/// Returns the folder of the sources that `rusteron-sys` was compiled from. A tree of a package can lack parts that are
/// not compiled.
pub fn aeron_source() -> &'static Path {
    Path::new(env!("RUSTERON_AERON_SOURCE"))
}

/// Makes a directory in shared memory, if there is any.
///
/// # Errors
/// The operating system's.
pub fn memory_dir(prefix: &str) -> io::Result<TempDir> {
    let shared_memory = Path::new("/dev/shm");
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    if shared_memory.is_dir() { builder.tempdir_in(shared_memory) } else { builder.tempdir() }
}

/// A small file system of its own. Only the superuser can mount one.
///
/// Tests that count on freed space need a binary without tests that start processes. A child
/// process inherits open files, and with them their space.
pub struct SmallFileSystem(TempDir);

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
            skip("RUSTERON_REQUIRE_MOUNT", "a file system cannot be mounted");
        }
        mounted.then_some(Self(dir))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        // Lazily: a child process of another test can have inherited open files, as C opens files
        // without `O_CLOEXEC`.
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        if !unmounted.as_ref().is_ok_and(|status| status.success()) {
            let path = self.0.path().display();
            let _ = writeln!(io::stderr(), "{path} cannot be unmounted: {unmounted:?}");
        }
    }
}
