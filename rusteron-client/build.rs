//! Generates the settings of `Context`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Err(error) = rusteron_codegen::generate("Context", "aeron_context") {
        eprintln!("\nrusteron-client: {error}\n");
        std::process::exit(1);
    }
}
