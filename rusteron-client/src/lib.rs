//! Aeron's client for Rust: messages between threads, processes and machines.
//!
//! [`Aeron`] connects to a media driver, run by `rusteron-media-driver`, by C or by Java, and makes
//! publications and subscriptions; a [`Subscription`] receives what a [`Publication`] or an
//! [`ExclusivePublication`] of the same channel and stream offers: whole messages, however long. A
//! [`Counter`] is a number of one's own that all processes can read; [`CountersReader`] and [`CncFile`]
//! read what a driver and its clients say of themselves.
//!
//! # Threads
//! [`Aeron`], [`Publication`] and [`Counter`] are shared by threads; [`ExclusivePublication`] and
//! [`Subscription`] move between threads and are used by one at a time. Each client runs one thread of
//! its own, the conductor, on which callbacks run; with
//! [`use_conductor_agent_invoker`](Context::set_use_conductor_agent_invoker) it has none, and callers do
//! that work with [`Aeron::do_work`].
//!
//! # Allocation and blocking
//! Offering, polling and counting neither block nor allocate nor call the operating system; the
//! exceptions, polls that find another set of publishers or the first long message of one, say so in
//! their documentation. Connecting, and adding a publication, a subscription or a counter, wait for
//! the media driver, up to the driver timeout; each has a form called `async_add_…` that does not wait.
//!
//! # Lifetimes
//! Publications, subscriptions and counters keep their client open and can be dropped in any order.
//! When the media driver dies, they report that they are closed, and their memory stays mapped until
//! they are dropped. What lies in that memory is borrowed: a [`Header`] from the poll, a
//! [`BufferClaim`] from its publication.
//!
//! # Channels
//! A channel is a text such as `aeron:udp?endpoint=localhost:40123`, or a [`ChannelUri`]; an invalid
//! one is refused, with the name and the range of the [`Parameter`], before a media driver sees it.
//!
//! # Handlers
//! A closure written where it is used needs no types; one that is kept in a variable does:
//! `|message: &[u8], header: &Header<'_>|`. An error leaves a handler in a variable that it captures;
//! [`controlled_poll`](Subscription::controlled_poll) with [`Action::Break`] ends the poll at once as well.
//! What owns both a subscription and what its handler works on is taken apart first:
//!
//! ```
//! # use rusteron_client::{Error, ExclusivePublication, Header, Subscription};
//! struct Echo {
//!     requests: Subscription,
//!     responses: ExclusivePublication,
//! }
//!
//! impl Echo {
//!     fn work(&mut self) -> Result<usize, Error> {
//!         let Self { requests, responses } = self;
//!         let mut outcome = Ok(0);
//!         let handler = |request: &[u8], _header: &Header<'_>| {
//!             if outcome.is_ok() {
//!                 outcome = responses.offer(request);
//!             }
//!         };
//!         let fragments = requests.poll(handler, 10)?;
//!         outcome?;
//!         Ok(fragments)
//!     }
//! }
//! ```
//!
//! # Errors
//! Everything off the message path returns an [`Error`], with Aeron's own text. The message path
//! returns [`OfferError`] and [`PollError`], which are plain enumerations; `?` makes an [`Error`] of
//! either, and a [`std::io::Error`] of that. What goes wrong in the background, such as a media driver
//! that dies, reaches [`Context::set_error_handler`], and the log if there is none; afterwards publications
//! and subscriptions only say that they are closed. A panic in a handler that a conductor calls is caught
//! and logged.
//!
//! # Trust
//! Processes that share a media driver share memory, and trust each other to write nothing but what
//! Aeron's protocol says: like every Aeron client, this one reads frames in place.
//!
//! ```
//! use rusteron_client::{Aeron, Context};
//! use rusteron_media_driver::MediaDriver;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let driver = MediaDriver::launch_embedded()?;
//! let mut context = Context::new()?;
//! context.set_dir(driver.aeron_dir())?;
//! let aeron = Aeron::connect(context)?;
//!
//! let mut subscription = aeron.add_subscription("aeron:ipc", 1001)?;
//! let publication = aeron.add_publication("aeron:ipc", 1001)?;
//! while let Err(error) = publication.offer(b"hello") {
//!     if !error.is_retryable() {
//!         return Err(error.into());
//!     }
//!     std::thread::yield_now();
//! }
//! let mut received = Vec::new();
//! while subscription.poll(|message, _header| received.extend_from_slice(message), 10)? == 0 {
//!     std::thread::yield_now();
//! }
//! assert_eq!(received, b"hello");
//! # Ok(())
//! # }
//! ```

#[doc(hidden)]
pub mod __private;
mod aeron;
mod channel;
mod client;
mod cnc;
mod constants;
mod context;
mod error;
mod ffi;
mod idle;
mod log_buffer;
mod publication;
mod subscription;
mod version;

pub use aeron::Aeron;
pub use channel::status::ChannelStatus;
pub use channel::uri::{
    AsChannel, ChannelUri, ChannelUriBuilder, ChannelUriError, ChannelUriErrorKind,
    CongestionControl, ControlMode, FlowControl, Group, Media, Parameter, ResponseCorrelationId,
    SessionId, TimestampOffset, UncheckedChannel,
};
pub use client::{AsyncDestination, Counter, Registration, Resource, request_driver_termination};
pub use cnc::{
    CncFile, CncVersion, CounterSnapshot, CounterState, Counters, CountersReader, ErrorLogEntry,
    LossReportEntry, PositionKind, StreamPosition, StreamPositions, SystemCounter,
};
pub use constants::{
    CncConstants, CounterConstants, ImageConstants, PublicationConstants, SubscriptionConstants,
};
pub use context::{Added, Context, PublicationError, load_properties, load_properties_file};
pub use error::{BlockFault, Error, ErrorKind, OfferError, PollError, Position, Result};
pub use ffi::handlers::Handler;
pub use idle::{
    AnyIdleStrategy, Backoff, BusySpin, IdleStrategy, IdleStrategyKind, NoOp, Sleeping,
    UnknownIdleStrategy, Yielding,
};
pub use publication::{BufferClaim, ExclusivePublication, OfferedBatch, Publication};
pub use subscription::{
    Action, FragmentAssembler, Header, Image, ImageFragmentAssembler, ImageInfo, Images, Messages,
    Subscription, SubscriptionBuilder,
};
pub use version::{AERON_VERSION, AeronVersion};
