//! Compiles the loops in C against the headers, and with the settings, of the one C library there
//! is. Passes the version of rustc to the programs, which name it in their reports, and tells them
//! where Aeron's sources are.

use std::env;
use std::process::{Command, exit};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rustc-env=RUSTERON_RUSTC_VERSION={}", rustc_version());
    if let Err(message) = compile() {
        eprintln!("\nrusteron-benchmarks: {message}\n");
        exit(1);
    }
}

fn compile() -> Result<(), String> {
    let published = |name: &str| {
        env::var(format!("DEP_AERON_{name}")).map_err(|error| format!("rusteron-sys: {error}"))
    };
    for name in ["SOURCE", "PLAN"] {
        println!("cargo::rustc-env=RUSTERON_AERON_{name}={}", published(name)?);
    }
    let includes = published("INCLUDE")?;
    // As rusteron-sys compiles Aeron.
    cc::Build::new()
        .file("c/loops.c")
        .includes(env::split_paths(&includes))
        .std("c11")
        .opt_level(3)
        .define("NDEBUG", None)
        .warnings(false)
        .try_compile("rusteron_benchmarks")
        .map_err(|error| error.to_string())
}

/// Returns the output of `rustc --version`. A report without a version is better than a build that
/// fails.
fn rustc_version() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    version.ok().filter(|version| !version.is_empty()).unwrap_or_else(|| "unknown".into())
}
