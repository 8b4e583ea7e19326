//! Writing a snapshot.

use std::fmt;
use std::io;

use rusteron_client::{OfferError, Position};

#[cfg(doc)]
use crate::service::error::ServiceError;
use crate::service::error::{ServiceResult, TerminationCause};

/// Takes the messages of a snapshot: a recorded publication.
pub(crate) trait SnapshotSink {
    fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError>;
    fn max_message_length(&self) -> usize;
    fn max_payload_length(&self) -> usize;
    /// Called after each accepted offer. Fails if the container ends.
    fn tick(&mut self) -> Result<(), SnapshotError> {
        Ok(())
    }
    /// Idles. Fails if the recording has ended, or the container ends.
    fn idle(&mut self) -> Result<(), SnapshotError> {
        Ok(())
    }
    /// Fails if the archive has reported an error. The report can come later than its effect.
    fn check(&mut self) -> Result<(), SnapshotError> {
        Ok(())
    }
}

/// The reason why there is no snapshot.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum SnapshotError {
    /// The service's callback, the archive or the publication failed, with this text.
    Failed(String),
    /// The container ends.
    End(TerminationCause),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => f.write_str(error),
            Self::End(cause) => cause.fmt(f),
        }
    }
}

rusteron_core::debug_as_display!(SnapshotError);

impl std::error::Error for SnapshotError {}

/// Runs a step of a snapshot, unless an earlier one has failed. Keeps the failure, and returns its
/// text behind `context`.
pub(crate) fn unless_failed<T>(
    failure: &mut Option<SnapshotError>,
    context: &str,
    step: impl FnOnce() -> Result<T, SnapshotError>,
) -> Result<T, SnapshotError> {
    if failure.is_none() {
        match step() {
            Ok(value) => return Ok(value),
            Err(error) => *failure = Some(error),
        }
    }
    let error = failure.as_ref().map_or_else(String::new, ToString::to_string);
    Err(SnapshotError::Failed(format!("{context}: {error}")))
}

/// Writes the state of a service into a snapshot.
///
/// A snapshot is a sequence of messages. [`offer`](Self::offer) writes one message. As
/// [`io::Write`], the writer splits a stream of bytes into messages. Do not mix the two, unless
/// the [reader](crate::SnapshotReader) knows the order.
///
/// Calls wait until the archive keeps up.
///
/// ```
/// use std::io::Write;
///
/// use rusteron_cluster::{ServiceResult, SnapshotWriter};
///
/// fn save(balances: &[i64], snapshot: &mut SnapshotWriter<'_>) -> ServiceResult {
///     for balance in balances {
///         snapshot.write_all(&balance.to_le_bytes())?;
///     }
///     Ok(())
/// }
/// ```
#[must_use]
pub struct SnapshotWriter<'a> {
    sink: &'a mut dyn SnapshotSink,
    /// Bytes that are not a message yet.
    buffer: Vec<u8>,
    /// The failure that ends the snapshot, even if the service passes over it.
    failure: Option<SnapshotError>,
}

impl<'a> SnapshotWriter<'a> {
    pub(crate) fn new(sink: &'a mut dyn SnapshotSink) -> Self {
        Self { sink, buffer: Vec::new(), failure: None }
    }

    /// Writes one message. Waits until the archive keeps up.
    ///
    /// # Errors
    /// [`ServiceError`] if the message is longer than
    /// [`max_message_length`](Self::max_message_length), the recording has ended, or the container
    /// ends. There will be no snapshot then.
    pub fn offer(&mut self, message: &[u8]) -> ServiceResult {
        self.flush_buffer()?;
        Ok(self.write(message)?)
    }

    /// Length of the longest message in bytes.
    pub fn max_message_length(&self) -> usize {
        self.sink.max_message_length()
    }

    fn write(&mut self, message: &[u8]) -> Result<(), SnapshotError> {
        let step = || offer_all(self.sink, message);
        unless_failed(&mut self.failure, "the snapshot has failed", step)
    }

    fn flush_buffer(&mut self) -> Result<(), SnapshotError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = self.write(&buffer);
        buffer.clear();
        self.buffer = buffer;
        written
    }

    /// Writes what is left, and returns the failure of the snapshot.
    pub(crate) fn finish(mut self) -> Result<(), SnapshotError> {
        // A failure is in `self.failure`.
        let _ = self.flush_buffer();
        self.failure.map_or(Ok(()), Err)
    }
}

/// Offers a message until it is accepted.
pub(crate) fn offer_all(sink: &mut dyn SnapshotSink, message: &[u8]) -> Result<(), SnapshotError> {
    loop {
        match sink.offer(message) {
            Ok(_) => return sink.tick(),
            Err(OfferError::BackPressured | OfferError::AdminAction) => sink.idle()?,
            Err(error) => {
                sink.check()?;
                return Err(SnapshotError::Failed(format!("snapshot publication: {error}")));
            }
        }
    }
}

/// Splits a stream of bytes into messages.
impl io::Write for SnapshotWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.sink.max_payload_length();
        if self.buffer.len() >= length {
            io::Write::flush(self)?;
        }
        let count = bytes.len().min(length - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_buffer().map_err(io::Error::other)
    }
}

rusteron_core::impl_debug!(SnapshotWriter<'_>: failure);

impl From<TerminationCause> for SnapshotError {
    fn from(cause: TerminationCause) -> Self {
        Self::End(cause)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::service::tests::Sink;

    #[test]
    fn stream_becomes_messages() {
        let mut sink = Sink { refusals: 3, ..Sink::default() };
        let mut writer = SnapshotWriter::new(&mut sink);
        writer.write_all(&[1; 250]).expect("written");
        writer.offer(b"message").expect("written");
        writer.write_all(&[2; 10]).expect("written");
        writer.finish().expect("written");
        let expected: [&[u8]; 5] = [&[1; 100], &[1; 100], &[1; 50], b"message", &[2; 10]];
        assert_eq!(sink.messages, expected);
    }

    #[test]
    fn archives_reason_comes_before_the_publications() {
        let full = SnapshotError::Failed("full".to_owned());
        let failure = Some(OfferError::NotConnected);
        let mut sink = Sink { failure, report: Some(full.clone()), ..Sink::default() };
        assert_eq!(offer_all(&mut sink, b"lost"), Err(full));
    }

    #[test]
    fn ignored_failure_still_fails_the_snapshot() {
        let mut sink = Sink { failure: Some(OfferError::NotConnected), ..Sink::default() };
        let mut writer = SnapshotWriter::new(&mut sink);
        let _ = writer.offer(b"lost");
        sink_is_failed(writer.finish());
        let mut sink = Sink::default();
        let mut writer = SnapshotWriter::new(&mut sink);
        let error = writer.offer(&[0; 1001]).expect_err("too long");
        assert!(error.to_string().contains("1001"), "{error}");
        let _ = writer.offer(b"more");
        sink_is_failed(writer.finish());
        assert_eq!(sink.messages, Vec::<Vec<u8>>::new());
    }

    fn sink_is_failed(outcome: Result<(), SnapshotError>) {
        assert!(matches!(outcome, Err(SnapshotError::Failed(_))), "{outcome:?}");
    }
}
