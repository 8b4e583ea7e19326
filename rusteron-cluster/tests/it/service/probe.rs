//! A service that lists its callbacks, and panics in one of them if it is told so.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rusteron_cluster::{
    CloseReason, Cluster, ClusteredService, LeadershipTerm, Lifecycle, MessageSource, Role,
    ServiceContainer, ServiceContext, ServiceResult, SessionInfo, SessionMessage, SnapshotReader,
    SnapshotWriter,
};
use rusteron_test_support::cluster::{JavaCluster, Options, Service};

use super::Node;

/// The callbacks that can panic. A failed start ends a container with any policy.
pub(super) const CALLBACKS: [&str; 9] = [
    "on_session_open",
    "on_session_close",
    "on_session_message",
    "on_timer_event",
    "on_take_snapshot",
    "on_new_leadership_term",
    "on_role_change",
    "do_background_work",
    "on_terminate",
];

/// The test's view of a service.
#[derive(Clone, Default)]
pub(super) struct Handle(Arc<Mutex<Shared>>);

#[derive(Default)]
struct Shared {
    /// The callbacks, but for background work.
    events: Vec<String>,
    /// The callback that panics next, once.
    trap: Option<&'static str>,
}

impl Handle {
    pub(super) fn events(&self) -> Vec<String> {
        self.0.lock().expect("no panic under the lock").events.clone()
    }

    /// Returns how often an event was seen.
    pub(super) fn count(&self, event: &str) -> usize {
        self.events().iter().filter(|seen| *seen == event).count()
    }

    /// Lets a callback panic when it is called next.
    pub(super) fn set_trap(&self, callback: &'static str) {
        self.0.lock().expect("no panic under the lock").trap = Some(callback);
    }

    /// Returns whether the callback has panicked.
    pub(super) fn has_sprung(&self) -> bool {
        self.0.lock().expect("no panic under the lock").trap.is_none()
    }

    fn enter(&self, callback: &str, event: Option<String>) {
        let mut shared = self.0.lock().expect("no panic under the lock");
        shared.events.extend(event);
        if shared.trap.is_some_and(|trap| trap == callback) {
            shared.trap = None;
            drop(shared);
            panic!("in {callback}");
        }
    }
}

/// Obeys `echo TEXT`, `timer ID DELAY` and `cancel ID`, and answers each. Timers answer all
/// sessions. The number of messages is the state.
pub(super) struct Probe {
    handle: Handle,
    count: u64,
}

impl Probe {
    pub(super) fn new() -> (Self, Handle) {
        let handle = Handle::default();
        (Self { handle: handle.clone(), count: 0 }, handle)
    }
}

impl ClusteredService for Probe {
    fn on_start(
        &mut self,
        cluster: &mut Lifecycle<'_>,
        snapshot: Option<&mut SnapshotReader<'_>>,
    ) -> ServiceResult {
        let mut bytes = [0; 8];
        let start = match snapshot {
            Some(snapshot) => {
                snapshot.read_exact(&mut bytes)?;
                "load"
            }
            None => "start",
        };
        self.count = u64::from_le_bytes(bytes);
        let sessions = cluster.sessions().len();
        let event = format!("{start} {} messages, {sessions} sessions", self.count);
        self.handle.enter("on_start", Some(event));
        Ok(())
    }

    fn on_session_open(&mut self, _: &mut Cluster<'_>, id: i64, _: i64) -> ServiceResult {
        self.handle.enter("on_session_open", Some(format!("open {id}")));
        Ok(())
    }

    fn on_session_close(
        &mut self,
        _: &mut Cluster<'_>,
        session: &SessionInfo,
        _: i64,
        reason: CloseReason,
    ) -> ServiceResult {
        let event = format!("close {} {reason:?}", session.id());
        self.handle.enter("on_session_close", Some(event));
        Ok(())
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        message: &SessionMessage<'_>,
    ) -> ServiceResult {
        self.count += 1;
        let text = std::str::from_utf8(message.payload)?;
        self.handle.enter("on_session_message", Some(text.to_owned()));
        let MessageSource::Client { session_id } = message.source else { return Ok(()) };
        let answer = match text.split(' ').collect::<Vec<_>>()[..] {
            ["timer", id, delay] => {
                let deadline = cluster.time() + delay.parse::<i64>()?;
                cluster.schedule_timer(id.parse()?, deadline)?;
                "set"
            }
            ["cancel", id] => {
                cluster.cancel_timer(id.parse()?)?;
                "cancelled"
            }
            _ => text,
        };
        answer_all(cluster, Some(session_id), answer)
    }

    fn on_timer_event(&mut self, cluster: &mut Cluster<'_>, id: i64, _: i64) -> ServiceResult {
        self.handle.enter("on_timer_event", Some(format!("fired {id}")));
        answer_all(cluster, None, &format!("fired {id}"))
    }

    fn on_take_snapshot(&self, snapshot: &mut SnapshotWriter<'_>) -> ServiceResult {
        snapshot.write_all(&self.count.to_le_bytes())?;
        // Some of it is recorded before the callback panics.
        snapshot.write_all(&[7; 100_000])?;
        self.handle.enter("on_take_snapshot", Some("snapshot".to_owned()));
        snapshot.write_all(&[8; 100_000])?;
        Ok(())
    }

    fn on_new_leadership_term(&mut self, _: &mut Cluster<'_>, _: &LeadershipTerm) -> ServiceResult {
        self.handle.enter("on_new_leadership_term", Some("term".to_owned()));
        Ok(())
    }

    fn on_role_change(&mut self, _: &mut Lifecycle<'_>, role: Role) {
        self.handle.enter("on_role_change", Some(format!("{role:?}")));
    }

    fn do_background_work(&mut self, cluster: &mut Lifecycle<'_>, _: Instant) -> usize {
        // The driver may have ended since the container looked.
        assert!(cluster.aeron().is_some());
        self.handle.enter("do_background_work", None);
        0
    }

    fn on_terminate(&mut self, _: &mut Lifecycle<'_>) {
        self.handle.enter("on_terminate", Some("terminate".to_owned()));
    }
}

/// Answers one session or all. A client that does not take the answer after some attempts has
/// gone.
fn answer_all(cluster: &mut Cluster<'_>, only: Option<i64>, text: &str) -> ServiceResult {
    let ids: Vec<i64> = cluster.sessions().map(SessionInfo::id).collect();
    for id in ids.into_iter().filter(|id| only.is_none_or(|only| only == *id)) {
        for _ in 0..1000 {
            let Some(mut session) = cluster.session(id) else { break };
            let offered = session.offer(text.as_bytes());
            if !offered.is_err_and(|error| error.is_retryable()) {
                break;
            }
            cluster.idle(0)?;
        }
    }
    Ok(())
}

impl Node {
    /// Starts a member with a [`Probe`], and waits until it leads. `None` without Java.
    pub(super) fn launch_probe(
        options: Options,
        context: ServiceContext,
    ) -> Option<(Self, Handle)> {
        let mut node = Self::launch_alone(options, context)?;
        let handle = node.start_probe(None);
        node.cluster.await_leader();
        Some((node, handle))
    }

    /// Starts a member that waits for its service. `None` without Java.
    pub(super) fn launch_alone(options: Options, context: ServiceContext) -> Option<Self> {
        let cluster = JavaCluster::launch(Options { service: Service::None, ..options })?;
        Some(Self { container: None, second: None, seen: Arc::default(), cluster, context })
    }

    /// Starts the service. Does not wait until the member leads.
    pub(super) fn start_probe(&mut self, trap: Option<&'static str>) -> Handle {
        let node = self.cluster.node(0);
        self.context
            .set_aeron_dir(node.aeron_dir())
            .unwrap()
            .set_cluster_dir(node.cluster_dir())
            .unwrap();
        let (probe, handle) = Probe::new();
        if let Some(trap) = trap {
            handle.set_trap(trap);
        }
        let container = ServiceContainer::launch(self.context.clone(), probe);
        self.container = Some(container.expect("a container"));
        handle
    }

    /// Starts the member again, after its end, and waits until it waits for its service.
    pub(super) fn restart_alone(&mut self) {
        assert!(self.container.is_none());
        self.cluster.node_mut(0).restart();
        self.cluster
            .node_mut(0)
            .await_that("a member without its service", |node| node.awaits_services());
    }

    /// Starts the member again, after its end, and waits until it leads.
    pub(super) fn restart_probe(&mut self) -> Handle {
        self.restart_alone();
        let handle = self.start_probe(None);
        self.cluster.await_leader();
        handle
    }
}
