//! Messages on an archive's stream of recording events. An input is a message.

#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use rusteron_archive::RecordingEvent;
use rusteron_fuzz::fake_archive::Message;

fuzz_target!(|message: &[u8]| {
    let Some(event) = RecordingEvent::decode(message) else { return };
    black_box(format!("{event:?}"));
    // Written again, it says the same.
    let written = match &event {
        RecordingEvent::Started {
            recording_id,
            start_position,
            session_id,
            stream_id,
            channel,
            source_identity,
        } => {
            // Bytes that are not UTF-8 take up to three times their length as text.
            assert!(channel.len() + source_identity.len() <= 3 * message.len());
            let mut block = [recording_id.get(), *start_position].map(i64::to_le_bytes).concat();
            block.extend([*session_id, *stream_id].map(i32::to_le_bytes).concat());
            Message::new(101, block, &[channel.as_bytes(), source_identity.as_bytes()])
        }
        RecordingEvent::Progress { recording_id, start_position, position } => Message::new(
            102,
            [recording_id.get(), *start_position, *position].map(i64::to_le_bytes).concat(),
            &[],
        ),
        RecordingEvent::Stopped { recording_id, start_position, stop_position } => Message::new(
            103,
            [recording_id.get(), *start_position, *stop_position].map(i64::to_le_bytes).concat(),
            &[],
        ),
        other => unreachable!("an event that this target does not know: {other:?}"),
    };
    assert_eq!(RecordingEvent::decode(&written.encode()), Some(event));
});
