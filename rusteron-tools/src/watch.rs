//! Reports that are printed once, or again and again until a signal ends the program, and rates between them.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use rusteron_core::program::{Failure, on_interrupt};

use crate::options::WatchOptions;
use crate::report::{self, Report};
use crate::screen::Screen;

/// Takes a report and prints the report. Repeats this at each interval if the options ask for that.
pub(crate) fn run<R: Report>(
    options: &WatchOptions,
    mut sample: impl FnMut() -> Result<R, Failure>,
) -> Result<(), Failure> {
    let json = options.format.json;
    if !options.watch {
        return report::print(&sample()?, json);
    }
    let shutdown = on_interrupt()?;
    if !json && io::stdout().is_terminal() {
        return Screen::enter()?.show(&shutdown, options.interval, sample);
    }
    loop {
        report::print(&sample()?, json)?;
        if shutdown.wait_timeout(options.interval) {
            return Ok(());
        }
        if !json {
            writeln!(io::stdout())?;
        }
    }
}

/// The last values of counters, to compute rates from.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    time: Option<Instant>,
    /// By counter id and registration id: the driver reuses counter ids.
    values: HashMap<(i32, i64), i64>,
}

impl Rates {
    /// Replaces the last values. Returns the change of each value per second, in the same order.
    /// A rate is `None` if the counter has no last value.
    pub(crate) fn update(
        &mut self,
        time: Instant,
        counters: impl Iterator<Item = (i32, i64, i64)>,
    ) -> Vec<Option<f64>> {
        let mut values = HashMap::new();
        let rates = counters.map(|(id, registration_id, value)| {
            values.insert((id, registration_id), value);
            let before = *self.values.get(&(id, registration_id))?;
            let elapsed = time.saturating_duration_since(self.time?);
            // In 128 bits: the difference of two 64-bit numbers may need 65 bits.
            let change = (i128::from(value) - i128::from(before)) as f64;
            (elapsed > Duration::ZERO).then(|| change / elapsed.as_secs_f64())
        });
        let rates = rates.collect();
        *self = Self { time: Some(time), values };
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_per_second() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut rates = Rates::default();
        assert_eq!(rates.update(start, [(1, 7, 100), (2, 8, i64::MIN)].into_iter()), [None, None]);
        let next = [(1, 7, 150), (2, 9, 5), (3, 1, 1)];
        assert_eq!(rates.update(at(500), next.into_iter()), [Some(100.0), None, None]);
        assert_eq!(rates.update(at(500), [(1, 7, 160)].into_iter()), [None]);
        assert_eq!(rates.update(at(2500), [(1, 7, 100)].into_iter()), [Some(-30.0)]);
    }

    #[test]
    fn largest_change_does_not_overflow() {
        let start = Instant::now();
        let mut rates = Rates::default();
        rates.update(start, [(1, 1, i64::MIN)].into_iter());
        let rate = rates.update(start + Duration::from_secs(1), [(1, 1, i64::MAX)].into_iter())[0];
        assert!(rate.is_some_and(|rate| rate > 1.8e19), "{rate:?}");
    }
}
