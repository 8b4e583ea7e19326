//! Sending messages.
//!
//! `offer` and `try_claim` are Rust and compile into the caller's loop. They work on the C publication's own
//! fields, whose addresses the shim returns, with C's memory orders. No second copy of the state exists, so C
//! functions work on the same handle before and after a Rust call. Slow paths are functions outside the
//! caller's loop.
//!
//! - **Exclusive publication.** An offer compares the position with the position limit, and the frame's end
//!   with the term's end. It moves the tail, writes the header with the negative length, copies the payload,
//!   and stores the positive length with release, which publishes the frame. Offset, index and lengths are in
//!   private memory, and were checked when the publication was made.
//! - **Shared publication.** An offer claims its range with one atomic addition to the tail. The tail is in
//!   shared memory, so a range is used only if its end lies in the term and is aligned. The publisher whose
//!   claim passes the end of the term writes padding and rotates the log. Each offer is a claim that is
//!   committed at once; if the driver has unblocked it, the commit writes nothing.
//! - **Several fragments** claim one range, and each is published as soon as it is written. C writes nothing,
//!   because its functions read the tail again after any check.
//! - **Batches** consist of runs. The tail moves once for each run: its first frame gets the negative length of
//!   the whole run, the others their own lengths, and the first frame's positive length comes last. If the
//!   publisher dies, one gap remains, which the driver turns into one padding frame, so subscribers get the
//!   whole run or nothing of it. They do not touch the cache lines that the publisher is writing. The caller's
//!   code (`as_ref`) runs before the range is claimed.
//! - **Copying.** On x86-64, payloads of 256 bytes to 3 KiB are copied forward, one cache line at a time. Each
//!   written line may come from memory, and `memcpy`, which stores more bytes at a time, is slower there.

mod batch;
mod buffer_claim;
mod exclusive_publication;
mod fill_block;
mod fragments;
mod handle;
mod next_frame;
mod publication;
mod publisher;

pub use batch::OfferedBatch;
pub use buffer_claim::BufferClaim;
pub use exclusive_publication::ExclusivePublication;
pub use handle::PublicationHandle;
pub(crate) use handle::RawPublication;
pub use publication::Publication;
pub(crate) use publication::Remaining;
pub use publisher::{AnyPublication, Publisher};
