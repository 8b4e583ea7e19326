//! The thread that wakes asyncio's event loops when messages arrive.
//!
//! One thread serves all waiting subscriptions of the process. It looks at each with a controlled poll that
//! aborts, so it consumes nothing, spins, yields, then sleeps up to 1 ms between two looks, and calls
//! `call_soon_threadsafe` when there is a message. Without waiting subscriptions it sleeps. A cancelled task
//! loses no message. After 64 messages without a wait, a task lets others run. A timer of the event loop would
//! run Python at each look, and a thread for each subscription would cost switches.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use pyo3::prelude::*;
use rusteron_client::{Action, Header, IdleStrategy, IdleStrategyKind};
use rusteron_core::ffi::PerProcess;

use crate::exit;
use crate::slot::OwnedSlot;

pub(crate) type SubscriptionSlot = OwnedSlot<rusteron_client::Subscription>;

/// Returns whether a poll would find a message, or fail. Needs no GIL. False while another call uses the subscription.
pub(crate) fn has_message(slot: &SubscriptionSlot) -> bool {
    slot.is_closed_or(|subscription| {
        loop {
            let mut is_found = false;
            let look = |_: &[u8], _: &Header<'_>| {
                is_found = true;
                Action::Abort
            };
            match subscription.controlled_poll(look, 1) {
                Ok(0) => return is_found,
                Ok(_) if is_found => return true,
                // A fragment of a longer message.
                Ok(_) => {}
                Err(_) => return true,
            }
        }
    })
}

struct Request {
    id: u64,
    slot: Arc<SubscriptionSlot>,
    callback: Py<PyAny>,
}

#[derive(Default)]
struct Requests {
    waiting: Vec<Request>,
    thread: Option<JoinHandle<()>>,
    is_stopped: bool,
}

/// A child of `os.fork()` has a thread of its own.
static REQUESTS: PerProcess<(Mutex<Requests>, Condvar)> = PerProcess::new();

/// The lock is never held while the GIL is taken.
fn requests() -> MutexGuard<'static, Requests> {
    REQUESTS.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request to be called back.
#[pyclass(frozen, module = "rusteron._rusteron")]
pub(crate) struct Waiter(u64);

#[pymethods]
impl Waiter {
    /// Withdraws the request. A call that is under way goes on.
    fn cancel(&self) {
        let mut requests = requests();
        let index = requests.waiting.iter().position(|request| request.id == self.0);
        let withdrawn = index.map(|index| requests.waiting.swap_remove(index));
        drop(requests);
        drop(withdrawn);
    }
}

/// Has the callback called once, when the subscription has a message or is closed. All requests share one thread, which
/// starts with the first request, and sleeps while there is none.
pub(crate) fn notify(
    py: Python<'_>,
    slot: Arc<SubscriptionSlot>,
    callback: Py<PyAny>,
) -> PyResult<Waiter> {
    exit::hold_at_exit(py);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut requests = requests();
    if requests.thread.is_none() {
        let spawned = thread::Builder::new().name("rusteron-asyncio".to_owned()).spawn(run);
        requests.thread = Some(spawned.map_err(PyErr::from)?);
    }
    requests.waiting.push(Request { id, slot, callback });
    drop(requests);
    REQUESTS.1.notify_one();
    Ok(Waiter(id))
}

/// Ends the thread, before the interpreter ends.
pub(crate) fn stop(py: Python<'_>) {
    let mut requests = requests();
    requests.is_stopped = true;
    let waiting = std::mem::take(&mut requests.waiting);
    let thread = requests.thread.take();
    drop(requests);
    REQUESTS.1.notify_one();
    drop(waiting);
    // The thread may need the GIL to end.
    exit::detached(py, || thread.map(JoinHandle::join));
}

fn run() {
    let mut idle = IdleStrategyKind::Backoff.new_strategy();
    loop {
        let mut requests = requests();
        while requests.waiting.is_empty() && !requests.is_stopped {
            requests = REQUESTS.1.wait(requests).unwrap_or_else(PoisonError::into_inner);
            idle.reset();
        }
        if requests.is_stopped {
            return;
        }
        let mut ready = Vec::new();
        let mut index = 0;
        while let Some(request) = requests.waiting.get(index) {
            if has_message(&request.slot) {
                ready.push(requests.waiting.swap_remove(index));
            } else {
                index += 1;
            }
        }
        drop(requests);
        let count = ready.len();
        if count > 0 {
            Python::attach(|py| {
                for request in ready {
                    if let Err(raised) = request.callback.call0(py) {
                        raised.write_unraisable(py, None);
                    }
                }
            });
        }
        idle.idle(count);
    }
}
