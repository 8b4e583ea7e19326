//! Receiving messages.
//!
//! A poll compares the change number of C's image list with the last one that it has seen. If there is a newer
//! list, it copies the fields of its images and announces the number, and the conductor may then free older
//! lists and closed images. While an `Image` is borrowed, its subscription announces nothing.
//!
//! An image keeps the end of the term of its last poll, as an address and as a position, so one comparison
//! tells whether that term still applies. At the end of a term the poll of the image stops, and the next one
//! finds the next term buffer from the position. When it ends, also by a panic, a poll publishes the position,
//! unless the image is closed.
//!
//! A frame that is a whole message costs one comparison and is read in place. Other frames are assembled in
//! memory of the image's entry in the subscription. The assembly expects the next fragment at a stream
//! position, where C's assemblers expect a term offset.
//!
//! Handlers are closures that the compiler builds into the poll loop, so a panic unwinds through Rust alone.

mod assembly;
mod builder;
mod channel;
mod destinations;
mod fragment_assembler;
mod image;
mod message_buffer;
mod messages;
mod polls;
mod subscription;

pub use builder::SubscriptionBuilder;
pub use destinations::SubscriptionDestinations;
pub use fragment_assembler::{FragmentAssembler, ImageFragmentAssembler};
pub use image::{Action, Header, Image, ImageInfo, Images};
pub use messages::Messages;
pub use subscription::Subscription;
