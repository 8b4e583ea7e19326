//! The comments of a C header, found by the declaration they describe.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Documentation of functions, types and their members in the headers.
#[derive(Debug, Default)]
pub(crate) struct Comments {
    functions: HashMap<String, FunctionComment>,
    types: HashMap<String, TypeComment>,
    declared: Vec<String>,
}

/// A header's documentation of a function.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct FunctionComment {
    /// The raw text between the comment marks.
    pub(crate) text: Option<String>,
    /// The environment variable whose macro stands above the function.
    pub(crate) environment: Option<String>,
}

/// A header's documentation of a struct or enum.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TypeComment {
    pub(crate) text: Option<String>,
    /// Comments of fields or enum constants, by name.
    pub(crate) members: HashMap<String, String>,
}

impl Comments {
    /// Adds the comments of one header.
    ///
    /// Aeron documents a setting above the macro of its environment variable. The setter and getter
    /// follow, sometimes after a typedef. So a macro's comment waits for the next function. Any
    /// other comment belongs to the declaration directly below it.
    pub(crate) fn add(&mut self, text: &str) {
        let mut comment = None;
        let mut setting: Option<FunctionComment> = None;
        let mut scanner = Scanner::new(text);
        while let Some(item) = scanner.next_item() {
            match item {
                Item::Comment(text) => comment = Some(text),
                Item::Variable(name) => {
                    let text = comment.take();
                    setting = Some(FunctionComment { text, environment: Some(name) });
                }
                Item::Declaration(declaration) => {
                    let comment = comment.take();
                    if let Some(name) = function_name(declaration) {
                        let setting = setting.take().unwrap_or_default();
                        let found = match comment {
                            Some(text) => FunctionComment { text: Some(text), environment: None },
                            None => setting,
                        };
                        if let Entry::Vacant(entry) = self.functions.entry(name.to_owned()) {
                            self.declared.push(name.to_owned());
                            entry.insert(found);
                        }
                    } else if let Some((names, body)) = type_names(declaration) {
                        for name in names {
                            let members = members(body);
                            let found = TypeComment { text: comment.clone(), members };
                            self.types.entry(name.to_owned()).or_insert(found);
                        }
                    }
                }
            }
        }
    }

    pub(crate) fn function(&self, name: &str) -> FunctionComment {
        self.functions.get(name).cloned().unwrap_or_default()
    }

    /// Returns the names of all functions, in the order of their first declarations.
    pub(crate) fn declared(&self) -> &[String] {
        &self.declared
    }

    /// Finds a struct or enum by its tag or by its typedef.
    pub(crate) fn type_(&self, name: &str) -> Option<&TypeComment> {
        self.types.get(name)
    }
}

enum Item<'a> {
    /// A javadoc comment without its marks.
    Comment(String),
    /// The value of a macro that names an environment variable.
    Variable(String),
    /// Everything up to a `;` or the end of a function's body.
    Declaration(&'a str),
}

/// Splits a header into comments, macros and declarations. Valid for well-formed C only.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn next_item(&mut self) -> Option<Item<'a>> {
        loop {
            let rest = self.rest().trim_start();
            self.at = self.text.len() - rest.len();
            if rest.is_empty() {
                return None;
            } else if let Some(length) = comment_length(rest) {
                self.at += length;
                if let Some(body) = rest[..length].strip_prefix("/**") {
                    return Some(Item::Comment(body.trim_end_matches("*/").to_owned()));
                }
            } else if rest.starts_with('#') {
                let length = directive_length(rest);
                self.at += length;
                if let Some(name) = environment_variable(&rest[..length]) {
                    return Some(Item::Variable(name.to_owned()));
                }
            } else if let Some(linkage) = rest.strip_prefix("extern \"C\"") {
                // The block's braces are skipped like blanks, and its content is scanned.
                let open = linkage.find('{').map_or(0, |at| at + 1);
                self.at += rest.len() - linkage.len() + open;
            } else if rest.starts_with('}') || rest.starts_with(';') {
                self.at += 1;
            } else {
                let length = declaration_length(rest);
                self.at += length;
                return Some(Item::Declaration(&rest[..length]));
            }
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
}

/// Returns the length of the comment at the start of `text`.
fn comment_length(text: &str) -> Option<usize> {
    if let Some(body) = text.strip_prefix("/*") {
        Some(body.find("*/").map_or(text.len(), |end| end + 4))
    } else if text.starts_with("//") {
        Some(text.find('\n').unwrap_or(text.len()))
    } else {
        None
    }
}

/// Returns C code with blanks in place of comments. Valid for code without comment marks in
/// strings.
pub(crate) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        out += &rest[..at];
        rest = &rest[at..];
        let length = comment_length(rest);
        out += if length.is_some() { " " } else { "/" };
        rest = &rest[length.unwrap_or(1)..];
    }
    out + rest
}

/// Returns the length of a preprocessor line with its continuations.
fn directive_length(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        length += line.len();
        if !line.trim_end().ends_with('\\') {
            break;
        }
    }
    length
}

/// `#define AERON_DIR_ENV_VAR "AERON_DIR"` names `AERON_DIR`. One macro of Aeron's ends in
/// `_ENV_INIT_ARGS_VAR`, so the ending alone does not tell.
fn environment_variable(directive: &str) -> Option<&str> {
    let mut words =
        directive.strip_prefix('#')?.trim_start().strip_prefix("define")?.splitn(2, '"');
    let name = words.next()?.trim();
    let is_variable = name.contains("_ENV_") && name.ends_with("_VAR");
    let value = words.next()?.split('"').next()?;
    is_variable.then_some(value)
}

/// Returns the length up to the `;` outside all brackets, or up to the `}` of a function's body.
fn declaration_length(text: &str) -> usize {
    let is_type = ["typedef", "struct", "enum", "union"].iter().any(|word| text.starts_with(word));
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        if let Some(length) = comment_length(&text[at..]) {
            at += length;
            continue;
        }
        at += character.len_utf8();
        match character {
            '{' | '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && !is_type {
                    return at;
                }
            }
            ';' if depth == 0 => return at,
            _ => {}
        }
    }
    at
}

/// Returns the name of the declared function, if the declaration is of a function.
fn function_name(declaration: &str) -> Option<&str> {
    let head = &declaration[..declaration.find('(')?];
    if head.starts_with("typedef") || head.contains(['{', '=']) {
        return None;
    }
    head.split(|c: char| !is_word(c)).rfind(|word| !word.is_empty())
}

/// Returns the tag and the typedef of a struct or enum, and the text between its braces.
fn type_names(declaration: &str) -> Option<(Vec<&str>, &str)> {
    let (head, rest) = declaration.split_once('{')?;
    let (body, tail) = rest.rsplit_once('}')?;
    let tag = head.split_whitespace().find(|word| !["typedef", "struct", "enum"].contains(word));
    let name = tail.trim().trim_end_matches(';').trim_end();
    Some((tag.into_iter().chain((!name.is_empty()).then_some(name)).collect(), body))
}

fn members(body: &str) -> HashMap<String, String> {
    let mut members = HashMap::new();
    let mut comment = None;
    let mut rest = body.trim_start();
    while !rest.is_empty() {
        if let Some(length) = comment_length(rest) {
            if let Some(text) = rest[..length].strip_prefix("/**") {
                comment = Some(text.trim_end_matches("*/").to_owned());
            }
            rest = rest[length..].trim_start();
            continue;
        }
        let end = rest.find([';', ',']).unwrap_or(rest.len());
        let declared = rest[..end].split(['=', '[']).next().unwrap_or_default();
        let name = declared.split(|c: char| !is_word(c)).rfind(|word| !word.is_empty());
        if let (Some(name), Some(comment)) = (name, comment.take()) {
            members.insert(name.to_owned(), comment);
        }
        rest = rest[end..].trim_start_matches([';', ',']).trim_start();
    }
    members
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comments(text: &str) -> Comments {
        let mut comments = Comments::default();
        comments.add(text);
        comments
    }

    fn text_of(comments: &Comments, function: &str) -> Option<String> {
        comments.function(function).text.map(|text| text.replace('*', "").trim().to_owned())
    }

    #[test]
    fn comment_above_macro_is_next_functions() {
        let comments = comments(
            "/**\n * Mode.\n */\n#define A_ENV_VAR \"A\"\n\ntypedef enum mode_enum { ONE, TWO } mode_t;\n\
             int set_a(ctx_t *c, mode_t mode);\nmode_t get_a(ctx_t *c);\nint set_b(ctx_t *c, int v);",
        );
        assert_eq!(text_of(&comments, "set_a").as_deref(), Some("Mode."));
        assert_eq!(comments.function("set_a").environment.as_deref(), Some("A"));
        assert_eq!(comments.function("get_a"), FunctionComment::default());
        assert_eq!(comments.function("set_b"), FunctionComment::default());
        assert_eq!(comments.type_("mode_t").unwrap().text, None);
    }

    #[test]
    fn bare_macro_inherits_no_comment() {
        let comments = comments(
            "/** Other. */\n#define X_ENV_VAR \"X\"\n#define A_ENV_INIT_ARGS_VAR \"A\"\nint set_a(void);",
        );
        let found = comments.function("set_a");
        assert_eq!(found, FunctionComment { text: None, environment: Some("A".into()) });
    }

    #[test]
    fn other_macros_are_no_variables() {
        for name in ["A_ENV_NAME", "A_VAR", "A_ENV_VARIABLE"] {
            let comments = comments(&format!("/** A. */\n#define {name} \"A\"\nint set_a(void);"));
            assert_eq!(comments.function("set_a").environment, None, "{name}");
        }
    }

    #[test]
    fn comment_above_function_is_its_own() {
        let comments = comments(
            "extern \"C\"\n{\n#define A_ENV_VAR \"A\"\n/* plain */ // line\n/** Mine. */\n\
             const char *get_a(\n    ctx_t *c);\ninline int f(void) { return 1; }\n/** Next. */\nint g(void);\n}",
        );
        assert_eq!(text_of(&comments, "get_a").as_deref(), Some("Mine."));
        assert_eq!(comments.function("get_a").environment, None);
        assert_eq!(text_of(&comments, "g").as_deref(), Some("Next."));
    }

    #[test]
    fn types_and_their_members() {
        let comments = comments(
            "/** Constants. */\ntypedef struct c_stct\n{\n /** The channel; or: a, b. */\n const char *channel;\n\
             int32_t plain;\n /** Bytes. */ uint8_t address[16];\n}\nc_t;\n\
             typedef enum m_en { /** First. */ M_A = 1, M_B } m_t;",
        );
        let constants = comments.type_("c_stct").unwrap();
        assert_eq!(constants, comments.type_("c_t").unwrap());
        assert_eq!(constants.text.as_deref(), Some(" Constants. "));
        assert_eq!(constants.members["channel"], " The channel; or: a, b. ");
        assert_eq!(constants.members["address"], " Bytes. ");
        assert_eq!(constants.members.len(), 2);
        assert_eq!(comments.type_("m_t").unwrap().members["M_A"], " First. ");
    }

    #[test]
    fn function_pointers_are_no_functions() {
        let comments =
            comments("/** A callback. */\ntypedef void (*handler_t)(void *c);\nint set(void);");
        assert_eq!(comments.function("set"), FunctionComment::default());
        assert!(comments.functions.len() == 1);
    }
}
