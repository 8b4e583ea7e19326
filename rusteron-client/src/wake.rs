//! Waking futures that wait for a media driver.
//!
//! The driver's answers arrive in a list that has to be looked at; C reports some of them by a
//! callback and others not. One thread for the whole process therefore lets every waiting task look
//! again after a while. It is started by the first task that waits, and sleeps while none does.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::Duration;

/// How soon after its answer a task sees it; an answer itself takes about as long.
const PERIOD: Duration = Duration::from_millis(1);

/// Wakes the task in a while.
pub(crate) fn soon(waker: Waker) {
    static THREAD: Mutex<Option<Sender<Waker>>> = Mutex::new(None);
    let mut thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner);
    if thread.is_none() {
        *thread = start();
    }
    let unsent = match thread.as_ref() {
        Some(running) => running.send(waker).err().map(|unsent| unsent.0),
        None => Some(waker),
    };
    if let Some(waker) = unsent {
        // The thread ended by a panic in somebody's waker, or there is none to be had: the next
        // task tries again to start one, and this one looks again at once.
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
        first.wake();
        receiver.try_iter().for_each(Waker::wake);
    }
}
