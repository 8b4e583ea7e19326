//! Counters: those of the consensus module, which a container reads, and its own, for operators.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use rusteron_client::{Aeron, AeronVersion, Counter, CounterState, CountersReader};
use rusteron_core::cnc::{i32_at, i64_at};
use rusteron_core::printable::Printable;
use rusteron_core::{panic, scan};

use crate::error::Result;
use crate::ids::{LeadershipTermId, ServiceId};
use crate::service::context::{ErrorHandler, ServiceContext};
use crate::service::mark_file::MarkFile;
use crate::service::types::Recovery;

const COMMIT_POSITION: i32 = 203;
const RECOVERY: i32 = 204;

/// Offsets in the key of a recovery counter.
const TERM: usize = 0;
const LOG_POSITION: usize = 8;
const TIMESTAMP: usize = 16;
const CLUSTER_ID: usize = 24;
const SERVICE_COUNT: usize = 28;
const RECORDING_IDS: usize = 32;

/// The counter of the position up to which the log is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitPosition {
    counter_id: i32,
    registration_id: i64,
}

impl CommitPosition {
    /// Returns the position. `None` if the counter has gone.
    #[inline]
    pub(crate) fn get(self, aeron: &Aeron) -> Option<i64> {
        let counters = aeron.counters_reader();
        let value = counters.value(self.counter_id)?;
        // Checked afterwards: another counter may have got the id meanwhile.
        (counters.registration_id(self.counter_id)? == self.registration_id).then_some(value)
    }
}

/// Finds the counters with which a consensus module waits for its services. `None` if it does not.
///
/// Counters of an old consensus module can be there until the media driver has timed it out. So
/// both must have the same owner, and the newest counters count.
pub(crate) fn find(
    counters: &CountersReader<'_>,
    cluster_id: i32,
    service_id: ServiceId,
) -> Option<(CommitPosition, Result<Recovery, String>)> {
    let ids = || {
        let is_used = |id: &i32| counters.state(*id) != Some(CounterState::Unused);
        (0..=counters.max_counter_id()).take_while(is_used)
    };
    let of_cluster = |id: &i32, type_id: i32, offset: usize| {
        counters.type_id(*id) == Some(type_id)
            && counters.key(*id).and_then(|key| i32_at(&key, offset)) == Some(cluster_id)
    };
    let candidates = ids().filter(|id| of_cluster(id, RECOVERY, CLUSTER_ID));
    let newest = candidates.filter_map(|recovery_id| {
        let owner = counters.owner_id(recovery_id)?;
        let key = counters.key(recovery_id)?;
        let of_owner = |id: &i32| counters.owner_id(*id) == Some(owner);
        let counter_id = ids().filter(|id| of_cluster(id, COMMIT_POSITION, 0)).find(of_owner)?;
        let registration_id = counters.registration_id(counter_id)?;
        let commit_position = CommitPosition { counter_id, registration_id };
        Some((commit_position, recovery(&key, service_id)?))
    });
    newest.max_by_key(|(commit_position, _)| commit_position.registration_id)
}

/// Reads the key of a recovery counter. The text of an error says why the service has no snapshot.
fn recovery(key: &[u8], service_id: ServiceId) -> Option<Result<Recovery, String>> {
    let leadership_term_id = LeadershipTermId::from_number(i64_at(key, TERM)?);
    let service_count = i32_at(key, SERVICE_COUNT)?;
    let snapshot_recording_id = if leadership_term_id.is_none() {
        None
    } else if (0..service_count).contains(&service_id.get()) {
        Some(i64_at(key, RECORDING_IDS + 8 * usize::try_from(service_id.get()).ok()?)?.into())
    } else {
        let text = format!("service_id={service_id}: the snapshot has {service_count} services");
        return Some(Err(text));
    };
    Some(Ok(Recovery {
        leadership_term_id,
        log_position: i64_at(key, LOG_POSITION)?,
        timestamp: i64_at(key, TIMESTAMP)?,
        snapshot_recording_id,
    }))
}

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
        let key = [cluster_id.to_le_bytes(), service_id.get().to_le_bytes()].concat();
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
            error_handler: context.error_handler.clone(),
            mark_file,
        })
    }

    pub(crate) fn record_error(&self, error: &dyn Display) {
        self.errors.increment();
        let text = error.to_string();
        ::log::error!("{}", Printable(&text));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(term: i64, recordings: &[i64]) -> Vec<u8> {
        let mut key: Vec<u8> = [term, 4096, 77].iter().flat_map(|x| x.to_le_bytes()).collect();
        key.extend(5_i32.to_le_bytes());
        key.extend((recordings.len() as i32).to_le_bytes());
        key.extend(recordings.iter().flat_map(|x| x.to_le_bytes()));
        key.resize(112, 0);
        key
    }

    #[test]
    fn recovery_of_each_service() {
        let expected = |leadership_term_id, snapshot_recording_id| {
            let (log_position, timestamp) = (4096, 77);
            let recovery =
                Recovery { leadership_term_id, log_position, timestamp, snapshot_recording_id };
            Some(Ok(recovery))
        };
        assert_eq!(recovery(&key(-1, &[]), ServiceId::new(0)), expected(None, None));
        assert_eq!(
            recovery(&key(3, &[8, 9]), ServiceId::new(0)),
            expected(Some(LeadershipTermId::new(3)), Some(8.into()))
        );
        assert_eq!(
            recovery(&key(3, &[8, 9]), ServiceId::new(1)),
            expected(Some(LeadershipTermId::new(3)), Some(9.into()))
        );
        assert!(matches!(recovery(&key(3, &[8, 9]), ServiceId::new(2)), Some(Err(_))));
        assert!(matches!(recovery(&key(3, &[]), ServiceId::new(0)), Some(Err(_))));
        assert_eq!(recovery(&key(3, &[8])[..16], ServiceId::new(0)), None);
    }

    #[test]
    fn commit_position_goes_with_its_counter() {
        let driver = rusteron_test_support::launch_with(|context| {
            context.set_counters_free_to_reuse_timeout(Duration::ZERO)
        });
        let aeron = rusteron_test_support::connect(&driver);
        let add = || aeron.add_counter(COMMIT_POSITION, &[], "a position").expect("a counter");
        let first = add();
        first.set_release(4096);
        let (counter_id, registration_id) = (first.counter_id(), first.registration_id());
        let position = CommitPosition { counter_id, registration_id };
        assert_eq!(position.get(&aeron), Some(4096));
        drop(first);
        // The driver gives the id to another counter.
        let mut others = Vec::new();
        rusteron_test_support::await_that("the counter's id", || {
            others.push(add());
            others.iter().any(|other| other.counter_id() == counter_id)
        });
        assert_eq!(position.get(&aeron), None);
    }
}
