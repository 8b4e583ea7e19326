//! The control sessions, and who gets an answer.

use std::collections::BTreeMap;

use crate::conductor::effect::{Clock, ControlSessionId, ImageId};
use crate::control::session::{Connect, ControlSession, End, SessionSettings};
use crate::control::strangers::{Admission, Strangers};
use crate::ids::CorrelationId;

/// A request that is answered, and whose consequences are signalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Requester {
    pub(crate) session: ControlSessionId,
    pub(crate) correlation_id: CorrelationId,
}

/// All control sessions. Messages to a session that has ended are dropped: recordings and replays outlive their session.
#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: BTreeMap<ControlSessionId, ControlSession>,
    /// The places of sessions that are not authenticated.
    strangers: Strangers,
    next_id: ControlSessionId,
    settings: SessionSettings,
}

impl Sessions {
    pub(crate) fn new(first_id: ControlSessionId, settings: SessionSettings) -> Self {
        let SessionSettings { connect_timeout_ns, max_unauthenticated, .. } = settings;
        let strangers = Strangers::new(max_unauthenticated, connect_timeout_ns);
        Self { by_id: BTreeMap::new(), strangers, next_id: first_id, settings }
    }

    pub(crate) fn next_id(&mut self) -> ControlSessionId {
        let id = self.next_id;
        self.next_id = ControlSessionId::new(id.get().wrapping_add(1));
        id
    }

    /// Decides whether a client that is not known may begin a session now.
    pub(crate) fn admission(&self, image: ImageId, source_identity: &str, now: Clock) -> Admission {
        self.strangers.admission(image, source_identity, now)
    }

    /// Adds a session that was admitted.
    pub(crate) fn add(
        &mut self,
        connect: Connect,
        admission: Admission,
        source_identity: &str,
        now: Clock,
    ) -> &mut ControlSession {
        if let Admission::InPlaceOf(other) = admission {
            self.strangers.remove(other);
            if let Some(session) = self.by_id.get_mut(&other) {
                let max = self.settings.max_unauthenticated;
                session.end(End::Failed(format!(
                    "too many sessions are not authenticated: max_unauthenticated_sessions={max} \
                     (AERON_ARCHIVE_MAX_UNAUTHENTICATED_SESSIONS)"
                )));
            }
        }
        let id = connect.session;
        self.strangers.add(id, connect.request_image, source_identity, now);
        let session = ControlSession::new(connect, self.settings, now);
        self.by_id.entry(id).or_insert(session)
    }

    /// Lets other clients have the places of those that are authenticated by now, or have ended.
    pub(crate) fn update_strangers(&mut self, now: Clock) {
        let Self { by_id, strangers, .. } = self;
        strangers.update(now, |id| by_id.get(&id).map(ControlSession::is_known));
    }

    pub(crate) fn get_mut(&mut self, id: ControlSessionId) -> Option<&mut ControlSession> {
        self.by_id.get_mut(&id)
    }

    /// Returns a session, if its requests come on this image.
    pub(crate) fn get_on_image(
        &mut self,
        id: ControlSessionId,
        image: ImageId,
    ) -> Option<&mut ControlSession> {
        self.get_mut(id).filter(|session| session.request_image() == image)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ControlSession> {
        self.by_id.values_mut()
    }

    /// The sessions whose requests come on this image.
    pub(crate) fn on_image(&mut self, image: ImageId) -> impl Iterator<Item = &mut ControlSession> {
        self.iter_mut().filter(move |session| session.request_image() == image)
    }

    pub(crate) fn remove_ended(&mut self) -> Vec<(ControlSessionId, ControlSession)> {
        let is_over = |(_, session): &(_, &ControlSession)| session.is_over();
        let ended: Vec<_> = self.by_id.iter().filter(is_over).map(|(id, _)| *id).collect();
        ended.into_iter().filter_map(|id| self.by_id.remove_entry(&id)).collect()
    }
}
