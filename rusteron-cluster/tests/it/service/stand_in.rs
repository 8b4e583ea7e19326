//! Containers beside a stand-in for the consensus module: situations that Java's seldom makes.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
#[cfg(unix)]
use std::time::Instant;

#[cfg(unix)]
use rusteron_client::agent::ShutdownSignal;
use rusteron_client::{Aeron, AeronVersion, CncFile, Context, Header};
use rusteron_cluster::codec::decode_values;
use rusteron_cluster::codec::mark_file::MarkFileHeader;
use rusteron_cluster::{
    Cluster, ClusteredService, CorrelationId, Lifecycle, MessageSource, ServiceContainer,
    ServiceContext, ServiceResult, SessionMessage, SnapshotReader, SnapshotWriter,
    TerminationCause,
};
use rusteron_core::cnc::error_log;
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::cluster::StandInModule;
#[cfg(unix)]
use rusteron_test_support::{DEADLINE, ForkedChild};
use rusteron_test_support::{await_that, connect, free_port, launch};
use tempfile::TempDir;

/// The heartbeat counter of a client.
const HEARTBEAT: i32 = 11;
/// The counter of recorded errors.
const ERRORS: i32 = 215;
/// The counter of duty cycles beyond the threshold.
const SLOW_CYCLES: i32 = 219;

type OnMessage = dyn FnMut(&mut Cluster<'_>, &SessionMessage<'_>) -> ServiceResult + Send;

/// A service of one function.
struct Script {
    on_message: Box<OnMessage>,
    ends: Arc<AtomicUsize>,
}

impl ClusteredService for Script {
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
        (self.on_message)(cluster, message)
    }

    fn on_timer_event(
        &mut self,
        cluster: &mut Cluster<'_>,
        id: CorrelationId,
        _: i64,
    ) -> ServiceResult {
        cluster.for_each_session(|session| {
            let _ = session.offer(format!("fired {id}").as_bytes());
            Ok(())
        })
    }

    fn on_take_snapshot(&self, _: &mut SnapshotWriter<'_>) -> ServiceResult {
        Ok(())
    }

    fn on_terminate(&mut self, _: &mut Lifecycle<'_>) {
        self.ends.fetch_add(1, Ordering::Relaxed);
    }
}

/// A container beside a driver of this process.
struct Host {
    ends: Arc<AtomicUsize>,
    dir: TempDir,
    driver: MediaDriver,
}

impl Host {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        Self { ends: Arc::default(), dir, driver: launch() }
    }

    fn module(&self) -> StandInModule {
        StandInModule::new(&connect(&self.driver))
    }

    fn context(&self) -> ServiceContext {
        let mut context = ServiceContext::new();
        context
            .set_aeron_dir(self.driver.aeron_dir())
            .unwrap()
            .set_cluster_dir(self.dir.path())
            .unwrap();
        context
    }

    fn start(
        &self,
        context: ServiceContext,
        on_message: impl FnMut(&mut Cluster<'_>, &SessionMessage<'_>) -> ServiceResult + Send + 'static,
    ) -> ServiceContainer {
        let service = Script { on_message: Box::new(on_message), ends: Arc::clone(&self.ends) };
        ServiceContainer::launch(context, service).expect("a container")
    }

    fn mark_file(&self) -> Vec<u8> {
        fs::read(self.dir.path().join("cluster-mark-service-0.dat")).expect("a mark file")
    }

    /// The value of the counter of a type that a test accepts.
    fn counter(&self, type_id: i32, accepts: impl Fn(i64) -> bool) -> Option<i64> {
        let cnc = CncFile::open(self.driver.aeron_dir(), Duration::ZERO).ok()?;
        let mut counters = cnc.counters().iter();
        let found = counters.find(|x| x.type_id == type_id && accepts(x.registration_id))?;
        Some(found.value)
    }

    fn ends(&self) -> usize {
        self.ends.load(Ordering::Relaxed)
    }
}

fn ignore(_: &mut Cluster<'_>, _: &SessionMessage<'_>) -> ServiceResult {
    Ok(())
}

#[test]
fn life_beside_a_stand_in() {
    let host = Host::new();
    // The log of a stranger, on the same stream. Only the session of a log names it.
    let stranger = connect(&host.driver);
    let _log = stranger.add_exclusive_publication("aeron:ipc?term-length=1m", 100).expect("a log");
    let mut module = host.module();
    let container = host.start(host.context(), |cluster, message| {
        let MessageSource::Client { session_id } = message.source else {
            return cluster.schedule_timer(7.into(), cluster.time() + 1);
        };
        assert_eq!(message.payload, b"hello");
        cluster.offer(b"to all")?.expect("short");
        let mut session = cluster.session(session_id).expect("open");
        session.offer_or_close(message.payload, Duration::from_secs(10))
    });
    assert!(module.await_recovery() > 0);
    module.lead();
    let aeron = connect(&host.driver);
    let mut egress = aeron.add_subscription("aeron:ipc", 33).expect("a subscription");
    module.open_session(5, "aeron:ipc", 33);
    module.append_message(5, b"hello");
    let mut received = Vec::new();
    let mut await_answer = |expected: &[u8]| {
        await_that("an answer", || {
            let handler = |message: &[u8], _: &Header<'_>| received.push(message[32..].to_vec());
            egress.poll(handler, 10).expect("an open subscription");
            received.last().is_some_and(|last| last == expected)
        });
    };
    await_answer(b"hello");
    let mut sent = None;
    await_that("a service message", || {
        sent = module.poll();
        sent.is_some()
    });
    let sent = sent.expect("awaited");
    assert_eq!(&sent[32..], b"to all");
    // The consensus module appends the message of the service.
    module.append_message(i64::MIN | 1, b"to all");
    let mut timer = None;
    await_that("a timer", || {
        timer = module.poll();
        timer.is_some()
    });
    let timer = timer.expect("awaited");
    let (template_id, fields, _) = decode_values(&timer).expect("a message");
    assert_eq!((template_id, fields), (31, vec![7, 3]));
    module.append_timer(7);
    await_answer(b"fired 7");
    module.terminate();
    let ack = module.await_ack();
    assert_eq!((ack.ack_id, ack.relevant_id), (2, -1));
    let log_position = ack.log_position;
    let cause = TerminationCause::ConsensusModuleTerminated { log_position, is_expected: true };
    assert_eq!((container.join(), host.ends()), (cause, 1));
}

#[cfg(unix)]
#[test]
fn forked_child_does_not_wait_for_the_container() {
    let host = Host::new();
    let mut container = Some(host.start(host.context(), ignore));
    let shutdown = ShutdownSignal::new();
    let child = ForkedChild::run(|| {
        let container = container.take().expect("a container");
        let cause = container.join_or_stop(&shutdown);
        assert!(matches!(cause, TerminationCause::Failed(_)), "{cause:?}");
    });
    let deadline = Instant::now() + DEADLINE;
    child.expect("a child").await_success(deadline).expect("a child that succeeds");
    let container = container.expect("the parent's");
    assert!(container.is_running());
    shutdown.signal();
    assert_eq!(container.join_or_stop(&shutdown), TerminationCause::Stopped);
}

#[test]
fn settings_name_client_counter_and_mark_file() {
    let host = Host::new();
    for (is_wanted, files) in [(false, 0), (true, 1)] {
        let mut context = host.context();
        context.set_has_mark_file(is_wanted).unwrap().set_service_name("orders").unwrap();
        context.set_cycle_threshold(Duration::from_nanos(1)).unwrap();
        let container = host.start(context, ignore);
        assert_eq!(fs::read_dir(host.dir.path()).expect("a directory").count(), files);
        let cnc = CncFile::open(host.driver.aeron_dir(), Duration::ZERO).expect("a driver");
        let has_name =
            || cnc.counters().iter().any(|counter| counter.label.contains("name=orders"));
        await_that("a heartbeat with the name", has_name);
        let errors = cnc.counters().iter().find(|counter| counter.type_id == ERRORS);
        let AeronVersion { text, commit, .. } = AeronVersion::linked();
        let name = "Cluster Container Errors - clusterId=0 serviceId=0";
        let label = errors.map(|counter| counter.label.clone());
        assert_eq!(label, Some(format!("{name} version={text} commit={commit}")));
        let slow_cycles = || host.counter(SLOW_CYCLES, |_| true) > Some(0);
        await_that("slow cycles", slow_cycles);
        drop(container);
    }
}

#[test]
fn absent_log_is_given_up_for_a_later_one() {
    let host = Host::new();
    let mut module = host.module();
    let container = host.start(host.context(), ignore);
    module.await_recovery();
    // Logs that never come. Acknowledgements of them would end the node.
    module.request_join(12);
    module.request_join(13);
    module.lead();
    module.open_session(5, "aeron:ipc", 33);
    module.terminate();
    assert_eq!(module.await_ack().ack_id, 2);
    let cause = container.join();
    let is_orderly =
        matches!(cause, TerminationCause::ConsensusModuleTerminated { is_expected: true, .. });
    assert!(is_orderly, "{cause:?}");
}

#[test]
fn counters_of_an_old_module_are_passed_over() {
    // An old module that has died: its service had started, or had not.
    for had_started in [false, true] {
        // A driver of its own. Its stand-ins would read the acknowledgements of the round before.
        let host = Host::new();
        let mut old = host.module();
        if had_started {
            old.end_recovery();
        }
        let mut module = host.module();
        let container = host.start(host.context(), ignore);
        module.await_recovery();
        module.lead();
        drop(old);
        module.open_session(5, "aeron:ipc", 33);
        module.terminate();
        assert_eq!(module.await_ack().ack_id, 2);
        let cause = container.join();
        let is_orderly =
            matches!(cause, TerminationCause::ConsensusModuleTerminated { is_expected: true, .. });
        assert!(is_orderly, "{had_started} {cause:?}");
    }
}

#[test]
fn end_of_the_module_is_the_cause() {
    let host = Host::new();
    let mut module = host.module();
    let container = host.start(host.context(), ignore);
    module.await_recovery();
    module.lead();
    drop(module);
    assert_eq!(container.join(), TerminationCause::ConsensusModuleGone);
    assert_eq!(host.ends(), 1);
}

/// Returns the session of a request to close it.
fn close_request(message: &[u8]) -> Option<i64> {
    let (template_id, fields, _) = decode_values(message)?;
    (template_id == 30).then(|| fields[0])
}

#[test]
fn sessions_that_take_no_answer_are_closed() {
    const TIMEOUT: Duration = Duration::from_millis(20);
    let host = Host::new();
    let mut module = host.module();
    let handled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&handled);
    // The default error policy ends the container when a callback fails.
    let (mut context, reported) = (host.context(), Arc::new(AtomicUsize::new(0)));
    let reports = Arc::clone(&reported);
    context.set_error_handler(move |_| _ = reports.fetch_add(1, Ordering::Relaxed)).unwrap();
    let container = host.start(context, move |cluster, message| {
        let MessageSource::Client { session_id } = message.source else { return Ok(()) };
        let mut session = cluster.session(session_id).expect("open");
        let length = match message.payload {
            b"long" => session.max_message_length() + 1,
            _ => 8,
        };
        session.offer_or_close(&vec![0; length], TIMEOUT)?;
        let is_closing = session.is_closing();
        count.fetch_add(1 + 1000 * usize::from(is_closing), Ordering::Relaxed);
        Ok(())
    });
    module.await_recovery();
    module.lead();
    let aeron = connect(&host.driver);
    let channel = "aeron:ipc?term-length=64k";
    let _egress = aeron.add_subscription(channel, 33).expect("a subscription");
    let silent = format!("aeron:udp?endpoint=127.0.0.1:{}", free_port());
    module.open_session(5, &silent, 33);
    module.open_session(6, channel, 33);
    module.open_session(7, "aeron:udp?endpoint=no channel", 33);
    // The first client has gone, the second one does not read, and the third one lies.
    for _ in 0..3 {
        module.append_message(5, b"lost");
        module.append_message(7, b"lost");
    }
    for _ in 0..1000 {
        module.append_message(6, b"unread");
    }
    let mut closed = Vec::new();
    await_that("three requests", || {
        let request = module.poll().and_then(|sent| close_request(&sent));
        closed.extend(request);
        closed.len() == 3
    });
    assert_eq!(closed, [5, 7, 6]);
    // The client is no error of the service, but for the channel that cannot be added.
    assert_eq!(host.counter(ERRORS, |_| true), Some(1));
    module.open_session(8, channel, 34);
    let _egress = aeron.add_subscription(channel, 34).expect("a subscription");
    module.append_message(8, b"long");
    let mut request = None;
    await_that("a request", || {
        request = module.poll().and_then(|sent| close_request(&sent));
        request.is_some()
    });
    assert_eq!(request, Some(8));
    await_that("a recorded error", || host.counter(ERRORS, |_| true) == Some(2));
    assert!(container.is_running());
    container.stop();
    assert_eq!(container.join(), TerminationCause::Stopped);
    assert_eq!(handled.load(Ordering::Relaxed) % 1000, 7);
    // The operators see both errors.
    assert_eq!(reported.load(Ordering::Relaxed), 2);
    assert_eq!(error_log::entries(&host.mark_file()[8192..]).len(), 2);
}

#[test]
fn idling_callback_keeps_node_and_client_alive() {
    let host = Host::new();
    let mut module = host.module();
    let mut settings = Context::new().expect("a context");
    settings
        .set_dir(host.driver.aeron_dir())
        .and_then(|settings| settings.set_use_conductor_agent_invoker(true))
        .expect("valid settings");
    let aeron = Aeron::connect(settings).expect("a client");
    let client_id = aeron.client_id();
    let mut context = host.context();
    context.set_aeron(Some(aeron)).unwrap();
    let may_go_on = Arc::new(AtomicUsize::new(0));
    let (entered, gate) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&may_go_on));
    let count = Arc::clone(&entered);
    let container = host.start(context, move |cluster, _| {
        count.fetch_add(1, Ordering::Release);
        while gate.load(Ordering::Acquire) == 0 {
            cluster.idle(0)?;
        }
        Ok(())
    });
    assert_eq!(module.await_recovery(), client_id);
    module.lead();
    module.append_message(5, b"wait");
    await_that("the callback", || entered.load(Ordering::Acquire) == 1);
    // Only the callback's idling gives these signs of life.
    let sign =
        || MarkFileHeader::decode(&host.mark_file()).expect("a mark file").activity_timestamp;
    let heartbeat = || host.counter(HEARTBEAT, |id| id == client_id).expect("a heartbeat");
    let (first_sign, first_heartbeat) = (sign(), heartbeat());
    await_that("signs of life", || sign() >= first_sign + 2000);
    await_that("heartbeats", || heartbeat() >= first_heartbeat + 2000);
    assert!(container.is_running());
    may_go_on.store(1, Ordering::Release);
    module.append_message(5, b"go on");
    await_that("the next callback", || entered.load(Ordering::Acquire) == 2);
    // A callback that idles ends with its container.
    may_go_on.store(0, Ordering::Release);
    module.append_message(5, b"wait");
    await_that("the last callback", || entered.load(Ordering::Acquire) == 3);
    container.stop();
    assert_eq!((container.join(), host.ends()), (TerminationCause::Stopped, 1));
}
