//! Durations as arguments, and values as `repr` shows them.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};

use crate::error;

/// A duration: a number of seconds, or a `datetime.timedelta`.
pub(crate) struct Seconds(pub(crate) Duration);

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let is_number = object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyInt>();
        if !is_number {
            return object.extract().map(Self);
        }
        let seconds: f64 = object.extract()?;
        let duration = Duration::try_from_secs_f64(seconds)
            .map_err(|reason| error::invalid(&format!("{seconds} seconds: {reason}")))?;
        Ok(Self(duration))
    }
}

pub(crate) fn py_bool(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}
