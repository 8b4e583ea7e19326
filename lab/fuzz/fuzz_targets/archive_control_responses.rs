//! An archive that answers anything, to a client that connects, asks, and subscribes persistently.
//!
//! An input is a list of calls. After each call come the archive's answers to its requests. Everything happens
//! on one thread: while the client waits, it invokes the driver and the archive.

#![no_main]

use std::cell::RefCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rusteron_archive::{
    Archive, ArchiveContext, CredentialsSupplier, PersistentSubscription,
    PersistentSubscriptionContext, SourceLocation,
};
use rusteron_client::{Aeron, ExclusivePublication, Registration, Subscription};
use rusteron_fuzz::archive_messages;
use rusteron_fuzz::fake_archive::{REQUEST_STREAM, Request};
use rusteron_fuzz::input::Input;
use rusteron_fuzz::stage::Stage;

const INPUTS_PER_DRIVER: u32 = 128;
const MAX_CALLS: usize = 8;
/// A client waits so long for an answer that does not come. One that does takes a few microseconds.
const TIMEOUT: Duration = Duration::from_millis(20);

/// The driver, and an archive on it.
struct World {
    // Dropped before the client.
    adding: Option<Registration<ExclusivePublication>>,
    responses: Option<ExclusivePublication>,
    /// Answers that wait for the client to connect to them.
    unsent: Vec<Vec<u8>>,
    requests: Subscription,
    stage: Stage,
    bytes: Vec<u8>,
    read: usize,
    inputs: u32,
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

impl World {
    fn launch() -> Self {
        let mut stage = Stage::launch(|_| Ok(()));
        let adding = stage.aeron.async_add_subscription("aeron:ipc", REQUEST_STREAM);
        let requests = stage.added(adding).expect("a subscription");
        Self {
            adding: None,
            responses: None,
            unsent: Vec::new(),
            requests,
            stage,
            bytes: Vec::new(),
            read: 0,
            inputs: 0,
        }
    }

    fn input<T>(&mut self, read: impl FnOnce(&mut Input<'_>) -> T) -> T {
        let mut input = Input::new(&self.bytes[self.read..]);
        let value = read(&mut input);
        self.read = self.bytes.len() - input.len();
        value
    }

    /// A turn of the driver and one of the archive.
    fn turn(&mut self) {
        let _ = self.stage.driver.do_work();
        let mut received = Vec::new();
        let _ = self.requests.poll(|message, _| received.extend(Request::decode(message)), 10);
        for request in &received {
            if let Some((channel, stream_id)) = &request.responses {
                self.responses = None;
                let adding =
                    self.stage.aeron.async_add_exclusive_publication(&**channel, *stream_id);
                self.adding = adding.ok();
            }
            let answers = self.input(|input| archive_messages::answers(input, request));
            self.unsent.extend(answers);
        }
        if let Some(Ok(Some(responses))) = self.adding.as_mut().map(Registration::poll) {
            (self.adding, self.responses) = (None, Some(responses));
        }
        if let Some(responses) = self.responses.as_mut().filter(|it| it.is_connected()) {
            for message in self.unsent.drain(..) {
                // A message that is back-pressured is lost; the client does not mind.
                let _ = responses.offer(&message);
            }
        }
    }
}

fn with_world<T>(call: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(|world| call(world.get_or_insert_with(World::launch)))
}

/// A turn of everything, for a caller that does not wait in C.
fn turn(aeron: &Aeron) {
    with_world(World::turn);
    let _ = aeron.do_work();
}

struct Credentials;

impl CredentialsSupplier for Credentials {
    fn encoded_credentials(&mut self) -> Vec<u8> {
        b"credentials".to_vec()
    }

    fn on_challenge(&mut self, challenge: &[u8]) -> Vec<u8> {
        // Bytes that were never written would differ from run to run.
        challenge.iter().copied().rev().take(64).collect()
    }
}

fn context() -> ArchiveContext {
    let mut context = ArchiveContext::new().expect("a context");
    context
        .set_control_request_channel("aeron:ipc")
        .and_then(|context| context.set_control_request_stream_id(REQUEST_STREAM))
        .and_then(|context| context.set_control_response_channel("aeron:ipc"))
        .and_then(|context| context.set_control_term_buffer_length(64 << 10))
        .and_then(|context| context.set_message_timeout(TIMEOUT))
        .and_then(|context| context.set_credentials_supplier(Credentials))
        .and_then(|context| context.set_delegating_invoker(|| with_world(World::turn)))
        .and_then(|context| {
            context.set_recording_signal_consumer(|signal| {
                black_box(format!("{signal:?}"));
            })
        })
        .and_then(|context| context.set_error_handler(|_| ()))
        .expect("valid settings");
    context
}

fn byte() -> u8 {
    with_world(|world| world.input(|input| input.byte()))
}

fn connect(aeron: &Aeron) -> Option<Archive> {
    let mut connecting = Archive::async_connect(aeron, context()).ok()?;
    loop {
        turn(aeron);
        match connecting.poll() {
            Ok(None) => {}
            Ok(archive) => return archive,
            Err(error) => {
                black_box(error.to_string());
                return None;
            }
        }
    }
}

fn call(archive: &Archive, aeron: &Aeron) {
    let outcome = match byte() % 16 {
        0 | 1 => archive.stop_position(7.into()).map(drop),
        2 => archive.recording(7.into()).map(|recording| drop(format!("{recording:?}"))),
        3 => {
            for recording in archive.recordings().take(4) {
                black_box(format!("{recording:?}"));
            }
            Ok(())
        }
        4 => archive.recording_subscriptions("aeron", None).map(|subscriptions| {
            for subscription in subscriptions.take(4) {
                black_box(format!("{subscription:?}"));
            }
        }),
        5 => archive.start_recording("aeron:ipc", 1001, SourceLocation::Local, true).map(drop),
        6 => archive.find_last_matching_recording(0.into(), "aeron", 1001, 7).map(drop),
        7 => archive.truncate_recording(7.into(), 0).map(drop),
        8 => archive.try_stop_recording_by_identity(7.into()).map(drop),
        9 => archive.max_recorded_position(7.into()).map(drop),
        10 => archive.purge_segments(7.into(), 0).map(drop),
        kind => {
            // A message that answers no request.
            let message =
                with_world(|world| world.input(|input| archive_messages::message(input, -1)));
            with_world(|world| world.unsent.push(message));
            for _ in 0..4 {
                turn(aeron);
            }
            match kind {
                11 | 12 => archive.poll_for_recording_signals().map(drop),
                13 => archive.check_for_error_response(),
                _ => archive.poll_for_error_response().map(drop),
            }
        }
    };
    if let Err(error) = outcome {
        black_box(format!("{error}{error:?}"));
    }
}

fn subscribe_persistently(aeron: &Aeron) {
    let settings = PersistentSubscriptionContext::new(
        7.into(),
        "aeron:ipc",
        1001,
        "aeron:udp?endpoint=127.0.0.1:0",
        1002,
    )
    .expect("valid settings");
    // Its counters are waited for.
    let added = with_world(|world| {
        let driver = &mut world.stage.driver;
        let is_added = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_added.load(Ordering::Acquire) {
                    let _ = driver.do_work();
                }
            });
            let added = PersistentSubscription::new(aeron, context(), settings);
            is_added.store(true, Ordering::Release);
            added
        })
    });
    let Ok(mut subscription) = added else { return };
    for _ in 0..200 {
        turn(aeron);
        if subscription.poll(|message, _| drop(black_box(message.to_vec())), 10).is_err() {
            break;
        }
    }
    black_box((subscription.is_live(), subscription.failure().map(|error| error.to_string())));
}

fuzz_target!(|bytes: &[u8]| {
    let aeron = with_world(|world| {
        world.inputs += 1;
        (world.bytes, world.read) = (bytes.to_vec(), 0);
        world.stage.aeron.clone()
    });
    if byte() % 4 == 3 {
        subscribe_persistently(&aeron);
    } else if let Some(archive) = connect(&aeron) {
        for _ in 0..MAX_CALLS {
            if with_world(|world| world.read == world.bytes.len()) {
                break;
            }
            call(&archive, &aeron);
        }
    }
    with_world(|world| {
        world.unsent.clear();
        (world.adding, world.responses) = (None, None);
        world.stage.repeat_work(2);
    });
    drop(aeron);
    if with_world(|world| world.inputs == INPUTS_PER_DRIVER || world.stage.aeron.is_closed()) {
        let world = WORLD.take();
        drop(world);
    }
});
