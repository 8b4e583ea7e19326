//! The cost of a yield.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::measuring::cache_line::CacheLine;
use crate::measuring::measurement;
use crate::measuring::repetition::Repetition;

/// Who wants the cores while a thread yields. Others are as many as there are cores, so that there is one
/// thread too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// No other thread of this process.
    None,
    /// Threads that yield as well.
    Yield,
    /// Threads that spin, and keep a core until the operating system takes it from them.
    Spin,
}

impl Others {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Yield, Self::Spin];

    /// Returns the name of the threads in a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "nobody else",
            Self::Yield => "others that yield",
            Self::Spin => "others that spin",
        }
    }
}

/// How many nanoseconds a yield takes until the thread goes on, by slice.
///
/// # Errors
/// [`Failure::Run`] if no thread can be started.
pub fn yields(
    others: Others,
    times: &Repetition,
    interrupt: &Interrupt,
) -> Result<Vec<f64>, Failure> {
    let is_running = CacheLine(AtomicBool::new(true));
    thread::scope(|scope| {
        let count = match others {
            Others::None => 0,
            Others::Yield | Others::Spin => thread::available_parallelism().map_or(1, NonZero::get),
        };
        let started = (0..count).try_for_each(|_| {
            let other = || {
                while is_running.load(Ordering::Relaxed) {
                    if others == Others::Yield {
                        thread::yield_now();
                    }
                }
            };
            measurement::spawn(scope, "other", other).map(drop)
        });
        // The threads that were started have to end in any case.
        let slices = started.map(|()| times.nanoseconds(interrupt, thread::yield_now));
        is_running.store(false, Ordering::Relaxed);
        slices
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn yields_take_time_whoever_else_is_there() {
        let ms = Duration::from_millis;
        let times = Repetition { slice: ms(1), warmup: ms(1), measured: ms(5) };
        for others in Others::ALL {
            let slices = yields(others, &times, &Interrupt::default()).expect("threads");
            assert!(!slices.is_empty(), "{others:?}");
            assert!(slices.iter().all(|nanoseconds| *nanoseconds > 0.0), "{others:?} {slices:?}");
        }
    }
}
