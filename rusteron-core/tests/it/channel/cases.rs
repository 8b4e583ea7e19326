//! Channels and their parameters, one at a time and together: the client accepts what the media
//! driver accepts, but for misspelt values.

use rusteron_core::channel::ChannelUri;

use super::oracle::{
    Case, Fine, LENGTH, SCHEME, SPY, SYNTAX, Verdict, both, case, consult, key, misspelt,
    with_ports,
};

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

type Values = &'static [&'static str];

/// Parameters one at a time: the parts that read them, valid values, values that only the client
/// refuses, invalid values.
const SINGLE: &[(&str, Readers, Values, Values, Values)] = &[
    (
        "mtu",
        PUBLICATIONS,
        &["64", "1408", "8k", "8K", "65504"],
        &[" 1408", "+1408", "2kB"],
        &["33", "32", "0", "65505", "65536", "1409", "64m", "abc", "-64", "1.5k", "0x800", "4 k"],
    ),
    (
        "term-length",
        PUBLICATIONS,
        &["64k", "65536", "1m", "1M", "16777216", "1g"],
        &["64kk", "64kb"],
        &["63k", "65537", "32k", "2g", "96k", "0", "-64k", "k", "word", "64 k"],
    ),
    ("init-term-id", PUBLICATIONS, &[], &[], &["x", "2147483648"]),
    ("term-id", PUBLICATIONS, &[], &[], &["x"]),
    ("pub-wnd", PUBLICATIONS, &["64k"], &["64k "], &["63", "0", "513m", "word"]),
    (
        "max-resend",
        PUBLICATIONS,
        &["1", "16", "256"],
        &["+7"],
        &["0", "257", "-1", "many", "1k", "99999999999999999999"],
    ),
    (
        "linger",
        PUBLICATIONS,
        &["0", "5s", "10ms", "3us", "7ns", "7", "5S", "10Ms"],
        &["5mx", "10msec", "9223372037s"],
        &["-1", "5x", "s", "5sec", "5mxy", "1h", "five", "1.5s", "5 s"],
    ),
    ("untethered-window-limit-timeout", ALL, &["5s", "1", "0"], &["5msx"], &["5h", "-5s", "x"]),
    ("untethered-linger-timeout", ALL, &["5s", "1", "0"], &["5msx"], &["5h", "-5s", "x"]),
    ("untethered-resting-timeout", ALL, &["5s", "1", "0"], &["5msx"], &["5h", "-5s", "x"]),
    (
        "sparse",
        ALL,
        &["true", "false"],
        &["trueish", "falsey"],
        &["TRUE", "yes", "1", "tru", " true"],
    ),
    ("eos", PUBLICATIONS, &["true", "false"], &["true "], &["True", "no", "0"]),
    ("ssc", PUBLICATIONS, &["true", "false"], &["true "], &["on", "1"]),
    ("reliable", SUBSCRIPTIONS, &["true", "false"], &["true "], &["on", "1"]),
    ("tether", SUBSCRIPTIONS, &["true", "false"], &["true "], &["on", "1"]),
    ("rejoin", SUBSCRIPTIONS, &["true", "false"], &["true "], &["on", "1"]),
    (
        "rcv-wnd",
        Readers { ipc_publication: false, ..ALL },
        &["0", "64k", "128k", "1"],
        &["64kb"],
        &["x", "-1", "64q"],
    ),
    (
        "gtag",
        Readers { udp_publication: false, ..UDP },
        &["0", "-7", "0x10", "9223372036854775807"],
        &[],
        &["x", "9223372036854775808", "7x"],
    ),
    ("group", NOBODY, &["true", "false", "infer"], &["nonsense"], &[]),
    ("ats", UDP, &["false"], &["falsehood"], &["no", "FALSE"]),
    (
        "session-id",
        ALL,
        &["0", "7", "-7", "2147483647", "-2147483648", "0x7f", "017", " 7"],
        &[],
        &["2147483648", "-2147483649", "x", "7x", "08", "7 ", "0x", "tag:x", "tag"],
    ),
    ("response-correlation-id", PUBLICATIONS, &["-1", "-01"], &[], &["-2", "x", "Prototype", "1x"]),
    ("so-sndbuf", UDP, &["0", "64k", "128k", "2m"], &["99999999999999999999"], &["x", "-1", "64q"]),
    ("so-rcvbuf", UDP, &["0", "128k", "256K", "1m"], &["128kb"], &["x", "-1", "64q"]),
    ("so-tos", UDP, &["0", "8", "255", "0xff", "010"], &[], &["256", "-1", "x", "1k", "8 "]),
    ("ttl", NOBODY, &["0", "4", "255"], &["256", "-1", "word"], &[]),
    (
        "media-rcv-ts-offset",
        UDP,
        &["0", "8", "reserved", "-1", "-8", "0x10"],
        &["4294967296", "99999999999999999999"],
        &["x", "8x", "Reserved", "8k"],
    ),
    ("channel-rcv-ts-offset", UDP, &["0", "8", "reserved"], &[], &["x", "8x"]),
    ("channel-snd-ts-offset", UDP, &["0", "8", "reserved"], &[], &["x", "8x"]),
    ("alias", NOBODY, &["any text: at all?", "a=b", "\u{e9}"], &[], &[]),
    ("cc", NOBODY, &["static", "cubic"], &["cubicc"], &[]),
    ("fc", NOBODY, &["max", "min,g:/2,t:5s"], &["maxx", "min,g:x"], &[]),
    ("nak-delay", NOBODY, &["100us"], &["1sec"], &[]),
    ("stream-id", NOBODY, &["7", "-7"], &["nonsense"], &[]),
    ("response-endpoint", NOBODY, &["localhost:7", "nonsense"], &[], &[]),
    ("colour", NOBODY, &["green"], &[], &[]),
    ("MTU", NOBODY, &["33"], &[], &[]),
    (" mtu", NOBODY, &["33"], &[], &[]),
];

#[test]
fn single_parameters() {
    let mut cases = Vec::new();
    for &(name, readers, valid, lenient, invalid) in SINGLE {
        let texts = |values: &'static [&'static str], verdict: Verdict, cases: &mut Vec<Case>| {
            for value in values {
                let [udp, ipc] = with(name, value);
                let if_read = |is_read: bool| match verdict {
                    Verdict::Key(name) if !is_read => misspelt(name),
                    verdict => verdict,
                };
                for channel in [&udp, &ipc].into_iter().filter(|_| verdict != Fine) {
                    let uri: ChannelUri = with_ports(channel).parse().expect("the form is fine");
                    let checked = [uri.check_publication(), uri.check_subscription()];
                    assert!(checked.iter().all(Result::is_err), "{channel}");
                }
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
        texts(lenient, misspelt(name), &mut cases);
        texts(invalid, key(name), &mut cases);
    }
    consult(&cases);
}

/// The driver alone knows which values fit together.
#[test]
fn combined_parameters() {
    let udp = |rest: &str| format!("aeron:udp?endpoint=127.0.0.1:{{port}}|{rest}");
    let ipc = |rest: &str| format!("aeron:ipc?{rest}");
    let mut cases = Vec::new();
    for rest in [
        "init-term-id=7|term-id=9|term-offset=64|term-length=64k",
        "init-term-id=7|term-id=7|term-offset=0",
        "init-term-id=7|term-id=7|term-offset=65536|term-length=64k",
        "init-term-id=2147483647|term-id=-2147483648|term-offset=0",
        "init-term-id=0|term-id=2147483647|term-offset=0",
        "init-term-id=0x7|term-id=010|term-offset=0x40",
        "pub-wnd=32k|term-length=64k",
        "pub-wnd=8k|term-length=64k|mtu=8k",
        "pub-wnd=64|term-length=64k|mtu=64",
        "tags={tag},-2",
        "tags=,1002",
        "tags=,",
        "tags={tag}",
        "tags={tag},",
        "tags=-{tag}",
        "tags= {tag}",
    ] {
        cases.extend([both(&udp(rest), Fine), both(&ipc(rest), Fine)]);
    }
    for (rest, name) in
        [("init-term-id=7|term-id=7|term-offset=64k", "term-offset"), ("tags={tag}x", "tags")]
    {
        cases.extend([both(&udp(rest), misspelt(name)), both(&ipc(rest), misspelt(name))]);
    }
    for rest in [
        "so-sndbuf=8k|mtu=8k",
        "so-rcvbuf=128k|rcv-wnd=128k",
        "so-rcvbuf=256k|rcv-wnd=200k",
        "media-rcv-ts-offset=0|channel-rcv-ts-offset=8|channel-snd-ts-offset=16",
        "media-rcv-ts-offset=reserved|channel-rcv-ts-offset=0",
        "media-rcv-ts-offset=-1|channel-rcv-ts-offset=0",
    ] {
        cases.push(both(&udp(rest), Fine));
    }
    cases.push(both(&ipc("media-rcv-ts-offset=0|channel-rcv-ts-offset=0"), Fine));
    cases.extend([
        // Spies.
        case("aeron-spy:aeron:udp?endpoint=127.0.0.1:{port}", SPY, Fine),
        case("aeron-spy:aeron:udp?endpoint=127.0.0.1:0", SPY, Fine),
        case("aeron-spy:aeron:udp?control=127.0.0.1:0|control-mode=dynamic", SPY, Fine),
        case("aeron-spy:aeron:udp?control=127.0.0.1:{port}", SPY, Fine),
        case("aeron-spy:aeron:udp?endpoint=127.0.0.1:{port}|gtag=x", SPY, misspelt("gtag")),
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
    for flow_control in [
        "max",
        "max,rrwm:4",
        "max,",
        "min",
        "min,g:/3",
        "min,g:/3,t:5s",
        "min,t:5s,",
        "min,rrwm:4",
        "tagged",
        "tagged,g:7",
        "tagged,g:-7/3,t:10ms",
        "tagged,g:word",
    ] {
        let verdict = if flow_control.ends_with("word") { misspelt("fc") } else { Fine };
        let text = format!("fc={flow_control}");
        let dynamic = "aeron:udp?control=127.0.0.1:{port}|control-mode=dynamic";
        let multicast = "aeron:udp?endpoint=224.20.30.43:{port}|interface=localhost";
        for channel in [dynamic, multicast] {
            cases.push(both(&format!("{channel}|{text}"), verdict));
        }
        cases.push(both(&udp(&format!("{text}|control-mode=manual")), verdict));
    }
    consult(&cases);
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
    consult(&[
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
        case("aeron:ipc?mtu=33|mtu=8k", key("mtu"), misspelt("mtu")),
        both("aeron:ipc?mtu=8k|mtu=33", Fine),
        both(&format!("aeron:udp?endpoint=nonsense|{endpoint}"), Fine),
        both(&format!("aeron:udp?{endpoint}|endpoint=nonsense"), key("endpoint")),
        both(
            &format!("aeron:udp?{endpoint}|control-mode=dynamic|control-mode=x"),
            misspelt("control-mode"),
        ),
        both(&format!("aeron:udp?{endpoint}|control-mode=x|control-mode=dynamic"), key("control")),
        both(&format!("aeron:udp?{endpoint}|control=x|control=127.0.0.1:{{port}}"), Fine),
        both(&format!("aeron:udp?{endpoint}|interface=x:y|interface=127.0.0.1"), Fine),
        both(&format!("aeron:udp?{endpoint}|tags=x|tags={{tag}}"), Fine),
        case("aeron:ipc?tags=1,x|tags=2", key("tags"), misspelt("tags")),
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
        case(&udp("endpoint=127.0.0.1:-0"), key("endpoint"), Fine),
        both(&udp("endpoint=127.0.0.1:{hex-port}"), Fine),
        both(&udp("endpoint=127.0.0.1: {port}"), Fine),
        both(&udp("endpoint=127.0.0.1:{port}x"), misspelt("endpoint")),
        // Addresses of 127.0.0.0/8, which the operating system knows without a name server.
        both(&udp("endpoint=127.1:{port}"), Fine),
        // Control addresses, and how they go with endpoints.
        both(&udp("control=127.0.0.1:{port}|control-mode=dynamic"), Fine),
        both(&udp("control=[::1]:{port}|control-mode=dynamic"), Fine),
        both(&udp("control=127.0.0.1:{port}|control-mode=manual"), Fine),
        both(&udp("control=127.0.0.1:{port}|control-mode=nonsense"), misspelt("control-mode")),
        both(&udp("control=127.0.0.1:{port}|endpoint=127.0.0.1:{port}"), Fine),
        case(&udp("control=127.0.0.1:0|control-mode=dynamic"), Fine, key("control")),
        both(&udp("control-mode=manual"), Fine),
        both(&with_endpoint("control-mode=manual"), Fine),
        both(&with_endpoint("control-mode=dynamc"), misspelt("control-mode")),
        both(&udp("control-mode=manual|endpoint=127.0.0.1:0"), Fine),
        both("aeron:ipc?control-mode=dynamic", Fine),
        both("aeron:ipc?endpoint=localhost:1|interface=nonsense", Fine),
        both("aeron:ipc?endpoint=nonsense", misspelt("endpoint")),
        both("aeron:ipc?so-sndbuf=1|mtu=8k", Fine),
        // Multicast.
        both(&udp("endpoint=224.20.30.39:{port}|interface=localhost"), Fine),
        both(&udp("endpoint=224.20.30.39:{port}|interface=127.0.0.1/8"), Fine),
        both(&udp("endpoint=224.20.30.39:{port}|interface=localhost|ttl=word"), misspelt("ttl")),
        both(&udp("endpoint=224.20.30.41:{port}|interface=localhost|control=127.0.0.1:0"), Fine),
        // Response channels.
        both(
            &udp(
                "control=127.0.0.1:{port}|control-mode=response|response-correlation-id=prototype",
            ),
            Fine,
        ),
        both("aeron:ipc?response-correlation-id=prototype", Fine),
        both("aeron:ipc?control-mode=response", Fine),
    ];
    #[rustfmt::skip]
    let endpoints = [
        "localhost", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
        ":40123", "[::1]", "[::1:40123", "::1]:40123", "40123",
    ];
    for endpoint in endpoints {
        cases.push(both(&udp(&format!("endpoint={endpoint}")), key("endpoint")));
        let control = format!("control={endpoint}|control-mode=dynamic");
        cases.push(both(&udp(&control), key("control")));
    }
    #[rustfmt::skip]
    let interfaces = [
        "127.0.0.1", "127.0.0.1/8", "localhost", "localhost/8", "127.0.0.1:0", "127.0.0.1:0/24",
        "127.0.0.1:/24", "127.0.0.1/",
    ];
    for interface in interfaces {
        cases.push(both(&with_endpoint(&format!("interface={interface}")), Fine));
    }
    if cfg!(target_os = "linux") {
        cases.push(both(&with_endpoint("interface={lo}:0"), Fine));
    }
    cases.push(both(&udp("endpoint=[::1]:{port}|interface=[::1%lo]/64"), Fine));
    consult(&cases);
}
