//! A client and its streams, made again when they have ended.
//!
//! An attempt runs on a thread of its own: it drops what is left of the last connection, connects and opens the
//! streams, and each of these may block. The caller polls for the outcome. Between two attempts there is no thread.

use std::fmt;
use std::future;
use std::mem;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

#[cfg(doc)]
use rusteron_core::agent::Agent;
use rusteron_core::error::{Error, ErrorKind, Result};
use rusteron_core::ffi::wake;

use crate::aeron::Aeron;
use crate::client::Background;
use crate::context::Context;

/// Between the beginnings of two attempts.
const INTERVAL: Duration = Duration::from_millis(500);

/// A client and the caller's streams `S`, kept alive over restarts of the media driver and over the
/// client's own timeouts. Peers that come and go need no reconnection.
///
/// `S` is what the caller opens from a client: a publication, a subscription, a tuple or a structure of
/// both. Client and streams are made together and dropped together. What has to outlive them, such as
/// the number of the next message, stays with the caller.
///
/// [`work`](Self::work) lends the streams from a duty cycle, [`connected`](Self::connected) awaits
/// them in a task. Neither waits for a driver: an attempt to connect runs on a thread of its own, which
/// exists for the attempt only. Attempts begin at least 500 ms apart, so the first one after a long
/// connection begins at once. Each waits for a driver for up to the context's driver timeout.
///
/// Before the first connection, an error that is not [transient](Error::is_transient) is returned, so
/// that a wrong channel or directory ends the program. Afterwards the same settings have been right
/// before, and every error is retried. The attempts end when this value is dropped. Dropping it closes
/// an open client, which waits for its conductor, but does not wait for an attempt.
///
/// A publisher of quotes, of which only the newest counts:
///
/// ```
/// use rusteron_client::{Context, Reconnect, Result};
///
/// # let driver = rusteron_media_driver::MediaDriver::launch_embedded()?;
/// # let dir = driver.aeron_dir().to_owned();
/// let new_context = move || {
///     let mut context = Context::new()?;
///     context.set_dir(&dir)?;
///     Ok(context)
/// };
/// let mut quotes = Reconnect::new(new_context, |aeron| aeron.add_publication("aeron:ipc", 1001))
///     .on_change(|change| match change {
///         Ok(publication) => println!("connected, session {}", publication.session_id()),
///         Err(cause) => println!("disconnected: {cause}"),
///     });
/// for price in 100..200_u64 {
///     let position = quotes.work(|publication| Ok(publication.offer(&price.to_le_bytes())?))?;
///     assert_eq!(position, 0); // not connected yet, or no subscriber yet
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing connects before `work` or `connected`"]
pub struct Reconnect<S: Send + 'static> {
    connect: Arc<Connect<S>>,
    on_change: Box<OnChange<S>>,
    state: State<S>,
    last_attempt: Option<Instant>,
    was_connected: bool,
}

/// Ends soon after its argument has become true.
type Connect<S> = dyn Fn(&AtomicBool) -> Result<Connection<S>> + Send + Sync;
type OnChange<S> = dyn FnMut(Result<&mut S, &Error>) + Send;

/// Drops the streams before the client, so that the last handle is one that this module knows.
struct Connection<S> {
    streams: S,
    aeron: Aeron,
}

enum State<S: Send + 'static> {
    /// With what is left of the last connection. The next attempt drops it, because that may block.
    Disconnected(Option<Connection<S>>),
    Connecting(Background<Result<Connection<S>>>),
    Connected(Connection<S>),
}

impl<S: Send + 'static> Reconnect<S> {
    /// Returns a value that connects at the first [`work`](Self::work) or
    /// [`connected`](Self::connected).
    ///
    /// For each attempt, `new_context` makes the settings of a client, and `open` its streams. Both run
    /// on a thread of their own, where `open` may block. It can also keep a clone of the client in `S`.
    pub fn new(
        new_context: impl Fn() -> Result<Context> + Send + Sync + 'static,
        open: impl Fn(&Aeron) -> Result<S> + Send + Sync + 'static,
    ) -> Self {
        let connect = move |is_cancelled: &AtomicBool| {
            let aeron = Aeron::connect_unless_cancelled(new_context()?, is_cancelled)?;
            let streams = open(&aeron)?;
            Ok(Connection { streams, aeron })
        };
        Self {
            connect: Arc::new(connect),
            on_change: Box::new(|change| match change {
                Ok(_) => log::info!("connected to the media driver"),
                Err(cause) => log::warn!("not connected to the media driver: {cause}"),
            }),
            state: State::Disconnected(None),
            last_attempt: None,
            was_connected: false,
        }
    }

    /// Sets the handler of changes: the streams of each new connection, or the reason why a connection
    /// or an attempt to connect has ended.
    ///
    /// The handler runs in [`work`](Self::work) and [`connected`](Self::connected), on the caller's
    /// thread. Without a handler, changes are logged.
    pub fn on_change(
        mut self,
        handler: impl FnMut(Result<&mut S, &Error>) + Send + 'static,
    ) -> Self {
        self.on_change = Box::new(handler);
        self
    }

    /// Calls `step` with the streams if they are open and returns its value, the work done. Otherwise
    /// takes a step towards a connection, and returns the default value, such as 0.
    ///
    /// Does not block, and fits into [`Agent::do_work`]. An error of `step` decides what happens:
    ///
    /// | Error | Effect |
    /// |---|---|
    /// | [retryable](Error::is_retryable), such as back pressure | none: returns the default value |
    /// | [transient](Error::is_transient), such as `Closed` | ends the connection: returns the default value |
    /// | any other, such as a message that is too long | the error is returned, and the connection stays |
    ///
    /// Converting an [`OfferError`](crate::OfferError) allocates. A `step` that is often rejected, or
    /// that has to keep the rejected message, handles retryable errors by itself.
    ///
    /// # Errors
    /// - an error of `step` that is not transient;
    /// - before the first connection, an error of an attempt that is not transient: of the closures,
    ///   and of [`Aeron::connect`]. The next call begins another attempt.
    ///
    /// # Panics
    /// With the panic of a closure that was given to [`new`](Self::new).
    pub fn work<T: Default>(&mut self, step: impl FnOnce(&mut S) -> Result<T>) -> Result<T> {
        self.advance()?;
        let Some(streams) = self.streams() else { return Ok(T::default()) };
        match step(streams) {
            Err(error) if error.is_transient() => {
                if !error.is_retryable() {
                    self.disconnect(&error);
                }
                Ok(T::default())
            }
            outcome => outcome,
        }
    }

    /// Waits for a connection, and lends its streams. Returns at once if they are open.
    ///
    /// Needs no particular runtime. If the future is dropped, the attempt goes on, and the next call
    /// returns its outcome. The next call also notices if the client has been closed. For errors of the
    /// streams that leave the client open, use them in [`work`](Self::work).
    ///
    /// # Errors
    /// Before the first connection, an error that is not transient, as from [`work`](Self::work).
    ///
    /// # Panics
    /// As [`work`](Self::work).
    pub async fn connected(&mut self) -> Result<&mut S> {
        future::poll_fn(|context| {
            let advanced = self.advance();
            wake::outcome(advanced.map(|()| self.streams().map(drop)), context)
        })
        .await?;
        self.streams().ok_or_else(|| Error::new(ErrorKind::IllegalState, "not connected"))
    }

    fn streams(&mut self) -> Option<&mut S> {
        match &mut self.state {
            State::Connected(connection) => Some(&mut connection.streams),
            _ => None,
        }
    }

    /// Looks what has become of the connection or the attempt, and begins another one if it is time.
    fn advance(&mut self) -> Result<()> {
        let ended = match &mut self.state {
            State::Connected(connection) => match connection.aeron.check_open() {
                Ok(()) => return Ok(()),
                Err(error) => {
                    self.disconnect(&error);
                    return Ok(());
                }
            },
            State::Connecting(attempt) => {
                let outcome = attempt.poll().transpose();
                return outcome.map_or(Ok(()), |outcome| self.finish(outcome));
            }
            State::Disconnected(ended) => ended,
        };
        if self.last_attempt.is_some_and(|begin| begin.elapsed() < INTERVAL) {
            return Ok(());
        }
        self.last_attempt = Some(Instant::now());
        let (ended, connect) = (ended.take(), Arc::clone(&self.connect));
        let attempt = Background::connect(move |is_cancelled| {
            drop(ended);
            connect(is_cancelled)
        });
        match attempt {
            Ok(attempt) => self.state = State::Connecting(attempt),
            Err(error) => (self.on_change)(Err(&error)),
        }
        Ok(())
    }

    /// Takes the outcome of an attempt.
    #[cold]
    fn finish(&mut self, outcome: Result<thread::Result<Result<Connection<S>>>>) -> Result<()> {
        self.state = State::Disconnected(None);
        // A fork ends the attempt, whose thread is in the parent.
        let opened = outcome.and_then(|result| result.unwrap_or_else(|panic| resume_unwind(panic)));
        match opened {
            Ok(connection) => {
                self.was_connected = true;
                self.state = State::Connected(connection);
                if let State::Connected(connection) = &mut self.state {
                    (self.on_change)(Ok(&mut connection.streams));
                }
            }
            Err(error) if !self.was_connected && !error.is_transient() => return Err(error),
            Err(error) => (self.on_change)(Err(&error)),
        }
        Ok(())
    }

    #[cold]
    fn disconnect(&mut self, cause: &Error) {
        let ended = match mem::replace(&mut self.state, State::Disconnected(None)) {
            State::Connected(connection) => Some(connection),
            _ => None,
        };
        self.state = State::Disconnected(ended);
        (self.on_change)(Err(cause));
    }
}

impl<S: Send + 'static> fmt::Debug for Reconnect<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Disconnected(_) => "disconnected",
            State::Connecting(_) => "connecting",
            State::Connected(_) => "connected",
        };
        f.debug_struct("Reconnect").field("state", &state).finish_non_exhaustive()
    }
}
