//! Copying a recording from another archive, the source: what is asked of it, and when, without
//! I/O.
//!
//! | file | what it decides |
//! |---|---|
//! | `replication.rs` | the states of a replication |
//! | `action.rs` | nothing: it defines input and actions |
//! | `source.rs` | the session with the source: connecting, requests and their answers |
//! | `recording.rs` | the source's recording |
//! | `channels.rs` | channels to the source, and from it |

mod action;
mod channels;
mod recording;
mod source;

pub(crate) use action::{Action, Copy, ReplicatedImage, ReplicationRequest};
pub(crate) use channels::{ControlChannels, ReplayChannels};
pub(crate) use recording::SourceRecording;
pub(crate) use source::{RequestStream, SourceLink, SourceSession, SourceSettings};

use std::collections::VecDeque;
use std::mem;

use crate::channel::ChannelError;
use crate::control::Clock;
use crate::control::responses::Failure;
use crate::ids::{NULL_ID, RecordingId, ReplayToken, SourceRecordingId, SourceReplayId};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::messages::{
    ListRecordingRequest, RecordingPositionRequest, ReplayRequest, ReplayTokenRequest,
    StopReplayRequest,
};
use crate::protocol::signal::Signal;
use crate::replication::source::{Asking, SourceAnswer, exception};

/// −1 stands for no position, no id, no length.
const NULL: i64 = -1;
/// The live stream joins when the copy is less far behind it, in bytes, or less than a quarter of a
/// term.
const LIVE_ADD_MAX_WINDOW: i64 = 32 << 20;
/// Attempts to ask the source for its position while the live stream joins.
const POSITION_ATTEMPTS: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connect,
    ReplicateDescriptor,
    SourcePosition,
    Extend,
    AwaitSubscription,
    ReplayToken,
    ReplayRequests {
        token: Option<ReplayToken>,
    },
    Replay {
        /// Without a response channel, there is none.
        token: Option<ReplayToken>,
    },
    AwaitImage {
        replay: SourceReplayId,
    },
    Replicate,
    Catchup,
    AttemptLiveJoin(LiveJoin),
    Done,
}

/// How far the live stream has joined the replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LiveJoin {
    /// The live stream is a destination of the copy's subscription.
    is_added: bool,
    /// The archive counts the streams of the image.
    is_counting: bool,
    transports: Option<usize>,
}

/// A replication.
#[derive(Debug)]
pub(crate) struct Replication {
    request: ReplicationRequest,
    source: SourceSession,
    state: State,
    /// The copy, once it is in the catalog.
    recording: Option<RecordingId>,
    /// Where the replay begins.
    replay_position: i64,
    source_stop_position: i64,
    /// Where the recording of the live stream was when the source was asked.
    source_position: i64,
    stream_id: i32,
    replay_session_id: i32,
    replay_channel: Option<String>,
    /// The source's id of the replay, while it lasts.
    replay: Option<SourceReplayId>,
    destination: Option<String>,
    /// Actions that come before anything else.
    due: VecDeque<Action>,
    deadline_ns: i64,
    timeout_ns: i64,
}

impl Replication {
    pub(crate) fn new(request: ReplicationRequest, source: SourceSession, timeout_ns: i64) -> Self {
        Self {
            recording: request.recording,
            replay_position: request.existing.map_or(NULL, |(end, _)| end),
            request,
            source,
            state: State::Connect,
            source_stop_position: NULL,
            source_position: NULL,
            stream_id: 0,
            replay_session_id: 0,
            replay_channel: None,
            replay: None,
            destination: None,
            due: VecDeque::new(),
            deadline_ns: i64::MAX,
            timeout_ns,
        }
    }

    /// The copy, if it is known already.
    pub(crate) fn recording(&self) -> Option<RecordingId> {
        self.recording
    }

    pub(crate) fn source_recording(&self) -> SourceRecordingId {
        self.request.source_recording
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Both streams to and from the source are there.
    pub(crate) fn on_source_added(&mut self, response_channel: String) {
        self.source.on_added(response_channel);
    }

    pub(crate) fn on_source_message(&mut self, message: &[u8]) {
        self.source.on_message(message);
    }

    /// A stream to or from the source could not be added, or has failed.
    pub(crate) fn on_source_failed(&mut self, text: &str) {
        let failure = match self.state {
            State::Connect => {
                let text = format!("Replication connection failed={text}");
                Failure::new(ErrorCode::ReplicationConnectionFailure, text)
            }
            _ => Failure::generic(text),
        };
        self.fail(failure);
    }

    /// Ends the replication in its next turn.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.end(Some(failure));
    }

    /// Ends the replication in its next turn, as the client wants it.
    pub(crate) fn stop(&mut self) {
        self.end(None);
    }

    fn end(&mut self, failure: Option<Failure>) {
        if self.state != State::Done {
            self.state = State::Done;
            self.due.push_back(Action::End(failure));
        }
    }

    /// The copy is in the catalog.
    pub(crate) fn on_described(&mut self, recording: RecordingId) {
        self.recording = Some(recording);
    }

    /// So many streams feed the image.
    pub(crate) fn on_transports(&mut self, count: usize) {
        if let State::AttemptLiveJoin(join) = &mut self.state {
            if mem::take(&mut join.is_counting) {
                join.transports = Some(count);
            }
        }
    }

    /// Returns whether the copy, which reaches up to this position, has all that the source has.
    /// The source's answer to the request for the replay can come after a short stream.
    pub(crate) fn is_synced(&self, position: i64) -> bool {
        self.state != State::Done
            && self.source_stop_position != NULL
            && position >= self.source_stop_position
    }

    /// Does what is due. An action is to be carried out before the next turn.
    pub(crate) fn turn<L: SourceLink + ?Sized>(
        &mut self,
        now: Clock,
        copy: &Copy,
        link: &mut L,
    ) -> Option<Action> {
        if self.due.is_empty() {
            if let Err(failure) = self.step(now, copy, link) {
                self.fail(failure);
            }
        }
        self.due.pop_front()
    }

    fn step<L: SourceLink + ?Sized>(
        &mut self,
        now: Clock,
        copy: &Copy,
        link: &mut L,
    ) -> Result<(), Failure> {
        match self.state {
            State::Done => return Ok(()),
            State::Replicate => self.end_if_replicated(copy),
            State::Catchup | State::AttemptLiveJoin(_) if copy.is_closed => {
                return Err(exception("replication image closed unexpectedly"));
            }
            _ => {}
        }
        if copy.is_closed {
            self.end(None);
        }
        if !matches!(self.state, State::Connect | State::Done) {
            self.source.check(link)?;
        }
        match self.state {
            State::Connect => {
                if self.source.connect(now, link)? {
                    self.enter(State::ReplicateDescriptor, now);
                }
                Ok(())
            }
            State::ReplicateDescriptor => self.replicate_descriptor(now, link),
            State::SourcePosition => {
                if let Some(position) = self.ask_position(1, now, link)? {
                    self.source_position = position;
                    self.enter(State::Extend, now);
                }
                Ok(())
            }
            State::Extend => self.extend(now),
            State::AwaitSubscription => {
                if copy.subscription.is_some() {
                    self.enter(State::ReplayToken, now);
                }
                Ok(())
            }
            State::ReplayToken => self.request_token(now, link),
            State::ReplayRequests { token } => self.add_replay_requests(token, now, copy),
            State::Replay { token } => self.request_replay(token, now, copy, link),
            State::AwaitImage { replay } => self.await_image(replay, now, copy),
            State::Catchup => {
                if copy.image.is_some_and(|image| image.position >= self.source_position) {
                    self.enter(State::AttemptLiveJoin(LiveJoin::default()), now);
                }
                Ok(())
            }
            State::AttemptLiveJoin(join) => self.attempt_live_join(join, now, copy, link),
            State::Replicate | State::Done => Ok(()),
        }
    }

    fn enter(&mut self, state: State, now: Clock) {
        log::debug!(
            "replication of recording {} of the source: {:?} -> {state:?}",
            self.request.source_recording,
            self.state
        );
        self.state = state;
        self.deadline_ns = now.ns.saturating_add(self.timeout_ns);
    }

    fn is_late(&self, now: Clock) -> bool {
        now.ns >= self.deadline_ns
    }

    /// Ends the replication if nothing more is wanted, before it is noticed that the source has
    /// gone.
    fn end_if_replicated(&mut self, copy: &Copy) {
        let Some(position) = copy.image.map(|image| image.position).or(copy.stop_position) else {
            return;
        };
        let stop = self.request.stop_position;
        if self.is_synced(position) {
            // The source ends the replay by itself.
            self.replay = None;
            self.due.push_back(Action::Signal { signal: Signal::Sync, position });
            self.end(None);
        } else if stop != NULL && position >= stop {
            self.end(None);
        }
    }

    fn replicate_descriptor<L: SourceLink + ?Sized>(
        &mut self,
        now: Clock,
        link: &mut L,
    ) -> Result<(), Failure> {
        let recording_id = self.request.source_recording.get();
        let asking = Asking::once(
            "failed to list remote recording descriptor",
            "failed to fetch remote recording descriptor",
        );
        let answer =
            self.source.ask(&asking, now, link, |control_session_id, correlation_id| {
                ListRecordingRequest { control_session_id, correlation_id, recording_id }.to_vec()
            })?;
        match answer {
            Some(SourceAnswer::Recording(source)) => self.described(*source, now),
            Some(_) => {
                let text = format!("unknown src recording id {recording_id}");
                Err(Failure::new(ErrorCode::UnknownRecording, text))
            }
            None => Ok(()),
        }
    }

    /// Decides what there is to copy.
    fn described(&mut self, source: SourceRecording, now: Clock) -> Result<(), Failure> {
        let (start, stop) = (source.start_position, source.stop_position);
        self.source_stop_position = stop;
        self.stream_id = source.stream_id;
        let is_live = self.request.live_destination.is_some();
        self.replay_session_id = match self.request.session_id {
            id if i64::from(id) != NULL && !is_live => id,
            _ => source.session_id,
        };
        let (io_max, mtu) = (self.request.file_io_max_length, source.mtu);
        if i64::from(io_max) != NULL && io_max < mtu {
            return Err(Failure::generic(format!(
                "Replication fileIoMaxLength ({io_max}) is less than than the recording mtuLength ({mtu})"
            )));
        }
        let end = match self.request.existing {
            Some((end, false)) => end,
            // New, or empty.
            _ => {
                self.replay_position = start;
                let recording = self.recording;
                self.due.push_back(Action::Describe { recording, source: Box::new(source) });
                start
            }
        };
        if is_live && stop != NULL {
            let text = "cannot live merge without active source recording";
            return Err(Failure::generic(text));
        }
        if start == stop || stop == end {
            self.due.push_back(Action::Signal { signal: Signal::Sync, position: stop });
            self.end(None);
        } else {
            self.enter(if is_live { State::SourcePosition } else { State::Extend }, now);
        }
        Ok(())
    }

    fn ask_position<L: SourceLink + ?Sized>(
        &mut self,
        attempts: u32,
        now: Clock,
        link: &mut L,
    ) -> Result<Option<i64>, Failure> {
        let recording_id = self.request.source_recording.get();
        let not_sent = "failed to send recording position request";
        let not_answered = "failed to get recording position";
        let asking = Asking { attempts, ..Asking::once(not_sent, not_answered) };
        let answer =
            self.source.ask(&asking, now, link, |control_session_id, correlation_id| {
                RecordingPositionRequest { control_session_id, correlation_id, recording_id }
                    .to_vec()
            })?;
        match answer {
            Some(SourceAnswer::Ok { relevant_id: NULL, .. }) => {
                Err(exception("cannot live merge without active source recording"))
            }
            Some(SourceAnswer::Ok { relevant_id, .. }) => Ok(Some(relevant_id)),
            Some(_) => Err(exception(not_answered)),
            None => Ok(None),
        }
    }

    fn extend(&mut self, now: Clock) -> Result<(), Failure> {
        let Some(recording) = self.recording else {
            return Err(exception("the copy is not in the catalog"));
        };
        let extension = self.request.replay.extension(self.replay_session_id);
        let (channel, destination) = extension.map_err(refused)?;
        self.destination.clone_from(&destination);
        self.enter(State::AwaitSubscription, now);
        let stream_id = self.stream_id;
        self.due.push_back(Action::Extend { recording, channel, stream_id, destination });
        Ok(())
    }

    fn request_token<L: SourceLink + ?Sized>(
        &mut self,
        now: Clock,
        link: &mut L,
    ) -> Result<(), Failure> {
        if !self.request.replay.is_response {
            self.enter(State::Replay { token: None }, now);
            return Ok(());
        }
        let recording_id = self.request.source_recording.get();
        let asking =
            Asking::once("failed to send replay token request", "failed to get replay token");
        let answer =
            self.source.ask(&asking, now, link, |control_session_id, correlation_id| {
                ReplayTokenRequest { control_session_id, correlation_id, recording_id }.to_vec()
            })?;
        if let Some(SourceAnswer::Ok { relevant_id, .. }) = answer {
            let token = ReplayToken::of(relevant_id);
            self.enter(State::ReplayRequests { token }, now);
        }
        Ok(())
    }

    /// The source finds the channel of the replay by the stream on which it is requested.
    fn add_replay_requests(
        &mut self,
        token: Option<ReplayToken>,
        now: Clock,
        copy: &Copy,
    ) -> Result<(), Failure> {
        let Some(subscription) = copy.subscription else { return Ok(()) };
        let channel = self.request.control.replay_requests(subscription.get()).map_err(refused)?;
        self.enter(State::Replay { token }, now);
        self.due.push_back(Action::AddReplayRequests { channel });
        Ok(())
    }

    fn request_replay<L: SourceLink + ?Sized>(
        &mut self,
        token: Option<ReplayToken>,
        now: Clock,
        copy: &Copy,
        link: &mut L,
    ) -> Result<(), Failure> {
        let channel = match self.replay_channel.clone() {
            Some(channel) => channel,
            None => {
                let Some(subscription) = copy.subscription else { return Ok(()) };
                let Some(address) = link.local_address(subscription) else {
                    if self.is_late(now) {
                        return Err(exception("failed to resolve subscription endpoint"));
                    }
                    return Ok(());
                };
                let (is_live, id) =
                    (self.request.live_destination.is_some(), self.replay_session_id);
                let channel = self.request.replay.replay(&address, id, is_live, subscription.get());
                self.replay_channel.insert(channel.map_err(refused)?).clone()
            }
        };
        let length = match self.request.stop_position {
            NULL => NULL,
            stop => stop.saturating_sub(self.replay_position),
        };
        let stream = match self.request.replay.is_response {
            true => RequestStream::Replay,
            false => RequestStream::Control,
        };
        let not_answered = format!("failed get acknowledgement of replay request to: {channel}");
        let asking =
            Asking { stream, ..Asking::once("failed to send replay request", &not_answered) };
        let request = ReplayRequest {
            control_session_id: 0,
            correlation_id: 0,
            recording_id: self.request.source_recording.get(),
            position: self.replay_position,
            length,
            replay_stream_id: self.stream_id,
            file_io_max_length: self.request.file_io_max_length,
            replay_token: token.map_or(NULL_ID, ReplayToken::get),
            replay_channel: channel.as_bytes(),
        };
        let answer =
            self.source.ask(&asking, now, link, |control_session_id, correlation_id| {
                ReplayRequest { control_session_id, correlation_id, ..request }.to_vec()
            })?;
        if let Some(SourceAnswer::Ok { relevant_id, .. }) = answer {
            let replay = SourceReplayId::new(relevant_id);
            self.replay = Some(replay);
            self.enter(State::AwaitImage { replay }, now);
        }
        Ok(())
    }

    fn await_image(
        &mut self,
        replay: SourceReplayId,
        now: Clock,
        copy: &Copy,
    ) -> Result<(), Failure> {
        // The lower half is the session id of the stream.
        let session_id = replay.get() as i32;
        if copy.image.is_some_and(|image| image.session_id == session_id) {
            let is_live = self.request.live_destination.is_some();
            self.enter(if is_live { State::Catchup } else { State::Replicate }, now);
        } else if self.is_late(now) {
            let text = format!("failed get replay image for sessionId={session_id}");
            return Err(exception(&text));
        }
        Ok(())
    }

    fn attempt_live_join<L: SourceLink + ?Sized>(
        &mut self,
        mut join: LiveJoin,
        now: Clock,
        copy: &Copy,
        link: &mut L,
    ) -> Result<(), Failure> {
        let Some(image) = copy.image.filter(|_| !join.is_counting) else { return Ok(()) };
        if let Some(count) = join.transports.take() {
            self.state = State::AttemptLiveJoin(join);
            if let Some(destination) = self.destination.take_if(|_| count >= 2) {
                let position = image.position;
                self.due.push_back(Action::Merge { destination, position });
                self.end(None);
            }
            return Ok(());
        }
        let Some(position) = self.ask_position(POSITION_ATTEMPTS, now, link)? else {
            return Ok(());
        };
        self.source_position = position;
        let behind = position.saturating_sub(image.position);
        let window = i64::from(image.term_length / 4).min(LIVE_ADD_MAX_WINDOW);
        if join.is_added {
            join.is_counting = behind <= 0;
            if join.is_counting {
                self.due.push_back(Action::CountTransports);
            }
        } else if behind <= window {
            let live = self.request.live_destination.clone().unwrap_or_default();
            join.is_added = true;
            self.due.push_back(Action::AddDestination(live));
        }
        self.state = State::AttemptLiveJoin(join);
        Ok(())
    }

    /// Ends the session with the source, and the replay.
    pub(crate) fn close<L: SourceLink + ?Sized>(&mut self, link: &mut L) {
        self.state = State::Done;
        let stop = self.replay.take().map(|replay| {
            let replay_session_id = replay.get();
            move |control_session_id, correlation_id| {
                StopReplayRequest { control_session_id, correlation_id, replay_session_id }.to_vec()
            }
        });
        self.source.close(link, stop);
    }
}

fn refused(error: ChannelError) -> Failure {
    exception(&error.to_string())
}
