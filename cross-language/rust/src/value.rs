//! Dynamically typed values.

use std::collections::BTreeMap;
use std::fmt;

use crate::Malformed;

/// Levels of lists and maps in a value, the innermost values included.
pub const DEPTH_LIMIT: usize = 64;
/// Most values in a value, itself included.
pub const NODE_LIMIT: usize = 65_534;

/// A dynamically typed value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Integer(i64),
    /// A finite floating point number.
    Number(f64),
    /// A text.
    Text(String),
    /// Values in an order.
    List(Vec<Value>),
    /// Values by unique keys, which contain no U+0000. Their order has no meaning.
    Map(BTreeMap<String, Value>),
}

impl Value {
    /// Returns the number of values in this value, itself included.
    pub fn node_count(&self) -> usize {
        let children: usize = match self {
            Self::List(values) => values.iter().map(Self::node_count).sum(),
            Self::Map(values) => values.values().map(Self::node_count).sum(),
            _ => 0,
        };
        children + 1
    }

    /// Adds to a map.
    ///
    /// # Errors
    /// The map has the key, or the key contains U+0000.
    pub(crate) fn insert(
        map: &mut BTreeMap<String, Self>,
        key: String,
        value: Self,
    ) -> Result<(), Malformed> {
        if key.contains('\0') {
            return Err(Malformed::new("U+0000 in a key"));
        }
        if map.contains_key(&key) {
            return Err(Malformed::new("a key occurs twice"));
        }
        map.insert(key, value);
        Ok(())
    }
}

/// The canonical text of `CONTRACT.md`, equal in all languages.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "0x{:016x}", value.to_bits()),
            Self::Text(text) => write_text(f, text),
            Self::List(values) => {
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index == 0 { "[" } else { "," })?;
                }
                f.write_str(if values.is_empty() { "[]" } else { "]" })
            }
            Self::Map(values) => {
                for (index, (key, value)) in values.iter().enumerate() {
                    f.write_str(if index == 0 { "{" } else { "," })?;
                    write_text(f, key)?;
                    write!(f, ":{value}")?;
                }
                f.write_str(if values.is_empty() { "{}" } else { "}" })
            }
        }
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(f, "\\{character}")?,
            '\0'..' ' => write!(f, "\\u{:04x}", character as u32)?,
            _ => write!(f, "{character}")?,
        }
    }
    f.write_str("\"")
}
