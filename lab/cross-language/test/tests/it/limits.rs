//! Limits and deadlines of sessions.

use cross_language::protocol::{
    CallObject, CreateObject, Integers, ObjectValue, Operation, Outcome, Response, Status,
};
use cross_language::{AeronTransport, Caller, ConnectOptions, OBJECT_LIMIT, OPEN_CALL_LIMIT};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::DEADLINE;

use crate::for_each_server;
use crate::raw_client::RawClient;
use cross_language_test::programs::{Language, driver};

for_each_server! { objects open_calls unanswered_callback long_response }

/// Returns a function that calls a server.
fn connected(driver: &MediaDriver) -> impl FnMut(Operation) -> Outcome {
    let options = ConnectOptions::new(driver.aeron_dir());
    let transport = AeronTransport::connect(&options, DEADLINE).unwrap();
    let mut caller = Caller::new(transport, DEADLINE, Ok);
    move |operation| caller.call(&mut operation.into()).unwrap().outcome.unwrap()
}

fn status(outcome: Outcome) -> Status {
    match outcome {
        Outcome::Failure(failure) => failure.status(),
        other => panic!("{other:?}"),
    }
}

fn objects(server: Language) {
    let driver = driver();
    let _server = server.start(driver.aeron_dir(), &[]);
    let mut call = connected(&driver);
    let create = CreateObject { initial_value: 1, amount: 1 };
    for object_id in 1..=OBJECT_LIMIT as i64 {
        let object = Outcome::Create(ObjectValue { object_id, value: 2 });
        assert_eq!(call(Operation::Create(create)), object);
    }
    assert_eq!(status(call(Operation::Create(create))), Status::LimitReached);
    // Objects of one session are unknown in another.
    let argument = CallObject { object_id: 1, amount: 0 };
    let outcome = connected(&driver)(Operation::Call(argument));
    assert_eq!(status(outcome), Status::UnknownObject);
}

fn open_calls(server: Language) {
    let driver = driver();
    let _server = server.start(driver.aeron_dir(), &["--callback-timeout-ms", "60000"]);
    let mut client = RawClient::connect(&driver);
    let mut call = |correlation_id: i64| {
        client.request(correlation_id, Operation::Callback(1));
        let response = client.receive();
        assert_eq!(response.correlation_id, correlation_id);
        response.outcome.unwrap()
    };
    for id in 1..=OPEN_CALL_LIMIT as i64 {
        assert_eq!(call(id), Outcome::CallbackArgument(1));
    }
    assert_eq!(status(call(1_000)), Status::LimitReached);
    assert_eq!(status(call(1)), Status::InvalidArgument);
}

fn unanswered_callback(server: Language) {
    let driver = driver();
    let _server = server.start(driver.aeron_dir(), &["--callback-timeout-ms", "300"]);
    let mut client = RawClient::connect(&driver);
    client.request(7, Operation::Callback(1));
    assert_eq!(client.receive(), Response::new(7, Ok(Outcome::CallbackArgument(1))));
    let response = client.receive();
    assert_eq!(response.correlation_id, 7);
    assert_eq!(status(response.outcome.unwrap()), Status::CallbackFailed);
}

fn long_response(server: Language) {
    let driver = driver();
    let responses = "aeron:ipc?control-mode=response|term-length=64k";
    let _server = server.start(driver.aeron_dir(), &["--response-channel", responses]);
    let mut call = connected(&driver);
    assert_eq!(status(call(Operation::Squares(5_000))), Status::ResponseTooLong);
    let squares = Integers { values: vec![0, 1] };
    assert_eq!(call(Operation::Squares(2)), Outcome::Squares(squares));
}
