//! Ids that an archive gives its clients.

#[doc(inline)]
pub use rusteron_core::ids::{
    ArchiveId, ControlSessionId, CorrelationId, ReplaySessionId, ReplicationId,
};

rusteron_core::ids! {
    /// The id of a subscription with which an archive records. A client stops these recordings with
    /// it.
    pub RecordingSubscriptionId(i64);
}
