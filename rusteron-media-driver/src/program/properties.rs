//! Properties on the command line and in files, which become environment variables.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};

use clap::Args;
use rusteron_core::{Error, load_properties};

use crate::load_properties_from;

// No documentation comments on these structures: clap would take them for the program's.

#[derive(Debug, Args)]
pub struct Properties {
    /// Files of properties, such as `aeron.dir=/dev/shm/x`, one a line; also as file:// or http://
    #[arg(value_name = "FILE")]
    properties: Vec<String>,

    /// Set a property
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    define: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Checks {
    /// Refuse to start, with exit status 78, if a setting is unknown or its value cannot be read.
    /// Otherwise each is a line on standard output, and the media driver takes another value
    #[arg(long)]
    pub strict: bool,

    /// Check all settings, print every problem, and exit without starting: with exit status 0
    /// if all settings are valid, or else 78
    #[arg(long)]
    pub check_config: bool,

    /// Print what all settings are, as properties, and exit. This is no check without --check-config:
    /// the program may refuse to start with what is printed
    #[arg(long)]
    pub print_config: bool,
}

impl Properties {
    /// Sets the environment variables of all properties. Returns their places, and the errors of properties that cannot
    /// be loaded.
    ///
    /// # Safety
    /// There is no other thread.
    pub unsafe fn load(&self) -> (Origins, Vec<Error>) {
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
        (origins, errors)
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
