//! Aeron's Java code of the release of the C code.

use std::process::Command;

use super::turn::Turn;
use crate::java::is_there;
use crate::java_run;

/// Compiles Aeron's Java code, unless that was done before. If that fails, says why, and the test is over.
/// `RUSTERON_REQUIRE_JAVA=1` makes that a failure.
pub fn has_compiled_aeron() -> bool {
    let _turn = Turn::take("compile-aeron");
    let script = java_run().with_file_name("compile-aeron");
    let output = Command::new(script).output().expect("the script starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    is_there(if output.status.success() { Ok(()) } else { Err(errors.into_owned()) })
}
