//! The container's duty cycles, beside Java's consensus module.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rusteron_cluster::{
    Cluster, ClusterClient, ClusterContext, ClusteredService, CorrelationId, Egress, Lifecycle,
    MessageSource, NotSent, Sent, ServiceAgent, ServiceContext, ServiceResult, SessionMessage,
    SnapshotReader, SnapshotWriter,
};
use rusteron_test_support::await_that;
use rusteron_test_support::cluster::{JavaCluster, Options, Service};

use crate::without_allocating;

/// Sends as the first byte of each message says. All ways of sending are here.
struct Sender {
    timers: Arc<AtomicUsize>,
    service_messages: Arc<AtomicUsize>,
}

/// Answers that come back to the client.
const ANSWERED: [u8; 4] = *b"ocpl";
/// Requests to the consensus module.
const REQUESTS: [u8; 4] = *b"tsmn";

impl ClusteredService for Sender {
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
        let payload = message.payload;
        let MessageSource::Client { session_id } = message.source else {
            self.service_messages.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        match payload[0] {
            b'o' | b'l' => {
                answer(cluster, |cluster| cluster.session(session_id).expect("open").offer(payload))
            }
            b'p' => answer(cluster, |cluster| {
                let mut session = cluster.session(session_id).expect("open");
                session.offer_parts(&[IoSlice::new(payload); 7])
            }),
            b'c' => answer(cluster, |cluster| {
                let mut session = cluster.session(session_id).expect("open");
                session.try_claim(payload.len()).and_then(|mut claim| {
                    claim.copy_from_slice(payload);
                    claim.commit()
                })
            }),
            b't' => {
                cluster.schedule_timer(3.into(), cluster.time() + 1_000_000)?;
                cluster.cancel_timer(3.into())?;
                cluster.schedule_timer(4.into(), cluster.time())
            }
            b's' => {
                cluster.offer(payload)?.expect("short");
                Ok(())
            }
            b'm' => {
                while cluster.try_offer(payload).is_err() {
                    cluster.idle(0)?;
                }
                Ok(())
            }
            _ => loop {
                if let Ok(mut claim) = cluster.try_claim(payload.len()) {
                    claim.copy_from_slice(payload);
                    claim.commit().expect("sent");
                    break Ok(());
                }
                cluster.idle(0)?;
            },
        }
    }

    fn on_timer_event(
        &mut self,
        cluster: &mut Cluster<'_>,
        _: CorrelationId,
        _: i64,
    ) -> ServiceResult {
        self.timers.fetch_add(1, Ordering::Relaxed);
        cluster.for_each_session(|session| {
            session.is_closing();
            Ok(())
        })
    }

    fn on_take_snapshot(&self, _: &mut SnapshotWriter<'_>) -> ServiceResult {
        Ok(())
    }
}

fn answer(
    cluster: &mut Cluster<'_>,
    mut send: impl FnMut(&mut Cluster<'_>) -> Result<Sent, NotSent>,
) -> ServiceResult {
    while send(cluster).is_err() {
        cluster.idle(0)?;
    }
    Ok(())
}

#[test]
fn duty_cycles_do_not_allocate() {
    let options = Options { service: Service::None, ..Options::default() };
    let Some(cluster) = JavaCluster::launch(options) else { return };
    let node = cluster.node(0);
    let (timers, service_messages) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let service =
        Sender { timers: Arc::clone(&timers), service_messages: Arc::clone(&service_messages) };
    let mut context = ServiceContext::new();
    context.set_aeron_dir(node.aeron_dir()).unwrap().set_cluster_dir(node.cluster_dir()).unwrap();
    let mut agent = ServiceAgent::new(context, service).expect("an agent");
    // Starts, terms and new sessions may allocate.
    let is_counted = AtomicBool::new(false);
    let mut work = || {
        if is_counted.load(Ordering::Relaxed) {
            without_allocating("a duty cycle", || agent.do_work())
        } else {
            agent.do_work()
        }
        .expect("no end");
    };
    await_that("a leader", || {
        work();
        node.is_leader()
    });
    let aeron = node.aeron();
    let mut settings = ClusterContext::new();
    settings
        .set_ingress_channel("aeron:udp")
        .unwrap()
        .set_ingress_endpoints(cluster.ingress_endpoints().parse().expect("endpoints"))
        .unwrap()
        .set_egress_channel("aeron:udp?endpoint=localhost:0")
        .unwrap()
        .set_message_timeout(Duration::from_secs(60))
        .unwrap();
    let mut attempt = ClusterClient::async_connect(&aeron, settings).expect("valid settings");
    let mut client = None;
    await_that("a session", || {
        work();
        client = attempt.poll().expect("no error");
        client.is_some()
    });
    let mut client = client.expect("awaited");
    let mut answers = 0;
    let long = vec![b'l'; 10_000];
    for round in 1..=50 {
        // The first rounds reserve memory for messages of several fragments.
        is_counted.store(round > 5, Ordering::Relaxed);
        let commands = ANSWERED.into_iter().chain(REQUESTS);
        for command in commands {
            let short = [command; 100];
            let message = if command == b'l' { &long[..] } else { &short[..] };
            await_that("an accepted message", || {
                work();
                client.offer(message).is_ok()
            });
        }
        await_that("all answers, timers and service messages", || {
            work();
            let handler = |_: &mut _, event: Egress<'_>| {
                answers += usize::from(matches!(event, Egress::Message { .. }));
            };
            client.poll_egress(handler, 10).expect("an open session");
            answers == round * ANSWERED.len()
                && service_messages.load(Ordering::Relaxed) == 3 * round
                && timers.load(Ordering::Relaxed) == round
        });
    }
}
