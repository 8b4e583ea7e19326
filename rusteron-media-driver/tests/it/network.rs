//! Messages over the network of this machine, undisturbed and with losses.

use std::net::UdpSocket;
use std::ops::RangeInclusive;

use rusteron_client::{Aeron, ExclusivePublication, Header, Subscription, SystemCounter};
use rusteron_media_driver::{
    CongestionControlStrategy, DriverContext, FlowControlStrategy, Loss, MediaDriver, NameResolver,
    Preset, ThreadingMode,
};
use rusteron_test_support::{
    Random, await_that, connect, connected_pair, driver_context, exchange, free_port, udp_channel,
};

fn context() -> DriverContext {
    let mut context = driver_context();
    context.set_term_buffer_length(1 << 16).expect("a length");
    context
}

fn count(aeron: &Aeron, counter: SystemCounter) -> i64 {
    counter.read(&aeron.counters_reader()).expect("the counter")
}

/// A child that inherited a socket would occupy its port.
#[cfg(unix)]
#[test]
fn children_do_not_inherit_sockets() {
    use std::process::{Command, Stdio};

    let driver = MediaDriver::launch_embedded_with(context()).expect("a driver");
    let aeron = connect(&driver);
    let port = free_port();
    let channel = format!("aeron:udp?endpoint=127.0.0.1:{port}");
    let subscription = aeron.add_subscription(&channel, 1001).expect("a subscription");
    UdpSocket::bind(("127.0.0.1", port)).expect_err("the driver's port");
    // It ends with its standard input.
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a child");
    drop((subscription, aeron, driver));
    await_that("the port is free", || UdpSocket::bind(("127.0.0.1", port)).is_ok());
    assert_eq!(child.try_wait().expect("a state"), None, "it has run all the while");
    drop(child.stdin.take());
    child.wait().expect("its end");
}

#[test]
fn lost_datagrams_are_retransmitted() {
    for percent in [1, 5, 20] {
        let loss = |seed| {
            let rate = f64::from(percent) / 100.0 / 2.0;
            Some(Loss { data_rate: rate, control_rate: rate, seed })
        };
        // Half of it on each side.
        let mut sending = context();
        sending.set_send_loss(loss(1)).expect("a loss");
        let mut receiving = context();
        receiving.set_receive_loss(loss(2)).expect("a loss");
        let sender = MediaDriver::launch_embedded_with(sending).expect("a driver");
        let receiver = MediaDriver::launch_embedded_with(receiving).expect("a driver");
        let (from, to) = (connect(&sender), connect(&receiver));
        let channel = udp_channel();
        let mut subscription = to.add_subscription(&channel, 1001).expect("a subscription");
        let mut publication =
            from.add_exclusive_publication(&channel, 1001).expect("a publication");
        exchange(&mut publication, &mut subscription, 1000);
        assert!(count(&to, SystemCounter::NakMessagesSent) > 0, "{percent} %");
        assert!(count(&from, SystemCounter::RetransmitsSent) > 0, "{percent} %");
        let report = receiver.cnc_file().expect("its file").loss_report().expect("a report");
        assert!(report.iter().any(|entry| entry.total_bytes_lost > 0), "{percent} %");
    }
}

#[test]
fn loss_rate_of_one() {
    let (lossy_channel, clean_channel) = (udp_channel(), udp_channel());
    let everything = Some(Loss { data_rate: 1.0, control_rate: 0.0, seed: 1 });
    let mut context = context();
    context.set_send_loss(everything).expect("a loss");
    let lossy = MediaDriver::launch_embedded_with(context).expect("a driver");
    let clean = MediaDriver::launch_embedded_with(self::context()).expect("a driver");
    let (from, to) = (connect(&lossy), connect(&clean));
    let _subscription = to.add_subscription(&lossy_channel, 1001).expect("a subscription");
    let publication = from.add_publication(&lossy_channel, 1001).expect("a publication");
    // In the time that another stream takes to connect and to send, this one does nothing.
    let (mut other, mut subscription) = connected_pair(&to, &clean_channel);
    exchange(&mut other, &mut subscription, 300);
    assert!(!publication.is_connected());
}

#[test]
fn invalid_loss_rates() {
    let mut context = DriverContext::new().expect("a context");
    for rate in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let loss = Some(Loss { data_rate: 0.0, control_rate: rate, seed: 0 });
        let error = context.set_receive_loss(loss).expect_err("no rate");
        assert!(error.message().starts_with("receive_loss: a rate of"), "{error:?}");
    }
    context.set_send_loss(None).expect("no loss");
}

#[test]
fn flow_and_congestion_control() {
    for strategy in FlowControlStrategy::ALL {
        assert_eq!(strategy.name().parse::<FlowControlStrategy>().expect("itself"), *strategy);
    }
    let error = "fastest".parse::<FlowControlStrategy>().expect_err("no strategy");
    assert!(error.message().contains("multicast_min"), "{error:?}");

    let mut context = self::context();
    context
        .set_multicast_flow_control(FlowControlStrategy::MulticastMin)
        .and_then(|context| context.set_congestion_control(CongestionControlStrategy::Cubic))
        .and_then(|context| context.set_name_resolver(NameResolver::CsvTable))
        .expect("strategies");
    context.set_name_resolver_init_args("anywhere,127.0.0.1,127.0.0.1").expect("a table");
    let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
    let aeron = connect(&driver);
    let channel = format!("aeron:udp?endpoint=anywhere:{}", free_port());
    let (mut publication, mut subscription) = connected_pair(&aeron, &channel);
    exchange(&mut publication, &mut subscription, 100);
}

#[test]
fn wildcard_port_range() {
    let mut context = context();
    assert_eq!(context.receiver_wildcard_port_range(), None);
    for range in [0..=7, RangeInclusive::new(9, 8), 60000..=65535] {
        let error = context.set_receiver_wildcard_port_range(Some(range)).expect_err("no range");
        assert!(error.message().starts_with("receiver_wildcard_port_range: "), "{error:?}");
    }
    // Below the ports that the operating system gives out, and above those of other tests.
    let low = 30_000 + (std::process::id() % 27) as u16 * 100;
    context
        .set_receiver_wildcard_port_range(Some(low..=low + 50))
        .and_then(|context| context.set_sender_wildcard_port_range(Some(low + 51..=low + 99)))
        .and_then(|context| context.set_receiver_group_tag(Some(-3)))
        .expect("settings");
    assert_eq!(context.receiver_wildcard_port_range(), Some(low..=low + 50));
    assert_eq!(context.sender_wildcard_port_range(), Some(low + 51..=low + 99));
    assert_eq!(context.receiver_group_tag(), Some(-3));
    context.set_receiver_group_tag(None).expect("no tag");
    assert_eq!(context.receiver_group_tag(), None);

    let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
    let aeron = connect(&driver);
    let subscription = aeron
        .add_subscription("aeron:udp?endpoint=127.0.0.1:0", 1001)
        .expect("a subscription on one of the ports");
    let endpoint = subscription.resolved_endpoint().expect("no error").expect("an endpoint");
    let port: u16 = endpoint.rsplit(':').next().expect("a port").parse().expect("a number");
    assert!((low..=low + 50).contains(&port), "{endpoint}");
}

#[test]
fn presets() {
    for preset in Preset::ALL.iter().copied() {
        assert_eq!(preset.to_string().parse::<Preset>().expect("itself"), preset);
        let context = DriverContext::with_preset(preset).expect("a context");
        let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
        let aeron = connect(&driver);
        let channel = udp_channel();
        let (mut publication, mut subscription) = connected_pair(&aeron, &channel);
        exchange(&mut publication, &mut subscription, 50);
    }
}

/// The sender counts only the header of the padding at a term's end against the window. The receiver
/// drops frames that end more than half a term ahead of the subscriber.
#[test]
fn throughput_window_loses_nothing() {
    let mut context = DriverContext::with_preset(Preset::Throughput).expect("a context");
    context.set_threading_mode(ThreadingMode::Shared).expect("a mode");
    let window = context.rcv_initial_window_length();
    let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
    let aeron = connect(&driver);
    // Where the system limits the preset's window, the window is far from half a term. A third of a
    // short term, as the preset's documentation advises, is within the limits of all systems.
    for (parameters, window) in [("", window), ("|term-length=256k|rcv-wnd=85k", 85 << 10)] {
        let channel = udp_channel() + parameters;
        let (mut publication, mut subscription) = connected_pair(&aeron, &channel);
        fill_windows(&aeron, &mut publication, &mut subscription, window as i64);
        for counter in [
            SystemCounter::FlowControlOverRuns,
            SystemCounter::NakMessagesSent,
            SystemCounter::RetransmitsSent,
        ] {
            assert_eq!(count(&aeron, counter), 0, "{counter:?}: {channel}");
        }
    }
}

/// Fills each window that the receiver announces. Windows end at many positions around the ends of 16
/// terms. Checks that all messages arrive.
fn fill_windows(
    aeron: &Aeron,
    publication: &mut ExclusivePublication,
    subscription: &mut Subscription,
    window: i64,
) {
    const HEADER: usize = 32;
    let mut random = Random::new(1);
    let eighth = publication.max_message_length();
    let frame = publication.max_payload_length() + HEADER;
    // With all headers, a message is 32 bytes longer than an eighth of a term. Seven fit into a term.
    // No other length leaves longer padding.
    let content = random.bytes(eighth - eighth / frame * HEADER);
    let mut message = content.clone();
    let (mut sent, mut received) = (0_u64, 0_u64);
    let (mut position, mut furthest) = (0, 0);
    let mut check = |bytes: &[u8], _: &Header<'_>| {
        assert!(bytes[..8] == received.to_le_bytes(), "not message {received}");
        assert!(bytes[8..] == content[8..], "message {received} is another");
        received += 1;
    };
    while position < (16 * 8 * eighth) as i64 {
        await_that("a full window", || {
            let over_runs = count(aeron, SystemCounter::FlowControlOverRuns);
            assert_eq!(over_runs, 0, "flow control over runs, subscriber at {position}");
            message[..8].copy_from_slice(&sent.to_le_bytes());
            while publication.offer(&message).is_ok() {
                sent += 1;
                message[..8].copy_from_slice(&sent.to_le_bytes());
            }
            let streams = aeron.counters_reader().stream_positions();
            let session_id = publication.session_id();
            let stream = streams.iter().find(|stream| stream.session_id == session_id);
            let stream = stream.expect("the stream");
            let limit = stream.sender_limit().expect("a sender");
            let sender = stream.sender_position().expect("a sender");
            // After a quarter of a window, the receiver announces the next.
            let is_announced = limit - position >= window - window / 4;
            let is_full = sender + frame as i64 > limit;
            let is_received = stream.receiver_high_water_mark() >= Some(sender);
            let is_over = is_announced && is_full && is_received;
            if is_over {
                furthest = furthest.max(sender - limit);
            }
            is_over
        });
        let mut image = subscription.image_at_index(0).expect("an image");
        // Up to a quarter of a window, so that the next one ends anywhere.
        image.poll(&mut check, 1 + random.below(window as usize / 4 / frame));
        position = image.position();
    }
    assert!(furthest > eighth as i64 / 2, "padding passed the window by {furthest} bytes only");
    let end = publication.position().expect("an open publication");
    await_that("the last messages", || {
        let mut image = subscription.image_at_index(0).expect("an image");
        image.poll(&mut check, 10);
        image.position() == end
    });
    assert_eq!(received, sent);
}
