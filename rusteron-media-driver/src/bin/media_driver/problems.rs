//! Settings that the driver does not know or cannot read.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;

use rusteron_core::nearest;
use rusteron_media_driver::{DriverContext, Setting};

/// Variables of Aeron's C clients and of this project's build. Settings that the driver shares with
/// them are in the driver's table.
const OF_OTHER_PROGRAMS: [&str; 5] = [
    "AERON_CLIENT_IDLE_SLEEP_DURATION",
    "AERON_CLIENT_NAME",
    "AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY",
    "AERON_CLIENT_RESOURCE_LINGER_DURATION",
    "AERON_SOURCE_DIR",
];

/// Beginnings of the names that Aeron's archive, its cluster and its Java programs read.
const PREFIXES_OF_OTHER_PROGRAMS: [&str; 3] = ["AERON_ARCHIVE_", "AERON_CLUSTER_", "AGRONA_"];

/// The places of the properties that have become variables: `-D`, or the location of a file.
#[derive(Debug)]
pub(crate) struct Origins {
    environment: BTreeMap<OsString, OsString>,
    places: BTreeMap<OsString, String>,
}

impl Origins {
    /// Begins before any property is loaded.
    pub(crate) fn new() -> Self {
        Self { environment: env::vars_os().collect(), places: BTreeMap::new() }
    }

    /// Adds all variables that have changed since the last call.
    pub(crate) fn add(&mut self, place: &str) {
        for (name, value) in env::vars_os() {
            if self.environment.get(&name) != Some(&value) {
                self.places.insert(name.clone(), place.to_owned());
                self.environment.insert(name, value);
            }
        }
    }

    /// Returns a setting as the user has written it, with its place.
    fn describe(&self, name: &OsStr) -> String {
        match self.places.get(name) {
            Some(place) => format!("{place} {}", property(&name.to_string_lossy())),
            None => name.to_string_lossy().into_owned(),
        }
    }
}

/// A setting that the driver does not know or cannot read.
#[derive(Debug)]
pub(crate) struct Problem {
    setting: String,
    value: String,
    reason: String,
    /// The setting, if the driver reads it.
    known: Option<&'static Setting>,
}

impl Problem {
    /// Returns all problems of the environment, in the order of the names.
    pub(crate) fn all(origins: &Origins) -> Vec<Self> {
        let variables: BTreeMap<_, _> = env::vars_os().collect();
        let problem = |(name, value): (OsString, OsString)| {
            let (reason, known) = reason(origins, &name, &value.to_string_lossy())?;
            let value = value.to_string_lossy().escape_debug().to_string();
            Some(Self { setting: origins.describe(&name), value, reason, known })
        };
        variables.into_iter().filter_map(problem).collect()
    }

    /// Returns the value that the driver has instead, if the driver tells.
    pub(crate) fn value_instead(&self, context: &DriverContext) -> Option<String> {
        self.known?.value_in_driver(context)
    }

    /// Returns whether a launch would refuse the value that the driver has instead.
    pub(crate) fn is_fatal(&self, context: &DriverContext) -> bool {
        let instead = self.value_instead(context);
        self.known.zip(instead).is_some_and(|(known, instead)| known.check(&instead).is_err())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}: {}", self.setting, self.value, self.reason)
    }
}

/// Returns the reason why a variable is a problem, and its setting if the driver reads it.
fn reason(
    origins: &Origins,
    name: &OsStr,
    value: &str,
) -> Option<(String, Option<&'static Setting>)> {
    if let Some(setting) = name.to_str().and_then(Setting::of) {
        return match setting.check(value) {
            _ if !setting.is_read() => Some(("read by no part of the driver".into(), None)),
            Err(valid) => Some((valid, Some(setting))),
            Ok(()) => None,
        };
    }
    let name_in_capitals = name.to_string_lossy().to_ascii_uppercase().replace('.', "_");
    let is_foreign = OF_OTHER_PROGRAMS.contains(&&*name_in_capitals)
        || PREFIXES_OF_OTHER_PROGRAMS.iter().any(|prefix| name_in_capitals.starts_with(prefix));
    if is_foreign {
        return None;
    }
    // In the environment, names with other beginnings are other programs'.
    let is_property = origins.places.contains_key(name);
    let [is_aeron, is_rusteron] =
        ["AERON_", "RUSTERON_"].map(|prefix| name_in_capitals.starts_with(prefix));
    if !is_property && !is_aeron && !is_rusteron {
        return None;
    }
    let known = nearest(&name_in_capitals, Setting::all().iter().map(Setting::variable));
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

/// Returns the name of the property that becomes a variable.
fn property(variable: &str) -> String {
    variable.to_ascii_lowercase().replace('_', ".")
}
