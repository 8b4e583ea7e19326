//! A hostile source of a replication: its answers, and the frames that it replays, which are recorded as they are.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use rusteron_core::log_buffer::{
    FRAME_LENGTH, HEADER_LENGTH, TERM_ID, TERM_OFFSET, TYPE, TYPE_DATA, TYPE_PAD, align,
};

use crate::catalog::Catalog;
use crate::conductor::effect::{ImageDetails, Sending};
use crate::conductor::event::Event;
use crate::conductor::tests::harness::{
    FIRST_SESSION, Harness, IMAGE, MESSAGE_TIMEOUT_MS, TERM_LENGTH, image,
};
use crate::conductor::tests::hostile::{Input, TEXTS};
use crate::conductor::tests::source::{
    ID, LIVE, Peer, SOURCE_SESSION, STREAM_SESSION, USUAL, Wanted, replicate, stop,
};
use crate::protocol::messages::{ArchiveIdRequest, LAYOUTS, decode_values, encode_values};
use crate::recorder::{BlockSource, BlockWriter, Recording};
use crate::segment::checksum::Checksum;
use crate::segment::frame::{self, FrameCheck};
use crate::storage::SyncLevel;

/// Turns in which the source can be hostile, and in which the replication then has to end.
const TURNS: usize = 60;
const RESPONSE: &str = "aeron:udp?control-mode=response|control=copy:9";
/// The messages that a source sends, and one that it never sends.
const TEMPLATES: [u16; 8] = [1, 22, 24, 59, 106, 23, 101, 58];

/// Frames of an image that are polled at once.
#[derive(Debug)]
struct Block {
    bytes: Vec<u8>,
    /// The end of the frames before the first wrong one.
    valid_length: usize,
    is_polled: bool,
    has_ended: bool,
}

impl BlockSource for Block {
    fn poll_block(&mut self, limit: usize, handler: &mut dyn FnMut(&[u8])) -> usize {
        assert!(self.bytes.len() <= limit);
        self.is_polled = true;
        if !self.bytes.is_empty() {
            handler(&self.bytes);
        }
        self.bytes.len()
    }

    fn is_end_of_stream(&self) -> bool {
        self.has_ended
    }

    fn is_closed(&self) -> bool {
        self.has_ended
    }
}

/// The input is what the source and its streams do. Zeros do what is right.
struct Hostile<'a> {
    input: Input<'a>,
    harness: Harness,
    peer: Peer,
    writer: BlockWriter,
    recordings: BTreeMap<i64, Recording>,
    /// A subscription that the driver has not answered for yet, or has refused.
    unanswered: usize,
    refused: usize,
    has_ended: bool,
    sent: Vec<String>,
}

/// Lets a source do what the bytes say. Returns what the client was sent. The client must be served all the time, be told
/// of the end once, and nothing must be left.
pub(crate) fn run(bytes: &[u8]) -> Vec<String> {
    let mut input = Input(bytes);
    let mut harness = Harness::connected();
    let mut peer = Peer::new();
    let kind = input.byte() % 7;
    let start = i64::from(kind == 5) * 1024;
    let mut recording = -1;
    if matches!(kind, 4 | 5) {
        // Existing: with frames, or empty.
        recording = harness.add_stopped("aeron:ipc", 1024);
        if kind == 5 {
            harness
                .conductor
                .shared
                .catalog
                .set_start_position(recording.into(), start)
                .expect("an edit");
        } else {
            peer.join_position = 1024;
        }
    }
    peer.stop_position = input.choose(&[4096, -1, 64, 1024, i64::from(TERM_LENGTH), 1 << 40, -7]);
    peer.position = input.choose(&[4096, 64, 1 << 20, i64::MAX, i64::MIN]);
    peer.is_challenging = input.byte() % 4 == 1;
    peer.transports = 2;
    let wanted = Wanted {
        recording,
        live: if kind == 1 { LIVE } else { "" },
        channel: if kind == 2 { RESPONSE } else { "" },
        tags: if kind == 3 { [1, 2] } else { USUAL.tags },
        credentials: if kind == 6 { "admin:admin" } else { "" },
        stop_position: input.choose(&[-1, -1, 2048, 0, i64::MAX, i64::MIN]),
        session_id: input.choose(&[-1, -1, -9]),
        file_io_max: input.choose(&[-1, -1, 1408, 1 << 20]),
    };
    let checksum = input.choose(&[None, Some(Checksum::Crc32), Some(Checksum::Crc32c)]);
    let storage = Arc::new(harness.storage.clone());
    replicate(&mut harness, wanted);
    let mut hostile = Hostile {
        input,
        writer: BlockWriter::new(storage, SyncLevel::None, checksum),
        harness,
        peer,
        recordings: BTreeMap::new(),
        unanswered: 0,
        refused: 0,
        has_ended: false,
        sent: Vec::new(),
    };
    for _ in 0..TURNS {
        hostile.turn();
    }
    hostile.finish()
}

impl Hostile<'_> {
    fn turn(&mut self) {
        self.event();
        self.harness.tick();
        for order in self.harness.orders() {
            self.carry_out(&order);
            self.peer.orders.push(order);
        }
        for request in mem::take(&mut self.harness.out.requests) {
            let reply = self.peer.reply(&request);
            for message in reply.map_or_else(Vec::new, |reply| self.distort(reply)) {
                self.harness.tell(Event::SourceMessage(ID.into(), message));
            }
        }
        self.record();
        let (control_session_id, correlation_id) = (FIRST_SESSION, 1000);
        let request = ArchiveIdRequest { control_session_id, correlation_id };
        self.harness.send_on(IMAGE, &request.to_vec());
        let sent = self.harness.sent();
        assert!(sent.contains(&"1000: ok 42".to_owned()), "{:?}", self.harness.errors());
        self.sent.extend(sent);
    }

    /// Lets something happen that the source was not asked for.
    fn event(&mut self) {
        let out = &mut self.harness.out;
        match self.input.byte() {
            1 => out.is_source_connected = self.input.byte() % 2 == 0,
            2 => {
                let addresses = [None, Some("nonsense"), Some("127.0.0.1:777"), Some("[::1]:x")];
                out.local_address = self.input.choose(&addresses).map(str::to_owned);
            }
            3 => {
                let outcomes = [Sending::Sent, Sending::BackPressured, Sending::NotConnected];
                out.source_sending = self.input.choose(&outcomes);
            }
            4 => self.harness.tell(Event::SourceFailed(ID.into(), "no stream".to_owned())),
            5 => self
                .harness
                .tell(Event::SourceAdded(ID.into(), "aeron:udp?endpoint=copy:1".to_owned())),
            6 => self
                .harness
                .tell(Event::DestinationFailed(1001.into(), "no destination".to_owned())),
            7 => self.harness.tell(Event::Transports(0.into(), usize::from(self.input.byte() % 3))),
            8 => stop(&mut self.harness, ID),
            9 => drop(self.harness.tick_after(MESSAGE_TIMEOUT_MS)),
            10 => {
                let message = self.message();
                self.harness.tell(Event::SourceMessage(ID.into(), message));
            }
            11 => self.has_ended = true,
            12 => self.peer.position = self.input.number(),
            13 => self.peer.transports = usize::from(self.input.byte() % 3),
            14 => self.answer_for_subscriptions(),
            15 => self.peer.recorded = self.input.number(),
            _ => {}
        }
    }

    fn carry_out(&mut self, order: &str) {
        let verb = order.split_once(' ').expect("an order").0;
        let choice = self.input.byte();
        match (verb, choice) {
            ("connect", 1) => {
                self.harness.tell(Event::SourceFailed(ID.into(), "no socket".to_owned()))
            }
            ("connect", 2) => {}
            ("subscribe", 1) => {
                self.harness.refuse_subscription("no socket");
                self.refused += 1;
            }
            ("subscribe", 2) => self.unanswered += 1,
            ("subscribe", _) => {
                let subscription = self.harness.register();
                for _ in 0..=choice % 2 {
                    let image = self.image();
                    self.harness.add_image(subscription, &image);
                }
            }
            ("record", _) => {
                let start = self.harness.out.started.pop().expect("an order");
                let recording = start.geometry.recording_id;
                if choice == 1 {
                    let refused = Err("no counter".to_owned());
                    return self.harness.tell(Event::RecordingStarted(recording, refused));
                }
                self.recordings
                    .insert(recording.get(), Recording::new(&start, TERM_LENGTH as usize));
                self.harness.begin(recording.get());
            }
            ("abort", _) => self.recordings.values_mut().for_each(Recording::abort),
            _ => self.peer.carry_out(order, &mut self.harness),
        }
    }

    fn answer_for_subscriptions(&mut self) {
        for _ in 0..mem::take(&mut self.unanswered) {
            self.harness.register();
        }
    }

    /// The image of the stream, or another that does not fit.
    fn image(&mut self) -> ImageDetails {
        let mut image = image(STREAM_SESSION.into());
        if let Some(copy) = self.harness.conductor.shared.catalog.get(0.into()) {
            image.join_position = copy.stop_position;
            image.initial_term_id = copy.initial_term_id;
            image.term_length = copy.term_length;
            image.mtu = copy.mtu;
        }
        match self.input.byte() {
            1 => image.join_position = self.input.number(),
            2 => image.term_length = self.input.number() as i32,
            3 => image.initial_term_id = self.input.number() as i32,
            4 => image.mtu = self.input.number() as i32,
            5 => image.session_id = self.input.number() as i32,
            _ => {}
        }
        image
    }

    /// Records a block of each stream, as it was sent.
    fn record(&mut self) {
        for (id, mut recording) in mem::take(&mut self.recordings) {
            let position = recording.position();
            let mut block = self.block(id, position);
            recording.write_block(Some(&mut block), &mut self.writer);
            if let Some(failure) = recording.failure() {
                assert!(failure.text.contains("is not the stream's"), "{}", failure.text);
            }
            if recording.is_stopped() {
                recording.announce_end();
                self.harness.stop(id, position);
            } else {
                let length = if block.is_polled { block.valid_length } else { 0 };
                assert_eq!(recording.position(), position + length as i64);
                self.recordings.insert(id, recording);
            }
        }
    }

    /// Makes a block as the image's poll finds one in a term: whole frames, or padding alone. Some
    /// are too long, or of another type than data.
    fn block(&mut self, id: i64, position: i64) -> Block {
        let descriptor =
            *self.harness.conductor.shared.catalog.get(id.into()).expect("a recording");
        let geometry = descriptor.geometry();
        let (term_id, term_offset) = (geometry.term_id(position), geometry.term_offset(position));
        let remaining = descriptor.term_length as usize - term_offset;
        let limit = remaining.min(TERM_LENGTH as usize);
        let wanted = usize::try_from(self.peer.recorded.saturating_sub(position)).unwrap_or(0);
        let mut bytes = Vec::new();
        let mut add = |kind: u16, length: usize, limit: usize| {
            let start = bytes.len();
            let is_whole = start + align(length) <= limit;
            if is_whole {
                bytes.resize(start + HEADER_LENGTH, 0);
                bytes.resize(start + align(length), kind as u8);
                let frame = &mut bytes[start..];
                frame[TYPE..][..2].copy_from_slice(&kind.to_le_bytes());
                for (field, number) in [
                    (FRAME_LENGTH, length as i32),
                    (TERM_OFFSET, (term_offset + start) as i32),
                    (TERM_ID, term_id),
                ] {
                    frame[field..][..4].copy_from_slice(&number.to_le_bytes());
                }
                frame::set_ids(frame, descriptor.session_id, descriptor.stream_id);
            }
            is_whole
        };
        match self.input.byte() {
            // Up to where the source is.
            0 if wanted < HEADER_LENGTH => {}
            0 => drop(add(TYPE_PAD, wanted.min(limit), limit)),
            1 => drop(add(TYPE_PAD, limit, limit)),
            2 => {
                let length = HEADER_LENGTH + usize::from(self.input.byte());
                add(TYPE_PAD, length, limit);
            }
            count @ 3..20 => {
                for _ in 3..=count {
                    let kind = self.input.choose(&[TYPE_DATA, TYPE_DATA, 2, 6, 0xffff]);
                    let length = HEADER_LENGTH + usize::from(self.input.byte()) * 8;
                    add(kind, length, limit);
                }
            }
            _ => {}
        }
        let check =
            FrameCheck { max_data_length: descriptor.mtu as usize, ..geometry.frame_check() };
        let (valid_length, _) =
            check.check_block(&bytes, descriptor.session_id, term_id, term_offset);
        Block { bytes, valid_length, is_polled: false, has_ended: self.has_ended }
    }

    /// Returns the messages that the source sends in the place of a right answer.
    fn distort(&mut self, reply: Vec<u8>) -> Vec<Vec<u8>> {
        let input = &mut self.input;
        match input.byte() {
            1 => Vec::new(),
            2 => vec![reply.clone(), reply],
            3 => vec![self.message(), reply],
            4 => vec![reply, self.message()],
            count @ 5..10 => {
                let Some((template_id, mut fields, texts)) = decode_values(&reply) else {
                    return Vec::new();
                };
                for _ in 5..=count {
                    let index = usize::from(input.byte()) % fields.len();
                    fields[index] = input.number();
                }
                encode_values(template_id, &fields, &texts).into_iter().collect()
            }
            10 => {
                let length = usize::from(input.byte()) % reply.len();
                vec![reply[..length].to_vec()]
            }
            11 => {
                let mut reply = reply;
                for _ in 0..=input.byte() % 4 {
                    let index = usize::from(input.byte()) % reply.len();
                    reply[index] = input.byte();
                }
                vec![reply]
            }
            12 => vec![self.message()],
            _ => vec![reply],
        }
    }

    /// A message with fields that may be right.
    fn message(&mut self) -> Vec<u8> {
        let template_id = self.input.choose(&TEMPLATES);
        let layout = LAYOUTS.iter().find(|layout| layout.template_id == template_id);
        let layout = layout.expect("a message of the table");
        let input = &mut self.input;
        let fields = layout.fields.iter().map(|field| match (field.name, input.byte()) {
            ("control_session_id", 0..0xe0) => SOURCE_SESSION,
            // The source has answered all requests before.
            ("correlation_id", choice @ 0..0xe0) => {
                self.peer.requests.len() as i64 - i64::from(choice % 4)
            }
            ("code", choice @ 0..0xe0) => i64::from(choice % 4),
            _ => input.number(),
        });
        let fields: Vec<_> = fields.collect();
        let texts: Vec<_> = layout.data.iter().map(|_| input.choose(&TEXTS)).collect();
        encode_values(template_id, &fields, &texts).unwrap_or_default()
    }

    /// Lets the replication end, and checks that nothing is left of it.
    fn finish(mut self) -> Vec<String> {
        self.input = Input(&[]);
        self.answer_for_subscriptions();
        stop(&mut self.harness, ID);
        for _ in 0..5 {
            self.turn();
        }
        // A copy that has merged goes on until its stream ends.
        self.has_ended = true;
        self.peer.recorded = 0;
        for _ in 0..5 {
            self.turn();
        }
        let Self { harness, peer, sent, refused, .. } = self;
        let count = |verb: &str| peer.orders.iter().filter(|it| it.starts_with(verb)).count();
        let ends = sent.iter().filter(|line| line.contains("REPLICATE_END")).count();
        let is_accepted = sent.contains(&format!("6: ok {ID}"));
        assert_eq!(ends, usize::from(is_accepted), "{sent:?}");
        assert!(harness.is_idle(), "{sent:?}");
        assert_eq!(count("close source"), count("connect"), "{:?}", peer.orders);
        assert_eq!(count("subscribe"), count("close subscription") + refused, "{:?}", peer.orders);
        let catalog = Harness::open(&harness.storage, SyncLevel::None).expect("a catalog");
        let all = |catalog: &Catalog| -> Vec<_> {
            catalog.descriptors_from(i64::MIN.into()).map(|it| format!("{it:?}")).collect()
        };
        assert_eq!(all(&catalog), all(&harness.conductor.shared.catalog));
        sent
    }
}

#[cfg(test)]
mod tests {
    use rusteron_test_support::Random;

    use super::*;

    #[test]
    fn sources_that_do_what_is_right_end_replications() {
        for (input, signal) in
            [([0, 0, 0], "SYNC"), ([1, 1, 0], "MERGE"), ([2, 0, 0], "SYNC"), ([4, 0, 0], "SYNC")]
        {
            let sent = run(&input);
            assert!(sent.iter().any(|line| line.contains(signal)), "{input:?}: {sent:?}");
        }
    }

    #[test]
    fn random_sources_leave_nothing() {
        for seed in 0..1000 {
            let mut random = Random::new(seed);
            let length = random.below(400);
            // Mostly zeros, or the first answers already end the replication.
            let rarity = 1 + random.below(8);
            let byte = |byte: u8| if random.below(rarity) == 0 { byte } else { 0 };
            run(&Random::new(seed).bytes(length).into_iter().map(byte).collect::<Vec<_>>());
        }
    }
}
