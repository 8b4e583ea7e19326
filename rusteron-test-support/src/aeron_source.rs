//! Aeron's source tree, for tests that compare the crates with it.

use std::env;
use std::path::Path;

/// Returns the folder of the sources that `rusteron-sys` was compiled from. A tree of a package can
/// lack parts that are not compiled.
pub fn aeron_source() -> &'static Path {
    Path::new(env!("RUSTERON_AERON_SOURCE"))
}

/// Prints why a drift test did nothing. `RUSTERON_REQUIRE_DRIFT_TESTS=1` makes that a failure.
pub fn skip_drift_test(reason: &str) {
    assert!(
        env::var_os("RUSTERON_REQUIRE_DRIFT_TESTS").is_none_or(|value| value != "1"),
        "RUSTERON_REQUIRE_DRIFT_TESTS is set, but this test cannot run: {reason}"
    );
    println!("skipped: {reason}");
}
