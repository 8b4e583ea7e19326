//! Options of Aeron's CMakeLists, for the feature `cmake` and for the parity test, which includes
//! this file.

/// The oldest CMake that Aeron's CMakeLists accept.
pub(crate) const MINIMUM_VERSION: (u32, u32) = (3, 30);

/// Definitions that depend on neither the machine nor the features.
pub(crate) const DEFINITIONS: &[(&str, &str)] = &[
    ("AERON_TESTS", "OFF"),
    ("AERON_UNIT_TESTS", "OFF"),
    ("AERON_SYSTEM_TESTS", "OFF"),
    ("AERON_BUILD_SAMPLES", "OFF"),
    ("AERON_BUILD_DOCUMENTATION", "OFF"),
    ("AERON_INSTALL_TARGETS", "OFF"),
    // Optional libraries of the host would become run-time dependencies of every program. With the
    // value "...-NOTFOUND", find_library() would search again.
    ("LIBBSD_EXISTS", "0"),
    ("BSDSTDLIB_H_EXISTS", "0"),
    ("LIBUUID_EXISTS", "0"),
    ("UUID_H_EXISTS", "0"),
    ("UUID_GENERATE_PROTOTYPE_EXISTS", "0"),
    // The archive's library asks for the client's, whose code the driver's library contains
    // already.
    ("CMAKE_OPTIMIZE_DEPENDENCIES", "ON"),
];

/// For Linux only: as in the table, /dev/urandom replaces the function of a newer glibc.
pub(crate) const LINUX_DEFINITIONS: &[(&str, &str)] = &[("ARC4RANDOM_PROTOTYPE_EXISTS", "0")];

/// Client files that the target `aeron_driver_static` leaves out. The target contains the rest of
/// the client, and the archive client needs these files.
pub(crate) const LEFT_OUT_OF_DRIVER: &[&str] = &["uri/aeron_uri_string_builder.c"];

/// A `FindJava.cmake` for a directory in `CMAKE_MODULE_PATH`: Java would only generate the archive's
/// codecs, which exist already.
pub(crate) const FIND_JAVA: &str = "set(Java_FOUND TRUE)\n";

/// For `GRADLE_WRAPPER`: a command that succeeds without doing anything, on every platform.
pub(crate) fn do_nothing(cmake: &str) -> String {
    format!("{cmake};-E;true")
}

/// Returns the version in the output of `cmake --version`.
pub(crate) fn parse_version(output: &str) -> Option<(u32, u32)> {
    let mut numbers = output.lines().next()?.strip_prefix("cmake version ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
