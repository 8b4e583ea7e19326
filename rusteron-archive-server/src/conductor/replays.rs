//! Replays: requested, stopped, ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusteron_core::log_buffer::FRAME_ALIGNMENT;

use crate::catalog::{Descriptor, NULL_POSITION};
use crate::channel::{Channel, ChannelError, ReplayStart};
use crate::conductor::deletions::Deletions;
use crate::conductor::effect::{
    Effect, Failure, ImageId, Outside, RecordingId, ReplayLimit, ReplayProgress, StartReplay,
};
use crate::conductor::recordings::Recordings;
use crate::conductor::sessions::Requester;
use crate::conductor::turn::Turn;
use crate::control::request::Replay;
use crate::control::responses::Answer;
use crate::ids::{ReplayId, ReplaySessionId};
use crate::protocol::error_code::ErrorCode;

/// Replays all, and what is recorded meanwhile.
const ALL_AND_FOLLOW: i64 = -1;
/// Replays what there is.
const ALL_AND_STOP: i64 = -2;

#[derive(Debug)]
struct ActiveReplay {
    recording: RecordingId,
    requester: Requester,
    stream_id: i32,
    channel: String,
    progress: Arc<ReplayProgress>,
    /// What clients call it. `None` until the first segment is open.
    session_id: Option<ReplaySessionId>,
    /// It ends, at once if it has started.
    is_aborted: bool,
}

/// All replays, by their running number.
#[derive(Debug, Default)]
pub(crate) struct Replays {
    by_number: BTreeMap<ReplayId, ActiveReplay>,
    last_number: i64,
}

impl Replays {
    /// Those that count against the limit.
    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(super) fn contains(&self, replay: ReplayId) -> bool {
        self.by_number.contains_key(&replay)
    }

    pub(super) fn has_recording(&self, recording: RecordingId) -> bool {
        self.by_number.values().any(|active| active.recording == recording)
    }

    /// Ends the replays of a recording, also those that have not started. Returns their numbers.
    pub(super) fn abort_all_of(
        &mut self,
        turn: &mut Turn<'_>,
        recording: RecordingId,
    ) -> Vec<ReplayId> {
        self.stop_all(turn, Some(recording));
        let mut numbers = Vec::new();
        for (&replay, active) in &mut self.by_number {
            if active.recording == recording {
                active.is_aborted = true;
                numbers.push(replay);
            }
        }
        numbers
    }

    /// Describes, as Java does, the replay of a recording that reads the first segment, if that is
    /// before a position.
    pub(super) fn first_before(&self, recording: RecordingId, position: i64) -> Option<String> {
        let replays = self.by_number.values().filter(|active| active.recording == recording);
        let first =
            replays.min_by_key(|active| active.progress.segment_base.load(Ordering::Acquire))?;
        let base = first.progress.segment_base.load(Ordering::Acquire);
        (base < position).then(|| {
            let is_connected = first.progress.is_connected.load(Ordering::Acquire);
            let state = if is_connected { "REPLAY" } else { "INIT" };
            let session_id = first.session_id.map_or(-1, ReplaySessionId::image_session_id);
            let (stream_id, channel) = (first.stream_id, &first.channel);
            format!(
                " state={state} newStartPosition={position} upperBound={base} sessionId={session_id} \
                 streamId={stream_id} channel={channel}"
            )
        })
    }

    /// Begins a replay. The answer comes when its first segment is open. `response_image` is the
    /// image on which a request with a token came: the client reads the replay by a response
    /// channel of that image's publication.
    pub(super) fn start(
        &mut self,
        turn: &mut Turn<'_>,
        requester: Requester,
        request: &Replay<'_>,
        response_image: Option<ImageId>,
        recordings: &Recordings,
        deletions: &Deletions,
    ) -> Result<(), Failure> {
        let recording = request.recording;
        let (limit, limit_position) = limit(turn, request, recordings)?;
        let max = turn.settings.max_concurrent_replays;
        if self.len() >= max {
            let text = format!("max concurrent replays reached {max}");
            return Err(Failure::new(ErrorCode::MaxReplays, text));
        }
        let descriptor = turn.recording(recording)?;
        let position = match request.position {
            NULL_POSITION => descriptor.start_position,
            position => {
                check_position(&descriptor, position)?;
                position
            }
        };
        let mtu = descriptor.mtu;
        let file_io_max = file_io_max(request, mtu, turn.settings.file_io_max_length)?;
        let limit_position = limit_position.filter(|&position| position != NULL_POSITION);
        let range = Range::new(&descriptor, position, request.length, limit_position)?;
        let start = ReplayStart {
            position: range.position,
            initial_term_id: descriptor.initial_term_id,
            term_length: descriptor.term_length,
            mtu,
        };
        if range.stop_position > descriptor.stop_position && !descriptor.is_active() {
            deletions.check_replay(&descriptor)?;
        }
        let linger_ns = turn.settings.replay_linger_ns;
        let refused = |error: ChannelError| {
            Failure::generic(format!("failed to process replayChannel - {error}"))
        };
        let mut channel = Channel::parse(&request.channel).map_err(refused)?;
        if let Some(image) = response_image {
            channel.set("response-correlation-id", image);
        }
        let channel = channel.replay(start, linger_ns).map_err(refused)?;

        self.last_number += 1;
        let replay = ReplayId::new(self.last_number);
        let geometry = descriptor.geometry();
        let progress = ReplayProgress::new(geometry.base(range.position));
        let active = ActiveReplay {
            recording,
            requester,
            stream_id: request.stream_id,
            channel: channel.clone(),
            progress: Arc::clone(&progress),
            session_id: None,
            is_aborted: false,
        };
        self.by_number.insert(replay, active);
        turn.out.order(Effect::StartReplay(StartReplay {
            replay,
            geometry,
            channel,
            stream_id: request.stream_id,
            position: range.position,
            progress,
            end_position: range.end_position,
            stop_position: range.stop_position,
            limit,
            mtu,
            file_io_max,
        }));
        Ok(())
    }

    /// The first segment of a replay is open, or it cannot start.
    pub(super) fn on_started(
        &mut self,
        turn: &mut Turn<'_>,
        replay: ReplayId,
        outcome: Result<i32, Failure>,
    ) {
        match outcome {
            Ok(publication_session) => {
                let Some(active) = self.by_number.get_mut(&replay) else { return };
                let session_id = replay.session_id(publication_session);
                active.session_id = Some(session_id);
                let is_aborted = active.is_aborted;
                turn.respond(active.requester, &Answer::Ok(session_id.get()));
                if is_aborted {
                    turn.out.order(Effect::AbortReplay { replay });
                }
            }
            Err(failure) => self.on_ended(turn, replay, Some(failure)),
        }
    }

    /// A replay has ended, perhaps before it started.
    pub(super) fn on_ended(
        &mut self,
        turn: &mut Turn<'_>,
        replay: ReplayId,
        failure: Option<Failure>,
    ) {
        let Some(active) = self.by_number.remove(&replay) else { return };
        if let Some(failure) = failure {
            turn.fail(active.requester, failure);
        }
    }

    /// An unknown replay has ended already, which is no error.
    pub(super) fn stop(&mut self, turn: &mut Turn<'_>, session_id: ReplaySessionId) {
        self.abort(turn.out, |replay| replay.session_id == Some(session_id));
    }

    /// Stops the replays of a recording, or all.
    pub(super) fn stop_all(&mut self, turn: &mut Turn<'_>, recording: Option<RecordingId>) {
        self.abort(turn.out, |replay| recording.is_none_or(|it| replay.recording == it));
    }

    fn abort(&mut self, out: &mut dyn Outside, is_meant: impl Fn(&ActiveReplay) -> bool) {
        for (&replay, active) in &mut self.by_number {
            if active.session_id.is_some() && !active.is_aborted && is_meant(active) {
                active.is_aborted = true;
                out.order(Effect::AbortReplay { replay });
            }
        }
    }
}

/// Returns what bounds a replay besides its end, and the position up to which that allows reading.
fn limit(
    turn: &Turn<'_>,
    request: &Replay<'_>,
    recordings: &Recordings,
) -> Result<(ReplayLimit, Option<i64>), Failure> {
    if let Some(id) = request.limit_counter_id {
        let counter = turn.out.counter(id).map_err(|reason| {
            Failure::generic(format!(
                "unable to create replay limit counter id= {id} because of: {reason}"
            ))
        })?;
        let registration_id = counter.registration_id;
        return Ok((ReplayLimit::Counter { id, registration_id }, Some(counter.value)));
    }
    Ok(match recordings.get(request.recording) {
        Some(active) => {
            (ReplayLimit::Recording(Arc::clone(&active.progress)), Some(active.position()))
        }
        None => (ReplayLimit::None, None),
    })
}

/// Returns the most bytes of one read.
fn file_io_max(request: &Replay<'_>, mtu: i32, max_read: i32) -> Result<i32, Failure> {
    match request.file_io_max_length {
        length if length > 0 && length < mtu => {
            Err(Failure::generic(format!("fileIoMaxLength={length} < mtuLength={mtu}")))
        }
        _ if max_read < mtu => {
            Err(Failure::generic(format!("replayBufferCapacity={max_read} < mtuLength={mtu}")))
        }
        length if length > 0 => Ok(length.min(max_read)),
        _ => Ok(max_read),
    }
}

/// Which part of a recording is replayed.
#[derive(Debug)]
struct Range {
    position: i64,
    end_position: i64,
    /// Up to where there are frames.
    stop_position: i64,
}

impl Range {
    /// `limit` is up to where a recording in progress, or a counter, allows to read.
    fn new(
        descriptor: &Descriptor,
        position: i64,
        requested: i64,
        limit: Option<i64>,
    ) -> Result<Self, Failure> {
        let recording = descriptor.recording_id;
        let (stop_position, max_length) = match limit {
            Some(limit) if position > limit => {
                return Err(exceeds_limit(recording, position, limit));
            }
            Some(limit) => (limit, i64::MAX - position),
            None => (descriptor.stop_position, descriptor.stop_position - position),
        };
        let length = match requested {
            ALL_AND_FOLLOW => max_length,
            ALL_AND_STOP if stop_position == position => {
                return Err(Failure::new(
                    ErrorCode::EmptyRecording,
                    format!(
                        "when replaying and stopping the replay length must be non-zero, \
                         recordingId={recording}"
                    ),
                ));
            }
            ALL_AND_STOP => stop_position - position,
            length => length.min(max_length),
        };
        if length < 0 {
            return Err(Failure::generic(format!(
                "replay length must be positive: replayLength={length}, length={requested}, \
                 stopPosition={stop_position}, replayPosition={position} for recording {recording}"
            )));
        }
        Ok(Self { position, end_position: position + length, stop_position })
    }
}

fn exceeds_limit(recording: RecordingId, position: i64, limit: i64) -> Failure {
    Failure::new(
        ErrorCode::InvalidPosition,
        format!(
            "requested replay start position={position} must be less than the limit \
             position={limit} for recording {recording}"
        ),
    )
}

fn check_position(descriptor: &Descriptor, position: i64) -> Result<(), Failure> {
    let recording = descriptor.recording_id;
    if position % FRAME_ALIGNMENT as i64 != 0 {
        return Err(Failure::generic(format!(
            "requested replay start position={position} is not a multiple of FRAME_ALIGNMENT \
             ({FRAME_ALIGNMENT}) for recording {recording}"
        )));
    }
    let start = descriptor.start_position;
    if position < start {
        return Err(Failure::new(
            ErrorCode::InvalidPosition,
            format!(
                "requested replay start position={position} is less than recording start \
                 position={start} for recording {recording}"
            ),
        ));
    }
    let stop = descriptor.stop_position;
    if stop != NULL_POSITION && position >= stop {
        return Err(exceeds_limit(recording, position, stop));
    }
    Ok(())
}
