//! The paths, directories and commands with which programs are started.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use rusteron_core::program::Failure;
use rusteron_test_support::networks::Network;
use tempfile::TempDir;

/// The path of this program.
///
/// # Errors
/// [`Failure::Run`] if the system does not tell it.
pub fn own_program() -> Result<PathBuf, Failure> {
    env::current_exe().map_err(|error| Failure::run("cannot tell where this program is", error))
}

/// Finds a program of ours beside this one.
///
/// # Errors
/// [`Failure::Run`] if it is another program, or missing.
pub fn find_program(name: &str, package: &str) -> Result<PathBuf, Failure> {
    checked(own_program()?.with_file_name(name), name, package)
}

fn checked(path: PathBuf, name: &str, package: &str) -> Result<PathBuf, Failure> {
    let unusable = |reason: &str| {
        Failure::Run(format!(
            "{}, which `cargo build --release -p {package}` builds, cannot be used: {reason}",
            path.display()
        ))
    };
    let version = Command::new(&path).arg("--version").output();
    let version = version.map_err(|error| unusable(&error.to_string()))?;
    let is_it =
        [package, name].iter().any(|it| version.stdout.starts_with(format!("{it} ").as_bytes()));
    if version.status.success() && is_it {
        return Ok(path);
    }
    Err(unusable("it prints another version"))
}

/// A directory below another one, or in memory if the system has such a place. It goes with its
/// value.
///
/// # Errors
/// [`Failure::Run`] if it cannot be made.
pub fn temporary_dir(below: Option<&Path>) -> Result<TempDir, Failure> {
    let shm = Path::new("/dev/shm");
    let other = if shm.is_dir() { shm.to_owned() } else { env::temp_dir() };
    let dir = below.unwrap_or(&other);
    tempfile::Builder::new()
        .prefix(&format!("rusteron-benchmark-{}-", process::id()))
        .tempdir_in(dir)
        .map_err(|error| Failure::run(format_args!("no directory in {}", dir.display()), error))
}

/// Lets a command run in a network, if there is one.
pub fn in_network(command: Command, network: Option<&Network>) -> Command {
    match network {
        Some(network) => network.within(command),
        None => command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_program_is_refused() {
        let cargo = PathBuf::from(env!("CARGO"));
        assert_eq!(checked(cargo.clone(), "cargo", "x"), Ok(cargo.clone()));
        assert_eq!(checked(cargo.clone(), "x", "cargo"), Ok(cargo.clone()));
        let missing = own_program().expect("a path").with_file_name("no such program");
        for (path, reason) in [(cargo, "another version"), (missing, "cannot be used: ")] {
            let failure = checked(path, "car", "go").expect_err(reason).to_string();
            assert!(failure.contains(reason), "{failure}");
        }
    }
}
