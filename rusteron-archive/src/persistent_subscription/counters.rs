//! The counters of a persistent subscription.

/// The numbers of the counters that show everybody on the media driver how a persistent subscription is
/// doing; [`CountersReader::value`](rusteron_client::CountersReader::value) reads one.
///
/// Their labels have the stream ids and channels of the replay and of the live stream. They go with the
/// subscription; the numbers can then become those of other counters.
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
    /// What it is doing. The numbers are those of the C client of Aeron 1.54.0, of which no public header
    /// has them: 0 is connecting to the archive, 1 to 11 asking it for the recording and its replay, 12
    /// replaying, 13 replaying with the live stream at hand, 14 and 15 joining the live stream without a
    /// replay, 16 live and 17 failed.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_get_state_counter`.
    pub state: i32,
    /// By how many bytes the replay was behind the live stream when that was at hand for the first time;
    /// `i64::MIN` before, and 0 if it was joined without a replay.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_get_join_difference_counter`.
    pub join_difference: i32,
    /// How many times the live stream was left.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_get_live_left_counter`.
    pub live_left: i32,
    /// How many times the live stream was joined.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_get_live_joined_counter`.
    pub live_joined: i32,
}

impl PersistentSubscriptionCounters {
    /// Those of a subscription that has none yet.
    pub(crate) const NONE: Self =
        Self { state: -1, join_difference: -1, live_left: -1, live_joined: -1 };
}
