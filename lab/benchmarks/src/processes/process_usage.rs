//! The resources that a process uses, as Linux reports them in `/proc`.

use std::fs;
use std::time::{Duration, Instant};

use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;

/// How long it is between two samples, roughly.
const SLICE: Duration = Duration::from_millis(250);

/// The unit of processor times in `/proc`: a hundredth of a second on all architectures that Rust has.
const TICK: Duration = Duration::from_millis(10);

/// The usage of a process until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    /// Processor time of all threads, those that have ended included.
    cpu: Duration,
    /// Bytes of memory that are resident.
    resident: u64,
    /// The part of these that is shared memory, such as log buffers.
    shared: u64,
    threads: u64,
}

impl Sample {
    fn take(pid: u32) -> Result<Self, Failure> {
        let read = |name: &str| {
            let path = format!("/proc/{pid}/{name}");
            let text = fs::read_to_string(&path);
            text.map_err(|error| Failure::run(format_args!("cannot read {path}"), error))
        };
        let (stat, status) = (read("stat")?, read("status")?);
        Self::parse(&stat, &status)
            .ok_or_else(|| Failure::Run(format!("not understood: /proc/{pid}/stat and status")))
    }

    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The second field is the program's name, which may have spaces and brackets of its own.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut times = fields.split_ascii_whitespace().skip(11).map(str::parse::<u32>);
        let mut time = || times.next()?.ok();
        let ticks = time()?.checked_add(time()?)?;
        let field = |name: &str| {
            let values = status.lines().filter_map(|line| line.strip_prefix(name));
            let mut values = values.filter_map(|value| value.strip_prefix(':'));
            values.next()?.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        Some(Self {
            cpu: TICK * ticks,
            resident: field("VmRSS")? << 10,
            shared: field("RssShmem")? << 10,
            threads: field("Threads")?,
        })
    }
}

/// Returns the processor time of all threads of a process until now, those that have ended included. Its
/// resolution is 10 ms.
///
/// # Errors
/// [`Failure::Run`] if the process is gone, or this is not Linux.
pub fn cpu_time(pid: u32) -> Result<Duration, Failure> {
    Sample::take(pid).map(|sample| sample.cpu)
}

/// Returns the resident memory of a process in bytes, and the part of it that is shared, such as log buffers.
///
/// # Errors
/// [`Failure::Run`] if the process is gone, or this is not Linux.
pub fn resident(pid: u32) -> Result<(u64, u64), Failure> {
    Sample::take(pid).map(|sample| (sample.resident, sample.shared))
}

/// Returns the memory of a process in bytes, without shared memory such as log buffers. Files that several processes map,
/// such as a library, count in proportion.
///
/// # Errors
/// [`Failure::Run`] if the process is gone, or this is not Linux.
pub fn proportional(pid: u32) -> Result<u64, Failure> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path)
        .map_err(|error| Failure::run(format_args!("cannot read {path}"), error))?;
    let field = |name: &str| {
        let values = text.lines().find_map(|line| line.strip_prefix(name));
        values?.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    let kibibytes = field("Pss_Anon:").zip(field("Pss_File:"));
    let (anonymous, files) =
        kibibytes.ok_or_else(|| Failure::Run(format!("not understood: {path}")))?;
    Ok((anonymous + files) << 10)
}

/// The mean usage of a process during some time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// Processor time, in percent of one core.
    pub cpu: f64,
    /// Resident memory in bytes.
    pub resident: f64,
    /// Resident shared memory in bytes, such as log buffers; it is in the above.
    pub shared: f64,
    /// The most threads that were seen.
    pub threads: f64,
}

impl Usage {
    /// Watches a process from a point in time on.
    ///
    /// # Errors
    /// [`Failure::Run`] if the process is gone, or this is not Linux; [`Failure::Interrupted`].
    pub fn watch(
        pid: u32,
        from: Instant,
        measure: Duration,
        interrupt: &ShutdownSignal,
    ) -> Result<Self, Failure> {
        let slices =
            u32::try_from(measure.as_nanos() / SLICE.as_nanos()).unwrap_or(u32::MAX).max(1);
        let mut samples = Vec::new();
        for number in 0..=slices {
            if interrupt.wait_timeout(
                (from + measure / slices * number).saturating_duration_since(Instant::now()),
            ) {
                return Err(Failure::Interrupted);
            }
            samples.push((Instant::now(), Sample::take(pid)?));
        }
        Ok(Self::of(&samples))
    }

    /// The usage between the first of some samples and the last.
    fn of(samples: &[(Instant, Sample)]) -> Self {
        let mean = |value: fn(&Sample) -> u64| {
            let sum: f64 = samples.iter().map(|(_, sample)| value(sample) as f64).sum();
            sum / samples.len().max(1) as f64
        };
        let cpu = match samples {
            [first, .., last] => {
                let elapsed = last.0.duration_since(first.0).max(TICK);
                let used = last.1.cpu.saturating_sub(first.1.cpu);
                100.0 * used.as_secs_f64() / elapsed.as_secs_f64()
            }
            _ => 0.0,
        };
        let threads = samples.iter().map(|(_, sample)| sample.threads).max().unwrap_or(0);
        Self {
            cpu,
            resident: mean(|sample| sample.resident),
            shared: mean(|sample| sample.shared),
            threads: threads as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tdriver\nVmHWM:\t  9000 kB\nVmRSS:\t    8000 kB\n\
                          RssAnon:\t 100 kB\nRssShmem:\t 3000 kB\nThreads:\t5\n";

    #[test]
    fn fields_follow_any_program_name() {
        let stat = "7 (a) R (b c) S 1 7 7 0 -1 4194560 9 8 7 6 250 50 1 1 20 0 5 0 100 1 2";
        let sample = Sample::parse(stat, STATUS).expect("a sample");
        assert_eq!(sample.cpu, Duration::from_secs(3));
        assert_eq!((sample.resident, sample.shared), (8000 << 10, 3000 << 10));
        assert_eq!(sample.threads, 5);
        for stat in ["", "7 (a", "7 (a) S 1 7 7 0 -1 4194560 9 8 7 6 250", "7 (a) S 1 2 3"] {
            assert_eq!(Sample::parse(stat, STATUS), None, "{stat}");
        }
        // A process that has ended has no memory.
        assert_eq!(Sample::parse(stat, "Name:\tdriver\nThreads:\t1\n"), None);
    }

    #[test]
    fn usage_is_the_mean_of_samples() {
        let start = Instant::now();
        let sample = |seconds, cpu, resident| {
            let cpu = Duration::from_millis(cpu);
            let sample = Sample { cpu, resident, shared: 1, threads: resident };
            (start + Duration::from_secs(seconds), sample)
        };
        let usage = Usage::of(&[sample(0, 1000, 2), sample(1, 2500, 6), sample(3, 3000, 4)]);
        assert!((usage.cpu - 200.0 / 3.0).abs() < 1e-9, "{usage:?}");
        assert_eq!((usage.resident, usage.shared, usage.threads), (4.0, 1.0, 6.0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn processor_time_grows() {
        let pid = std::process::id();
        let before = cpu_time(pid).expect("a time");
        let deadline = Instant::now() + Duration::from_secs(60);
        while cpu_time(pid).expect("a time") == before {
            assert!(Instant::now() < deadline, "no processor time is counted");
        }
        // Linux has no process of this number.
        assert!(proportional(std::process::id()).expect("memory") > 100 << 10);
        let error = cpu_time(u32::MAX);
        assert!(matches!(error, Err(Failure::Run(text)) if text.contains("/proc/4294967295")));
    }
}
