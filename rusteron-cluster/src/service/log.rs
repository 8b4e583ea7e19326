//! The log that a container reads.

use rusteron_client::{Aeron, Position, Registration, Subscription, UncheckedChannel};
use rusteron_core::channel::ChannelText;

use crate::ids::ServiceId;
use crate::service::clustered_service::ClusteredService;
use crate::service::core::Core;
use crate::service::error::TerminationCause;
use crate::service::network::Network;
use crate::service::types::JoinLog;
use crate::stream::poll_or_request;

/// The log that a container reads, from the request to join it to its end.
#[derive(Debug)]
pub(crate) enum Log {
    Closed,
    Joining(Box<Joining>),
    /// The image is found by its own id: another image may come with the same session.
    Open {
        subscription: Subscription,
        correlation_id: i64,
        position: Position,
    },
}

/// A log that is not there yet.
#[derive(Debug)]
pub(crate) struct Joining {
    join: JoinLog,
    channel: String,
    registration: Option<Registration<Subscription>>,
    subscription: Option<Subscription>,
    /// The last failure, which is recorded once.
    failure: String,
}

impl Log {
    /// Starts joining a log.
    pub(crate) fn join(join: JoinLog, service_id: ServiceId) -> Self {
        let alias = format!("log-sc-{service_id}");
        let channel = ChannelText::new(&join.channel).with("alias", alias).to_string();
        Self::Joining(Box::new(Joining {
            join,
            channel,
            registration: None,
            subscription: None,
            failure: String::new(),
        }))
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// Continues joining. Returns the amount of work.
    pub(crate) fn advance<S: ClusteredService>(
        &mut self,
        core: &mut Core<S>,
        network: &mut dyn Network,
        aeron: &Aeron,
    ) -> Result<usize, TerminationCause> {
        let Self::Joining(joining) = self else { return Ok(0) };
        if joining.subscription.is_none() {
            let Joining { join, channel, registration, .. } = &mut **joining;
            let request =
                || aeron.async_add_subscription(UncheckedChannel(channel), join.stream_id);
            match poll_or_request(registration, request) {
                Ok(subscription) => joining.subscription = subscription,
                // Temporary, or the consensus module will send another request.
                Err(error) => joining.record(network, &error),
            }
        }
        let session_id = joining.join.session_id;
        let Some(subscription) = &mut joining.subscription else { return Ok(0) };
        let Some(image) = subscription.image_by_session_id(session_id) else { return Ok(0) };
        let (correlation_id, position) = (image.correlation_id(), image.join_position());
        core.on_joined(network, &joining.join, position)?;
        if let Some(subscription) = joining.subscription.take() {
            *self = Self::Open { subscription, correlation_id, position };
        }
        Ok(1)
    }

    /// Passes committed messages on. Returns the number of fragments. Closes a log that was read to
    /// its end.
    #[inline]
    pub(crate) fn poll<S: ClusteredService>(
        &mut self,
        core: &mut Core<S>,
        network: &mut dyn Network,
        limit: Position,
        fragment_limit: usize,
    ) -> Result<usize, TerminationCause> {
        let Self::Open { subscription, correlation_id, position } = self else { return Ok(0) };
        let mut end = None;
        let image = subscription.images().find(|image| image.correlation_id() == *correlation_id);
        let (fragments, is_done) = match image {
            Some(mut image) => {
                let fragments = image.bounded_controlled_poll(
                    |message, header| match core.on_log_message(network, header.position(), message)
                    {
                        Ok(()) => rusteron_client::Action::Continue,
                        Err(cause) => {
                            end = Some(cause);
                            rusteron_client::Action::Break
                        }
                    },
                    limit,
                    fragment_limit,
                );
                *position = image.position();
                let is_done = fragments == 0
                    && (core.is_log_done(*position)
                        || image.is_end_of_stream()
                        || image.is_closed());
                (fragments, is_done)
            }
            // Gone from the list of images.
            None => (0, true),
        };
        if let Some(cause) = end {
            return Err(cause);
        }
        if is_done {
            let position = *position;
            *self = Self::Closed;
            core.on_log_closed(network, position)?;
        }
        Ok(fragments)
    }
}

impl Joining {
    fn record(&mut self, network: &mut dyn Network, error: &rusteron_client::Error) {
        let text = format!("the log cannot be joined, retrying: {}: {error}", self.channel);
        if self.failure != text {
            network.record_error(&text);
            self.failure = text;
        }
    }
}
