//! Wakes futures that wait for a media driver.
//!
//! The driver's answers arrive in a list that has to be polled, as C reports only some of them by a
//! callback. So one thread for the whole process wakes every waiting task periodically. The first
//! waiting task starts the thread. The thread sleeps while no task waits.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::ffi::{PerProcess, callback};

/// The delay after which a task sees its answer. The answer itself takes about as long.
const PERIOD: Duration = Duration::from_millis(1);

/// Converts what a poll without blocking has returned for a future. If that is no outcome yet, wakes the task
/// after about a millisecond.
pub fn outcome<T, E>(polled: Result<Option<T>, E>, context: &Context<'_>) -> Poll<Result<T, E>> {
    match polled.transpose() {
        Some(outcome) => Poll::Ready(outcome),
        None => {
            soon(context.waker().clone());
            Poll::Pending
        }
    }
}

/// Wakes the task after about a millisecond.
fn soon(waker: Waker) {
    static THREAD: PerProcess<Mutex<Option<Sender<Waker>>>> = PerProcess::new();
    let mut thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner);
    if thread.is_none() {
        *thread = start();
    }
    let unsent = match thread.as_ref() {
        Some(running) => running.send(waker).err().map(|unsent| unsent.0),
        None => Some(waker),
    };
    if let Some(waker) = unsent {
        // No thread can be started. This task polls again at once, and the next task tries again to
        // start the thread.
        *thread = None;
        drop(thread);
        waker.wake();
    }
}

fn start() -> Option<Sender<Waker>> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .name("aeron-wake".into())
        .spawn(move || run(&receiver))
        .ok()
        .map(|_running| sender)
}

fn run(receiver: &Receiver<Waker>) {
    while let Ok(first) = receiver.recv() {
        thread::sleep(PERIOD);
        for waker in std::iter::once(first).chain(receiver.try_iter()) {
            // A waker is user code, and other wakers wait behind it.
            callback::catch("waker of an Aeron client's task", || waker.wake());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;
    use std::sync::Arc;
    use std::task::Wake;

    struct Panicking;
    struct Payload;
    struct Sending(Sender<()>);

    impl Wake for Panicking {
        fn wake(self: Arc<Self>) {
            panic_any(Payload);
        }
    }

    impl Drop for Payload {
        fn drop(&mut self) {
            panic_any(());
        }
    }

    impl Wake for Sending {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }

    #[test]
    fn panicking_waker_delays_no_other_task() {
        let (sender, woken) = mpsc::channel();
        for _ in 0..10 {
            soon(Arc::new(Panicking).into());
            soon(Arc::new(Sending(sender.clone())).into());
        }
        for _ in 0..10 {
            woken.recv_timeout(Duration::from_secs(60)).expect("woken");
        }
    }
}
