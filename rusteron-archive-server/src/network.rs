//! The Aeron client of a server: carries out the conductor's orders, and tells it what happens.
//!
//! The client has no thread of its own. The conductor's agent does its work, so images come and go
//! on the conductor's thread, where everything of the client is added and closed. Recorder and
//! replayer get subscriptions, publications and counters by value, and give them back.
//!
//! | file | what |
//! |---|---|
//! | `start.rs`, `client.rs` | everything that a server needs before its first turn |
//! | `conductor_agent.rs` | a turn, and the end |
//! | `network.rs` | orders and outcomes |
//! | `requests.rs`, `responses.rs` | the streams of control sessions |
//! | `names.rs` | names of hosts that clients choose who are not authenticated |
//! | `sources.rs`, `receivers.rs` | streams to and from other archives |
//! | `adding.rs` | resources that are being added |
//! | `duty_cycle.rs`, `errors.rs` | what operators see |

mod adding;
mod client;
mod conductor_agent;
mod duty_cycle;
mod errors;
mod names;
mod receivers;
mod requests;
mod responses;
mod sources;
mod start;

use adding::Adding;
pub(crate) use conductor_agent::ConductorAgent;
use conductor_agent::Workers;
pub(crate) use duty_cycle::{AgentOnThread, DutyCycle};
use errors::Errors;
use receivers::Receivers;
use requests::Requests;
use responses::Responses;
use sources::Sources;
pub(crate) use start::{Started, start};

use std::collections::HashMap;
use std::mem;
use std::sync::mpsc::{self, Receiver, Sender};

use rusteron_client::{
    Aeron, Counter, ExclusivePublication, ImageInfo, Result, Subscription, UncheckedChannel,
};

use crate::conductor::effect::{
    Blame, ControlSessionId, CounterView, Effect, Failure, ImageDetails, ImageId, Outside,
    RegistrationId, RequestStream, Responder, Sending, SourceLink, StartRecording, StartReplay,
};
use crate::conductor::event::Event;
use crate::counters::{ArchiveCounters, RecordedStream};
use crate::ids::{ReplicationId, Ticket};
use crate::network::adding::{poll_all, refusal};
use crate::network::names::{Names, has_own_resolver};
use crate::network::requests::RequestImage;
use crate::recorder::RecorderCommand;
use crate::replayer::ReplayerCommand;
use crate::worker_event::{Returned, WorkerEvent};

/// The numbers of what there is (types 102, 111 and 112).
#[derive(Debug)]
pub(crate) struct SessionCounters {
    pub(crate) control_sessions: Counter,
    pub(crate) recordings: Counter,
    pub(crate) replays: Counter,
}

/// The ends of the queues to and from the workers.
#[derive(Debug)]
pub(crate) struct WorkerQueues {
    pub(crate) recorder: Sender<RecorderCommand>,
    pub(crate) replayer: Sender<ReplayerCommand>,
    pub(crate) events: Receiver<WorkerEvent>,
}

/// Carries out the conductor's orders with a client of the media driver, the recorder and the
/// replayer, and collects what happens. Belongs to the conductor's thread, where everything of the
/// client is added and closed.
#[derive(Debug)]
pub(crate) struct Network {
    aeron: Aeron,
    layouts: ArchiveCounters,
    counters: SessionCounters,
    errors: Errors,
    /// The clients' streams of requests.
    request_images: HashMap<ImageId, ImageInfo>,
    request_changes: Receiver<RequestImage>,
    /// Streams of requests to reject.
    rejections: Vec<(ImageId, String)>,
    responses: Responses,
    recording_events: Option<ExclusivePublication>,
    adding_subscriptions: Vec<(Ticket, Adding<Subscription>)>,
    /// The subscriptions that are recorded, by their tickets.
    subscriptions: HashMap<Ticket, RegistrationId>,
    /// Destinations for subscriptions that are being added, by their tickets.
    destinations: HashMap<Ticket, String>,
    receivers: Receivers,
    sources: Sources,
    images: Vec<(Ticket, ImageDetails)>,
    image_sender: Sender<(Ticket, ImageDetails)>,
    image_receiver: Receiver<(Ticket, ImageDetails)>,
    adding_recordings: Vec<(Box<StartRecording>, Adding<Counter>)>,
    adding_replays: Vec<(Box<StartReplay>, Adding<ExclusivePublication>)>,
    queues: WorkerQueues,
}

impl Network {
    pub(crate) fn new(
        aeron: Aeron,
        layouts: ArchiveCounters,
        counters: SessionCounters,
        errors: Errors,
        request_changes: Receiver<RequestImage>,
        recording_events: Option<ExclusivePublication>,
        queues: WorkerQueues,
    ) -> Self {
        let (image_sender, image_receiver) = mpsc::channel();
        Self {
            aeron,
            layouts,
            counters,
            errors,
            request_images: HashMap::new(),
            request_changes,
            rejections: Vec::new(),
            responses: Responses::default(),
            recording_events,
            adding_subscriptions: Vec::new(),
            subscriptions: HashMap::new(),
            destinations: HashMap::new(),
            receivers: Receivers::default(),
            sources: Sources::default(),
            images: Vec::new(),
            image_sender,
            image_receiver,
            adding_recordings: Vec::new(),
            adding_replays: Vec::new(),
            queues,
        }
    }

    pub(crate) fn aeron(&self) -> &Aeron {
        &self.aeron
    }

    pub(crate) fn errors(&self) -> &Errors {
        &self.errors
    }

    /// Returns the source of a client's stream of requests, for the conductor's messages.
    pub(crate) fn source_identity(&self, image: ImageId) -> String {
        self.request_images
            .get(&image)
            .map_or_else(String::new, |image| image.source_identity().to_owned())
    }

    /// Returns whether the media driver's answer is awaited.
    pub(crate) fn is_adding(&self) -> bool {
        self.responses.is_adding()
            || self.sources.is_adding()
            || !self.adding_subscriptions.is_empty()
            || !self.adding_recordings.is_empty()
            || !self.adding_replays.is_empty()
    }

    /// Takes the streams of requests that are to be rejected.
    pub(crate) fn take_rejections(&mut self) -> Vec<(ImageId, String)> {
        mem::take(&mut self.rejections)
    }

    /// Rejects a stream of requests in a later turn.
    pub(crate) fn reject(&mut self, image: ImageId, reason: String) {
        self.rejections.push((image, reason));
    }

    /// Collects what has happened since the last call, in an order that the conductor relies on:
    /// what was added before its images, and what has started before its end.
    pub(crate) fn poll(&mut self, events: &mut Vec<Event>, returned: &mut Vec<Counter>) {
        self.poll_requests(events);
        let Self { aeron, responses, .. } = self;
        responses.poll(aeron, |session, outcome| {
            events.push(Event::ResponsePublication(session, outcome));
        });
        self.poll_subscriptions(events);
        self.poll_images(events);
        let Self { aeron, sources, receivers, .. } = self;
        sources.poll(aeron, events);
        receivers.poll(events);
        self.poll_recordings(events);
        self.poll_replays(events);
        self.poll_workers(events, returned);
    }

    fn poll_requests(&mut self, events: &mut Vec<Event>) {
        for change in self.request_changes.try_iter() {
            match change {
                RequestImage::Available(image) => {
                    self.request_images.insert(ImageId::new(image.correlation_id()), image);
                }
                RequestImage::Unavailable(image) => {
                    self.request_images.remove(&image);
                    events.push(Event::RequestImageUnavailable(image));
                }
            }
        }
    }

    fn poll_subscriptions(&mut self, events: &mut Vec<Event>) {
        for (ticket, outcome) in poll_all(&self.aeron, &mut self.adding_subscriptions) {
            let destination = self.destinations.remove(&ticket);
            let outcome = outcome.map(|subscription| {
                let id = RegistrationId::new(subscription.registration_id());
                self.subscriptions.insert(ticket, id);
                self.receivers.add(&subscription, destination);
                self.record(RecorderCommand::AddSubscription(Box::new(subscription)));
                id
            });
            let outcome = outcome.map_err(|error| refusal(&error));
            events.push(Event::RecordingSubscription(ticket, outcome));
        }
    }

    /// An image can come before the answer to the request for its subscription is polled.
    fn poll_images(&mut self, events: &mut Vec<Event>) {
        self.images.extend(self.image_receiver.try_iter());
        let Self { images, subscriptions, adding_subscriptions, .. } = self;
        for (ticket, image) in mem::take(images) {
            match subscriptions.get(&ticket) {
                Some(&subscription) => events.push(Event::RecordingImage(subscription, image)),
                None if adding_subscriptions.iter().any(|(adding, _)| *adding == ticket) => {
                    images.push((ticket, image));
                }
                // The subscription has been closed.
                None => {}
            }
        }
    }

    fn poll_recordings(&mut self, events: &mut Vec<Event>) {
        for (start, outcome) in poll_all(&self.aeron, &mut self.adding_recordings) {
            let recording = start.geometry.recording_id;
            let outcome = outcome.map(|counter| {
                // A client that is told of the start reads the counter.
                counter.set_release(start.join_position);
                self.counters.recordings.increment_release();
                self.record(RecorderCommand::StartRecording(start, counter));
            });
            let outcome = outcome.map_err(|error| refusal(&error));
            events.push(Event::RecordingStarted(recording, outcome));
        }
    }

    fn poll_replays(&mut self, events: &mut Vec<Event>) {
        for (start, outcome) in poll_all(&self.aeron, &mut self.adding_replays) {
            match outcome {
                Ok(publication) => {
                    self.counters.replays.increment_release();
                    self.replay(ReplayerCommand::StartReplay(start, Box::new(publication)));
                }
                Err(error) => {
                    let reason = refusal(&error);
                    let text = format!("failed to create replay publication: {reason}");
                    let failure = Failure::mistake(text);
                    events.push(Event::ReplayStarted(start.replay, Err(failure)));
                }
            }
        }
    }

    /// Collects what the workers report, and closes what they give back, except for counters: they
    /// stay until the catalog has the positions of their recordings.
    pub(crate) fn poll_workers(&mut self, events: &mut Vec<Event>, returned: &mut Vec<Counter>) {
        for WorkerEvent { event, returned: resource } in self.queues.events.try_iter() {
            match resource {
                Some(Returned::Counter(counter)) => {
                    self.counters.recordings.get_and_add_release(-1);
                    returned.push(counter);
                }
                Some(Returned::Publication(publication)) => {
                    drop(publication);
                    self.counters.replays.get_and_add_release(-1);
                }
                Some(Returned::Subscription(subscription)) => drop(subscription),
                None => {}
            }
            events.extend(event);
        }
    }

    /// Cancels what is being added for recordings and replays.
    pub(crate) fn cancel(&mut self, events: &mut Vec<Event>) {
        let closing = || "the archive is closing".to_owned();
        for (ticket, _) in self.adding_subscriptions.drain(..) {
            events.push(Event::RecordingSubscription(ticket, Err(closing())));
        }
        for (start, _) in self.adding_recordings.drain(..) {
            let recording = start.geometry.recording_id;
            events.push(Event::RecordingStarted(recording, Err(closing())));
        }
        for (start, _) in self.adding_replays.drain(..) {
            let failure = Failure::generic(closing());
            events.push(Event::ReplayStarted(start.replay, Err(failure)));
        }
    }

    fn add_response_publication(
        &mut self,
        session: ControlSessionId,
        channel: String,
        stream_id: i32,
        request_image: ImageId,
        client_info: &str,
    ) {
        let image = self.request_images.get(&request_image);
        let (source_identity, image_session) =
            image.map_or(("", 0), |image| (image.source_identity(), image.session_id()));
        let separator = if client_info.is_empty() { "" } else { " " };
        let client = format!(
            "{client_info}{separator}sourceIdentity={source_identity} sessionId={image_session}"
        );
        let counter = self.layouts.control_session(session, &client);
        self.counters.control_sessions.increment_release();
        let source = source_identity.to_owned();
        let is_of_driver = has_own_resolver(&self.aeron);
        let names = Names { channel, source, is_of_driver, answer: None };
        self.responses.add(session, names, stream_id, Adding::counter(counter));
    }

    fn close_session(&mut self, session: ControlSessionId, image: ImageId, reason: Option<String>) {
        self.responses.close(session);
        self.counters.control_sessions.get_and_add_release(-1);
        if let Some(reason) = reason {
            self.reject(image, reason);
        }
    }

    fn add_recording_subscription(
        &mut self,
        ticket: Ticket,
        channel: String,
        stream_id: i32,
        destination: Option<String>,
    ) {
        self.destinations.extend(destination.map(|destination| (ticket, destination)));
        let sender = self.image_sender.clone();
        let adding = Adding::new(move |aeron: &Aeron| {
            let sender = sender.clone();
            aeron
                .subscription_builder(UncheckedChannel(&channel), stream_id)
                .on_available_image(move |image| {
                    // A server that ends does not need to know.
                    let _ = sender.send((ticket, details(image)));
                })
                .async_add()
        });
        self.adding_subscriptions.push((ticket, adding));
    }

    fn start_recording(&mut self, start: StartRecording) {
        let counter = self.layouts.recording_position(RecordedStream {
            recording_id: start.geometry.recording_id,
            session_id: start.session_id,
            stream_id: start.geometry.stream_id,
            stripped_channel: &start.stripped_channel,
            source_identity: &start.source_identity,
        });
        self.adding_recordings.push((Box::new(start), Adding::counter(counter)));
    }

    fn start_replay(&mut self, start: StartReplay) {
        let channel = self.responses.with_shared_control(&start.channel);
        let publication = Adding::publication(channel, start.stream_id);
        self.adding_replays.push((Box::new(start), publication));
    }

    /// A recorder that has ended ends the server, too.
    fn record(&self, command: RecorderCommand) {
        if self.queues.recorder.send(command).is_err() {
            log::debug!("the recorder has ended");
        }
    }

    fn replay(&self, command: ReplayerCommand) {
        if self.queues.replayer.send(command).is_err() {
            log::debug!("the replayer has ended");
        }
    }
}

impl SourceLink for Network {
    fn try_request(
        &mut self,
        replication: ReplicationId,
        stream: RequestStream,
        message: &[u8],
    ) -> Sending {
        self.sources.try_request(replication, stream, message)
    }

    fn is_source_connected(&self, replication: ReplicationId) -> bool {
        self.sources.is_connected(replication)
    }

    fn local_address(&self, subscription: RegistrationId) -> Option<String> {
        self.receivers.local_address(&self.aeron, subscription)
    }
}

impl Responder for Network {
    fn try_send(&mut self, session: ControlSessionId, message: &[u8]) -> Sending {
        self.responses.try_send(session, message)
    }

    fn is_connected(&self, session: ControlSessionId) -> bool {
        self.responses.is_connected(session)
    }
}

impl Outside for Network {
    fn try_publish_event(&mut self, message: &[u8]) -> Sending {
        match &mut self.recording_events {
            Some(publication) => responses::try_send(publication, message),
            None => Sending::NotConnected,
        }
    }

    fn counter(&self, id: i32) -> Result<CounterView, String> {
        let counters = self.aeron.counters_reader();
        let value = counters.value(id).zip(counters.registration_id(id));
        let (value, registration_id) =
            value.ok_or_else(|| format!("ERROR - Counter id is not allocated: {id}"))?;
        Ok(CounterView { value, registration_id: RegistrationId::new(registration_id) })
    }

    fn report(&mut self, blame: Blame, text: &str) {
        self.errors.report(blame, text);
    }

    fn order(&mut self, effect: Effect) {
        match effect {
            Effect::AddResponsePublication {
                session,
                channel,
                stream_id,
                request_image,
                client_info,
            } => {
                self.add_response_publication(
                    session,
                    channel,
                    stream_id,
                    request_image,
                    &client_info,
                );
            }
            Effect::CloseSession { session, request_image, reject } => {
                self.close_session(session, request_image, reject);
            }
            Effect::AddRecordingSubscription { ticket, channel, stream_id, destination } => {
                self.add_recording_subscription(ticket, channel, stream_id, destination);
            }
            Effect::CloseRecordingSubscription { subscription } => {
                self.receivers.remove(subscription);
                self.subscriptions.retain(|_, id| *id != subscription);
                self.record(RecorderCommand::ReturnSubscription(subscription));
            }
            Effect::StartRecording(start) => self.start_recording(start),
            Effect::AbortRecording { recording } => {
                self.record(RecorderCommand::AbortRecording(recording));
            }
            Effect::StartReplay(start) => self.start_replay(start),
            Effect::AbortReplay { replay } => self.replay(ReplayerCommand::AbortReplay(replay)),
            Effect::ConnectSource { replication, channels } => {
                self.sources.connect(replication, channels);
            }
            Effect::AddReplayRequests { replication, channel, stream_id } => {
                self.sources.add_replay_requests(replication, channel, stream_id);
            }
            Effect::CloseSource { replication } => self.sources.close(replication),
            Effect::AddDestination { subscription, channel } => {
                self.receivers.add_destination(subscription, &channel);
            }
            Effect::RemoveDestination { subscription, channel } => {
                self.receivers.remove_destination(subscription, &channel);
            }
            Effect::CountTransports { recording } => {
                self.record(RecorderCommand::CountTransports(recording));
            }
        }
    }
}

fn details(image: &ImageInfo) -> ImageDetails {
    let constants = image.constants();
    ImageDetails {
        image: ImageId::new(constants.correlation_id),
        session_id: constants.session_id,
        source_identity: constants.source_identity.clone(),
        initial_term_id: constants.initial_term_id,
        // Both fit: terms have at most 1 GiB, and datagrams 64 KiB.
        term_length: constants.term_buffer_length as i32,
        mtu: constants.mtu_length as i32,
        join_position: constants.join_position,
    }
}
