//! Ids of a cluster.

rusteron_core::ids! {
    /// The id that a cluster gives the session of a client.
    pub ClusterSessionId(i64);
    /// The id of a timer or of a request, which the event or the answer repeats. The service
    /// or client that schedules or asks chooses it.
    pub CorrelationId(i64);
    /// The id of the term of a leader. Terms count up.
    pub LeadershipTermId(i64);
}
