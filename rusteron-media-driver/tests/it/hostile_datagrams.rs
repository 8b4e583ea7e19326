//! Datagrams that no driver sends, to drivers that trust the headers.

use std::net::UdpSocket;
use std::sync::mpsc;

use rusteron_client::{Aeron, CncFile, SystemCounter};
use rusteron_media_driver::{MediaDriver, NameResolver};
use rusteron_test_support::{
    await_some, await_that, connect, context, driver_context, exchange, free_port, receive, retry,
};

fn invalid_packets(cnc: &CncFile) -> i64 {
    SystemCounter::InvalidPackets.read(&cnc.counters()).expect("the counter")
}

/// A NAK frame.
fn nak(session_id: i32, stream_id: i32, term_id: i32, term_offset: i32, length: i32) -> Vec<u8> {
    let mut frame = 28_i32.to_le_bytes().to_vec();
    // Version, flags, type.
    frame.extend([0, 0, 2, 0]);
    for number in [session_id, stream_id, term_id, term_offset, length] {
        frame.extend(number.to_le_bytes());
    }
    frame
}

/// The header of a frame of padding.
fn padding(length: i32, ids: [i32; 3], term_offset: i32) -> Vec<u8> {
    let [session_id, stream_id, term_id] = ids;
    let mut header = length.to_le_bytes().to_vec();
    // Version, flags, type.
    header.extend([0, 0, 0, 0]);
    for number in [term_offset, session_id, stream_id, term_id, 0, 0] {
        header.extend(number.to_le_bytes());
    }
    header
}

/// A message at the beginning of a term with padding in it that is much longer than the term. At the offset of 256
/// bytes, padding that looks right comes before it.
fn message_with_frames_in_it(ids: [i32; 3]) -> Vec<u8> {
    let mut message = padding(0x7fff_ffe0, ids, 32).repeat(16);
    let (at, behind) = (256 - 32, 256 + 64 - 32);
    message[at..at + 32].copy_from_slice(&padding(64, ids, 256));
    message[behind..behind + 32].copy_from_slice(&padding(0x7fff_ffe0, ids, 256 + 64));
    message
}

#[test]
fn nak_into_message() {
    let driver = MediaDriver::launch_embedded_with(driver_context()).expect("a driver");
    let aeron = connect(&driver);
    let cnc = driver.cnc_file().expect("the CnC file");
    // A sender that takes control frames from any address.
    let control = ("127.0.0.1", free_port());
    let channel =
        format!("aeron:udp?control=127.0.0.1:{}|control-mode=dynamic|term-length=64k", control.1);
    let mut publication = aeron.add_exclusive_publication(&channel, 1001).expect("a publication");
    let mut subscription = aeron
        .add_subscription(
            format!("aeron:udp?endpoint=127.0.0.1:0|control=127.0.0.1:{}", control.1),
            1001,
        )
        .expect("a subscription");
    await_that("the connection", || publication.available_window().is_ok_and(|window| window > 0));
    let constants = publication.constants();
    let (session_id, term_id) = (constants.session_id, constants.initial_term_id);
    let message = message_with_frames_in_it([session_id, 1001, term_id]);
    retry(|| publication.offer(&message)).expect("a position");
    assert_eq!(receive(&mut subscription, 1), [message]);

    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let retransmits = || SystemCounter::RetransmitsSent.read(&cnc.counters()).expect("the counter");
    let sent_again = retransmits();
    let previous = term_id.wrapping_sub(1);
    // Within the message; before the first term, far from the stream and next to it.
    for (term_id, offset, length) in [
        (term_id, 32, 4096),
        (term_id, 64, 4096),
        (term_id, 512, 4096),
        (term_id, 256, 32),
        (previous, 0, 4096),
        (previous, 65_536 - 64, 64),
    ] {
        let before = invalid_packets(&cnc);
        let frame = nak(session_id, 1001, term_id, offset, length);
        socket.send_to(&frame, control).expect("a datagram");
        await_that("the driver counts it as invalid", || invalid_packets(&cnc) > before);
    }

    assert_eq!(retransmits(), sent_again);

    // A receiver that has lost the message gets it again.
    let before = retransmits();
    socket.send_to(&nak(session_id, 1001, term_id, 0, 544), control).expect("a datagram");
    await_that("the message is sent again", || retransmits() > before);
    exchange(&mut publication, &mut subscription, 20);
}

/// A status message of a receiver that has received nothing yet.
fn status_message(ids: [i32; 3], receiver_id: i64) -> Vec<u8> {
    let [session_id, stream_id, term_id] = ids;
    let mut frame = 36_i32.to_le_bytes().to_vec();
    // Version, flags, type.
    frame.extend([0, 0, 3, 0]);
    for number in [session_id, stream_id, term_id, 0, 1 << 16] {
        frame.extend(number.to_le_bytes());
    }
    frame.extend(receiver_id.to_le_bytes());
    frame
}

/// A frame by which a receiver rejects a stream.
fn rejection(ids: [i32; 3], receiver_id: i64, reason: &str) -> Vec<u8> {
    const IMAGE_REJECTED: i32 = 13;
    let [session_id, stream_id, _] = ids;
    let mut frame = (40 + reason.len() as i32).to_le_bytes().to_vec();
    // Version, flags, type.
    frame.extend([0, 0, 4, 0]);
    frame.extend([session_id, stream_id].map(i32::to_le_bytes).concat());
    // No group tag.
    frame.extend([receiver_id, 0].map(i64::to_le_bytes).concat());
    frame.extend([IMAGE_REJECTED, reason.len() as i32].map(i32::to_le_bytes).concat());
    frame.extend(reason.as_bytes());
    frame
}

/// Aeron sends one byte more than the array on the sender's stack has, if the reason is of the
/// greatest length.
#[test]
fn longest_reason_of_rejection_is_shortened() {
    let driver = MediaDriver::launch_embedded_with(driver_context()).expect("a driver");
    let (sender, reasons) = mpsc::channel();
    let mut settings = context(driver.aeron_dir());
    settings
        .set_publication_error_handler(move |error| {
            sender.send(error.message.clone()).expect("a receiver");
        })
        .expect("a handler");
    let aeron = Aeron::connect(settings).expect("a client");
    let cnc = driver.cnc_file().expect("the CnC file");
    let control = ("127.0.0.1", free_port());
    let channel = format!("aeron:udp?control=127.0.0.1:{}|control-mode=dynamic", control.1);
    let publication = aeron.add_exclusive_publication(&channel, 1001).expect("a publication");
    let constants = publication.constants();
    let ids = [constants.session_id, 1001, constants.initial_term_id];
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    for (receiver_id, length) in (1..).zip([4, 1021, 1022, 1023]) {
        let reason = "A".repeat(length);
        // Each receiver rejects once. Its address has no other receiver then.
        socket.send_to(&status_message(ids, receiver_id), control).expect("a datagram");
        socket.send_to(&rejection(ids, receiver_id, &reason), control).expect("a datagram");
        let received = await_some("the reason", || reasons.try_recv().ok());
        assert_eq!(received, reason[..length.min(1022)]);
    }
    let before = invalid_packets(&cnc);
    let frame = rejection(ids, 1, &"A".repeat(1024));
    socket.send_to(&frame, control).expect("a datagram");
    await_that("the driver counts it as invalid", || invalid_packets(&cnc) > before);
}

/// An entry of a resolution frame for a name with an IPv4 address.
fn entry(name_length: i16, name: &[u8]) -> Vec<u8> {
    // Type, flags, port, age.
    let mut entry = vec![1, 0];
    entry.extend(4000_u16.to_le_bytes());
    entry.extend(0_i32.to_le_bytes());
    entry.extend([127, 0, 0, 1]);
    entry.extend(name_length.to_le_bytes());
    entry.extend(name);
    entry.resize(entry.len().next_multiple_of(8), 0);
    entry
}

fn resolution(entries: &[Vec<u8>]) -> Vec<u8> {
    let entries = entries.concat();
    let mut frame = (8 + entries.len() as i32).to_le_bytes().to_vec();
    frame.extend([0, 0, 7, 0]);
    frame.extend(entries);
    frame
}

#[test]
fn resolution_entries_beyond_datagram() {
    let address = ("127.0.0.1", free_port());
    let mut context = driver_context();
    context
        .set_name_resolver(NameResolver::Driver)
        .and_then(|context| context.set_resolver_name("here"))
        .and_then(|context| context.set_resolver_interface(&format!("127.0.0.1:{}", address.1)))
        .expect("settings");
    let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
    let cnc = driver.cnc_file().expect("the CnC file");
    let names = || {
        let counters = cnc.counters();
        let mut counters = counters.iter();
        counters.find(|it| it.label.starts_with("Resolver cache entries")).map(|it| it.value)
    };
    assert_eq!(names(), Some(0));

    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let whole = entry(5, b"there");
    for frame in [
        // Names of a negative length.
        resolution(&[entry(-1, b"there")]),
        resolution(&[entry(i16::MIN, b"there")]),
        resolution(&[whole.clone(), entry(-9, b"there")]),
        // One that is longer than its datagram.
        resolution(&[entry(i16::MAX, b"there")]),
        // A later entry that fits into the datagram, but not into the rest of it.
        resolution(&[whole.clone(), whole.clone(), entry(40, b"there")]),
        // Headers that are cut off.
        resolution(&[whole.clone(), vec![1, 0, 0, 0]]),
        resolution(&[whole.clone(), vec![1; 13]]),
    ] {
        let before = invalid_packets(&cnc);
        socket.send_to(&frame, address).expect("a datagram");
        await_that("the driver counts it as invalid", || invalid_packets(&cnc) > before);
        assert_eq!(names(), Some(0));
    }

    socket.send_to(&resolution(&[whole.clone(), entry(4, b"also")]), address).expect("a datagram");
    await_that("both names", || names() == Some(2));
}
