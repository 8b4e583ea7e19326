//! All settings as a file of properties.

use std::env;
use std::fmt::Write as _;

use rusteron_media_driver::Context;

use crate::variables::{VARIABLES, Value};

/// Returns a file of properties with the settings of a context, one a line. The file gives a driver
/// the same settings again. A setting that is not set and has no default is a comment.
pub(crate) fn describe(context: &Context) -> String {
    let mut text = String::new();
    for (name, _, value) in VARIABLES {
        let set = env::var(name).ok().filter(|value| !value.is_empty());
        let value = match value {
            Value::Of(get) => Some(get(context)),
            Value::Named(get) => set.or_else(|| get(context).map(str::to_owned)),
            Value::Verbatim => set,
            Value::Unread => {
                let _ = writeln!(text, "# {name} is read by no part of the driver");
                continue;
            }
        };
        let _ = match value.filter(|value| !value.is_empty()) {
            Some(value) => writeln!(text, "{name}={value}"),
            None => writeln!(text, "# {name} is not set"),
        };
    }
    text
}
