//! The start of a server.

use std::convert::Infallible;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusteron_client::raw_client::RawClient;
use rusteron_client::{Aeron, AnyIdleStrategy, Counter, Error, ErrorKind, Subscription};
use rusteron_core::agent::{Agent, AgentRunner, ShutdownSignal};
use rusteron_core::channel::ChannelText;

use crate::catalog::{Catalog, CatalogSettings};
use crate::channel::ResponseDefaults;
use crate::conductor::effect::Blame;
use crate::conductor::{Conductor, ConductorSettings, ReplicationSettings};
use crate::context::{ArchiveServerContext, ArchiveThreadingMode};
use crate::control::session::SessionSettings;
use crate::counters::{ArchiveCounters, MeasuredAgent};
use crate::error::{Result, ServerError, ServerErrorKind};
use crate::ids::{ArchiveId, ControlSessionId};
use crate::mark_file::MarkFile;
use crate::mark_file::lock::LOCK_NAME;
use crate::network::adding::await_all;
use crate::network::requests::RequestImage;
use crate::network::{
    Adding, AgentOnThread, ConductorAgent, DutyCycle, Errors, Network, Requests, SessionCounters,
    WorkerQueues, Workers, client,
};
use crate::recorder::{BlockWriter, IoCounters, Recorder};
use crate::replayer::{BlockReader, Replayer};
use crate::storage::{Directory, Storage, SyncLevel};

/// A server that is ready for its first turn. Recorder and replayer run already if they have threads of their own.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) agent: AgentOnThread<ConductorAgent>,
    pub(crate) archive_id: ArchiveId,
    /// Where clients send requests: over UDP, or over IPC if that is disabled.
    pub(crate) control_channel: String,
    pub(crate) archive_dir: PathBuf,
    pub(crate) aeron_dir: PathBuf,
}

/// Starts a server up to its first turn. Blocks until the media driver has answered and the catalog is recovered.
pub(crate) fn start(settings: &ArchiveServerContext, shutdown: &ShutdownSignal) -> Result<Started> {
    settings.check()?;
    settings.check_dirs(client::context(settings)?.dir())?;
    let authenticator = settings.new_authenticator()?;
    let authorisation = settings.new_authorisation()?;
    let archive_id = client::archive_id(settings)?;
    let mark_file = Arc::new(activate_mark_file(settings, archive_id)?);
    let archive_dir = canonical(settings.archive_dir())?;
    if settings.archive_dir_delete_on_start() {
        delete_contents(&archive_dir).map_err(|error| ServerError::file(&archive_dir, &error))?;
    }
    let storage = Directory::open(&archive_dir, settings.dir_access())
        .map_err(|error| ServerError::file(&archive_dir, &error))?;
    let storage: Arc<dyn Storage> = Arc::new(storage);
    // Before there is a client: the media driver would take it for dead if this took too long.
    let catalog =
        open_catalog(settings, &storage, &mark_file).map_err(|error| error.in_dir(&archive_dir))?;
    let is_set_aside = |id| catalog.set_aside().any(|error| error.endless_recording() == Some(id));
    mark_file.forget_killed_positions(is_set_aside);
    if catalog.set_aside().all(|error| error.endless_recording().is_none()) {
        mark_file.note_original();
    }

    let layouts = ArchiveCounters { archive_id };
    let (error_sender, client_errors) = mpsc::channel();
    let aeron = client::connect(settings, layouts, error_sender, mark_file.killed_client())?;
    mark_file.note_client(&RawClient::new(&aeron).identity());
    let counters = Counters::add(&aeron, layouts, settings)?;
    let (changes, request_changes) = mpsc::channel();
    let requests = add_control_subscriptions(&aeron, settings, &changes)?;
    let control_channel = control_channel(&aeron, settings, &requests)?;
    let recording_events = match settings.recording_events_enabled() {
        true => {
            let channel = settings.recording_events_channel().to_owned();
            let stream_id = settings.recording_events_stream_id();
            let added = await_all(&aeron, [Adding::publication(channel, stream_id)]);
            let channel = settings.recording_events_channel();
            added
                .map_err(|error| refused_channel("recording_events_channel", channel, &error))?
                .pop()
        }
        false => None,
    };

    let (recorder, recorder_commands) = mpsc::channel();
    let (replayer, replayer_commands) = mpsc::channel();
    let (worker_events, events) = mpsc::channel();
    let queues = WorkerQueues { recorder, replayer, events };
    let recorder = Recorder::new(
        recorder_commands,
        worker_events.clone(),
        settings.file_io_max_length(),
        BlockWriter::new(
            Arc::clone(&storage),
            sync_level(settings.file_sync_level()),
            settings.record_checksum(),
        ),
        counters.writes,
    );
    let replayer = Replayer::new(
        replayer_commands,
        worker_events,
        aeron.clone(),
        settings.connect_timeout(),
        BlockReader::new(Arc::clone(&storage), settings.replay_checksum()),
        counters.reads,
    );
    let workers = match counters.threads {
        Some(duty_cycles) => start_threads(settings, shutdown, duty_cycles, recorder, replayer)?,
        None => Workers::Shared(Box::new((replayer, recorder))),
    };

    let errors = Errors::new(counters.errors, Arc::clone(&mark_file), client_errors);
    for error in catalog.set_aside() {
        errors.report(Blame::Server, &format!("a recording is not served: {error}"));
    }
    let mut conductor = Conductor::new(
        conductor_settings(settings, archive_id),
        catalog,
        storage,
        authenticator,
        authorisation,
    );
    conductor.keep_positions(Arc::clone(&mark_file));
    let aeron_dir = aeron.context().dir().to_owned();
    let network = Network::new(
        aeron,
        layouts,
        counters.sessions,
        errors,
        request_changes,
        recording_events,
        queues,
    );
    mark_file.ready();
    let requests = Requests::new(requests, settings.control_term_buffer_length());
    let agent = ConductorAgent::new(requests, conductor, workers, network, mark_file);
    let is_invoked = settings.threading_mode() == ArchiveThreadingMode::Invoker;
    let cpu = cpu(settings.conductor_cpu_affinity()).filter(|_| !is_invoked);
    let agent = AgentOnThread { agent, duty_cycle: counters.conductor, cpu };
    Ok(Started { agent, archive_id, control_channel, archive_dir, aeron_dir })
}

fn canonical(dir: &Path) -> Result<PathBuf> {
    dir.canonicalize().map_err(|error| ServerError::file(dir, &error))
}

fn activate_mark_file(settings: &ArchiveServerContext, archive_id: ArchiveId) -> Result<MarkFile> {
    let context = client::context(settings)?;
    let file_page_size = client::file_page_size(&context)?;
    MarkFile::activate(settings, context.dir(), archive_id.get(), file_page_size)
}

/// Deletes what an earlier archive has left, except for its mark file and what belongs to that, and
/// for the lock, which guard the directory.
fn delete_contents(dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == LOCK_NAME || name.to_string_lossy().starts_with("archive-mark") {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn open_catalog(
    settings: &ArchiveServerContext,
    storage: &Arc<dyn Storage>,
    mark_file: &MarkFile,
) -> Result<Catalog> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let settings = CatalogSettings {
        capacity: settings.catalog_capacity(),
        sync_level: sync_level(settings.catalog_file_sync_level()),
        file_sync_level: sync_level(settings.file_sync_level()),
        checksum: settings.record_checksum(),
        now_ms: i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX),
        positions: mark_file.killed_positions().clone(),
        is_original: mark_file.was_original(),
    };
    Ok(Catalog::open(Arc::clone(storage), &settings)?)
}

/// The setting has no other numbers.
fn sync_level(number: u8) -> SyncLevel {
    SyncLevel::from_number(number.into()).unwrap_or(SyncLevel::All)
}

/// -1 stands for none.
fn cpu(setting: i32) -> Option<usize> {
    usize::try_from(setting).ok()
}

/// The counters of a server.
struct Counters {
    errors: Counter,
    sessions: SessionCounters,
    writes: IoCounters,
    reads: IoCounters,
    conductor: DutyCycle,
    /// Of recorder and replayer, if they have threads of their own.
    threads: Option<[DutyCycle; 2]>,
}

impl Counters {
    fn add(
        aeron: &Aeron,
        layouts: ArchiveCounters,
        settings: &ArchiveServerContext,
    ) -> Result<Self> {
        let mode = settings.threading_mode();
        let cycles = |agent, threshold| layouts.cycles(agent, threshold, mode.name());
        let [conductor, recorder, replayer] = [
            settings.conductor_cycle_threshold(),
            settings.recorder_cycle_threshold(),
            settings.replayer_cycle_threshold(),
        ];
        let mut all = vec![
            layouts.errors(),
            layouts.control_sessions(),
            layouts.recording_sessions(),
            layouts.replay_sessions(),
        ];
        all.extend(layouts.writes());
        all.extend(layouts.reads());
        all.extend(cycles(MeasuredAgent::Conductor, conductor));
        if mode == ArchiveThreadingMode::Dedicated {
            all.extend(cycles(MeasuredAgent::Recorder, recorder));
            all.extend(cycles(MeasuredAgent::Replayer, replayer));
        }
        // In the same order.
        let mut added = await_all(aeron, all.into_iter().map(Adding::counter))?.into_iter();
        let mut next = || added.next().ok_or_else(|| Error::new(ErrorKind::Other, "no counter"));
        Ok(Self {
            errors: next()?,
            sessions: SessionCounters {
                control_sessions: next()?,
                recordings: next()?,
                replays: next()?,
            },
            writes: IoCounters { max_time: next()?, bytes: next()?, time: next()? },
            reads: IoCounters { max_time: next()?, bytes: next()?, time: next()? },
            conductor: DutyCycle::new(next()?, next()?, conductor),
            threads: match mode {
                ArchiveThreadingMode::Dedicated => Some([
                    DutyCycle::new(next()?, next()?, recorder),
                    DutyCycle::new(next()?, next()?, replayer),
                ]),
                ArchiveThreadingMode::Shared | ArchiveThreadingMode::Invoker => None,
            },
        })
    }
}

/// Adds the subscriptions of requests, that over UDP first if it is enabled.
fn add_control_subscriptions(
    aeron: &Aeron,
    settings: &ArchiveServerContext,
    changes: &mpsc::Sender<RequestImage>,
) -> Result<Vec<Subscription>> {
    let local = Requests::adding(
        settings.local_control_channel().to_owned(),
        settings.local_control_stream_id(),
        changes.clone(),
    );
    if !settings.control_channel_enabled() {
        let channel = settings.local_control_channel();
        return await_all(aeron, [local])
            .map_err(|error| refused_channel("local_control_channel", channel, &error));
    }
    let is_sparse = settings.control_term_buffer_sparse();
    let mut channel = settings.control_channel().to_owned();
    let parts = ChannelText::new(&channel);
    if parts.values("sparse").next().is_none() {
        channel = parts.with("sparse", is_sparse).to_string();
    }
    let remote = Requests::adding(channel, settings.control_stream_id(), changes.clone());
    await_all(aeron, [remote, local])
        .map_err(|error| refused_channel("control_channel", settings.control_channel(), &error))
}

fn refused_channel(name: &str, channel: &str, error: &Error) -> ServerError {
    let kind = ServerErrorKind::Client(error.kind());
    ServerError::new(kind, format!("{name}={channel}: {error}"))
}

/// Returns the channel on which clients send requests. If its port is 0, it gets the port of the socket.
fn control_channel(
    aeron: &Aeron,
    settings: &ArchiveServerContext,
    requests: &[Subscription],
) -> Result<String> {
    let channel = settings.control_channel();
    let [remote, _local] = requests else { return Ok(settings.local_control_channel().to_owned()) };
    if !ChannelText::new(channel).values("endpoint").any(|endpoint| endpoint.ends_with(":0")) {
        return Ok(channel.to_owned());
    }
    let deadline = Instant::now() + aeron.context().driver_timeout();
    loop {
        if let Some(endpoint) = remote.resolved_endpoint()? {
            let port = endpoint.rsplit(':').next().unwrap_or("0");
            return Ok(with_port(channel, port));
        }
        if Instant::now() >= deadline {
            let kind = ServerErrorKind::Client(ErrorKind::ChannelEndpoint);
            return Err(ServerError::new(kind, format!("{channel}: has no socket")));
        }
        aeron.do_work()?;
        std::thread::yield_now();
    }
}

/// Replaces the endpoint's port 0.
fn with_port(channel: &str, port: &str) -> String {
    let with_port = |key: &str, value: &str| {
        let host = value.strip_suffix(":0").filter(|_| key == "endpoint");
        Ok::<_, Infallible>(host.map(|host| format!("{host}:{port}")))
    };
    let Ok(channel) = ChannelText::new(channel).try_replace(with_port);
    channel.to_string()
}

fn conductor_settings(settings: &ArchiveServerContext, archive_id: ArchiveId) -> ConductorSettings {
    let int = |length: usize| i32::try_from(length).unwrap_or(i32::MAX);
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    // Random, so that a client of an earlier archive does not find its session's id in use.
    let random = RandomState::new().hash_one(archive_id.get());
    ConductorSettings {
        archive_id,
        session: SessionSettings {
            connect_timeout_ns: nanos(settings.connect_timeout()),
            liveness_check_interval_ns: nanos(settings.session_liveness_check_interval()),
            max_unauthenticated: count(settings.max_unauthenticated_sessions()),
        },
        first_session_id: ControlSessionId::new((random & 0x7fff_ffff) as i64),
        response: ResponseDefaults {
            mtu: int(settings.control_mtu_length()),
            term_length: int(settings.control_term_buffer_length()),
            is_sparse: settings.control_term_buffer_sparse(),
        },
        max_concurrent_recordings: count(settings.max_concurrent_recordings()),
        max_concurrent_replays: count(settings.max_concurrent_replays()),
        segment_length: int(settings.segment_file_length()),
        file_io_max_length: int(settings.file_io_max_length()),
        low_storage_space_threshold: settings.low_storage_space_threshold(),
        replay_linger_ns: nanos(settings.replay_linger_timeout()),
        recording_events_enabled: settings.recording_events_enabled(),
        replication: ReplicationSettings {
            channel: settings.replication_channel().to_owned(),
            response_channel: source_response_channel(settings),
            response_stream_id: settings.control_response_stream_id(),
            message_timeout_ns: nanos(settings.message_timeout()),
            max_concurrent: count(settings.max_concurrent_replications()),
        },
    }
}

/// Returns the channel on which other archives answer: without a setting, a free port of the address on which clients send
/// requests.
fn source_response_channel(settings: &ArchiveServerContext) -> String {
    let channel = settings.control_response_channel();
    if !channel.is_empty() || !settings.control_channel_enabled() {
        return channel.to_owned();
    }
    let control = ChannelText::new(settings.control_channel());
    let host = control
        .values("endpoint")
        .last()
        .and_then(|endpoint| endpoint.rsplit_once(':'))
        .map(|(host, _)| host);
    host.map_or_else(String::new, |host| format!("aeron:udp?endpoint={host}:0"))
}

/// Starts recorder and replayer, each on a thread of its own.
fn start_threads(
    settings: &ArchiveServerContext,
    shutdown: &ShutdownSignal,
    [recorder_cycle, replayer_cycle]: [DutyCycle; 2],
    recorder: Recorder,
    replayer: Replayer,
) -> Result<Workers> {
    let idle_strategy = settings.idle_strategy();
    let recorder = AgentOnThread {
        agent: recorder,
        duty_cycle: recorder_cycle,
        cpu: cpu(settings.recorder_cpu_affinity()),
    };
    let replayer = AgentOnThread {
        agent: replayer,
        duty_cycle: replayer_cycle,
        cpu: cpu(settings.replayer_cpu_affinity()),
    };
    let recorder_idle = settings.recorder_idle_strategy().unwrap_or(idle_strategy);
    let replayer_idle = settings.replayer_idle_strategy().unwrap_or(idle_strategy);
    Ok(Workers::Threads(vec![
        start_thread(recorder, recorder_idle.new_strategy(), shutdown)?,
        start_thread(replayer, replayer_idle.new_strategy(), shutdown)?,
    ]))
}

fn start_thread(
    agent: impl Agent + Send + 'static,
    idle: AnyIdleStrategy,
    shutdown: &ShutdownSignal,
) -> Result<AgentRunner> {
    let builder = AgentRunner::builder(agent).idle_strategy(idle);
    Ok(builder.shutdown_signal(shutdown.clone()).start()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_zero_is_replaced() {
        let channel = "aeron:udp?endpoint=localhost:0|term-length=64k";
        assert_eq!(with_port(channel, "123"), "aeron:udp?endpoint=localhost:123|term-length=64k");
        let channel = "aeron:udp?mtu=8k|endpoint=[::1]:0";
        assert_eq!(with_port(channel, "123"), "aeron:udp?mtu=8k|endpoint=[::1]:123");
        let channel = "aeron:udp?control=localhost:0|endpoint=localhost:10";
        assert_eq!(with_port(channel, "123"), channel);
    }

    #[test]
    fn deletion_leaves_mark_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let kept = ["archive-mark.dat", "archive-mark.lnk", LOCK_NAME];
        for name in ["archive.catalog", "0-0.rec"].iter().chain(&kept) {
            fs::write(dir.path().join(name), name).expect("a file");
        }
        fs::create_dir_all(dir.path().join("other/files")).expect("a directory");
        delete_contents(dir.path()).expect("deleted");
        let entries = fs::read_dir(dir.path()).expect("entries");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        assert_eq!(names, kept);
    }
}
