//! The media driver, the client, and the stream that is measured.

use std::io;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rusteron_client::{
    Aeron, Context, Error, ExclusivePublication, Publication, Publisher, Subscription,
};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_core::scan;
use rusteron_media_driver::{DriverContext, MediaDriver};
use rusteron_test_support::programs;

/// How much longer than the client itself a program waits for signs of life, so that the client's
/// own words for it come first.
const DEADLINE: Duration = Duration::from_secs(5);

/// A client of a media driver, and the driver if it is embedded.
#[derive(Debug)]
pub struct Connection {
    // Dropped in this order.
    aeron: Aeron,
    driver: Option<MediaDriver>,
    /// Errors that the client's own thread has met.
    background: Receiver<Error>,
}

/// A publication and the subscription that receives from it, and from it alone.
#[derive(Debug)]
pub struct Stream<P = ExclusivePublication> {
    /// The publisher's end.
    pub publication: P,
    /// The subscriber's end.
    pub subscription: Subscription,
}

impl Connection {
    /// Launches an embedded driver with the context's settings, and connects to it.
    ///
    /// # Errors
    /// [`Failure::Run`] if either fails.
    pub fn embedded(context: DriverContext) -> Result<Self, Failure> {
        let driver = MediaDriver::launch_embedded_with(context)
            .map_err(|error| Failure::run("cannot launch the media driver", error))?;
        let (aeron, background) = connect(driver.aeron_dir())?;
        Ok(Self { aeron, driver: Some(driver), background })
    }

    /// Connects to the driver that runs in a directory.
    ///
    /// # Errors
    /// [`Failure::Run`] if there is none, after the driver timeout.
    pub fn to_driver(dir: &Path) -> Result<Self, Failure> {
        let (aeron, background) = connect(dir)?;
        Ok(Self { aeron, driver: None, background })
    }

    /// Where the media driver's files are.
    pub fn aeron_dir(&self) -> &Path {
        self.driver.as_ref().map_or_else(|| self.aeron.context().dir(), MediaDriver::aeron_dir)
    }

    /// The client.
    pub fn aeron(&self) -> &Aeron {
        &self.aeron
    }

    /// How long no message may arrive before something must be wrong.
    pub fn timeout(&self) -> Duration {
        self.aeron.context().driver_timeout().saturating_add(DEADLINE)
    }

    /// Adds a publication and, on the driver of `receiver`, a subscription. Waits until they are connected with each other
    /// or the interrupt is requested.
    ///
    /// # Errors
    /// [`Failure::Run`] if the driver refuses the channel, or in case of a timeout.
    pub fn open(
        &self,
        receiver: &Self,
        channel: &str,
        stream_id: i32,
        interrupt: &ShutdownSignal,
    ) -> Result<Stream, Failure> {
        let publication = self
            .aeron
            .add_exclusive_publication(channel, stream_id)
            .map_err(|error| cannot_add("publication", channel, stream_id, error))?;
        self.subscribe(publication, receiver, channel, interrupt)
    }

    /// The same with a publication that several threads can publish on.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_concurrent(
        &self,
        channel: &str,
        stream_id: i32,
        interrupt: &ShutdownSignal,
    ) -> Result<Stream<Publication>, Failure> {
        let publication = self
            .aeron
            .add_publication(channel, stream_id)
            .map_err(|error| cannot_add("publication", channel, stream_id, error))?;
        self.subscribe(publication, self, channel, interrupt)
    }

    /// Adds a subscription to one publication. On a driver that others use, too, there may be more publishers. Theirs do
    /// not count.
    fn subscribe<P: Publisher>(
        &self,
        publication: P,
        receiver: &Self,
        channel: &str,
        interrupt: &ShutdownSignal,
    ) -> Result<Stream<P>, Failure> {
        let (session_id, stream_id) =
            (publication.handle().session_id(), publication.handle().stream_id());
        let separator = if channel.contains('?') { '|' } else { '?' };
        let own = format!("{channel}{separator}session-id={session_id}");
        let subscription = receiver
            .aeron
            .add_subscription(&own, stream_id)
            .map_err(|error| cannot_add("subscription", channel, stream_id, error))?;
        self.await_connected(channel, stream_id, interrupt, || {
            publication.handle().is_connected() && subscription.is_connected()
        })?;
        Ok(Stream { publication, subscription })
    }

    /// Waits until a stream is connected or the interrupt is requested.
    ///
    /// # Errors
    /// [`Failure::Run`] if the client is closed meanwhile, or in case of a timeout.
    pub fn await_connected(
        &self,
        channel: &str,
        stream_id: i32,
        interrupt: &ShutdownSignal,
        is_connected: impl Fn() -> bool,
    ) -> Result<(), Failure> {
        const PAUSE: Duration = Duration::from_millis(1);
        let deadline = Instant::now() + self.timeout();
        while !is_connected() && !interrupt.wait_timeout(PAUSE) {
            if self.aeron.is_closed() {
                return Err(Failure::Run("the client was closed".to_owned()));
            }
            if Instant::now() >= deadline {
                return Err(Failure::Run(format!(
                    "publisher and subscriber on {channel} stream {stream_id} are not connected \
                     after {}",
                    scan::format_duration(self.timeout()),
                )));
            }
        }
        Ok(())
    }

    /// Adds to a failure the error that the client has reported meanwhile: that is its cause.
    pub fn explain(&self, failure: Failure) -> Failure {
        // The client closes first, and then says why.
        let timeout = if self.aeron.is_closed() { Duration::from_secs(1) } else { Duration::ZERO };
        match (failure, self.background.recv_timeout(timeout)) {
            (Failure::Run(text), Ok(error)) => Failure::run(text, error),
            (failure, _) => failure,
        }
    }

    /// Prints the error that the client has reported although nothing has failed.
    pub fn warn(&self) {
        for error in self.background.try_iter() {
            programs::warn(error);
        }
    }
}

fn cannot_add(what: &str, channel: &str, stream_id: i32, error: Error) -> Failure {
    Failure::run(format_args!("cannot add the {what} on {channel} stream {stream_id}"), error)
}

fn connect(dir: &Path) -> Result<(Aeron, Receiver<Error>), Failure> {
    let (sender, background) = mpsc::channel();
    let mut context = Context::new()?;
    context.set_dir(dir)?.set_error_handler(move |error| {
        // The receiver is gone only when the program is about to end.
        let _ = sender.send(error.clone());
    })?;
    let aeron = Aeron::connect(context).map_err(|error| {
        let dir = dir.display();
        Failure::run(format_args!("cannot connect to a media driver in {dir}"), error)
    })?;
    Ok((aeron, background))
}

/// UDP endpoints of this machine that are free now.
///
/// # Errors
/// [`Failure::Run`] if there are none.
pub fn free_endpoints(count: usize) -> Result<Vec<String>, Failure> {
    // All at the same time, so that no two are the same.
    let sockets: io::Result<Vec<_>> = (0..count).map(|_| UdpSocket::bind("127.0.0.1:0")).collect();
    let endpoints = sockets.and_then(|sockets| {
        sockets.iter().map(|it| Ok(it.local_addr()?.to_string())).collect::<io::Result<_>>()
    });
    endpoints.map_err(|error| Failure::run("no free port on 127.0.0.1", error))
}
