//! Generates the settings of `ArchiveContext`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Err(error) = rusteron_codegen::generate("ArchiveContext", "aeron_archive_context") {
        eprintln!("\nrusteron-archive: {error}\n");
        std::process::exit(1);
    }
}
