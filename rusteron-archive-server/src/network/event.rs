//! What has happened outside of the conductor.

use rusteron_client::Counter;

use crate::conductor::Conductor;
use crate::conductor::effect::{
    Clock, Failure, ImageDetails, ImageId, Outside, RecordingId, RegistrationId, SessionId,
};

/// An event for the conductor: the outcome of an order, or a change of a stream.
#[derive(Debug)]
pub(crate) enum Event {
    RequestImageUnavailable(ImageId),
    ResponsePublication(SessionId, Result<(), String>),
    RecordingSubscription(i64, Result<RegistrationId, String>),
    RecordingImage(RegistrationId, ImageDetails),
    RecordingStarted(RecordingId, Result<(), String>),
    RecordingStopped {
        recording: RecordingId,
        position: i64,
        failure: Option<Failure>,
        /// The position counter. It stays until the catalog has been given the position.
        counter: Counter,
    },
    ReplayStarted(i64, Result<i32, Failure>),
    ReplayEnded(i64, Option<Failure>),
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
        }
    }
}
