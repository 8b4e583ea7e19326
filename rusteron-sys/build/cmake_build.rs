//! Builds through Aeron's own CMakeLists (feature `cmake`), for targets the table does not cover.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::cmake_options::{
    DEFINITIONS, FIND_JAVA, LINUX_DEFINITIONS, MINIMUM_VERSION, do_nothing, parse_version,
};
use crate::compile;
use crate::guards::{INCLUDED, guarded, guards};
use crate::out_dir;
use crate::source::{Features, Sources};
use crate::target::{Platform, Target};

pub(crate) fn build(sources: &Sources, features: Features, target: &Target) -> Result<(), String> {
    println!("cargo::rerun-if-env-changed=CMAKE");
    check_version()?;
    let entry = sources.tree.join("CMakeLists.txt");
    if !entry.is_file() {
        return Err(format!("{} does not exist: the feature `cmake` needs it", entry.display()));
    }

    let mut libraries = Vec::new();
    if features.archive {
        libraries.push("aeron_archive_c_client_static");
    }
    // The driver's library contains the client's code, so only one of the two may be linked.
    libraries.push(if features.driver { "aeron_driver_static" } else { "aeron_static" });

    let mut config = configure(sources, features, target)?;
    for library in &libraries {
        config.build_target(library).build();
    }

    let built = out_dir().join("build");
    for dir in ["lib", "lib/Release"] {
        println!("cargo::rustc-link-search=native={}", built.join(dir).display());
    }
    for library in libraries {
        println!("cargo::rustc-link-lib=static={library}");
    }
    Ok(())
}

/// Aeron's CMakeLists would refuse an old CMake as well, in many more lines.
fn check_version() -> Result<(), String> {
    let (major, minor) = MINIMUM_VERSION;
    let needed = format!("the feature `cmake` needs CMake {major}.{minor} or later");
    let output = Command::new(cmake())
        .arg("--version")
        .output()
        .map_err(|error| format!("{needed}, and `{}` does not run: {error}", cmake()))?;
    let output = String::from_utf8_lossy(&output.stdout);
    match parse_version(&output) {
        Some(found) if found >= MINIMUM_VERSION => Ok(()),
        _ => {
            let found = output.lines().next().unwrap_or("nothing");
            Err(format!("{needed}, and `{} --version` says: {found}", cmake()))
        }
    }
}

/// Returns the program, as the `cmake` crate chooses it.
fn cmake() -> String {
    env::var("CMAKE").unwrap_or_else(|_| "cmake".to_string())
}

fn configure(
    sources: &Sources,
    features: Features,
    target: &Target,
) -> Result<cmake::Config, String> {
    let on_off = |on: bool| if on { "ON" } else { "OFF" };
    let mut config = cmake::Config::new(&sources.tree);
    config
        // Aeron's CMakeLists ask git for the commit. A repository around the tree is not Aeron's.
        .env("GIT_CEILING_DIRECTORIES", sources.tree.parent().unwrap_or(&sources.tree))
        .profile("Release")
        .pic(true)
        .define("BUILD_AERON_DRIVER", on_off(features.driver))
        .define("BUILD_AERON_ARCHIVE_API", on_off(features.archive))
        .define("CMAKE_MODULE_PATH", for_cmake(module_dir()?))
        .define("CMAKE_PROJECT_TOP_LEVEL_INCLUDES", for_cmake(shim_file(sources, features)?))
        .define("GRADLE_WRAPPER", do_nothing(&for_cmake(cmake().into())));
    let platform = if target.os == Platform::Linux { LINUX_DEFINITIONS } else { &[] };
    for (name, value) in DEFINITIONS.iter().chain(platform) {
        config.define(name, value);
    }
    if let Some(codecs) = &sources.codecs {
        // A list of directories instead of a flag, because flags are split at spaces.
        config.define("CMAKE_C_STANDARD_INCLUDE_DIRECTORIES", for_cmake(codecs.clone()));
    }
    for flag in compile::hardening_flags(target) {
        config.cflag(flag);
    }
    let flags = env::var(compile::C_FLAGS_VARIABLE).unwrap_or_default();
    for flag in flags.split_whitespace() {
        config.cflag(flag);
    }
    if !target.msvc {
        // CMake puts the profile's flags last. An `-O0` among the other flags alone would have no effect. Without flags,
        // this definition replaces one of an earlier build in CMake's cache.
        config.define("CMAKE_C_FLAGS_RELEASE", format!("-O3 -DNDEBUG {}", flags.trim()));
    }
    Ok(config)
}

fn module_dir() -> Result<PathBuf, String> {
    let dir = out_dir().join("cmake-modules");
    let module = dir.join("FindJava.cmake");
    fs::create_dir_all(&dir)
        .and_then(|()| fs::write(&module, FIND_JAVA))
        .map_err(|error| format!("{}: {error}", module.display()))?;
    Ok(dir)
}

/// Writes a file for CMake that renames the guarded calls to the shim's functions, and leaves out the files that the
/// shim includes. It applies to each directory whose target contains them, once all directories are known. The file also
/// lets the shim's scanners precede Aeron's.
fn shim_file(sources: &Sources, features: Features) -> Result<PathBuf, String> {
    let path = out_dir().join("shim.cmake");
    let mut text =
        format!("include_directories(BEFORE \"{}\")\n", for_cmake(compile::scanners_dir()));
    let driver = features.driver.then(|| sources.driver_dir());
    let archive = features.archive.then(|| sources.archive_dir());
    let directories = [Some(sources.client_dir()), driver, archive].into_iter().flatten();
    let directories = directories.map(|dir| format!("\"{}\"", for_cmake(dir)));
    let directories = directories.collect::<Vec<_>>().join(" ");
    let mut set_properties = |file: PathBuf, properties: String| {
        let file = for_cmake(file);
        text += &format!(
            "cmake_language(DEFER DIRECTORY \"${{CMAKE_SOURCE_DIR}}\" CALL set_source_files_properties \
             \"{file}\" DIRECTORY {directories} PROPERTIES {properties})\n"
        );
    };
    for (file, calls) in guards(sources, features)? {
        let names = calls.iter().map(|call| format!("{call}={}", guarded(call)));
        let names = names.collect::<Vec<_>>().join(";");
        set_properties(file, format!("COMPILE_DEFINITIONS \"{names}\""));
    }
    if features.archive {
        for (file, _) in INCLUDED {
            set_properties(sources.archive_dir().join(file), "HEADER_FILE_ONLY ON".to_owned());
        }
    }
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// CMake reads a backslash as the start of an escape sequence.
fn for_cmake(path: PathBuf) -> String {
    let path = path.to_string_lossy();
    if cfg!(windows) { path.replace('\\', "/") } else { path.into_owned() }
}
