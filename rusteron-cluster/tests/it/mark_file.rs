//! Mark files of service containers.

use std::fs::{self, File};
#[cfg(unix)]
use std::io::ErrorKind;
use std::path::Path;
#[cfg(unix)]
use std::process::Command;
#[cfg(unix)]
use std::sync::mpsc;
#[cfg(unix)]
use std::thread;
#[cfg(unix)]
use std::time::Instant;
use std::time::{Duration, SystemTime};

use rusteron_cluster::codec::mark_file::{
    ComponentType, ENDED, HEADER_LENGTH, MarkFileHeader, STARTING, VERSION, VERSION_FAILED,
};
use rusteron_cluster::mark_file::MarkFile;
use rusteron_cluster::{ClusterError, ClusterErrorKind, ServiceContext};
use rusteron_core::cnc::error_log;
use rusteron_core::mark_file::{self, Former, MappedFile};
#[cfg(unix)]
use rusteron_test_support::{DEADLINE, ForkedChild};
use tempfile::TempDir;

const PAGE_SIZE: usize = 4096;
const ERROR_BUFFER_LENGTH: usize = 1024 * 1024;
/// Offsets in the file.
const VERSION_OFFSET: usize = 8;
const ACTIVITY: usize = 16;
const PID: usize = 32;

/// Activates the mark file of service 0, in a directory of its own.
fn activate_in(dir: &Path, cluster_dir: &Path) -> rusteron_cluster::Result<MarkFile> {
    activate_as(&context(dir, cluster_dir))
}

fn activate_as(context: &ServiceContext) -> rusteron_cluster::Result<MarkFile> {
    MarkFile::activate(context, Path::new("/dev/shm/node-0"), PAGE_SIZE)
}

fn context(dir: &Path, cluster_dir: &Path) -> ServiceContext {
    let mut context = ServiceContext::new();
    context.set_mark_file_dir(dir).unwrap().set_cluster_dir(cluster_dir).unwrap();
    context.set_error_buffer_length(ERROR_BUFFER_LENGTH).unwrap().set_cluster_id(3).unwrap();
    context.set_service_name("orders").unwrap();
    context
}

fn activate(dir: &TempDir) -> rusteron_cluster::Result<MarkFile> {
    activate_in(dir.path(), dir.path())
}

fn read(path: &Path) -> MarkFileHeader {
    MarkFileHeader::decode(&fs::read(path).expect("a file")).expect("a mark file")
}

fn errors(path: &Path) -> Vec<(String, i32)> {
    let bytes = fs::read(path).expect("a file");
    let entries = error_log::entries(&bytes[HEADER_LENGTH..][..ERROR_BUFFER_LENGTH]);
    entries.into_iter().map(|entry| (entry.text, entry.observation_count)).collect()
}

/// Changes a file in place.
fn patch(path: &Path, offset: usize, bytes: &[u8]) {
    let mut content = fs::read(path).expect("a file");
    content[offset..][..bytes.len()].copy_from_slice(bytes);
    fs::write(path, content).expect("written");
}

/// Lets the file look as if nobody had written to it for a while.
fn make_old(path: &Path) {
    let time = SystemTime::now() - Duration::from_secs(60);
    File::options().write(true).open(path).and_then(|f| f.set_modified(time)).expect("a time");
}

#[track_caller]
fn assert_refused(dir: &TempDir, kind: ClusterErrorKind, text: &str) {
    let error = activate(dir).expect_err("refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

#[test]
fn life_of_mark_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let mark_file = activate(&dir).expect("a mark file");
    let path = mark_file.path().to_owned();
    assert_eq!(path.file_name(), Some("cluster-mark-service-0.dat".as_ref()));
    let length = fs::metadata(&path).expect("a file").len();
    assert_eq!(length, (HEADER_LENGTH + ERROR_BUFFER_LENGTH) as u64);
    let starting = read(&path);
    assert_eq!((starting.version, starting.activity_timestamp), (0, STARTING));
    assert_eq!(starting.component_type, ComponentType::Container);
    assert_eq!(starting.pid, i64::from(std::process::id()));
    assert_eq!((starting.member_id, starting.candidate_term_id), (-1, -1));
    assert_eq!((starting.cluster_id, &*starting.service_name), (3, "orders"));
    mark_file.ready();
    mark_file.set_member_id(2.into());
    let ready = read(&path);
    assert_eq!((ready.version, ready.member_id), (VERSION, 2));
    assert!(ready.activity_timestamp >= ready.start_timestamp);
    mark_file.record_error("full");
    mark_file.record_error("late");
    mark_file.record_error("full");
    assert_eq!(errors(&path), [("full".to_owned(), 2), ("late".to_owned(), 1)]);
    drop(mark_file);
    assert_eq!(read(&path), MarkFileHeader { activity_timestamp: ENDED, ..ready });

    // The next container saves the errors, and begins with none.
    let next = activate(&dir).expect("a mark file");
    assert_eq!((read(&path).version, read(&path).activity_timestamp), (VERSION, STARTING));
    assert!(errors(&path).is_empty());
    let names = fs::read_dir(dir.path()).expect("a directory").map(|entry| entry.expect("one"));
    let saved =
        names.map(|entry| entry.path()).find(|path| path.extension() == Some("log".as_ref()));
    let saved = fs::read_to_string(saved.expect("saved errors")).expect("a text");
    assert!(saved.starts_with("2 observations from ") && saved.contains("\nlate\n"), "{saved}");
    next.failed();
    assert_eq!((read(&path).version, read(&path).activity_timestamp), (VERSION_FAILED, ENDED));
    drop(next);
    let _ = activate(&dir).expect("a mark file after a failed start");
}

#[test]
fn full_error_log_has_the_first_errors() {
    let dir = tempfile::tempdir().expect("a directory");
    let mark_file = activate(&dir).expect("a mark file");
    for number in 0..300 {
        mark_file.record_error(&format!("{number} {}", "x".repeat(7000)));
    }
    let errors = errors(mark_file.path());
    assert!((140..150).contains(&errors.len()), "{}", errors.len());
    assert!(errors.iter().zip(0..).all(|(it, number)| it.0.starts_with(&format!("{number} "))));
}

#[test]
fn second_container_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = activate(&dir).expect("a mark file");
    let path = first.path().to_owned();
    assert_refused(&dir, ClusterErrorKind::ActiveMarkFile, "in this process");
    first.ready();
    assert_refused(&dir, ClusterErrorKind::ActiveMarkFile, "in this process");
    drop(first);
    // Another process is alive, or was nine seconds ago.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let now = i64::try_from(now.as_millis()).expect("a time");
    for time in [now + 60_000, now, now - 5_000] {
        patch(&path, ACTIVITY, &time.to_le_bytes());
        assert_refused(&dir, ClusterErrorKind::ActiveMarkFile, "alive");
        assert_eq!(read(&path).activity_timestamp, time);
    }
    for time in [now - 10_000, 0, i64::MIN, -1] {
        patch(&path, ACTIVITY, &time.to_le_bytes());
        let _ = activate(&dir).expect("a mark file");
    }
}

#[test]
fn dead_starter_is_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = activate(&dir).expect("a mark file").path().to_owned();
    patch(&path, ACTIVITY, &STARTING.to_le_bytes());
    patch(&path, PID, &i64::from(i32::MAX).to_le_bytes());
    // It may be starting at this moment.
    assert_refused(&dir, ClusterErrorKind::ActiveMarkFile, "starting");
    make_old(&path);
    if cfg!(target_os = "linux") {
        drop(activate(&dir).expect("a mark file"));
        // The process that is alive is the parent of this one, such as Cargo.
        patch(&path, ACTIVITY, &STARTING.to_le_bytes());
        patch(&path, PID, &1_i64.to_le_bytes());
        make_old(&path);
    }
    assert_refused(&dir, ClusterErrorKind::ActiveMarkFile, "starting");
}

/// The first starter has claimed the file and not written its header yet when the others come.
#[test]
fn starters_agree_on_the_owner_at_any_step() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("mark.dat");
    fs::write(&path, [0; HEADER_LENGTH]).expect("written");
    let (dead, now) = (i64::from(i32::MAX), SystemTime::UNIX_EPOCH.elapsed().expect("a time"));
    let ended = now.as_millis() as i64 - 60_000;
    patch(&path, ACTIVITY, &ended.to_le_bytes());
    patch(&path, PID, &dead.to_le_bytes());
    let file = File::options().read(true).write(true).open(&path).expect("a file");
    let map = MappedFile::new(&file, HEADER_LENGTH).expect("a mapping");
    let former = |activity_timestamp| Former {
        activity_timestamp,
        pid: dead,
        is_starting: activity_timestamp == STARTING,
        is_old: true,
        has_ended: false,
    };
    mark_file::claim(&map, former(ended), 101).expect("the file");
    for late in [ended, STARTING] {
        mark_file::claim(&map, former(late), 102).expect_err("another owner");
    }
}

#[test]
fn unfinished_file_is_made_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("cluster-mark-service-0.dat");
    fs::write(&path, [0; 100]).expect("written");
    let unfinished = File::open(&path).expect("a file");
    assert_refused(&dir, ClusterErrorKind::ActiveMarkFile, "making");
    make_old(&path);
    drop(activate(&dir).expect("a mark file"));
    // Another container that takes it over at the same time has the same file.
    assert_eq!(
        unfinished.metadata().expect("a file").len(),
        fs::metadata(&path).expect("it").len()
    );
    // A container that was killed as soon as it had claimed such a file.
    let mut claimed = [0; HEADER_LENGTH];
    claimed[ACTIVITY..][..8].copy_from_slice(&STARTING.to_le_bytes());
    claimed[PID..][..8].copy_from_slice(&i64::from(i32::MAX).to_le_bytes());
    fs::write(&path, claimed).expect("written");
    make_old(&path);
    if cfg!(target_os = "linux") {
        drop(activate(&dir).expect("a mark file"));
    }
    // A file that ends behind the header is made longer.
    let file = File::options().write(true).open(&path).expect("a file");
    file.set_len(HEADER_LENGTH as u64 + 7).expect("a length");
    let mark_file = activate(&dir).expect("a mark file");
    let length = file.metadata().expect("a file").len();
    assert_eq!(length, (HEADER_LENGTH + ERROR_BUFFER_LENGTH) as u64);
    mark_file.record_error("an error");
    assert_eq!(errors(&path), [("an error".to_owned(), 1)]);
}

#[test]
fn other_files_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = activate(&dir).expect("a mark file").path().to_owned();
    let original = fs::read(&path).expect("a file");
    let cases: [(usize, &[u8], &str); 6] = [
        (4, &[111], "schema 111"),
        (4, &[0], "schema 0"),
        (VERSION_OFFSET, &[0, 0, 1, 0], "version 1.0.0"),
        (VERSION_OFFSET + 4, &[1], "another component"),
        (VERSION_OFFSET + 4, &[99], "type 99"),
        (136, &[255; 4], "ends within the header"),
    ];
    for (offset, bytes, text) in cases {
        patch(&path, offset, bytes);
        let before = fs::read(&path).expect("a file");
        assert_refused(&dir, ClusterErrorKind::InvalidMarkFile, text);
        assert!(fs::read(&path).expect("a file") == before, "{text}: the file has changed");
        fs::write(&path, &original).expect("written");
    }
}

/// Calls on another thread, because a pipe without another end can block the caller for ever.
#[cfg(unix)]
fn within_deadline<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(call()));
    receiver.recv_timeout(DEADLINE).expect("an outcome in time")
}

#[cfg(unix)]
fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("the command mkfifo");
    assert!(made.success());
}

#[test]
#[cfg(unix)]
fn pipe_is_refused_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("cluster-mark-service-0.dat");
    make_pipe(&path);
    let home = dir.path().to_owned();
    let refused = within_deadline(move || activate_in(&home, &home).map(drop));
    let error = refused.expect_err("a pipe");
    assert_eq!(error.kind(), ClusterErrorKind::Io(ErrorKind::InvalidInput));
    let text = format!("{}: a pipe is not a regular file", path.display());
    assert!(error.message().ends_with(&text), "{error}");
}

#[cfg(all(unix, feature = "service"))]
#[test]
fn pipe_for_a_recording_log_is_refused_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    make_pipe(&dir.path().join("recording.log"));
    let home = dir.path().to_owned();
    let open = move || rusteron_cluster::RecordedLog::open(&home, &home);
    let error = within_deadline(open).expect_err("a pipe");
    assert_eq!(error.kind(), ClusterErrorKind::Io(ErrorKind::InvalidInput));
    assert!(error.message().ends_with("recording.log: a pipe is not a regular file"), "{error}");
}

#[test]
fn invalid_settings_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let check = |error: ClusterError, text: &str| {
        assert_eq!(error.kind(), ClusterErrorKind::InvalidArgument);
        assert!(error.to_string().contains(text), "{error}");
    };
    let mut long_name = context(dir.path(), dir.path());
    long_name.set_service_name("x".repeat(HEADER_LENGTH)).unwrap();
    check(activate_as(&long_name).expect_err("refused"), "8192 bytes");
    let valid = context(dir.path(), dir.path());
    let error = MarkFile::activate(&valid, Path::new("/dev/shm/node-0"), 5000);
    check(error.expect_err("refused"), "page size 5000");
    assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 0);
}

#[test]
fn link_leads_to_mark_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let (marks, cluster) = (dir.path().join("marks"), dir.path().join("cluster"));
    let link = cluster.join("cluster-mark-service-0.lnk");
    let mark_file = activate_in(&marks, &cluster).expect("a mark file");
    let canonical = marks.canonicalize().expect("a path");
    assert_eq!(fs::read_to_string(&link).expect("a link"), canonical.to_string_lossy());
    assert_eq!(mark_file.path().parent(), Some(&*canonical));
    let _ = activate_in(&cluster, &cluster).expect("a mark file");
    assert!(!link.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_an_error() {
    let Some(disk) = rusteron_test_support::SmallFileSystem::mount("512k") else { return };
    let error = activate_in(disk.path(), disk.path()).expect_err("a full disk");
    assert_eq!(error.kind(), ClusterErrorKind::Io(std::io::ErrorKind::StorageFull), "{error}");
    assert!(!disk.path().join("cluster-mark-service-0.dat").exists());
    // Java makes sparse files: the disk has no space for the zeros.
    let source = tempfile::tempdir().expect("a directory");
    let path = activate(&source).expect("a mark file").path().to_owned();
    let header = fs::read(path).expect("a file")[..HEADER_LENGTH].to_vec();
    let path = disk.path().join("cluster-mark-service-0.dat");
    fs::write(&path, header).expect("written");
    let file = File::options().write(true).open(&path).expect("a file");
    file.set_len((HEADER_LENGTH + ERROR_BUFFER_LENGTH) as u64).expect("a length");
    let error = activate_in(disk.path(), disk.path()).expect_err("a full disk");
    assert_eq!(error.kind(), ClusterErrorKind::Io(std::io::ErrorKind::StorageFull), "{error}");
    assert_eq!(read(&path).activity_timestamp, ENDED);
}

#[cfg(unix)]
mod java {
    use std::process::Command;

    use rusteron_test_support::cluster::{JavaCluster, Options};
    use rusteron_test_support::java_run;

    use super::*;

    /// Runs a command of Aeron's tool.
    fn cluster_tool(dir: &Path, command: &str) -> String {
        let mut tool = Command::new(java_run());
        let output = tool.arg("io.aeron.cluster.ClusterTool").arg(dir).arg(command).output();
        let output = output.expect("the tool starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    #[test]
    fn mark_files_of_java_and_rust() {
        let Some(mut cluster) = JavaCluster::launch(Options::default()) else { return };
        let dir = cluster.node(0).cluster_dir();
        // Java's container is alive.
        let error = activate_in(&dir, &dir).expect_err("refused");
        assert_eq!(error.kind(), ClusterErrorKind::ActiveMarkFile, "{error}");
        let header = read(&dir.join("cluster-mark-service-0.dat"));
        assert_eq!((header.version, header.service_id), (VERSION, 0));
        assert_eq!((header.service_stream_id, header.consensus_module_stream_id), (104, 105));
        assert_eq!(header.aeron_dir, cluster.node(0).aeron_dir().to_string_lossy());
        let module = read(&dir.join("cluster-mark.dat"));
        assert_eq!(module.component_type, ComponentType::ConsensusModule);
        assert_eq!((module.member_id, module.ingress_stream_id), (0, 101));

        // Aeron's tool reads a container of ours, by a link.
        let marks = dir.with_file_name("marks");
        let mut ours = context(&marks, &dir);
        ours.set_service_id(1).unwrap();
        let mark_file = activate_as(&ours).expect("a mark file");
        mark_file.ready();
        mark_file.set_member_id(7.into());
        mark_file.record_error("the book is crossed");
        mark_file.record_error("the book is crossed");
        let described = cluster_tool(&dir, "describe");
        for text in [
            "|componentType=CONTAINER|",
            "|pid=",
            "|archiveStreamId=10|serviceStreamId=104|consensusModuleStreamId=105|",
            "|ingressStreamId=-1|memberId=7|serviceId=1|headerLength=8192|",
            "|errorBufferLength=1048576|clusterId=3|aeronDirectory='/dev/shm/node-0'|",
            "|controlChannel='aeron:ipc?term-length=128k'|ingressChannel=''|serviceName='orders'|",
        ] {
            assert!(described.contains(text), "{text} in {described}");
        }
        let errors = cluster_tool(&dir, "errors");
        assert!(errors.contains("the book is crossed"), "{errors}");
        assert!(errors.contains("2 observations from "), "{errors}");

        // Java's file, which is sparse, is taken over.
        cluster.shut_down();
        let mark_file = activate_in(&dir, &dir).expect("a mark file");
        mark_file.ready();
        mark_file.record_error("after Java");
        let errors = cluster_tool(&dir, "errors");
        assert!(errors.contains("after Java"), "{errors}");
    }
}

#[cfg(unix)]
#[test]
fn forked_child_leaves_it_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let mark_file = activate(&dir).expect("a mark file");
    mark_file.ready();
    let path = mark_file.path().to_owned();
    let before = fs::read(&path).expect("a file");
    // The parent's remains.
    let mut mark_file = Some(mark_file);
    let child = ForkedChild::run(|| {
        let mark_file = mark_file.take().expect("a mark file");
        mark_file.tick();
        mark_file.set_member_id(5.into());
        mark_file.record_error("of the child");
        drop(mark_file);
    });
    let deadline = Instant::now() + DEADLINE;
    child.expect("a child").await_success(deadline).expect("a child that succeeds");
    assert!(fs::read(&path).expect("a file") == before, "the child has written");
    assert_eq!(activate(&dir).unwrap_err().kind(), ClusterErrorKind::ActiveMarkFile);
}
