//! Probable mistakes in channels are logged. Channels with a program's own parameters are not.

use rusteron_client::{Aeron, ChannelUri, Error, UncheckedChannel};
use rusteron_test_support::{connect, free_port, launch, logged_with};

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
fn destinations_warn_when_added() {
    let driver = launch();
    let aeron = connect(&driver);
    let destination = udp("term-lenght=64k");
    let publication =
        aeron.add_publication("aeron:udp?control-mode=manual", 1).expect("a publication");
    let warnings = logged_with(&destination, || {
        publication.add_destination(&destination).expect("a destination");
        publication.remove_destination(&destination).expect("removed");
    });
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("WARN: destination aeron:"), "{warnings:?}");

    let destination = udp("term-lenght=64k");
    let mut subscription =
        aeron.add_subscription("aeron:udp?control-mode=manual", 1).expect("a subscription");
    let warnings = logged_with(&destination, || {
        subscription.add_destination(&destination).expect("a destination");
        subscription.remove_destination(&destination).expect("removed");
    });
    assert_eq!(warnings.len(), 1, "{warnings:?}");
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
