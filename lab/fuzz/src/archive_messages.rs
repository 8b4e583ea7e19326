//! Messages of an archive, with fields that may be anything.

use crate::fake_archive::{Message, OK, Request, well_formed};
use crate::input::Input;

/// The archive's answers to a request: those that the input makes, and in the end the right answer.
pub fn answers(input: &mut Input<'_>, request: &Request) -> Vec<Vec<u8>> {
    let kind = input.byte();
    let mut messages: Vec<_> =
        (0..kind % 4).map(|_| message(input, request.correlation_id)).collect();
    // Without a right answer, a client waits until its timeout is over.
    if kind < 0xf0 {
        messages.extend(well_formed(request));
    }
    messages
}

/// A message that is right, apart from the input's changes to it.
pub fn message(input: &mut Input<'_>, correlation_id: i64) -> Vec<u8> {
    let text: &[u8] = b"a text of an archive";
    let text = &text[..usize::from(input.byte()) % (text.len() + 1)];
    let recording_id = input.near(7, 1).into();
    let mut message = match input.byte() % 10 {
        0..=3 => {
            let code = input.near(OK, 1);
            let text = String::from_utf8_lossy(text);
            Message::control_response(correlation_id, recording_id, code, &text)
        }
        4 => Message::challenge(correlation_id, text),
        5 => Message::recording_descriptor(correlation_id, recording_id),
        6 => Message::recording_subscription_descriptor(correlation_id),
        7 => Message::recording_signal(recording_id, input.near(0, 1)),
        8 => Message::new(input.half(), vec![input.byte(); 64], &[text]),
        _ => {
            let length = usize::from(input.byte());
            return input.bytes(length).to_vec();
        }
    };
    for _ in 0..input.byte() % 4 {
        change(input, &mut message);
    }
    let mut bytes = message.encode();
    if input.byte() == 0xff {
        bytes.truncate(usize::from(input.byte()));
    }
    bytes
}

fn change(input: &mut Input<'_>, message: &mut Message) {
    let change = input.byte();
    match change % 8 {
        0 | 1 => {
            let index = usize::from(input.byte());
            let count = message.texts.len().max(1);
            if let Some((claimed, _)) = message.texts.get_mut(index % count) {
                *claimed = input.near(*claimed as i32, 1) as u32;
            }
        }
        2 => message.block_length = input.near(message.block_length.into(), 1) as u16,
        3 => message.version = input.half(),
        4 => message.schema = input.near(message.schema.into(), 1) as u16,
        5 => {
            let offset = usize::from(input.byte());
            let length = message.block.len();
            if let Some(bytes) = message.block.get_mut(offset % length.max(1)..) {
                let new = input.long().to_le_bytes();
                let length = bytes.len().min(new.len());
                bytes[..length].copy_from_slice(&new[..length]);
            }
        }
        6 => {
            let length = usize::from(input.byte());
            message.block.resize(length, 0);
        }
        _ => {
            let length = usize::from(input.half()) % 4096;
            message.texts.push((length as u32, vec![b't'; length]));
        }
    }
}
