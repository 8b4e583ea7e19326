//! Ids of a cluster.

#[doc(inline)]
pub use rusteron_core::ids::CorrelationId;

rusteron_core::ids! {
    /// The id that a cluster gives the session of a client.
    pub ClusterSessionId(i64);
    /// The id of the term of a leader. Terms count up.
    pub LeadershipTermId(i64);
    /// The id of a member of a cluster.
    pub MemberId(i32);
    /// The id of a service on its node. A node counts its services from 0.
    pub ServiceId(i32);
}

#[cfg(feature = "service")]
impl LeadershipTermId {
    /// Stands for no term in messages and counters.
    const NULL: i64 = -1;

    /// Returns the term that a message or a counter names, if it names one.
    pub(crate) fn from_number(number: i64) -> Option<Self> {
        (number != Self::NULL).then_some(Self(number))
    }

    /// Returns the number of a term in messages.
    pub(crate) fn number_of(term: Option<Self>) -> i64 {
        term.map_or(Self::NULL, Self::get)
    }
}
