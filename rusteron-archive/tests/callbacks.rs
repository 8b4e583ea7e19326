//! What is dropped in a callback.

mod support;

use std::sync::mpsc;

use rusteron_archive::{Archive, PersistentSubscription, PersistentSubscriptionContext};
use rusteron_client::Aeron;
use support::{JavaArchive, PATIENCE, REPLAY_STREAM, STREAM};

/// Says when it is dropped, and with it what has captured it.
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

/// A client without a conductor thread, whose context says when it goes, which is when the client does.
fn client(java: &JavaArchive, witness: Witness) -> Aeron {
    let mut context = rusteron_client::Context::new().expect("a context");
    context
        .set_dir(java.aeron_dir())
        .and_then(|context| context.set_driver_timeout(PATIENCE))
        .and_then(|context| context.set_use_conductor_agent_invoker(true))
        .and_then(|context| {
            context.set_error_handler(move |error| panic!("{}: {error}", witness.name()))
        })
        .expect("settings");
    Aeron::connect(context).expect("a client")
}

/// Settings for a session that says when it goes.
fn witnessed(java: &JavaArchive, witness: Witness) -> rusteron_archive::Context {
    let mut context = java.context();
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
    receiver.recv_timeout(PATIENCE).expect("a call");
    drop(subscription);
}

/// Something that is made with a client and settings of an archive, and needs the client to be dropped.
type Make = fn(&Aeron, rusteron_archive::Context) -> Box<dyn Send>;

#[test]
fn what_is_dropped_in_a_callback_of_another_client_goes_before_its_own() {
    let Some(java) = JavaArchive::launch() else { return };
    let other = java.aeron();
    let make: [Make; 3] = [
        |aeron, context| Box::new(Archive::connect(aeron, context).expect("a session")),
        |aeron, context| Box::new(Archive::async_connect(aeron, context).expect("an attempt")),
        |aeron, context| {
            let (ipc, replay) = ("aeron:ipc", "aeron:ipc");
            let settings =
                PersistentSubscriptionContext::new(0, ipc, STREAM, replay, REPLAY_STREAM);
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
            let aeron = client(&java, Witness("client", sender.clone()));
            let owned = make(&aeron, witnessed(&java, Witness("session", sender)));
            let aeron = Some(aeron).filter(|_| !is_last_handle);
            in_a_callback_of(&other, move || drop(owned));
            // Nobody has done any more of its work.
            drop(aeron);
            let order = [(); 2].map(|()| order.recv_timeout(PATIENCE).expect("its end"));
            assert_eq!(order, ["session", "client"]);
        }
    }
}
