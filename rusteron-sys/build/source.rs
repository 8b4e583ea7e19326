//! Finds the Aeron source tree: the environment, the crate itself, the submodule, the package.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Features, manifest_dir};

/// Names a checked-out Aeron tree to compile instead of any other.
pub(crate) const SOURCE_DIR_VARIABLE: &str = "AERON_SOURCE_DIR";

/// The published package that carries the tree in `aeron/` and the archive codecs in `generated/`.
const PACKAGE: &str = "libaeron_archive_c_client-sys";

const CLIENT: &str = "aeron-client/src/main/c";
const DRIVER: &str = "aeron-driver/src/main/c";
const ARCHIVE: &str = "aeron-archive/src/main/c";
const CODEC_MARKER: &str = "c/aeron_archive_client/messageHeader.h";

/// A complete tree of the right version, and the archive codecs generated for it.
pub(crate) struct Sources {
    pub(crate) tree: PathBuf,
    /// The directory that `#include "c/aeron_archive_client/..."` is relative to; set when asked for.
    pub(crate) codecs: Option<PathBuf>,
}

impl Sources {
    pub(crate) fn locate(version: &str, with_codecs: bool) -> Result<Self, String> {
        let mut searched = Vec::new();
        let tree = match local_tree(version, &mut searched)? {
            Some(tree) => tree,
            None => {
                let tree = package_dir(version, &searched)?.join("aeron");
                check_tree(&tree, version)?;
                tree
            }
        };
        let codecs =
            if with_codecs { Some(locate_codecs(&tree, version, &searched)?) } else { None };
        Ok(Self { tree, codecs })
    }

    pub(crate) fn client_dir(&self) -> PathBuf {
        self.tree.join(CLIENT)
    }

    pub(crate) fn driver_dir(&self) -> PathBuf {
        self.tree.join(DRIVER)
    }

    pub(crate) fn archive_dir(&self) -> PathBuf {
        self.tree.join(ARCHIVE)
    }

    /// Everything whose change must rebuild the library.
    pub(crate) fn inputs(&self, features: &Features) -> Vec<PathBuf> {
        let mut inputs = vec![self.tree.join("version.txt")];
        inputs.extend(self.include_dirs(features));
        if cfg!(feature = "cmake") {
            inputs.push(self.tree.join("CMakeLists.txt"));
        }
        inputs
    }

    pub(crate) fn include_dirs(&self, features: &Features) -> Vec<PathBuf> {
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

/// The three places that need no network. A tree that somebody asked for by name must be right;
/// a submodule of another version is passed over with a warning.
fn local_tree(version: &str, searched: &mut Vec<String>) -> Result<Option<PathBuf>, String> {
    if let Some(dir) = env::var_os(SOURCE_DIR_VARIABLE) {
        let tree = PathBuf::from(dir);
        check_tree(&tree, version).map_err(|why| format!("{SOURCE_DIR_VARIABLE}: {why}"))?;
        return Ok(Some(tree));
    }
    searched.push(format!("{SOURCE_DIR_VARIABLE} is not set"));

    let bundled = manifest_dir().join("aeron");
    if bundled.join("version.txt").is_file() {
        check_tree(&bundled, version)?;
        return Ok(Some(bundled));
    }
    searched.push(format!("{} does not exist", bundled.display()));

    let submodule = manifest_dir().join("..").join("aeron");
    if submodule.join("version.txt").is_file() {
        match check_tree(&submodule, version) {
            Ok(()) => return Ok(Some(submodule.canonicalize().unwrap_or(submodule))),
            Err(why) => {
                println!("cargo::warning=rusteron-sys: passing over the submodule: {why}");
                searched.push(why);
            }
        }
    } else {
        searched.push(format!("{} is not checked out", submodule.display()));
    }
    Ok(None)
}

fn check_tree(tree: &Path, version: &str) -> Result<(), String> {
    let file = tree.join("version.txt");
    let found = fs::read_to_string(&file)
        .map_err(|error| format!("{}: not an Aeron source tree: {error}", file.display()))?;
    if found.trim() != version {
        return Err(format!(
            "{}: this is Aeron {}, and this crate is made for {version}",
            tree.display(),
            found.trim()
        ));
    }
    for part in [CLIENT, DRIVER, ARCHIVE] {
        if !tree.join(part).is_dir() {
            return Err(format!("{}: the directory {part} is missing", tree.display()));
        }
    }
    Ok(())
}

/// Codecs lie beside a packaged tree; for a git checkout, which has none, the package has them.
fn locate_codecs(tree: &Path, version: &str, searched: &[String]) -> Result<PathBuf, String> {
    let beside = [
        tree.parent().map(|parent| parent.join("generated")),
        Some(manifest_dir().join("aeron-generated")),
    ];
    for candidate in beside.into_iter().flatten() {
        if candidate.join(CODEC_MARKER).is_file() {
            return Ok(candidate);
        }
    }
    let packaged = package_dir(version, searched)?.join("generated");
    if packaged.join(CODEC_MARKER).is_file() {
        return Ok(packaged);
    }
    Err(format!("{}: the archive codecs are missing", packaged.display()))
}

/// Where Cargo unpacked the package that this crate's manifest locks.
fn package_dir(version: &str, searched: &[String]) -> Result<PathBuf, String> {
    // Without the network first: it is faster, and it is all that a second build needs.
    let failure = match query_cargo(version, true) {
        Ok(dir) => return Ok(dir),
        Err(_) => match query_cargo(version, false) {
            Ok(dir) => return Ok(dir),
            Err(failure) => failure,
        },
    };
    Err(format!(
        "no source tree of Aeron {version} was found.\n  looked for:\n    {}\n    \
         the package {PACKAGE} {version}: {failure}\n  \
         what helps: run `cargo fetch` once where the crate registry can be reached, \
         or set {SOURCE_DIR_VARIABLE} to a checkout of Aeron {version}.",
        searched.join("\n    ")
    ))
}

fn query_cargo(version: &str, offline: bool) -> Result<PathBuf, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["metadata", "--format-version", "1", "--manifest-path"])
        .arg(manifest_dir().join("Cargo.toml"))
        // The query is about the host's registry cache, not about what is being built.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WRAPPER");
    if offline {
        command.arg("--offline");
    }
    let output = command.output().map_err(|error| format!("cargo metadata: {error}"))?;
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

/// The package's `manifest_path` in Cargo's JSON. Its directory ends in `name-version`, which no
/// other string of the document does, so a whole JSON parser would add nothing but build time.
fn manifest_path(metadata: &str, version: &str) -> Option<PathBuf> {
    const KEY: &str = "\"manifest_path\":\"";
    let directory = format!("{PACKAGE}-{version}");
    metadata
        .match_indices(KEY)
        .filter_map(|(at, _)| metadata[at + KEY.len()..].split('"').next())
        .map(|path| PathBuf::from(path.replace("\\\\", "\\")))
        .find(|path| {
            path.parent().and_then(Path::file_name).is_some_and(|name| *name == *directory)
        })
}
