//! Numbers as people read them.

use std::fmt;

use num_format::{Locale, ToFormattedString};

/// Displays a number with a comma between groups of three digits: `36,859,281`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grouped(pub u64);

impl Grouped {
    /// The nearest whole number; 0 for a negative value, or for one that is not a number.
    pub fn rounded(value: f64) -> Self {
        // The conversion saturates.
        Self(value.round() as u64)
    }
}

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Respects a width that the caller has given.
        f.pad(&self.0.to_formatted_string(&Locale::en))
    }
}

/// The ratio of two counts; 0 if there was nothing to compare with.
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let cases = [
            (0, "0"),
            (7, "7"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345, "12,345"),
            (999_999, "999,999"),
            (36_859_281, "36,859,281"),
            (1_179_496_981, "1,179,496,981"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ];
        for (number, text) in cases {
            assert_eq!(Grouped(number).to_string(), text);
        }
    }

    #[test]
    fn a_width_is_respected() {
        assert_eq!(format!("{:>7}", Grouped(1_000)), "  1,000");
    }

    #[test]
    fn floating_point_numbers_are_rounded() {
        assert_eq!(Grouped::rounded(1.5), Grouped(2));
        assert_eq!(Grouped::rounded(-3.0), Grouped(0));
        assert_eq!(Grouped::rounded(f64::NAN), Grouped(0));
    }

    #[test]
    fn a_ratio_to_nothing_is_zero() {
        assert_eq!(ratio(3, 0), 0.0);
        assert_eq!(ratio(1, 4), 0.25);
    }
}
