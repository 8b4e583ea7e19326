//! Times as Aeron writes them: milliseconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time of a number of milliseconds; `None` if this system's clock cannot show it.
pub(crate) fn time(millis: i64) -> Option<SystemTime> {
    let distance = Duration::from_millis(millis.unsigned_abs());
    if millis < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
}

/// The milliseconds of a time, as near as a number of 64 bits comes.
pub(crate) fn millis(time: SystemTime) -> i64 {
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
        // Whatever it is, it is not a panic.
        let _ = (time(i64::MAX), time(i64::MIN));
    }
}
