//! What the threads of one measurement share.

use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::interrupt::Interrupt;

/// A value with the cache lines around it to itself, so that writing it slows nobody down who reads
/// something else. Processors fetch lines in pairs: hence two.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CacheLine<T>(T);

impl<T> Deref for CacheLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// One measurement in progress: shared by publisher, subscriber and the thread that samples.
#[derive(Debug)]
pub struct Run<'a> {
    /// Changes once, so that reading it costs nothing.
    running: CacheLine<AtomicBool>,
    /// Written by the subscriber for each poll, read once for each sample.
    received_bytes: CacheLine<AtomicU64>,
    /// How many messages were published in all, once the publisher has come to an orderly end.
    published: OnceLock<Option<u64>>,
    interrupt: &'a Interrupt,
}

/// What the subscriber may still expect after the stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remainder {
    /// The publisher is still at it.
    Unknown,
    /// So many messages have been published in all.
    Messages(u64),
    /// Nobody waits for the rest.
    Abandoned,
}

impl<'a> Run<'a> {
    /// A run that is going on. The thread that samples it sleeps on `interrupt`.
    pub fn new(interrupt: &'a Interrupt) -> Self {
        Self {
            running: CacheLine(AtomicBool::new(true)),
            received_bytes: CacheLine::default(),
            published: OnceLock::new(),
            interrupt,
        }
    }

    /// Whether publisher and subscriber are to go on.
    #[inline]
    pub fn is_running(&self) -> bool {
        // Nothing is read that was written before the flag changed: no order is needed.
        self.running.load(Ordering::Relaxed)
    }

    /// Ends the run: the publisher stops, and the subscriber receives what is on its way.
    pub fn stop(&self) {
        self.running.store(false, Ordering::Relaxed);
        self.interrupt.wake();
    }

    /// Ends the run without waiting for what is on its way.
    pub fn abandon(&self) {
        // An error means that the publisher was faster, and then the rest will arrive.
        let _ = self.published.set(None);
        self.stop();
    }

    /// Says how many payload bytes have been received so far.
    #[inline]
    pub fn set_received_bytes(&self, bytes: u64) {
        self.received_bytes.store(bytes, Ordering::Relaxed);
    }

    /// How many payload bytes have been received so far.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    /// Says that the publisher has ended, and how many messages it has published.
    pub fn set_published(&self, messages: u64) {
        let _ = self.published.set(Some(messages));
    }

    /// What the subscriber may still expect.
    pub fn remainder(&self) -> Remainder {
        match self.published.get() {
            None => Remainder::Unknown,
            Some(Some(messages)) => Remainder::Messages(*messages),
            Some(None) => Remainder::Abandoned,
        }
    }

    /// What abandons the run when the thread that holds it fails or panics.
    pub fn guard(&self) -> Guard<'_> {
        Guard { run: self, is_orderly: false }
    }
}

/// Abandons a run when dropped, unless told that all is well.
#[derive(Debug)]
pub struct Guard<'a> {
    run: &'a Run<'a>,
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
    fn what_different_threads_write_is_in_different_cache_lines() {
        let interrupt = Interrupt::default();
        let run = Run::new(&interrupt);
        let running = std::ptr::from_ref(&run.running).addr();
        let received = std::ptr::from_ref(&run.received_bytes).addr();
        assert!(running.abs_diff(received) >= 128);
    }

    #[test]
    fn a_guard_abandons_the_run_unless_it_is_disarmed() {
        let interrupt = Interrupt::default();
        let run = Run::new(&interrupt);
        run.guard().disarm();
        assert!(run.is_running());
        assert_eq!(run.remainder(), Remainder::Unknown);
        drop(run.guard());
        assert!(!run.is_running());
        assert_eq!(run.remainder(), Remainder::Abandoned);
    }

    #[test]
    fn what_was_published_before_the_end_is_waited_for() {
        let interrupt = Interrupt::default();
        let run = Run::new(&interrupt);
        run.set_published(3);
        run.abandon();
        assert_eq!(run.remainder(), Remainder::Messages(3));
    }
}
