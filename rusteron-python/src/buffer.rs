//! Python's buffer protocol.
//!
//! The limited API has the protocol since Python 3.11 only. All releases since 3.9 export the same functions with the
//! same structure, which the limited API then took over. Therefore the declarations here are sound for all of them.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::{ptr, slice};

use pyo3::PyClass;
use pyo3::ffi::{self, Py_ssize_t, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};

use crate::error;

/// `Py_buffer`.
#[repr(C)]
struct RawBuffer {
    buf: *mut c_void,
    obj: *mut PyObject,
    len: Py_ssize_t,
    itemsize: Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut Py_ssize_t,
    strides: *mut Py_ssize_t,
    suboffsets: *mut Py_ssize_t,
    internal: *mut c_void,
}

const WRITABLE: c_int = 0x1;
const FORMAT: c_int = 0x4;
const ND: c_int = 0x8;

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut PyObject, view: *mut RawBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut RawBuffer);
    fn PyBuffer_FillInfo(
        view: *mut RawBuffer,
        object: *mut PyObject,
        buf: *mut c_void,
        len: Py_ssize_t,
        readonly: c_int,
        flags: c_int,
    ) -> c_int;
}

/// A class whose objects lend their memory to other objects, through a subclass that `exporting_type` makes.
pub(crate) trait Export: PyClass {
    const QUALIFIED_NAME: &'static CStr;
    const IS_READONLY: bool;

    /// Returns memory that stays in place until `release` is called, or raises.
    fn export(&self) -> PyResult<(*mut u8, usize)>;

    /// Ends what one successful call of `export` began.
    fn release(&self);
}

/// Makes the subclass with the buffer protocol. PyO3 has the protocol's slots for 3.11 and later only, and
/// `PyType_FromSpecWithBases` takes them since 3.9.
pub(crate) fn exporting_type<T: Export>(py: Python<'_>) -> PyResult<Py<PyType>> {
    const BF_GETBUFFER: c_int = 1;
    const BF_RELEASEBUFFER: c_int = 2;
    let mut slots = [
        ffi::PyType_Slot { slot: BF_GETBUFFER, pfunc: get_buffer::<T> as *mut c_void },
        ffi::PyType_Slot { slot: BF_RELEASEBUFFER, pfunc: release_buffer::<T> as *mut c_void },
        ffi::PyType_Slot { slot: 0, pfunc: ptr::null_mut() },
    ];
    let mut spec = ffi::PyType_Spec {
        name: T::QUALIFIED_NAME.as_ptr(),
        // As the base class.
        basicsize: 0,
        itemsize: 0,
        flags: ffi::Py_TPFLAGS_DEFAULT as u32,
        slots: slots.as_mut_ptr(),
    };
    let bases = PyTuple::new(py, [py.get_type::<T>()])?;
    // SAFETY: name and functions are static; Python copies the slots; the base is a class that allows subclasses.
    unsafe {
        let made = ffi::PyType_FromSpecWithBases(&mut spec, bases.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into::<PyType>()?.unbind())
    }
}

/// `bf_getbuffer`.
///
/// # Safety
/// As Python calls it: with the GIL, for an object of the exporting type of `T`.
unsafe extern "C" fn get_buffer<T: Export>(
    object: *mut PyObject,
    view: *mut RawBuffer,
    flags: c_int,
) -> c_int {
    // SAFETY: the GIL is held, and the object is live and of a subclass of `T`.
    let (py, object) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::<PyAny>::from_ptr(py, object))
    };
    let exported = || -> PyResult<()> {
        let exporter = object.cast::<T>()?.borrow();
        let (start, length) = exporter.export()?;
        let (start, length) = (start.cast(), length as Py_ssize_t);
        // SAFETY: Python passes a structure to fill in. The memory stays in place until its release.
        let outcome = unsafe {
            let is_readonly = T::IS_READONLY.into();
            PyBuffer_FillInfo(view, object.as_ptr(), start, length, is_readonly, flags)
        };
        if outcome != 0 {
            exporter.release();
            return Err(PyErr::fetch(py));
        }
        Ok(())
    };
    exported().map_or_else(
        |error| {
            error.restore(py);
            // SAFETY: Python passes a structure; a failure is marked by no object.
            unsafe { (*view).obj = ptr::null_mut() };
            -1
        },
        |()| 0,
    )
}

/// `bf_releasebuffer`.
///
/// # Safety
/// As for `get_buffer`.
unsafe extern "C" fn release_buffer<T: Export>(object: *mut PyObject, _view: *mut RawBuffer) {
    // SAFETY: as in `get_buffer`.
    let object = unsafe { Borrowed::<PyAny>::from_ptr(Python::assume_attached(), object) };
    if let Ok(exporter) = object.cast::<T>() {
        exporter.borrow().release();
    }
}

/// Contiguous bytes of a Python object. While this exists, the object neither frees nor moves them.
pub(crate) struct Buffer<'py> {
    /// Exporters let fields point to other fields. So the structure stays where it was filled in.
    raw: Box<RawBuffer>,
    /// Released with the GIL only.
    py: PhantomData<Python<'py>>,
}

impl<'py> Buffer<'py> {
    /// Bytes to read.
    pub(crate) fn readable(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::get(object, ND | FORMAT)
    }

    /// Bytes to write.
    pub(crate) fn writable(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::get(object, ND | FORMAT | WRITABLE)
    }

    fn get(object: &Bound<'py, PyAny>, flags: c_int) -> PyResult<Self> {
        let mut raw = Box::new(MaybeUninit::<RawBuffer>::uninit());
        // SAFETY: the object is live, the GIL is held, and the structure is Python's. Without flags for strides, the
        // exporter provides contiguous bytes, or fails. After success, the structure is filled in.
        let raw = unsafe {
            if PyObject_GetBuffer(object.as_ptr(), raw.as_mut_ptr(), flags) != 0 {
                return Err(PyErr::fetch(object.py()));
            }
            Box::from_raw(Box::into_raw(raw).cast())
        };
        Ok(Self { raw, py: PhantomData })
    }

    pub(crate) fn len(&self) -> usize {
        self.raw.len as usize
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        if self.raw.len == 0 { ptr::NonNull::dangling().as_ptr() } else { self.raw.buf.cast() }
    }

    /// The bytes, to be read before Python code runs again.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the export keeps the bytes in place. The caller has the GIL and runs no Python code meanwhile, so no
        // Python code changes them.
        unsafe { slice::from_raw_parts(self.as_ptr(), self.len()) }
    }

    /// Size of the integers that this is an array of; `None` if it is not an array of integers.
    fn integer_size(&self) -> Option<usize> {
        if self.raw.format.is_null() || self.raw.ndim > 1 {
            return None;
        }
        // SAFETY: a format is a terminated text, which lives as long as the export.
        let format = unsafe { std::ffi::CStr::from_ptr(self.raw.format) }.to_bytes();
        let native = if cfg!(target_endian = "little") { b'<' } else { b'>' };
        let code = match format {
            [code] => *code,
            [order, code] if *order == native || *order == b'=' || *order == b'@' => *code,
            _ => return None,
        };
        let size = self.raw.itemsize as usize;
        (b"iIlLqQnN".contains(&code) && (size == 4 || size == 8)).then_some(size)
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: filled in by `PyObject_GetBuffer`, and released once, with the GIL held.
        unsafe { PyBuffer_Release(&mut *self.raw) }
    }
}

/// A message to send: `bytes` or any other object with contiguous bytes.
pub(crate) enum Payload<'a, 'py> {
    Bytes(&'a [u8]),
    Buffer(Buffer<'py>),
}

impl<'a, 'py> Payload<'a, 'py> {
    pub(crate) fn of(object: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyBytes>() {
            Ok(bytes) => Ok(Self::Bytes(bytes.as_bytes())),
            Err(_) => Buffer::readable(object).map(Self::Buffer),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Buffer(buffer) => buffer.bytes(),
        }
    }
}

/// Integers of a Python object, in its own memory.
pub(crate) struct Integers<'py> {
    buffer: Buffer<'py>,
    size: usize,
}

impl<'py> Integers<'py> {
    fn new(argument: &str, buffer: Buffer<'py>) -> PyResult<Self> {
        match buffer.integer_size() {
            Some(size) => Ok(Self { buffer, size }),
            None => Err(error::invalid(&format!(
                "{argument}: must be an array of one dimension of 32-bit or 64-bit integers, such as array('i')"
            ))),
        }
    }

    pub(crate) fn readable(argument: &str, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::new(argument, Buffer::readable(object)?)
    }

    pub(crate) fn writable(argument: &str, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::new(argument, Buffer::writable(object)?)
    }

    pub(crate) fn len(&self) -> usize {
        self.buffer.len() / self.size
    }

    /// The integer at an index below the length.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> i64 {
        assert!(index < self.len());
        // SAFETY: within the array; read as bytes, whose alignment is any.
        unsafe {
            if self.size == 4 {
                i64::from(self.buffer.as_ptr().cast::<i32>().add(index).read_unaligned())
            } else {
                self.buffer.as_ptr().cast::<i64>().add(index).read_unaligned()
            }
        }
    }

    /// Writes the integer at an index below the length of a writable array.
    #[inline]
    pub(crate) fn set(&self, index: usize, value: usize) {
        assert!(index < self.len());
        // SAFETY: as for `get`; the exporter has declared the memory writable.
        unsafe {
            if self.size == 4 {
                self.buffer.as_ptr().cast::<i32>().add(index).write_unaligned(value as i32);
            } else {
                self.buffer.as_ptr().cast::<i64>().add(index).write_unaligned(value as i64);
            }
        }
    }

    /// Greatest number that an integer of the array holds.
    pub(crate) fn max(&self) -> usize {
        if self.size == 4 { i32::MAX as usize } else { i64::MAX as usize }
    }
}

/// Lengths of the messages of a batch.
pub(crate) enum Lengths<'py> {
    /// All messages have the same length.
    Same(usize),
    Array(Integers<'py>),
    List(Vec<i64>),
}

impl<'py> Lengths<'py> {
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(length) = object.extract::<usize>() {
            return Ok(Self::Same(length));
        }
        if object.is_instance_of::<pyo3::types::PyList>()
            || object.is_instance_of::<pyo3::types::PyTuple>()
        {
            return object.extract().map(Self::List);
        }
        Integers::readable("lengths", object).map(Self::Array)
    }

    /// Number of messages in a buffer. Fails if the buffer is too short.
    pub(crate) fn count_in(&self, buffer_length: usize) -> PyResult<usize> {
        let count = match self {
            Self::Same(0) => {
                return Err(error::invalid("lengths: 0 bytes for each message; must be 1 or more"));
            }
            Self::Same(length) if buffer_length % length != 0 => {
                return Err(error::invalid(&format!(
                    "lengths: the buffer of {buffer_length} bytes is no multiple of {length} bytes"
                )));
            }
            Self::Same(length) => return Ok(buffer_length / length),
            Self::Array(array) => array.len(),
            Self::List(list) => list.len(),
        };
        let mut total = 0_usize;
        for index in 0..count {
            let length = self.signed(index);
            let length = usize::try_from(length).map_err(|_| {
                error::invalid(&format!("lengths[{index}]={length}: must not be negative"))
            })?;
            total = total.saturating_add(length);
        }
        if total > buffer_length {
            return Err(error::invalid(&format!(
                "lengths: {total} bytes in total; the buffer has {buffer_length}"
            )));
        }
        Ok(count)
    }

    fn signed(&self, index: usize) -> i64 {
        match self {
            Self::Same(length) => *length as i64,
            Self::Array(array) => array.get(index),
            Self::List(list) => list[index],
        }
    }

    /// Length of a message, after `count_in` has succeeded.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> usize {
        match self {
            Self::Same(length) => *length,
            Self::Array(array) => array.get(index) as usize,
            Self::List(list) => list[index] as usize,
        }
    }
}
