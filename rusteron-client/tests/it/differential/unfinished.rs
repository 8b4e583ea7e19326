//! What a publisher leaves in the log if it dies on the way: the driver finds the same as of a
//! publisher in C, and makes padding of it. The tail moves before the first write to a frame. A
//! claim has a header and a negative length.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering};

use rusteron_client::{ExclusivePublication, Publication, Publisher};
use rusteron_sys as sys;

use super::operations::{Contender, Media, Operation, Stream, Subject, TERM_LENGTH};

mod ffi {
    unsafe extern "C" {
        pub(crate) fn signal(signal: i32, handler: extern "C" fn(i32)) -> usize;
        pub(crate) fn mprotect(address: *mut u8, length: usize, protection: i32) -> i32;
    }
}

const READ: i32 = 1;
const WRITE: i32 = 2;

/// The term that must not be written to, its tail counter, and what that said when it was.
static TERM: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static TAIL: AtomicPtr<AtomicI64> = AtomicPtr::new(ptr::null_mut());
static TAIL_THEN: AtomicI64 = AtomicI64::new(0);

/// Notes the tail, and lets the write happen.
extern "C" fn on_write(_: i32) {
    let term = TERM.swap(ptr::null_mut(), Ordering::Relaxed);
    if term.is_null() {
        // It is another fault, which would come again and again.
        std::process::abort();
    }
    // SAFETY: set, with the term, by `protect`; both are mapped.
    unsafe {
        TAIL_THEN.store((*TAIL.load(Ordering::Relaxed)).load(Ordering::Relaxed), Ordering::Relaxed);
        ffi::mprotect(term, TERM_LENGTH as usize, READ | WRITE);
    }
}

/// Makes the next write to the publication's term a call of the handler.
fn protect(publication: &ExclusivePublication) {
    let mut fields = MaybeUninit::uninit();
    // SAFETY: the publication is live, and the function fills in the whole structure. The term is
    // mapped, and made of whole pages; readers are not kept from it, and no one else writes to this
    // mapping.
    unsafe {
        sys::rusteron_exclusive_publication_fields(publication.as_ptr(), fields.as_mut_ptr());
        let fields = fields.assume_init();
        let index = (*fields.next_frame).active_partition_index;
        TAIL.store(fields.term_tail_counters.add(index).cast(), Ordering::Relaxed);
        TERM.store(fields.term_buffers[index], Ordering::Relaxed);
        assert_eq!(ffi::mprotect(fields.term_buffers[index], TERM_LENGTH as usize, READ), 0);
    }
}

fn claim(length: usize) -> Operation {
    let message = vec![7; length];
    Operation::Claim { message, flags: 0xc0, reserved_value: 0, is_committed: true }
}

// The signals are the process's. No other test of this program faults in it.
#[test]
fn tail_moves_before_the_first_write() {
    // As Linux and macOS number what a write to protected memory causes: SIGBUS or SIGSEGV.
    for signal in [7, 10, 11] {
        // SAFETY: the handler does what is allowed in one.
        unsafe { ffi::signal(signal, on_write) };
    }
    let stream = Stream { term_offset: 1024, ..Stream::DEFAULT };
    let mut rust = Contender::<ExclusivePublication>::new(stream);
    let mut c = Contender::new(stream);
    let long = rust.publication.max_payload_length() + 1;
    for operation in [
        Operation::Offer(vec![7; 10]),
        Operation::Offer(vec![7; long]),
        Operation::Parts(vec![vec![7; 10], vec![8; 10]]),
        claim(10),
        Operation::ReservedValues(vec![7; 10]),
        Operation::Padding(10),
        Operation::Batch(vec![vec![7; 10]]),
        Operation::Batch(vec![vec![7; 10]; 4]),
    ] {
        let perform: [fn(&mut Contender<_>, &Operation) -> i64; 2] =
            [Contender::perform_in_rust, Contender::perform_in_c];
        // C offers the messages of a batch one by one.
        let contenders = if matches!(operation, Operation::Batch(_)) { 1 } else { 2 };
        for (contender, perform) in [&mut rust, &mut c].into_iter().zip(perform).take(contenders) {
            protect(&contender.publication);
            let position = perform(contender, &operation);
            assert!(TERM.load(Ordering::Relaxed).is_null(), "{operation}: nothing was written");
            let offset = TAIL_THEN.load(Ordering::Relaxed) & 0xffff_ffff;
            assert_eq!(offset, position % TERM_LENGTH, "{operation}");
        }
    }
}

fn unfinished_claim<P: Subject>() {
    const CLAIMED: usize = 300;
    for media in [Media::Ipc, Media::Udp] {
        let stream = Stream { media, term_offset: 1024, ..Stream::DEFAULT };
        let (mut rust, mut c) = (Contender::<P>::new(stream), Contender::<P>::new(stream));
        let start = rust.publication.position().expect("open");
        let mut claim = rust.publication.try_claim(CLAIMED).expect("an available window");
        claim[..CLAIMED / 2].fill(7);
        claim.set_reserved_value(-1);
        std::mem::forget(claim);
        let (end, claim) = c.publication.c_try_claim(CLAIMED);
        assert!(end > start, "{end}");
        // SAFETY: with a position C has filled the claim in; what is claimed is writable.
        unsafe {
            let claim = claim.assume_init();
            claim.data.write_bytes(7, CLAIMED / 2);
            claim.frame_header.add(24).cast::<i64>().write(-1);
        }
        let frame = rust.log(start, end);
        assert_eq!(frame[..4], (-(CLAIMED as i32) - 32).to_ne_bytes());
        assert_eq!(frame, c.log(start, end));
        assert_eq!(rust.tails(), c.tails());
        assert_eq!(rust.poll_in_rust(10, &mut Vec::new()), 0, "it is not committed");
    }
}

#[test]
fn unfinished_claims_are_as_in_c() {
    unfinished_claim::<ExclusivePublication>();
    unfinished_claim::<Publication>();
}
