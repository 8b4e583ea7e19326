//! UDP datagrams that pass system calls together.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rusteron_client::{Aeron, Publication, Subscription, SystemCounter};
use rusteron_media_driver::{DriverContext, MediaDriver};
use rusteron_test_support::{
    Random, await_some, await_that, connect, driver_context, free_port, ignored_test, logged_with,
    pass, receive, skip, udp_channel,
};

/// Initial receiver window. What fits into it can be sent at once.
const WINDOW: usize = 128 * 1024;

fn launch(is_enabled: bool) -> MediaDriver {
    launch_with(is_enabled, |context| context)
}

fn launch_with(
    is_enabled: bool,
    settings: impl FnOnce(&mut DriverContext) -> &mut DriverContext,
) -> MediaDriver {
    let mut context = driver_context();
    context
        .set_segmentation_offload(is_enabled)
        .and_then(|context| context.set_rcv_initial_window_length(WINDOW))
        .and_then(|context| context.set_sender_io_vector_capacity(64))
        .and_then(|context| context.set_network_publication_max_messages_per_send(64))
        .expect("settings");
    settings(&mut context);
    MediaDriver::launch_embedded_with(context).expect("a driver")
}

/// Buffers of several datagrams: those that were sent, and those that were read.
pub(crate) fn coalesced(aeron: &Aeron) -> Option<(i64, i64)> {
    let counters = aeron.counters_reader();
    let value = |label: &str| {
        counters.iter().find(|counter| counter.label == label).map(|counter| counter.value)
    };
    Some((value("Sends of several datagrams")?, value("Reads of several datagrams")?))
}

fn stream(aeron: &Aeron, publish: &str, subscribe: &str) -> (Publication, Subscription) {
    let subscription = aeron.add_subscription(subscribe, 1001).expect("a subscription");
    let publication = aeron.add_publication(publish, 1001).expect("a publication");
    await_that("a connection", || {
        publication.available_window().is_ok_and(|window| window > 0) && subscription.is_connected()
    });
    (publication, subscription)
}

/// Makes the driver find all messages at once: nothing is sent before the first message, which is
/// last to be complete.
pub(crate) fn send_at_once(publication: &Publication, messages: &[Vec<u8>]) {
    let mut first = await_some("a claim", || publication.try_claim(messages[0].len()).ok());
    first.copy_from_slice(&messages[0]);
    for message in &messages[1..] {
        publication.offer(message).expect("within the window");
    }
    first.commit().expect("a claim that is in time");
}

/// Messages that fit into the window, of equal lengths or of random lengths.
pub(crate) fn messages(random: &mut Random, length: Option<usize>) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut total = 0;
    loop {
        let length = length.unwrap_or_else(|| 1 + random.below(1_300));
        total += (length + 32).next_multiple_of(32);
        if total > WINDOW / 2 {
            return messages;
        }
        messages.push(random.bytes(length));
    }
}

/// Sends until datagrams were coalesced on both sides.
fn exchange_coalesced(aeron: &Aeron, publication: &Publication, subscription: &mut Subscription) {
    let mut random = Random::new(1);
    await_that("coalesced datagrams", || {
        for length in [Some(1344), Some(32), None] {
            let sent = messages(&mut random, length);
            await_that("a window", || {
                publication.available_window().is_ok_and(|window| window >= WINDOW / 2)
            });
            send_at_once(publication, &sent);
            assert!(receive(subscription, sent.len()) == sent, "messages changed");
        }
        coalesced(aeron).is_some_and(|(sends, reads)| sends > 0 && reads > 0)
    });
}

#[test]
fn ipv4_and_ipv6() {
    for host in ["127.0.0.1", "[::1]"] {
        let Ok(socket) = UdpSocket::bind(format!("{host}:0")) else {
            skip("RUSTERON_REQUIRE_MOUNT", &format!("this machine has no address {host}"));
            continue;
        };
        drop(socket);
        let driver = launch(true);
        let aeron = connect(&driver);
        let channel = format!("aeron:udp?endpoint={host}:{}", free_port());
        let (publication, mut subscription) = stream(&aeron, &channel, &channel);
        exchange_coalesced(&aeron, &publication, &mut subscription);
        assert_eq!(SystemCounter::InvalidPackets.read(&aeron.counters_reader()), Some(0));
    }
}

#[test]
fn multicast_and_several_destinations() {
    let driver = launch(true);
    let aeron = connect(&driver);
    let channel = format!("aeron:udp?endpoint=239.255.54.1:{}|interface=127.0.0.1", free_port());
    let (publication, mut subscription) = stream(&aeron, &channel, &channel);
    exchange_coalesced(&aeron, &publication, &mut subscription);

    let control = format!("127.0.0.1:{}", free_port());
    let subscribe =
        format!("aeron:udp?endpoint=127.0.0.1:0|control={control}|control-mode=dynamic");
    let publish = format!("aeron:udp?control={control}|control-mode=dynamic|fc=min");
    let (publication, mut subscription) = stream(&aeron, &publish, &subscribe);
    exchange_coalesced(&aeron, &publication, &mut subscription);
}

#[test]
fn full_socket_buffer_loses_nothing() {
    let driver = launch_with(true, |context| context.set_socket_so_sndbuf(8192).expect("a length"));
    let aeron = connect(&driver);
    let channel = udp_channel();
    let (publication, mut subscription) = stream(&aeron, &channel, &channel);
    exchange_coalesced(&aeron, &publication, &mut subscription);

    // Aeron does not repeat a part of a call for one of several destinations. NAKs do.
    let publication =
        aeron.add_publication("aeron:udp?control-mode=manual|fc=min,g:/3", 1002).expect("added");
    let mut subscriptions = [(); 3].map(|()| {
        let channel = udp_channel();
        publication.add_destination(&channel).expect("a destination");
        aeron.add_subscription(&channel, 1002).expect("a subscription")
    });
    for seed in 0..3 {
        let sent = messages(&mut Random::new(seed), None);
        await_that("a window", || {
            publication.available_window().is_ok_and(|window| window >= WINDOW / 2)
        });
        send_at_once(&publication, &sent);
        for subscription in &mut subscriptions {
            assert!(receive(subscription, sent.len()) == sent, "messages changed");
        }
    }
}

#[test]
fn media_timestamps_read_single_datagrams() {
    let driver = launch(true);
    let aeron = connect(&driver);
    let channel = udp_channel();
    let subscribe = format!("{channel}|media-rcv-ts-offset=reserved");
    let (publication, mut subscription) = stream(&aeron, &channel, &subscribe);
    let sent = messages(&mut Random::new(1), Some(1344));
    send_at_once(&publication, &sent);
    let mut timestamps = Vec::new();
    await_that("the messages", || {
        let handler = |_: &[u8], header: &rusteron_client::Header<'_>| {
            timestamps.push(header.reserved_value());
        };
        subscription.poll(handler, 10).expect("open");
        timestamps.len() == sent.len()
    });
    assert!(timestamps.iter().all(|timestamp| *timestamp > 0), "{timestamps:?}");
    let (sends, reads) = coalesced(&aeron).expect("counters");
    assert!(sends > 0);
    assert_eq!(reads, 0);
}

/// Start and length of each data frame's datagram in a stream, as a socket without coalescing sees
/// the datagrams.
type Datagrams = BTreeMap<(i32, i32), usize>;

/// Passes datagrams on between a publisher, which sends to `proxy`, and a subscriber. Returns the
/// datagrams with messages.
fn pass_on(proxy: &UdpSocket, subscriber: SocketAddr, is_over: &AtomicBool) -> Datagrams {
    let mut datagrams = Datagrams::new();
    let mut publisher = None;
    let mut buffer = vec![0; 1 << 16];
    while !is_over.load(Ordering::Acquire) {
        let Ok((length, from)) = proxy.recv_from(&mut buffer) else { continue };
        let datagram = &buffer[..length];
        let to = if from == subscriber { publisher } else { Some(subscriber) };
        if from != subscriber {
            publisher = Some(from);
            let number = |at: usize| {
                datagram[at..at + 4].try_into().map(i32::from_le_bytes).expect("four bytes")
            };
            let (frame_length, frame_type) = (number(0), datagram[6]);
            // Heartbeats have no length.
            if frame_type == 1 && frame_length > 0 {
                datagrams.insert((number(20), number(8)), length);
            }
        }
        if let Some(to) = to {
            proxy.send_to(datagram, to).expect("passed on");
        }
    }
    datagrams
}

fn datagrams_of(is_enabled: bool, messages: &[Vec<u8>]) -> Datagrams {
    let driver = launch(is_enabled);
    let aeron = connect(&driver);
    let proxy = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    proxy.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
    let subscribe = udp_channel();
    let subscriber = subscribe.rsplit('=').next().and_then(|endpoint| endpoint.parse().ok());
    let subscriber = subscriber.expect("an address");
    let address = proxy.local_addr().expect("an address");
    // The same term ids each time.
    let publish = format!(
        "aeron:udp?endpoint={address}|init-term-id=7|term-id=7|term-offset=0|term-length=1m"
    );
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let datagrams = scope.spawn(|| pass_on(&proxy, subscriber, &is_over));
        let (publication, mut subscription) = stream(&aeron, &publish, &subscribe);
        send_at_once(&publication, messages);
        let received = receive(&mut subscription, messages.len());
        let sends = coalesced(&aeron).map(|(sends, _)| sends);
        is_over.store(true, Ordering::Release);
        let datagrams = datagrams.join().expect("datagrams");
        assert!(received == messages, "messages changed");
        assert_eq!(sends.unwrap_or(0) > 0, is_enabled);
        datagrams
    })
}

#[test]
fn same_datagrams_on_the_wire() {
    for length in [Some(1344), Some(32), None] {
        let messages = messages(&mut Random::new(1), length);
        let expected = datagrams_of(false, &messages);
        assert!(expected.len() > 10, "{expected:?}");
        assert_eq!(datagrams_of(true, &messages), expected);
    }
}

#[test]
fn invalid_variable_is_rejected() {
    let mut test = ignored_test("segmentation_offload::context_of_environment");
    let text = pass(test.env("RUSTERON_SEGMENTATION_OFFLOAD", "maybe"));
    assert!(text.contains("RUSTERON_SEGMENTATION_OFFLOAD=maybe: must be on or off"), "{text}");
}

#[test]
#[ignore = "run by the test above, which sets the environment"]
fn context_of_environment() {
    println!("{}", DriverContext::new().expect_err("an invalid variable"));
}

/// Runs a test of this module in a network of its own, whose loopback device has the MTU of Ethernet.
mod own_network {
    use std::mem;
    use std::process::Command;

    use super::*;

    const TEST: &str = "segmentation_offload::own_network::refused_stream";

    #[test]
    fn refusal_falls_back_and_warns_once() {
        let output = Command::new("unshare")
            .arg("--net")
            .arg(std::env::current_exe().expect("this program"))
            .args(["--exact", TEST, "--ignored", "--nocapture"])
            .output();
        let text = output
            .as_ref()
            .map(|output| {
                let (out, err) = (&output.stdout, &output.stderr);
                String::from_utf8_lossy(out) + String::from_utf8_lossy(err)
            })
            .unwrap_or_default();
        if !text.contains("running 1 test") {
            let reason = format!("there cannot be another network: {text}");
            return skip("RUSTERON_REQUIRE_MOUNT", &reason);
        }
        assert!(text.contains("1 passed"), "{text}");
    }

    /// Starts the loopback device of a new network.
    fn set_up_loopback(mtu: i32) {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        // SAFETY: all fields are integers, arrays of integers or null pointers.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        request.ifr_name[..2].copy_from_slice(&[b'l' as libc::c_char, b'o' as libc::c_char]);
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&socket);
        request.ifr_ifru.ifru_mtu = mtu;
        // SAFETY: the request outlives the call, and has the field that the call reads.
        assert_eq!(unsafe { libc::ioctl(descriptor, libc::SIOCSIFMTU, &request) }, 0);
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        // SAFETY: the request outlives the call, and has the field that the call reads.
        assert_eq!(unsafe { libc::ioctl(descriptor, libc::SIOCSIFFLAGS, &request) }, 0);
    }

    #[test]
    #[ignore = "run by the test above, in a network of its own"]
    fn refused_stream() {
        set_up_loopback(1500);
        let logged = logged_with("segmentation offload to 127.0.0.1:", send_refused_buffers);
        assert_eq!(logged.len(), 1, "{logged:?}");
    }

    fn send_refused_buffers() {
        let driver = launch_with(true, |context| context.set_mtu_length(8192).expect("an MTU"));
        let aeron = connect(&driver);
        let channel = udp_channel();
        let (publication, mut subscription) = stream(&aeron, &channel, &channel);
        // The device has to fragment each datagram, and cannot do so for a buffer of several.
        for seed in 0..3 {
            let sent = messages(&mut Random::new(seed), Some(1344));
            await_that("a window", || {
                publication.available_window().is_ok_and(|window| window >= WINDOW / 2)
            });
            send_at_once(&publication, &sent);
            assert!(receive(&mut subscription, sent.len()) == sent, "messages changed");
        }
        assert_eq!(SystemCounter::Errors.read(&aeron.counters_reader()), Some(0));
        assert_eq!(coalesced(&aeron), Some((0, 0)));
    }
}

#[test]
fn vectors_follow_the_setting() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let vectors = |context: &DriverContext| {
        (context.sender_io_vector_capacity(), context.network_publication_max_messages_per_send())
    };
    let mut context = driver_context();
    assert_eq!(vectors(&context), (16, 16));
    context.set_segmentation_offload(false).expect("off");
    assert_eq!(vectors(&context), (4, 4));
    context.set_segmentation_offload(true).expect("on");
    context.set_sender_io_vector_capacity(8).expect("a capacity");
    assert_eq!(vectors(&context), (8, 16));
    drop(MediaDriver::launch_embedded_with(context).expect("a driver that sends 8 datagrams"));
}
