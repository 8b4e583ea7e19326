//! The control sessions, and who gets an answer.

use std::collections::BTreeMap;

use crate::conductor::effect::{Clock, ImageId, Outside, SessionId};
use crate::control::responses::{Answer, SignalEvent};
use crate::control::session::{Connect, ControlSession, SessionSettings};

/// A request that is answered, and whose consequences are signalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Requester {
    pub(crate) session: SessionId,
    pub(crate) correlation_id: i64,
}

/// All control sessions. Messages to a session that has ended are dropped: recordings and replays outlive their session.
#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: BTreeMap<SessionId, ControlSession>,
    next_id: SessionId,
    settings: SessionSettings,
}

impl Sessions {
    pub(crate) fn new(first_id: SessionId, settings: SessionSettings) -> Self {
        Self { by_id: BTreeMap::new(), next_id: first_id, settings }
    }

    pub(crate) fn next_id(&mut self) -> SessionId {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        id
    }

    pub(crate) fn add(&mut self, connect: Connect, now: Clock) -> &mut ControlSession {
        let id = connect.session;
        let session = ControlSession::new(connect, self.settings, now);
        self.by_id.entry(id).or_insert(session)
    }

    pub(crate) fn get_mut(&mut self, id: SessionId) -> Option<&mut ControlSession> {
        self.by_id.get_mut(&id)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ControlSession> {
        self.by_id.values_mut()
    }

    /// The sessions whose requests come on this image.
    pub(crate) fn on_image(&mut self, image: ImageId) -> impl Iterator<Item = &mut ControlSession> {
        self.iter_mut().filter(move |session| session.request_image() == image)
    }

    pub(crate) fn remove_ended(&mut self) -> Vec<(SessionId, ControlSession)> {
        let is_ended = |(_, session): &(_, &ControlSession)| session.ended().is_some();
        let ended: Vec<_> = self.by_id.iter().filter(is_ended).map(|(id, _)| *id).collect();
        ended.into_iter().filter_map(|id| self.by_id.remove_entry(&id)).collect()
    }

    pub(crate) fn respond(
        &mut self,
        to: Requester,
        answer: &Answer,
        now: Clock,
        out: &mut dyn Outside,
    ) {
        if let Some(session) = self.get_mut(to.session) {
            session.send(answer.encode(to.session, to.correlation_id), now, out);
        }
    }

    pub(crate) fn signal(
        &mut self,
        to: Requester,
        event: &SignalEvent,
        now: Clock,
        out: &mut dyn Outside,
    ) {
        if let Some(session) = self.get_mut(to.session) {
            session.send(event.encode(to.session, to.correlation_id), now, out);
        }
    }
}
