//! Needs of each platform: the facts that Aeron's CMakeLists probe for, as a table.
//!
//! Cargo's target decides everything; the host never matters.

use std::env;

pub(crate) struct Target {
    pub(crate) os: Platform,
    pub(crate) msvc: bool,
    pub(crate) aarch64: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    Linux,
    MacOs,
    Windows,
    /// Not in the table: Aeron's own build system finds its needs.
    #[cfg(feature = "cmake")]
    Other,
}

impl Target {
    pub(crate) fn from_cargo() -> Result<Self, String> {
        let read = |name: &str| env::var(name).unwrap_or_default();
        let (os, environment) = (read("CARGO_CFG_TARGET_OS"), read("CARGO_CFG_TARGET_ENV"));
        let architecture = read("CARGO_CFG_TARGET_ARCH");
        if read("CARGO_CFG_TARGET_POINTER_WIDTH") != "64" {
            return Err(format!("Aeron needs a 64-bit target, and {} is not one", read("TARGET")));
        }
        let os = match os.as_str() {
            "linux" => Platform::Linux,
            "macos" => Platform::MacOs,
            "windows" if environment == "msvc" => Platform::Windows,
            #[cfg(feature = "cmake")]
            _ => Platform::Other,
            #[cfg(not(feature = "cmake"))]
            _ => {
                return Err(format!(
                    "the target {} is not in this crate's table (Linux, macOS, Windows MSVC); \
                     the feature `cmake` lets Aeron's own build system try",
                    read("TARGET")
                ));
            }
        };
        Ok(Self { os, msvc: environment == "msvc", aarch64: architecture == "aarch64" })
    }

    /// Preprocessor names without a value, in the order of CMake's checks.
    pub(crate) fn defines(&self) -> &'static [&'static str] {
        match self.os {
            // HAVE_ARC4RANDOM stays off although glibc 2.36 has it: with it, the library would not
            // start on an older glibc. /dev/urandom serves the same purpose. _GNU_SOURCE is left to
            // the files that ask for it. With it, aeron_error.c, which needs the other
            // strerror_r(), would lose the text of every error of the operating system.
            Platform::Linux => &[
                "_DEFAULT_SOURCE",
                "HAVE_FALLOCATE",
                "HAVE_POSIX_FALLOCATE",
                "HAVE_POSIX_MEMALIGN",
                "HAVE_DEV_URANDOM",
                "HAVE_EPOLL",
                "HAVE_POLL",
                "HAVE_STRUCT_MMSGHDR",
                "HAVE_RECVMMSG",
                "HAVE_SENDMMSG",
            ],
            Platform::MacOs => &[
                "HAVE_ARC4RANDOM",
                "HAVE_DEV_URANDOM",
                "HAVE_POSIX_MEMALIGN",
                "HAVE_REALLOCF",
                "HAVE_F_PREALLOCATE",
                "HAVE_POLL",
                "HAVE_SENDMSG_X",
                "HAVE_RECVMSG_X",
            ],
            Platform::Windows => &[
                "WIN32",
                "_CRT_SECURE_NO_WARNINGS",
                "_CRT_NONSTDC_NO_WARNINGS",
                "NOMINMAX",
                "_ENABLE_EXTENDED_ALIGNED_STORAGE",
                "HAVE_WSAPOLL",
                "_CRT_RAND_S",
            ],
            #[cfg(feature = "cmake")]
            Platform::Other => &[],
        }
    }

    /// System libraries that the static library needs.
    pub(crate) fn libraries(&self) -> Vec<&'static str> {
        match self.os {
            Platform::Linux => {
                let mut libraries = vec!["m", "dl", "pthread"];
                if self.aarch64 && compiler_is_clang() {
                    libraries.push("atomic");
                }
                libraries
            }
            Platform::MacOs => vec![],
            Platform::Windows => {
                vec!["ws2_32", "iphlpapi", "psapi", "shell32", "winmm", "advapi32"]
            }
            #[cfg(feature = "cmake")]
            Platform::Other => vec!["m", "pthread"],
        }
    }
}

fn compiler_is_clang() -> bool {
    cc::Build::new().try_get_compiler().is_ok_and(|compiler| compiler.is_like_clang())
}
