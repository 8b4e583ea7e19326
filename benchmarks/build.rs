//! Compiles the loops in C against the headers, and with the settings, of the one C library there is.

use std::env;
use std::process::exit;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=c");
    if let Err(message) = compile() {
        eprintln!("\nrusteron-benchmarks: {message}\n");
        exit(1);
    }
}

fn compile() -> Result<(), String> {
    let includes =
        env::var("DEP_AERON_INCLUDE").map_err(|error| format!("rusteron-sys: {error}"))?;
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
