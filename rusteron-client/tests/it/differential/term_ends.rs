//! Messages of every critical length at every offset near the end of a term, through Rust and through C.

use super::operations::{Contender, HEADER_LENGTH, Operation, Stream, Subject, TERM_LENGTH};
use rusteron_client::{ExclusivePublication, Publication};
use rusteron_sys as sys;
use rusteron_test_support::Random;

/// Frames begin at multiples of this.
const ALIGNMENT: usize = 32;

/// Moves a contender to `left` bytes before the end of a term, and reads everything before.
fn approach<P: Subject>(contender: &mut Contender<P>, left: usize, max_payload: usize) {
    let mut fragments = Vec::new();
    loop {
        while contender.poll_in_rust(100, &mut fragments) > 0 {}
        fragments.clear();
        let position = contender.publication.position().expect("open");
        let distance = (-(position + left as i64)).rem_euclid(TERM_LENGTH) as usize;
        if distance == 0 {
            break;
        }
        let length = (distance - HEADER_LENGTH as usize).min(max_payload);
        contender.perform_in_rust(&Operation::Offer(vec![0xee; length]));
    }
}

/// The lengths of messages whose frame fits, just fits or just does not fit into the rest of a term, and of
/// fragmented messages that fit.
fn lengths(left: usize, max_payload: usize) -> Vec<usize> {
    let header = HEADER_LENGTH as usize;
    let fits = left.saturating_sub(header);
    // As many full fragments as remain in the term, and the last fragment.
    let (full, rest) = (left / (max_payload + header), left % (max_payload + header));
    let fragmented = full * max_payload + rest.saturating_sub(header);
    let mut lengths: Vec<usize> = [fits, fragmented]
        .into_iter()
        .flat_map(|length| {
            [length.saturating_sub(ALIGNMENT), length.saturating_sub(1), length, length + 1]
        })
        .collect();
    lengths.push(0);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// All of the operations that write a message, in turn.
fn operation(turn: usize, message: Vec<u8>, max_payload: usize) -> Operation {
    let middle = message.len() / 2;
    match turn % 5 {
        1 if message.len() <= max_payload => Operation::Claim {
            message,
            flags: 0xc0,
            reserved_value: -1,
            is_committed: turn % 2 == 0,
        },
        2 => Operation::Parts(vec![message[..middle].to_vec(), message[middle..].to_vec()]),
        3 => Operation::ReservedValues(message),
        4 => Operation::Batch(vec![message]),
        _ => Operation::Offer(message),
    }
}

fn sweep<P: Subject>() {
    let (mut rust, mut c) =
        (Contender::<P>::new(Stream::DEFAULT), Contender::<P>::new(Stream::DEFAULT));
    let max_payload = rust.publication.max_payload_length();
    let mut random = Random::new(11);
    let (mut turn, mut accepted, mut rejected) = (0, 0, 0);
    // From the very end of the term to where two fragments fit.
    for left in (0..=2 * (max_payload + HEADER_LENGTH as usize)).step_by(ALIGNMENT) {
        for length in lengths(left, max_payload) {
            approach(&mut rust, left, max_payload);
            approach(&mut c, left, max_payload);
            let operation = operation(turn, random.bytes(length), max_payload);
            turn += 1;
            let what = || format!("{operation}, {left} before the end of a term");

            let before = rust.publication.position().expect("open");
            assert_eq!(c.publication.position(), Ok(before));
            let (in_rust, in_c) = (rust.perform_in_rust(&operation), c.perform_in_c(&operation));
            assert_eq!(in_rust, in_c, "{}", what());
            let after = rust.publication.position().expect("open");
            assert_eq!(c.publication.position(), Ok(after), "{}", what());
            assert!(rust.frames(before, after) == c.frames(before, after), "{}", what());
            if in_rust > 0 {
                accepted += 1;
            } else {
                assert_eq!(in_rust, i64::from(sys::AERON_PUBLICATION_ADMIN_ACTION), "{}", what());
                rejected += 1;
            }

            let (mut by_rust, mut by_c) = (Vec::new(), Vec::new());
            for _ in 0..4 {
                let count = rust.poll_in_rust(10, &mut by_rust);
                assert_eq!(count, c.poll_in_c(10, &mut by_c), "{}", what());
            }
            assert!(by_rust == by_c, "{}: other fragments", what());
        }
    }
    assert!(accepted > 200 && rejected > 100, "{accepted} were accepted, {rejected} rejected");
}

#[test]
fn exclusive_critical_lengths_and_offsets() {
    sweep::<ExclusivePublication>();
}

#[test]
fn shared_critical_lengths_and_offsets() {
    sweep::<Publication>();
}
