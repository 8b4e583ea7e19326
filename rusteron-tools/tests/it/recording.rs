//! Metrics of an archive's recordings.

use std::path::Path;

use rusteron_client::{Aeron, Counter};

use crate::metrics::samples;
use crate::support::{
    STREAM_ID, await_that, connect, connected_pair, launch, offer, run, rusteron, text, udp_channel,
};

/// The counter of a recording of [`STREAM_ID`], as an archive's client adds it.
pub(crate) fn recording(archive: &Aeron, session_id: i32, position: i64) -> Counter {
    let source = "127.0.0.1:40123";
    let mut key = 3_i64.to_le_bytes().to_vec();
    key.extend(session_id.to_le_bytes());
    key.extend((source.len() as i32).to_le_bytes());
    key.extend(source.as_bytes());
    key.extend(7_i64.to_le_bytes());
    let label = format!("rec-pos: 3 {session_id} {STREAM_ID} aeron:ipc - archiveId=7");
    let counter = archive.add_counter(100, &key, &label).expect("a counter");
    counter.set(position);
    counter
}

/// The only sample of a recording's metric: its value, unless its labels are not those of [`recording`].
fn value(metrics: &str, name: &str, archive: &Aeron, session_id: i32) -> Option<i64> {
    let samples = samples(metrics, name);
    let labels = format!(
        "{{client_id=\"{}\",archive_id=\"7\",recording_id=\"3\",session_id=\"{session_id}\",\
         stream_id=\"{STREAM_ID}\",channel=\"aeron:ipc\",source=\"127.0.0.1:40123\"}}",
        archive.client_id()
    );
    assert!(samples.keys().all(|other| *other == labels), "{labels} in {samples:?}");
    samples.get(&*labels).map(|value| value.parse().expect("a number"))
}

fn metrics(dir: &Path) -> String {
    text(dir, &["stat", "--openmetrics"])
}

const LAG: &str = "aeron_archive_recording_lag_bytes";

#[test]
fn lag_is_to_publisher() {
    for channel in ["aeron:ipc".to_owned(), udp_channel()] {
        let driver = launch();
        let dir = driver.aeron_dir();
        let archive = connect(dir);
        let (mut publication, _subscription) = connected_pair(&archive, &channel);
        let session_id = publication.session_id();
        let recorded = offer(&mut publication, &[1; 100]);
        let published = offer(&mut publication, &[2; 200]);
        let _counter = recording(&archive, session_id, recorded);
        await_that("the lag", || {
            let metrics = metrics(dir);
            let value = |name| value(&metrics, name, &archive, session_id);
            value("aeron_archive_recording_position_bytes_total") == Some(recorded)
                && value(LAG) == Some(published - recorded)
        });
    }
}

#[test]
fn lag_to_other_host_is_what_was_received() {
    let (publishers, archives) = (launch(), launch());
    let archive = connect(archives.aeron_dir());
    let channel = udp_channel();
    let subscription = archive.add_subscription(&channel, STREAM_ID).expect("a subscription");
    let publisher = connect(publishers.aeron_dir());
    let mut publication = publisher.add_publication(&channel, STREAM_ID).expect("a publication");
    await_that("the image", || subscription.is_connected() && publication.is_connected());
    let session_id = publication.session_id();
    let recorded = offer(&mut publication, &[1; 100]);
    let published = offer(&mut publication, &[2; 200]);
    let _counter = recording(&archive, session_id, recorded);
    await_that("the lag", || {
        let metrics = metrics(archives.aeron_dir());
        value(&metrics, LAG, &archive, session_id) == Some(published - recorded)
    });
}

#[test]
fn lag_of_unknown_stream_is_absent() {
    let driver = launch();
    let dir = driver.aeron_dir();
    let archive = connect(dir);
    // Both sources have the same session and stream.
    let (ipc, udp) = ("aeron:ipc?session-id=7", format!("{}|session-id=7", udp_channel()));
    let (_publication, _subscription) = connected_pair(&archive, ipc);
    let counter = recording(&archive, 7, 0);
    await_that("the lag", || value(&metrics(dir), LAG, &archive, 7) == Some(0));
    let other = connected_pair(&archive, &udp);
    await_that("no lag", || value(&metrics(dir), LAG, &archive, 7).is_none());
    drop((counter, other));
    // An archive reads the streams that it records.
    let stranger = connect(dir);
    let _counter = recording(&stranger, 7, 64);
    let position = "aeron_archive_recording_position_bytes_total";
    await_that("the position", || value(&metrics(dir), position, &stranger, 7) == Some(64));
    assert_eq!(value(&metrics(dir), LAG, &stranger, 7), None);
}

#[test]
fn disk_of_archive_has_free_space() {
    let home = tempfile::tempdir().expect("a directory");
    let archive_dir = home.path().to_str().expect("UTF-8");
    // The disk may be the reason why there is no driver.
    let dir = home.path().join("aeron");
    let metrics = text(&dir, &["stat", "--openmetrics", "--archive-dir", archive_dir]);
    let name = "aeron_archive_disk_free_bytes";
    let samples = samples(&metrics, name);
    let labels = format!("{{archive_dir=\"{archive_dir}\"}}");
    assert!(samples[&*labels].parse::<u64>().expect("bytes") > 0, "{metrics}");

    let driver = launch();
    let mut command = rusteron(driver.aeron_dir(), ["stat", "--openmetrics"]);
    command.env("AERON_ARCHIVE_DIR", &dir);
    let finished = run(command);
    finished.assert_exit_code(1);
    assert!(finished.stderr.starts_with(&format!("rusteron: {}: ", dir.display())), "{finished:?}");
    assert!(finished.stdout.contains("\naeron_up 1\n") && !finished.stdout.contains(name));
}
