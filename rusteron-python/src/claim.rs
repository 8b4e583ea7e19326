//! Claims, which Python writes into through the buffer protocol.
//!
//! A claim exports log memory and counts the exports. `commit` raises `BufferError` while there are exports, as
//! `bytearray` does; the memoryview that the claim handed out itself is released first. `abort` with exports
//! takes effect when the last export ends, so no view ever writes into memory that belongs to the stream again.
//! The claim keeps its publication mapped, and reserves an exclusive one: offers raise `InUse`.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType, PyWeakrefMethods, PyWeakrefReference};
use rusteron_client::{BufferClaim, Publication};
use rusteron_core::ffi::Process;

use crate::buffer::{self, Export};
use crate::error;
use crate::slot::{AnyPublication, OwnedSlot};

/// Keeps the publication of a claim alive, with the driver and the client.
struct Owner {
    /// `None` for an exclusive publication, whose slot is reserved.
    shared: Option<Arc<Publication>>,
    slot: Arc<OwnedSlot<AnyPublication>>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.shared.is_none() {
            self.slot.release();
        }
    }
}

/// A claim with its publication. The fields are dropped in this order.
pub(crate) struct Claimed {
    process: Process,
    claim: BufferClaim<'static>,
    _owner: Owner,
}

#[derive(Default)]
struct State {
    claimed: Option<Claimed>,
    /// Number of exports of the buffer. Memory is claimed as long as there is one.
    exports: usize,
    /// Aborts when the last export ends.
    is_aborted: bool,
    /// The memoryview that `buffer` has handed out. A strong reference would be a cycle, and keep a forgotten claim.
    view: Option<Py<PyWeakrefReference>>,
}

/// A range of the log buffer, claimed for one message. The message is written into it without a copy.
///
/// Made by `try_claim` of a publication. In a `with` statement, the target is a writable memoryview. The message is
/// committed at the end of the block, or aborted if the block raises. A claim also has the buffer protocol itself, for
/// `struct.pack_into` and `numpy.frombuffer`.
///
/// A claim that is collected before its commit is aborted. Until a claim ends, no later message reaches a subscriber.
/// While another view of the memory exists than `buffer` itself, such as a slice or a NumPy array, `commit` raises
/// `BufferError`.
#[pyclass(subclass, frozen, module = "rusteron")]
pub(crate) struct Claim(Mutex<State>);

impl Claim {
    /// Claims a range. The claim of an exclusive publication reserves its slot.
    pub(crate) fn of(slot: &Arc<OwnedSlot<AnyPublication>>, length: usize) -> PyResult<Claimed> {
        let mut entered = slot.enter()?;
        let (shared, claim) = match &mut **entered {
            AnyPublication::Shared(publication) => {
                (Some(Arc::clone(publication)), publication.try_claim(length))
            }
            AnyPublication::Exclusive(publication) => (None, publication.try_claim(length)),
        };
        let claim = claim.map_err(error::client)?;
        // SAFETY: a claim points into the log buffer and not to the publication, and `Claimed` drops the claim before its
        // owner. The owner holds a shared publication. The slot of an exclusive one is reserved from here until the claim
        // has ended, so offers are refused meanwhile, and closing waits.
        let claim = unsafe { std::mem::transmute::<BufferClaim<'_>, BufferClaim<'static>>(claim) };
        if shared.is_none() {
            slot.reserve();
        }
        drop(entered);
        let owner = Owner { shared, slot: Arc::clone(slot) };
        Ok(Claimed { process: Process::current(), claim, _owner: owner })
    }

    fn with<R>(&self, function: impl FnOnce(&mut State) -> R) -> R {
        function(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with_claimed<R>(
        &self,
        function: impl FnOnce(&mut BufferClaim<'static>) -> R,
    ) -> PyResult<R> {
        self.with(|state| match &mut state.claimed {
            Some(claimed) if !state.is_aborted => Ok(function(&mut claimed.claim)),
            _ => Err(ended()),
        })
    }

    /// Ends the life of the memoryview that `buffer` has handed out. It raises from then on.
    fn release_view(&self, py: Python<'_>) {
        let view = self.with(|state| state.view.take());
        if let Some(view) = view.and_then(|view| view.bind(py).upgrade()) {
            // Fails if the view has exports of its own, which count as this claim's.
            let _ = view.call_method0("release");
        }
    }

    fn end(&self, is_commit: bool) -> PyResult<Option<Claimed>> {
        self.with(|state| {
            if state.claimed.is_none() || state.is_aborted {
                return Err(ended());
            }
            if state.exports == 0 {
                return Ok(state.claimed.take());
            }
            if !is_commit {
                state.is_aborted = true;
                return Ok(None);
            }
            Err(PyBufferError::new_err(format!(
                "{} view(s) of the claim exist, such as slices or arrays; delete or release them, then commit",
                state.exports
            )))
        })
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the claim is committed or aborted")
}

/// Makes the Python object of a claim.
pub(crate) fn new(py: Python<'_>, claimed: Claimed) -> PyResult<Py<Claim>> {
    // If this fails, the claim is aborted.
    let claim = exporting_type(py)?.call0()?.cast_into::<Claim>()?;
    claim.get().with(|state| state.claimed = Some(claimed));
    Ok(claim.unbind())
}

#[pymethods]
impl Claim {
    /// An ended claim.
    #[new]
    fn empty() -> Self {
        Self(Mutex::default())
    }

    /// The claimed bytes, a writable memoryview. It raises `ValueError` after the claim has ended.
    #[getter]
    fn buffer(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let claim = slf.get();
        claim.with_claimed(|_| ())?;
        let view = claim.with(|state| state.view.as_ref().map(|view| view.clone_ref(py)));
        if let Some(view) = view.and_then(|view| view.bind(py).upgrade()) {
            return Ok(view.unbind());
        }
        // SAFETY: the object is live, and the GIL is held.
        let view = unsafe {
            Bound::from_owned_ptr_or_err(py, ffi::PyMemoryView_FromObject(slf.as_ptr()))
        }?;
        let weak = PyWeakrefReference::new(&view)?.unbind();
        claim.with(|state| state.view = Some(weak));
        Ok(view.unbind())
    }

    /// Sends the message. Returns the position after it.
    ///
    /// Raises `BufferError` if another view than `buffer` exists; the claim stays open. Raises `Unblocked` if the driver
    /// took the claim for abandoned; the message is not sent then.
    fn commit(&self, py: Python<'_>) -> PyResult<i64> {
        self.release_view(py);
        let claimed = self.end(true)?;
        let Claimed { process, claim, _owner } = claimed.ok_or_else(ended)?;
        process.check().map_err(error::client)?;
        claim.commit().map_err(error::client)
    }

    /// Gives the range up. Subscribers skip it. If other views than `buffer` exist, this happens when the last one ends.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.release_view(py);
        self.end(false).map(drop)
    }

    /// The position after the message.
    #[getter]
    fn position(&self) -> PyResult<i64> {
        self.with_claimed(|claim| claim.position())
    }

    /// The value in the message's header that `Header.reserved_value` reads.
    #[getter]
    fn reserved_value(&self) -> PyResult<i64> {
        self.with_claimed(|claim| claim.reserved_value())
    }

    #[setter]
    fn set_reserved_value(&self, value: i64) -> PyResult<()> {
        self.with_claimed(|claim| claim.set_reserved_value(value))
    }

    /// True if the claim was committed or aborted.
    #[getter]
    fn is_ended(&self) -> bool {
        self.with_claimed(|_| ()).is_err()
    }

    fn __len__(&self) -> PyResult<usize> {
        self.with_claimed(|claim| claim.len())
    }

    fn __enter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::buffer(slf)
    }

    #[pyo3(signature = (exception, *_more))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exception: &Bound<'_, PyAny>,
        _more: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        if self.is_ended() {
            return Ok(());
        }
        if !exception.is_none() {
            return self.abort(py);
        }
        self.commit(py).map(drop).inspect_err(|_| {
            // The `with` block is over, so the claim has to end here.
            let _ = self.abort(py);
        })
    }
}

impl Export for Claim {
    const QUALIFIED_NAME: &'static CStr = c"rusteron.Claim";
    const IS_READONLY: bool = false;

    fn export(&self) -> PyResult<(*mut u8, usize)> {
        self.with(|state| {
            let Some(claimed) = state.claimed.as_mut().filter(|_| !state.is_aborted) else {
                return Err(PyBufferError::new_err("the claim is committed or aborted"));
            };
            state.exports += 1;
            Ok((claimed.claim.as_mut_ptr(), claimed.claim.len()))
        })
    }

    /// The last export of an aborted claim ends the claim.
    fn release(&self) {
        let ended = self.with(|state| {
            state.exports -= 1;
            if state.exports == 0 && state.is_aborted { state.claimed.take() } else { None }
        });
        drop(ended);
    }
}

/// Returns the subclass of `Claim` with the buffer protocol. The first call gives the GIL away for a moment.
pub(crate) fn exporting_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    TYPE.get_or_try_init(py, || buffer::exporting_type::<Claim>(py)).map(|made| made.bind(py))
}
