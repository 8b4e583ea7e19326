//! Datagrams that any host on the network can send, to a media driver with a subscription and a publication.
//!
//! An input chooses the channels, and then steps: datagrams to the subscription, to the publication and to the
//! driver's name resolver, polls, offers, and turns of the driver and the client.

#![no_main]

use std::cell::RefCell;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rusteron_client::{AnyPublication, Publisher, Subscription};
use rusteron_fuzz::frames::{self, Expected};
use rusteron_fuzz::input::Input;
use rusteron_fuzz::polls;
use rusteron_fuzz::stage::{Stage, resolve_names};

/// After so many inputs the driver is replaced, so that its retained memory stays small.
const INPUTS_PER_DRIVER: u32 = 128;
const MAX_STEPS: usize = 64;
const TERM_LENGTH: i32 = 64 << 10;

const SUBSCRIPTIONS: [&str; 8] = [
    "",
    "|reliable=false",
    "|rejoin=false|tether=false",
    "|group=true|gtag=7",
    "|cc=cubic",
    "|rcv-wnd=64k",
    "|media-rcv-ts-offset=reserved|channel-rcv-ts-offset=0",
    "|nak-delay=1us",
];
const PUBLICATIONS: [&str; 8] = [
    "endpoint={fuzzer}|term-length=64k|init-term-id=100|term-id=100|term-offset=0",
    "control=127.0.0.1:0|control-mode=dynamic|term-length=64k|init-term-id=100|term-id=100|term-offset=0",
    "control=127.0.0.1:0|control-mode=dynamic|term-length=64k|fc=min,g:/2",
    "control=127.0.0.1:0|control-mode=dynamic|term-length=64k|fc=tagged,g:7/1",
    "endpoint={fuzzer}|term-length=64k|init-term-id=2147483647|term-id=-2147483648|term-offset=65504",
    "endpoint={fuzzer}|term-length=64k|max-resend=1|mtu=64",
    "control=127.0.0.1:0|control-mode=manual|term-length=64k",
    "endpoint={fuzzer}|term-length=64k|channel-snd-ts-offset=0|eos=false",
];

struct Network {
    stage: Stage,
    resolver: SocketAddr,
    inputs: u32,
}

impl Network {
    fn launch() -> Self {
        let resolver = {
            let probe = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            probe.local_addr().expect("an address")
        };
        let stage = Stage::launch(|context| {
            resolve_names(context, resolver.port())?;
            // Timeouts expire at once, or never.
            context
                .set_image_liveness_timeout(Duration::from_millis(100))?
                .set_publication_linger_timeout(Duration::from_millis(1))?
                .set_counters_free_to_reuse_timeout(Duration::from_millis(1))?
                .set_rcv_status_message_timeout(Duration::from_nanos(1))?
                .set_nak_unicast_delay(Duration::from_nanos(1))?
                .set_retransmit_unicast_linger(Duration::from_nanos(1))?
                .set_self_resolution_interval(Duration::from_millis(1))?
                .set_resolver_neighbor_resolution_interval(Duration::from_millis(1))?
                .set_resolver_neighbor_timeout(Duration::from_millis(5))?
                .set_re_resolution_check_interval(Duration::from_millis(1))?
                .set_stream_session_limit(8)?
                .set_rejoin_stream(true)?;
            Ok(())
        });
        Self { stage, resolver, inputs: 0 }
    }

    fn run(&mut self, input: &mut Input<'_>) {
        self.inputs += 1;
        // The stream ids differ from those of earlier inputs, whose images linger.
        let stream_id = 1000 * self.inputs as i32;
        let options = SUBSCRIPTIONS[usize::from(input.byte()) % SUBSCRIPTIONS.len()];
        let channel = format!("aeron:udp?endpoint=127.0.0.1:0{options}");
        let adding = self.stage.aeron.async_add_subscription(&*channel, stream_id);
        let subscription = self.stage.added(adding).expect("a subscription");

        let options = PUBLICATIONS[usize::from(input.byte()) % PUBLICATIONS.len()];
        let fuzzer = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let endpoint = fuzzer.local_addr().expect("an address").to_string();
        let channel = format!("aeron:udp?{}", options.replace("{fuzzer}", &endpoint));
        let aeron = self.stage.aeron.clone();
        let added = if input.byte() % 2 == 0 {
            let adding = aeron.async_add_publication(&*channel, stream_id);
            self.stage.added(adding).map(AnyPublication::Shared)
        } else {
            let adding = aeron.async_add_exclusive_publication(&*channel, stream_id);
            self.stage.added(adding).map(AnyPublication::Exclusive)
        };
        let publisher = match added {
            Ok(publisher) => publisher,
            // Seldom, a publication lingers whose channel has the same port and other options.
            Err(error) if error.message().contains("existingChannel") => return,
            Err(error) => panic!("{channel}: {error}"),
        };
        let mut scene = Scene {
            to_subscription: address(&mut self.stage, || subscription.local_addresses()),
            to_publication: address(&mut self.stage, || publisher.local_addresses()),
            subscription,
            publisher,
            stream_id,
            fuzzer,
            network: self,
        };
        for _ in 0..MAX_STEPS {
            if input.is_empty() {
                break;
            }
            scene.step(input);
        }
        scene.network.stage.repeat_work(4);
        polls::drain(&mut scene.subscription);
        scene.network.stage.repeat_work(2);
    }
}

struct Scene<'a> {
    subscription: Subscription,
    publisher: AnyPublication,
    stream_id: i32,
    /// Sends the datagrams, and is where unicast publications send to; it reads nothing.
    fuzzer: UdpSocket,
    to_subscription: SocketAddr,
    to_publication: SocketAddr,
    network: &'a mut Network,
}

impl Scene<'_> {
    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 8 {
            0 => {
                let expected = Expected {
                    session_id: 1,
                    stream_id: self.stream_id,
                    term_id: 100,
                    term_length: TERM_LENGTH,
                };
                let datagram = frames::datagram(input, expected);
                self.send(&datagram, self.to_subscription);
            }
            1 => {
                let expected = Expected {
                    session_id: self.publisher.session_id(),
                    stream_id: self.stream_id,
                    term_id: self.publisher.constants().initial_term_id,
                    term_length: TERM_LENGTH,
                };
                let datagram = frames::datagram(input, expected);
                self.send(&datagram, self.to_publication);
            }
            2 => {
                let expected =
                    Expected { session_id: 1, stream_id: 1, term_id: 1, term_length: TERM_LENGTH };
                let datagram = frames::datagram(input, expected);
                self.send(&datagram, self.network.resolver);
            }
            3 => {
                let to = input.choose(&[
                    self.to_subscription,
                    self.to_publication,
                    self.network.resolver,
                ]);
                let length = usize::from(input.byte());
                let datagram = input.bytes(length);
                self.send(datagram, to);
            }
            4 => {
                let length = usize::from(input.half()) % (TERM_LENGTH as usize / 8);
                // The cause of a refused message is of no interest here.
                let _ = self.publisher.offer(&vec![b'o'; length]);
            }
            5 => self.network.stage.repeat_work(usize::from(input.byte() % 16) + 1),
            _ => {
                self.network.stage.repeat_work(2);
                polls::poll(&mut self.subscription, input);
            }
        }
    }

    fn send(&mut self, datagram: &[u8], to: SocketAddr) {
        // A datagram that the kernel does not take is lost, as on any network.
        let _ = self.fuzzer.send_to(datagram, to);
    }
}

/// Where a socket of the driver listens.
fn address(
    stage: &mut Stage,
    addresses: impl Fn() -> rusteron_client::Result<Vec<SocketAddr>>,
) -> SocketAddr {
    let mut found = None;
    stage.await_that("the address of a socket", |_| {
        found = addresses().expect("addresses").first().copied();
        found.is_some()
    });
    found.expect("an address")
}

fuzz_target!(|bytes: &[u8]| {
    thread_local! {
        static NETWORK: RefCell<Option<Network>> = const { RefCell::new(None) };
    }
    NETWORK.with_borrow_mut(|network| {
        let running = network.get_or_insert_with(Network::launch);
        running.run(&mut Input::new(bytes));
        if running.inputs == INPUTS_PER_DRIVER {
            *network = None;
        }
    });
});
