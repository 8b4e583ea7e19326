//! The resources that a process, and a driver, hold.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use rusteron_client::CncFile;
use rusteron_core::program::Failure;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::clients::settings::STREAMS;

/// Anonymous memory may grow by so much: allocators retain some freed memory.
const SLACK_KIB: u64 = 8 * 1024;
/// Clients with a conductor thread and clients without take turns in a process.
const CONDUCTOR: u64 = 1;

/// The resources that a process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holdings {
    pub(crate) descriptors: u64,
    /// Mappings of files of the driver's.
    pub(crate) mappings: u64,
    pub(crate) threads: u64,
    /// Resident memory that is no file's.
    pub(crate) anonymous_kib: u64,
}

impl Holdings {
    /// Those of a process; `None` if it is gone.
    pub(crate) fn of(pid: i32, aeron_dir: &Path) -> Option<Self> {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
        let (status, maps) = (read("status")?, read("maps")?);
        let dir = aeron_dir.to_string_lossy();
        let field = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next()?.parse().ok()
        };
        Some(Self {
            descriptors: descriptors(pid)?,
            mappings: maps.lines().filter(|line| line.contains(&*dir)).count() as u64,
            threads: field("Threads:")?,
            anonymous_kib: field("RssAnon:")?,
        })
    }

    /// Where this is more than it was.
    pub(crate) fn excess_over(&self, before: &Self) -> Vec<String> {
        let rows = [
            ("descriptors", self.descriptors, before.descriptors),
            ("mappings", self.mappings, before.mappings),
            ("threads", self.threads, before.threads + CONDUCTOR),
            ("KiB of memory", self.anonymous_kib, before.anonymous_kib + SLACK_KIB),
        ];
        let excess = rows.iter().filter(|(_, now, most)| now > most);
        excess.map(|(name, now, most)| format!("{now} {name}, at most {most} before")).collect()
    }
}

/// How many of the driver's files a publisher maps: its own logs, and the CnC file.
pub(crate) fn mappings_of_publisher() -> u64 {
    STREAMS.len() as u64 + 1
}

/// How many of the driver's files a subscriber maps: the logs of all publishers, and the CnC file.
pub(crate) fn mappings_of_subscriber(publishers: u64) -> u64 {
    STREAMS.iter().map(|stream| if stream.is_shared { 1 } else { publishers }).sum::<u64>() + 1
}

/// How many descriptors a process has.
pub(crate) fn descriptors(pid: i32) -> Option<u64> {
    fs::read_dir(format!("/proc/{pid}/fd")).ok().map(|entries| entries.count() as u64)
}

/// The number that a process's next descriptor has.
pub(crate) fn next_descriptor(pid: i32) -> Option<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let names = entries.flatten().map(|entry| entry.file_name());
    let open: HashSet<u64> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
    (0..).find(|number| !open.contains(number))
}

/// Lets a process have no more descriptors from a number on, or as many as this one. The process
/// keeps its descriptors.
pub(crate) fn limit_descriptors(pid: i32, first: Option<u64>) -> Result<(), Failure> {
    let own = getrlimit(Resource::Nofile);
    let limit = Rlimit { current: first.or(own.current), ..own };
    prlimit(Pid::from_raw(pid), Resource::Nofile, limit)
        .map(drop)
        .map_err(|error| Failure::run("cannot set a limit", error))
}

/// How many counters of each type, and log buffers, a driver has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DriverState {
    counters: BTreeMap<i32, usize>,
    publications: usize,
    images: usize,
    /// Label and owner of the counters that tell publications and clients apart.
    labels: Vec<String>,
}

/// Aeron's types of counters.
const PUBLISHER_LIMIT: i32 = 1;
const SUBSCRIBER_POSITION: i32 = 4;
pub(crate) const CLIENT_HEARTBEAT: i32 = 11;

impl DriverState {
    /// Returns the state of a driver that runs in a directory.
    pub(crate) fn of(aeron_dir: &Path) -> Option<Self> {
        let cnc = CncFile::open(aeron_dir, Duration::ZERO).ok()?;
        let mut counters = BTreeMap::new();
        let mut labels = Vec::new();
        cnc.counters().for_each(|counter| {
            *counters.entry(counter.type_id).or_default() += 1;
            if [PUBLISHER_LIMIT, CLIENT_HEARTBEAT].contains(&counter.type_id) {
                labels.push(format!("{} of client {}", counter.label, counter.owner_id));
            }
        });
        let files = |name: &str| fs::read_dir(aeron_dir.join(name)).ok().map(Iterator::count);
        let (publications, images) = (files("publications")?, files("images")?);
        Some(Self { counters, publications, images, labels })
    }

    /// Returns the differences of a driver with these clients, all of them connected, from the
    /// expected state.
    pub(crate) fn differences(&self, publishers: usize, subscribers: usize) -> Vec<String> {
        let logs = STREAMS.map(|stream| if stream.is_shared { 1 } else { publishers });
        let logs: usize = logs.iter().sum();
        let count = |type_id| self.counters.get(&type_id).copied().unwrap_or(0);
        let rows = [
            ("publisher limits", count(PUBLISHER_LIMIT), logs),
            ("subscriber positions", count(SUBSCRIBER_POSITION), logs * subscribers),
            ("client heartbeats", count(CLIENT_HEARTBEAT), publishers + subscribers),
            ("publications' logs", self.publications, logs),
            ("images' logs", self.images, publishers),
        ];
        let others = rows.iter().filter(|(_, is, should)| is != should);
        let mut texts: Vec<_> =
            others.map(|(name, is, should)| format!("{is} {name}, not {should}")).collect();
        if let Some(text) = texts.first_mut() {
            *text = format!("{text}: {}", self.labels.join("; "));
        }
        texts
    }

    /// Returns the resources of which a driver has more after its clients have left than before
    /// they came.
    pub(crate) fn excess_over(&self, before: &Self) -> Vec<String> {
        let mut excess = Vec::new();
        for (type_id, count) in &self.counters {
            let most = before.counters.get(type_id).copied().unwrap_or(0);
            if *count > most {
                excess.push(format!("{count} counters of type {type_id}, {most} before"));
            }
        }
        for (name, count) in [("publications", self.publications), ("images", self.images)] {
            if count > 0 {
                excess.push(format!("{count} logs of {name}"));
            }
        }
        excess
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Holdings =
        Holdings { descriptors: 9, mappings: 5, threads: 2, anonymous_kib: 1_000 };

    #[test]
    fn more_of_anything_is_a_leak() {
        assert_eq!(BEFORE.excess_over(&BEFORE), Vec::<String>::new());
        for more in [
            Holdings { descriptors: 10, ..BEFORE },
            Holdings { mappings: 6, ..BEFORE },
            Holdings { threads: 3 + CONDUCTOR, ..BEFORE },
            Holdings { anonymous_kib: 1_001 + SLACK_KIB, ..BEFORE },
        ] {
            assert_eq!(more.excess_over(&BEFORE).len(), 1, "{more:?}");
        }
    }

    #[test]
    fn an_open_file_of_this_process_is_counted() {
        let pid = i32::try_from(std::process::id()).expect("a pid");
        let dir = Path::new("/nonexistent");
        let holdings = Holdings::of(pid, dir).expect("this process");
        assert!(holdings.descriptors >= 3 && holdings.threads >= 1, "{holdings:?}");
        assert_eq!(holdings.mappings, 0);
        assert_eq!(Holdings::of(i32::MAX, dir), None);
    }

    #[test]
    fn the_next_descriptor_is_not_in_use() {
        let pid = i32::try_from(std::process::id()).expect("a pid");
        let next = next_descriptor(pid).expect("this process");
        assert!(next >= 3, "{next}");
        assert_eq!(next_descriptor(i32::MAX), None);
    }

    fn connected() -> DriverState {
        let counters =
            [(0, 30), (PUBLISHER_LIMIT, 5), (SUBSCRIBER_POSITION, 15), (CLIENT_HEARTBEAT, 5)];
        DriverState { counters: counters.into(), publications: 5, images: 2, labels: vec![] }
    }

    #[test]
    fn clients_tell_driver_state() {
        assert_eq!(connected().differences(2, 3), Vec::<String>::new());
        assert_eq!(connected().differences(3, 3).len(), 5);
        let mut state = connected();
        state.counters.insert(SUBSCRIBER_POSITION, 16);
        assert_eq!(state.differences(2, 3), ["16 subscriber positions, not 15: "]);
    }

    #[test]
    fn what_clients_leave_behind_is_a_leak() {
        let counters = [(0, 30)].into();
        let before = DriverState { counters, publications: 0, images: 0, labels: vec![] };
        assert_eq!(before.excess_over(&before), Vec::<String>::new());
        assert_eq!(connected().excess_over(&before).len(), 5);
    }
}
