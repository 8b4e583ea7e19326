//! Errors that no client is told of.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use rusteron_client::Counter;
use rusteron_core::printable::Printable;

use crate::conductor::effect::Blame;
use crate::mark_file::MarkFile;

/// The most bytes of a text. A client's message can have 16 MiB.
const MAX_LENGTH: usize = 8 * 1024;
/// The least time between two lines of the log with the same text: a client can repeat a wrong request endlessly.
const REPETITION_INTERVAL: Duration = Duration::from_secs(10);
/// The most bytes of a text that a client has caused who is not authenticated.
const MAX_LENGTH_OF_STRANGERS: usize = 512;
/// The least time between two lines of the log that such clients cause.
const INTERVAL_OF_STRANGERS: Duration = Duration::from_secs(1);
/// How many bytes of the mark file's error log, whose least length is 1 MiB, may be used before the
/// errors of such clients are not recorded, so that they leave room for others.
const SHARE_OF_STRANGERS: usize = 256 * 1024;
/// The same for mistakes of clients, whose texts can differ each time.
const SHARE_OF_CLIENTS: usize = 512 * 1024;

/// Where errors go: the log, the mark file's error log, and the counter of errors (type 101).
#[derive(Debug)]
pub(crate) struct Errors {
    counter: Counter,
    mark_file: Arc<MarkFile>,
    /// The errors of the Aeron client, which occur while it does its work.
    client_errors: Receiver<String>,
    /// The last line of the log, and its time.
    last_logged: RefCell<Option<(String, Instant)>>,
    strangers: RefCell<Throttle>,
    late_requests: RefCell<Throttle>,
}

impl Errors {
    pub(crate) fn new(
        counter: Counter,
        mark_file: Arc<MarkFile>,
        client_errors: Receiver<String>,
    ) -> Self {
        Self {
            counter,
            mark_file,
            client_errors,
            last_logged: RefCell::new(None),
            strangers: RefCell::default(),
            late_requests: RefCell::default(),
        }
    }

    /// Reports an error. Its text may have a part of a client's message.
    pub(crate) fn report(&self, blame: Blame, text: &str) {
        match blame {
            Blame::Server => self.report_own(text),
            Blame::Client => {
                // As in Java's archive, the error log calls it a warning.
                self.counter.increment_release();
                let text = format!("WARN - {text}");
                self.mark_file.record_error_within(SHARE_OF_CLIENTS, cut(&text, MAX_LENGTH));
            }
            Blame::Stranger => self.report_stranger(text),
            Blame::LateRequest => match self.late_requests.borrow_mut().next(Instant::now()) {
                Some(_) => self.record_stranger(text),
                None => _ = self.counter.increment_release(),
            },
        }
    }

    fn report_own(&self, text: &str) {
        let text = self.record(text);
        let mut last = self.last_logged.borrow_mut();
        let is_repeated = last
            .as_ref()
            .is_some_and(|(last, time)| last == text && time.elapsed() < REPETITION_INTERVAL);
        if !is_repeated {
            log::warn!("{}", Printable(text));
            *last = Some((text.to_owned(), Instant::now()));
        }
    }

    /// Counts all errors that strangers cause, whose words can differ each time, and logs one in a
    /// second.
    fn report_stranger(&self, text: &str) {
        let Some(unlogged) = self.strangers.borrow_mut().next(Instant::now()) else {
            self.counter.increment_release();
            return;
        };
        let text = cut(text, MAX_LENGTH_OF_STRANGERS);
        self.record_stranger(text);
        log::warn!("{}{}", Printable(text), Unlogged(unlogged));
    }

    /// As for Java's archive, what strangers cause is a warning.
    fn record_stranger(&self, text: &str) {
        self.counter.increment_release();
        self.mark_file.record_error_within(SHARE_OF_STRANGERS, &format!("WARN - {text}"));
    }

    /// Logs how many errors were not logged, once their second is over.
    pub(crate) fn report_unlogged(&self) {
        let mut strangers = self.strangers.borrow_mut();
        if strangers.unlogged > 0 {
            if let Some(unlogged) = strangers.next(Instant::now()) {
                log::warn!("clients that are not authenticated{}", Unlogged(unlogged));
            }
        }
    }

    /// Reports what the Aeron client has handed to its error handler. The log does not get it if it `ends_server`: the
    /// server's owner gets the error.
    pub(crate) fn report_client_errors(&self, ends_server: bool) {
        for text in self.client_errors.try_iter() {
            if ends_server { _ = self.record(&text) } else { self.report_own(&text) }
        }
    }

    /// Counts an error, and records it for tools. Returns the text that is recorded.
    fn record<'a>(&self, text: &'a str) -> &'a str {
        let text = cut(text, MAX_LENGTH);
        self.counter.increment_release();
        self.mark_file.record_error(text);
        text
    }
}

/// Cuts a text between two characters.
fn cut(text: &str, max_length: usize) -> &str {
    let end = (0..=text.len().min(max_length)).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

/// Lets one line pass in a second, and counts the others.
#[derive(Debug, Default)]
struct Throttle {
    last: Option<Instant>,
    unlogged: u64,
}

impl Throttle {
    /// Returns the number of lines that did not pass since the last that did, or `None` if this one
    /// does not pass.
    fn next(&mut self, now: Instant) -> Option<u64> {
        let is_due = |last| now.saturating_duration_since(last) >= INTERVAL_OF_STRANGERS;
        if self.last.is_none_or(is_due) {
            self.last = Some(now);
            return Some(std::mem::take(&mut self.unlogged));
        }
        self.unlogged += 1;
        None
    }
}

/// Displays how many lines did not pass, if any.
struct Unlogged(u64);

impl std::fmt::Display for Unlogged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(f, ": {count} more errors that are not logged"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttle_passes_one_line_in_a_second() {
        let (mut throttle, start) = (Throttle::default(), Instant::now());
        let after = |ms| start + Duration::from_millis(ms);
        let passed: Vec<_> = (0..5000).filter_map(|ms| throttle.next(after(ms))).collect();
        assert_eq!(passed, [0, 999, 999, 999, 999]);
        assert_eq!(Unlogged(999).to_string(), ": 999 more errors that are not logged");
        assert_eq!(Unlogged(0).to_string(), "");
    }
}
