//! The state machine of one recording: from the blocks of an image to segment files.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rusteron_client::Image;

use crate::conductor::effect::{Failure, Progress, StartRecording};
use crate::protocol::error_code::ErrorCode;
use crate::recorder::BlockWriter;
use crate::recorder::syncs::Synced;
use crate::segment::Geometry;
use crate::segment::frame::{FrameCheck, FrameFault};
use crate::storage::{StorageFile, SyncLevel};

/// The stream that is recorded.
pub(crate) trait BlockSource {
    /// Passes the whole frames of the next `limit` bytes on, or padding alone, and moves past them.
    /// Returns their length: 0 if nothing has arrived, and if what was passed on may have been
    /// overwritten meanwhile, because the image does not hold up its publisher any more.
    fn poll_block(&mut self, limit: usize, handler: &mut dyn FnMut(&[u8])) -> usize;

    /// Tells whether the publisher has closed, and everything has been polled.
    fn is_end_of_stream(&self) -> bool;

    fn is_closed(&self) -> bool;
}

impl BlockSource for Image<'_> {
    fn poll_block(&mut self, limit: usize, handler: &mut dyn FnMut(&[u8])) -> usize {
        self.block_poll(|block, _, _| handler(block), limit)
    }

    fn is_end_of_stream(&self) -> bool {
        Image::is_end_of_stream(self)
    }

    fn is_closed(&self) -> bool {
        Image::is_closed(self)
    }
}

/// A recording in progress. Its outcome is a position and perhaps a failure.
#[derive(Debug)]
pub(crate) struct Recording {
    geometry: Geometry,
    /// The most bytes of a block, but for padding.
    block_limit: usize,
    /// What the stream's frames have in common.
    frames: FrameCheck,
    session_id: i32,
    /// No segment is the recording's yet.
    is_new: bool,
    segment_base: i64,
    /// Everything before this is written, synced if the settings say so, and lies in front of the
    /// end of an existing segment file.
    position: i64,
    /// A block that is written behind the position, but not announced.
    written: Option<Written>,
    /// Why the frame behind what is written does not belong to the recording, which ends before it.
    fault: Option<FrameFault>,
    progress: Arc<Progress>,
    state: State,
}

#[derive(Debug, Clone, Copy)]
struct Written {
    /// The block's length, and how much of it is in the file.
    length: usize,
    bytes: usize,
    start: Instant,
}

#[derive(Debug)]
enum State {
    Init,
    Recording(Box<dyn StorageFile>),
    /// The file is away for the sync of a block.
    Syncing,
    Stopped(Option<Failure>),
}

impl Recording {
    /// `file_io_max` bounds the bytes of one write, and is at least the MTU.
    pub(crate) fn new(start: &StartRecording, file_io_max: usize) -> Self {
        let geometry = start.geometry;
        Self {
            geometry,
            block_limit: file_io_max.min(usize::try_from(geometry.term_length).unwrap_or(0)),
            frames: FrameCheck {
                max_data_length: usize::try_from(start.mtu).unwrap_or(0),
                ..geometry.frame_check()
            },
            session_id: start.session_id,
            is_new: start.is_new,
            segment_base: geometry.base(start.join_position),
            position: start.join_position,
            written: None,
            fault: None,
            progress: Arc::clone(&start.progress),
            state: State::Init,
        }
    }

    /// Opens the segment file, or writes a block. `source` is `None` once the image has gone.
    /// Returns 0 if there was nothing to do.
    ///
    /// If the settings ask for syncs, the block belongs to the recording only after its sync:
    /// [`take_unsynced`](Self::take_unsynced), then [`synced`](Self::synced).
    pub(crate) fn write_block(
        &mut self,
        source: Option<&mut dyn BlockSource>,
        writer: &mut BlockWriter,
    ) -> usize {
        match self.state {
            State::Init => {
                if let Err(failure) = self.open(writer) {
                    self.stop(Some(failure));
                }
                1
            }
            State::Recording(_) => self.record(source, writer),
            State::Syncing | State::Stopped(_) => 0,
        }
    }

    /// Writes a block, and syncs it if the settings say so.
    #[cfg(test)]
    pub(crate) fn do_work(
        &mut self,
        source: Option<&mut dyn BlockSource>,
        writer: &mut BlockWriter,
    ) -> usize {
        let work_count = self.write_block(source, writer);
        if let Some(mut file) = self.take_unsynced() {
            let synced = file.sync(writer.sync_level()).map(|()| file);
            self.synced(synced, writer);
        }
        work_count
    }

    /// Ends the recording at the position that it has.
    pub(crate) fn abort(&mut self) {
        if !self.is_stopped() {
            let fault = self.fault.take();
            self.stop(fault.map(|fault| self.wrong_frame(fault)));
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, State::Stopped(_))
    }

    /// The position up to which everything is recorded.
    pub(crate) fn position(&self) -> i64 {
        self.position
    }

    /// Why the recording stopped before its image ended.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        match &self.state {
            State::Stopped(failure) => failure.as_ref(),
            _ => None,
        }
    }

    /// Tells replays that the position is final. Belongs after the report to the conductor, who
    /// then knows the stop position before a client can see the end of its replay.
    pub(crate) fn announce_end(&self) {
        self.progress.has_ended.store(true, Ordering::Release);
    }

    fn open(&mut self, writer: &BlockWriter) -> Result<(), Failure> {
        let file = if self.is_new {
            self.create_segment(writer)?
        } else {
            let (length, offset) = (self.segment_length() as u64, self.segment_offset());
            writer
                .open_or_create(&self.segment_name(), length, offset)
                .map_err(|error| self.failed(writer, &error, 0))?
        };
        self.state = State::Recording(file);
        Ok(())
    }

    /// Makes the segment file. One that exists is of another recording, which the catalog may have
    /// lost.
    fn create_segment(&self, writer: &BlockWriter) -> Result<Box<dyn StorageFile>, Failure> {
        let name = self.segment_name();
        writer.create(&name, self.segment_length() as u64).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                Failure::generic(format!("segment file already exists: {}", writer.path(&name)))
            } else {
                self.failed(writer, &error, 0)
            }
        })
    }

    fn record(&mut self, source: Option<&mut dyn BlockSource>, writer: &mut BlockWriter) -> usize {
        if let Some(fault) = self.fault.take() {
            self.stop(Some(self.wrong_frame(fault)));
            return 1;
        }
        let Some(source) = source else {
            log::debug!("recording {}: its image is gone", self.geometry.recording_id);
            self.stop(None);
            return 1;
        };
        let limit = self.block_limit;
        let mut written = None;
        let length =
            source.poll_block(limit, &mut |block: &[u8]| written = Some(self.write(block, writer)));
        if let Some(Err(failure)) = written {
            self.stop(Some(failure));
        } else if written.is_some() && length == 0 {
            log::debug!("recording {}: its image was lost meanwhile", self.geometry.recording_id);
            (self.written, self.fault) = (None, None);
            self.stop(None);
        } else if length > 0 {
            if writer.sync_level() == SyncLevel::None {
                self.announce(writer);
            }
        } else if source.is_end_of_stream() || source.is_closed() {
            log::debug!("recording {}: its image has ended", self.geometry.recording_id);
            self.stop(None);
        } else {
            return 0;
        }
        1
    }

    fn write(&mut self, block: &[u8], writer: &mut BlockWriter) -> Result<(), Failure> {
        let start = Instant::now();
        let offset = self.segment_offset();
        let State::Recording(file) = &mut self.state else { return Ok(()) };
        let (term_id, term_offset) =
            (self.geometry.term_id(self.position), self.geometry.term_offset(self.position));
        let (length, fault) = self.frames.check_block(block, self.session_id, term_id, term_offset);
        self.fault = fault;
        let block = &block[..length];
        if block.is_empty() {
            return Ok(());
        }
        match writer.write(file.as_mut(), block, offset) {
            Ok(bytes) => {
                self.written = Some(Written { length: block.len(), bytes, start });
                Ok(())
            }
            Err(error) => Err(self.failed(writer, &error, block.len())),
        }
    }

    /// Takes the file of a block that is written and not synced.
    pub(crate) fn take_unsynced(&mut self) -> Option<Box<dyn StorageFile>> {
        self.written?;
        match std::mem::replace(&mut self.state, State::Syncing) {
            State::Recording(file) => Some(file),
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Gives the file back after the sync, and announces the block.
    pub(crate) fn synced(&mut self, synced: Synced, writer: &mut BlockWriter) {
        match synced {
            Ok(file) => {
                self.state = State::Recording(file);
                self.announce(writer);
            }
            Err(error) => {
                let length = self.written.map_or(0, |written| written.length);
                let failure = self.failed(writer, &error, length);
                self.stop(Some(failure));
            }
        }
    }

    /// Moves the position past the block that is written.
    fn announce(&mut self, writer: &mut BlockWriter) {
        let Some(written) = self.written.take() else { return };
        writer.count(written.bytes, written.start.elapsed());
        let position = self.position + written.length as i64;
        if position >= self.segment_base + self.segment_length() {
            if let Err(failure) = self.roll_over(writer) {
                return self.stop(Some(failure));
            }
        }
        self.position = position;
        self.progress.advance(position);
    }

    /// Makes the next segment file as soon as one is full. Java's tools regard a stop position
    /// behind the last file as a fault.
    fn roll_over(&mut self, writer: &BlockWriter) -> Result<(), Failure> {
        self.segment_base += self.segment_length();
        self.state = State::Recording(self.create_segment(writer)?);
        Ok(())
    }

    fn failed(&self, writer: &BlockWriter, error: &io::Error, write_length: usize) -> Failure {
        let is_full = writer.is_full(error, write_length);
        let code = if is_full { ErrorCode::StorageSpace } else { ErrorCode::Generic };
        let name = self.segment_name();
        let help = if is_full {
            ": free space, stop its subscription, which still holds up the publisher, and extend it"
        } else {
            ""
        };
        Failure::new(code, self.stopped(&format!("{name}: {error}{help}")))
    }

    fn wrong_frame(&self, fault: FrameFault) -> Failure {
        Failure::generic(self.stopped(&format!(
            "the frame behind it is not the stream's: {fault}: find out who sends it, and stop the \
             subscription, which still holds up the publisher"
        )))
    }

    fn stopped(&self, why: &str) -> String {
        let (id, position) = (self.geometry.recording_id, self.position);
        format!("recording {id} stopped at position {position}: {why}")
    }

    fn stop(&mut self, failure: Option<Failure>) {
        self.state = State::Stopped(failure);
    }

    fn segment_name(&self) -> String {
        self.geometry.name(self.segment_base)
    }

    fn segment_length(&self) -> i64 {
        self.geometry.segment_length.into()
    }

    fn segment_offset(&self) -> u64 {
        (self.position - self.segment_base) as u64
    }
}
