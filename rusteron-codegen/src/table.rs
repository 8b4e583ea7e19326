//! The table of a context's settings.

/// A context's settings, in the order of the table.
///
/// A setting is a block of lines. The first line has the setting's name in C and the environment variable, or `-` in
/// place of a missing one. The second line has the type, then attributes, separated by commas. Description, in Markdown,
/// and further lines are indented as well. Lines that begin with `##` are headings, those with `#` comments.
///
/// ```text
/// ## Timeouts
///
/// timer_interval_ns AERON_TIMER_INTERVAL
///   duration, default 1s, values 1us..
///   How often the driver checks timers and timeouts.
/// ```
///
/// The types are `flag`, `size` and `size u64` (bytes), `number i32` and the like, `duration` (of
/// the unit in which the name ends, `_ns` or `_ms`), `text copied` and `text retained` (C copies it
/// or keeps the pointer; `text` for a variable without a setter), `path`, `idle strategy`, `idle
/// arguments`, and `enum Name`, whose variants are read by `FromStr`. Any other word is a function
/// that reads the variable's text, and a second word its argument; a setting of such a type is by
/// hand, or a variable without a setter. What is `ports` has the function `ports_text` as well,
/// which writes a value. Before the type may stand `optional`, for a setting that can be absent,
/// and `unread`, for a variable that no program reads.
///
/// The settings of a context [without C](crate::generate_plain) have Rust's names, `text` without a word, and `optional`
/// before any type but `text`. An enumeration is `Copy`, and its default is the name of a variant.
///
/// The attributes are:
///
/// - `default X`: the default, as the environment variable would have it;
/// - `values A..B`, before that `power of two`, `power of two and N` or `multiple of N`: the values of the variable;
/// - `must be A..B`, for a size of C: the same, but a launch refuses other values in place of
///   cutting the variable's;
/// - `words A B`: the names that the variable can have;
/// - `name X`: the name in Rust, if it differs;
/// - `by hand`: the setter and the getter are written by hand;
/// - `read F`: without C, a function that returns the value of a text, or what a text must be;
/// - `id T`: without C, the type of the id that the number is, in place of the number's;
/// - `not in Python`: Python has no keyword argument for the setting.
#[derive(Debug)]
pub struct Table(pub(crate) Vec<Setting>);

/// A setting of a context, or a variable without a setter.
#[derive(Debug, Default)]
pub(crate) struct Setting {
    /// The title that stands above the setting.
    pub(crate) heading: Option<String>,
    /// Aeron's name without prefix; `None` for a variable without a setter.
    pub(crate) c_name: Option<String>,
    pub(crate) variable: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) default: Option<String>,
    pub(crate) values: Option<Values>,
    /// A launch refuses other values.
    pub(crate) is_checked: bool,
    /// The setting may have no value.
    pub(crate) is_optional: bool,
    pub(crate) is_unread: bool,
    pub(crate) words: Vec<String>,
    /// The function that reads the text of a setting without C.
    pub(crate) read: Option<String>,
    /// The type of the id that a number without C is.
    pub(crate) id: Option<String>,
    renamed: Option<String>,
    pub(crate) by_hand: bool,
    pub(crate) not_in_python: bool,
    /// The description, in Markdown.
    pub(crate) text: String,
}

/// The type of a setting.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `flag`.
    #[default]
    Flag,
    /// `size`, `size u64`: bytes, of this integer type.
    Size(String),
    /// `number i32`.
    Number(String),
    /// `duration`: of the unit in which the name ends, `_ns` or `_ms`. An absent one is -1 in C.
    Duration,
    /// `text copied`: C copies it. `text retained`: C keeps the pointer, and the context keeps the string until it is closed.
    Text {
        /// C keeps the pointer.
        is_retained: bool,
    },
    /// `path`, which C copies.
    Path,
    /// `idle strategy`, by name. Only C's own names reach C: it would call any other function of that name.
    IdleStrategy,
    /// `idle arguments`: a text, which C copies.
    IdleArguments,
    /// `enum Name`, with `to_raw` and `from_raw`.
    Enum(String),
    /// Any other word: a function that reads the text, and the function's first argument, which may
    /// be empty.
    Custom(String, String),
}

/// The permitted values of a setting, of which both ends are permitted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Values {
    /// Such as `power of two`; may be empty.
    pub(crate) form: String,
    pub(crate) least: String,
    /// Empty without a maximum.
    pub(crate) most: String,
}

impl Table {
    /// Parses a table.
    ///
    /// # Errors
    /// All lines that do not have the form of a table, and settings that are described twice or not at all.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parse_lines(text, false)
    }

    /// Parses the table of a context without C.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn parse_plain(text: &str) -> Result<Self, String> {
        Self::parse_lines(text, true)
    }

    fn parse_lines(text: &str, is_plain: bool) -> Result<Self, String> {
        let (mut settings, mut problems, mut heading) = (Vec::new(), Vec::new(), None);
        let mut lines = text.lines().enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            if let Some(title) = line.strip_prefix("## ") {
                heading = Some(title.to_owned());
            } else if !line.is_empty() && !line.starts_with('#') {
                let mut block = Vec::new();
                while let Some((_, line)) =
                    lines.next_if(|(_, line)| line.is_empty() || line.starts_with("  "))
                {
                    block.push(line.strip_prefix("  ").unwrap_or(line));
                }
                match Setting::parse(line, &block, is_plain) {
                    Ok(setting) => settings.push(Setting { heading: heading.take(), ..setting }),
                    Err(problem) => problems.push(format!("line {}: {problem}", number + 1)),
                }
            }
        }
        let table = Self(settings);
        let names: Vec<_> = table
            .0
            .iter()
            .flat_map(|s| [s.c_name.as_ref(), s.variable.as_ref()])
            .flatten()
            .collect();
        let repeated = names.iter().enumerate().filter(|(at, name)| names[..*at].contains(name));
        problems.extend(repeated.map(|(_, name)| format!("{name} stands twice")));
        if problems.is_empty() { Ok(table) } else { Err(problems.join("\n")) }
    }

    /// Returns the variables whose default the table has, with the default.
    pub fn defaults(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|s| s.variable.as_deref().zip(s.default.as_deref()))
    }
}

impl Setting {
    fn parse(head: &str, block: &[&str], is_plain: bool) -> Result<Self, String> {
        let given = |word: &str| (word != "-").then(|| word.to_owned());
        let (c_name, variable) = match *head.split(' ').collect::<Vec<_>>() {
            [name, variable] => (given(name), given(variable)),
            _ => return Err(format!("{head:?} is not a name and a variable")),
        };
        let [attributes, text @ ..] = block else { return Err(format!("{head}: no type")) };
        let mut attributes = attributes.split(", ");
        let ty = attributes.next().unwrap_or_default();
        let (is_unread, ty) = strip(ty, "unread ");
        let (is_optional, ty) = strip(ty, "optional ");
        let kind = Kind::parse(ty, c_name.is_some(), is_plain)
            .map_err(|problem| format!("{head}: {problem}"))?;
        let text = text.join("\n").trim().to_owned();
        let mut setting =
            Self { c_name, variable, kind, is_optional, is_unread, text, ..Self::default() };
        for attribute in attributes {
            let (key, value) = attribute.split_once(' ').unwrap_or((attribute, ""));
            match (key, value) {
                ("by", "hand") => setting.by_hand = true,
                ("not", "in Python") => setting.not_in_python = true,
                ("default", value) => setting.default = Some(value.to_owned()),
                ("name", value) => setting.renamed = Some(value.to_owned()),
                ("read", value) if is_plain => setting.read = Some(value.to_owned()),
                ("id", value) if is_plain => setting.id = Some(value.to_owned()),
                ("words", value) => setting.words = value.split(' ').map(str::to_owned).collect(),
                ("values", value) => setting.values = Some(Values::parse(value)?),
                ("must", value) if matches!(setting.kind, Kind::Size(_)) && !is_plain => {
                    setting.values = Some(Values::parse(value.trim_start_matches("be "))?);
                    setting.is_checked = true;
                }
                _ => return Err(format!("{head}: there is no attribute {attribute:?}")),
            }
        }
        match setting.problem(is_plain) {
            Some(problem) => Err(format!("{head}: {problem}")),
            None => Ok(setting),
        }
    }

    /// Returns what is missing, or what the kind of context does not have.
    fn problem(&self, is_plain: bool) -> Option<&'static str> {
        let is_text = matches!(self.kind, Kind::Text { .. });
        match &self.kind {
            _ if self.text.is_empty() => Some("no description"),
            _ if !self.has_generated_methods() => None,
            Kind::Custom(..) => Some("the methods of such a type are by hand"),
            Kind::IdleArguments if is_plain => Some("only C has idle arguments"),
            _ if is_plain && is_text && self.is_optional => Some("an absent text is an empty one"),
            _ if is_plain && !is_text && !self.is_optional && self.default.is_none() => {
                Some("no default")
            }
            kind if !is_plain && self.is_optional && *kind != Kind::Duration => {
                Some("only a duration can be absent in C")
            }
            _ => None,
        }
    }

    /// The name of Rust's getter: Aeron's, without the unit of a duration.
    pub(crate) fn rust_name(&self) -> &str {
        let name = self.renamed.as_deref().or(self.c_name.as_deref()).unwrap_or_default();
        match self.kind {
            Kind::Duration => name.trim_end_matches("_ns").trim_end_matches("_ms"),
            _ => name,
        }
    }

    /// Returns the type of one value without C, without the `Option` of an optional one.
    pub(crate) fn value_type(&self) -> &str {
        match &self.kind {
            Kind::Flag => "bool",
            Kind::Number(ty) => self.id.as_ref().unwrap_or(ty),
            Kind::Size(ty) | Kind::Enum(ty) | Kind::Custom(ty, _) => ty,
            Kind::Duration => "Duration",
            Kind::Text { .. } | Kind::IdleArguments => "String",
            Kind::Path => "PathBuf",
            Kind::IdleStrategy => "IdleStrategyKind",
        }
    }

    /// Returns the expression of the text that a value has in the variable.
    pub(crate) fn value_text(&self, value: &str) -> String {
        match &self.kind {
            Kind::Duration if self.is_in_millis() => format!("{value}.as_millis().to_string()"),
            Kind::Duration => format!("::rusteron_core::settings::duration_text({value})"),
            Kind::Path => format!("{value}.display().to_string()"),
            Kind::Flag if self.words == ["on", "off"] => {
                format!("if {value} {{ \"on\" }} else {{ \"off\" }}.to_owned()")
            }
            Kind::Custom(function, _) => format!("{function}_text({value})"),
            _ => format!("{value}.to_string()"),
        }
    }

    /// Returns whether the setter and the getter are generated.
    pub(crate) fn has_generated_methods(&self) -> bool {
        self.c_name.is_some() && !self.by_hand
    }

    pub(crate) fn is_in_millis(&self) -> bool {
        self.c_name.as_ref().is_some_and(|name| name.ends_with("_ms"))
    }
}

/// Returns whether a text begins with a word, and the text without it.
fn strip<'a>(text: &'a str, word: &str) -> (bool, &'a str) {
    text.strip_prefix(word).map_or((false, text), |rest| (true, rest))
}

impl Kind {
    fn parse(text: &str, has_setter: bool, is_plain: bool) -> Result<Self, String> {
        Ok(match text.split_once(' ').unwrap_or((text, "")) {
            ("flag", "") => Self::Flag,
            ("size", "") => Self::Size("usize".into()),
            ("size", ty) => Self::Size(ty.into()),
            ("number", ty) => Self::Number(ty.into()),
            ("duration", "") => Self::Duration,
            // Each setting says which: C would read a freed text if one that it keeps counted as copied.
            ("text", kept) => match (kept, has_setter) {
                ("copied", true) | ("", false) => Self::Text { is_retained: false },
                ("", true) if is_plain => Self::Text { is_retained: false },
                ("retained", true) => Self::Text { is_retained: true },
                (_, true) => {
                    return Err(format!("{text:?} must be `text copied` or `text retained`"));
                }
                (_, false) => return Err(format!("{text:?} must be `text`, without a setter")),
            },
            ("path", "") => Self::Path,
            ("idle", "strategy") => Self::IdleStrategy,
            ("idle", "arguments") => Self::IdleArguments,
            ("enum", name) => Self::Enum(name.into()),
            (function, argument) => Self::Custom(function.into(), argument.into()),
        })
    }
}

impl Values {
    fn parse(text: &str) -> Result<Self, String> {
        let (form, range) = text.rsplit_once(' ').unwrap_or(("", text));
        let (least, most) =
            range.split_once("..").ok_or_else(|| format!("{text:?} is no range"))?;
        Ok(Self { form: form.into(), least: least.into(), most: most.into() })
    }

    /// Describes the values for readers. `None` for all values of a type.
    pub(crate) fn describe(&self) -> Option<String> {
        // The ends of C's types are no limits.
        let unlimited =
            ["", "0", "-2147483648", "2147483647", "-9223372036854775808", "9223372036854775807"];
        let is_limit = |end: &&String| !unlimited.contains(&end.as_str());
        let form = if self.form.is_empty() { String::new() } else { format!("a {} ", self.form) };
        let ends = (Some(&self.least).filter(is_limit), Some(&self.most).filter(is_limit));
        Some(match ends {
            (Some(least), Some(most)) => format!("{form}from {least} to {most}"),
            (Some(least), None) => format!("{form}from {least}"),
            (None, Some(most)) => format!("{form}up to {most}"),
            (None, None) => return None,
        })
    }
}

/// Returns the bytes of `64k` and the like, for generated constants.
pub(crate) fn bytes(text: &str) -> String {
    let unit = |shift: &str| format!("{} << {shift}", &text[..text.len() - 1]);
    match text.as_bytes().last() {
        Some(b'k') => unit("10"),
        Some(b'm') => unit("20"),
        Some(b'g') => unit("30"),
        _ => text.to_owned(),
    }
}

/// Returns the nanoseconds of `1us` and the like.
pub(crate) fn nanos(text: &str) -> String {
    let unit = |suffix: &str, zeros: &str| text.strip_suffix(suffix).map(|n| n.to_owned() + zeros);
    (unit("ms", "000000").or_else(|| unit("us", "000")).or_else(|| unit("ns", "")))
        .or_else(|| unit("s", "000000000"))
        .unwrap_or_else(|| text.to_owned())
}
