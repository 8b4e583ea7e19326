//! A cluster of several members on this machine, each a group of processes.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rusteron_core::program::Failure;
use rusteron_test_support::programs::Process;
use tempfile::TempDir;

use crate::measuring::connection::free_endpoints;
use crate::processes::cluster_node::{member_dir, member_options, start_service};
use crate::processes::driver_process::remove_driver_variables;
use crate::processes::java::Java;
use crate::processes::process_usage;

/// How long a process may be silent.
const DEADLINE: Duration = Duration::from_secs(60);

/// The most members of a cluster.
pub const MAX_MEMBERS: usize = 3;

/// How all threads idle.
const IDLE: &str = "backoff";

/// The processes of a member.
#[derive(Debug, Clone, Copy)]
pub enum Member<'a> {
    /// Driver, archive, consensus module and service in one Java machine.
    Java,
    /// Our `archiving_media_driver` at this path, the consensus module in a Java machine, and a service in Rust.
    Rust(&'a Path),
}

/// The members of a cluster, in directories of their own, which go with them.
#[derive(Debug)]
pub struct ClusterMembers {
    members: Vec<MemberProcesses>,
    ingress_endpoints: String,
}

#[derive(Debug)]
struct MemberProcesses {
    // Dropped in this order.
    programs: Vec<Process>,
    _dir: TempDir,
}

impl ClusterMembers {
    /// Starts up to [`MAX_MEMBERS`] members. They elect a leader by themselves.
    ///
    /// # Errors
    /// [`Failure::Run`] if a process cannot be started.
    pub fn start(java: &Java, member: Member<'_>, count: usize) -> Result<Self, Failure> {
        let endpoints = free_endpoints::<{ 4 * MAX_MEMBERS }>()?;
        let endpoints: Vec<&[String]> = endpoints.chunks_exact(4).take(count).collect();
        let join = |of: &dyn Fn(usize, &[String]) -> String, separator| {
            let all: Vec<_> = endpoints.iter().enumerate().map(|(id, it)| of(id, it)).collect();
            all.join(separator)
        };
        let all = join(
            &|id, it| format!("{id},{},{},{},localhost:0,{}", it[0], it[1], it[2], it[3]),
            "|",
        );
        let ingress_endpoints = join(&|id, it| format!("{id}={}", it[0]), ",");
        let start = |(id, endpoints): (usize, &&[String])| {
            let dir = member_dir()?;
            let mut options = member_options(dir.path(), id, &all, &endpoints[3], IDLE);
            // A dead leader is missed early. Aeron's defaults are 10 s, 200 ms, 1 s and 10 s.
            options.extend(
                [
                    "leader.heartbeat.timeout=1s",
                    "leader.heartbeat.interval=50ms",
                    "election.timeout=500ms",
                ]
                .map(|property| format!("-Daeron.cluster.{property}")),
            );
            options.push("-Daeron.term.buffer.length=1m".to_owned());
            options.push("-Daeron.ipc.term.buffer.length=1m".to_owned());
            options.push("-Daeron.term.buffer.sparse.file=true".to_owned());
            MemberProcesses::start(java, member, dir, &options)
        };
        let members = endpoints.iter().enumerate().map(start).collect::<Result<_, _>>()?;
        Ok(Self { members, ingress_endpoints })
    }

    /// The members' ids and UDP endpoints for clients, as in the setting of a client.
    pub fn ingress_endpoints(&self) -> &str {
        &self.ingress_endpoints
    }

    /// Kills all processes of a member.
    pub fn kill(&mut self, member_id: usize) {
        if let Some(member) = self.members.get_mut(member_id) {
            member.programs.clear();
        }
    }

    /// The memory of each process of a member in bytes, without the files that all share: the means of all members, in
    /// the order in which [`Member`] lists the processes.
    ///
    /// # Errors
    /// [`Failure::Run`] if a process is gone, or this is not Linux.
    pub fn mean_private(&self) -> Result<Vec<f64>, Failure> {
        let count = self.members.iter().map(|member| member.programs.len()).max();
        let mean = |index: usize| {
            let programs = self.members.iter().filter_map(|member| member.programs.get(index));
            let bytes = programs
                .map(|program| process_usage::proportional(program.pid()))
                .sum::<Result<u64, Failure>>()?;
            Ok(bytes as f64 / self.members.len() as f64)
        };
        (0..count.unwrap_or(0)).map(mean).collect()
    }

    /// Makes sure that all processes still run.
    ///
    /// # Errors
    /// [`Failure::Run`] with the standard error of one that does not.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.members.iter_mut().flat_map(|it| &mut it.programs).try_for_each(Process::check)
    }
}

impl MemberProcesses {
    fn start(
        java: &Java,
        member: Member<'_>,
        dir: TempDir,
        options: &[String],
    ) -> Result<Self, Failure> {
        let programs = match member {
            Member::Java => {
                let arguments = ["EchoService", "stdin"].map(str::to_owned);
                vec![java.start("cluster/Node.java", options, &arguments, DEADLINE)?]
            }
            Member::Rust(path) => {
                let mut command = Command::new(path);
                remove_driver_variables(&mut command);
                command.args(options);
                let name = "archiving_media_driver".to_owned();
                let aeron_dir = dir.path().join("driver");
                vec![
                    Process::start(name, command, DEADLINE)?,
                    java.start("io.aeron.cluster.ConsensusModule", options, &[], DEADLINE)?,
                    start_service(IDLE, &aeron_dir, &dir.path().join("cluster"))?,
                ]
            }
        };
        Ok(Self { programs, _dir: dir })
    }
}
