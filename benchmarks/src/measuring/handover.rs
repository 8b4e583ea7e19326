//! A cache line that two threads hand over to each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::measuring::cache_line::CacheLine;
use crate::measuring::measurement;
use crate::measuring::repetition::Repetition;

/// The value that ends the thread that answers.
const END: u64 = u64::MAX;

/// How many looks at the line in vain are followed by a yield, so that two threads on one core get on, too.
/// On two cores the answer comes long before.
const DEADLINE: u32 = 10_000;

/// How many nanoseconds two handovers of a line take, by slice. One thread writes the line. A second thread
/// spins until it sees that, and writes the line. The first thread spins until it sees that.
///
/// # Errors
/// [`Failure::Run`] if no thread can be started.
pub fn round_trips(times: &Repetition, interrupt: &Interrupt) -> Result<Vec<f64>, Failure> {
    let line = CacheLine(AtomicU64::new(0));
    thread::scope(|scope| {
        measurement::spawn(scope, "answerer", || {
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
        let mut answered = 0;
        let slices = times.nanoseconds(interrupt, || {
            line.store(answered + 1, Ordering::Release);
            answered = await_other_than(&line, answered + 1);
        });
        line.store(END, Ordering::Release);
        Ok(slices)
    })
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
}
