//! A replicated service in a process of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use rusteron_cluster::{ServiceContainer, ServiceContext};

use super::java_node::{PAUSE, die_with_test};
use super::ledger::{DigestFile, Ledger};
use crate::{ChildProcess, await_some, await_that};

/// The variable that tells a process which service to run.
const JOB: &str = "RUSTERON_TEST_SERVICE";

/// The program that calls [`ServiceProcess::serve`]: as a rule, the program that calls this function, with other
/// arguments.
pub type ServiceProgram = fn() -> Command;

/// A [`Ledger`] in a process of its own. Dropping it kills the process.
#[derive(Debug)]
pub struct ServiceProcess {
    child: ChildProcess,
    log: PathBuf,
}

impl ServiceProcess {
    /// Starts a service beside a consensus module, which may start later. The service's output goes to the file `log`.
    pub fn start(
        program: ServiceProgram,
        aeron_dir: &Path,
        cluster_dir: &Path,
        digests: &Path,
        log: PathBuf,
    ) -> Self {
        let output = File::create(&log).expect("a file");
        let mut command = program();
        let job = [aeron_dir, cluster_dir, digests].map(|path| path.display().to_string());
        command
            .env(JOB, job.join("\n"))
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a file"))
            .stderr(output);
        die_with_test(&mut command);
        Self { child: ChildProcess::spawn(&mut command), log }
    }

    /// Runs the service that the environment names, until it ends. Then prints the cause. Returns `false` at once in a
    /// process that was not started as a service.
    pub fn serve() -> bool {
        let Ok(job) = std::env::var(JOB) else { return false };
        let job: Vec<_> = job.lines().collect();
        let [aeron_dir, cluster_dir, digests] = job[..] else { panic!("{job:?}") };
        let file = DigestFile::open(Path::new(digests)).expect("a file");
        let mut context = ServiceContext::new();
        context
            .set_aeron_dir(aeron_dir)
            .unwrap()
            .set_cluster_dir(cluster_dir)
            .unwrap()
            .set_service_name("ledger")
            .unwrap()
            .set_error_handler(|error| println!("error: {error}"))
            .unwrap();
        await_that("a media driver", || {
            thread::sleep(PAUSE);
            Path::new(aeron_dir).join("cnc.dat").exists()
        });
        let container = ServiceContainer::launch(context, Ledger::new(file)).expect("a container");
        println!("ended: {:?}", container.join());
        true
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process with SIGKILL, and waits for its end.
    pub fn kill(&mut self) {
        self.child.kill();
    }

    /// Stops all threads of the process with SIGSTOP.
    pub fn pause(&self) {
        self.child.signal("STOP");
    }

    /// Lets the process go on after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.child.signal("CONT");
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_none()
    }

    /// Waits until the service has ended by itself. Returns the cause of its end.
    pub fn await_end(&mut self) -> String {
        let status: ExitStatus = await_some("the end of a service", || {
            thread::sleep(PAUSE);
            self.child.try_wait()
        });
        let log = self.log();
        // The test harness writes before it.
        let cause = log.lines().find_map(|line| Some(line.split_once("ended: ")?.1.to_owned()));
        assert!(status.success(), "{status}: {log}");
        cause.expect("a cause")
    }

    /// The output of the process.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}:\n{}", self.log.display(), self.log());
        }
    }
}
