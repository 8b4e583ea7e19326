//! The cross-language service as a Python module: sessions in the process of the caller.

use std::sync::{Mutex, TryLockError};

use cross_language::InProcess;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The objects of one caller. One call at a time uses a session.
#[pyclass(frozen)]
struct Session {
    service: Mutex<InProcess>,
    callback: Py<PyAny>,
}

#[pymethods]
impl Session {
    /// Creates a session. `callback(argument)` returns the answer to a callback, or raises an exception.
    #[new]
    fn new(callback: Py<PyAny>) -> Self {
        Self { service: Mutex::default(), callback }
    }

    /// Calls an operation without the GIL. Returns the number of the status, and the bytes of the result or of the error's
    /// text.
    fn call<'py>(
        &self,
        py: Python<'py>,
        operation: u8,
        encoding: u8,
        argument: &[u8],
    ) -> PyResult<(u8, Bound<'py, PyBytes>)> {
        let mut result = Vec::new();
        let status = py.detach(|| {
            let mut service = match self.service.try_lock() {
                Ok(service) => service,
                // The service ends each call in a valid state, and the callback is caught.
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return None,
            };
            let answer = |argument: i64| {
                Python::attach(|py| {
                    let answer = self.callback.call1(py, (argument,))?;
                    answer.extract::<i64>(py)
                })
                .map_err(|error| error.to_string())
            };
            Some(service.call(operation, encoding, argument, answer, &mut result))
        });
        match status {
            Some(status) => Ok((status as u8, PyBytes::new(py, &result))),
            None => Err(PyRuntimeError::new_err("the session is in use by another call")),
        }
    }
}

#[pymodule]
fn cross_language_pyo3(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Session>()
}
