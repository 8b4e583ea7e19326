//! Drivers in networks of their own: what is on the wire, and streams over a wire that loses datagrams.
//!
//! A router connects the networks. So a lost datagram is a single one, whatever the sender's kernel had in one
//! buffer.

mod losses;
mod wire;

use std::fs::{self, File};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{mem, ptr, thread};

use rusteron_client::{Aeron, SystemCounter};
use rusteron_test_support::{ChildProcess, DriverProcess, command, context, skip};

use crate::MEDIA_DRIVER;

const SUBSCRIBER_ADDRESS: &str = "10.7.2.2";

/// The publisher's device has no offload of its own, so that its kernel cuts the buffers.
const PUBLISHER: &str = "
    ip link set lo up
    ip link add wire type veth peer name publisher netns ROUTER
    ip address add 10.7.1.2/24 dev wire
    ip link set wire gso_max_segs 1 up
    ip route add default via 10.7.1.1
";

const SUBSCRIBER: &str = "
    ip link set lo up
    ip link add wire type veth peer name subscriber netns ROUTER
    ip address add 10.7.2.2/24 dev wire
    ip link set wire up
    ip route add default via 10.7.2.1
";

const ROUTER: &str = "
    ip address add 10.7.1.1/24 dev publisher
    ip address add 10.7.2.1/24 dev subscriber
    ip link set publisher up
    ip link set subscriber up
    echo 1 > /proc/sys/net/ipv4/ip_forward
";

/// Networks of a publisher, a router and a subscriber.
pub(crate) struct Networks {
    publisher: Network,
    router: Network,
    subscriber: Network,
}

impl Networks {
    /// `None`, with the reason on the standard error output, where it is not permitted;
    /// `RUSTERON_REQUIRE_MOUNT=1` makes that a failure.
    fn new() -> Option<Self> {
        skip_without_permission(Self::connect())
    }

    fn connect() -> Result<Self, String> {
        let networks = Self {
            publisher: Network::new()?,
            router: Network::new()?,
            subscriber: Network::new()?,
        };
        let router = networks.router.holder.id().to_string();
        networks.publisher.run(&PUBLISHER.replace("ROUTER", &router))?;
        networks.subscriber.run(&SUBSCRIBER.replace("ROUTER", &router))?;
        networks.router.run(ROUTER)?;
        Ok(networks)
    }

    /// The same with a router that loses datagrams of both directions.
    fn with_loss(percent: u32) -> Option<Self> {
        let filter = draw(percent, "0", "2");
        skip_without_permission(Self::connect().and_then(|networks| {
            for device in ["publisher", "subscriber"] {
                networks.router.run(&format!(
                    "tc qdisc add dev {device} clsact
                    tc filter add dev {device} ingress protocol ip bpf direct-action bytecode '{filter}'"
                ))?;
            }
            Ok(networks)
        }))
    }

    /// The same with a router that keeps some of the datagrams to the subscriber in a queue, while others
    /// overtake them.
    fn with_reordering(percent: u32) -> Option<Self> {
        let filter = draw(percent, "0", "4294967295");
        skip_without_permission(Self::connect().and_then(|networks| {
            networks.router.run(&format!(
                "tc qdisc add dev subscriber root handle 1: htb default 1
                tc class add dev subscriber parent 1: classid 1:1 htb rate 10gbit quantum 60000
                tc class add dev subscriber parent 1: classid 1:2 htb rate 20mbit quantum 1500 burst 1600
                tc filter add dev subscriber parent 1: protocol ip bpf bytecode '{filter}' flowid 1:2"
            ))?;
            Ok(networks)
        }))
    }

    /// Lets the subscriber's device coalesce datagrams. The device does so if the other end of the wire does not
    /// send coalesced ones.
    fn coalesce(&self) {
        const SET_TSO: u32 = 0x1f;
        const SET_GRO: u32 = 0x2c;
        self.router.switch("subscriber", SET_TSO, false);
        self.subscriber.switch("wire", SET_GRO, true);
    }
}

/// A filter for `tc`, whose result is `drawn` for some of the packets, and `other` for the rest. In place of
/// `netem`, which some kernels lack.
fn draw(percent: u32, other: &str, drawn: &str) -> String {
    // The kernel's name of a random number.
    const RANDOM: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32;
    let bound = u32::MAX / 100 * percent;
    // Load a number; skip one instruction unless it is greater; return.
    format!("4,32 0 0 {RANDOM},37 0 1 {bound},6 0 0 {other},6 0 0 {drawn}")
}

fn skip_without_permission(networks: Result<Networks, String>) -> Option<Networks> {
    let skipped = |reason: &_| {
        skip("RUSTERON_REQUIRE_MOUNT", &format!("there cannot be other networks: {reason}"));
    };
    networks.inspect_err(skipped).ok()
}

/// A network with a process that holds it. The kernel removes the network after its last process: the holder ends
/// with the test, because it reads from the test.
struct Network {
    holder: ChildProcess,
}

impl Network {
    fn new() -> Result<Self, String> {
        let mut holder = ChildProcess::spawn(
            Command::new("unshare")
                .args(["--net", "sh", "-c", "echo ready; exec cat"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
        );
        if holder.line() != "ready" {
            return Err(holder.finish().2);
        }
        Ok(Self { holder })
    }

    /// A program in this network, without the settings of the tests' own environment.
    fn command(&self, program: &str) -> Command {
        let network = format!("--net=/proc/{}/ns/net", self.holder.id());
        command("nsenter", [network.as_str(), program])
    }

    /// Runs a script of the shell, up to the first failure.
    fn run(&self, script: &str) -> Result<(), String> {
        let output = self.command("sh").args(["-ec", script]).output();
        let output = output.map_err(|error| format!("nsenter: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{script}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Runs a function on a thread of this network.
    fn enter<T: Send>(&self, function: impl FnOnce() -> T + Send) -> T {
        let network = File::open(format!("/proc/{}/ns/net", self.holder.id())).expect("a network");
        let entered = move || {
            // SAFETY: the descriptor is open. The call moves this thread only.
            let entered = unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) };
            assert_eq!(entered, 0, "{}", io::Error::last_os_error());
            function()
        };
        thread::scope(|scope| scope.spawn(entered).join().expect("a thread that succeeds"))
    }

    /// Switches a feature of a device, by a command of the kernel's interface `ethtool`.
    fn switch(&self, device: &str, command: u32, is_on: bool) {
        #[repr(C)]
        struct Value {
            command: u32,
            is_on: u32,
        }
        self.enter(|| {
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
    fn launch(&self, dir: &Path, options: &[&str]) -> Driver {
        let mut command = self.command(MEDIA_DRIVER);
        command.args(["--threading-mode", "shared", "--dir"]).arg(dir).args(options);
        let mut process = DriverProcess::run(&mut command);
        let line = process.line();
        assert!(line.starts_with("media driver ready"), "{line} {}", process.end().1);
        Driver { aeron: Aeron::connect(context(dir)).expect("a client"), process }
    }

    /// Datagrams that this network has lost, because a socket's buffer was full.
    fn overruns(&self) -> u64 {
        let path = format!("/proc/{}/net/snmp", self.holder.id());
        let text = fs::read_to_string(path).expect("statistics");
        let mut lines = text.lines().filter(|line| line.starts_with("Udp:"));
        let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
        let mut columns = names.split_whitespace().zip(values.split_whitespace());
        let (_, value) = columns.find(|(name, _)| *name == "RcvbufErrors").expect("a column");
        value.parse().expect("a number")
    }
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
