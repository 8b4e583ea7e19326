//! Builds through Aeron's own CMakeLists (feature `cmake`), for targets the table does not cover.

use std::env;

use crate::source::Sources;
use crate::target::{Os, Target};
use crate::{Features, out_dir};

pub(crate) fn build(sources: &Sources, features: &Features, target: &Target) -> Result<(), String> {
    let mut libraries = Vec::new();
    if features.archive {
        libraries.push("aeron_archive_c_client_static");
    }
    // The driver's library contains the client's code, so that only one of the two may be linked.
    libraries.push(if features.driver { "aeron_driver_static" } else { "aeron_static" });

    for library in &libraries {
        configure(sources, features, target).build_target(library).build();
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

fn configure(sources: &Sources, features: &Features, target: &Target) -> cmake::Config {
    let on_off = |on: bool| if on { "ON" } else { "OFF" };
    let mut flags = cc::Build::new();
    flags.warnings(false);
    if let Some(codecs) = &sources.codecs {
        flags.include(codecs);
    }
    // The codecs exist already: whatever CMake runs in Gradle's place only has to succeed.
    let nothing = if target.os == Os::Windows { "cmd /c exit 0" } else { "true" };

    let mut config = cmake::Config::new(&sources.tree);
    config
        .profile("Release")
        .pic(true)
        .define("BUILD_AERON_DRIVER", on_off(features.driver))
        .define("BUILD_AERON_ARCHIVE_API", on_off(features.archive))
        .define("AERON_TESTS", "OFF")
        .define("AERON_UNIT_TESTS", "OFF")
        .define("AERON_SYSTEM_TESTS", "OFF")
        .define("AERON_BUILD_SAMPLES", "OFF")
        .define("AERON_BUILD_DOCUMENTATION", "OFF")
        .define("AERON_INSTALL_TARGETS", "OFF")
        // Optional libraries of the host would become run-time dependencies of every program.
        .define("LIBBSD_EXISTS", "LIBBSD_EXISTS-NOTFOUND")
        .define("BSDSTDLIB_H_EXISTS", "0")
        .define("ARC4RANDOM_PROTOTYPE_EXISTS", "0")
        .define("LIBUUID_EXISTS", "LIBUUID_EXISTS-NOTFOUND")
        .define("UUID_H_EXISTS", "0")
        .define("UUID_GENERATE_PROTOTYPE_EXISTS", "0")
        .define("GRADLE_WRAPPER", nothing);
    for tool in ["JAR", "JAVA", "JAVAC", "JAVAH", "JAVADOC"] {
        config.define(format!("Java_{tool}_EXECUTABLE"), "not-needed");
    }
    for flag in env::var(crate::compile::C_FLAGS_VARIABLE).unwrap_or_default().split_whitespace() {
        config.cflag(flag);
    }
    config.init_c_cfg(flags);
    config
}
