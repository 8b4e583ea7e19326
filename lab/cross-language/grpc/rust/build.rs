//! Generates messages, client and server from `service.proto`, without `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=../service.proto");
    let descriptors = protox::compile(["service.proto"], [".."])?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
