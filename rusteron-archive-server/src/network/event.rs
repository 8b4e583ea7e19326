//! What has happened outside of the conductor.

use rusteron_client::Counter;

use crate::conductor::Conductor;
use crate::conductor::effect::{
    Clock, Failure, ImageDetails, ImageId, Outside, RecordingId, RegistrationId, SessionId,
};
use crate::ids::{ReplayId, ReplicationId, Ticket};

/// An event for the conductor: the outcome of an order, or a change of a stream.
#[derive(Debug)]
pub(crate) enum Event {
    RequestImageUnavailable(ImageId),
    ResponsePublication(SessionId, Result<(), String>),
    RecordingSubscription(Ticket, Result<RegistrationId, String>),
    RecordingImage(RegistrationId, ImageDetails),
    RecordingStarted(RecordingId, Result<(), String>),
    RecordingStopped {
        recording: RecordingId,
        position: i64,
        failure: Option<Failure>,
        /// The position counter. It stays until the catalog has been given the position.
        counter: Counter,
    },
    ReplayStarted(ReplayId, Result<i32, Failure>),
    ReplayEnded(ReplayId, Option<Failure>),
    /// A replication's streams to and from its source are there. Answers can come on this channel.
    SourceAdded(ReplicationId, String),
    SourceFailed(ReplicationId, String),
    SourceMessage(ReplicationId, Vec<u8>),
    DestinationFailed(RegistrationId, String),
    Transports(RecordingId, usize),
}

impl Event {
    /// Tells the conductor.
    pub(crate) fn tell(self, conductor: &mut Conductor, now: Clock, out: &mut dyn Outside) {
        match self {
            Self::RequestImageUnavailable(image) => {
                conductor.on_request_image_unavailable(image);
            }
            Self::ResponsePublication(session, outcome) => {
                conductor.on_response_publication(session, outcome, now);
            }
            Self::RecordingSubscription(ticket, outcome) => {
                conductor.on_recording_subscription(ticket, outcome, now, out);
            }
            Self::RecordingImage(subscription, image) => {
                conductor.on_recording_image(subscription, &image, now, out);
            }
            Self::RecordingStarted(recording, outcome) => {
                conductor.on_recording_started(recording, outcome, now, out);
            }
            Self::RecordingStopped { recording, position, failure, counter } => {
                conductor.on_recording_stopped(recording, position, failure, now, out);
                drop(counter);
            }
            Self::ReplayStarted(replay, outcome) => {
                conductor.on_replay_started(replay, outcome, now, out);
            }
            Self::ReplayEnded(replay, failure) => {
                conductor.on_replay_ended(replay, failure, now, out);
            }
            Self::SourceAdded(replication, response_channel) => {
                conductor.on_source_added(replication, response_channel);
            }
            Self::SourceFailed(replication, text) => {
                conductor.on_source_failed(replication, &text);
            }
            Self::SourceMessage(replication, message) => {
                conductor.on_source_message(replication, &message);
            }
            Self::DestinationFailed(subscription, text) => {
                conductor.on_destination_failed(subscription, text, out);
            }
            Self::Transports(recording, count) => conductor.on_transports(recording, count),
        }
    }
}
