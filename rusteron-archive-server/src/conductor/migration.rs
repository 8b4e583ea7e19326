//! Requests to migrate segments: which recordings can be joined.

use crate::catalog::{Descriptor, Migration};
use crate::conductor::Conductor;
use crate::conductor::deletion::check_order;
use crate::conductor::effect::{Clock, Failure, Outside, RecordingId};
use crate::conductor::sessions::Requester;
use crate::control::responses::Answer;
use crate::protocol::error_code::ErrorCode;
use crate::segment::Geometry;
use crate::segment::cut::is_empty;

impl Conductor {
    /// Moves all segments of a recording to the start or the end of another one. The answer is their number.
    pub(super) fn migrate_segments(
        &mut self,
        requester: Requester,
        source: RecordingId,
        destination: RecordingId,
        now: Clock,
        out: &mut dyn Outside,
    ) -> Result<Option<Answer>, Failure> {
        let descriptors = [self.settled(source)?, self.settled(destination)?];
        let [from, to] = &descriptors;
        if from.is_active() {
            return Err(Failure::generic(format!("recording {source} is still active")));
        }
        check_streams(from, to)?;
        descriptors.iter().try_for_each(check_order)?;
        let join = join_position(from, to)?;
        check_aligned("src", from, join)?;
        check_aligned("dst", to, join)?;
        // Java does not ask. A replay would open the source's files by names under which others can be recorded.
        if self.replays.has_recording(source) {
            let text = format!("cannot migrate recording with active replay {source}");
            return Err(Failure::new(ErrorCode::ActiveRecording, text));
        }
        self.check_deletion(source)?;
        self.check_deletion(destination)?;
        let migration = Migration {
            source,
            destination,
            source_start: from.start_position,
            source_stop: from.stop_position,
            join,
        };
        let moved = self.check_segments(&migration, &from.geometry(), &to.geometry())?;
        // The segment behind a full one is empty, and the other recording has its own.
        let stop = from.stop_position;
        let mut empty = self.segments_of(&from.geometry(), stop..=stop)?;
        empty.retain(|file| is_empty(&*self.storage, &file.name).unwrap_or(false));
        if moved > 0 {
            self.catalog.migrate(&*self.storage, &migration).map_err(Failure::generic)?;
        }
        self.begin_deletion(requester, source, moved, (empty, Vec::new()), now, out);
        Ok(None)
    }

    /// Checks that each segment is there, and has no name that is in use. Returns their number.
    fn check_segments(
        &self,
        migration: &Migration,
        source: &Geometry,
        destination: &Geometry,
    ) -> Result<i64, Failure> {
        let has = |name: &str| {
            let length = self.storage.length(name);
            length
                .map(|length| length.is_some())
                .map_err(|error| Failure::generic(format!("{}: {error}", self.storage.path(name))))
        };
        let mut count = 0;
        for base in migration.bases(source) {
            let (from, to) = (source.name(base), destination.name(base));
            if !has(&from)? {
                let text = format!("missing src segment file {}", self.storage.path(&from));
                return Err(Failure::generic(text));
            }
            if has(&to)? {
                let text = format!("preexisting dst segment file {}", self.storage.path(&to));
                return Err(Failure::generic(text));
            }
            count += 1;
        }
        Ok(count)
    }
}

fn check_streams(source: &Descriptor, destination: &Descriptor) -> Result<(), Failure> {
    let fields = [
        ("SegmentFileLength", source.segment_length, destination.segment_length),
        ("TermBufferLength", source.term_length, destination.term_length),
        ("InitialTermId", source.initial_term_id, destination.initial_term_id),
        ("StreamId", source.stream_id, destination.stream_id),
        ("MtuLength", source.mtu, destination.mtu),
    ];
    for (name, source, destination) in fields {
        if source != destination {
            return Err(invalid(format!("src{name}={source} dst{name}={destination}")));
        }
    }
    Ok(())
}

fn join_position(source: &Descriptor, destination: &Descriptor) -> Result<i64, Failure> {
    if source.stop_position == destination.start_position {
        Ok(source.stop_position)
    } else if source.start_position == destination.stop_position {
        Ok(source.start_position)
    } else {
        Err(invalid(format!(
            "src and dst are not contiguous srcStartPosition={} srcStopPosition={} dstStartPosition={} \
             dstStopPosition={}",
            source.start_position,
            source.stop_position,
            destination.start_position,
            destination.stop_position
        )))
    }
}

fn check_aligned(label: &str, descriptor: &Descriptor, join: i64) -> Result<(), Failure> {
    if descriptor.geometry().base(join) == join {
        return Ok(());
    }
    let Descriptor { start_position, stop_position, term_length, segment_length, .. } = *descriptor;
    Err(invalid(format!(
        "join position is not on segment boundary of {label} recording seamPosition={join} \
         startPosition={start_position} stopPosition={stop_position} termBufferLength={term_length} \
         segmentFileLength={segment_length}"
    )))
}

fn invalid(text: String) -> Failure {
    Failure::generic(format!("invalid migrate: {text}"))
}
