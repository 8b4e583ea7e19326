//! Replications that fail: what ends them in each state, and what their clients are told.

use std::mem;

use super::harness::{Harness, MESSAGE_TIMEOUT_MS};
use super::source::{ID, LIVE, Peer, USUAL, Wanted, replicate, replicated, stop};
use crate::conductor::effect::Sending;
use crate::conductor::event::Event;

#[test]
fn recording_that_does_not_fit_is_refused() {
    let end = format!("{ID}: REPLICATE_END recording=-1 subscription=-1 position=-1");
    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    let sent = replicated(&mut harness, &mut peer, Wanted { file_io_max: 100, ..USUAL });
    let text = "Replication fileIoMaxLength (100) is less than than the recording mtuLength (1408)";
    assert_eq!(sent[1..], [format!("{ID}: error 0: {text}"), end.clone()]);

    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    peer.segment_length = 7;
    let sent = replicated(&mut harness, &mut peer, USUAL);
    assert!(sent[1].contains("the recording of the source is not valid"), "{sent:?}");
    assert_eq!(sent[2..], [end]);
    assert!(harness.is_idle());
}

#[test]
fn low_storage_space_ends_replication() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    harness.conductor.shared.settings.low_storage_space_threshold = u64::MAX;
    let sent = replicated(&mut harness, &mut peer, USUAL);
    assert!(sent[2].starts_with(&format!("{ID}: error 11: low storage")), "{sent:?}");
    assert!(sent[3].contains("REPLICATE_END recording=0"), "{sent:?}");
    assert!(harness.is_idle());
}

#[test]
fn source_that_refuses_or_is_silent_ends_replication() {
    let connection = |text| format!("error 14: Replication connection failed=ERROR - {text}");
    let errors = [
        (58, connection("no")),
        (68, connection("no")),
        (10, "error 0: ERROR - no".to_owned()),
        (6, "error 0: ERROR - no".to_owned()),
    ];
    for (template, expected) in errors {
        let (mut harness, mut peer) = (Harness::connected(), Peer::new());
        peer.fault = Some((template, Some("no")));
        let sent = replicated(&mut harness, &mut peer, USUAL);
        assert!(sent.contains(&format!("{ID}: {expected}")), "{sent:?}");
        check_ended(&mut harness, &mut peer, sent);
    }
    let timeout = "Archive connect timeout: step=";
    let silences = [
        (58, connection(&format!("{timeout}AWAIT_CONNECT_RESPONSE"))),
        (68, connection(&format!("{timeout}AWAIT_ARCHIVE_ID_RESPONSE"))),
        (10, "error 0: ERROR - failed to fetch remote recording descriptor".to_owned()),
        (12, "error 0: ERROR - failed to get recording position".to_owned()),
        (105, "error 0: ERROR - failed to get replay token".to_owned()),
        (6, "error 0: ERROR - failed get acknowledgement of replay request".to_owned()),
    ];
    for (template, expected) in silences {
        let (mut harness, mut peer) = (Harness::connected(), Peer::active(4096));
        peer.fault = Some((template, None));
        let (live, channel) = match template {
            12 => (LIVE, ""),
            105 => ("", "aeron:udp?control-mode=response|control=copy:9"),
            _ => ("", ""),
        };
        replicate(&mut harness, Wanted { live, channel, ..USUAL });
        peer.run(&mut harness);
        harness.tick_after(MESSAGE_TIMEOUT_MS - 1);
        let mut sent = harness.sent();
        assert!(!sent.iter().any(|line| line.contains("error")), "{sent:?}");
        harness.tick_after(1);
        sent.extend(harness.sent());
        let expected = format!("{ID}: {expected}");
        assert!(sent.iter().any(|line| line.starts_with(&expected)), "{sent:?}");
        check_ended(&mut harness, &mut peer, sent);
    }
}

/// Checks that the client was told of an end, and that nothing is left.
fn check_ended(harness: &mut Harness, peer: &mut Peer, mut sent: Vec<String>) {
    peer.run(harness);
    sent.extend(harness.sent());
    let ends = sent.iter().filter(|line| line.contains("REPLICATE_END")).count();
    assert_eq!(ends, 1, "{sent:?}");
    assert!(harness.is_idle(), "{sent:?}");
    assert!(peer.has_order(&format!("close source {ID}")));
    let count = |verb: &str| peer.orders.iter().filter(|order| order.starts_with(verb)).count();
    assert_eq!(count("subscribe"), count("close subscription"), "{:?}", peer.orders);
}

#[test]
fn source_that_fails_in_any_state_leaves_nothing() {
    for steps in 0..12 {
        for live in ["", LIVE] {
            for fault in 0..5 {
                let (mut harness, mut peer) = (Harness::connected(), Peer::active(8192));
                peer.recorded = 4096;
                replicate(&mut harness, Wanted { live, ..USUAL });
                for _ in 0..steps {
                    peer.advance(&mut harness);
                }
                match fault {
                    0 => harness.tell(Event::SourceFailed(ID.into(), "no socket".to_owned())),
                    1 => harness.out.is_source_connected = false,
                    2 => peer.fault = Some((6, Some("gone"))),
                    3 => harness.out.source_sending = Sending::NotConnected,
                    _ => stop(&mut harness, ID),
                }
                peer.run(&mut harness);
                for _ in 0..4 {
                    harness.tick_after(MESSAGE_TIMEOUT_MS);
                    peer.advance(&mut harness);
                }
                // Without a source, the stream ends, too.
                if matches!(fault, 2 | 3) && harness.out.progress.contains_key(&0) {
                    harness.stop(0, 4096);
                }
                let sent = harness.sent();
                check_ended(&mut harness, &mut peer, sent);
            }
        }
    }
}

#[test]
fn failure_is_told_with_its_reason() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::active(4096));
    replicate(&mut harness, USUAL);
    harness.tell(Event::SourceFailed(ID.into(), "no socket".to_owned()));
    peer.run(&mut harness);
    let text = "Replication connection failed=no socket";
    assert!(harness.sent().contains(&format!("{ID}: error 14: {text}")));
    assert!(harness.errors().is_empty() && harness.mistakes().is_empty());

    let (mut harness, mut peer) = (Harness::connected(), Peer::active(4096));
    replicated(&mut harness, &mut peer, USUAL);
    harness.out.is_source_connected = false;
    peer.run(&mut harness);
    assert!(harness.sent().contains(&format!("{ID}: error 0: ERROR - not connected")));

    let (mut harness, mut peer) = (Harness::connected(), Peer::active(4096));
    // The live stream does not arrive, so the replication waits for it.
    peer.transports = 1;
    replicated(&mut harness, &mut peer, Wanted { live: LIVE, tags: [1, 2], ..USUAL });
    harness.tell(Event::DestinationFailed(1001.into(), "no such interface".to_owned()));
    peer.run(&mut harness);
    let sent = harness.sent();
    assert!(sent.contains(&format!("{ID}: error 0: no such interface")), "{sent:?}");
    assert!(harness.errors().is_empty() && harness.mistakes().is_empty());
    check_ended(&mut harness, &mut peer, sent);
}

#[test]
fn refused_subscription_ends_replication() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    replicate(&mut harness, USUAL);
    while !peer.has_order("close source") && harness.out.progress.is_empty() {
        harness.tick();
        for order in harness.orders() {
            match order.starts_with("subscribe") {
                true => harness.refuse_subscription("no socket"),
                false => peer.carry_out(&order, &mut harness),
            }
            peer.orders.push(order);
        }
        for request in mem::take(&mut harness.out.requests) {
            peer.answer(&request, &mut harness);
        }
    }
    let sent = harness.sent();
    assert!(sent.contains(&format!("{ID}: error 0: no socket")), "{sent:?}");
    assert!(sent.last().expect("an end").contains("REPLICATE_END"), "{sent:?}");
    assert!(harness.is_idle());
}
