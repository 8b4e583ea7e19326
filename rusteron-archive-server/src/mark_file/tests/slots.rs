//! Positions of recordings, which a killed server leaves behind.

use std::sync::Arc;

use super::*;

/// Leaves a mark file as a killed server does, in another directory.
#[cfg(target_os = "linux")]
fn killed(dir: &TempDir) -> TempDir {
    let other = tempfile::tempdir().expect("a directory");
    fs::copy(path(dir), path(&other)).expect("a copy");
    other
}

#[cfg(target_os = "linux")]
#[test]
fn positions_of_killed_server_are_kept_until_forgotten() {
    let dir = tempfile::tempdir().expect("a directory");
    let mark_file = Arc::new(activate(&dir).expect("a mark file"));
    assert!(mark_file.killed_positions().is_empty());
    mark_file.ready();
    let claim = |id: i64, position| PositionSlot::claim(&mark_file, id.into(), position);
    let slots = [(0, 64), (7, 96), (8, 0)].map(|(id, position)| claim(id, position));
    let [first, second, third] = slots.map(|slot| slot.expect("a slot"));
    first.store(1 << 40);
    second.release();
    let expected = HashMap::from([(0.into(), 1 << 40), (8.into(), 0)]);
    let mut dir = killed(&dir);
    // Servers that are killed before the catalog has the ends.
    for _ in 0..2 {
        let mark_file = activate(&dir).expect("a mark file, at once");
        assert_eq!(mark_file.killed_positions(), &expected);
        dir = killed(&dir);
    }
    // A server that fails to start.
    assert_eq!(activate(&dir).expect("a mark file, at once").killed_positions(), &expected);
    let mark_file = activate(&dir).expect("a mark file, at once");
    // The end of recording 8 is not known yet.
    mark_file.forget_killed_positions(|id| id == 8);
    mark_file.ready();
    drop(mark_file);
    let mark_file = activate(&dir).expect("a mark file, at once");
    assert_eq!(mark_file.killed_positions(), &HashMap::from([(8.into(), 0)]));
    mark_file.forget_killed_positions(|_| false);
    mark_file.ready();
    let again = killed(&dir);
    assert!(activate(&again).expect("a mark file, at once").killed_positions().is_empty());
    // The first server goes on meanwhile, with the slots that are free.
    third.release();
    assert!(claim(9, 32).is_some() && claim(10, 32).is_some() && claim(11, 32).is_some());
    let claimed = (0..).map_while(|id| claim(id, id)).count();
    assert_eq!(claimed + 4, positions::SLOTS.len() / 16);
}

#[cfg(target_os = "linux")]
#[test]
fn client_of_killed_server_is_kept_until_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    let client = |client_id| ClientIdentity {
        client_id,
        driver_start_timestamp: 1_700_000_000_000,
        driver_pid: 77,
    };
    let mark_file = activate(&dir).expect("a mark file");
    assert_eq!(mark_file.killed_client(), None);
    mark_file.ready();
    mark_file.note_client(&client(0));
    // The first server runs while its directory is copied.
    let copy = killed(&dir);
    assert_eq!(activate(&copy).expect("a mark file").killed_client(), None);
    kill(&dir, mark_file);
    // A server that is killed before it has a client.
    for _ in 0..2 {
        let mark_file = activate(&dir).expect("a mark file, at once");
        assert_eq!(mark_file.killed_client(), Some(&client(0)));
        kill(&dir, mark_file);
    }
    // A server that fails to start.
    assert_eq!(activate(&dir).expect("a mark file").killed_client(), Some(&client(0)));
    let mark_file = Arc::new(activate(&dir).expect("a mark file, at once"));
    mark_file.note_client(&client(i64::MAX - 1));
    mark_file.forget_killed_positions(|_| false);
    drop(PositionSlot::claim(&mark_file, 3.into(), 640).expect("a slot"));
    kill(&dir, Arc::into_inner(mark_file).expect("the only handle"));
    let mark_file = activate(&dir).expect("a mark file, at once");
    assert_eq!(mark_file.killed_client(), Some(&client(i64::MAX - 1)));
    assert_eq!(mark_file.killed_positions(), &HashMap::from([(3.into(), 640)]));
}

#[cfg(target_os = "linux")]
#[test]
fn copied_mark_file_is_no_original() {
    let dir = tempfile::tempdir().expect("a directory");
    let mark_file = activate(&dir).expect("a mark file");
    assert!(!mark_file.was_original());
    mark_file.note_original();
    mark_file.ready();
    let copy = killed(&dir);
    kill(&dir, mark_file);
    // A server that is killed before it has found the ends of all recordings.
    for _ in 0..2 {
        let mark_file = activate(&dir).expect("a mark file, at once");
        assert!(mark_file.was_original());
        kill(&dir, mark_file);
    }
    assert!(Guard::new(dir.path()).expect("no archive").is_original());
    for _ in 0..2 {
        assert!(!Guard::new(copy.path()).expect("no archive").is_original());
        let mark_file = activate(&copy).expect("a mark file, at once");
        assert!(!mark_file.was_original());
        mark_file.ready();
        // Its client is noted with the id of the file.
        let client = ClientIdentity { client_id: 5, driver_start_timestamp: 1, driver_pid: 77 };
        mark_file.note_client(&client);
        kill(&copy, mark_file);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn positions_count_only_if_the_owner_was_killed() {
    let dir = tempfile::tempdir().expect("a directory");
    let mark_file = Arc::new(activate(&dir).expect("a mark file"));
    mark_file.ready();
    let _slot = PositionSlot::claim(&mark_file, 3.into(), 640).expect("a slot");
    // Java's archive was the last one, or the machine was started again since.
    let patches: [(usize, &[u8]); 2] = [(START_OFFSET, &[1; 8]), (BOOT_ID_OFFSET, b"x")];
    for (offset, bytes) in patches {
        let other = killed(&dir);
        patch(&other, offset, bytes);
        patch(&other, ACTIVITY_OFFSET, &0_i64.to_le_bytes());
        make_old(&other);
        let mark_file = activate(&other).expect("a mark file");
        assert!(mark_file.killed_positions().is_empty());
        assert_eq!(positions::read(&fs::read(path(&other)).expect("a file")), HashMap::new());
    }
}

#[test]
fn long_texts_leave_no_space_for_positions() {
    let dir = tempfile::tempdir().expect("a directory");
    let channel = format!("aeron:udp?endpoint=localhost:8010|alias={}", "x".repeat(4000));
    let mut settings = settings(dir.path());
    settings.set_control_channel(&channel).expect("a channel");
    let mark_file = Arc::new(activate_with(&settings).expect("a mark file"));
    assert!(PositionSlot::claim(&mark_file, 0.into(), 0).is_none());
    mark_file.forget_killed_positions(|_| false);
    assert_eq!(read(&dir).control_channel, channel);
}
