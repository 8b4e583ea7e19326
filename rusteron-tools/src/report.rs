//! The findings of a command.

use std::io::{self, Write};

use rusteron_core::printable::is_escaped;
use rusteron_core::program::Failure;
use serde::Serialize;

use crate::text;

/// The findings of a command. People read the lines, programs the serialised form.
pub(crate) trait Report: Serialize {
    /// The lines that stay in place when the other lines are scrolled.
    fn header(&self) -> Vec<String>;

    /// The lines below the header.
    fn body(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Prints a report to standard output.
pub(crate) fn print(report: &impl Report, json: bool) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if json {
        out.write_all(&to_json(report)?)?;
        writeln!(out)?;
    } else {
        let lines = lines(report).concat();
        out.write_all((lines.join("\n") + "\n").as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// Returns the lines of a report, with header and body apart. Parts of them come from other
/// processes, which must not control the terminal.
pub(crate) fn lines(report: &impl Report) -> [Vec<String>; 2] {
    [report.header(), report.body()]
        .map(|lines| lines.iter().map(|line| text::printable(line)).collect())
}

/// Returns a value in JSON, on one line.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let json =
        serde_json::to_string(value).map_err(|error| Failure::run("cannot write JSON", error))?;
    Ok(printable_json(json).into_bytes())
}

/// Escapes the characters that JSON allows in a text, and that control a terminal. All of them have
/// four digits.
fn printable_json(json: String) -> String {
    if !json.contains(is_escaped) {
        return json;
    }
    json.chars().fold(String::new(), |mut text, char| {
        match is_escaped(char) {
            true => text += &format!("\\u{:04x}", u32::from(char)),
            false => text.push(char),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_no_control_characters() {
        let hostile = "a\n\u{1b}\u{7f}\u{9b}\u{202e}\u{2069}\\é";
        let json = String::from_utf8(to_json(&hostile).expect("JSON")).expect("UTF-8");
        assert_eq!(json, r#""a\n\u001b\u007f\u009b\u202e\u2069\\é""#);
        assert_eq!(serde_json::from_str::<String>(&json).expect("JSON"), hostile);
    }

    #[test]
    fn lines_have_no_control_characters() {
        #[derive(Serialize)]
        struct Hostile;

        impl Report for Hostile {
            fn header(&self) -> Vec<String> {
                vec!["a\nb".to_owned()]
            }

            fn body(&self) -> Vec<String> {
                vec!["\u{1b}[2J".to_owned()]
            }
        }

        assert_eq!(lines(&Hostile), [[r"a\nb"], [r"\u{1b}[2J"]]);
    }
}
