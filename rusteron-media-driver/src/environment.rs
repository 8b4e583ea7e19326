//! Environment variables that Aeron reads while it makes a context, and properties that become such variables.

use std::env;
use std::ffi::OsStr;

use rusteron_core::ffi::{self, Fallible};
use rusteron_core::{Error, ErrorKind, Result, load_properties_file};
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
    let path = location.strip_prefix("file://").unwrap_or(location);
    let loaded = if location.starts_with("http://") {
        let url = ffi::c_string("location", location)?;
        // SAFETY: the URL is terminated, and the caller keeps others from the environment.
        unsafe { sys::aeron_properties_http_load(url.as_ptr()) }.into_result().map(drop)
    } else {
        // SAFETY: the caller guarantees that no other thread uses the environment.
        unsafe { load_properties_file(path) }
    };
    loaded.map_err(|error| {
        let is_named = error.message().contains(path);
        if is_named { error } else { error.with_line(location) }
    })
}

/// Refuses environment variables with which C would write out of bounds, or fail without a reason.
pub(crate) fn check() -> Result<()> {
    // Any name may be in a library: C loads the libraries before it looks the name up.
    if env::var_os("AERON_DRIVER_DYNAMIC_LIBRARIES").is_none_or(|names| names.is_empty()) {
        for variable in [
            "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA",
            "AERON_CONDUCTOR_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA",
        ] {
            check_variable(variable, |name| {
                name == "default" || name == "aeron_udp_channel_transport_bindings_default"
            })?;
        }
    }
    for variable in
        ["AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS", "AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS"]
    {
        let is_list = |names: &OsStr| names.as_encoded_bytes().iter().any(|&byte| byte != b',');
        check_variable(variable, is_list)?;
    }
    check_resolver()
}

/// C refuses an interface without a name, and does not say how to set the name.
fn check_resolver() -> Result<()> {
    let (interface, name) = ("AERON_DRIVER_RESOLVER_INTERFACE", "AERON_DRIVER_RESOLVER_NAME");
    match env::var_os(interface) {
        Some(value) if env::var_os(name).is_none_or(|name| name.is_empty()) => {
            let text = format!("{interface}={}: needs {name}", value.to_string_lossy());
            Err(Error::new(ErrorKind::InvalidArgument, text))
        }
        _ => Ok(()),
    }
}

fn check_variable(variable: &str, is_valid: impl FnOnce(&OsStr) -> bool) -> Result<()> {
    match env::var_os(variable) {
        Some(value) if !is_valid(&value) => {
            let text = format!("{variable}: there is no {value:?}");
            Err(Error::new(ErrorKind::InvalidArgument, text))
        }
        _ => Ok(()),
    }
}
