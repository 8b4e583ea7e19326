//! The settings of the table `settings.txt`.

use std::borrow::Cow;
use std::ffi::{CStr, c_int};
use std::fmt;
use std::path::Path;
use std::time::Duration;

use rusteron_sys as sys;

use crate::context::Context;
use rusteron_core::error::Result;
use rusteron_core::ffi::{self, Fallible};
use rusteron_core::idle::IdleStrategyKind;

include!(concat!(env!("OUT_DIR"), "/settings.rs"));

macro_rules! debug {
    (($self:ident $f:ident) $(($language:ident $kind:ident $getter:ident $setter:ident))*) => {
        $f.debug_struct("Context")
            $(.field(stringify!($getter), &$self.$getter()))*
            .finish_non_exhaustive()
    };
}

/// All settings: with `{:#?}`, a line for each.
impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for_each_setting!(debug!(self f))
    }
}
