//! What the recorder and the replayer tell the conductor.

use rusteron_client::{Counter, ExclusivePublication, Subscription};

use crate::conductor::event::Event;

/// An event, with what the worker gives back by it.
#[derive(Debug)]
pub(crate) struct WorkerEvent {
    pub(crate) event: Option<Event>,
    pub(crate) returned: Option<Returned>,
}

/// A resource, to be closed on the conductor's thread once the conductor is told of the event.
#[derive(Debug)]
#[allow(dead_code, reason = "the resources are only to be dropped")]
pub(crate) enum Returned {
    /// The position counter of a recording.
    Counter(Counter),
    /// The publication of a replay.
    Publication(Box<ExclusivePublication>),
    Subscription(Box<Subscription>),
}

impl WorkerEvent {
    pub(crate) fn new(event: Event, returned: impl Into<Option<Returned>>) -> Self {
        Self { event: Some(event), returned: returned.into() }
    }
}
