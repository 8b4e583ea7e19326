//! Generates the messages of `service.proto`, without `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=../service.proto");
    prost_build::compile_fds(protox::compile(["service.proto"], [".."])?)?;
    Ok(())
}
