//! Which recordings can be joined by a migration.

use crate::catalog::{Descriptor, Migration};
use crate::conductor::deletions::check_order;
use crate::conductor::effect::Failure;
use crate::storage::Storage;

/// Returns how a recording can be joined to another one, whose segments continue or precede it.
pub(super) fn plan(source: &Descriptor, destination: &Descriptor) -> Result<Migration, Failure> {
    if source.is_active() {
        let text = format!("recording {} is still active", source.recording_id);
        return Err(Failure::generic(text));
    }
    check_streams(source, destination)?;
    check_order(source)?;
    check_order(destination)?;
    let join = join_position(source, destination)?;
    check_aligned("src", source, join)?;
    check_aligned("dst", destination, join)?;
    Ok(Migration {
        source: source.recording_id,
        destination: destination.recording_id,
        source_start: source.start_position,
        source_stop: source.stop_position,
        join,
    })
}

/// Checks that each segment is there, and that no file has the name that it is to get. Returns the
/// number of segments.
pub(super) fn check_files(
    storage: &dyn Storage,
    migration: &Migration,
    source: &Descriptor,
    destination: &Descriptor,
) -> Result<i64, Failure> {
    let (source, destination) = (source.geometry(), destination.geometry());
    let has = |name: &str| {
        let length = storage.length(name);
        length
            .map(|length| length.is_some())
            .map_err(|error| Failure::generic(format!("{}: {error}", storage.path(name))))
    };
    let mut count = 0;
    for base in migration.bases(&source) {
        let (from, to) = (source.name(base), destination.name(base));
        if !has(&from)? {
            let text = format!("missing src segment file {}", storage.path(&from));
            return Err(Failure::generic(text));
        }
        if has(&to)? {
            let text = format!("preexisting dst segment file {}", storage.path(&to));
            return Err(Failure::generic(text));
        }
        count += 1;
    }
    Ok(count)
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
