//! Generates the settings of rusteron's contexts from tables, at build time.
//!
//! Each crate with a context has a file `settings.txt`: the one place with the name, type, default, range, environment
//! variable and description of each setting. [`Table`] describes the file. From it come
//!
//! - setters and getters with `Duration`, `&str`, `&Path` and enumerations in place of numbers and pointers;
//! - the macro `for_each_setting`, by which tests and Python's keyword arguments reach all of them;
//! - a list for programs that check and show environment variables;
//! - the settings' tables in the documentation, and Python's stubs: files of the repository, compared by a test.
//!
//! A build script calls [`generate`], or [`generate_plain`] for a context whose settings are plain fields, without C.
//! The module that includes the result provides the names that the text uses. With C:
//!
//! - the context, with `fn as_ptr(&self) -> *mut aeron_..._context_t`, valid as long as the value lives, and for retained
//!   texts `fn retain(&mut self, value: CString) -> *const c_char`, which keeps each until the C context is closed;
//! - `sys`, the raw bindings, and `ffi`, the conversions `c_string`, `c_path`, `nanos`, `millis`, `lossy` and `path`;
//! - `Fallible`, whose `into_result` makes an error of a negative number, and `Result`;
//! - of the standard library `c_int`, `CStr`, `Cow`, `Duration`, `Path`; and `IdleStrategyKind`.
//!
//! Without C: the context, with a field `values: Values`; `invalid`, which makes the error of a text, and `Result`; the
//! enumerations and functions that the table names; `Duration`, `Path` and `PathBuf`.
//!
//! The compiler checks the types: a row with a wrong type does not compile, because the call of C does not.
//! Tests find functions of a header that nothing wraps by the generated lists of functions.

mod header;
mod lists;
mod methods;
mod table;

use std::path::{Path, PathBuf};
use std::{env, fs};

pub use header::without_comments;
pub use lists::{markdown, python_stub};
pub use table::Table;

/// Writes what the table `settings.txt` of a crate says into `OUT_DIR`, for its build script:
///
/// - `settings.rs`: the methods of the type `context`, the static `SETTINGS`, and the macro `for_each_setting`;
/// - `coverage.rs`: for tests, a pair of `&[&str]`: the functions of the C header, and those that the methods call.
///
/// `prefix` is that of the context's C functions, such as `aeron_context`.
///
/// # Errors
/// All mistakes in the table; files that cannot be read or written; if this is no build script of a package that depends
/// on `rusteron-sys` directly.
pub fn generate(context: &str, prefix: &str, header: &str) -> Result<(), String> {
    let header_path = find_header(header)?;
    println!("cargo::rerun-if-changed={}", header_path.display());
    let declared = header::declared(&read(&header_path)?);
    let called = write_settings(context, "settings.txt", Some(prefix))?;
    write("coverage.rs", &format!("(&{declared:?}, &{called:?})\n"))
}

/// Writes what a table says about a context without C into `OUT_DIR`. For the table `settings.txt`, the file is
/// `settings.rs`: the structure `Values`, the methods of the type `context`, the static `SETTINGS`, and the macro
/// `for_each_setting`. A crate can have one such macro, so that tables of other names have none.
///
/// # Errors
/// All mistakes in the table; files that cannot be read or written.
pub fn generate_plain(context: &str, table: &str) -> Result<(), String> {
    write_settings(context, table, None).map(drop)
}

/// Returns the functions of C that the methods call.
fn write_settings(context: &str, file: &str, prefix: Option<&str>) -> Result<Vec<String>, String> {
    println!("cargo::rerun-if-changed={file}");
    let parse = if prefix.is_some() { Table::parse } else { Table::parse_plain };
    let table =
        parse(&read(Path::new(file))?).map_err(|problems| format!("{file}:\n{problems}"))?;
    let crate_name = variable("CARGO_PKG_NAME")?.replace('-', "_");
    let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    let (mut text, called) = methods::methods(&table, context, prefix);
    if prefix.is_none() {
        text += &methods::fields(&table);
    }
    text += &lists::settings(&table, context, &crate_name, prefix.is_none());
    if name == "settings" {
        text += &lists::macro_of_settings(&table, context, &crate_name);
    }
    write(&format!("{name}.rs"), &text)?;
    Ok(called)
}

fn write(name: &str, text: &str) -> Result<(), String> {
    let path = PathBuf::from(variable("OUT_DIR")?).join(name);
    fs::write(path, text).map_err(|error| format!("{name}: {error}"))
}

fn find_header(name: &str) -> Result<PathBuf, String> {
    let includes = variable("DEP_AERON_INCLUDE")?;
    let found = env::split_paths(&includes).map(|dir| dir.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| format!("{name} is in none of {includes}"))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| {
        format!("{name} is not set: run this from a build script whose package depends on rusteron-sys directly")
    })
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
