//! Recordings to work with.

use rusteron_archive::{Archive, RecordingId, ReplayParams};
use rusteron_client::{ExclusivePublication, Subscription};

use super::archive_process::ArchiveProcess;
use crate::{DEADLINE, await_some, offer};

pub const STREAM: i32 = 1001;
pub const REPLAY_STREAM: i32 = 1002;

/// A message that says which one it is.
pub fn message(number: u64) -> [u8; 64] {
    let mut message = [number as u8; 64];
    message[..8].copy_from_slice(&number.to_le_bytes());
    message
}

/// As [`message`], of one fragment or of several.
pub fn long_message(number: u64) -> Vec<u8> {
    let length = 8 + (number * 977 % 7000) as usize;
    let mut message = vec![number as u8; length];
    message[..8].copy_from_slice(&number.to_le_bytes());
    message
}

/// Which one a message is; panics if it is none of ours.
pub fn numbered(text: &[u8]) -> u64 {
    let number = u64::from_le_bytes(*text.first_chunk().expect("a number"));
    assert_eq!(text, message(number), "message {number}");
    number
}

pub fn offer_numbered(
    publication: &mut ExclusivePublication,
    numbers: std::ops::Range<u64>,
) -> i64 {
    let mut position = publication.position().unwrap_or(0);
    for number in numbers {
        position = offer(publication, &message(number));
    }
    position
}

/// The recording that was started for a publication.
pub fn await_recording(archive: &Archive, session_id: i32) -> RecordingId {
    archive.await_recording(session_id, DEADLINE).expect("a recording")
}

/// Records so many messages over IPC, and waits until they are recorded. The publication is still there.
pub fn record(archive: &Archive, count: u64) -> (ExclusivePublication, RecordingId, i64) {
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication("aeron:ipc", STREAM).expect("a publication");
    let position = offer_numbered(&mut publication, 0..count);
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
    (publication, recording_id, position)
}

/// The numbers of the messages up to the end of the stream, that is, of the image.
pub fn drain(subscription: &mut Subscription) -> Vec<u64> {
    let mut numbers = Vec::new();
    let mut was_connected = false;
    await_some("the end of the replay", || {
        let count = subscription
            .poll(|text, _| numbers.push(numbered(text)), 100)
            .expect("an open subscription");
        was_connected |= subscription.is_connected();
        let is_over = was_connected && count == 0 && !subscription.is_connected();
        is_over.then_some(())
    });
    numbers
}

/// The numbers of all messages of a recording.
pub fn replay_all(archive: &Archive, recording_id: RecordingId, params: ReplayParams) -> Vec<u64> {
    let mut subscription =
        archive.replay(recording_id, "aeron:ipc", REPLAY_STREAM, params).expect("a replay");
    drain(&mut subscription)
}

/// How many log buffers of the archive's driver this process has mapped, on Linux.
pub fn mapped_log_buffers(server: &ArchiveProcess) -> usize {
    let dir = server.aeron_dir().display().to_string();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings");
    maps.lines().filter(|line| line.contains(&dir) && line.contains(".logbuffer")).count()
}
