//! The places where the build script looks for the Aeron sources, and its error when they are not
//! there.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::source::{self, Features, Lookup, Sources};

const VERSION: &str = "1.54.0";

/// A workspace with this crate in it, in a directory of its own whose name contains a space.
struct Workspace {
    dir: tempfile::TempDir,
    source_dir: Option<OsString>,
    /// The path of the package, or the error of asking Cargo for it.
    package: Result<PathBuf, String>,
    package_queries: Cell<usize>,
}

impl Workspace {
    fn offline() -> Self {
        let dir = tempfile::Builder::new().prefix("source lookup ").tempdir().unwrap();
        fs::create_dir(dir.path().join("crate")).unwrap();
        Self {
            dir,
            source_dir: None,
            package: Err("cargo metadata failed: no network".to_string()),
            package_queries: Cell::new(0),
        }
    }

    fn with_package(mut self) -> Self {
        let package = self.path("registry/package-1.54.0");
        tree(&package.join("aeron"), VERSION);
        codecs(&package.join("generated"));
        self.package = Ok(package);
        self
    }

    fn with_source_dir(mut self, dir: impl Into<OsString>) -> Self {
        self.source_dir = Some(dir.into());
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn sources(&self) -> Result<Sources, String> {
        self.find(false)
    }

    fn sources_with_codecs(&self) -> Result<Sources, String> {
        self.find(true)
    }

    fn find(&self, with_codecs: bool) -> Result<Sources, String> {
        let lookup = Lookup {
            version: VERSION,
            manifest_dir: &self.path("crate"),
            source_dir: self.source_dir.clone(),
            package_dir: &|| {
                self.package_queries.set(self.package_queries.get() + 1);
                self.package.clone()
            },
        };
        lookup.sources(with_codecs)
    }
}

fn tree(dir: &Path, version: &str) {
    for part in ["client", "driver", "archive"] {
        fs::create_dir_all(dir.join(format!("aeron-{part}/src/main/c"))).unwrap();
    }
    fs::write(dir.join("version.txt"), format!("{version}\n")).unwrap();
}

fn codecs(dir: &Path) {
    let dir = dir.join("c/aeron_archive_client");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("messageHeader.h"), "").unwrap();
}

#[test]
fn environment_comes_first() {
    let mut workspace = Workspace::offline().with_package();
    for place in ["named", "crate/aeron", "aeron"] {
        tree(&workspace.path(place), VERSION);
    }
    workspace.source_dir = Some(workspace.path("named").into());

    assert_eq!(workspace.sources().unwrap().tree, workspace.path("named"));
    assert_eq!(workspace.package_queries.get(), 0);
}

#[test]
fn environment_with_other_version() {
    let workspace = Workspace::offline().with_package();
    let named = workspace.path("named");
    tree(&named, "1.53.0");
    let error = workspace.with_source_dir(&named).sources().unwrap_err();

    assert_eq!(
        error,
        format!(
            "AERON_SOURCE_DIR: {}: this is Aeron 1.53.0, and this crate is made for 1.54.0",
            named.display()
        )
    );
}

#[test]
fn environment_without_tree() {
    let workspace = Workspace::offline().with_package();
    let named = workspace.path("crate");
    let error = workspace.with_source_dir(&named).sources().unwrap_err();

    assert!(error.starts_with("AERON_SOURCE_DIR: "), "{error}");
    assert!(error.contains("not an Aeron source tree"), "{error}");
}

#[test]
fn environment_without_driver() {
    let workspace = Workspace::offline().with_package();
    let named = workspace.path("named");
    tree(&named, VERSION);
    fs::remove_dir_all(named.join("aeron-driver")).unwrap();
    let error = workspace.with_source_dir(&named).sources().unwrap_err();

    assert!(error.contains("the directory aeron-driver/src/main/c is missing"), "{error}");
}

#[test]
fn environment_with_relative_path() {
    let workspace = Workspace::offline().with_package().with_source_dir("../aeron");
    let error = workspace.sources().unwrap_err();

    assert!(error.contains("must be an absolute path"), "{error}");
}

#[test]
fn empty_environment_is_unset() {
    let workspace = Workspace::offline().with_source_dir("");
    tree(&workspace.path("aeron"), VERSION);

    assert_eq!(workspace.sources().unwrap().tree, workspace.path("aeron"));
}

#[test]
fn crate_before_submodule() {
    let workspace = Workspace::offline();
    tree(&workspace.path("crate/aeron"), VERSION);
    tree(&workspace.path("aeron"), VERSION);

    assert_eq!(workspace.sources().unwrap().tree, workspace.path("crate/aeron"));
}

#[test]
fn submodule_before_package() {
    let workspace = Workspace::offline().with_package();
    tree(&workspace.path("aeron"), VERSION);
    let sources = workspace.sources().unwrap();

    assert_eq!(sources.tree, workspace.path("aeron"));
    assert_eq!(sources.warnings, Vec::<String>::new());
    assert_eq!(workspace.package_queries.get(), 0);
}

#[test]
fn submodule_of_other_version_warns() {
    let workspace = Workspace::offline().with_package();
    tree(&workspace.path("aeron"), "1.55.0");
    let sources = workspace.sources().unwrap();

    assert_eq!(sources.tree, workspace.path("registry/package-1.54.0/aeron"));
    let [warning] = &sources.warnings[..] else { panic!("{:?}", sources.warnings) };
    assert!(warning.contains("passing over the submodule"), "{warning}");
    assert!(warning.contains("this is Aeron 1.55.0"), "{warning}");
}

#[test]
fn package_is_last() {
    let workspace = Workspace::offline().with_package();
    let sources = workspace.sources().unwrap();

    assert_eq!(sources.tree, workspace.path("registry/package-1.54.0/aeron"));
    assert_eq!(sources.codecs, None);
}

#[test]
fn package_of_other_version() {
    let workspace = Workspace::offline().with_package();
    tree(&workspace.path("registry/package-1.54.0/aeron"), "1.51.0");
    let error = workspace.sources().unwrap_err();

    assert!(error.contains("this is Aeron 1.51.0"), "{error}");
}

#[test]
fn error_names_places_and_command() {
    let workspace = Workspace::offline();
    tree(&workspace.path("aeron"), "1.55.0");
    let error = workspace.sources().unwrap_err();

    for part in [
        "no source tree of Aeron 1.54.0 found".to_string(),
        "AERON_SOURCE_DIR is not set".to_string(),
        format!("{} does not exist", workspace.path("crate/aeron").display()),
        format!("{}: this is Aeron 1.55.0", workspace.path("aeron").display()),
        "the package libaeron_archive_c_client-sys 1.54.0: cargo metadata failed".to_string(),
        "no network".to_string(),
        "`cargo fetch`".to_string(),
    ] {
        assert!(error.contains(&part), "`{part}` is missing from:\n{error}");
    }

    fs::remove_dir_all(workspace.path("aeron")).unwrap();
    let error = workspace.sources().unwrap_err();
    let part = format!("{} is not checked out", workspace.path("aeron").display());
    assert!(error.contains(&part), "{error}");
}

#[test]
fn codecs_beside_tree() {
    let workspace = Workspace::offline();
    let named = workspace.path("unpacked/aeron");
    tree(&named, VERSION);
    codecs(&workspace.path("unpacked/generated"));
    let workspace = workspace.with_source_dir(named);

    let expected = workspace.path("unpacked/generated");
    assert_eq!(workspace.sources_with_codecs().unwrap().codecs, Some(expected));
    assert_eq!(workspace.package_queries.get(), 0);
}

#[test]
fn codecs_inside_crate() {
    let workspace = Workspace::offline();
    tree(&workspace.path("crate/aeron"), VERSION);
    codecs(&workspace.path("crate/aeron-generated"));

    let expected = workspace.path("crate/aeron-generated");
    assert_eq!(workspace.sources_with_codecs().unwrap().codecs, Some(expected));
    assert_eq!(workspace.package_queries.get(), 0);
}

#[test]
fn codecs_from_package() {
    let workspace = Workspace::offline().with_package();
    tree(&workspace.path("aeron"), VERSION);
    let sources = workspace.sources_with_codecs().unwrap();

    assert_eq!(sources.tree, workspace.path("aeron"));
    assert_eq!(sources.codecs, Some(workspace.path("registry/package-1.54.0/generated")));
}

#[test]
fn missing_codecs_error() {
    let workspace = Workspace::offline();
    tree(&workspace.path("aeron"), VERSION);
    let error = workspace.sources_with_codecs().unwrap_err();

    assert!(error.contains("no archive codecs of Aeron 1.54.0 found"), "{error}");
    assert!(error.contains("`cargo fetch`"), "{error}");
    assert!(!error.contains("AERON_SOURCE_DIR"), "{error}");
}

#[test]
fn watches_existing_paths() {
    let workspace = Workspace::offline().with_package();
    let features = Features { driver: true, archive: true };
    let inputs = || workspace.sources_with_codecs().unwrap().inputs(features);

    // Cargo takes a missing path for a path that changes every time. The fake tree has no
    // CMakeLists.
    let exists = |path: &PathBuf| path.exists() || path.ends_with("CMakeLists.txt");
    assert!(inputs().iter().all(exists), "{:?}", inputs());
    assert!(!inputs().contains(&workspace.path("aeron")));

    // Git leaves an empty directory for a submodule that is not checked out yet.
    fs::create_dir(workspace.path("aeron")).unwrap();
    assert!(inputs().contains(&workspace.path("aeron")));

    tree(&workspace.path("aeron"), "1.55.0");
    assert!(inputs().contains(&workspace.path("aeron/version.txt")));
    assert!(inputs().iter().all(exists), "{:?}", inputs());
}

#[test]
fn package_from_metadata() {
    let metadata = |manifest: &str| {
        format!(
            r#"{{"packages":[{{"name":"cc","manifest_path":"/r/cc-1.54.0/Cargo.toml"}},
            {{"name":"p","manifest_path":"{manifest}"}}]}}"#
        )
    };
    let found = |manifest: &str| source::manifest_path(&metadata(manifest), VERSION);

    for right in [
        "/a b/src/libaeron_archive_c_client-sys-1.54.0/Cargo.toml",
        "/vendor/libaeron_archive_c_client-sys/Cargo.toml",
    ] {
        assert_eq!(found(right), Some(PathBuf::from(right)));
    }
    assert_eq!(found("/src/libaeron_archive_c_client-sys-1.53.0/Cargo.toml"), None);
}

/// Returns what the build script of a crate in `crate_dir` finds that builds into `out_dir`.
fn package_dir(crate_dir: &Path, out_dir: &Path) -> Result<PathBuf, String> {
    source::package_dir(crate_dir, out_dir, VERSION)
}

#[test]
fn package_beside_vendored_crate() {
    for name in ["libaeron_archive_c_client-sys", "libaeron_archive_c_client-sys-1.54.0"] {
        let workspace = Workspace::offline();
        let package = workspace.path(name);
        tree(&package.join("aeron"), VERSION);

        assert_eq!(package_dir(&workspace.path("crate"), &workspace.path("out")), Ok(package));
    }
}

#[test]
fn package_beside_of_other_version() {
    let workspace = Workspace::offline();
    tree(&workspace.path("libaeron_archive_c_client-sys/aeron"), "1.51.0");
    let error = package_dir(&workspace.path("crate"), &workspace.path("out")).unwrap_err();

    assert!(error.contains("cargo metadata failed"), "{error}");
}

#[test]
fn package_vendored_by_built_workspace() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path();
    fs::create_dir_all(project.join("src")).unwrap();
    fs::write(project.join("src/lib.rs"), "").unwrap();
    let manifest = format!(
        "[package]\nname = \"dependent\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [dependencies]\nrusteron-sys = {{ path = '{}' }}\n\
         [workspace]\n",
        crate_dir.display()
    );
    fs::write(project.join("Cargo.toml"), manifest).unwrap();
    // The versions of this build are here already, so `cargo vendor` needs no network.
    let lock = crate_dir.join("../Cargo.lock");
    if lock.is_file() {
        fs::copy(lock, project.join("Cargo.lock")).unwrap();
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let vendor =
        Command::new(cargo).args(["vendor", "--offline"]).current_dir(project).output().unwrap();
    assert!(vendor.status.success(), "{}", String::from_utf8_lossy(&vendor.stderr));
    fs::create_dir(project.join(".cargo")).unwrap();
    fs::write(project.join(".cargo/config.toml"), vendor.stdout).unwrap();

    // Only the built workspace names this package. The crate's own workspace has another.
    let out_dir = project.join("target/debug/build/rusteron-sys-0/out");
    let vendored = project.join("vendor/libaeron_archive_c_client-sys").canonicalize().unwrap();
    assert_eq!(package_dir(crate_dir, &out_dir).unwrap().canonicalize().unwrap(), vendored);
}

#[test]
fn missing_manifest() {
    let workspace = Workspace::offline();
    let error = package_dir(&workspace.path("crate"), &workspace.path("out")).unwrap_err();

    assert!(error.contains("cargo metadata failed"), "{error}");
}
