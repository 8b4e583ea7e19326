//! The options that the command lines of media driver and archive share. Options and properties
//! become environment variables.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::path::PathBuf;

use clap::{ArgAction, Args};
use rusteron_core::program::print_error;
use rusteron_core::{Error, load_properties};

use super::Problem;
use crate::{DirAccess, load_properties_from};

// No documentation comment: clap would take it for the program's.
#[derive(Debug, Args)]
pub struct CommonOptions {
    /// Files of properties, such as `aeron.dir=/dev/shm/x`, one a line; also as file:// or http://
    #[arg(value_name = "FILE")]
    properties: Vec<String>,

    /// Set a property
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    define: Vec<String>,

    /// The media driver's directory [env: AERON_DIR]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Who may use the directories and files of the program: private (the user), group (the user
    /// and the group) or umask (as the umask says). The default is private [env:
    /// RUSTERON_DIR_ACCESS]
    #[arg(long, value_name = "ACCESS")]
    dir_access: Option<DirAccess>,

    /// Refuse to start, with exit status 78, if a setting is unknown or its value cannot be read.
    /// Otherwise each is a line on standard output, and the media driver takes another value
    #[arg(long)]
    strict: bool,

    /// Check all settings, print every problem, and exit without starting: with exit status 0
    /// if all settings are valid, or else 78
    #[arg(long)]
    pub check_config: bool,

    /// Print what all settings are, as properties, and exit. This is no check without --check-config:
    /// the program may refuse to start with what is printed
    #[arg(long)]
    pub print_config: bool,

    /// Print version
    #[arg(short = 'v', short_alias = 'V', long, action = ArgAction::Version)]
    version: (),
}

impl CommonOptions {
    /// Sets the environment variables of all properties, and then those of options, which are these
    /// and the program's own. Returns the places of properties, and the errors of properties that
    /// cannot be loaded.
    ///
    /// # Safety
    /// There is no other thread.
    pub unsafe fn apply_to_environment<'a>(
        &self,
        own: impl IntoIterator<Item = (&'a str, Option<OsString>)>,
    ) -> (Origins, Vec<Error>) {
        let (mut origins, mut errors) = (Origins::new(), Vec::new());
        for property in &self.define {
            // SAFETY: the caller guarantees that there is no other thread.
            if let Err(error) = unsafe { load_properties(property) } {
                errors.push(error.with_line(&format!("-D {property}")));
            }
        }
        origins.add("-D");
        for location in &self.properties {
            // SAFETY: the caller guarantees that there is no other thread.
            if let Err(error) = unsafe { load_properties_from(location) } {
                errors.push(error);
            }
            origins.add(&format!("{location}:"));
        }
        let common = [
            ("AERON_DIR", self.dir.clone().map(OsString::from)),
            ("RUSTERON_DIR_ACCESS", self.dir_access.map(|access| access.name().into())),
        ];
        for (name, value) in common.into_iter().chain(own) {
            if let Some(value) = value {
                // SAFETY: the caller guarantees that there is no other thread.
                unsafe { env::set_var(name, value) };
            }
        }
        (origins, errors)
    }

    /// Prints errors, and the problems that are no mere warnings: all with `--strict` and
    /// `--check-config`, otherwise those that `is_error` chooses. Returns the other problems, or
    /// `None` if the program must not start.
    pub fn accept(
        &self,
        program: &str,
        errors: &[impl Display],
        problems: Vec<Problem>,
        is_error: impl Fn(&Problem) -> bool,
    ) -> Option<Vec<Problem>> {
        let are_refused = self.strict || self.check_config;
        let (refused, warnings): (Vec<_>, Vec<_>) =
            problems.into_iter().partition(|problem| are_refused || is_error(problem));
        errors.iter().for_each(|error| print_error(program, error));
        refused.iter().for_each(|problem| print_error(program, problem));
        (errors.is_empty() && refused.is_empty()).then_some(warnings)
    }
}

/// The places of the properties that have become variables: `-D`, or the location of a file.
#[derive(Debug)]
pub struct Origins {
    environment: BTreeMap<OsString, OsString>,
    places: BTreeMap<OsString, String>,
}

impl Origins {
    /// Begins before any property is loaded.
    fn new() -> Self {
        Self { environment: env::vars_os().collect(), places: BTreeMap::new() }
    }

    /// Adds all variables that have changed since the last call.
    fn add(&mut self, place: &str) {
        for (name, value) in env::vars_os() {
            if self.environment.get(&name) != Some(&value) {
                self.places.insert(name.clone(), place.to_owned());
                self.environment.insert(name, value);
            }
        }
    }

    /// Returns whether a variable was a property.
    pub fn is_property(&self, name: &OsStr) -> bool {
        self.places.contains_key(name)
    }

    /// Returns a setting as the user has written it, with its place.
    pub fn describe(&self, name: &OsStr) -> String {
        match self.places.get(name) {
            Some(place) => format!("{place} {}", property(&name.to_string_lossy())),
            None => name.to_string_lossy().into_owned(),
        }
    }
}

/// Returns the name of the property that becomes a variable.
pub(super) fn property(variable: &str) -> String {
    variable.to_ascii_lowercase().replace('_', ".")
}
