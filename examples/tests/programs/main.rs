//! The programs, as a user runs them.
//!
//! One test program for all, so that it is linked once.

mod archive;
#[cfg(unix)]
mod cluster;
mod flagship;
#[cfg(unix)]
mod market_data;
#[cfg(all(feature = "archive", feature = "cluster"))]
mod names;
#[cfg(target_os = "linux")]
mod run_cluster;
mod samples;

use rusteron_test_support::Finished;

/// Asserts that lines with these beginnings are in the output, in this order.
#[track_caller]
fn assert_in_order(finished: &Finished, expected: &[&str]) {
    let mut lines = finished.stdout.lines();
    for expected in expected {
        assert!(lines.any(|line| line.starts_with(expected)), "{expected}: {finished:#?}");
    }
}
