//! Tools on the files of an archive, beside Java's `ArchiveTool` of the C code's release.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::SystemTime;

use rusteron_archive::RecordingId;
use rusteron_archive_server::offline::{
    ArchiveEditor, ArchiveFiles, LastFragment, RecordingState, VerifyOptions,
};
use rusteron_archive_server::{Checksum, ServerErrorKind};
use rusteron_test_support::archive::{record, replay_all};
use rusteron_test_support::cluster::has_compiled_aeron;
use rusteron_test_support::{Finished, command, has_java, java_run, run};
use tempfile::TempDir;

use crate::support::{Fixture, await_stop, recorded};

const CRC_32: &str = "io.aeron.archive.checksum.Crc32";
const CATALOG: &str = "archive.catalog";
/// Offsets in an entry.
const STATE: u64 = 4;
const CHECKSUM: usize = 8;
const STOP_TIMESTAMP: usize = 64;
const START_POSITION: u64 = 72;
const STOP_POSITION: u64 = 80;
const SEGMENT: u64 = 128 * 1024;

/// Runs Java's tool, and says yes to all of its questions.
fn tool(dir: &Path, arguments: &[&str]) -> Finished {
    let script = java_run();
    let dir = dir.to_str().expect("a path");
    let all = [&["io.aeron.archive.ArchiveTool", dir], arguments].concat();
    let mut command = command(script.to_str().expect("a path"), all);
    let answers = tempfile::NamedTempFile::new().expect("a file");
    fs::write(answers.path(), "y\n").expect("an answer");
    command.env("RUSTERON_JAVA_AERON", "compiled").stdin(File::open(answers.path()).expect("it"));
    run(command)
}

/// The files of an archive that has ended, with so many recordings of two segments.
fn recordings(count: i64) -> (Fixture, TempDir) {
    let mut fixture = Fixture::launch_with(|context| {
        context.set_record_checksum(Some(Checksum::Crc32)).expect("a checksum");
    });
    let archive = fixture.connect();
    for expected in 0..count {
        let (publication, id, position) = record(&archive, 1500);
        assert_eq!((id, position as u64 > SEGMENT), (expected.into(), true));
        drop(publication);
        await_stop(&archive, id);
    }
    drop(archive);
    fixture.take().close().expect("a good end");
    let dir = copy(&fixture.archive_dir());
    (fixture, dir)
}

fn copy(from: &Path) -> TempDir {
    let to = tempfile::tempdir().expect("a directory");
    for entry in fs::read_dir(from).expect("the directory") {
        let entry = entry.expect("a file");
        fs::copy(entry.path(), to.path().join(entry.file_name())).expect("a copy");
    }
    to
}

fn write(dir: &Path, name: &str, offset: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(dir.join(name)).expect("a file");
    file.write_all_at(bytes, offset).expect("a write");
}

fn read(dir: &Path, name: &str) -> Vec<u8> {
    fs::read(dir.join(name)).expect("a file")
}

/// The offset of a recording's entry.
fn entry(dir: &Path, id: i64) -> u64 {
    let catalog = read(dir, CATALOG);
    let mut offset = 32;
    for _ in 0..id {
        offset +=
            32 + i32::from_le_bytes(*catalog[offset..].first_chunk().expect("a length")) as usize;
    }
    offset as u64
}

fn set(dir: &Path, id: i64, field: u64, bytes: &[u8]) {
    write(dir, CATALOG, entry(dir, id) + field, bytes);
}

fn names(dir: &Path) -> BTreeSet<String> {
    let names = fs::read_dir(dir).expect("the directory");
    names.map(|entry| entry.expect("a file").file_name().into_string().expect("UTF-8")).collect()
}

/// The catalog without times, and without the checksums, which Java's tool does not renew.
fn comparable_catalog(dir: &Path, count: i64) -> Vec<u8> {
    let mut catalog = read(dir, CATALOG);
    for id in 0..count {
        let entry = entry(dir, id) as usize;
        catalog[entry + CHECKSUM..][..4].fill(0);
        catalog[entry + STOP_TIMESTAMP..][..8].fill(0);
    }
    catalog
}

/// Damages recordings 1 to 10, each in another way.
fn damage(dir: &Path) {
    let last = |id: i64| format!("{id}-{SEGMENT}.rec");
    write(dir, &last(1), 96 + 20, &[77, 0, 0, 0]); // term id
    write(dir, "2-0.rec", 32, &[77]); // payload
    write(dir, "3-0.rec", 96 + 16, &[77, 0, 0, 0]); // stream id
    set(dir, 4, START_POSITION, &33_i64.to_le_bytes());
    set(dir, 5, STOP_POSITION, &(-1_i64).to_le_bytes());
    set(dir, 6, STOP_POSITION, &(4 * SEGMENT as i64).to_le_bytes());
    // Java's tool does not ask the checksum where the recording ends.
    set(dir, 6, CHECKSUM as u64, &[0; 4]);
    fs::remove_file(dir.join(last(7))).expect("a segment");
    set(dir, 8, STATE, &[0]);
    set(dir, 9, STATE, &[2]);
    // A frame across pages, of which the second page has only zeros, and nothing behind it.
    set(dir, 10, STOP_POSITION, &(-1_i64).to_le_bytes());
    write(dir, &last(10), 4096, &vec![0; SEGMENT as usize - 4096]);
    set(dir, 11, STOP_POSITION, &96_i64.to_le_bytes());
}

const COUNT: i64 = 12;

#[test]
fn verdicts_and_repairs_are_java_s() {
    if !has_java() || !has_compiled_aeron() {
        return;
    }
    let (_fixture, damaged) = recordings(COUNT);
    damage(damaged.path());
    for (is_deep, invalid) in [(false, &[1, 4, 6, 7][..]), (true, &[1, 2, 3, 4, 5, 6, 7, 10, 11])] {
        let (ours, java) = (copy(damaged.path()), copy(damaged.path()));
        let mut options = VerifyOptions::default();
        options.last_fragment = Some(LastFragment::Truncate);
        options.all_segments = is_deep;
        options.checksum = is_deep.then_some(Checksum::Crc32);
        let mut editor = ArchiveEditor::open(ours.path()).expect("the files");
        let mut verdicts = BTreeMap::new();
        for recording in editor.files().recordings().to_vec() {
            let verified = editor.files().verify(&recording, &options);
            let is_invalid = verified.findings.iter().any(|finding| finding.invalidates);
            verdicts.insert(recording.recording_id, (!is_invalid, format!("{verified:?}")));
            editor.repair(&verified).expect("a repair");
        }
        drop(editor);
        let arguments: &[&str] =
            if is_deep { &["verify", "-a", "-checksum", CRC_32] } else { &["verify"] };
        let finished = tool(java.path(), arguments);
        assert_eq!(finished.status.code(), Some(255), "{finished:#?}");
        for (id, (is_valid, verified)) in verdicts {
            let has = |text: &str| finished.stdout.contains(&format!("(recordingId={id}){text}"));
            let is_skipped = has(" skipping: DELETED");
            assert_eq!(
                (has(" OK") || is_skipped, is_skipped),
                (is_valid, id == 9),
                "{verified}\n{finished:#?}"
            );
            assert_eq!(!is_valid, invalid.contains(&id.get()), "{verified}");
        }
        assert_eq!(comparable_catalog(ours.path(), COUNT), comparable_catalog(java.path(), COUNT));
        assert_eq!(names(ours.path()), names(java.path()));
        if !is_deep {
            for name in names(ours.path()).iter().filter(|name| name.ends_with(".rec")) {
                assert!(read(ours.path(), name) == read(java.path(), name), "{name}");
            }
        }
    }
}

#[test]
fn descriptions_are_java_s() {
    if !has_java() || !has_compiled_aeron() {
        return;
    }
    let (_fixture, dir) = recordings(2);
    set(dir.path(), 1, STATE, &[0]);
    let described = tool(dir.path(), &["describe-all"]);
    let ms = |time: SystemTime| {
        time.duration_since(SystemTime::UNIX_EPOCH).expect("later than 1970").as_millis()
    };
    let files = ArchiveFiles::open(dir.path()).expect("the files");
    assert_eq!(files.recordings().len(), 2);
    for entry in files.recordings() {
        let state =
            entry.state.map_or_else(String::new, |state| format!("{state:?}").to_uppercase());
        let expected = format!(
            "recordingId={}|startTimestamp={}|stopTimestamp={}|startPosition={}|stopPosition={}|initialTermId={}|\
             segmentFileLength={}|termBufferLength={}|mtuLength={}|sessionId={}|streamId={}|strippedChannel='{}'|\
             originalChannel='{}'|sourceIdentity='{}'|{state}",
            entry.recording_id,
            ms(entry.start_time),
            ms(entry.stop_time.expect("a time")),
            entry.start_position,
            entry.stop_position.expect("a position"),
            entry.initial_term_id,
            entry.segment_file_length,
            entry.term_buffer_length,
            entry.mtu_length,
            entry.session_id,
            entry.stream_id,
            entry.stripped_channel,
            entry.original_channel,
            entry.source_identity,
        );
        assert!(described.stdout.contains(&expected), "{expected}\n{described:#?}");
    }
}

#[test]
fn compaction_and_orphans_are_java_s() {
    if !has_java() || !has_compiled_aeron() {
        return;
    }
    let (_fixture, dir) = recordings(5);
    set(dir.path(), 1, STATE, &[0]);
    set(dir.path(), 3, STATE, &[2]);
    // As detaching segments and a truncation leave it.
    set(dir.path(), 0, START_POSITION, &(SEGMENT as i64).to_le_bytes());
    set(dir.path(), 2, STOP_POSITION, &96_i64.to_le_bytes());
    for name in ["2-524288.rec", "4-262144.rec", "99-0.rec", "4-0.rec.del", "4-x"] {
        File::create(dir.path().join(name)).expect("a file");
    }
    let (ours, java) = (copy(dir.path()), copy(dir.path()));
    let mut editor = ArchiveEditor::open(ours.path()).expect("the files");
    assert_eq!(editor.files().unknown_segments(), ["99-0.rec"]);
    let orphans = editor.delete_orphaned_segments(Some(2.into())).expect("orphans");
    assert_eq!(orphans, ["2-131072.rec", "2-524288.rec"]);
    let orphans = editor.delete_orphaned_segments(None).expect("orphans");
    let before = names(ours.path());
    assert_eq!(orphans[..1], ["0-0.rec"]);
    let compaction = editor.compact().expect("a compaction");
    assert_eq!(compaction.recordings, [1, 3]);
    let segments = ["1-0.rec", "1-131072.rec", "3-0.rec", "3-131072.rec"];
    assert_eq!(compaction.segments, segments);
    assert_eq!(before.len() - segments.len(), names(ours.path()).len());
    let ids: Vec<_> = editor.files().recordings().iter().map(|it| it.recording_id).collect();
    assert_eq!(ids, [0, 2, 4]);

    tool(java.path(), &["delete-orphaned-segments"]).assert_exit_code(0);
    let text = format!("deleted 2 records and reclaimed {} bytes", compaction.catalog_bytes);
    let finished = tool(java.path(), &["compact"]);
    assert!(finished.stdout.contains(&text), "{finished:#?}");
    assert_eq!(names(ours.path()), names(java.path()));
    assert!(read(ours.path(), CATALOG) == read(java.path(), CATALOG));
}

#[test]
fn stop_position_that_a_checksum_contradicts_is_found_again() {
    let (_fixture, dir) = recordings(1);
    let offset = entry(dir.path(), 0) as usize + STOP_POSITION as usize;
    let before = read(dir.path(), CATALOG);
    let stop = i64::from_le_bytes(*before[offset..].first_chunk().expect("a position"));
    // Before the end, behind it in the last segment, and behind all segments.
    let flips = [stop ^ 0x10000, stop ^ 0x20, stop ^ 0x40_0000].map(i64::to_le_bytes);
    for flipped in flips {
        set(dir.path(), 0, STOP_POSITION, &flipped);
        let mut editor = ArchiveEditor::open(dir.path()).expect("the files");
        let verify = |editor: &ArchiveEditor, checksum| {
            let mut options = VerifyOptions::default();
            options.checksum = checksum;
            editor.files().verify(editor.files().recording(0.into()).expect("it"), &options)
        };
        let verified = verify(&editor, None);
        let [finding] = &verified.findings[..] else { panic!("{verified:?}") };
        assert!(finding.to_string().contains("but frames end at"), "{finding}");
        editor.repair(&verified).expect("a repair");
        assert_eq!(read(dir.path(), CATALOG)[offset..][..8], before[offset..][..8]);
        let verified = verify(&editor, Some(Checksum::Crc32));
        assert!(verified.findings.is_empty(), "{verified:?}");
    }
    // An operator can also believe it.
    set(dir.path(), 0, STOP_POSITION, &flips[0]);
    let mut editor = ArchiveEditor::open(dir.path()).expect("the files");
    assert!(editor.mark_valid(0.into()).expect("an edit"));
    assert!(!editor.mark_valid(0.into()).expect("no edit"));
}

#[test]
fn compaction_keeps_the_mode_of_the_catalog() {
    use std::os::unix::fs::PermissionsExt;

    let (_fixture, dir) = recordings(1);
    let catalog = dir.path().join(CATALOG);
    for mode in [0o640, 0o600, 0o666] {
        fs::set_permissions(&catalog, fs::Permissions::from_mode(mode)).expect("a mode");
        ArchiveEditor::open(dir.path()).and_then(|mut editor| editor.compact()).expect("an edit");
        assert_eq!(fs::metadata(&catalog).expect("it").permissions().mode() & 0o777, mode);
    }
}

#[test]
fn server_starts_on_what_tools_leave() {
    let (mut fixture, _) = recordings(3);
    let dir = fixture.archive_dir();
    let (mut catalog, offset) = (read(&dir, CATALOG), entry(&dir, 1) as usize);
    let mut editor = ArchiveEditor::open(&dir).expect("the files");
    assert!(editor.mark_invalid(1.into()).expect("an edit"));
    assert!(!editor.mark_invalid(1.into()).expect("no edit"));
    assert_eq!(
        editor.files().recording(1.into()).expect("it").state,
        Some(RecordingState::Invalid)
    );
    assert!(editor.mark_valid(1.into()).expect("an edit"));
    assert!(read(&dir, CATALOG) == catalog);
    catalog[offset + 4] = 0;
    assert!(editor.mark_invalid(1.into()).expect("an edit"));
    assert!(read(&dir, CATALOG) == catalog);
    let error = editor.mark_invalid(7.into()).expect_err("no recording").to_string();
    assert_eq!(error, "invalid argument: there is no recording 7");
    // No server starts while an editor is open.
    let error = fixture.try_launch().expect_err("an editor");
    assert_eq!(error.kind(), ServerErrorKind::ActiveArchive);
    editor.compact().expect("a compaction");
    drop(editor);

    fixture.restart();
    let error = ArchiveEditor::open(&dir).expect_err("a server");
    assert_eq!(error.kind(), ServerErrorKind::ActiveArchive);
    let error = ArchiveFiles::open_stopped(&dir).expect_err("a server");
    assert!(error.message().ends_with("in this process: end it first"), "{error}");
    assert_eq!(ArchiveFiles::open(&dir).expect("the files").recordings().len(), 2);
    let archive = fixture.connect();
    assert_eq!(archive.recording(1.into()).expect("an answer"), None);
    assert_eq!(replay_all(&archive, 2.into(), recorded()).len(), 1500);
}

#[test]
fn findings_name_file_and_position() {
    let (_fixture, dir) = recordings(COUNT);
    damage(dir.path());
    fs::remove_file(dir.path().join("0-0.rec")).expect("a segment");
    for (name, length) in [("5-0.rec", 130), ("8-0.rec", 96)] {
        let file = OpenOptions::new().write(true).open(dir.path().join(name)).expect("a segment");
        file.set_len(length).expect("a cut");
    }
    let files = ArchiveFiles::open_stopped(dir.path()).expect("the files");
    let mut options = VerifyOptions::default();
    options.all_segments = true;
    let findings = |id: i64| {
        let recording = files.recording(RecordingId::new(id)).expect("a recording");
        let found = files.verify(recording, &options).findings;
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    for (id, expected) in [
        (0, "0-0.rec: is missing, as are all segments up to position 131072"),
        (1, "1-131072.rec: position 131168: wrong term id 77"),
        (2, ""),
        (3, "3-0.rec: position 96: wrong stream id 77"),
        (4, "recording 4: start position 33: must be a multiple of 32"),
        (5, "5-0.rec: position 96: the bytes end within the frame"),
        (6, "6-131072.rec: start or stop position is behind the last segment's end, 262143"),
        (7, "7-0.rec: start or stop position is behind the last segment's end, 131071"),
        (8, "8-0.rec: position 96: frames end here, before the segment does"),
        (9, ""),
        (10, "10-131072.rec: position 135104: the last frame crosses a page boundary"),
        (11, "stop position 96, but frames end at "),
    ] {
        let found = findings(id);
        assert!(
            found.starts_with(expected) && found.is_empty() == expected.is_empty(),
            "{id}: {found}"
        );
    }
    let error = ArchiveFiles::open(dir.path().join("none")).expect_err("no directory");
    assert!(matches!(error.kind(), ServerErrorKind::Io(_)), "{error}");
    let empty = tempfile::tempdir().expect("a directory");
    let error = ArchiveFiles::open(empty.path()).expect_err("no catalog");
    assert!(error.message().ends_with("not an archive's: it has no archive.catalog"), "{error}");
    assert!(names(empty.path()).is_empty());
}

#[test]
fn editor_leaves_an_interrupted_migration_to_the_archive() {
    let (_fixture, dir) = recordings(1);
    fs::write(dir.path().join("archive-migration.intent"), "cut").expect("a file");
    let error = ArchiveEditor::open(dir.path()).expect_err("a migration");
    assert_eq!(error.kind(), ServerErrorKind::InvalidRecording);
    assert!(error.to_string().contains("start the archive once"), "{error}");
}
