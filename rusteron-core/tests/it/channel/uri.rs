//! Channel URIs as values: built, printed, parsed, given to a client, refused and warned about.

use std::borrow::Cow;
use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use rusteron_client::Aeron;
use rusteron_core::channel::{
    ChannelUri, ChannelUriErrorKind, CongestionControl, ControlMode, FlowControl, Group, Parameter,
    ResponseCorrelationId, SessionId, TimestampOffset, UncheckedChannel,
};
use rusteron_core::error::{Error, ErrorKind};
use rusteron_test_support::{connect, free_port, launch, logged_with};

use super::oracle::with_ports;

#[test]
fn accepts_every_kind_and_keeps_texts() {
    let driver = launch();
    let aeron = connect(&driver);
    let uri = ChannelUri::ipc().term_length(65536).alias("x").build().expect("a channel");
    assert_eq!(uri.to_string(), "aeron:ipc?term-length=64k|alias=x");
    drop(aeron.add_publication(&uri, 1001).expect("a reference"));
    drop(aeron.add_exclusive_publication(uri.clone(), 1001).expect("a value"));
    drop(aeron.add_subscription(uri, 1001).expect("a value"));
    let text = String::from("aeron:ipc");
    drop(aeron.add_publication(&text, 1002).expect("a reference to a string"));
    drop(aeron.add_publication(text, 1003).expect("a string"));
    let subscription = aeron.add_subscription(Cow::Borrowed("aeron:ipc"), 1004).expect("a text");
    drop(aeron.add_publication(subscription.channel(), 1004).expect("another one's channel"));
    drop(aeron.add_publication(Box::<str>::from("aeron:ipc"), 1004).expect("a text in a box"));
    drop(aeron.add_publication(Arc::<str>::from("aeron:ipc"), 1004).expect("a shared text"));
    drop(aeron.add_publication(c"aeron:ipc", 1004).expect("C's text"));
    drop(aeron.add_publication(CString::from(c"aeron:ipc"), 1004).expect("C's text, owned"));
    drop(aeron.add_publication(ChannelUri::ipc().mtu(8192), 1004).expect("a builder"));
    let error = aeron.add_publication(ChannelUri::ipc().mtu(33), 1004).expect_err("no multiple");
    assert!(error.message().starts_with("mtu=33: must be"), "{error}");
    let error = aeron.add_publication(c"aeron:ipc?alias=\xff", 1004).expect_err("no text");
    assert!(error.message().contains("must be UTF-8"), "{error}");

    // Not in canonical order, and with a parameter that no part of Aeron reads.
    let channel = "aeron:ipc?alias=x|term-length=65536|colour=green|";
    let publication = aeron.add_publication(channel, 1005).expect("a publication");
    assert_eq!(publication.channel(), channel);
}

#[test]
fn every_parameter_is_built_and_read() {
    let seconds = Duration::from_secs;
    let uri = ChannelUri::udp()
        .channel_tag(7)
        .entity_tag(-8)
        .endpoint("localhost:40123")
        .interface("127.0.0.1/8")
        .control("[::1]:40124")
        .control_mode(ControlMode::Manual)
        .mtu(8192)
        .initial_position(64 * 1024 * 5 + 96, i32::MAX, 64 * 1024)
        .session_id(-9)
        .ttl(4)
        .reliable(false)
        .linger(Duration::from_millis(1500))
        .alias("a name")
        .congestion_control(CongestionControl::Cubic)
        .flow_control(FlowControl::Tagged {
            group_tag: Some(3),
            group_size: Some(2),
            timeout: Some(seconds(2)),
        })
        .group_tag(3)
        .sparse(true)
        .eos(false)
        .tether(false)
        .group(Group::Infer)
        .rejoin(true)
        .spies_simulate_connection(true)
        .socket_sndbuf(2 << 20)
        .socket_rcvbuf(1 << 30)
        .socket_tos(255)
        .receiver_window(1 << 20)
        .media_receive_timestamp_offset(TimestampOffset::Reserved)
        .channel_receive_timestamp_offset(TimestampOffset::Bytes(0))
        .channel_send_timestamp_offset(TimestampOffset::Bytes(8))
        .response_endpoint("localhost:40125")
        .response_correlation_id(12)
        .nak_delay(Duration::from_micros(3))
        .untethered_window_limit_timeout(seconds(5))
        .untethered_linger_timeout(Duration::from_nanos(7))
        .untethered_resting_timeout(seconds(0))
        .max_resend(256)
        .stream_id(-1)
        .publication_window(32 * 1024)
        .ats(false)
        .build()
        .expect("a channel");
    assert_eq!(
        uri.to_string(),
        "aeron:udp?tags=7,-8|endpoint=localhost:40123|interface=127.0.0.1/8|control=[::1]:40124\
         |control-mode=manual|mtu=8k|term-length=64k|init-term-id=2147483647|term-id=-2147483644\
         |term-offset=96|session-id=-9|ttl=4|reliable=false|linger=1500ms|alias=a name|cc=cubic\
         |fc=tagged,g:3/2,t:2s|gtag=3|sparse=true|eos=false|tether=false|group=infer|rejoin=true\
         |ssc=true|so-sndbuf=2m|so-rcvbuf=1g|so-tos=255|rcv-wnd=1m|media-rcv-ts-offset=reserved\
         |channel-rcv-ts-offset=0|channel-snd-ts-offset=8|response-endpoint=localhost:40125\
         |response-correlation-id=12|nak-delay=3us|untethered-window-limit-timeout=5s\
         |untethered-linger-timeout=7ns|untethered-resting-timeout=0ns|max-resend=256|stream-id=-1\
         |pub-wnd=32k|ats=false"
    );
    assert_eq!(uri.parameters().count(), Parameter::ALL.len());
    for (key, _) in uri.parameters() {
        assert!(key.parse::<Parameter>().is_ok(), "{key}");
    }
    let parsed: ChannelUri = uri.to_string().parse().expect("what was printed");
    assert_eq!(parsed, uri);
    parsed.check_publication().expect("fine for a publication");
    parsed.check_subscription().expect("fine for a subscription");

    assert_eq!(uri.channel_tag(), Ok(Some(7)));
    assert_eq!(uri.entity_tag(), Ok(Some(-8)));
    assert_eq!(uri.control_mode(), Ok(Some(ControlMode::Manual)));
    assert_eq!(uri.term_offset(), Ok(Some(96)));
    assert_eq!(uri.session_id(), Ok(Some(SessionId::Id(-9))));
    assert_eq!(uri.linger(), Ok(Some(Duration::from_millis(1500))));
    assert_eq!(uri.flow_control(), Some("tagged,g:3/2,t:2s"));
    assert_eq!(uri.socket_rcvbuf(), Ok(Some(1 << 30)));
    assert_eq!(uri.media_receive_timestamp_offset(), Ok(Some(TimestampOffset::Reserved)));
    assert_eq!(uri.response_correlation_id(), Ok(Some(ResponseCorrelationId::Id(12))));
    assert_eq!(uri.max_resend(), Ok(Some(256)));
    assert_eq!(uri.group(), Ok(Some(Group::Infer)));

    let fewer = uri.to_builder().remove(Parameter::Mtu).build().expect("a channel");
    assert_eq!(fewer.mtu(), Ok(None));
    let udp = ChannelUri::udp().endpoint("localhost:40123");
    let longest = udp.linger(Duration::MAX).socket_sndbuf(usize::MAX).build().expect("clamped");
    assert_eq!(longest.linger(), Ok(Some(Duration::from_nanos(i64::MAX as u64))));
    assert_eq!(longest.socket_sndbuf(), Ok(Some(i64::MAX as usize)));
    let odd: ChannelUri = "aeron:udp?endpoint=localhost:7|ttl=x|cc=x|group=x".parse().expect("ok");
    assert!(odd.ttl().is_err() && odd.congestion_control().is_err() && odd.group().is_err());
}

#[test]
fn invalid_value_is_refused() {
    let udp = || ChannelUri::udp().endpoint("localhost:40123");
    for (builder, name) in [
        (ChannelUri::udp().endpoint("localhost"), "endpoint"),
        (udp().mtu(33), "mtu"),
        (udp().mtu(usize::MAX), "mtu"),
        (udp().term_length(65537), "term-length"),
        (udp().initial_position(-32, 0, 65536), "term-offset"),
        (udp().initial_position(33, 0, 65536), "term-offset"),
        (udp().initial_position(i64::MAX - 31, 0, 65536), "term-offset"),
        (udp().initial_position(32, 0, 65537), "term-length"),
        (udp().initial_position(32, 0, 0), "term-length"),
        (udp().max_resend(257), "max-resend"),
        (udp().publication_window(63), "pub-wnd"),
        (udp().channel_tag(-1), "tags"),
        (udp().set(Parameter::FlowControl, "fastest"), "fc"),
        (udp().flow_control(FlowControl::Min { group_size: Some(-1), timeout: None }), "fc"),
        (udp().alias(""), "alias"),
        (udp().alias("a|b"), "alias"),
        (udp().alias("a\0b"), "alias"),
        (udp().set_key("a=b", "c"), "a=b"),
        (udp().set_key("", "c"), ""),
        (udp().response_correlation_id(-2), "response-correlation-id"),
        (udp().set(Parameter::Reliable, "maybe"), "reliable"),
    ] {
        let error = builder.build().expect_err(name);
        assert_eq!(error.key(), Some(name), "{error}");
    }
    let error = ChannelUri::ipc().spy(true).build().expect_err("a spy on IPC");
    assert_eq!(error.kind(), ChannelUriErrorKind::Spy);
    let error = ChannelUri::ipc().alias("x".repeat(4096)).build().expect_err("too long");
    assert_eq!(error.kind(), ChannelUriErrorKind::Length);
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

/// The driver reads a duration only for the use that needs it. A publication and a subscription
/// often have the same channel.
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

/// The driver refuses these as well, and does not free the socket or the channel that it has made
/// by then.
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

/// A function that adds a resource with a channel, and drops it.
type Add = fn(&Aeron, &str) -> Result<(), Error>;

const PUBLICATION: Add = |aeron, channel| aeron.add_publication(channel, 1).map(drop);
const SUBSCRIPTION: Add = |aeron, channel| aeron.add_subscription(channel, 1).map(drop);

/// Returns the warnings of adding a channel, whose `alias` makes it unlike others.
fn warnings(aeron: &Aeron, add: Add, channel: &str) -> Vec<String> {
    let alias = format!("alias=warnings-{}", free_port());
    let separator = if channel.ends_with("aeron:ipc") { '?' } else { '|' };
    let channel = format!("{channel}{separator}{alias}");
    logged_with(&alias, || add(aeron, &channel).expect(&channel))
}

fn udp(parameters: &str) -> String {
    format!("aeron:udp?endpoint=localhost:{}|{parameters}", free_port())
}

#[test]
fn mistakes_give_one_warning() {
    let driver = launch();
    let aeron = connect(&driver);
    for (add, channel, reason) in [
        (PUBLICATION, "aeron:ipc?term-lenght=64k".into(), "term-lenght=64k: Aeron ignores it"),
        (SUBSCRIPTION, "aeron:ipc?term-lenght=64k".into(), "did you mean term-length?"),
        (SUBSCRIPTION, udp("Reliable=false"), "did you mean reliable?"),
        (SUBSCRIPTION, udp("rejion=false"), "did you mean rejoin?"),
        (PUBLICATION, udp("linger_=1s"), "did you mean linger?"),
        (PUBLICATION, udp("linger=5"), "linger=5: nanoseconds, because it has no unit"),
        (
            PUBLICATION,
            udp("fc=min"),
            "fc=min: ignored by default, because the publication has one receiver",
        ),
        (PUBLICATION, "aeron:ipc?endpoint=localhost:1".into(), "endpoint=localhost:1: ignored"),
        (
            SUBSCRIPTION,
            "aeron:ipc?endpoint=localhost:1".into(),
            "because only UDP channels have it",
        ),
        (SUBSCRIPTION, "aeron:ipc?control-mode=manual".into(), "only UDP channels have this mode"),
    ] {
        let warnings = warnings(&aeron, add, &channel);
        assert_eq!(warnings.len(), 1, "{channel}: {warnings:?}");
        assert!(warnings[0].starts_with("WARN: channel aeron:"), "{warnings:?}");
        assert!(warnings[0].contains(reason), "{reason}: {warnings:?}");
    }
    // All mistakes of a channel are in one warning.
    let warnings = warnings(&aeron, PUBLICATION, &udp("term-lenght=64k|fc=min|Reliable=false"));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for part in ["fc=min: ignored", "mean reliable?", "mean term-length?"] {
        assert!(warnings[0].contains(part), "{part}: {warnings:?}");
    }
}

#[test]
fn valid_channels_give_no_warning() {
    let driver = launch();
    let aeron = connect(&driver);
    let multicast =
        format!("aeron:udp?endpoint=224.0.1.1:{}|interface=localhost|fc=min", free_port());
    let dynamic =
        format!("aeron:udp?control=localhost:{}|control-mode=dynamic|fc=min", free_port());
    for (add, channel) in [
        (PUBLICATION, "aeron:ipc".into()),
        (SUBSCRIPTION, "aeron:ipc?colour=green|dc=london|node=7|session=a".into()),
        // Both ends of a stream often have the same channel.
        (SUBSCRIPTION, udp("mtu=8k|term-length=64k|fc=min|linger=1s|eos=false")),
        (PUBLICATION, udp("reliable=false|rejoin=false|cc=cubic|tether=false|group=true")),
        (PUBLICATION, multicast),
        (PUBLICATION, dynamic),
        (SUBSCRIPTION, udp("cc=cubic|nak-delay=1ms|ttl=16|so-rcvbuf=256k|rcv-wnd=64k|gtag=-5")),
    ] {
        assert_eq!(warnings(&aeron, add, &channel), [""; 0], "{channel}");
    }
    let unchecked: Add =
        |aeron, channel| aeron.add_publication(UncheckedChannel(channel), 1).map(drop);
    assert_eq!(warnings(&aeron, unchecked, "aeron:ipc?term-lenght=64k"), [""; 0]);
}

#[test]
fn unknown_parameters_are_listed() {
    let unknown = |text: &str| {
        let uri: ChannelUri = text.parse().expect(text);
        let unknown = uri.unknown_parameters();
        unknown.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(unknown("aeron:ipc?mtu=8k"), [""; 0]);
    assert_eq!(unknown("aeron:ipc?endpoint=x"), [""; 0]);
    assert_eq!(unknown("aeron:ipc?node=7|mtu=8k|MTU=4k"), ["MTU=4k", "node=7"]);
}
