//! Limits and deadlines of sessions.

use cross_language::{
    AeronTransport, Body, CallError, Caller, ConnectOptions, OBJECT_LIMIT, OPEN_CALL_LIMIT,
    Operation, Status, Template,
};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::DEADLINE;

use crate::for_each_server;
use crate::raw_client::RawClient;
use cross_language_test::programs::{Language, driver};

for_each_server! { objects open_calls unanswered_callback long_response }

fn connected(driver: &MediaDriver) -> Caller<AeronTransport> {
    let aeron_dir = Some(driver.aeron_dir().to_owned());
    let options = ConnectOptions { aeron_dir, ..ConnectOptions::default() };
    Caller::new(AeronTransport::connect(&options, DEADLINE).unwrap(), DEADLINE, Ok)
}

fn objects(server: Language) {
    let driver = driver();
    let _server = server.start(driver.aeron_dir(), &[]);
    let mut caller = connected(&driver);
    let create = Body::CreateObject { initial_value: 1, amount: 1 };
    for number in 1..=OBJECT_LIMIT as i64 {
        let object = caller.call(Operation::Create, &create).unwrap();
        assert_eq!(object, Body::ObjectValue { object_id: number, value: 2 });
    }
    let result = caller.call(Operation::Create, &create);
    assert!(matches!(result, Err(CallError::Failed(Status::LimitReached, _))), "{result:?}");
    // Objects of one session are unknown in another.
    let call = Body::CallObject { object_id: 1, amount: 0 };
    let result = connected(&driver).call(Operation::Call, &call);
    assert!(matches!(result, Err(CallError::Failed(Status::UnknownObject, _))), "{result:?}");
}

fn open_calls(server: Language) {
    let driver = driver();
    let _server = server.start(driver.aeron_dir(), &["--callback-timeout-ms", "60000"]);
    let mut client = RawClient::connect(&driver);
    for id in 0..OPEN_CALL_LIMIT as i64 {
        client.request(id, Operation::Callback, &Body::Integer(1));
        let callback = client.receive();
        assert_eq!((callback.template, callback.correlation_id), (Template::CallbackRequest, id));
    }
    let mut fails = |id: i64, status: Status| {
        client.request(id, Operation::Callback, &Body::Integer(1));
        let response = client.receive();
        assert_eq!((response.template, response.correlation_id), (Template::Response, id));
        assert_eq!(Status::from_number(response.code), Some(status));
    };
    fails(1_000, Status::LimitReached);
    fails(0, Status::InvalidArgument);
}

fn unanswered_callback(server: Language) {
    let driver = driver();
    let _server = server.start(driver.aeron_dir(), &["--callback-timeout-ms", "300"]);
    let mut client = RawClient::connect(&driver);
    client.request(7, Operation::Callback, &Body::Integer(1));
    assert_eq!(client.receive().template, Template::CallbackRequest);
    let response = client.receive();
    assert_eq!((response.template, response.correlation_id), (Template::Response, 7));
    assert_eq!(Status::from_number(response.code), Some(Status::CallbackFailed));
}

fn long_response(server: Language) {
    let driver = driver();
    let responses = "aeron:ipc?control-mode=response|term-length=64k";
    let _server = server.start(driver.aeron_dir(), &["--response-channel", responses]);
    let mut caller = connected(&driver);
    let result = caller.call(Operation::Squares, &Body::Integer(5_000));
    assert!(matches!(result, Err(CallError::Failed(Status::ResponseTooLong, _))), "{result:?}");
    let result = caller.call(Operation::Squares, &Body::Integer(2));
    assert_eq!(result.unwrap(), Body::Integers(vec![0, 1]));
}
