//! Arguments and results.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

/// Levels of lists and maps in a value, the innermost values included.
pub const DEPTH_LIMIT: usize = 64;
/// Most values in a value, itself included.
pub const NODE_LIMIT: usize = 65_534;

/// The kind of a body. The number is the body's template in `schema.xml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
#[expect(missing_docs, reason = "see `Body`")]
pub enum Kind {
    Void = 10,
    Integer = 11,
    Text = 12,
    Integers = 13,
    CreateObject = 14,
    CallObject = 15,
    ObjectValue = 16,
    Value = 17,
}

/// An argument, a result, or the text of an error.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Nothing.
    Void,
    /// An integer.
    Integer(i64),
    /// A text.
    Text(String),
    /// Integers.
    Integers(Vec<i64>),
    /// The argument of [`Operation::Create`](crate::Operation::Create).
    CreateObject {
        /// The new object's value.
        initial_value: i64,
        /// The amount of the first call.
        amount: i64,
    },
    /// The argument of [`Operation::Call`](crate::Operation::Call).
    CallObject {
        /// The object.
        object_id: i64,
        /// The amount that is added.
        amount: i64,
    },
    /// An object after a call.
    ObjectValue {
        /// The object.
        object_id: i64,
        /// Its value after the call.
        value: i64,
    },
    /// A dynamically typed value.
    Value(Value),
}

impl Body {
    /// Returns the kind of this body.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Void => Kind::Void,
            Self::Integer(_) => Kind::Integer,
            Self::Text(_) => Kind::Text,
            Self::Integers(_) => Kind::Integers,
            Self::CreateObject { .. } => Kind::CreateObject,
            Self::CallObject { .. } => Kind::CallObject,
            Self::ObjectValue { .. } => Kind::ObjectValue,
            Self::Value(_) => Kind::Value,
        }
    }
}

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
}

/// The error for bytes that are not the expected message or body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(String);

impl Malformed {
    /// Returns an error with a text for the user.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Malformed {}
