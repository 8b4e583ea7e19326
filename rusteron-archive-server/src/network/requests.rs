//! The streams on which clients send requests.

use std::sync::mpsc::Sender;

use rusteron_client::{
    Action, ErrorKind, Image, ImageInfo, PollError, Result, Subscription, UncheckedChannel,
};

use crate::conductor::effect::ImageId;
use crate::network::Adding;

/// Enough to answer several clients in a turn, and few enough for the turn to stay short.
const FRAGMENT_LIMIT: usize = 10;

/// What has happened to a client's stream of requests.
#[derive(Debug)]
pub(crate) enum RequestImage {
    Available(ImageInfo),
    Unavailable(ImageId),
}

/// The control subscriptions: over UDP, if that is enabled, and over IPC.
#[derive(Debug)]
pub(crate) struct Requests {
    subscriptions: Vec<Subscription>,
}

impl Requests {
    /// A request is assembled before its client is known, and has at most `max_length` bytes.
    pub(crate) fn new(mut subscriptions: Vec<Subscription>, max_length: usize) -> Self {
        for subscription in &mut subscriptions {
            subscription.set_max_message_length(max_length);
        }
        Self { subscriptions }
    }

    /// Adds a control subscription, whose images `changes` learns of.
    pub(crate) fn adding(
        channel: String,
        stream_id: i32,
        changes: Sender<RequestImage>,
    ) -> Adding<Subscription> {
        Adding::new(move |aeron| {
            let (available, unavailable) = (changes.clone(), changes.clone());
            aeron
                .subscription_builder(UncheckedChannel(&channel), stream_id)
                // A server that ends does not need to know.
                .on_available_image(move |image| {
                    let _ = available.send(RequestImage::Available(image.clone()));
                })
                .on_unavailable_image(move |image| {
                    let _ = unavailable
                        .send(RequestImage::Unavailable(ImageId::new(image.correlation_id())));
                })
                .async_add()
        })
    }

    /// Passes on requests that have arrived whole, each with the correlation id of its image. A
    /// request that the handler does not accept comes again in the next turn; requests of other
    /// images pass meanwhile. Returns the number of fragments.
    pub(crate) fn poll(
        &mut self,
        mut handler: impl FnMut(ImageId, &[u8]) -> bool,
    ) -> Result<usize, PollError> {
        let mut fragments = 0;
        for subscription in &mut self.subscriptions {
            fragments += subscription.controlled_poll(
                |message, header| match handler(
                    ImageId::new(header.image_correlation_id()),
                    message,
                ) {
                    true => Action::Continue,
                    false => Action::Abort,
                },
                FRAGMENT_LIMIT,
            )?;
        }
        Ok(fragments)
    }

    /// Rejects a client's stream of requests, so that the client does not believe in a session that has ended. Returns
    /// whether another attempt has to follow.
    pub(crate) fn reject(&mut self, image: ImageId, reason: &str) -> Result<bool> {
        let mut end = reason.len().min(Image::MAX_REASON_LENGTH);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        let reason = reason[..end].replace('\0', " ");
        let mut images = self.subscriptions.iter_mut().flat_map(Subscription::images);
        let Some(mut image) = images.find(|it| it.correlation_id() == image.get()) else {
            return Ok(false);
        };
        match image.reject(&reason) {
            Ok(()) => Ok(false),
            Err(error) if error.kind() == ErrorKind::DriverBufferFull => Ok(true),
            Err(error) => Err(error),
        }
    }
}
