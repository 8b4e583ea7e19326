//! The names of hosts in the response channels of clients that are not authenticated yet.
//!
//! One thread of the media driver resolves all names, and adds everything that clients ask for. A
//! name whose server is silent holds it up for ten seconds. So the server resolves these names
//! itself, each on a thread of its own that ends with the answer, and the driver gets addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread::{self, JoinHandle};

use rusteron_client::Aeron;
use rusteron_core::channel::{ChannelText, Media};

/// The most threads at a time, in all and for clients of one host.
const MAX_LOOKUPS: usize = 16;
const MAX_LOOKUPS_OF_HOST: usize = 4;
/// Enough for the resolver of the C library, with its plugins.
const STACK_SIZE: usize = 256 * 1024;
/// The parameters with a host: an address or a name, and the port or the length of a prefix.
const PARAMETERS: [&str; 3] = ["endpoint", "control", "interface"];
/// The type of the counter by which a driver shows how many other drivers its own resolver knows.
const RESOLVER_NEIGHBORS: i32 = 15;

/// Returns whether the media driver has a resolver of its own, which knows the names of other
/// drivers. Nobody else can ask it, so it gets all names.
pub(crate) fn has_own_resolver(aeron: &Aeron) -> bool {
    aeron.counters_reader().iter().any(|counter| counter.type_id == RESOLVER_NEIGHBORS)
}

/// The channel of a client, of which the names of hosts are resolved.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) channel: String,
    /// The address from which the client's requests come.
    pub(crate) source: String,
    /// The media driver resolves the names.
    pub(crate) is_of_driver: bool,
    pub(crate) answer: Option<Receiver<Result<String, String>>>,
}

/// The threads that wait for a name's server. A thread outlives the session that has asked.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    running: Vec<(String, JoinHandle<()>)>,
}

impl Names {
    /// Returns the channel with addresses once they are known. Does not block.
    pub(crate) fn poll(&mut self, lookups: &mut Lookups) -> Result<Option<String>, String> {
        if self.is_of_driver {
            return Ok(Some(self.channel.clone()));
        }
        if let Ok(channel) = without_asking(&self.channel) {
            return Ok(Some(channel));
        }
        let Some(answer) = &self.answer else {
            self.answer = lookups.begin(&self.source, &self.channel, resolve)?;
            return Ok(None);
        };
        match answer.try_recv() {
            Ok(channel) => channel.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err("a thread has panicked".to_owned()),
        }
    }
}

impl Lookups {
    /// Begins to resolve the names of a channel, unless there are too many threads.
    fn begin(
        &mut self,
        source: &str,
        channel: &str,
        resolve: impl Fn(&str) -> Result<IpAddr, String> + Send + 'static,
    ) -> Result<Option<Receiver<Result<String, String>>>, String> {
        self.running.retain(|(_, thread)| !thread.is_finished());
        let host = source.rsplit_once(':').map_or(source, |(host, _)| host);
        let of_host = self.running.iter().filter(|(other, _)| other == host).count();
        if self.running.len() >= MAX_LOOKUPS || of_host >= MAX_LOOKUPS_OF_HOST {
            return Ok(None);
        }
        let (sender, answer) = mpsc::channel();
        let channel = channel.to_owned();
        let builder = thread::Builder::new().name("archive-names".to_owned());
        let thread = builder.stack_size(STACK_SIZE).spawn(move || {
            // The session may have ended.
            let _ = sender.send(with_addresses(&channel, resolve));
        });
        let thread = thread.map_err(|error| format!("a thread to resolve names: {error}"))?;
        self.running.push((host.to_owned(), thread));
        Ok(Some(answer))
    }
}

/// Replaces the names of hosts in a channel, unless the system's resolver has to be asked.
fn without_asking(channel: &str) -> Result<String, String> {
    with_addresses(channel, |_| Err(String::new()))
}

/// Replaces the names of hosts in a channel.
fn with_addresses(
    channel: &str,
    resolve: impl Fn(&str) -> Result<IpAddr, String>,
) -> Result<String, String> {
    let parts = ChannelText::new(channel);
    if parts.media() != Some(Media::Udp) {
        return Ok(channel.to_owned());
    }
    let with_address = |key: &str, value: &str| {
        let (host, rest) = split_host(value);
        if !PARAMETERS.contains(&key) || is_address(host) {
            return Ok(None);
        }
        let known = (host == "localhost").then_some(Ipv4Addr::LOCALHOST.into());
        match known.map_or_else(|| resolve(host), Ok) {
            Ok(IpAddr::V4(address)) => Ok(Some(format!("{address}{rest}"))),
            Ok(IpAddr::V6(address)) => Ok(Some(format!("[{address}]{rest}"))),
            Err(error) => Err(format!("unknown host: {key}={value}: {error}")),
        }
    };
    parts.try_replace(with_address).map(|parts| parts.to_string())
}

/// Splits a host from its port or its prefix.
fn split_host(value: &str) -> (&str, &str) {
    let end_of_brackets = value.rfind(']').map_or(0, |end| end + 1);
    let end = value[end_of_brackets..].find([':', '/']).map(|end| end_of_brackets + end);
    value.split_at(end.unwrap_or(value.len()))
}

/// Returns whether nobody has to be asked for a host: an address, the name of an interface in
/// braces, or nothing.
fn is_address(host: &str) -> bool {
    let between = |open, close| host.strip_prefix(open).and_then(|inner| inner.strip_suffix(close));
    if let Some(address) = between('[', ']') {
        return address.split('%').next().is_some_and(|it| it.parse::<Ipv6Addr>().is_ok());
    }
    host.is_empty() || host.parse::<Ipv4Addr>().is_ok() || between('{', '}').is_some()
}

/// Asks the system's resolver. As the media driver's, this one prefers the fourth version of the
/// protocol. Blocks for as long as servers are silent.
fn resolve(host: &str) -> Result<IpAddr, String> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found = (host, 0).to_socket_addrs().map_err(|error| error.to_string())?;
    let found: Vec<_> = found.map(|address: SocketAddr| address.ip()).collect();
    let preferred = found.iter().find(|address| address.is_ipv4()).or(found.first());
    preferred.copied().ok_or_else(|| "has no address".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn names_become_addresses_and_the_rest_stays() {
        let resolve = |host: &str| match host {
            "one" => Ok(Ipv4Addr::new(10, 0, 0, 1).into()),
            "six" => Ok(Ipv6Addr::LOCALHOST.into()),
            _ => Err("nobody".to_owned()),
        };
        for (channel, expected) in [
            ("aeron:udp?endpoint=one:80|mtu=8k", "aeron:udp?endpoint=10.0.0.1:80|mtu=8k"),
            ("aeron:udp?endpoint=six:80", "aeron:udp?endpoint=[::1]:80"),
            ("aeron:udp?endpoint=one", "aeron:udp?endpoint=10.0.0.1"),
            (
                "aeron:udp?control=one:1|control-mode=response|interface=one/24",
                "aeron:udp?control=10.0.0.1:1|control-mode=response|interface=10.0.0.1/24",
            ),
        ] {
            assert!(without_asking(channel).is_err(), "{channel}");
            assert_eq!(with_addresses(channel, resolve).as_deref(), Ok(expected));
        }
        assert_eq!(
            with_addresses("aeron:udp?endpoint=x:1", resolve),
            Err("unknown host: endpoint=x:1: nobody".to_owned())
        );
    }

    #[test]
    fn addresses_ask_nobody() {
        for channel in [
            "aeron:udp",
            "aeron:ipc?endpoint=name:1",
            "aeron:udp?endpoint=127.0.0.1:80|alias=name:1",
            "aeron:udp?endpoint=[::1]:80|interface=[fe80::1%eth0]/64",
            "aeron:udp?endpoint=224.0.1.1:1|interface={eth0}",
            "aeron:udp?control-mode=response|control=:1",
        ] {
            assert_eq!(without_asking(channel).as_deref(), Ok(channel));
        }
        let local = "aeron:udp?endpoint=127.0.0.1:1";
        assert_eq!(without_asking("aeron:udp?endpoint=localhost:1").as_deref(), Ok(local));
        for name in ["localhos:1", "1:2", "127.1:2", "[name]:1", "[127.0.0.1]:1"] {
            assert!(without_asking(&format!("aeron:udp?endpoint={name}")).is_err(), "{name}");
        }
    }

    #[test]
    fn silent_names_do_not_hold_up_others() {
        let mut lookups = Lookups::default();
        let (silence, heard) = mpsc::channel::<()>();
        let heard = std::sync::Arc::new(Mutex::new(heard));
        let mut begin = |source: &str| {
            let heard = heard.clone();
            let silent = move |_: &str| {
                let _ = heard.lock().map(|heard| heard.recv());
                Err("nobody".to_owned())
            };
            lookups.begin(source, "aeron:udp?endpoint=silent:1", silent).expect("a thread")
        };
        let begun: Vec<_> = (0..10).filter_map(|port| begin(&format!("a:{port}"))).collect();
        assert_eq!(begun.len(), MAX_LOOKUPS_OF_HOST);
        let other = begin("b:1");
        assert!(other.is_some());
        let further: Vec<_> = (0..100).filter_map(|host| begin(&format!("c{host}:1"))).collect();
        assert_eq!(further.len(), MAX_LOOKUPS - MAX_LOOKUPS_OF_HOST - 1);
        drop(silence);
        for answer in begun.into_iter().chain(other).chain(further) {
            assert!(answer.recv().expect("an answer").is_err());
        }
    }

    #[test]
    fn system_is_asked_and_answers() {
        let mut lookups = Lookups::default();
        let mut names = Names {
            // Not an address for Rust, but one for the system, which asks nobody else.
            channel: "aeron:udp?endpoint=127.1:1".to_owned(),
            source: "aeron:ipc".to_owned(),
            is_of_driver: false,
            answer: None,
        };
        let channel = loop {
            match names.poll(&mut lookups).expect("known") {
                Some(channel) => break channel,
                None => thread::yield_now(),
            }
        };
        assert_eq!(channel, "aeron:udp?endpoint=127.0.0.1:1");
    }
}
