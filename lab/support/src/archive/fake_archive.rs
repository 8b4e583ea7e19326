//! An archive whose answers a test chooses, right or wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, ExclusivePublication, OfferError, Subscription};

/// The number of the archive's schema of messages, and its version in Aeron 1.54.
pub const SCHEMA: u16 = 101;
pub const SCHEMA_VERSION: u16 = 14;
/// Lengths of a block, number of the message, number and version of the schema.
pub const HEADER_LENGTH: usize = 8;

/// Numbers of requests.
pub const LIST_RECORDING: u16 = 10;
pub const LIST_SUBSCRIPTIONS: u16 = 17;
pub const STOP_POSITION: u16 = 15;
pub const AUTH_CONNECT: u16 = 58;
pub const CHALLENGE_RESPONSE: u16 = 60;
pub const MAX_RECORDED_POSITION: u16 = 67;
pub const ARCHIVE_ID: u16 = 68;

/// Numbers of responses.
pub const CONTROL_RESPONSE: u16 = 1;
pub const RECORDING_DESCRIPTOR: u16 = 22;
pub const RECORDING_SUBSCRIPTION_DESCRIPTOR: u16 = 23;
pub const RECORDING_SIGNAL_EVENT: u16 = 24;
pub const CHALLENGE: u16 = 59;

/// Codes of a control response.
pub const OK: i32 = 0;
pub const ERROR: i32 = 1;

/// The protocol's version 1.11, as an archive of Aeron 1.54 says.
pub const PROTOCOL_VERSION: i32 = 1 << 16 | 11 << 8;

pub const SESSION: i64 = 4711;

/// A request of a client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub template: u16,
    pub correlation_id: i64,
    /// Channel and stream of the responses, if the request is to connect.
    pub responses: Option<(String, i32)>,
}

impl Request {
    /// `None` if the message is cut off. A request without a correlation id has -1.
    pub fn decode(message: &[u8]) -> Option<Self> {
        let template = u16::from_le_bytes(*message.get(2..)?.first_chunk()?);
        let body = message.get(HEADER_LENGTH..)?;
        if template != AUTH_CONNECT {
            // The session comes first.
            let id = body.get(8..).and_then(<[u8]>::first_chunk).copied();
            let correlation_id = id.map_or(-1, i64::from_le_bytes);
            return Some(Self { template, correlation_id, responses: None });
        }
        let correlation_id = i64::from_le_bytes(*body.first_chunk()?);
        let stream_id = i32::from_le_bytes(*body.get(8..)?.first_chunk()?);
        let (length, rest) = body.get(16..)?.split_first_chunk()?;
        let channel = rest.get(..u32::from_le_bytes(*length) as usize)?;
        let channel = String::from_utf8_lossy(channel).into_owned();
        Some(Self { template, correlation_id, responses: Some((channel, stream_id)) })
    }
}

/// A message of an archive, right unless its fields are changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub block_length: u16,
    pub template: u16,
    pub schema: u16,
    pub version: u16,
    pub block: Vec<u8>,
    /// Each with the length that the message claims.
    pub texts: Vec<(u32, Vec<u8>)>,
}

impl Message {
    pub fn new(template: u16, block: Vec<u8>, texts: &[&[u8]]) -> Self {
        Self {
            block_length: block.len() as u16,
            template,
            schema: SCHEMA,
            version: SCHEMA_VERSION,
            block,
            texts: texts.iter().map(|text| (text.len() as u32, text.to_vec())).collect(),
        }
    }

    pub fn control_response(correlation_id: i64, relevant_id: i64, code: i32, text: &str) -> Self {
        let mut block = longs(&[SESSION, correlation_id, relevant_id]);
        block.extend(ints(&[code, PROTOCOL_VERSION]));
        Self::new(CONTROL_RESPONSE, block, &[text.as_bytes()])
    }

    pub fn challenge(correlation_id: i64, challenge: &[u8]) -> Self {
        let mut block = longs(&[SESSION, correlation_id]);
        block.extend(ints(&[PROTOCOL_VERSION]));
        Self::new(CHALLENGE, block, &[challenge])
    }

    pub fn recording_descriptor(correlation_id: i64, recording_id: i64) -> Self {
        let mut block = longs(&[SESSION, correlation_id, recording_id, 1, -1, 0, -1]);
        block.extend(ints(&[7, 128 * 1024, 64 * 1024, 1408, 21, 1001]));
        let texts: [&[u8]; 3] = [b"aeron:ipc", b"aeron:ipc?alias=fake", b"aeron:ipc"];
        Self::new(RECORDING_DESCRIPTOR, block, &texts)
    }

    pub fn recording_subscription_descriptor(correlation_id: i64) -> Self {
        let mut block = longs(&[SESSION, correlation_id, 5]);
        block.extend(ints(&[1001]));
        Self::new(RECORDING_SUBSCRIPTION_DESCRIPTOR, block, &[b"aeron:ipc"])
    }

    pub fn recording_signal(recording_id: i64, signal: i32) -> Self {
        let mut block = longs(&[SESSION, 9, recording_id, 5, 96]);
        block.extend(ints(&[signal]));
        Self::new(RECORDING_SIGNAL_EVENT, block, &[])
    }

    pub fn encode(&self) -> Vec<u8> {
        let header = [self.block_length, self.template, self.schema, self.version];
        let mut bytes: Vec<u8> = header.iter().flat_map(|field| field.to_le_bytes()).collect();
        bytes.extend(&self.block);
        for (claimed, text) in &self.texts {
            bytes.extend(claimed.to_le_bytes());
            bytes.extend(text);
        }
        bytes
    }
}

fn longs(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Returns the answer of an archive that accepts every session and has every recording.
pub fn well_formed(request: &Request) -> Vec<Vec<u8>> {
    let id = request.correlation_id;
    let message = match request.template {
        AUTH_CONNECT | CHALLENGE_RESPONSE | ARCHIVE_ID | STOP_POSITION => {
            Message::control_response(id, 42, OK, "")
        }
        LIST_RECORDING => Message::recording_descriptor(id, 7),
        LIST_SUBSCRIPTIONS => {
            let descriptor = Message::recording_subscription_descriptor(id).encode();
            // There are no more.
            let end = Message::control_response(id, 0, 3, "").encode();
            return vec![descriptor, end];
        }
        _ => return Vec::new(),
    };
    vec![message.encode()]
}

/// The stream of requests.
pub const REQUEST_STREAM: i32 = 10;

/// An archive on a thread of its own, which ends when it is dropped. It has one session at a time, with
/// the client that has asked last.
pub struct FakeArchive {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeArchive {
    /// Answers each request at `aeron:ipc`, stream [`REQUEST_STREAM`], with the messages that `answers`
    /// returns, in order.
    pub fn launch(
        aeron: &Aeron,
        answers: impl FnMut(&Request) -> Vec<Vec<u8>> + Send + 'static,
    ) -> Self {
        let requests = aeron.add_subscription("aeron:ipc", REQUEST_STREAM).expect("a subscription");
        let stop = Arc::new(AtomicBool::new(false));
        let (aeron, stopped) = (aeron.clone(), Arc::clone(&stop));
        let thread = std::thread::spawn(move || serve(&aeron, requests, answers, &stopped));
        Self { stop, thread: Some(thread) }
    }
}

fn serve(
    aeron: &Aeron,
    mut requests: Subscription,
    mut answers: impl FnMut(&Request) -> Vec<Vec<u8>>,
    stop: &AtomicBool,
) {
    let mut session: Option<Session> = None;
    while !stop.load(Ordering::Relaxed) {
        let mut received = Vec::new();
        let poll = requests.poll(|message, _header| received.extend(Request::decode(message)), 10);
        poll.expect("an open subscription");
        if received.is_empty() {
            std::thread::sleep(Duration::from_micros(100));
        }
        for request in &received {
            if let Some((channel, stream_id)) = &request.responses {
                session = Some(Session::new(aeron, channel, *stream_id));
            }
            for message in answers(request) {
                if let Some(session) = &mut session {
                    session.offer(&message, stop);
                }
            }
        }
    }
}

/// The publication of a session's responses.
struct Session {
    responses: ExclusivePublication,
    /// When the client has to be there. A client that is gone gets no more messages.
    deadline: Option<Instant>,
}

impl Session {
    const DEADLINE: Duration = Duration::from_secs(5);

    fn new(aeron: &Aeron, channel: &str, stream_id: i32) -> Self {
        let responses = aeron.add_exclusive_publication(channel, stream_id).expect("a publication");
        Self { responses, deadline: Some(Instant::now() + Self::DEADLINE) }
    }

    fn offer(&mut self, message: &[u8], stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            match self.responses.offer(message) {
                Ok(_) => {
                    self.deadline = None;
                    return;
                }
                Err(OfferError::NotConnected) => {
                    if self.deadline.is_none_or(|deadline| deadline < Instant::now()) {
                        return;
                    }
                }
                Err(OfferError::Closed(_)) => return,
                Err(error) if error.is_retryable() => {}
                Err(error) => panic!("a response of {} bytes: {error}", message.len()),
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for FakeArchive {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let outcome = self.thread.take().map(JoinHandle::join);
        if let Some(Err(panic)) = outcome {
            if !std::thread::panicking() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}
