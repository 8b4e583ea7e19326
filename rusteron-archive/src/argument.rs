//! Arguments of requests: what C writes as -1 is `None` here.

use std::fmt;

use crate::error::{ArchiveError, Result};

/// Aeron's number for none.
pub(crate) const NULL_VALUE: i64 = -1;

/// An id and its name, which is that of the argument it came in.
pub(crate) type Id = (&'static str, i64);

/// Refuses a negative argument, of which C would make something else, or the archive nothing.
pub(crate) fn not_negative<T>(operation: &'static str, name: &str, value: T) -> Result<()>
where
    T: Default + PartialOrd + fmt::Display,
{
    if value < T::default() {
        return Err(ArchiveError::invalid(operation, format!("{name}: {value} is negative")));
    }
    Ok(())
}

/// A value for C, to which -1 means none, and which was given as none or is not negative.
pub(crate) fn or_null<T>(operation: &'static str, name: &str, value: Option<T>) -> Result<T>
where
    T: Copy + Default + PartialOrd + From<i8> + fmt::Display,
{
    let Some(value) = value else { return Ok(T::from(-1)) };
    not_negative(operation, name, value)?;
    Ok(value)
}

/// As [`or_null`], for values of which -1 only is not one.
pub(crate) fn other_than_null<T>(operation: &'static str, name: &str, value: Option<T>) -> Result<T>
where
    T: Copy + PartialEq + From<i8>,
{
    let null = T::from(-1);
    if value == Some(null) {
        return Err(ArchiveError::invalid(operation, format!("{name}: -1 stands for none")));
    }
    Ok(value.unwrap_or(null))
}

/// The number of bytes to be read from a file at a time.
pub(crate) fn file_io_max_length(operation: &'static str, length: Option<usize>) -> Result<i32> {
    let length = length.map(i32::try_from).transpose().map_err(|_| {
        let text = format!("file_io_max_length: more than {} bytes", i32::MAX);
        ArchiveError::invalid(operation, text)
    });
    or_null(operation, "file_io_max_length", length?)
}
