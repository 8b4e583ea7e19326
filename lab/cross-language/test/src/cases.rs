//! Inputs for `--check`, and the responses as JSON: the mapping of protobuf.

use std::fmt::Write as _;
use std::sync::LazyLock;

use cross_language::modes::{bytes, digits};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, Value};
use serde_json::{Value as Json, json};

use crate::programs::project;

/// Longer results are shown as their length and hash.
const RESULT_LIMIT: usize = 240;

/// The messages of `service.proto`.
static MESSAGES: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let files = protox::compile(["service.proto"], [project()]).expect("a schema");
    DescriptorPool::from_file_descriptor_set(files).expect("complete descriptors")
});

fn descriptor(name: &str) -> MessageDescriptor {
    MESSAGES.get_message_by_name(&format!("crosslanguage.{name}")).expect("a message")
}

/// The lines of `SMALL`, and of longer arguments.
fn cases() -> String {
    let mut lines = SMALL.trim_start().to_owned();
    let mut add = |operation: &str, argument: &str| {
        let _ = writeln!(lines, "{operation} {argument}");
    };
    add("running_sums", &list(64, |index| index.to_string()));
    add("running_sums", &list(65, |index| index.to_string()));
    add("transform", &nested("[", 32, "]"));
    add("transform", &nested(r#"{"a":"#, 31, "}").replacen(":}", ":{}}", 1));
    add("total", &list(10_000, |index| (index * index - 7).to_string()));
    add("squares", "10000");
    add("transform_all", &list(10_000, dynamic));
    // The objects are those of the first lines.
    add("call", r#"{"objectId":1,"amount":0}"#);
    lines
}

/// Returns requests as lines for `--check`.
pub fn input() -> String {
    let line = |line: &str| {
        let (operation, argument) = line.split_once(' ').expect("an argument");
        let argument = argument_of(operation, serde_json::from_str(argument).expect("JSON"));
        let request = json!({ operation: argument });
        let request =
            DynamicMessage::deserialize(descriptor("Request"), request).expect("a request");
        digits(&request.encode_to_vec()) + "\n"
    };
    cases().lines().map(line).collect()
}

/// Returns the responses that a caller has printed, as in `expected.txt`.
pub fn results(printed: &str) -> String {
    let line = |line: &str| {
        let bytes = bytes(line).expect("hexadecimal digits");
        shortened(&text(&bytes)) + "\n"
    };
    printed.lines().map(line).collect()
}

/// Returns the mapping's argument for a plain one.
fn argument_of(operation: &str, argument: Json) -> Json {
    match operation {
        "running_sums" | "total" => json!({ "values": argument }),
        "transform" => value(argument),
        "transform_all" => value(argument)["list"].take(),
        _ => argument,
    }
}

fn value(plain: Json) -> Json {
    match plain {
        Json::Null => json!({ "null": {} }),
        Json::Bool(_) => json!({ "boolean": plain }),
        Json::Number(ref number) if number.is_i64() => json!({ "integer": plain }),
        Json::Number(_) => json!({ "number": plain }),
        Json::String(ref text) => match text.as_str() {
            // JSON has no such numbers.
            "NaN" | "Infinity" | "-Infinity" => json!({ "number": text }),
            _ => json!({ "text": plain }),
        },
        Json::Array(values) => {
            json!({ "list": { "values": values.into_iter().map(value).collect::<Vec<_>>() } })
        }
        Json::Object(members) => {
            let members = members.into_iter().map(|(key, plain)| (key, value(plain)));
            json!({ "map": { "members": members.collect::<serde_json::Map<_, _>>() } })
        }
    }
}

/// Returns a response as JSON with sorted keys, without the text of a failure, which each language
/// words differently. Asserts that no message has an unknown field.
pub fn text(response: &[u8]) -> String {
    let response = DynamicMessage::decode(descriptor("Response"), response).expect("a response");
    assert_known(&response);
    let mut json = serde_json::to_value(response).expect("JSON");
    if let Some(failure) = json.get_mut("failure").and_then(Json::as_object_mut) {
        assert!(failure.remove("text").is_some(), "{failure:?} says what is wrong");
    }
    json.to_string()
}

fn assert_known(message: &DynamicMessage) {
    assert_eq!(message.unknown_fields().count(), 0, "unknown fields: {message:?}");
    for (_, field) in message.fields() {
        match field {
            Value::Message(message) => assert_known(message),
            Value::List(values) => {
                values.iter().filter_map(Value::as_message).for_each(assert_known)
            }
            Value::Map(map) => map.values().filter_map(Value::as_message).for_each(assert_known),
            _ => {}
        }
    }
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
ping {}
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
transform "NaN"
transform "Infinity"
transform "-Infinity"
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
"#;

fn list(count: i64, element: impl Fn(i64) -> String) -> String {
    let elements: Vec<String> = (0..count).map(element).collect();
    format!("[{}]", elements.join(","))
}

/// A list in a list or a map in a map, so many levels deep.
fn nested(begin: &str, depth: usize, end: &str) -> String {
    begin.repeat(depth) + &end.repeat(depth)
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
