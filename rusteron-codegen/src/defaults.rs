//! Defaults and ranges of settings, found in C's sources by environment variable.

use std::collections::HashMap;

/// Values of settings in C's sources.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    /// The text of every macro without parameters, by its name.
    macros: HashMap<String, String>,
    /// The expressions for the minimum and the maximum, by the macro that names the variable.
    ranges: HashMap<String, (String, String)>,
}

/// Known values of one setting.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) default: Option<i128>,
    pub(crate) least: Option<i128>,
    pub(crate) most: Option<i128>,
}

/// Names of C's standard library, and macros that are just a number.
const KNOWN: &[(&str, i128)] = &[
    ("false", 0),
    ("true", 1),
    ("AERON_NULL_VALUE", -1),
    ("INT32_MIN", i32::MIN as i128),
    ("INT32_MAX", i32::MAX as i128),
    ("INT64_MIN", i64::MIN as i128),
    ("INT64_MAX", i64::MAX as i128),
    ("LLONG_MAX", i64::MAX as i128),
];

impl Defaults {
    /// Adds the macros of a file, and the ranges with which the file reads environment variables.
    pub(crate) fn add(&mut self, text: &str) {
        for line in text.replace("\\\n", " ").lines() {
            let definition = line.trim().strip_prefix("#define ").unwrap_or_default().trim_start();
            if let Some((name, body)) = definition.split_once(char::is_whitespace) {
                let body = body.trim().trim_end_matches(';');
                self.macros.entry(name.to_owned()).or_insert_with(|| body.to_owned());
            }
        }
        for call in text.split("aeron_config_parse_").skip(1) {
            let arguments = call.split_once('(').and_then(|(_, rest)| arguments(rest));
            if let Some([variable, _, _, least, most]) = arguments.as_deref() {
                self.ranges.insert(variable.clone(), (least.clone(), most.clone()));
            }
        }
    }

    /// Returns the known values of the setting with an environment variable.
    pub(crate) fn of(&self, environment: &str) -> Values {
        let quoted = format!("{environment:?}");
        let names = self.macros.iter().filter(|(_, body)| **body == quoted);
        let Some((name, _)) = names.min() else { return Values::default() };
        let base = name.trim_end_matches("_ENV_VAR");
        let default = ["_DEFAULT", "_NS_DEFAULT", "_MS_DEFAULT"]
            .iter()
            .find_map(|ending| self.macros.get(&format!("{base}{ending}")))
            .and_then(|body| self.value(body));
        let (least, most) = self.ranges.get(name).cloned().unwrap_or_default();
        Values { default, least: self.value(&least), most: self.value(&most) }
    }

    /// Returns the value of a sum or product of numbers and macros. `None` for anything else.
    fn value(&self, expression: &str) -> Option<i128> {
        let mut rest = expression.trim();
        let value = self.sum(&mut rest)?;
        rest.is_empty().then_some(value)
    }

    fn sum(&self, rest: &mut &str) -> Option<i128> {
        let mut value = self.product(rest)?;
        while take(rest, "+") {
            value = value.checked_add(self.product(rest)?)?;
        }
        Some(value)
    }

    fn product(&self, rest: &mut &str) -> Option<i128> {
        let mut value = self.operand(rest)?;
        while take(rest, "*") {
            value = value.checked_mul(self.operand(rest)?)?;
        }
        Some(value)
    }

    fn operand(&self, rest: &mut &str) -> Option<i128> {
        if take(rest, "-") {
            return Some(-self.operand(rest)?);
        }
        let name = word(rest);
        match name {
            // In `INT64_C(1000)`, the macro's argument is the number.
            "" | "INT32_C" | "UINT16_C" | "UINT32_C" | "INT64_C" | "UINT64_C" => {
                let value = if take(rest, "(") { self.sum(rest)? } else { return None };
                take(rest, ")").then_some(value)
            }
            _ if name.starts_with(|c: char| c.is_ascii_digit()) => name.parse().ok(),
            _ => {
                let known = KNOWN.iter().find(|(known, _)| *known == name);
                let known = known.map(|(_, value)| *value);
                known.or_else(|| self.macros.get(name).and_then(|body| self.value(body)))
            }
        }
    }
}

/// Returns the arguments of a call, from behind its opening parenthesis.
fn arguments(text: &str) -> Option<Vec<String>> {
    let (mut depth, mut found) = (0, vec![String::new()]);
    for character in text.chars() {
        match character {
            ')' if depth == 0 => return Some(found),
            ',' if depth == 0 => {
                found.push(String::new());
                continue;
            }
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        let last = found.last_mut()?;
        if !(last.is_empty() && character.is_whitespace()) {
            last.push(character);
        }
    }
    None
}

fn take(rest: &mut &str, token: &str) -> bool {
    let Some(after) = rest.strip_prefix(token) else { return false };
    *rest = after.trim_start();
    true
}

/// Splits off a name or number, which may be empty.
fn word<'a>(rest: &mut &'a str) -> &'a str {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let (word, after) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
    *rest = after.trim_start();
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, variable: &str) -> Values {
        let mut defaults = Defaults::default();
        defaults.add(text);
        defaults.of(variable)
    }

    #[test]
    fn environment_variable_finds_defaults() {
        let text = "
            #define TINY_WAIT_TIMEOUT_ENV_VAR \"TINY_TIMEOUT\"
            #define TINY_WAIT_TIMEOUT_NS_DEFAULT (10 * 1000 * INT64_C(1000));
            #define TINY_LENGTH_ENV_VAR \\
                \"TINY_LENGTH\"
            #define TINY_LENGTH_DEFAULT (TINY_LENGTH_LEAST * 2 + 1)
            #define TINY_LENGTH_LEAST UINT32_C(8 * 1024)
            #define TINY_FLAG_ENV_VAR \"TINY_FLAG\"
            #define TINY_FLAG_DEFAULT (true)
            #define TINY_MODE_ENV_VAR \"TINY_MODE\"
            #define TINY_MODE_DEFAULT (TINY_MODE_ONE)
            #define TINY_SIZE_ENV_VAR \"TINY_SIZE\"
            #define TINY_SIZE_DEFAULT (sizeof(int) + 1)
            context->wait = aeron_config_parse_duration_ns(
                TINY_WAIT_TIMEOUT_ENV_VAR, getenv(TINY_WAIT_TIMEOUT_ENV_VAR), context->wait, -1, INT64_MAX);
            context->length = (size_t)aeron_config_parse_size64(TINY_LENGTH_ENV_VAR,
                getenv(TINY_LENGTH_ENV_VAR), context->length, TINY_LENGTH_LEAST, 64 * (1 + 1));";
        let values = |default, least, most| Values { default, least, most };
        let most = Some(i128::from(i64::MAX));
        assert_eq!(of(text, "TINY_TIMEOUT"), values(Some(10_000_000), Some(-1), most));
        assert_eq!(of(text, "TINY_LENGTH"), values(Some(16_385), Some(8192), Some(128)));
        assert_eq!(of(text, "TINY_FLAG"), values(Some(1), None, None));
        for unknown in ["TINY_MODE", "TINY_SIZE", "TINY_OTHER"] {
            assert_eq!(of(text, unknown), Values::default(), "{unknown}");
        }
    }
}
