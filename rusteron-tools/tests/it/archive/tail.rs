//! `rusteron archive tail`.

use rusteron_test_support::archive::{JavaArchive, record};

use super::{archive, archive_text};
use crate::support::{Running, offer};

#[test]
fn follows_until_recording_stops() {
    let Some(java) = JavaArchive::launch() else { return };
    let session = java.connect();
    let (mut publication, id, position) = record(&session, 2);
    let id = id.to_string();
    let start =
        |arguments: &[&str]| Running::start(archive(&java, &[&["tail", &id], arguments].concat()));
    let mut from_start = start(&["--json"]);
    from_start.await_line(&format!("{{\"position\":{position},\"text\":\"\\u0001\\u0000"));
    let second = (position / 2).to_string();
    let mut from_second = start(&["--from", &second]);
    from_second.await_line(&format!("{position:>12}  \\x01\\x00"));
    let end = offer(&mut publication, b"hello, archive");
    from_start.await_line(&format!("{{\"position\":{end},\"text\":\"hello, archive\"}}"));
    let one =
        archive_text(&java, &["tail", &id, "--from", &position.to_string(), "--messages", "1"]);
    assert_eq!(one, format!("{end:>12}  hello, archive\n"));
    let last = offer(&mut publication, &[0xff, 0]);
    from_start.await_line(&format!("{{\"hex\":\"ff00\",\"position\":{last}}}"));
    drop(publication);
    for tail in [from_start, from_second] {
        let finished = tail.finish();
        finished.assert_exit_code(0);
        assert_eq!(finished.stderr, "");
    }
    assert_eq!(archive_text(&java, &["tail", &id, "--new"]), "");
    assert_eq!(archive_text(&java, &["tail", &id]).lines().count(), 4);
}

#[cfg(unix)]
#[test]
fn signal_exits_0() {
    let Some(java) = JavaArchive::launch() else { return };
    let session = java.connect();
    let (_publication, id, position) = record(&session, 1);
    let mut tail = Running::start(archive(&java, &["tail", &id.to_string()]));
    tail.await_line(&format!("{position:>12}  "));
    tail.signal("INT");
    let finished = tail.finish();
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "");
}
