//! The response publications of control sessions, and their counters.

use std::collections::HashMap;

use rusteron_client::{Aeron, Counter, Error, ExclusivePublication, OfferError};

use crate::conductor::effect::{Sending, SessionId};
use crate::network::Adding;
use crate::network::names::{Lookups, Names};

/// The publications of all sessions, each with its counter (type 113).
#[derive(Debug, Default)]
pub(crate) struct Responses {
    sessions: HashMap<SessionId, Session>,
    lookups: Lookups,
}

#[derive(Debug)]
enum Session {
    Adding(Box<AddingSession>),
    Added(Box<AddedSession>),
}

#[derive(Debug)]
struct AddedSession {
    publication: ExclusivePublication,
    /// Says to other processes that the session exists.
    _counter: Counter,
}

#[derive(Debug)]
struct AddingSession {
    names: Names,
    stream_id: i32,
    /// Once the names are resolved.
    adding_publication: Option<Adding<ExclusivePublication>>,
    publication: Option<ExclusivePublication>,
    adding_counter: Adding<Counter>,
    counter: Option<Counter>,
}

impl Responses {
    /// Begins to add a session's publication and its counter.
    pub(crate) fn add(
        &mut self,
        session: SessionId,
        names: Names,
        stream_id: i32,
        adding_counter: Adding<Counter>,
    ) {
        let adding = AddingSession {
            names,
            stream_id,
            adding_publication: None,
            publication: None,
            adding_counter,
            counter: None,
        };
        self.sessions.insert(session, Session::Adding(Box::new(adding)));
    }

    /// Goes on with what is being added, and passes on what is there, or why it is not.
    pub(crate) fn poll(
        &mut self,
        aeron: &Aeron,
        mut on_added: impl FnMut(SessionId, Result<(), String>),
    ) {
        let mut failed = Vec::new();
        for (&id, session) in &mut self.sessions {
            let Session::Adding(adding) = session else { continue };
            match adding.poll(aeron, &mut self.lookups) {
                Ok(None) => {}
                Ok(Some((publication, counter))) => {
                    counter.set_reference_id(publication.registration_id());
                    counter.set_release(id);
                    let added = AddedSession { publication, _counter: counter };
                    *session = Session::Added(Box::new(added));
                    on_added(id, Ok(()));
                }
                Err(error) => {
                    failed.push(id);
                    on_added(id, Err(error));
                }
            }
        }
        for id in failed {
            self.sessions.remove(&id);
        }
    }

    /// Returns whether anything is being added.
    pub(crate) fn is_adding(&self) -> bool {
        self.sessions.values().any(|session| matches!(session, Session::Adding(_)))
    }

    /// Revokes a session's publication and closes its counter, or cancels what is being added.
    pub(crate) fn close(&mut self, session: SessionId) {
        if let Some(Session::Added(added)) = self.sessions.remove(&session) {
            added.publication.revoke();
        }
    }

    pub(crate) fn try_send(&mut self, session: SessionId, message: &[u8]) -> Sending {
        let Some(publication) = self.publication(session) else { return Sending::Closed };
        try_send(publication, message)
    }

    pub(crate) fn is_connected(&self, session: SessionId) -> bool {
        match self.sessions.get(&session) {
            Some(Session::Added(added)) => added.publication.is_connected(),
            _ => false,
        }
    }

    fn publication(&mut self, session: SessionId) -> Option<&mut ExclusivePublication> {
        match self.sessions.get_mut(&session)? {
            Session::Added(added) => Some(&mut added.publication),
            Session::Adding(_) => None,
        }
    }
}

impl AddingSession {
    /// Returns both once both are there.
    fn poll(
        &mut self,
        aeron: &Aeron,
        lookups: &mut Lookups,
    ) -> Result<Option<(ExclusivePublication, Counter)>, String> {
        let text = |error: Error| error.to_string();
        match &mut self.adding_publication {
            None => {
                let channel = self.names.poll(lookups)?;
                self.adding_publication =
                    channel.map(|channel| Adding::publication(channel, self.stream_id));
            }
            Some(adding) if self.publication.is_none() => {
                self.publication = adding.poll(aeron).map_err(text)?;
            }
            Some(_) => {}
        }
        if self.counter.is_none() {
            self.counter = self.adding_counter.poll(aeron).map_err(text)?;
        }
        match (self.publication.take(), self.counter.take()) {
            (Some(publication), Some(counter)) => Ok(Some((publication, counter))),
            (publication, counter) => {
                self.publication = publication;
                self.counter = counter;
                Ok(None)
            }
        }
    }
}

/// Offers a message, and once more if that has ended a term.
pub(crate) fn try_send(publication: &mut ExclusivePublication, message: &[u8]) -> Sending {
    let offered = match publication.offer(message) {
        Err(OfferError::AdminAction) => publication.offer(message),
        offered => offered,
    };
    match offered {
        Ok(_) => Sending::Sent,
        Err(OfferError::NotConnected) => Sending::NotConnected,
        Err(OfferError::MaxPositionExceeded) => Sending::MaxPosition,
        Err(OfferError::MessageTooLong { .. }) => Sending::TooLong,
        Err(error) if error.is_retryable() => Sending::BackPressured,
        Err(_) => Sending::Closed,
    }
}
