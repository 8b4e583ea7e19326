//! Passes the compiler's version to the programs, which name it in their reports.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=RUSTERON_RUSTC_VERSION={}", rustc_version());
}

/// Returns the output of `rustc --version`. A report without a version is better than a build that
/// fails.
fn rustc_version() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    version.ok().filter(|version| !version.is_empty()).unwrap_or_else(|| "unknown".into())
}
