//! Ids of a cluster.

#[doc(inline)]
pub use rusteron_core::ids::CorrelationId;

rusteron_core::ids! {
    /// The id that a cluster gives the session of a client.
    pub ClusterSessionId(i64);
    /// The id of the term of a leader. Terms count up.
    pub LeadershipTermId(i64);
}
