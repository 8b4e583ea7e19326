//! A pending connection to an archive.
//!
//! C asks the driver for a session id in a loop that never ends if the client closes meanwhile. C calls the
//! delegating invoker in that loop, so the invoker puts another, closed client into the archive's context once
//! the client is closed. C then does that client's work itself and fails at once.

use std::fmt;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{self, Poll};

use rusteron_client::raw_client::RawClient;
use rusteron_client::{Aeron, ChannelUri, Error, ErrorKind, SessionId};
use rusteron_core::channel::{AsChannel, ChannelText, ChannelUse, ChosenStream, Media, clashes};
use rusteron_core::ffi::handlers::Handler;
use rusteron_core::ffi::{Fallible, last_error, wake};
use rusteron_core::threads::SharedBetweenThreads;
use rusteron_sys::archive as sys;

use crate::archive::{Archive, Connection};
use crate::checks::forbid_reentry;
use crate::context::ArchiveContext;
use crate::error::{ArchiveError, ArchiveErrorKind, Result};

/// A pending connection to an archive.
///
/// Poll it until it returns the connection or an error, or await it as a future. The timeout counts
/// from its creation, and only polls notice the end of the timeout. Dropping it before there is an
/// outcome abandons the attempt.
///
/// Made by [`Archive::async_connect`].
///
/// ```no_run
/// use rusteron_archive::{Archive, ArchiveContext};
/// use rusteron_client::Aeron;
///
/// # async fn connect(aeron: &Aeron, context: ArchiveContext) -> rusteron_archive::Result<()> {
/// let archive = Archive::async_connect(aeron, context)?.await?;
/// println!("{:?}", archive.archive_id());
/// # Ok(())
/// # }
/// ```
#[doc(alias = "aeron_archive_async_connect_t")]
#[must_use = "the attempt ends when this is dropped"]
pub struct AsyncArchiveConnect {
    /// `None` once the outcome has been returned.
    attempt: Option<Attempt>,
    aeron: Aeron,
    /// As the caller set it: connecting adds parameters to the context's channels.
    request_channel: String,
    response_channel: String,
    rejection: Rejection,
}

/// Why the archive has rejected the stream of requests: it does so if it cannot answer.
struct Rejection {
    reason: Arc<Mutex<Option<String>>>,
    _handler: Option<Handler>,
}

impl Rejection {
    /// Watches the stream that C is about to publish in this context's name.
    fn watch(aeron: &Aeron, context: &ArchiveContext) -> Self {
        let reason = Arc::new(Mutex::new(None));
        // C has added one of its own.
        let channel = context.control_request_channel().parse::<ChannelUri>();
        let session_id = channel.ok().and_then(|channel| channel.session_id().ok().flatten());
        let stream_id = context.control_request_stream_id();
        let handler = session_id.map(|session_id| {
            let reason = Arc::clone(&reason);
            RawClient::new(aeron).add_publication_error_handler(move |error| {
                if error.stream_id == stream_id && session_id == SessionId::Id(error.session_id) {
                    let mut reason = reason.lock().unwrap_or_else(PoisonError::into_inner);
                    reason.get_or_insert_with(|| error.message.clone());
                }
            })
        });
        Self { reason, _handler: handler }
    }

    fn take(&self) -> Option<String> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

// SAFETY: the bound never holds.
unsafe impl Sync for AsyncArchiveConnect where for<'a> Self: SharedBetweenThreads<'a> {}

/// The C structure, and the context that it points to.
struct Attempt {
    raw: NonNull<sys::aeron_archive_async_connect_t>,
    context: ArchiveContext,
}

// SAFETY: nothing in the C structure is tied to a thread, and it has one owner here.
unsafe impl Send for Attempt {}

impl Attempt {
    /// Returns the context after C has freed the structure, as C does with the outcome.
    fn freed_by_c(self) -> ArchiveContext {
        let this = ManuallyDrop::new(self);
        // SAFETY: read once, and not dropped through the old owner.
        unsafe { ptr::read(&this.context) }
    }
}

const OPERATION: &str = "connect";

impl AsyncArchiveConnect {
    pub(crate) fn begin(aeron: &Aeron, mut context: ArchiveContext) -> Result<Self> {
        forbid_reentry(OPERATION)?;
        check(&context)?;
        // C would wait for an answer that the closed client no longer receives.
        aeron.check_open()?;
        let request_channel = context.control_request_channel().into_owned();
        let response_channel = context.control_response_channel().into_owned();
        context.set_aeron(aeron)?;
        let mut raw = ptr::null_mut();
        RawClient::new(aeron)
            .command(OPERATION, || {
                context.connecting(aeron, |context| {
                    // SAFETY: the context is live, and what it has pointers to lives as long; the
                    // client is live.
                    unsafe { sys::aeron_archive_async_connect(&mut raw, context) }.into_result()
                })
            })?
            .map_err(|error| ArchiveError::from_c(&error, OPERATION))?;
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        let rejection = Rejection::watch(aeron, &context);
        let attempt = Some(Attempt { raw, context });
        Ok(Self { attempt, aeron: aeron.clone(), request_channel, response_channel, rejection })
    }

    /// Returns the connection, or `None` if it is still pending. Does not block.
    ///
    /// # Errors
    /// The outcome is returned once and can be an error, as for [`Archive::connect`]. Later polls
    /// return [`ArchiveErrorKind::Client`] with [`ErrorKind::IllegalState`].
    ///
    /// Corresponds to `aeron_archive_async_connect_poll`.
    #[doc(alias = "aeron_archive_async_connect_poll")]
    pub fn poll(&mut self) -> Result<Option<Archive>> {
        forbid_reentry(OPERATION)?;
        let Some(attempt) = &self.attempt else {
            let text = "the connection has been given out already, or has failed";
            return Err(Error::new(ErrorKind::IllegalState, text).into());
        };
        let mut raw = ptr::null_mut();
        let outcome = RawClient::new(&self.aeron).command(OPERATION, || {
            // SAFETY: the structure is live, as there was no outcome yet.
            unsafe { sys::aeron_archive_async_connect_poll(&mut raw, attempt.raw.as_ptr()) }
                .into_result()
        })?;
        if matches!(outcome, Ok(0)) {
            let Some(reason) = self.rejection.take() else { return Ok(None) };
            self.abandon();
            let text = format!(
                "the archive at {} has rejected the session: {reason}",
                self.request_channel
            );
            return Err(ArchiveError::new(ArchiveErrorKind::Refused, OPERATION, text));
        }
        let Some(attempt) = self.attempt.take() else { return Ok(None) };
        let context = attempt.freed_by_c();
        // SAFETY: C has ended the attempt, and asks for no credentials.
        let no_credentials = unsafe { context.take_credentials_failure() };
        let connected = outcome.and_then(|_| NonNull::new(raw).ok_or_else(last_error));
        let archive = connected.map_err(|error| self.explain(&error, &context)).map(|raw| {
            let (aeron, channel) = (self.aeron.clone(), self.request_channel.clone());
            // SAFETY: C gives the structure to its caller, and it was connected with this context, which
            // was given this client.
            unsafe { Archive::new(Connection { raw, context }, aeron, channel) }
        });
        match no_credentials {
            // C sent empty credentials instead, and an archive without authentication accepted
            // them. The session ends here.
            Some(failure) => Err(ArchiveError::from_c(&failure, OPERATION)),
            None => archive.map(Some),
        }
    }

    fn abandon(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            RawClient::new(&self.aeron).release(move || drop(attempt));
        }
    }

    /// Converts C's error of an attempt. A timeout says what was tried and what helps: C's text has neither.
    fn explain(&self, error: &Error, context: &ArchiveContext) -> ArchiveError {
        let error = ArchiveError::from_c(error, OPERATION);
        match error.kind() {
            // C passes the archive's refusal on as an invalid argument.
            ArchiveErrorKind::InvalidArgument => {
                ArchiveError::new(ArchiveErrorKind::Refused, OPERATION, error.message())
            }
            ArchiveErrorKind::Timeout => {
                let Self { request_channel: request, response_channel: response, .. } = self;
                let stream = context.control_request_stream_id();
                let dir = self.aeron.context().dir().display().to_string();
                let (driver, program) = if ChannelText::new(request).media() == Some(Media::Ipc) {
                    let driver = format!(" on the media driver in {dir}");
                    (driver, format!("archive --ipc-only --dir {dir}"))
                } else {
                    (String::new(), format!("archiving_media_driver --control-channel '{request}'"))
                };
                let text = format!(
                    "no archive answered at {request}, stream {stream},{driver} within {:.1?}. If none runs, start one, such \
                     as `{program}` of rusteron-archive-server. If one runs, compare its control channel with this one; \
                     its answers have to reach {response}",
                    context.message_timeout()
                );
                error.saying(text)
            }
            _ => error,
        }
    }
}

/// C's own checks are incomplete, and come too late to clean up.
pub(crate) fn check(context: &ArchiveContext) -> Result<()> {
    let request = context.control_request_channel();
    let response = context.control_response_channel();
    for (name, channel, example) in [
        ("control_request_channel", &request, "aeron:udp?endpoint=localhost:8010"),
        ("control_response_channel", &response, "aeron:udp?endpoint=localhost:0"),
    ] {
        if channel.is_empty() {
            let text = format!("{name} is not set; it wants a channel such as {example}");
            return Err(ArchiveError::invalid(OPERATION, text));
        }
    }
    request.to_c_string(ChannelUse::Publication)?;
    response.to_c_string(ChannelUse::Subscription)?;
    if context.message_retry_attempts() == 0 {
        let text = "message_retry_attempts: 0; the minimum is 1";
        return Err(ArchiveError::invalid(OPERATION, text));
    }
    // The client would take its own requests for answers.
    let clashes = clashes(&[
        ChosenStream {
            channel: ("control_request_channel", &request),
            stream_id: ("control_request_stream_id", context.control_request_stream_id()),
        },
        ChosenStream {
            channel: ("control_response_channel", &response),
            stream_id: ("control_response_stream_id", context.control_response_stream_id()),
        },
    ]);
    match clashes.is_empty() {
        true => Ok(()),
        false => Err(ArchiveError::invalid(OPERATION, clashes.join("; "))),
    }
}

/// Resolves to the connection. Needs no particular runtime: a thread of the client library, one per
/// process, wakes the task.
///
/// With a client without a conductor thread, it makes progress only while other code calls
/// [`Aeron::do_work`].
impl Future for AsyncArchiveConnect {
    type Output = Result<Archive>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        wake::outcome(AsyncArchiveConnect::poll(self.get_mut()), context)
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        // SAFETY: the structure is live: an attempt with an outcome is taken apart instead of
        // dropped.
        unsafe { sys::aeron_archive_async_connect_delete(self.raw.as_ptr()) };
    }
}

impl Drop for AsyncArchiveConnect {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl fmt::Debug for AsyncArchiveConnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncArchiveConnect").field("has_outcome", &self.attempt.is_none()).finish()
    }
}
