//! Settings that a program does not know or cannot read.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;

use rusteron_core::nearest;

use super::options::{Origins, property};

/// The settings that a program reads.
pub struct KnownSettings {
    checks: BTreeMap<&'static str, Check>,
    /// Beginnings of the names that other programs read.
    foreign_prefixes: &'static [&'static str],
}

/// Returns the texts that a variable can have, if it cannot have this one.
type Check = Box<dyn Fn(&str) -> Result<(), String>>;

impl KnownSettings {
    /// Makes a list of no settings. `foreign_prefixes` begin the names that other programs read.
    pub fn new(foreign_prefixes: &'static [&'static str]) -> Self {
        Self { checks: BTreeMap::new(), foreign_prefixes }
    }

    /// Adds a variable, and the check of its value.
    pub fn add(
        &mut self,
        variable: &'static str,
        check: impl Fn(&str) -> Result<(), String> + 'static,
    ) {
        self.checks.insert(variable, Box::new(check));
    }

    fn is_foreign(&self, name: &str) -> bool {
        // A variable of this project's build.
        name == "AERON_SOURCE_DIR"
            || self.foreign_prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}

impl fmt::Debug for KnownSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.checks.keys()).finish()
    }
}

/// A setting that a program does not know or cannot read.
#[derive(Debug)]
pub struct Problem {
    /// The variable, if the program reads it.
    pub variable: Option<&'static str>,
    setting: String,
    value: String,
    reason: String,
}

impl Problem {
    /// Returns all problems of the environment, in the order of the names.
    pub fn all(origins: &Origins, known: &KnownSettings) -> Vec<Self> {
        let variables: BTreeMap<_, _> = env::vars_os().collect();
        let problem = |(name, value): (OsString, OsString)| {
            let (reason, variable) = reason(origins, known, &name, &value.to_string_lossy())?;
            let value = value.to_string_lossy().escape_debug().to_string();
            Some(Self { variable, setting: origins.describe(&name), value, reason })
        };
        variables.into_iter().filter_map(problem).collect()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}: {}", self.setting, self.value, self.reason)
    }
}

/// Returns the reason why a variable is a problem, and its name if the program reads it.
fn reason(
    origins: &Origins,
    known: &KnownSettings,
    name: &OsStr,
    value: &str,
) -> Option<(String, Option<&'static str>)> {
    if let Some((variable, check)) = name.to_str().and_then(|name| known.checks.get_key_value(name))
    {
        return check(value).err().map(|valid| (valid, Some(*variable)));
    }
    let name_in_capitals = name.to_string_lossy().to_ascii_uppercase().replace('.', "_");
    if known.is_foreign(&name_in_capitals) {
        return None;
    }
    // In the environment, names with other beginnings are other programs'.
    let is_property = origins.is_property(name);
    let [is_aeron, is_rusteron] =
        ["AERON_", "RUSTERON_"].map(|prefix| name_in_capitals.starts_with(prefix));
    if !is_property && !is_aeron && !is_rusteron {
        return None;
    }
    let known = nearest(&name_in_capitals, known.checks.keys().copied());
    // A client's setting, not a misspelling of the driver's `AERON_CLIENT_LIVENESS_TIMEOUT`.
    if known.is_none() && name_in_capitals.starts_with("AERON_CLIENT_") {
        return None;
    }
    if !is_property && known.is_none() && (is_rusteron || is_of_service(&name_in_capitals)) {
        return None;
    }
    let reason = match known {
        Some(known) if is_property => {
            format!("no such setting; {} is one", property(known))
        }
        Some(known) => format!("no such setting; {known} is one"),
        None => "no such setting".into(),
    };
    Some((reason, None))
}

/// Returns whether a container platform sets such a variable for a service, whose name may begin with
/// `aeron`: `AERON_DRIVER_SERVICE_HOST`, `AERON_DRIVER_PORT_40123_UDP_ADDR`.
fn is_of_service(name: &str) -> bool {
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || name.contains("_PORT_")
}
