//! The text of a setter or getter.
//!
//! Text instead of tokens, because a printer of tokens would drop the SAFETY comments.

use std::fmt::Write as _;

use crate::bindings::CType;
use crate::doc;
use crate::setting::{Mapping, TimeUnit};

/// The effect of a C function on its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Set,
    Get,
    Other,
}

/// A method of a context, ready to be written.
pub(crate) struct Method {
    pub(crate) docs: String,
    pub(crate) access: Access,
    pub(crate) rust_name: String,
    /// The name of the setting, for errors at run time.
    pub(crate) setting: String,
    /// The path of the C function.
    pub(crate) function: String,
    pub(crate) support: String,
    pub(crate) mapping: Mapping,
    pub(crate) is_retained: bool,
    /// The C type of a setter's value.
    pub(crate) parameter: CType,
    pub(crate) output: CType,
}

const DURATION: &str = "::std::time::Duration";
const LIVE: &str = "`as_ptr` points to a live context";
const VALID: &str =
    "C's string stays as it is until a setter, which needs `&mut self`, or the end of the context.";

impl Method {
    pub(crate) fn render(&self) -> String {
        let docs = doc::comment(&self.docs, 4);
        let c_name = self.function.rsplit("::").next().unwrap_or(&self.function);
        let alias = doc::alias(c_name);
        let method = if self.access == Access::Set { self.setter() } else { self.getter() };
        format!("{docs}    {alias}{method}    }}\n")
    }

    fn setter(&self) -> String {
        let Self { setting, support, mapping, .. } = self;
        // The statement that converts Rust's value, the argument for C, and the safety argument.
        let mut statement = String::new();
        let mut argument = "value".to_owned();
        let mut reason = format!("{LIVE}, which `&mut self` reserves for this call.");
        let ty = match mapping {
            Mapping::Bool => "bool".to_owned(),
            Mapping::Integer(name) => (*name).to_owned(),
            Mapping::Enum { rust_name, .. } => {
                argument = "value.to_raw()".into();
                rust_name.clone()
            }
            Mapping::Duration(unit) => {
                let function = self.converter(*unit);
                statement = format!("let value = {support}::{function}({setting:?}, value)?;");
                DURATION.into()
            }
            Mapping::OptionalDuration(unit) => {
                let function = self.converter(*unit);
                statement = format!(
                    "// What is not set is AERON_NULL_VALUE, -1.\n        \
                     let value = match value {{\n            \
                     Some(value) => {support}::{function}({setting:?}, value)?,\n            \
                     None => u64::MAX,\n        }};"
                );
                format!("::core::option::Option<{DURATION}>")
            }
            Mapping::Choice(path) => {
                argument = "value.as_c_str().as_ptr()".into();
                reason = format!("{LIVE}; Aeron copies the name, which is one it knows.");
                path.clone()
            }
            Mapping::Text | Mapping::Path => {
                let (function, value, ty) = match mapping {
                    Mapping::Path => (
                        "c_path",
                        "value.as_ref()",
                        "impl ::core::convert::AsRef<::std::path::Path>",
                    ),
                    _ => ("c_string", "value", "&str"),
                };
                statement = format!("let value = {support}::{function}({setting:?}, {value})?;");
                if self.is_retained {
                    statement += "\n        let value = self.retain(value);";
                    reason = format!(
                        "{LIVE}; Aeron keeps the pointer, and `retain` keeps the string as long."
                    );
                } else {
                    argument = "value.as_ptr()".into();
                    reason = format!("{LIVE}; Aeron copies the string before it returns.");
                }
                ty.to_owned()
            }
        };
        let mut out = signature(
            &format!("set_{}", self.rust_name.trim_start_matches("set_")),
            &["&mut self", &format!("value: {ty}")],
            &format!("{support}::Result<&mut Self>"),
        );
        if !statement.is_empty() {
            let _ = writeln!(out, "        {statement}");
        }
        // A few setters return their 0 or -1 as 64 bits.
        let cast = if self.output == CType::Int { "" } else { " as ::core::ffi::c_int" };
        let call = format!("{}(self.as_ptr(), {argument})", self.function);
        out += &unsafe_line("let code = ", &call, &format!("{cast};"), &reason);
        let _ = write!(out, "        {support}::Fallible::into_result(code)?;\n        Ok(self)\n");
        out
    }

    fn getter(&self) -> String {
        let Self { support, mapping, function, .. } = self;
        let call = format!("{function}(self.as_ptr())");
        let reads = format!("{LIVE}, which C only reads here.");
        let (ty, body) = match mapping {
            Mapping::Bool => {
                let test = if self.output == CType::Int { " != 0" } else { "" };
                let body = if test.is_empty() {
                    unsafe_line("", &call, "", &reads)
                } else {
                    unsafe_line("let value = ", &call, ";", &reads) + "        value != 0\n"
                };
                ("bool".to_owned(), body)
            }
            Mapping::Integer(name) => ((*name).to_owned(), unsafe_line("", &call, "", &reads)),
            Mapping::Duration(unit) => {
                // If the setter takes an unsigned number and the getter returns a signed one, the
                // cast undoes it.
                let cast = if self.output == CType::Integer("u64") { "" } else { " as u64" };
                let body = unsafe_line("let value = ", &call, &format!("{cast};"), &reads);
                let convert = format!("        {DURATION}::{}(value)\n", from(*unit));
                (DURATION.to_owned(), body + &convert)
            }
            Mapping::OptionalDuration(unit) => {
                // As unsigned, -1 is the value that the setter writes for `None`.
                let cast = if self.output == CType::Integer("u64") { "" } else { " as u64" };
                let body = unsafe_line("let value = ", &call, &format!("{cast};"), &reads);
                let convert = format!(
                    "        (value != u64::MAX).then(|| {DURATION}::{}(value))\n",
                    from(*unit)
                );
                (format!("::core::option::Option<{DURATION}>"), body + &convert)
            }
            Mapping::Enum { rust_name, first_variant } => {
                let body = unsafe_line("let value = ", &call, ";", &reads);
                let convert = format!(
                    "        // C holds what `to_raw` or its own parser wrote, so one always fits.\n        \
                     {rust_name}::from_raw(value).unwrap_or({rust_name}::{first_variant})\n"
                );
                (rust_name.clone(), body + &convert)
            }
            Mapping::Text | Mapping::Path => {
                let (ty, function) = match mapping {
                    Mapping::Path => ("&::std::path::Path", "path"),
                    _ => ("::std::borrow::Cow<'_, str>", "lossy"),
                };
                let call_support = format!("{support}::{function}(value)");
                let body = unsafe_line("let value = ", &call, ";", &reads)
                    + &unsafe_line("", &call_support, "", VALID);
                (ty.to_owned(), body)
            }
            Mapping::Choice(path) => {
                let body = unsafe_line("let name = ", &call, ";", &reads)
                    + "        if name.is_null() {\n            return None;\n        }\n"
                    + &unsafe_line("let name = ", "::core::ffi::CStr::from_ptr(name)", ";", VALID)
                    + &format!("        {path}::from_c_str(name)\n");
                (format!("::core::option::Option<{path}>"), body)
            }
        };
        signature(&self.rust_name, &["&self"], &ty) + &body
    }

    /// Returns the support function that converts a `Duration` to the setter's type.
    fn converter(&self, unit: TimeUnit) -> String {
        let signed = if self.parameter == CType::Integer("i64") { "_i64" } else { "" };
        format!("{}{signed}", unit.function())
    }
}

fn from(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Nanos => "from_nanos",
        TimeUnit::Millis => "from_millis",
    }
}

/// Returns the signature of a method, on several lines if one is too long.
fn signature(name: &str, parameters: &[&str], output: &str) -> String {
    let line = format!("    pub fn {name}({}) -> {output} {{\n", parameters.join(", "));
    if line.len() <= doc::WIDTH + 1 {
        return line;
    }
    let parameters: String =
        parameters.iter().map(|parameter| format!("        {parameter},\n")).collect();
    format!("    pub fn {name}(\n{parameters}    ) -> {output} {{\n")
}

/// A statement or expression around one unsafe block, below its SAFETY comment, broken as rustfmt
/// would.
fn unsafe_line(before: &str, call: &str, after: &str, reason: &str) -> String {
    let mut out = String::new();
    for line in doc::wrap(&format!("SAFETY: {reason}"), doc::WIDTH - 11) {
        let _ = writeln!(out, "        // {line}");
    }
    let block = format!("unsafe {{ {call} }}{after}");
    if before.len() + block.len() + 8 <= doc::WIDTH {
        let _ = writeln!(out, "        {before}{block}");
    } else if !before.is_empty() && block.len() + 12 <= doc::WIDTH {
        let _ = writeln!(out, "        {}\n            {block}", before.trim_end());
    } else {
        let call = match call.split_once('(') {
            Some((function, arguments)) if call.len() + 12 > doc::WIDTH => {
                let arguments = arguments.strip_suffix(')').unwrap_or(arguments);
                let arguments: String = arguments
                    .split(", ")
                    .map(|argument| format!("                {argument},\n"))
                    .collect();
                format!("{function}(\n{arguments}            )")
            }
            _ => call.to_owned(),
        };
        let _ = writeln!(out, "        {before}unsafe {{\n            {call}\n        }}{after}");
    }
    out
}
