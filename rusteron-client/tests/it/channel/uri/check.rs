//! Channel URIs: the client accepts the channels that the media driver accepts, but for misspelt values.

use super::oracle::{
    Fine, LENGTH, SCHEME, SPY, SYNTAX, both, case, consult, key, misspelt, with_ports,
};
use rusteron_client::{ChannelUri, ErrorKind, UncheckedChannel};
use rusteron_test_support::{await_some, connect, launch};

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

#[test]
fn references_to_resources() {
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
    drop(aeron.add_publication(&requests, 1004).expect("a publication of requests"));
    drop(answers);
}

/// The driver checks the parameters that only it knows. Its words are in the error.
#[test]
fn driver_only_faults_come_from_it() {
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
fn channels_that_crash_it_are_refused() {
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
        ("aeron:udp?endpoint=127.0.0.1:40123|nak-delay=5m", "nak-delay"),
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

/// The driver reads a duration only for the use that needs it. A publication and a subscription often have
/// the same channel.
#[test]
fn cut_durations_are_refused_where_read() {
    let driver = launch();
    let aeron = connect(&driver);
    for (parameter, is_for_publications) in [
        ("linger=5m", true),
        ("fc=min,t:5m", true),
        ("nak-delay=5m", false),
        ("control-mode=manual|fc=tagged,g:1,t:5m", true),
    ] {
        let channel = &with_ports(&format!("aeron:udp?endpoint=127.0.0.1:{{port}}|{parameter}"));
        let channel = UncheckedChannel(channel);
        let publication = aeron.add_publication(channel, 1001);
        assert_eq!(publication.is_err(), is_for_publications, "{parameter}: {publication:?}");
        let subscription = aeron.add_subscription(channel, 1001);
        assert_eq!(subscription.is_ok(), is_for_publications, "{parameter}: {subscription:?}");
    }
}

/// The driver refuses these as well, and does not free the socket or the channel that it has made by then.
#[test]
fn channels_that_leak_are_refused() {
    let udp = |rest: &str| format!("aeron:udp?endpoint=127.0.0.1:40123|{rest}");
    let parse = |text: &str| text.parse::<ChannelUri>().expect("the form is fine");
    for (channel, name) in [
        (udp("so-rcvbuf=128k|rcv-wnd=131104"), "rcv-wnd"),
        (udp("session-id=tag:7"), "session-id"),
        ("aeron:ipc?session-id=tag:7".into(), "session-id"),
        (format!("aeron-spy:{}", udp("session-id=tag:7")), "session-id"),
    ] {
        let error = parse(&channel).check_subscription().expect_err(&channel);
        assert_eq!(error.key(), Some(name), "{error}");
    }
    for channel in [udp("so-rcvbuf=0|rcv-wnd=256k"), udp("so-rcvbuf=128k|rcv-wnd=128k")] {
        parse(&channel).check_subscription().expect(&channel);
    }
    for channel in [
        "aeron:udp?control-mode=manual|fc=min,bogus",
        "aeron:udp?control=127.0.0.1:40123|control-mode=dynamic|fc=max,g:7",
        "aeron:udp?endpoint=224.20.30.39:40123|fc=tagged,g:7x",
    ] {
        let error = parse(channel).check_publication().expect_err(channel);
        assert_eq!(error.key(), Some("fc"), "{error}");
    }
}

/// The driver quotes a text without a scheme in its error, and reads beyond the end of it.
#[test]
fn wrong_prefix_is_refused_everywhere() {
    const SPY: &str = "aeron-spy:aeron:udp?endpoint=127.0.0.1:40123";
    let driver = launch();
    let aeron = connect(&driver);
    let publication =
        aeron.add_publication("aeron:udp?control-mode=manual", 1001).expect("a publication");
    let mut subscription =
        aeron.add_subscription("aeron:udp?control-mode=manual", 1001).expect("a subscription");
    for text in ["", "aeron:", "aeron:ipcx", "aeron:udp", "ipc", "aeron-spy:ipc", SPY] {
        let channel = UncheckedChannel(text);
        let mut outcomes = vec![
            aeron.add_publication(channel, 1).map(drop),
            aeron.add_exclusive_publication(channel, 1).map(drop),
            aeron.async_add_publication(channel, 1).map(drop),
            publication.add_destination(channel).map(drop),
            publication.remove_destination(channel),
        ];
        if text != SPY {
            outcomes.extend([
                aeron.add_subscription(channel, 1).map(drop),
                aeron.subscription_builder(channel, 1).add().map(drop),
                subscription.add_destination(channel),
                subscription.remove_destination(channel),
            ]);
        }
        for outcome in outcomes {
            let error = outcome.expect_err(text);
            assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidChannel, 0), "{error:?}");
        }
    }
    assert!(!aeron.is_closed());
}
