//! Values of settings as the text of their variables.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use rusteron_core::idle::IdleStrategyKind;
use rusteron_core::scan;
use rusteron_core::settings::{flag, number, size};

use super::format;
use crate::{DirAccess, InferableBoolean, TermCleaning, ThreadNaming, ThreadingMode};

/// Writes a value as Aeron reads it. Empty if there is none.
pub(super) trait ToText {
    fn to_text(&self) -> String;
}

/// Reads a value as Aeron does.
pub(super) trait FromText: Sized {
    fn from_text(text: &str) -> Option<Self>;
}

macro_rules! as_displayed {
    ($($type:ty)+) => {
        $(impl ToText for $type {
            fn to_text(&self) -> String {
                self.to_string()
            }
        })+
    };
}

as_displayed!(bool u8 i32 u32 i64 u64 usize Cow<'_, str> DirAccess TermCleaning ThreadingMode ThreadNaming InferableBoolean);

macro_rules! as_parsed {
    ($($type:ty: $parse:expr;)+) => {
        $(impl FromText for $type {
            fn from_text(text: &str) -> Option<Self> {
                $parse(text)
            }
        })+
    };
}

fn name<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

as_parsed! {
    u8: number;
    i32: number;
    u32: number;
    i64: number;
    u64: size;
    usize: size;
    bool: flag;
    Duration: scan::duration;
    Option<Duration>: |text| scan::duration(text).map(Some);
    IdleStrategyKind: format::idle_strategy;
    ThreadingMode: name;
    ThreadNaming: name;
    InferableBoolean: name;
}

impl<T: ToText> ToText for Option<T> {
    fn to_text(&self) -> String {
        self.as_ref().map_or_else(String::new, ToText::to_text)
    }
}

impl ToText for &Path {
    fn to_text(&self) -> String {
        self.display().to_string()
    }
}

impl ToText for Duration {
    fn to_text(&self) -> String {
        scan::format_duration(*self)
    }
}

impl ToText for RangeInclusive<u16> {
    fn to_text(&self) -> String {
        format!("{} {}", self.start(), self.end())
    }
}
