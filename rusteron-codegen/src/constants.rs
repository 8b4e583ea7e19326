//! C structs of constants to owned Rust structs.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::bindings::{Bindings, CType, Field};
use crate::header::Comments;
use crate::setting::describe;
use crate::{doc, name};

/// A C struct, filled in by Aeron, that becomes an owned Rust struct.
///
/// The Rust struct has the private conversion `from_raw(raw: &...) -> Self`. It is `unsafe` exactly
/// if the C struct has strings, because strings are read through pointers.
#[derive(Debug, Clone)]
pub struct ConstantsSpec {
    c_name: String,
    rust_name: String,
    raw: String,
    support: String,
    summary: Option<String>,
    skipped: HashMap<String, String>,
    renamed: HashMap<String, String>,
    docs: HashMap<String, String>,
}

impl ConstantsSpec {
    /// Takes a C struct by its tag or typedef, and the name of the Rust struct. `raw` and `support`
    /// are the paths of the bindings and of the support module in the including crate.
    pub fn new(
        c_name: impl Into<String>,
        rust_name: impl Into<String>,
        raw: impl Into<String>,
        support: impl Into<String>,
    ) -> Self {
        Self {
            c_name: c_name.into(),
            rust_name: rust_name.into(),
            raw: raw.into(),
            support: support.into(),
            summary: None,
            skipped: HashMap::new(),
            renamed: HashMap::new(),
            docs: HashMap::new(),
        }
    }

    /// Sets the description of the struct, in Markdown, if the header has none or a wrong one.
    pub fn summary(mut self, markdown: impl Into<String>) -> Self {
        self.summary = Some(markdown.into());
        self
    }

    /// Leaves a field out. `reason` says why the field is no constant in Rust.
    pub fn skip(mut self, field: impl Into<String>, reason: impl Into<String>) -> Self {
        self.skipped.insert(field.into(), reason.into());
        self
    }

    /// Renames a field.
    pub fn rename(mut self, field: impl Into<String>, name: impl Into<String>) -> Self {
        self.renamed.insert(field.into(), name.into());
        self
    }

    /// Sets the description of a field by its C name, if the header has none or a wrong one.
    pub fn doc(mut self, field: impl Into<String>, markdown: impl Into<String>) -> Self {
        self.docs.insert(field.into(), markdown.into());
        self
    }

    /// Returns the Rust struct. Adds missing declarations to `problems`.
    pub(crate) fn generate(
        &self,
        bindings: &Bindings,
        comments: &Comments,
        problems: &mut Vec<String>,
    ) -> String {
        let Self { rust_name, raw, support, .. } = self;
        let Some((c_name, fields)) = bindings.structure(&self.c_name) else {
            problems.push(format!("{rust_name}: the bindings have no struct {}", self.c_name));
            return String::new();
        };
        self.check_names(fields, problems);

        let commented = comments.type_(&c_name).or_else(|| comments.type_(&self.c_name));
        let from_header =
            |text: Option<&String>| text.map(|text| doc::neutral(&doc::markdown(text)));
        let summary =
            self.summary.clone().or_else(|| from_header(commented.and_then(|c| c.text.as_ref())));
        if summary.as_ref().is_none_or(|text| text.is_empty()) {
            problems.push(format!("{rust_name}: neither header nor spec describes the struct"));
        }

        let mut declared = String::new();
        let mut read = String::new();
        let mut has_text = false;
        for field in fields.iter().filter(|field| !self.skipped.contains_key(&field.name)) {
            let c_field = &field.name;
            let text = self.docs.get(c_field).cloned();
            let text = text.or_else(|| from_header(commented.and_then(|c| c.members.get(c_field))));
            match text.filter(|text| !text.is_empty()) {
                Some(text) => declared += &doc::comment(&text, 4),
                None => problems
                    .push(format!("{rust_name}: neither header nor spec describes {c_field}")),
            }
            let name = self.renamed.get(c_field).map_or(c_field.as_str(), String::as_str);
            let name = name::identifier(name);
            let ty = match bindings.resolve(&field.ty) {
                CType::Text => {
                    has_text = true;
                    let _ = write!(
                        read,
                        "            // SAFETY: the caller vouches for the strings of `raw`.\n\
                         \x20           {name}: unsafe {{ {support}::lossy(raw.{c_field}) }}.into_owned(),\n"
                    );
                    "::std::string::String"
                }
                CType::Bool => copied(&mut read, &name, c_field, "bool"),
                CType::Integer(integer) => copied(&mut read, &name, c_field, integer),
                other => {
                    problems.push(format!(
                        "{rust_name}: {c_field} is {}; skip it, saying why",
                        describe(&other)
                    ));
                    continue;
                }
            };
            let _ = writeln!(declared, "    pub {name}: {ty},");
        }

        let (safety, qualifier) = if has_text {
            let safety = "    /// # Safety\n    ///\n    /// Each string of `raw` is NULL or valid \
                          and unchanged during this call.\n";
            (safety, "unsafe ")
        } else {
            ("", "")
        };
        let summary = summary.unwrap_or_default();
        let given_name = &self.c_name;
        let mut out = doc::comment(&format!("{summary}\n\nCorresponds to `{given_name}`."), 0);
        out += &doc::alias(given_name);
        let _ = write!(
            out,
            "#[derive(Debug, Clone, PartialEq, Eq)]\n\
             #[non_exhaustive]\n\
             pub struct {rust_name} {{\n{declared}}}\n\n\
             impl {rust_name} {{\n\
             \x20   /// Copies what Aeron filled in.\n\
             {}{safety}\
             \x20   pub(crate) {qualifier}fn from_raw(raw: &{raw}::{c_name}) -> Self {{\n\
             \x20       Self {{\n{read}        }}\n    }}\n}}\n\n",
            if has_text { "    ///\n" } else { "" }
        );
        out
    }

    fn check_names(&self, fields: &[Field], problems: &mut Vec<String>) {
        let mut named: Vec<_> = [&self.skipped, &self.renamed, &self.docs]
            .into_iter()
            .flat_map(HashMap::keys)
            .collect();
        named.sort();
        named.dedup();
        for name in named {
            if !fields.iter().any(|field| field.name == *name) {
                problems.push(format!("{}: {} has no field {name}", self.rust_name, self.c_name));
            }
        }
    }
}

/// Adds the initializer of a field that is copied unchanged.
fn copied<'a>(read: &mut String, name: &str, c_field: &str, ty: &'a str) -> &'a str {
    let _ = writeln!(read, "            {name}: raw.{c_field},");
    ty
}
