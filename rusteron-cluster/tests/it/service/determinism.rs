//! A recorded log, and services that diverge over it.

use std::collections::{BTreeMap, HashMap};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusteron_cluster::{
    Cluster, ClusterErrorKind, ClusteredService, Comparison, DeterminismCheck, Effect, Lifecycle,
    MessageSource, RecordedLog, ServiceError, ServiceResult, SessionMessage, SnapshotReader,
    SnapshotWriter,
};
use tempfile::TempDir;

use super::Node;
use super::command_service::CommandService;
use crate::mark_file::{make_pipe, within_deadline};

/// The files of a member that was killed, with a snapshot in the middle of its log.
struct Files {
    _dir: TempDir,
    cluster: PathBuf,
    archive: PathBuf,
}

impl Files {
    /// Records a log of a cluster with one member. `None` without Java.
    fn record() -> Option<Self> {
        let mut node = Node::launch()?;
        let mut client = node.client();
        let mut other = node.client();
        for index in 0..20 {
            assert_eq!(client.ask(&format!("echo {index}")), index.to_string());
            assert_eq!(other.ask(&format!("echo {index}")), index.to_string());
        }
        let long = "x".repeat(5000);
        assert_eq!(client.ask(&format!("echo {long}")), long);
        assert_eq!(client.ask("timer 7 10"), "set");
        assert_eq!(client.receive(), "fired 7");
        assert_eq!(client.ask("self hello"), "sent");
        assert_eq!(client.receive(), "self hello");
        node.snapshot();
        for index in 0..20 {
            assert_eq!(client.ask(&format!("echo {index}")), index.to_string());
        }
        drop(client);
        drop(other);
        node.kill();
        let dir = tempfile::tempdir().expect("a directory");
        let from = node.cluster.node(0).cluster_dir();
        let (cluster, archive) = (dir.path().join("cluster"), dir.path().join("archive"));
        for (from, to) in [(from.clone(), &cluster), (from.with_file_name("archive"), &archive)] {
            std::fs::create_dir(to).expect("a directory");
            for file in std::fs::read_dir(from).expect("a directory") {
                let file = file.expect("a file").path();
                std::fs::copy(&file, to.join(file.file_name().expect("a name"))).expect("a copy");
            }
        }
        Some(Self { _dir: dir, cluster, archive })
    }

    fn check(&self) -> DeterminismCheck {
        let log = RecordedLog::open(&self.cluster, &self.archive).expect("a log");
        let mut check = DeterminismCheck::new(log);
        check.set_pause(Duration::from_millis(20));
        check
    }
}

/// A service with a function that makes its answers.
struct Answering<F> {
    count: u64,
    answer: F,
}

impl<F: FnMut(u64) -> String + Send> ClusteredService for Answering<F> {
    fn on_start(
        &mut self,
        _: &mut Lifecycle<'_>,
        snapshot: Option<&mut SnapshotReader<'_>>,
    ) -> ServiceResult {
        if let Some(snapshot) = snapshot {
            let mut bytes = Vec::new();
            snapshot.read_to_end(&mut bytes)?;
            // The snapshot is one of this service or of `CommandService`.
            self.count = u64::from_le_bytes(
                *bytes.first_chunk().ok_or("no count").map_err(ServiceError::failed)?,
            );
        }
        Ok(())
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        message: &SessionMessage<'_>,
    ) -> ServiceResult {
        self.count += 1;
        let answer = (self.answer)(self.count);
        if let MessageSource::Client { session_id } = message.source {
            let mut session = cluster.session(session_id).expect("an open session");
            let mut claim = session.try_claim(answer.len()).expect("mocked");
            claim.copy_from_slice(answer.as_bytes());
            claim.commit().expect("mocked");
        }
        Ok(())
    }

    fn on_take_snapshot(&self, snapshot: &mut SnapshotWriter<'_>) -> ServiceResult {
        Ok(snapshot.write_all(&self.count.to_le_bytes())?)
    }
}

fn answering<F: FnMut(u64) -> String + Send>(answer: F) -> Answering<F> {
    Answering { count: 0, answer }
}

/// Checks that the first difference is in an answer, at a message.
fn differs_in_an_answer(comparison: &Comparison) {
    let divergence = comparison.divergence().expect("a difference");
    assert!(divergence.event().starts_with("message of session"), "{comparison}");
    assert!(divergence.position() > 0);
    let (first, second) = (divergence.first(), divergence.second());
    assert!(matches!(first[..], [Effect::Answer { .. }]), "{comparison}");
    assert!(matches!(second[..], [Effect::Answer { .. }]), "{comparison}");
    assert_ne!(first, second);
    assert!(comparison.to_string().contains(&format!("position {}", divergence.position())));
}

/// State that snapshots leave out.
#[derive(Default)]
struct Forgetful {
    count: u64,
}

impl ClusteredService for Forgetful {
    fn on_start(
        &mut self,
        _: &mut Lifecycle<'_>,
        _: Option<&mut SnapshotReader<'_>>,
    ) -> ServiceResult {
        Ok(())
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        _: &SessionMessage<'_>,
    ) -> ServiceResult {
        self.count += 1;
        cluster.offer(&self.count.to_le_bytes())?.expect("short");
        Ok(())
    }

    fn on_take_snapshot(&self, _: &mut SnapshotWriter<'_>) -> ServiceResult {
        Ok(())
    }
}

#[test]
fn deterministic_services_are_equal() {
    let Some(files) = Files::record() else { return };
    // From both beginnings, and with snapshots everywhere.
    let service = || CommandService::new().0;
    let comparison = files.check().run(service).expect("two runs");
    assert!(comparison.is_equal(), "{comparison}");
    assert!(comparison.events() > 65, "{comparison}");
    let again = files.check().run(service).expect("two runs");
    assert_eq!(again, comparison);
    let mut check = files.check();
    let everywhere = check.set_snapshot_interval(1).run(service).expect("two runs");
    assert!(everywhere.is_equal(), "{everywhere}");
    assert_eq!(everywhere.events(), comparison.events());
    let rest = files.check().begin_with_last_snapshot().run(service).expect("two runs");
    assert!(rest.is_equal() && rest.events() >= 20, "{rest}");
    assert!(rest.events() < comparison.events());
    let comparison = files.check().run(|| answering(|count| count.to_string())).expect("two runs");
    assert!(comparison.is_equal(), "{comparison}");
}

#[test]
fn divergence_in_answers_is_found() {
    let Some(files) = Files::record() else { return };
    // The order of a hash map.
    let hash_map = || {
        let mut map: HashMap<u64, u64> = (0..32).map(|key| (key, key)).collect();
        answering(move |count| {
            map.insert(count % 32, count);
            format!("{:?}", map.keys().collect::<Vec<_>>())
        })
    };
    differs_in_an_answer(&files.check().run(hash_map).expect("two runs"));

    // The wall clock.
    let clock = || {
        answering(|_| {
            let time = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
            (time.as_millis() / 10).to_string()
        })
    };
    differs_in_an_answer(&files.check().run(clock).expect("two runs"));

    // The timing of a thread.
    let thread = || {
        let (count, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let over = OnDrop(Arc::clone(&is_over));
        thread::spawn({
            let count = Arc::clone(&count);
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        answering(move |_| {
            let _ = &over;
            // The thread starts when it likes, and may not run for the whole of a short run.
            let last = count.load(Ordering::Relaxed);
            while count.load(Ordering::Relaxed) == last {
                thread::yield_now();
            }
            count.load(Ordering::Relaxed).to_string()
        })
    };
    differs_in_an_answer(&files.check().run(thread).expect("two runs"));

    // Addresses.
    let addresses = || {
        let mut orders: BTreeMap<usize, Box<u64>> = BTreeMap::new();
        answering(move |count| {
            let order = Box::new(count);
            orders.insert(&raw const *order as usize, order);
            format!("{:?}", orders.keys().next())
        })
    };
    differs_in_an_answer(&files.check().run(addresses).expect("two runs"));
}

#[test]
fn divergence_in_snapshots_is_found() {
    let Some(files) = Files::record() else { return };
    // The order of a hash map, with equal answers.
    let state = || Unordered((0..32).map(|key| (key, key)).collect());
    let comparison = files.check().run(state).expect("two runs");
    let divergence = comparison.divergence().expect("a difference");
    assert_eq!(divergence.event(), "snapshot");
    assert!(matches!(divergence.first(), [Effect::Snapshot { .. }]), "{comparison}");

    // State that a snapshot leaves out, found behind the snapshot.
    let comparison = files.check().run(Forgetful::default).expect("two runs");
    let divergence = comparison.divergence().expect("a difference");
    let (first, second) = (&divergence.first()[0], &divergence.second()[0]);
    let message = |count: u64| Effect::Message(count.to_le_bytes().to_vec());
    assert_eq!(second, &message(1), "{comparison}");
    assert!(*first != message(1), "{comparison}");
}

#[test]
fn failures_over_a_log_are_reported() {
    let Some(files) = Files::record() else { return };
    // A service that fails, in the same way in both runs, and one that fails in one run.
    let fails =
        || answering(|count| if count == 30 { panic!("on request") } else { String::new() });
    let error = files.check().run(fails).expect_err("the service fails");
    assert_eq!(error.kind(), ClusterErrorKind::ServiceFailed);
    assert!(error.message().contains("on request"), "{error}");
    let mut runs = 0;
    let fails_once = || {
        runs += 1;
        let is_first = runs == 1;
        answering(
            move |count| {
                if is_first && count == 5 { panic!("on request") } else { String::new() }
            },
        )
    };
    let comparison = files.check().run(fails_once).expect("two runs");
    let divergence = comparison.divergence().expect("a difference");
    assert!(divergence.first().iter().any(|effect| matches!(effect, Effect::End(_))));

    // Logs that are not there.
    let error = RecordedLog::open(&files.archive, &files.archive).expect_err("not a cluster");
    assert!(matches!(error.kind(), ClusterErrorKind::Io(_)), "{error}");
    let error = RecordedLog::open(&files.cluster, &files.cluster).expect_err("not an archive");
    assert_eq!(error.kind(), ClusterErrorKind::InvalidRecording);
    let mut check = files.check();
    let error = check.set_service_id(5).begin_with_last_snapshot().run(Forgetful::default);
    assert_eq!(error.expect_err("no snapshot").kind(), ClusterErrorKind::InvalidRecording);
}

#[test]
fn pipes_for_a_log_are_refused_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    make_pipe(&dir.path().join("recording.log"));
    let home = dir.path().to_owned();
    let error = within_deadline(move || RecordedLog::open(&home, &home)).expect_err("a pipe");
    assert_eq!(error.kind(), ClusterErrorKind::Io(ErrorKind::InvalidInput));
    assert!(error.message().ends_with("recording.log: a pipe is not a regular file"), "{error}");
}

/// Ends a thread.
struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A hash map that only snapshots iterate.
struct Unordered(HashMap<u64, u64>);

impl ClusteredService for Unordered {
    fn on_start(
        &mut self,
        _: &mut Lifecycle<'_>,
        _: Option<&mut SnapshotReader<'_>>,
    ) -> ServiceResult {
        Ok(())
    }

    fn on_session_message(&mut self, _: &mut Cluster<'_>, _: &SessionMessage<'_>) -> ServiceResult {
        Ok(())
    }

    fn on_take_snapshot(&self, snapshot: &mut SnapshotWriter<'_>) -> ServiceResult {
        for (key, value) in &self.0 {
            snapshot.write_all(&[key.to_le_bytes(), value.to_le_bytes()].concat())?;
        }
        Ok(())
    }
}
