//! Mistakes of people who are new to Aeron: each error names the value at fault, and what helps.

use std::error::Error as StdError;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rusteron_client::Aeron;
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{connect, context, driver_context_in, free_port, launch};

/// A mistake: the parts of the error's text that name the value and what helps, and the error.
type Mistake = (&'static [&'static str], Box<dyn StdError>);

fn error<T, E: StdError + 'static>(outcome: Result<T, E>) -> Box<dyn StdError> {
    outcome.err().expect("a mistake").into()
}

#[test]
fn texts_name_value_and_remedy() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut exclusive =
        aeron.add_exclusive_publication("aeron:ipc?term-length=64k", 1001).expect("a publication");
    let publication = |channel: &str| error(aeron.add_publication(channel, 1001));
    let subscription = |channel: &str| error(aeron.add_subscription(channel, 1001));

    let missing = driver.aeron_dir().join("missing");
    let elsewhere = || {
        let mut context = context(&missing);
        context.set_driver_timeout(Duration::from_millis(100))?;
        Aeron::connect(context)
    };
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let port = taken.local_addr().expect("an address").port();
    let ipc = aeron.add_publication("aeron:ipc", 1002).expect("a publication");
    let long_terms =
        aeron.add_publication("aeron:ipc?term-length=64m", 1004).expect("a publication");
    let single = format!("aeron:udp?endpoint=localhost:{}", free_port());
    let single = aeron.add_publication(single, 1002).expect("a publication");
    let destination = "aeron:udp?endpoint=localhost:9";
    let mut listener = aeron.add_subscription("aeron:ipc", 1003).expect("a subscription");
    let too_long = vec![0; exclusive.max_message_length() + 1];
    let label = "x".repeat(400);
    let mut terms = driver_context_in(&missing);
    terms.set_term_buffer_length(100_000).expect("a number");

    let mut faults = Vec::new();
    let mistakes: Vec<Mistake> = vec![
        (
            &[
                "no media driver runs in",
                "missing",
                "does not exist",
                "start a media driver",
                "AERON_DIR",
            ],
            error(elsewhere()),
        ),
        (
            &["active media driver: process", "use another directory"],
            error(MediaDriver::launch(driver_context_in(driver.aeron_dir()))),
        ),
        (
            &["control-mode=dynamc: must be manual, dynamic or response"],
            publication("aeron:ipc?control-mode=dynamc"),
        ),
        (
            &["term-length=64kb: must be a power of two from 64k to 1g"],
            publication("aeron:ipc?term-length=64kb"),
        ),
        (
            &["fc=min,g:x: must be max, min or tagged"],
            publication("aeron:udp?endpoint=localhost:9|fc=min,g:x"),
        ),
        (
            &["term-length=100k: must be a power of two from 64k to 1g"],
            publication("aeron:ipc?term-length=100k"),
        ),
        (&["mtu=64k: must be a multiple of 32 from 64 to 65504"], publication("aeron:ipc?mtu=64k")),
        (
            &["invalid channel: URIs for UDP must specify endpoint"],
            publication("aeron:udp?term-length=64k"),
        ),
        (&["endpoint=localhost: must be host:port"], subscription("aeron:udp?endpoint=localhost")),
        // The empty label keeps the name from every name server, so that none delays the answer.
        (
            &["unknown host: endpoint=no-such..host:9: the driver's machine cannot resolve this"],
            publication("aeron:udp?endpoint=no-such..host:9"),
        ),
        (
            &["address in use: 127.0.0.1:", "another process", "port 0 for any"],
            subscription(&format!("aeron:udp?endpoint=127.0.0.1:{port}")),
        ),
        (
            &["control-mode=dynamic needs control=host:port"],
            publication("aeron:udp?endpoint=localhost:9|control-mode=dynamic"),
        ),
        (
            &["control-mode=dynamic needs control=host:port"],
            subscription("aeron:udp?endpoint=localhost:9|control-mode=dynamic"),
        ),
        (
            &[
                "term-length=65536: a publication of",
                "has term-length=67108864, perhaps",
                "stream id",
            ],
            error(aeron.add_publication("aeron:ipc?term-length=64k", 1004)),
        ),
        (
            &["aeron:ipc: has no destinations", "control-mode=manual"],
            error(ipc.add_destination(destination)),
        ),
        (
            &["has no destinations", "control-mode=manual"],
            error(single.add_destination(destination)),
        ),
        (&["aeron:ipc: has no destinations"], error(listener.add_destination(destination))),
        (&["begins with aeron:ipc or aeron:udp?"], publication("ipc")),
        (&["parameters are missing", "aeron:udp?endpoint=host:port"], publication("aeron:udp")),
        (
            &["only subscriptions can be spies"],
            publication("aeron-spy:aeron:udp?endpoint=localhost:9"),
        ),
        (
            &["8193 bytes", "takes 8192 at most", "term-length, up to 16 MiB"],
            error(exclusive.offer(&too_long)),
        ),
        (&["1377 bytes", "takes 1376 at most; offer takes"], error(exclusive.try_claim(1377))),
        (
            &["not connected: ", "no peer has joined, or the last one has left"],
            error(exclusive.offer_until(b"alone", Instant::now())),
        ),
        (&["label: 400 bytes; the maximum is 380"], error(aeron.add_counter(1001, &[], &label))),
        (
            &["type_id=-5: must be from 0", "your own from 1000"],
            error(aeron.add_counter(-5, &[], "x")),
        ),
        (&["100000 is not a power of two from 64k to 1g"], error(MediaDriver::launch(terms))),
    ];
    for (parts, error) in mistakes {
        let text = error.to_string();
        let names_all = parts.iter().all(|part| text.contains(part));
        let is_one_sentence = !text.contains("registration error") && !text.contains('\n');
        // Rust prints the error that `main` returns by its `Debug`.
        if !names_all || !is_one_sentence || format!("{error:?}") != text {
            faults.push(format!("{parts:?}: {error:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    drop(long_terms);
    // The driver takes any stream id.
    drop(aeron.add_publication("aeron:ipc", -7).expect("a publication"));
}
