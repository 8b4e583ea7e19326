//! The I/O of connecting, with an Aeron client.

use rusteron_client::{
    Action, Aeron, ChannelUri, Error, Header, OfferError, PollError, Registration, Subscription,
};

use crate::client::connect::ConnectIo;
use crate::client::ingress_channel::IngressChannel;
use crate::client::ingress_publication::{IngressPublication, IngressStream, PendingIngress};

/// Fragments of each poll for an answer.
const FRAGMENT_LIMIT: usize = 10;

/// Publications to members and the subscription for their answers.
#[derive(Debug)]
pub(crate) struct Network {
    aeron: Aeron,
    egress_channel: ChannelUri,
    egress_stream_id: i32,
    adding_egress: Option<Registration<Subscription>>,
    egress: Option<Subscription>,
    ingress_stream: IngressStream,
    ingress: Vec<(i32, PendingIngress)>,
}

impl Network {
    pub(crate) fn new(
        aeron: &Aeron,
        egress_channel: ChannelUri,
        egress_stream_id: i32,
        ingress_stream: IngressStream,
    ) -> Self {
        Self {
            aeron: aeron.clone(),
            egress_channel,
            egress_stream_id,
            adding_egress: None,
            egress: None,
            ingress_stream,
            ingress: Vec::new(),
        }
    }

    pub(crate) fn aeron(&self) -> &Aeron {
        &self.aeron
    }

    /// Returns the publication to a member and the egress, once, after the cluster has answered.
    pub(crate) fn take(&mut self, member_id: i32) -> Option<(IngressPublication, Subscription)> {
        let publication = self.pending(member_id)?.take()?;
        let egress = self.egress.take()?;
        self.clear();
        Some((publication, egress))
    }

    /// Closes all publications and the subscription, and cancels requests.
    pub(crate) fn clear(&mut self) {
        self.ingress.clear();
        self.egress = None;
        self.adding_egress = None;
    }

    fn pending(&mut self, member_id: i32) -> Option<&mut PendingIngress> {
        let member = self.ingress.iter_mut().find(|member| member.0 == member_id);
        member.map(|member| &mut member.1)
    }
}

impl ConnectIo for Network {
    fn check_open(&self) -> Result<(), Error> {
        self.aeron.check_open()
    }

    fn poll_egress(&mut self) -> Result<bool, Error> {
        if self.egress.is_some() {
            return Ok(true);
        }
        let adding = match &mut self.adding_egress {
            Some(adding) => adding,
            None => {
                let adding = self
                    .aeron
                    .async_add_subscription(&self.egress_channel, self.egress_stream_id)?;
                self.adding_egress.insert(adding)
            }
        };
        let outcome = adding.poll();
        if !matches!(outcome, Ok(None)) {
            self.adding_egress = None;
        }
        self.egress = outcome?;
        Ok(self.egress.is_some())
    }

    fn response_channel(&mut self) -> Result<Option<String>, Error> {
        match &self.egress {
            Some(egress) => egress.try_resolve_channel_endpoint_port(),
            None => Ok(None),
        }
    }

    fn poll_ingress(&mut self, member_id: i32, channel: &IngressChannel) -> Result<bool, Error> {
        if self.pending(member_id).is_none() {
            self.ingress.push((member_id, PendingIngress::Idle));
        }
        let member = self.ingress.iter_mut().find(|member| member.0 == member_id);
        match member {
            Some((_, pending)) => pending.poll(&self.aeron, channel, &self.ingress_stream),
            None => Ok(false),
        }
    }

    fn is_connected(&mut self, member_id: i32) -> bool {
        let publication = self.pending(member_id).and_then(PendingIngress::added);
        publication.is_some_and(|publication| publication.is_connected())
    }

    fn close_ingress(&mut self, member_id: i32) {
        self.ingress.retain(|member| member.0 != member_id);
    }

    fn offer(&mut self, member_id: i32, message: &[u8]) -> Result<(), OfferError> {
        let publication = self.pending(member_id).and_then(PendingIngress::added);
        match publication {
            Some(publication) => publication.offer(&[], message).map(drop),
            None => Err(OfferError::NotConnected),
        }
    }

    fn poll_responses(
        &mut self,
        handler: &mut dyn FnMut(&[u8], i64) -> bool,
    ) -> Result<(), PollError> {
        let Some(egress) = &mut self.egress else { return Ok(()) };
        let mut is_done = false;
        let on_message = |message: &[u8], header: &Header<'_>| {
            // Messages behind the answer belong to the session, which polls for them later.
            if is_done {
                return Action::Abort;
            }
            is_done = handler(message, header.image_correlation_id());
            if is_done { Action::Break } else { Action::Continue }
        };
        egress.controlled_poll(on_message, FRAGMENT_LIMIT).map(drop)
    }

    fn next_correlation_id(&mut self) -> i64 {
        self.aeron.next_correlation_id()
    }
}
