//! The message path in Rust against Aeron's C functions: the same operations on two drivers have the
//! same results, and leave the same bytes in the log buffers.

mod support;

use std::ffi::c_void;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::slice;

use rusteron_client::{Aeron, ExclusivePublication, Header, Subscription};
use rusteron_media_driver::MediaDriver;
use rusteron_sys as sys;
use support::{Random, await_some, await_that, connect, launch};

const TERM_LENGTH: i64 = 64 * 1024;
const HEADER_LENGTH: i64 = 32;

/// Begins shortly before the end of a term with a high id, so that ids wrap around on the way.
const CHANNEL: &str = "aeron:ipc?term-length=64k|session-id=77|\
     init-term-id=2147483646|term-id=2147483647|term-offset=64000";

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
    fn offer_in_rust(&mut self, message: &[u8]) -> i64 {
        use rusteron_client::OfferError::*;
        await_some("an answer", || match self.publication.offer(message) {
            Ok(position) => Some(position),
            Err(BackPressured) => None,
            Err(AdminAction) => Some(sys::AERON_PUBLICATION_ADMIN_ACTION.into()),
            Err(MessageTooLong { .. }) => Some(sys::AERON_PUBLICATION_ERROR.into()),
            Err(error) => panic!("{error}"),
        })
    }

    /// The same through C.
    fn offer_in_c(&mut self, message: &[u8]) -> i64 {
        await_some("an answer", || {
            // SAFETY: the publication is live and used by this thread only; the message is readable.
            let result = unsafe {
                sys::aeron_exclusive_publication_offer(
                    self.publication.as_ptr(),
                    message.as_ptr(),
                    message.len(),
                    None,
                    std::ptr::null_mut(),
                )
            };
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

    /// The bytes of the log from one position to another of the same term. Nobody has read them yet,
    /// so that the driver has not cleaned any.
    fn log(&self, from: i64, to: i64) -> Vec<u8> {
        let id = self.publication.constants().registration_id;
        let name = format!("publications/{id}.logbuffer");
        let mut file = File::open(self.driver.aeron_dir().join(name)).expect("the log buffer");
        let term = from / TERM_LENGTH % 3;
        let start = term * TERM_LENGTH + from % TERM_LENGTH;
        file.seek(SeekFrom::Start(start as u64)).expect("a place in the log buffer");
        let mut bytes = vec![0; (to - from) as usize];
        file.read_exact(&mut bytes).expect("the frames");
        bytes
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
    let mut values = std::mem::MaybeUninit::<sys::aeron_header_values_t>::uninit();
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
fn random_messages_through_both_paths_leave_the_same_log_and_read_the_same() {
    let (mut rust, mut c) = (Side::new(), Side::new());
    let max_payload = rust.publication.constants().max_payload_length;
    let max_message = rust.publication.constants().max_message_length;
    assert_eq!(rust.publication.constants().session_id, c.publication.constants().session_id);
    let mut random = Random::new(42);

    let (mut rust_read, mut c_read) = (Vec::new(), Vec::new());
    let (mut admin_actions, mut bytes_compared) = (0, 0);
    for round in 0..1_500 {
        // Mostly short, sometimes around the length of a fragment, of a message, and beyond.
        let length = match random.below(12) {
            0 => max_payload - 2 + random.below(5),
            1 => max_message - 2 + random.below(5),
            2 => random.below(max_message),
            3 => 0,
            _ => random.below(200),
        };
        let message = random.bytes(length);
        let before = rust.publication.position().expect("open");
        let (in_rust, in_c) = (rust.offer_in_rust(&message), c.offer_in_c(&message));
        assert_eq!(in_rust, in_c, "round {round}, {length} bytes");
        assert_eq!(rust.publication.position(), c.publication.position(), "round {round}");

        let at_term_end = in_rust == sys::AERON_PUBLICATION_ADMIN_ACTION.into();
        admin_actions += usize::from(at_term_end);
        // Behind the header of padding lies whatever was there.
        let has_padding = at_term_end && before % TERM_LENGTH != 0;
        let written = if has_padding { before + HEADER_LENGTH } else { before.max(in_rust) };
        bytes_compared += written - before;
        assert!(
            rust.log(before, written) == c.log(before, written),
            "round {round}, {length} bytes: other frames from {before} to {written}"
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
        await_that("a place", || {
            let result = if random.below(2) == 0 {
                side.offer_in_rust(&message)
            } else {
                side.offer_in_c(&message)
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
