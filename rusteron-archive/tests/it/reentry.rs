//! Sessions and clients that are dropped or taken apart in a callback, and callbacks that panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use rusteron_archive::{
    Archive, ArchiveError, ArchiveErrorKind, ErrorKind, PersistentSubscription,
    PersistentSubscriptionContext, ReplayMerge, ReplayMergeCloseError, ReplayMergeError,
    SourceLocation,
};
use rusteron_client::{Aeron, Subscription};
use rusteron_test_support::archive::{ArchiveProcess, REPLAY_STREAM, STREAM, await_recording};
use rusteron_test_support::{DEADLINE, await_some, free_port};

/// Reports its drop, and so the drop of the closure that has captured it.
struct Witness(&'static str, mpsc::Sender<&'static str>);

impl Witness {
    fn name(&self) -> &'static str {
        self.0
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.1.send(self.0);
    }
}

/// A client whose context reports its drop, which is the client's end.
fn client(server: &ArchiveProcess, witness: Witness, has_conductor_thread: bool) -> Aeron {
    let mut context = rusteron_client::Context::new().expect("a context");
    context
        .set_dir(server.aeron_dir())
        .and_then(|context| context.set_driver_timeout(DEADLINE))
        .and_then(|context| context.set_use_conductor_agent_invoker(!has_conductor_thread))
        .and_then(|context| {
            context.set_error_handler(move |error| panic!("{}: {error}", witness.name()))
        })
        .expect("settings");
    Aeron::connect(context).expect("a client")
}

/// Settings for a session that says when it goes.
fn witnessed(server: &ArchiveProcess, witness: Witness) -> rusteron_archive::ArchiveContext {
    let mut context = server.context();
    context
        .set_recording_signal_consumer(move |_signal| panic!("{}: a signal", witness.name()))
        .expect("a consumer");
    context
}

/// Runs something on the conductor's thread of a client, and waits for its end.
fn in_a_callback_of(aeron: &Aeron, action: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    let mut action = Some(action);
    let subscription = aeron
        .subscription_builder("aeron:ipc", 9)
        .on_available_image(move |_| {
            if let Some(action) = action.take() {
                action();
                let _ = sender.send(());
            }
        })
        .add()
        .expect("a subscription");
    let _publication = aeron.add_publication("aeron:ipc", 9).expect("a publication");
    receiver.recv_timeout(DEADLINE).expect("a call");
    drop(subscription);
}

/// Something that is made with a client and settings of an archive, and needs the client to be dropped.
type Make = fn(&Aeron, rusteron_archive::ArchiveContext) -> Box<dyn Send>;

#[test]
fn drop_in_callback_of_other_client() {
    let server = ArchiveProcess::launch();
    let other = server.aeron();
    let make: [Make; 3] = [
        |aeron, context| Box::new(Archive::connect(aeron, context).expect("a session")),
        |aeron, context| Box::new(Archive::async_connect(aeron, context).expect("an attempt")),
        |aeron, context| {
            let (ipc, replay) = ("aeron:ipc", "aeron:ipc");
            let settings =
                PersistentSubscriptionContext::new(0.into(), ipc, STREAM, replay, REPLAY_STREAM);
            let settings = settings.expect("valid settings");
            let subscription = PersistentSubscription::new(aeron, context, settings);
            let mut subscription = subscription.expect("a subscription");
            for _ in 0..5 {
                subscription.poll(|_, _| (), 10).expect("a poll");
            }
            Box::new(subscription)
        },
    ];
    for make in make {
        for is_last_handle in [false, true] {
            let (sender, order) = mpsc::channel();
            let aeron = client(&server, Witness("client", sender.clone()), false);
            let owned = make(&aeron, witnessed(&server, Witness("session", sender)));
            let aeron = Some(aeron).filter(|_| !is_last_handle);
            in_a_callback_of(&other, move || drop(owned));
            // No thread does the client's work after this.
            drop(aeron);
            let order = [(); 2].map(|()| order.recv_timeout(DEADLINE).expect("its end"));
            assert_eq!(order, ["session", "client"]);
        }
    }
}

const MANUAL: &str = "aeron:udp?control-mode=manual";

/// A merge, of a recording that there is not; it has asked the conductor for a destination only.
fn merge(session: Archive, subscription: Subscription) -> Result<ReplayMerge, ReplayMergeError> {
    let (replay, any) = ("aeron:udp?linger=0", "aeron:udp?endpoint=localhost:0");
    let live = format!("aeron:udp?endpoint=localhost:{}", free_port());
    ReplayMerge::builder(replay, any, live.as_str()).start(session, subscription, 0.into())
}

#[test]
fn merge_close_in_callback() {
    let server = ArchiveProcess::launch();
    let aeron = server.aeron();
    let parts = [(); 2].map(|()| {
        let session = Archive::connect(&aeron, server.context()).expect("a session");
        (session, aeron.add_subscription(MANUAL, STREAM).expect("a subscription"))
    });

    let (enter, entered) = mpsc::channel();
    let (give, given) = mpsc::channel::<ReplayMerge>();
    let (refuse, refused) = mpsc::channel();
    let mut is_first = true;
    let held = aeron
        .subscription_builder("aeron:ipc", 9)
        .on_available_image(move |_| {
            if !std::mem::take(&mut is_first) {
                return;
            }
            enter.send(()).expect("the test");
            for merge in given.iter() {
                refuse.send(merge.into_parts().expect_err("a callback")).expect("the test");
            }
        })
        .add()
        .expect("a subscription");
    let publication = aeron.async_add_publication("aeron:ipc", 9).expect("a request");
    entered.recv_timeout(DEADLINE).expect("a call");
    // While the conductor is in the handler, its queue has commands that point to the subscriptions.
    let refusals = parts.map(|(session, subscription)| {
        give.send(merge(session, subscription).expect("a merge")).expect("the handler");
        refused.recv_timeout(DEADLINE).expect("an error")
    });
    drop(give);

    let kind = ArchiveErrorKind::Client(ErrorKind::CalledFromConductor);
    let [kept, dropped] = refusals;
    assert_eq!(kept.error().kind(), kind);
    let (session, subscription) = kept.into_merge().into_parts().expect("the parts");
    assert!(session.is_connected() && !subscription.is_closed());
    let boxed: Box<dyn std::error::Error + Send + Sync> = dropped.into();
    let dropped = boxed.downcast::<ReplayMergeCloseError>().expect("the error");
    assert_eq!(ArchiveError::from(*dropped).kind(), kind);
    session.stop_all_replays(None).expect("an answer");
    drop((held, publication));
}

#[test]
fn merge_close_with_full_queue() {
    let server = ArchiveProcess::launch();
    let aeron = server.aeron();
    let session = Archive::connect(&aeron, server.context()).expect("a session");
    let subscription = aeron.add_subscription(MANUAL, STREAM).expect("a subscription");
    let mut merge = merge(session, subscription).expect("a merge");
    // There is no such recording; by then the destination has been added.
    let error = await_some("the failure", || merge.do_work().err());
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error:?}");

    let (enter, entered) = mpsc::channel();
    let (leave, left) = mpsc::channel::<()>();
    let held = aeron
        .subscription_builder("aeron:ipc", 9)
        .on_available_image(move |_| {
            let _ = enter.send(());
            let _ = left.recv();
        })
        .add()
        .expect("a subscription");
    let publication = aeron.async_add_publication("aeron:ipc", 9).expect("a request");
    entered.recv_timeout(DEADLINE).expect("a call");
    // No thread empties the conductor's queue.
    let mut requests = Vec::new();
    while let Ok(request) = aeron.async_add_counter(2001, b"", "one of many") {
        requests.push(request);
    }
    let refused = merge.into_parts().expect_err("a full queue");
    assert_eq!(refused.error().kind(), ArchiveErrorKind::Client(ErrorKind::BufferFull));
    drop(leave);
    let mut refused = Some(refused);
    let (session, subscription) = await_some("the parts", || {
        let outcome = refused.take()?.into_merge().into_parts();
        outcome.map_err(|again| refused = Some(again)).ok()
    });
    assert!(session.is_connected() && !subscription.is_closed());
    drop((requests, held, publication));
}

#[test]
fn merge_in_delegating_invoker() {
    let server = ArchiveProcess::launch();
    let (sender, ended) = mpsc::channel();
    let aeron = client(&server, Witness("client", sender), true);
    let session = Archive::connect(&aeron, server.context()).expect("a session");
    let subscription = aeron.add_subscription(MANUAL, STREAM).expect("a subscription");
    drop(aeron);
    let mut merge = Some(merge(session, subscription).expect("a merge"));
    let (refuse, refused) = mpsc::channel();
    let mut context = server.context();
    context
        .set_delegating_invoker(move || {
            if let Some(merge) = merge.take() {
                let error = merge.into_parts().expect_err("in the middle of a request");
                refuse.send(error.error().kind()).expect("the test");
                drop(error.into_merge());
            }
        })
        .expect("an invoker");
    let archive = Archive::connect(&server.aeron(), context).expect("a session");
    assert_eq!(refused.try_recv(), Ok(ArchiveErrorKind::Reentrant));
    assert_eq!(ended.recv_timeout(DEADLINE), Ok("client"));
    assert!(archive.is_connected());
}

#[test]
fn handler_panics_at_merge_start() {
    let server = ArchiveProcess::launch();
    let (sender, ended) = mpsc::channel();
    let aeron = client(&server, Witness("client", sender), true);
    let panics = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&panics);
    let mut context = server.context();
    context
        .set_recording_signal_consumer(move |_signal| {
            count.fetch_add(1, Ordering::Relaxed);
            panic!("on purpose");
        })
        .expect("a consumer");
    let session = Archive::connect(&aeron, context).expect("a session");
    let subscription = aeron.add_subscription(MANUAL, STREAM).expect("a subscription");
    drop(aeron);
    // Three signals that C finds before the answer to one request.
    let other = server.connect();
    session
        .start_recording("aeron:ipc", STREAM, SourceLocation::Local, false)
        .expect("a subscription");
    let publications = [(); 3].map(|()| {
        let publication = other.aeron().add_exclusive_publication("aeron:ipc", STREAM);
        let publication = publication.expect("a publication");
        let recording_id = await_recording(&other, publication.session_id());
        (publication, recording_id)
    });
    let caught = catch_unwind(AssertUnwindSafe(|| session.start_position(publications[0].1)));
    assert!(caught.is_err() && panics.load(Ordering::Relaxed) == 1);
    // The second comes out of this, and the third is caught when that drops the merge.
    let caught = catch_unwind(AssertUnwindSafe(|| merge(session, subscription).map(drop)));
    assert!(caught.is_err());
    assert_eq!(ended.recv_timeout(DEADLINE), Ok("client"));
    assert_eq!(panics.load(Ordering::Relaxed), 3);
}
