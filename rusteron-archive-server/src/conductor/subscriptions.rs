//! The subscriptions whose images are recorded.

use crate::channel::{Channel, ChannelError};
use crate::conductor::Conductor;
use crate::conductor::effect::{Clock, Effect, Outside, RecordingId, RegistrationId};
use crate::conductor::sessions::Requester;
use crate::control::request::Source;
use crate::control::responses::{Answer, Failure};
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
    pub(crate) fn next_ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket::new(self.next_ticket)
    }

    pub(crate) fn push(&mut self, subscription: RecordingSubscription) {
        self.all.push(subscription);
    }

    /// Those that have not been stopped. They are limited in number.
    pub(crate) fn registered_count(&self) -> usize {
        self.all.iter().filter(|subscription| subscription.is_registered).count()
    }

    /// Those that the driver has registered, and that have not been stopped.
    pub(crate) fn registered(
        &self,
    ) -> impl Iterator<Item = (RegistrationId, &RecordingSubscription)> {
        let registered = self.all.iter().filter(|subscription| subscription.is_registered);
        registered.filter_map(|subscription| Some((subscription.id?, subscription)))
    }

    pub(crate) fn has_key(&self, key: &str) -> bool {
        self.all.iter().any(|subscription| subscription.is_registered && subscription.key == key)
    }

    pub(crate) fn by_ticket(&mut self, ticket: Ticket) -> Option<&mut RecordingSubscription> {
        self.all.iter_mut().find(|subscription| subscription.ticket == ticket)
    }

    pub(crate) fn get_mut(&mut self, id: RegistrationId) -> Option<&mut RecordingSubscription> {
        self.all.iter_mut().find(|subscription| subscription.id == Some(id))
    }

    pub(crate) fn remove_ticket(&mut self, ticket: Ticket) -> Option<RecordingSubscription> {
        let index = self.all.iter().position(|subscription| subscription.ticket == ticket)?;
        Some(self.all.remove(index))
    }

    /// Closes a subscription that has no references any more.
    pub(crate) fn close_if_unused(&mut self, id: RegistrationId, out: &mut dyn Outside) {
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

/// Records the mistake in a channel, as Java's archive does.
pub(super) fn refused_channel(error: &ChannelError, out: &mut dyn Outside) -> Failure {
    let text = error.to_string();
    out.record_mistake(&text);
    Failure::mistake(text)
}

impl Conductor {
    /// Adds a subscription whose images become recordings. The answer comes when the driver has registered it.
    pub(super) fn start_recording(
        &mut self,
        requester: Requester,
        source: &Source<'_>,
        out: &mut dyn Outside,
    ) -> Result<(), Failure> {
        self.check_recording_limit(self.subscriptions.registered_count())?;
        self.check_storage_space()?;
        self.add_subscription(requester, None, source, out).map(drop)
    }

    /// Adds a subscription whose image continues a recording. The answer comes when the driver has registered it. Returns
    /// the ticket until then.
    pub(super) fn extend_recording(
        &mut self,
        requester: Requester,
        extension: Extension,
        source: &Source<'_>,
        out: &mut dyn Outside,
    ) -> Result<Ticket, Failure> {
        let recording = extension.recording;
        self.check_recording_limit(self.subscriptions.registered_count())?;
        let descriptor = self.settled(recording)?;
        if descriptor.stream_id != source.stream_id {
            return Err(Failure::new(
                ErrorCode::UnknownRecording,
                format!(
                    "cannot extend recording {recording} with streamId={} for existing streamId={}",
                    source.stream_id, descriptor.stream_id
                ),
            ));
        }
        if self.recordings.contains_key(&recording) {
            return Err(Failure::new(
                ErrorCode::ActiveRecording,
                format!("cannot extend active recording {recording}"),
            ));
        }
        self.check_extension(&descriptor, "")?;
        self.check_storage_space()?;
        self.add_subscription(requester, Some(extension), source, out)
    }

    pub(super) fn check_recording_limit(&self, subscriptions: usize) -> Result<(), Failure> {
        let max = self.settings.max_concurrent_recordings;
        if subscriptions >= max || self.recordings.len() >= max {
            let text = format!("max concurrent recordings reached at {max}");
            return Err(Failure::new(ErrorCode::MaxRecordings, text));
        }
        Ok(())
    }

    pub(super) fn check_storage_space(&self) -> Result<(), Failure> {
        let threshold = self.settings.low_storage_space_threshold;
        let space = self.storage.usable_space().map_err(|error| {
            Failure::generic(format!("cannot find out the space left for recordings: {error}"))
        })?;
        if space <= threshold {
            // Java's words, then what helps.
            let text = format!(
                "low storage threshold={threshold} <= usableSpace={space}: free space, or lower the threshold \
                 (AERON_ARCHIVE_LOW_STORAGE_SPACE_THRESHOLD)"
            );
            return Err(Failure::new(ErrorCode::StorageSpace, text));
        }
        Ok(())
    }

    fn add_subscription(
        &mut self,
        requester: Requester,
        extension: Option<Extension>,
        source: &Source<'_>,
        out: &mut dyn Outside,
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
        let uri = Channel::parse(&source.channel).map_err(|error| refused_channel(&error, out))?;
        let key = uri.recording_key(stream_id);
        if self.subscriptions.has_key(&key) {
            return Err(Failure::new(
                ErrorCode::ActiveSubscription,
                format!("recording exists for streamId={stream_id} channel={}", source.channel),
            ));
        }
        let stripped_channel = uri.stripped().map_err(|error| refused_channel(&error, out))?;
        let channel = uri.recorded(is_local).map_err(|error| refused_channel(&error, out))?;
        let purpose = extension.as_ref().map_or(Purpose::Start, |it| Purpose::Extend(it.recording));
        let replication = extension.as_ref().and_then(|it| it.replication);
        let destination = extension.and_then(|it| it.destination);
        let ticket = self.subscriptions.next_ticket();
        self.subscriptions.push(RecordingSubscription {
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
        out.order(Effect::AddRecordingSubscription { ticket, channel, stream_id, destination });
        Ok(ticket)
    }

    /// The driver has registered a subscription, or refused it.
    pub(crate) fn on_recording_subscription(
        &mut self,
        ticket: Ticket,
        outcome: Result<RegistrationId, String>,
        now: Clock,
        out: &mut dyn Outside,
    ) {
        let (requester, replication, answer) = match outcome {
            Ok(id) => {
                let Some(subscription) = self.subscriptions.by_ticket(ticket) else { return };
                subscription.id = Some(id);
                if subscription.is_closing {
                    // Its replication has ended meanwhile.
                    return self.subscriptions.close_if_unused(id, out);
                }
                (subscription.requester, subscription.replication, Answer::Ok(id.get()))
            }
            Err(text) => {
                let Some(subscription) = self.subscriptions.remove_ticket(ticket) else { return };
                if subscription.is_closing {
                    return;
                }
                out.record_mistake(&text);
                let answer = Answer::Error(Failure::generic(text));
                (subscription.requester, subscription.replication, answer)
            }
        };
        self.sessions.respond(requester, &answer, now, out);
        if replication.is_none() {
            self.execute_deferred(requester.session, now, out);
        }
    }

    /// Ends a subscription and all recordings of its images, or lets it end when the driver has registered it. Returns its
    /// id, if it has one.
    pub(super) fn close_by_ticket(
        &mut self,
        ticket: Ticket,
        out: &mut dyn Outside,
    ) -> Option<RegistrationId> {
        let subscription = self.subscriptions.by_ticket(ticket)?;
        subscription.is_registered = false;
        subscription.is_closing = true;
        let id = subscription.id?;
        self.close_subscription(id, out);
        Some(id)
    }

    /// Ends a subscription and all recordings of its images.
    pub(super) fn close_subscription(&mut self, id: RegistrationId, out: &mut dyn Outside) {
        if let Some(subscription) = self.subscriptions.get_mut(id) {
            subscription.is_registered = false;
            subscription.is_closing = true;
        }
        for (recording, active) in &mut self.recordings {
            if active.subscription == id {
                active.abort(*recording, out);
            }
        }
        self.subscriptions.close_if_unused(id, out);
    }

    pub(super) fn stop_recording(
        &mut self,
        stream_id: i32,
        channel: &str,
        out: &mut dyn Outside,
    ) -> Result<Answer, Failure> {
        let uri = Channel::parse(channel).map_err(|error| refused_channel(&error, out))?;
        let key = uri.recording_key(stream_id);
        let found = self.subscriptions.registered().find(|(_, known)| known.key == key);
        let Some((id, _)) = found else {
            return Err(Failure::new(
                ErrorCode::UnknownSubscription,
                format!("no recording found for streamId={stream_id} channel={channel}"),
            ));
        };
        self.close_subscription(id, out);
        Ok(Answer::Ok(0))
    }

    pub(super) fn stop_recording_subscription(
        &mut self,
        id: RegistrationId,
        out: &mut dyn Outside,
    ) -> Result<Answer, Failure> {
        if !self.subscriptions.registered().any(|(known, _)| known == id) {
            return Err(Failure::new(
                ErrorCode::UnknownSubscription,
                format!("no recording subscription found for subscriptionId={id}"),
            ));
        }
        self.close_subscription(id, out);
        Ok(Answer::Ok(0))
    }

    /// Ends one recording. Others of the same subscription go on, and close it by their end.
    pub(super) fn stop_recording_by_identity(
        &mut self,
        recording: RecordingId,
        out: &mut dyn Outside,
    ) -> Result<Answer, Failure> {
        self.check_recording(recording)?;
        let Some(active) = self.recordings.get_mut(&recording) else { return Ok(Answer::Ok(0)) };
        let id = active.subscription;
        active.abort(recording, out);
        let Some(subscription) = self.subscriptions.get_mut(id) else { return Ok(Answer::Ok(0)) };
        let was_registered = std::mem::replace(&mut subscription.is_registered, false);
        self.subscriptions.close_if_unused(id, out);
        Ok(Answer::Ok(i64::from(was_registered)))
    }
}
