//! Messages between agents and tasks.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use rusteron_client::agent::{Agent, AgentRunner, CompositeAgent};
use rusteron_client::{
    Aeron, AgentEnded, ExclusivePublication, OfferError, PublicationAgent, Subscription,
    SubscriptionAgent, TaskSender,
};
use rusteron_test_support::{await_that, block_on, connect, launch, offer};

const CAPACITY: NonZeroUsize = NonZeroUsize::new(2).unwrap();

fn streams(aeron: &Aeron) -> (ExclusivePublication, Subscription) {
    let publication = aeron.add_exclusive_publication("aeron:ipc", 1).expect("a publication");
    (publication, aeron.add_subscription("aeron:ipc", 1).expect("a subscription"))
}

/// Counts how often the task is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn tasks_exchange_messages_in_order() {
    let driver = launch();
    let (publication, subscription) = streams(&connect(&driver));
    let (polling, mut incoming) =
        SubscriptionAgent::new(subscription, CAPACITY, |message, _| message[0]);
    let (offering, mut outgoing) = PublicationAgent::new(publication, CAPACITY);
    let agents = CompositeAgent::new((polling, offering));
    let runner = AgentRunner::builder(agents).start().expect("a thread");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            block_on(async {
                for number in 0..100 {
                    outgoing.send([number]).await.expect("an agent");
                }
                outgoing.flush().await.expect("an agent");
            });
        });
        for number in 0..100 {
            assert_eq!(block_on(incoming.recv()), Some(number));
        }
    });
    runner.close().expect("no error");
    assert_eq!(block_on(incoming.recv()), None);
}

#[test]
fn full_receiver_leaves_messages_in_log_buffer() {
    let driver = launch();
    let (mut publication, subscription) = streams(&connect(&driver));
    let (mut polling, mut incoming) =
        SubscriptionAgent::new(subscription, CAPACITY, |message, _| message.to_vec());
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    assert!(incoming.poll_recv(&mut context).is_pending());
    for number in 0..5 {
        offer(&mut publication, &[number]);
    }
    let mut polled = 0;
    await_that("a full queue", || {
        polled += polling.do_work().expect("open");
        polled == 2
    });
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert_eq!(polling.do_work().expect("open"), 0);
    for number in 0..5 {
        await_that("a message", || {
            polling.do_work().expect("open");
            match incoming.poll_recv(&mut context) {
                Poll::Ready(message) => {
                    assert_eq!(message, Some(vec![number]));
                    true
                }
                Poll::Pending => false,
            }
        });
    }
}

#[test]
fn full_sender_waits_until_publication_accepts() {
    let driver = launch();
    let aeron = connect(&driver);
    let publication = aeron.add_exclusive_publication("aeron:ipc", 1).expect("a publication");
    let (mut offering, mut outgoing) = PublicationAgent::new(publication, CAPACITY);
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    block_on(async {
        outgoing.send([0]).await.expect("an agent");
        outgoing.send([1]).await.expect("an agent");
    });
    {
        let mut flush = pin!(outgoing.flush());
        assert!(flush.as_mut().poll(&mut context).is_pending());
    }
    let mut third = pin!(outgoing.send([2]));
    assert!(third.as_mut().poll(&mut context).is_pending());
    assert_eq!(offering.do_work().expect("open"), 0, "there is no subscriber");
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);

    let _subscription = aeron.add_subscription("aeron:ipc", 1).expect("a subscription");
    let mut sent = 0;
    await_that("both messages", || {
        sent += offering.do_work().expect("open");
        sent == 2
    });
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert_eq!(third.as_mut().poll(&mut context), Poll::Ready(Ok(())));
}

#[test]
fn ended_agents_end_both_halves() {
    let driver = launch();
    let (publication, subscription) = streams(&connect(&driver));
    let (polling, mut incoming) = SubscriptionAgent::new(subscription, CAPACITY, |_, _| ());
    let (offering, mut outgoing) = PublicationAgent::new(publication, CAPACITY);
    block_on(outgoing.send([0])).expect("an agent");
    drop((polling, offering));
    assert_eq!(block_on(incoming.recv()), None);
    assert_eq!(block_on(outgoing.flush()), Err(AgentEnded));
    assert_eq!(block_on(outgoing.send([0])), Err(AgentEnded));
}

#[test]
fn dropped_receiver_ends_agent() {
    let driver = launch();
    let (_publication, subscription) = streams(&connect(&driver));
    let (mut polling, incoming) = SubscriptionAgent::new(subscription, CAPACITY, |_, _| ());
    polling.do_work().expect("a receiver");
    drop(incoming);
    assert!(polling.do_work().expect_err("no receiver").is_termination());
}

#[test]
fn impossible_message_leaves_queue() {
    let driver = launch();
    let (publication, mut subscription) = streams(&connect(&driver));
    let too_long = vec![0; publication.max_message_length() + 1];
    let (mut offering, mut outgoing) = PublicationAgent::new(publication, CAPACITY);
    await_that("a connection", || subscription.is_connected());
    block_on(outgoing.send(too_long)).expect("an agent");
    block_on(outgoing.send(vec![7])).expect("an agent");
    let error = offering.do_work().expect_err("too long");
    assert!(matches!(error.downcast_ref::<OfferError>(), Some(OfferError::MessageTooLong { .. })));
    assert_eq!(block_on(outgoing.flush()), Err(AgentEnded));
    await_that("the next message", || {
        offering.do_work().expect("open");
        subscription.poll(|message, _| assert_eq!(message, [7]), 1).expect("open") == 1
    });
    assert_eq!(block_on(outgoing.flush()), Err(AgentEnded), "a message was lost");
}

#[test]
fn message_refused_by_closed_client_is_not_flushed() {
    let driver = launch();
    let aeron = connect(&driver);
    let (publication, _subscription) = streams(&aeron);
    let (mut offering, mut outgoing) = PublicationAgent::new(publication, CAPACITY);
    block_on(outgoing.send([7])).expect("an agent");
    drop(driver);
    await_that("the end of the client", || aeron.is_closed());
    offering.do_work().expect_err("closed");
    drop(offering);
    assert_eq!(block_on(outgoing.flush()), Err(AgentEnded));
}

#[test]
fn dropped_message_can_use_sender() {
    struct Reply(Option<Arc<Mutex<TaskSender<Reply>>>>);
    impl AsRef<[u8]> for Reply {
        fn as_ref(&self) -> &[u8] {
            &[7]
        }
    }
    impl Drop for Reply {
        fn drop(&mut self) {
            if let Some(sender) = self.0.take() {
                let mut sender = sender.lock().expect("no panic");
                block_on(sender.send(Reply(None))).expect("an agent");
            }
        }
    }
    let driver = launch();
    let (publication, mut subscription) = streams(&connect(&driver));
    let (mut offering, outgoing) = PublicationAgent::new(publication, CAPACITY);
    let sender = Arc::new(Mutex::new(outgoing));
    let message = Reply(Some(Arc::clone(&sender)));
    block_on(sender.lock().expect("no panic").send(message)).expect("an agent");
    let mut received = 0;
    await_that("both messages", || {
        offering.do_work().expect("open");
        received += subscription.poll(|_, _| (), 2).expect("open");
        received == 2
    });
}

#[test]
fn panic_of_conversion_keeps_earlier_messages_and_capacity() {
    let driver = launch();
    let (mut publication, subscription) = streams(&connect(&driver));
    let (mut polling, mut incoming) =
        SubscriptionAgent::new(subscription, CAPACITY, |message, _| {
            assert_ne!(message, [1]);
            message[0]
        });
    for number in 0..4 {
        offer(&mut publication, &[number]);
    }
    await_that("a panic", || catch_unwind(AssertUnwindSafe(|| polling.do_work())).is_err());
    assert_eq!(polling.do_work().expect("open"), 1, "there is room for one more");
    assert_eq!(polling.do_work().expect("open"), 0, "the queue is full");
    assert_eq!([block_on(incoming.recv()), block_on(incoming.recv())], [Some(0), Some(2)]);
    assert_eq!(polling.do_work().expect("open"), 1);
    assert_eq!(block_on(incoming.recv()), Some(3));
}

#[cfg(feature = "futures")]
#[test]
fn halves_are_stream_and_sink() {
    fn is_stream<S: futures_core::Stream<Item = u8>>(_: &S) {}
    fn is_sink<S: futures_sink::Sink<[u8; 1], Error = AgentEnded>>(_: &S) {}
    let driver = launch();
    let (publication, subscription) = streams(&connect(&driver));
    let (_polling, incoming) = SubscriptionAgent::new(subscription, CAPACITY, |bytes, _| bytes[0]);
    let (mut offering, outgoing) = PublicationAgent::new(publication, CAPACITY);
    is_stream(&incoming);
    is_sink(&outgoing);
    let mut sink = pin!(outgoing);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..2 {
        assert!(futures_sink::Sink::poll_ready(sink.as_mut(), &mut context).is_ready());
        futures_sink::Sink::start_send(sink.as_mut(), [7]).expect("an agent");
    }
    assert!(futures_sink::Sink::poll_ready(sink.as_mut(), &mut context).is_pending());
    await_that("a closed sink", || {
        offering.do_work().expect("open");
        futures_sink::Sink::<[u8; 1]>::poll_close(sink.as_mut(), &mut context).is_ready()
    });
}
