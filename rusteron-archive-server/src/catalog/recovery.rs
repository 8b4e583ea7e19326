//! Decisions about the end of a recording that a killed archive has left active.

use std::fmt;
use std::time::Duration;

use crate::catalog::CatalogError;
use crate::catalog::descriptor::Descriptor;
use crate::ids::RecordingId;
use crate::segment::Geometry;
use crate::segment::cut::keep_behind;
use crate::segment::scan::{self, Evidence, Found, ScanError, Tail};
use crate::storage::{Storage, SyncLevel};

/// Segments that were complete so long before the last one was changed have been written back: operating systems do it
/// within a minute.
const WRITTEN_BACK: Duration = Duration::from_secs(600);

/// Finds the end of a recording that a killed archive has left active. Its segments are synced at
/// `level`. A doubtful frame behind the end was announced only if the archive's position is that of
/// an earlier copy than the segments are.
///
/// # Errors
/// [`Recovery`](CatalogError::Recovery) or [`Gap`](CatalogError::Gap) if the recording's files do
/// not tell its end.
pub(super) fn find_end(
    storage: &dyn Storage,
    descriptor: &Descriptor,
    highest: Option<i64>,
    evidence: Evidence,
    level: SyncLevel,
) -> Result<Found, CatalogError> {
    let geometry = descriptor.geometry();
    let found = scan::find_end(storage, &geometry, highest, evidence)
        .map_err(unknown_end(descriptor.recording_id))?;
    let found = decide(found, evidence);
    check_tail(descriptor, &found, evidence)?;
    if level == SyncLevel::None && evidence.position.is_none() {
        check_earlier(storage, &geometry, &found, evidence)?;
    }
    Ok(found)
}

/// Returns the conversion of errors of a scan for a recording's end.
fn unknown_end(recording: RecordingId) -> impl Fn(ScanError) -> CatalogError {
    move |error| CatalogError::Recovery { recording, reason: error.to_string() }
}

/// Decides about a doubtful frame by the position that the recording had when the archive was
/// killed, if that is known. A position that includes the frame was stored after all of it was
/// written; one that does not was never announced, unless the position is that of an earlier copy.
pub(crate) fn decide(found: Found, evidence: Evidence) -> Found {
    match (found.tail, evidence.position) {
        (Tail::Doubtful { end }, Some(position)) if position >= end => {
            Found { end, tail: Tail::Clean, ..found }
        }
        (Tail::Doubtful { .. }, Some(position))
            if position <= found.end && evidence.is_original =>
        {
            Found { tail: Tail::Torn, ..found }
        }
        _ => found,
    }
}

/// Refuses an end that only an operator can decide on.
fn check_tail(
    descriptor: &Descriptor,
    found: &Found,
    evidence: Evidence,
) -> Result<(), CatalogError> {
    let is_reached = evidence.position.is_some_and(|position| position <= found.end);
    let choice = match found.tail {
        Tail::Clean | Tail::Torn => return Ok(()),
        Tail::Doubtful { .. } if is_reached => return Ok(()),
        Tail::Doubtful { .. } => "truncate` or `keep",
        Tail::Damaged(_) | Tail::Lost(_) | Tail::Cut => "truncate",
    };
    let geometry = descriptor.geometry();
    let name = geometry.name(found.segment.unwrap_or(geometry.first_base()));
    let (recording, end) = (descriptor.recording_id, found.end);
    let reason = format!(
        "{name}, position {end}: {}: decide by `rusteron archive verify {recording} --repair --last-fragment`, \
         `{choice}`",
        found.tail
    );
    Err(CatalogError::Recovery { recording, reason })
}

/// Keeps a doubtful frame, and all behind it, in a file beside the segment, from which the caller
/// cuts it off.
///
/// # Errors
/// [`Recovery`](CatalogError::Recovery) if it cannot be kept.
pub(super) fn keep_doubtful(
    storage: &dyn Storage,
    descriptor: &Descriptor,
    found: Found,
    level: SyncLevel,
) -> Result<Found, CatalogError> {
    let Tail::Doubtful { .. } = found.tail else { return Ok(found) };
    let (recording, end) = (descriptor.recording_id, found.end);
    let kept = keep_behind(storage, &descriptor.geometry(), end, level).map_err(|error| {
        let reason = format!("position {end}: {}: {error}", found.tail);
        CatalogError::Recovery { recording, reason }
    })?;
    log::warn!(
        "recording {recording} ends at position {end}: {}, and nothing tells in a copy of a killed archive: what it had \
         from there on is in {kept} now",
        found.tail
    );
    Ok(Found { tail: Tail::Torn, ..found })
}

/// Refuses a recording that has a gap in a segment before its last one. Without syncs, the operating system writes pages
/// in any order, and its failure loses any of them.
///
/// Reads what was recorded in the last minutes.
fn check_earlier(
    storage: &dyn Storage,
    geometry: &Geometry,
    last: &Found,
    evidence: Evidence,
) -> Result<(), CatalogError> {
    let recording = geometry.recording_id;
    let look = |error| CatalogError::io("look for a segment")(error);
    let Some(last) = last.segment else { return Ok(()) };
    let last_change = storage.modified(&geometry.name(last)).map_err(look)?;
    let mut end = last;
    while end > geometry.first_base() {
        let base = end - i64::from(geometry.segment_length);
        let name = geometry.name(base);
        let gap = |reason: &dyn fmt::Display| CatalogError::Gap {
            recording,
            reason: format!("{name}: {reason}"),
        };
        let change = storage.modified(&name).map_err(|error| gap(&error))?;
        if last_change.duration_since(change).is_ok_and(|age| age > WRITTEN_BACK) {
            return Ok(());
        }
        let found = scan::find_end(storage, geometry, Some(base), evidence)
            .map_err(unknown_end(recording))?;
        if found.end < end {
            return Err(gap(&format!("position {}: {}", found.end, found.tail)));
        }
        end = base;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::sample::{self, GEOMETRY};
    use crate::storage::StorageFile;
    use crate::storage::faulty::FaultyStorage;

    #[test]
    fn gap_before_the_last_segment_is_refused() {
        let term = GEOMETRY.term_length;
        let geometry = Geometry { segment_length: term, ..GEOMETRY };
        let storage = FaultyStorage::default();
        for (base, term_id) in [(0, 7), (i64::from(term), 8), (2 * i64::from(term), 9)] {
            let mut file = storage.create(&geometry.name(base), term as u64).expect("a file");
            file.write_all_at(&sample::padding(term as usize, term_id, 0), 0).expect("a write");
        }
        let last = Found { end: 0, segment: Some(2 * i64::from(term)), tail: Tail::Clean };
        let evidence = Evidence { is_original: true, ..Evidence::default() };
        let check = || check_earlier(&storage, &geometry, &last, evidence);
        check().expect("whole segments");
        let cut = |file: &mut dyn StorageFile| {
            file.set_length(0).and_then(|()| file.set_length(term as u64)).expect("a hole");
        };
        cut(&mut *storage.open("3-0.rec").expect("the file"));
        let text = check().expect_err("a gap").to_string();
        assert!(
            text.contains("recording 3 lacks") && text.contains("3-0.rec: position 0"),
            "{text}"
        );
        assert!(text.contains("`rusteron archive verify 3 --repair`"), "{text}");
        storage.remove("3-65536.rec").expect("removed");
        let text = check().expect_err("a gap").to_string();
        assert!(text.contains("3-65536.rec: entity not found"), "{text}");
    }

    #[test]
    fn position_decides_about_doubtful_frame() {
        let doubtful = Found { end: 640, segment: Some(0), tail: Tail::Doubtful { end: 8_832 } };
        let torn = Found { tail: Tail::Torn, ..doubtful };
        let whole = Found { end: 8_832, tail: Tail::Clean, ..doubtful };
        for (position, expected) in [
            (None, doubtful),
            (Some(0), torn),
            (Some(640), torn),
            // No frame ends there, so the position is of other files.
            (Some(672), doubtful),
            (Some(8_832), whole),
            (Some(9_000), whole),
        ] {
            let evidence = Evidence { checksum: None, position, is_original: true };
            assert_eq!(decide(doubtful, evidence), expected, "{position:?}");
            // The position of an earlier copy decides only what it includes.
            let decided = decide(doubtful, Evidence { is_original: false, ..evidence });
            assert_eq!(decided, if expected == torn { doubtful } else { expected });
        }
        let evidence = Evidence { position: Some(640), is_original: true, ..Evidence::default() };
        for known in [torn, whole] {
            assert_eq!(decide(known, evidence), known);
        }
    }
}
