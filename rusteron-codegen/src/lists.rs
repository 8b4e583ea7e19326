//! Lists of settings: for programs, tests, Python and readers.

use std::fmt::Write as _;

use crate::table::{Kind, Setting, Table, Values, bytes, nanos};

/// Returns the macro `for_each_setting` of a crate, which calls another macro with all settings.
pub(crate) fn macro_of_settings(table: &Table, context: &str, crate_name: &str) -> String {
    let mut rows = String::new();
    let first = table.0.first().map_or("", Setting::rust_name);
    for setting in table.0.iter().filter(|setting| setting.is_generated()) {
        let kind = match setting.kind {
            Kind::Text { .. } | Kind::IdleArguments => "text",
            Kind::Path => "path",
            Kind::IdleStrategy => "choice",
            _ => "value",
        };
        let language = if setting.not_in_python { "rust" } else { "any" };
        let name = setting.rust_name();
        let _ = writeln!(rows, "            ({language} {kind} {name} set_{name})");
    }
    format!(
        "/// Calls a macro with every setting of [`{context}`] that has one value, for programs that set settings by name.\n\
         ///\n\
         /// A row such as `(any value mtu_length set_mtu_length)` has `any`, or `rust` for a setting that only Rust's\n\
         /// callers can use; the setter's argument: `text` for `&str`, `path` for `&Path`, `choice` for an idle strategy,\n\
         /// or else `value`; the getter, whose name is the setting's; and the setter.\n\
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

/// Returns the elements of `&[Setting]`, for a program that reads and shows variables.
pub(crate) fn settings(table: &Table) -> String {
    let mut out = "&[\n".to_owned();
    for setting in table.0.iter() {
        let Some(variable) = &setting.variable else { continue };
        let name = setting.rust_name();
        let value = match &setting.kind {
            _ if setting.is_unread => "Value::Unread".to_owned(),
            _ if setting.c_name.is_none() => "Value::Verbatim".to_owned(),
            _ if setting.words == ["on", "off"] => format!("Value::Of(|c| on_or_off(c.{name}()))"),
            _ if names(setting).is_some() => {
                format!("Value::Named(|c| c.{name}().map(|named| named.name()))")
            }
            Kind::Duration if setting.is_in_millis() => {
                format!("Value::Of(|c| c.{name}().as_millis().to_string())")
            }
            _ => format!("Value::Of(|c| c.{name}().to_text())"),
        };
        let format = format(setting);
        let checked = setting.is_checked;
        let _ = writeln!(
            out,
            "    Setting {{ name: {name:?}, variable: {variable:?}, format: {format}, value: {value}, is_checked: {checked} }},"
        );
    }
    out + "]\n"
}

/// The table of the functions that a variable can name.
fn names(setting: &Setting) -> Option<&str> {
    let idle = (setting.kind == Kind::IdleStrategy).then_some("IDLE_STRATEGIES");
    setting.names.as_deref().or(idle)
}

/// Returns the `rusteron_core::settings::Format` of a variable.
pub(crate) fn format(setting: &Setting) -> String {
    let (form, least, most) = match &setting.values {
        Some(values) => (&*values.form, &*values.least, &*values.most),
        None => ("", "", ""),
    };
    if let Some(table) = names(setting) {
        let check =
            if setting.kind == Kind::Other("functions".into()) { "functions" } else { "function" };
        return format!("Format::Custom(|text| {check}({table}, text))");
    }
    if !setting.words.is_empty() {
        return format!("Format::Word(&{:?})", setting.words);
    }
    match &setting.kind {
        Kind::Flag => "Format::Flag".into(),
        Kind::Duration if setting.is_in_millis() => "Format::Milliseconds".into(),
        Kind::Duration => {
            let end = |text: &str, limit: &str| match text {
                "" => limit.to_owned(),
                duration => nanos(duration),
            };
            format!("Format::Duration({}..={})", end(least, "0"), end(most, "i64::MAX as u64"))
        }
        Kind::Number(ty) | Kind::Other(ty) if ty.starts_with(['i', 'u']) => {
            let end = |text: &str, limit| match text {
                "" => format!("{ty}::{limit} as i128"),
                number => number.to_owned(),
            };
            format!("Format::Number({}..={})", end(least, "MIN"), end(most, "MAX"))
        }
        Kind::Size(_) => {
            let form = match *form.rsplit(' ').collect::<Vec<_>>() {
                [number, "and", ..] => format!("Form::PowerOfTwoAnd({number})"),
                ["two", ..] => "Form::PowerOfTwo".into(),
                [number, ..] if !number.is_empty() => format!("Form::MultipleOf({number})"),
                _ => "Form::Any".into(),
            };
            let most = if most.is_empty() { "i64::MAX as u64".into() } else { bytes(most) };
            format!("Format::Size(Limit {{ min: {}, max: {most}, form: {form} }})", bytes(least))
        }
        Kind::IdleArguments => {
            let strategy =
                setting.variable.as_deref().unwrap_or_default().trim_end_matches("_INIT_ARGS");
            format!("Format::Custom(|text| idle_arguments({strategy:?}, text))")
        }
        Kind::Other(name) => format!("Format::Custom({name})"),
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
    let offered = |setting: &&Setting| setting.is_generated() || setting.setter_by_hand;
    for setting in table.0.iter().filter(offered) {
        if setting.not_in_python {
            continue;
        }
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
