//! Events that the outside reports to the conductor.

use crate::conductor::effect::{
    ControlSessionId, Failure, ImageDetails, ImageId, RecordingId, RegistrationId,
};
use crate::ids::{ReplayId, ReplicationId, Ticket};

/// An event from outside: the outcome of an [effect](super::effect::Effect), an image that comes or
/// goes, or a message of a source.
#[derive(Debug)]
pub(crate) enum Event {
    /// The requests of a client can come no more.
    RequestImageUnavailable(ImageId),
    /// A session can be answered, or not.
    ResponsePublication(ControlSessionId, Result<(), String>),
    /// The driver has registered a subscription, or refused it.
    RecordingSubscription(Ticket, Result<RegistrationId, String>),
    /// A subscription has an image: a recording begins, or goes on.
    RecordingImage(RegistrationId, ImageDetails),
    /// The counter of a recording is there, or could not be added.
    RecordingStarted(RecordingId, Result<(), String>),
    /// A recording has ended at a position.
    RecordingStopped(RecordingId, i64, Option<Failure>),
    /// The first segment of a replay is open, and its publication has this session id; or the
    /// replay cannot start.
    ReplayStarted(ReplayId, Result<i32, Failure>),
    /// A replay that had started has ended.
    ReplayEnded(ReplayId, Option<Failure>),
    /// The source of a replication reads requests, and its answers can come on this channel.
    SourceAdded(ReplicationId, String),
    /// A stream to or from the source has failed.
    SourceFailed(ReplicationId, String),
    /// A message of the source of a replication.
    SourceMessage(ReplicationId, Vec<u8>),
    /// A destination of a subscription could not be added or removed.
    DestinationFailed(RegistrationId, String),
    /// So many streams feed the image of a recording.
    Transports(RecordingId, usize),
}
