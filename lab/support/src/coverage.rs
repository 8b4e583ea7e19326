//! Checks that a crate uses, replaces or omits every C function of a header.

mod header;

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use self::header::without_comments;

/// The list of functions that a crate leaves out on purpose: a reason, and the functions that it
/// explains.
pub type Omissions<'a> = &'a [(&'a str, &'a [&'a str])];

/// Words of a crate's sources: the identifiers in its code, and the words after "Corresponds to" in its
/// documentation.
#[derive(Debug, Default)]
pub struct Sources {
    code: HashSet<String>,
    replaced: HashSet<String>,
}

impl Sources {
    /// Creates an empty set of sources.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds all Rust files below a directory, without items for tests.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or does not consist of Rust's tokens.
    pub fn rust_dir(mut self, dir: impl AsRef<Path>) -> Result<Self, String> {
        self.add_rust_dir(dir.as_ref())?;
        Ok(self)
    }

    /// Adds the code of a C file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn c_file(mut self, path: impl AsRef<Path>) -> Result<Self, String> {
        let code = without_comments(&read(path.as_ref())?);
        // Names of headers are no function names.
        let code = code.lines().filter(|line| !line.trim_start().starts_with("#include"));
        self.code.extend(code.flat_map(words).map(str::to_owned));
        Ok(self)
    }

    fn add_rust_dir(&mut self, dir: &Path) -> Result<(), String> {
        let failed = |error| format!("{}: {error}", dir.display());
        for entry in fs::read_dir(dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                self.add_rust_dir(&path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let tokens = read(&path)?.parse::<TokenStream>();
                let failed = |error| format!("{}: {error}", path.display());
                self.add_tokens(tokens.map_err(failed)?);
            }
        }
        Ok(())
    }

    /// Ordinary comments are no tokens. Doc comments are: an attribute for each line.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut doc = String::new();
        let mut tokens = tokens.into_iter();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                    if let Some(line) = doc_line(group.stream()) {
                        doc = doc + &line + "\n";
                    } else if is_for_tests(&group.stream()) {
                        // The attribute's item ends with a body or a semicolon.
                        tokens.by_ref().find(is_end_of_item);
                    } else {
                        self.add_tokens(group.stream());
                    }
                }
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Ident(identifier) => {
                    self.code.insert(identifier.to_string());
                    // The documentation of the next item is another paragraph.
                    doc.push('\n');
                }
                TokenTree::Literal(_) | TokenTree::Punct(_) => {}
            }
        }
        let paragraphs = doc.split("\n\n");
        let replaced = paragraphs.filter_map(|text| text.split_once("Corresponds to"));
        self.replaced.extend(replaced.flat_map(|(_, names)| words(names)).map(str::to_owned));
    }
}

/// Returns the functions that a header declares, whose path is that in Aeron's tree.
///
/// # Panics
/// If the header cannot be read.
pub fn declared_functions(header: &str) -> Vec<String> {
    let path = crate::aeron_source().join(header);
    header::declared(&read(&path).expect("a header"))
}

/// Compares a header with a crate. Returns the problems; empty if there are none.
///
/// Each declared function must be covered in exactly one way:
///
/// - used: the code of the sources names the function;
/// - replaced: only a paragraph of the documentation names the function, after "Corresponds to";
/// - omitted: the function is in the list of omissions, with a reason. The documentation may say
///   why.
///
/// A function that is omitted must be declared, and must not be used.
pub fn coverage_problems(
    declared: &[String],
    sources: &Sources,
    omissions: Omissions<'_>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut omitted = HashSet::new();
    let is_used = |function: &str| sources.code.contains(function);
    for &function in omissions.iter().flat_map(|(_, functions)| *functions) {
        if !declared.iter().any(|declared| declared == function) {
            problems.push(format!("{function} is omitted, but not in the header"));
        } else if is_used(function) {
            problems.push(format!("{function} is omitted, but used"));
        }
        if !omitted.insert(function) {
            problems.push(format!("{function} is omitted twice"));
        }
    }
    for function in declared {
        let is_covered = is_used(function)
            || sources.replaced.contains(function)
            || omitted.contains(function.as_str());
        if !is_covered {
            problems.push(format!(
                "{function} is neither used, nor documented as replaced, nor omitted"
            ));
        }
    }
    problems
}

/// Returns the text of `doc = "text"`.
fn doc_line(attribute: TokenStream) -> Option<String> {
    let mut tokens = attribute.into_iter();
    let is_doc = matches!(tokens.next(), Some(TokenTree::Ident(name)) if name == "doc");
    match (is_doc, tokens.next(), tokens.next()) {
        (true, Some(TokenTree::Punct(_)), Some(TokenTree::Literal(text))) => {
            Some(text.to_string().trim_matches('"').trim().to_owned())
        }
        _ => None,
    }
}

/// Returns whether an attribute is `cfg(test)`.
fn is_for_tests(attribute: &TokenStream) -> bool {
    attribute.to_string().replace(' ', "") == "cfg(test)"
}

fn is_end_of_item(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    /// A crate whose code has `tiny_a`, and whose documentation has `tiny_b`.
    fn sources() -> Sources {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("inner")).unwrap();
        let text = r#"
            // tiny_comment() is not called.
            /// Unlike `tiny_mentioned`.
            ///
            /// Corresponds to `tiny_aa` and
            /// `tiny_b`.
            fn f() { sys::tiny_a("tiny_literal: Corresponds to tiny_literal"); sys::tiny_c(); }
            /// `tiny_mentioned`
            #[cfg(test)]
            mod tests {
                /// Corresponds to `tiny_tested`.
                fn f() { sys::tiny_tested(); }
            }
            #[cfg(unix)]
            fn g() { sys::tiny_unix(); }
        "#;
        fs::write(dir.path().join("inner/mod.rs"), text).unwrap();
        let shim = "#include \"tiny_b.h\"\n/* not tiny_comment */\nint f(int x) { return tiny_shim() / x; } // tiny_comment";
        fs::write(dir.path().join("shim.c"), shim).unwrap();
        Sources::new()
            .rust_dir(dir.path())
            .and_then(|sources| sources.c_file(dir.path().join("shim.c")))
            .unwrap()
    }

    fn problems(omissions: Omissions<'_>) -> Vec<String> {
        coverage_problems(&names(&["tiny_a", "tiny_b", "tiny_c"]), &sources(), omissions)
    }

    #[test]
    fn used_and_documented_is_complete() {
        assert_eq!(problems(&[]), [""; 0]);
    }

    #[test]
    fn omission_that_is_documented_is_fine() {
        assert_eq!(problems(&[("no use", &["tiny_b"])]), [""; 0]);
    }

    #[test]
    fn comments_do_not_count() {
        let all = names(&["tiny_comment", "tiny_shim"]);
        let problem = "tiny_comment is neither used, nor documented as replaced, nor omitted";
        assert_eq!(coverage_problems(&all, &sources(), &[]), [problem]);
        assert_eq!(coverage_problems(&all, &sources(), &[("no use", &["tiny_comment"])]), [""; 0]);
    }

    #[test]
    fn only_code_and_correspondence_count() {
        let all = ["tiny_aa", "tiny_literal", "tiny_mentioned", "tiny_tested", "tiny_unix"];
        let found = coverage_problems(&names(&all), &sources(), &[]);
        let expected = ["tiny_literal", "tiny_mentioned", "tiny_tested"];
        let problem = "is neither used, nor documented as replaced, nor omitted";
        assert_eq!(found, expected.map(|name| format!("{name} {problem}")));
    }

    #[test]
    fn omission_that_the_header_lost_is_found() {
        let found = problems(&[("no use", &["tiny_old"])]);
        assert_eq!(found, ["tiny_old is omitted, but not in the header"]);
    }

    #[test]
    fn omission_that_is_used_is_found() {
        let found = problems(&[("no use", &["tiny_a"]), ("no use either", &["tiny_c"])]);
        assert_eq!(found, ["tiny_a is omitted, but used", "tiny_c is omitted, but used"]);
    }

    #[test]
    fn omission_that_only_the_shim_uses_is_found() {
        let all = names(&["tiny_shim"]);
        let found = coverage_problems(&all, &sources(), &[("no use", &["tiny_shim"])]);
        assert_eq!(found, ["tiny_shim is omitted, but used"]);
    }

    #[test]
    fn second_omission_is_found() {
        let found = problems(&[("no use", &["tiny_b"]), ("no use either", &["tiny_b"])]);
        assert_eq!(found, ["tiny_b is omitted twice"]);
    }
}
