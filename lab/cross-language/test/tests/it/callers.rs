//! Callers of a server in the test, which answers with failures or with an unknown outcome.

use std::process::ExitStatus;

use cross_language::protocol::{Failure, Operation, Outcome, Request, Response, Status, Void};
use cross_language::{REQUEST_CHANNEL, REQUEST_STREAM, RESPONSE_CHANNEL, RESPONSE_STREAM};
use cross_language_test::cases;
use cross_language_test::programs::{CALLERS, LONG, Language, driver, file, path};
use prost::Message;
use rusteron_client::{ChannelUri, ExclusivePublication, Header};
use rusteron_test_support::{ChildProcess, await_that, connect};

/// The server could not read the request, for example because a value is too deep.
#[test]
fn unreadable_request() {
    for caller in CALLERS {
        let failure = Failure::new(Status::MalformedMessage, "too deep");
        let (status, output, errors) = check(caller, &|_| Response::new(0, Err(failure.clone())));
        assert_eq!(status.code(), Some(0), "{caller:?}: {errors}");
        assert_eq!(cases::results(&output), "{\"failure\":{\"status\":\"MALFORMED_MESSAGE\"}}\n");
    }
}

#[test]
fn response_without_known_outcome() {
    for caller in CALLERS {
        let unknown = |correlation_id| Response { correlation_id, outcome: None };
        let (status, _, errors) = check(caller, &unknown);
        assert_fails(caller, status, &errors, "error: MALFORMED_RESPONSE: ");
    }
}

/// The first, the second and a timed call fail.
#[test]
fn failure_in_each_phase() {
    let phases = [
        ("--connect-cycles 1", 1),
        ("--measure 0 --warmup-ms 60000", 2),
        ("--measure 0 --warmup-ms 0 --calls 1000", 900),
    ];
    for caller in CALLERS {
        for (mode, first_failure) in phases {
            let respond = |id| {
                let failure = Failure::new(Status::LimitReached, "too many");
                let result =
                    if id < first_failure { Ok(Outcome::Ping(Void {})) } else { Err(failure) };
                Response::new(id, result)
            };
            let mode: Vec<&str> = mode.split(' ').collect();
            let (status, _, errors) = answered(caller, &mode, &respond);
            assert_fails(caller, status, &errors, "error: LIMIT_REACHED: too many");
        }
    }
}

fn assert_fails(caller: Language, status: ExitStatus, errors: &str, error: &str) {
    assert_eq!(status.code(), Some(1), "{caller:?}: {errors}");
    // Java's options have a line, too.
    let line = errors.lines().last().unwrap_or_default();
    assert!(line.starts_with(error), "{caller:?}: {errors}");
}

/// Runs a caller with one `ping`. Returns its status, output and errors.
fn check(caller: Language, respond: &dyn Fn(i64) -> Response) -> (ExitStatus, String, String) {
    let ping = Request::from(Operation::Ping(Void {})).encode_to_vec();
    let ping = file("ping", &cross_language::modes::digits(&ping));
    answered(caller, &["--check", path(&ping)], respond)
}

/// Runs a caller, and answers its requests by their ids.
fn answered(
    caller: Language,
    mode: &[&str],
    respond: &dyn Fn(i64) -> Response,
) -> (ExitStatus, String, String) {
    let driver = driver();
    let aeron = connect(&driver);
    let mut requests = aeron.add_subscription(REQUEST_CHANNEL, REQUEST_STREAM).unwrap();
    let mut process = ChildProcess::spawn(&mut caller.caller(driver.aeron_dir(), &[mode, LONG]));
    let mut responses: Option<ExclusivePublication> = None;
    await_that("the caller ends", || {
        let mut response = None;
        let handler = |message: &[u8], header: &Header<'_>| {
            let id = Request::decode(message).expect("a request").correlation_id;
            response = Some((header.image_correlation_id(), respond(id)));
        };
        requests.poll(handler, 1).unwrap();
        if let Some((image, response)) = response {
            let responses = responses.get_or_insert_with(|| {
                let channel: ChannelUri = RESPONSE_CHANNEL.parse().unwrap();
                let channel = channel.to_builder().response_correlation_id(image).build().unwrap();
                aeron.add_exclusive_publication(&channel, RESPONSE_STREAM).unwrap()
            });
            let message = response.encode_to_vec();
            await_that("the response is sent", || responses.offer(&message).is_ok());
        }
        process.try_wait().is_some()
    });
    process.finish()
}
