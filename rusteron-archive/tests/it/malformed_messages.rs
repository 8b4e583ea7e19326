//! An archive that sends messages that cannot be decoded. For each, the error names the fault, and the
//! session goes on.

use std::sync::{Arc, Mutex, mpsc};

use rusteron_archive::{
    Archive, ArchiveContext, ArchiveError, ArchiveErrorKind, CredentialsSupplier,
    PersistentSubscription, PersistentSubscriptionContext, PersistentSubscriptionEvent,
    RecordingSignalKind, ReplayMerge,
};
use rusteron_client::Aeron;
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::archive::fake_archive::{
    ARCHIVE_ID, AUTH_CONNECT, ERROR, FakeArchive, HEADER_LENGTH, LIST_RECORDING,
    LIST_SUBSCRIPTIONS, MAX_RECORDED_POSITION, Message, OK, REQUEST_STREAM, Request, STOP_POSITION,
    well_formed,
};
use rusteron_test_support::{DEADLINE, await_some, await_that, connect, free_port, launch_with};

/// A message made malformed, and a part of the error that names the fault.
#[derive(Debug, Clone)]
struct Fault {
    name: String,
    bytes: Vec<u8>,
    text: String,
}

/// Every fault that a message can have. `version_0` is the length that its block has had from the first
/// version of the schema on.
fn faults(message: &Message, version_0: usize) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fault = |name: String, bytes: Vec<u8>, text: &str| {
        faults.push(Fault { name, bytes, text: text.to_owned() });
    };
    let encoded = message.encode();
    let mut with_text = |index: usize, claimed: u32, carried: Option<&[u8]>| {
        let mut message = message.clone();
        message.texts[index].0 = claimed;
        if let Some(carried) = carried {
            message.texts.truncate(index + 1);
            message.texts[index].1 = carried.to_vec();
        }
        let name = format!("text {index} claims {claimed}, carries {carried:?}");
        fault(name, message.encode(), &format!("{claimed} bytes"));
    };
    for (index, (_, text)) in message.texts.iter().enumerate() {
        with_text(index, u32::MAX, None);
        with_text(index, u32::MAX, Some(b""));
        with_text(index, 0xC000_0000, None);
        with_text(index, 20_000, Some(b""));
        with_text(index, text.len() as u32 + 1, Some(text));
        with_text(index, 1, Some(b""));
    }
    let mut end = HEADER_LENGTH + message.block.len();
    for (index, (length, _)) in message.texts.iter().enumerate() {
        for cut in [end, end + 3] {
            let name = format!("text {index}: cut off in its length at {cut}");
            fault(name, encoded[..cut].to_vec(), "no length");
        }
        end += 4 + *length as usize;
    }
    let mut with_block = |length: usize, text: &str| {
        let mut message = message.clone();
        message.block_length = length as u16;
        fault(format!("block of {length}"), message.encode(), text);
    };
    for short in [0, version_0 - 1] {
        with_block(short, &format!("block of {short} bytes"));
    }
    for long in [encoded.len() - HEADER_LENGTH + 1, 0xFFFF] {
        with_block(long, &format!("block of {long} bytes"));
    }
    for cut in [0, 1, HEADER_LENGTH - 1] {
        fault(format!("header cut off at {cut}"), encoded[..cut].to_vec(), "header");
    }
    for cut in [HEADER_LENGTH, HEADER_LENGTH + version_0 - 1] {
        fault(format!("block cut off at {cut}"), encoded[..cut].to_vec(), "block of");
    }
    faults
}

type Answer = Box<dyn FnMut(&Request) -> Vec<Vec<u8>> + Send>;

/// The archive's next answer to a kind of request, instead of the right answer.
#[derive(Clone, Default)]
struct Next(Arc<Mutex<Option<(u16, Answer)>>>);

impl Next {
    fn set(&self, request: u16, answer: impl FnMut(&Request) -> Vec<Vec<u8>> + Send + 'static) {
        *self.0.lock().expect("a lock") = Some((request, Box::new(answer)));
    }

    /// With the right answer after it, so that the stream goes on.
    fn set_before_answer(&self, request: u16, bytes: impl Fn(i64) -> Vec<u8> + Send + 'static) {
        self.set(request, move |request| {
            let mut messages = vec![bytes(request.correlation_id)];
            messages.extend(well_formed(request));
            messages
        });
    }

    fn answer(&self, request: &Request) -> Vec<Vec<u8>> {
        let mut next = self.0.lock().expect("a lock");
        match next.take_if(|(template, _)| *template == request.template) {
            Some((_, mut answer)) => answer(request),
            None => well_formed(request),
        }
    }

    fn was_given(&self) -> bool {
        self.0.lock().expect("a lock").is_none()
    }
}

/// A driver, and an archive on it.
struct Fixture {
    next: Next,
    _archive: FakeArchive,
    aeron: Aeron,
    _driver: MediaDriver,
}

fn fixture() -> Fixture {
    let driver = launch_with(|context| Ok(context));
    let aeron = connect(&driver);
    let next = Next::default();
    let answers = next.clone();
    let archive = FakeArchive::launch(&aeron, move |request| answers.answer(request));
    Fixture { next, _archive: archive, aeron, _driver: driver }
}

impl Fixture {
    fn context(&self) -> ArchiveContext {
        let mut context = ArchiveContext::new().expect("a context");
        context
            .set_control_request_channel("aeron:ipc")
            .and_then(|context| context.set_control_request_stream_id(REQUEST_STREAM))
            .and_then(|context| context.set_control_response_channel("aeron:ipc"))
            // A message can have an eighth of it.
            .and_then(|context| context.set_control_term_buffer_length(1024 * 1024))
            .and_then(|context| context.set_message_timeout(DEADLINE))
            .expect("valid settings");
        context
    }

    fn connect(&self) -> Result<Archive, ArchiveError> {
        Archive::connect(&self.aeron, self.context())
    }
}

fn assert_refused<T: std::fmt::Debug>(
    outcome: Result<T, ArchiveError>,
    fault: &Fault,
    message: &str,
) {
    let error = outcome.expect_err(&fault.name);
    assert_eq!(error.kind(), ArchiveErrorKind::MalformedMessage, "{}: {error}", fault.name);
    assert!(error.message().contains(&fault.text), "{}: {error}", fault.name);
    assert!(error.message().contains(message) || fault.text == "header", "{}: {error}", fault.name);
}

/// Asks for something that the archive answers by messages of a kind.
fn ask(archive: &Archive, request: u16) -> Result<(), ArchiveError> {
    match request {
        LIST_RECORDING => archive.recording(7.into()).map(drop),
        LIST_SUBSCRIPTIONS => {
            let subscriptions = archive.recording_subscriptions("", None)?;
            subscriptions.collect::<Result<Vec<_>, _>>().map(drop)
        }
        _ => archive.stop_position(7.into()).map(drop),
    }
}

/// Sends each faulty variant of a message before the answer to a request, and repeats the request.
#[test]
fn message_before_the_answer() {
    type Kind = (&'static str, usize, fn(i64) -> Message, &'static [u16]);
    let response = |id| Message::control_response(id, 42, ERROR, "no such thing");
    let challenge = |id| Message::challenge(id, b"who are you?");
    let recording = |id| Message::recording_descriptor(id, 7);
    let subscription = Message::recording_subscription_descriptor;
    let signal = |_| Message::recording_signal(7, 1);
    const ALL: &[u16] = &[STOP_POSITION, LIST_RECORDING, LIST_SUBSCRIPTIONS];
    let kinds: [Kind; 5] = [
        ("ControlResponse", 28, response, ALL),
        ("Challenge", 20, challenge, &[STOP_POSITION]),
        ("RecordingDescriptor", 80, recording, &[LIST_RECORDING]),
        ("RecordingSubscriptionDescriptor", 28, subscription, &[LIST_SUBSCRIPTIONS]),
        ("RecordingSignalEvent", 44, signal, ALL),
    ];
    let fixture = fixture();
    let archive = fixture.connect().expect("a session");
    for (name, version_0, message, requests) in kinds {
        for &request in requests {
            for (index, fault) in faults(&message(0), version_0).into_iter().enumerate() {
                fixture.next.set_before_answer(request, move |id| {
                    faults(&message(id), version_0).swap_remove(index).bytes
                });
                assert_refused(ask(&archive, request), &fault, name);
                ask(&archive, request).expect("the answer after it");
            }
        }
    }
}

#[test]
fn connect_response() {
    let fixture = fixture();
    let message = |id| Message::control_response(id, 42, OK, "welcome");
    for request in [AUTH_CONNECT, ARCHIVE_ID] {
        for (index, fault) in faults(&message(0), 28).into_iter().enumerate() {
            fixture.next.set(request, move |request| {
                vec![faults(&message(request.correlation_id), 28).swap_remove(index).bytes]
            });
            assert_refused(fixture.connect(), &fault, "ControlResponse");
        }
    }
    fixture.connect().expect("a session").stop_position(7.into()).expect("an answer");
}

/// Passes on the challenge that it gets.
struct Supplier(mpsc::Sender<Vec<u8>>);

impl CredentialsSupplier for Supplier {
    fn encoded_credentials(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn on_challenge(&mut self, encoded_challenge: &[u8]) -> Vec<u8> {
        self.0.send(encoded_challenge.to_vec()).expect("a receiver");
        encoded_challenge.to_vec()
    }
}

#[test]
fn challenge_does_not_reach_supplier() {
    let fixture = fixture();
    let (sender, challenges) = mpsc::channel();
    let connect = || {
        let mut context = fixture.context();
        context.set_credentials_supplier(Supplier(sender.clone())).expect("a supplier");
        Archive::connect(&fixture.aeron, context)
    };
    let message = |id| Message::challenge(id, b"who are you?");
    for (index, fault) in faults(&message(0), 20).into_iter().enumerate() {
        fixture.next.set(AUTH_CONNECT, move |request| {
            vec![faults(&message(request.correlation_id), 20).swap_remove(index).bytes]
        });
        assert_refused(connect(), &fault, "Challenge");
        assert!(challenges.try_recv().is_err(), "{}", fault.name);
    }
    for challenge in [b"".to_vec(), b"who are you?".to_vec(), vec![b'?'; 20_000]] {
        let sent = challenge.clone();
        fixture.next.set(AUTH_CONNECT, move |request| {
            vec![Message::challenge(request.correlation_id, &sent).encode()]
        });
        // A challenge of 20,000 bytes is too long for credentials, which are the same here.
        let outcome = connect();
        assert_eq!(outcome.is_ok(), challenge.len() < 3072, "{outcome:?}");
        assert!(challenges.try_recv() == Ok(challenge));
    }
}

#[test]
fn persistent_subscription_continues() {
    let fixture = fixture();
    let live = fixture.aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    for (name, version_0) in [("ControlResponse", 28), ("RecordingDescriptor", 80)] {
        let message = move |id| match name {
            "ControlResponse" => Message::control_response(id, 42, ERROR, "no such thing"),
            _ => Message::recording_descriptor(id, 7),
        };
        for (index, fault) in faults(&message(0), version_0).into_iter().enumerate() {
            fixture.next.set_before_answer(LIST_RECORDING, move |id| {
                faults(&message(id), version_0).swap_remove(index).bytes
            });
            let (sender, events) = mpsc::channel();
            let mut context = PersistentSubscriptionContext::new(
                7.into(),
                "aeron:ipc",
                1001,
                "aeron:udp?endpoint=localhost:0",
                1002,
            )
            .expect("valid settings");
            context
                .set_listener(move |event| sender.send(event.clone()).expect("a receiver"))
                .expect("a listener");
            let mut subscription =
                PersistentSubscription::new(&fixture.aeron, fixture.context(), context)
                    .expect("a subscription");
            let event = await_some("an event", || {
                subscription.poll(|_, _| {}, 10).expect("no failure");
                events.try_recv().ok()
            });
            let PersistentSubscriptionEvent::Error(error) = event else {
                panic!("{}: {event:?}", fault.name);
            };
            assert_refused(Err::<(), _>(error), &fault, name);
            // The right answer comes after it.
            await_that("the live stream", || {
                subscription.poll(|_, _| {}, 10).expect("no failure");
                subscription.is_live()
            });
            assert!(fixture.next.was_given());
            assert!(subscription.failure().is_none());
        }
    }
    drop(live);
}

#[test]
fn replay_merge_fails() {
    let fixture = fixture();
    let mut archive = fixture.connect().expect("a session");
    let message = |id| Message::control_response(id, 42, ERROR, "no such thing");
    for (index, fault) in faults(&message(0), 28).into_iter().enumerate() {
        fixture.next.set(MAX_RECORDED_POSITION, move |request| {
            vec![faults(&message(request.correlation_id), 28).swap_remove(index).bytes]
        });
        let subscription = fixture
            .aeron
            .add_subscription("aeron:udp?control-mode=manual", 1001)
            .expect("a subscription");
        let mut merge = ReplayMerge::builder(
            "aeron:udp?session-id=7",
            "aeron:udp?endpoint=localhost:0",
            format!("aeron:udp?endpoint=localhost:{}", free_port()),
        )
        .progress_timeout(DEADLINE)
        .start(archive, subscription, 7.into())
        .expect("a merge");
        let error = await_some("a failure", || merge.poll(|_, _| {}, 10).err());
        assert_refused(Err::<(), _>(error), &fault, "ControlResponse");
        assert!(merge.has_failed());
        (archive, _) = merge.into_parts().expect("the parts");
        archive.stop_position(7.into()).expect("an answer");
    }
}

#[test]
fn unknown_code_or_schema() {
    let fixture = fixture();
    let archive = fixture.connect().expect("a session");
    let refused = |bytes: fn(i64) -> Vec<u8>, kind, text: &str| {
        fixture.next.set_before_answer(STOP_POSITION, bytes);
        let error = archive.stop_position(7.into()).expect_err("a malformed message");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(text), "{error}");
        assert_eq!(archive.stop_position(7.into()).expect("an answer"), Some(42));
    };
    let malformed = ArchiveErrorKind::MalformedMessage;
    refused(|id| Message::control_response(id, 42, 99, "").encode(), malformed, "code 99");
    refused(|_| Message::recording_signal(7, 99).encode(), malformed, "signal 99");
    let other = |id| {
        let mut message = Message::control_response(id, 42, OK, "");
        message.schema = 111;
        message.encode()
    };
    let text = "schema id: 111 that doesn't match expected id: 101";
    refused(other, ArchiveErrorKind::IncompatibleVersion, text);
}

#[test]
fn unknown_kind_is_skipped() {
    let fixture = fixture();
    let archive = fixture.connect().expect("a session");
    let unknown = |id| {
        let mut message = Message::control_response(id, 1, OK, "");
        message.template = 999;
        message.block_length = 0xFFFF;
        message.encode()
    };
    fixture.next.set_before_answer(STOP_POSITION, unknown);
    assert_eq!(archive.stop_position(7.into()).expect("an answer"), Some(42));
}

#[test]
fn other_schema_version() {
    let fixture = fixture();
    let (sender, signals) = mpsc::channel();
    let mut context = fixture.context();
    context
        .set_recording_signal_consumer(move |signal| {
            sender.send(*signal).expect("a receiver");
        })
        .expect("a consumer");

    // The first version of the schema had no protocol version, nor ids of archives.
    fixture.next.set(AUTH_CONNECT, |request| {
        let mut message = Message::control_response(request.correlation_id, 0, OK, "welcome");
        message.block.truncate(28);
        message.block_length = 28;
        message.version = 0;
        vec![message.encode()]
    });
    let archive = Archive::connect(&fixture.aeron, context).expect("a session");
    assert_eq!(archive.archive_id(), None);

    // Later versions can append to blocks and to messages.
    let later = |mut message: Message| {
        message.version = 99;
        message.block.extend([0xEE; 24]);
        message.block_length += 24;
        message.texts.push((3, b"new".to_vec()));
        message.encode()
    };
    fixture.next.set(STOP_POSITION, move |request| {
        let signal = later(Message::recording_signal(7, 1));
        let text = "no such thing";
        vec![signal, later(Message::control_response(request.correlation_id, 5, ERROR, text))]
    });
    let error = archive.stop_position(7.into()).expect_err("an error");
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error}");
    assert_eq!(error.message(), "no such thing");
    let signal = signals.try_recv().expect("a signal");
    assert_eq!(
        (signal.kind, signal.recording_id, signal.position),
        (RecordingSignalKind::Stop, 7.into(), Some(96))
    );

    fixture.next.set(LIST_RECORDING, move |request| {
        vec![later(Message::recording_descriptor(request.correlation_id, 7))]
    });
    let recording = archive.recording(7.into()).expect("an answer").expect("a recording");
    assert_eq!(recording.stream_id, 1001);
    assert_eq!(recording.stripped_channel, "aeron:ipc");
    assert_eq!(recording.original_channel, "aeron:ipc?alias=fake");
    assert_eq!(recording.source_identity, "aeron:ipc");

    fixture.next.set(LIST_SUBSCRIPTIONS, move |request| {
        let id = request.correlation_id;
        vec![
            later(Message::recording_subscription_descriptor(id)),
            later(Message::control_response(id, 0, 3, "")),
        ]
    });
    let subscriptions = archive.recording_subscriptions("", None).expect("a text");
    let subscriptions = subscriptions.collect::<Result<Vec<_>, _>>().expect("an answer");
    assert_eq!(subscriptions.len(), 1);
    assert_eq!(subscriptions[0].stripped_channel, "aeron:ipc");
}

#[test]
fn text_of_any_length() {
    let fixture = fixture();
    let archive = fixture.connect().expect("a session");
    // The last ones are sent in several fragments.
    for length in [0, 1, 3, 4, 31, 32, 1_000, 1_376, 9_999, 10_000, 20_000, 100_000] {
        let text = "x".repeat(length);
        fixture.next.set(STOP_POSITION, move |request| {
            vec![Message::control_response(request.correlation_id, 5, ERROR, &text).encode()]
        });
        let error = archive.stop_position(7.into()).expect_err("an error");
        assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{length}: {error}");
        // C shortens texts to 8 KiB.
        let words = error.message().trim_end_matches("...");
        let is_text = !words.is_empty() && words.chars().all(|letter| letter == 'x');
        assert!(length == 0 || is_text, "{length}: {words}");
        assert!(length == 0 || words.len() >= length.min(8_000), "{length}: {}", words.len());
    }
}
