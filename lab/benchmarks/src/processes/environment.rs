//! The environment that all runs of a benchmark share.

use std::sync::OnceLock;
use std::time::Duration;

use rusteron_client::IdleStrategyKind;
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::{Failure, on_interrupt};
use rusteron_test_support::programs;

use crate::command_line::choice::Contender;
use crate::command_line::run_options::RunOptions;
use crate::measuring::measurement::Plan;
use crate::processes::java::Java;

/// The common options, the user's wish to end, and Java.
#[derive(Debug)]
pub struct Environment {
    /// The options.
    pub options: RunOptions,
    /// Ends runs early.
    pub interrupt: ShutdownSignal,
    /// Java, or why it is not there.
    java: OnceLock<Result<Java, Failure>>,
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

    /// Returns Java, for a contender or a benchmark that cannot do without it.
    ///
    /// # Errors
    /// [`Failure::Run`] that says why it is not there; [`Failure::Interrupted`].
    pub fn java(&self) -> Result<&Java, Failure> {
        self.look_for_java().map_err(|failure| match failure {
            Failure::Interrupted => Failure::Interrupted,
            reason => Failure::run("this benchmark needs Java", reason),
        })
    }

    /// Returns whether Java is there. The first time, standard error says why it is not.
    ///
    /// # Errors
    /// [`Failure::Interrupted`].
    pub fn has_java(&self) -> Result<bool, Failure> {
        let is_first = self.java.get().is_none();
        match self.look_for_java() {
            Ok(_) => Ok(true),
            Err(Failure::Interrupted) => Err(Failure::Interrupted),
            Err(reason) => {
                if is_first {
                    programs::warn(format_args!("the contenders in Java are skipped: {reason}"));
                }
                Ok(false)
            }
        }
    }

    /// Looks for Java once.
    fn look_for_java(&self) -> Result<&Java, Failure> {
        let find = || Java::find(&self.options.java_option, &self.interrupt);
        self.java.get_or_init(find).as_ref().map_err(Failure::clone)
    }

    /// Returns Java if it has been looked for and found.
    pub fn found_java(&self) -> Option<&Java> {
        self.java.get()?.as_ref().ok()
    }

    /// Returns the warm-up of a run, which is longer if the contender is in Java.
    pub fn warmup(&self, contender: Contender) -> Duration {
        let RunOptions { warmup, java_warmup, .. } = self.options;
        if contender.is_java() { warmup.max(java_warmup) } else { warmup }
    }

    /// Returns the plan by which a contender measures.
    pub fn plan(
        &self,
        contender: Contender,
        message_length: usize,
        idle: IdleStrategyKind,
        timeout: Duration,
    ) -> Plan {
        Plan {
            message_length,
            idle,
            warmup: self.warmup(contender),
            measure: self.options.measure,
            timeout,
        }
    }

    /// Sleeps, unless the user interrupts the benchmark.
    ///
    /// # Errors
    /// [`Failure::Interrupted`].
    pub fn sleep(&self, duration: Duration) -> Result<(), Failure> {
        if self.interrupt.wait_timeout(duration) { Err(Failure::Interrupted) } else { Ok(()) }
    }
}
