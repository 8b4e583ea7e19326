//! Errors that no client is told of.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use rusteron_client::Counter;

use crate::mark_file::MarkFile;

/// The most bytes of a text. A client's message can have 16 MiB.
const MAX_LENGTH: usize = 8 * 1024;
/// The least time between two lines of the log with the same text: a client can repeat a wrong request endlessly.
const REPETITION_INTERVAL: Duration = Duration::from_secs(10);

/// Where errors go: the log, the mark file's error log, and the counter of errors (type 101).
#[derive(Debug)]
pub(crate) struct Errors {
    counter: Counter,
    mark_file: Arc<MarkFile>,
    /// The errors of the Aeron client, which occur while it does its work.
    client_errors: Receiver<String>,
    /// The last line of the log, and its time.
    last_logged: RefCell<Option<(String, Instant)>>,
}

impl Errors {
    pub(crate) fn new(
        counter: Counter,
        mark_file: Arc<MarkFile>,
        client_errors: Receiver<String>,
    ) -> Self {
        Self { counter, mark_file, client_errors, last_logged: RefCell::new(None) }
    }

    /// Reports an error. Its text may have a part of a client's message.
    pub(crate) fn report(&self, text: &str) {
        let text = self.record(text);
        let mut last = self.last_logged.borrow_mut();
        let is_repeated = last
            .as_ref()
            .is_some_and(|(last, time)| last == text && time.elapsed() < REPETITION_INTERVAL);
        if !is_repeated {
            log::warn!("{text}");
            *last = Some((text.to_owned(), Instant::now()));
        }
    }

    /// Records the mistake of a client, who is told of it, as Java's archive does: nothing is printed, and the error log
    /// calls it a warning.
    pub(crate) fn record_mistake(&self, text: &str) {
        _ = self.record(&format!("WARN - {text}"));
    }

    /// Reports what the Aeron client has handed to its error handler. The log does not get it if it `ends_server`: the
    /// server's owner gets the error.
    pub(crate) fn report_client_errors(&self, ends_server: bool) {
        for text in self.client_errors.try_iter() {
            if ends_server { _ = self.record(&text) } else { self.report(&text) }
        }
    }

    /// Counts an error, and records it for tools. Returns the text that is recorded.
    fn record<'a>(&self, text: &'a str) -> &'a str {
        let end = (0..=text.len().min(MAX_LENGTH)).rev().find(|&end| text.is_char_boundary(end));
        let text = &text[..end.unwrap_or_default()];
        self.counter.increment_release();
        self.mark_file.record_error(text);
        text
    }
}
