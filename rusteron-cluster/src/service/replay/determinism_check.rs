//! Two runs of a service over one log.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_core::RecordingId;

use crate::codec::{self, Message};
use crate::error::{ClusterError, ClusterErrorKind, Result};
use crate::ids::{ClusterSessionId, ServiceId};
use crate::service::clustered_service::ClusteredService;
use crate::service::core::{Core, Settings, wants_snapshot};
use crate::service::error::{ErrorPolicy, TerminationCause};
use crate::service::replay::recorded_log::{RecordedLog, invalid};
use crate::service::replay::recorder::{Digest, Effect, Recorder, Shown, Snapshot};
use crate::service::session::SessionInfo;
use crate::service::types::{AppVersion, MessageSource, Recovery};

/// Runs a service over a recorded log twice, and compares everything that the service does.
///
/// After each event of the log, both runs must have made the same [`Effect`]s: answers, timers,
/// messages, closed sessions, snapshots. The state is compared through snapshots: at the snapshots
/// of the log, after [each so many events](Self::set_snapshot_interval), and at the end. The order of
/// the bytes counts, so that iterating a `HashMap` is found even if the states are equal.
///
/// The two runs differ as members do:
/// - They have instances of their own, and the first instance lives on: hash maps have other seeds,
///   and memory has other addresses.
/// - The second run begins [later](Self::set_pause).
/// - The second run replaces its instance by a new one after each snapshot. State that a snapshot
///   leaves out is found.
/// - The second run does background work more often.
///
/// No media driver, archive or consensus module runs. The service is a follower without a member id,
/// as in each replay. All that it sends is accepted, up to Aeron's default lengths. One process cannot
/// show everything:
/// - A clock is found if the two readings differ in an effect. A date, for example, is equal in both.
/// - Threads are found if they happen to run differently. Repeat the check.
/// - Environment, files, compiler and processor are those of one machine. Compare
///   [`Comparison::digest`] with the digest on another machine.
/// - [`Lifecycle::role`](crate::Lifecycle::role) and results of offers do not vary.
///
/// The first run's effects are kept in memory.
///
/// # Example
/// ```no_run
/// use rusteron_cluster::{ClusteredService, DeterminismCheck, RecordedLog, Result};
///
/// fn check<S: ClusteredService>(new_service: fn() -> S) -> Result<()> {
///     let log = RecordedLog::open("node0/cluster", "node0/archive")?;
///     let comparison = DeterminismCheck::new(log).run(new_service)?;
///     assert!(comparison.is_equal(), "{comparison}");
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[must_use]
pub struct DeterminismCheck {
    log: RecordedLog,
    service_id: ServiceId,
    app_version: AppVersion,
    error_policy: ErrorPolicy,
    snapshot_interval: u64,
    pause: Duration,
    is_last_snapshot_wanted: bool,
}

impl DeterminismCheck {
    /// Returns a check of service 0 with the defaults of [`ServiceContext`](crate::ServiceContext).
    /// The runs begin with the log, or with its oldest snapshot if the archive does not have the
    /// beginning.
    pub fn new(log: RecordedLog) -> Self {
        Self {
            log,
            service_id: ServiceId::new(0),
            app_version: AppVersion::new(0, 0, 1),
            error_policy: ErrorPolicy::default(),
            snapshot_interval: 1000,
            pause: Duration::from_secs(1),
            is_last_snapshot_wanted: false,
        }
    }

    /// Sets the service whose snapshots are loaded. The default is 0.
    pub fn set_service_id(&mut self, value: impl Into<ServiceId>) -> &mut Self {
        self.service_id = value.into();
        self
    }

    /// Sets the version of the application. The default is 0.0.1.
    pub fn set_app_version(&mut self, value: AppVersion) -> &mut Self {
        self.app_version = value;
        self
    }

    /// Sets the reaction to an error or panic in a callback. The default is to end the run.
    pub fn set_error_policy(&mut self, value: ErrorPolicy) -> &mut Self {
        self.error_policy = value;
        self
    }

    /// Sets the number of events after which the states are compared. With 1, a difference between
    /// the states is found at its event, at the cost of a snapshot for each event. 0 compares at the
    /// log's snapshots and at the end only. The default is 1000.
    pub fn set_snapshot_interval(&mut self, value: u64) -> &mut Self {
        self.snapshot_interval = value;
        self
    }

    /// Sets the time between the two runs, for services that read a clock. The default is 1 s.
    pub fn set_pause(&mut self, value: Duration) -> &mut Self {
        self.pause = value;
        self
    }

    /// Makes the runs begin with the last snapshot of the log. A log that ends with this snapshot, as
    /// after an orderly shutdown, has nothing to compare: [`run`](Self::run) fails.
    pub fn begin_with_last_snapshot(&mut self) -> &mut Self {
        self.is_last_snapshot_wanted = true;
        self
    }

    /// Runs the service twice. `factory` makes all instances, which must be equal. Callbacks run on
    /// the calling thread. Blocks until the second run has ended.
    ///
    /// # Errors
    /// - [`Io`](ClusterErrorKind::Io): a file cannot be read;
    /// - [`InvalidRecording`](ClusterErrorKind::InvalidRecording): a recording is damaged, or the
    ///   snapshot to begin with is not there, or no message of the log follows the snapshot;
    /// - [`ServiceFailed`](ClusterErrorKind::ServiceFailed): the service could not be started, or
    ///   failed at the same position in both runs.
    ///
    /// A difference between the runs is no error.
    pub fn run<S: ClusteredService>(&self, mut factory: impl FnMut() -> S) -> Result<Comparison> {
        let mut steps: Vec<Step> = Vec::new();
        let first = Run::start(self, &mut factory)?;
        // The first instance outlives the second run.
        let (_first, _) = first.finish(self, None, |step, _| {
            steps.push(step);
            true
        })?;
        thread::sleep(self.pause);

        let mut divergence = None;
        let mut digest = Digest::new();
        let mut expected = steps.into_iter();
        let mut last_end = None;
        let second = Run::start(self, &mut factory)?;
        let (_second, events) = second.finish(self, Some(&mut factory), |step, event| {
            let first = expected.next().map(|step| step.effects).unwrap_or_default();
            if first != step.effects {
                let (position, second) = (step.position, step.effects);
                divergence = Some(Divergence { position, event: describe(event), first, second });
                return false;
            }
            digest.add(0, &step.position.to_le_bytes());
            step.effects.iter().for_each(|effect| effect.digest(&mut digest));
            if let Some(Effect::End(cause)) = step.effects.last() {
                last_end = Some((step.position, describe(event), cause.clone()));
            }
            true
        })?;
        if let Some((position, event, cause)) = last_end {
            return Err(failed(format!("at position {position}, {event}: {cause}")));
        }
        Ok(Comparison { events, digest: digest.value(), divergence })
    }
}

fn failed(text: String) -> ClusterError {
    ClusterError::new(ClusterErrorKind::ServiceFailed, text)
}

/// An event, and what the service did.
#[derive(Debug)]
struct Step {
    /// The position of the log behind the event.
    position: i64,
    effects: Vec<Effect>,
}

/// One run over the log.
struct Run<S> {
    core: Core<S>,
    recorder: Recorder,
    settings: Settings,
    /// The position at which the run begins.
    position: i64,
    begins_with_snapshot: bool,
    events: u64,
}

impl<S: ClusteredService> Run<S> {
    fn start(check: &DeterminismCheck, factory: &mut impl FnMut() -> S) -> Result<Self> {
        let settings = Settings {
            service_id: check.service_id,
            app_version: check.app_version,
            app_version_validator: Arc::new(AppVersion::is_compatible),
            is_responding: true,
            error_policy: check.error_policy,
        };
        let entry = check.log.beginning(check.service_id, check.is_last_snapshot_wanted)?;
        let recovery = Recovery {
            leadership_term_id: entry.map(|entry| entry.leadership_term_id),
            log_position: entry.map_or(0, |entry| entry.log_position),
            timestamp: entry.map_or(0, |entry| entry.timestamp),
            snapshot_recording_id: entry.map(|entry| entry.recording_id),
        };
        let snapshot = entry.map(|entry| check.log.load(entry)).transpose()?;
        let mut run = Self {
            core: Core::new(factory(), settings.clone()),
            recorder: Recorder::default(),
            settings,
            position: recovery.log_position,
            begins_with_snapshot: entry.is_some(),
            events: 0,
        };
        run.recover(&recovery, snapshot).map_err(|cause| failed(cause.to_string()))?;
        Ok(run)
    }

    fn recover(
        &mut self,
        recovery: &Recovery,
        mut snapshot: Option<Snapshot>,
    ) -> Result<(), TerminationCause> {
        let snapshot = snapshot.as_mut().map(|snapshot| snapshot as _);
        self.core.recover(&mut self.recorder, recovery, Ok(snapshot))
    }

    /// Runs to the end of the log, of the service, or of the handler's interest. A factory makes the
    /// instances that replace the present one after snapshots. Returns the number of events.
    fn finish(
        mut self,
        check: &DeterminismCheck,
        mut factory: Option<&mut dyn FnMut() -> S>,
        mut on_step: impl FnMut(Step, &[u8]) -> bool,
    ) -> Result<(Self, u64)> {
        let mut goes_on = true;
        let end = check.log.read(self.position, |position, message| {
            self.events += 1;
            let is_due = check.snapshot_interval > 0 && self.events % check.snapshot_interval == 0;
            let handled = self.handle(position, message, is_due, reborrow(&mut factory));
            goes_on = on_step(self.step(position, &handled), message) && handled.is_ok();
            Ok(goes_on)
        })?;
        if self.events == 0 && self.begins_with_snapshot {
            // The log ends here, or begins later. Two runs over nothing are equal.
            let position = self.position;
            return Err(invalid(format!(
                "nothing lies behind the snapshot at position {position}"
            )));
        }
        if goes_on {
            let handled = self.snapshot(factory);
            self.core.terminate(&mut self.recorder);
            on_step(self.step(end, &handled), &[]);
        }
        let events = self.events;
        Ok((self, events))
    }

    fn handle(
        &mut self,
        position: i64,
        message: &[u8],
        is_snapshot_due: bool,
        factory: Option<&mut dyn FnMut() -> S>,
    ) -> Result<(), TerminationCause> {
        self.core.on_log_message(&mut self.recorder, position, message)?;
        let turns = if factory.is_some() { 2 } else { 1 };
        for _ in 0..turns {
            self.core.do_background_work(&mut self.recorder, Instant::now())?;
        }
        if is_snapshot_due {
            return self.snapshot(factory);
        }
        self.restore(factory)
    }

    fn snapshot(&mut self, factory: Option<&mut dyn FnMut() -> S>) -> Result<(), TerminationCause> {
        let leadership_term_id = self.core.state().leadership_term_id;
        self.core.take_snapshot(&mut self.recorder, leadership_term_id)?;
        self.restore(factory)
    }

    /// Replaces the instance by a new one, if there is a new snapshot.
    fn restore(&mut self, factory: Option<&mut dyn FnMut() -> S>) -> Result<(), TerminationCause> {
        let (Some(snapshot), Some(factory)) = (self.recorder.take_snapshot(), factory) else {
            return Ok(());
        };
        let state = self.core.state();
        let recovery = Recovery {
            leadership_term_id: state.leadership_term_id,
            log_position: state.log_position,
            timestamp: state.time,
            snapshot_recording_id: Some(RecordingId::new(0)),
        };
        // A member asks once to close a session. Snapshots leave out that it has asked.
        let sessions = state.sessions.values().filter(|session| session.is_closing());
        let closing: Vec<ClusterSessionId> = sessions.map(SessionInfo::id).collect();
        self.core = Core::new(factory(), self.settings.clone());
        self.recover(&recovery, Some(snapshot))?;
        self.core.set_closing(&closing);
        Ok(())
    }

    fn step(&mut self, position: i64, handled: &Result<(), TerminationCause>) -> Step {
        if let Err(cause) = handled {
            self.recorder.push(Effect::End(cause.to_string()));
        }
        Step { position, effects: self.recorder.take_effects() }
    }
}

/// `as_deref_mut` would make the borrow as long as the trait object's lifetime.
fn reborrow<'a, S>(
    factory: &'a mut Option<&mut dyn FnMut() -> S>,
) -> Option<&'a mut (dyn FnMut() -> S + 'a)> {
    match factory {
        Some(factory) => Some(&mut **factory),
        None => None,
    }
}

/// The outcome of two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Comparison {
    events: u64,
    digest: u64,
    divergence: Option<Divergence>,
}

impl Comparison {
    /// Returns whether both runs had the same effects.
    pub fn is_equal(&self) -> bool {
        self.divergence.is_none()
    }

    /// Returns the first difference.
    pub fn divergence(&self) -> Option<&Divergence> {
        self.divergence.as_ref()
    }

    /// Returns the number of events that both runs have processed, the one with the difference
    /// included.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the digest of all effects and their positions, up to the first difference. The same
    /// service has the same digest over the same log, in other processes and on other machines.
    pub fn digest(&self) -> u64 {
        self.digest
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.divergence {
            None => write!(f, "equal over {} events, digest {:016x}", self.events, self.digest),
            Some(divergence) => write!(f, "different at event {}: {divergence}", self.events),
        }
    }
}

/// The first event after which two runs differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    position: i64,
    event: String,
    first: Vec<Effect>,
    second: Vec<Effect>,
}

impl Divergence {
    /// Returns the position of the log behind the event.
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Returns a description of the event.
    pub fn event(&self) -> &str {
        &self.event
    }

    /// Returns the effects of the first run.
    pub fn first(&self) -> &[Effect] {
        &self.first
    }

    /// Returns the effects of the second run.
    pub fn second(&self) -> &[Effect] {
        &self.second
    }
}

/// Shows the effects from the first difference on.
impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position, event, first, second } = self;
        let equal = first.iter().zip(second).take_while(|(first, second)| first == second).count();
        let shown = |effects: &[Effect]| {
            effects.get(equal).map_or_else(|| "nothing".to_owned(), Effect::to_string)
        };
        write!(
            f,
            "position {position}, {event}: after {equal} equal effects, the first run had {}, the second run {}",
            shown(first),
            shown(second)
        )
    }
}

/// Describes a message of the log. No message is the end of the log.
fn describe(message: &[u8]) -> String {
    if message.is_empty() {
        return "end of the log".to_owned();
    }
    match codec::parse(message) {
        Ok((Message::SessionMessageHeader(header), payload)) => {
            let payload = Shown(payload);
            match MessageSource::from_session_id(header.cluster_session_id) {
                MessageSource::Client { session_id } => {
                    format!("message of session {session_id}: {payload}")
                }
                MessageSource::Service { service_id } => {
                    format!("message of service {service_id}: {payload}")
                }
            }
        }
        Ok((Message::TimerEvent(timer), _)) => format!("timer {}", timer.correlation_id),
        Ok((Message::SessionOpenEvent(event), _)) => {
            format!("open of session {}", event.cluster_session_id)
        }
        Ok((Message::SessionCloseEvent(event), _)) => {
            format!("close of session {}", event.cluster_session_id)
        }
        Ok((Message::ClusterActionRequest(request), _)) if wants_snapshot(&request, false) => {
            "snapshot".to_owned()
        }
        Ok((Message::NewLeadershipTermEvent(term), _)) => {
            format!("new term {}", term.leadership_term_id)
        }
        Ok(_) => "event without effect".to_owned(),
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests;
