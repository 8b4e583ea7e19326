//! Generates the settings of rusteron's contexts from tables, at build time.
//!
//! Each crate with a context has a file `settings.txt`: the one place with the name, type, default, range, environment
//! variable and description of each setting. [`Table`] describes the file. From it come
//!
//! - setters and getters with `Duration`, `&str`, `&Path` and enumerations in place of numbers and pointers;
//! - the macro `for_each_setting`, by which tests and Python's keyword arguments reach all of them;
//! - the static `SETTINGS`, for programs that check and show environment variables, and contexts
//!   that read them;
//! - the settings' tables in the documentation, and Python's stubs: files of the repository, compared by a test.
//!
//! A build script calls [`generate`], or [`generate_plain`] for a context whose settings are plain fields, without C.
//! The module that includes the result provides the names that the text uses. With C:
//!
//! - the context, with `fn as_ptr(&self) -> *mut aeron_..._context_t`, valid as long as the value lives, and for retained
//!   texts `fn retain(&mut self, value: CString) -> *const c_char`, which keeps each until the C context is closed;
//! - `sys`, the raw bindings, and `ffi`, the conversions `c_string`, `c_path`, `nanos`, `millis`, `lossy` and `path`;
//! - `Fallible`, whose `into_result` makes an error of a negative number, and `Result`;
//! - of the standard library `c_int`, `CStr`, `Cow`, `Duration`, `Path`; and `IdleStrategyKind`;
//! - for variables of idle strategies `function`, `IDLE_STRATEGIES`, `idle_arguments` and
//!   `idle_strategy`, and the functions that the table names.
//!
//! Without C: the context, with a field `values: Values`; `invalid`, which makes the error of a text, and `Result`; the
//! enumerations and functions that the table names; `Duration`, `Path` and `PathBuf`.
//!
//! The compiler checks most types: a row with a wrong one does not compile, because the call of C
//! does not. `text copied`, `text retained` and `path` are the same pointer in C, so the driver's
//! test `round_trips` checks these.

mod lists;
mod methods;
mod table;

use std::path::Path;
use std::{env, fs};

pub use lists::{markdown, python_stub};
pub use table::Table;

/// Writes what the table `settings.txt` of a crate says into `OUT_DIR`, for its build script: the
/// file `settings.rs`, with the methods of the type `context`, the static `SETTINGS`, and the macro
/// `for_each_setting`.
///
/// `prefix` is that of the context's C functions, such as `aeron_context`.
///
/// # Errors
/// All mistakes in the table; files that cannot be read or written; if this is no build script.
pub fn generate(context: &str, prefix: &str) -> Result<(), String> {
    write_settings(context, "settings.txt", Some(prefix))
}

/// Writes what a table says about a context without C, as [`generate`] does, with the structure
/// `Values`. The file has the table's name. A crate can have one macro `for_each_setting`, which is
/// that of the table `settings.txt`.
///
/// # Errors
/// As for [`generate`].
pub fn generate_plain(context: &str, table: &str) -> Result<(), String> {
    write_settings(context, table, None)
}

fn write_settings(context: &str, file: &str, prefix: Option<&str>) -> Result<(), String> {
    println!("cargo::rerun-if-changed={file}");
    let parse = if prefix.is_some() { Table::parse } else { Table::parse_plain };
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let table = parse(&text).map_err(|problems| format!("{file}:\n{problems}"))?;
    let crate_name = variable("CARGO_PKG_NAME")?.replace('-', "_");
    let name = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".txt");
    let mut out = methods::methods(&table, context, prefix);
    if prefix.is_none() {
        out += &methods::fields(&table);
    }
    out += &lists::settings(&table, context, &crate_name, prefix.is_none());
    if name == "settings" {
        out += &lists::macro_of_settings(&table, context, &crate_name);
    }
    let path = Path::new(&variable("OUT_DIR")?).join(format!("{name}.rs"));
    fs::write(&path, out).map_err(|error| format!("{}: {error}", path.display()))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("{name} is not set: run this from a build script"))
}
