//! Datagrams as the subscriber's device receives them.

use std::collections::BTreeMap;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{FromRawFd as _, OwnedFd};

use rusteron_test_support::{Random, await_that, receive};

use super::launch;
use crate::segmentation_offload::{coalesced, messages, send_at_once};
use rusteron_test_support::networks::{Network, Networks, SUBSCRIBER_ADDRESS};

const PORT: u16 = 20_121;

/// Aeron's default length of a datagram.
const MTU: usize = 1408;

/// Payloads of the datagrams of a stream, by their starts in its term.
type Datagrams = BTreeMap<usize, Vec<u8>>;

/// A socket that gets each IPv4 packet of a network's devices.
fn capture(network: &Network) -> UdpSocket {
    let descriptor = network.enter(|| {
        let protocol = (libc::ETH_P_IP as u16).to_be();
        // SAFETY: the call takes no memory.
        let descriptor =
            unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM, protocol.into()) };
        assert!(descriptor >= 0, "{}", io::Error::last_os_error());
        // SAFETY: nothing else owns the new descriptor.
        unsafe { OwnedFd::from_raw_fd(descriptor) }
    });
    // Only receives, as any socket can.
    let socket = UdpSocket::from(descriptor);
    socket.set_nonblocking(true).expect("a socket");
    socket
}

fn number(bytes: &[u8], at: usize) -> usize {
    bytes[at..at + 4].try_into().map(u32::from_le_bytes).expect("four bytes") as usize
}

/// Returns the payload of a UDP datagram to the subscriber.
fn payload(packet: &[u8]) -> Option<&[u8]> {
    const UDP: u8 = 17;
    const MORE_OR_OFFSET: u16 = 0x3fff;
    let short = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let header_length = usize::from(packet[0] & 0xf) * 4;
    if packet[9] != UDP || short(header_length + 2) != PORT {
        return None;
    }
    assert_eq!(short(6) & MORE_OR_OFFSET, 0, "a fragment of a datagram");
    let length = usize::from(short(header_length + 4));
    assert_eq!(header_length + length, usize::from(short(2)), "lengths of UDP and IP");
    Some(&packet[header_length + 8..header_length + length])
}

/// Adds what the socket has.
fn drain(socket: &UdpSocket, datagrams: &mut Datagrams) {
    let mut packet = vec![0; 1 << 16];
    while let Ok(length) = socket.recv(&mut packet) {
        let Some(datagram) = payload(&packet[..length]) else { continue };
        let (frame_length, frame_type) = (number(datagram, 0), datagram[6]);
        // Heartbeats have no length.
        if frame_type == 1 && frame_length > 0 {
            datagrams.insert(number(datagram, 8), datagram.to_vec());
        }
    }
}

/// Sends messages from a driver with options, and returns their datagrams.
fn datagrams_of(options: &[&str], messages: &[Vec<u8>]) -> Option<Datagrams> {
    let networks = Networks::new()?;
    let capture = capture(&networks.subscriber);
    let dir = tempfile::tempdir().expect("a directory");
    let publisher = launch(&networks.publisher, &dir.path().join("publisher"), options);
    let subscriber = launch(&networks.subscriber, &dir.path().join("subscriber"), options);
    let endpoint = format!("aeron:udp?endpoint={SUBSCRIBER_ADDRESS}:{PORT}");
    let mut subscription = subscriber.aeron.add_subscription(&endpoint, 1).expect("a subscription");
    // The same headers each time.
    let publish =
        format!("{endpoint}|session-id=7|init-term-id=7|term-id=7|term-offset=0|term-length=1m");
    let publication = publisher.aeron.add_publication(publish, 1).expect("a publication");
    await_that("a window", || {
        publication.available_window().is_ok_and(|window| window > 0) && subscription.is_connected()
    });
    send_at_once(&publication, messages);
    assert!(receive(&mut subscription, messages.len()) == messages, "messages changed");

    let end = publication.position().expect("an open publication") as usize;
    let mut datagrams = Datagrams::new();
    await_that("the last datagram", || {
        drain(&capture, &mut datagrams);
        datagrams.iter().next_back().is_some_and(|(start, bytes)| start + bytes.len() == end)
    });
    let sends = coalesced(&publisher.aeron).map(|(sends, _)| sends > 0);
    assert_eq!(sends, options.is_empty().then_some(true));
    Some(datagrams)
}

/// Each datagram has whole frames, and starts where the datagram before ends.
fn assert_whole_frames(datagrams: &Datagrams) {
    let mut end = 0;
    for (start, datagram) in datagrams {
        assert_eq!(*start, end, "a datagram is missing");
        assert!(datagram.len() <= MTU, "{} bytes", datagram.len());
        let mut at = 0;
        while at < datagram.len() {
            assert_eq!(number(datagram, at + 8), start + at, "a frame's offset");
            at += number(datagram, at).next_multiple_of(32);
        }
        assert_eq!(at, datagram.len(), "the end of the last frame");
        end = start + datagram.len();
    }
}

#[test]
fn same_packets_with_and_without_offload() {
    for length in [Some(1344), Some(32), None] {
        let messages = messages(&mut Random::new(1), length);
        let off = ["--segmentation-offload", "off"];
        let Some(expected) = datagrams_of(&off, &messages) else { return };
        assert!(expected.len() > 10, "{}", expected.len());
        assert_whole_frames(&expected);
        let datagrams = datagrams_of(&[], &messages).expect("networks");
        assert_whole_frames(&datagrams);
        assert!(datagrams == expected, "other datagrams");
    }
}
