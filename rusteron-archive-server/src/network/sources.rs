//! The streams to and from the archives whose recordings are copied.

use std::collections::HashMap;

use rusteron_client::{
    Aeron, Error, ExclusivePublication, NextSessionId, Result, Subscription, UncheckedChannel,
};

use crate::conductor::effect::{RequestStream, Sending};
use crate::ids::ReplicationId;
use crate::network::adding::refusal;
use crate::network::responses::try_send;
use crate::network::{Adding, Event};
use crate::replication::ControlChannels;

/// Fragments of one source in a turn.
const FRAGMENT_LIMIT: usize = 10;

/// The streams of all replications.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    by_replication: HashMap<ReplicationId, Source>,
}

/// The streams of a replication. Dropping it closes them, and cancels what is being added.
#[derive(Debug)]
struct Source {
    channels: ControlChannels,
    state: State,
    adding_replay_requests: Option<Adding<ExclusivePublication>>,
    replay_requests: Option<ExclusivePublication>,
}

#[derive(Debug)]
enum State {
    /// Both streams get one session id, so that sources do not hear the answers of each other.
    AddingSessionId(Adding<NextSessionId>),
    AddingResponses(Adding<Subscription>, Option<NextSessionId>),
    AddingRequests(Adding<ExclusivePublication>, Option<Subscription>),
    Added(Box<Added>),
    Failed,
}

#[derive(Debug)]
struct Added {
    responses: Subscription,
    requests: ExclusivePublication,
    /// The replication knows.
    is_announced: bool,
}

impl Sources {
    /// Begins to add the streams to and from a source.
    pub(crate) fn connect(&mut self, replication: ReplicationId, channels: ControlChannels) {
        let stream_id = channels.request_stream_id;
        let state = match channels.is_response {
            true => State::AddingResponses(responses(&channels, None), None),
            false => State::AddingSessionId(Adding::new(move |aeron| {
                aeron.async_next_session_id(stream_id)
            })),
        };
        let source =
            Source { channels, state, adding_replay_requests: None, replay_requests: None };
        self.by_replication.insert(replication, source);
    }

    pub(crate) fn add_replay_requests(
        &mut self,
        replication: ReplicationId,
        channel: String,
        stream_id: i32,
    ) {
        if let Some(source) = self.by_replication.get_mut(&replication) {
            source.adding_replay_requests = Some(Adding::publication(channel, stream_id));
        }
    }

    pub(crate) fn close(&mut self, replication: ReplicationId) {
        self.by_replication.remove(&replication);
    }

    /// Returns whether anything is being added.
    pub(crate) fn is_adding(&self) -> bool {
        self.by_replication.values().any(|source| {
            let is_there = matches!(source.state, State::Added(_) | State::Failed);
            !is_there || source.adding_replay_requests.is_some()
        })
    }

    /// Goes on with what is being added, and collects what the sources send.
    pub(crate) fn poll(&mut self, aeron: &Aeron, events: &mut Vec<Event>) {
        for (&replication, source) in &mut self.by_replication {
            if let Err(error) = source.poll(aeron, replication, events) {
                source.state = State::Failed;
                source.adding_replay_requests = None;
                events.push(Event::SourceFailed(replication, refusal(&error)));
            }
        }
    }

    pub(crate) fn try_request(
        &mut self,
        replication: ReplicationId,
        stream: RequestStream,
        message: &[u8],
    ) -> Sending {
        let source = self.by_replication.get_mut(&replication);
        let publication = source.and_then(|source| match (stream, &mut source.state) {
            (RequestStream::Replay, _) => source.replay_requests.as_mut(),
            (RequestStream::Control, State::Added(added)) => Some(&mut added.requests),
            (RequestStream::Control, _) => None,
        });
        publication.map_or(Sending::NotConnected, |publication| try_send(publication, message))
    }

    pub(crate) fn is_connected(&self, replication: ReplicationId) -> bool {
        match self.by_replication.get(&replication).map(|source| &source.state) {
            Some(State::Added(added)) => added.responses.is_connected(),
            _ => false,
        }
    }
}

impl Source {
    fn poll(
        &mut self,
        aeron: &Aeron,
        replication: ReplicationId,
        events: &mut Vec<Event>,
    ) -> Result<()> {
        self.state.go_on(aeron, &self.channels)?;
        if let State::Added(added) = &mut self.state {
            added.poll(replication, events)?;
        }
        if let Some(adding) = &mut self.adding_replay_requests {
            if let Some(publication) = adding.poll(aeron)? {
                self.replay_requests = Some(publication);
                self.adding_replay_requests = None;
            }
        }
        Ok(())
    }
}

impl State {
    fn go_on(&mut self, aeron: &Aeron, channels: &ControlChannels) -> Result<()> {
        let next = match self {
            Self::AddingSessionId(adding) => adding
                .poll(aeron)?
                .map(|id| Self::AddingResponses(responses(channels, Some(id)), Some(id))),
            Self::AddingResponses(adding, session_id) => {
                let session_id = *session_id;
                adding.poll(aeron)?.map(|responses| {
                    let adding = requests(channels, session_id, &responses);
                    Self::AddingRequests(adding, Some(responses))
                })
            }
            Self::AddingRequests(adding, responses) => match adding.poll(aeron)? {
                Some(requests) => responses.take().map(|responses| {
                    Self::Added(Box::new(Added { responses, requests, is_announced: false }))
                }),
                None => None,
            },
            Self::Added(_) | Self::Failed => None,
        };
        if let Some(next) = next {
            *self = next;
        }
        Ok(())
    }
}

impl Added {
    fn poll(&mut self, replication: ReplicationId, events: &mut Vec<Event>) -> Result<()> {
        if !self.is_announced && self.requests.is_connected() {
            if let Some(channel) = self.responses.try_resolve_channel_endpoint_port()? {
                self.is_announced = true;
                events.push(Event::SourceAdded(replication, channel));
            }
        }
        let polled = self.responses.poll(
            |message, _| events.push(Event::SourceMessage(replication, message.to_vec())),
            FRAGMENT_LIMIT,
        );
        polled.map(drop).map_err(Error::from)
    }
}

fn responses(
    channels: &ControlChannels,
    session_id: Option<NextSessionId>,
) -> Adding<Subscription> {
    let channel = with_session_id(&channels.responses, session_id);
    let stream_id = channels.response_stream_id;
    Adding::new(move |aeron| {
        aeron.subscription_builder(UncheckedChannel(&channel), stream_id).async_add()
    })
}

fn requests(
    channels: &ControlChannels,
    session_id: Option<NextSessionId>,
    responses: &Subscription,
) -> Adding<ExclusivePublication> {
    let channel = match session_id {
        Some(_) => with_session_id(&channels.requests, session_id),
        None => {
            let id = responses.registration_id();
            format!("{}|response-correlation-id={id}", channels.requests)
        }
    };
    Adding::publication(channel, channels.request_stream_id)
}

/// Channels of a session with a source have parameters.
fn with_session_id(channel: &str, session_id: Option<NextSessionId>) -> String {
    session_id.map_or_else(|| channel.to_owned(), |id| format!("{channel}|session-id={id}"))
}
