//! The state that the threads of one measurement share.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One measurement in progress: shared by publishers, subscriber and the thread that samples.
#[derive(Debug)]
pub struct Run {
    /// Changes once, so that reading it costs nothing.
    running: CacheLine<AtomicBool>,
    /// Written by the subscriber for each poll, read once for each sample.
    received_bytes: CacheLine<AtomicU64>,
    /// Changed once by each publisher, and read after the stop only.
    publishers: Mutex<Publishers>,
}

/// A value with the cache lines around it to itself. So a write to the value slows no thread that
/// reads another value. Processors fetch lines in pairs: hence two lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CacheLine<T>(pub T);

impl<T> Deref for CacheLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The publishers of a run.
#[derive(Debug)]
struct Publishers {
    /// How many have not come to an orderly end yet.
    pending: usize,
    /// How many messages the others have published.
    messages: u64,
    /// `true` if no subscriber waits for the publishers' messages.
    is_abandoned: bool,
}

impl Run {
    /// A run with a number of publishers.
    pub fn new(publishers: usize) -> Self {
        Self {
            running: CacheLine(AtomicBool::new(true)),
            received_bytes: CacheLine::default(),
            publishers: Mutex::new(Publishers {
                pending: publishers,
                messages: 0,
                is_abandoned: false,
            }),
        }
    }

    /// Returns whether publishers and subscriber are to go on.
    #[inline]
    pub fn is_running(&self) -> bool {
        // Nothing is read that was written before the flag changed: no order is needed.
        self.running.load(Ordering::Relaxed)
    }

    /// Returns the flag that [`is_running`](Self::is_running) reads, for loops that are not Rust.
    pub fn running_flag(&self) -> &AtomicBool {
        &self.running
    }

    /// Ends the run: the publishers stop, and the subscriber receives the messages that are on
    /// their way.
    pub fn stop(&self) {
        self.running.store(false, Ordering::Relaxed);
    }

    /// Ends the run without waiting for the messages that are on their way.
    pub fn abandon(&self) {
        // If all publishers were faster, the rest will arrive.
        let mut publishers = self.publishers();
        publishers.is_abandoned |= publishers.pending > 0;
        drop(publishers);
        self.stop();
    }

    /// Says how many payload bytes have been received so far.
    #[inline]
    pub fn set_received_bytes(&self, bytes: u64) {
        self.received_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns the counter that [`set_received_bytes`](Self::set_received_bytes) writes, for loops
    /// that are not Rust.
    pub fn received_bytes_counter(&self) -> &AtomicU64 {
        &self.received_bytes
    }

    /// How many payload bytes have been received so far.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    /// Says that a publisher has ended, and how many messages it has published.
    pub fn add_published(&self, messages: u64) {
        let mut publishers = self.publishers();
        publishers.pending = publishers.pending.saturating_sub(1);
        publishers.messages += messages;
    }

    /// Returns how many messages the subscriber waits for in all: 0 if the run was abandoned, and
    /// `None` while a publisher has not ended.
    pub fn expected(&self) -> Option<u64> {
        match *self.publishers() {
            Publishers { is_abandoned: true, .. } => Some(0),
            Publishers { pending: 0, messages, .. } => Some(messages),
            _ => None,
        }
    }

    fn publishers(&self) -> MutexGuard<'_, Publishers> {
        // Counts cannot be left half-changed by a panic.
        self.publishers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a guard. It abandons the run if the thread that holds it fails or panics.
    pub fn guard(&self) -> Guard<'_> {
        Guard { run: self, is_orderly: false }
    }
}

/// Abandons a run when dropped, unless told that all is well.
#[derive(Debug)]
pub struct Guard<'a> {
    run: &'a Run,
    is_orderly: bool,
}

impl Guard<'_> {
    /// The thread has come to an orderly end.
    pub fn disarm(mut self) {
        self.is_orderly = true;
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if !self.is_orderly {
            self.run.abandon();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_write_different_cache_lines() {
        let run = Run::new(1);
        let running = std::ptr::from_ref(&run.running).addr();
        let received = std::ptr::from_ref(&run.received_bytes).addr();
        assert!(running.abs_diff(received) >= 128);
    }

    #[test]
    fn every_publisher_is_waited_for() {
        let run = Run::new(2);
        run.add_published(3);
        assert_eq!(run.expected(), None);
        run.add_published(4);
        run.abandon();
        assert_eq!(run.expected(), Some(7));
    }
}
