//! Bodies in JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::body::{Body, Kind, Malformed};
use crate::contract::LIST_LIMIT;
use crate::value::{DEPTH_LIMIT, NODE_LIMIT, Value};

/// Appends a body.
pub(crate) fn write(body: &Body, buffer: &mut Vec<u8>) -> Result<(), Malformed> {
    let result = match body {
        Body::Void => serde_json::to_writer(buffer, &()),
        Body::Integer(value) => serde_json::to_writer(buffer, value),
        Body::Text(text) => serde_json::to_writer(buffer, text),
        Body::Integers(values) => serde_json::to_writer(buffer, values),
        Body::CreateObject { initial_value, amount } => serde_json::to_writer(
            buffer,
            &Pair(["initialValue", "amount"], [*initial_value, *amount]),
        ),
        Body::CallObject { object_id, amount } => {
            serde_json::to_writer(buffer, &Pair(["objectId", "amount"], [*object_id, *amount]))
        }
        Body::ObjectValue { object_id, value } => {
            serde_json::to_writer(buffer, &Pair(["objectId", "value"], [*object_id, *value]))
        }
        Body::Value(value) => serde_json::to_writer(buffer, value),
    };
    result.map_err(malformed)
}

/// Reads a body of a kind.
pub(crate) fn read(kind: Kind, bytes: &[u8]) -> Result<Body, Malformed> {
    // serde_json reads bytes that are no UTF-8 where no text is expected.
    let text = std::str::from_utf8(bytes).map_err(|error| Malformed::new(error.to_string()))?;
    let checked = match kind {
        Kind::Void | Kind::Text => Cow::Borrowed(text),
        _ => with_integers(text)?,
    };
    let text = &*checked;
    match kind {
        Kind::Void => serde_json::from_str(text).map(|()| Body::Void).map_err(malformed),
        Kind::Integer => serde_json::from_str(text).map(Body::Integer).map_err(malformed),
        Kind::Text => serde_json::from_str(text).map(Body::Text).map_err(malformed),
        Kind::Integers => {
            let values: Vec<i64> = serde_json::from_str(text).map_err(malformed)?;
            match values.len() {
                0..=LIST_LIMIT => Ok(Body::Integers(values)),
                count => Err(Malformed::new(format!("{count} elements: at most {LIST_LIMIT}"))),
            }
        }
        Kind::CreateObject => read_pair(text, ["initialValue", "amount"])
            .map(|[initial_value, amount]| Body::CreateObject { initial_value, amount }),
        Kind::CallObject => read_pair(text, ["objectId", "amount"])
            .map(|[object_id, amount]| Body::CallObject { object_id, amount }),
        Kind::ObjectValue => read_pair(text, ["objectId", "value"])
            .map(|[object_id, value]| Body::ObjectValue { object_id, value }),
        Kind::Value => {
            let value: Value = serde_json::from_str(text).map_err(malformed)?;
            let (nodes, depth) = (value.node_count(), depth(&value));
            if nodes > NODE_LIMIT || depth > DEPTH_LIMIT {
                return Err(Malformed::new(format!(
                    "{nodes} values of depth {depth}: at most {NODE_LIMIT} of {DEPTH_LIMIT}"
                )));
            }
            Ok(Body::Value(value))
        }
    }
}

/// Checks the range of integers, and returns the text with `-0` as ` 0`. serde_json reads `-0`, and integers of more than
/// 64 bits, as an `f64`.
fn with_integers(text: &str) -> Result<Cow<'_, str>, Malformed> {
    let bytes = text.as_bytes();
    let mut result = Cow::Borrowed(text);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at += text_length(&bytes[at..]),
            b'-' | b'0'..=b'9' => {
                let is_of_number =
                    |x: &&u8| matches!(x, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let end = at + bytes[at..].iter().take_while(is_of_number).count();
                let number = &text[at..end];
                if !number.contains(['.', 'e', 'E']) && number.parse::<i64>().is_err() {
                    return Err(Malformed::new("an integer that is out of range"));
                }
                if number == "-0" {
                    result.to_mut().replace_range(at..end, " 0");
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    Ok(result)
}

/// Length of a JSON text with its quotes, in bytes.
fn text_length(bytes: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = bytes.iter().skip(1).position(|&byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(bytes.len(), |end| end + 2)
}

fn malformed(error: serde_json::Error) -> Malformed {
    Malformed::new(error.to_string())
}

fn depth(value: &Value) -> usize {
    let children = match value {
        Value::List(values) => values.iter().map(depth).max(),
        Value::Map(values) => values.values().map(depth).max(),
        _ => None,
    };
    children.unwrap_or(0) + 1
}

/// An object of two integers.
struct Pair([&'static str; 2], [i64; 2]);

impl Serialize for Pair {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().zip(&self.1))
    }
}

/// Reads an object with exactly two integers of these names.
fn read_pair(text: &str, names: [&str; 2]) -> Result<[i64; 2], Malformed> {
    let Value::Map(values) = serde_json::from_str(text).map_err(malformed)? else {
        return Err(Malformed::new("no object"));
    };
    match names.map(|name| values.get(name)) {
        [Some(Value::Integer(first)), Some(Value::Integer(second))] if values.len() == 2 => {
            Ok([*first, *second])
        }
        _ => Err(Malformed::new(format!("not an object of the integers {names:?}"))),
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => serializer.serialize_i64(*value),
            Self::Number(value) => serializer.serialize_f64(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(values) => serializer.collect_seq(values),
            Self::Map(values) => {
                let mut map = serializer.serialize_map(Some(values.len()))?;
                for (key, value) in values {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        let integer = i64::try_from(value);
        integer.map(Value::Integer).map_err(|_| E::custom(format!("{value} is out of range")))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = access.next_element()? {
            values.push(value);
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut values = BTreeMap::new();
        while let Some((key, value)) = access.next_entry()? {
            Value::insert(&mut values, key, value).map_err(de::Error::custom)?;
        }
        Ok(Value::Map(values))
    }
}
