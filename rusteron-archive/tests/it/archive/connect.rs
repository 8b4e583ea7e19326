//! Sessions with an archive: made, rejected, lost and abandoned.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rusteron_archive::{
    Archive, ArchiveContext, ArchiveError, ArchiveErrorKind, CredentialsSupplier, ErrorKind,
    RecordingSignalKind,
};
use rusteron_client::{Aeron, IdleStrategyKind, Subscription};
use rusteron_media_driver::{DriverInvoker, MediaDriver, ThreadingMode};
use rusteron_test_support::archive::{ArchiveProcess, Options, STREAM, record, replay_all};
use rusteron_test_support::{await_that, block_on};

fn works(archive: &Archive) {
    let (_publication, recording_id, _) = record(archive, 10);
    let params =
        rusteron_archive::ReplayParams::new().length(rusteron_archive::ReplayLength::Recorded);
    assert_eq!(replay_all(archive, recording_id, params), (0..10).collect::<Vec<_>>());
}

#[test]
fn blocking_polled_and_awaited() {
    let server = ArchiveProcess::launch();
    let aeron = server.aeron();
    let waited = Archive::connect(&aeron, server.context()).expect("a session");
    let mut polled = Archive::async_connect(&aeron, server.udp_context()).expect("an attempt");
    let polled =
        rusteron_test_support::await_some("a session", || polled.poll().expect("no error"));
    let awaited = Archive::async_connect(&aeron, server.context()).expect("an attempt");
    let awaited = block_on(awaited).expect("a session");
    for archive in [&waited, &polled, &awaited] {
        assert!(archive.is_connected());
        assert_eq!(archive.archive_id(), waited.archive_id());
        assert_eq!(archive.recordings().count(), 0);
    }
    assert!(waited.archive_id().is_some());
    assert_ne!(waited.control_session_id(), polled.control_session_id());
    works(&polled);
    drop(aeron);
    awaited.close();
    assert_eq!(waited.recordings().count(), 1);
}

#[test]
fn outcome_is_returned_once() {
    let server = ArchiveProcess::launch();
    let mut attempt =
        Archive::async_connect(&server.aeron(), server.context()).expect("an attempt");
    let archive =
        rusteron_test_support::await_some("a session", || attempt.poll().expect("no error"));
    let error = attempt.poll().expect_err("it was given out");
    assert_eq!(error.kind(), ArchiveErrorKind::Client(ErrorKind::IllegalState));
    drop(attempt);
    assert!(archive.is_connected());
}

#[test]
fn response_channel() {
    let server = ArchiveProcess::launch();
    let mut context = server.udp_context();
    let port = rusteron_test_support::free_port();
    context
        .set_control_response_channel(&format!(
            "aeron:udp?control-mode=response|control=localhost:{port}"
        ))
        .expect("a channel");
    let archive = Archive::connect(&server.aeron(), context).expect("a session");
    works(&archive);
}

#[test]
fn client_without_conductor_thread() {
    let server = ArchiveProcess::launch();
    let aeron = server.aeron_with_invoker();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let inner = aeron.clone();
    let mut context = server.context();
    context
        .set_delegating_invoker(move || {
            count.fetch_add(1, Ordering::Relaxed);
            let error = inner.do_work().expect_err("it is being done");
            assert_eq!(error.kind(), ErrorKind::CalledFromConductor);
        })
        .and_then(|context| context.set_idle_strategy(IdleStrategyKind::Yielding))
        .expect("settings");
    let archive = Archive::connect(&aeron, context).expect("a session");
    assert!(calls.load(Ordering::Relaxed) > 0);
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication("aeron:ipc", STREAM).expect("a publication");
    await_that("a subscriber", || {
        aeron.do_work().expect("an open client");
        publication.is_connected()
    });
    let position = rusteron_test_support::offer(&mut publication, b"message");
    archive
        .await_recorded(recording_id, position, rusteron_test_support::DEADLINE)
        .expect("a recording");
    let mut subscription = archive
        .replay(recording_id, "aeron:ipc", 5, rusteron_archive::ReplayParams::new())
        .expect("a replay");
    await_that("the message", || {
        aeron.do_work().expect("an open client");
        subscription.poll(|text, _| assert_eq!(text, b"message"), 10).expect("open") == 1
    });
}

#[test]
fn request_in_delegating_invoker() {
    let server = ArchiveProcess::launch();
    let aeron = server.aeron();
    let other = Arc::new(server.connect());
    let inner = Arc::clone(&other);
    let handle: Arc<std::sync::OnceLock<std::sync::Weak<Archive>>> = Arc::default();
    let own = Arc::clone(&handle);
    let (sender, receiver) = mpsc::channel();
    let mut context = server.context();
    context
        .set_delegating_invoker(move || {
            let kind =
                |archive: &Archive| archive.start_position(0.into()).map_err(|error| error.kind());
            let archive = own.get().and_then(std::sync::Weak::upgrade);
            let own = archive.map(|archive| (archive.is_connected(), kind(&archive)));
            let _ = sender.send((kind(&inner), own));
            panic!("on purpose");
        })
        .expect("an invoker");
    let archive = Arc::new(Archive::connect(&aeron, context).expect("a session"));
    let refused = Err(ArchiveErrorKind::Reentrant);
    assert_eq!(receiver.try_iter().last(), Some((refused, None)));
    handle.set(Arc::downgrade(&archive)).expect("once");
    let seen = rusteron_test_support::await_some("a request that had to wait", || {
        archive.recordings().for_each(drop);
        receiver.try_iter().last()
    });
    assert_eq!(seen, (refused, Some((true, refused))));
    assert!(other.is_connected());
}

#[test]
fn request_in_conductor_callback() {
    let server = ArchiveProcess::launch();
    let archive = Arc::new(server.connect());
    let inner = Arc::clone(&archive);
    let (sender, receiver) = mpsc::channel();
    let aeron = archive.aeron().clone();
    let subscription = aeron
        .subscription_builder("aeron:ipc", 9)
        .on_available_image(move |_| {
            let _ = sender.send(inner.start_position(0.into()).map_err(|error| error.kind()));
        })
        .add()
        .expect("a subscription");
    let _publication = aeron.add_publication("aeron:ipc", 9).expect("a publication");
    let outcome = receiver.recv_timeout(rusteron_test_support::DEADLINE).expect("a call");
    assert_eq!(outcome, Err(ArchiveErrorKind::Client(ErrorKind::CalledFromConductor)));
    drop(subscription);
}

#[test]
fn signal_handler_uses_archive() {
    let server = ArchiveProcess::launch();
    let aeron = server.aeron();
    let (sender, receiver) = mpsc::channel();
    let handle: Arc<std::sync::OnceLock<std::sync::Weak<Archive>>> = Arc::default();
    let inner = Arc::clone(&handle);
    let mut context = server.context();
    context
        .set_recording_signal_consumer(move |signal| {
            let archive = inner.get().and_then(std::sync::Weak::upgrade).expect("the session");
            let start = archive.start_position(signal.recording_id).expect("an answer");
            sender.send((signal.kind, signal.recording_id, signal.position, start)).expect("us");
        })
        .expect("a consumer");
    let archive = Arc::new(Archive::connect(&aeron, context).expect("a session"));
    handle.set(Arc::downgrade(&archive)).expect("once");
    let (publication, recording_id, position) = record(&archive, 10);
    drop(publication);
    let mut signals = Vec::new();
    await_that("the signals", || {
        archive.poll_for_recording_signals().expect("a connection");
        signals.extend(receiver.try_iter());
        signals.len() == 2
    });
    assert_eq!(
        signals,
        [
            (RecordingSignalKind::Start, recording_id, Some(0), 0),
            (RecordingSignalKind::Stop, recording_id, Some(position), 0)
        ]
    );
}

#[test]
fn unsolicited_errors_reach_handler() {
    let server = ArchiveProcess::launch();
    let aeron = server.aeron();
    let plain = server.connect();
    let (sender, receiver) = mpsc::channel();
    let mut context = server.context();
    context
        .set_error_handler(move |error| sender.send(error.clone()).expect("us"))
        .expect("a handler");
    let archive = Archive::connect(&aeron, context).expect("a session");
    assert_eq!(archive.recordings().count(), 0, "a listing has no handler, and gives it back");
    let params = rusteron_archive::ReplicationParams::new();
    for archive in [&plain, &archive] {
        // The source does not exist, which the archive finds out later.
        archive.replicate(17.into(), server.control_channel(), 10, &params).expect("an id");
    }
    let error = rusteron_test_support::await_some("an error", || {
        archive.check_for_error_response().expect("it goes to the handler");
        receiver.try_recv().ok()
    });
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error:?}");
    let text = rusteron_test_support::await_some("an error", || {
        plain.poll_for_error_response().expect("a connection")
    });
    assert!(text.contains("17"), "{text}");
}

struct Credentials {
    first: &'static [u8],
    answer: &'static [u8],
    challenges: mpsc::Sender<Vec<u8>>,
}

impl CredentialsSupplier for Credentials {
    fn encoded_credentials(&mut self) -> Vec<u8> {
        self.first.to_vec()
    }

    fn on_challenge(&mut self, encoded_challenge: &[u8]) -> Vec<u8> {
        let _ = self.challenges.send(encoded_challenge.to_vec());
        self.answer.to_vec()
    }
}

#[test]
fn credentials_accepted_challenged_rejected() {
    let options = Options {
        properties: vec![
            "aeron.archive.authenticator.supplier=io.aeron.samples.archive.SampleAuthenticatorSupplier"
                .into(),
        ],
        ..Options::default()
    };
    let server = ArchiveProcess::launch_with(options);
    let aeron = server.aeron();
    let (sender, challenges) = mpsc::channel();
    let connect = |first: &'static [u8], answer: &'static [u8]| {
        let mut context = server.context();
        let challenges = sender.clone();
        context
            .set_credentials_supplier(Credentials { first, answer, challenges })
            .expect("a supplier");
        Archive::connect(&aeron, context)
    };
    works(&connect(b"admin:admin", b"").expect("a session"));
    assert_eq!(challenges.try_iter().count(), 0);
    works(&connect(b"admin:adminC", b"admin:CSadmin").expect("a session"));
    assert_eq!(challenges.try_iter().next().as_deref(), Some(&b"challenge!"[..]));
    for (first, answer) in [(&b"nobody"[..], &b""[..]), (b"admin:adminC", b"wrong"), (b"", b"")] {
        let error = connect(first, answer).expect_err("refused");
        assert_eq!(error.kind(), ArchiveErrorKind::AuthenticationRejected, "{error:?}");
    }
    let error = connect(&[7; 3073], b"").expect_err("too long");
    assert!(error.to_string().contains("3073 bytes"), "{error}");
    let error = Archive::connect(&aeron, server.context()).expect_err("no credentials");
    assert_eq!(error.kind(), ArchiveErrorKind::AuthenticationRejected);
}

/// A supplier whose credentials identify no user.
struct Nobody(Option<usize>);

impl CredentialsSupplier for Nobody {
    fn encoded_credentials(&mut self) -> Vec<u8> {
        vec![7; self.0.expect("on purpose")]
    }

    fn on_challenge(&mut self, _encoded_challenge: &[u8]) -> Vec<u8> {
        Vec::new()
    }
}

#[test]
fn missing_credentials_are_an_error() {
    let server = ArchiveProcess::launch();
    let aeron = server.aeron();
    for (length, kind, words) in [
        (None, ArchiveErrorKind::Client(ErrorKind::Other), "panicked"),
        (Some(3073), ArchiveErrorKind::InvalidArgument, "3073 bytes"),
    ] {
        let mut context = server.context();
        context.set_credentials_supplier(Nobody(length)).expect("a supplier");
        let error = Archive::connect(&aeron, context).expect_err("no credentials");
        assert_eq!((error.kind(), error.operation()), (kind, "connect"), "{error:?}");
        assert!(error.message().contains(words), "{error:?}");
        await_that("the end of the session", || streams(&aeron) == 0);
    }
    let mut context = server.context();
    context.set_credentials_supplier(Nobody(Some(3072))).expect("a supplier");
    works(&Archive::connect(&aeron, context).expect("a session"));
}

/// How many publications and subscriptions the driver has with an image, or a place for one.
fn streams(aeron: &Aeron) -> usize {
    // Publisher limits, and positions of subscribers.
    aeron.counters_reader().iter().filter(|counter| matches!(counter.type_id, 1 | 4)).count()
}

/// Needs no archive: there is none.
fn without_archive() -> (MediaDriver, Aeron, ArchiveContext) {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let mut context = rusteron_client::Context::new().expect("a context");
    context.set_dir(driver.aeron_dir()).expect("a directory");
    let aeron = Aeron::connect(context).expect("a client");
    let mut context = ipc_context();
    context.set_message_timeout(Duration::from_millis(100)).expect("a timeout");
    (driver, aeron, context)
}

/// Without an archive as well, and with a client that soon notices when its driver is gone.
fn driver_with_client() -> (MediaDriver, Aeron) {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let aeron = impatient_client(driver.aeron_dir());
    (driver, aeron)
}

fn impatient_client(aeron_dir: &Path) -> Aeron {
    let mut context = rusteron_client::Context::new().expect("a context");
    context
        .set_dir(aeron_dir)
        .and_then(|context| context.set_driver_timeout(Duration::from_secs(2)))
        .expect("settings");
    Aeron::connect(context).expect("a client")
}

/// Settings for control streams over IPC.
fn ipc_context() -> ArchiveContext {
    let mut context = ArchiveContext::new().expect("a context");
    context
        .set_control_request_channel("aeron:ipc")
        .and_then(|context| context.set_control_response_channel("aeron:ipc"))
        .expect("channels");
    context
}

#[test]
fn silent_archive_is_timeout() {
    let (driver, aeron, context) = without_archive();
    let error = Archive::connect(&aeron, context).expect_err("nobody is there");
    assert_eq!(error.kind(), ArchiveErrorKind::Timeout, "{error:?}");
    assert_eq!(error.operation(), "connect");
    let dir = driver.aeron_dir().display();
    let tried = format!("aeron:ipc, stream 10, on the media driver in {dir} within 100.0ms. ");
    assert!(error.message().contains(&tried), "{error}");
    let helps = format!("`archive --ipc-only --dir {dir}`");
    assert!(error.message().contains(&helps), "{error}");
}

/// Connects to an impostor of an archive, and returns the error that its answer causes.
fn answered(schema_id: u16, text: &str) -> ArchiveError {
    /// An error's `ControlResponse` of the archive's protocol. It begins with the lengths of its fixed fields,
    /// and the numbers of the message, the schema, and the schema's version.
    fn answer(schema_id: u16, correlation_id: [u8; 8], text: &str) -> Vec<u8> {
        let mut answer: Vec<u8> = [32, 1, schema_id, 14].map(u16::to_le_bytes).concat();
        let (control_session_id, relevant_id) = (1_i64, -1_i64);
        answer.extend(control_session_id.to_le_bytes());
        answer.extend(correlation_id);
        answer.extend(relevant_id.to_le_bytes());
        let (code, version, length) = (1, 2 << 16, text.len() as i32);
        answer.extend([code, version, length].map(i32::to_le_bytes).concat());
        answer.extend(text.as_bytes());
        answer
    }
    let (_driver, aeron, mut context) = without_archive();
    context.set_message_timeout(rusteron_test_support::DEADLINE).expect("a timeout");
    let stream_id = context.control_request_stream_id();
    let mut requests = aeron.add_subscription("aeron:ipc", stream_id).expect("a subscription");
    let stream_id = context.control_response_stream_id();
    let mut attempt = Archive::async_connect(&aeron, context).expect("an attempt");
    let (correlation_id, channel) = rusteron_test_support::await_some("the request", || {
        let mut found = None;
        let request = |request: &[u8], _: &rusteron_client::Header<'_>| {
            // Behind the lengths and numbers; the channel for answers behind the fixed fields.
            let correlation_id = *request[8..].first_chunk().expect("an id");
            let length = u32::from_le_bytes(*request[24..].first_chunk().expect("a length"));
            let channel = std::str::from_utf8(&request[28..][..length as usize]).expect("a text");
            found = Some((correlation_id, channel.to_owned()));
        };
        requests.poll(request, 1).expect("open");
        assert!(attempt.poll().expect("no error yet").is_none());
        found
    });
    let mut answers = aeron.add_exclusive_publication(channel, stream_id).expect("a publication");
    rusteron_test_support::offer(&mut answers, &answer(schema_id, correlation_id, text));
    rusteron_test_support::await_some("the error", || attempt.poll().err())
}

#[test]
fn version_mismatch_or_rejection() {
    const SCHEMA: u16 = 101;
    let error = answered(SCHEMA, "invalid client version 1.14.0, archive is 2.0.0");
    assert_eq!(error.kind(), ArchiveErrorKind::IncompatibleVersion, "{error:?}");
    assert!(error.message().ends_with("archive is 2.0.0"), "{error:?}");
    let error = answered(SCHEMA + 1, "");
    assert_eq!(error.kind(), ArchiveErrorKind::IncompatibleVersion, "{error:?}");
    let error = answered(SCHEMA, "authentication rejected");
    assert_eq!(error.kind(), ArchiveErrorKind::AuthenticationRejected, "{error:?}");
}

/// An archive rejects the stream of requests of a session that it cannot answer.
#[test]
fn rejection_is_of_the_own_stream() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let (sender, rejected) = mpsc::channel();
    let mut context = rusteron_client::Context::new().expect("a context");
    context
        .set_dir(driver.aeron_dir())
        .and_then(|context| {
            context.set_publication_error_handler(move |error| _ = sender.send(error.session_id))
        })
        .expect("settings");
    let aeron = Aeron::connect(context).expect("a client");
    let mut context = ipc_context();
    context.set_message_timeout(rusteron_test_support::DEADLINE).expect("a timeout");
    let stream_id = context.control_request_stream_id();
    let mut requests = aeron.add_subscription("aeron:ipc", stream_id).expect("a subscription");
    let other = aeron.add_exclusive_publication("aeron:ipc", stream_id).expect("a publication");
    let mut attempt = Archive::async_connect(&aeron, context).expect("an attempt");
    await_that("both streams", || {
        assert!(attempt.poll().expect("no error yet").is_none());
        requests.images().count() == 2
    });
    let mut session_ids = requests.images().map(|image| image.session_id());
    let own = session_ids.find(|&id| id != other.session_id()).expect("the attempt's image");
    // A stream of another id can have the same session id.
    let channel = format!("aeron:ipc?session-id={own}");
    let mut elsewhere = aeron.add_subscription("aeron:ipc", stream_id + 1).expect("a subscription");
    let _same = aeron.add_exclusive_publication(channel, stream_id + 1).expect("a publication");
    await_that("its image", || elsewhere.is_connected());

    let reject = |requests: &mut Subscription, session_id| {
        let mut image = requests.image_by_session_id(session_id).expect("an image");
        image.reject("no room").expect("a rejection");
    };
    for (requests, session_id) in [(&mut requests, other.session_id()), (&mut elsewhere, own)] {
        reject(requests, session_id);
        assert_eq!(rejected.recv_timeout(rusteron_test_support::DEADLINE), Ok(session_id));
    }
    // All handlers have been called when the driver's next answer is there.
    drop(aeron.add_counter(2001, b"", "a round trip").expect("a counter"));
    assert!(attempt.poll().expect("another's rejection").is_none());
    reject(&mut requests, own);
    let error = rusteron_test_support::await_some("the rejection", || attempt.poll().err());
    assert_eq!(error.kind(), ArchiveErrorKind::Refused, "{error:?}");
    assert!(error.message().ends_with("no room"), "{error:?}");
}

#[test]
fn unusable_settings_are_rejected() {
    let (_driver, aeron, _) = without_archive();
    let refusal = |change: fn(
        &mut ArchiveContext,
    ) -> Result<&mut ArchiveContext, rusteron_archive::Error>| {
        let mut context = ipc_context();
        change(&mut context).expect("a setting");
        Archive::connect(&aeron, context).expect_err("refused").to_string()
    };
    let error = refusal(|context| context.set_message_retry_attempts(0));
    assert!(error.contains("message_retry_attempts: 0; the minimum is 1"), "{error}");
    let error = refusal(|context| context.set_control_request_channel(""));
    assert!(error.contains("control_request_channel is not set"), "{error}");
    let error = refusal(|context| context.set_control_request_channel("aeron:udp"));
    assert!(error.contains("invalid channel"), "{error}");
    let error = refusal(|context| context.set_control_response_stream_id(10));
    let clash = "control_request_stream_id=10 (control_request_channel=aeron:ipc) and control_response_stream_id=10 ";
    assert!(error.contains(clash), "{error}");
}

#[test]
fn concurrent_attempts() {
    const THREADS: usize = 4;
    let server = ArchiveProcess::launch();
    let aeron = server.aeron();
    let connect = |context| Archive::connect(&aeron, context).expect("a session");
    let connect_several_times = |over_udp: bool| {
        let context = || if over_udp { server.udp_context() } else { server.context() };
        let kept = connect(context());
        for _round in 0..5 {
            let given_up = Archive::async_connect(&aeron, context()).expect("an attempt");
            drop((connect(context()), given_up));
        }
        assert!(kept.is_connected());
        kept
    };
    let sessions = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || connect_several_times(thread % 2 == 0)))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    let ids: std::collections::BTreeSet<_> =
        sessions.iter().map(Archive::control_session_id).collect();
    assert_eq!(ids.len(), THREADS);
    for session in &sessions {
        assert_eq!(session.recordings().count(), 0);
    }
}

#[test]
fn closed_client_ends_every_attempt() {
    let mut settings = rusteron_media_driver::DriverContext::new().expect("a context");
    settings.set_threading_mode(ThreadingMode::Invoker).expect("a mode");
    let mut driver = DriverInvoker::launch_embedded(settings).expect("a driver");
    let aeron_dir = driver.aeron_dir().to_owned();
    let looks = Arc::new(AtomicUsize::new(0));
    let changes = Arc::new(AtomicUsize::new(0));
    let watching = |aeron: &Aeron| {
        let (aeron, looks, changes) = (aeron.clone(), Arc::clone(&looks), Arc::clone(&changes));
        let mut context = ipc_context();
        context
            .set_delegating_invoker(move || {
                looks.fetch_add(1, Ordering::Relaxed);
                if aeron.context().use_conductor_agent_invoker() {
                    changes.fetch_add(1, Ordering::Relaxed);
                }
            })
            .expect("an invoker");
        context
    };
    let prepare = || {
        let aeron = impatient_client(&aeron_dir);
        let context = rusteron_archive::PersistentSubscriptionContext::new(
            0.into(),
            "aeron:ipc",
            STREAM,
            "aeron:udp?endpoint=localhost:0",
            rusteron_test_support::archive::REPLAY_STREAM,
        )
        .expect("valid settings");
        let subscription =
            rusteron_archive::PersistentSubscription::new(&aeron, watching(&aeron), context)
                .expect("a subscription");
        (aeron, subscription)
    };
    let (aeron, mut subscription) = std::thread::scope(|scope| {
        let prepared = scope.spawn(prepare);
        while !prepared.is_finished() {
            driver.do_work().expect("work");
            std::thread::yield_now();
        }
        prepared.join().expect("no panic")
    });
    // From now on the driver does nothing, so that the attempts wait for its answer until the client
    // notices its end.
    std::thread::scope(|scope| {
        for _thread in 0..3 {
            let context = watching(&aeron);
            scope.spawn(|| Archive::connect(&aeron, context).expect_err("the driver is gone"));
        }
        scope.spawn(|| {
            rusteron_test_support::await_some("an error", || subscription.poll(|_, _| (), 1).err())
        });
        await_that("a waiting attempt", || looks.load(Ordering::Relaxed) != 0);
        drop(driver);
    });
    await_that("the end of the client", || aeron.is_closed());
    assert_eq!(changes.load(Ordering::Relaxed), 0, "others may be connecting with the client");
}

#[test]
fn closed_client_ends_attempt() {
    let (driver, aeron) = driver_with_client();
    drop(driver);
    // Whatever the client has noticed by then, and whenever it notices the rest.
    Archive::connect(&aeron, ipc_context()).expect_err("the driver is gone");
    await_that("the end of the client", || aeron.is_closed());
    let error = Archive::connect(&aeron, ipc_context()).expect_err("the client is closed");
    assert_eq!(error.kind(), ArchiveErrorKind::Client(ErrorKind::ClientClosed));
    assert!(!aeron.context().use_conductor_agent_invoker(), "the setting is as it was");
}
