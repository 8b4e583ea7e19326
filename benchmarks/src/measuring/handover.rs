//! A cache line that two threads hand over to each other.
//!
//! The handover shows how far apart two cores are. Virtual cores move between physical ones, so that it changes while a
//! benchmark runs, and rates change with it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::measuring::cache_line::CacheLine;
use crate::measuring::measurement;
use crate::measuring::repetition::Repetition;
use crate::measuring::statistics::Statistics;

/// The value that ends the thread that answers.
const END: u64 = u64::MAX;

/// How many looks at the line in vain are followed by a yield, so that two threads on one core get on, too.
/// On two cores the answer comes long before.
const DEADLINE: u32 = 10_000;

/// How many nanoseconds two handovers of a line take, by slice. One thread writes the line. A second thread
/// spins until it sees that, and writes the line. The first thread spins until it sees that. On Linux, each has a core of
/// its own.
///
/// # Errors
/// [`Failure::Run`] if no thread can be started.
pub fn round_trips(times: &Repetition, interrupt: &Interrupt) -> Result<Vec<f64>, Failure> {
    let line = CacheLine(AtomicU64::new(0));
    thread::scope(|scope| {
        measurement::spawn(scope, "answerer", || {
            use_core(1);
            // Answers follow questions, which are odd, until the end.
            let mut answered = 0;
            loop {
                let question = await_other_than(&line, answered);
                if question == END {
                    return;
                }
                answered = question + 1;
                line.store(answered, Ordering::Release);
            }
        })?;
        let asker = measurement::spawn(scope, "asker", || {
            use_core(0);
            let mut answered = 0;
            let slices = times.nanoseconds(interrupt, || {
                line.store(answered + 1, Ordering::Release);
                answered = await_other_than(&line, answered + 1);
            });
            line.store(END, Ordering::Release);
            slices
        });
        if asker.is_err() {
            line.store(END, Ordering::Release);
        }
        asker?.join().map_err(|_| Failure::Run("the asker's thread panicked".to_owned()))
    })
}

/// Ties this thread to one of the process's cores. Left alone, two threads of a millisecond often share one. Where it
/// fails, the probe shows what the system chose.
#[cfg(target_os = "linux")]
fn use_core(index: usize) {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return };
    let mut cores = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    if let Some(core) = cores.nth(index) {
        let mut one = rustix::thread::CpuSet::new();
        one.set(core);
        let _ = rustix::thread::sched_setaffinity(None, &one);
    }
}

#[cfg(not(target_os = "linux"))]
fn use_core(_index: usize) {}

/// A probe takes about a millisecond.
const PROBE: Repetition = Repetition {
    slice: Duration::from_micros(50),
    warmup: Duration::from_micros(200),
    measured: Duration::from_millis(1),
};

/// How many nanoseconds a line took from one core to another and back, before and after a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probes {
    /// Before the run.
    pub before: f64,
    /// After the run.
    pub after: f64,
}

/// How far apart the cores were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distance {
    /// A line takes the shorter time.
    Near,
    /// A line takes the longer time.
    Far,
}

impl Distance {
    /// Both distances, and their names in tables.
    pub const ALL: [(Self, &str); 2] = [(Self::Near, "near cores"), (Self::Far, "far cores")];
}

impl Probes {
    /// Probes before and after a run; `None` if the interrupt was requested, since a run that was cut short is not
    /// comparable with others.
    ///
    /// # Errors
    /// The failure of the run; [`Failure::Run`] if no thread can be started.
    pub fn around<T>(
        interrupt: &Interrupt,
        run: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<Option<(T, Self)>, Failure> {
        let probe = || {
            let slices = round_trips(&PROBE, interrupt)?;
            Ok::<_, Failure>(Statistics::new(slices).map(|slices| slices.median()))
        };
        let (before, result, after) = (probe()?, run()?, probe()?);
        let probes = before.zip(after).filter(|_| !interrupt.is_requested());
        Ok(probes.map(|(before, after)| (result, Self { before, after })))
    }

    /// The nanoseconds that lie between near and far cores, as [`boundary`](Self::boundary) finds them; `None` with other
    /// than two cores, because runs are not tied to the cores of their probes.
    pub fn boundary_of_two_cores<'a>(probes: impl IntoIterator<Item = &'a Self>) -> Option<f64> {
        let has_two_cores = thread::available_parallelism().is_ok_and(|cores| cores.get() == 2);
        if has_two_cores { Self::boundary(probes) } else { None }
    }

    /// The nanoseconds that lie between two groups of probes; `None` if there are no two. The medians of the groups
    /// differ by at least a factor of two, each has at least a tenth of the probes, and the gap between them is wide.
    fn boundary<'a>(probes: impl IntoIterator<Item = &'a Self>) -> Option<f64> {
        let mut sorted: Vec<f64> =
            probes.into_iter().flat_map(|probes| [probes.before, probes.after]).collect();
        sorted.sort_by(f64::total_cmp);
        let least = sorted.len().div_ceil(10).max(2);
        let gap = |index: usize| sorted[index] / sorted[index - 1];
        let split = (least..(sorted.len() + 1).saturating_sub(least))
            .max_by(|left, right| gap(*left).total_cmp(&gap(*right)))?;
        let median = |group: &[f64]| Statistics::new(group.iter().copied()).map(|it| it.median());
        let (near, far) = (median(&sorted[..split])?, median(&sorted[split..])?);
        let is_separate = gap(split) >= 1.4 && far >= 2.0 * near;
        is_separate.then(|| (sorted[split - 1] * sorted[split]).sqrt())
    }

    /// The distance of the cores; `None` if it changed during the run.
    pub fn distance(&self, boundary: f64) -> Option<Distance> {
        match [self.before, self.after].map(|probe| probe > boundary) {
            [false, false] => Some(Distance::Near),
            [true, true] => Some(Distance::Far),
            _ => None,
        }
    }

    /// The probes as an object.
    pub fn to_json(&self) -> Value {
        json!({ "before": self.before, "after": self.after })
    }
}

/// Spins until the line has another value than one.
#[inline(always)]
fn await_other_than(line: &AtomicU64, value: u64) -> u64 {
    loop {
        for _ in 0..DEADLINE {
            let found = line.load(Ordering::Acquire);
            if found != value {
                return found;
            }
        }
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_line_goes_there_and_back() {
        let ms = Duration::from_millis;
        let times = Repetition { slice: ms(5), warmup: ms(5), measured: ms(20) };
        let slices = round_trips(&times, &Interrupt::default()).expect("threads");
        assert!(!slices.is_empty());
        assert!(slices.iter().all(|nanoseconds| *nanoseconds > 0.0), "{slices:?}");
    }

    #[test]
    fn run_between_probes_keeps_its_result() {
        let interrupt = Interrupt::default();
        let (result, probes) =
            Probes::around(&interrupt, || Ok(7)).expect("threads").expect("no interrupt");
        assert_eq!(result, 7);
        assert!(probes.before > 0.0 && probes.after > 0.0, "{probes:?}");
        let cut_short = Probes::around(&interrupt, || {
            interrupt.request();
            Ok(())
        });
        assert_eq!(cut_short, Ok(None));
    }

    #[test]
    fn boundary_divides_two_groups_only() {
        let probes = |pairs: &[(f64, f64)]| -> Vec<Probes> {
            pairs.iter().map(|&(before, after)| Probes { before, after }).collect()
        };
        let modes = probes(&[(60.0, 62.0), (58.0, 310.0), (350.0, 330.0)]);
        let boundary = Probes::boundary(&modes).expect("two groups");
        let distances: Vec<_> = modes.iter().map(|probes| probes.distance(boundary)).collect();
        assert_eq!(distances, [Some(Distance::Near), None, Some(Distance::Far)]);
        // One disturbed probe, a factor below two, and a spread without a gap.
        for one_group in [
            vec![(60.0, 61.0), (62.0, 900.0), (60.0, 60.0)],
            vec![(60.0, 61.0), (110.0, 115.0)],
            vec![(60.0, 80.0), (100.0, 130.0), (165.0, 210.0)],
            vec![(60.0, 300.0)],
            vec![],
        ] {
            assert_eq!(Probes::boundary(&probes(&one_group)), None, "{one_group:?}");
        }
    }
}
