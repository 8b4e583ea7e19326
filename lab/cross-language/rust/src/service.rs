//! The operations, without messages.

use std::{fmt, mem};

use crate::contract::{OBJECT_LIMIT, SMALL_ARRAY_LIMIT, SQUARES_LIMIT};
use crate::{Body, Operation, Status, Value};

/// The reason why an operation has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The status of the response. Never [`Status::Ok`].
    pub status: Status,
    /// The text of the response.
    pub text: String,
}

impl Failure {
    /// Returns the failure of a status other than [`Status::Ok`], with a text for the caller.
    pub fn new(status: Status, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.text)
    }
}

/// The objects of a session: values, which calls add to.
#[derive(Debug, Default)]
pub struct Objects {
    /// The value of object 1, of object 2, …
    values: Vec<i64>,
}

impl Objects {
    /// Executes an operation other than [`Operation::Callback`], which needs the caller.
    ///
    /// # Errors
    /// The argument is invalid. No object has changed.
    pub fn execute(&mut self, operation: Operation, argument: Body) -> Result<Body, Failure> {
        match (operation, argument) {
            (Operation::Ping, Body::Void) => Ok(Body::Void),
            (Operation::Successor, Body::Integer(value)) => Ok(Body::Integer(add(value, 1)?)),
            (Operation::Reverse, Body::Text(text)) => Ok(Body::Text(reversed(text))),
            (Operation::RunningSums, Body::Integers(values)) => running_sums(values),
            (Operation::Total, Body::Integers(values)) => {
                Ok(Body::Integer(values.into_iter().try_fold(0, add)?))
            }
            (Operation::Squares, Body::Integer(count @ 0..=SQUARES_LIMIT)) => {
                Ok(Body::Integers((0..count).map(|number| number * number).collect()))
            }
            (Operation::Create, Body::CreateObject { initial_value, amount }) => {
                self.create(initial_value, amount)
            }
            (Operation::Call, Body::CallObject { object_id, amount }) => {
                self.call(object_id, amount)
            }
            (Operation::Transform, Body::Value(value))
            | (Operation::TransformAll, Body::Value(value @ Value::List(_))) => {
                Ok(Body::Value(transform(value)?))
            }
            (operation, argument) => Err(Failure::new(
                Status::InvalidArgument,
                format!("{operation} accepts no such {:?}", argument.kind()),
            )),
        }
    }

    fn create(&mut self, initial_value: i64, amount: i64) -> Result<Body, Failure> {
        if self.values.len() == OBJECT_LIMIT {
            return Err(Failure::new(Status::LimitReached, format!("{OBJECT_LIMIT} objects")));
        }
        let value = add(initial_value, amount)?;
        self.values.push(value);
        Ok(Body::ObjectValue { object_id: self.values.len() as i64, value })
    }

    fn call(&mut self, object_id: i64, amount: i64) -> Result<Body, Failure> {
        let index = usize::try_from(object_id).ok().and_then(|id| id.checked_sub(1));
        let value = index
            .and_then(|index| self.values.get_mut(index))
            .ok_or_else(|| Failure::new(Status::UnknownObject, format!("no object {object_id}")))?;
        *value = add(*value, amount)?;
        Ok(Body::ObjectValue { object_id, value: *value })
    }
}

pub(crate) fn add(value: i64, amount: i64) -> Result<i64, Failure> {
    value.checked_add(amount).ok_or_else(|| {
        Failure::new(Status::InvalidArgument, format!("{value} + {amount} is out of range"))
    })
}

fn running_sums(mut values: Vec<i64>) -> Result<Body, Failure> {
    if values.len() > SMALL_ARRAY_LIMIT {
        let text = format!("{} integers: at most {SMALL_ARRAY_LIMIT}", values.len());
        return Err(Failure::new(Status::InvalidArgument, text));
    }
    let mut sum = 0;
    for value in &mut values {
        sum = add(sum, *value)?;
        *value = sum;
    }
    Ok(Body::Integers(values))
}

fn reversed(text: String) -> String {
    let mut bytes = text.into_bytes();
    reverse(&mut bytes);
    String::from_utf8(bytes).unwrap_or_else(|error| {
        // Characters of several bytes are no UTF-8 backwards.
        let mut bytes = error.into_bytes();
        reverse(&mut bytes);
        String::from_utf8(bytes).expect("the text").chars().rev().collect()
    })
}

/// Reverses bytes, eight from either end at a time, because the slice's own method is slower for long texts.
fn reverse(bytes: &mut [u8]) {
    const LENGTH: usize = size_of::<u64>();
    let middle = bytes.len() / 2;
    let (front, back) = bytes.split_at_mut(middle);
    let back_start = back.len() - middle;
    let (mut fronts, mut backs) =
        (front.chunks_exact_mut(LENGTH), back[back_start..].rchunks_exact_mut(LENGTH));
    let swapped = |word: &[u8]| {
        let word = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
        word.swap_bytes().to_ne_bytes()
    };
    for (front, back) in (&mut fronts).zip(&mut backs) {
        let new_back = swapped(front);
        front.copy_from_slice(&swapped(back));
        back.copy_from_slice(&new_back);
    }
    let (front, back) = (fronts.into_remainder(), backs.into_remainder());
    front.iter_mut().zip(back.iter_mut().rev()).for_each(|(front, back)| mem::swap(front, back));
}

/// Changes each value in a way that shows that its type was understood.
fn transform(value: Value) -> Result<Value, Failure> {
    Ok(match value {
        Value::Null => Value::Null,
        Value::Bool(value) => Value::Bool(!value),
        Value::Integer(value) => Value::Integer(value.checked_neg().ok_or_else(|| {
            Failure::new(Status::InvalidArgument, format!("-({value}) is out of range"))
        })?),
        Value::Number(value) => Value::Number(value / 2.0),
        Value::Text(text) => Value::Text(reversed(text)),
        Value::List(values) => {
            Value::List(values.into_iter().rev().map(transform).collect::<Result<_, _>>()?)
        }
        Value::Map(values) => Value::Map(
            values
                .into_iter()
                .map(|(key, value)| Ok((key, transform(value)?)))
                .collect::<Result<_, Failure>>()?,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_calls_change_no_object() {
        let mut objects = Objects::default();
        let create = Body::CreateObject { initial_value: i64::MAX, amount: 1 };
        assert!(objects.execute(Operation::Create, create).is_err());
        let create = Body::CreateObject { initial_value: i64::MAX - 1, amount: 1 };
        let created = objects.execute(Operation::Create, create).unwrap();
        assert_eq!(created, Body::ObjectValue { object_id: 1, value: i64::MAX });
        let call = |amount| Body::CallObject { object_id: 1, amount };
        let error = objects.execute(Operation::Call, call(1)).unwrap_err();
        assert_eq!(error.status, Status::InvalidArgument);
        let called = objects.execute(Operation::Call, call(0)).unwrap();
        assert_eq!(called, Body::ObjectValue { object_id: 1, value: i64::MAX });
    }

    #[test]
    fn reverse_keeps_characters_of_all_lengths() {
        for characters in ["abcdefg", "Größe 🦀"] {
            let text: String = characters.chars().cycle().take(100).collect();
            for (length, _) in text.char_indices() {
                let expected: String = text[..length].chars().rev().collect();
                assert_eq!(reversed(text[..length].to_owned()), expected);
            }
        }
    }

    #[test]
    fn objects_have_a_limit() {
        let mut objects = Objects::default();
        let create = Body::CreateObject { initial_value: 0, amount: 0 };
        for _ in 0..OBJECT_LIMIT {
            objects.execute(Operation::Create, create.clone()).unwrap();
        }
        let error = objects.execute(Operation::Create, create).unwrap_err();
        assert_eq!(error.status, Status::LimitReached);
    }
}
