//! Setters and getters, as text: a printer of tokens would drop the SAFETY comments.

use std::fmt::Write as _;

use crate::table::{Kind, Setting, Table};

const SET: &str = "`as_ptr` points to a live context, which `&mut self` reserves for this call.";
const GET: &str = "`as_ptr` points to a live context, which C only reads here.";
const VALID: &str =
    "C's string stays as it is until a setter, which needs `&mut self`, or the end of the context.";

/// Returns the `impl` block of the type `context`, and the functions of C that it calls. `prefix` is that of the C
/// functions, such as `aeron_context`.
pub(crate) fn methods(table: &Table, context: &str, prefix: &str) -> (String, Vec<String>) {
    let mut functions = Vec::new();
    // C's types differ between settings, and conversions are written for all of them.
    let mut out = format!(
        "#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]\nimpl {context} {{\n"
    );
    for setting in table.0.iter().filter(|setting| setting.is_generated()) {
        if !setting.setter_by_hand {
            let function =
                format!("{prefix}_set_{}", setting.c_name.as_deref().unwrap_or_default());
            out += &method(setting, &function, true, &setter(setting, &function));
            functions.push(function);
        }
        let function = format!("{prefix}_get_{}", setting.c_getter());
        out += &method(setting, &function, false, &getter(setting, &function));
        functions.push(function);
    }
    (out + "}\n", functions)
}

fn method(setting: &Setting, function: &str, is_setter: bool, code: &str) -> String {
    let mut out = String::new();
    for line in documentation(setting, function, is_setter).lines() {
        let _ = writeln!(out, "    /// {line}");
    }
    let _ = write!(out, "    #[doc(alias = {function:?})]\n{code}\n");
    out
}

fn setter(setting: &Setting, function: &str) -> String {
    let name = setting.rust_name();
    // The name in errors, and the conversion of a duration.
    let c_name = setting.c_name.as_deref().unwrap_or_default();
    let convert = if setting.is_in_millis() { "millis" } else { "nanos" };
    let (ty, statement, argument) = match &setting.kind {
        Kind::Flag => ("bool", String::new(), "value"),
        Kind::Size(ty) | Kind::Number(ty) | Kind::Other(ty) => (&**ty, String::new(), "value"),
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
            let text = format!(
                "let value = ffi::c_string({name:?}, value)?;\n        let value = self.retain(value);"
            );
            ("&str", text, "value")
        }
        Kind::Text { .. } | Kind::IdleArguments => {
            ("&str", format!("let value = ffi::c_string({name:?}, value)?;"), "value.as_ptr()")
        }
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
    format!(
        "    pub fn set_{name}(&mut self, value: {ty}) -> Result<&mut Self> {{\n        {statement}\n        \
         // SAFETY: {SET} {reason}\n        \
         unsafe {{ sys::{function}(self.as_ptr(), {argument}) }}.into_result()?;\n        Ok(self)\n    }}\n"
    )
}

fn getter(setting: &Setting, function: &str) -> String {
    let from = if setting.is_in_millis() { "from_millis" } else { "from_nanos" };
    let (ty, body) = match &setting.kind {
        // Some of C's truth values are an `int`.
        Kind::Flag => ("bool", "c_int::from(value) != 0".to_owned()),
        Kind::Size(ty) | Kind::Number(ty) | Kind::Other(ty) => (&**ty, "value".to_owned()),
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
    let name = setting.rust_name();
    let call = format!("unsafe {{ sys::{function}(self.as_ptr()) }}");
    let body = if body == "value" { call } else { format!("let value = {call};\n        {body}") };
    format!(
        "    pub fn {name}(&self) -> {ty} {{\n        // SAFETY: {GET}\n        {body}\n    }}\n"
    )
}

fn documentation(setting: &Setting, function: &str, is_setter: bool) -> String {
    let name = setting.rust_name();
    let mut blocks = vec![setting.text.clone()];
    match setting.kind {
        Kind::Size(_) => blocks.push("Unit: bytes.".to_owned()),
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
    if !is_setter && !reading.is_empty() {
        blocks.push(reading.to_owned());
    }
    if setting.is_optional {
        blocks.push("`None` means that it is not set.".to_owned());
    }
    blocks.extend(setting.default.as_ref().map(|value| format!("Default: `{value}`.")));
    let values = setting.values.as_ref().and_then(|values| values.describe());
    if let Some(values) = values.as_ref().filter(|_| setting.is_checked) {
        blocks.push(format!("Launching refuses what is not {values}."));
    }
    if let Some(variable) = &setting.variable {
        let cut = values.filter(|_| !setting.is_checked);
        let cut = cut.map_or_else(String::new, |values| {
            format!(", with values {values}; Aeron cuts others")
        });
        blocks.push(format!("Environment: `{variable}`{cut}."));
    }
    if is_setter {
        blocks.push(format!("# Errors\n{}", errors(&setting.kind)));
    }
    blocks.push(format!("Corresponds to `{function}`."));
    blocks.join("\n\n")
}

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
        methods(&table, "Context", "tiny").0.replace("\n        ", " ")
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
        let text = methods_of("sharednet_ns TINY\n  duration, name shared_net_ns, getter net_ns");
        for part in
            ["fn set_shared_net(", "tiny_set_sharednet_ns(", "fn shared_net(", "tiny_get_net_ns("]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!methods_of("dir -\n  path, by hand").contains("fn "));
        assert!(!methods_of("dir -\n  path, setter by hand").contains("set_dir"));
    }

    #[test]
    fn documentation_names_default_and_values() {
        let text =
            methods_of("room TINY_ROOM\n  size, default 4k, values power of two 1k..1g, checked");
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
}
