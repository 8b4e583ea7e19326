//! Frames as they go over the network, with fields that may be anything.

use crate::input::Input;

/// The values that a receiver of the frames would expect in them.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    pub session_id: i32,
    pub stream_id: i32,
    pub term_id: i32,
    pub term_length: i32,
}

const PAD: i16 = 0;
const DATA: i16 = 1;
const NAK: i16 = 2;
const STATUS: i16 = 3;
const ERROR: i16 = 4;
const SETUP: i16 = 5;
const RTT_MEASUREMENT: i16 = 6;
const RESOLUTION: i16 = 7;
const RESPONSE_SETUP: i16 = 11;

const TYPES: [i16; 12] = [
    SETUP,
    DATA,
    PAD,
    NAK,
    STATUS,
    ERROR,
    RTT_MEASUREMENT,
    RESOLUTION,
    RESPONSE_SETUP,
    // Of Aeron Transport Security, which the driver in C does not have.
    8,
    9,
    10,
];

const TERM_LENGTHS: [i32; 10] =
    [64 << 10, 64 << 10, 128 << 10, 1 << 30, 32 << 10, 0, -(64 << 10), i32::MIN, 96 << 10, 4096];
const MTUS: [i32; 12] = [1408, 1408, 64, 65504, 32, 31, 0, -1, 1409, 65536, i32::MAX, i32::MIN];

/// Aeron's largest datagram.
const MAX_LENGTH: usize = 65504;

/// A datagram of one frame or several, each of them of a type and with fields that the input chooses.
pub fn datagram(input: &mut Input<'_>, expected: Expected) -> Vec<u8> {
    let mut bytes = Vec::new();
    let frames = input.byte() % 4;
    for _ in 0..frames.max(1) {
        frame(input, expected, &mut bytes);
    }
    // A datagram that was cut off, or has more than its frames.
    match input.byte() {
        0xff => bytes.truncate(usize::from(input.byte())),
        0xfe => bytes.extend(input.bytes(64)),
        _ => {}
    }
    bytes.truncate(MAX_LENGTH);
    bytes
}

fn frame(input: &mut Input<'_>, expected: Expected, datagram: &mut Vec<u8>) {
    let start = datagram.len();
    let kind = input.choose(&TYPES);
    let flags = input.byte();
    let mut frame = Frame { input, expected, bytes: datagram };
    frame.word(0);
    frame.bytes.extend([0, flags]);
    frame.bytes.extend(kind.to_le_bytes());
    match kind {
        SETUP => {
            frame.term_offset();
            frame.session_and_stream();
            frame.near(expected.term_id, 1);
            frame.near(expected.term_id, 1);
            frame.chosen(&TERM_LENGTHS);
            frame.chosen(&MTUS);
            frame.near(0, 1);
        }
        NAK => {
            frame.session_and_stream();
            frame.near(expected.term_id, 1);
            frame.term_offset();
            frame.near(0, 32);
        }
        STATUS => {
            frame.session_and_stream();
            frame.near(expected.term_id, 1);
            frame.term_offset();
            frame.near(expected.term_length, 32);
            frame.receiver_id();
            if frame.input.byte() % 2 == 1 {
                frame.receiver_id();
            }
        }
        ERROR => {
            frame.session_and_stream();
            frame.receiver_id();
            frame.receiver_id();
            frame.near(0, 1);
            let text = usize::from(frame.input.byte()) * 5;
            frame.near(text as i32, 1);
            frame.bytes.resize(frame.bytes.len() + text, b'e');
        }
        RTT_MEASUREMENT => {
            frame.session_and_stream();
            for _ in 0..3 {
                frame.receiver_id();
            }
        }
        RESOLUTION => {
            for _ in 0..=frame.input.byte() % 4 {
                frame.resolution();
            }
        }
        RESPONSE_SETUP => {
            frame.session_and_stream();
            frame.near(expected.session_id, 1);
        }
        _ => {
            frame.term_offset();
            frame.session_and_stream();
            frame.near(expected.term_id, 1);
            let reserved = frame.input.near(0, 1);
            frame.word(reserved);
            frame.word(reserved);
            let payload = match frame.input.byte() {
                0xff => usize::from(frame.input.half()),
                small => usize::from(small) * 8,
            };
            frame.bytes.resize(frame.bytes.len() + payload, b'd');
            // Frames in a datagram are aligned.
            let length = (frame.bytes.len() - start).next_multiple_of(32);
            frame.bytes.resize(start + length, 0);
        }
    }
    let length = (datagram.len() - start) as i32;
    let claimed = input.near(length, 1);
    datagram[start..start + 4].copy_from_slice(&claimed.to_le_bytes());
    if input.byte() == 0xff {
        datagram[start + 4] = input.byte();
    }
}

struct Frame<'a, 'b> {
    input: &'a mut Input<'b>,
    expected: Expected,
    bytes: &'a mut Vec<u8>,
}

impl Frame<'_, '_> {
    fn word(&mut self, value: i32) {
        self.bytes.extend(value.to_le_bytes());
    }

    fn near(&mut self, base: i32, unit: i32) {
        let value = self.input.near(base, unit);
        self.word(value);
    }

    /// One of the values, or any.
    fn chosen(&mut self, values: &[i32]) {
        let choice = self.input.byte();
        let value = match choice {
            0xff => self.input.word(),
            _ => values[usize::from(choice) % values.len()],
        };
        self.word(value);
    }

    fn term_offset(&mut self) {
        let is_at_end = self.input.byte() % 2 == 1;
        let base = if is_at_end { self.expected.term_length } else { 0 };
        self.near(base, 32);
    }

    fn session_and_stream(&mut self) {
        self.near(self.expected.session_id, 1);
        self.near(self.expected.stream_id, 1);
    }

    fn receiver_id(&mut self) {
        match self.input.byte() {
            0xff => {
                let id = self.input.long();
                self.bytes.extend(id.to_le_bytes());
            }
            small => self.bytes.extend(i64::from(small).to_le_bytes()),
        }
    }

    fn resolution(&mut self) {
        let kind = self.input.choose(&[1_u8, 2, 0, 0xff]);
        let flags = self.input.byte();
        let port = self.input.half();
        self.bytes.extend([kind, flags]);
        self.bytes.extend(port.to_le_bytes());
        self.near(0, 1);
        // Frames that would be sent to this address stay on this host.
        match kind {
            2 => self.bytes.extend(std::net::Ipv6Addr::LOCALHOST.octets()),
            _ => self.bytes.extend([127, 0, 0, self.input.byte()]),
        }
        let name = self.input.byte();
        let name = self.input.bytes(usize::from(name));
        let claimed = self.input.near(name.len() as i32, 1);
        self.bytes.extend((claimed as i16).to_le_bytes());
        self.bytes.extend(name);
        let length = self.bytes.len().next_multiple_of(8);
        self.bytes.resize(length, 0);
    }
}
