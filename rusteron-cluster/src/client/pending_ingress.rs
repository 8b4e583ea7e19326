//! A publication to a member of the cluster, while it is added.

use rusteron_client::{
    Aeron, AnyPublication, Error, ExclusivePublication, Publication, Registration, UncheckedChannel,
};
use rusteron_core::channel::ChannelText;

use crate::client::context::ClusterContext;
use crate::stream::{is_name, is_temporary, poll_or_request};

/// The stream and kind of publications to the cluster.
#[derive(Debug)]
pub(crate) struct IngressStream {
    stream_id: i32,
    is_exclusive: bool,
}

impl IngressStream {
    pub(crate) fn new(context: &ClusterContext) -> Self {
        Self {
            stream_id: context.ingress_stream_id(),
            is_exclusive: context.is_ingress_exclusive(),
        }
    }
}

/// A publication that is being added, or has been added, or could not be added yet.
#[derive(Debug, Default)]
pub(crate) struct PendingIngress {
    exclusive: Option<Registration<ExclusivePublication>>,
    shared: Option<Registration<Publication>>,
    pub(crate) added: Option<AnyPublication>,
}

impl PendingIngress {
    /// Requests the publication if necessary. Returns whether it has been added.
    ///
    /// The channel was checked when it was made. If its endpoint is a name without a port that the
    /// media driver does not know, the error says what is missing.
    pub(crate) fn poll(
        &mut self,
        aeron: &Aeron,
        channel: &str,
        stream: &IngressStream,
    ) -> Result<bool, Error> {
        self.poll_checked(aeron, channel, stream).map_err(|error| {
            let channel = ChannelText::new(channel);
            let endpoint = channel.values("endpoint").last().unwrap_or_default();
            match is_name(endpoint) && !is_temporary(&error) {
                true => Error::new(
                    error.kind(),
                    format!(
                        "ingress endpoint {endpoint}: the port is missing, as in {endpoint}:9002, and no name \
                         resolver of the media driver adds one"
                    ),
                ),
                false => error,
            }
        })
    }

    fn poll_checked(
        &mut self,
        aeron: &Aeron,
        channel: &str,
        stream: &IngressStream,
    ) -> Result<bool, Error> {
        let (channel, id) = (UncheckedChannel(channel), stream.stream_id);
        if self.added.is_none() {
            self.added = if stream.is_exclusive {
                let request = || aeron.async_add_exclusive_publication(channel, id);
                poll_or_request(&mut self.exclusive, request)?.map(AnyPublication::from)
            } else {
                let request = || aeron.async_add_publication(channel, id);
                poll_or_request(&mut self.shared, request)?.map(AnyPublication::from)
            };
        }
        Ok(self.added.is_some())
    }
}
