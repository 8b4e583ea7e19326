//! The version of Aeron.

use rusteron_sys as sys;

use crate::ffi::lossy;

/// The version of the Aeron sources that this crate is compiled with, such as `1.54.0`.
pub const AERON_VERSION: &str = sys::AERON_VERSION;

/// The version that Aeron's C code reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AeronVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
    /// The three numbers, joined by dots.
    pub text: String,
    /// The commit. It is `+guilty`, as in Aeron's own builds of sources without a git history. Only
    /// the feature `cmake` of `rusteron-sys` with a checkout of Aeron gives a commit's hash.
    pub commit: String,
    /// Everything in one line.
    pub full: String,
}

impl AeronVersion {
    /// Returns the version of the code that this program runs.
    ///
    /// Corresponds to `aeron_version_major`, `aeron_version_minor`, `aeron_version_patch`,
    /// `aeron_version_text`, `aeron_version_gitsha` and `aeron_version_full`.
    #[doc(alias(
        "aeron_version_major",
        "aeron_version_minor",
        "aeron_version_patch",
        "aeron_version_text",
        "aeron_version_gitsha",
        "aeron_version_full"
    ))]
    pub fn linked() -> Self {
        // SAFETY: the functions return constants; the strings are literals of the C code.
        unsafe {
            Self {
                major: sys::aeron_version_major().unsigned_abs(),
                minor: sys::aeron_version_minor().unsigned_abs(),
                patch: sys::aeron_version_patch().unsigned_abs(),
                text: lossy(sys::aeron_version_text()).into_owned(),
                commit: lossy(sys::aeron_version_gitsha()).into_owned(),
                full: lossy(sys::aeron_version_full()).into_owned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_version_is_compiled_version() {
        let version = AeronVersion::linked();
        let AeronVersion { major, minor, patch, .. } = version;
        assert_eq!(format!("{major}.{minor}.{patch}"), AERON_VERSION);
        assert_eq!(version.text, AERON_VERSION);
        assert_eq!(version.commit, "+guilty");
        assert_eq!(version.full, format!("aeron version={AERON_VERSION} commit=+guilty"));
    }
}
