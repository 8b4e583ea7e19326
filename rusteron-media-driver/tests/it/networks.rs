//! Drivers in networks of their own: streams over a wire that loses or delays datagrams, to
//! receivers that are slow.

use std::hash::{DefaultHasher, Hasher as _};
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{io, mem, ptr};

use rusteron_client::{Aeron, ExclusivePublication, Subscription, SystemCounter};
use rusteron_test_support::networks::{Network, Networks, SUBSCRIBER_ADDRESS};
use rusteron_test_support::{DriverProcess, Random, await_that, context};

use crate::MEDIA_DRIVER;
use crate::segmentation_offload::coalesced;

const STREAM: i32 = 1001;

const PORT: u16 = 20_121;

/// Bytes of a stream's messages: thousands of datagrams.
const TOTAL: usize = 4 << 20;

/// A message that fills a datagram of Aeron's default length, 1,408 bytes.
const FULL: usize = 1376;

const THROUGHPUT: &[&str] = &["--preset", "throughput"];

const OFF: &[&str] = &["--segmentation-offload", "off"];

/// Lets the subscriber's device coalesce datagrams. The device does so if the other end of the wire does not send coalesced
/// ones.
fn coalesce(networks: &Networks) {
    const SET_TSO: u32 = 0x1f;
    const SET_GRO: u32 = 0x2c;
    switch(&networks.router, "subscriber", SET_TSO, false);
    switch(&networks.subscriber, "wire", SET_GRO, true);
}

/// Switches a feature of a device, by a command of the kernel's interface `ethtool`.
fn switch(network: &Network, device: &str, command: u32, is_on: bool) {
    #[repr(C)]
    struct Value {
        command: u32,
        is_on: u32,
    }
    network.enter(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        let mut value = Value { command, is_on: is_on.into() };
        // SAFETY: all fields are integers, arrays of integers or null pointers.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = ptr::from_mut(&mut value).cast();
        // SAFETY: request and value outlive the call, and have the fields that the call reads.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &request) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
    });
}

/// Starts a driver, and connects a client to it.
fn launch(network: &Network, dir: &Path, options: &[&str]) -> Driver {
    let mut command = network.command(MEDIA_DRIVER);
    command.args(["--threading-mode", "shared", "--dir"]).arg(dir).args(options);
    let mut process = DriverProcess::run(&mut command);
    let line = process.line();
    assert!(line.starts_with("media driver ready"), "{line} {}", process.end().1);
    Driver { aeron: Aeron::connect(context(dir)).expect("a client"), process }
}

/// A driver in a network, and its client, which is in the test's own network.
struct Driver {
    aeron: Aeron,
    process: DriverProcess,
}

impl Driver {
    fn count(&self, counter: SystemCounter) -> i64 {
        counter.read(&self.aeron.counters_reader()).expect("the counter")
    }
}

/// The messages of a stream, in their order.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Messages {
    count: usize,
    bytes: usize,
    checksum: u64,
}

impl Messages {
    fn add(&mut self, message: &[u8]) {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.checksum);
        hasher.write_usize(message.len());
        hasher.write(message);
        self.checksum = hasher.finish();
        self.bytes += message.len();
        self.count += 1;
    }
}

/// Makes the next message of a stream.
type NextMessage = fn(&mut Random) -> Vec<u8>;

/// Small, up to a datagram's length, or of many datagrams.
fn mixed(random: &mut Random) -> Vec<u8> {
    let longest = [64, FULL, FULL, 20_000][random.below(4)];
    let length = 1 + random.below(longest);
    random.bytes(length)
}

/// Of a datagram's length.
fn full(random: &mut Random) -> Vec<u8> {
    random.bytes(FULL)
}

/// A publisher's and a subscriber's driver.
struct Drivers {
    publisher: Driver,
    subscriber: Driver,
    _dir: tempfile::TempDir,
}

impl Drivers {
    fn launch(networks: &Networks, publisher: &[&str], subscriber: &[&str]) -> Self {
        coalesce(networks);
        let dir = tempfile::tempdir().expect("a directory");
        Self {
            publisher: launch(&networks.publisher, &dir.path().join("publisher"), publisher),
            subscriber: launch(&networks.subscriber, &dir.path().join("subscriber"), subscriber),
            _dir: dir,
        }
    }

    /// Sends messages to subscriptions at the first ports, and compares the checksums of all. Calls
    /// `during` again and again, with the part of the bytes that the publisher has sent.
    fn exchange(&self, destinations: u16, next_message: NextMessage, mut during: impl FnMut(f64)) {
        let endpoints = (0..destinations)
            .map(|number| format!("aeron:udp?endpoint={SUBSCRIBER_ADDRESS}:{}", PORT + number));
        let endpoints: Vec<_> = endpoints.collect();
        let mut subscriptions: Vec<_> = endpoints
            .iter()
            .map(|endpoint| self.subscriber.aeron.add_subscription(endpoint, STREAM))
            .collect::<Result<_, _>>()
            .expect("subscriptions");
        let mut publication = self.publication(&endpoints);
        await_that("the connections", || {
            publication.is_connected() && subscriptions.iter().all(Subscription::is_connected)
        });

        let mut random = Random::new(u64::from(destinations));
        let mut sent = Messages::default();
        let mut received = vec![Messages::default(); subscriptions.len()];
        let mut message = next_message(&mut random);
        while sent.bytes < TOTAL || received.iter().any(|received| *received != sent) {
            await_that("progress", || {
                let before = (sent.count, received.clone());
                for _ in 0..10 {
                    if sent.bytes >= TOTAL || publication.offer(&message).is_err() {
                        break;
                    }
                    sent.add(&message);
                    message = next_message(&mut random);
                }
                for (subscription, received) in subscriptions.iter_mut().zip(&mut received) {
                    subscription.poll(|message, _| received.add(message), 10).expect("open");
                }
                during(sent.bytes as f64 / TOTAL as f64);
                before != (sent.count, received.clone())
            });
            for received in &received {
                assert!(received.count <= sent.count);
                assert!(received.count < sent.count || *received == sent, "messages changed");
            }
        }
        for driver in [&self.publisher, &self.subscriber] {
            assert_eq!(driver.count(SystemCounter::InvalidPackets), 0);
            assert_eq!(driver.count(SystemCounter::Errors), 0);
        }
    }

    fn publication(&self, endpoints: &[String]) -> ExclusivePublication {
        let aeron = &self.publisher.aeron;
        if let [endpoint] = endpoints {
            return aeron.add_exclusive_publication(endpoint, STREAM).expect("a publication");
        }
        // All of them, before the first message.
        let channel = format!("aeron:udp?control-mode=manual|fc=min,g:/{}", endpoints.len());
        let publication = aeron.add_exclusive_publication(channel, STREAM).expect("a publication");
        for endpoint in endpoints {
            publication.add_destination(endpoint).expect("a destination");
        }
        publication
    }

    fn retransmissions(&self) -> (i64, i64) {
        let naks = self.subscriber.count(SystemCounter::NakMessagesSent);
        (naks, self.publisher.count(SystemCounter::RetransmitsSent))
    }

    fn assert_retransmissions(&self) {
        let (naks, retransmits) = self.retransmissions();
        assert!(naks > 0 && retransmits > 0, "{naks} NAKs, {retransmits} retransmits");
    }

    fn assert_coalesced(&self) {
        let sends = coalesced(&self.publisher.aeron).map(|(sends, _)| sends);
        let reads = coalesced(&self.subscriber.aeron).map(|(_, reads)| reads);
        assert!(sends > Some(0) && reads > Some(0), "{sends:?} sends, {reads:?} reads");
    }
}

#[test]
fn lost_and_overtaken_datagrams_arrive_in_order() {
    type Wire = fn() -> Option<Networks>;
    let (one_percent, twenty): (Wire, Wire) =
        (|| Networks::with_loss(1), || Networks::with_loss(20));
    let reordering: Wire = || Networks::with_reordering(10);
    // Aeron's default length of a socket's buffer, at a receiver of a publisher with long vectors.
    let buffer = ["-Daeron.socket.so_rcvbuf=128k", "-Daeron.rcv.initial.window.length=128k"];
    let short_buffer = [THROUGHPUT, &buffer].concat();
    for (wire, publisher, subscriber, destinations) in [
        (one_percent, &[][..], &[][..], 1),
        (twenty, &[], &[], 1),
        (twenty, THROUGHPUT, THROUGHPUT, 1),
        (reordering, &[], &[], 1),
        (reordering, THROUGHPUT, THROUGHPUT, 1),
        (one_percent, THROUGHPUT, &short_buffer, 1),
        (one_percent, &[], &[], 8),
        (one_percent, THROUGHPUT, THROUGHPUT, 8),
    ] {
        let Some(networks) = wire() else { return };
        let drivers = Drivers::launch(&networks, publisher, subscriber);
        drivers.exchange(destinations, mixed, |_| ());
        // A receiver asks for a datagram that is late, too.
        drivers.assert_retransmissions();
        drivers.assert_coalesced();
    }
}

#[test]
fn one_driver_without_offload() {
    for (publisher, subscriber) in [(&[][..], OFF), (OFF, &[])] {
        let Some(networks) = Networks::with_loss(20) else { return };
        let drivers = Drivers::launch(&networks, publisher, subscriber);
        drivers.exchange(1, mixed, |_| ());
        drivers.assert_retransmissions();
        let sends = coalesced(&drivers.publisher.aeron).map(|(sends, _)| sends > 0);
        assert_eq!(sends, publisher.is_empty().then_some(true));
        assert_eq!(coalesced(&drivers.subscriber.aeron).is_some(), subscriber.is_empty());
    }
}

/// A window of datagrams waits in the socket's buffer, and the publisher for the receiver.
#[test]
fn stopped_receiver_goes_on() {
    for options in [&[], THROUGHPUT] {
        let Some(networks) = Networks::with_loss(1) else { return };
        let drivers = Drivers::launch(&networks, options, options);
        let process = &drivers.subscriber.process;
        let mut resume = None;
        let mut is_over = false;
        drivers.exchange(1, mixed, |part| match resume {
            None if part > 0.3 => {
                process.signal("STOP");
                resume = Some(Instant::now() + Duration::from_secs(2));
            }
            Some(time) if !is_over && Instant::now() > time => {
                process.signal("CONT");
                is_over = true;
            }
            _ => {}
        });
        assert!(is_over);
        drivers.assert_retransmissions();
        drivers.assert_coalesced();
    }
}

/// A window of full datagrams fits into a socket's buffer. Many short datagrams may not.
#[test]
fn defaults_overrun_no_buffer() {
    let Some(networks) = Networks::new() else { return };
    let drivers = Drivers::launch(&networks, &[], &[]);
    drivers.exchange(1, full, |_| ());
    assert_eq!(networks.subscriber.overruns(), 0);
    assert_eq!(networks.publisher.overruns(), 0);
}
