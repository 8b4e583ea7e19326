//! Receiving messages.

mod assembly;
mod builder;
mod channel;
mod closing;
mod fragment_assembler;
mod image;
mod message_buffer;
mod messages;
mod polls;
mod subscription;

pub use builder::SubscriptionBuilder;
pub use fragment_assembler::{FragmentAssembler, ImageFragmentAssembler};
pub use image::{Action, Header, Image, ImageInfo, Images};
pub use messages::Messages;
pub use subscription::Subscription;
