//! Settings from the sources of Aeron's own driver.

use rusteron_core::ffi::{self, Fallible};
use rusteron_core::{Result, load_properties_file};
use rusteron_sys::driver as sys;

/// Sets environment variables from the properties at a location, for contexts that are made
/// afterwards. The location is a path, `file://` and a path, or the `http://` URL of a text, which
/// is fetched without encryption.
///
/// The properties have the form of [`load_properties`](rusteron_core::load_properties).
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) and others if the location cannot be read or fetched;
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a line that is no
/// property.
///
/// # Safety
/// Meanwhile, no other thread may read or write environment variables. Making a context reads them.
/// Call this at the beginning of `main`, as [`std::env::set_var`] requires.
///
/// Corresponds to `aeron_properties_load`, which takes a missing file for an empty one.
#[doc(alias = "aeron_properties_load")]
pub unsafe fn load_properties_from(location: &str) -> Result<()> {
    let loaded = if location.starts_with("http://") {
        let url = ffi::c_string("location", location)?;
        // SAFETY: the URL is terminated, and the caller keeps others from the environment.
        unsafe { sys::aeron_properties_http_load(url.as_ptr()) }.into_result().map(drop)
    } else {
        let path = location.strip_prefix("file://").unwrap_or(location);
        // SAFETY: the caller guarantees that no other thread uses the environment.
        unsafe { load_properties_file(path) }
    };
    loaded.map_err(|error| error.with_line(location))
}
