//! A container gives back every resource that it takes. The test is alone in its process, and looks
//! at that.

#![cfg(all(target_os = "linux", feature = "service"))]

use std::time::Instant;

use rusteron_cluster::{
    Cluster, ClusteredService, Lifecycle, ServiceContainer, ServiceContext, ServiceResult,
    SessionMessage, SnapshotReader, SnapshotWriter, TerminationCause,
};
use rusteron_test_support::cluster::StandInModule;
use rusteron_test_support::{DEADLINE, await_some, await_that, connect, launch, resources};

struct Echo;

impl ClusteredService for Echo {
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
        cluster.for_each_session(|session| {
            // The driver has no subscriber.
            session.offer(message.payload).expect_err("nobody listens");
            Ok(())
        })
    }

    fn on_take_snapshot(&self, _: &mut SnapshotWriter<'_>) -> ServiceResult {
        Ok(())
    }
}

#[test]
fn hundred_containers_leak_nothing() {
    let driver = launch();
    let dir = tempfile::tempdir().expect("a directory");
    let live = |number: i32| {
        let aeron = connect(&driver);
        let (to_service, from_service) = (1000 + 2 * number, 1001 + 2 * number);
        let mut module = StandInModule::on_streams(&aeron, to_service, from_service);
        let mut context = ServiceContext::new();
        context
            .set_aeron_dir(driver.aeron_dir())
            .unwrap()
            .set_cluster_dir(dir.path())
            .unwrap()
            .set_service_stream_id(to_service)
            .unwrap()
            .set_consensus_module_stream_id(from_service)
            .unwrap();
        let container = ServiceContainer::launch(context, Echo).expect("a container");
        module.await_recovery();
        module.lead();
        module.open_session(5, "aeron:ipc", 33);
        module.append_message(5, b"hello");
        match number % 3 {
            0 => {
                module.terminate();
                module.await_ack();
                let cause = container.join();
                let is_orderly = matches!(
                    cause,
                    TerminationCause::ConsensusModuleTerminated { is_expected: true, .. }
                );
                assert!(is_orderly, "{cause:?}");
            }
            1 => {
                drop(module);
                assert_eq!(container.join(), TerminationCause::ConsensusModuleGone);
            }
            _ => drop(container),
        }
    };
    // Resources that are made once and retained come with the first lives.
    (0..3).for_each(live);
    // Without streams, the driver has its own files alone. While it deletes a log, it has the log's
    // directory open.
    let mut before = resources();
    await_that("an idle driver", || {
        before = resources();
        let is_log = |name: &String| name.contains("/publications") || name.contains("/images");
        !before.values().flatten().any(is_log)
    });
    (3..103).for_each(live);
    // The driver gives logs back after a while. A failure shows what is left.
    let start = Instant::now();
    let after = await_some("the last resources", || {
        let after = resources();
        (after == before || start.elapsed() > DEADLINE / 2).then_some(after)
    });
    assert_eq!(after, before);
}
