//! Clients of a driver.

use std::path::Path;
use std::time::Duration;

use rusteron_client::{Aeron, Context};
use rusteron_media_driver::MediaDriver;

use crate::{DEADLINE, SHORT_DRIVER_TIMEOUT};

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
