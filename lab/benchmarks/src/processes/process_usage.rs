//! The resources that a process uses, as Linux reports them in `/proc`.

use std::fs;
use std::time::{Duration, Instant};

use rusteron_core::program::Failure;

/// The unit of processor times in `/proc`: a hundredth of a second on all architectures that Rust
/// has.
const TICK: Duration = Duration::from_millis(10);

/// Bytes in a MiB.
pub const MEBIBYTE: f64 = (1 << 20) as f64;

/// The usage of a process until now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    at: Instant,
    /// Processor time of all threads, those that have ended included.
    pub cpu: Duration,
    /// MiB of memory that are resident.
    pub resident: f64,
    /// MiB of resident memory without shared memory; log buffers are shared.
    pub private: f64,
    /// How many threads there are.
    pub threads: f64,
}

impl Usage {
    /// Reads the usage of a process.
    ///
    /// # Errors
    /// [`Failure::Run`] if the process is gone, or this is not Linux.
    pub fn of(pid: u32) -> Result<Self, Failure> {
        Self::parse(&read(pid, "stat")?, &read(pid, "status")?)
            .ok_or_else(|| Failure::Run(format!("not understood: /proc/{pid}/stat and status")))
    }

    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The second field is the program's name, which may have spaces and brackets of its own.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut times = fields.split_ascii_whitespace().skip(11).map(str::parse::<u32>);
        let mut time = || times.next()?.ok();
        let ticks = time()?.checked_add(time()?)?;
        let kibibytes = |name| Some(field(status, name)? as f64);
        let resident = kibibytes("VmRSS:")? / 1024.0;
        Some(Self {
            at: Instant::now(),
            cpu: TICK * ticks,
            resident,
            private: resident - kibibytes("RssShmem:")? / 1024.0,
            threads: field(status, "Threads:")? as f64,
        })
    }

    /// Sums up one or more samples. Returns the time and the processor time of the last of them,
    /// the means of the memory, and the most threads.
    pub fn of_samples(samples: &[Self]) -> Self {
        let mean =
            |value: fn(&Self) -> f64| samples.iter().map(value).sum::<f64>() / samples.len() as f64;
        Self {
            resident: mean(|it| it.resident),
            private: mean(|it| it.private),
            threads: samples.iter().map(|it| it.threads).fold(0.0, f64::max),
            ..samples[samples.len() - 1]
        }
    }

    /// Processor time since an earlier sample, in percent of one core.
    pub fn cpu_since(&self, earlier: &Self) -> f64 {
        let elapsed = self.at.duration_since(earlier.at).max(TICK);
        100.0 * self.cpu.saturating_sub(earlier.cpu).as_secs_f64() / elapsed.as_secs_f64()
    }
}

/// Returns the memory of a process in bytes, without shared memory such as log buffers. Files that
/// several processes map, such as a library, count in proportion.
///
/// # Errors
/// [`Failure::Run`] if the process is gone, or this is not Linux.
pub fn proportional(pid: u32) -> Result<u64, Failure> {
    let text = read(pid, "smaps_rollup")?;
    let kibibytes = field(&text, "Pss_Anon:").zip(field(&text, "Pss_File:"));
    let (anonymous, files) = kibibytes
        .ok_or_else(|| Failure::Run(format!("not understood: /proc/{pid}/smaps_rollup")))?;
    Ok((anonymous + files) << 10)
}

fn read(pid: u32, name: &str) -> Result<String, Failure> {
    let path = format!("/proc/{pid}/{name}");
    fs::read_to_string(&path)
        .map_err(|error| Failure::run(format_args!("cannot read {path}"), error))
}

/// The number behind the name of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tdriver\nVmHWM:\t  9000 kB\nVmRSS:\t    8192 kB\n\
                          RssAnon:\t 100 kB\nRssShmem:\t 3072 kB\nThreads:\t5\n";

    #[test]
    fn fields_follow_any_program_name() {
        let stat = "7 (a) R (b c) S 1 7 7 0 -1 4194560 9 8 7 6 250 50 1 1 20 0 5 0 100 1 2";
        let usage = Usage::parse(stat, STATUS).expect("a sample");
        assert_eq!(usage.cpu, Duration::from_secs(3));
        assert_eq!((usage.resident, usage.private, usage.threads), (8.0, 5.0, 5.0));
        let later = Usage { at: usage.at + Duration::from_secs(3), cpu: 2 * usage.cpu, ..usage };
        assert_eq!(later.cpu_since(&usage), 100.0);
        for stat in ["", "7 (a", "7 (a) S 1 7 7 0 -1 4194560 9 8 7 6 250", "7 (a) S 1 2 3"] {
            assert_eq!(Usage::parse(stat, STATUS), None, "{stat}");
        }
        // A process that has ended has no memory.
        assert_eq!(Usage::parse(stat, "Name:\tdriver\nThreads:\t1\n"), None);
    }

    #[test]
    fn usage_is_the_mean_of_samples() {
        let at = Instant::now();
        let sample = |resident| Usage {
            at,
            cpu: Duration::from_secs(resident as u64),
            resident,
            private: resident / 2.0,
            threads: resident,
        };
        let usage = Usage::of_samples(&[2.0, 6.0, 4.0].map(sample));
        assert_eq!(usage, Usage { private: 2.0, threads: 6.0, ..sample(4.0) });
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn own_process_has_memory() {
        assert!(proportional(std::process::id()).expect("memory") > 100 << 10);
        // Linux has no process of this number.
        let error = Usage::of(u32::MAX);
        assert!(matches!(error, Err(Failure::Run(text)) if text.contains("/proc/4294967295")));
    }
}
