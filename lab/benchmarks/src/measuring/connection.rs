//! The media driver, the client, and the stream that is measured.

use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Context, Error, PublicationHandle, Subscription};
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

    /// Adds a subscription to a publication of this connection, on the driver of `receiver`. Waits
    /// until they are connected with each other.
    ///
    /// # Errors
    /// [`Failure::Run`] if the driver refuses the channel, or in case of a timeout;
    /// [`Failure::Interrupted`].
    pub fn subscribe(
        &self,
        publication: &PublicationHandle,
        receiver: &Self,
        channel: &str,
        interrupt: &ShutdownSignal,
    ) -> Result<Subscription, Failure> {
        let (session_id, stream_id) = (publication.session_id(), publication.stream_id());
        // On a driver that others use, too, there may be more publishers. Theirs do not count.
        let separator = if channel.contains('?') { '|' } else { '?' };
        let own = format!("{channel}{separator}session-id={session_id}");
        let subscription = receiver.aeron.add_subscription(&own, stream_id)?;
        let deadline = Instant::now() + self.timeout();
        while !(publication.is_connected() && subscription.is_connected()) {
            if self.aeron.is_closed() {
                return Err(Failure::Run("the client was closed".to_owned()));
            }
            if Instant::now() >= deadline {
                let timeout = scan::format_duration(self.timeout());
                return Err(Failure::Run(format!(
                    "publisher and subscriber on {channel} stream {stream_id} are not connected \
                     after {timeout}"
                )));
            }
            if interrupt.wait_timeout(Duration::from_millis(1)) {
                return Err(Failure::Interrupted);
            }
        }
        Ok(subscription)
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
