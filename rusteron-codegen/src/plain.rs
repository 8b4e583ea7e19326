//! Settings of contexts without C: fields of a structure, with setters, getters, and the list of settings.

use std::fmt::Write as _;

use crate::lists::format;
use crate::table::{Kind, Setting, Table, bytes, nanos};

/// Returns the structure `Values`, the `impl` block of the type `context`, and the static `SETTINGS`.
///
/// # Errors
/// Settings without a default, and types that only C's settings have.
pub(crate) fn settings(table: &Table, context: &str) -> Result<String, String> {
    let (mut fields, mut defaults) = (String::new(), String::new());
    let (mut methods, mut list) = (String::new(), String::new());
    for setting in &table.0 {
        list += &list_element(setting)?;
        if setting.c_name.is_none() {
            continue;
        }
        let name = setting.rust_name();
        let ty = field_type(setting)?;
        let _ = writeln!(fields, "    {name}: {ty},");
        let _ = writeln!(defaults, "            {name}: {},", default(setting)?);
        methods += &setter(setting)?;
        methods += &getter(setting)?;
    }
    Ok(format!(
        "/// The values of the settings.\n#[derive(Debug, Clone)]\nstruct Values {{\n{fields}}}\n\n\
         impl Default for Values {{\n    fn default() -> Self {{\n        Self {{\n{defaults}        }}\n    }}\n}}\n\n\
         impl {context} {{\n{methods}}}\n\n\
         static SETTINGS: &[::rusteron_core::settings::Setting<{context}>] = {{\n    \
         #[allow(unused_imports)]\n    use ::rusteron_core::settings::{{Form, Format, Limit, Setting}};\n\n    \
         &[\n{list}    ]\n}};\n"
    ))
}

/// The type of one value, without the `Option` of an optional one.
fn value_type(setting: &Setting) -> Result<&str, String> {
    Ok(match &setting.kind {
        Kind::Flag => "bool",
        Kind::Size(ty) | Kind::Number(ty) | Kind::Enum(ty) => ty.as_str(),
        Kind::Duration => "Duration",
        Kind::Text { .. } => "String",
        Kind::Path => "PathBuf",
        Kind::IdleStrategy => "IdleStrategyKind",
        kind @ (Kind::IdleArguments | Kind::Other(_)) => {
            return Err(format!("{}: {kind:?} needs C", setting.rust_name()));
        }
    })
}

fn field_type(setting: &Setting) -> Result<String, String> {
    let ty = value_type(setting)?;
    Ok(if setting.is_optional { format!("Option<{ty}>") } else { ty.to_owned() })
}

/// Returns the default as an expression of the field's type.
fn default(setting: &Setting) -> Result<String, String> {
    let Some(text) = &setting.default else {
        return match &setting.kind {
            _ if setting.is_optional => Ok("None".to_owned()),
            Kind::Text { .. } => Ok("String::new()".to_owned()),
            _ => Err(format!("{}: no default", setting.rust_name())),
        };
    };
    let value = match &setting.kind {
        Kind::Size(_) => bytes(text),
        Kind::Duration => format!("Duration::from_nanos({})", nanos(text)),
        Kind::Text { .. } => format!("{text:?}.to_owned()"),
        Kind::Path => format!("PathBuf::from({text:?})"),
        Kind::IdleStrategy | Kind::Enum(_) => {
            format!("{}::{}", value_type(setting)?, variant(text))
        }
        _ => text.clone(),
    };
    Ok(if setting.is_optional { format!("Some({value})") } else { value })
}

/// Returns the variant of a word such as `SHARED_NETWORK`.
fn variant(word: &str) -> String {
    let capitalised = |part: &str| match part.split_at_checked(1) {
        Some((first, rest)) => first.to_ascii_uppercase() + &rest.to_ascii_lowercase(),
        None => String::new(),
    };
    word.split(['_', '-']).map(capitalised).collect()
}

fn setter(setting: &Setting) -> Result<String, String> {
    let name = setting.rust_name();
    let (argument, convert, value) = match &setting.kind {
        Kind::Text { .. } => ("impl Into<String>".to_owned(), "value.into()", "value"),
        Kind::Path if setting.is_optional => {
            ("impl Into<PathBuf>".to_owned(), "value.into()", "Some(value)")
        }
        Kind::Path => ("impl Into<PathBuf>".to_owned(), "value.into()", "value"),
        _ => (field_type(setting)?, "", "value"),
    };
    let mut code = String::new();
    if !convert.is_empty() {
        let _ = writeln!(code, "        let value: {} = {convert};", value_type(setting)?);
    }
    let checked = |text: &str| {
        format!("::rusteron_core::settings::check(SETTINGS, {name:?}, {text}).map_err(invalid)?;")
    };
    let text = match &setting.kind {
        Kind::Size(_) | Kind::Number(_) => "&value.to_string()",
        Kind::Duration if setting.is_optional => {
            "&::rusteron_core::settings::duration_text(*value)"
        }
        Kind::Duration => "&::rusteron_core::settings::duration_text(value)",
        Kind::Text { .. } => "value.as_str()",
        Kind::Path => "&value.to_string_lossy()",
        // Every value of the type is permitted.
        _ => "",
    };
    match text {
        "" => {}
        text if setting.is_optional && setting.kind != Kind::Path => {
            let _ = writeln!(
                code,
                "        if let Some(value) = &value {{\n            {}\n        }}",
                checked(text)
            );
        }
        text => _ = writeln!(code, "        {}", checked(text)),
    }
    Ok(format!(
        "{}    pub fn set_{name}(&mut self, value: {argument}) -> Result<&mut Self> {{\n{code}        \
         self.values.{name} = {value};\n        Ok(self)\n    }}\n\n",
        documentation(setting, true)
    ))
}

fn getter(setting: &Setting) -> Result<String, String> {
    let name = setting.rust_name();
    let (ty, value) = match (&setting.kind, setting.is_optional) {
        (Kind::Text { .. }, false) => ("&str".to_owned(), format!("&self.values.{name}")),
        (Kind::Text { .. }, true) => return Err(format!("{name}: an absent text is an empty one")),
        (Kind::Path, false) => ("&Path".to_owned(), format!("&self.values.{name}")),
        (Kind::Path, true) => {
            ("Option<&Path>".to_owned(), format!("self.values.{name}.as_deref()"))
        }
        _ => (field_type(setting)?, format!("self.values.{name}")),
    };
    let documentation = documentation(setting, false);
    Ok(format!("{documentation}    pub fn {name}(&self) -> {ty} {{\n        {value}\n    }}\n\n"))
}

fn documentation(setting: &Setting, is_setter: bool) -> String {
    let mut blocks = vec![setting.text.clone()];
    if let Kind::Size(_) = setting.kind {
        blocks.push("Unit: bytes.".to_owned());
    }
    if setting.is_optional && setting.default.is_none() {
        blocks.push("`None` means that it is not set, which is the default.".to_owned());
    }
    blocks.extend(setting.default.as_ref().map(|value| format!("Default: `{value}`.")));
    let values = setting.values.as_ref().and_then(|values| values.describe());
    blocks.extend(values.map(|values| format!("Values: {values}.")));
    blocks.extend(setting.variable.as_ref().map(|variable| format!("Environment: `{variable}`.")));
    if is_setter {
        blocks.push(
            "# Errors\nIf `value` is not permitted. The text has name, value and range.".to_owned(),
        );
    }
    let mut out = String::new();
    for line in blocks.join("\n\n").lines() {
        let _ = writeln!(out, "    {}", format!("/// {line}").trim_end());
    }
    out
}

/// Returns the setting's element of the list.
fn list_element(setting: &Setting) -> Result<String, String> {
    let name = setting.rust_name();
    let variable = setting.variable.as_deref().unwrap_or_default();
    let format = plain_format(setting)?;
    let (set, get) = match setting.c_name {
        Some(_) if variable.is_empty() => ("|_, _| None".to_owned(), "|_| None".to_owned()),
        Some(_) => (set(setting)?, get(setting)),
        // The variable is accepted, and has no effect.
        None => ("|_, _| Some(())".to_owned(), "|_| None".to_owned()),
    };
    Ok(format!(
        "        Setting {{\n            name: {name:?},\n            variable: {variable:?},\n            \
         format: {format},\n            set: {set},\n            get: {get},\n        }},\n"
    ))
}

fn plain_format(setting: &Setting) -> Result<String, String> {
    Ok(match &setting.kind {
        _ if setting.check.is_some() => {
            format!("Format::Custom({})", setting.check.as_deref().unwrap_or_default())
        }
        Kind::Path => "Format::Path".to_owned(),
        Kind::IdleStrategy | Kind::Enum(_) if setting.variable.is_none() => {
            "Format::Text".to_owned()
        }
        Kind::IdleStrategy | Kind::Enum(_) if setting.words.is_empty() => {
            let read = read(setting)?;
            format!(
                "Format::Custom(|text| {read}(text).map(drop).map_err(|error| error.to_string()))"
            )
        }
        _ => format(setting),
    })
}

/// Returns the function that reads the text of an enumeration.
fn read(setting: &Setting) -> Result<String, String> {
    match &setting.read {
        Some(function) => Ok(function.clone()),
        None => Ok(format!("<{} as ::std::str::FromStr>::from_str", value_type(setting)?)),
    }
}

/// Returns the closure that reads a text which has the format.
fn set(setting: &Setting) -> Result<String, String> {
    let name = setting.rust_name();
    let value = if setting.is_optional { "Some(value)" } else { "value" };
    let read = match &setting.kind {
        Kind::Flag => "::rusteron_core::settings::flag(text.to_str()?)".to_owned(),
        Kind::Size(_) => "::rusteron_core::settings::size(text.to_str()?)".to_owned(),
        Kind::Number(_) => "::rusteron_core::settings::number(text.to_str()?)".to_owned(),
        Kind::Duration => "::rusteron_core::scan::duration(text.to_str()?)".to_owned(),
        Kind::Path => "Some(PathBuf::from(text))".to_owned(),
        Kind::IdleStrategy | Kind::Enum(_) => {
            format!("{}(text.to_str()?).ok()", read(setting)?)
        }
        _ => "text.to_str().map(str::to_owned)".to_owned(),
    };
    Ok(format!("|context, text| {read}.map(|value| context.values.{name} = {value})"))
}

/// Returns the closure that writes the value as the variable would have it.
fn get(setting: &Setting) -> String {
    let name = setting.rust_name();
    let text = |value: &str| match &setting.kind {
        Kind::Duration => format!("::rusteron_core::settings::duration_text({value})"),
        Kind::Path => format!("{value}.display().to_string()"),
        _ => format!("{value}.to_string()"),
    };
    let field = format!("context.values.{name}");
    match (setting.is_optional, &setting.kind) {
        (true, Kind::Path) => format!("|context| {field}.as_ref().map(|value| {})", text("value")),
        (true, _) => format!("|context| {field}.map(|value| {})", text("value")),
        (false, _) => format!("|context| Some({})", text(&field)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generated(rows: &str) -> String {
        let table = Table::parse_plain(rows).expect("a table");
        settings(&table, "Context").expect("plain settings").replace("\n        ", " ")
    }

    #[test]
    fn values_are_fields_with_defaults() {
        for (row, field, default) in [
            ("on -\n  flag, default true", "on: bool", "on: true"),
            ("room -\n  size, default 64k, values 0..1g", "room: usize", "room: 64 << 10"),
            ("id -\n  optional number i64", "id: Option<i64>", "id: None"),
            (
                "wait -\n  duration, default 5s",
                "wait: Duration",
                "wait: Duration::from_nanos(5000000000)",
            ),
            ("label -\n  text", "label: String", "label: String::new()"),
            ("label -\n  text, default a", "label: String", "label: \"a\".to_owned()"),
            ("dir -\n  path, default x", "dir: PathBuf", "dir: PathBuf::from(\"x\")"),
            ("mode -\n  enum Mode, default NOT_NOW", "mode: Mode", "mode: Mode::NotNow"),
        ] {
            let text = generated(&format!("{row}\n  Text."));
            assert!(text.contains(field) && text.contains(default), "{row}: {text}");
        }
    }

    #[test]
    fn setters_check_ranges() {
        let text =
            generated("room TINY_ROOM\n  size, default 64k, values power of two 64k..1g\n  Text.");
        for part in [
            "pub fn set_room(&mut self, value: usize) -> Result<&mut Self>",
            "settings::check(SETTINGS, \"room\", &value.to_string()).map_err(invalid)?;",
            "pub fn room(&self) -> usize",
            "variable: \"TINY_ROOM\"",
            "form: Form::PowerOfTwo",
            "/// Values: a power of two from 64k to 1g.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = generated("wait -\n  optional duration, values 1ns..1s\n  Text.");
        assert!(text.contains("if let Some(value) = &value {"), "{text}");
        assert!(text.contains("Format::Duration(1..=1000000000)"), "{text}");
    }

    #[test]
    fn functions_check_and_read() {
        let text = generated("channel A\n  text, check names::udp\n  Text.");
        assert!(text.contains("format: Format::Custom(names::udp)"), "{text}");
        let text = generated("sum B\n  optional enum Sum, read names::sum\n  Text.");
        let set = "names::sum(text.to_str()?).ok().map(|value| context.values.sum = Some(value))";
        assert!(text.contains(set), "{text}");
        let text = generated("mode C\n  enum Mode, default ON, words ON OFF\n  Text.");
        assert!(text.contains("Format::Word(&[\"ON\", \"OFF\"])"), "{text}");
    }

    #[test]
    fn missing_defaults_are_reported() {
        for row in ["wait -\n  duration", "idle -\n  idle arguments", "label -\n  optional text"] {
            let table = Table::parse_plain(&format!("{row}\n  Text.")).expect("a table");
            assert!(settings(&table, "Context").is_err(), "{row}");
        }
    }
}
