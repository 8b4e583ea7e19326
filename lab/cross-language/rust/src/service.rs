//! The service without a transport: each request of a session gives one response.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use prost::Message;

use crate::contract::{OBJECT_LIMIT, OPEN_CALL_LIMIT, SMALL_ARRAY_LIMIT, SQUARES_LIMIT};
use crate::protocol::value::Kind;
use crate::protocol::{
    CallObject, CreateObject, Failure, Integers, Members, ObjectValue, Operation, Outcome, Request,
    Response, Status, Value, Values,
};

/// The objects and open calls of a session.
#[derive(Debug)]
pub struct Service {
    callback_timeout: Duration,
    /// The value of object 1, of object 2, …
    objects: Vec<i64>,
    /// Calls that await an answer to a callback, by correlation id.
    open_calls: HashMap<i64, OpenCall>,
}

/// A call of `callback`.
#[derive(Debug, Clone, Copy)]
struct OpenCall {
    /// The argument of the callback that awaits its answer.
    current: i64,
    last: i64,
    sum: i64,
    deadline: Instant,
}

impl Service {
    /// Begins a session.
    pub fn new(callback_timeout: Duration) -> Self {
        Self { callback_timeout, objects: Vec::new(), open_calls: HashMap::new() }
    }

    /// Decodes and executes a request.
    pub fn receive(&mut self, message: &[u8]) -> Response {
        match Request::decode(message) {
            Ok(request) => self.respond(request),
            Err(error) => {
                // No call has this correlation id.
                Response::new(0, Err(Failure::new(Status::MalformedMessage, error.to_string())))
            }
        }
    }

    /// Executes a request. A failure has changed no object.
    pub fn respond(&mut self, request: Request) -> Response {
        let id = request.correlation_id;
        let result = match request.operation {
            Some(operation) => self.execute(id, operation),
            None => Err(Failure::new(Status::UnknownOperation, "a request of no known operation")),
        };
        Response::new(id, result)
    }

    fn execute(&mut self, id: i64, operation: Operation) -> Result<Outcome, Failure> {
        Ok(match operation {
            Operation::Ping(void) => Outcome::Ping(void),
            Operation::Successor(value) => Outcome::Successor(add(value, 1)?),
            Operation::Reverse(text) => Outcome::Reverse(reversed(text)),
            Operation::RunningSums(values) => Outcome::RunningSums(running_sums(values)?),
            Operation::Create(argument) => Outcome::Create(self.create(argument)?),
            Operation::Call(argument) => Outcome::Call(self.call(argument)?),
            Operation::Callback(count) => self.callback(id, count)?,
            Operation::Transform(value) => Outcome::Transform(transform(value)?),
            Operation::Total(Integers { values }) => {
                Outcome::Total(values.into_iter().try_fold(0, add)?)
            }
            Operation::Squares(count @ 0..=SQUARES_LIMIT) => Outcome::Squares(Integers {
                values: (0..count).map(|number| number * number).collect(),
            }),
            Operation::Squares(count) => {
                return Err(invalid(format!("{count} squares: 0 to {SQUARES_LIMIT}")));
            }
            Operation::TransformAll(values) => Outcome::TransformAll(transform_all(values)?),
            Operation::CallbackResult(value) => self.callback_answer(id, Ok(value))?,
            Operation::CallbackError(text) => self.callback_answer(id, Err(text))?,
        })
    }

    fn create(&mut self, argument: CreateObject) -> Result<ObjectValue, Failure> {
        if self.objects.len() == OBJECT_LIMIT {
            return Err(Failure::new(Status::LimitReached, format!("{OBJECT_LIMIT} objects")));
        }
        let value = add(argument.initial_value, argument.amount)?;
        self.objects.push(value);
        Ok(ObjectValue { object_id: self.objects.len() as i64, value })
    }

    fn call(&mut self, argument: CallObject) -> Result<ObjectValue, Failure> {
        let CallObject { object_id, amount } = argument;
        let index = usize::try_from(object_id).ok().and_then(|id| id.checked_sub(1));
        let value = index
            .and_then(|index| self.objects.get_mut(index))
            .ok_or_else(|| Failure::new(Status::UnknownObject, format!("no object {object_id}")))?;
        *value = add(*value, amount)?;
        Ok(ObjectValue { object_id, value: *value })
    }

    fn callback(&mut self, id: i64, count: i64) -> Result<Outcome, Failure> {
        if !(0..=SMALL_ARRAY_LIMIT as i64).contains(&count) {
            return Err(invalid(format!("{count} callbacks: 0 to {SMALL_ARRAY_LIMIT}")));
        }
        if self.open_calls.contains_key(&id) {
            return Err(invalid(format!("call {id} is open")));
        }
        if count == 0 {
            return Ok(Outcome::Callback(0));
        }
        if self.open_calls.len() == OPEN_CALL_LIMIT {
            return Err(Failure::new(
                Status::LimitReached,
                format!("{OPEN_CALL_LIMIT} open calls"),
            ));
        }
        Ok(self.call_back(id, 1, count, 0))
    }

    fn call_back(&mut self, id: i64, current: i64, last: i64, sum: i64) -> Outcome {
        let deadline = Instant::now() + self.callback_timeout;
        self.open_calls.insert(id, OpenCall { current, last, sum, deadline });
        Outcome::CallbackArgument(current)
    }

    fn callback_answer(
        &mut self,
        id: i64,
        answer: Result<i64, String>,
    ) -> Result<Outcome, Failure> {
        let call = self
            .open_calls
            .remove(&id)
            .ok_or_else(|| Failure::new(Status::UnknownCall, format!("call {id} is not open")))?;
        let value = answer.map_err(|text| Failure::new(Status::CallbackFailed, text))?;
        let sum = add(call.sum, value)?;
        Ok(match call.current {
            current if current < call.last => self.call_back(id, current + 1, call.last, sum),
            _ => Outcome::Callback(sum),
        })
    }

    /// Ends calls whose callback has not been answered in time. Returns their responses.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Response> {
        let text = format!("no answer to a callback within {:?}", self.callback_timeout);
        let failure = Failure::new(Status::CallbackFailed, text);
        let late = self.open_calls.iter().filter(|(_, call)| now > call.deadline);
        let late: Vec<i64> = late.map(|(id, _)| *id).collect();
        self.open_calls.retain(|id, _| !late.contains(id));
        late.into_iter().map(|id| Response::new(id, Err(failure.clone()))).collect()
    }
}

fn invalid(text: impl Into<String>) -> Failure {
    Failure::new(Status::InvalidArgument, text)
}

fn add(value: i64, amount: i64) -> Result<i64, Failure> {
    let sum = value.checked_add(amount);
    sum.ok_or_else(|| invalid(format!("{value} + {amount} is out of range")))
}

fn running_sums(mut integers: Integers) -> Result<Integers, Failure> {
    let count = integers.values.len();
    if count > SMALL_ARRAY_LIMIT {
        return Err(invalid(format!("{count} integers: at most {SMALL_ARRAY_LIMIT}")));
    }
    let mut sum = 0;
    for value in &mut integers.values {
        sum = add(sum, *value)?;
        *value = sum;
    }
    Ok(integers)
}

fn reversed(text: String) -> String {
    if !text.is_ascii() {
        return text.chars().rev().collect();
    }
    let mut bytes = text.into_bytes();
    bytes.reverse();
    String::from_utf8(bytes).expect("ASCII")
}

/// Changes each value in a way that shows that its type was understood.
fn transform(value: Value) -> Result<Value, Failure> {
    let kind = match value.kind.ok_or_else(|| invalid("a value of no known kind"))? {
        Kind::Null(void) => Kind::Null(void),
        Kind::Boolean(value) => Kind::Boolean(!value),
        Kind::Integer(value) => Kind::Integer(
            value.checked_neg().ok_or_else(|| invalid(format!("-({value}) is out of range")))?,
        ),
        Kind::Number(value) => Kind::Number(value / 2.0),
        Kind::Text(text) => Kind::Text(reversed(text)),
        Kind::List(values) => Kind::List(transform_all(values)?),
        Kind::Map(Members { members }) => {
            let transformed = |(key, value): (String, Value)| match key.contains('\0') {
                true => Err(invalid("U+0000 in a key")),
                false => Ok((key, transform(value)?)),
            };
            let members = members.into_iter().map(transformed).collect::<Result<_, _>>()?;
            Kind::Map(Members { members })
        }
    };
    Ok(Value { kind: Some(kind) })
}

fn transform_all(values: Values) -> Result<Values, Failure> {
    let values = values.values.into_iter().rev().map(transform).collect::<Result<_, _>>()?;
    Ok(Values { values })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        Service::new(Duration::from_secs(60))
    }

    fn create(initial_value: i64, amount: i64) -> Operation {
        Operation::Create(CreateObject { initial_value, amount })
    }

    #[test]
    fn failed_calls_change_no_object() {
        let mut service = service();
        assert!(service.execute(1, create(i64::MAX, 1)).is_err());
        let object = ObjectValue { object_id: 1, value: i64::MAX };
        let created = service.execute(2, create(i64::MAX - 1, 1)).unwrap();
        assert_eq!(created, Outcome::Create(object));
        let call = |amount| Operation::Call(CallObject { object_id: 1, amount });
        let error = service.execute(3, call(1)).unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument);
        assert_eq!(service.execute(4, call(0)).unwrap(), Outcome::Call(object));
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
        let mut service = service();
        for id in 0..OBJECT_LIMIT as i64 {
            service.execute(id, create(0, 0)).unwrap();
        }
        let error = service.execute(-1, create(0, 0)).unwrap_err();
        assert_eq!(error.status(), Status::LimitReached);
    }
}
