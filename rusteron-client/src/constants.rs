//! Structures that Aeron fills in, with values that do not change during the life of a resource.

use rusteron_core::ffi;
use rusteron_sys as sys;

/// Declares a structure and its copy of C's. `unsafe`, and a field in braces, are for a string to which C's structure
/// points.
macro_rules! constants {
    (
        $(#[$meta:meta])*
        $name:ident = $raw:ident $(, $unsafe:tt)?;
        $({ $(#[$text_meta:meta])* $text:ident })?
        $($(#[$field_meta:meta])* $field:ident: $ty:ty,)*
    ) => {
        $(#[$meta])*
        ///
        #[doc = concat!("Corresponds to `", stringify!($raw), "`.")]
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$text_meta])* pub $text: String,)?
            $($(#[$field_meta])* pub $field: $ty,)*
        }

        impl $name {
            /// Copies what Aeron filled in. `unsafe` if there is a string: it is NULL, or valid and unchanged during
            /// this call.
            pub(crate) $($unsafe)? fn from_raw(raw: &sys::$raw) -> Self {
                Self {
                    // SAFETY: the caller of the unsafe function guarantees the string.
                    $($text: unsafe { ffi::lossy(raw.$text) }.into_owned(),)?
                    $($field: raw.$field,)*
                }
            }
        }
    };
}

constants! {
    /// The properties that stay the same during the life of a publication, shared or exclusive.
    #[doc(alias = "aeron_publication_constants_t")]
    PublicationConstants = aeron_publication_constants_t, unsafe;
    {
        /// The channel, as it was given when the publication was added.
        channel
    }
    /// The registration id with which the first publisher of this channel, stream and session
    /// registered it with the media driver.
    original_registration_id: i64,
    /// The registration id of this publication with the media driver.
    ///
    /// When it differs from `original_registration_id`, another publication was registered before.
    registration_id: i64,
    /// The maximum possible position this stream can reach due to its term buffer length.
    ///
    /// Maximum possible position is term-length times 2^31 in bytes.
    max_possible_position: i64,
    /// Number of bits to right shift a position to get a term count for how far the stream has
    /// progressed.
    position_bits_to_shift: usize,
    /// The length in bytes for each term partition in the log buffer.
    term_buffer_length: usize,
    /// Maximum message length supported in bytes. Messages may be made of multiple fragments if
    /// greater than MTU length.
    max_message_length: usize,
    /// Maximum length of a message payload that fits within a message fragment.
    ///
    /// This is the MTU length minus the message fragment header length.
    max_payload_length: usize,
    /// Stream id of the publication.
    stream_id: i32,
    /// Session id of the publication.
    session_id: i32,
    /// The initial term id assigned when this publication was created. This can be used to
    /// determine how many terms have passed since creation.
    initial_term_id: i32,
    /// Counter id for the publication limit.
    publication_limit_counter_id: i32,
    /// Counter id for the channel status indicator.
    channel_status_indicator_id: i32,
}

constants! {
    /// The properties that stay the same during the life of a subscription.
    #[doc(alias = "aeron_subscription_constants_t")]
    SubscriptionConstants = aeron_subscription_constants_t, unsafe;
    {
        /// The channel, as it was given when the subscription was added.
        channel
    }
    /// The registration id used to register this Subscription with the media driver.
    registration_id: i64,
    /// The stream id within the channel.
    stream_id: i32,
    /// Counter id for the channel status indicator.
    channel_status_indicator_id: i32,
}

constants! {
    /// The properties that stay the same during the life of a counter.
    #[doc(alias = "aeron_counter_constants_t")]
    CounterConstants = aeron_counter_constants_t;
    /// The id of the request that added the counter to this client.
    correlation_id: i64,
    /// The id by which the counter is registered: the one given for a static counter, and the same
    /// as `correlation_id` for others.
    registration_id: i64,
    /// The counter's number, by which a reader finds it.
    counter_id: i32,
}

constants! {
    /// The properties that stay the same during the life of an image.
    #[doc(alias = "aeron_image_constants_t")]
    ImageConstants = aeron_image_constants_t, unsafe;
    {
        /// The source identity of the sending publisher as an abstract concept appropriate for the
        /// media.
        source_identity
    }
    /// The id by which the media driver knows the image.
    correlation_id: i64,
    /// The position the subscriber joined this stream at.
    join_position: i64,
    /// Number of bits to right shift a position to get a term count for how far the stream has
    /// progressed.
    position_bits_to_shift: usize,
    /// The length in bytes for each term partition in the log buffer.
    term_buffer_length: usize,
    /// The length in bytes of the MTU (Maximum Transmission Unit) the Sender used for the datagram.
    mtu_length: usize,
    /// The session id of the stream of messages. Sessions are unique within a subscription and
    /// across all publications of a source identity.
    session_id: i32,
    /// The initial term at which the stream started for this session.
    initial_term_id: i32,
    /// Counter id that refers to the subscriber position for this image.
    subscriber_position_id: i32,
}
