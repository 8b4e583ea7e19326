//! Decisions about the end of a recording that a killed archive has left active.

use crate::catalog::CatalogError;
use crate::catalog::descriptor::Descriptor;
use crate::segment::scan::{Found, Tail};

/// Decides about a doubtful frame by the position that the recording had when the archive was killed, if that is known. A
/// position that includes the frame was stored after all of it was written; one that does not was never announced.
pub(crate) fn decide(found: Found, position: Option<i64>) -> Found {
    match (found.tail, position) {
        (Tail::Doubtful { end }, Some(position)) if position >= end => {
            Found { end, tail: Tail::Clean, ..found }
        }
        (Tail::Doubtful { .. }, Some(position)) if position <= found.end => {
            Found { tail: Tail::Torn, ..found }
        }
        _ => found,
    }
}

/// Refuses an end that only an operator can decide on.
pub(super) fn check_tail(descriptor: &Descriptor, found: &Found) -> Result<(), CatalogError> {
    let advice = match found.tail {
        Tail::Clean | Tail::Torn => return Ok(()),
        Tail::Doubtful { .. } => {
            "decide by `rusteron archive verify --repair --last-fragment`, `truncate` or `keep`"
        }
        Tail::Damaged(_) => "`rusteron archive verify --repair` excludes the recording",
    };
    let segment = found.segment.unwrap_or(descriptor.start_position);
    let name = descriptor.geometry().name(segment);
    let (recording, end) = (descriptor.recording_id, found.end);
    let reason = format!("{name}, position {end}: {}: {advice}", found.tail);
    Err(CatalogError::Recovery { recording, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(decide(doubtful, position), expected, "{position:?}");
        }
        for known in [torn, whole] {
            assert_eq!(decide(known, Some(640)), known);
        }
    }
}
