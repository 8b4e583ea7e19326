//! Errors that no client is told of.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use rusteron_client::Counter;

use crate::mark_file::MarkFile;

/// The most bytes of a text. A client's message can have 16 MiB.
const MAX_LENGTH: usize = 8 * 1024;

/// Where errors go: the log, the mark file's error log, and the counter of errors (type 101).
#[derive(Debug)]
pub(crate) struct Errors {
    counter: Counter,
    mark_file: Arc<MarkFile>,
    /// The errors of the Aeron client, which occur while it does its work.
    client_errors: Receiver<String>,
}

impl Errors {
    pub(crate) fn new(
        counter: Counter,
        mark_file: Arc<MarkFile>,
        client_errors: Receiver<String>,
    ) -> Self {
        Self { counter, mark_file, client_errors }
    }

    /// Reports an error. Its text may have a part of a client's message.
    pub(crate) fn report(&self, text: &str) {
        let end = (0..=text.len().min(MAX_LENGTH)).rev().find(|&end| text.is_char_boundary(end));
        let text = &text[..end.unwrap_or_default()];
        self.counter.increment_release();
        self.mark_file.record_error(text);
        log::warn!("archive: {text}");
    }

    /// Reports what the Aeron client has handed to its error handler.
    pub(crate) fn report_client_errors(&self) {
        for text in self.client_errors.try_iter() {
            self.report(&text);
        }
    }
}
