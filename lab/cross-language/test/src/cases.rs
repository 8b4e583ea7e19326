//! Inputs for `--check`, and the results as texts.

use std::fmt::Write as _;

use cross_language::modes::{bytes, digits};
use cross_language::{Body, Kind, Operation, Status, Value};
use serde_json::Value as Json;

/// Longer results are shown as their length and hash.
const RESULT_LIMIT: usize = 120;

/// The lines of `SMALL`, and of longer arguments.
fn cases() -> String {
    let mut lines = SMALL.trim_start().to_owned();
    let mut add = |operation: &str, argument: &str| {
        let _ = writeln!(lines, "{operation} {argument}");
    };
    add("running_sums", &list(64, |index| index.to_string()));
    add("running_sums", &list(65, |index| index.to_string()));
    add("transform", &nested(64));
    add("total", &list(10_000, |index| (index * index - 7).to_string()));
    add("squares", "10000");
    add("transform_all", &list(10_000, dynamic));
    // The objects are those of the first lines.
    add("call", r#"{"objectId":1,"amount":0}"#);
    lines
}

/// Returns lines of `OPERATION ARGUMENT` for `--check`.
pub fn input() -> String {
    let lines = cases();
    let line = |line: &str| {
        let (operation, argument) = line.split_once(' ').expect("an argument");
        let kind = Operation::from_name(operation).expect("an operation").argument();
        let argument = serde_json::from_str(argument).expect("JSON");
        let mut message = Vec::new();
        body(kind, &argument).write(&mut message).expect("a body within the limits");
        format!("{operation} {}\n", digits(&message))
    };
    lines.lines().map(line).collect()
}

/// Returns the results that a caller has printed, each with its number and operation, as in `expected.txt`.
pub fn results(printed: &str) -> String {
    let lines = cases();
    let line = |(index, (case, result)): (usize, (&str, &str))| {
        let (name, _) = case.split_once(' ').expect("an argument");
        let kind = Operation::from_name(name).expect("an operation").result();
        let result = match Status::from_name(result) {
            Some(status) => status.to_string(),
            None => match bytes(result).map(|bytes| Body::read(kind, &bytes)) {
                Ok(Ok(body)) => shortened(&text(&body)),
                error => format!("{error:?}: {result}"),
            },
        };
        format!("{} {name} {result}\n", index + 1)
    };
    lines.lines().zip(printed.lines()).enumerate().map(line).collect()
}

fn body(kind: Kind, argument: &Json) -> Body {
    let pair = |first: &str, second: &str| [integer(&argument[first]), integer(&argument[second])];
    match kind {
        Kind::Void => Body::Void,
        Kind::Integer => Body::Integer(integer(argument)),
        Kind::Text => Body::Text(argument.as_str().expect("a text").to_owned()),
        Kind::Integers => {
            Body::Integers(argument.as_array().expect("a list").iter().map(integer).collect())
        }
        Kind::CreateObject => {
            let [initial_value, amount] = pair("initialValue", "amount");
            Body::CreateObject { initial_value, amount }
        }
        Kind::CallObject => {
            let [object_id, amount] = pair("objectId", "amount");
            Body::CallObject { object_id, amount }
        }
        Kind::ObjectValue => unreachable!("no argument"),
        Kind::Value => Body::Value(value(argument)),
    }
}

fn integer(json: &Json) -> i64 {
    json.as_i64().expect("an integer")
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::Integer(integer),
            None => Value::Number(number.as_f64().expect("a number")),
        },
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(values) => Value::List(values.iter().map(value).collect()),
        Json::Object(values) => {
            Value::Map(values.iter().map(|(key, member)| (key.clone(), value(member))).collect())
        }
    }
}

/// Returns JSON without blanks, keys in the order of their UTF-8 bytes, an `f64` as its bits in hexadecimal.
fn text(body: &Body) -> String {
    let integers =
        |values: &[i64]| Value::List(values.iter().copied().map(Value::Integer).collect());
    let pair = |first: &str, one: i64, second: &str, other: i64| {
        let fields = [(first, one), (second, other)];
        let fields = fields.map(|(name, value)| (name.to_owned(), Value::Integer(value)));
        Value::Map(fields.into())
    };
    value_text(&match body {
        Body::Void => Value::Null,
        Body::Integer(value) => Value::Integer(*value),
        Body::Text(text) => Value::Text(text.clone()),
        Body::Integers(values) => integers(values),
        Body::CreateObject { initial_value, amount } => {
            pair("amount", *amount, "initialValue", *initial_value)
        }
        Body::CallObject { object_id, amount } => pair("amount", *amount, "objectId", *object_id),
        Body::ObjectValue { object_id, value } => pair("objectId", *object_id, "value", *value),
        Body::Value(value) => value.clone(),
    })
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Number(value) => format!("0x{:016x}", value.to_bits()),
        Value::Text(text) => quoted(text),
        Value::List(values) => {
            let values: Vec<String> = values.iter().map(value_text).collect();
            format!("[{}]", values.join(","))
        }
        Value::Map(values) => {
            let member =
                |(key, value): (&String, &Value)| format!("{}:{}", quoted(key), value_text(value));
            let members: Vec<String> = values.iter().map(member).collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|character| match character {
        '"' | '\\' => format!("\\{character}"),
        '\0'..' ' => format!("\\u{:04x}", character as u32),
        _ => character.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

fn shortened(text: &str) -> String {
    if text.len() <= RESULT_LIMIT {
        return text.to_owned();
    }
    // FNV-1a
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{} bytes {hash:016x}", text.len())
}

/// One line for each class of argument, and for each limit.
const SMALL: &str = r#"
ping null
successor 41
successor -1
successor 9007199254740992
successor 9223372036854775806
successor 9223372036854775807
reverse ""
reverse "hello"
reverse "Gr\u00fc\u00dfe \ud83e\udd80"
reverse "\"quoted\" \\ \n\u0000\u001f\u007f"
running_sums []
running_sums [1,2,3]
running_sums [-9223372036854775808,9223372036854775807,1]
running_sums [9223372036854775807,1]
create {"initialValue":10,"amount":5}
create {"initialValue":-1,"amount":-1}
create {"initialValue":9223372036854775807,"amount":1}
call {"objectId":1,"amount":7}
call {"objectId":2,"amount":-9223372036854775807}
call {"objectId":2,"amount":9223372036854775807}
call {"objectId":1,"amount":9223372036854775807}
call {"objectId":1,"amount":0}
call {"objectId":3,"amount":1}
call {"objectId":0,"amount":1}
call {"objectId":-1,"amount":1}
call {"objectId":4294967297,"amount":1}
callback 0
callback 1
callback 12
callback 13
callback 65
callback -1
transform null
transform true
transform false
transform 0
transform -7
transform 9223372036854775807
transform -9223372036854775808
transform 0.1
transform -0.0
transform 1.0
transform 1e300
transform 5e-324
transform 1.7976931348623157e308
transform 123456789.125
transform "\u00e9\ud83e\udd80"
transform []
transform {}
transform [1,[2,[3,[]]],{"a":{"b":null}}]
transform {"z":1,"a":2.5,"\u00e9":"x","\ud83e\udd80":false,"\ue000":null,"":[true],"\"":{}}
total []
total [9223372036854775807,1,-2]
total [9223372036854775807,-2,1]
squares 0
squares 5
squares 20001
squares -1
transform_all []
transform_all [null,1,"two"]
transform_all 7
"#;

fn list(count: i64, element: impl Fn(i64) -> String) -> String {
    let elements: Vec<String> = (0..count).map(element).collect();
    format!("[{}]", elements.join(","))
}

/// A list in a list, so many levels deep.
fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

fn dynamic(index: i64) -> String {
    match index % 8 {
        0 => "null".to_owned(),
        1 => (index % 3 == 0).to_string(),
        2 => (index * 1_000_003).to_string(),
        3 => format!("{}.25", index * 7),
        4 => format!("\"text {index} \u{fc}\""),
        5 => format!("[{index},\"in a list\"]"),
        6 => format!("{{\"index\":{index},\"half\":{index}.5}}"),
        _ => format!("{index}e-3"),
    }
}
