//! Networks of their own for the processes of a test, with a wire that may lose datagrams.
//!
//! A router connects the networks. So a lost datagram is a single one, whatever the sender's kernel had in one
//! buffer.

use std::fs;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use crate::{ChildProcess, command, skip};

pub const SUBSCRIBER_ADDRESS: &str = "10.7.2.2";

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
pub struct Networks {
    pub publisher: Network,
    pub router: Network,
    pub subscriber: Network,
}

impl Networks {
    /// `None`, with the reason on the standard error output, where it is not permitted;
    /// `RUSTERON_REQUIRE_MOUNT=1` makes that a failure.
    pub fn new() -> Option<Self> {
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
    pub fn with_loss(percent: u32) -> Option<Self> {
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
    pub fn with_reordering(percent: u32) -> Option<Self> {
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
}

/// A filter for `tc`, whose result is `drawn` for some of the packets, and `other` for the rest. In place of
/// `netem`, which some kernels lack.
fn draw(percent: u32, other: &str, drawn: &str) -> String {
    // The kernel's name of a random number: SKF_AD_OFF + SKF_AD_RANDOM.
    const RANDOM: u32 = (-0x1000_i32 + 56) as u32;
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
#[derive(Debug)]
pub struct Network {
    holder: ChildProcess,
}

impl Network {
    fn new() -> Result<Self, String> {
        let mut holder = ChildProcess::try_spawn(
            Command::new("unshare")
                .args(["--net", "sh", "-c", "echo ready; exec cat"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
        )
        .map_err(|error| format!("unshare: {error}"))?;
        if holder.line() != "ready" {
            return Err(holder.finish().2);
        }
        Ok(Self { holder })
    }

    /// Makes two networks that a pair of devices joins, with [addresses](Self::PAIR) that no other
    /// network sees.
    ///
    /// # Errors
    /// The output of the programs, if one is missing or the permission is.
    pub fn pair() -> Result<[Self; 2], String> {
        let [near, far] = [Self::new()?, Self::new()?];
        let [to_near, to_far] = Self::PAIR.map(|address| {
            format!("ip address add {address}/24 dev pair; ip link set pair up; ip link set lo up")
        });
        let add = "ip link add pair type veth peer name pair netns";
        near.run(&format!("{add} {}; {to_near}", far.holder.id()))?;
        far.run(&to_far)?;
        Ok([near, far])
    }

    /// The addresses of a [pair](Self::pair).
    pub const PAIR: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 99, 0, 1), Ipv4Addr::new(10, 99, 0, 2)];

    /// Lets a command run in this network. The process has the id of the program.
    pub fn within(&self, command: Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--net=/proc/{}/ns/net", self.holder.id()));
        inside.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }

    /// A program in this network, without the settings of the tests' own environment.
    pub fn command(&self, program: &str) -> Command {
        let network = format!("--net=/proc/{}/ns/net", self.holder.id());
        command("nsenter", [network.as_str(), program])
    }

    /// Runs a script of the shell, up to the first failure.
    pub fn run(&self, script: &str) -> Result<(), String> {
        let output = self.command("sh").args(["-ec", script]).output();
        let output = output.map_err(|error| format!("nsenter: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{script}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Runs a function on a thread of this network.
    #[cfg(target_os = "linux")]
    pub fn enter<T: Send>(&self, function: impl FnOnce() -> T + Send) -> T {
        use std::os::fd::AsFd as _;

        use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

        let network =
            fs::File::open(format!("/proc/{}/ns/net", self.holder.id())).expect("a network");
        let entered = move || {
            let network_type = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(network.as_fd(), network_type).expect("to enter the network");
            function()
        };
        std::thread::scope(|scope| scope.spawn(entered).join().expect("a thread that succeeds"))
    }

    /// Datagrams that this network has lost, because a socket's buffer was full.
    pub fn overruns(&self) -> u64 {
        let path = format!("/proc/{}/net/snmp", self.holder.id());
        let text = fs::read_to_string(path).expect("statistics");
        let mut lines = text.lines().filter(|line| line.starts_with("Udp:"));
        let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
        let mut columns = names.split_whitespace().zip(values.split_whitespace());
        let (_, value) = columns.find(|(name, _)| *name == "RcvbufErrors").expect("a column");
        value.parse().expect("a number")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_keeps_arguments_and_variables() {
        let Ok([network, _]) = Network::pair() else { return };
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ $SET${REMOVED-} \"$0\"", "b c"]);
        command.env("SET", "1").env("REMOVED", "2").env_remove("REMOVED");
        let child = network.within(command).stdout(Stdio::piped()).spawn().expect("a process");
        let expected = format!("{} 1 b c\n", child.id());
        assert_eq!(child.wait_with_output().expect("its output").stdout, expected.as_bytes());
    }
}
