//! Tells the tests where Aeron's source tree is.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let source = std::env::var("DEP_AERON_SOURCE").unwrap_or_default();
    println!("cargo::rustc-env=RUSTERON_AERON_SOURCE={source}");
}
