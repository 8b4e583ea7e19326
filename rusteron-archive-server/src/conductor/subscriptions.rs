//! The subscriptions whose images are recorded.

use crate::channel::Channel;
use crate::conductor::effect::{Effect, Outside, RecordingId, RegistrationId};
use crate::conductor::sessions::Requester;
use crate::conductor::turn::Turn;
use crate::control::request::Source;
use crate::control::responses::Failure;
use crate::ids::{ReplicationId, Ticket};
use crate::protocol::error_code::ErrorCode;

/// What becomes of a subscription's images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Each image is a recording of its own.
    Start,
    /// An image continues this recording.
    Extend(RecordingId),
}

/// A subscription whose images are recorded.
///
/// It has a reference from its registration, which stopping drops, and one from each recording of its images. Without
/// references it is closed.
#[derive(Debug)]
pub(crate) struct RecordingSubscription {
    /// Names it until the driver has registered it.
    pub(crate) ticket: Ticket,
    /// What clients call it. `None` while the driver is asked.
    pub(crate) id: Option<RegistrationId>,
    /// Two subscriptions of one key would record the same images.
    pub(crate) key: String,
    pub(crate) stream_id: i32,
    /// As the client wrote it.
    pub(crate) original_channel: String,
    /// Without what does not identify the stream.
    pub(crate) stripped_channel: String,
    /// The stripped channel, perhaps as a spy.
    pub(crate) channel: String,
    pub(crate) purpose: Purpose,
    /// The first image that ends ends the subscription.
    pub(crate) auto_stop: bool,
    pub(crate) requester: Requester,
    /// The replication that extends a recording by it.
    pub(crate) replication: Option<ReplicationId>,
    /// The reference from its registration: it has not been stopped.
    pub(crate) is_registered: bool,
    /// Further images are not recorded.
    pub(crate) is_closing: bool,
    /// The references from recordings.
    pub(crate) recordings: usize,
}

/// A recording to extend.
#[derive(Debug)]
pub(crate) struct Extension {
    pub(crate) recording: RecordingId,
    /// The replication that extends it, if it is not a client.
    pub(crate) replication: Option<ReplicationId>,
    /// To add to the subscription.
    pub(crate) destination: Option<String>,
}

/// All of them, in the order of requests.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    all: Vec<RecordingSubscription>,
    next_ticket: i64,
}

impl Subscriptions {
    /// Orders a subscription of a stream. Returns its ticket, until the driver has registered it.
    pub(super) fn add(
        &mut self,
        turn: &mut Turn<'_>,
        requester: Requester,
        extension: Option<Extension>,
        source: &Source<'_>,
    ) -> Result<Ticket, Failure> {
        let is_local = match source.location {
            0 => true,
            1 => false,
            other => {
                let text = format!("sourceLocation={other}: must be 0 (local) or 1 (remote)");
                return Err(Failure::generic(text));
            }
        };
        let stream_id = source.stream_id;
        let uri = Channel::parse(&source.channel)?;
        let key = uri.recording_key(stream_id);
        if self.has_key(&key) {
            return Err(Failure::new(
                ErrorCode::ActiveSubscription,
                format!("recording exists for streamId={stream_id} channel={}", source.channel),
            ));
        }
        let stripped_channel = uri.stripped()?;
        let channel = uri.recorded(is_local)?;
        let purpose = extension.as_ref().map_or(Purpose::Start, |it| Purpose::Extend(it.recording));
        let replication = extension.as_ref().and_then(|it| it.replication);
        let destination = extension.and_then(|it| it.destination);
        self.next_ticket += 1;
        let ticket = Ticket::new(self.next_ticket);
        self.all.push(RecordingSubscription {
            ticket,
            id: None,
            key,
            stream_id,
            original_channel: source.channel.clone().into_owned(),
            stripped_channel,
            channel: channel.clone(),
            purpose,
            auto_stop: source.auto_stop,
            requester,
            replication,
            is_registered: true,
            is_closing: false,
            recordings: 0,
        });
        turn.out.order(Effect::AddRecordingSubscription {
            ticket,
            channel,
            stream_id,
            destination,
        });
        Ok(ticket)
    }

    /// Those that have not been stopped. They are limited in number.
    pub(super) fn registered_count(&self) -> usize {
        self.all.iter().filter(|subscription| subscription.is_registered).count()
    }

    /// Those that the driver has registered, and that have not been stopped.
    pub(super) fn registered(
        &self,
    ) -> impl Iterator<Item = (RegistrationId, &RecordingSubscription)> {
        let registered = self.all.iter().filter(|subscription| subscription.is_registered);
        registered.filter_map(|subscription| Some((subscription.id?, subscription)))
    }

    fn has_key(&self, key: &str) -> bool {
        self.all.iter().any(|subscription| subscription.is_registered && subscription.key == key)
    }

    pub(super) fn by_ticket(&self, ticket: Ticket) -> Option<&RecordingSubscription> {
        self.all.iter().find(|subscription| subscription.ticket == ticket)
    }

    pub(super) fn by_ticket_mut(&mut self, ticket: Ticket) -> Option<&mut RecordingSubscription> {
        self.all.iter_mut().find(|subscription| subscription.ticket == ticket)
    }

    pub(super) fn get(&self, id: RegistrationId) -> Option<&RecordingSubscription> {
        self.all.iter().find(|subscription| subscription.id == Some(id))
    }

    pub(super) fn get_mut(&mut self, id: RegistrationId) -> Option<&mut RecordingSubscription> {
        self.all.iter_mut().find(|subscription| subscription.id == Some(id))
    }

    pub(super) fn remove_ticket(&mut self, ticket: Ticket) -> Option<RecordingSubscription> {
        let index = self.all.iter().position(|subscription| subscription.ticket == ticket)?;
        Some(self.all.remove(index))
    }

    /// Closes a subscription that has no references any more.
    pub(super) fn close_if_unused(&mut self, id: RegistrationId, out: &mut dyn Outside) {
        let is_unused = |subscription: &RecordingSubscription| {
            subscription.id == Some(id)
                && !subscription.is_registered
                && subscription.recordings == 0
        };
        if let Some(index) = self.all.iter().position(is_unused) {
            self.all.remove(index);
            out.order(Effect::CloseRecordingSubscription { subscription: id });
        }
    }
}
