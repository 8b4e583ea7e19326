//! Embedded media drivers, each in a directory of its own, and their clients.

use std::path::Path;
use std::time::Duration;

use rusteron_client::{Aeron, Context, IdleStrategyKind, Result};
use rusteron_media_driver::{DriverContext, MediaDriver, ThreadingMode};

use crate::DEADLINE;

/// For tests that wait until it is over. A driver that is alive must not be silent for so long, even on
/// a busy machine and under valgrind.
pub const SHORT_DRIVER_TIMEOUT: Duration = Duration::from_secs(5);

pub fn launch() -> MediaDriver {
    MediaDriver::launch_embedded().expect("an embedded driver")
}

/// The same with some settings.
pub fn launch_with(
    settings: impl FnOnce(&mut DriverContext) -> Result<&mut DriverContext>,
) -> MediaDriver {
    let mut context = DriverContext::new().expect("a context");
    context
        .set_threading_mode(ThreadingMode::Shared)
        .and_then(|context| context.set_shared_idle_strategy(IdleStrategyKind::Backoff))
        .and_then(settings)
        .expect("valid settings");
    MediaDriver::launch_embedded_with(context).expect("an embedded driver")
}

/// A driver for tests in which a client does no work for a while. On a busy machine, that can be a long while.
/// This driver does not take such a client for dead.
pub fn launch_with_long_timeouts() -> MediaDriver {
    launch_with(|context| {
        context
            .set_client_liveness_timeout(10 * DEADLINE)?
            .set_publication_unblock_timeout(20 * DEADLINE)
    })
}

/// Settings for a driver that tests launch in a directory of their own.
pub fn driver_context() -> DriverContext {
    let mut context = DriverContext::new().expect("a context");
    context.set_threading_mode(ThreadingMode::Shared).expect("a mode");
    context
}

pub fn driver_context_in(dir: &Path) -> DriverContext {
    let mut context = driver_context();
    context
        .set_dir(dir)
        .and_then(|context| context.set_dir_warn_if_exists(false))
        .expect("valid settings");
    context
}

pub fn context(dir: &Path) -> Context {
    let mut context = Context::new().expect("a context");
    context.set_dir(dir).expect("a directory");
    context.set_driver_timeout(DEADLINE).expect("a timeout");
    context
}

pub fn connect(driver: &MediaDriver) -> Aeron {
    Aeron::connect(context(driver.aeron_dir())).expect("a client")
}

/// Settings of a client that soon notices when its driver stops.
pub fn watchful_context(dir: &Path) -> Context {
    let mut context = context(dir);
    context
        .set_driver_timeout(SHORT_DRIVER_TIMEOUT)
        .and_then(|context| context.set_keepalive_interval(Duration::from_millis(50)))
        .expect("valid settings");
    context
}

pub fn connect_watchfully(driver: &MediaDriver) -> Aeron {
    Aeron::connect(watchful_context(driver.aeron_dir())).expect("a client")
}
