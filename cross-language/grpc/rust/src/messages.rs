//! Conversions between bodies and the messages of `service.proto`.

use std::collections::BTreeMap;

use cross_language::{Body, Malformed, Value};

use crate::protocol::value::Kind;
use crate::protocol::{self, CallObject, CreateObject, Integer, Integers, ObjectValue, Text, Void};

/// Conversions of a message.
pub(crate) trait Message: Sized {
    /// Returns the body of a message.
    fn into_body(self) -> Result<Body, Malformed>;

    /// Returns the message of a body.
    fn from_body(body: Body) -> Result<Self, Malformed>;
}

fn other_kind<T>(body: &Body) -> Result<T, Malformed> {
    Err(Malformed::new(format!("no {:?}", body.kind())))
}

impl Message for Void {
    fn into_body(self) -> Result<Body, Malformed> {
        Ok(Body::Void)
    }

    fn from_body(body: Body) -> Result<Self, Malformed> {
        match body {
            Body::Void => Ok(Self {}),
            body => other_kind(&body),
        }
    }
}

impl Message for Integer {
    fn into_body(self) -> Result<Body, Malformed> {
        Ok(Body::Integer(self.value))
    }

    fn from_body(body: Body) -> Result<Self, Malformed> {
        match body {
            Body::Integer(value) => Ok(Self { value }),
            body => other_kind(&body),
        }
    }
}

impl Message for Text {
    fn into_body(self) -> Result<Body, Malformed> {
        Ok(Body::Text(self.value))
    }

    fn from_body(body: Body) -> Result<Self, Malformed> {
        match body {
            Body::Text(value) => Ok(Self { value }),
            body => other_kind(&body),
        }
    }
}

impl Message for Integers {
    fn into_body(self) -> Result<Body, Malformed> {
        Ok(Body::Integers(self.values))
    }

    fn from_body(body: Body) -> Result<Self, Malformed> {
        match body {
            Body::Integers(values) => Ok(Self { values }),
            body => other_kind(&body),
        }
    }
}

impl Message for CreateObject {
    fn into_body(self) -> Result<Body, Malformed> {
        Ok(Body::CreateObject { initial_value: self.initial_value, amount: self.amount })
    }

    fn from_body(body: Body) -> Result<Self, Malformed> {
        match body {
            Body::CreateObject { initial_value, amount } => Ok(Self { initial_value, amount }),
            body => other_kind(&body),
        }
    }
}

impl Message for CallObject {
    fn into_body(self) -> Result<Body, Malformed> {
        Ok(Body::CallObject { object_id: self.object_id, amount: self.amount })
    }

    fn from_body(body: Body) -> Result<Self, Malformed> {
        match body {
            Body::CallObject { object_id, amount } => Ok(Self { object_id, amount }),
            body => other_kind(&body),
        }
    }
}

impl Message for ObjectValue {
    fn into_body(self) -> Result<Body, Malformed> {
        Ok(Body::ObjectValue { object_id: self.object_id, value: self.value })
    }

    fn from_body(body: Body) -> Result<Self, Malformed> {
        match body {
            Body::ObjectValue { object_id, value } => Ok(Self { object_id, value }),
            body => other_kind(&body),
        }
    }
}

impl Message for protocol::Value {
    fn into_body(self) -> Result<Body, Malformed> {
        Ok(Body::Value(value(self)?))
    }

    fn from_body(body: Body) -> Result<Self, Malformed> {
        match body {
            Body::Value(value) => Ok(message(String::new(), value)),
            body => other_kind(&body),
        }
    }
}

fn value(message: protocol::Value) -> Result<Value, Malformed> {
    Ok(match message.kind() {
        Kind::Null => Value::Null,
        Kind::Boolean => Value::Bool(message.boolean),
        Kind::Integer => Value::Integer(message.integer),
        Kind::Number => match message.number() {
            number if number.is_finite() => Value::Number(number),
            number => return Err(Malformed::new(format!("the number {number}"))),
        },
        Kind::Text => Value::Text(message.text),
        Kind::List => {
            Value::List(message.members.into_iter().map(value).collect::<Result<_, _>>()?)
        }
        Kind::Map => {
            let mut members = BTreeMap::new();
            for mut member in message.members {
                let key = std::mem::take(&mut member.key);
                if members.contains_key(&key) {
                    return Err(Malformed::new("a key occurs twice"));
                }
                members.insert(key, value(member)?);
            }
            Value::Map(members)
        }
    })
}

fn message(key: String, value: Value) -> protocol::Value {
    let mut message = protocol::Value { key, ..Default::default() };
    let kind = match value {
        Value::Null => Kind::Null,
        Value::Bool(value) => {
            message.boolean = value;
            Kind::Boolean
        }
        Value::Integer(value) => {
            message.integer = value;
            Kind::Integer
        }
        Value::Number(value) => {
            message.number = Some(value);
            Kind::Number
        }
        Value::Text(value) => {
            message.text = value;
            Kind::Text
        }
        Value::List(values) => {
            message.members =
                values.into_iter().map(|value| self::message(String::new(), value)).collect();
            Kind::List
        }
        Value::Map(members) => {
            message.members =
                members.into_iter().map(|(key, value)| self::message(key, value)).collect();
            Kind::Map
        }
    };
    message.set_kind(kind);
    message
}
