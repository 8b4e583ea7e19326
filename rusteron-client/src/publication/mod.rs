//! Sending messages.

mod batch;
mod block;
mod buffer_claim;
mod details;
mod exclusive_publication;
mod fragments;
mod message_parts;
mod next_frame;
mod publication;
mod reserved_value;

pub use batch::OfferedBatch;
pub use buffer_claim::BufferClaim;
pub use exclusive_publication::ExclusivePublication;
pub use publication::Publication;
pub(crate) use publication::Remaining;
