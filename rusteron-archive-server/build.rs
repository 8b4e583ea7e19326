//! Generates the settings of `ArchiveServerContext`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The embedded driver finds functions that settings name in the program.
    let is_unix = std::env::var_os("CARGO_CFG_UNIX").is_some();
    if is_unix && std::env::var_os("CARGO_FEATURE_BINARY").is_some() {
        println!("cargo::rustc-link-arg-bins=-rdynamic");
    }
    if let Err(error) = rusteron_codegen::generate_plain("ArchiveServerContext", "settings.txt") {
        eprintln!("\nrusteron-archive-server: {error}\n");
        std::process::exit(1);
    }
}
