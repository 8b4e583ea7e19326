//! Generates the settings of `ArchiveContext`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Err(error) = rusteron_codegen::generate(
        "ArchiveContext",
        "aeron_archive_context",
        "client/aeron_archive.h",
    ) {
        eprintln!("\nrusteron-archive: {error}\n");
        std::process::exit(1);
    }
}
