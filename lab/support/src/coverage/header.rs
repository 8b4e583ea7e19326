//! The functions that a C header declares.

/// Returns the names of all functions, in the order of the header. Valid for headers in Aeron's style.
pub(super) fn declared(header: &str) -> Vec<String> {
    let code = without_comments(header).replace("\\\n", " ");
    let is_code = |line: &&str| !line.trim_start().starts_with('#');
    let code =
        code.lines().filter(is_code).collect::<Vec<_>>().join("\n").replace("extern \"C\"", "");
    let mut names: Vec<String> = Vec::new();
    // The block of `extern "C"` is one level; deeper ones are bodies of functions, structs and enums.
    let levels = 1 + usize::from(header.contains("extern \"C\""));
    let (mut depth, mut statement) = (1_usize, String::new());
    for character in code.chars() {
        match character {
            '{' | '}' | ';' if depth <= levels => {
                let name =
                    function_name(&statement).filter(|name| !names.iter().any(|n| n == name));
                names.extend(name.map(str::to_owned));
                statement.clear();
            }
            _ if depth <= levels => statement.push(character),
            _ => {}
        }
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    names
}

/// Returns the name of the function that a statement declares.
fn function_name(statement: &str) -> Option<&str> {
    let (head, _) = statement.split_once('(')?;
    if head.contains('=') || head.trim_start().starts_with("typedef") {
        return None;
    }
    head.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').rfind(|word| !word.is_empty())
}

/// Returns C code with blanks in place of comments. Valid for code without comment marks in strings.
pub(super) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        out += &rest[..at];
        rest = &rest[at..];
        let length = if rest.starts_with("/*") {
            Some(rest.find("*/").map_or(rest.len(), |end| end + 2))
        } else if rest.starts_with("//") {
            Some(rest.find('\n').unwrap_or(rest.len()))
        } else {
            None
        };
        out += if length.is_some() { " " } else { "/" };
        rest = &rest[length.unwrap_or(1)..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_declared() {
        let header = "#define X(a) \\\n f(a)\n/** a; b() */\nextern \"C\"\n{\nint tiny_init(tiny_t **t);\n\
                      typedef int (*tiny_handler_t)(void *clientd);\n\
                      typedef struct tiny { int (*f)(void); } tiny_t;\nconst char *tiny_get(\n    tiny_t *t);\n\
                      inline int tiny_inline(void) { return tiny_other(0); } // not tiny_comment();\n\
                      int tiny_init(tiny_t **t);\n}\n";
        assert_eq!(declared(header), ["tiny_init", "tiny_get", "tiny_inline"]);
        assert_eq!(declared("int a(void);\nint b(void) { return a(); }\n"), ["a", "b"]);
    }
}
