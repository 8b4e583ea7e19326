//! A request that waits for its answer.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use rusteron_client::__private::wake_soon;
use rusteron_client::{Error, ErrorKind};

use crate::async_archive::requests::{Answer, Requests};
use crate::error::{ArchiveErrorKind, Result};

/// A request to an archive that has been sent; made by the methods of
/// [`AsyncArchive`](crate::AsyncArchive).
///
/// Poll it until it returns the answer or an error, or await it as a future. A poll also collects
/// the answers to other requests of the session, so that requests can be polled in any order.
///
/// A request has no deadline of its own: drop it to give up. The archive carries the request out all
/// the same, and the late answer is dropped. A request keeps its session open.
#[must_use = "the answer is dropped when this is dropped"]
pub struct Request<T> {
    requests: Arc<Requests>,
    correlation_id: i64,
    convert: fn(Answer) -> T,
    has_outcome: bool,
}

impl<T> Request<T> {
    pub(super) fn new(
        requests: Arc<Requests>,
        correlation_id: i64,
        convert: fn(Answer) -> T,
    ) -> Self {
        Self { requests, correlation_id, convert, has_outcome: false }
    }

    /// Returns the number of the request, which the archive's log and errors have as well.
    pub fn correlation_id(&self) -> i64 {
        self.correlation_id
    }

    /// Returns the answer, or `None` if it has not come yet. Does not wait for the archive. Passes
    /// signals and errors that belong to no request to the context's handlers.
    ///
    /// # Errors
    /// The outcome is returned once, and can be an error:
    /// - the archive's, with its kind, number and text, as for the method of the same name of
    ///   [`Archive`](crate::Archive);
    /// - [`NotConnected`](crate::ArchiveErrorKind::NotConnected): the connection was lost;
    /// - [`Client`](crate::ArchiveErrorKind::Client) with [`ErrorKind::ClientClosed`].
    ///
    /// Later polls return `Client` with [`ErrorKind::IllegalState`]. In a callback of a conductor or
    /// of an archive, a poll for an answer that has not come yet returns `Client` with
    /// [`ErrorKind::CalledFromConductor`] or [`Reentrant`](ArchiveErrorKind::Reentrant), and can be
    /// repeated elsewhere. A message that cannot be decoded fails the next
    /// [`AsyncArchive::poll`](crate::AsyncArchive::poll) instead.
    pub fn poll(&mut self) -> Result<Option<T>> {
        if self.has_outcome {
            let text = format!("request {} has given its outcome already", self.correlation_id);
            return Err(Error::new(ErrorKind::IllegalState, text).into());
        }
        if let Some(outcome) = self.take() {
            return outcome.map(Some);
        }
        let polled = self.requests.poll();
        if let Some(outcome) = self.take() {
            return outcome.map(Some);
        }
        match polled {
            Ok(_) => Ok(None),
            Err(error) if is_of_message(error.kind()) => {
                self.requests.keep_fault(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn take(&mut self) -> Option<Result<T>> {
        let outcome = self.requests.take(self.correlation_id)?;
        self.has_outcome = true;
        Some(outcome.map(self.convert))
    }
}

/// Returns whether a poll has failed because of one message, which is passed over.
fn is_of_message(kind: ArchiveErrorKind) -> bool {
    matches!(kind, ArchiveErrorKind::MalformedMessage | ArchiveErrorKind::IncompatibleVersion)
}

/// Resolves to the answer. Needs no particular runtime: a thread of the client library, one per
/// process, wakes the task.
///
/// With a client without a conductor thread, other code has to call
/// [`Aeron::do_work`](rusteron_client::Aeron::do_work) meanwhile.
impl<T> Future for Request<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        match Request::poll(self.get_mut()) {
            Ok(Some(answer)) => Poll::Ready(Ok(answer)),
            Ok(None) => {
                wake_soon(context.waker().clone());
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl<T> Drop for Request<T> {
    fn drop(&mut self) {
        if !self.has_outcome {
            self.requests.forget(self.correlation_id);
        }
    }
}

impl<T> fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("correlation_id", &self.correlation_id)
            .field("has_outcome", &self.has_outcome)
            .finish_non_exhaustive()
    }
}
