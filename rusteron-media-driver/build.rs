//! Generates the settings of `DriverContext`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The tests compare with the sources.
    let source = std::env::var("DEP_AERON_SOURCE").unwrap_or_default();
    println!("cargo::rustc-env=RUSTERON_DRIVER_SOURCE={source}/aeron-driver/src/main/c");
    export_symbols();
    if let Err(error) = rusteron_codegen::generate("DriverContext", "aeron_driver_context") {
        eprintln!("\nrusteron-media-driver: {error}\n");
        std::process::exit(1);
    }
}

/// Exports the program's functions, so that C finds them by name: by the function names in the
/// environment, and from libraries that the program has loaded. Aeron's own program, which is
/// linked with a shared library, exports them as well.
fn export_symbols() {
    let is_unix = std::env::var_os("CARGO_CFG_UNIX").is_some();
    if is_unix && std::env::var_os("CARGO_FEATURE_BINARY").is_some() {
        println!("cargo::rustc-link-arg-bins=-rdynamic");
    }
}
