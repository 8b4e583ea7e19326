//! Compiles the tree and the shim with the `cc` crate.
//!
//! The level of optimisation is 3 in every Cargo profile, because an unoptimised driver is too slow for debug
//! builds. No `-march` is set. C gets line tables if the profile has debug information. `RUSTERON_CFLAGS` adds
//! flags after all others. The driver's `main` is left out.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::guards::{self, GUARDED_FLAG, guarded, guards};
use crate::scanners;
use crate::source::{Features, Sources};
use crate::target::Target;
use crate::{AERON_VERSION, manifest_dir};

/// Extra flags for the C compiler, separated by white space, after all others.
pub(crate) const C_FLAGS_VARIABLE: &str = "RUSTERON_CFLAGS";

/// All files and flags of the compilation. The parity test compares them with CMake's.
pub(crate) struct Plan {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) defines: Vec<(String, Option<String>)>,
    includes: Vec<PathBuf>,
    tree: PathBuf,
}

impl Plan {
    pub(crate) fn new(
        sources: &Sources,
        features: Features,
        target: &Target,
    ) -> Result<Self, String> {
        guards::check(&sources.tree, features)?;
        scanners::check(&sources.client_dir())?;
        let mut files = Vec::new();
        collect_c_files(&sources.client_dir(), &mut files)?;
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
            includes: sources.include_dirs(features),
            tree: sources.tree.clone(),
        })
    }

    #[cfg_attr(feature = "cmake", allow(dead_code))]
    pub(crate) fn compile(&self, features: Features, target: &Target) -> Result<(), String> {
        let failed = |error| format!("compiling Aeron {AERON_VERSION} failed: {error}");
        let mut build = self.builder(target);
        let mut unguarded = self.files.clone();
        for guard in guards(features) {
            let file = self.tree.join(guard.file);
            unguarded.retain(|other| *other != file);
            let mut build_guarded = self.builder(target);
            build_guarded.file(file);
            if !target.msvc {
                build_guarded.flag(GUARDED_FLAG);
            }
            for call in guard.calls {
                build_guarded.define(call, guarded(call).as_str());
            }
            build.objects(build_guarded.try_compile_intermediates().map_err(failed)?);
        }
        build.files(unguarded).files(shim_files(features));
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
        build.files(shim_files(features));
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
            .include(scanners::include_dir())
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
        }
        for flag in env::var(C_FLAGS_VARIABLE).unwrap_or_default().split_whitespace() {
            build.flag(flag);
        }
        build
    }
}

fn shim_files(features: Features) -> Vec<PathBuf> {
    let driver: &[_] = match features.driver {
        true => &[
            "rusteron_driver_shim.c",
            "rusteron_driver_guards.c",
            "rusteron_segmentation_offload.c",
            "rusteron_term_cleaning.c",
        ],
        false => &[],
    };
    let archive: &[_] = match features.archive {
        true => &[
            "rusteron_archive_messages.c",
            "rusteron_archive_shim.c",
            "rusteron_persistent_subscription_shim.c",
        ],
        false => &[],
    };
    let client = [
        "rusteron_shim.c",
        "rusteron_client_guards.c",
        "rusteron_cnc_guards.c",
        "rusteron_driver_liveness.c",
        "rusteron_fork.c",
        "rusteron_thread_end.c",
    ];
    let shim = manifest_dir().join("shim");
    client.iter().chain(driver).chain(archive).map(|name| shim.join(name)).collect()
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
