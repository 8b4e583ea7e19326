//! What all runs of a benchmark share.

use std::sync::OnceLock;
use std::time::Duration;

use rusteron_client::IdleStrategyKind;
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::{Failure, on_interrupt};

use crate::command_line::choice::Contender;
use crate::command_line::run_options::RunOptions;
use crate::measuring::measurement::{FRAGMENT_LIMIT, Plan};
use crate::processes::java::Java;

/// The common options, the user's wish to end, and Java.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The options.
    pub options: RunOptions,
    /// Ends runs early.
    pub interrupt: ShutdownSignal,
    java: OnceLock<Option<Java>>,
}

impl Environment {
    /// Handles signals.
    ///
    /// # Errors
    /// [`Failure::Run`] if signals cannot be handled.
    pub fn new(options: &RunOptions) -> Result<Self, Failure> {
        let java = OnceLock::new();
        Ok(Self { options: options.clone(), interrupt: on_interrupt()?, java })
    }

    /// Java, without which a contender or a benchmark cannot be. It is looked for once; standard
    /// error says why it is not there.
    ///
    /// # Errors
    /// [`Failure::Run`] if it is not there.
    pub fn java(&self) -> Result<&Java, Failure> {
        self.java
            .get_or_init(|| Java::find_or_warn(&self.options.java_option, &self.interrupt))
            .as_ref()
            .ok_or_else(|| Failure::Run("this benchmark needs Java".to_owned()))
    }

    /// Java, if a run may have had it.
    pub fn found_java(&self) -> Option<&Java> {
        self.java.get()?.as_ref()
    }

    /// The warm-up of a run, which is longer if the contender is in Java.
    pub fn warmup(&self, contender: Contender) -> Duration {
        let RunOptions { warmup, java_warmup, .. } = self.options;
        if contender.is_java() { warmup.max(java_warmup) } else { warmup }
    }

    /// What a contender is to measure.
    pub fn plan(
        &self,
        contender: Contender,
        message_length: usize,
        idle: IdleStrategyKind,
        timeout: Duration,
    ) -> Plan {
        Plan {
            message_length,
            fragment_limit: FRAGMENT_LIMIT,
            idle,
            warmup: self.warmup(contender),
            measure: self.options.measure,
            timeout,
        }
    }

    /// Waits.
    ///
    /// # Errors
    /// [`Failure::Interrupted`].
    pub fn sleep(&self, duration: Duration) -> Result<(), Failure> {
        if self.interrupt.wait_timeout(duration) { Err(Failure::Interrupted) } else { Ok(()) }
    }
}
