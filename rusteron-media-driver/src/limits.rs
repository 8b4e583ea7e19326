//! The sizes that a launch accepts, for its checks and for the program's table of settings.

use std::fmt;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const I32_MAX: u64 = i32::MAX as u64;

/// The permitted sizes of a setting, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    min: u64,
    max: u64,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Any,
    PowerOfTwo,
    MultipleOf(u64),
    /// A power of two, and the bytes of a trailer.
    PowerOfTwoAnd(u64),
}

impl Limit {
    /// Lengths of terms.
    pub const TERM_LENGTH: Self = Self::new(64 << 10, GIB, Form::PowerOfTwo);
    /// Lengths of windows of publications; 0 is for half a term.
    pub const TERM_WINDOW: Self = Self::range(0, GIB);
    /// Lengths of the largest frame.
    pub const MTU: Self = Self::new(64, 65_504, Form::MultipleOf(32));
    /// Sizes of pages of files.
    pub const PAGE_SIZE: Self = Self::new(4 << 10, GIB, Form::PowerOfTwo);
    /// Lengths of the buffer of commands.
    pub const TO_CONDUCTOR_BUFFER: Self = Self::new(MIB + 768, I32_MAX, Form::PowerOfTwoAnd(768));
    /// Lengths of the buffer of answers.
    pub const TO_CLIENTS_BUFFER: Self = Self::new(MIB + 128, I32_MAX, Form::PowerOfTwoAnd(128));
    /// Lengths of the buffer of the counters' values.
    pub const COUNTERS_BUFFER: Self = Self::range(MIB, 500 * MIB);
    /// Lengths of the error log.
    pub const ERROR_BUFFER: Self = Self::range(4 * MIB, I32_MAX);

    const fn new(min: u64, max: u64, form: Form) -> Self {
        Self { min, max, form }
    }

    /// Permits all sizes of a range, which includes both ends.
    pub const fn range(min: u64, max: u64) -> Self {
        Self::new(min, max, Form::Any)
    }

    /// Returns whether a size is permitted.
    pub fn admits(&self, size: u64) -> bool {
        (self.min..=self.max).contains(&size)
            && match self.form {
                Form::Any => true,
                Form::PowerOfTwo => size.is_power_of_two(),
                Form::MultipleOf(step) => size % step == 0,
                Form::PowerOfTwoAnd(trailer) => (size - trailer).is_power_of_two(),
            }
    }
}

/// Writes the sizes behind "must be" and "is not".
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Any => f.write_str("a size")?,
            Form::PowerOfTwo => f.write_str("a power of two")?,
            Form::MultipleOf(step) => write!(f, "a multiple of {step}")?,
            Form::PowerOfTwoAnd(trailer) => write!(f, "a power of two and {trailer} bytes")?,
        }
        write!(f, " from {} to {}", Size(self.min), Size(self.max))
    }
}

/// Writes a size with Aeron's largest unit that leaves no fraction.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, name) in [(GIB, 'g'), (MIB, 'm'), (1 << 10, 'k')] {
            if self.0 >= unit && self.0 % unit == 0 {
                return write!(f, "{}{name}", self.0 / unit);
            }
        }
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_and_checked() {
        for (limit, text, admitted, refused) in [
            (Limit::TERM_LENGTH, "a power of two from 64k to 1g", 1 << 16, 100),
            (Limit::MTU, "a multiple of 32 from 64 to 65504", 1408, 1400),
            (Limit::COUNTERS_BUFFER, "a size from 1m to 500m", MIB, MIB - 1),
            (
                Limit::TO_CLIENTS_BUFFER,
                "a power of two and 128 bytes from 1048704 to 2147483647",
                2 * MIB + 128,
                2 * MIB,
            ),
        ] {
            assert_eq!(limit.to_string(), text);
            assert!(limit.admits(admitted), "{text}");
            assert!(!limit.admits(refused), "{text}");
        }
    }
}
