//! The helpers that the drift tests share.

use std::env;

/// Prints why a test did nothing. Where the tools are expected to be installed,
/// `RUSTERON_REQUIRE_DRIFT_TESTS=1` turns that into a failure.
pub(crate) fn skip(reason: &str) {
    assert!(
        env::var_os("RUSTERON_REQUIRE_DRIFT_TESTS").is_none_or(|value| value != "1"),
        "RUSTERON_REQUIRE_DRIFT_TESTS is set, but this test cannot run: {reason}"
    );
    println!("skipped: {reason}");
}
