//! Values as `repr` shows them.

pub(crate) fn py_bool(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}
