//! Compiles Aeron's C code once, into one static library, and publishes the directories of its
//! headers.
//!
//! `source` finds the tree. `target` has the needs of each platform. `compile` drives `cc`, or
//! `cmake_build` drives CMake. `guards` names the calls of Aeron's that the shim checks. `bindings`
//! regenerates the Rust declarations on request.

#[cfg(feature = "bindgen")]
mod bindings;
#[cfg(feature = "cmake")]
mod cmake_build;
#[cfg(feature = "cmake")]
mod cmake_options;
mod compile;
mod guards;
mod source;
mod target;

use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::exit;

use source::{Features, Sources};

/// The Aeron release of this crate, named only here.
const AERON_VERSION: &str = "1.54.0";

fn main() {
    if let Err(message) = run() {
        eprintln!("\nrusteron-sys: {message}\n");
        exit(1);
    }
}

fn run() -> Result<(), String> {
    for input in ["build", "shim"] {
        println!("cargo::rerun-if-changed={input}");
    }
    for variable in [source::SOURCE_DIR_VARIABLE, compile::C_FLAGS_VARIABLE] {
        println!("cargo::rerun-if-env-changed={variable}");
    }

    let target = target::Target::from_cargo()?;
    let features = Features {
        driver: env::var_os("CARGO_FEATURE_DRIVER").is_some(),
        archive: env::var_os("CARGO_FEATURE_ARCHIVE").is_some(),
    };
    let sources = locate(features)?;
    for warning in &sources.warnings {
        println!("cargo::warning={warning}");
    }
    for input in sources.inputs(features) {
        println!("cargo::rerun-if-changed={}", input.display());
    }

    #[cfg(feature = "bindgen")]
    bindings::generate(&sources, &out_dir())?;

    #[cfg(feature = "cmake")]
    cmake_build::build(&sources, features, &target)?;

    let plan = compile::Plan::new(&sources, features, &target)?;
    // Miri cannot call C functions, and links nothing.
    #[cfg(not(feature = "cmake"))]
    if env::var_os("CARGO_CFG_MIRI").is_none() {
        plan.compile(features, &target)?;
    }
    #[cfg(feature = "cmake")]
    plan.compile_beside_cmake(features, &target)?;

    for library in target.libraries() {
        println!("cargo::rustc-link-lib={library}");
    }
    publish(&sources, features, &plan)
}

fn locate(features: Features) -> Result<Sources, String> {
    let manifest_dir = manifest_dir();
    let lookup = source::Lookup {
        version: AERON_VERSION,
        manifest_dir: &manifest_dir,
        source_dir: env::var_os(source::SOURCE_DIR_VARIABLE),
        package_dir: &|| source::package_dir(&manifest_dir, &out_dir(), AERON_VERSION),
    };
    lookup.sources(features.archive)
}

/// Passes the tree to build scripts of dependent crates as `DEP_AERON_*`, and to this crate's own
/// code and tests as compile-time environment variables.
fn publish(sources: &Sources, features: Features, plan: &compile::Plan) -> Result<(), String> {
    let bindings = if cfg!(feature = "bindgen") {
        out_dir()
    } else {
        manifest_dir().join("src").join("bindings")
    };
    println!("cargo::metadata=version={AERON_VERSION}");
    println!("cargo::metadata=source={}", sources.tree.display());
    println!("cargo::metadata=bindings={}", bindings.display());
    let includes = sources.include_dirs(features);
    let joined = env::join_paths(&includes).map_err(|error| error.to_string())?;
    println!("cargo::metadata=include={}", joined.to_string_lossy());

    let mut record = String::new();
    for file in &plan.files {
        let _ = writeln!(record, "file {}", file.display());
    }
    for (name, value) in &plan.defines {
        let _ = match value {
            Some(value) => writeln!(record, "define {name}={value}"),
            None => writeln!(record, "define {name}"),
        };
    }
    let path = out_dir().join("compile-plan.txt");
    std::fs::write(&path, record).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("cargo::metadata=plan={}", path.display());

    println!("cargo::rustc-env=RUSTERON_AERON_VERSION={AERON_VERSION}");
    println!("cargo::rustc-env=RUSTERON_AERON_SOURCE={}", sources.tree.display());
    println!("cargo::rustc-env=RUSTERON_BINDINGS_DIR={}", bindings.display());
    println!("cargo::rustc-env=RUSTERON_COMPILE_PLAN={}", path.display());
    Ok(())
}

fn out_dir() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR for build scripts"))
}

fn manifest_dir() -> PathBuf {
    let dir = env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets CARGO_MANIFEST_DIR");
    Path::new(&dir).to_path_buf()
}
