//! Interceptors that the environment configures, in several drivers of one process.

use rusteron_client::{Aeron, Publication, Subscription};
use rusteron_media_driver::{ErrorKind, MediaDriver, UdpInterceptor};
use rusteron_test_support::{
    await_some, await_that, connect, driver_context, free_port, ignored_test, pass,
};

const ARGUMENTS: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS";

const SEED: u64 = 7;

const RATE: f64 = 0.5;

const BURST: usize = 64;

/// More than the heartbeats that a stream sends while a test is patient.
const FAR: usize = 1000;

/// The interceptor of Aeron has one random state for all threads and drivers of a process, without a
/// lock. Its arguments are in the environment, so that it takes a process.
#[test]
fn drivers_have_own_random_state() {
    let arguments = format!("rate={RATE}|seed={SEED}|recv-msg-mask=2");
    pass(ignored_test("loss::two_drivers_with_random_loss").env(ARGUMENTS, arguments));
}

#[test]
#[ignore = "run by the test above, which sets the environment"]
fn two_drivers_with_random_loss() {
    std::env::var(ARGUMENTS).expect("arguments");
    let (first, second) = (launch(), launch());
    let (publication, mut subscription) = stream(&connect(&first));
    for _ in 0..FAR.div_ceil(BURST) {
        send_burst(&publication, &mut subscription);
    }
    // The first has drawn from its sequence so often that it is out of sight of the second.
    let (publication, mut subscription) = stream(&connect(&second));
    let lost = send_burst(&publication, &mut subscription);
    let drawn: Vec<_> = draws().take(FAR).map(|draw| draw <= RATE).collect();
    assert!(
        drawn.windows(BURST).any(|window| window == lost),
        "what was lost is not by the sequence of the seed: {lost:?}"
    );
}

/// C would notice only when it has made half of the driver, and leave that behind.
#[test]
fn unreadable_arguments_are_rejected() {
    let variable = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS";
    let mut test = ignored_test("loss::driver_with_unreadable_arguments");
    pass(test.env(variable, "term-id=3|length=long"));
}

#[test]
#[ignore = "run by the test above, which sets the environment"]
fn driver_with_unreadable_arguments() {
    let mut context = driver_context();
    context.set_incoming_interceptors(&[UdpInterceptor::FixedLoss]).expect("an interceptor");
    let dir = tempfile::tempdir().expect("a directory");
    context.set_dir(dir.path().join("aeron")).expect("a directory");
    let error = MediaDriver::launch(context).expect_err("arguments");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
    assert!(error.message().contains("FIXED_LOSS_ARGS"), "{error:?}");
    assert!(!dir.path().join("aeron").exists());
}

fn launch() -> MediaDriver {
    let mut context = driver_context();
    context.set_incoming_interceptors(&[UdpInterceptor::Loss]).expect("an interceptor");
    MediaDriver::launch_embedded_with(context).expect("a driver")
}

/// A stream that goes on without the lost messages.
fn stream(aeron: &Aeron) -> (Publication, Subscription) {
    let channel = format!("aeron:udp?endpoint=127.0.0.1:{}|term-length=1m", free_port());
    let subscription =
        aeron.add_subscription(format!("{channel}|reliable=false"), 1).expect("a subscription");
    let publication = aeron.add_publication(&channel, 1).expect("a publication");
    await_that("a connection", || publication.is_connected() && subscription.image_count() == 1);
    (publication, subscription)
}

/// Sends messages with a datagram for each and no heartbeat in between, and returns which were lost.
fn send_burst(publication: &Publication, subscription: &mut Subscription) -> Vec<bool> {
    // Nothing is sent before the first message, which is last to be complete.
    let mut first = await_some("a claim", || publication.try_claim(1000).ok());
    first[..8].copy_from_slice(&0_u64.to_le_bytes());
    for number in 1..BURST as u64 {
        let mut message = [0; 1000];
        message[..8].copy_from_slice(&number.to_le_bytes());
        await_that("an offer", || publication.offer(&message).is_ok());
    }
    first.commit().expect("a claim that is in time");

    let end = publication.position().expect("an open publication");
    let mut lost = vec![true; BURST];
    await_that("the end of the burst", || {
        let handler = |message: &[u8], _: &rusteron_client::Header<'_>| {
            let number = message[..8].try_into().map(u64::from_le_bytes).expect("a number");
            lost[number as usize] = false;
        };
        subscription.poll(handler, 10).expect("an open subscription");
        let mut images = subscription.images();
        images.next().is_some_and(|image| image.position() >= end)
    });
    lost
}

/// The numbers that C's `erand48` draws, from 0 to 1, for the seed as the interceptor takes it.
fn draws() -> impl Iterator<Item = f64> {
    let mut state = SEED << 32;
    std::iter::from_fn(move || {
        state = (state.wrapping_mul(0x5_DEEC_E66D) + 0xB) & ((1 << 48) - 1);
        Some(state as f64 / (1_u64 << 48) as f64)
    })
}
