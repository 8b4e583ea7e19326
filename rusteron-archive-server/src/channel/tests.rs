//! Channels as Java's archive reads, strips and completes them.

use super::*;

fn parse(text: &str) -> Channel<'_> {
    Channel::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn stripped(text: &str) -> String {
    parse(text).stripped().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    match Channel::parse(text).and_then(|channel| channel.stripped()) {
        Ok(channel) => panic!("{text}: accepted as {channel}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn stripped_channel_has_parameters_and_order_of_java() {
    let all = "aeron:udp?term-length=1g|mtu=2048|session-id=tag:424242424242|rcv-wnd=32k|so-sndbuf=2m|\
        so-rcvbuf=1m|endpoint=some-host:7777|interface=192.168.0.1/24|control-mode=dynamic|\
        control=localhost:5555|tether=false|reliable=false|linger=1321ms|sparse=false|cc=cubic|\
        alias=test-stripped-channel|fc=tagged,g:1111/3,t:4s|gtag=2222|tags=17,432|tag=5|ttl=3|eos=true|\
        rejoin=false|ssc=true|group=true|response-correlation-id=88888888881|\
        response-endpoint=publisher:10101|media-rcv-ts-offset=reserved|channel-rcv-ts-offset=136|\
        channel-snd-ts-offset=144|init-term-id=300|term-id=341|term-offset=4096|nak-delay=100ns|\
        untethered-window-limit-timeout=3s|untethered-linger-timeout=2s|untethered-resting-timeout=1s|\
        max-resend=13|stream-id=-654|pub-wnd=32m";
    assert_eq!(
        stripped(all),
        "aeron:udp?tags=17,432|endpoint=some-host:7777|interface=192.168.0.1/24|control=localhost:5555|\
        control-mode=dynamic|session-id=tag:424242424242|ttl=3|alias=test-stripped-channel|cc=cubic|\
        fc=tagged,g:1111/3,t:4s|gtag=2222|tether=false|group=true|rejoin=false|so-sndbuf=2m|so-rcvbuf=1m|\
        rcv-wnd=32k|media-rcv-ts-offset=reserved|channel-rcv-ts-offset=136|channel-snd-ts-offset=144|\
        response-endpoint=publisher:10101|response-correlation-id=88888888881|stream-id=-654"
    );
}

#[test]
fn stripped_channel_has_values_of_java() {
    for (written, expected) in [
        ("aeron:ipc", "aeron:ipc"),
        ("aeron:udp", "aeron:udp"),
        ("aeron-spy:aeron:udp?endpoint=a:1", "aeron:udp?endpoint=a:1"),
        ("aeron:ipc?alias=", "aeron:ipc?alias="),
        ("aeron:ipc?alias=a=b?c|term-length=zero", "aeron:ipc?alias=a=b?c"),
        ("aeron:udp?endpoint=a:1|endpoint=b:2", "aeron:udp?endpoint=b:2"),
        (
            "aeron:ipc?group=infer|rejoin=TRUE|tether=",
            "aeron:ipc?tether=false|group=false|rejoin=true",
        ),
        ("aeron:ipc?ttl=+007|gtag=-0|stream-id=+5", "aeron:ipc?ttl=7|gtag=0|stream-id=5"),
        ("aeron:ipc?session-id=-2147483648", "aeron:ipc?session-id=-2147483648"),
        ("aeron:ipc?so-sndbuf=0|so-rcvbuf=1023", "aeron:ipc?so-sndbuf=0|so-rcvbuf=1023"),
        ("aeron:ipc?so-sndbuf=1024K|so-rcvbuf=1536", "aeron:ipc?so-sndbuf=1m|so-rcvbuf=1536"),
        ("aeron:ipc?rcv-wnd=1048576k", "aeron:ipc?rcv-wnd=1g"),
        ("aeron:ipc?channel-rcv-ts-offset=+08", "aeron:ipc?channel-rcv-ts-offset=+08"),
        (
            "aeron:ipc?response-correlation-id=prototype",
            "aeron:ipc?response-correlation-id=prototype",
        ),
    ] {
        assert_eq!(stripped(written), expected, "{written}");
    }
}

#[test]
fn refusals_have_words_of_java() {
    let long = format!("aeron:ipc?alias={}", "x".repeat(4080));
    assert!(
        refusal(&long).starts_with("URI length (4096) exceeds max supported length (4095): aeron:")
    );
    for (written, expected) in [
        ("", "Aeron URIs must start with 'aeron:', found: "),
        ("udp", "Aeron URIs must start with 'aeron:', found: udp"),
        ("aeron-spy:udp", "Aeron URIs must start with 'aeron:', found: aeron-spy:udp"),
        ("aeron:", "unknown media: "),
        ("aeron:tcp", "unknown media: tcp"),
        ("aeron:tcp?endpoint=a:1", "invalid media: tcp"),
        ("aeron:u=p?a=b", "encountered '=' within media definition at index 7 in aeron:u=p?a=b"),
        (
            "aeron-spy:aeron:ü:",
            "encountered ':' within media definition at index 17 in aeron-spy:aeron:ü:",
        ),
        ("aeron:udp?", "no more input found, state=PARAMS_KEY in aeron:udp?"),
        ("aeron:udp?a=b|", "no more input found, state=PARAMS_KEY in aeron:udp?a=b|"),
        ("aeron:udp?a", "no more input found, state=PARAMS_KEY in aeron:udp?a"),
        ("aeron:udp?=b", "empty key not allowed at index 10 in aeron:udp?=b"),
        ("aeron:udp?a|b=c", "invalid end of key at index 11 in aeron:udp?a|b=c"),
        ("aeron:udp?|", "invalid end of key at index 10 in aeron:udp?|"),
        ("aeron:udp?control-mode=auto", "invalid control mode: auto"),
        ("aeron:udp?gtag=x", "'gtag' must be a valid long value"),
        ("aeron:udp?session-id=2147483648", "'session-id' must be a valid integer"),
        ("aeron:udp?session-id=tag:", "empty string: index=4 length=0"),
        ("aeron:udp?rcv-wnd=k", "empty string: index=0 length=0"),
        ("aeron:udp?ttl=256", "TTL not in range 0-255: 256"),
        ("aeron:udp?ttl=1.5", "'ttl' must be a value integer"),
        ("aeron:udp?stream-id=", "stream-id must be a number"),
        ("aeron:udp?so-sndbuf=", "so-sndbuf must be non-empty: "),
        ("aeron:udp?so-sndbuf=-1", "so-sndbuf must be positive: -1"),
        ("aeron:udp?so-sndbuf=1x", "so-sndbuf: 1x should end with: k, m, or g."),
        ("aeron:udp?so-sndbuf=1ü", "so-sndbuf: 1ü should end with: k, m, or g."),
        ("aeron:udp?so-sndbuf=2g", "value exceeds maximum permitted: value=2147483648"),
        (
            "aeron:udp?so-sndbuf=9007199254740992k",
            "so-sndbuf would overflow a long: 9007199254740992k",
        ),
        (
            "aeron:udp?channel-snd-ts-offset=x",
            "channelSendTimestampOffset must be a number or the value 'reserved' found: x",
        ),
        (
            "aeron:udp?response-correlation-id=-2",
            "responseCorrelationId must be a number greater than or equal to -1, or the value 'prototype' found: -2",
        ),
    ] {
        assert_eq!(refusal(written), expected, "{written}");
    }
}

#[test]
fn recording_key_tells_streams_apart() {
    let key = |text| parse(text).recording_key(10);
    assert_eq!(key("aeron:ipc"), "10:ipc");
    assert_eq!(key("aeron:ipc?alias=a|mtu=8k"), "10:ipc");
    assert_eq!(
        key(
            "aeron-spy:aeron:udp?tags=1,2|session-id=007|control=c:3|interface=i|endpoint=e:1|control-mode=x"
        ),
        "10:udp?endpoint=e:1|interface=i|control=c:3|session-id=007|tags=1,2"
    );
}

#[test]
fn local_udp_is_recorded_by_a_spy() {
    let recorded = |text, is_local| parse(text).recorded(is_local).expect("a channel");
    let udp = "aeron:udp?mtu=8k|endpoint=a:1";
    assert_eq!(recorded(udp, true), "aeron-spy:aeron:udp?endpoint=a:1");
    assert_eq!(recorded(udp, false), "aeron:udp?endpoint=a:1");
    assert_eq!(
        recorded("aeron-spy:aeron:udp?endpoint=a:1", true),
        "aeron-spy:aeron:udp?endpoint=a:1"
    );
    assert_eq!(recorded("aeron:ipc", true), "aeron:ipc");
}

#[test]
fn response_channel_is_within_the_servers_settings() {
    let defaults = ResponseDefaults { mtu: 1408, term_length: 65536, is_sparse: true };
    let response =
        |text| parse(text).response(defaults, 77.into()).map_err(|error| error.to_string());
    assert_eq!(
        response("aeron:udp?endpoint=a:1|linger=1s"),
        Ok("aeron:udp?endpoint=a:1|mtu=1408|term-length=64k|sparse=true".to_owned())
    );
    assert_eq!(
        response("aeron:ipc?sparse=no|term-length=131072|mtu=8k|alias=x"),
        Ok("aeron:ipc?mtu=8k|term-length=64k|alias=x|sparse=true".to_owned())
    );
    let large = ResponseDefaults { mtu: 1408, term_length: 1 << 20, is_sparse: false };
    for (text, expected) in [
        ("aeron:ipc?term-length=128k", "aeron:ipc?mtu=1408|term-length=128k|sparse=false"),
        ("aeron:ipc?term-length=1g|sparse=true", "aeron:ipc?mtu=1408|term-length=1m|sparse=true"),
    ] {
        assert_eq!(parse(text).response(large, 77.into()), Ok(expected.to_owned()));
    }
    assert_eq!(
        response("aeron:udp?control=a:1|control-mode=response|response-correlation-id=5"),
        Ok("aeron:udp?control=a:1|control-mode=response|mtu=1408|term-length=64k|sparse=true|\
            response-correlation-id=77"
            .to_owned())
    );
    for (text, expected) in [
        ("aeron:ipc?mtu=33", "MTU not a multiple of FRAME_ALIGNMENT: mtu=33"),
        ("aeron:ipc?mtu=64k", "MTU not in range 32-65504: 65536"),
        ("aeron:ipc?term-length=63k", "Term length less than min length of 65536: length=64512"),
        ("aeron:ipc?term-length=65k", "Term length not a power of 2: length=66560"),
        (
            "aeron:ipc?term-length=3g",
            "Term length less than min length of 65536: length=-1073741824",
        ),
    ] {
        assert_eq!(response(text), Err(expected.to_owned()));
    }
}

#[test]
fn replay_channel_starts_at_its_position() {
    let start = ReplayStart {
        position: 3 * 65536 + 96,
        initial_term_id: i32::MAX,
        term_length: 65536,
        mtu: 1408,
    };
    let replay = |text| parse(text).replay(start, 5_000_000_000).map_err(|error| error.to_string());
    let position =
        "mtu=1408|term-length=64k|init-term-id=2147483647|term-id=-2147483646|term-offset=96";
    assert_eq!(
        replay("aeron:udp?endpoint=a:1|mtu=8k|term-length=1m|ssc=true"),
        Ok(format!("aeron:udp?endpoint=a:1|{position}|linger=5s"))
    );
    assert_eq!(
        replay("aeron:ipc?linger=1500000|eos=false|sparse=TRUE|session-id=3"),
        Ok(format!("aeron:ipc?{position}|session-id=3|linger=1500us|sparse=true|eos=false"))
    );
    assert_eq!(replay("aeron:ipc?linger=5s"), Err("For input string: \"5s\"".to_owned()));
    assert_eq!(
        replay("aeron:ipc?linger=-1"),
        Err("`linger` value cannot be negative: -1".to_owned())
    );
    let between_frames = ReplayStart { position: 65, ..start };
    assert_eq!(
        parse("aeron:ipc").replay(between_frames, 0).map_err(|error| error.to_string()),
        Err("invalid position=65 does not have frame alignment=32".to_owned())
    );
    let mut tokened = parse("aeron:udp?control-mode=response|control=a:1");
    tokened.set("response-correlation-id", 12);
    assert_eq!(
        tokened.replay(start, 0).as_deref(),
        Ok(&*format!(
            "aeron:udp?control=a:1|control-mode=response|{position}|linger=0ns|response-correlation-id=12"
        ))
    );
}
