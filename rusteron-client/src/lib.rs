//! Aeron's client for Rust: messages between threads, processes and machines.
//!
//! [`Aeron`] connects to a media driver and makes publications and subscriptions. The media driver
//! is run by `rusteron-media-driver`, by C or by Java. A [`Publication`] or an
//! [`ExclusivePublication`] offers messages. A [`Subscription`] of the same channel and stream
//! receives them as whole messages, however long they are. A [`Counter`] is a number that all
//! processes can read. [`CountersReader`] and [`CncFile`] read the counters and descriptions of a
//! driver and its clients.
//!
//! # Threads
//! Threads share [`Aeron`], [`Publication`] and [`Counter`]. [`ExclusivePublication`] and
//! [`Subscription`] move between threads, and one thread at a time uses them. Each client runs one
//! thread of its own, the conductor. Callbacks run on the conductor. With
//! [`use_conductor_agent_invoker`](Context::set_use_conductor_agent_invoker), the client has no
//! thread, and callers do the conductor's work with [`Aeron::do_work`].
//!
//! # Allocation and blocking
//! Offering, polling and counting neither block nor allocate nor call the operating system. The
//! exceptions are polls that find another set of publishers, or the first long message of a
//! publisher. Their documentation says so. Connecting waits for the media driver, up to the driver
//! timeout. So does adding a publication, a subscription or a counter. Each add call has a form
//! called `async_add_…` that does not wait.
//!
//! # Lifetimes
//! Publications, subscriptions and counters keep their client open and can be dropped in any order.
//! When the media driver dies, they report that they are closed. Their memory stays mapped until
//! they are dropped. Values in that memory are borrowed: a [`Header`] from the poll, a
//! [`BufferClaim`] from its publication.
//!
//! # Channels
//! A channel is a text such as `aeron:udp?endpoint=localhost:40123`, or a [`ChannelUri`]. A value
//! out of range is refused before a media driver sees it, with the name and the range of the
//! [`Parameter`]. The media driver checks the rest, and its text is in the error.
//!
//! With `control-mode=manual`, a channel has no endpoint of its own. The caller adds
//! **destinations**, while the stream runs. A publication sends each message to all its
//! destinations. A subscription receives from all its destinations. A destination is itself a
//! channel, with an endpoint:
//!
//! ```
//! # use rusteron_client::{Aeron, Context};
//! # use rusteron_media_driver::MediaDriver;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let driver = MediaDriver::launch_embedded()?;
//! # let mut context = Context::new()?;
//! # context.set_dir(driver.aeron_dir())?;
//! # let aeron = Aeron::connect(context)?;
//! let publication = aeron.add_publication("aeron:udp?control-mode=manual", 1001)?;
//! let first = publication.add_destination("aeron:udp?endpoint=127.0.0.1:24331")?;
//! let _second = publication.add_destination("aeron:udp?endpoint=127.0.0.1:24332")?;
//! // From here on, messages go to both. A destination is removed by its id, or by its channel.
//! publication.remove_destination_by_id(first)?;
//! # Ok(())
//! # }
//! ```
//!
//! With `control-mode=dynamic` and a `control` address in the publication's channel, subscribers
//! register themselves, and the publisher adds nothing.
//!
//! # Handlers
//! A handler is a closure that the caller gives away. There are two kinds.
//!
//! **Handlers of polls** receive messages. They run on the calling thread, and end before the poll
//! returns. So they may borrow local variables:
//!
//! ```
//! # use rusteron_client::{Aeron, Context};
//! # use rusteron_media_driver::MediaDriver;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let driver = MediaDriver::launch_embedded()?;
//! # let mut context = Context::new()?;
//! # context.set_dir(driver.aeron_dir())?;
//! # let aeron = Aeron::connect(context)?;
//! # let mut subscription = aeron.add_subscription("aeron:ipc", 1001)?;
//! let mut bytes = 0;
//! subscription.poll(|message, _header| bytes += message.len(), 10)?;
//! println!("{bytes} bytes");
//! # Ok(())
//! # }
//! ```
//!
//! - Message and header are lent for the call. To keep a message, copy its bytes.
//! - A closure in a variable needs types: `|message: &[u8], header: &Header<'_>| …`.
//! - A handler returns nothing. To get an error out, store the error in a variable that the handler
//!   captures. To end the poll at once as well, use
//!   [`controlled_poll`](Subscription::controlled_poll) with [`Action::Break`].
//! - If one value owns the subscription and the target of its messages, destructure the value
//!   first. Then the poll borrows one field, and the handler another:
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
//! **Handlers of events** learn of errors, images and counters. They run on the client's conductor
//! thread, at any time, and live as long as their owner. So they must own what they use, and that
//! has to be `Send`. A channel, an `Arc` or an atomic passes the event on:
//!
//! ```
//! # use rusteron_client::{Aeron, Context};
//! # use rusteron_media_driver::MediaDriver;
//! use std::sync::mpsc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let driver = MediaDriver::launch_embedded()?;
//! # let mut context = Context::new()?;
//! # context.set_dir(driver.aeron_dir())?;
//! # let aeron = Aeron::connect(context)?;
//! let (sender, sessions) = mpsc::channel();
//! let subscription = aeron
//!     .subscription_builder("aeron:ipc", 1001)
//!     .on_available_image(move |image| {
//!         let _ = sender.send(image.session_id());
//!     })
//!     .add()?;
//! for session_id in sessions.try_iter() {
//!     println!("publisher {session_id} has come");
//! }
//! # drop(subscription);
//! # Ok(())
//! # }
//! ```
//!
//! The conductor waits for these handlers. Keep them short. In a handler, calls that would wait for
//! the conductor return [`ErrorKind::CalledFromConductor`].
//!
//! # Errors
//! All operations outside the message path return an [`Error`], with Aeron's own text. The message
//! path returns [`OfferError`] and [`PollError`], which are plain enumerations. `?` converts them
//! to an [`Error`], and an [`Error`] to a [`std::io::Error`].
//!
//! Errors in the background, such as a dead media driver, reach [`Context::set_error_handler`].
//! Without a handler, they are logged. Afterwards, publications and subscriptions only report that
//! they are closed. [`Reconnect`] makes them anew, with the client, and [`Error::is_transient`] tells
//! the errors after which that can help. A panic in a handler that a conductor calls is caught and
//! logged.
//!
//! # Names in Java and C
//! The search of this documentation finds items by their names in Aeron's C API, and by names in its
//! Java API. The guide `docs/from-java.md` in the repository lists Java's names, with notes on
//! differences in behaviour.
//!
//! # Trust
//! Processes that share a media driver share memory. They trust each other to write only what
//! Aeron's protocol allows. Like every Aeron client, this one reads frames in place.
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

#![cfg_attr(docsrs, feature(doc_cfg))]

mod aeron;
mod client;
mod conductor_agent;
mod constants;
mod context;
#[cfg(doctest)]
mod misuse;
mod publication;
pub mod raw_client;
mod reconnect;
mod subscription;
mod tasks;

pub use aeron::{Aeron, AsyncConnect};
pub use client::{
    Counter, DestinationRegistration, NextSessionId, Registration, Resource, WaitError, WaitState,
};
pub use conductor_agent::ConductorAgent;
pub use constants::{
    CounterConstants, ImageConstants, PublicationConstants, SubscriptionConstants,
};
pub use context::{Context, NewResource, PublicationError};
pub use publication::{
    AnyPublication, BufferClaim, ExclusivePublication, OfferedBatch, Publication,
    PublicationHandle, Publisher,
};
pub use reconnect::Reconnect;
#[doc(inline)]
pub use rusteron_core::{
    AERON_VERSION, AeronVersion, agent,
    channel::{
        AsChannel, ChannelStatus, ChannelUri, ChannelUriBuilder, ChannelUriError,
        ChannelUriErrorKind, ChannelUse, CongestionControl, ControlMode, FlowControl, Group, Media,
        Parameter, ResponseCorrelationId, SessionId, TimestampOffset, UncheckedChannel,
    },
    cnc::{
        CncConstants, CncFile, CncVersion, CounterSnapshot, CounterState, Counters, CountersReader,
        ErrorLogEntry, LossReportEntry, PositionKind, StreamPosition, StreamPositions,
        SystemCounter, request_driver_termination,
    },
    error::{
        BlockFault, CloseCause, Error, ErrorKind, Mismatch, OfferError, PollError, Position,
        Result, SessionEnd,
    },
    ffi::handlers::Handler,
    idle::{
        AnyIdleStrategy, Backoff, BusySpin, IdleFn, IdleStrategy, IdleStrategyKind, NoOp, Sleeping,
        UnknownIdleStrategy, Yielding, idle_fn,
    },
    load_properties, load_properties_file,
};
pub use subscription::{
    Action, FragmentAssembler, Header, Image, ImageFragmentAssembler, ImageInfo, Images, Messages,
    Skipped, Subscription, SubscriptionBuilder, SubscriptionDestinations,
};
pub use tasks::{AgentEnded, PublicationAgent, SubscriptionAgent, TaskReceiver, TaskSender};
