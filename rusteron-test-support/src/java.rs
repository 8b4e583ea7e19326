//! Checks that the programs which the Java tests need are there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::requirements::skip;

/// The script that starts Aeron's Java programs; every package of the workspace is beside its folder.
pub fn java_run() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../java/run")
}

/// Returns whether the programs that [`java_run`] needs are there, and fetches Aeron's artifacts if they are not here
/// yet. If something is missing, prints it, and the test is over. `RUSTERON_REQUIRE_JAVA=1` makes that a failure.
pub fn has_java() -> bool {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    let prepare = || prepare_java(&mut Command::new(java_run()), "io.aeron.driver.MediaDriver");
    is_there(FOUND.get_or_init(prepare))
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
