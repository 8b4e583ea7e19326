//! A full disk at each write, and clients that meet back pressure at each answer.

use std::io::ErrorKind;

use super::harness::{Harness, image, request};
use crate::conductor::effect::ImageDetails;
use crate::conductor::event::Event;
use crate::protocol::messages::{ExtendRecordingRequest, ReplayRequest};

const IPC: &str = "aeron:ipc";

fn stop_position(harness: &Harness, recording: i64) -> i64 {
    harness.conductor.shared.catalog.get(recording.into()).expect("a recording").stop_position
}

#[test]
fn full_disk_at_a_start_refuses_this_image_only() {
    // Fails the first change of the catalog, then the second one, until the edit succeeds.
    for changes in 0.. {
        let mut harness = Harness::connected();
        harness.start(5, IPC, false);
        let subscription = harness.register();
        harness.clear();
        harness.storage.fail_after(changes, ErrorKind::StorageFull);
        harness.add_image(subscription, &image(20));
        let sent = harness.sent();
        if sent.is_empty() {
            assert!(changes > 0, "no change was made");
            return;
        }
        assert!(sent[0].starts_with("5: error 11: "), "{sent:?}");
        assert_eq!(harness.errors().len(), 1);
        assert!(harness.orders().is_empty());
        assert!(harness.is_idle());
        // The next image finds space.
        harness.add_image(subscription, &image(21));
        assert_eq!(harness.orders().len(), 1);
        assert!(harness.sent().is_empty());
    }
}

#[test]
fn full_disk_at_an_extension_leaves_the_recording_as_it_was() {
    for changes in 0.. {
        let mut harness = Harness::connected();
        let recording = harness.add_stopped(IPC, 640);
        let fields = [7, recording, 10, 0];
        harness.send(request(ExtendRecordingRequest::TEMPLATE_ID, &fields, &[IPC]));
        let subscription = harness.register();
        harness.clear();
        harness.storage.fail_after(changes, ErrorKind::StorageFull);
        harness.add_image(subscription, &ImageDetails { join_position: 640, ..image(21) });
        let sent = harness.sent();
        if sent.is_empty() {
            assert!(changes > 0, "no change was made");
            return;
        }
        assert!(sent[0].starts_with("7: error 11: "), "{sent:?}");
        assert_eq!(stop_position(&harness, recording), 640);
        assert!(harness.is_idle());
    }
}

#[test]
fn full_disk_at_an_end_delays_the_signal_until_the_catalog_has_it() {
    for changes in 0.. {
        let mut harness = Harness::connected();
        let recording = harness.add_active(IPC);
        harness.storage.fail_after(changes, ErrorKind::StorageFull);
        harness.stop(recording, 640);
        if stop_position(&harness, recording) == 640 {
            assert!(changes > 0, "no change was made");
            assert_eq!(harness.sent().len(), 1);
            return;
        }
        assert!(harness.sent().is_empty());
        assert_eq!(harness.errors().len(), 1);
        // Not before a second has passed.
        harness.tick();
        assert!(harness.sent().is_empty());
        harness.tick_after(1000);
        assert_eq!(stop_position(&harness, recording), 640);
        let sent = harness.sent();
        assert!(sent.iter().any(|line| line.contains(": STOP recording=0 ")), "{sent:?}");
        assert!(harness.is_idle());
    }
}

#[test]
fn each_answer_survives_back_pressure() {
    let script = |harness: &mut Harness| {
        harness.start(3, IPC, true);
        let subscription = harness.register();
        harness.add_image(subscription, &image(20));
        harness.begin(0);
        harness.tick();
        harness.record_to(0, 640);
        harness.stop(0, 640);
        let fields = [4, 0, -1, -1, 30, -1, -1];
        harness.send(request(ReplayRequest::TEMPLATE_ID, &fields, &[IPC]));
        harness.tell(Event::ReplayStarted(1.into(), Ok(2)));
        harness.tick();
        harness.tick();
        harness.sent()
    };
    let expected = script(&mut Harness::connected());
    assert_eq!(expected.len(), 4, "{expected:?}");
    for refused in 0..expected.len() {
        let mut harness = Harness::connected();
        harness.out.sent_before_refusal = Some(refused);
        assert_eq!(script(&mut harness), expected);
    }
}
