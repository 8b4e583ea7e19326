//! What the recorder and the replayer tell the conductor.

use rusteron_client::{Counter, ExclusivePublication, Subscription};

use crate::conductor::event::Event;

/// An event, with what the worker gives back with it.
#[derive(Debug)]
pub(crate) struct WorkerEvent {
    pub(crate) event: Option<Event>,
    pub(crate) returned: Option<Returned>,
}

/// A resource that is to be closed on the conductor's thread.
#[derive(Debug)]
pub(crate) enum Returned {
    /// The position counter of a recording. It stays until the catalog has been given the position.
    Counter(Counter),
    /// The publication of a replay.
    Publication(Box<ExclusivePublication>),
    Subscription(Box<Subscription>),
}

impl WorkerEvent {
    pub(crate) fn told(event: Event) -> Self {
        Self { event: Some(event), returned: None }
    }

    pub(crate) fn returning(event: Event, resource: Returned) -> Self {
        Self { event: Some(event), returned: Some(resource) }
    }
}
