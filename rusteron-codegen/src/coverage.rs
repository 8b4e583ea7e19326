//! Checks that every C function of a header is reached by a Rust item.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use crate::error::Error;
use crate::header;

/// The generator's list of a header's functions, for a test.
/// [`Generator::write_coverage_to_out_dir`](crate::Generator::write_coverage_to_out_dir) writes it.
#[derive(Debug, Clone, Copy)]
pub struct Generated {
    /// Every function that the header declares, in the header's order.
    pub declared: &'static [&'static str],
    /// The functions that generated Rust methods wrap.
    pub wrapped: &'static [&'static str],
}

/// One row of a table of coverage, made by [`coverage!`](crate::coverage).
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The C functions of the row.
    pub functions: &'static [&'static str],
    /// The kind of coverage.
    pub how: How,
}

/// Kinds of coverage of a C function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The crate calls the function, or hands its address to C.
    Calls,
    /// The crate does the same without calling the function.
    Replaces,
    /// No Rust item reaches the function, for this reason.
    Omits(&'static str),
}

/// A table of C functions and the Rust items that reach them, as an array of [`Row`]s.
///
/// Each row is about one or more functions:
///
/// - `calls f, g => Item, Item;` names Rust items that reach functions that the crate calls;
/// - `replaces f => Item;` names Rust items that do what a function does without calling it;
/// - `omits f, g: "reason";` says why no item reaches some functions.
///
/// An item is the path of a function, method or constructor. If the item does not exist or is not
/// public, the table does not compile. An item with type parameters, `impl Trait` included, needs
/// `as` and a function type that determines them; in that type, `_` can be inferred. `drop::<T>`
/// names `T`'s `Drop`.
///
/// ```
/// # struct Client;
/// # impl Client {
/// #     fn connect() -> Self { Self }
/// #     fn publish(&self, channel: impl AsRef<str>) {}
/// # }
/// let table = rusteron_codegen::coverage! {
///     calls aeron_init, aeron_start => Client::connect;
///     calls aeron_close => drop::<Client>;
///     replaces aeron_async_add_publication => Client::publish as fn(_, &'static str);
///     omits aeron_alloc: "memory is Rust's";
/// };
/// assert_eq!(table[0].functions, ["aeron_init", "aeron_start"]);
/// ```
///
/// ```compile_fail
/// rusteron_codegen::coverage! { calls strlen => String::length; };
/// ```
#[macro_export]
macro_rules! coverage {
    (@how calls $($item:path)+) => { $crate::How::Calls };
    (@how replaces $($item:path)+) => { $crate::How::Replaces };
    (@how omits $reason:literal) => { $crate::How::Omits($reason) };
    ($(
        $how:ident $($function:ident),+
        $(=> $($item:path $(as $signature:ty)?),+)?
        $(: $reason:literal)?
    ;)*) => {{
        $($($(let _ = $item $(as $signature)?;)+)?)*
        [$($crate::Row {
            functions: &[$(stringify!($function)),+],
            how: $crate::coverage!(@how $how $($($item)+)? $($reason)?),
        }),*]
    }};
}

/// Words of a crate's sources: the identifiers in its code, and the words in its documentation.
#[derive(Debug, Default)]
pub struct Sources {
    code: HashSet<String>,
    texts: HashSet<String>,
}

impl Sources {
    /// Creates an empty set of sources.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds all Rust files below a directory.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or does not consist of Rust's tokens.
    pub fn rust_dir(mut self, dir: impl AsRef<Path>) -> Result<Self, Error> {
        self.add_rust_dir(dir.as_ref())?;
        Ok(self)
    }

    /// Adds the code of a C file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn c_file(mut self, path: impl AsRef<Path>) -> Result<Self, Error> {
        let code = header::without_comments(&read(path.as_ref())?);
        // Names of headers are no function names.
        let code = code.lines().filter(|line| !line.trim_start().starts_with("#include"));
        self.code.extend(code.flat_map(words).map(str::to_owned));
        Ok(self)
    }

    fn add_rust_dir(&mut self, dir: &Path) -> Result<(), Error> {
        let failed = |error| Error::new(format!("{}: {error}", dir.display()));
        for entry in fs::read_dir(dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                self.add_rust_dir(&path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let tokens = read(&path)?.parse::<TokenStream>();
                let failed = |error| Error::new(format!("{}: {error}", path.display()));
                self.add_tokens(tokens.map_err(failed)?);
            }
        }
        Ok(())
    }

    /// Ordinary comments are no tokens. Doc comments are: attributes with a text.
    fn add_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Ident(identifier) => {
                    self.code.insert(identifier.to_string());
                }
                TokenTree::Literal(literal) => {
                    self.texts.extend(words(&literal.to_string()).map(str::to_owned));
                }
                TokenTree::Punct(_) => {}
            }
        }
    }
}

/// Returns the problems of a table; empty if there are none.
///
/// Every declared function must be wrapped by the generator or be in the table, once. No other
/// function may be in the table. A [called](How::Calls) function must be in the code of the
/// sources. A [replaced](How::Replaces) function must not be in the code, but must be in the
/// documentation. There may be at most `most_reasons` different reasons.
pub fn coverage_problems(
    generated: Generated,
    table: &[Row],
    sources: &Sources,
    most_reasons: usize,
) -> Vec<String> {
    let mut problems = Vec::new();
    let declared: HashSet<_> = generated.declared.iter().collect();
    let mut covered: HashSet<_> = generated.wrapped.iter().collect();
    let mut reasons = HashSet::new();
    for row in table {
        if let How::Omits(reason) = row.how {
            reasons.insert(reason);
        }
        for function in row.functions {
            if !declared.contains(function) {
                problems.push(format!("{function} is in the table, but not in the header"));
                continue;
            }
            if !covered.insert(function) {
                problems.push(format!("{function} is covered twice"));
            }
            let in_code = sources.code.contains(*function);
            match row.how {
                How::Calls if !in_code => {
                    problems.push(format!("{function} is said to be called, but no code has it"));
                }
                How::Replaces if in_code => {
                    problems.push(format!("{function} is said to be replaced, but code has it"));
                }
                How::Replaces if !sources.texts.contains(*function) => {
                    problems.push(format!("{function} is replaced, but no documentation says so"));
                }
                _ => {}
            }
        }
    }
    for function in generated.declared.iter().filter(|function| !covered.contains(function)) {
        problems.push(format!("{function} is neither reached nor has a reason"));
    }
    if reasons.len() > most_reasons {
        problems.push(format!("{} reasons are more than {most_reasons}", reasons.len()));
    }
    problems
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| Error::new(format!("{}: {error}", path.display())))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}
