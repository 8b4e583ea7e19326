//! The counters of a persistent subscription.

/// Ids of the counters that show the state of a persistent subscription to all clients of the media
/// driver. [`CountersReader::value`](rusteron_client::CountersReader::value) reads a counter.
///
/// The labels contain the stream ids and channels of the replay and of the live stream. The
/// counters are freed with the subscription; other counters can then get the ids.
///
/// ```no_run
/// # fn show(subscription: &rusteron_archive::PersistentSubscription) {
/// let counters = subscription.counters();
/// let left = subscription.aeron().counters_reader().value(counters.live_left);
/// println!("The live stream was left {left:?} times");
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PersistentSubscriptionCounters {
    /// The state. The values are those of the C client of Aeron 1.54.0; no public header has them.
    /// 0 is connecting to the archive. 1 to 11 are the requests for the recording and its replay.
    /// 12 is replaying, and 13 is replaying with the live stream available. 14 and 15 are joining
    /// the live stream without a replay. 16 is live and 17 is failed.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_get_state_counter`.
    #[doc(alias = "aeron_archive_persistent_subscription_context_get_state_counter")]
    pub state: i32,
    /// The number of bytes between the replay and the live stream when the live stream was first
    /// available. `i64::MIN` before that, and 0 if the live stream was joined without a replay.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_get_join_difference_counter`.
    #[doc(alias = "aeron_archive_persistent_subscription_context_get_join_difference_counter")]
    pub join_difference: i32,
    /// The number of times the live stream was left.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_get_live_left_counter`.
    #[doc(alias = "aeron_archive_persistent_subscription_context_get_live_left_counter")]
    pub live_left: i32,
    /// The number of times the live stream was joined.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_get_live_joined_counter`.
    #[doc(alias = "aeron_archive_persistent_subscription_context_get_live_joined_counter")]
    pub live_joined: i32,
}

impl PersistentSubscriptionCounters {
    /// The value for a subscription without counters.
    pub(crate) const NONE: Self =
        Self { state: -1, join_difference: -1, live_left: -1, live_joined: -1 };
}
