//! Lists of settings: for programs, tests, Python and readers.

use std::fmt::Write as _;

use crate::table::{Kind, Setting, Table, Values, bytes, nanos};

/// Returns the macro `for_each_setting` of a crate, which calls another macro with all settings.
pub(crate) fn macro_of_settings(table: &Table, context: &str, crate_name: &str) -> String {
    let mut rows = String::new();
    let first = table.0.first().map_or("", Setting::rust_name);
    for setting in table.0.iter().filter(|setting| setting.c_name.is_some()) {
        let kind = match setting.kind {
            Kind::Text { .. } | Kind::IdleArguments => "text",
            Kind::Path => "path",
            Kind::IdleStrategy => "choice",
            Kind::Custom(..) if !setting.is_optional => "choice",
            _ => "value",
        };
        let language = if setting.not_in_python { "rust" } else { "any" };
        let name = setting.rust_name();
        let _ = writeln!(rows, "            ({language} {kind} {name} set_{name})");
    }
    format!(
        "/// Calls a macro with every setting of [`{context}`], for programs that set settings by name.\n\
         ///\n\
         /// A row such as `(any value mtu_length set_mtu_length)` has `any`, or `rust` for a setting that only Rust's\n\
         /// callers can use; the setter's argument: `text` for `&str`, `path` for `&Path`, `choice` for an idle strategy or\n\
         /// another function that C knows by name, or else `value`; the getter, whose name is the setting's; and the setter.\n\
         ///\n\
         /// ```\n\
         /// macro_rules! names {{\n\
         ///     (() $(($language:ident $kind:ident $getter:ident $setter:ident))*) => {{\n\
         ///         [$(stringify!($getter)),*]\n\
         ///     }};\n\
         /// }}\n\
         ///\n\
         /// let names = {crate_name}::for_each_setting!(names!());\n\
         /// assert!(names.contains(&{first:?}));\n\
         /// ```\n\
         #[macro_export]\nmacro_rules! for_each_setting {{\n    ($callback:ident!($($arguments:tt)*)) => {{\n        \
         $callback! {{\n            ($($arguments)*)\n{rows}        }}\n    }};\n}}\n"
    )
}

/// Returns the static `SETTINGS`, and the functions of the context that give access to it.
/// `is_plain` for a context without C.
pub(crate) fn settings(table: &Table, context: &str, crate_name: &str, is_plain: bool) -> String {
    let mut list = String::new();
    // Setters without C find a setting by its name, to check the value.
    for setting in table.0.iter().filter(|setting| is_plain || setting.variable.is_some()) {
        let name = setting.rust_name();
        let variable = setting.variable.as_deref().unwrap_or_default();
        let (format, set) = (format(setting, is_plain), set(setting, is_plain));
        let _ = writeln!(
            list,
            "        Setting {{\n            name: {name:?},\n            variable: {variable:?},\n            \
             format: {format},\n            set: {set},\n            source: {},\n        }},",
            source(setting, is_plain)
        );
    }
    format!(
        "impl {context} {{\n    \
         /// Returns the settings that environment variables set, for programs that check or show a\n    \
         /// configuration.\n    \
         ///\n    /// ```\n    /// use {crate_name}::{context};\n    ///\n    \
         /// for setting in {context}::settings() {{\n    \
         ///     println!(\"{{}}\", setting.variable());\n    /// }}\n    /// ```\n    \
         pub fn settings() -> impl Iterator<Item = &'static ::rusteron_core::settings::Setting<Self>> {{\n        \
         SETTINGS.iter().filter(|setting| !setting.variable.is_empty())\n    }}\n\n    \
         /// Returns the setting that an environment variable sets.\n    \
         pub fn setting(variable: &str) -> Option<&'static ::rusteron_core::settings::Setting<Self>> {{\n        \
         Self::settings().find(|setting| setting.variable == variable)\n    }}\n}}\n\n\
         #[allow(clippy::redundant_closure)]\n\
         static SETTINGS: &[::rusteron_core::settings::Setting<{context}>] = {{\n    \
         #[allow(unused_imports)]\n    \
         use ::rusteron_core::settings::{{Form, Format, Limit, Setting, Source, flag, number, parse, size}};\n\n    \
         &[\n{list}    ]\n}};\n\n"
    )
}

/// Returns whether the setting has a function of C by one of several names.
fn is_function(setting: &Setting, is_plain: bool) -> bool {
    match setting.kind {
        Kind::IdleStrategy => !is_plain,
        Kind::Custom(..) => !setting.is_optional,
        _ => false,
    }
}

/// Returns the closure that sets the value to a text that has the format.
fn set(setting: &Setting, is_plain: bool) -> String {
    if setting.c_name.is_none() || setting.variable.is_none() {
        return "|_, _| Ok(())".to_owned();
    }
    let by_function = |function: &str| format!("|text| {function}(text).ok()");
    let reader = match (&setting.kind, &setting.read) {
        (Kind::Text { .. }, _) if is_plain => "|text| Some(text.to_owned())".to_owned(),
        (Kind::Text { .. } | Kind::IdleArguments, _) => "Some".to_owned(),
        (Kind::Flag, _) => "flag".to_owned(),
        (Kind::Size(_), _) => "size".to_owned(),
        (Kind::Number(_), _) if setting.id.is_some() => {
            format!("|text| number(text).map({}::new)", setting.value_type())
        }
        (Kind::Number(_), _) => "number".to_owned(),
        (Kind::Duration, _) if setting.is_in_millis() => {
            "|text| number(text).map(Duration::from_millis)".to_owned()
        }
        (Kind::Duration, _) => "::rusteron_core::scan::duration".to_owned(),
        (_, Some(function)) => by_function(function),
        (Kind::Custom(function, _), _) if setting.is_optional => by_function(function),
        (Kind::IdleStrategy, _) if !is_plain => "idle_strategy".to_owned(),
        _ => "|text| text.parse().ok()".to_owned(),
    };
    let value = match &setting.kind {
        Kind::Path if is_plain => "text.into()".to_owned(),
        Kind::Path => "text".to_owned(),
        _ => format!("parse(text, {reader})?"),
    };
    let is_wrapped = setting.is_optional && !matches!(setting.kind, Kind::Custom(..));
    let value = if is_wrapped { format!("Some({value})") } else { value };
    let name = setting.rust_name();
    match setting.by_hand || !is_plain {
        true => format!(
            "|context, text| context.set_{name}({value}).map(drop).map_err(|error| error.to_string())"
        ),
        false => format!("|context, text| {{ context.values.{name} = {value}; Ok(()) }}"),
    }
}

/// Returns the `Source` of the value's text.
fn source(setting: &Setting, is_plain: bool) -> String {
    let value = format!("context.{}()", setting.rust_name());
    match setting {
        _ if setting.is_unread => "Source::Unread".to_owned(),
        _ if setting.c_name.is_none() || setting.variable.is_none() => {
            "Source::Variable(|_| None)".to_owned()
        }
        _ if setting.is_checked => format!("Source::CheckedSize(|context| {value} as u64)"),
        _ if is_function(setting, is_plain) => {
            format!("Source::Variable(|context| {value}.map(|named| named.name().to_owned()))")
        }
        _ if setting.is_optional => {
            let text = setting.value_text("value");
            format!("Source::Context(|context| {value}.map(|value| {text}))")
        }
        _ => format!("Source::Context(|context| Some({}))", setting.value_text(&value)),
    }
}

/// Returns the `Format` of a variable.
fn format(setting: &Setting, is_plain: bool) -> String {
    let (form, least, most) = match &setting.values {
        Some(values) => (&*values.form, &*values.least, &*values.most),
        None => ("", "", ""),
    };
    let end = |text: &str, open: &str, value: fn(&str) -> String| match text {
        "" => open.to_owned(),
        text => value(text),
    };
    if !setting.words.is_empty() {
        return format!("Format::Word(&{:?})", setting.words);
    }
    if let Some(function) = &setting.read {
        return format!("Format::Custom(|text| {function}(text).map(drop))");
    }
    match &setting.kind {
        Kind::Flag => "Format::Flag".into(),
        Kind::Path if is_plain => "Format::Path".into(),
        Kind::Duration if setting.is_in_millis() => "Format::Milliseconds".into(),
        Kind::Duration => {
            format!(
                "Format::Duration({}..={})",
                end(least, "0", nanos),
                end(most, "i64::MAX as u64", nanos)
            )
        }
        Kind::Number(ty) => {
            let own = |text: &str| text.to_owned();
            let (min, max) = (format!("{ty}::MIN as i128"), format!("{ty}::MAX as i128"));
            format!("Format::Number({}..={})", end(least, &min, own), end(most, &max, own))
        }
        Kind::Size(_) => {
            let form = match *form.rsplit(' ').collect::<Vec<_>>() {
                [number, "and", ..] => format!("Form::PowerOfTwoAnd({number})"),
                ["two", ..] => "Form::PowerOfTwo".into(),
                [number, ..] if !number.is_empty() => format!("Form::MultipleOf({number})"),
                _ => "Form::Any".into(),
            };
            let (min, max) = (end(least, "0", bytes), end(most, "i64::MAX as u64", bytes));
            format!("Format::Size(Limit {{ min: {min}, max: {max}, form: {form} }})")
        }
        Kind::Custom(function, argument) if argument.is_empty() => {
            format!("Format::Custom(|text| {function}(text).map(drop))")
        }
        Kind::Custom(function, argument) => {
            format!("Format::Custom(|text| {function}({argument}, text))")
        }
        _ if setting.variable.is_none() => "Format::Text".into(),
        Kind::IdleStrategy | Kind::Enum(_) if is_plain => {
            format!(
                "Format::Custom(|text| text.parse::<{}>().map(drop).map_err(|error| error.to_string()))",
                setting.value_type()
            )
        }
        Kind::IdleStrategy => "Format::Custom(|text| function(IDLE_STRATEGIES, text))".into(),
        Kind::IdleArguments => {
            let strategy =
                setting.variable.as_deref().unwrap_or_default().trim_end_matches("_INIT_ARGS");
            format!("Format::Custom(|text| idle_arguments({strategy:?}, text))")
        }
        _ => "Format::Text".into(),
    }
}

/// Returns a list of the settings in Markdown, below the headings of the table, with the first paragraph of each
/// description. Settings below a heading that are described alike share an item. Variables that no program reads are left
/// out.
///
/// An item begins with the variable and its default. A name follows if it is not that of the variable in lower case,
/// without `prefix`, and `†` if there is no setter. Settings without a variable have their name in its place.
pub fn markdown(table: &Table, prefix: &str) -> String {
    let mut out = String::new();
    for (number, setting) in table.0.iter().enumerate() {
        if setting.heading.is_none() && number > 0 {
            continue;
        }
        if let Some(title) = &setting.heading {
            let _ = write!(out, "\n### {title}\n\n");
        }
        let others = table.0[number + 1..].iter().take_while(|other| other.heading.is_none());
        let mut items: Vec<(String, String)> = Vec::new();
        for setting in std::iter::once(setting).chain(others).filter(|setting| !setting.is_unread) {
            let (names, meaning) = (names_for_readers(setting, prefix), meaning(setting));
            match items.iter_mut().find(|(_, other)| *other == meaning) {
                Some((others, _)) => *others = format!("{others}, {names}"),
                None => items.push((names, meaning)),
            }
        }
        for (names, meaning) in items {
            let _ = writeln!(out, "- {names}: {meaning}");
        }
    }
    out
}

fn meaning(setting: &Setting) -> String {
    let mut meaning = plain(&setting.text);
    // Limits of durations are far from sensible values. A warning or an error names them.
    let values = setting.values.as_ref().filter(|_| setting.kind != Kind::Duration);
    if let Some(values) = values.and_then(Values::describe) {
        let values = if setting.is_checked { format!("must be {values}") } else { values };
        let (first, rest) = values.split_at(1);
        let _ = write!(meaning, " {}{rest}.", first.to_uppercase());
    }
    if !setting.words.is_empty() {
        let _ = write!(meaning, " One of `{}`.", setting.words.join("`, `"));
    }
    meaning
}

fn names_for_readers(setting: &Setting, prefix: &str) -> String {
    let name = setting.rust_name();
    let variable = setting.variable.as_deref().unwrap_or(name);
    let default = setting.default.as_ref().map_or_else(String::new, |text| format!("={text}"));
    let own = variable.strip_prefix(prefix).or_else(|| variable.strip_prefix("RUSTERON_"));
    let remark = match own.unwrap_or(variable).to_lowercase() {
        _ if name.is_empty() => "†".to_owned(),
        derived if derived == name => String::new(),
        _ => format!(" (`{name}`)"),
    };
    format!("`{variable}{default}`{remark}")
}

/// The first paragraph of Markdown on one line, without the targets of links.
fn plain(markdown: &str) -> String {
    let text = markdown.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let mut out = String::new();
    for part in text.split("](") {
        let rest =
            if out.is_empty() { part } else { part.split_once(')').map_or("", |(_, rest)| rest) };
        out += rest;
    }
    out.replace("  ", " ").replace('[', "").replace("`]", "`")
}

/// Returns a `TypedDict` of the keyword arguments that set the settings in Python.
pub fn python_stub(table: &Table, class: &str) -> String {
    let mut out = format!("class {class}(TypedDict, total=False):\n");
    let is_offered = |setting: &&Setting| setting.c_name.is_some() && !setting.not_in_python;
    for setting in table.0.iter().filter(is_offered) {
        let ty = match &setting.kind {
            Kind::Flag => "bool".to_owned(),
            Kind::Size(_) | Kind::Number(_) => "int".to_owned(),
            Kind::Duration => "Seconds".to_owned(),
            Kind::IdleStrategy => "IdleStrategy".to_owned(),
            Kind::Enum(name) => name.clone(),
            Kind::Path => "Dir".to_owned(),
            _ => "str".to_owned(),
        };
        // A path that is not set has no keyword argument.
        let none = if setting.is_optional && setting.kind != Kind::Path { " | None" } else { "" };
        let _ = writeln!(out, "    {}: {ty}{none}", setting.rust_name());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked_set_and_written() {
        for (row, is_plain, parts) in [
            (
                "room A\n  size, must be power of two 64k..1g",
                false,
                &["form: Form::PowerOfTwo", "Source::CheckedSize(|context| context.room() as u64)"]
                    [..],
            ),
            (
                "wait -\n  optional duration, values 1ns..1s",
                true,
                &["Format::Duration(1..=1000000000)"],
            ),
            (
                "wait_ms A\n  duration",
                false,
                &[
                    "Format::Milliseconds",
                    "number(text).map(Duration::from_millis)",
                    "context.wait().as_millis()",
                ],
            ),
            ("channel A\n  text, read names::udp", true, &["names::udp(text).map(drop)"]),
            (
                "sum B\n  optional enum Sum, read names::sum",
                true,
                &["context.values.sum = Some(parse(text, |text| names::sum(text).ok())?)"],
            ),
            (
                "mode C\n  enum Mode, default ON, words ON OFF",
                true,
                &["Format::Word(&[\"ON\", \"OFF\"])"],
            ),
            (
                "from D\n  optional ports, by hand",
                false,
                &["context.set_from(parse(text, |text| ports(text).ok())?)", "ports_text(value)"],
            ),
            (
                "flow E\n  function FLOWS, by hand",
                false,
                &["function(FLOWS, text)", "Source::Variable(|context| context.flow()"],
            ),
            ("- F\n  unread text", false, &["Source::Unread", "Format::Text"]),
        ] {
            let parse = if is_plain { Table::parse_plain } else { Table::parse };
            let table = parse(&format!("{row}\n  Text.")).expect("a table");
            let text = settings(&table, "Context", "tiny", is_plain);
            for part in parts {
                assert!(text.contains(part), "{row}: {part}: {text}");
            }
        }
    }
}
