//! The server.

use std::sync::Mutex;

use cross_language::{Failure, Malformed, Objects, Operation, SMALL_ARRAY_LIMIT};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::messages::Message;
use crate::protocol::{
    CallObject, CallerMessage, CreateObject, Integer, Integers, ObjectValue, ServerMessage, Text,
    Value, Void, caller_message, server_message, service_server,
};

/// The service, whose objects belong to all callers.
#[derive(Debug, Default)]
pub struct Service {
    objects: Mutex<Objects>,
}

impl Service {
    fn execute<A: Message, R: Message>(
        &self,
        operation: Operation,
        request: Request<A>,
    ) -> Result<Response<R>, Status> {
        let argument = request.into_inner().into_body().map_err(malformed)?;
        let result = match operation {
            Operation::Create | Operation::Call => {
                self.objects.lock().expect("no panic").execute(operation, argument)
            }
            // Without objects, calls need not wait for each other.
            _ => Objects::default().execute(operation, argument),
        };
        let result = R::from_body(result.map_err(failed)?);
        Ok(Response::new(result.map_err(malformed)?))
    }
}

fn malformed(error: Malformed) -> Status {
    Status::invalid_argument(error.to_string())
}

fn failed(failure: Failure) -> Status {
    match failure.status {
        cross_language::Status::UnknownObject => Status::not_found(failure.text),
        cross_language::Status::LimitReached => Status::resource_exhausted(failure.text),
        cross_language::Status::CallbackFailed => Status::aborted(failure.text),
        _ => Status::invalid_argument(failure.text),
    }
}

#[tonic::async_trait]
impl service_server::Service for Service {
    type CallbackStream = ReceiverStream<Result<ServerMessage, Status>>;

    async fn ping(&self, request: Request<Void>) -> Result<Response<Void>, Status> {
        self.execute(Operation::Ping, request)
    }

    async fn successor(&self, request: Request<Integer>) -> Result<Response<Integer>, Status> {
        self.execute(Operation::Successor, request)
    }

    async fn reverse(&self, request: Request<Text>) -> Result<Response<Text>, Status> {
        self.execute(Operation::Reverse, request)
    }

    async fn running_sums(&self, request: Request<Integers>) -> Result<Response<Integers>, Status> {
        self.execute(Operation::RunningSums, request)
    }

    async fn create(
        &self,
        request: Request<CreateObject>,
    ) -> Result<Response<ObjectValue>, Status> {
        self.execute(Operation::Create, request)
    }

    async fn call(&self, request: Request<CallObject>) -> Result<Response<ObjectValue>, Status> {
        self.execute(Operation::Call, request)
    }

    async fn callback(
        &self,
        request: Request<Streaming<CallerMessage>>,
    ) -> Result<Response<Self::CallbackStream>, Status> {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let result = call_back(request.into_inner(), &sender).await;
            let result = result.map(|sum| server_message::Message::Result(sum).into());
            // Fails if the caller has gone.
            let _ = sender.send(result).await;
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn transform(&self, request: Request<Value>) -> Result<Response<Value>, Status> {
        self.execute(Operation::Transform, request)
    }

    async fn total(&self, request: Request<Integers>) -> Result<Response<Integer>, Status> {
        self.execute(Operation::Total, request)
    }

    async fn squares(&self, request: Request<Integer>) -> Result<Response<Integers>, Status> {
        self.execute(Operation::Squares, request)
    }

    async fn transform_all(&self, request: Request<Value>) -> Result<Response<Value>, Status> {
        self.execute(Operation::TransformAll, request)
    }
}

impl From<server_message::Message> for ServerMessage {
    fn from(message: server_message::Message) -> Self {
        Self { message: Some(message) }
    }
}

/// Calls the caller back, and adds the answers.
async fn call_back(
    mut messages: Streaming<CallerMessage>,
    sender: &mpsc::Sender<Result<ServerMessage, Status>>,
) -> Result<i64, Status> {
    let Some(caller_message::Message::Count(count)) = next(&mut messages).await? else {
        return Err(Status::invalid_argument("the first message is no count"));
    };
    if !(0..=SMALL_ARRAY_LIMIT as i64).contains(&count) {
        let text = format!("{count} callbacks: 0 to {SMALL_ARRAY_LIMIT}");
        return Err(Status::invalid_argument(text));
    }
    let mut sum = 0_i64;
    for argument in 1..=count {
        let message = server_message::Message::Callback(argument).into();
        sender.send(Ok(message)).await.map_err(|_| Status::cancelled("the caller has gone"))?;
        sum = match next(&mut messages).await? {
            Some(caller_message::Message::Answer(answer)) => sum
                .checked_add(answer)
                .ok_or_else(|| Status::invalid_argument("a sum is out of range"))?,
            Some(caller_message::Message::Failure(text)) => return Err(Status::aborted(text)),
            _ => return Err(Status::invalid_argument("the message is no answer")),
        };
    }
    Ok(sum)
}

async fn next(
    messages: &mut Streaming<CallerMessage>,
) -> Result<Option<caller_message::Message>, Status> {
    let message = messages.message().await?;
    Ok(message.and_then(|message| message.message))
}
