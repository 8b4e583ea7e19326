//! A hostile client, and images and outcomes as they come, while another client is served.

use crate::conductor::effect::{Failure, Sending};
use crate::conductor::event::Event;
use crate::conductor::tests::harness::{
    FIRST_SESSION, Harness, IMAGE, TERM_LENGTH, connect_request, image,
};
use crate::protocol::PROTOCOL_VERSION;
use crate::protocol::messages::ArchiveIdRequest;

/// Images of the hostile client's requests.
const IMAGES: [i64; 2] = [200, 201];
/// Message ids of all requests, and of others.
const TEMPLATES: [u16; 42] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 22, 50, 51, 52, 53, 54, 55,
    56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 104, 105, 107,
];
pub(super) const TEXTS: [&[u8]; 12] = [
    b"",
    b"aeron:ipc",
    b"aeron:ipc?alias=a",
    b"aeron:udp?endpoint=localhost:20121",
    b"aeron:udp?control-mode=response|control=localhost:20122",
    b"aeron:ipc?session-id=7|tags=1,2",
    b"aeron:udp?endpoint=localhost:20121|term-length=1g|mtu=64",
    b"aeron-spy:aeron:udp?endpoint=x:1",
    b"aeron:foo",
    b"nonsense",
    b"\xff\xfe",
    b"ipc",
];

/// Random bytes from front to back. Behind their end everything is zero.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(super) fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    pub(super) fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    /// A number that a request may have: an id, a position, a limit.
    pub(super) fn number(&mut self) -> i64 {
        match self.byte() {
            0xff => i64::MAX,
            0xfe => i64::MIN,
            0xfd => 0,
            0xfc => -1,
            0xfb => -2,
            0xfa => FIRST_SESSION,
            0xf9 => FIRST_SESSION + 1,
            0xf8 => 1001,
            0xf7 => i64::from_le_bytes(*self.bytes(8).first_chunk().unwrap_or(&[0x55; 8])),
            0xf6 => i64::from(i32::MIN),
            byte @ 0x80.. => i64::from(byte - 0x80) * 32,
            byte => byte.into(),
        }
    }

    /// A request with a block and texts that may be too many, too few or wrong.
    fn request(&mut self) -> Vec<u8> {
        let template = self.choose(&TEMPLATES);
        let mut block = Vec::new();
        // The session of the client, or another.
        let session = if self.byte() % 8 == 0 { self.number() } else { FIRST_SESSION + 1 };
        if template != 58 {
            block.extend(session.to_le_bytes());
        }
        for _ in 0..self.byte() % 12 {
            let number = self.number();
            match self.byte() % 2 {
                0 => block.extend(number.to_le_bytes()),
                _ => block.extend((number as i32).to_le_bytes()),
            }
        }
        let block_length = match self.byte() {
            0xff => self.number() as u16,
            _ => block.len() as u16,
        };
        let header = [block_length, template, 101, self.choose(&[14, 14, 14, 0, 15, 255])];
        let mut message: Vec<u8> = header.iter().flat_map(|field| field.to_le_bytes()).collect();
        message.extend(block);
        for _ in 0..self.byte() % 6 {
            let choice = self.byte();
            let text = match choice {
                0xf0.. => self.bytes(choice.into()),
                _ => TEXTS[usize::from(choice) % TEXTS.len()],
            };
            let length = if self.byte() == 0xff { self.number() as u32 } else { text.len() as u32 };
            message.extend(length.to_le_bytes());
            message.extend(text);
        }
        message
    }
}

/// Lets a hostile client do what the bytes say. The other client must be served all the time.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input(bytes);
    let mut harness = Harness::connected();
    harness.send_on(IMAGES[0], &connect_request(PROTOCOL_VERSION, "aeron:udp?endpoint=client:2"));
    harness.publish_responses(FIRST_SESSION + 1, Ok(()));
    harness.tick();
    let mut correlation_id = 1000;
    while !input.0.is_empty() {
        step(&mut harness, &mut input);
        correlation_id += 1;
        is_served(&mut harness, correlation_id);
    }
    harness.conductor.begin_close(harness.now, &mut harness.out);
    harness.conductor.finish_close(harness.now, &mut harness.out);
}

fn step(harness: &mut Harness, input: &mut Input<'_>) {
    match input.byte() % 20 {
        0..8 => {
            let image = input.choose(&[IMAGES[0], IMAGES[0], IMAGES[1]]);
            let message = input.request();
            harness.offer_on(image, "hostile:1", &message);
        }
        8 => {
            let length = input.byte();
            harness.send_on(IMAGES[0], input.bytes(length.into()));
        }
        9 => drop(harness.register()),
        10 => harness.refuse_subscription("refused"),
        11 => {
            let subscription = 1001 + i64::from(input.byte() % 8);
            let mut image = image(input.byte().into());
            image.join_position = input.choose(&[0, 32, 1024, i64::from(TERM_LENGTH), 1 << 40]);
            image.initial_term_id = input.choose(&[7, 0, i32::MAX, i32::MIN]);
            image.term_length = input.choose(&[TERM_LENGTH, TERM_LENGTH, 1 << 30]);
            harness.add_image(subscription, &image);
        }
        12 => harness.begin(i64::from(input.byte() % 8)),
        13 => {
            let recording = i64::from(input.byte() % 8);
            if let Some(progress) = harness.out.progress.get(&recording) {
                let position = progress.position.load(std::sync::atomic::Ordering::Acquire);
                harness.record_to(recording, position + i64::from(input.byte()) * 32);
            }
        }
        14 => {
            let recording = i64::from(input.byte() % 8);
            if let Some(progress) = harness.out.progress.get(&recording) {
                let position = progress.position.load(std::sync::atomic::Ordering::Acquire);
                let failure = (input.byte() % 4 == 0).then(|| Failure::generic("a failure"));
                harness.tell(Event::RecordingStopped(recording.into(), position, failure));
            }
        }
        15 => {
            let replay = i64::from(input.byte() % 8);
            match input.byte() % 3 {
                0 => harness.tell(Event::ReplayStarted(replay.into(), Ok(-3))),
                1 => harness.tell(Event::ReplayStarted(replay.into(), Err(Failure::generic("no")))),
                _ => harness.tell(Event::ReplayEnded(replay.into(), None)),
            }
        }
        16 => drop(harness.tick_after(input.choose(&[0, 1, 200, 1000, 6000]))),
        17 => {
            let session = FIRST_SESSION + i64::from(input.byte() % 8) + 1;
            harness
                .publish_responses(session, if input.byte() % 4 == 0 { Err("no") } else { Ok(()) });
        }
        18 => {
            let outcome = input.choose(&[
                None,
                Some(Sending::BackPressured),
                Some(Sending::NotConnected),
                Some(Sending::TooLong),
            ]);
            harness.out.others_sending = outcome;
        }
        _ => {
            let image = input.choose(&IMAGES);
            harness.tell(Event::RequestImageUnavailable(image.into()));
        }
    }
    harness.tick();
}

/// Asks as the first client, and checks that there is an answer, and that nothing grows.
fn is_served(harness: &mut Harness, correlation_id: i64) {
    harness.clear();
    let request = ArchiveIdRequest { control_session_id: FIRST_SESSION, correlation_id };
    harness.send_on(IMAGE, &request.to_vec());
    let answer = format!("{correlation_id}: ok 42");
    assert!(harness.sent().contains(&answer), "{:?}", harness.errors());
}

#[cfg(test)]
mod tests {
    use rusteron_test_support::Random;

    use super::*;

    #[test]
    fn random_clients_disturb_no_other() {
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let length = random.below(400);
            run(&random.bytes(length));
        }
    }
}
