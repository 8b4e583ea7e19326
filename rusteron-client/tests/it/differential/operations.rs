//! Operations on a publication, through Rust and through C, on a driver for each of the two.

use std::ffi::c_void;
use std::fmt;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::slice;
use std::sync::Arc;

use rusteron_client::{
    Aeron, ExclusivePublication, Header, OfferError, Publication, Publisher, Subscription,
};
use rusteron_media_driver::MediaDriver;
use rusteron_sys as sys;
use rusteron_test_support::{
    Random, await_some, await_that, connect, launch, log_bytes, log_file, log_tails, udp_channel,
};

pub(crate) const TERM_LENGTH: i64 = 64 * 1024;
pub(crate) const HEADER_LENGTH: i64 = 32;

/// A stream, with everything that its frames say about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    pub(crate) media: Media,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) initial_term_id: i32,
    /// Number of terms before the first term of the stream.
    pub(crate) term_count: i32,
    pub(crate) term_offset: i32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Media {
    Ipc,
    Udp,
}

impl Stream {
    /// Begins shortly before the end of a term with a high id, so that ids wrap around on the way.
    pub(crate) const DEFAULT: Self = Self {
        media: Media::Ipc,
        session_id: 77,
        stream_id: 1001,
        initial_term_id: i32::MAX - 1,
        term_count: 1,
        term_offset: 64_000,
    };

    /// The channels of its subscription and its publication, on a driver of its own.
    pub(crate) fn channels(&self) -> (String, String) {
        let media = match self.media {
            Media::Ipc => "aeron:ipc?term-length=64k".to_owned(),
            Media::Udp => format!("{}|term-length=64k", udp_channel()),
        };
        let Self { session_id, initial_term_id, term_offset, .. } = self;
        let term_id = initial_term_id.wrapping_add(self.term_count);
        let publication = format!(
            "{media}|session-id={session_id}|init-term-id={initial_term_id}|term-id={term_id}\
             |term-offset={term_offset}"
        );
        (media, publication)
    }
}

/// An operation for both contenders.
pub(crate) enum Operation {
    Offer(Vec<u8>),
    Parts(Vec<Vec<u8>>),
    Claim {
        message: Vec<u8>,
        flags: u8,
        reserved_value: i64,
        is_committed: bool,
    },
    ReservedValues(Vec<u8>),
    Padding(usize),
    /// In C, the messages one by one.
    Batch(Vec<Vec<u8>>),
}

impl Operation {
    pub(crate) fn random(random: &mut Random, max_payload: usize, max_message: usize) -> Self {
        // Mostly short, sometimes around the length of a fragment, of a message, and beyond.
        let length = match random.below(12) {
            0 => max_payload - 2 + random.below(5),
            1 => max_message - 2 + random.below(5),
            2 => random.below(max_message),
            3 => 0,
            _ => random.below(200),
        };
        let message = random.bytes(length);
        match random.below(7) {
            6 => {
                // Of one run and of several.
                let mut messages = vec![message];
                for _ in 0..[4, 60][random.below(2)] {
                    let length = random.below(200);
                    messages.push(random.bytes(length));
                }
                Self::Batch(messages)
            }
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
                reserved_value: [0, -1, i64::MIN, i64::MAX, checksum(&random.bytes(32))]
                    [random.below(5)],
                is_committed: random.below(2) == 0,
            },
            2 => Self::ReservedValues(message),
            3 => Self::Padding(length),
            _ => Self::Offer(message),
        }
    }

    /// Returns the end of the bytes that the operation has written itself, given the positions
    /// before and after it. Padding writes only its header: old bytes remain behind that.
    pub(crate) fn written(&self, before: i64, after: i64) -> i64 {
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
            Self::Batch(messages) => {
                write!(f, "a batch of {:?}", messages.iter().map(Vec::len).collect::<Vec<_>>())
            }
        }
    }
}

/// Rust's answer as C gives it.
pub(crate) fn as_c(outcome: Result<i64, OfferError>) -> i64 {
    match outcome {
        Ok(position) => position,
        Err(OfferError::NotConnected) => sys::AERON_PUBLICATION_NOT_CONNECTED.into(),
        Err(OfferError::BackPressured) => sys::AERON_PUBLICATION_BACK_PRESSURED.into(),
        Err(OfferError::AdminAction) => sys::AERON_PUBLICATION_ADMIN_ACTION.into(),
        Err(OfferError::Closed(_)) => sys::AERON_PUBLICATION_CLOSED.into(),
        Err(OfferError::MaxPositionExceeded) => sys::AERON_PUBLICATION_MAX_POSITION_EXCEEDED.into(),
        Err(OfferError::MessageTooLong { .. }) => sys::AERON_PUBLICATION_ERROR.into(),
        Err(error) => panic!("{error}"),
    }
}

/// A reserved value that depends on every byte.
pub(crate) fn checksum(payload: &[u8]) -> i64 {
    payload.iter().fold(payload.len() as i64, |sum, &byte| sum.wrapping_mul(31) + i64::from(byte))
}

unsafe extern "C" fn supply(_: *mut c_void, frame: *mut u8, length: usize) -> i64 {
    // SAFETY: C passes a frame of this length.
    checksum(unsafe { slice::from_raw_parts(frame.add(32), length - 32) })
}

/// A publication of either kind, through Rust and through C.
pub(crate) trait Subject: Publisher + Sized {
    /// `true` if this kind of publication has a function for padding.
    const CAN_PAD: bool;

    fn add(aeron: &Aeron, channel: &str, stream_id: i32) -> Self;
    fn append_padding(&mut self, length: usize) -> Result<i64, OfferError>;

    fn c_offer(&mut self, message: &[u8]) -> i64;
    /// # Safety
    /// The parts are readable.
    unsafe fn c_offer_parts(
        &mut self,
        parts: &mut [sys::aeron_iovec_t],
        supplier: sys::aeron_reserved_value_supplier_t,
    ) -> i64;
    fn c_try_claim(&mut self, length: usize) -> (i64, MaybeUninit<sys::aeron_buffer_claim_t>);
    fn c_append_padding(&mut self, length: usize) -> i64;
}

macro_rules! subject {
    (
        $publication:ty, $add:ident, $offer:ident, $offerv:ident, $try_claim:ident, $can_pad:literal,
        |$this:ident, $length:ident| $padding:expr, $c_padding:expr
    ) => {
        impl Subject for $publication {
            const CAN_PAD: bool = $can_pad;

            fn add(aeron: &Aeron, channel: &str, stream_id: i32) -> Self {
                aeron.$add(channel, stream_id).expect("a publication")
            }

            fn append_padding(&mut $this, $length: usize) -> Result<i64, OfferError> {
                $padding
            }

            fn c_offer(&mut self, message: &[u8]) -> i64 {
                let (data, length) = (message.as_ptr(), message.len());
                // SAFETY: the publication is live and used by this thread only, here and below.
                unsafe { sys::$offer(self.as_ptr(), data, length, None, std::ptr::null_mut()) }
            }

            unsafe fn c_offer_parts(
                &mut self,
                parts: &mut [sys::aeron_iovec_t],
                supplier: sys::aeron_reserved_value_supplier_t,
            ) -> i64 {
                let none = std::ptr::null_mut();
                let (parts, count) = (parts.as_mut_ptr(), parts.len());
                // SAFETY: the caller guarantees readable parts; the rest as in `c_offer`.
                unsafe { sys::$offerv(self.as_ptr(), parts, count, supplier, none) }
            }

            fn c_try_claim(
                &mut self,
                length: usize,
            ) -> (i64, MaybeUninit<sys::aeron_buffer_claim_t>) {
                let mut claim = MaybeUninit::uninit();
                let claimed = claim.as_mut_ptr();
                // SAFETY: as in `c_offer`.
                let position = unsafe { sys::$try_claim(self.as_ptr(), length, claimed) };
                (position, claim)
            }

            fn c_append_padding(&mut $this, $length: usize) -> i64 {
                $c_padding
            }
        }
    };
}

subject! {
    ExclusivePublication, add_exclusive_publication, aeron_exclusive_publication_offer,
    aeron_exclusive_publication_offerv, aeron_exclusive_publication_try_claim, true,
    |self, length| ExclusivePublication::append_padding(self, length),
    // SAFETY: as in `c_offer`.
    unsafe { sys::aeron_exclusive_publication_append_padding(self.as_ptr(), length) }
}

subject! {
    Publication, add_publication, aeron_publication_offer, aeron_publication_offerv,
    aeron_publication_try_claim, false,
    |self, length| unreachable!("padding of {length} bytes"),
    unreachable!("padding of {length} bytes")
}

/// A stream of one contender, Rust or C, on a driver of its own. Fields are dropped in order:
/// clients before the driver.
pub(crate) struct Contender<P> {
    pub(crate) publication: P,
    pub(crate) subscription: Subscription,
    aeron: Aeron,
    driver: Arc<MediaDriver>,
}

/// The arguments of a handler's call: payload, position, flags, term offset, term id, reserved
/// value.
pub(crate) type Fragment = (Vec<u8>, i64, u8, i32, i32, i64);

impl<P: Subject> Contender<P> {
    pub(crate) fn new(stream: Stream) -> Self {
        let driver = launch();
        let aeron = connect(&driver);
        Self::on(Arc::new(driver), aeron, stream)
    }

    /// Another stream on the same driver.
    pub(crate) fn beside(&self, stream: Stream) -> Self {
        Self::on(Arc::clone(&self.driver), self.aeron.clone(), stream)
    }

    fn on(driver: Arc<MediaDriver>, aeron: Aeron, stream: Stream) -> Self {
        let (channel, publication) = stream.channels();
        let subscription =
            aeron.add_subscription(&channel, stream.stream_id).expect("a subscription");
        let publication = P::add(&aeron, &publication, stream.stream_id);
        await_that("the connection", || {
            publication.available_window().is_ok_and(|window| window > 0)
                && subscription.is_connected()
        });
        Self { publication, subscription, aeron, driver }
    }

    /// One attempt in Rust, with the result as C gives it. What depends on how far the driver has
    /// come is repeated.
    pub(crate) fn perform_in_rust(&mut self, operation: &Operation) -> i64 {
        use rusteron_client::OfferError::*;
        if let Operation::Batch(messages) = operation {
            let mut accepted = 0;
            return await_some("an answer", || {
                let batch = self.publication.offer_batch(&messages[accepted..]);
                accepted += batch.accepted;
                match batch.stopped_by {
                    None => Some(self.publication.position().expect("open")),
                    Some(BackPressured | AdminAction) => None,
                    Some(error) => Some(as_c(Err(error))),
                }
            });
        }
        await_some("an answer", || match attempt_in_rust(&mut self.publication, operation) {
            Err(BackPressured) => None,
            outcome => Some(as_c(outcome)),
        })
    }

    /// The same through C.
    pub(crate) fn perform_in_c(&mut self, operation: &Operation) -> i64 {
        const BACK_PRESSURED: i64 = sys::AERON_PUBLICATION_BACK_PRESSURED as i64;
        const ADMIN_ACTION: i64 = sys::AERON_PUBLICATION_ADMIN_ACTION as i64;
        if let Operation::Batch(messages) = operation {
            let mut result = 0;
            for message in messages {
                result = await_some("an answer", || match self.publication.c_offer(message) {
                    BACK_PRESSURED | ADMIN_ACTION => None,
                    result => Some(result),
                });
                if result < 0 {
                    break;
                }
            }
            return result;
        }
        await_some("an answer", || {
            let result = attempt_in_c(&mut self.publication, operation);
            (result != BACK_PRESSURED).then_some(result)
        })
    }

    /// The frames between two positions. No later position may lie in the same buffer. Of padding,
    /// only the header is returned: old bytes lie behind it.
    pub(crate) fn frames(&self, mut from: i64, to: i64) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while from < to {
            let mut frame = self.log(from, from + HEADER_LENGTH);
            let length = i32::from_ne_bytes(frame[..4].try_into().expect("4 bytes"));
            assert!(length >= 32, "a frame of {length} bytes at {from}");
            let aligned = (i64::from(length) + 31) / 32 * 32;
            if frame[6..8] != [0, 0] {
                frame = self.log(from, from + aligned);
            }
            frames.push(frame);
            from += aligned;
        }
        frames
    }

    pub(crate) fn poll_in_rust(&mut self, limit: usize, fragments: &mut Vec<Fragment>) -> usize {
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

    pub(crate) fn poll_in_c(&mut self, limit: usize, fragments: &mut Vec<Fragment>) -> usize {
        let clientd = std::ptr::from_mut(fragments).cast::<c_void>();
        // SAFETY: the subscription is live and used by this thread only; `clientd` is what the
        // handler expects and outlives the call.
        let count = unsafe {
            sys::aeron_subscription_poll(self.subscription.as_ptr(), Some(collect), clientd, limit)
        };
        usize::try_from(count).expect("no error")
    }

    /// Receives the offered messages that are not received yet. How much a poll receives depends on
    /// the way there.
    pub(crate) fn receive_all(
        &mut self,
        poll: fn(&mut Self, usize, &mut Vec<Fragment>) -> usize,
        fragments: &mut Vec<Fragment>,
    ) {
        let end = self.publication.position().expect("open");
        await_that("everything", || {
            poll(self, 10, fragments);
            self.subscription.image_at_index(0).expect("an image").position() == end
        });
    }

    /// The tail counters of the log, and how many terms it has gone through.
    pub(crate) fn tails(&self) -> ([i64; 3], i32) {
        let publication = self.publication.constants();
        let log = log_file(&self.driver, publication.original_registration_id);
        log_tails(&log, publication.term_buffer_length)
    }

    pub(crate) fn log(&self, from: i64, to: i64) -> Vec<u8> {
        log_bytes(&self.driver, self.publication.constants(), from..to)
    }
}

pub(crate) fn attempt_in_rust(
    publication: &mut impl Subject,
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
        Operation::Batch(_) => unreachable!("offered until it is through"),
    }
}

pub(crate) fn attempt_in_c(publication: &mut impl Subject, operation: &Operation) -> i64 {
    let iovec = |part: &Vec<u8>| sys::aeron_iovec_t {
        iov_base: part.as_ptr().cast_mut(),
        iov_len: part.len(),
    };
    match operation {
        Operation::Offer(message) => publication.c_offer(message),
        Operation::Parts(parts) => {
            let mut parts: Vec<_> = parts.iter().map(iovec).collect();
            // SAFETY: the parts live as long as the operation.
            unsafe { publication.c_offer_parts(&mut parts, None) }
        }
        // Not C's `offer`: it passes the first frame of a message for every one of them.
        // SAFETY: as above.
        Operation::ReservedValues(message) => unsafe {
            publication.c_offer_parts(&mut [iovec(message)], Some(supply))
        },
        Operation::Padding(length) => publication.c_append_padding(*length),
        Operation::Claim { message, flags, reserved_value, is_committed } => {
            let (position, claim) = publication.c_try_claim(message.len());
            if position > 0 {
                // SAFETY: with a position C has filled the claim in; what is claimed is writable.
                unsafe {
                    let mut claim = claim.assume_init();
                    claim.data.copy_from(message.as_ptr(), message.len());
                    claim.frame_header.add(5).write(*flags);
                    claim.frame_header.add(24).cast::<i64>().write(*reserved_value);
                    if *is_committed {
                        sys::aeron_buffer_claim_commit(&mut claim);
                    } else {
                        sys::aeron_buffer_claim_abort(&mut claim);
                    }
                }
            }
            position
        }
        Operation::Batch(_) => unreachable!("offered until it is through"),
    }
}

unsafe extern "C" fn collect(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    header: *mut sys::aeron_header_t,
) {
    // SAFETY: `poll_in_c` passes a vector that only this call uses.
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
