//! The program `media_driver`, for the tests of other packages.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program in the directory of another one of the same build.
///
/// `cargo test --workspace` has built it. With a single package it may be missing, and is built once.
pub fn media_driver_beside(program: &str) -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let beside = || {
        let path = Path::new(program)
            .with_file_name(format!("media_driver{}", std::env::consts::EXE_SUFFIX));
        if !path.is_file() {
            build_into(path.parent().expect("a directory"));
        }
        path
    };
    PATH.get_or_init(beside).clone()
}

/// Builds it into a directory that cargo has for a profile, such as `target/debug`.
fn build_into(dir: &Path) {
    let profile = match dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let status = Command::new(env!("CARGO"))
        .args(["build", "--package", "rusteron-media-driver", "--bin", "media_driver"])
        .args(["--profile", profile, "--target-dir"])
        .arg(dir.parent().expect("a target directory"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(status.expect("cargo starts").success(), "media_driver cannot be built");
}

/// The program at a path, with nothing in the environment that changes a driver.
pub fn media_driver(program: impl AsRef<Path>) -> Command {
    crate::program::without_settings(program.as_ref())
}
