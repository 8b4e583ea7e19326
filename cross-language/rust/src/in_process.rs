//! Calls within one process: the operations, without messages and channels.

use crate::contract::SMALL_ARRAY_LIMIT;
use crate::service::{Failure, Objects, add};
use crate::{Body, Encoding, Operation, Status};

/// A session of a caller in the same process. Arguments and results have the bytes of bodies over Aeron.
#[must_use]
#[derive(Debug, Default)]
pub struct InProcess {
    objects: Objects,
}

impl InProcess {
    /// Calls an operation by its number, with the bytes of its argument. Replaces the content of `result` by the bytes
    /// of the result, or of the text of an error. `on_callback` answers callbacks.
    ///
    /// The text of an unknown encoding is binary.
    pub fn call(
        &mut self,
        operation: u8,
        encoding: u8,
        argument: &[u8],
        on_callback: impl FnMut(i64) -> Result<i64, String>,
        result: &mut Vec<u8>,
    ) -> Status {
        let known = Encoding::from_number(encoding);
        let called = match known {
            Some(known) => self.execute(operation, known, argument, on_callback),
            None => Err(Failure::new(Status::UnknownEncoding, format!("no encoding {encoding}"))),
        };
        let encoding = known.unwrap_or(Encoding::Binary);
        result.clear();
        let failure = match called {
            Ok(body) => match body.write(encoding, result) {
                Ok(()) => return Status::Ok,
                Err(error) => Failure::new(Status::ResponseTooLong, error.to_string()),
            },
            Err(failure) => failure,
        };
        result.clear();
        // The texts of failures are far shorter than the longest one that can be written.
        let _ = Body::Text(failure.text).write(encoding, result);
        failure.status
    }

    fn execute(
        &mut self,
        operation: u8,
        encoding: Encoding,
        argument: &[u8],
        on_callback: impl FnMut(i64) -> Result<i64, String>,
    ) -> Result<Body, Failure> {
        let operation = Operation::from_number(operation).ok_or_else(|| {
            Failure::new(Status::UnknownOperation, format!("no operation {operation}"))
        })?;
        let argument = Body::read(operation.argument(), encoding, argument)
            .map_err(|error| Failure::new(Status::MalformedBody, error.to_string()))?;
        self.execute_body(operation, argument, on_callback)
    }

    /// Calls an operation with an argument that needs no decoding.
    ///
    /// # Errors
    /// The argument is invalid, or a callback has failed. No object has changed.
    pub fn execute_body(
        &mut self,
        operation: Operation,
        argument: Body,
        mut on_callback: impl FnMut(i64) -> Result<i64, String>,
    ) -> Result<Body, Failure> {
        match argument {
            Body::Integer(count) if operation == Operation::Callback => {
                if !(0..=SMALL_ARRAY_LIMIT as i64).contains(&count) {
                    let text = format!("{count} callbacks: 0 to {SMALL_ARRAY_LIMIT}");
                    return Err(Failure::new(Status::InvalidArgument, text));
                }
                let sum = (1..=count).try_fold(0, |sum, number| {
                    let answer = on_callback(number);
                    add(sum, answer.map_err(|text| Failure::new(Status::CallbackFailed, text))?)
                })?;
                Ok(Body::Integer(sum))
            }
            argument => self.objects.execute(operation, argument),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(operation: u8, encoding: u8, argument: &[u8]) -> (Status, Vec<u8>) {
        let mut result = vec![7];
        let status = InProcess::default().call(operation, encoding, argument, Ok, &mut result);
        (status, result)
    }

    #[test]
    fn wrong_numbers_and_bodies_are_errors() {
        assert_eq!(call(2, 1, b"41"), (Status::Ok, b"42".to_vec()));
        for (operation, encoding, argument, status) in [
            (0, 1, b"41", Status::UnknownOperation),
            (2, 1, b"4]", Status::MalformedBody),
            (2, 0, b"41", Status::MalformedBody),
            (10, 1, b"-1", Status::InvalidArgument),
            (7, 1, b"65", Status::InvalidArgument),
        ] {
            let (called, text) = call(operation, encoding, argument);
            assert_eq!(called, status);
            let encoding = Encoding::from_number(encoding).unwrap();
            assert!(matches!(Body::read(crate::Kind::Text, encoding, &text), Ok(Body::Text(_))));
        }
        assert_eq!(call(2, 2, b"41").0, Status::UnknownEncoding);
    }

    #[test]
    fn failed_callback_ends_its_call() {
        let mut numbers = Vec::new();
        let callback = |number| {
            numbers.push(number);
            if number < 3 { Ok(number) } else { Err("three".to_owned()) }
        };
        let mut result = Vec::new();
        let status = InProcess::default().call(7, 1, b"9", callback, &mut result);
        assert_eq!((status, &result[..]), (Status::CallbackFailed, &b"\"three\""[..]));
        assert_eq!(numbers, [1, 2, 3]);
    }
}
