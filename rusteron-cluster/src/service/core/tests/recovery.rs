//! The start, with and without a snapshot.

use std::collections::VecDeque;

use rusteron_client::Action;

use super::*;
use crate::service::snapshot_reader::OnMessage;

/// A snapshot with two sessions that was written by another container.
fn snapshot() -> Vec<Vec<u8>> {
    let mut harness = Harness::started();
    harness.on_log(64, term(1, 64, VERSION)).expect("handled");
    harness.on_log(128, open(9)).expect("handled");
    harness.on_log(192, open(5)).expect("handled");
    harness.on_log(256, action(256, 2, 0)).expect("handled");
    assert_eq!(harness.network.snapshot.len(), 5);
    harness.network.snapshot
}

#[test]
fn fresh_start_acks_the_client() {
    let mut harness = Harness::with(None, ErrorPolicy::Terminate);
    assert_eq!(harness.recover(Ok(None)), Ok(()));
    assert_eq!(harness.acks(), [(0, 0, 4711)]);
    assert_eq!(harness.events(), ["start at 0 Millis []"]);
}

#[test]
fn failed_start_acks_and_ends() {
    for (start, text) in [("fail", "on start"), ("panic", "panic: on start")] {
        let mut harness = Harness::with(Some(start), ErrorPolicy::RecordAndContinue);
        let cause = TerminationCause::StartFailed(text.to_owned());
        assert_eq!(harness.recover(Ok(None)), Err(cause));
        assert_eq!(harness.acks(), [(0, 0, -1)]);
        harness.events();
        harness.core.terminate(&mut harness.network);
        assert_eq!(harness.events(), [""; 0]);
    }
    let mut harness = Harness::with(None, ErrorPolicy::Terminate);
    let no_archive = Err(SnapshotError::Failed("no archive".to_owned()));
    assert!(matches!(harness.recover(no_archive), Err(TerminationCause::StartFailed(_))));
    assert_eq!((harness.acks(), harness.events()), (vec![(0, 0, -1)], vec![]));
}

#[test]
fn end_while_starting_acks_a_failure() {
    let cases = [
        ("idle", TerminationCause::Stopped, 1),
        ("end", TerminationCause::ServiceTerminated, 1),
        // The consensus module is gone, or cannot be reached.
        ("idle", TerminationCause::ConsensusModuleGone, 0),
        ("idle", TerminationCause::ClientClosed(CloseCause::DriverShutdown), 0),
    ];
    for (start, cause, acks) in cases {
        let mut harness = Harness::with(Some(start), ErrorPolicy::RecordAndContinue);
        harness.network.end_after(1, cause.clone());
        assert_eq!(harness.recover(Ok(None)), Err(cause));
        assert_eq!(harness.acks(), [(0, 0, -1)][..acks]);
        harness.events();
        harness.core.terminate(&mut harness.network);
        assert_eq!(harness.events(), [""; 0]);
    }
}

#[test]
fn snapshot_brings_sessions_and_state() {
    let mut harness = Harness::with(None, ErrorPolicy::Terminate);
    let mut replay = Replay { messages: snapshot().into(), is_cut: false };
    assert_eq!(harness.recover(Ok(Some(&mut replay))), Ok(()));
    assert_eq!(harness.events(), ["start at 0 Micros [5, 9]", "state [1, 2, 3, 1, 2, 3]"]);
    let session = &harness.core.state().sessions[&9.into()];
    assert_eq!(session.response_channel(), "aeron:udp?endpoint=client:1");
    assert_eq!(
        (session.response_stream_id(), session.encoded_principal()),
        (102, &b"principal"[..])
    );
    assert_eq!(harness.acks(), [(0, 0, 4711)]);
}

#[test]
fn snapshot_of_many_sessions_is_read_back() {
    let principals: Vec<Vec<u8>> = (0..40).map(|id| vec![id; 20 * usize::from(id)]).collect();
    let mut harness = Harness::started();
    for (id, principal) in (0..).zip(&principals) {
        harness.on_log(64, open_as(id, principal)).expect("handled");
    }
    harness.on_log(128, action(128, 2, 0)).expect("handled");
    let mut replay = Replay { messages: harness.network.snapshot.into(), is_cut: false };
    let mut harness = Harness::with(None, ErrorPolicy::Terminate);
    assert_eq!(harness.recover(Ok(Some(&mut replay))), Ok(()));
    let sessions = harness.core.state().sessions.values();
    assert!(sessions.map(SessionInfo::encoded_principal).eq(&principals));
}

#[test]
fn damaged_snapshots_fail_the_start() {
    let good = snapshot();
    let marker = |type_id, mark, major| {
        codec::SnapshotMarker {
            type_id,
            log_position: 0,
            leadership_term_id: 0,
            index: 0,
            mark,
            time_unit: 0,
            app_version: AppVersion::new(major, 0, 0).code(),
        }
        .to_vec()
    };
    let with = |range: std::ops::Range<usize>| good[range].to_vec();
    let cases = [
        (vec![], "ends before"),
        (with(0..3), "ends before"),
        (with(1..5), "before the beginning"),
        ([with(0..1), with(0..5)].concat(), "begins twice"),
        (with(3..5), "ends before it begins"),
        (vec![marker(1, 0, 1)], "type 1"),
        (vec![vec![0; 4]], "4 bytes"),
        (vec![good[1][..20].to_vec()], "truncated"),
        (vec![good[0].clone(), good[1][..20].to_vec()], "truncated"),
    ];
    for (messages, text) in cases {
        let mut harness = Harness::with(None, ErrorPolicy::Terminate);
        let mut replay = Replay { messages: messages.into(), is_cut: false };
        let outcome = harness.recover(Ok(Some(&mut replay)));
        let Err(TerminationCause::StartFailed(error)) = outcome else { panic!("{outcome:?}") };
        assert!(error.contains(text), "{error}: {text}");
        assert_eq!(harness.acks(), [(0, 0, -1)]);
    }
    let messages = vec![marker(2, 0, 2), marker(2, 2, 2)];
    let mut harness = Harness::with(None, ErrorPolicy::Terminate);
    let mut replay = Replay { messages: messages.into(), is_cut: false };
    let found = AppVersion::new(2, 0, 0);
    let cause = TerminationCause::IncompatibleVersion { own: VERSION, found, is_snapshot: true };
    assert_eq!(harness.recover(Ok(Some(&mut replay))), Err(cause));
    assert_eq!((harness.acks(), harness.events()), (vec![(0, 0, -1)], vec![]));
    // The user's part is cut.
    let mut harness = Harness::with(None, ErrorPolicy::Terminate);
    let mut replay = Replay { messages: good.into(), is_cut: true };
    let outcome = harness.recover(Ok(Some(&mut replay)));
    assert!(matches!(outcome, Err(TerminationCause::StartFailed(_))), "{outcome:?}");
}

#[test]
fn reads_and_messages_can_be_mixed() {
    let messages = [&b"abc"[..], b"defg", b"h", b"ijk"].map(<[u8]>::to_vec);
    let replay = || Replay { messages: messages.clone().into(), is_cut: false };
    let mut source = replay();
    let mut reader = SnapshotReader::new(&mut source);
    let mut bytes = [0; 5];
    reader.read_exact(&mut bytes).expect("bytes");
    assert_eq!(&bytes, b"abcde");
    let mut polled = Vec::new();
    // The rest of the message, and nothing else.
    assert_eq!(reader.poll(|message| polled.push(message.to_vec()), 10).expect("messages"), 1);
    assert_eq!(polled, [b"fg"]);
    reader.read_exact(&mut bytes[..1]).expect("a byte");
    assert_eq!(bytes[0], b'h');
    assert!(!reader.is_at_end());
    let mut rest = Vec::new();
    let collect = |message: &[u8]| {
        rest.push(message.to_vec());
        Ok(())
    };
    reader.for_each(collect).expect("the last message");
    assert_eq!(rest, [b"ijk"]);
    assert!(reader.is_at_end());
    assert_eq!(reader.read(&mut bytes).expect("the end"), 0);
    // `for_each` begins with the rest, too.
    let mut source = replay();
    let mut reader = SnapshotReader::new(&mut source);
    reader.read_exact(&mut bytes[..2]).expect("bytes");
    let mut rest = Vec::new();
    let collect = |message: &[u8]| {
        rest.extend_from_slice(message);
        Ok(())
    };
    reader.for_each(collect).expect("all messages");
    assert_eq!(rest, b"cdefghijk");
}

/// Replays messages, one at a poll.
struct Replay {
    messages: VecDeque<Vec<u8>>,
    /// Messages that never arrive.
    is_cut: bool,
}

impl SnapshotSource for Replay {
    fn poll(
        &mut self,
        handler: &mut OnMessage<'_>,
        fragment_limit: usize,
    ) -> Result<usize, SnapshotError> {
        let mut count = 0;
        while count < fragment_limit {
            let Some(message) = self.messages.pop_front() else { break };
            count += 1;
            if handler(&message) == Action::Break {
                break;
            }
        }
        Ok(count)
    }

    fn is_at_end(&mut self) -> bool {
        self.messages.is_empty() && !self.is_cut
    }

    fn idle(&mut self, work_count: usize) -> Result<(), SnapshotError> {
        match work_count {
            0 => Err(SnapshotError::Failed("the replay has ended early".to_owned())),
            _ => Ok(()),
        }
    }
}
