//! A stand-in for a consensus module, which sends what the test says.

use rusteron_client::{Aeron, Counter, ExclusivePublication, Header, Position, Subscription};
use rusteron_cluster::codec::{
    JoinLog, MessageHeader, ServiceAck, ServiceTerminationPosition, SessionMessageHeader,
    SessionOpenEvent, TimerEvent,
};

use crate::{await_some, await_that};

const CONTROL_CHANNEL: &str = "aeron:ipc?term-length=128k";
const SERVICE_STREAM_ID: i32 = 104;
const CONSENSUS_MODULE_STREAM_ID: i32 = 105;
const LOG_STREAM_ID: i32 = 100;
const COMMIT_POSITION: i32 = 203;
const RECOVERY: i32 = 204;
/// The leader's role in a request to join a log.
const LEADER: i32 = 2;

/// A consensus module of one service, with a log in memory. There is no archive.
pub struct StandInModule {
    to_service: ExclusivePublication,
    from_service: Subscription,
    commit_position: Counter,
    /// As in Java, gone once the service has recovered.
    recovery: Option<Counter>,
    log: ExclusivePublication,
}

impl StandInModule {
    /// Waits for a service of a new cluster.
    pub fn new(aeron: &Aeron) -> Self {
        Self::on_streams(aeron, SERVICE_STREAM_ID, CONSENSUS_MODULE_STREAM_ID)
    }

    /// Waits for a service of a new cluster, on other streams to and from the service. If one service
    /// follows another on the same media driver at once, the new subscription can still get messages of
    /// the former service. Other streams avoid that.
    pub fn on_streams(aeron: &Aeron, to_service: i32, from_service: i32) -> Self {
        let to_service = aeron.add_exclusive_publication(CONTROL_CHANNEL, to_service);
        let from_service = aeron.add_subscription(CONTROL_CHANNEL, from_service);
        // The clusterId 0. As in Java, the recovery counter comes last.
        let commit_position = aeron.add_counter(COMMIT_POSITION, &[0; 4], "commit-pos");
        // No term, position and time 0, cluster 0, no snapshots.
        let key = [&(-1_i64).to_le_bytes()[..], &[0; 24]].concat();
        let recovery = aeron.add_counter(RECOVERY, &key, "recovery");
        let log = aeron.add_exclusive_publication("aeron:ipc?term-length=1m", LOG_STREAM_ID);
        Self {
            to_service: to_service.expect("a publication"),
            from_service: from_service.expect("a subscription"),
            commit_position: commit_position.expect("a counter"),
            recovery: Some(recovery.expect("a counter")),
            log: log.expect("a publication"),
        }
    }

    /// Waits for the acknowledgement of the start, and takes the recovery counter away. Returns the
    /// id of the service's Aeron client.
    pub fn await_recovery(&mut self) -> i64 {
        let ack = self.await_ack();
        assert_eq!((ack.ack_id, ack.log_position), (0, 0));
        self.end_recovery();
        ack.relevant_id
    }

    /// Takes the recovery counter away, as after the start of the service.
    pub fn end_recovery(&mut self) {
        self.recovery = None;
    }

    /// Waits for the next acknowledgement, and skips other messages.
    pub fn await_ack(&mut self) -> ServiceAck {
        await_some("an acknowledgement", || self.poll_ack())
    }

    /// Returns the acknowledgement of the next message, if it is one.
    pub fn poll_ack(&mut self) -> Option<ServiceAck> {
        let message = self.poll()?;
        let (header, body) = MessageHeader::split(&message)?;
        (header.template_id == ServiceAck::TEMPLATE_ID).then_some(())?;
        ServiceAck::decode(header, body)
    }

    /// The next message of the service, if there is one.
    pub fn poll(&mut self) -> Option<Vec<u8>> {
        let mut received = None;
        let handler = |message: &[u8], _: &Header<'_>| received = Some(message.to_vec());
        self.from_service.poll(handler, 1).expect("an open subscription");
        received
    }

    /// Sends the service any bytes.
    pub fn send(&mut self, message: &[u8]) {
        await_that("an accepted message", || self.to_service.offer(message).is_ok());
    }

    /// Requests that the service joins the log as the leader's, and waits until it has done so.
    pub fn lead(&mut self) {
        let session_id = self.log.constants().session_id;
        self.request_join(session_id);
        let ack = self.await_ack();
        assert_eq!((ack.log_position, ack.relevant_id), (0, -1));
    }

    /// Requests that the service joins a log at position 0, by the log's session.
    pub fn request_join(&mut self, log_session_id: i32) {
        let join = JoinLog {
            log_position: 0,
            max_log_position: i64::MAX,
            member_id: 0,
            log_session_id,
            log_stream_id: LOG_STREAM_ID,
            is_startup: 0,
            role: LEADER,
            is_standby: 0,
            log_channel: b"aeron:ipc",
        };
        self.send(&join.to_vec());
    }

    /// Appends a message to the log, and commits it. Returns the position behind it.
    pub fn append(&mut self, message: &[u8]) -> Position {
        let log = &mut self.log;
        let position = await_some("an appended message", || log.offer(message).ok());
        self.commit_position.set_release(position);
        position
    }

    /// Appends the opening of a session.
    pub fn open_session(&mut self, session_id: i64, channel: &str, stream_id: i32) -> Position {
        let event = SessionOpenEvent {
            leadership_term_id: 0,
            correlation_id: 0,
            cluster_session_id: session_id,
            timestamp: 1,
            response_stream_id: stream_id,
            response_channel: channel.as_bytes(),
            encoded_principal: b"",
        };
        self.append(&event.to_vec())
    }

    /// Appends a message of a session.
    pub fn append_message(&mut self, session_id: i64, payload: &[u8]) -> Position {
        let header = SessionMessageHeader {
            leadership_term_id: 0,
            cluster_session_id: session_id,
            timestamp: 2,
        };
        self.append(&[&header.to_vec()[..], payload].concat())
    }

    /// Appends a timer event.
    pub fn append_timer(&mut self, correlation_id: i64) -> Position {
        self.append(&TimerEvent { leadership_term_id: 0, correlation_id, timestamp: 3 }.to_vec())
    }

    /// Ends the service at the end of the log. The service acknowledges.
    pub fn terminate(&mut self) {
        let log_position = self.commit_position.get();
        self.send(&ServiceTerminationPosition { log_position, ack_required: 1 }.to_vec());
    }
}
