//! The I/O of a container: Aeron and the node's archive.

use std::fmt::Display;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Instant;

use rusteron_archive::{
    Archive, ArchiveError, RecordingId, RecordingPos, ReplayParams, SourceLocation,
};
use rusteron_client::{
    Aeron, ExclusivePublication, OfferError, Position, Publication, Subscription, UncheckedChannel,
};
use rusteron_core::channel::ChannelText;

use crate::service::context::ServiceContext;
use crate::service::counters::Monitor;
use crate::service::error::TerminationCause;
use crate::service::mark_file::MarkFile;
use crate::service::network::{Claim, Network, SnapshotContent};
use crate::service::snapshot_reader::{OnMessage, SnapshotSource};
use crate::service::snapshot_writer::{SnapshotError, SnapshotSink};
use crate::service::ticker::Ticker;

/// How often the archive's report about a failed recording is waited for.
const REPORT_ATTEMPTS: usize = 100;

/// The network of a container: Aeron and the node's archive.
pub(crate) struct AeronNetwork {
    publication: Publication,
    monitor: Monitor,
    pub(crate) ticker: Ticker,
    context: Arc<ServiceContext>,
    aeron: Aeron,
}

impl AeronNetwork {
    pub(crate) fn new(
        aeron: Aeron,
        ticker: Ticker,
        context: Arc<ServiceContext>,
        mark_file: Option<Arc<MarkFile>>,
    ) -> crate::error::Result<Self> {
        let monitor = Monitor::new(&aeron, &context, mark_file)?;
        let publication = aeron.add_publication(
            UncheckedChannel(context.control_channel()),
            context.consensus_module_stream_id(),
        )?;
        Ok(Self { publication, monitor, ticker, context, aeron })
    }

    pub(crate) fn aeron(&self) -> &Aeron {
        &self.aeron
    }

    pub(crate) fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// Connects to the node's archive. Each snapshot and each load has its own connection.
    fn connect_archive(
        &mut self,
        mut on_idle: impl FnMut(&mut Self) -> Result<(), TerminationCause>,
    ) -> Result<Archive, SnapshotError> {
        let context = self.context.new_archive_context();
        let context = context.map_err(|error| SnapshotError::Failed(error.to_string()))?;
        let mut connect = Archive::async_connect(&self.aeron, context)?;
        loop {
            if let Some(archive) = connect.poll()? {
                return Ok(archive);
            }
            self.ticker.idle(0)?;
            on_idle(self)?;
        }
    }

    /// Starts the replay of a snapshot.
    pub(crate) fn replay_snapshot(
        &mut self,
        recording_id: RecordingId,
    ) -> Result<Replay, SnapshotError> {
        // The service has not started, so that it has no background work.
        let archive = self.connect_archive(|_| Ok(()))?;
        let end = match archive.stop_position(recording_id)? {
            Some(position) => position,
            None => archive.max_recorded_position(recording_id)?,
        };
        let channel = self.context.replay_channel();
        let stream_id = self.context.replay_stream_id();
        let unchecked = UncheckedChannel(channel);
        let replay_id =
            archive.start_replay(recording_id, unchecked, stream_id, ReplayParams::new())?;
        let session_id = replay_id.image_session_id();
        let channel = ChannelText::new(channel).with("session-id", session_id).to_string();
        let subscription = self.aeron.add_subscription(UncheckedChannel(&channel), stream_id)?;
        Ok(Replay {
            subscription,
            session_id,
            position: None,
            end,
            recording_id,
            archive,
            ticker: self.ticker.clone(),
        })
    }

    fn record(&mut self, content: &mut dyn SnapshotContent) -> Result<RecordingId, SnapshotError> {
        let archive = self.connect_archive(|network| content.on_idle(network))?;
        let channel = self.context.snapshot_channel();
        let stream_id = self.context.snapshot_stream_id();
        let publication =
            self.aeron.add_exclusive_publication(UncheckedChannel(channel), stream_id)?;
        let session_id = publication.constants().session_id;
        let channel = ChannelText::new(channel).with("session-id", session_id).to_string();
        let unchecked = UncheckedChannel(&channel);
        let started = archive.start_recording(unchecked, stream_id, SourceLocation::Local, true);
        let recording = started
            .map_err(SnapshotError::from)
            .and_then(|_| self.await_recording(&archive, session_id, content))
            .inspect_err(|_| {
                // Without a recording whose end ends it, the subscription would stay, and count
                // against the limit.
                let _ = archive.try_stop_recording(unchecked, stream_id);
            })?;
        let ticker = self.ticker.clone();
        let mut recorded = Recorded { publication, recording, archive, ticker };
        content.write(&mut recorded)?;
        let end = recorded.publication.position().map_err(rusteron_client::Error::from)?;
        while recorded.recorded_position()? < end {
            recorded.idle()?;
            content.on_idle(self)?;
        }
        Ok(recorded.recording.recording_id())
    }

    fn await_recording(
        &mut self,
        archive: &Archive,
        session_id: i32,
        content: &mut dyn SnapshotContent,
    ) -> Result<RecordingPos, SnapshotError> {
        loop {
            let archive_id = archive.archive_id();
            match RecordingPos::find_by_session_id(&self.aeron, session_id, archive_id) {
                Some(recording) => return Ok(recording),
                None => {
                    self.ticker.idle(0)?;
                    content.on_idle(self)?;
                    archive.check_for_error_response()?;
                }
            }
        }
    }
}

impl Network for AeronNetwork {
    fn offer(&mut self, parts: &[IoSlice<'_>]) -> Result<Position, OfferError> {
        self.publication.offer_parts(parts)
    }

    fn max_message_length(&self) -> usize {
        self.publication.max_message_length()
    }

    fn max_payload_length(&self) -> usize {
        self.publication.max_payload_length()
    }

    fn try_claim(&mut self, length: usize) -> Result<Claim<'_>, OfferError> {
        self.publication.try_claim(length).map(Claim::Published)
    }

    fn idle(&mut self, work_count: usize) -> Result<(), TerminationCause> {
        self.ticker.idle(work_count)
    }

    fn add_response_publication(
        &mut self,
        channel: &str,
        stream_id: i32,
    ) -> Result<Publication, rusteron_client::Error> {
        // Shared with the consensus module, so never exclusive, and in the client's words.
        self.aeron.add_publication(UncheckedChannel(channel), stream_id)
    }

    fn record_error(&mut self, error: &dyn Display) {
        self.monitor.record_error(error);
    }

    fn record_snapshot(
        &mut self,
        content: &mut dyn SnapshotContent,
    ) -> Result<RecordingId, SnapshotError> {
        let begin = Instant::now();
        let recorded = self.record(content);
        self.monitor.record_snapshot(begin.elapsed());
        recorded
    }

    fn client_id(&self) -> i64 {
        self.aeron.client_id()
    }

    fn aeron(&self) -> Option<&Aeron> {
        Some(&self.aeron)
    }
}

impl From<ArchiveError> for SnapshotError {
    fn from(error: ArchiveError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<rusteron_client::Error> for SnapshotError {
    fn from(error: rusteron_client::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A publication that is recorded as a snapshot.
struct Recorded {
    // Before the connection, which reports the end of the recording.
    publication: ExclusivePublication,
    recording: RecordingPos,
    archive: Archive,
    ticker: Ticker,
}

impl Recorded {
    fn recorded_position(&mut self) -> Result<Position, SnapshotError> {
        if let Some(position) = self.recording.position() {
            return Ok(position);
        }
        self.check()?;
        let id = self.recording.recording_id();
        Err(SnapshotError::Failed(format!("recording {id} has stopped before its end")))
    }
}

impl SnapshotSink for Recorded {
    fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        self.publication.offer(message)
    }

    fn max_message_length(&self) -> usize {
        self.publication.max_message_length()
    }

    fn max_payload_length(&self) -> usize {
        self.publication.max_payload_length()
    }

    fn tick(&mut self) -> Result<(), SnapshotError> {
        Ok(self.ticker.tick(Instant::now()).map(drop)?)
    }

    fn idle(&mut self) -> Result<(), SnapshotError> {
        self.ticker.idle(0)?;
        self.archive.check_for_error_response()?;
        self.recorded_position().map(drop)
    }

    fn check(&mut self) -> Result<(), SnapshotError> {
        for _ in 0..REPORT_ATTEMPTS {
            self.archive.check_for_error_response()?;
            self.ticker.idle(0)?;
        }
        Ok(())
    }
}

/// The replay of a snapshot. Dropping it ends the replay.
pub(crate) struct Replay {
    subscription: Subscription,
    session_id: i32,
    /// The position up to which the replay was read. `None` until there is an image.
    position: Option<Position>,
    end: Position,
    recording_id: RecordingId,
    archive: Archive,
    ticker: Ticker,
}

impl SnapshotSource for Replay {
    fn poll(
        &mut self,
        handler: &mut OnMessage<'_>,
        fragment_limit: usize,
    ) -> Result<usize, SnapshotError> {
        let Some(mut image) = self.subscription.image_by_session_id(self.session_id) else {
            return Ok(0);
        };
        let fragments = image.controlled_poll(|message, _| handler(message), fragment_limit);
        self.position = Some(image.position());
        Ok(fragments)
    }

    fn is_at_end(&mut self) -> bool {
        self.position.is_some_and(|position| position >= self.end)
    }

    fn idle(&mut self, work_count: usize) -> Result<(), SnapshotError> {
        self.ticker.idle(work_count)?;
        if work_count > 0 {
            return Ok(());
        }
        self.archive.check_for_error_response()?;
        let Some(position) = self.position else { return Ok(()) };
        let image = self.subscription.image_by_session_id(self.session_id);
        if image.is_some_and(|image| !image.is_closed()) || self.is_at_end() {
            return Ok(());
        }
        Err(SnapshotError::Failed(format!(
            "the replay of recording {} has ended at position {position}, before {}",
            self.recording_id, self.end
        )))
    }
}
