//! The response publications of control sessions, and their counters.

use std::collections::HashMap;
use std::convert::Infallible;

use rusteron_client::{Aeron, Counter, Error, ExclusivePublication, OfferError};
use rusteron_core::channel::ChannelText;

use crate::conductor::effect::{ControlSessionId, Sending};
use crate::network::Adding;
use crate::network::names::{Lookups, Names};

/// The parameter with the address that responses leave from.
const CONTROL: &str = "control";

/// The publications of all sessions, each with its counter (type 113).
#[derive(Debug, Default)]
pub(crate) struct Responses {
    sessions: HashMap<ControlSessionId, Session>,
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
    /// The client's channel, and the one with addresses in place of names.
    channels: [String; 2],
    /// Says to other processes that the session exists.
    _counter: Counter,
}

#[derive(Debug)]
struct AddingSession {
    names: Names,
    stream_id: i32,
    /// The channel with addresses, once the names are resolved.
    channel: String,
    adding_publication: Option<Adding<ExclusivePublication>>,
    publication: Option<ExclusivePublication>,
    adding_counter: Adding<Counter>,
    counter: Option<Counter>,
}

impl Responses {
    /// Begins to add a session's publication and its counter.
    pub(crate) fn add(
        &mut self,
        session: ControlSessionId,
        names: Names,
        stream_id: i32,
        adding_counter: Adding<Counter>,
    ) {
        let adding = AddingSession {
            names,
            stream_id,
            channel: String::new(),
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
        mut on_added: impl FnMut(ControlSessionId, Result<(), String>),
    ) {
        let mut failed = Vec::new();
        for (&id, session) in &mut self.sessions {
            let Session::Adding(adding) = session else { continue };
            match adding.poll(aeron, &mut self.lookups) {
                Ok(None) => {}
                Ok(Some((publication, counter))) => {
                    counter.set_reference_id(publication.registration_id());
                    counter.set_release(id.get());
                    let channels = [&adding.names.channel, &adding.channel].map(String::clone);
                    let added = AddedSession { publication, channels, _counter: counter };
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

    /// Returns the channel of a replay, with the control address that a session's responses leave
    /// from, if it names that. The media driver lets publications share a control address only if
    /// both spell it alike.
    pub(crate) fn with_shared_control(&self, channel: &str) -> String {
        let address = |key: &str, value: &str| {
            let of_session = |session: &Session| match session {
                Session::Added(added) if key == CONTROL => added.control_address(value),
                _ => None,
            };
            Ok::<_, Infallible>(self.sessions.values().find_map(of_session))
        };
        let Ok(channel) = ChannelText::new(channel).try_replace(address);
        channel.to_string()
    }

    /// Returns whether anything is being added.
    pub(crate) fn is_adding(&self) -> bool {
        self.sessions.values().any(|session| matches!(session, Session::Adding(_)))
    }

    /// Revokes a session's publication and closes its counter, or cancels what is being added.
    pub(crate) fn close(&mut self, session: ControlSessionId) {
        if let Some(Session::Added(added)) = self.sessions.remove(&session) {
            added.publication.revoke();
        }
    }

    pub(crate) fn try_send(&mut self, session: ControlSessionId, message: &[u8]) -> Sending {
        let Some(publication) = self.publication(session) else { return Sending::Closed };
        try_send(publication, message)
    }

    pub(crate) fn is_connected(&self, session: ControlSessionId) -> bool {
        match self.sessions.get(&session) {
            Some(Session::Added(added)) => added.publication.is_connected(),
            _ => false,
        }
    }

    fn publication(&mut self, session: ControlSessionId) -> Option<&mut ExclusivePublication> {
        match self.sessions.get_mut(&session)? {
            Session::Added(added) => Some(&mut added.publication),
            Session::Adding(_) => None,
        }
    }
}

impl AddedSession {
    /// Returns the address of a `control` of the client's channel, as that spells it.
    fn control_address(&self, control: &str) -> Option<String> {
        let [named, with_addresses] = &self.channels;
        let (named, with_addresses) = (ChannelText::new(named), ChannelText::new(with_addresses));
        let mut pairs = named.values(CONTROL).zip(with_addresses.values(CONTROL));
        pairs.find(|(named, _)| *named == control).map(|(_, address)| address.to_owned())
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
                if let Some(channel) = self.names.poll(lookups)? {
                    self.channel.clone_from(&channel);
                    self.adding_publication = Some(Adding::publication(channel, self.stream_id));
                }
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
