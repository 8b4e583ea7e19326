//! Channel URIs: what we accept is what the media driver accepts.
//!
//! Each case of a table says what is wrong with a channel for a publication and for a subscription,
//! if anything. It is compared with [`ChannelUri`], and with a real driver, which gets the same text
//! unchecked.

mod support;

use std::net::UdpSocket;
use std::sync::atomic::{AtomicU32, Ordering};

use rusteron_client::{
    Aeron, ChannelUri, ChannelUriError, ChannelUriErrorKind, Error, ErrorKind, Parameter,
    Registration, Resource, UncheckedChannel,
};
use support::{Random, await_some, connect, launch};

/// The verdict on a channel for one use: fine, or what is wrong: a key, or a kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Fine,
    Key(&'static str),
    Fault(ChannelUriErrorKind),
}

use Verdict::Fine;

const SCHEME: Verdict = Verdict::Fault(ChannelUriErrorKind::Scheme);
const LENGTH: Verdict = Verdict::Fault(ChannelUriErrorKind::Length);
const SYNTAX: Verdict = Verdict::Fault(ChannelUriErrorKind::Syntax);
const SPY: Verdict = Verdict::Fault(ChannelUriErrorKind::Spy);

/// A case: the channel, the verdict for publications, the verdict for subscriptions. `{port}` stands
/// for a port that is free and `{tag}` for a tag, others for each resource.
type Case = (String, Verdict, Verdict);

impl Verdict {
    fn of(result: Result<(), &ChannelUriError>, expected: Self) -> Self {
        match (result, expected) {
            (Ok(()), _) => Fine,
            (Err(error), Self::Fault(_)) => Self::Fault(error.kind()),
            (Err(error), _) => Self::Key(error.parameter().map_or("(none)", Parameter::key)),
        }
    }
}

/// One of the parameters of a UDP and an IPC channel, at the end of them.
fn with(key: &'static str, value: &str) -> [String; 2] {
    [
        format!("aeron:udp?endpoint=127.0.0.1:{{port}}|{key}={value}"),
        format!("aeron:ipc?{key}={value}"),
    ]
}

#[derive(Clone, Copy)]
struct Readers {
    udp_publication: bool,
    udp_subscription: bool,
    ipc_publication: bool,
    ipc_subscription: bool,
}

const PUBLICATIONS: Readers = Readers {
    udp_publication: true,
    udp_subscription: false,
    ipc_publication: true,
    ipc_subscription: false,
};
const SUBSCRIPTIONS: Readers = Readers {
    udp_publication: false,
    udp_subscription: true,
    ipc_publication: false,
    ipc_subscription: true,
};
const ALL: Readers = Readers {
    udp_publication: true,
    udp_subscription: true,
    ipc_publication: true,
    ipc_subscription: true,
};
const UDP: Readers = Readers { ipc_publication: false, ipc_subscription: false, ..ALL };
const NOBODY: Readers = Readers { udp_publication: false, udp_subscription: false, ..UDP };

/// Parameters one at a time: who reads them, valid values, invalid values.
const SINGLE: &[(&str, Readers, &[&str], &[&str])] = &[
    (
        "mtu",
        PUBLICATIONS,
        &["64", "1408", "8k", "8K", "65504", " 1408", "+1408", "2kB"],
        &["33", "32", "0", "65505", "65536", "1409", "64m", "abc", "-64", "1.5k", "0x800", "4 k"],
    ),
    (
        "term-length",
        PUBLICATIONS,
        &["64k", "65536", "1m", "1M", "16777216", "1g", "64kk"],
        &["63k", "65537", "32k", "2g", "96k", "0", "-64k", "k", "word", "64 k"],
    ),
    (
        "max-resend",
        PUBLICATIONS,
        &["1", "16", "256"],
        &["0", "257", "-1", "many", "1k", "99999999999999999999"],
    ),
    (
        "linger",
        PUBLICATIONS,
        &["0", "5s", "10ms", "3us", "7ns", "7", "5S", "10Ms", "5mx", "10msec", "9223372037s"],
        &["-1", "5x", "s", "5sec", "5mxy", "1h", "five", "1.5s", "5 s"],
    ),
    ("untethered-window-limit-timeout", ALL, &["5s", "1", "0"], &["5h", "-5s", "x"]),
    ("untethered-linger-timeout", ALL, &["5s", "1", "0"], &["5h", "-5s", "x"]),
    ("untethered-resting-timeout", ALL, &["5s", "1", "0"], &["5h", "-5s", "x"]),
    ("sparse", ALL, &["true", "false", "trueish", "falsey"], &["TRUE", "yes", "1", "tru", " true"]),
    ("eos", PUBLICATIONS, &["true", "false"], &["True", "no", "0"]),
    ("ssc", PUBLICATIONS, &["true", "false"], &["on", "1"]),
    ("reliable", SUBSCRIPTIONS, &["true", "false"], &["on", "1"]),
    ("tether", SUBSCRIPTIONS, &["true", "false"], &["on", "1"]),
    ("rejoin", SUBSCRIPTIONS, &["true", "false"], &["on", "1"]),
    (
        "rcv-wnd",
        Readers { ipc_publication: false, ..ALL },
        &["0", "64k", "128k", "1"],
        &["x", "-1", "64q"],
    ),
    (
        "gtag",
        Readers { udp_publication: false, ..UDP },
        &["0", "-7", "0x10", "9223372036854775807"],
        &["x", "9223372036854775808", "7x"],
    ),
    ("group", NOBODY, &["true", "false", "infer", "nonsense"], &[]),
    ("ats", UDP, &["false", "falsehood"], &["no", "FALSE"]),
    (
        "session-id",
        ALL,
        &["0", "7", "-7", "2147483647", "-2147483648", "0x7f", "017", " 7"],
        &["2147483648", "-2147483649", "x", "7x", "08", "7 ", "0x", "tag:x", "tag"],
    ),
    ("response-correlation-id", PUBLICATIONS, &["-1", "-01"], &["-2", "x", "Prototype", "1x"]),
    ("so-sndbuf", UDP, &["0", "64k", "128k", "2m", "99999999999999999999"], &["x", "-1", "64q"]),
    ("so-rcvbuf", UDP, &["0", "128k", "256K", "1m"], &["x", "-1", "64q"]),
    ("so-tos", UDP, &["0", "8", "255", "0xff", "010"], &["256", "-1", "x", "1k", "8 "]),
    ("ttl", NOBODY, &["0", "4", "255", "256", "-1", "word"], &[]),
    (
        "media-rcv-ts-offset",
        UDP,
        &["0", "8", "reserved", "-1", "-8", "4294967296", "99999999999999999999", "0x10"],
        &["x", "8x", "Reserved", "8k"],
    ),
    ("channel-rcv-ts-offset", UDP, &["0", "8", "reserved"], &["x", "8x"]),
    ("channel-snd-ts-offset", UDP, &["0", "8", "reserved"], &["x", "8x"]),
    ("alias", NOBODY, &["any text: at all?", "a=b", "\u{e9}"], &[]),
    ("cc", NOBODY, &["static", "cubic", "nonsense"], &[]),
    ("fc", NOBODY, &["max", "nonsense"], &[]),
    ("nak-delay", NOBODY, &["100us", "nonsense"], &[]),
    ("stream-id", NOBODY, &["7", "nonsense"], &[]),
    ("response-endpoint", NOBODY, &["localhost:7", "nonsense"], &[]),
    ("colour", NOBODY, &["green"], &[]),
    ("MTU", NOBODY, &["33"], &[]),
    (" mtu", NOBODY, &["33"], &[]),
];

fn case(channel: &str, publication: Verdict, subscription: Verdict) -> Case {
    (channel.to_owned(), publication, subscription)
}

fn both(channel: &str, verdict: Verdict) -> Case {
    case(channel, verdict, verdict)
}

fn key(key: &'static str) -> Verdict {
    Verdict::Key(key)
}

/// A driver that is asked about each case, and where it and we do not agree.
struct Judge {
    aeron: Aeron,
    stream_id: i32,
    pending: Vec<Pending>,
    not_asked: usize,
    judged: usize,
    disagreements: Vec<String>,
}

/// A case that the driver has been asked about.
struct Pending {
    what: String,
    expected: Verdict,
    ours: Result<(), ChannelUriError>,
    theirs: Answer,
}

type Answer = Box<dyn FnMut() -> Option<Result<(), Error>>>;

/// Polls a registration until there is an answer; `None` for what the driver must not be asked.
fn answer<R: Resource + 'static>(registration: Result<Registration<R>, Error>) -> Option<Answer> {
    let mut registration = match registration {
        Ok(registration) => registration,
        Err(error) if error.kind() == ErrorKind::InvalidChannel => return None,
        Err(error) => panic!("{error}"),
    };
    Some(Box::new(move || match registration.poll() {
        Ok(None) => None,
        Ok(Some(_)) => Some(Ok(())),
        // The channel was fine, the machine is too small for it.
        Err(error) if error.kind() == ErrorKind::StorageSpace => Some(Ok(())),
        Err(error) => Some(Err(error)),
    }))
}

impl Judge {
    /// How many questions are asked before the answers are awaited.
    const BATCH: usize = 48;

    fn new(aeron: Aeron) -> Self {
        let (pending, disagreements) = (Vec::new(), Vec::new());
        Self { aeron, stream_id: 0, pending, not_asked: 0, judged: 0, disagreements }
    }

    fn judge(&mut self, (channel, publication, subscription): &Case) {
        let check = ChannelUri::check_publication;
        self.ask("publication", channel, *publication, check, |aeron, channel, stream_id| {
            answer(aeron.async_add_publication(channel, stream_id))
        });
        self.ask(
            "exclusive publication",
            channel,
            *publication,
            check,
            |aeron, channel, stream_id| {
                answer(aeron.async_add_exclusive_publication(channel, stream_id))
            },
        );
        let check = ChannelUri::check_subscription;
        self.ask("subscription", channel, *subscription, check, |aeron, channel, stream_id| {
            answer(aeron.async_add_subscription(channel, stream_id))
        });
        if self.pending.len() >= Self::BATCH {
            self.await_answers();
        }
    }

    fn ask(
        &mut self,
        kind: &str,
        channel: &str,
        expected: Verdict,
        check: impl Fn(&ChannelUri) -> Result<(), ChannelUriError>,
        add: impl Fn(&Aeron, UncheckedChannel<'_>, i32) -> Option<Answer>,
    ) {
        self.stream_id += 1;
        let channel = with_tags(&with_ports(channel));
        let ours = channel.parse::<ChannelUri>().and_then(|uri| check(&uri));
        let Some(theirs) = add(&self.aeron, UncheckedChannel(&channel), self.stream_id) else {
            self.not_asked += 1;
            return;
        };
        self.pending.push(Pending { what: format!("{kind} {channel}"), expected, ours, theirs });
    }

    fn await_answers(&mut self) {
        for Pending { what, expected, ours, mut theirs } in self.pending.drain(..) {
            self.judged += 1;
            let theirs = await_some(&what, &mut theirs);
            let verdict = Verdict::of(ours.as_ref().copied(), expected);
            if verdict != expected || theirs.is_ok() != ours.is_ok() {
                self.disagreements.push(format!(
                    "{what}: expected {expected:?}, we say {ours:?}, the driver says {theirs:?}"
                ));
            }
        }
    }

    fn conclude(mut self) {
        self.await_answers();
        assert!(!self.aeron.is_closed());
        assert!(
            self.disagreements.is_empty(),
            "{} of {} verdicts differ:\n{}",
            self.disagreements.len(),
            self.judged,
            self.disagreements.join("\n")
        );
    }
}

/// Puts a tag that nothing else has in the place of each `{tag}`.
fn with_tags(channel: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1001);
    channel.replace("{tag}", &NEXT.fetch_add(1, Ordering::Relaxed).to_string())
}

/// Puts a port that is free in the place of each `{port}`, below those that the operating system
/// gives out by itself.
fn with_ports(channel: &str) -> String {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 20_000;
    static USED: AtomicU32 = AtomicU32::new(0);
    let mut channel = channel.to_owned();
    while channel.contains("{port}") {
        // Another process begins somewhere else.
        let number = std::process::id().wrapping_mul(4099);
        let number = number.wrapping_add(USED.fetch_add(1, Ordering::Relaxed));
        let port = (FIRST + number % COUNT) as u16;
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            channel = channel.replacen("{port}", &port.to_string(), 1);
        }
    }
    channel
}

fn judge(cases: &[Case]) {
    let driver = launch();
    let mut judge = Judge::new(connect(&driver));
    for case in cases {
        judge.judge(case);
    }
    assert_eq!(judge.not_asked, 0);
    judge.conclude();
}

#[test]
fn every_parameter_by_itself() {
    let mut cases = Vec::new();
    for &(name, readers, valid, invalid) in SINGLE {
        let texts = |values: &'static [&'static str], verdict: Verdict, cases: &mut Vec<Case>| {
            for value in values {
                let [udp, ipc] = with(name, value);
                let if_read = |is_read| if is_read { verdict } else { Fine };
                cases.push((
                    udp,
                    if_read(readers.udp_publication),
                    if_read(readers.udp_subscription),
                ));
                cases.push((
                    ipc,
                    if_read(readers.ipc_publication),
                    if_read(readers.ipc_subscription),
                ));
            }
        };
        texts(valid, Fine, &mut cases);
        texts(invalid, key(name), &mut cases);
    }
    judge(&cases);
}

#[test]
fn schemes_and_syntax() {
    let long = |length: usize| {
        let channel = "aeron:ipc?alias=";
        format!("{channel}{}", "x".repeat(length - channel.len()))
    };
    let long_spy = |length: usize| {
        let channel = "aeron-spy:aeron:udp?endpoint=127.0.0.1:40123|alias=";
        format!("{channel}{}", "x".repeat(length - channel.len()))
    };
    let endpoint = "endpoint=127.0.0.1:{port}";
    judge(&[
        both("aeron:ipc", Fine),
        both("aeron:ipc?", Fine),
        both("", SCHEME),
        both("aeron", SCHEME),
        both("aeron:", SCHEME),
        both("aeron:udp", SCHEME),
        both("aeron:ipcx", SCHEME),
        both("aeron:ipc:", SCHEME),
        both("aeron:ipc|alias=x", SCHEME),
        both("aeron:tcp?endpoint=127.0.0.1:40123", SCHEME),
        both("AERON:ipc", SCHEME),
        both("aeron:IPC", SCHEME),
        both(" aeron:ipc", SCHEME),
        both("aeron:ipc ", SCHEME),
        both("aeron: ipc", SCHEME),
        both("not-aeron:ipc", SCHEME),
        both("aeron:carrier-pigeon", SCHEME),
        both("ipc", SCHEME),
        both(&format!("aeron:udp:{endpoint}"), SCHEME),
        both(&format!("aeron:udp?{endpoint}"), Fine),
        both(&format!("aeron:udp??{endpoint}"), key("endpoint")),
        both("aeron:udp?", key("endpoint")),
        both("aeron:ipc?alias", Fine),
        both("aeron:ipc?alias=x|", Fine),
        both("aeron:ipc?alias=x|mtu", Fine),
        both(&format!("aeron:udp?{endpoint}|mtu"), Fine),
        both("aeron:ipc?alias=", SYNTAX),
        both("aeron:ipc?alias=|mtu=8k", SYNTAX),
        both("aeron:ipc?=x", SYNTAX),
        both("aeron:ipc?|", SYNTAX),
        both("aeron:ipc?alias|mtu=8k", SYNTAX),
        both("aeron:ipc?alias=x||mtu=8k", SYNTAX),
        both("aeron:ipc?=", SYNTAX),
        both("aeron:udp?endpoint=", SYNTAX),
        both("aeron:udp?endpoint", key("endpoint")),
        both("aeron:ipc?alias=a=b=c", Fine),
        both("aeron:ipc?alias=a?b", Fine),
        both("aeron:ipc?a?b=c", Fine),
        both("aeron:ipc?alias=\u{1f980}", Fine),
        both("aeron:ipc? =x", Fine),
        both(&long(4095), Fine),
        both(&long(4096), LENGTH),
        case(&long_spy(4105), SPY, Fine),
        case(&long_spy(4106), LENGTH, LENGTH),
        // Repeated keys: the first, or the last, depending on the key.
        case("aeron:ipc?mtu=33|mtu=8k", key("mtu"), Fine),
        both("aeron:ipc?mtu=8k|mtu=33", Fine),
        both(&format!("aeron:udp?endpoint=nonsense|{endpoint}"), Fine),
        both(&format!("aeron:udp?{endpoint}|endpoint=nonsense"), key("endpoint")),
        both(&format!("aeron:udp?{endpoint}|control-mode=dynamic|control-mode=x"), Fine),
        both(&format!("aeron:udp?{endpoint}|control-mode=x|control-mode=dynamic"), key("control")),
        both(&format!("aeron:udp?{endpoint}|control=x|control=127.0.0.1:{{port}}"), Fine),
        both(&format!("aeron:udp?{endpoint}|interface=x:y|interface=127.0.0.1"), Fine),
        both(&format!("aeron:udp?{endpoint}|tags=x|tags={{tag}}"), Fine),
        case("aeron:ipc?tags=1,x|tags=2", key("tags"), Fine),
        both("aeron:ipc?tags=1,x|tags=2,", Fine),
    ]);
}

#[test]
fn endpoints_controls_and_interfaces() {
    let udp = |rest: &str| format!("aeron:udp?{rest}");
    let with_endpoint = |rest: &str| udp(&format!("endpoint=127.0.0.1:{{port}}|{rest}"));
    let mut cases = vec![
        both(&udp("endpoint=localhost:{port}"), Fine),
        both(&udp("endpoint=[::1]:{port}"), Fine),
        both(&udp("endpoint=[::1%lo]:{port}"), Fine),
        // The brackets are a habit.
        both(&udp("endpoint=::1:{port}"), Fine),
        both(&udp("endpoint=[127.0.0.1]:{port}"), Fine),
        both(&udp("endpoint=0.0.0.0:{port}"), Fine),
        case(&udp("endpoint=127.0.0.1:0"), key("endpoint"), Fine),
        case(&udp("endpoint=[::1]:0"), key("endpoint"), Fine),
        case(&udp("endpoint=127.0.0.1:-0"), key("endpoint"), Fine),
        both(&udp("endpoint=127.0.0.1:0xf000"), Fine),
        both(&udp("endpoint=127.0.0.1: {port}"), Fine),
        both(&udp("endpoint=127.0.0.1:{port}x"), Fine),
        // Addresses of 127.0.0.0/8, which the operating system knows without a name server.
        both(&udp("endpoint=127.1:{port}"), Fine),
        // Control addresses, and how they go with endpoints.
        case(&udp("control=127.0.0.1:{port}"), key("control-mode"), Fine),
        both(&udp("control=127.0.0.1:{port}|control-mode=dynamic"), Fine),
        both(&udp("control=[::1]:{port}|control-mode=dynamic"), Fine),
        both(&udp("control=127.0.0.1:{port}|control-mode=manual"), Fine),
        both(&udp("control=127.0.0.1:{port}|control-mode=nonsense"), Fine),
        both(&udp("control=127.0.0.1:{port}|control-mode=Dynamic"), Fine),
        both(&udp("control=127.0.0.1:{port}|endpoint=127.0.0.1:{port}"), Fine),
        case(&udp("control=127.0.0.1:0|control-mode=dynamic"), Fine, key("control")),
        case(&with_endpoint("control=127.0.0.1:0"), Fine, key("control")),
        case(
            &udp("control=127.0.0.1:{port}|control-mode=dynamic|endpoint=127.0.0.1:0"),
            Fine,
            Fine,
        ),
        case(&udp("control=127.0.0.1:{port}|endpoint=127.0.0.1:0"), key("endpoint"), Fine),
        both(&udp("control-mode=manual"), Fine),
        both(&udp("control-mode=dynamic"), key("control")),
        both(&with_endpoint("control-mode=dynamic"), key("control")),
        both(&with_endpoint("control-mode=manual"), Fine),
        both(&with_endpoint("control-mode=nonsense"), Fine),
        case(&udp("control-mode=manual|endpoint=127.0.0.1:0"), Fine, Fine),
        both(&udp("control-mode=nonsense"), key("endpoint")),
        both(&udp("alias=x"), key("endpoint")),
        both(&udp("interface=127.0.0.1"), key("endpoint")),
        both("aeron:ipc?control-mode=dynamic", Fine),
        both("aeron:ipc?control-mode=nonsense", Fine),
        both("aeron:ipc?endpoint=nonsense|control=nonsense|interface=nonsense", Fine),
        both("aeron:ipc?so-sndbuf=1|mtu=8k", Fine),
        // Multicast.
        both(&udp("endpoint=224.20.30.39:{port}|interface=localhost"), Fine),
        both(&udp("endpoint=224.20.30.39:{port}|interface=127.0.0.1/8"), Fine),
        both(&udp("endpoint=224.20.30.39:{port}|interface=localhost|ttl=word"), Fine),
        both(&udp("endpoint=224.20.30.40:{port}|interface=localhost"), key("endpoint")),
        both(&udp("endpoint=[ff02::2]:{port}|interface=[::1]"), key("endpoint")),
        both(&udp("endpoint=224.20.30.41:{port}|interface=localhost|control=127.0.0.1:0"), Fine),
        // Response channels.
        case(&udp("control-mode=response"), key("response-correlation-id"), Fine),
        case(
            &udp("control=127.0.0.1:{port}|control-mode=response"),
            key("response-correlation-id"),
            Fine,
        ),
        case(
            &udp("control=127.0.0.1:{port}|control-mode=response|response-correlation-id=-1"),
            key("response-correlation-id"),
            Fine,
        ),
        both(
            &udp(
                "control=127.0.0.1:{port}|control-mode=response|response-correlation-id=prototype",
            ),
            Fine,
        ),
        case(
            &with_endpoint("response-correlation-id=prototype"),
            key("response-correlation-id"),
            Fine,
        ),
        both("aeron:ipc?response-correlation-id=prototype", Fine),
        both("aeron:ipc?control-mode=response", Fine),
    ];
    #[rustfmt::skip]
    let endpoints = [
        "localhost", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
        "127.0.0.1:00040123", ":40123", "[::1]", "[::1]:", "[::1:40123", "::1]:40123", "[]:40123",
        "x[::1]:40123", "[::1]x:40123", "[zz::1]:40123", "127.0.0.1:40123:", "40123",
    ];
    for endpoint in endpoints {
        cases.push(both(&udp(&format!("endpoint={endpoint}")), key("endpoint")));
        let control = format!("control={endpoint}|control-mode=dynamic");
        cases.push(both(&udp(&control), key("control")));
    }
    #[rustfmt::skip]
    let interfaces = [
        "127.0.0.1", "127.0.0.1/32", "127.0.0.1/8", "127.0.0.0/8", "127.0.0.1/0x8", "0.0.0.0",
        "localhost", "localhost/8", "127.0.0.1:0", "127.0.0.1:0/24", "127.0.0.1:/24", "127.0.0.1/",
        "127.0.0.1/0",
    ];
    for interface in interfaces {
        cases.push(both(&with_endpoint(&format!("interface={interface}")), Fine));
    }
    if cfg!(target_os = "linux") {
        cases.push(both(&with_endpoint("interface={lo}"), Fine));
        cases.push(both(&with_endpoint("interface={lo}:0"), Fine));
        cases.push(both(&udp("endpoint=[::1]:{port}|interface={lo}"), Fine));
    }
    cases.push(both(&udp("endpoint=[::1]:{port}|interface=[::1]"), Fine));
    cases.push(both(&udp("endpoint=[::1]:{port}|interface=[::1]/128"), Fine));
    cases.push(both(&udp("endpoint=[::1]:{port}|interface=[::1%lo]/64"), Fine));
    #[rustfmt::skip]
    let interfaces = [
        "127.0.0.1/33", "127.0.0.1/x", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:x/24", "[::1]/129",
        "[::1", "::1", "::1/128", "[127.0.0.1]", "{}", "{lo", "{lo}x", "{lo}:", "{lo}:x",
        "{lo}:65536", "{lo}:000000", "{a-longer-name-than-interfaces-have}", "/24",
        "127.0.0.1/00000008",
    ];
    for interface in interfaces {
        cases.push(both(&with_endpoint(&format!("interface={interface}")), key("interface")));
    }
    judge(&cases);
}

#[test]
fn parameters_that_go_together() {
    let udp = |rest: &str| format!("aeron:udp?endpoint=127.0.0.1:{{port}}|{rest}");
    let ipc = |rest: &str| format!("aeron:ipc?{rest}");
    let mdc =
        |rest: &str| format!("aeron:udp?control=127.0.0.1:{{port}}|control-mode=dynamic|{rest}");
    let position = "init-term-id=7|term-id=9|term-offset=64|term-length=64k";
    let mut cases = Vec::new();
    for channel in [&udp as &dyn Fn(&str) -> String, &ipc] {
        let publication_only =
            |rest: &str, name: &'static str| case(&channel(rest), key(name), Fine);
        cases.extend([
            both(&channel(position), Fine),
            both(&channel("init-term-id=7|term-id=7|term-offset=0"), Fine),
            both(&channel("init-term-id=7|term-id=7|term-offset=65536|term-length=64k"), Fine),
            both(&channel("init-term-id=2147483647|term-id=-2147483648|term-offset=0"), Fine),
            both(&channel("init-term-id=0|term-id=2147483647|term-offset=0"), Fine),
            both(&channel("init-term-id=0x7|term-id=010|term-offset=0x40"), Fine),
            both(&channel("init-term-id=7|term-id=7|term-offset=64k"), Fine),
            publication_only("init-term-id=7", "term-id"),
            publication_only("term-id=7", "init-term-id"),
            publication_only("term-offset=0", "init-term-id"),
            publication_only("init-term-id=7|term-id=7", "term-offset"),
            publication_only("init-term-id=7|term-offset=0", "term-id"),
            publication_only("term-id=7|term-offset=0", "init-term-id"),
            publication_only("init-term-id=7|term-id=6|term-offset=0", "term-id"),
            publication_only("init-term-id=-1|term-id=2147483647|term-offset=0", "term-id"),
            publication_only("init-term-id=x|term-id=7|term-offset=0", "init-term-id"),
            publication_only("init-term-id=7|term-id=x|term-offset=0", "term-id"),
            publication_only("init-term-id=7|term-id=7|term-offset=x", "term-offset"),
            publication_only("init-term-id=7|term-id=7|term-offset=33", "term-offset"),
            publication_only("init-term-id=7|term-id=7|term-offset=-64", "term-offset"),
            publication_only("init-term-id=7|term-id=7|term-offset=1073741856", "term-offset"),
            publication_only(
                "init-term-id=7|term-id=7|term-offset=65568|term-length=64k",
                "term-offset",
            ),
            publication_only("init-term-id=2147483648|term-id=7|term-offset=0", "init-term-id"),
            both(&channel("pub-wnd=32k|term-length=64k"), Fine),
            both(&channel("pub-wnd=8k|term-length=64k|mtu=8k"), Fine),
            both(&channel("pub-wnd=64|term-length=64k|mtu=64"), Fine),
            publication_only("pub-wnd=32769|term-length=64k", "pub-wnd"),
            publication_only("pub-wnd=8191|term-length=64k|mtu=8k", "pub-wnd"),
            publication_only("pub-wnd=63", "pub-wnd"),
            publication_only("pub-wnd=0", "pub-wnd"),
            publication_only("pub-wnd=513m", "pub-wnd"),
            publication_only("pub-wnd=word", "pub-wnd"),
            publication_only("tags={tag},x", "tags"),
            publication_only("tags={tag},2x", "tags"),
            publication_only("tags={tag},2,3", "tags"),
            publication_only("tags={tag},99999999999999999999", "tags"),
            both(&channel("tags={tag},-2"), Fine),
            both(&channel("tags=,1002"), Fine),
            both(&channel("tags=,"), Fine),
        ]);
    }
    for (text, verdict) in [
        ("tags={tag}", Fine),
        ("tags={tag},", Fine),
        ("tags={tag}x", Fine),
        ("tags=-{tag}", Fine),
        ("tags= {tag}", Fine),
        ("tags=x", key("tags")),
        ("tags=-1", key("tags")),
        ("tags=18446744073709551615", key("tags")),
        ("tags=99999999999999999999", key("tags")),
    ] {
        let [publication_and_subscription, of_ipc] = [udp(text), ipc(text)];
        cases.push(both(&publication_and_subscription, verdict));
        cases.push(both(&of_ipc, Fine));
    }
    cases.extend([
        both("aeron:udp?tags=,7", key("endpoint")),
        both("aeron:udp?tags=,", key("endpoint")),
        // The session of another publication: only publications ask, and there is none.
        case(&udp("session-id=tag:x"), key("session-id"), key("session-id")),
        // Socket buffers.
        both(&udp("so-sndbuf=8k|mtu=8k"), Fine),
        case(&udp("so-sndbuf=8191|mtu=8k"), key("so-sndbuf"), Fine),
        case(&udp("so-sndbuf=63"), key("so-sndbuf"), Fine),
        both(&udp("so-rcvbuf=128k|rcv-wnd=128k"), Fine),
        case(&udp("so-rcvbuf=128k|rcv-wnd=131073"), Fine, key("rcv-wnd")),
        both(&udp("so-rcvbuf=256k|rcv-wnd=200k"), Fine),
        // Timestamps take eight bytes each.
        both(&udp("media-rcv-ts-offset=0|channel-rcv-ts-offset=8|channel-snd-ts-offset=16"), Fine),
        both(&udp("media-rcv-ts-offset=reserved|channel-rcv-ts-offset=0"), Fine),
        both(&udp("media-rcv-ts-offset=0|channel-rcv-ts-offset=7"), key("channel-rcv-ts-offset")),
        both(&udp("media-rcv-ts-offset=8|channel-snd-ts-offset=1"), key("channel-snd-ts-offset")),
        both(&udp("channel-rcv-ts-offset=8|channel-snd-ts-offset=8"), key("channel-snd-ts-offset")),
        both(
            &udp("media-rcv-ts-offset=reserved|channel-rcv-ts-offset=reserved"),
            key("channel-rcv-ts-offset"),
        ),
        both(&udp("media-rcv-ts-offset=-1|channel-rcv-ts-offset=0"), Fine),
        both(&ipc("media-rcv-ts-offset=0|channel-rcv-ts-offset=0"), Fine),
        // Spies.
        case("aeron-spy:aeron:udp?endpoint=127.0.0.1:{port}", SPY, Fine),
        case("aeron-spy:aeron:udp?endpoint=127.0.0.1:0", SPY, Fine),
        case("aeron-spy:aeron:udp?control=127.0.0.1:0|control-mode=dynamic", SPY, Fine),
        case("aeron-spy:aeron:udp?control=127.0.0.1:{port}", SPY, Fine),
        case("aeron-spy:aeron:udp?endpoint=127.0.0.1:{port}|gtag=x", SPY, Fine),
        case("aeron-spy:aeron:udp?endpoint=127.0.0.1:{port}|ats=true", SPY, Fine),
        case("aeron-spy:aeron:udp?endpoint=127.0.0.1:{port}|rcv-wnd=1m|so-rcvbuf=64k", SPY, Fine),
        case("aeron-spy:aeron:udp?endpoint=127.0.0.1:{port}|tether=x", SPY, key("tether")),
        case("aeron-spy:aeron:udp?endpoint=127.0.0.1:{port}|so-tos=x", SPY, key("so-tos")),
        case("aeron-spy:aeron:udp?endpoint=127.0.0.1", SPY, key("endpoint")),
        both("aeron-spy:aeron:udp?endpoint=", SYNTAX),
        both("aeron-spy:aeron:ipc", SPY),
        both("aeron-spy:", SCHEME),
        both("aeron-spy:aeron:udp", SCHEME),
        both("aeron-spy:aeron-spy:aeron:udp?endpoint=127.0.0.1:40123", SCHEME),
        both("aeron-spy:udp?endpoint=127.0.0.1:40123", SCHEME),
        both("other:aeron:udp?endpoint=127.0.0.1:40123", SCHEME),
    ]);
    for (text, is_valid) in [
        ("max", true),
        ("max,rrwm:4", true),
        ("max,rrwm:4x", true),
        ("max,", true),
        ("max,rrwm:0", false),
        ("max,g:7", false),
        ("min", true),
        ("min,g:/3", true),
        ("min,g:/3,t:5s", true),
        ("min,t:5s,", true),
        ("min,rrwm:4", true),
        ("min,,t:5s", false),
        ("min,t:", false),
        ("min,t:5h", false),
        ("min,g:", false),
        ("min,g:/-1", false),
        ("min,g:/2147483648", false),
        ("min,g:3x", false),
        ("min,g:3/", false),
        ("min,unknown", false),
        ("tagged", true),
        ("tagged,g:7", true),
        ("tagged,g:-7/3,t:10ms", true),
        ("tagged,g:word", true),
        ("tagged,g:99999999999999999999", false),
        ("tagged,g:99999999999999999999/3", true),
        ("pref", false),
        ("MAX", false),
        ("maximum", false),
        (",", false),
        (",g:7", false),
    ] {
        let verdict = if is_valid { Fine } else { key("fc") };
        let text = format!("fc={text}");
        cases.push(case(&mdc(&text), verdict, Fine));
        cases.push(both(&udp(&text), Fine));
        cases.push(case(&udp(&format!("{text}|control-mode=manual")), verdict, Fine));
        let multicast =
            format!("aeron:udp?endpoint=224.20.30.43:{{port}}|interface=localhost|{text}");
        cases.push(case(&multicast, verdict, Fine));
    }
    judge(&cases);
}

/// Values that nobody thought of: short texts of what numbers, units and options are made of.
#[test]
fn random_values() {
    const ALPHABET: &[u8] = b"00112345678899kKmMgGsSuUnN-+ xX,:/tgreworvdtrue";
    const PIECES: &[&str] = &[
        "max",
        "min",
        "tagged",
        ",g:",
        ",t:",
        ",rrwm:",
        "true",
        "false",
        "reserved",
        "prototype",
        "0x",
        "64k",
        "2147483647",
        "9223372036854775807",
        "18446744073709551615",
        "ms",
        "us",
        "ns",
    ];
    const PARAMETERS: &[Parameter] = &[
        Parameter::Mtu,
        Parameter::TermLength,
        Parameter::MaxResend,
        Parameter::Linger,
        Parameter::UntetheredRestingTimeout,
        Parameter::Sparse,
        Parameter::SessionId,
        Parameter::SocketTos,
        Parameter::GroupTag,
        Parameter::FlowControl,
        Parameter::MediaReceiveTimestampOffset,
    ];
    let driver = launch();
    let mut judge = Judge::new(connect(&driver));
    let mut random = Random::new(20_251_121);
    for round in 0..PARAMETERS.len() * 60 {
        let parameter = PARAMETERS[round % PARAMETERS.len()];
        let mut value = String::new();
        if parameter == Parameter::FlowControl {
            value += PIECES[random.below(3)];
        }
        for _ in 0..=random.below(4) {
            match random.below(3) {
                0 => value += PIECES[random.below(PIECES.len())],
                _ => value.push(char::from(ALPHABET[random.below(ALPHABET.len())])),
            }
        }
        let mdc = format!(
            "aeron:udp?control=127.0.0.1:{{port}}|control-mode=dynamic|{parameter}={value}"
        );
        for channel in [mdc, format!("aeron:ipc?{parameter}={value}")] {
            let verdict = |check: fn(&ChannelUri) -> Result<(), ChannelUriError>| {
                let uri: ChannelUri = with_ports(&channel).parse().expect("the form is fine");
                check(&uri).map_or_else(|_| key(parameter.key()), |()| Fine)
            };
            let publication = verdict(ChannelUri::check_publication);
            judge.judge(&(channel.clone(), publication, verdict(ChannelUri::check_subscription)));
        }
    }
    judge.conclude();
}

#[test]
fn what_refers_to_something_that_exists() {
    let driver = launch();
    let aeron = connect(&driver);

    let first = with_ports("aeron:udp?endpoint=127.0.0.1:{port}|tags=1,7");
    let first = aeron.add_publication(first, 1001).expect("a publication with tags");
    let second = aeron
        .add_publication(with_ports("aeron:udp?endpoint=127.0.0.1:{port}|session-id=tag:7"), 1002)
        .expect("a publication with the session of the first");
    assert_eq!(second.session_id(), first.session_id());

    let channel = with_ports("aeron:udp?control=127.0.0.1:{port}|control-mode=response");
    let mut answers = aeron.async_add_subscription(channel, 1003).expect("a registration");
    let id = answers.registration_id();
    let answers = await_some("the answers", || answers.poll().expect("an answer"));
    let requests = ChannelUri::udp()
        .endpoint(with_ports("127.0.0.1:{port}"))
        .response_correlation_id(id)
        .build()
        .expect("a channel");
    aeron.add_publication(&requests, 1004).expect("a publication of requests");
    drop(answers);
}

/// What only the driver can know is left to it, and comes back in its words.
#[test]
fn what_only_the_driver_knows_it_says() {
    let driver = launch();
    let aeron = connect(&driver);
    for (channel, words) in [
        ("aeron:udp?endpoint=127.0.0.1:{port}|ats=true", "ATS is not enabled"),
        ("aeron:udp?endpoint=127.0.0.1:{port}|session-id=tag:7", "must reference"),
        (
            "aeron:udp?endpoint=127.0.0.1:{port}|response-correlation-id=7",
            "unable to find response",
        ),
        ("aeron:udp?endpoint=127.0.0.1:{port}|interface={nowhere}", "unknown interface"),
        ("aeron:udp?endpoint=127.0.0.1:{port}|pub-wnd=1407", "mtu=1408"),
        ("aeron:udp?endpoint=127.0.0.1:{port}|pub-wnd=9m", "term-length=16777216"),
        ("aeron:udp?endpoint=127.0.0.1:{port}|so-sndbuf=1407", "mtu=1408"),
        (
            "aeron:udp?endpoint=127.0.0.1:{port}|init-term-id=0|term-id=0|term-offset=16777248",
            "term-length=16777216",
        ),
    ] {
        let channel = &with_ports(channel);
        channel.parse::<ChannelUri>().expect("a channel").check_publication().expect("it is fine");
        let error = aeron.add_publication(channel, 1001).expect_err(channel);
        assert!(error.code() != 0, "{error:?}");
        assert!(error.message().contains(words), "{error:?}");
    }
    for (channel, words) in [
        ("aeron:udp?endpoint=127.0.0.1:{port}|ats=true", "ATS is not enabled"),
        ("aeron:udp?endpoint=127.0.0.1:{port}|so-rcvbuf=64k", "rcv-wnd=131072"),
        ("aeron:udp?endpoint=127.0.0.1:{port}|rcv-wnd=256k", "so-rcvbuf=131072"),
    ] {
        let channel = with_ports(channel);
        let error = aeron.add_subscription(&channel, 1001).expect_err(&channel);
        assert!(error.code() != 0, "{error:?}");
        assert!(error.message().contains(words), "{error:?}");
    }
}

/// These crash the C driver, which copies a text of negative length, or make it read beyond their
/// end: it must not see them, not even unchecked.
#[test]
fn what_crashes_the_driver_is_refused() {
    let driver = launch();
    let aeron = connect(&driver);
    for (channel, name) in [
        ("aeron:udp?endpoint=127.0.0.1:40123|interface=127.0.0.1/24:80", "interface"),
        ("aeron:udp?endpoint=127.0.0.1:40123|interface=[::1]/64:80", "interface"),
        ("aeron:udp?endpoint=127.0.0.1:40123|interface=%[::1]", "interface"),
        ("aeron:udp?endpoint=127.0.0.1:40123|interface=/[::1]", "interface"),
        ("aeron:udp?endpoint=127.0.0.1:40123|control=%[::1]:40123", "control"),
        ("aeron:udp?endpoint=%[::1]:40123", "endpoint"),
        ("aeron-spy:aeron:udp?endpoint=%x[::1]:40123", "endpoint"),
        ("aeron:ipc?untethered-linger-timeout=5m", "untethered-linger-timeout"),
        ("aeron:ipc?untethered-linger-timeout=5m|alias=x", "untethered-linger-timeout"),
    ] {
        let uri: ChannelUri = channel.parse().expect("the form is fine");
        let error = uri.check_subscription().expect_err(channel);
        assert_eq!(error.key(), Some(name), "{channel}");
        let error = aeron.add_subscription(UncheckedChannel(channel), 1001).expect_err(channel);
        assert!(error.message().starts_with(name), "{error:?}");
        assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidChannel, 0), "{error:?}");
    }
    assert!(!aeron.is_closed());
}
