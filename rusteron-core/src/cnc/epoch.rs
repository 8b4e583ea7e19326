//! Times in Aeron's form: milliseconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Converts a number of milliseconds to a time. `None` if this system's clock cannot represent it.
pub fn time(millis: i64) -> Option<SystemTime> {
    let distance = Duration::from_millis(millis.unsigned_abs());
    if millis < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
}

/// Converts a time to milliseconds, limited to the range of 64 bits.
pub fn millis(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_way_there_and_back() {
        for value in [0, 1, -1, 1_700_000_000_123, -5_000] {
            assert_eq!(time(value).map(millis), Some(value));
        }
        // The result does not matter here. It must not panic.
        let _ = (time(i64::MAX), time(i64::MIN));
    }
}
