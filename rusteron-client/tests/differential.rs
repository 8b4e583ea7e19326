//! The message path in Rust against Aeron's C functions: the same operations on two drivers have the
//! same results, and leave the same bytes in the log buffers.

mod support;

use std::ffi::c_void;
use std::fmt;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::slice;

use rusteron_client::{Aeron, ExclusivePublication, Header, OfferError, Subscription};
use rusteron_media_driver::MediaDriver;
use rusteron_sys as sys;
use support::{Random, await_some, await_that, connect, launch, log_bytes};

const TERM_LENGTH: i64 = 64 * 1024;
const HEADER_LENGTH: i64 = 32;

/// Begins shortly before the end of a term with a high id, so that ids wrap around on the way.
const CHANNEL: &str = "aeron:ipc?term-length=64k|session-id=77|\
     init-term-id=2147483646|term-id=2147483647|term-offset=64000";

/// What is done on both sides.
enum Operation {
    Offer(Vec<u8>),
    Parts(Vec<Vec<u8>>),
    Claim { message: Vec<u8>, flags: u8, reserved_value: i64, is_committed: bool },
    ReservedValues(Vec<u8>),
    Padding(usize),
}

impl Operation {
    fn random(random: &mut Random, max_payload: usize, max_message: usize) -> Self {
        // Mostly short, sometimes around the length of a fragment, of a message, and beyond.
        let length = match random.below(12) {
            0 => max_payload - 2 + random.below(5),
            1 => max_message - 2 + random.below(5),
            2 => random.below(max_message),
            3 => 0,
            _ => random.below(200),
        };
        let message = random.bytes(length);
        match random.below(6) {
            0 => {
                let count = random.below(5);
                let cuts: Vec<usize> = (0..count).map(|_| random.below(length + 1)).collect();
                let mut parts = vec![message];
                for cut in cuts {
                    let last = parts.pop().expect("one part");
                    let (head, tail) = last.split_at(cut.min(last.len()));
                    parts.extend([head.to_vec(), tail.to_vec()]);
                }
                Self::Parts(parts)
            }
            1 => Self::Claim {
                message,
                flags: random.below(256) as u8,
                reserved_value: random.below(1 << 30) as i64 - (1 << 29),
                is_committed: random.below(2) == 0,
            },
            2 => Self::ReservedValues(message),
            3 => Self::Padding(length),
            _ => Self::Offer(message),
        }
    }

    /// What of the bytes that the operation leaves in the log, before a position, is its own. Behind
    /// the header of padding lies whatever was there.
    fn written(&self, before: i64, after: i64) -> i64 {
        match self {
            Self::Padding(_) if after > before => before + HEADER_LENGTH,
            _ => before.max(after),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offer(message) => write!(f, "{} bytes", message.len()),
            Self::Parts(parts) => {
                write!(f, "parts of {:?} bytes", parts.iter().map(Vec::len).collect::<Vec<_>>())
            }
            Self::Claim { message, is_committed, .. } => {
                write!(f, "a claim of {} bytes, committed: {is_committed}", message.len())
            }
            Self::ReservedValues(message) => write!(f, "{} supplied bytes", message.len()),
            Self::Padding(length) => write!(f, "padding of {length} bytes"),
        }
    }
}

/// A reserved value that depends on every byte.
fn checksum(payload: &[u8]) -> i64 {
    payload.iter().fold(payload.len() as i64, |sum, &byte| sum.wrapping_mul(31) + i64::from(byte))
}

unsafe extern "C" fn supply(_: *mut c_void, frame: *mut u8, length: usize) -> i64 {
    // SAFETY: C passes a frame of this length.
    checksum(unsafe { slice::from_raw_parts(frame.add(32), length - 32) })
}

/// A stream on a driver of its own. Fields are dropped in order: clients before the driver.
struct Side {
    publication: ExclusivePublication,
    subscription: Subscription,
    _aeron: Aeron,
    driver: MediaDriver,
}

/// What a handler is given: payload, position, flags, term offset, term id, reserved value.
type Fragment = (Vec<u8>, i64, u8, i32, i32, i64);

impl Side {
    fn new() -> Self {
        let driver = launch();
        let aeron = connect(&driver);
        let subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
        let publication = aeron.add_exclusive_publication(CHANNEL, 1001).expect("a publication");
        await_that("the connection", || publication.is_connected() && subscription.is_connected());
        Self { publication, subscription, _aeron: aeron, driver }
    }

    /// One attempt in Rust, with the result as C gives it. What depends on how far the driver has
    /// come is repeated.
    fn perform_in_rust(&mut self, operation: &Operation) -> i64 {
        use rusteron_client::OfferError::*;
        await_some("an answer", || match attempt_in_rust(&mut self.publication, operation) {
            Ok(position) => Some(position),
            Err(BackPressured) => None,
            Err(AdminAction) => Some(sys::AERON_PUBLICATION_ADMIN_ACTION.into()),
            Err(MessageTooLong { .. }) => Some(sys::AERON_PUBLICATION_ERROR.into()),
            Err(error) => panic!("{error}"),
        })
    }

    /// The same through C.
    fn perform_in_c(&mut self, operation: &Operation) -> i64 {
        await_some("an answer", || {
            // SAFETY: the publication is live and used by this thread only.
            let result = unsafe { attempt_in_c(self.publication.as_ptr(), operation) };
            (result != sys::AERON_PUBLICATION_BACK_PRESSURED.into()).then_some(result)
        })
    }

    fn poll_in_rust(&mut self, limit: usize, fragments: &mut Vec<Fragment>) -> usize {
        let handler = |message: &[u8], header: &Header<'_>| {
            fragments.push((
                message.to_vec(),
                header.position(),
                header.flags(),
                header.term_offset(),
                header.term_id(),
                header.reserved_value(),
            ));
        };
        self.subscription.poll_fragments(handler, limit).expect("open")
    }

    fn poll_in_c(&mut self, limit: usize, fragments: &mut Vec<Fragment>) -> usize {
        let clientd = std::ptr::from_mut(fragments).cast::<c_void>();
        // SAFETY: the subscription is live and used by this thread only; `clientd` is what the
        // handler expects and outlives the call.
        let count = unsafe {
            sys::aeron_subscription_poll(self.subscription.as_ptr(), Some(collect), clientd, limit)
        };
        usize::try_from(count).expect("no error")
    }

    fn log(&self, from: i64, to: i64) -> Vec<u8> {
        log_bytes(&self.driver, &self.publication, from..to)
    }
}

fn attempt_in_rust(
    publication: &mut ExclusivePublication,
    operation: &Operation,
) -> Result<i64, OfferError> {
    match operation {
        Operation::Offer(message) => publication.offer(message),
        Operation::Parts(parts) => {
            let parts: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
            publication.offer_parts(&parts)
        }
        Operation::ReservedValues(message) => {
            publication.offer_with_reserved_value(message, checksum)
        }
        Operation::Padding(length) => publication.append_padding(*length),
        Operation::Claim { message, flags, reserved_value, is_committed } => {
            let mut claim = publication.try_claim(message.len())?;
            claim.copy_from_slice(message);
            claim.set_flags(*flags);
            claim.set_reserved_value(*reserved_value);
            let position = claim.position();
            if *is_committed {
                assert_eq!(claim.commit(), Ok(position));
            } else {
                claim.abort();
            }
            Ok(position)
        }
    }
}

/// # Safety
/// The publication is live and used by this thread only.
unsafe fn attempt_in_c(
    publication: *mut sys::aeron_exclusive_publication_t,
    operation: &Operation,
) -> i64 {
    let none = std::ptr::null_mut();
    let iovec = |part: &Vec<u8>| sys::aeron_iovec_t {
        iov_base: part.as_ptr().cast_mut(),
        iov_len: part.len(),
    };
    // SAFETY: all that is passed is readable for its length; what is claimed is writable.
    unsafe {
        match operation {
            Operation::Offer(message) => sys::aeron_exclusive_publication_offer(
                publication,
                message.as_ptr(),
                message.len(),
                None,
                none,
            ),
            Operation::Parts(parts) => {
                let mut parts: Vec<_> = parts.iter().map(iovec).collect();
                let (parts, count) = (parts.as_mut_ptr(), parts.len());
                sys::aeron_exclusive_publication_offerv(publication, parts, count, None, none)
            }
            // Not C's `offer`: it passes the first frame of a message for every one of them.
            Operation::ReservedValues(message) => sys::aeron_exclusive_publication_offerv(
                publication,
                &mut iovec(message),
                1,
                Some(supply),
                none,
            ),
            Operation::Padding(length) => {
                sys::aeron_exclusive_publication_append_padding(publication, *length)
            }
            Operation::Claim { message, flags, reserved_value, is_committed } => {
                let mut claim = MaybeUninit::uninit();
                let position = sys::aeron_exclusive_publication_try_claim(
                    publication,
                    message.len(),
                    claim.as_mut_ptr(),
                );
                if position > 0 {
                    let mut claim: sys::aeron_buffer_claim_t = claim.assume_init();
                    claim.data.copy_from(message.as_ptr(), message.len());
                    claim.frame_header.add(5).write(*flags);
                    claim.frame_header.add(24).cast::<i64>().write(*reserved_value);
                    if *is_committed {
                        sys::aeron_buffer_claim_commit(&mut claim);
                    } else {
                        sys::aeron_buffer_claim_abort(&mut claim);
                    }
                }
                position
            }
        }
    }
}

unsafe extern "C" fn collect(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    header: *mut sys::aeron_header_t,
) {
    // SAFETY: `poll_in_c` passes a vector that nobody else uses meanwhile.
    let fragments = unsafe { &mut *clientd.cast::<Vec<Fragment>>() };
    let mut values = MaybeUninit::<sys::aeron_header_values_t>::uninit();
    // SAFETY: C passes a live header and a readable payload, and fills the values in.
    let (payload, position, frame) = unsafe {
        assert_eq!(sys::aeron_header_values(header, values.as_mut_ptr()), 0);
        (
            slice::from_raw_parts(buffer, length).to_vec(),
            sys::aeron_header_position(header),
            values.assume_init().frame,
        )
    };
    fragments.push((
        payload,
        position,
        frame.flags,
        frame.term_offset,
        frame.term_id,
        frame.reserved_value,
    ));
}

#[test]
fn random_operations_through_both_paths_leave_the_same_log_and_read_the_same() {
    let (mut rust, mut c) = (Side::new(), Side::new());
    let max_payload = rust.publication.constants().max_payload_length;
    let max_message = rust.publication.constants().max_message_length;
    assert_eq!(rust.publication.constants().session_id, c.publication.constants().session_id);
    let mut random = Random::new(42);

    let (mut rust_read, mut c_read) = (Vec::new(), Vec::new());
    let (mut admin_actions, mut bytes_compared) = (0, 0);
    for round in 0..2_500 {
        let operation = Operation::random(&mut random, max_payload, max_message);
        let before = rust.publication.position().expect("open");
        let (in_rust, in_c) = (rust.perform_in_rust(&operation), c.perform_in_c(&operation));
        assert_eq!(in_rust, in_c, "round {round}, {operation}");
        assert_eq!(rust.publication.position(), c.publication.position(), "round {round}");

        let at_term_end = in_rust == sys::AERON_PUBLICATION_ADMIN_ACTION.into();
        admin_actions += usize::from(at_term_end);
        let has_padding = at_term_end && before % TERM_LENGTH != 0;
        let written =
            if has_padding { before + HEADER_LENGTH } else { operation.written(before, in_rust) };
        bytes_compared += written - before;
        assert!(
            rust.log(before, written) == c.log(before, written),
            "round {round}, {operation}: other frames from {before} to {written}"
        );

        loop {
            let limit = random.below(11);
            let count = rust.poll_in_rust(limit, &mut rust_read);
            assert_eq!(count, c.poll_in_c(limit, &mut c_read), "round {round}, limit {limit}");
            if limit > 0 && count == 0 {
                break;
            }
        }
        assert!(rust_read == c_read, "round {round}: other fragments");
        rust_read.clear();
        c_read.clear();
    }
    assert!(admin_actions > 10, "only {admin_actions} terms came to an end");
    assert!(bytes_compared > 10 * TERM_LENGTH, "only {bytes_compared} bytes compared");
}

#[test]
fn both_paths_write_alternately_on_the_same_publication() {
    let mut side = Side::new();
    let mut random = Random::new(7);
    let mut read = Vec::new();
    for round in 0..1_000 {
        let length = random.below(3_000);
        let message = random.bytes(length);
        let operation = Operation::Offer(message.clone());
        await_that("a place", || {
            let result = if random.below(2) == 0 {
                side.perform_in_rust(&operation)
            } else {
                side.perform_in_c(&operation)
            };
            result > 0
        });
        let mut assembled = Vec::new();
        while assembled.len() < length || (length == 0 && read.is_empty()) {
            read.clear();
            if random.below(2) == 0 {
                side.poll_in_rust(10, &mut read);
            } else {
                side.poll_in_c(10, &mut read);
            }
            read.iter().for_each(|fragment: &Fragment| assembled.extend_from_slice(&fragment.0));
        }
        read.clear();
        assert!(assembled == message, "round {round}");
    }
}
