//! A backup of a cluster.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rusteron_client::CncFile;

use super::java_node::{PAUSE, PROPERTIES, await_process_end, die_with_test};
use super::member_archive::MemberArchive;
use crate::{ChildProcess, await_that, free_port, java_run};

const LIVE_LOG_POSITION: i32 = 209;
const SNAPSHOT_RETRIEVE_COUNT: i32 = 240;

/// Java's `ClusterBackup`, with media driver and archive of either language. Dropping it kills the processes.
#[derive(Debug)]
pub struct JavaBackup {
    /// The JVM is the first, and the last has the media driver.
    processes: Vec<ChildProcess>,
    root: PathBuf,
}

impl JavaBackup {
    /// Starts a backup of members with these consensus endpoints, in a directory.
    pub fn start(root: PathBuf, consensus_endpoints: &str) -> Self {
        fs::create_dir_all(&root).expect("a directory");
        let dir = |name: &str| root.join(name).display().to_string();
        let settings: Vec<_> = PROPERTIES
            .iter()
            .map(|text| format!("-D{text}"))
            .chain([
                "-Daeron.spies.simulate.connection=true".to_owned(),
                format!("-Daeron.dir={}", dir("driver")),
                format!("-Daeron.archive.dir={}", dir("archive")),
                format!("-Daeron.cluster.dir={}", dir("cluster")),
                format!(
                    "-Daeron.archive.control.channel=aeron:udp?endpoint=localhost:{}",
                    free_port()
                ),
                // For the archives of members.
                "-Daeron.archive.control.response.channel=aeron:udp?endpoint=localhost:0"
                    .to_owned(),
                format!("-Daeron.cluster.consensus.endpoints={consensus_endpoints}"),
                format!(
                    "-Daeron.cluster.consensus.channel=aeron:udp?endpoint=localhost:{}",
                    free_port()
                ),
                "-Daeron.cluster.backup.catchup.endpoint=localhost:0".to_owned(),
                "-Daeron.cluster.backup.interval=1s".to_owned(),
            ])
            .collect();
        let spawn = |mut command: Command, log: &str| {
            let log = File::create(root.join(log)).expect("a file");
            command
                .args(&settings)
                .stdin(Stdio::null())
                .stdout(log.try_clone().expect("a file"))
                .stderr(log);
            die_with_test(&mut command);
            ChildProcess::spawn(&mut command)
        };
        let driver = MemberArchive::default().program().map(|program| spawn(program, "driver-log"));
        let mut java = Command::new(java_run());
        java.arg(match driver {
            Some(_) => "cluster/Backup.java",
            None => "io.aeron.cluster.ClusterBackupMediaDriver",
        });
        java.args(["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]);
        let processes = [spawn(java, "log")].into_iter().chain(driver).collect();
        Self { processes, root }
    }

    /// Waits until the backup has a snapshot, and the log up to a position.
    pub fn await_position(&self, position: i64) {
        await_that("a backup of snapshot and log", || {
            thread::sleep(PAUSE);
            self.value(SNAPSHOT_RETRIEVE_COUNT) > Some(0)
                && self.value(LIVE_LOG_POSITION) >= Some(position)
        });
    }

    fn value(&self, type_id: i32) -> Option<i64> {
        let cnc = CncFile::open(self.root.join("driver"), Duration::ZERO).ok()?;
        cnc.counters().iter().find(|counter| counter.type_id == type_id).map(|found| found.value)
    }

    /// Ends the process in order. Returns the directory, with the folders `archive` and `cluster`.
    ///
    /// An archive that was killed does not start again if its last fragment straddles two pages: an operator has to
    /// verify that fragment.
    pub fn stop(mut self) -> PathBuf {
        for process in &mut self.processes {
            process.signal("TERM");
            await_process_end(process);
        }
        std::mem::take(&mut self.root)
    }
}

impl Drop for JavaBackup {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = |name| fs::read_to_string(self.root.join(name)).unwrap_or_default();
            eprintln!("the backup:\n{}{}", log("driver-log"), log("log"));
            if let Ok(cnc) = CncFile::open(self.root.join("driver"), Duration::ZERO) {
                cnc.counters().for_each(|counter| eprintln!("{counter:?}"));
            }
        }
    }
}
