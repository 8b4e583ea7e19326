//! Finds the Aeron source tree: the environment, the crate itself, the submodule, the package.
//!
//! The first tree that is found is used:
//! 1. the directory named by `AERON_SOURCE_DIR`;
//! 2. `rusteron-sys/aeron/`, in a packaged crate;
//! 3. `aeron/` in the root of the workspace, which `just aeron-checkout` clones;
//! 4. the registry package `libaeron_archive_c_client-sys`.
//!
//! In the first two places, a tree of another version stops the build; in the third, it causes a warning and is
//! skipped. The package is declared under `[target.'cfg(any())'.dependencies]`, so Cargo locks it with its
//! checksum, downloads and vendors it, and never compiles it. It is looked for beside `rusteron-sys`, where a
//! vendored or downloaded copy has it; then `cargo metadata` names its directory. A path dependency with its
//! own `CARGO_TARGET_DIR` outside of the workspace needs `AERON_SOURCE_DIR` in vendored builds. The archive's
//! codecs are generated files, which only the package and packaged crates have.
//!
//! This file neither reads the environment nor prints: `Lookup` has all inputs. So `tests/it/source_lookup.rs`
//! can include the file and try every place.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variable with a checked-out Aeron tree to compile instead of any other.
pub(crate) const SOURCE_DIR_VARIABLE: &str = "AERON_SOURCE_DIR";

/// The published package that carries the tree in `aeron/` and the archive codecs in `generated/`.
const PACKAGE: &str = "libaeron_archive_c_client-sys";

const CLIENT: &str = "aeron-client/src/main/c";
const DRIVER: &str = "aeron-driver/src/main/c";
const ARCHIVE: &str = "aeron-archive/src/main/c";
const VERSION_FILE: &str = "version.txt";
const CODEC_MARKER: &str = "c/aeron_archive_client/messageHeader.h";

/// Parts of Aeron that the enabled Cargo features need.
#[derive(Clone, Copy)]
pub(crate) struct Features {
    pub(crate) driver: bool,
    pub(crate) archive: bool,
}

/// A complete tree of the right version, and the archive codecs generated for it.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) tree: PathBuf,
    /// The directory that `#include "c/aeron_archive_client/..."` is relative to; set if requested.
    pub(crate) codecs: Option<PathBuf>,
    /// Trees that were passed over, in words for the user.
    pub(crate) warnings: Vec<String>,
    /// Existing paths outside the tree. If one changes, the search can find another tree.
    watched: Vec<PathBuf>,
}

impl Sources {
    pub(crate) fn client_dir(&self) -> PathBuf {
        self.tree.join(CLIENT)
    }

    pub(crate) fn driver_dir(&self) -> PathBuf {
        self.tree.join(DRIVER)
    }

    pub(crate) fn archive_dir(&self) -> PathBuf {
        self.tree.join(ARCHIVE)
    }

    /// Returns all paths whose change must rebuild the library.
    pub(crate) fn inputs(&self, features: Features) -> Vec<PathBuf> {
        let mut inputs = vec![self.tree.join(VERSION_FILE)];
        inputs.extend(self.include_dirs(features));
        if cfg!(feature = "cmake") {
            inputs.push(self.tree.join("CMakeLists.txt"));
        }
        inputs.extend(self.watched.clone());
        inputs
    }

    pub(crate) fn include_dirs(&self, features: Features) -> Vec<PathBuf> {
        let mut dirs = vec![self.client_dir()];
        if features.driver || cfg!(feature = "bindgen") {
            dirs.push(self.driver_dir());
        }
        if features.archive || cfg!(feature = "bindgen") {
            dirs.push(self.archive_dir());
        }
        dirs.extend(self.codecs.clone());
        dirs
    }
}

/// All inputs of the search.
pub(crate) struct Lookup<'a> {
    pub(crate) version: &'a str,
    /// The directory of this crate's manifest.
    pub(crate) manifest_dir: &'a Path,
    /// The value of `AERON_SOURCE_DIR`.
    pub(crate) source_dir: Option<OsString>,
    /// Returns the directory where Cargo unpacked the package, or why it is unknown.
    pub(crate) package_dir: &'a dyn Fn() -> Result<PathBuf, String>,
}

impl Lookup<'_> {
    pub(crate) fn sources(&self, with_codecs: bool) -> Result<Sources, String> {
        let mut found = Found::default();
        self.find_local_tree(&mut found)?;
        let tree = match found.tree.take() {
            Some(tree) => tree,
            None => {
                let advice = format!(
                    ", or set {SOURCE_DIR_VARIABLE} to a checkout of Aeron {}",
                    self.version
                );
                let tree = self.package("source tree", &found.searched, &advice)?.join("aeron");
                self.check(&tree)?;
                tree
            }
        };
        let codecs = if with_codecs { Some(self.codecs(&tree)?) } else { None };
        Ok(Sources { tree, codecs, warnings: found.warnings, watched: found.watched })
    }

    /// Searches the three places that need no network. A tree that the user named must be right. A
    /// submodule of another version is passed over with a warning.
    fn find_local_tree(&self, found: &mut Found) -> Result<(), String> {
        // An empty value means "not set" in a shell or a CI file.
        if let Some(dir) = self.source_dir.as_ref().filter(|dir| !dir.is_empty()) {
            let tree = PathBuf::from(dir);
            if tree.is_relative() {
                return Err(format!(
                    "{SOURCE_DIR_VARIABLE}: {}: must be an absolute path, because build scripts do \
                     not run in the directory where cargo was called",
                    tree.display()
                ));
            }
            self.check(&tree).map_err(|why| format!("{SOURCE_DIR_VARIABLE}: {why}"))?;
            found.tree = Some(tree);
            return Ok(());
        }
        found.searched.push(format!("{SOURCE_DIR_VARIABLE} is not set"));

        let bundled = self.manifest_dir.join("aeron");
        if bundled.join(VERSION_FILE).is_file() {
            self.check(&bundled)?;
            found.tree = Some(bundled);
            return Ok(());
        }
        found.searched.push(format!("{} does not exist", bundled.display()));

        let Some(submodule) = self.manifest_dir.parent().map(|workspace| workspace.join("aeron"))
        else {
            return Ok(());
        };
        if submodule.join(VERSION_FILE).is_file() {
            match self.check(&submodule) {
                Ok(()) => found.tree = Some(submodule),
                Err(why) => {
                    found.watched.push(submodule.join(VERSION_FILE));
                    found.warnings.push(format!("passing over the submodule: {why}"));
                    found.searched.push(why);
                }
            }
        } else {
            found.searched.push(format!("{} is not checked out", submodule.display()));
            // Git leaves an empty directory where a submodule may be checked out later. A path that
            // does not exist must not be watched: Cargo would rebuild every time.
            if submodule.is_dir() {
                found.watched.push(submodule);
            }
        }
        Ok(())
    }

    fn check(&self, tree: &Path) -> Result<(), String> {
        let file = tree.join(VERSION_FILE);
        let version = fs::read_to_string(&file)
            .map_err(|error| format!("{}: not an Aeron source tree: {error}", file.display()))?;
        if version.trim() != self.version {
            return Err(format!(
                "{}: this is Aeron {}, and this crate is made for {}",
                tree.display(),
                version.trim(),
                self.version
            ));
        }
        for part in [CLIENT, DRIVER, ARCHIVE] {
            if !tree.join(part).is_dir() {
                return Err(format!("{}: the directory {part} is missing", tree.display()));
            }
        }
        Ok(())
    }

    /// Codecs lie beside a packaged tree. A git checkout has none; its codecs come from the
    /// package.
    fn codecs(&self, tree: &Path) -> Result<PathBuf, String> {
        let beside = [
            tree.parent().map(|parent| parent.join("generated")),
            Some(self.manifest_dir.join("aeron-generated")),
        ];
        let mut searched = Vec::new();
        for candidate in beside.into_iter().flatten() {
            if candidate.join(CODEC_MARKER).is_file() {
                return Ok(candidate);
            }
            searched.push(format!("{} has no codecs", candidate.display()));
        }
        let packaged = self.package("archive codecs", &searched, "")?.join("generated");
        if packaged.join(CODEC_MARKER).is_file() {
            return Ok(packaged);
        }
        Err(format!("{}: the archive codecs are missing", packaged.display()))
    }

    fn package(&self, what: &str, searched: &[String], advice: &str) -> Result<PathBuf, String> {
        (self.package_dir)().map_err(|failure| {
            format!(
                "no {what} of Aeron {version} found.\n  looked for:\n    {}\n    \
                 the package {PACKAGE} {version}: {failure}\n  what helps: \
                 run `cargo fetch` once where the crate registry can be reached{advice}.",
                searched.join("\n    "),
                version = self.version,
            )
        })
    }
}

/// The state of a search.
#[derive(Default)]
struct Found {
    tree: Option<PathBuf>,
    searched: Vec<String>,
    warnings: Vec<String>,
    watched: Vec<PathBuf>,
}

/// Returns the directory of the package that carries the tree.
///
/// A vendored or published copy of this crate has the package beside it. A checkout has not, and
/// Cargo knows where the package is. The workspace that is being built is asked first: its vendored
/// packages need not contain the development dependencies of this crate's own workspace.
pub(crate) fn package_dir(
    manifest_dir: &Path,
    out_dir: &Path,
    version: &str,
) -> Result<PathBuf, String> {
    if let Some(package) = package_beside(manifest_dir, version) {
        return Ok(package);
    }
    if let Some(workspace) = out_dir.ancestors().find(|dir| dir.join("Cargo.lock").is_file()) {
        // `--locked`, because the lock file may belong to a user.
        if let Ok(package) = query_cargo(workspace, version, &["--offline", "--locked"]) {
            return Ok(package);
        }
    }
    // Tries without the network first: that is faster, and enough for a second build.
    query_cargo(manifest_dir, version, &["--offline"])
        .or_else(|_| query_cargo(manifest_dir, version, &[]))
}

/// Finds the package in the directory of packages that this crate is in, if it is in one.
fn package_beside(manifest_dir: &Path, version: &str) -> Option<PathBuf> {
    let packages = manifest_dir.parent()?;
    // Cargo appends the version in its registry cache, and in vendored packages on request.
    [format!("{PACKAGE}-{version}"), PACKAGE.to_string()]
        .iter()
        .map(|name| packages.join(name))
        .find(|package| {
            fs::read_to_string(package.join("aeron").join(VERSION_FILE))
                .is_ok_and(|found| found.trim() == version)
        })
}

fn query_cargo(workspace: &Path, version: &str, options: &[&str]) -> Result<PathBuf, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1"])
        .args(options)
        // Cargo reads the configuration of the current directory, which names vendored packages.
        .current_dir(workspace)
        // The query is about the packages, not about the current build.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .output()
        .map_err(|error| format!("cargo metadata in {}: {error}", workspace.display()))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata failed: {}", stderr.trim()));
    }
    let metadata = String::from_utf8_lossy(&output.stdout);
    let manifest = manifest_path(&metadata, version)
        .ok_or_else(|| "cargo metadata does not list it".to_string())?;
    let dir = manifest.parent().ok_or("its manifest has no directory")?;
    Ok(dir.to_path_buf())
}

/// Finds the package's `manifest_path` in Cargo's JSON. Its directory is called `name-version`, or
/// just `name` if it is vendored. No other package's directory is, so a whole JSON parser would
/// only add build time.
pub(crate) fn manifest_path(metadata: &str, version: &str) -> Option<PathBuf> {
    const KEY: &str = "\"manifest_path\":\"";
    let versioned = format!("{PACKAGE}-{version}");
    metadata
        .match_indices(KEY)
        .filter_map(|(at, _)| metadata[at + KEY.len()..].split('"').next())
        .map(|path| PathBuf::from(path.replace("\\\\", "\\")))
        .find(|path| {
            path.parent()
                .and_then(Path::file_name)
                .is_some_and(|name| *name == *versioned || *name == *PACKAGE)
        })
}
