//! Aeron's settings from property files.

use std::io;
use std::path::Path;

use rusteron_sys as sys;

use crate::error::{Error, ErrorKind, Result};
use crate::ffi::{Fallible, c_string};
use crate::files;

/// The most bytes of a file of properties.
const MAX_LENGTH: u64 = 1 << 20;

/// Sets environment variables from a text of properties, for contexts that are made afterwards.
///
/// A line `aeron.client.name=feed` sets `AERON_CLIENT_NAME`. An empty value unsets the variable.
/// Comments begin with `#` or `!`. A line that ends in `\` continues in the next line. `:` works
/// like `=`. If a line is wrong, the lines before it have taken effect.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for a line that is not a property or is longer than 2,046 bytes.
/// The text contains the line's number. The same kind is returned for a NUL byte.
///
/// # Safety
/// No other thread may read or write environment variables meanwhile. Making a context reads them.
/// Call this at the beginning of `main`, like [`std::env::set_var`].
///
/// Corresponds to `aeron_properties_buffer_load`.
#[doc(alias = "aeron_properties_buffer_load")]
pub unsafe fn load_properties(text: &str) -> Result<()> {
    // C reads in front of its buffer for an empty line. For blanks without a name behind them, C
    // writes in front of its buffer. C ignores a last line without an end. Blanks at the beginning
    // mean nothing.
    let lines = text.lines().map(|line| line.trim_start_matches([' ', '\t']));
    let lines = lines.map(|line| if line.is_empty() { "#" } else { line });
    let text = lines.flat_map(|line| [line, "\n"]).collect::<String>();
    let text = c_string("properties", &text)?;
    // SAFETY: the text is terminated, and the caller keeps others from the environment.
    unsafe { sys::aeron_properties_buffer_load(text.as_ptr()) }.into_result()?;
    Ok(())
}

/// Sets environment variables from a file of properties. See [`load_properties`].
///
/// # Errors
/// [`ErrorKind::Io`] if the file cannot be read, is no regular file, or is longer than 1 MiB, and
/// the errors of [`load_properties`].
///
/// # Safety
/// As for [`load_properties`].
///
/// Corresponds to `aeron_properties_file_load`, which takes a missing file for an empty one.
#[doc(alias = "aeron_properties_file_load")]
pub unsafe fn load_properties_file(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let text = files::read(path, MAX_LENGTH).and_then(|bytes| {
        String::from_utf8(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
    });
    let text = text.map_err(|error| {
        Error::new(ErrorKind::Io(error.kind()), format!("{}: {error}", path.display()))
    })?;
    // SAFETY: the caller guarantees that no other thread uses the environment (`load_properties`).
    unsafe { load_properties(&text) }
}
