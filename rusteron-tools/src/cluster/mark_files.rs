//! The mark files of a node's consensus module and services.

use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusteron_cluster::codec::mark_file::{
    ComponentType, ENDED, HEADER_LENGTH, MarkFileHeader, STARTING, VERSION_FAILED,
};
use rusteron_core::cnc::{epoch, error_log};
use rusteron_core::files;
use serde::Serialize;

use crate::errors::DistinctError;
use crate::text;

/// The mark file of the consensus module.
pub(super) const NAME: &str = "cluster-mark.dat";
const LINK_NAME: &str = "cluster-mark.lnk";
const SERVICE_PREFIX: &str = "cluster-mark-service-";

/// A component without a sign of life for this time counts as dead, as in Java.
const LIVENESS_TIMEOUT: Duration = Duration::from_secs(10);

/// A component of a node, by its mark file.
#[derive(Debug, Serialize)]
pub(super) struct Component {
    file: String,
    kind: &'static str,
    state: ComponentState,
    version: String,
    #[serde(serialize_with = "text::serialize_time")]
    start_time: Option<SystemTime>,
    /// `None` unless the component gives signs of life.
    #[serde(serialize_with = "text::serialize_time")]
    activity_time: Option<SystemTime>,
    activity_age_ms: Option<u64>,
    /// `None` without an election.
    candidate_term_id: Option<i64>,
    /// `None` for containers before they join a log.
    member_id: Option<i32>,
    /// `None` for consensus modules.
    service_id: Option<i32>,
    #[serde(flatten, with = "Header")]
    pub(super) header: MarkFileHeader,
    errors: Vec<DistinctError>,
}

/// The fields of a header that the JSON has as they are.
#[derive(Serialize)]
#[serde(remote = "MarkFileHeader")]
struct Header {
    pid: i64,
    cluster_id: i32,
    service_name: String,
    authenticator: String,
    aeron_dir: String,
    control_channel: String,
    ingress_channel: String,
    #[serde(rename = "services_dir")]
    services_cluster_dir: String,
    archive_stream_id: i32,
    service_stream_id: i32,
    consensus_module_stream_id: i32,
    ingress_stream_id: i32,
    error_buffer_length: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum ComponentState {
    /// The last sign of life is not older than ten seconds.
    Alive,
    /// The last sign of life is older.
    Dead,
    /// The component is starting, or was killed while it was.
    Starting,
    /// The component has ended in order.
    Ended,
    /// The component could not start.
    Failed,
}

/// Reads the mark files of a node. The consensus module, if there is one, comes first.
pub(super) fn components(dir: &Path, problems: &mut Vec<Problem>) -> Vec<Component> {
    let link = dir.join(LINK_NAME);
    let module_dir = linked(&link, problems).unwrap_or_else(|| dir.to_owned());
    let path = module_dir.join(NAME);
    let mut components: Vec<_> = component(&path, problems).into_iter().collect();
    let services_dir = components
        .first()
        .map(|module| &module.header.services_cluster_dir)
        .filter(|services_dir| !services_dir.is_empty())
        .map_or_else(|| dir.to_owned(), PathBuf::from);
    for path in service_files(&services_dir, problems) {
        components.extend(component(&path, problems));
    }
    components
}

/// Returns the directory of the node's media driver, if a component names it.
pub(super) fn driver_dir(components: &[Component]) -> Option<PathBuf> {
    let mut dirs = components.iter().map(|component| &component.header.aeron_dir);
    dirs.find(|dir| !dir.is_empty()).map(PathBuf::from)
}

/// Returns the directory that a link file names, if there is such a file.
fn linked(link: &Path, problems: &mut Vec<Problem>) -> Option<PathBuf> {
    let bytes = read_if_there(link, problems)?;
    Some(PathBuf::from(String::from_utf8_lossy(&bytes).trim()))
}

/// Returns the mark files of services, in order, and follows links.
fn service_files(dir: &Path, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            problems.push(Problem::new(dir, error));
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(id) = name.strip_prefix(SERVICE_PREFIX) else { continue };
        if id.ends_with(".dat") {
            found.push(path);
        } else if let Some(id) = id.strip_suffix(".lnk") {
            let file = format!("{SERVICE_PREFIX}{id}.dat");
            found.extend(linked(&path, problems).map(|dir| dir.join(file)));
        }
    }
    found.sort();
    found.dedup();
    found
}

fn component(path: &Path, problems: &mut Vec<Problem>) -> Option<Component> {
    let bytes = read_if_there(path, problems)?;
    match MarkFileHeader::decode(&bytes[..bytes.len().min(HEADER_LENGTH)]) {
        Ok(header) => Some(Component::new(path, header, &bytes)),
        Err(error) => {
            problems.push(Problem::new(path, error));
            None
        }
    }
}

impl Component {
    fn new(path: &Path, header: MarkFileHeader, bytes: &[u8]) -> Self {
        let activity_time = epoch::time(header.activity_timestamp)
            .filter(|_| header.activity_timestamp > 0 && header.activity_timestamp != STARTING);
        // Zero for a clock that was set back.
        let age =
            activity_time.map(|time| SystemTime::now().duration_since(time).unwrap_or_default());
        let state = match (header.activity_timestamp, age) {
            (STARTING, _) => ComponentState::Starting,
            (_, Some(age)) if age < LIVENESS_TIMEOUT => ComponentState::Alive,
            (_, Some(_)) => ComponentState::Dead,
            (_, None) if header.version == VERSION_FAILED => ComponentState::Failed,
            (_, None) => ComponentState::Ended,
        };
        let number = |number: i32| (number != -1).then_some(number);
        let errors = usize::try_from(header.header_length).ok().and_then(|start| {
            let length = usize::try_from(header.error_buffer_length).ok()?;
            let log = bytes.get(start..)?;
            Some(error_log::entries(&log[..length.min(log.len())]))
        });
        Self {
            file: path.to_string_lossy().into_owned(),
            kind: match header.component_type {
                ComponentType::Unknown => "unknown",
                ComponentType::ConsensusModule => "consensus-module",
                ComponentType::Container => "service",
                ComponentType::Backup => "backup",
                ComponentType::Standby => "standby",
            },
            state,
            version: match header.version {
                VERSION_FAILED => "failed".to_owned(),
                version => text::semantic_version(version.into()),
            },
            start_time: epoch::time(header.start_timestamp),
            activity_time,
            activity_age_ms: age.map(text::millis),
            candidate_term_id: Some(header.candidate_term_id).filter(|id| *id != ENDED),
            member_id: number(header.member_id),
            service_id: number(header.service_id)
                .filter(|_| header.component_type == ComponentType::Container),
            header,
            errors: errors.unwrap_or_default().into_iter().map(DistinctError).collect(),
        }
    }

    /// Returns the state in one line, and the errors in further lines.
    pub(super) fn lines(&self) -> Vec<String> {
        let name = match self.service_id {
            Some(id) => format!("service {id} ({})", text::printable(&self.header.service_name)),
            None => self.kind.to_owned(),
        };
        let age = text::duration(Duration::from_millis(self.activity_age_ms.unwrap_or(0)));
        let state = match self.state {
            ComponentState::Alive => format!("alive, {age} ago"),
            ComponentState::Dead => format!("dead, silent for {age}"),
            ComponentState::Starting => "starting".to_owned(),
            ComponentState::Ended => "ended in good order".to_owned(),
            ComponentState::Failed => "could not start".to_owned(),
        };
        let (pid, file) = (self.header.pid, text::printable(&self.file));
        let mut lines = vec![format!("{name}: {state}; process {pid}; {file}")];
        let errors = self.errors.iter().flat_map(DistinctError::lines);
        lines.extend(errors.map(|line| format!("  {line}")));
        lines
    }
}

/// No file of a node is read beyond this length in bytes. Error logs have 1 MiB by default, and an entry of the
/// recording log 64 bytes.
pub(super) const MAX_LENGTH: u64 = 64 << 20;

/// A file that cannot be read.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Problem {
    pub(super) file: String,
    pub(super) error: String,
}

impl Problem {
    pub(super) fn new(file: &Path, error: impl Display) -> Self {
        Self { file: file.to_string_lossy().into_owned(), error: error.to_string() }
    }

    pub(super) fn line(&self) -> String {
        format!("{}: {}", text::printable(&self.file), text::printable(&self.error))
    }
}

/// Returns the content of a file. `None` if there is no such file, or with a problem. Reads,
/// because another process may cut off a mapped file.
pub(super) fn read_if_there(path: &Path, problems: &mut Vec<Problem>) -> Option<Vec<u8>> {
    match files::read(path, MAX_LENGTH) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            problems.push(Problem::new(path, error));
            None
        }
    }
}
