//! The end of the interpreter, and threads that are in the middle of a call then.
//!
//! Once Python finalizes, it ends every thread that wants the GIL. Before 3.14, it does so by unwinding, and Rust aborts
//! when it catches that. So at exit, threads that take the GIL back after a call get it first, and threads that run Python
//! code in a call of this package get some time to return. After that, a thread that wants the GIL in such code sleeps for
//! ever, which does no harm.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rusteron_core::ffi::PerProcess;
use rusteron_sys as sys;

const TICK: Duration = Duration::from_millis(1);

/// The ticks that threads get to return from Python code. A machine that stands still for a second takes one of them.
const GRACE: usize = 1000;

#[derive(Default)]
struct State {
    /// The thread that ends the interpreter.
    ending: OnceLock<ThreadId>,
    /// Number of `Calling`s of threads that are not held.
    calling: AtomicUsize,
    /// Number of threads that take the GIL back.
    returning: AtomicUsize,
}

impl State {
    /// Counts this thread, unless the interpreter is ending: the thread must then be held.
    fn count(&self, counter: &AtomicUsize) -> bool {
        // Before the flag is read, while `begin` sets the flag before it reads the number.
        counter.fetch_add(1, Ordering::SeqCst);
        let is_ending = self.ending.get().is_some_and(|id| *id != thread::current().id());
        if is_ending {
            counter.fetch_sub(1, Ordering::SeqCst);
        }
        !is_ending
    }
}

static STATE: PerProcess<State> = PerProcess::new();

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A region of a call in which the thread runs Python code.
struct Calling(&'static State);

impl Calling {
    /// Returns `None` if the interpreter is ending.
    fn enter() -> Option<Self> {
        let state = &*STATE;
        state.count(&state.calling).then(|| {
            DEPTH.set(DEPTH.get() + 1);
            Self(state)
        })
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        self.0.calling.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Sleeps until the process has ended. Called without the GIL.
fn hold() -> ! {
    STATE.calling.fetch_sub(DEPTH.get(), Ordering::SeqCst);
    loop {
        thread::park();
    }
}

/// Returns unless another thread is ending the interpreter.
pub(crate) fn hold_at_exit(py: Python<'_>) {
    if Calling::enter().is_none() {
        py.detach(|| hold());
    }
}

/// Makes a call without the GIL.
pub(crate) fn detached<T: Send>(py: Python<'_>, call: impl FnOnce() -> T + Send) -> T {
    let state = &*STATE;
    let outcome = py.detach(|| {
        let outcome = call();
        if !state.count(&state.returning) {
            hold();
        }
        outcome
    });
    state.returning.fetch_sub(1, Ordering::SeqCst);
    outcome
}

/// Calls a Python function.
pub(crate) fn call<'py>(
    function: &Bound<'py, PyAny>,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Bound<'py, PyAny>> {
    type CallObject =
        unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;
    type Function = unsafe extern "C" fn(*mut c_void, *mut c_void) -> *mut c_void;
    let py = function.py();
    let arguments = arguments.into_pyobject(py)?;
    let Some(_calling) = Calling::enter() else { py.detach(|| hold()) };
    // SAFETY: all arguments are pointers, which are passed alike, as is the result.
    let call_object =
        unsafe { std::mem::transmute::<CallObject, Function>(ffi::PyObject_CallObject) };
    // SAFETY: this thread has the GIL, and both objects live during the call. The result is a new reference, or null with
    // an exception.
    unsafe {
        let (function, arguments) = (function.as_ptr().cast(), arguments.as_ptr().cast());
        let returned = sys::rusteron_call_to_the_end(Some(call_object), function, arguments);
        Bound::from_owned_ptr_or_err(py, returned.cast())
    }
}

/// Gives threads some time to return from Python code, without the GIL. From here on, they do not enter Python code again.
pub(crate) fn begin(py: Python<'_>) {
    let state = &*STATE;
    // A second call comes from the same thread.
    let _ = state.ending.set(thread::current().id());
    py.detach(|| {
        // These want nothing but the GIL, as this thread does.
        while state.returning.load(Ordering::SeqCst) > 0 {
            thread::sleep(TICK);
        }
        for _ in 0..GRACE {
            if state.calling.load(Ordering::SeqCst) == 0 {
                break;
            }
            thread::sleep(TICK);
        }
    });
}
