//! Javadoc of the C headers to rustdoc Markdown.

/// The width of generated lines.
pub(crate) const WIDTH: usize = 100;

/// Returns the description of a javadoc comment as Markdown. Empty if there is none.
///
/// Block tags (`@param`, `@return`, ...) describe C's parameters and end the description.
pub(crate) fn markdown(javadoc: &str) -> String {
    let mut blocks = Vec::new();
    let mut prose = String::new();
    let mut lines = javadoc.lines().map(undecorated);
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if let Some(end) = code_end(trimmed) {
            blocks.extend(paragraphs(&std::mem::take(&mut prose)));
            let code: Vec<_> =
                lines.by_ref().take_while(|line| !line.trim().starts_with(end)).collect();
            blocks.push(format!("```text\n{}\n```", code.join("\n").trim_end()));
        } else if let Some(reason) = trimmed.strip_prefix("@deprecated") {
            prose.push_str("\n\nDeprecated:");
            prose.push_str(reason);
            prose.push('\n');
        } else if trimmed.starts_with('@') {
            break;
        } else {
            prose.push_str(trimmed);
            prose.push('\n');
        }
    }
    blocks.extend(paragraphs(&prose));
    blocks.join("\n\n")
}

/// Returns Markdown as doc comment lines of at most 100 columns.
pub(crate) fn comment(markdown: &str, indent: usize) -> String {
    let mut out = String::new();
    let mut push = |line: &str| {
        let line = format!("/// {line}");
        out.push_str(&format!("{:indent$}{}\n", "", line.trim_end()));
    };
    let mut in_code = false;
    for line in markdown.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
            push(line);
        } else if in_code {
            push(line);
        } else {
            wrap(line, WIDTH - indent - 4).iter().for_each(|line| push(line));
        }
    }
    out
}

/// Returns the attribute by which rustdoc's search finds an item by its name in C.
pub(crate) fn alias(c_name: &str) -> String {
    format!("#[doc(alias = \"{c_name}\")]\n")
}

/// Returns a description that fits both a setter and a getter: a noun phrase instead of an
/// instruction.
pub(crate) fn neutral(markdown: &str) -> String {
    let (first, rest) = markdown.split_once("\n\n").unwrap_or((markdown, ""));
    let mut first = first.strip_prefix("Property name for ").unwrap_or(first);
    for verb in ["Specify ", "Set ", "Get ", "Return "] {
        if let Some(object) = first.strip_prefix(verb) {
            if object.starts_with("the ") || object.starts_with("whether ") {
                first = object;
            }
        }
    }
    let mut characters = first.chars();
    let capital = characters.next().into_iter().flat_map(char::to_uppercase);
    let mut sentence: String = capital.chain(characters).collect();
    if sentence.ends_with(|last: char| last.is_alphanumeric()) {
        sentence.push('.');
    }
    if rest.is_empty() { sentence } else { format!("{sentence}\n\n{rest}") }
}

/// Drops the unit of a number that has become a `Duration`.
pub(crate) fn without_time_unit(markdown: &str) -> String {
    let mut text = markdown.to_owned();
    for unit in ["nanoseconds", "milliseconds"] {
        for phrase in [format!(" (in {unit})"), format!(", in {unit},"), format!(" in {unit}")] {
            text = text.replace(&phrase, "");
        }
    }
    text
}

/// Returns a comment line without its leading asterisks, also for a crooked ` * */`.
fn undecorated(line: &str) -> &str {
    let Some(text) = line.trim_start().strip_prefix('*') else { return line };
    let text = text.strip_prefix(' ').unwrap_or(text);
    if text.trim() == "*" { "" } else { text }
}

/// Returns the line that ends the code block of which `line` is the start.
fn code_end(line: &str) -> Option<&'static str> {
    [("@code", "@endcode"), ("<pre>", "</pre>")]
        .into_iter()
        .find_map(|(start, end)| line.starts_with(start).then_some(end))
}

fn paragraphs(prose: &str) -> Vec<String> {
    let mut prose = prose.to_owned();
    for tag in ["<p>", "</p>", "<br>", "<br/>", "<ul>", "</ul>", "<ol>", "</ol>"] {
        prose = prose.replace(tag, "\n\n");
    }
    prose = prose.replace("<li>", "\n\n<li>").replace("</li>", "\n\n");
    // A line with only a tag leaves blanks between two line ends.
    let lines: Vec<_> = prose.lines().map(str::trim).collect();
    lines
        .split(|line| line.is_empty())
        .filter(|lines| !lines.is_empty())
        .map(|lines| {
            let text = lines.join(" ");
            match text.strip_prefix("<li>") {
                Some(item) => format!("- {}", inline(item.trim())),
                None => inline(&text),
            }
        })
        .collect()
}

/// Translates markup inside a paragraph and escapes what Markdown or rustdoc would misread.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if let Some((code, length)) = code_span(rest) {
            out.push_str(&format!("`{}`", unescaped(code.trim())));
            rest = &rest[length..];
        } else if let Some((mark, length)) = emphasis(rest) {
            out.push_str(mark);
            rest = &rest[length..];
        } else if is_word(character) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(length);
            if matches!(word, "http" | "https") && after.starts_with("://") {
                let end = rest.find([' ', ')', '<']).unwrap_or(rest.len());
                let url = rest[..end].trim_end_matches(['.', ',']);
                out.push_str(&format!("<{url}>"));
                rest = &rest[url.len()..];
            } else if word.contains('_') {
                // C's names are code, with their parentheses in calls.
                let called = if after.starts_with("()") { "()" } else { "" };
                out.push_str(&format!("`{word}{called}`"));
                rest = &after[called.len()..];
            } else {
                out.push_str(word);
                rest = after;
            }
        } else {
            if matches!(character, '<' | '>' | '[' | ']' | '*' | '\\' | '#') {
                out.push('\\');
            }
            out.push(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    out
}

/// Returns the content and length of the code at the start of `text`. Aeron once forgets the `>` of
/// a closing tag.
fn code_span(text: &str) -> Option<(&str, usize)> {
    if let Some(body) = text.strip_prefix("<code>") {
        let end = body.find("</code")?;
        let closing = if body[end..].starts_with("</code>") { 7 } else { 6 };
        return Some((&body[..end], "<code>".len() + end + closing));
    }
    if let Some(body) = text.strip_prefix('`') {
        let end = body.find('`')?;
        return Some((&body[..end], end + 2));
    }
    let tag = ["{@code ", "{@literal ", "{@linkplain ", "{@link "]
        .into_iter()
        .find(|tag| text.starts_with(tag))?;
    let body = &text[tag.len()..];
    let end = body.find('}')?;
    Some((body[..end].trim_start_matches('#'), tag.len() + end + 1))
}

fn emphasis(text: &str) -> Option<(&'static str, usize)> {
    const TAGS: &[(&str, &str)] =
        &[("b", "**"), ("strong", "**"), ("i", "*"), ("em", "*"), ("tt", "`")];
    let (closing, name) = match text.strip_prefix("</") {
        Some(name) => (1, name),
        None => (0, text.strip_prefix('<')?),
    };
    TAGS.iter().find_map(|(tag, mark)| {
        let after = name.strip_prefix(tag)?;
        after.starts_with('>').then_some((*mark, tag.len() + 2 + closing))
    })
}

fn unescaped(code: &str) -> String {
    code.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

pub(crate) fn wrap(line: &str, width: usize) -> Vec<String> {
    let hanging = if line.starts_with("- ") { "  " } else { "" };
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in line.split(' ') {
        let length = current.chars().count() + 1 + word.chars().count();
        if length > width && !current.trim().is_empty() && !starts_block(word) {
            lines.push(std::mem::replace(&mut current, format!("{hanging}{word}")));
        } else {
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
    }
    lines.push(current);
    lines
}

/// Returns whether the word would begin a list at the start of a line in a paragraph. Of the
/// numbers, only 1 can.
fn starts_block(word: &str) -> bool {
    matches!(word, "-" | "+" | "*" | "1." | "1)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_translated() {
        let text = "\n * Uses <code>a_b</code> and {@code Vec<T>} or {@link Some#thing}.\n * <p>\n\
                    * <b>WARNING:</b> low.\n *\n * See https://aeron.io/x.\n * @param a gone\n * gone\n";
        assert_eq!(
            markdown(text),
            "Uses `a_b` and `Vec<T>` or `Some#thing`.\n\n**WARNING:** low.\n\nSee <https://aeron.io/x>."
        );
    }

    #[test]
    fn what_rustdoc_would_misread_is_escaped() {
        assert_eq!(markdown(" a <x> b [y] 2 * 3 "), "a \\<x\\> b \\[y\\] 2 \\* 3");
        assert_eq!(markdown("aeron_close() and SO_RCVBUF"), "`aeron_close()` and `SO_RCVBUF`");
    }

    #[test]
    fn a_broken_closing_tag_of_aeron() {
        assert_eq!(markdown("as <code>id</code. For"), "as `id`. For");
    }

    #[test]
    fn lists_and_code() {
        let text = "One of\n<ul>\n<li>first</li>\n<li>second [x]</li>\n</ul>\nSo:\n@code\n  a < b[0]\n@endcode\nEnd";
        assert_eq!(
            markdown(text),
            "One of\n\n- first\n\n- second \\[x\\]\n\nSo:\n\n```text\n  a < b[0]\n```\n\nEnd"
        );
    }

    #[test]
    fn a_crooked_end_leaves_nothing() {
        assert_eq!(markdown("\n * False to not.\n * "), "False to not.");
        assert_eq!(markdown("*\n * Text.\n * *"), "Text.");
        assert_eq!(markdown(" @return nothing "), "");
    }

    #[test]
    fn lines_are_wrapped_without_starting_a_list() {
        let text = format!("{} - 1. {}", "a".repeat(90), "b".repeat(20));
        let lines = comment(&text, 4);
        assert_eq!(lines, format!("    /// {} - 1.\n    /// {}\n", "a".repeat(90), "b".repeat(20)));
        let long = comment(&"word ".repeat(60), 4);
        assert!(long.lines().count() > 2 && long.lines().all(|line| line.len() <= WIDTH), "{long}");
    }

    #[test]
    fn descriptions_fit_setters_and_getters() {
        assert_eq!(neutral("Specify the channel"), "The channel.");
        assert_eq!(neutral("Specify whether or not\n\nMore"), "Whether or not.\n\nMore");
        assert_eq!(neutral("Property name for default value."), "Default value.");
        assert_eq!(neutral("Set sail."), "Set sail.");
        assert_eq!(without_time_unit("Timeout, in nanoseconds, to wait."), "Timeout to wait.");
        assert_eq!(without_time_unit("Interval (in nanoseconds) between."), "Interval between.");
    }
}
