//! Launches and log buffers for which there is no space.

use rusteron_media_driver::{ErrorKind, MediaDriver};
use rusteron_test_support::{
    SmallFileSystem, connect, connected_pair, driver_context_in, exchange, free_port,
};

use crate::lock;

#[test]
fn launch_without_space() {
    let _one_at_a_time = lock();
    let Some(small) = SmallFileSystem::mount("1m") else {
        return;
    };
    let dir = small.path().join("aeron");
    // The second time, the remains of the first are there.
    for _ in 0..2 {
        let error = MediaDriver::launch(driver_context_in(&dir)).expect_err("no space");
        assert_eq!(error.kind(), ErrorKind::StorageSpace, "{error:?}");
        assert!(error.message().contains("No space left on device"), "{error:?}");
        assert!(!dir.join("cnc.dat").exists());
    }
}

#[test]
fn log_buffer_without_space() {
    let _one_at_a_time = lock();
    let Some(small) = SmallFileSystem::mount("80m") else {
        return;
    };
    let driver =
        MediaDriver::launch(driver_context_in(&small.path().join("aeron"))).expect("a driver");
    let aeron = connect(&driver);
    let error = aeron.add_publication("aeron:ipc?term-length=64m", 1).expect_err("no space");
    assert_eq!(error.kind(), ErrorKind::StorageSpace, "{error:?}");
    drop(aeron.add_publication("aeron:ipc?term-length=64k", 1).expect("there is space for this"));
    drop(aeron);
}

#[test]
fn non_sparse_log_buffers_reserve_space() {
    let _one_at_a_time = lock();
    let Some(small) = SmallFileSystem::mount("64m") else {
        return;
    };
    // The driver itself then needs 47 MB, not sparse either. A log buffer takes 12 MB.
    for channel in [
        "aeron:ipc?term-length=4m".to_owned(),
        format!("aeron:udp?term-length=4m|endpoint=127.0.0.1:{}", free_port()),
    ] {
        let mut context = driver_context_in(&small.path().join("aeron"));
        context
            .set_term_buffer_sparse_file(false)
            .and_then(|context| context.set_dir_delete_on_shutdown(true))
            .expect("settings");
        let driver = MediaDriver::launch(context).expect("a driver");
        let aeron = connect(&driver);
        // Nothing is written to the first log buffer, which has its space all the same.
        let first = aeron.add_publication(&channel, 1).expect("there is space for one");
        let error = aeron.add_publication(&channel, 2).expect_err("no space for a second");
        assert_eq!(error.kind(), ErrorKind::StorageSpace, "{channel}: {error:?}");

        let (mut publication, mut subscription) =
            connected_pair(&connect(&driver), rusteron_test_support::SHORT_TERMS);
        exchange(&mut publication, &mut subscription, 100);
        drop((first, aeron));
    }
}
