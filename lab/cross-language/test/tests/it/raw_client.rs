//! A caller that reads and answers only when a test says so.

use cross_language::protocol::{Operation, Request, Response};
use cross_language::{REQUEST_CHANNEL, REQUEST_STREAM, RESPONSE_CHANNEL, RESPONSE_STREAM};
use prost::Message;
use rusteron_client::{Aeron, ChannelUri, ExclusivePublication, Header, Subscription};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{await_some, await_that, connect};

pub(crate) struct RawClient {
    requests: ExclusivePublication,
    responses: Subscription,
    _aeron: Aeron,
}

impl RawClient {
    pub(crate) fn connect(driver: &MediaDriver) -> Self {
        let aeron = connect(driver);
        let responses = aeron.add_subscription(RESPONSE_CHANNEL, RESPONSE_STREAM).unwrap();
        let channel: ChannelUri = REQUEST_CHANNEL.parse().unwrap();
        let id = responses.registration_id();
        let channel = channel.to_builder().response_correlation_id(id).build().unwrap();
        let requests = aeron.add_exclusive_publication(&channel, REQUEST_STREAM).unwrap();
        Self { requests, responses, _aeron: aeron }
    }

    pub(crate) fn request(&mut self, correlation_id: i64, operation: Operation) {
        self.send(&Request { correlation_id, operation: Some(operation) }.encode_to_vec());
    }

    pub(crate) fn send(&mut self, message: &[u8]) {
        await_that("the request is sent", || self.requests.offer(message).is_ok());
    }

    /// Waits for the server's next response.
    pub(crate) fn receive(&mut self) -> Response {
        Response::decode(self.receive_bytes().as_slice()).expect("a response")
    }

    /// Waits for the server's next message.
    pub(crate) fn receive_bytes(&mut self) -> Vec<u8> {
        await_some("a message of the server", || self.poll())
    }

    /// Waits until the server has opened the response channel.
    pub(crate) fn await_session(&self) {
        await_that("the server answers", || self.responses.is_connected());
    }

    /// Reads what is left, until the server's end of the session shows.
    pub(crate) fn await_end(&mut self) {
        await_that("the session's end", || {
            self.poll();
            !self.responses.is_connected()
        });
    }

    fn poll(&mut self) -> Option<Vec<u8>> {
        let mut received = None;
        let handler = |message: &[u8], _: &Header<'_>| received = Some(message.to_vec());
        self.responses.poll(handler, 1).unwrap();
        received
    }
}
