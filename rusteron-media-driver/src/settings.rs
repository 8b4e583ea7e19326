//! The driver's settings, from the table `settings.txt`.

mod by_hand;
mod format;

use std::borrow::Cow;
use std::ffi::{CStr, c_int};
use std::path::Path;
use std::time::Duration;

use rusteron_core::Result;
use rusteron_core::ffi::{self, Fallible};
use rusteron_core::idle::IdleStrategyKind;
use rusteron_sys::driver as sys;

pub(crate) use self::format::idle_strategy;
use self::format::{
    BINDINGS, IDLE_STRATEGIES, TERMINATION_VALIDATORS, events, function, functions, idle_arguments,
    ports, ports_text,
};
use crate::{
    CongestionControlStrategy, DriverContext, FlowControlStrategy, InferableBoolean, NameResolver,
    ThreadNaming, ThreadingMode, UdpInterceptor,
};

include!(concat!(env!("OUT_DIR"), "/settings.rs"));

/// A setting of the driver as an environment variable, for programs that check or show a configuration.
///
/// ```
/// use rusteron_media_driver::DriverContext;
///
/// # fn main() -> Result<(), rusteron_media_driver::Error> {
/// let setting = DriverContext::setting("AERON_TERM_BUFFER_LENGTH").expect("Aeron's variable");
/// assert!(setting.check("16m").is_ok());
/// assert_eq!(setting.check("100k"), Err("must be a power of two from 64k to 1g".to_owned()));
/// assert_eq!(setting.value(&DriverContext::new()?).as_deref(), Some("16777216"));
/// # Ok(())
/// # }
/// ```
pub type Setting = rusteron_core::settings::Setting<DriverContext>;
