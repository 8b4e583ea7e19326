//! Reading a snapshot.

use std::io;

use rusteron_client::Action;

use crate::codec::{self, Message};
use crate::ids::ClusterSessionId;
#[cfg(doc)]
use crate::service::error::ServiceError;
use crate::service::error::ServiceResult;
use crate::service::session::{SessionInfo, Sessions};
use crate::service::snapshot_writer::{SnapshotError, unless_failed};
use crate::service::types::{AppVersion, ClusterTimeUnit};

/// The kind of snapshot of a service; 1 is the consensus module's.
pub(crate) const SERVICE_SNAPSHOT: i64 = 2;
/// Marks of a [`codec::SnapshotMarker`].
pub(crate) const BEGIN: i32 = 0;
pub(crate) const END: i32 = 2;

const FRAGMENT_LIMIT: usize = 10;

/// The handler of a message of a snapshot.
pub(crate) type OnMessage<'a> = dyn FnMut(&[u8]) -> Action + 'a;

/// Gives the messages of a snapshot: a replayed recording.
pub(crate) trait SnapshotSource {
    /// Passes messages to the handler. Returns the number of fragments. Does not wait.
    fn poll(
        &mut self,
        handler: &mut OnMessage<'_>,
        fragment_limit: usize,
    ) -> Result<usize, SnapshotError>;

    /// Returns whether the whole recording has been read.
    fn is_at_end(&mut self) -> bool;

    /// Called after each poll; idles without work. Fails if the replay has ended early, or the
    /// container ends.
    fn idle(&mut self, _work_count: usize) -> Result<(), SnapshotError> {
        Ok(())
    }
}

/// Reads the state of a service from a snapshot.
///
/// A snapshot is a sequence of messages. [`poll`](Self::poll) and [`for_each`](Self::for_each) pass
/// them on as they were written with [`SnapshotWriter::offer`](crate::SnapshotWriter::offer). As
/// [`io::Read`], the reader joins messages to a stream of bytes, for states that were written with
/// [`io::Write`]. A message that was read in part counts as a message for the other calls.
///
/// ```
/// use std::io::Read;
///
/// use rusteron_cluster::{ServiceResult, SnapshotReader};
///
/// fn load(snapshot: &mut SnapshotReader<'_>) -> ServiceResult<Vec<i64>> {
///     let mut bytes = Vec::new();
///     snapshot.read_to_end(&mut bytes)?;
///     let balances = bytes.chunks_exact(8).map(|x| i64::from_le_bytes(x.try_into().unwrap()));
///     Ok(balances.collect())
/// }
/// ```
#[must_use]
pub struct SnapshotReader<'a> {
    source: &'a mut dyn SnapshotSource,
    /// Bytes of a message that [`io::Read`] has not passed on yet, from `offset`.
    pending: Vec<u8>,
    offset: usize,
    /// The failure that ends reading, even if the service passes over it.
    failure: Option<SnapshotError>,
}

impl<'a> SnapshotReader<'a> {
    pub(crate) fn new(source: &'a mut dyn SnapshotSource) -> Self {
        Self { source, pending: Vec::new(), offset: 0, failure: None }
    }

    /// Passes the messages that have arrived to the handler, at most `fragment_limit` fragments.
    /// Returns the number of fragments. With 0 fragments, waits a moment.
    ///
    /// # Errors
    /// [`ServiceError`] if the snapshot cannot be read to its end, or the container ends.
    pub fn poll(
        &mut self,
        mut handler: impl FnMut(&[u8]),
        fragment_limit: usize,
    ) -> ServiceResult<usize> {
        let mut on_message = |message: &[u8]| {
            handler(message);
            Action::Continue
        };
        if self.pass_pending(&mut on_message) {
            return Ok(1);
        }
        Ok(self.poll_source(&mut on_message, fragment_limit)?)
    }

    /// Returns whether the whole snapshot has been read.
    pub fn is_at_end(&mut self) -> bool {
        self.offset == self.pending.len() && self.source.is_at_end()
    }

    /// Passes all remaining messages to the handler. Waits until the whole snapshot has been read.
    ///
    /// # Errors
    /// The handler's first error, or as for [`poll`](Self::poll).
    pub fn for_each(&mut self, mut handler: impl FnMut(&[u8]) -> ServiceResult) -> ServiceResult {
        while !self.is_at_end() {
            let mut outcome = Ok(());
            let mut on_message = |message: &[u8]| {
                outcome = handler(message);
                if outcome.is_ok() { Action::Continue } else { Action::Break }
            };
            if !self.pass_pending(&mut on_message) {
                self.poll_source(&mut on_message, FRAGMENT_LIMIT)?;
            }
            outcome?;
        }
        Ok(())
    }

    /// Passes on the rest of a message that [`io::Read`] has read in part.
    fn pass_pending(&mut self, handler: &mut OnMessage<'_>) -> bool {
        let rest = &self.pending[self.offset..];
        if rest.is_empty() {
            return false;
        }
        handler(rest);
        self.offset = self.pending.len();
        true
    }

    fn poll_source(
        &mut self,
        handler: &mut OnMessage<'_>,
        fragment_limit: usize,
    ) -> Result<usize, SnapshotError> {
        let source = &mut *self.source;
        unless_failed(&mut self.failure, "the snapshot cannot be read", || {
            let fragments = source.poll(handler, fragment_limit)?;
            if !source.is_at_end() {
                source.idle(fragments)?;
            }
            Ok(fragments)
        })
    }

    /// Returns the failure of reading, if there was one.
    pub(crate) fn finish(self) -> Result<(), SnapshotError> {
        self.failure.map_or(Ok(()), Err)
    }
}

/// Joins the messages to a stream of bytes.
impl io::Read for SnapshotReader<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if target.is_empty() {
            return Ok(0);
        }
        while self.offset == self.pending.len() {
            if self.source.is_at_end() {
                return Ok(0);
            }
            let mut pending = std::mem::take(&mut self.pending);
            pending.clear();
            self.offset = 0;
            let mut on_message = |message: &[u8]| {
                pending.extend_from_slice(message);
                // The next message may be for another call.
                Action::Break
            };
            let polled = self.poll_source(&mut on_message, FRAGMENT_LIMIT);
            self.pending = pending;
            polled.map_err(io::Error::other)?;
        }
        let count = target.len().min(self.pending.len() - self.offset);
        target[..count].copy_from_slice(&self.pending[self.offset..][..count]);
        self.offset += count;
        Ok(count)
    }
}

rusteron_core::impl_debug!(SnapshotReader<'_>: failure);

/// The container's own part of a snapshot, before the service's.
#[derive(Debug)]
pub(crate) struct SnapshotHead {
    pub(crate) time_unit: ClusterTimeUnit,
    pub(crate) app_version: AppVersion,
    pub(crate) sessions: Sessions,
}

/// Reads the container's own part of a snapshot.
pub(crate) fn read_head(source: &mut dyn SnapshotSource) -> Result<SnapshotHead, SnapshotError> {
    let mut head = None;
    let mut outcome = Ok(false);
    loop {
        let mut on_message = |message: &[u8]| {
            outcome = on_head_message(&mut head, message);
            if matches!(outcome, Ok(false)) { Action::Continue } else { Action::Break }
        };
        let fragments = source.poll(&mut on_message, FRAGMENT_LIMIT)?;
        if std::mem::replace(&mut outcome, Ok(false)).map_err(SnapshotError::Failed)? {
            break;
        }
        if fragments == 0 && source.is_at_end() {
            let text = "the snapshot ends before the mark behind the sessions";
            return Err(SnapshotError::Failed(text.to_owned()));
        }
        source.idle(fragments)?;
    }
    head.ok_or_else(|| SnapshotError::Failed("the snapshot has no beginning".to_owned()))
}

/// Returns whether this was the last message of the head.
fn on_head_message(head: &mut Option<SnapshotHead>, message: &[u8]) -> Result<bool, String> {
    let (message, _) =
        codec::parse(message).map_err(|error| format!("in the snapshot: {error}"))?;
    match (message, head) {
        (Message::SnapshotMarker(marker), _) if marker.type_id != SERVICE_SNAPSHOT => {
            Err(format!("a snapshot of type {}: not of a service", marker.type_id))
        }
        (Message::SnapshotMarker(marker), head) => match (marker.mark, &head) {
            (BEGIN, None) => {
                *head = Some(SnapshotHead {
                    time_unit: ClusterTimeUnit::from_code(marker.time_unit),
                    app_version: AppVersion::from_code(marker.app_version),
                    sessions: Sessions::new(),
                });
                Ok(false)
            }
            (BEGIN, Some(_)) => Err("the snapshot begins twice".to_owned()),
            (END, None) => Err("the snapshot ends before it begins".to_owned()),
            (END, Some(_)) => Ok(true),
            _ => Ok(false),
        },
        (Message::ClientSession(session), Some(head)) => {
            let id = ClusterSessionId::new(session.cluster_session_id);
            let info = SessionInfo::new(
                id,
                session.response_stream_id,
                session.response_channel,
                session.encoded_principal,
            );
            head.sessions.insert(id, info);
            Ok(false)
        }
        (Message::ClientSession(_), None) => {
            Err("a session before the beginning of the snapshot".to_owned())
        }
        _ => Ok(false),
    }
}
