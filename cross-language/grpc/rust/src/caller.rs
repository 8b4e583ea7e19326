//! The caller.

use std::time::Duration;

use cross_language::{Body, CallError, Malformed, Operation, Status};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use crate::WINDOW_LENGTH;
use crate::messages::Message;
use crate::protocol::service_client::ServiceClient;
use crate::protocol::{
    CallObject, CallerMessage, CreateObject, Integer, Integers, Text, Value, Void, caller_message,
    server_message,
};

/// A connection, which its thread drives: no other thread takes part in a call.
#[derive(Debug)]
pub struct Caller {
    runtime: Runtime,
    client: ServiceClient<Channel>,
    timeout: Duration,
    on_callback: fn(i64) -> Result<i64, String>,
}

impl Caller {
    /// Connects to `HOST:PORT` or `unix:PATH`. `on_callback` answers callbacks of the server.
    ///
    /// # Errors
    /// No server listens there.
    pub fn connect(
        server: &str,
        timeout: Duration,
        on_callback: fn(i64) -> Result<i64, String>,
    ) -> Result<Self, CallError> {
        let uri = if server.starts_with("unix:") {
            server.to_owned()
        } else {
            format!("http://{server}")
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|_| CallError::Closed)?;
        let endpoint = Endpoint::from_shared(uri)
            .map_err(|error| CallError::Invalid(Malformed::new(error.to_string())))?
            .initial_stream_window_size(WINDOW_LENGTH)
            .initial_connection_window_size(WINDOW_LENGTH)
            .timeout(timeout)
            .connect_timeout(timeout);
        let channel = runtime.block_on(endpoint.connect()).map_err(|_| CallError::NotConnected)?;
        Ok(Self { runtime, client: ServiceClient::new(channel), timeout, on_callback })
    }

    /// Calls an operation and waits for its result.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call(&mut self, operation: Operation, argument: &Body) -> Result<Body, CallError> {
        let Self { runtime, client, timeout, on_callback } = self;
        /// Awaits a call of the client: from the argument's message to the result's body.
        macro_rules! unary {
            ($method:ident, $argument:ty) => {{
                let message =
                    <$argument>::from_body(argument.clone()).map_err(CallError::Invalid)?;
                let result = runtime.block_on(client.$method(message));
                result.map(|response| response.into_inner().into_body())
            }};
        }
        let result = match operation {
            Operation::Ping => unary!(ping, Void),
            Operation::Successor => unary!(successor, Integer),
            Operation::Reverse => unary!(reverse, Text),
            Operation::RunningSums => unary!(running_sums, Integers),
            Operation::Create => unary!(create, CreateObject),
            Operation::Call => unary!(call, CallObject),
            Operation::Transform => unary!(transform, Value),
            Operation::Total => unary!(total, Integers),
            Operation::Squares => unary!(squares, Integer),
            Operation::TransformAll => unary!(transform_all, Value),
            Operation::Callback => {
                let Body::Integer(count) = *argument else {
                    return Err(CallError::Invalid(Malformed::new("no integer")));
                };
                runtime.block_on(callback(client, count, *on_callback)).map(Ok)
            }
        };
        match result {
            Ok(body) => body.map_err(CallError::Malformed),
            Err(status) => Err(call_error(&status, *timeout)),
        }
    }
}

async fn callback(
    client: &mut ServiceClient<Channel>,
    count: i64,
    on_callback: fn(i64) -> Result<i64, String>,
) -> Result<Body, tonic::Status> {
    let (sender, receiver) = mpsc::channel(1);
    let send = async |message| {
        // Fails if the server has ended the call, which its next message says.
        let _ = sender.send(CallerMessage { message: Some(message) }).await;
    };
    send(caller_message::Message::Count(count)).await;
    let mut messages = client.callback(ReceiverStream::new(receiver)).await?.into_inner();
    loop {
        match messages.message().await?.and_then(|message| message.message) {
            Some(server_message::Message::Callback(argument)) => {
                send(match on_callback(argument) {
                    Ok(answer) => caller_message::Message::Answer(answer),
                    Err(text) => caller_message::Message::Failure(text),
                })
                .await;
            }
            Some(server_message::Message::Result(sum)) => return Ok(Body::Integer(sum)),
            None => return Err(tonic::Status::internal("the server has sent no result")),
        }
    }
}

fn call_error(status: &tonic::Status, timeout: Duration) -> CallError {
    let text = status.message().to_owned();
    match status.code() {
        Code::InvalidArgument => CallError::Failed(Status::InvalidArgument, text),
        Code::NotFound => CallError::Failed(Status::UnknownObject, text),
        Code::ResourceExhausted => CallError::Failed(Status::LimitReached, text),
        Code::Aborted => CallError::Failed(Status::CallbackFailed, text),
        Code::Unavailable => CallError::NotConnected,
        // The client itself ends a call whose time is over.
        Code::DeadlineExceeded | Code::Cancelled => CallError::TimedOut(timeout),
        code => CallError::Malformed(Malformed::new(format!("{code}: {text}"))),
    }
}
