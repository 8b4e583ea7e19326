//! C enums to Rust enums.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::bindings::{Bindings, CType};
use crate::header::Comments;
use crate::{doc, name};

/// A C enum that becomes a Rust enum.
///
/// The Rust enum has the private conversions `to_raw(self)` and `from_raw(raw) -> Option<Self>`.
#[derive(Debug, Clone)]
pub struct EnumSpec {
    c_name: String,
    pub(crate) rust_name: String,
    raw: String,
    summary: Option<String>,
    docs: HashMap<String, String>,
}

impl EnumSpec {
    /// Takes a C enum by its tag or typedef, and the name of the Rust enum. `raw` is the path of
    /// the module with the bindings in the including crate, such as `rusteron_sys::driver`.
    pub fn new(
        c_name: impl Into<String>,
        rust_name: impl Into<String>,
        raw: impl Into<String>,
    ) -> Self {
        Self {
            c_name: c_name.into(),
            rust_name: rust_name.into(),
            raw: raw.into(),
            summary: None,
            docs: HashMap::new(),
        }
    }

    /// Sets the description of the enum, in Markdown, if the header has none or a wrong one.
    pub fn summary(mut self, markdown: impl Into<String>) -> Self {
        self.summary = Some(markdown.into());
        self
    }

    /// Sets the description of one variant, by its Rust name, if the header has none.
    pub fn doc(mut self, variant: impl Into<String>, markdown: impl Into<String>) -> Self {
        self.docs.insert(variant.into(), markdown.into());
        self
    }

    /// Returns the name behind the typedef, with which the constants are declared.
    pub(crate) fn resolved_name(&self, bindings: &Bindings) -> String {
        match bindings.resolve(&CType::Named(self.c_name.clone())) {
            CType::Named(name) => name,
            _ => self.c_name.clone(),
        }
    }

    pub(crate) fn first_variant(&self, bindings: &Bindings) -> String {
        let values = bindings.enum_values(&self.resolved_name(bindings)).into_iter();
        name::variants(&values.collect::<Vec<_>>()).into_iter().next().unwrap_or_default()
    }

    /// Returns the Rust enum. Adds missing declarations to `problems`.
    pub(crate) fn generate(
        &self,
        bindings: &Bindings,
        comments: &Comments,
        problems: &mut Vec<String>,
    ) -> String {
        let c_name = self.resolved_name(bindings);
        let Self { rust_name, raw, .. } = self;
        let values = bindings.enum_values(&c_name);
        if values.is_empty() {
            problems.push(format!("{rust_name}: the bindings have no enum {}", self.c_name));
            return String::new();
        }
        let variants = name::variants(&values);
        for unknown in self.docs.keys().filter(|name| !variants.contains(name)) {
            problems.push(format!("{rust_name}: a doc for {unknown}, which is no variant"));
        }

        let commented = comments.type_(&c_name);
        let from_header =
            |text: Option<&String>| text.map(|text| doc::neutral(&doc::markdown(text)));
        let summary =
            self.summary.clone().or_else(|| from_header(commented.and_then(|c| c.text.as_ref())));
        let Some(summary) = summary.filter(|text| !text.is_empty()) else {
            problems.push(format!("{rust_name}: neither header nor spec describes the enum"));
            return String::new();
        };
        let given_name = &self.c_name;
        let mut out = doc::comment(&format!("{summary}\n\nCorresponds to `{given_name}`."), 0);
        out += &doc::alias(given_name);
        let _ = writeln!(out, "#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]");
        let _ = writeln!(out, "pub enum {rust_name} {{");
        for (variant, value) in variants.iter().zip(&values) {
            let comment = commented.and_then(|c| c.members.get(*value));
            let text = self.docs.get(variant).cloned().or_else(|| from_header(comment));
            match text.filter(|text| !text.is_empty()) {
                Some(text) => out += &doc::comment(&text, 4),
                None => problems
                    .push(format!("{rust_name}: neither header nor spec describes {variant}")),
            }
            let _ = writeln!(out, "    {variant},");
        }

        let pairs: Vec<_> = variants
            .iter()
            .zip(&values)
            .map(|(variant, value)| (variant, format!("{raw}::{c_name}_{value}")))
            .collect();
        let _ = write!(
            out,
            "}}\n\n\
             #[allow(dead_code, reason = \"not every enum crosses in both directions\")]\n\
             impl {rust_name} {{\n\
             \x20   pub(crate) fn to_raw(self) -> {raw}::{c_name} {{\n\
             \x20       match self {{\n"
        );
        for (variant, constant) in &pairs {
            out += &arm(&format!("Self::{variant}"), constant);
        }
        let parameter = format!("raw: {raw}::{c_name}");
        let mut signature = format!("    pub(crate) fn from_raw({parameter}) -> Option<Self> {{\n");
        if signature.len() > doc::WIDTH + 1 {
            signature = format!(
                "    pub(crate) fn from_raw(\n        {parameter},\n    ) -> Option<Self> {{\n"
            );
        }
        let _ = write!(out, "        }}\n    }}\n\n{signature}        match raw {{\n");
        for (variant, constant) in &pairs {
            out += &arm(constant, &format!("Some(Self::{variant})"));
        }
        out += "            _ => None,\n        }\n    }\n}\n\n";
        out
    }
}

/// Returns an arm of a `match`, broken as rustfmt would break it.
fn arm(pattern: &str, value: &str) -> String {
    let line = format!("            {pattern} => {value},\n");
    if line.len() <= doc::WIDTH + 1 {
        return line;
    }
    format!("            {pattern} => {{\n                {value}\n            }}\n")
}
