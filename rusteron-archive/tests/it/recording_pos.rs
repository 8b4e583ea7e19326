//! Finding the counters of recordings. Their keys are made up here: no archive is needed.

use rusteron_archive::RecordingPos;
use rusteron_client::{Aeron, Context, Counter};
use rusteron_media_driver::MediaDriver;

const TYPE_ID: i32 = 100;

const SESSION_ID: i32 = -7;

/// Adds the counter that an archive shows for a recording.
fn recording(aeron: &Aeron, recording_id: i64, archive_id: i64) -> Counter {
    let source = b"aeron:ipc";
    let mut key = recording_id.to_le_bytes().to_vec();
    key.extend(SESSION_ID.to_le_bytes());
    key.extend((source.len() as i32).to_le_bytes());
    key.extend(source);
    key.extend(archive_id.to_le_bytes());
    aeron.add_counter(TYPE_ID, &key, "a recording").expect("a counter")
}

const fn can_be_shared<T: Send + Sync>() {}

const _: () = can_be_shared::<RecordingPos>();

#[test]
fn find_by_archive_id() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let mut context = Context::new().expect("a context");
    context.set_dir(driver.aeron_dir()).expect("a directory");
    let aeron = Aeron::connect(context).expect("a client");
    let counters = [41, 42].map(|archive_id| recording(&aeron, 0, archive_id));
    for (counter, archive_id) in counters.iter().zip([41, 42]) {
        let by_id = RecordingPos::find_by_recording_id(&aeron, 0, Some(archive_id));
        let by_session = RecordingPos::find_by_session_id(&aeron, SESSION_ID, Some(archive_id));
        for found in [by_id, by_session] {
            let found = found.expect("a counter");
            assert_eq!(found.counter_id(), counter.counter_id());
            assert_eq!((found.recording_id(), found.archive_id()), (0, Some(archive_id)));
            assert_eq!((found.session_id(), found.source_identity()), (SESSION_ID, "aeron:ipc"));
            assert!(found.is_active());
        }
    }
    assert!(RecordingPos::find_by_recording_id(&aeron, 0, Some(43)).is_none());
    assert!(RecordingPos::find_by_recording_id(&aeron, 1, Some(41)).is_none());
    assert!(RecordingPos::find_by_session_id(&aeron, SESSION_ID, Some(43)).is_none());
    assert!(RecordingPos::find_by_recording_id(&aeron, 0, None).is_some());
}
