//! Tests: a catalog goes from Java's archive to this server and back, and Java's tool reads what both have written.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use rusteron_core::dir_access::DirAccess;
use rusteron_test_support::archive::{ArchiveProcess, Options, record};
use rusteron_test_support::{Finished, command, java_run, run};

use crate::catalog::file::CATALOG_NAME;
use crate::catalog::{Catalog, CatalogSettings, NewRecording};
use crate::segment::checksum::Checksum;
use crate::storage::{Directory, SyncLevel};

const CRC_32: &str = "io.aeron.archive.checksum.Crc32";

const OURS: NewRecording<'static> = NewRecording {
    start_position: 96,
    initial_term_id: -7,
    segment_length: 128 << 10,
    term_length: 64 << 10,
    mtu: 1408,
    session_id: 5,
    stream_id: 1003,
    stripped_channel: "aeron:ipc?alias=ours",
    original_channel: "aeron:ipc?term-length=64k|alias=ours",
    source_identity: "aeron:ipc",
};

fn open(dir: &Path, now_ms: i64) -> Catalog {
    let settings = CatalogSettings {
        capacity: 64 << 10,
        sync_level: SyncLevel::None,
        file_sync_level: SyncLevel::None,
        checksum: Some(Checksum::Crc32),
        now_ms,
        positions: HashMap::new(),
        is_original: true,
    };
    let storage = Directory::open(dir, DirAccess::default()).expect("the directory");
    Catalog::open(Arc::new(storage), &settings).expect("the catalog")
}

fn content(dir: &Path) -> Vec<u8> {
    fs::read(dir.join(CATALOG_NAME)).expect("the catalog")
}

fn launch() -> Option<ArchiveProcess> {
    ArchiveProcess::launch_java(Options::default())
}

fn tool(dir: &Path, arguments: &[&str]) -> Finished {
    let script = java_run();
    let dir = dir.to_str().expect("a path");
    let all = [&["io.aeron.archive.ArchiveTool", dir], arguments].concat();
    let finished = run(command(script.to_str().expect("a path"), all));
    finished.assert_exit_code(0);
    finished
}

fn copy(from: &Path, to: &Path) -> io::Result<PathBuf> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(to.to_owned())
}

#[test]
fn catalog_of_java_returns_to_java() {
    let Some(mut archive) = launch() else { return };
    let (publication, id, position) = record(&archive.connect(), 3000);
    drop(publication);
    archive.stop();
    let dir = archive.archive_dir().to_owned();
    tool(&dir, &["checksum", CRC_32, "-a"]);

    let by_java = content(&dir);
    let mut catalog = open(&dir, 1);
    let recorded = *catalog.get(id.into()).expect("Java's recording");
    assert_eq!((recorded.start_position, recorded.stop_position), (0, position));
    assert!(catalog.channel_contains(id.into(), b"aeron:ipc"));
    catalog.set_stopped(id.into(), position, recorded.stop_timestamp).expect("an edit");
    assert_eq!(content(&dir), by_java);

    // An entry of ours between two others, longer and then shorter than before.
    let second = catalog.add(OURS, 2).expect("a recording");
    let third = catalog.add(OURS, 3).expect("a recording");
    for id in [second, third] {
        catalog.set_extended(id, 11.into(), 12.into(), 13).expect("an edit");
        catalog.set_stopped(id, 96, 4).expect("an edit");
    }
    let long = format!("aeron:ipc?alias={}", "x".repeat(1000));
    catalog.update_channel(second, "aeron:ipc?alias=x", &long).expect("an edit");
    catalog.update_channel(second, "aeron:ipc?alias=y", "aeron:ipc?alias=y").expect("an edit");
    let by_us = content(&dir);
    drop(catalog);

    let verified = tool(&dir, &["verify", "-a", "-checksum", CRC_32]);
    let expected = ["(recordingId=0) OK", "(recordingId=1) OK", "(recordingId=2) OK"];
    verified.assert_lines(expected);
    assert_eq!(content(&dir), by_us, "the tool changes nothing");
    let described = tool(&dir, &["describe"]).stdout;
    let ours = "recordingId=2|startTimestamp=3|stopTimestamp=4|startPosition=96|stopPosition=96|initialTermId=-7|\
        segmentFileLength=131072|termBufferLength=65536|mtuLength=1408|sessionId=13|streamId=1003|\
        strippedChannel='aeron:ipc?alias=ours'|originalChannel='aeron:ipc?term-length=64k|alias=ours'|\
        sourceIdentity='aeron:ipc'";
    assert!(described.contains(ours), "{described}");
    assert!(described.contains("originalChannel='aeron:ipc?alias=y'"), "{described}");

    archive.restart();
    let (publication, next, _) = record(&archive.connect(), 10);
    assert_eq!(next, 3);
    drop(publication);
    archive.stop();
    let again = content(&dir);
    let catalog = open(&dir, 5);
    assert_eq!(catalog.get(third).map(|known| known.session_id), Some(13));
    assert_eq!((catalog.next_id(), content(&dir)), (4.into(), again));
}

#[test]
fn killed_recordings_end_where_java_ends_them() {
    let Some(mut archive) = launch() else { return };
    let (publication, id, position) = record(&archive.connect(), 3000);
    archive.kill();
    drop(publication);
    let root = tempfile::tempdir().expect("a directory");
    let ours = copy(archive.archive_dir(), root.path()).expect("a copy");
    let catalog = open(&ours, 6);
    let recovered = *catalog.get(id.into()).expect("the recording");
    assert_eq!((recovered.stop_position, recovered.stop_timestamp), (position, 6));
    drop(catalog);
    let by_us = content(&ours);
    tool(&ours, &["verify", "-a"]).assert_lines(["(recordingId=0) OK"]);
    tool(&ours, &["checksum", CRC_32, "-a"]);
    assert_eq!(content(&ours), by_us, "the tool changes nothing");

    archive.restart();
    let stop = archive.connect().stop_position(id).expect("an answer").expect("it has stopped");
    assert_eq!(stop, position);
    archive.kill();
    // Java leaves the checksum of an entry that it repairs as it was.
    let (java, ours) = (content(archive.archive_dir()), content(&ours));
    assert_eq!(java[32..40], ours[32..40]);
    assert_eq!(java[44..96], ours[44..96]);
    assert_eq!(java[104..], ours[104..]);
}
