//! Inputs for `--check`.

use std::fmt::Write as _;

/// Returns lines of `OPERATION ARGUMENT`, the argument in JSON.
pub fn cases() -> String {
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

/// One line for each class of argument, and for each limit.
const SMALL: &str = r#"
ping null
successor 41
successor -1
successor -0
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
transform -0
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
