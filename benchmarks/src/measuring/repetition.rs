//! Doing a thing again and again, and timing it.

use std::time::{Duration, Instant};

use crate::command_line::interrupt::Interrupt;

/// How often the thing is done between two looks at the clock.
const BURST: u32 = 16;

/// How long to repeat, and in what slices.
#[derive(Debug, Clone, Copy)]
pub struct Repetition {
    /// How long a slice is, if the thing does not take longer.
    pub slice: Duration,
    /// For how long slices are left out at the beginning.
    pub warmup: Duration,
    /// How long to go on after that.
    pub measured: Duration,
}

impl Repetition {
    /// How many nanoseconds the thing took each time, by slice.
    ///
    /// There is at least one slice, however long it takes, unless the interrupt is requested.
    pub fn nanoseconds(&self, interrupt: &Interrupt, mut thing: impl FnMut()) -> Vec<f64> {
        let begin = Instant::now();
        let mut slices = Vec::new();
        let mut slice_begin = begin;
        let mut count = 0_u64;
        loop {
            for _ in 0..BURST {
                thing();
            }
            count += u64::from(BURST);
            let now = Instant::now();
            let elapsed = now - slice_begin;
            if elapsed < self.slice {
                continue;
            }
            if interrupt.is_requested() {
                return slices;
            }
            if slice_begin - begin >= self.warmup {
                slices.push(elapsed.as_nanos() as f64 / count as f64);
                if now - begin >= self.warmup + self.measured {
                    return slices;
                }
            }
            (slice_begin, count) = (now, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const TIMES: Repetition = Repetition {
        slice: Duration::from_millis(2),
        warmup: Duration::from_millis(4),
        measured: Duration::from_millis(10),
    };

    #[test]
    fn a_slice_has_what_each_repetition_took() {
        let slices = TIMES.nanoseconds(&Interrupt::default(), || {
            thread::sleep(Duration::from_micros(100));
        });
        assert!(!slices.is_empty());
        assert!(slices.iter().all(|nanoseconds| *nanoseconds >= 100_000.0), "{slices:?}");
    }

    #[test]
    fn slices_of_the_warm_up_are_left_out() {
        let begin = Instant::now();
        let times = Repetition { measured: Duration::ZERO, ..TIMES };
        let slices = times.nanoseconds(&Interrupt::default(), || {});
        assert_eq!(slices.len(), 1);
        assert!(begin.elapsed() >= TIMES.warmup + TIMES.slice);
    }

    #[test]
    fn an_interrupt_ends_it() {
        let interrupt = Interrupt::default();
        interrupt.request();
        let endless = Repetition { measured: Duration::from_secs(3600), ..TIMES };
        assert_eq!(endless.nanoseconds(&interrupt, || {}).len(), 0);
    }
}
