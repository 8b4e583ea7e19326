//! Settings from wherever Aeron's own driver takes them.

use rusteron_client::__private::{self as ffi, Fallible};
use rusteron_client::{Result, load_properties_file};
use rusteron_sys::driver as sys;

/// Sets environment variables as the properties at a location say, for the contexts made afterwards: a
/// path, `file://` and a path, or the `http://` URL of a text, which is fetched without encryption.
///
/// The form of properties is that of [`load_properties`](rusteron_client::load_properties).
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) and others for what cannot be read or fetched, and
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for what is no property.
///
/// # Safety
/// No other thread may read or write environment variables meanwhile, which includes making a
/// context: call this at the beginning of `main`, as [`std::env::set_var`] wants to be.
///
/// Corresponds to `aeron_properties_load`, which takes a missing file for an empty one.
pub unsafe fn load_properties_from(location: &str) -> Result<()> {
    let loaded = if location.starts_with("http://") {
        let url = ffi::c_string("location", location)?;
        // SAFETY: the URL is terminated, and the caller keeps others from the environment.
        unsafe { sys::aeron_properties_http_load(url.as_ptr()) }.into_result().map(drop)
    } else {
        let path = location.strip_prefix("file://").unwrap_or(location);
        // SAFETY: handed on to the caller.
        unsafe { load_properties_file(path) }
    };
    loaded.map_err(|error| error.with_line(location))
}
