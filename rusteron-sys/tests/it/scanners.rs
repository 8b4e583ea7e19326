//! The shim's scanners return what a walk over single frames returns.

use std::ffi::c_void;
use std::fs;
use std::path::Path;

use proptest::prelude::*;

unsafe extern "C" {
    fn aeron_term_scanner_scan_for_availability(
        buffer: *const u8,
        term_length_left: i32,
        max_length: i32,
        padding: *mut i32,
    ) -> i32;

    fn aeron_term_gap_scanner_scan_for_gap(
        buffer: *const u8,
        term_id: i32,
        term_offset: i32,
        limit_offset: i32,
        on_gap_detected: extern "C" fn(*mut c_void, i32, i32, usize),
        clientd: *mut c_void,
    ) -> i32;
}

const HEADER_LENGTH: i32 = 32;
const TYPE_PAD: u16 = 0;
const TYPE_DATA: u16 = 1;
const TERM_ID: i32 = 7;

/// The term that the tests scan. A gap has a length of 0 in each of its headers.
#[repr(C, align(64))]
struct Term([u8; 16 * 1024]);

#[derive(Clone, Copy, Debug)]
enum Piece {
    Data(i32),
    Pad(i32),
    Gap,
}

/// Equal lengths often follow each other, as the scanners expect.
fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = prop_oneof![
        8 => (HEADER_LENGTH..600).prop_map(Piece::Data),
        8 => Just(Piece::Data(64)),
        1 => (HEADER_LENGTH..600).prop_map(Piece::Pad),
        1 => Just(Piece::Pad(HEADER_LENGTH)),
        2 => Just(Piece::Pad(64)),
        1 => Just(Piece::Gap),
    ];
    let runs = prop::collection::vec((piece, 1_usize..30), 1..12);
    runs.prop_map(|runs| {
        runs.into_iter().flat_map(|(piece, count)| vec![piece; count]).collect::<Vec<_>>()
    })
}

fn aligned(length: i32) -> i32 {
    (length + HEADER_LENGTH - 1) / HEADER_LENGTH * HEADER_LENGTH
}

/// Writes the pieces that fit, and returns the term and the end of the last piece.
fn term_of(pieces: &[Piece]) -> (Box<Term>, i32) {
    let mut term = Box::new(Term([0; 16 * 1024]));
    let mut end = 0;
    for piece in pieces {
        let (length, frame_type) = match *piece {
            Piece::Data(length) => (length, TYPE_DATA),
            Piece::Pad(length) => (length, TYPE_PAD),
            Piece::Gap => (0, TYPE_DATA),
        };
        let at = usize::try_from(end).unwrap();
        let next = end + aligned(length.max(HEADER_LENGTH));
        if usize::try_from(next).unwrap() > term.0.len() {
            break;
        }
        term.0[at..at + 4].copy_from_slice(&length.to_ne_bytes());
        term.0[at + 6..at + 8].copy_from_slice(&frame_type.to_ne_bytes());
        end = next;
    }
    (term, end)
}

fn frame_length(term: &Term, offset: i32) -> i32 {
    let at = usize::try_from(offset).unwrap();
    i32::from_ne_bytes(term.0[at..at + 4].try_into().unwrap())
}

fn is_padding(term: &Term, offset: i32) -> bool {
    let at = usize::try_from(offset).unwrap();
    u16::from_ne_bytes(term.0[at + 6..at + 8].try_into().unwrap()) == TYPE_PAD
}

/// Returns available bytes and padding, by one frame at a time.
fn expected_available(term: &Term, end: i32, left: i32, max_length: i32) -> (i32, i32) {
    let limit = left.min(max_length);
    let mut available = 0;
    while available < limit && available < end {
        let length = aligned(frame_length(term, available));
        if length == 0 {
            break;
        }
        let is_padding = is_padding(term, available);
        if is_padding && available + length > left {
            break;
        }
        let sent = if is_padding { HEADER_LENGTH } else { length };
        if available + sent > limit {
            return (if available == 0 { -sent } else { available }, 0);
        }
        available += sent;
        if sent < length {
            return (available, length - sent);
        }
    }
    (available, 0)
}

fn available(term: &Term, term_length_left: i32, max_length: i32) -> (i32, i32) {
    let mut padding = -1;
    // SAFETY: the scan reads headers that begin below both lengths, at multiples of 32. The term is as long as the
    // greater of the two, and its own length is a multiple of 32.
    let available = unsafe {
        aeron_term_scanner_scan_for_availability(
            term.0.as_ptr(),
            term_length_left,
            max_length,
            &raw mut padding,
        )
    };
    (available, padding)
}

/// Returns the offset and the length of the first gap, by one frame at a time.
fn expected_gap(term: &Term, begin: i32, limit: i32) -> Option<(i32, usize)> {
    let mut begin = begin;
    while begin < limit && frame_length(term, begin) != 0 {
        begin += aligned(frame_length(term, begin));
    }
    let mut end = begin;
    while end < limit && frame_length(term, end) == 0 {
        end += HEADER_LENGTH;
    }
    (begin < limit).then(|| (begin, usize::try_from(end - begin).unwrap()))
}

extern "C" fn keep_gap(gap: *mut c_void, term_id: i32, offset: i32, length: usize) {
    // SAFETY: `gap` passes a pointer to its own variable, which lives longer than the scan and which nothing else uses
    // meanwhile.
    unsafe { *gap.cast::<Option<(i32, i32, usize)>>() = Some((term_id, offset, length)) };
}

/// Returns what the scan returns, and what it hands to its callback.
fn gap(term: &Term, begin: i32, limit: i32) -> (i32, Option<(i32, i32, usize)>) {
    let mut gap = None;
    // SAFETY: the scan stays below the limit, which is not beyond the term. `keep_gap` gets a pointer of its own type.
    let offset = unsafe {
        aeron_term_gap_scanner_scan_for_gap(
            term.0.as_ptr(),
            TERM_ID,
            begin,
            limit,
            keep_gap,
            (&raw mut gap).cast(),
        )
    };
    (offset, gap)
}

proptest! {
    #[test]
    fn available_bytes_are_whole_frames(pieces in pieces(), length in 1_i32..4096) {
        let (term, end) = term_of(&pieces);
        let left = i32::try_from(term.0.len()).unwrap();
        for (left, max_length) in [(left, length), (length, left)] {
            prop_assert_eq!(
                available(&term, left, max_length),
                expected_available(&term, end, left, max_length)
            );
        }
    }

    #[test]
    fn first_gap_is_found(pieces in pieces(), frames in 0_usize..40, length in 1_i32..512) {
        let (term, end) = term_of(&pieces);
        let length_of = |offset| aligned(frame_length(&term, offset).max(HEADER_LENGTH));
        let begin = (0..frames).fold(0, |offset, _| {
            let next = offset + length_of(offset);
            if next < end { next } else { offset }
        });
        let limit = end.min(begin + length * HEADER_LENGTH);
        let (offset, gap) = gap(&term, begin, limit);
        let expected = expected_gap(&term, begin, limit);
        prop_assert_eq!(gap, expected.map(|(offset, length)| (TERM_ID, offset, length)));
        match expected {
            Some((begin, _)) => prop_assert_eq!(offset, begin),
            None => prop_assert!(offset >= limit),
        }
    }
}

/// Lengths whose sums wrap, in C or in the scanners' callers.
const IMPOSSIBLE: [i32; 3] = [i32::MAX, 0x7fff_ffe1, 0x7fff_ffe0];

#[test]
fn impossible_length_is_no_frame() {
    for length in IMPOSSIBLE {
        let (mut term, _) = term_of(&[Piece::Data(64), Piece::Pad(64)]);
        term.0[64..68].copy_from_slice(&length.to_ne_bytes());
        assert_eq!(available(&term, 16 * 1024, 1408), (64, 0), "padding of {length}");
        assert_eq!(gap(&term, 0, 128), (64, Some((TERM_ID, 64, 64))), "padding of {length}");
    }
}

#[test]
fn impossible_length_of_data_is_not_sent() {
    for length in IMPOSSIBLE {
        let (mut term, _) = term_of(&[Piece::Data(64)]);
        term.0[..4].copy_from_slice(&length.to_ne_bytes());
        let (available, padding) = available(&term, 16 * 1024, 1408);
        assert!(available <= 0, "{available} of {length}");
        assert_eq!(padding, 0);
    }
}

/// A change of Aeron's scanners has to be carried over to the shim's. Then this test needs the other sums.
#[test]
fn replaced_headers_are_known() {
    let dir = Path::new(env!("RUSTERON_AERON_SOURCE")).join("aeron-client/src/main/c/concurrent");
    let sums = ["aeron_term_scanner.h", "aeron_term_gap_scanner.h"].map(|name| {
        let text = fs::read_to_string(dir.join(name)).unwrap();
        let code = text.split_once("#ifndef").unwrap().1;
        let bytes = code.split_whitespace().flat_map(str::bytes);
        let sum = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{sum:#x}")
    });
    assert_eq!(sums, ["0x4547a7069b447b31", "0x41d490474781b848"]);
}
