//! Checks before a request: its arguments, of which C's -1 is `None` here, and no request in the middle of another.

use std::cell::Cell;
use std::fmt;

use crate::error::{ArchiveError, ArchiveErrorKind, Result};

thread_local! {
    static ENTERED: Cell<usize> = const { Cell::new(0) };
}

/// Runs user code in the middle of a request.
pub(crate) fn entered(action: impl FnOnce()) {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            ENTERED.set(ENTERED.get() - 1);
        }
    }
    ENTERED.set(ENTERED.get() + 1);
    let _leave = Leave;
    action();
}

/// Returns whether this is user code in the middle of a request.
pub(crate) fn is_entered() -> bool {
    ENTERED.get() > 0
}

/// Returns an error if this is user code in the middle of a request.
pub(crate) fn forbid_reentry(operation: &'static str) -> Result<()> {
    if is_entered() {
        return Err(ArchiveError::new(
            ArchiveErrorKind::Reentrant,
            operation,
            "called in the middle of a request",
        ));
    }
    Ok(())
}

/// Aeron's number for no value.
pub(crate) const NULL_VALUE: i64 = -1;

/// Converts an answer of the archive, which is -1 for no value.
pub(crate) fn unless_null(value: i64) -> Option<i64> {
    (value != NULL_VALUE).then_some(value)
}

/// Converts an answer that counts something. The archive sends no negative ones.
pub(crate) fn number_of(count: i64) -> u64 {
    count.max(0) as u64
}

/// An id, with the name of its argument.
pub(crate) type Id = (&'static str, i64);

/// Refuses a negative argument. C would give it another meaning, or the archive would ignore it.
pub(crate) fn not_negative<T>(operation: &'static str, name: &str, value: T) -> Result<()>
where
    T: Default + PartialOrd + fmt::Display,
{
    if value < T::default() {
        return Err(ArchiveError::invalid(operation, format!("{name}: {value} is negative")));
    }
    Ok(())
}

/// Converts an optional argument for C, which reads -1 as none. Refuses negative values.
pub(crate) fn or_null<T>(operation: &'static str, name: &str, value: Option<T>) -> Result<T>
where
    T: Copy + Default + PartialOrd + From<i8> + fmt::Display,
{
    let Some(value) = value else { return Ok(T::from(-1)) };
    not_negative(operation, name, value)?;
    Ok(value)
}

/// As [`or_null`], for values that can be any number but -1.
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

/// Converts the maximum number of bytes in one read from a file.
pub(crate) fn file_io_max_length(operation: &'static str, length: Option<usize>) -> Result<i32> {
    let length = length.map(i32::try_from).transpose().map_err(|_| {
        let text = format!("file_io_max_length: more than {} bytes", i32::MAX);
        ArchiveError::invalid(operation, text)
    });
    or_null(operation, "file_io_max_length", length?)
}
