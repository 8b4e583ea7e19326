//! Messages and their headers, as handlers get them.
//!
//! `poll` copies each message into `bytes`, which costs less than the call of the handler. A `MessageView` lends the
//! memory of the log buffer, until its handler returns. A Python object that exports memory cannot take an export back.
//! So exports that outlive their handler keep the message unconsumed and the subscription from being polled.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::{mem, ptr};

use pyo3::exceptions::{PyBufferError, PyIndexError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PySlice, PyType};
use rusteron_client as rust;

use crate::buffer::{self, Buffer, Export};
use crate::error;
use crate::notifier::SubscriptionSlot;

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

/// Makes a `rusteron.Message`.
pub(crate) fn received<'py>(
    py: Python<'py>,
    message: &[u8],
    header: &rust::Header<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let received = class(py)?.call1((PyBytes::new(py, message),))?;
    received.setattr(intern!(py, "header"), Header::from(header))?;
    Ok(received)
}

/// Returns `rusteron.Message`. The first call gives the GIL away for a moment.
pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "rusteron._message", "Message")
}

/// A message in the log buffer, lent to a handler of `poll_views`.
///
/// Nothing is copied until the handler asks for bytes. The view has the buffer protocol, read-only, for `memoryview`,
/// `struct.unpack_from` and `numpy.frombuffer`. When the handler has returned, the view raises `MessageExpired`.
///
/// If an array or memoryview of the view outlives the handler, `poll_views` raises `BufferError`. What was kept stays
/// valid: until it is gone, the message is not consumed, and calls of the subscription raise `InUse`. Then the message
/// comes again. A handler's exception keeps the handler's variables.
#[pyclass(subclass, frozen, module = "rusteron")]
pub(crate) struct MessageView(Mutex<Lent>);

#[derive(Default)]
struct Lent {
    /// `None` unless the handler runs.
    message: Option<&'static [u8]>,
    /// Number of exports of the buffer.
    exports: usize,
    /// The subscription, reserved because the exports have outlived the handler.
    holds: Option<Arc<SubscriptionSlot>>,
}

impl MessageView {
    fn with<R>(&self, function: impl FnOnce(&mut Lent) -> R) -> R {
        function(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The bytes, to be used before Python code runs again.
    fn message(&self, _py: Python<'_>) -> PyResult<&[u8]> {
        // The handler cannot return while the bytes are used: this thread has the GIL and runs no Python code.
        self.with(|lent| lent.message).ok_or_else(error::expired)
    }

    /// Calls a handler with a view of a message of the subscription's poll. The view lives during this call only. If its
    /// exports outlive the call, raises, and reserves the subscription until the last one ends.
    pub(crate) fn lend<R>(
        py: Python<'_>,
        slot: &Arc<SubscriptionSlot>,
        message: &[u8],
        handler: impl FnOnce(&Bound<'_, Self>) -> PyResult<R>,
    ) -> PyResult<R> {
        /// Also acts when the handler panics.
        struct Expire<'a, 'py>(&'a Bound<'py, MessageView>, &'a Arc<SubscriptionSlot>);
        impl Drop for Expire<'_, '_> {
            fn drop(&mut self) {
                self.0.get().with(|lent| {
                    lent.message = None;
                    if lent.exports > 0 {
                        self.1.reserve();
                        lent.holds = Some(Arc::clone(self.1));
                    }
                });
            }
        }
        let view = exporting_type(py)?.call0()?.cast_into::<Self>()?;
        // SAFETY: the message lives until this function returns, and `Expire` takes it from the view before. An export
        // that lives longer reserves the subscription. Its memory is unmapped, and the buffer of an assembled message
        // reused, by later polls or the end of the subscription only, and both wait for the end of the reservation. The
        // failed call aborts, so the publisher does not get the memory back.
        let lent = unsafe { mem::transmute::<&[u8], &'static [u8]>(message) };
        view.get().with(|view| view.message = Some(lent));
        let outcome = {
            let _expire = Expire(&view, slot);
            handler(&view)
        };
        let exports = view.get().with(|lent| lent.exports);
        match outcome {
            Ok(_) if exports > 0 => Err(PyBufferError::new_err(format!(
                "{exports} array(s) or memoryview(s) of the message outlive the handler; copy messages that you keep"
            ))),
            outcome => outcome,
        }
    }
}

impl Export for MessageView {
    const QUALIFIED_NAME: &'static CStr = c"rusteron.MessageView";
    const IS_READONLY: bool = true;

    fn export(&self) -> PyResult<(*mut u8, usize)> {
        self.with(|lent| {
            let message = lent.message.ok_or_else(error::expired)?;
            lent.exports += 1;
            Ok((message.as_ptr().cast_mut(), message.len()))
        })
    }

    fn release(&self) {
        let held = self.with(|lent| {
            lent.exports -= 1;
            if lent.exports == 0 { lent.holds.take() } else { None }
        });
        if let Some(slot) = held {
            slot.release();
        }
    }
}

/// Returns the subclass of `MessageView` with the buffer protocol. The first call gives the GIL away for a moment.
pub(crate) fn exporting_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    TYPE.get_or_try_init(py, || buffer::exporting_type::<MessageView>(py)).map(|made| made.bind(py))
}

#[pymethods]
impl MessageView {
    /// An expired view.
    #[new]
    fn empty() -> Self {
        Self(Mutex::default())
    }

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
        self.with(|lent| lent.message.is_none())
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
            let range = range.indices(self.message(py)?.len() as isize)?;
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
        match self.with(|lent| lent.message) {
            None => "MessageView(expired)".to_owned(),
            Some(message) => format!("MessageView({} bytes)", message.len()),
        }
    }
}
