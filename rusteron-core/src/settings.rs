//! Settings as texts: the values that an environment variable can have, and the value that a
//! context has.
//!
//! Texts are read more strictly than Aeron reads them. It takes `64kb` for `64k`, `truely` for `true` and, where it
//! expects a number, `10s` for 10. Such texts are refused here, because they are probably mistakes.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::scan;

/// The form of a setting's value, and its range.
#[derive(Debug)]
pub enum Format {
    /// `true`, `on`, `1`, `false`, `off` or `0`.
    Flag,
    /// Bytes, as a number or with k, m or g.
    Size(Limit),
    /// Nanoseconds within this range, as a number or with a unit.
    Duration(RangeInclusive<u64>),
    /// A duration as a number without a unit.
    Milliseconds,
    /// A number as in C, which can be hexadecimal or octal.
    Number(RangeInclusive<i128>),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A path, which need not be UTF-8.
    Path,
    /// Any text.
    Text,
    /// A text that a function accepts, or else says which texts are accepted.
    Custom(fn(&str) -> Result<(), String>),
}

/// The permitted sizes of a setting, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The least size.
    pub min: u64,
    /// The greatest size.
    pub max: u64,
    /// What else the size has to be.
    pub form: Form,
}

/// What a size has to be beside its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Nothing else.
    Any,
    /// A power of two.
    PowerOfTwo,
    /// A multiple of this.
    MultipleOf(u64),
    /// A power of two, and the bytes of a trailer.
    PowerOfTwoAnd(u64),
}

impl Limit {
    fn admits(&self, size: u64) -> bool {
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
        write!(f, " from {} to {}", scan::format_size(self.min), scan::format_size(self.max))
    }
}

impl Format {
    /// Checks a text.
    ///
    /// # Errors
    /// The texts that are permitted, such as `must be true or false`.
    pub fn check(&self, text: &str) -> Result<(), String> {
        let (is_valid, valid) = match self {
            Self::Flag => (flag(text).is_some(), "true or false".into()),
            Self::Size(limit) => {
                (scan::size(text).is_some_and(|bytes| limit.admits(bytes)), limit.to_string())
            }
            Self::Duration(range) => {
                let nanos = scan::duration(text).and_then(|time| time.as_nanos().try_into().ok());
                (nanos.is_some_and(|nanos| range.contains(&nanos)), durations(range))
            }
            Self::Milliseconds => (
                integer(text).is_some_and(|millis| (0..=i64::MAX.into()).contains(&millis)),
                "a number of milliseconds, such as 10000".into(),
            ),
            Self::Number(range) => (
                integer(text).is_some_and(|number| range.contains(&number)),
                format!("an integer from {} to {}", range.start(), range.end()),
            ),
            Self::Word(words) => (words.contains(&text), list(words)),
            Self::Path => {
                (!text.is_empty() && !text.contains('\0'), "a path without a NUL byte".into())
            }
            Self::Text => (!text.contains('\0'), "a text without a NUL byte".into()),
            Self::Custom(check) => return check(text),
        };
        if is_valid { Ok(()) } else { Err(format!("must be {valid}")) }
    }
}

/// Writes `a duration with ns, us, ms or s` with its ends.
fn durations(range: &RangeInclusive<u64>) -> String {
    let [least, most] = [range.start(), range.end()]
        .map(|nanos| scan::format_duration(Duration::from_nanos(*nanos)));
    // The end of C's type is no limit.
    match *range.end() {
        end if end >= i64::MAX as u64 => {
            format!("a duration with ns, us, ms or s, {least} or more")
        }
        _ => format!("a duration with ns, us, ms or s, from {least} to {most}"),
    }
}

/// Writes `a, b or c`.
pub fn list(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        words => words.join(""),
    }
}

/// Reads a flag.
pub fn flag(text: &str) -> Option<bool> {
    match text {
        "true" | "on" | "1" => Some(true),
        "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Returns whether a duration is so short that its unit was probably forgotten.
pub(crate) fn has_no_unit(text: &str) -> bool {
    const SHORTEST: u64 = 100_000;
    text.parse().is_ok_and(|nanos: u64| (1..SHORTEST).contains(&nanos))
}

/// What a warning says of such a duration.
pub(crate) const NO_UNIT: &str =
    "nanoseconds, because it has no unit; write s, ms or us for others";

fn warn_of_missing_unit(variable: &str, text: &str) {
    if has_no_unit(text) {
        log::warn!("{variable}={text}: {NO_UNIT}");
    }
}

/// Logs a warning for each environment variable of a duration that C reads, if its unit was
/// probably forgotten.
pub fn warn_of_missing_units<'a, C: 'a>(settings: impl IntoIterator<Item = &'a Setting<C>>) {
    for setting in settings {
        if let (Format::Duration(_), Ok(text)) = (&setting.format, env::var(setting.variable)) {
            warn_of_missing_unit(setting.variable, &text);
        }
    }
}

/// Reads an integer as C does: decimal, hexadecimal or octal.
pub fn number<T: TryFrom<i128>>(text: &str) -> Option<T> {
    integer(text)?.try_into().ok()
}

fn integer(text: &str) -> Option<i128> {
    if text.starts_with(|c: char| c.is_whitespace() || c == '+') {
        return None;
    }
    let of_64_bits = || text.parse::<u64>().ok().filter(|_| !text.starts_with('0'));
    scan::int64(text, 0).map(i128::from).or_else(|| of_64_bits().map(i128::from))
}

/// Reads a number of bytes, with `k`, `m`, `g` or without.
pub fn size<T: TryFrom<u64>>(text: &str) -> Option<T> {
    scan::size(text)?.try_into().ok()
}

/// Writes a duration as [`scan::duration`] reads it. The text of a duration that C cannot count is refused by a check.
pub fn duration_text(duration: Duration) -> String {
    match i64::try_from(duration.as_nanos()) {
        Ok(_) => scan::format_duration(duration),
        Err(_) => format!("{}ns", duration.as_nanos()),
    }
}

/// Parses a value of a setting, whose text has the setting's format.
///
/// # Errors
/// If the text cannot be read all the same.
pub fn parse<'a, T>(
    text: &'a OsStr,
    reader: impl FnOnce(&'a str) -> Option<T>,
) -> Result<T, String> {
    text.to_str().and_then(reader).ok_or_else(|| "cannot be read".to_owned())
}

/// A setting of the context `C`, as an environment variable and as a value of the context.
///
/// `rusteron-codegen` makes these from a crate's table of settings.
pub struct Setting<C> {
    /// The name of the getter. Empty if there is none.
    #[doc(hidden)]
    pub name: &'static str,
    /// The environment variable, or an empty text if there is none.
    #[doc(hidden)]
    pub variable: &'static str,
    /// The texts that the value can be.
    #[doc(hidden)]
    pub format: Format,
    /// Sets the value from a text that has the format.
    #[doc(hidden)]
    pub set: fn(&mut C, &OsStr) -> Result<(), String>,
    /// Where the value's text comes from.
    #[doc(hidden)]
    pub source: Source<C>,
}

/// The source of the text of a setting's value.
#[derive(Debug)]
pub enum Source<C> {
    /// The context has the value. `None` if it is not set and has no default.
    Context(fn(&C) -> Option<String>),
    /// The context has the value, a size that a launch checks.
    CheckedSize(fn(&C) -> u64),
    /// The variable's text, because the context does not tell by which of several names the value
    /// was set, or does not tell the value at all. If the variable is not set, the name in the
    /// context.
    Variable(fn(&C) -> Option<String>),
    /// The value has no source, because no program reads the variable.
    Unread,
}

impl<C> Setting<C> {
    /// Returns the environment variable, or an empty text if there is none.
    ///
    /// The name of the property is the variable's in lower case, with dots: `aeron.dir` for
    /// `AERON_DIR`. Aeron takes underscores for dots: `aeron.socket.so_rcvbuf`.
    pub fn variable(&self) -> &'static str {
        self.variable
    }

    /// Returns whether a program reads the variable. Aeron defines some that no program reads.
    pub fn is_read(&self) -> bool {
        !matches!(self.source, Source::Unread)
    }

    /// Checks a value of the variable, more strictly than Aeron, which takes `64kb` for `64k`,
    /// `truely` for `true` and, where it expects a number, `10s` for 10.
    ///
    /// # Errors
    /// The values that are permitted, such as `must be true or false`.
    pub fn check(&self, text: &str) -> Result<(), String> {
        self.format.check(text)
    }

    /// Returns the value that a context has, as the variable would have it. `None` if it is not set and has no default.
    ///
    /// A context does not tell some settings. Their value is the variable's.
    pub fn value(&self, context: &C) -> Option<String> {
        let set = || env::var(self.variable).ok().filter(|text| !text.is_empty());
        match self.source {
            Source::Variable(name) => set().or_else(|| name(context)),
            _ => self.value_in_context(context),
        }
    }

    /// Returns the value that a context has, if the context tells.
    pub fn value_in_context(&self, context: &C) -> Option<String> {
        match self.source {
            Source::Context(get) => get(context).filter(|text| !text.is_empty()),
            Source::CheckedSize(get) => Some(get(context).to_string()),
            Source::Variable(_) | Source::Unread => None,
        }
    }

    /// Returns the problem of a value that a launch would refuse.
    pub fn problem(&self, context: &C) -> Option<String> {
        let (Source::CheckedSize(get), Format::Size(limit)) = (&self.source, &self.format) else {
            return None;
        };
        let size = get(context);
        (!limit.admits(size)).then(|| format!("{}: {size} is not {limit}", self.title()))
    }

    /// Returns the name and the variable, for errors.
    pub fn title(&self) -> String {
        format!("{} ({})", self.name, self.variable)
    }

    /// Sets the value to what a variable's text says.
    ///
    /// # Errors
    /// As for [`check`](Self::check); those of the setter.
    pub fn read(&self, context: &mut C, value: &OsStr) -> Result<(), String> {
        match (value.to_str(), &self.format) {
            (Some(text), format) => format.check(text)?,
            (None, Format::Path) => {}
            (None, _) => return Err("must be UTF-8".to_owned()),
        }
        (self.set)(context, value)
    }
}

impl<C> fmt::Debug for Setting<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting")
            .field("name", &self.name)
            .field("variable", &self.variable)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

/// Checks the text of a setting's value, for its setter.
///
/// # Errors
/// The name, the value and the permitted values, such as `mtu_length=100: must be a multiple of 32 from 64 to 65504`.
pub fn check<C>(settings: &[Setting<C>], name: &str, text: &str) -> Result<(), String> {
    let setting = settings.iter().find(|setting| setting.name == name);
    let checked = setting.map_or(Ok(()), |setting| setting.check(text));
    checked.map_err(|valid| format!("{name}={}: {valid}", text.escape_debug()))
}

/// Sets the settings whose variables have values. An empty value counts as absent. Logs a warning
/// for a duration whose unit was probably forgotten.
///
/// # Errors
/// The variable, the value and the permitted values of each variable that is wrong.
pub fn read_variables<'a, C: 'a>(
    settings: impl IntoIterator<Item = &'a Setting<C>>,
    context: &mut C,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<(), String> {
    let mut problems = Vec::new();
    for setting in settings.into_iter().filter(|setting| !setting.variable.is_empty()) {
        let value = variable(setting.variable).filter(|value| !value.is_empty());
        let Some(value) = value else { continue };
        let text = value.to_string_lossy();
        if let Err(valid) = setting.read(context, &value) {
            problems.push(format!("{}={}: {valid}", setting.variable, text.escape_debug()));
        } else if matches!(setting.format, Format::Duration(_)) {
            warn_of_missing_unit(setting.variable, &text);
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        let size = || Format::Size(Limit { min: 0, max: 1 << 30, form: Form::Any });
        let even = |text: &str| match text.len() % 2 {
            0 => Ok(()),
            _ => Err("must be even".to_owned()),
        };
        for (format, valid, invalid) in [
            (
                Format::Flag,
                &["true", "on", "1", "false", "off", "0"][..],
                &["", "yes", "TRUE", "truely"][..],
            ),
            (
                size(),
                &["0", "4096", "64k", "1M", "1g"],
                &["", "k", "64kb", "-1", "2g", " 64k", "1.5m"],
            ),
            (
                Format::Duration(1_000..=i64::MAX as u64),
                &["1000", "1us", "1000ns", "5MS", "10s", "9223372036s"],
                &["", "9223372037s", "999", "1ns", "1sec", "5m", "1 s", "-1s", "1h"],
            ),
            (Format::Duration(0..=1_000_000), &["0", "1ms"], &["1000001", "1s"]),
            (Format::Milliseconds, &["0", "10000"], &["", "10s", "-1", "9223372036854775808"]),
            (
                Format::Number(-1..=255),
                &["-1", "0", "255", "0xff", "017", "0X1F"],
                &["", "-2", "256", "08", "0x", "1k", "10s", "--1", "+1", "0x-1", "0x100"],
            ),
            (Format::Word(&["new", "classic"]), &["new"], &["", "New", "old"]),
            (Format::Path, &["a/b", "é"], &["", "a\0b"]),
            (Format::Text, &["", "anything"], &["a\0"]),
            (Format::Custom(even), &["", "ab"], &["a"]),
        ] {
            for text in valid {
                assert_eq!(format.check(text), Ok(()), "{text:?}");
            }
            for text in invalid {
                let error = format.check(text).expect_err(text);
                assert!(error.starts_with("must be "), "{text:?}: {error}");
            }
        }
    }

    #[test]
    fn range_is_named() {
        let error = |format: Format| format.check("?").expect_err("no value");
        let durations = "must be a duration with ns, us, ms or s, ";
        assert_eq!(error(Format::Flag), "must be true or false");
        assert_eq!(
            error(Format::Duration(1_000..=i64::MAX as u64)),
            format!("{durations}1us or more")
        );
        assert_eq!(error(Format::Duration(0..=1_000_000)), format!("{durations}from 0ns to 1ms"));
        assert_eq!(error(Format::Number(1..=256)), "must be an integer from 1 to 256");
        assert_eq!(
            error(Format::Size(Limit { min: 1 << 16, max: 1 << 30, form: Form::PowerOfTwo })),
            "must be a power of two from 64k to 1g"
        );
        assert_eq!(error(Format::Word(&["a", "b", "c"])), "must be a, b or c");
    }

    #[test]
    fn limits_are_written_and_checked() {
        for (min, max, form, text, admitted, refused) in [
            (1 << 16, 1 << 30, Form::PowerOfTwo, "a power of two from 64k to 1g", 1 << 16, 100),
            (64, 65_504, Form::MultipleOf(32), "a multiple of 32 from 64 to 65504", 1408, 1400),
            (1 << 20, 500 << 20, Form::Any, "a size from 1m to 500m", 1 << 20, (1 << 20) - 1),
            (
                (1 << 20) + 128,
                i32::MAX as u64,
                Form::PowerOfTwoAnd(128),
                "a power of two and 128 bytes from 1048704 to 2147483647",
                (2 << 20) + 128,
                2 << 20,
            ),
        ] {
            let limit = Limit { min, max, form };
            assert_eq!(limit.to_string(), text);
            assert!(limit.admits(admitted), "{text}");
            assert!(!limit.admits(refused), "{text}");
        }
    }

    #[test]
    fn too_long_durations_are_refused() {
        let format = Format::Duration(0..=i64::MAX as u64);
        assert_eq!(duration_text(Duration::from_millis(5)), "5ms");
        assert!(format.check(&duration_text(Duration::from_nanos(i64::MAX as u64))).is_ok());
        assert!(format.check(&duration_text(Duration::MAX)).is_err());
    }

    #[test]
    fn durations_without_unit_are_found() {
        for text in ["1", "5", "99999"] {
            assert!(has_no_unit(text), "{text}");
        }
        for text in ["", "0", "100000", "5ns", "5us", "5s", "-1"] {
            assert!(!has_no_unit(text), "{text}");
        }
    }

    #[derive(Debug, Default)]
    struct Tiny {
        count: i32,
        dir: OsString,
    }

    const TINY: &[Setting<Tiny>] = &[
        Setting {
            name: "count",
            variable: "TINY_COUNT",
            format: Format::Number(0..=9),
            set: |tiny, text| {
                tiny.count = parse(text, number)?;
                Ok(())
            },
            source: Source::Context(|tiny| Some(tiny.count.to_string())),
        },
        Setting {
            name: "dir",
            variable: "TINY_DIR",
            format: Format::Path,
            set: |tiny, text| {
                tiny.dir = text.to_owned();
                Ok(())
            },
            source: Source::Context(|tiny| tiny.dir.to_str().map(str::to_owned)),
        },
    ];

    #[test]
    fn variables_change_values() {
        let mut tiny = Tiny::default();
        let set = |name: &str| (name == "TINY_COUNT").then(|| "7".into());
        assert_eq!(read_variables(TINY, &mut tiny, set), Ok(()));
        assert_eq!(TINY[0].value(&tiny).as_deref(), Some("7"));
        assert_eq!(TINY[1].value(&tiny), None);
        assert_eq!(read_variables(TINY, &mut tiny, |_| Some("".into())), Ok(()));
        assert_eq!(tiny.count, 7);
    }

    #[test]
    fn faulty_values_are_named() {
        let mut tiny = Tiny::default();
        let problem = "must be an integer from 0 to 9";
        let set = |_: &str| Some("10\n".into());
        assert_eq!(
            read_variables(TINY, &mut tiny, set),
            Err(format!("TINY_COUNT=10\\n: {problem}"))
        );
        assert_eq!(check(TINY, "count", "10"), Err(format!("count=10: {problem}")));
        assert_eq!(check(TINY, "count", "9"), Ok(()));
    }

    #[cfg(unix)]
    #[test]
    fn only_paths_may_be_other_than_utf8() {
        use std::os::unix::ffi::OsStringExt;

        let mut tiny = Tiny::default();
        let value = OsString::from_vec(vec![b'a', 0xff]);
        let set = |_: &str| Some(value.clone());
        let error = read_variables(TINY, &mut tiny, set).expect_err("a number");
        assert!(error.starts_with("TINY_COUNT=") && error.ends_with(": must be UTF-8"), "{error}");
        assert_eq!(tiny.dir, value);
    }
}
