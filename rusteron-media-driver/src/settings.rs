//! The driver's settings, by name and by environment variable.

mod by_hand;
mod format;
mod text;

use std::borrow::Cow;
use std::env;
use std::ffi::{CStr, c_int};
use std::path::Path;
use std::time::Duration;

use rusteron_core::ffi::{self, Fallible};
use rusteron_core::idle::IdleStrategyKind;
use rusteron_core::settings::{Form, Format, Limit};
use rusteron_core::{Error, ErrorKind, Result};
use rusteron_sys::driver as sys;

use self::format::{
    BINDINGS, IDLE_STRATEGIES, TERMINATION_VALIDATORS, events, function, functions, idle_arguments,
    ports,
};
use self::text::{FromText, ToText};
use crate::{
    CongestionControlStrategy, DriverContext, FlowControlStrategy, InferableBoolean, NameResolver,
    ThreadNaming, ThreadingMode, UdpInterceptor,
};

include!(concat!(env!("OUT_DIR"), "/settings.rs"));

macro_rules! set_by_name {
    (($context:ident, $name:ident, $text:ident) $(($language:ident $kind:ident $getter:ident $setter:ident))*) => {
        $(if $name == stringify!($getter) {
            return set_from_text!($kind $context.$setter, $text);
        })*
    };
}

macro_rules! set_from_text {
    (text $context:ident.$setter:ident, $text:ident) => {
        $context.$setter($text).map(drop)
    };
    (path $context:ident.$setter:ident, $text:ident) => {
        $context.$setter($text).map(drop)
    };
    ($kind:ident $context:ident.$setter:ident, $text:ident) => {
        match FromText::from_text($text) {
            Some(value) => $context.$setter(value).map(drop),
            None => Err(invalid(format!("{}: {:?} cannot be read", stringify!($setter), $text))),
        }
    };
}

/// A setting of the driver as an environment variable, for programs that check or show a configuration.
///
/// ```
/// use rusteron_media_driver::{DriverContext, Setting};
///
/// # fn main() -> Result<(), rusteron_media_driver::Error> {
/// let setting = Setting::of("AERON_TERM_BUFFER_LENGTH").expect("a variable of Aeron's");
/// assert!(setting.check("16m").is_ok());
/// assert_eq!(setting.check("100k"), Err("must be a power of two from 64k to 1g".to_owned()));
/// assert_eq!(setting.value(&DriverContext::new()?).as_deref(), Some("16777216"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Setting {
    pub(crate) name: &'static str,
    variable: &'static str,
    format: Format,
    value: Value,
    /// A launch refuses other values than the variable's.
    is_checked: bool,
}

/// Source of a variable's value.
#[derive(Debug)]
enum Value {
    /// The setting as the driver has it.
    Of(fn(&DriverContext) -> String),
    /// The setting as the driver has it, unless the variable is set. If it is, the driver has the
    /// named function, but does not tell by which of its names.
    Named(fn(&DriverContext) -> Option<&'static str>),
    /// The variable's text: C reads the variable, and does not expose the result.
    Verbatim,
    /// No value: C defines the name and never reads it.
    Unread,
}

/// Every variable in the sources of the C driver, which a test compares, and this crate's own.
static SETTINGS: &[Setting] = include!(concat!(env!("OUT_DIR"), "/variables.rs"));

impl Setting {
    /// Returns all settings that a variable sets.
    pub fn all() -> &'static [Self] {
        SETTINGS
    }

    /// Returns the setting of an environment variable.
    pub fn of(variable: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.variable == variable)
    }

    /// Returns the variables of durations.
    pub(crate) fn durations() -> impl Iterator<Item = &'static str> {
        let durations = SETTINGS.iter().filter(|it| matches!(it.format, Format::Duration(_)));
        durations.map(|setting| setting.variable)
    }

    /// Returns the environment variable.
    ///
    /// The name of the property is the variable's in lower case, with dots: `aeron.dir` for `AERON_DIR`. Aeron takes
    /// underscores for dots: `aeron.socket.so_rcvbuf`.
    pub fn variable(&self) -> &'static str {
        self.variable
    }

    /// Returns whether a driver reads the variable. Aeron defines some that no driver reads.
    pub fn is_read(&self) -> bool {
        !matches!(self.value, Value::Unread)
    }

    /// Checks a value of the variable. Stricter than Aeron, which takes `64kb` for `64k`, `truely` for `true` and, where
    /// it expects a number, `10s` for 10.
    ///
    /// # Errors
    /// The values that are permitted, such as `must be true or false`.
    pub fn check(&self, text: &str) -> std::result::Result<(), String> {
        self.format.check(text)
    }

    /// Returns the value that a driver with this context has, as the variable would have it. `None` if it is not set
    /// and has no default.
    ///
    /// Some settings a driver does not tell. Their value is the variable's.
    pub fn value(&self, context: &DriverContext) -> Option<String> {
        let set = || env::var(self.variable).ok();
        let value = match self.value {
            Value::Of(get) => Some(get(context)),
            Value::Named(get) => {
                set().filter(|set| !set.is_empty()).or_else(|| get(context).map(str::to_owned))
            }
            Value::Verbatim => set(),
            Value::Unread => None,
        };
        value.filter(|value| !value.is_empty())
    }

    /// Returns the value that a driver with this context has, if the driver tells.
    pub fn value_in_driver(&self, context: &DriverContext) -> Option<String> {
        match self.value {
            Value::Of(get) => Some(get(context)).filter(|value| !value.is_empty()),
            Value::Named(_) | Value::Verbatim | Value::Unread => None,
        }
    }

    /// Sets a setting from the text of its variable.
    pub(crate) fn set(&self, context: &mut DriverContext, text: &str) -> Result<()> {
        let name = self.name;
        for_each_setting!(set_by_name!(context, name, text));
        Err(invalid(format!("{}: cannot be set by its name", self.variable)))
    }

    /// Returns the problem with the value of a setting that a launch checks.
    pub(crate) fn problem(&self, context: &DriverContext) -> Option<String> {
        let value = self.value_in_driver(context).filter(|_| self.is_checked)?;
        let Format::Size(limit) = &self.format else { return None };
        self.check(&value).err().map(|_| format!("{}: {value} is not {limit}", self.title()))
    }

    /// The name and the variable, for errors.
    pub(crate) fn title(&self) -> String {
        format!("{} ({})", self.name, self.variable)
    }

    /// Returns the settings of idle strategies, with the strategy's name in a context.
    pub(crate) fn idle_strategies()
    -> impl Iterator<Item = (&'static Self, fn(&DriverContext) -> Option<&'static str>)> {
        SETTINGS.iter().filter_map(|setting| match setting.value {
            Value::Named(get) if setting.name.ends_with("_idle_strategy") => Some((setting, get)),
            _ => None,
        })
    }
}

/// Returns whether a name is one of Aeron's own idle strategies, in place of a library's.
pub(crate) fn is_idle_strategy(name: &str) -> bool {
    format::idle_strategy(name).is_some()
}

fn invalid(text: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, text)
}

fn on_or_off(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}
