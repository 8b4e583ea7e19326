//! Messages and their headers, as handlers get them.
//!
//! A Python object that exports memory cannot take the export back, so no object exports the memory of received
//! messages. `poll` copies each message into `bytes`, which costs less than the call of the handler. A
//! `MessageView` has methods that copy: it holds an address until its handler returns, and is read with the
//! GIL, with no Python code in between.

use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySlice};
use rusteron_client as rust;

use crate::buffer::Buffer;
use crate::error;

snapshot! {
    /// The header of a message's last frame. It can be kept.
    Header of header: &rust::Header<'_> {
        session_id: i32 = header.session_id(),
        stream_id: i32 = header.stream_id(),
        term_id: i32 = header.term_id(),
        term_offset: i32 = header.term_offset(),
        frame_length: usize = header.frame_length(),
        flags: u8 = header.flags(),
        reserved_value: i64 = header.reserved_value(),
        position: i64 = header.position(),
        /// The `correlation_id` of the message's `Image`. As `response-correlation-id`, it names the publisher to answer.
        image_correlation_id: i64 = header.image_correlation_id(),
    }
}

#[pymethods]
impl Header {
    fn __repr__(&self) -> String {
        format!(
            "Header(session_id={}, stream_id={}, term_id={}, term_offset={}, position={})",
            self.session_id, self.stream_id, self.term_id, self.term_offset, self.position
        )
    }
}

/// A message in the log buffer, lent to a handler of `poll_views`.
///
/// Nothing is copied until the handler asks for bytes. When the handler has returned, the view raises `MessageExpired`.
#[pyclass(frozen, module = "rusteron")]
pub(crate) struct MessageView {
    /// Null after the handler has returned. Changes and reads take the GIL.
    start: AtomicPtr<u8>,
    length: usize,
}

impl MessageView {
    /// # Safety
    /// The message lives until `expire` is called.
    unsafe fn new(message: &[u8]) -> Self {
        Self { start: AtomicPtr::new(message.as_ptr().cast_mut()), length: message.len() }
    }

    fn expire(&self) {
        self.start.store(ptr::null_mut(), Ordering::Relaxed);
    }

    /// The bytes, to be used before Python code runs again.
    fn message(&self, _py: Python<'_>) -> PyResult<&[u8]> {
        let start = self.start.load(Ordering::Relaxed);
        if start.is_null() {
            return Err(error::expired());
        }
        // SAFETY: the handler runs, and it cannot return meanwhile: this thread has the GIL and runs no Python code.
        Ok(unsafe { slice::from_raw_parts(start, self.length) })
    }

    /// Calls a function with a view of a message that lives during this call only.
    pub(crate) fn lend<R>(
        py: Python<'_>,
        message: &[u8],
        function: impl FnOnce(&Py<Self>) -> PyResult<R>,
    ) -> PyResult<R> {
        /// Also acts when the function panics.
        struct Expire<'a>(&'a Py<MessageView>);
        impl Drop for Expire<'_> {
            fn drop(&mut self) {
                self.0.get().expire();
            }
        }
        // SAFETY: expired before this function returns.
        let view = Py::new(py, unsafe { Self::new(message) })?;
        let lent = Expire(&view);
        function(lent.0)
    }
}

#[pymethods]
impl MessageView {
    /// Returns a copy of the message.
    fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.message(py)?))
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.bytes(py)
    }

    /// Copies the message into a writable buffer, from `offset` on. Returns the message's length.
    #[pyo3(signature = (buffer, offset=0))]
    fn copy_into(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        offset: usize,
    ) -> PyResult<usize> {
        let buffer = Buffer::writable(buffer)?;
        // Getting the buffer can run Python code, so the message comes second.
        let message = self.message(py)?;
        let fits = offset.checked_add(message.len()).is_some_and(|end| end <= buffer.len());
        if !fits {
            return Err(error::invalid(&format!(
                "a message of {} bytes at offset {offset}; the buffer has {} bytes",
                message.len(),
                buffer.len()
            )));
        }
        // SAFETY: the range lies within the writable buffer. Frames of the log are never lent as a writable buffer.
        unsafe {
            ptr::copy_nonoverlapping(message.as_ptr(), buffer.as_ptr().add(offset), message.len())
        };
        Ok(message.len())
    }

    /// True once the handler has returned.
    #[getter]
    fn is_expired(&self) -> bool {
        self.start.load(Ordering::Relaxed).is_null()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.message(py).map(<[u8]>::len)
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(range) = index.cast::<PySlice>() {
            let range = range.indices(self.length as isize)?;
            let message = self.message(py)?;
            if range.step == 1 {
                let start = range.start as usize;
                return Ok(PyBytes::new(py, &message[start..start + range.slicelength]).into_any());
            }
            let item =
                |number: usize| message[(range.start + number as isize * range.step) as usize];
            let bytes: Vec<u8> = (0..range.slicelength).map(item).collect();
            return Ok(PyBytes::new(py, &bytes).into_any());
        }
        let number: isize = index
            .extract()
            .map_err(|_| PyTypeError::new_err("an index must be an integer or a slice"))?;
        let message = self.message(py)?;
        let length = message.len() as isize;
        let number = if number < 0 { number + length } else { number };
        match usize::try_from(number).ok().and_then(|number| message.get(number)) {
            Some(byte) => Ok(byte.into_pyobject(py)?.into_any()),
            None => {
                Err(PyIndexError::new_err(format!("index {number} of a message of {length} bytes")))
            }
        }
    }

    fn __repr__(&self) -> String {
        if self.is_expired() {
            "MessageView(expired)".to_owned()
        } else {
            format!("MessageView({} bytes)", self.length)
        }
    }
}
