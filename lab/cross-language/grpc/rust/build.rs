//! Generates client and server from `service.proto`, without `protoc`. The crate of the service has
//! the messages.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=../../service.proto");
    let descriptors = protox::compile(["service.proto"], ["../.."])?;
    tonic_prost_build::configure()
        .extern_path(".crosslanguage", "::cross_language::protocol")
        .compile_fds(descriptors)?;
    Ok(())
}
