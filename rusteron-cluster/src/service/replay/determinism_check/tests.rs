//! Checks over logs that the tests write.

use std::fs;
use std::path::Path;

use rusteron_client::OfferError;

use super::*;
use crate::codec;
use crate::service::cluster::{Cluster, Lifecycle};
use crate::service::error::{NotSent, ServiceError, ServiceResult};
use crate::service::snapshot_reader::{BEGIN, END, SERVICE_SNAPSHOT, SnapshotReader};
use crate::service::snapshot_writer::SnapshotWriter;
use crate::service::types::SessionMessage;

const SESSION: i64 = 5;

/// Does everything that a service can do.
struct Busy {
    /// An answer that differs.
    answer: &'static [u8],
    state: &'static [u8],
}

impl ClusteredService for Busy {
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
        message: &SessionMessage<'_>,
    ) -> ServiceResult {
        if message.payload != b"all" {
            return Ok(());
        }
        cluster.schedule_timer(7.into(), 99)?;
        cluster.cancel_timer(8.into())?;
        cluster.offer(b"offered")?.expect("short");
        let mut claim = cluster.try_claim(7).expect("claimed");
        claim.copy_from_slice(b"claimed");
        claim.commit().expect("sent");
        cluster.try_claim(7).expect("claimed").abort();
        let mut session = cluster.session(ClusterSessionId::new(SESSION)).expect("open");
        session.offer(b"equal").expect("mocked");
        let mut claim = session.try_claim(self.answer.len()).expect("mocked");
        claim.copy_from_slice(self.answer);
        claim.commit().expect("mocked");
        session.try_claim(7).expect("mocked").abort();
        session.close()?;
        Err(ServiceError::failed("recorded"))
    }

    fn on_take_snapshot(&self, snapshot: &mut SnapshotWriter<'_>) -> ServiceResult {
        snapshot.offer(self.state)
    }
}

/// A service of one function, whose snapshots leave out the function's state.
struct OnMessage<F>(F);

impl<F> ClusteredService for OnMessage<F>
where
    F: FnMut(&mut Cluster<'_>) -> ServiceResult + Send,
{
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
        (self.0)(cluster)
    }

    fn on_take_snapshot(&self, _: &mut SnapshotWriter<'_>) -> ServiceResult {
        Ok(())
    }
}

fn on_message<F: FnMut(&mut Cluster<'_>) -> ServiceResult + Send>(function: F) -> OnMessage<F> {
    OnMessage(function)
}

/// Returns the frames of messages, as in a recording.
fn frames(messages: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut frames = Vec::new();
    for message in messages {
        let mut frame = vec![0; 32];
        frame[..4].copy_from_slice(&(32 + message.len() as i32).to_le_bytes());
        (frame[5], frame[6]) = (0xc0, 1);
        frame.extend(message);
        frame.resize(frame.len().next_multiple_of(32), 0);
        frames.extend(frame);
    }
    frames
}

/// Returns a log with one session and messages of it.
fn log(payloads: &[&[u8]]) -> Vec<u8> {
    let open = codec::SessionOpenEvent {
        leadership_term_id: 0,
        correlation_id: 1,
        cluster_session_id: SESSION,
        timestamp: 10,
        response_stream_id: 102,
        response_channel: b"aeron:ipc",
        encoded_principal: b"",
    };
    let header = codec::SessionMessageHeader {
        leadership_term_id: 0,
        cluster_session_id: SESSION,
        timestamp: 11,
    };
    let message = |payload: &&[u8]| [&header.to_vec()[..], payload].concat();
    frames([open.to_vec()].into_iter().chain(payloads.iter().map(message)))
}

/// Writes a log, and a snapshot without sessions at a position.
fn write_log(dir: &Path, log: &[u8], snapshot_position: Option<i64>) -> RecordedLog {
    fs::write(dir.join("3-0.rec"), [log, &[0; 1024]].concat()).expect("a file");
    // A term whose log is recording 3.
    let mut entries = 3_i64.to_le_bytes().to_vec();
    entries.resize(64, 0);
    // An entry of a type that is not known here.
    entries.extend([0; 64]);
    entries[64 + 44] = 9;
    if let Some(log_position) = snapshot_position {
        let marker = |mark| codec::SnapshotMarker {
            type_id: SERVICE_SNAPSHOT,
            log_position,
            leadership_term_id: 0,
            index: 0,
            mark,
            time_unit: 0,
            app_version: AppVersion::new(0, 0, 1).code(),
        };
        let snapshot = frames([marker(BEGIN).to_vec(), marker(END).to_vec()]);
        fs::write(dir.join("4-0.rec"), [&snapshot[..], &[0; 1024]].concat()).expect("a file");
        let fields = [4, 0, 0, log_position, 0].map(i64::to_le_bytes).concat();
        // Service 0, and the type of a snapshot.
        entries.extend([&fields[..], &[0; 4], &1_i32.to_le_bytes(), &[0; 16]].concat());
    }
    fs::write(dir.join("recording.log"), entries).expect("a file");
    RecordedLog::open(dir, dir).expect("a log")
}

fn check(dir: &Path, payloads: &[&[u8]]) -> DeterminismCheck {
    let mut check = DeterminismCheck::new(write_log(dir, &log(payloads), None));
    check.set_pause(Duration::ZERO).set_error_policy(ErrorPolicy::RecordAndContinue);
    check
}

#[test]
fn effects_of_all_kinds_are_compared() {
    let dir = tempfile::tempdir().expect("a directory");
    let check = check(dir.path(), &[b"none", b"all", b"none"]);
    let comparison = check.run(|| Busy { answer: b"same", state: b"state" }).expect("two runs");
    assert!(comparison.is_equal() && comparison.events() == 4, "{comparison}");
    let other = check.run(|| Busy { answer: b"another", state: b"state" }).expect("two runs");
    assert_ne!(other.digest(), comparison.digest());

    let mut answers = [b"first", b"later"].into_iter().map(|answer| &answer[..]);
    let factory = || Busy { answer: answers.next().unwrap_or_default(), state: b"state" };
    let comparison = check.run(factory).expect("two runs");
    let divergence = comparison.divergence().expect("a difference");
    let answer = |text: &[u8]| Effect::Answer {
        session_id: ClusterSessionId::new(SESSION),
        message: text.to_vec(),
    };
    let effects = |last: &[u8]| {
        vec![
            Effect::TimerScheduled { correlation_id: 7.into(), deadline: 99 },
            Effect::TimerCancelled { correlation_id: 8.into() },
            Effect::Message(b"offered".to_vec()),
            Effect::Message(b"claimed".to_vec()),
            answer(b"equal"),
            answer(last),
            Effect::SessionClosed { session_id: ClusterSessionId::new(SESSION) },
        ]
    };
    let failed = |effects: &[Effect]| matches!(effects.last(), Some(Effect::Error(text)) if text.contains("recorded"));
    assert!(failed(divergence.first()) && failed(divergence.second()), "{comparison}");
    assert_eq!(divergence.first()[..7], effects(b"first"));
    assert_eq!(divergence.second()[..7], effects(b"later"));
    let event = "message of session 5: 3 bytes \"all\"";
    assert_eq!(divergence.event(), event);
    let position = divergence.position();
    assert_eq!(
        comparison.to_string(),
        format!(
            "different at event 3: position {position}, {event}: after 5 equal effects, the first run had \
             answer to session 5: 5 bytes \"first\", the second run answer to session 5: 5 bytes \"later\""
        )
    );
}

#[test]
fn too_long_service_message_is_refused() {
    let too_long = |cluster: &mut Cluster<'_>| {
        let max_length = cluster.max_message_length();
        assert_eq!((max_length, cluster.max_claim_length()), (16 * 1024 - 32, 1376 - 32));
        cluster.offer(&vec![0; max_length])?.expect("short enough");
        let too_long = vec![0; max_length + 1];
        for error in [cluster.offer(&too_long)?, cluster.try_offer(&too_long)] {
            let (length, max_message_length) = (max_length + 1, max_length);
            let expected = OfferError::MessageTooLong { length, max_message_length };
            assert_eq!(error.map_err(NotSent::reason), Err(expected));
        }
        Ok(())
    };
    let dir = tempfile::tempdir().expect("a directory");
    let comparison = check(dir.path(), &[b"any"]).run(|| on_message(too_long)).expect("two runs");
    assert!(comparison.is_equal(), "{comparison}");
}

#[test]
fn states_are_compared_by_snapshots() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut states = [b"first", b"later"].into_iter().map(|state| &state[..]);
    let differing = || Busy { answer: b"same", state: states.next().unwrap_or_default() };
    let comparison = check(dir.path(), &[b"none"]).run(differing).expect("two runs");
    let divergence = comparison.divergence().expect("a difference");
    assert_eq!(divergence.event(), "end of the log");
    assert!(matches!(divergence.first(), [Effect::Snapshot { .. }]), "{comparison}");

    // State that a snapshot leaves out is found behind the snapshot.
    let forgetful = || {
        let mut count = 0;
        on_message(move |cluster| {
            count += 1;
            cluster.offer(&[count])?.expect("short");
            Ok(())
        })
    };
    let mut check = check(dir.path(), &[b"any", b"any"]);
    let comparison = check.set_snapshot_interval(1).run(forgetful).expect("two runs");
    let divergence = comparison.divergence().expect("a difference");
    let message = |count: u8| Effect::Message(vec![count]);
    assert_eq!((&divergence.first()[0], &divergence.second()[0]), (&message(2), &message(1)));
}

#[test]
fn failures_over_a_log_are_reported() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut check = check(dir.path(), &[b"any"]);
    check.set_error_policy(ErrorPolicy::Terminate);
    let error = check.run(|| on_message(|_| panic!("on request"))).expect_err("it fails");
    assert_eq!(error.kind(), ClusterErrorKind::ServiceFailed);
    assert!(error.message().contains("on request"), "{error}");
    let mut runs = 0;
    let fails_once = || {
        runs += 1;
        let is_first = runs == 1;
        on_message(move |_| if is_first { panic!("on request") } else { Ok(()) })
    };
    let comparison = check.run(fails_once).expect("two runs");
    let divergence = comparison.divergence().expect("a difference");
    assert!(divergence.first().iter().any(|effect| matches!(effect, Effect::End(_))));

    let error = check.set_service_id(5).begin_with_last_snapshot().run(|| on_message(|_| Ok(())));
    assert_eq!(error.expect_err("no snapshot").kind(), ClusterErrorKind::InvalidRecording);
    let missing = dir.path().join("missing");
    let error = RecordedLog::open(&missing, dir.path()).expect_err("not a cluster");
    assert!(matches!(error.kind(), ClusterErrorKind::Io(_)), "{error}");
    let empty = tempfile::tempdir().expect("a directory");
    let error = RecordedLog::open(dir.path(), empty.path()).expect_err("not an archive");
    assert_eq!(error.kind(), ClusterErrorKind::InvalidRecording);
}

#[test]
fn background_work_that_changes_the_state() {
    #[derive(Default)]
    struct Background(u64);
    impl ClusteredService for Background {
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
            cluster.offer(&self.0.to_le_bytes())?.expect("short");
            Ok(())
        }

        fn on_take_snapshot(&self, _: &mut SnapshotWriter<'_>) -> ServiceResult {
            Ok(())
        }

        fn do_background_work(&mut self, _: &mut Lifecycle<'_>, _: Instant) -> usize {
            self.0 += 1;
            1
        }
    }
    let dir = tempfile::tempdir().expect("a directory");
    let check = check(dir.path(), &[b"any"]);
    assert!(!check.run(Background::default).expect("two runs").is_equal());
}

#[test]
fn closing_sessions_stay_so_in_new_instances() {
    let closing = || {
        on_message(|cluster| {
            cluster.session(ClusterSessionId::new(SESSION)).expect("open").close().map(drop)
        })
    };
    let dir = tempfile::tempdir().expect("a directory");
    let mut check = check(dir.path(), &[b"close", b"again"]);
    let comparison = check.set_snapshot_interval(1).run(closing).expect("two runs");
    assert!(comparison.is_equal() && comparison.events() == 3, "{comparison}");
}

#[test]
fn log_without_events_behind_its_snapshot() {
    let dir = tempfile::tempdir().expect("a directory");
    let run = |log: &[u8], snapshot_position: usize, is_last_wanted: bool| {
        let log = write_log(dir.path(), log, Some(snapshot_position as i64));
        let mut check = DeterminismCheck::new(log);
        check.set_pause(Duration::ZERO);
        if is_last_wanted {
            check.begin_with_last_snapshot();
        }
        check.run(|| Busy { answer: b"same", state: b"state" })
    };
    let is_refused = |outcome: Result<Comparison>, position: usize| {
        let error = outcome.expect_err("nothing to compare");
        assert_eq!(error.kind(), ClusterErrorKind::InvalidRecording);
        let text = format!("nothing lies behind the snapshot at position {position}");
        assert_eq!(error.message(), text);
    };
    // The log ends with the snapshot, as after a shutdown.
    let whole = log(&[b"none", b"none"]);
    is_refused(run(&whole, whole.len(), true), whole.len());
    let comparison = run(&whole, whole.len(), false).expect("two runs");
    assert!(comparison.is_equal() && comparison.events() == 3, "{comparison}");
    let comparison = run(&whole, log(&[b"none"]).len(), true).expect("two runs");
    assert!(comparison.is_equal() && comparison.events() == 1, "{comparison}");
    // The log begins behind the snapshot.
    let late = [&[0; 320][..], &whole].concat();
    is_refused(run(&late, 288, true), 288);
    is_refused(run(&late, 288, false), 288);
    let comparison = run(&late, 320, false).expect("two runs");
    assert!(comparison.is_equal() && comparison.events() == 3, "{comparison}");
}
