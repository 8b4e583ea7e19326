//! Starts and ends of servers.

use std::path::Path;
#[cfg(unix)]
use std::time::Instant;

use rusteron_archive::{Archive, ReplayParams};
use rusteron_archive_server::offline::ArchiveFiles;
use rusteron_archive_server::{
    ArchiveServer, ArchiveServerContext, ArchiveThreadingMode, ServerErrorKind,
};
use rusteron_client::{Aeron, Context, ErrorKind};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::archive::{record, replay_all};
use rusteron_test_support::await_that;
#[cfg(unix)]
use rusteron_test_support::{DEADLINE, ForkedChild};

use crate::support::{Fixture, Turns, await_stop, extend, ipc_context, recorded};

/// Types of the counters of errors, recordings and replays.
const ERRORS: i32 = 101;
const RECORDINGS: i32 = 111;
const REPLAYS: i32 = 112;

fn value(aeron: &Aeron, type_id: i32) -> Option<i64> {
    let mut counters = aeron.counters_reader().iter();
    counters.find(|counter| counter.type_id == type_id).map(|counter| counter.value)
}

#[cfg(unix)]
#[test]
fn files_are_the_users_alone_by_default() {
    use std::os::unix::fs::PermissionsExt;

    let mark_file_dir = tempfile::tempdir().expect("a directory");
    let marks = mark_file_dir.path().join("marks");
    let mut fixture = Fixture::launch_with(|context| {
        context.set_mark_file_dir(&marks).expect("a directory");
    });
    let archive = fixture.connect();
    // More than a segment.
    let (publication, recording_id, _) = record(&archive, 2000);
    let channel = format!("aeron:ipc?alias={}", "x".repeat(500));
    archive.update_channel(recording_id, &channel).expect("a longer entry");
    for dir in [fixture.archive_dir(), marks] {
        let mode = |path: &Path| path.metadata().expect("it").permissions().mode() & 0o777;
        assert_eq!(mode(&dir), 0o700, "{}", dir.display());
        let paths = dir.read_dir().expect("a directory").map(|entry| entry.expect("a file").path());
        let modes: Vec<_> = paths.map(|path| (mode(&path), path)).collect();
        assert!(modes.len() >= 2 && modes.iter().all(|(mode, _)| *mode == 0o600), "{modes:?}");
    }
    drop((publication, archive));
    fixture.take().close().expect("a good end");
}

#[test]
fn caller_runs_invoked_server() {
    let mut fixture = Fixture::launch_with(|context| {
        context.set_threading_mode(ArchiveThreadingMode::Invoker).expect("a mode");
    });
    let turns = Turns::run(fixture.take());
    let archive = fixture.connect();
    let (publication, recording_id, _) = record(&archive, 100);
    assert_eq!(replay_all(&archive, recording_id, recorded()), (0..100).collect::<Vec<_>>());
    drop((publication, archive));
    let server = turns.end();
    assert!(!server.has_ended());
    server.close().expect("a good end");
}

#[test]
fn server_with_threads_is_not_invoked() {
    let mut fixture = Fixture::launch();
    let mut server = fixture.take();
    let error = server.do_work().expect_err("it has a thread");
    assert_eq!(error.kind(), ServerErrorKind::InvalidArgument, "{error}");
}

#[test]
fn embedded_server_needs_no_settings() {
    let server = ArchiveServer::launch_embedded().expect("a server");
    let dirs = [server.archive_dir().to_owned(), server.aeron_dir().to_owned()];
    let mut context = Context::new().expect("a context");
    context.set_dir(server.aeron_dir()).expect("a directory");
    let aeron = Aeron::connect(context).expect("a client");
    let mut context = ipc_context();
    context.set_control_request_channel(server.control_channel()).expect("a channel");
    let archive = Archive::connect(&aeron, context).expect("a session");
    let (publication, recording_id, _) = record(&archive, 100);
    assert_eq!(replay_all(&archive, recording_id, recorded()), (0..100).collect::<Vec<_>>());
    drop((publication, archive, aeron));
    server.close().expect("a good end");
    assert!(dirs.iter().all(|dir| !dir.exists()), "{dirs:?}");
}

#[test]
fn embedded_server_takes_requests_over_network_if_asked() {
    let mut context = ArchiveServerContext::new();
    context
        .set_control_channel("aeron:udp?endpoint=localhost:0")
        .and_then(|context| context.set_archive_dir("/nowhere"))
        .and_then(|context| context.set_threading_mode(ArchiveThreadingMode::Shared))
        .expect("settings");
    let server = ArchiveServer::launch_embedded_with(context).expect("a server");
    assert!(server.control_channel().starts_with("aeron:udp"), "{server:?}");
    assert!(!server.control_channel().ends_with(":0"), "{server:?}");
    assert_ne!(server.archive_dir(), Path::new("/nowhere"));
}

#[cfg(unix)]
#[test]
fn forked_child_leaves_embedded_server_to_parent() {
    let mut server = Some(ArchiveServer::launch_embedded().expect("a server"));
    let child = ForkedChild::run(|| drop(server.take())).expect("a child");
    child.await_success(Instant::now() + DEADLINE).expect("a child that succeeds");
    let server = server.expect("the parent's");
    assert!(server.archive_dir().join("archive.catalog").exists());
    assert!(!server.has_ended());
    server.close().expect("a good end");
}

#[test]
fn dropped_server_has_stop_positions() {
    let mut fixture = Fixture::launch();
    let archive = fixture.connect();
    let (publication, recording_id, position) = record(&archive, 1000);
    drop(fixture.take());
    await_that("the end of the session", || !archive.is_connected());
    drop((publication, archive));
    // The next start would find the end in the frames.
    let files = ArchiveFiles::open(fixture.archive_dir()).expect("a catalog");
    assert_eq!(files.recording(recording_id).expect("it").stop_position, Some(position));

    fixture.restart();
    let archive = fixture.connect();
    assert_eq!(archive.stop_position(recording_id).expect("an answer"), Some(position));
    assert_eq!(replay_all(&archive, recording_id, recorded()), (0..1000).collect::<Vec<_>>());

    extend(&archive, recording_id, 1000..1100);
}

#[test]
fn directory_in_use_is_refused() {
    let mut fixture = Fixture::launch();
    let error = fixture.try_launch().expect_err("a second server");
    assert_eq!(error.kind(), ServerErrorKind::ActiveArchive, "{error}");
    fixture.take().close().expect("a good end");
    fixture.restart();
}

#[test]
fn archive_id_in_use_is_refused() {
    let fixture = Fixture::launch();
    let dir = tempfile::tempdir().expect("a directory");
    let mut context = fixture.context().clone();
    context
        .set_archive_id(fixture.server().archive_id().get())
        .and_then(|context| context.set_archive_dir(dir.path()))
        .expect("settings");
    let error = ArchiveServer::launch(context.clone()).expect_err("the same id");
    assert_eq!(error.kind(), ServerErrorKind::ActiveArchive, "{error}");
    let text = format!("found existing archive for archiveId={}", fixture.server().archive_id());
    assert!(error.message().starts_with(&text), "{error}");
    context.set_archive_id(-1).expect("an id");
    ArchiveServer::launch(context).expect("another id").close().expect("a good end");
}

#[test]
fn recordings_survive_end_of_driver() {
    for mode in [ArchiveThreadingMode::Shared, ArchiveThreadingMode::Dedicated] {
        let dir = tempfile::tempdir().expect("a directory");
        let launch = |driver: &MediaDriver| {
            let mut context = ArchiveServerContext::new();
            context
                .set_aeron_dir(driver.aeron_dir())
                .and_then(|context| context.set_archive_dir(dir.path()))
                .and_then(|context| context.set_control_channel_enabled(false))
                .and_then(|context| context.set_threading_mode(mode))
                .expect("settings");
            ArchiveServer::launch(context).expect("a server")
        };
        let connect = |driver: &MediaDriver| {
            let aeron = rusteron_test_support::connect(driver);
            Archive::connect(&aeron, ipc_context()).expect("a session")
        };
        let driver = MediaDriver::launch_embedded().expect("a driver");
        let server = launch(&driver);
        let archive = connect(&driver);
        let (publication, recording_id, position) = record(&archive, 1000);
        assert!(!server.has_ended());
        driver.close().expect("a good end");
        await_that("the end of the server", || server.has_ended());
        drop((publication, archive));
        let error = server.close().expect_err("the driver has ended");
        let expected = [ErrorKind::DriverTimeout, ErrorKind::ClientClosed];
        assert!(expected.map(ServerErrorKind::Client).contains(&error.kind()), "{error:?}");

        let driver = MediaDriver::launch_embedded().expect("a driver");
        let _server = launch(&driver);
        let archive = connect(&driver);
        assert_eq!(archive.stop_position(recording_id).expect("an answer"), Some(position));
        assert_eq!(replay_all(&archive, recording_id, recorded()), (0..1000).collect::<Vec<_>>());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn threads_are_bound_to_their_cpus() {
    let _fixture = Fixture::launch_with(|context| {
        context
            .set_threading_mode(ArchiveThreadingMode::Dedicated)
            .and_then(|context| context.set_recorder_cpu_affinity(0))
            .expect("settings");
    });
    let is_bound = |task: std::fs::DirEntry| {
        // Linux keeps 15 bytes of the name.
        let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        status.contains("Name:\tarchive-recorde\n") && status.contains("Cpus_allowed_list:\t0\n")
    };
    await_that("a bound thread", || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
        tasks.filter_map(Result::ok).any(is_bound)
    });
}

#[test]
fn missing_driver_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut context = ArchiveServerContext::new();
    context
        .set_aeron_dir(dir.path().join("no-driver"))
        .and_then(|context| context.set_archive_dir(dir.path().join("archive")))
        .and_then(|context| context.set_control_channel_enabled(false))
        .expect("settings");
    let error = ArchiveServer::launch(context).expect_err("no driver");
    assert_eq!(error.kind(), ServerErrorKind::Client(ErrorKind::DriverTimeout), "{error}");
}

#[test]
fn contents_are_deleted_on_start() {
    let mut fixture = Fixture::launch_with(|context| {
        context.set_archive_dir_delete_on_start(true).expect("a flag");
    });
    let archive = fixture.connect();
    let (publication, recording_id, _) = record(&archive, 10);
    drop(publication);
    await_stop(&archive, recording_id);
    drop(archive);
    fixture.take().close().expect("a good end");
    assert!(fixture.archive_dir().join("0-0.rec").exists());
    fixture.restart();
    assert!(!fixture.archive_dir().join("0-0.rec").exists());
    assert_eq!(fixture.connect().recordings().count(), 0);
}

#[test]
fn counters_show_recordings_and_replays() {
    let mut fixture = Fixture::launch();
    let aeron = fixture.aeron();
    let archive = fixture.connect();
    assert_eq!([ERRORS, RECORDINGS, REPLAYS].map(|id| value(&aeron, id)), [Some(0); 3]);
    let (publication, recording_id, _) = record(&archive, 10);
    assert_eq!(value(&aeron, RECORDINGS), Some(1));
    let subscription =
        archive.replay(recording_id, "aeron:ipc", 1002, ReplayParams::new()).expect("a replay");
    assert_eq!(value(&aeron, REPLAYS), Some(1));
    drop((subscription, publication));
    await_stop(&archive, recording_id);
    await_that("the ends", || {
        [RECORDINGS, REPLAYS].map(|id| value(&aeron, id)) == [Some(0), Some(0)]
    });
    drop(archive);
    fixture.take().close().expect("a good end");
    await_that("the end of the counters", || value(&aeron, ERRORS).is_none());
}
