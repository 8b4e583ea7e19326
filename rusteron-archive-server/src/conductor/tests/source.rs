//! The surroundings of a replication: the source, the driver and the recorder.

use std::mem;

use rusteron_core::sbe::MessageHeader;

use super::harness::{FIRST_SESSION, Harness, TERM_LENGTH, image, request};
use crate::conductor::effect::ImageDetails;
use crate::conductor::event::Event;
use crate::protocol::PROTOCOL_VERSION;
use crate::protocol::messages::{
    Challenge, ControlResponse, Message, RecordingDescriptor, ReplicateRequest2,
    StopReplicationRequest,
};

/// The id of the first replication: sessions take their ids from the same numbers.
pub(super) const ID: i64 = FIRST_SESSION + 1;
/// The session with the source, and the session id of its stream.
pub(super) const SOURCE_SESSION: i64 = 77;
pub(super) const STREAM_SESSION: i32 = 5;
pub(super) const SOURCE: &str = "aeron:udp?endpoint=source:1";
pub(super) const LIVE: &str = "aeron:udp?endpoint=224.0.1.1:9";

/// The source, the driver and the recorder.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) stop_position: i64,
    /// Where the source's recording is.
    pub(super) position: i64,
    pub(super) segment_length: i32,
    /// Up to where the copy is recorded.
    pub(super) recorded: i64,
    pub(super) transports: usize,
    /// The source does not answer requests of this template, or answers by this error.
    pub(super) fault: Option<(u16, Option<&'static str>)>,
    pub(super) is_challenging: bool,
    /// The end of the copy so far.
    pub(super) join_position: i64,
    pub(super) orders: Vec<String>,
    pub(super) requests: Vec<String>,
}

impl Peer {
    /// A source with a recording from 64 on that has stopped.
    pub(super) fn new() -> Self {
        Self {
            stop_position: 4096,
            position: -1,
            segment_length: 256 << 10,
            recorded: 4096,
            transports: 2,
            fault: None,
            is_challenging: false,
            join_position: 64,
            orders: Vec::new(),
            requests: Vec::new(),
        }
    }

    pub(super) fn active(position: i64) -> Self {
        Self { stop_position: -1, position, recorded: position, ..Self::new() }
    }

    /// Lets the conductor do what is due, and everything else answer it.
    pub(super) fn advance(&mut self, harness: &mut Harness) {
        harness.tick();
        for order in harness.orders() {
            self.carry_out(&order, harness);
            self.orders.push(order);
        }
        for request in mem::take(&mut harness.out.requests) {
            self.answer(&request, harness);
        }
    }

    pub(super) fn run(&mut self, harness: &mut Harness) {
        for _ in 0..30 {
            self.advance(harness);
        }
    }

    pub(super) fn carry_out(&self, order: &str, harness: &mut Harness) {
        let (verb, rest) = order.split_once(' ').expect("an order");
        let number = |index: usize| -> i64 {
            rest.split(' ').filter_map(|word| word.parse().ok()).nth(index).expect("a number")
        };
        match verb {
            "connect" => {
                let channel = "aeron:udp?endpoint=copy:55".to_owned();
                harness.tell(Event::SourceAdded(number(0).into(), channel));
            }
            "subscribe" => {
                let subscription = harness.register();
                let join_position = self.join_position;
                let image = image(STREAM_SESSION.into());
                harness.add_image(subscription, &ImageDetails { join_position, ..image });
            }
            "record" => {
                harness.begin(number(0));
                harness.record_to(number(0), self.recorded);
            }
            "abort" => harness.stop(number(0), self.recorded),
            "count" => harness.tell(Event::Transports(number(0).into(), self.transports)),
            _ => {}
        }
    }

    pub(super) fn answer(&mut self, request: &[u8], harness: &mut Harness) {
        if let Some(reply) = self.reply(request) {
            harness.tell(Event::SourceMessage(ID.into(), reply));
        }
    }

    /// Returns the answer to a request, if there is one.
    pub(super) fn reply(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let (header, body) = MessageHeader::split(message).expect("a header");
        let template_id = header.template_id;
        let decoded = Message::decode(header, body).expect("a whole message");
        self.requests.push(format!("{decoded:?}"));
        let ok = |correlation_id, relevant_id| Some((correlation_id, relevant_id));
        let (correlation_id, relevant_id) = match decoded {
            Message::AuthConnectRequest(m) if self.is_challenging => {
                self.is_challenging = false;
                let challenge = Challenge {
                    control_session_id: SOURCE_SESSION,
                    correlation_id: m.correlation_id,
                    version: PROTOCOL_VERSION,
                    encoded_challenge: b"who?",
                };
                return Some(challenge.to_vec());
            }
            Message::AuthConnectRequest(m) => ok(m.correlation_id, SOURCE_SESSION),
            Message::ChallengeResponse(m) => ok(m.correlation_id, SOURCE_SESSION),
            Message::ArchiveIdRequest(m) => ok(m.correlation_id, 4),
            Message::ListRecordingRequest(m) => ok(m.correlation_id, -1),
            Message::RecordingPositionRequest(m) => ok(m.correlation_id, self.position),
            Message::ReplayTokenRequest(m) => ok(m.correlation_id, 99),
            Message::ReplayRequest(m) => ok(m.correlation_id, 3 << 32 | i64::from(STREAM_SESSION)),
            _ => None,
        }
        .unwrap_or_default();
        if correlation_id == 0 {
            return None;
        }
        let error = match self.fault.filter(|(template, _)| *template == template_id) {
            Some((_, None)) => return None,
            Some((_, error)) => error,
            None => None,
        };
        Some(match (template_id, error) {
            (10, None) => self.descriptor(correlation_id),
            _ => ControlResponse {
                control_session_id: SOURCE_SESSION,
                correlation_id,
                relevant_id,
                code: error.is_some().into(),
                version: PROTOCOL_VERSION,
                error_message: error.unwrap_or_default().as_bytes(),
            }
            .to_vec(),
        })
    }

    fn descriptor(&self, correlation_id: i64) -> Vec<u8> {
        RecordingDescriptor {
            control_session_id: SOURCE_SESSION,
            correlation_id,
            recording_id: 17,
            start_timestamp: 1234,
            stop_timestamp: -1,
            start_position: 64,
            stop_position: self.stop_position,
            initial_term_id: 7,
            segment_file_length: self.segment_length,
            term_buffer_length: TERM_LENGTH,
            mtu_length: 1408,
            session_id: STREAM_SESSION,
            stream_id: 10,
            stripped_channel: b"aeron:ipc?alias=s",
            original_channel: b"aeron:ipc?alias=o",
            source_identity: b"aeron:ipc",
        }
        .to_vec()
    }

    pub(super) fn has_order(&self, text: &str) -> bool {
        self.orders.iter().any(|order| order.contains(text))
    }
}

/// Which fields of a request differ from the usual ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) recording: i64,
    pub(super) stop_position: i64,
    pub(super) tags: [i64; 2],
    pub(super) file_io_max: i64,
    pub(super) session_id: i64,
    pub(super) live: &'static str,
    pub(super) channel: &'static str,
    pub(super) credentials: &'static str,
}

pub(super) const USUAL: Wanted = Wanted {
    recording: -1,
    stop_position: -1,
    tags: [-1, -1],
    file_io_max: -1,
    session_id: -1,
    live: "",
    channel: "",
    credentials: "",
};

pub(super) fn replicate(harness: &mut Harness, wanted: Wanted) {
    let [channel_tag, subscription_tag] = wanted.tags;
    let fields = [
        6,
        17,
        wanted.recording,
        wanted.stop_position,
        channel_tag,
        subscription_tag,
        10,
        wanted.file_io_max,
        wanted.session_id,
    ];
    let texts = [SOURCE, wanted.live, wanted.channel, wanted.credentials, ""];
    harness.send(request(ReplicateRequest2::TEMPLATE_ID, &fields, &texts));
}

pub(super) fn stop(harness: &mut Harness, id: i64) {
    harness.send(request(StopReplicationRequest::TEMPLATE_ID, &[8, id], &[]));
}

/// Replicates, and returns what the client was sent, without the subscriptions.
pub(super) fn replicated(harness: &mut Harness, peer: &mut Peer, wanted: Wanted) -> Vec<String> {
    replicate(harness, wanted);
    peer.run(harness);
    harness.sent()
}
