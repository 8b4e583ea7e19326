//! Arguments and results.

use std::error::Error;
use std::fmt;

use crate::{Encoding, Value, binary, json};

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

    /// Appends this body to a buffer.
    ///
    /// # Errors
    /// The body has more elements, or longer keys, than the encoding allows.
    pub fn write(&self, encoding: Encoding, buffer: &mut Vec<u8>) -> Result<(), Malformed> {
        let text = self.write_head(encoding, buffer)?;
        buffer.extend_from_slice(text);
        Ok(())
    }

    /// Appends this body to a buffer, without the bytes at the end that need no encoding. Returns these bytes: those of
    /// a binary text.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub(crate) fn write_head(
        &self,
        encoding: Encoding,
        buffer: &mut Vec<u8>,
    ) -> Result<&[u8], Malformed> {
        match encoding {
            Encoding::Binary => binary::write_head(self, buffer),
            Encoding::Json => json::write(self, buffer).map(|()| [].as_slice()),
        }
    }

    /// Reads a body of a kind.
    ///
    /// # Errors
    /// The bytes are not exactly one body of the kind in the encoding.
    pub fn read(kind: Kind, encoding: Encoding, bytes: &[u8]) -> Result<Self, Malformed> {
        match encoding {
            Encoding::Binary => binary::read(kind, bytes),
            Encoding::Json => json::read(kind, bytes),
        }
    }
}

/// The canonical text of `CONTRACT.md`, equal in all languages.
impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Void => f.write_str("null"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Text(text) => Value::Text(text.clone()).fmt(f),
            Self::Integers(values) => {
                Value::List(values.iter().copied().map(Value::Integer).collect()).fmt(f)
            }
            Self::CreateObject { initial_value, amount } => {
                write!(f, r#"{{"amount":{amount},"initialValue":{initial_value}}}"#)
            }
            Self::CallObject { object_id, amount } => {
                write!(f, r#"{{"amount":{amount},"objectId":{object_id}}}"#)
            }
            Self::ObjectValue { object_id, value } => {
                write!(f, r#"{{"objectId":{object_id},"value":{value}}}"#)
            }
            Self::Value(value) => value.fmt(f),
        }
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
