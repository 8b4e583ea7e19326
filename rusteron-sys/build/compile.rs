//! Compiles the tree and the shim with the `cc` crate.
//!
//! The level of optimisation is 3 in every Cargo profile, because an unoptimised driver is too slow for debug
//! builds. No `-march` is set. C gets line tables if the profile has debug information. `RUSTERON_CFLAGS` adds
//! flags after all others. The driver's `main` is left out.
//!
//! Aeron's sources are compiled unchanged. The shim changes them in three ways: `guards` renames single calls; two files
//! are compiled as a part of a file of the shim; and two headers with the functions that walk over frames are replaced,
//! as the compiler finds the shim's first. Tests compare those functions with a walk over single frames, and Aeron's
//! headers with known sums, so that a change of Aeron's does not go unnoticed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::guards::{INCLUDED, guarded, guards};
use crate::source::{Features, Sources};
use crate::target::Target;
use crate::{AERON_VERSION, manifest_dir};

const COMPILER_ADVICE: &str = "\nA C compiler is needed: install build-essential (Debian, Ubuntu), gcc (Fedora), build-base \
     (Alpine) or Xcode's command line tools (macOS), or name one in the variable CC.";

/// Extra flags for the C compiler, separated by white space, after all others.
pub(crate) const C_FLAGS_VARIABLE: &str = "RUSTERON_CFLAGS";

/// Headers that the shim's replace: by the first the sender finds the frames of a datagram, and by the second the loss
/// detector finds gaps.
const SCANNERS: [&str; 2] =
    ["concurrent/aeron_term_scanner.h", "concurrent/aeron_term_gap_scanner.h"];

/// Returns the directory of headers that precedes all others.
pub(crate) fn scanners_dir() -> PathBuf {
    manifest_dir().join("shim/scanners")
}

/// All files and flags of the compilation. The parity test compares them with CMake's.
pub(crate) struct Plan {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) defines: Vec<(String, Option<String>)>,
    guards: Vec<(PathBuf, &'static [&'static str])>,
    includes: Vec<PathBuf>,
}

impl Plan {
    pub(crate) fn new(
        sources: &Sources,
        features: Features,
        target: &Target,
    ) -> Result<Self, String> {
        let client_dir = sources.client_dir();
        let scanners = SCANNERS.map(|header| client_dir.join(header));
        if let Some(missing) = scanners.iter().find(|path| !path.is_file()) {
            return Err(format!("{}: no such file, which is replaced", missing.display()));
        }
        let mut files = Vec::new();
        collect_c_files(&client_dir, &mut files)?;
        if features.driver {
            collect_c_files(&sources.driver_dir(), &mut files)?;
            // The C program's main(). The Rust binary `media_driver` replaces it.
            files.retain(|file| file.file_name().is_none_or(|name| name != "aeronmd.c"));
        }
        if features.archive {
            collect_c_files(&sources.archive_dir(), &mut files)?;
        }
        files.sort();
        Ok(Self {
            files,
            defines: defines(target),
            guards: guards(sources, features)?,
            includes: sources.include_dirs(features),
        })
    }

    #[cfg_attr(feature = "cmake", allow(dead_code))]
    pub(crate) fn compile(&self, features: Features, target: &Target) -> Result<(), String> {
        let failed = |error: cc::Error| {
            let error = error.to_string();
            let advice = if error.contains("failed to find tool") { COMPILER_ADVICE } else { "" };
            format!("compiling Aeron {AERON_VERSION} failed: {error}{advice}")
        };
        let builder = self.builder(target);
        let mut build = builder.clone();
        let mut unguarded = self.files.clone();
        unguarded.retain(|file| !INCLUDED.iter().any(|(included, _)| file.ends_with(included)));
        for (file, calls) in &self.guards {
            unguarded.retain(|other| other != file);
            let mut build_guarded = builder.clone();
            build_guarded.file(file);
            for call in *calls {
                build_guarded.define(call, guarded(call).as_str());
            }
            build.objects(build_guarded.try_compile_intermediates().map_err(failed)?);
        }
        build.files(unguarded).files(shim_files(features)?);
        build.try_compile("rusteron_aeron").map_err(failed)
    }

    /// The shim, and the files that Aeron's CMake target for the chosen features lacks.
    #[cfg(feature = "cmake")]
    pub(crate) fn compile_beside_cmake(
        &self,
        features: Features,
        target: &Target,
    ) -> Result<(), String> {
        let mut build = self.builder(target);
        build.files(shim_files(features)?);
        if features.driver {
            let left_out = crate::cmake_options::LEFT_OUT_OF_DRIVER;
            build.files(
                self.files.iter().filter(|file| left_out.iter().any(|name| file.ends_with(name))),
            );
        }
        build
            .try_compile("rusteron_shim")
            .map_err(|error| format!("compiling what CMake does not build failed: {error}"))
    }

    fn builder(&self, target: &Target) -> cc::Build {
        let mut build = cc::Build::new();
        build
            // Before Aeron's directories, so that the scanners replace Aeron's.
            .include(scanners_dir())
            .includes(&self.includes)
            .include(manifest_dir().join("shim"))
            // An unoptimised driver is of no use, so a debug profile gets the same C code.
            .opt_level(3)
            .pic(true)
            .std("c11")
            .warnings(false)
            .extra_warnings(false);
        for (name, value) in &self.defines {
            build.define(name, value.as_deref());
        }
        if !target.msvc && env::var("DEBUG").is_ok_and(|debug| debug != "false") {
            // Complete debug information would take a fifth of the compiler's time. Cargo tells no
            // script that a profile wants line tables only.
            build.debug(false).flag("-g1");
        }
        if !target.msvc {
            build.flag_if_supported("-fstrict-aliasing");
            build.flag_if_supported("-fno-omit-frame-pointer");
            build.flags(hardening_flags(target));
        }
        for flag in env::var(C_FLAGS_VARIABLE).unwrap_or_default().split_whitespace() {
            build.flag(flag);
        }
        build
    }
}

/// Flags that limit what a fault of the C code can do: a function that has written behind an array
/// on its stack ends the process, functions of the C library compare lengths with those of arrays,
/// and integers wrap, as they do in Java.
pub(crate) fn hardening_flags(target: &Target) -> Vec<String> {
    if target.msvc {
        return Vec::new();
    }
    let compiler = cc::Build::new();
    let is_supported = |flag: &&str| compiler.is_flag_supported(flag).unwrap_or(false);
    let flags = ["-fstack-protector-strong", "-fwrapv"].into_iter().filter(is_supported);
    let header = manifest_dir().join("shim/rusteron_hardening.h").display().to_string();
    flags.map(str::to_owned).chain(["-include".to_owned(), header]).collect()
}

/// The shim has a directory for each part, with the C files that the part needs.
fn shim_files(features: Features) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for (part, is_compiled) in
        [("client", true), ("driver", features.driver), ("archive", features.archive)]
    {
        if is_compiled {
            collect_c_files(&manifest_dir().join("shim").join(part), &mut files)?;
        }
    }
    Ok(files)
}

fn defines(target: &Target) -> Vec<(String, Option<String>)> {
    let mut numbers = AERON_VERSION.split('.');
    let mut number = || Some(numbers.next().unwrap_or("0").to_string());
    let mut defines = vec![
        ("AERON_VERSION_TXT".to_string(), Some(format!("\"{AERON_VERSION}\""))),
        ("AERON_VERSION_MAJOR".to_string(), number()),
        ("AERON_VERSION_MINOR".to_string(), number()),
        ("AERON_VERSION_PATCH".to_string(), number()),
        // As Aeron's CMakeLists define it for a tree without a git history.
        ("AERON_VERSION_GITSHA".to_string(), Some("\"+guilty\"".to_string())),
        ("_FILE_OFFSET_BITS".to_string(), Some("64".to_string())),
        ("NDEBUG".to_string(), None),
        ("DISABLE_BOUNDS_CHECKS".to_string(), None),
    ];
    defines.extend(target.defines().iter().map(|name| (name.to_string(), None)));
    defines
}

fn collect_c_files(dir: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let unreadable = |error: std::io::Error| format!("{}: {error}", dir.display());
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            collect_c_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "c") {
            files.push(path);
        }
    }
    Ok(())
}
