//! A backup of a cluster.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rusteron_client::CncFile;

use super::java_node::{PAUSE, PROPERTIES, die_with_test};
use crate::{ChildProcess, await_that, free_port, java_run};

const LIVE_LOG_POSITION: i32 = 209;
const SNAPSHOT_RETRIEVE_COUNT: i32 = 240;

/// A process with Java's media driver, archive and `ClusterBackup`. Dropping it kills the process.
#[derive(Debug)]
pub struct JavaBackup {
    child: ChildProcess,
    root: PathBuf,
}

impl JavaBackup {
    /// Starts a backup of members with these consensus endpoints, in a directory.
    pub fn start(root: PathBuf, consensus_endpoints: &str) -> Self {
        fs::create_dir_all(&root).expect("a directory");
        let log = File::create(root.join("log")).expect("a file");
        let dir = |name: &str| root.join(name).display().to_string();
        let mut command = Command::new(java_run());
        command
            .args(["io.aeron.cluster.ClusterBackupMediaDriver", "-Xmx192m", "-XX:+UseSerialGC"])
            .args(["-XX:TieredStopAtLevel=1", "-Xshare:auto"])
            .args(PROPERTIES.map(|text| format!("-D{text}")))
            .args([
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
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log);
        die_with_test(&mut command);
        Self { child: ChildProcess::spawn(&mut command), root }
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
        #[cfg(unix)]
        self.child.signal("TERM");
        #[cfg(not(unix))]
        self.child.kill();
        await_that("the end of the backup", || self.child.try_wait().is_some());
        std::mem::take(&mut self.root)
    }
}

impl Drop for JavaBackup {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = fs::read_to_string(self.root.join("log")).unwrap_or_default();
            eprintln!("the backup:\n{log}");
            if let Ok(cnc) = CncFile::open(self.root.join("driver"), Duration::ZERO) {
                cnc.counters().for_each(|counter| eprintln!("{counter:?}"));
            }
        }
    }
}
