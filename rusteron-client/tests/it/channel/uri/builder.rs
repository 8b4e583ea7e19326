//! Channel URIs as values: given to the client, built, printed and parsed.

use std::borrow::Cow;
use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use rusteron_client::{
    ChannelUri, ChannelUriBuilder, ChannelUriErrorKind, CongestionControl, ControlMode, ErrorKind,
    FlowControl, Group, Media, Parameter, ResponseCorrelationId, SessionId, TimestampOffset,
};
use rusteron_test_support::{connect, launch};

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
fn refusal_names_parameter_and_range() {
    let driver = launch();
    let aeron = connect(&driver);
    let channel = "aeron:udp?endpoint=127.0.0.1:40123|mtu=1500";
    let error = aeron.add_publication(channel, 1001).expect_err("no multiple of 32");
    assert_eq!(error.kind(), ErrorKind::InvalidChannel);
    assert_eq!(error.code(), 0, "the driver was not asked");
    assert_eq!(error.message(), "mtu=1500: must be a multiple of 32 from 64 to 65504 (bytes)");
    aeron.async_add_publication(channel, 1001).expect_err("it is refused at once");
    aeron.async_add_exclusive_publication(channel, 1001).expect_err("it is refused at once");
    let error = aeron.async_add_subscription("aeron:ipc?tether=no", 1001).expect_err("no flag");
    assert_eq!(error.to_string(), "invalid channel: tether=no: must be true or false");
    // Also of a parameter that only publications read.
    aeron.add_subscription(channel, 1001).expect_err("it is refused at once");
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

proptest! {
    #[test]
    fn built_channels_print_and_parse(
        is_udp in any::<bool>(),
        is_spy in any::<bool>(),
        mtu in (2_usize..=2047).prop_map(|frames| frames * 32),
        term_length in (16_u32..=30).prop_map(|bits| 1_usize << bits),
        initial_term_id in any::<i32>(),
        terms in 0_i64..=i64::from(i32::MAX),
        offset in 0_i64..2048,
        linger in any::<Duration>(),
        sndbuf in 65536_usize..,
        session_id in any::<i32>(),
        tags in proptest::option::of((0_i64.., any::<i64>())),
        alias in "[^|\\x00]{1,20}",
        colour in "[^=|\\x00][^=|\\x00]{0,10}",
        flags in proptest::collection::vec(proptest::option::of(any::<bool>()), 4),
    ) {
        let mut builder = if is_udp { ChannelUri::udp() } else { ChannelUri::ipc() }
            .spy(is_spy && is_udp)
            .endpoint("localhost:40123")
            .mtu(mtu)
            .initial_position(terms * term_length as i64 + offset * 32 % term_length as i64,
                initial_term_id, term_length)
            .linger(linger)
            .socket_sndbuf(sndbuf)
            .session_id(session_id)
            .alias(&alias);
        // Only of a key that means nothing else.
        let has_colour = colour.parse::<Parameter>().is_err();
        if has_colour {
            builder = builder.set_key(&colour, "green");
        }
        if let Some((channel, entity)) = tags {
            builder = builder.channel_tag(channel).entity_tag(entity);
        }
        type Setter = fn(ChannelUriBuilder, bool) -> ChannelUriBuilder;
        let setters: [Setter; 4] = [
            ChannelUriBuilder::sparse,
            ChannelUriBuilder::eos,
            ChannelUriBuilder::tether,
            ChannelUriBuilder::rejoin,
        ];
        for (setter, flag) in setters.into_iter().zip(&flags) {
            if let Some(flag) = *flag {
                builder = setter(builder, flag);
            }
        }
        let built = builder.build().expect("a channel");
        let parsed: ChannelUri = built.to_string().parse().expect("what was printed");
        prop_assert_eq!(&parsed, &built);
        prop_assert_eq!(parsed.to_string(), built.to_string());
        prop_assert_eq!(parsed.to_builder().build().expect("again"), built);

        prop_assert_eq!(parsed.media(), if is_udp { Media::Udp } else { Media::Ipc });
        prop_assert_eq!(parsed.mtu(), Ok(Some(mtu)));
        prop_assert_eq!(parsed.term_length(), Ok(Some(term_length)));
        prop_assert_eq!(parsed.socket_sndbuf(), Ok(Some(sndbuf.min(i64::MAX as usize))));
        let longest = Duration::from_nanos(i64::MAX as u64);
        prop_assert_eq!(parsed.linger(), Ok(Some(linger.min(longest))));
        prop_assert_eq!(parsed.session_id(), Ok(Some(SessionId::Id(session_id))));
        prop_assert_eq!(parsed.alias(), Some(&*alias));
        prop_assert_eq!(parsed.sparse(), Ok(flags[0]));
        if let Some((channel, entity)) = tags {
            prop_assert_eq!(parsed.channel_tag(), Ok(Some(channel)));
            prop_assert_eq!(parsed.entity_tag(), Ok(Some(entity)));
        }
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        look_at(&text);
    }

    #[test]
    fn no_near_channel_panics(
        prefix in "(aeron-spy:)?aeron:(udp|ipc)\\??",
        parameters in proptest::collection::vec(
            (proptest::sample::select(Parameter::ALL), "[-0-9a-zA-Z:\\[\\]{}/%.,=é \\x00]{0,24}"),
            0..8,
        ),
    ) {
        let parameters: Vec<_> = parameters.iter().map(|(key, text)| format!("{key}={text}")).collect();
        look_at(&format!("{prefix}{}", parameters.join("|")));
    }
}

/// Everything there is to do with a text.
fn look_at(text: &str) {
    let Ok(uri) = text.parse::<ChannelUri>() else { return };
    let printed = uri.to_string();
    assert_eq!(printed.parse().as_ref(), Ok(&uri), "{printed}");
    let verdicts = (uri.check_publication().is_ok(), uri.check_subscription().is_ok());
    let again: ChannelUri = printed.parse().expect("it has been parsed before");
    assert_eq!((again.check_publication().is_ok(), again.check_subscription().is_ok()), verdicts);
    if let Ok(built) = uri.to_builder().build() {
        assert_eq!(built, uri);
    }
    for (key, value) in uri.parameters() {
        assert!(!key.is_empty() && !value.is_empty());
    }
}
