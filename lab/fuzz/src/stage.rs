//! A media driver and a client in this process, both driven by the fuzz target's one thread.

use std::env;
use std::fmt::Debug;
use std::path::PathBuf;
use std::process;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Context, Registration, Resource, Result};
use rusteron_media_driver::{DriverContext, DriverInvoker, NameResolver, ThreadingMode};

/// No machine is so slow. Nothing here waits for time to pass.
const DEADLINE: Duration = Duration::from_secs(60);

/// A driver and a client without threads of their own.
#[derive(Debug)]
pub struct Stage {
    // Closed before the driver.
    pub aeron: Aeron,
    pub driver: DriverInvoker,
}

impl Stage {
    /// A driver with small buffers and short terms, and a client of it.
    pub fn launch(settings: impl FnOnce(&mut DriverContext) -> Result<()>) -> Self {
        let mut context = driver_context().expect("valid settings");
        settings(&mut context).expect("valid settings");
        let mut driver = DriverInvoker::launch(context).expect("a driver");
        driver.do_work().expect("a turn");
        let mut context = Context::new().expect("a context");
        context
            .set_dir(driver.aeron_dir())
            .and_then(|context| context.set_use_conductor_agent_invoker(true))
            .expect("valid settings");
        // Refused resources and rejected images are errors that are expected.
        context.set_error_handler(|_| ()).expect("a handler");
        let aeron = Aeron::connect(context).expect("a client");
        Self { aeron, driver }
    }

    /// Does the work of the driver once, then that of the client.
    pub fn do_work(&mut self) {
        // An error is in the error log, or closes the client, which is seen later.
        let _ = self.driver.do_work();
        let _ = self.aeron.do_work();
    }

    pub fn repeat_work(&mut self, count: usize) {
        for _ in 0..count {
            self.do_work();
        }
    }

    /// Waits for a resource.
    pub fn added<R: Resource>(&mut self, adding: Result<Registration<R>>) -> Result<R> {
        let mut adding = adding?;
        let deadline = Instant::now() + DEADLINE;
        loop {
            self.do_work();
            if let Some(resource) = adding.poll()? {
                return Ok(resource);
            }
            assert!(Instant::now() < deadline, "no answer from the driver");
        }
    }

    /// Waits for a condition.
    pub fn await_that(&mut self, what: impl Debug, mut condition: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !condition(self) {
            assert!(Instant::now() < deadline, "waited in vain: {what:?}");
            self.do_work();
        }
    }
}

fn driver_context() -> Result<DriverContext> {
    let mut context = DriverContext::new()?;
    context
        .set_dir(work_dir("driver"))?
        .set_dir_delete_on_start(true)?
        .set_dir_delete_on_shutdown(true)?
        .set_threading_mode(ThreadingMode::Invoker)?
        .set_to_conductor_buffer_length((1 << 20) + 768)?
        .set_to_clients_buffer_length((1 << 20) + 128)?
        .set_counters_buffer_length(1 << 20)?
        .set_loss_report_buffer_length(1 << 20)?
        .set_term_buffer_length(64 << 10)?
        .set_ipc_term_buffer_length(64 << 10)?
        .set_timer_interval(Duration::from_millis(10))?
        .set_client_liveness_timeout(2 * DEADLINE)?
        .set_publication_unblock_timeout(4 * DEADLINE)?
        .set_perform_storage_checks(false)?;
    Ok(context)
}

/// Turns the driver's name resolver on, at a port.
pub fn resolve_names(context: &mut DriverContext, port: u16) -> Result<()> {
    context
        .set_name_resolver(NameResolver::Driver)?
        .set_resolver_name("fuzzed")?
        .set_resolver_interface(&format!("127.0.0.1:{port}"))?;
    Ok(())
}

/// A directory of this process and for one purpose. `.ci/fuzz` deletes the files that a crash
/// leaves there.
pub fn work_dir(purpose: &str) -> PathBuf {
    env::temp_dir().join(format!("rusteron-fuzz-{}-{purpose}", process::id()))
}
