//! Texts of others, made safe to print.

use std::fmt::{self, Display, Write};

/// Displays a text with its control characters escaped, such as `\n` and `\u{1b}`.
///
/// Labels, channels and errors come from other processes and hosts. Printed as they are, they could
/// forge lines of a log, control a terminal, or show their letters in another order. A backslash
/// stays as it is. JSON needs none of this: its writers escape by their own rules.
///
/// Neither allocates nor blocks.
///
/// ```
/// use rusteron_core::printable::Printable;
///
/// assert_eq!(Printable("a\nb\u{1b}[2J \u{202e}é").to_string(), r"a\nb\u{1b}[2J \u{202e}é");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Printable<T>(pub T);

impl<T: Display> Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut start = 0;
        for (index, control) in text.char_indices().filter(|&(_, char)| is_escaped(char)) {
            self.0.write_str(&text[start..index])?;
            write!(self.0, "{}", control.escape_default())?;
            start = index + control.len_utf8();
        }
        self.0.write_str(&text[start..])
    }
}

/// Returns whether a character is not printed as it is: control characters, separators of lines and
/// paragraphs, and what changes the direction of a text.
pub fn is_escaped(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_escaped_and_nothing_else() {
        let cases = [
            ("plain é ☃ \\ \"", "plain é ☃ \\ \""),
            ("a\r\n\tb\0", r"a\r\n\tb\u{0}"),
            ("\u{1b}]0;title\u{7}\u{7f}\u{9b}31m", r"\u{1b}]0;title\u{7}\u{7f}\u{9b}31m"),
            ("\u{202a}\u{202e}\u{2066}\u{2069}", r"\u{202a}\u{202e}\u{2066}\u{2069}"),
            ("\u{200e}\u{200f}\u{61c}\u{2028}", r"\u{200e}\u{200f}\u{61c}\u{2028}"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(Printable(text).to_string(), expected);
        }
        assert_eq!(Printable(format_args!("{}: {}", "a\n", 1)).to_string(), r"a\n: 1");
    }
}
