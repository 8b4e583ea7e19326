//! Counters and errors of a container, for operators, and the error log of the mark file.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use rusteron_client::{Aeron, AeronVersion, Counter};
use rusteron_core::{panic, scan};

use crate::error::Result;
use crate::service::context::{ErrorHandler, ServiceContext};
use crate::service::mark_file::MarkFile;

const ERRORS: i32 = 215;
const MAX_CYCLE_TIME: i32 = 218;
const SLOW_CYCLES: i32 = 219;
const MAX_SNAPSHOT_DURATION: i32 = 236;
const SLOW_SNAPSHOTS: i32 = 237;

/// The counters and the error handler of a container. Types, keys and labels are those of Java's
/// container, so that Aeron's tools show both alike.
pub(crate) struct Monitor {
    errors: Counter,
    cycles: Durations,
    snapshots: Durations,
    error_handler: Option<ErrorHandler>,
    mark_file: Option<Arc<MarkFile>>,
}

/// The longest duration, and the number of durations over a threshold.
struct Durations {
    max: Counter,
    slow: Counter,
    threshold: Duration,
}

impl Durations {
    fn record(&self, duration: Duration) {
        // Only this container writes the counter.
        self.max.propose_max_release(nanos(duration));
        if duration > self.threshold {
            self.slow.increment();
        }
    }
}

impl Monitor {
    pub(crate) fn new(
        aeron: &Aeron,
        context: &ServiceContext,
        mark_file: Option<Arc<MarkFile>>,
    ) -> Result<Self> {
        let (cluster_id, service_id) = (context.cluster_id(), context.service_id());
        let key = [cluster_id.to_le_bytes(), service_id.to_le_bytes()].concat();
        let suffix = format!(" - clusterId={cluster_id} serviceId={service_id}");
        let add = |type_id: i32, name: &str, end: &str| -> Result<Counter> {
            Ok(aeron.add_counter(type_id, &key, &format!("{name}{suffix}{end}"))?)
        };
        let durations = |ids: [i32; 2], names: [&str; 2], threshold| -> Result<Durations> {
            let slow =
                format!("{} count: threshold={}", names[1], scan::format_duration(threshold));
            Ok(Durations {
                max: add(ids[0], names[0], "")?,
                slow: add(ids[1], &slow, "")?,
                threshold,
            })
        };
        let AeronVersion { text, commit, .. } = AeronVersion::linked();
        let version = format!(" version={text} commit={commit}");
        Ok(Self {
            errors: add(ERRORS, "Cluster Container Errors", &version)?,
            cycles: durations(
                [MAX_CYCLE_TIME, SLOW_CYCLES],
                [
                    "Cluster container max cycle time in ns",
                    "Cluster container work cycle time exceeded",
                ],
                context.cycle_threshold(),
            )?,
            snapshots: durations(
                [MAX_SNAPSHOT_DURATION, SLOW_SNAPSHOTS],
                [
                    "Clustered service max snapshot duration in ns",
                    "Clustered service max snapshot duration exceeded",
                ],
                context.snapshot_duration_threshold(),
            )?,
            error_handler: context.error_handler().cloned(),
            mark_file,
        })
    }

    pub(crate) fn record_error(&self, error: &dyn Display) {
        self.errors.increment();
        let text = error.to_string();
        ::log::error!("{text}");
        if let Some(mark_file) = &self.mark_file {
            mark_file.record_error(&text);
        }
        if let Some(handler) = &self.error_handler {
            // The handler's panic must not end the container without its acknowledgement.
            if let Err(panic) = panic::catch(|| handler(&text)) {
                ::log::error!("the error handler has panicked: {panic}");
            }
        }
    }

    pub(crate) fn record_cycle(&self, duration: Duration) {
        self.cycles.record(duration);
    }

    pub(crate) fn record_snapshot(&self, duration: Duration) {
        self.snapshots.record(duration);
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
