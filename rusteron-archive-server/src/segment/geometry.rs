//! Where the positions of a recording lie: names and offsets.

use crate::ids::RecordingId;
use crate::segment::frame::{FrameCheck, MAX_DATA_LENGTH};

const SUFFIX: &str = ".rec";
/// The end of files that are out of a recording's way: older releases of Java's archive left them
/// to be deleted, and an extension leaves what lies behind the end that the catalog has. They go
/// when their recording is truncated or purged.
pub(crate) const DELETED_SUFFIX: &str = ".del";
const MIN_LENGTH: i32 = 64 << 10;
const MAX_LENGTH: i32 = 1 << 30;

/// Returns the position of the first byte of the segment that holds a position. Segments begin at the start position's
/// term. Lengths are powers of two.
pub(crate) fn segment_base(
    start: i64,
    position: i64,
    term_length: i32,
    segment_length: i32,
) -> i64 {
    let remainder = |length: i32| i64::from(length).wrapping_sub(1);
    let first = start & !remainder(term_length);
    first.wrapping_add(position.wrapping_sub(first) & !remainder(segment_length))
}

/// Returns the name of a segment file.
pub(crate) fn segment_name(recording_id: RecordingId, base: i64) -> String {
    format!("{recording_id}-{base}{SUFFIX}")
}

/// Returns recording id and base position of a segment file, and `None` for any other name: also for numbers in another
/// form than the archive writes, such as `00-0.rec`.
pub(crate) fn parse_name(name: &str) -> Option<(RecordingId, i64)> {
    let (recording_id, base) = name.strip_suffix(SUFFIX)?.split_once('-')?;
    let number = |digits: &str| {
        let is_canonical = digits == "0" || digits.starts_with(|c: char| matches!(c, '1'..='9'));
        digits.parse::<i64>().ok().filter(|_| is_canonical)
    };
    Some((RecordingId::new(number(recording_id)?), number(base)?))
}

/// What the catalog says of a recording's frames and segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) recording_id: RecordingId,
    pub(crate) start_position: i64,
    pub(crate) initial_term_id: i32,
    pub(crate) term_length: i32,
    pub(crate) segment_length: i32,
    pub(crate) stream_id: i32,
}

impl Geometry {
    /// Checks what the other functions rely on: a catalog can be damaged.
    ///
    /// # Errors
    /// A sentence that names the field, its value and its range.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Self { start_position, term_length, segment_length, .. } = *self;
        let is_length = |length: i32| {
            (MIN_LENGTH..=MAX_LENGTH).contains(&length) && (length as u32).is_power_of_two()
        };
        if !is_length(term_length) {
            return Err(format!(
                "term length {term_length}: must be a power of two from 64k to 1g"
            ));
        }
        if !is_length(segment_length) || segment_length < term_length {
            return Err(format!(
                "segment length {segment_length}: must be a power of two from the term length {term_length} to 1g"
            ));
        }
        // So that no position of a segment exceeds 63 bits. No frame begins at a position that is
        // no multiple of the alignment, but Java's archive serves such a recording, too.
        let max = i64::MAX - 2 * i64::from(segment_length);
        if !(0..=max).contains(&start_position) {
            return Err(format!("start position {start_position}: must be from 0 to {max}"));
        }
        Ok(())
    }

    /// Returns the base of the segment that holds a position.
    pub(crate) fn base(&self, position: i64) -> i64 {
        segment_base(self.start_position, position, self.term_length, self.segment_length)
    }

    /// Returns the base of the first segment.
    pub(crate) fn first_base(&self) -> i64 {
        self.base(self.start_position)
    }

    /// Returns the name of the segment file with a base.
    pub(crate) fn name(&self, base: i64) -> String {
        segment_name(self.recording_id, base)
    }

    /// Returns a position's offset in its segment.
    pub(crate) fn offset(&self, position: i64) -> u64 {
        position.wrapping_sub(self.base(position)).unsigned_abs()
    }

    /// Returns the term id at a position.
    pub(crate) fn term_id(&self, position: i64) -> i32 {
        self.initial_term_id.wrapping_add((position / i64::from(self.term_length)) as i32)
    }

    /// Returns a position's offset in its term.
    pub(crate) fn term_offset(&self, position: i64) -> usize {
        (position % i64::from(self.term_length)) as usize
    }

    /// Returns what the headers of frames have in common.
    pub(crate) fn frame_check(&self) -> FrameCheck {
        FrameCheck {
            stream_id: self.stream_id,
            term_length: self.term_length as usize,
            max_data_length: MAX_DATA_LENGTH,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::sample;

    const TERM: i32 = 64 << 10;
    const SEGMENT: i32 = 128 << 10;

    #[test]
    fn segments_begin_at_the_term_of_the_start() {
        let base = |start, position| segment_base(start, position, TERM, SEGMENT);
        assert_eq!(base(0, 0), 0);
        assert_eq!(base(0, 131_071), 0);
        assert_eq!(base(0, 131_072), 131_072);
        // A recording that starts in the second term has segments at odd terms.
        assert_eq!(base(65_600, 65_600), 65_536);
        assert_eq!(base(65_600, 196_607), 65_536);
        assert_eq!(base(65_600, 196_608), 196_608);
    }

    #[test]
    fn names_are_recording_and_position() {
        assert_eq!(segment_name(3.into(), 65_536), "3-65536.rec");
        assert_eq!(parse_name("3-65536.rec"), Some((3.into(), 65_536)));
        let max = segment_name(i64::MAX.into(), i64::MAX);
        assert_eq!(parse_name(&max), Some((i64::MAX.into(), i64::MAX)));
    }

    #[test]
    fn other_names_are_no_segments() {
        let names = "|.rec|-.rec|0-.rec|-0.rec|0.rec|0-0|0-0.rec.del|0-0.REC|+0-0.rec|00-0.rec|0-01.rec|\
                     0-+1.rec|0--1.rec|-1-0.rec|0-1-2.rec|0-9223372036854775808.rec|0-0.rec | 0-0.rec|\
                     0-٣.rec|archive.catalog";
        for name in names.split('|') {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }

    #[test]
    fn check_names_the_wrong_field() {
        let good = sample::GEOMETRY;
        assert_eq!(good.check(), Ok(()));
        let error = Geometry { term_length: 65_537, ..good }.check().unwrap_err();
        assert_eq!(error, "term length 65537: must be a power of two from 64k to 1g");
        for term_length in [0, -1, i32::MIN, i32::MAX, 32_768] {
            Geometry { term_length, ..good }.check().unwrap_err();
        }
        for segment_length in [0, i32::MIN, TERM / 2, SEGMENT + 1] {
            Geometry { segment_length, ..good }.check().unwrap_err();
        }
        for start_position in [-32, -1, i64::MIN, i64::MAX, i64::MAX - 31] {
            Geometry { start_position, ..good }.check().unwrap_err();
        }
    }

    #[test]
    fn positions_lie_in_their_segment() {
        let mut random = rusteron_test_support::Random::new(1);
        for _ in 0..1000 {
            let term_bits = 16 + random.below(14);
            let term_length = 1 << term_bits;
            let segment_length = 1 << (term_bits + random.below(14)).min(30);
            let start_position = random.below(1 << 60) as i64;
            let geometry =
                Geometry { start_position, term_length, segment_length, ..sample::GEOMETRY };
            assert_eq!(geometry.check(), Ok(()));
            let position = start_position + random.below(1 << 40) as i64;
            let (base, first) = (geometry.base(position), geometry.first_base());
            assert_eq!(geometry.offset(position) as i64, position - base);
            assert!((base..base + i64::from(segment_length)).contains(&position), "{geometry:?}");
            assert_eq!((base - first) % i64::from(segment_length), 0, "{geometry:?}");
            assert!(first % i64::from(term_length) == 0 && first <= start_position);
            assert!(start_position - first < i64::from(term_length), "{geometry:?}");
        }
    }

    #[test]
    fn base_takes_any_numbers() {
        let all = [i64::MIN, -1, 0, 1, i64::MAX];
        let lengths = [i32::MIN, -1, 0, 1, TERM, i32::MAX];
        for (start, position) in all.iter().flat_map(|&it| all.map(|other| (it, other))) {
            for (term, segment) in lengths.iter().flat_map(|&it| lengths.map(|other| (it, other))) {
                segment_base(start, position, term, segment);
            }
        }
    }
}
