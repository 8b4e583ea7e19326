//! Ids that an archive gives its clients.

rusteron_core::ids! {
    /// The id of a client's control session with an archive.
    pub ControlSessionId(i64);
    /// The id of a request, which the answer and the archive's errors repeat.
    pub CorrelationId(i64);
    /// The id of a subscription with which an archive records. A client stops these recordings with
    /// it.
    pub RecordingSubscriptionId(i64);
    /// The id that an archive gives a replay. It stops the replay, and distinguishes the replay's
    /// image from others.
    ///
    /// ```
    /// use rusteron_archive::ReplaySessionId;
    ///
    /// let id = ReplaySessionId::from(3 << 32 | 7);
    /// assert_eq!(id.image_session_id(), 7);
    /// assert_eq!(i64::from(id).to_string(), id.to_string());
    /// ```
    pub ReplaySessionId(i64);
    /// The id of a replication. A client stops the replication with it.
    pub ReplicationId(i64);
}

impl ReplaySessionId {
    /// Returns the session id of the replay's image, for
    /// [`Subscription::image_by_session_id`](rusteron_client::Subscription::image_by_session_id):
    /// the low 32 bits. The upper bits count the archive's replays.
    ///
    /// Corresponds to the conversion to `int32_t` that users of `aeron_archive_start_replay` write.
    #[doc(alias = "aeron_archive_start_replay")]
    pub fn image_session_id(self) -> i32 {
        self.get() as i32
    }
}
