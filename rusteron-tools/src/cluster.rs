//! `rusteron cluster`: a node of a cluster, by the files of its directory and the counters of its media driver.

mod mark_files;
mod node;
mod terms_and_snapshots;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusteron_client::CncFile;
use rusteron_cluster::codec::recording_log::RECORDING_LOG;
use rusteron_core::program::Failure;
use serde::Serialize;

use crate::driver_dir::{DriverDir, DriverStatus};
use crate::options::ClusterOptions;
use crate::report::Report;
use crate::text;
use crate::watch;

use mark_files::{Component, Problem};
use node::{Node, Service, Session};
use terms_and_snapshots::Entry;

#[derive(Debug, Serialize)]
struct Cluster {
    /// Path, with replacements for bytes that are not UTF-8.
    cluster_dir: String,
    /// `None` if no file names the driver's directory.
    driver: Option<DriverStatus>,
    /// `None` if the driver has no counters of a consensus module.
    node: Option<Node>,
    services: Vec<Service>,
    sessions: Vec<Session>,
    /// The consensus module and the services with mark files.
    components: Vec<Component>,
    terms: Vec<Entry>,
    snapshots: Vec<Entry>,
    /// The files that cannot be read.
    problems: Vec<Problem>,
}

pub(crate) fn run(
    driver_dir: Option<PathBuf>,
    driver_timeout: Duration,
    options: &ClusterOptions,
) -> Result<(), Failure> {
    let mut failure = Ok(());
    watch::run(&options.watch, || {
        let cluster = Cluster::read(&options.cluster_dir, driver_dir.as_deref(), driver_timeout)?;
        if let Some(problem) = cluster.problems.first().filter(|_| !options.watch.watch) {
            failure = Err(Failure::run(text::printable(&problem.file), &problem.error));
        }
        Ok(cluster)
    })?;
    failure
}

impl Cluster {
    fn read(dir: &Path, driver_dir: Option<&Path>, timeout: Duration) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        let components = mark_files::components(dir, &mut problems);
        let log = mark_files::read_if_there(&dir.join(RECORDING_LOG), &mut problems);
        if components.is_empty() && log.is_none() && problems.is_empty() {
            let missing = format!("neither {} nor {}", mark_files::NAME, RECORDING_LOG);
            return Err(Failure::Run(format!("no cluster in {}: {missing}", dir.display())));
        }
        let (terms, snapshots) = match terms_and_snapshots::parse(&log.unwrap_or_default()) {
            Ok(entries) => terms_and_snapshots::sort(entries),
            Err(error) => {
                problems.push(Problem::new(&dir.join(RECORDING_LOG), error));
                (Vec::new(), Vec::new())
            }
        };
        let driver_dir =
            driver_dir.map(Path::to_owned).or_else(|| mark_files::driver_dir(&components));
        let driver_dir = driver_dir.map(|path| DriverDir { path, driver_timeout: timeout });
        let cnc = match driver_dir.as_ref().map(DriverDir::find) {
            None => None,
            Some(Ok(cnc)) => cnc,
            // The files of the node may tell why.
            Some(Err(Failure::Run(error))) => {
                let file = driver_dir.as_ref().map(|dir| dir.path.to_string_lossy());
                problems.push(Problem { file: file.unwrap_or_default().into_owned(), error });
                None
            }
            Some(Err(failure)) => return Err(failure),
        };
        let counters = cnc.as_ref().map(CncFile::counters);
        let cluster_id = components.first().map_or(0, |first| first.header.cluster_id);
        let counters = counters.map(|counters| node::read(&counters, cluster_id));
        let (node, services, sessions) = counters.unwrap_or_default();
        Ok(Self {
            cluster_dir: dir.to_string_lossy().into_owned(),
            driver: driver_dir.map(|dir| dir.status(cnc.as_ref())),
            node,
            services,
            sessions,
            components,
            terms,
            snapshots,
            problems,
        })
    }
}

impl Report for Cluster {
    fn header(&self) -> Vec<String> {
        let dir = text::printable(&self.cluster_dir);
        let driver = match &self.driver {
            Some(driver) => format!("media driver {}", driver.line()),
            None => "media driver unknown".to_owned(),
        };
        let node = match &self.node {
            Some(node) => node.line(),
            None => "the driver has no counters of a consensus module".to_owned(),
        };
        vec![dir, driver, node]
    }

    fn body(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut section = |title: String, content: Vec<String>| {
            if !content.is_empty() {
                lines.extend([String::new(), title]);
                lines.extend(content.into_iter().map(|line| format!("  {line}")));
            }
        };
        section("counters:".to_owned(), self.node.iter().flat_map(Node::lines).collect());
        let components = self.components.iter().flat_map(Component::lines).collect();
        section(format!("{} components:", self.components.len()), components);
        let services = self.services.iter().map(Service::line).collect();
        section(format!("{} services:", self.services.len()), services);
        let sessions = self.sessions.iter().map(Session::line).collect();
        section(format!("{} sessions:", self.sessions.len()), sessions);
        let terms = self.terms.iter().map(Entry::term_line).collect();
        section(format!("{} terms:", self.terms.len()), terms);
        let snapshots = self.snapshots.iter().map(Entry::snapshot_line).collect();
        section(format!("{} snapshots:", self.snapshots.len()), snapshots);
        let problems = self.problems.iter().map(Problem::line).collect();
        section(format!("{} damaged files:", self.problems.len()), problems);
        lines
    }
}
