//! Linking, scanners, the lookup of Aeron's sources, and drift tests of bindings and build.

mod bindings_drift;
mod cmake_parity;
#[allow(dead_code, reason = "the build script uses the rest")]
#[path = "../../build/guards.rs"]
mod guards;
#[cfg(unix)]
mod hardening;
mod linking;
mod scanners;
#[allow(dead_code, reason = "the build script uses the rest")]
#[path = "../../build/source.rs"]
mod source;
mod source_lookup;

/// Prints why a test did nothing. Where the tools are expected to be installed,
/// `RUSTERON_REQUIRE_DRIFT_TESTS=1` turns that into a failure.
fn skip(reason: &str) {
    assert!(
        std::env::var_os("RUSTERON_REQUIRE_DRIFT_TESTS").is_none_or(|value| value != "1"),
        "RUSTERON_REQUIRE_DRIFT_TESTS is set, but this test cannot run: {reason}"
    );
    println!("skipped: {reason}");
}
