//! Setters and getters, as text: a printer of tokens would drop the SAFETY comments.
//!
//! A context holds its settings either in C, whose functions the methods call, or in a structure of fields.

use std::fmt::Write as _;

use crate::lists::value_text;
use crate::table::{Kind, Setting, Table, bytes, nanos};

const SET: &str = "`as_ptr` points to a live context, which `&mut self` reserves for this call.";
const GET: &str = "`as_ptr` points to a live context, which C only reads here.";
const VALID: &str =
    "C's string stays as it is until a setter, which needs `&mut self`, or the end of the context.";

/// Returns the `impl` block of the type `context`, and the functions of C that it calls. `prefix` is that of the C
/// functions, such as `aeron_context`; `None` without C.
pub(crate) fn methods(table: &Table, context: &str, prefix: Option<&str>) -> (String, Vec<String>) {
    let mut functions = Vec::new();
    // C's types differ between settings, and conversions are written for all of them.
    let mut out = format!(
        "#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]\nimpl {context} {{\n"
    );
    for setting in table.0.iter().filter(|setting| setting.has_generated_methods()) {
        let name = setting.c_name.as_deref().unwrap_or_default();
        for verb in ["set", "get"] {
            let function = prefix.map(|prefix| format!("{prefix}_{verb}_{name}"));
            for line in documentation(setting, function.as_deref(), verb).lines() {
                let _ = writeln!(out, "    {}", format!("/// {line}").trim_end());
            }
            if let Some(function) = &function {
                let _ = writeln!(out, "    #[doc(alias = {function:?})]");
            }
            out += &match verb {
                "set" => setter(setting, function.as_deref()),
                _ => getter(setting, function.as_deref()),
            };
            functions.extend(function);
        }
    }
    (out + "}\n\n", functions)
}

/// Returns the structure `Values` of a context without C.
pub(crate) fn fields(table: &Table) -> String {
    let (mut fields, mut defaults) = (String::new(), String::new());
    for setting in table.0.iter().filter(|setting| setting.has_generated_methods()) {
        let name = setting.rust_name();
        let _ = writeln!(fields, "    {name}: {},", field_type(setting));
        let _ = writeln!(defaults, "            {name}: {},", default(setting));
    }
    format!(
        "/// The values of the settings.\n#[derive(Debug, Clone)]\nstruct Values {{\n{fields}}}\n\n\
         impl Default for Values {{\n    fn default() -> Self {{\n        Self {{\n{defaults}        }}\n    }}\n}}\n\n"
    )
}

/// Returns the type of one value, without the `Option` of an optional one.
fn value_type(setting: &Setting) -> &str {
    match &setting.kind {
        Kind::Flag => "bool",
        Kind::Size(ty) | Kind::Number(ty) | Kind::Enum(ty) | Kind::Custom(ty, _) => ty,
        Kind::Duration => "Duration",
        Kind::Text { .. } | Kind::IdleArguments => "String",
        Kind::Path => "PathBuf",
        Kind::IdleStrategy => "IdleStrategyKind",
    }
}

fn field_type(setting: &Setting) -> String {
    let ty = value_type(setting);
    if setting.is_optional { format!("Option<{ty}>") } else { ty.to_owned() }
}

/// Returns the default as an expression of the field's type.
fn default(setting: &Setting) -> String {
    let Some(text) = &setting.default else {
        return if setting.is_optional { "None" } else { "String::new()" }.to_owned();
    };
    let value = match &setting.kind {
        Kind::Size(_) => bytes(text),
        Kind::Duration => format!("Duration::from_nanos({})", nanos(text)),
        Kind::Text { .. } => format!("{text:?}.to_owned()"),
        Kind::Path => format!("PathBuf::from({text:?})"),
        Kind::IdleStrategy | Kind::Enum(_) => format!("{}::{}", value_type(setting), variant(text)),
        _ => text.clone(),
    };
    if setting.is_optional { format!("Some({value})") } else { value }
}

/// Returns the variant of a word such as `SHARED_NETWORK`.
fn variant(word: &str) -> String {
    let capitalised = |part: &str| match part.split_at_checked(1) {
        Some((first, rest)) => first.to_ascii_uppercase() + &rest.to_ascii_lowercase(),
        None => String::new(),
    };
    word.split(['_', '-']).map(capitalised).collect()
}

fn setter(setting: &Setting, function: Option<&str>) -> String {
    let name = setting.rust_name();
    let (ty, prepare, store) = match function {
        Some(function) => c_store(setting, function),
        None => field_store(setting),
    };
    format!(
        "    pub fn set_{name}(&mut self, value: {ty}) -> Result<&mut Self> {{\n        {prepare}\n        {store}\n        \
         Ok(self)\n    }}\n\n"
    )
}

/// Returns the type of a setter's argument, the statements that convert it, and the call of C.
fn c_store(setting: &Setting, function: &str) -> (String, String, String) {
    let name = setting.rust_name();
    // The name in errors, and the conversion of a duration.
    let c_name = setting.c_name.as_deref().unwrap_or_default();
    let convert = if setting.is_in_millis() { "millis" } else { "nanos" };
    let text = format!("let value = ffi::c_string({name:?}, value)?;");
    let (ty, prepare, argument) = match &setting.kind {
        Kind::Flag | Kind::Size(_) | Kind::Number(_) | Kind::Custom(..) => {
            (value_type(setting), String::new(), "value")
        }
        Kind::Enum(ty) => (&**ty, String::new(), "value.to_raw()"),
        Kind::IdleStrategy => ("IdleStrategyKind", String::new(), "value.as_c_str().as_ptr()"),
        Kind::Duration if setting.is_optional => {
            let absent = "// An absent duration is AERON_NULL_VALUE, -1.\n        ";
            let text = format!(
                "{absent}let value = value.map_or(Ok(u64::MAX), |value| ffi::{convert}({c_name:?}, value))?;"
            );
            ("Option<Duration>", text, "value")
        }
        Kind::Duration => {
            ("Duration", format!("let value = ffi::{convert}({c_name:?}, value)?;"), "value")
        }
        Kind::Text { is_retained: true } => {
            ("&str", text + "\n        let value = self.retain(value);", "value")
        }
        Kind::Text { .. } | Kind::IdleArguments => ("&str", text, "value.as_ptr()"),
        Kind::Path => (
            "impl AsRef<Path>",
            format!("let value = ffi::c_path({name:?}, value.as_ref())?;"),
            "value.as_ptr()",
        ),
    };
    let reason = match &setting.kind {
        Kind::Text { is_retained: true } => {
            "`retain` keeps the string as long as C keeps the pointer."
        }
        Kind::Text { .. } | Kind::Path | Kind::IdleArguments | Kind::IdleStrategy => {
            "Aeron copies the string before it returns."
        }
        _ => "",
    };
    let store = format!(
        "// SAFETY: {SET} {reason}\n        \
         unsafe {{ sys::{function}(self.as_ptr(), {argument}) }}.into_result()?;"
    );
    (ty.to_owned(), prepare, store)
}

/// Returns the type of a setter's argument, the statements that convert and check it, and the assignment.
fn field_store(setting: &Setting) -> (String, String, String) {
    let (name, ty) = (setting.rust_name(), value_type(setting));
    let check = |text: &str| {
        format!("::rusteron_core::settings::check(SETTINGS, {name:?}, &{text}).map_err(invalid)?;")
    };
    let (argument, prepare, value) = match &setting.kind {
        Kind::Text { .. } | Kind::Path => {
            let text = if *ty == *"String" { "value" } else { "value.to_string_lossy()" };
            let value = if setting.is_optional { "Some(value)" } else { "value" };
            let prepare = format!("let value: {ty} = value.into();\n        {}", check(text));
            (format!("impl Into<{ty}>"), prepare, value)
        }
        // Every value of the type is permitted.
        Kind::Flag | Kind::Enum(_) | Kind::IdleStrategy => {
            (field_type(setting), String::new(), "value")
        }
        _ => {
            let check = check(&value_text(setting, "value"));
            let prepare = match setting.is_optional {
                true => format!("if let Some(value) = value {{ {check} }}"),
                false => check,
            };
            (field_type(setting), prepare, "value")
        }
    };
    (argument, prepare, format!("self.values.{name} = {value};"))
}

fn getter(setting: &Setting, function: Option<&str>) -> String {
    let name = setting.rust_name();
    let (ty, body) = match function {
        Some(function) => c_load(setting, function),
        None => field_load(setting),
    };
    format!("    pub fn {name}(&self) -> {ty} {{\n        {body}\n    }}\n\n")
}

/// Returns the type of a getter's result, and the call of C with the conversion.
fn c_load(setting: &Setting, function: &str) -> (String, String) {
    let from = if setting.is_in_millis() { "from_millis" } else { "from_nanos" };
    let (ty, convert) = match &setting.kind {
        // Some of C's truth values are an `int`.
        Kind::Flag => ("bool", "c_int::from(value) != 0".to_owned()),
        Kind::Size(ty) | Kind::Number(ty) | Kind::Custom(ty, _) => (&**ty, String::new()),
        Kind::Enum(ty) => (&**ty, format!("{ty}::from_raw(value)")),
        // Some setters take an unsigned number whose getter returns a signed one.
        Kind::Duration if setting.is_optional => (
            "Option<Duration>",
            format!("(value as u64 != u64::MAX).then(|| Duration::{from}(value as u64))"),
        ),
        Kind::Duration => ("Duration", format!("Duration::{from}(value as u64)")),
        Kind::Text { .. } | Kind::IdleArguments => {
            ("Cow<'_, str>", format!("// SAFETY: {VALID}\n        unsafe {{ ffi::lossy(value) }}"))
        }
        Kind::Path => {
            ("&Path", format!("// SAFETY: {VALID}\n        unsafe {{ ffi::path(value) }}"))
        }
        Kind::IdleStrategy => (
            "Option<IdleStrategyKind>",
            format!(
                "if value.is_null() {{\n            return None;\n        }}\n        // SAFETY: {VALID}\n        \
                 IdleStrategyKind::from_c_str(unsafe {{ CStr::from_ptr(value) }})"
            ),
        ),
    };
    let call = format!("unsafe {{ sys::{function}(self.as_ptr()) }}");
    let body = match convert.is_empty() {
        true => call,
        false => format!("let value = {call};\n        {convert}"),
    };
    (ty.to_owned(), format!("// SAFETY: {GET}\n        {body}"))
}

/// Returns the type of a getter's result, and the field.
fn field_load(setting: &Setting) -> (String, String) {
    let field = format!("self.values.{}", setting.rust_name());
    match (&setting.kind, setting.is_optional) {
        (Kind::Text { .. }, _) => ("&str".to_owned(), format!("&{field}")),
        (Kind::Path, false) => ("&Path".to_owned(), format!("&{field}")),
        (Kind::Path, true) => ("Option<&Path>".to_owned(), format!("{field}.as_deref()")),
        _ => (field_type(setting), field),
    }
}

fn documentation(setting: &Setting, function: Option<&str>, verb: &str) -> String {
    let (is_of_c, is_setter) = (function.is_some(), verb == "set");
    let name = setting.rust_name();
    let mut blocks = vec![setting.text.clone()];
    match setting.kind {
        Kind::Size(_) => blocks.push("Unit: bytes.".to_owned()),
        Kind::Duration if !is_of_c => {}
        Kind::Duration if setting.is_in_millis() => {
            blocks.push("Resolution: milliseconds; a fraction of one is rounded up.".to_owned());
        }
        Kind::Duration => blocks.push("Resolution: nanoseconds.".to_owned()),
        Kind::IdleArguments => {
            let strategy = format!("set_{}", name.trim_end_matches("_init_args"));
            blocks.push(format!(
                "For [`Sleeping`](IdleStrategyKind::Sleeping), the duration of a sleep, such as `1ms`. For \
                 [`Backoff`](IdleStrategyKind::Backoff), the number of spins, the number of yields, the shortest and \
                 the longest sleep, such as `10-20-1us-1ms`. Other strategies have none.\n\n\
                 Aeron reads the parameters when [`{strategy}`](Self::{strategy}) is called. Set the parameters \
                 first, then the strategy."
            ));
        }
        _ => {}
    }
    let reading = match setting.kind {
        Kind::Text { .. } | Kind::IdleArguments => {
            "Empty when it is not set; what is not UTF-8 is replaced."
        }
        Kind::Path => "Empty when it is not set.",
        Kind::IdleStrategy => {
            "`None` when Aeron has none of the choices, as after a setter that failed."
        }
        _ => "",
    };
    if is_of_c && !is_setter && !reading.is_empty() {
        blocks.push(reading.to_owned());
    }
    if setting.is_optional && setting.default.is_none() {
        blocks.push("`None` means that it is not set, which is the default.".to_owned());
    }
    blocks.extend(setting.default.as_ref().map(|value| format!("Default: `{value}`.")));
    let values = setting.values.as_ref().and_then(|values| values.describe()).unwrap_or_default();
    let mut cut = String::new();
    match () {
        () if values.is_empty() => {}
        () if !is_of_c => blocks.push(format!("Values: {values}.")),
        () if setting.is_checked => blocks.push(format!("Launching refuses what is not {values}.")),
        () => cut = format!(", with values {values}; Aeron cuts others"),
    }
    let variable = setting.variable.as_ref();
    blocks.extend(variable.map(|variable| format!("Environment: `{variable}`{cut}.")));
    if is_setter {
        blocks.push(format!("# Errors\n{}", if is_of_c { errors(&setting.kind) } else { REFUSED }));
    }
    blocks.extend(function.map(|function| format!("Corresponds to `{function}`.")));
    blocks.join("\n\n")
}

const REFUSED: &str = "If `value` is not permitted. The text has name, value and range.";

fn errors(kind: &Kind) -> &'static str {
    match kind {
        Kind::Text { .. } | Kind::IdleArguments => {
            "If `value` contains a NUL, or Aeron refuses it."
        }
        Kind::Path => "If `value` is empty, contains a NUL or is longer than Aeron can hold.",
        Kind::Duration => "If `value` is too long for C's integer, or Aeron refuses it.",
        _ => "If Aeron refuses `value`.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The signature and the lines of a method of a setting.
    fn methods_of(row: &str) -> String {
        let table = Table::parse(&format!("{row}\n  Text.")).expect("a table");
        methods(&table, "Context", Some("tiny")).0.replace("\n        ", " ")
    }

    #[test]
    fn values_are_converted() {
        for (row, setter, getter) in [
            ("on -\n  flag", "value: bool)", "c_int::from(value) != 0"),
            ("room -\n  size u64", "value: u64)", "-> u64"),
            (
                "wait_ns -\n  duration",
                "ffi::nanos(\"wait_ns\", value)?",
                "Duration::from_nanos(value as u64)",
            ),
            (
                "wait_ms -\n  duration",
                "ffi::millis(\"wait_ms\", value)?",
                "Duration::from_millis(value as u64)",
            ),
            ("wait_ns -\n  optional duration", "map_or(Ok(u64::MAX)", "value as u64 != u64::MAX"),
            ("dir -\n  path", "ffi::c_path(\"dir\", value.as_ref())?", "ffi::path(value)"),
            (
                "label -\n  text copied",
                "tiny_set_label(self.as_ptr(), value.as_ptr())",
                "ffi::lossy(value)",
            ),
            ("label -\n  text retained", "self.retain(value)", "ffi::lossy(value)"),
            ("mode -\n  enum Mode", "value.to_raw()", "Mode::from_raw(value)"),
            (
                "idle -\n  idle strategy",
                "value.as_c_str().as_ptr()",
                "IdleStrategyKind::from_c_str",
            ),
        ] {
            let text = methods_of(row);
            assert!(text.contains(setter) && text.contains(getter), "{row}: {text}");
        }
    }

    #[test]
    fn names_are_those_of_c_and_of_rust() {
        let text = methods_of("sharednet_ns TINY\n  duration, name shared_net_ns");
        for part in [
            "fn set_shared_net(",
            "tiny_set_sharednet_ns(",
            "fn shared_net(",
            "tiny_get_sharednet_ns(",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!methods_of("dir -\n  path, by hand").contains("fn "));
    }

    #[test]
    fn documentation_names_default_and_values() {
        let text = methods_of("room TINY_ROOM\n  size, default 4k, must be power of two 1k..1g");
        for part in [
            "Unit: bytes.",
            "Default: `4k`.",
            "Launching refuses what is not a power of two from 1k to 1g.",
            "Environment: `TINY_ROOM`.",
            "Corresponds to `tiny_set_room`.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = methods_of("count TINY_COUNT\n  number i32, values 1..2147483647");
        assert!(text.contains("`TINY_COUNT`, with values from 1; Aeron cuts others."), "{text}");
    }

    /// The structure and the methods of a setting without C.
    fn plain(row: &str) -> String {
        let table = Table::parse_plain(&format!("{row}\n  Text.")).expect("a table");
        fields(&table) + &methods(&table, "Context", None).0.replace("\n        ", " ")
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
            let text = plain(row);
            assert!(text.contains(field) && text.contains(default), "{row}: {text}");
        }
    }

    #[test]
    fn setters_check_ranges() {
        let text = plain("room TINY_ROOM\n  size, default 64k, values power of two 64k..1g");
        for part in [
            "pub fn set_room(&mut self, value: usize) -> Result<&mut Self>",
            "settings::check(SETTINGS, \"room\", &value.to_string()).map_err(invalid)?;",
            "pub fn room(&self) -> usize",
            "/// Values: a power of two from 64k to 1g.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = plain("wait -\n  optional duration, values 1ns..1s");
        assert!(text.contains("if let Some(value) = value {"), "{text}");
    }
}
