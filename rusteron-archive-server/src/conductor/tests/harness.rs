//! A conductor with a fake outside, a storage in memory and a clock of the test's.

use crate::ids::ArchiveId;
use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::Arc;

use rusteron_core::sbe::MessageHeader;

use crate::catalog::{Catalog, CatalogError, CatalogSettings};
use crate::channel::ResponseDefaults;
use crate::conductor::effect::{
    Blame, Clock, ControlSessionId, CounterView, Effect, ImageDetails, Outside, Progress,
    RequestStream, Responder, Sending, SourceLink, StartRecording,
};
use crate::conductor::event::Event;
use crate::conductor::{Conductor, ConductorSettings, ReplicationSettings};
use crate::control::authentication::{AcceptAll, AllowAll, Authenticator, Authorisation};
use crate::control::session::SessionSettings;
use crate::ids::{RegistrationId, ReplicationId};
use crate::protocol::PROTOCOL_VERSION;
use crate::protocol::messages::{
    AuthConnectRequest, KeepAliveRequest, Message, StartRecordingRequest2, encode_values,
};
use crate::segment::Geometry;
use crate::storage::SyncLevel;
use crate::storage::faulty::FaultyStorage;

/// The image on which the requests of tests come.
pub(super) const IMAGE: i64 = 100;
/// The correlation id of connect requests.
pub(super) const CONNECT: i64 = 1;
pub(super) const FIRST_SESSION: i64 = 500;
pub(super) const TERM_LENGTH: i32 = 64 * 1024;
pub(super) const CONNECT_TIMEOUT_MS: i64 = 5000;
pub(super) const MAX_UNAUTHENTICATED: usize = 8;
pub(super) const MAX_CONCURRENT_REPLICATIONS: usize = 4;
pub(super) const MESSAGE_TIMEOUT_MS: i64 = 10_000;

/// What happens outside of the conductor, as the test wants it.
#[derive(Debug)]
pub(super) struct FakeOutside {
    /// The answers to attempts to send.
    pub(super) sending: Sending,
    /// The same for other sessions than the first.
    pub(super) others_sending: Option<Sending>,
    /// Messages that are back-pressured before one is sent.
    pub(super) refusals: usize,
    /// Messages that are sent before one is back-pressured.
    pub(super) sent_before_refusal: Option<usize>,
    pub(super) is_connected: bool,
    pub(super) counters: BTreeMap<i32, CounterView>,
    pub(super) progress: BTreeMap<i64, Arc<Progress>>,
    /// Orders to record.
    pub(super) started: Vec<StartRecording>,
    /// The answers to attempts to send a request to a source.
    pub(super) source_sending: Sending,
    pub(super) is_source_connected: bool,
    /// Where subscriptions receive.
    pub(super) local_address: Option<String>,
    /// Requests to sources.
    pub(super) requests: Vec<Vec<u8>>,
    lines: Vec<String>,
    orders: Vec<String>,
    errors: Vec<String>,
    mistakes: Vec<String>,
    events: Vec<String>,
}

impl Responder for FakeOutside {
    fn try_send(&mut self, session: ControlSessionId, message: &[u8]) -> Sending {
        if let Some(sending) = self.others_sending.filter(|_| session != FIRST_SESSION) {
            return sending;
        }
        if self.refusals > 0 {
            self.refusals -= 1;
            return Sending::BackPressured;
        }
        self.sent_before_refusal = match self.sent_before_refusal {
            Some(0) => {
                self.sent_before_refusal = None;
                return Sending::BackPressured;
            }
            Some(count) => Some(count - 1),
            None => None,
        };
        if self.sending == Sending::Sent {
            self.lines.push(line(session.get(), message));
        }
        self.sending
    }

    fn is_connected(&self, _session: ControlSessionId) -> bool {
        self.is_connected
    }
}

impl SourceLink for FakeOutside {
    fn try_request(&mut self, _: ReplicationId, _: RequestStream, message: &[u8]) -> Sending {
        if self.source_sending == Sending::Sent {
            self.requests.push(message.to_vec());
        }
        self.source_sending
    }

    fn is_source_connected(&self, _: ReplicationId) -> bool {
        self.is_source_connected
    }

    fn local_address(&self, _: RegistrationId) -> Option<String> {
        self.local_address.clone()
    }
}

impl Outside for FakeOutside {
    fn try_publish_event(&mut self, message: &[u8]) -> Sending {
        if self.sending == Sending::Sent {
            self.events.push(line(0, message));
        }
        self.sending
    }

    fn counter(&self, id: i32) -> Result<CounterView, String> {
        self.counters.get(&id).copied().ok_or_else(|| format!("no counter {id}"))
    }

    fn report(&mut self, blame: Blame, text: &str) {
        match blame {
            Blame::Server | Blame::Stranger => self.errors.push(text.to_owned()),
            Blame::Client | Blame::LateRequest => self.mistakes.push(text.to_owned()),
        }
    }

    fn order(&mut self, effect: Effect) {
        let order = match effect {
            Effect::AddResponsePublication {
                session,
                channel,
                stream_id,
                request_image,
                client_info,
            } => format!(
                "respond {session} image={request_image} stream={stream_id} {channel} {client_info}"
            ),
            Effect::CloseSession { session, request_image, reject } => {
                let reject = reject.map_or_else(String::new, |reason| format!(": {reason}"));
                format!("close session {session} image={request_image}{reject}")
            }
            Effect::AddRecordingSubscription { ticket, channel, stream_id, destination } => {
                let destination = destination.map_or_else(String::new, |it| format!(" + {it}"));
                format!("subscribe {ticket} stream={stream_id} {channel}{destination}")
            }
            Effect::CloseRecordingSubscription { subscription } => {
                format!("close subscription {subscription}")
            }
            Effect::StartRecording(start) => {
                let Geometry { recording_id, start_position, .. } = start.geometry;
                self.progress.insert(recording_id.get(), Arc::clone(&start.progress));
                let order = format!(
                    "record {recording_id} subscription={} image={} {start_position}+{}",
                    start.subscription,
                    start.image,
                    start.join_position - start_position
                );
                self.started.push(start);
                order
            }
            Effect::AbortRecording { recording } => format!("abort recording {recording}"),
            Effect::StartReplay(start) => format!(
                "replay {} of {} {}..{} known={} limit={:?} io={} stream={} {}",
                start.replay,
                start.geometry.recording_id,
                start.position,
                start.end_position,
                start.stop_position,
                start.limit,
                start.file_io_max,
                start.stream_id,
                start.channel
            ),
            Effect::AbortReplay { replay } => format!("abort replay {replay}"),
            Effect::ConnectSource { replication, channels } => format!(
                "connect source {replication} stream={} {} stream={} {}",
                channels.request_stream_id,
                channels.requests,
                channels.response_stream_id,
                channels.responses
            ),
            Effect::AddReplayRequests { replication, channel, stream_id } => {
                format!("replay requests {replication} stream={stream_id} {channel}")
            }
            Effect::CloseSource { replication } => format!("close source {replication}"),
            Effect::AddDestination { subscription, channel } => {
                format!("add destination {subscription} {channel}")
            }
            Effect::RemoveDestination { subscription, channel } => {
                format!("remove destination {subscription} {channel}")
            }
            Effect::CountTransports { recording } => format!("count transports {recording}"),
        };
        self.orders.push(order);
    }
}

/// Describes a message in a line. Messages to another session than the first have its id in front.
fn line(session: i64, message: &[u8]) -> String {
    let (header, body) = MessageHeader::split(message).expect("a header");
    let decoded = Message::decode(header, body).expect("a whole message");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let signals =
        ["START", "STOP", "EXTEND", "REPLICATE", "MERGE", "SYNC", "DELETE", "REPLICATE_END"];
    let content = match decoded {
        Message::ControlResponse(m) => {
            assert_eq!((m.version, m.control_session_id), (PROTOCOL_VERSION, session));
            let (correlation, id) = (m.correlation_id, m.relevant_id);
            match m.code {
                0 => format!("{correlation}: ok {id}"),
                1 => format!("{correlation}: error {id}: {}", text(m.error_message)),
                2 => format!("{correlation}: unknown recording {id}"),
                _ => format!("{correlation}: unknown subscription {id}"),
            }
        }
        Message::Challenge(m) => {
            format!("{}: challenge {}", m.correlation_id, text(m.encoded_challenge))
        }
        Message::Ping(m) => {
            assert_eq!(m.control_session_id, session);
            "ping".to_owned()
        }
        Message::RecordingSignalEvent(m) => format!(
            "{}: {} recording={} subscription={} position={}",
            m.correlation_id,
            signals[m.signal as usize],
            m.recording_id,
            m.subscription_id,
            m.position
        ),
        Message::RecordingDescriptor(m) => format!(
            "{}: descriptor {} {}",
            m.correlation_id,
            m.recording_id,
            text(m.original_channel)
        ),
        Message::RecordingSubscriptionDescriptor(m) => format!(
            "{}: subscription {} stream={} {}",
            m.correlation_id,
            m.subscription_id,
            m.stream_id,
            text(m.stripped_channel)
        ),
        Message::RecordingStarted(m) => {
            format!("started {} at {} {}", m.recording_id, m.start_position, text(m.channel))
        }
        Message::RecordingProgress(m) => format!("progress {} to {}", m.recording_id, m.position),
        Message::RecordingStopped(m) => {
            format!("stopped {} at {}", m.recording_id, m.stop_position)
        }
        other => panic!("not of a server: {other:?}"),
    };
    match session {
        0 | FIRST_SESSION => content,
        _ => format!("[{session}] {content}"),
    }
}

/// A conductor and its surroundings.
#[derive(Debug)]
pub(super) struct Harness {
    pub(super) conductor: Conductor,
    pub(super) out: FakeOutside,
    pub(super) storage: FaultyStorage,
    pub(super) now: Clock,
    next_subscription: i64,
    last_ticket: i64,
}

pub(super) fn settings() -> ConductorSettings {
    ConductorSettings {
        archive_id: ArchiveId::new(42),
        session: SessionSettings {
            connect_timeout_ns: CONNECT_TIMEOUT_MS * 1_000_000,
            liveness_check_interval_ns: 1_000_000_000,
            max_unauthenticated: MAX_UNAUTHENTICATED,
        },
        first_session_id: FIRST_SESSION.into(),
        response: ResponseDefaults { mtu: 1408, term_length: TERM_LENGTH, is_sparse: true },
        max_concurrent_recordings: 3,
        max_concurrent_replays: 2,
        segment_length: 128 * 1024,
        file_io_max_length: TERM_LENGTH,
        low_storage_space_threshold: 1000,
        replay_linger_ns: 5_000_000_000,
        recording_events_enabled: true,
        replication: ReplicationSettings {
            channel: "aeron:udp?endpoint=copy:0".to_owned(),
            response_channel: "aeron:udp?endpoint=copy:0".to_owned(),
            response_stream_id: 20,
            message_timeout_ns: MESSAGE_TIMEOUT_MS * 1_000_000,
            max_concurrent: MAX_CONCURRENT_REPLICATIONS,
        },
    }
}

impl Harness {
    pub(super) fn new() -> Self {
        Self::with(Box::new(AcceptAll), Box::new(AllowAll), settings())
    }

    pub(super) fn with(
        authenticator: Box<dyn Authenticator>,
        authorisation: Box<dyn Authorisation>,
        settings: ConductorSettings,
    ) -> Self {
        let storage = FaultyStorage::default();
        let catalog = Self::open(&storage, SyncLevel::None).expect("a catalog");
        Self::of(storage, catalog, authenticator, authorisation, settings)
    }

    /// A harness on a directory, whose first session is active.
    pub(super) fn connected_on(storage: FaultyStorage, level: SyncLevel) -> Self {
        let catalog = Self::open(&storage, level).expect("a catalog");
        let mut harness =
            Self::of(storage, catalog, Box::new(AcceptAll), Box::new(AllowAll), settings());
        harness.connect();
        harness
    }

    fn of(
        storage: FaultyStorage,
        catalog: Catalog,
        authenticator: Box<dyn Authenticator>,
        authorisation: Box<dyn Authorisation>,
        settings: ConductorSettings,
    ) -> Self {
        let shared: Arc<FaultyStorage> = Arc::new(storage.clone());
        let conductor = Conductor::new(settings, catalog, shared, authenticator, authorisation);
        let out = FakeOutside {
            sending: Sending::Sent,
            others_sending: None,
            refusals: 0,
            sent_before_refusal: None,
            is_connected: true,
            counters: BTreeMap::new(),
            progress: BTreeMap::new(),
            started: Vec::new(),
            source_sending: Sending::Sent,
            is_source_connected: true,
            local_address: Some("127.0.0.1:777".to_owned()),
            requests: Vec::new(),
            lines: Vec::new(),
            orders: Vec::new(),
            errors: Vec::new(),
            mistakes: Vec::new(),
            events: Vec::new(),
        };
        Self {
            conductor,
            out,
            storage,
            now: Clock { ns: 1_000_000_000_000, epoch_ms: 10_000 },
            next_subscription: 1000,
            last_ticket: 0,
        }
    }

    /// Opens the catalog in a storage.
    pub(super) fn open(storage: &FaultyStorage, level: SyncLevel) -> Result<Catalog, CatalogError> {
        let settings = CatalogSettings {
            capacity: 64 * 1024,
            sync_level: level,
            file_sync_level: level,
            checksum: None,
            now_ms: 0,
            positions: HashMap::new(),
            is_original: true,
        };
        Catalog::open(Arc::new(storage.clone()), &settings)
    }

    /// A harness whose first session is active.
    pub(super) fn connected() -> Self {
        let mut harness = Self::new();
        harness.connect();
        harness
    }

    /// Adds a session, and makes it active.
    pub(super) fn connect(&mut self) -> i64 {
        let session = self.request_session();
        self.publish_responses(session, Ok(()));
        self.tick();
        self.tick();
        self.send(KeepAliveRequest { control_session_id: session, correlation_id: 2 }.to_vec());
        self.clear();
        session
    }

    /// Sends a connect request, and returns the id of its session.
    pub(super) fn request_session(&mut self) -> i64 {
        self.send(connect_request(PROTOCOL_VERSION, "aeron:udp?endpoint=client:1"));
        let order = self.out.orders.last().expect("an order");
        let id = order.strip_prefix("respond ").and_then(|rest| rest.split(' ').next());
        id.and_then(|id| id.parse().ok()).expect("the order for a publication")
    }

    pub(super) fn publish_responses(&mut self, session: i64, outcome: Result<(), &str>) {
        let outcome = outcome.map_err(str::to_owned);
        self.tell(Event::ResponsePublication(session.into(), outcome));
    }

    pub(super) fn send(&mut self, message: Vec<u8>) {
        self.send_on(IMAGE, &message);
    }

    pub(super) fn send_on(&mut self, image: i64, message: &[u8]) {
        assert!(self.offer_on(image, "client:1", message), "no place for a session");
    }

    /// Returns whether the message was accepted.
    pub(super) fn offer_on(&mut self, image: i64, source: &str, message: &[u8]) -> bool {
        self.conductor.on_request(image.into(), source, message, self.now, &mut self.out)
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.conductor.on_event(event, self.now, &mut self.out);
    }

    pub(super) fn tick(&mut self) -> usize {
        self.conductor.on_tick(self.now, &mut self.out)
    }

    /// Lets time pass, then does what is due.
    pub(super) fn tick_after(&mut self, ms: i64) -> usize {
        self.now.ns += ms * 1_000_000;
        self.now.epoch_ms += ms;
        self.tick()
    }

    /// Messages to clients since the last call.
    pub(super) fn sent(&mut self) -> Vec<String> {
        mem::take(&mut self.out.lines)
    }

    /// Orders since the last call.
    pub(super) fn orders(&mut self) -> Vec<String> {
        mem::take(&mut self.out.orders)
    }

    /// Lines of the error log since the last call.
    pub(super) fn errors(&mut self) -> Vec<String> {
        mem::take(&mut self.out.errors)
    }

    /// Mistakes of clients since the last call, which are recorded and not printed.
    pub(super) fn mistakes(&mut self) -> Vec<String> {
        mem::take(&mut self.out.mistakes)
    }

    /// Recording events since the last call.
    pub(super) fn events(&mut self) -> Vec<String> {
        mem::take(&mut self.out.events)
    }

    pub(super) fn clear(&mut self) {
        drop((self.sent(), self.orders(), self.errors(), self.mistakes(), self.events()));
    }

    /// Requests a recording.
    pub(super) fn start(&mut self, correlation_id: i64, channel: &str, auto_stop: bool) {
        self.send(start_request(correlation_id, channel, auto_stop));
    }

    /// Registers the subscription that was requested last, and returns its id.
    pub(super) fn register(&mut self) -> i64 {
        self.next_subscription += 1;
        self.last_ticket += 1;
        let (ticket, id) = (self.last_ticket, self.next_subscription);
        self.tell(Event::RecordingSubscription(ticket.into(), Ok(id.into())));
        id
    }

    /// Refuses the subscription that was requested last.
    pub(super) fn refuse_subscription(&mut self, reason: &str) {
        self.last_ticket += 1;
        let (ticket, reason) = (self.last_ticket, Err(reason.to_owned()));
        self.tell(Event::RecordingSubscription(ticket.into(), reason));
    }

    pub(super) fn add_image(&mut self, subscription: i64, image: &ImageDetails) {
        self.tell(Event::RecordingImage(subscription.into(), image.clone()));
    }

    /// The counter of a recording is there.
    pub(super) fn begin(&mut self, recording: i64) {
        self.tell(Event::RecordingStarted(recording.into(), Ok(())));
    }

    /// Records up to a position.
    pub(super) fn record_to(&self, recording: i64, position: i64) {
        self.out.progress[&recording].advance(position);
    }

    /// Tells whether all recordings, replays and replications have ended.
    pub(super) fn is_idle(&self) -> bool {
        self.conductor.parts.recordings.is_empty()
            && self.conductor.parts.replays.len() == 0
            && self.conductor.parts.replications.len() == 0
    }

    /// A recording has ended without a failure.
    pub(super) fn stop(&mut self, recording: i64, position: i64) {
        self.tell(Event::RecordingStopped(recording.into(), position, None));
    }

    /// Adds a recording from 0 to a position that has ended, and nothing else.
    pub(super) fn add_stopped(&mut self, channel: &str, position: i64) -> i64 {
        let recording = self.add_active(channel);
        self.stop(recording, position);
        self.clear();
        recording
    }

    /// Adds a recording from 0 on that is in progress.
    pub(super) fn add_active(&mut self, channel: &str) -> i64 {
        self.start(90, channel, true);
        let subscription = self.register();
        let known = self.out.progress.len();
        self.add_image(subscription, &image(5));
        assert_eq!(self.out.progress.len(), known + 1, "{:?}", self.out.errors);
        let recording = *self.out.progress.keys().next_back().expect("a recording");
        self.begin(recording);
        self.clear();
        recording
    }
}

/// An image that is joined at its start.
pub(super) fn image(id: i64) -> ImageDetails {
    ImageDetails {
        image: id.into(),
        session_id: id as i32,
        source_identity: "publisher:1".to_owned(),
        initial_term_id: 7,
        term_length: TERM_LENGTH,
        mtu: 1408,
        join_position: 0,
    }
}

pub(super) fn connect_request(version: i32, response_channel: &str) -> Vec<u8> {
    AuthConnectRequest {
        correlation_id: CONNECT,
        response_stream_id: 20,
        version,
        response_channel: response_channel.as_bytes(),
        encoded_credentials: b"secret",
        client_info: b"test",
    }
    .to_vec()
}

pub(super) fn start_request(correlation_id: i64, channel: &str, auto_stop: bool) -> Vec<u8> {
    let fields = [correlation_id, 10, 0, auto_stop.into()];
    request(StartRecordingRequest2::TEMPLATE_ID, &fields, &[channel])
}

/// Encodes a request of the first session, by the fields and texts that follow the session's id in the table.
pub(super) fn request(template_id: u16, fields: &[i64], texts: &[&str]) -> Vec<u8> {
    let texts: Vec<_> = texts.iter().map(|text| text.as_bytes()).collect();
    let fields = [&[FIRST_SESSION], fields].concat();
    encode_values(template_id, &fields, &texts).expect("a request of the table")
}
