//! Setters and getters, as text: a printer of tokens would drop the SAFETY comments.
//!
//! A context holds its settings either in C, whose functions the methods call, or in a structure of
//! fields.

use std::fmt::Write as _;

use crate::table::{Kind, Setting, Table, bytes, nanos};

const SET: &str = "`as_ptr` points to a live context, which `&mut self` reserves for this call.";
const GET: &str = "`as_ptr` points to a live context, which C only reads here.";
const VALID: &str =
    "C's string stays as it is until a setter, which needs `&mut self`, or the end of the context.";

/// Returns the `impl` block of the type `context`. `prefix` is that of C's functions, such as
/// `aeron_context`; `None` without C.
pub(crate) fn methods(table: &Table, context: &str, prefix: Option<&str>) -> String {
    // C's types differ between settings, and conversions are written for all of them.
    let mut out = format!(
        "#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]\nimpl {context} {{\n"
    );
    for setting in table.0.iter().filter(|setting| setting.has_generated_methods()) {
        let (name, c_name) = (setting.rust_name(), setting.c_name.as_deref().unwrap_or_default());
        let [set, get] =
            ["set", "get"].map(|verb| prefix.map(|prefix| format!("{prefix}_{verb}_{c_name}")));
        let Access { argument, prepare, store, result, load } = match (&set, &get) {
            (Some(set), Some(get)) => c_access(setting, set, get),
            _ => field_access(setting),
        };
        document(&mut out, setting, set.as_deref(), true);
        let _ = writeln!(
            out,
            "    pub fn set_{name}(&mut self, value: {argument}) -> Result<&mut Self> {{\n        \
             {prepare}\n        {store}\n        Ok(self)\n    }}\n"
        );
        document(&mut out, setting, get.as_deref(), false);
        let _ = writeln!(out, "    pub fn {name}(&self) -> {result} {{\n        {load}\n    }}\n");
    }
    out + "}\n\n"
}

fn document(out: &mut String, setting: &Setting, function: Option<&str>, is_setter: bool) {
    for line in documentation(setting, function, is_setter).lines() {
        let _ = writeln!(out, "    {}", format!("/// {line}").trim_end());
    }
    if let Some(function) = function {
        let _ = writeln!(out, "    #[doc(alias = {function:?})]");
    }
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

fn field_type(setting: &Setting) -> String {
    let ty = setting.value_type();
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
        Kind::Number(_) if setting.id.is_some() => format!("{}::new({text})", setting.value_type()),
        Kind::IdleStrategy | Kind::Enum(_) => {
            format!("{}::{}", setting.value_type(), variant(text))
        }
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

/// The types and statements by which the methods of a setting reach its value.
struct Access {
    /// The type of the setter's argument.
    argument: String,
    /// The statements that convert and check the argument.
    prepare: String,
    store: String,
    /// The type of the getter's result.
    result: String,
    load: String,
}

/// Returns the calls of C's functions `set` and `get`.
fn c_access(setting: &Setting, set: &str, get: &str) -> Access {
    let name = setting.rust_name();
    // The name in errors, and the conversion of a duration.
    let c_name = setting.c_name.as_deref().unwrap_or_default();
    let unit = if setting.is_in_millis() { "millis" } else { "nanos" };
    let text = format!("let value = ffi::c_string({name:?}, value)?;");
    let lossy = format!("// SAFETY: {VALID}\n        unsafe {{ ffi::lossy(value) }}");
    let unchanged = String::new;
    let copied = "Aeron copies the string before it returns.";
    let (argument, prepare, raw, reason, result, convert) = match &setting.kind {
        // Some of C's truth values are an `int`.
        Kind::Flag => {
            ("bool", unchanged(), "value", "", "bool", "c_int::from(value) != 0".to_owned())
        }
        Kind::Size(ty) | Kind::Number(ty) | Kind::Custom(ty, _) => {
            (&**ty, unchanged(), "value", "", &**ty, unchanged())
        }
        Kind::Enum(ty) => {
            (&**ty, unchanged(), "value.to_raw()", "", &**ty, format!("{ty}::from_raw(value)"))
        }
        Kind::IdleStrategy => (
            "IdleStrategyKind",
            unchanged(),
            "value.as_c_str().as_ptr()",
            copied,
            "Option<IdleStrategyKind>",
            format!(
                "if value.is_null() {{\n            return None;\n        }}\n        // SAFETY: {VALID}\n        \
                 IdleStrategyKind::from_c_str(unsafe {{ CStr::from_ptr(value) }})"
            ),
        ),
        Kind::Duration if setting.is_optional => (
            "Option<Duration>",
            format!(
                "// An absent duration is AERON_NULL_VALUE, -1.\n        \
                 let value = value.map_or(Ok(u64::MAX), |value| ffi::{unit}({c_name:?}, value))?;"
            ),
            "value",
            "",
            "Option<Duration>",
            format!("(value as u64 != u64::MAX).then(|| Duration::from_{unit}(value as u64))"),
        ),
        // Some setters take an unsigned number whose getter returns a signed one.
        Kind::Duration => (
            "Duration",
            format!("let value = ffi::{unit}({c_name:?}, value)?;"),
            "value",
            "",
            "Duration",
            format!("Duration::from_{unit}(value as u64)"),
        ),
        Kind::Text { is_retained: true } => (
            "&str",
            text + "\n        let value = self.retain(value);",
            "value",
            "`retain` keeps the string as long as C keeps the pointer.",
            "Cow<'_, str>",
            lossy,
        ),
        Kind::Text { .. } | Kind::IdleArguments => {
            ("&str", text, "value.as_ptr()", copied, "Cow<'_, str>", lossy)
        }
        Kind::Path => (
            "impl AsRef<Path>",
            format!("let value = ffi::c_path({name:?}, value.as_ref())?;"),
            "value.as_ptr()",
            copied,
            "&Path",
            format!("// SAFETY: {VALID}\n        unsafe {{ ffi::path(value) }}"),
        ),
    };
    let call = format!("unsafe {{ sys::{get}(self.as_ptr()) }}");
    let loaded = match convert.is_empty() {
        true => call,
        false => format!("let value = {call};\n        {convert}"),
    };
    Access {
        argument: argument.to_owned(),
        prepare,
        store: format!(
            "// SAFETY: {SET} {reason}\n        unsafe {{ sys::{set}(self.as_ptr(), {raw}) }}.into_result()?;"
        ),
        result: result.to_owned(),
        load: format!("// SAFETY: {GET}\n        {loaded}"),
    }
}

/// Returns the assignment of a field, and its value.
fn field_access(setting: &Setting) -> Access {
    let name = setting.rust_name();
    let field = format!("self.values.{name}");
    let check = |text: &str| {
        format!("::rusteron_core::settings::check(SETTINGS, {name:?}, &{text}).map_err(invalid)?;")
    };
    let (argument, prepare, value, result, load) = match (&setting.kind, setting.is_optional) {
        // Every value of the type is permitted.
        (Kind::Flag | Kind::Enum(_) | Kind::IdleStrategy, _) => {
            (field_type(setting), String::new(), "value", field_type(setting), field.clone())
        }
        (Kind::Text { .. }, _) => {
            let prepare = format!("let value: String = value.into();\n        {}", check("value"));
            ("impl Into<String>".into(), prepare, "value", "&str".into(), format!("&{field}"))
        }
        (Kind::Path, is_optional) => {
            let check = check("value.to_string_lossy()");
            let prepare = format!("let value: PathBuf = value.into();\n        {check}");
            let (value, result, load) = match is_optional {
                true => ("Some(value)", "Option<&Path>", format!("{field}.as_deref()")),
                false => ("value", "&Path", format!("&{field}")),
            };
            ("impl Into<PathBuf>".into(), prepare, value, result.into(), load)
        }
        (Kind::Number(_), false) if setting.id.is_some() => {
            let id = field_type(setting);
            let check = check(&setting.value_text("value"));
            let prepare = format!("let value: {id} = value.into();\n        {check}");
            (format!("impl Into<{id}>"), prepare, "value", id, field.clone())
        }
        (_, is_optional) => {
            let check = check(&setting.value_text("value"));
            let prepare = match is_optional {
                true => format!("if let Some(value) = value {{ {check} }}"),
                false => check,
            };
            (field_type(setting), prepare, "value", field_type(setting), field.clone())
        }
    };
    Access { argument, prepare, store: format!("{field} = {value};"), result, load }
}

fn documentation(setting: &Setting, function: Option<&str>, is_setter: bool) -> String {
    let is_of_c = function.is_some();
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
    if !values.is_empty() {
        match (is_of_c, setting.is_checked) {
            (false, _) => blocks.push(format!("Values: {values}.")),
            (true, true) => blocks.push(format!("Launching refuses what is not {values}.")),
            (true, false) => cut = format!(", with values {values}; Aeron cuts others"),
        }
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
        methods(&table, "Context", Some("tiny")).replace("\n        ", " ")
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
        fields(&table) + &methods(&table, "Context", None).replace("\n        ", " ")
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
            ("id -\n  number i32, default 2, id Id", "id: Id", "id: Id::new(2)"),
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
        let text = plain("id -\n  number i32, default 2, values 0..9, id Id");
        assert!(text.contains("fn set_id(&mut self, value: impl Into<Id>)"), "{text}");
        let text = plain("wait -\n  optional duration, values 1ns..1s");
        assert!(text.contains("if let Some(value) = value {"), "{text}");
    }
}
