//! Messages of every critical length at every offset near the end of a term, through Rust and
//! through C; and the end of all positions, for messages that just fit, just do not, or are shorter
//! than the rest of the last term.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};

use rusteron_client::{ExclusivePublication, OfferError, Publication};
use rusteron_sys as sys;
use rusteron_test_support::Random;

use super::operations::{Contender, HEADER_LENGTH, Operation, Stream, Subject, TERM_LENGTH};

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

/// The lengths of messages whose frame fits, just fits or just does not fit into the rest of a
/// term, and of fragmented messages that fit.
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

/// Behind the last term that there is.
const END: i64 = TERM_LENGTH << 31;
const EXCEEDED: i64 = sys::AERON_PUBLICATION_MAX_POSITION_EXCEEDED as i64;

/// Ids of first terms, after which the last one's is reached with and without wrapping around.
const INITIAL_TERM_IDS: [i32; 4] = [0, i32::MAX, i32::MIN, -1];

/// The lengths of messages that leave space for one more message, fill the term up, or are too long
/// for the term, in one frame or in several.
fn last_lengths(left: i64, max_payload: usize) -> Vec<usize> {
    let header = HEADER_LENGTH as usize;
    let left = left as usize;
    let (full, rest) = (left / (max_payload + header), left % (max_payload + header));
    let mut lengths: Vec<usize> = [left - header, full * max_payload + rest.saturating_sub(header)]
        .into_iter()
        .flat_map(|fits| [fits.saturating_sub(33), fits.saturating_sub(32), fits, fits + 1])
        .collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// All of the operations that write a message, in turn.
fn last_operation(turn: usize, message: Vec<u8>, max_payload: usize) -> Operation {
    let middle = message.len() / 2;
    match turn % 7 {
        0 if message.len() <= max_payload => claim(message, true),
        1 if message.len() <= max_payload => claim(message, false),
        2 => Operation::Parts(vec![message[..middle].to_vec(), message[middle..].to_vec()]),
        3 => Operation::ReservedValues(message),
        // The same bytes in two messages. The second can be too much.
        4 if middle > 32 => {
            Operation::Batch(vec![message[..middle].to_vec(), message[middle + 32..].to_vec()])
        }
        5 => Operation::Batch(vec![message]),
        _ => Operation::Offer(message),
    }
}

fn claim(message: Vec<u8>, is_committed: bool) -> Operation {
    Operation::Claim { message, flags: 0xc0, reserved_value: i64::MIN, is_committed }
}

/// Everything that could still write something: of no bytes, and, through C, of several fragments.
fn later_operations(can_pad: bool, max_payload: usize) -> Vec<Operation> {
    let long = vec![7; max_payload + 1];
    let mut operations = vec![
        Operation::Offer(vec![]),
        Operation::Offer(long.clone()),
        Operation::Parts(vec![vec![]]),
        Operation::Parts(vec![long.clone(), vec![]]),
        claim(vec![], true),
        Operation::ReservedValues(vec![]),
        Operation::ReservedValues(long.clone()),
        Operation::Batch(vec![vec![], vec![]]),
        Operation::Batch(vec![long, vec![]]),
    ];
    if can_pad {
        operations.push(Operation::Padding(0));
    }
    operations
}

fn until_the_end<P: Subject>() {
    let first = (Contender::<P>::new(Stream::DEFAULT), Contender::<P>::new(Stream::DEFAULT));
    let max_payload = first.0.publication.max_payload_length();
    let full = max_payload as i64 + HEADER_LENGTH;
    let mut random = Random::new(12);
    let (mut turn, mut exactly, mut with_padding) = (0, 0, 0);
    for left in [32, 64, 96, 192, full, full + 64, 2 * full] {
        for length in last_lengths(left, max_payload) {
            let stream = Stream {
                stream_id: 2_000 + turn as i32,
                initial_term_id: INITIAL_TERM_IDS[turn % INITIAL_TERM_IDS.len()],
                term_count: i32::MAX,
                term_offset: (TERM_LENGTH - left) as i32,
                ..Stream::DEFAULT
            };
            let (mut rust, mut c) = (first.0.beside(stream), first.1.beside(stream));
            let start = END - left;
            assert_eq!(rust.publication.position(), Ok(start));
            let mut next = last_operation(turn, random.bytes(length), max_payload);
            turn += 1;
            loop {
                let what = || format!("{next} of {stream:?}");
                let before = rust.publication.position().expect("open");
                let (in_rust, in_c) = (rust.perform_in_rust(&next), c.perform_in_c(&next));
                assert_eq!(in_rust, in_c, "{}", what());
                if in_rust == EXCEEDED {
                    if before < END {
                        with_padding += 1;
                    } else {
                        exactly += 1;
                    }
                    break;
                }
                assert!(in_rust > 0, "{}: {in_rust}", what());
                assert_eq!(c.publication.position(), rust.publication.position(), "{}", what());
                next = Operation::Offer(vec![]);
            }

            let frames = rust.frames(start, END);
            assert!(frames == c.frames(start, END), "other frames: {next} of {stream:?}");
            // It stays so. C's exclusive publication would write over the padding, and its shared
            // one moves the tail on for ever.
            let tails = rust.tails();
            for operation in later_operations(P::CAN_PAD, max_payload) {
                assert_eq!(rust.perform_in_rust(&operation), EXCEEDED, "{operation}, {stream:?}");
                assert_eq!(rust.publication.position(), Ok(END), "{operation}, {stream:?}");
                if !P::CAN_PAD {
                    assert_eq!(c.perform_in_c(&operation), EXCEEDED, "{operation}, {stream:?}");
                    assert_eq!(c.publication.position(), Ok(END), "{operation}, {stream:?}");
                }
            }
            assert_eq!(rust.tails(), tails, "{stream:?}");
            assert!(frames == rust.frames(start, END), "{next} of {stream:?}: overwritten");

            let (mut by_rust, mut by_c) = (Vec::new(), Vec::new());
            while rust.poll_in_rust(10, &mut by_rust) > 0 {}
            while c.poll_in_c(10, &mut by_c) > 0 {}
            assert!(by_rust == by_c, "other fragments: {next} of {stream:?}");
            let image = rust.subscription.image_at_index(0).expect("an image");
            assert_eq!(image.position(), END, "{next} of {stream:?}");
        }
    }
    assert!(exactly > 10 && with_padding > 10, "{exactly} exactly, {with_padding} with padding");
}

#[test]
fn exclusive_ends_as_in_c() {
    until_the_end::<ExclusivePublication>();
}

#[test]
fn shared_ends_as_in_c() {
    until_the_end::<Publication>();
}

/// Says that it is over, also when a test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The driver moves the limit at any time: up behind subscribers, and down when the last of them
/// leaves.
#[test]
fn padding_while_the_limit_moves() {
    const LEFT: i64 = 128;
    let stream = Stream {
        term_count: i32::MAX,
        term_offset: (TERM_LENGTH - LEFT) as i32,
        ..Stream::DEFAULT
    };
    let mut contender = Contender::<ExclusivePublication>::new(stream);
    assert_eq!(contender.publication.position(), Ok(END - LEFT));
    let mut fields = MaybeUninit::uninit();
    // SAFETY: the publication is live, and the function fills in the whole structure.
    let fields = unsafe {
        sys::rusteron_exclusive_publication_fields(
            contender.publication.as_ptr(),
            fields.as_mut_ptr(),
        );
        fields.assume_init()
    };
    // SAFETY: the addresses are the publication's, of which this test is the only user; the driver
    // only stores the limit when it has changed, and it does not: nothing is consumed.
    let (limit, tail, frame, next_frame) = unsafe {
        let next = &mut *fields.next_frame;
        let index = next.active_partition_index;
        (
            AtomicI64::from_ptr(&raw mut (*fields.position_limit).value),
            AtomicI64::from_ptr(fields.term_tail_counters.add(index)),
            AtomicI32::from_ptr(fields.term_buffers[index].add(stream.term_offset as usize).cast()),
            fields.next_frame,
        )
    };
    let raw_tail = tail.load(Ordering::Relaxed);
    let done = AtomicBool::new(false);
    let (mut padded, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut is_up = false;
            while !done.load(Ordering::Relaxed) {
                is_up = !is_up;
                limit.store(END - LEFT + i64::from(is_up), Ordering::Release);
                (0..40).for_each(|_| std::hint::spin_loop());
            }
        });
        let _end = End(&done);
        while padded < 100_000 || refused < 100_000 {
            let outcome = contender.publication.append_padding(200);
            assert_eq!(outcome, Err(OfferError::MaxPositionExceeded));
            // SAFETY: as above; the call is over.
            let offset = i64::from(unsafe { (*next_frame).term_offset });
            match frame.load(Ordering::Relaxed) {
                0 => {
                    assert_eq!(offset, TERM_LENGTH - LEFT, "the end was moved over a hole");
                    refused += 1;
                }
                length => {
                    assert_eq!(i64::from(length), LEFT);
                    assert_eq!(offset, TERM_LENGTH, "padding was written under the place");
                    padded += 1;
                    frame.store(0, Ordering::Relaxed);
                    tail.store(raw_tail, Ordering::Relaxed);
                    // SAFETY: as above.
                    unsafe { (*next_frame).term_offset = stream.term_offset };
                }
            }
        }
    });
}
