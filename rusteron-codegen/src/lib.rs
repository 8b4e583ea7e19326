//! Generates rusteron's safe wrappers of repetitive C declarations, at build time.
//!
//! The input is the text of rusteron-sys's raw bindings, and Aeron's C headers for their comments.
//! The output is Rust text that a crate `include!`s. Three kinds of declarations are repetitive
//! enough:
//!
//! - [`ContextSpec`], setters and getters of a context, with `Duration`, `&str`, `Path` and enums
//!   instead of numbers and pointers;
//! - [`ConstantsSpec`], structs that Aeron fills in, as owned Rust structs;
//! - [`EnumSpec`], enums.
//!
//! Nothing is guessed, and nothing is left out without an error. A function that cannot be
//! generated must be named as written by hand. A setting without a comment must be described. A
//! string setter must say who owns the string. A name that Aeron no longer has is an error. All
//! errors are reported at once.
//!
//! Two further outputs are for tests. One is a list of every function of the headers. With this
//! list and [`coverage_problems`], a crate shows that it covers all functions. The other is
//! [a call for every setting](Generator::generate_round_trips) that can be set and read.
//!
//! # What the using crate provides
//!
//! The context type, in scope where the output is included:
//!
//! - `fn as_ptr(&self) -> *mut aeron_..._context_t`, valid as long as the value lives;
//! - for [retained](Setting::retained) strings `fn retain(&mut self, value: CString) -> *const
//!   c_char`, which keeps each string until the C context is closed.
//!
//! The support module, whose path the specs name:
//!
//! - `type Result<T>` and `trait Fallible`, implemented for `c_int`. Its method `fn
//!   into_result(self) -> Result<..>` makes an error of a negative number;
//! - `fn c_string(setting: &'static str, value: &str) -> Result<CString>`, which refuses NUL, and
//!   `fn c_path(setting: &'static str, path: &Path) -> Result<CString>`, which also refuses empty
//!   paths and paths longer than Aeron's own buffer, because Aeron cuts such paths off without an
//!   error;
//! - `fn nanos(setting: &'static str, value: Duration) -> Result<u64>`, and `millis` likewise, which
//!   rounds up; a setter of an `int64_t`, which Aeron 1.54 does not have, needs `nanos_i64` or
//!   `millis_i64`;
//! - `unsafe fn lossy<'a>(*const c_char) -> Cow<'a, str>` and
//!   `unsafe fn path<'a>(*const c_char) -> &'a Path`, which read NULL as empty.
//!
//! # Example
//!
//! ```no_run
//! use rusteron_codegen::{ContextSpec, Generator, Setting};
//!
//! # fn main() -> Result<(), rusteron_codegen::Error> {
//! let generator = Generator::from_build_env(&["client.rs"], &["aeronc.h"])?;
//! generator.print_rerun_if_changed();
//! generator
//!     .context(
//!         ContextSpec::new("Context", "aeron_context", "rusteron_sys", "crate::ffi")
//!             .setting(Setting::new("dir").path().copied())
//!             .hand_written("aeron_context_init", "Context::new"),
//!     )
//!     .write_to_out_dir("generated.rs")
//! # }
//! ```

mod bindings;
mod constants;
mod context;
mod coverage;
mod defaults;
mod doc;
mod enumeration;
mod error;
mod header;
mod name;
mod setting;
mod template;

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

pub use constants::ConstantsSpec;
pub use context::ContextSpec;
pub use coverage::{Generated, Omissions, Sources, coverage_problems};
pub use enumeration::EnumSpec;
pub use error::Error;
pub use setting::Setting;

/// A file that the generator reads: its name, for errors, and its text.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file's name, as shown in errors.
    pub name: String,
    /// The file's content.
    pub text: String,
}

impl Source {
    /// Creates a source from a name and a text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }
}

/// Collects specs and generates their code.
#[derive(Debug)]
pub struct Generator {
    bindings: bindings::Bindings,
    comments: header::Comments,
    defaults: defaults::Defaults,
    sources: Vec<String>,
    inputs: Vec<PathBuf>,
    contexts: Vec<ContextSpec>,
    constants: Vec<ConstantsSpec>,
    enums: Vec<EnumSpec>,
}

impl Generator {
    /// Creates a generator for the given bindings and headers.
    ///
    /// # Errors
    ///
    /// If bindings are not valid Rust.
    pub fn new(bindings: &[Source], headers: &[Source]) -> Result<Self, Error> {
        let mut parsed = bindings::Bindings::default();
        for source in bindings {
            parsed.add(&source.name, &source.text)?;
        }
        let mut comments = header::Comments::default();
        for source in headers {
            comments.add(&source.text);
        }
        Ok(Self {
            bindings: parsed,
            comments,
            defaults: defaults::Defaults::default(),
            sources: bindings.iter().chain(headers).map(|source| source.name.clone()).collect(),
            inputs: Vec::new(),
            contexts: Vec::new(),
            constants: Vec::new(),
            enums: Vec::new(),
        })
    }

    /// Creates a generator for a build script. Finds the named bindings in `DEP_AERON_BINDINGS` and
    /// the named headers in the directories of `DEP_AERON_INCLUDE`. rusteron-sys publishes both
    /// variables to crates that depend on it directly.
    ///
    /// # Errors
    ///
    /// If a variable is not set, a file is not found or cannot be read, or bindings are not Rust.
    pub fn from_build_env(bindings: &[&str], headers: &[&str]) -> Result<Self, Error> {
        let bindings_dir = [PathBuf::from(variable("DEP_AERON_BINDINGS")?)];
        let includes = variable("DEP_AERON_INCLUDE")?;
        let include_dirs: Vec<_> = env::split_paths(&includes).collect();
        let mut inputs = Vec::new();
        let bindings = read_all(bindings, &bindings_dir, &mut inputs)?;
        let headers = read_all(headers, &include_dirs, &mut inputs)?;
        Ok(Self { inputs, ..Self::new(&bindings, &headers)? })
    }

    /// Reads the defaults and ranges of settings from C's sources, for their documentation. The
    /// sources are the files with the macros, and the file that reads the environment variables.
    pub fn defaults(mut self, sources: &[Source]) -> Self {
        sources.iter().for_each(|source| self.defaults.add(&source.text));
        self
    }

    /// Reads [defaults](Self::defaults) in files of the directories of `DEP_AERON_INCLUDE`.
    ///
    /// # Errors
    ///
    /// As [`from_build_env`](Self::from_build_env).
    pub fn defaults_from_build_env(mut self, files: &[&str]) -> Result<Self, Error> {
        let includes = variable("DEP_AERON_INCLUDE")?;
        let dirs: Vec<_> = env::split_paths(&includes).collect();
        let sources = read_all(files, &dirs, &mut self.inputs)?;
        Ok(self.defaults(&sources))
    }

    /// Returns the files that [`from_build_env`](Self::from_build_env) read.
    pub fn inputs(&self) -> &[PathBuf] {
        &self.inputs
    }

    /// Prints a `cargo::rerun-if-changed` line for each of the [inputs](Self::inputs).
    pub fn print_rerun_if_changed(&self) {
        for input in &self.inputs {
            println!("cargo::rerun-if-changed={}", input.display());
        }
    }

    /// Adds the setters and getters of a context.
    pub fn context(mut self, spec: ContextSpec) -> Self {
        self.contexts.push(spec);
        self
    }

    /// Adds a struct of constants.
    pub fn constants(mut self, spec: ConstantsSpec) -> Self {
        self.constants.push(spec);
        self
    }

    /// Adds an enum; contexts of the same generator use it for their settings.
    pub fn enumeration(mut self, spec: EnumSpec) -> Self {
        self.enums.push(spec);
        self
    }

    /// Returns the Rust text.
    ///
    /// # Errors
    ///
    /// If names are missing, unknown or contradictory in the specs. The error has all of them.
    pub fn generate(&self) -> Result<String, Error> {
        let (out, _) = self.generate_with_methods()?;
        // Paths and names in specs are unchecked until here.
        syn::parse_file(&out)
            .map_err(|error| Error::new(format!("the generated text is not Rust: {error}")))?;
        Ok(out)
    }

    /// Returns an expression of type [`Generated`] for a coverage test to `include!`. It has all
    /// functions that the headers declare, and all that generated methods wrap.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate).
    pub fn generate_coverage(&self) -> Result<String, Error> {
        let (_, methods) = self.generate_with_methods()?;
        let wrapped = methods.iter().map(|method| &method.function);
        Ok(format!(
            "{}rusteron_codegen::Generated {{\n    declared: &[\n{}    ],\n    wrapped: &[\n{}    \
             ],\n}}\n",
            self.first_line(),
            list(self.comments.declared().iter()),
            list(wrapped)
        ))
    }

    /// Returns a block for a test to `include!` that sets and reads every setting. For each setter
    /// whose setting can be read as well, the block has a call of the test's macro `round_trip!`,
    /// such as `round_trip!(set_mtu_length, mtu_length, value);`. The last word is
    ///
    /// - `value` if the setter takes what the getter returns;
    /// - `text` for `&str` in and `Cow<str>` out;
    /// - `path` for `impl AsRef<Path>` in and `&Path` out;
    /// - `choice` for a type in and an `Option` of it out.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate).
    pub fn generate_round_trips(&self) -> Result<String, Error> {
        let (_, methods) = self.generate_with_methods()?;
        let mut out = self.first_line() + "{\n";
        for context::RoundTrip { setter, getter, kind } in
            methods.iter().filter_map(|method| method.round_trip.as_ref())
        {
            let _ = writeln!(out, "    round_trip!({setter}, {getter}, {kind});");
        }
        Ok(out + "}\n")
    }

    fn first_line(&self) -> String {
        format!("// Generated by rusteron-codegen from {}.\n\n", self.sources.join(", "))
    }

    fn generate_with_methods(&self) -> Result<(String, Vec<context::Wrapped>), Error> {
        let mut problems = Vec::new();
        let mut methods = Vec::new();
        let mut out = self.first_line();
        for spec in &self.enums {
            out += &spec.generate(&self.bindings, &self.comments, &mut problems);
        }
        for spec in &self.constants {
            out += &spec.generate(&self.bindings, &self.comments, &mut problems);
        }
        for spec in &self.contexts {
            out += &spec.generate(
                &self.bindings,
                (&self.comments, &self.defaults),
                &self.enums,
                &mut methods,
                &mut problems,
            );
        }
        Error::check(problems)?;
        Ok((out, methods))
    }

    /// Generates and writes the text to a file.
    ///
    /// # Errors
    ///
    /// As [`generate`](Self::generate), and if the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        write_file(path.as_ref(), self.generate()?)
    }

    /// Generates and writes the text to a file in the build script's `OUT_DIR`.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write), and if `OUT_DIR` is not set.
    pub fn write_to_out_dir(&self, file_name: &str) -> Result<(), Error> {
        self.write(Path::new(&variable("OUT_DIR")?).join(file_name))
    }

    /// Generates the text for a [coverage test](Self::generate_coverage), and writes it to a file
    /// in the build script's `OUT_DIR`.
    ///
    /// # Errors
    ///
    /// As [`write_to_out_dir`](Self::write_to_out_dir).
    pub fn write_coverage_to_out_dir(&self, file_name: &str) -> Result<(), Error> {
        write_file(&Path::new(&variable("OUT_DIR")?).join(file_name), self.generate_coverage()?)
    }

    /// Generates the text for a [test of all settings](Self::generate_round_trips), and writes it
    /// to a file in the build script's `OUT_DIR`.
    ///
    /// # Errors
    ///
    /// As [`write_to_out_dir`](Self::write_to_out_dir).
    pub fn write_round_trips_to_out_dir(&self, file_name: &str) -> Result<(), Error> {
        write_file(&Path::new(&variable("OUT_DIR")?).join(file_name), self.generate_round_trips()?)
    }
}

/// Returns the elements of an array, one a line.
fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(|name| format!("        {name:?},\n")).collect()
}

fn write_file(path: &Path, text: String) -> Result<(), Error> {
    fs::write(path, text).map_err(|error| Error::new(format!("{}: {error}", path.display())))
}

fn variable(name: &str) -> Result<std::ffi::OsString, Error> {
    env::var_os(name).ok_or_else(|| {
        let hint = "run this from a build script whose package depends on rusteron-sys directly";
        Error::new(format!("{name} is not set: {hint}"))
    })
}

fn read_all(
    names: &[&str],
    dirs: &[PathBuf],
    inputs: &mut Vec<PathBuf>,
) -> Result<Vec<Source>, Error> {
    let read = |name: &&str| {
        let path = dirs.iter().map(|dir| dir.join(name)).find(|path| path.is_file());
        let path = path.ok_or_else(|| {
            let dirs: Vec<_> = dirs.iter().map(|dir| dir.display().to_string()).collect();
            Error::new(format!("{name} is in none of: {}", dirs.join(", ")))
        })?;
        let text = fs::read_to_string(&path)
            .map_err(|error| Error::new(format!("{}: {error}", path.display())))?;
        inputs.push(path);
        Ok(Source::new(*name, text))
    };
    names.iter().map(read).collect()
}
