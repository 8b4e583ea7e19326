//! Recordings to work with.

use rusteron_archive::{Archive, RecordingPos, ReplayLength, ReplayParams, SourceLocation};
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

/// Offers messages until a position is reported as recorded: how many, and the position that was reported.
pub fn offer_until_recorded(
    publication: &mut ExclusivePublication,
    counter: &RecordingPos,
    position: i64,
) -> (u64, i64) {
    let (mut next, mut reported) = (0, 0);
    while reported < position {
        if publication.offer(&message(next)).is_ok() {
            next += 1;
        }
        reported = counter.position().expect("it is active");
    }
    (next, reported)
}

/// The recording that was started for a publication.
pub fn await_recording(archive: &Archive, session_id: i32) -> i64 {
    archive.await_recording(session_id, DEADLINE).expect("a recording")
}

/// Records so many messages over IPC, and waits until they are recorded. The publication is still there.
pub fn record(archive: &Archive, count: u64) -> (ExclusivePublication, i64, i64) {
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
pub fn replay_all(archive: &Archive, recording_id: i64, params: ReplayParams) -> Vec<u64> {
    let mut subscription =
        archive.replay(recording_id, "aeron:ipc", REPLAY_STREAM, params).expect("a replay");
    drain(&mut subscription)
}

/// Call this after an archive was killed that had reported a recording up to a position. Checks that
/// all messages up to that position are there, of the so many offered messages, and that more can follow.
pub fn extend_what_was_kept(archive: &Archive, recording_id: i64, reported: i64, offered: u64) {
    let recorded = ReplayParams::new().length(ReplayLength::Recorded);
    let stop = archive.stop_position(recording_id).expect("an answer").expect("it has stopped");
    assert!(stop >= reported, "reported up to {reported}, kept up to {stop}");
    let kept = replay_all(archive, recording_id, recorded);
    assert_eq!(kept, (0..kept.len() as u64).collect::<Vec<_>>());
    let first = kept.len() as u64;
    assert!(first <= offered);

    let descriptor = archive.recording(recording_id).expect("an answer").expect("a recording");
    let channel = descriptor.continuation("aeron:ipc").expect("a channel").expect("an end");
    let mut publication =
        archive.aeron().add_exclusive_publication(channel, STREAM).expect("a publication");
    archive
        .extend_recording(recording_id, "aeron:ipc", STREAM, SourceLocation::Local, false)
        .expect("a subscription");
    assert_eq!(await_recording(archive, publication.session_id()), recording_id);
    let end = offer_numbered(&mut publication, first..first + 500);
    archive.await_recorded(recording_id, end, DEADLINE).expect("a recording");
    let all = replay_all(archive, recording_id, recorded);
    assert_eq!(all, (0..first + 500).collect::<Vec<_>>());
}

/// How many log buffers of the archive's driver this process has mapped, on Linux.
pub fn mapped_log_buffers(server: &ArchiveProcess) -> usize {
    let dir = server.aeron_dir().display().to_string();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings");
    maps.lines().filter(|line| line.contains(&dir) && line.contains(".logbuffer")).count()
}
