//! Settings of contexts as keyword arguments.

use std::time::Duration;

use pyo3::prelude::*;
use rusteron_client::IdleStrategyKind;
use rusteron_media_driver::{InferableBoolean, ThreadingMode};

use crate::error;
use crate::values::Seconds;

/// A value of a setting.
pub(crate) trait Setting: Sized {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self>;
}

macro_rules! as_it_is {
    ($($type:ty),+) => {
        $(impl Setting for $type {
            fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                value.extract()
            }
        })+
    };
}

as_it_is!(bool, u8, i32, u32, i64, u64, usize, String);

impl Setting for Duration {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(value.extract::<Seconds>()?.0)
    }
}

impl Setting for Option<Duration> {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if value.is_none() { Ok(None) } else { Duration::read(value).map(Some) }
    }
}

impl Setting for IdleStrategyKind {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let names = Self::ALL.map(|kind| (kind.name(), kind));
        choice(value, &names)
    }
}

impl Setting for ThreadingMode {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let names = [
            ("dedicated", Self::Dedicated),
            ("shared-network", Self::SharedNetwork),
            ("shared", Self::Shared),
        ];
        choice(value, &names)
    }
}

impl Setting for InferableBoolean {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(value) = value.extract::<bool>() {
            return Ok(if value { Self::ForceTrue } else { Self::ForceFalse });
        }
        choice(value, &[("infer", Self::Infer)])
    }
}

/// Finds a value by its name.
pub(crate) fn choice<T: Copy>(value: &Bound<'_, PyAny>, names: &[(&str, T)]) -> PyResult<T> {
    let text: String = value.extract()?;
    names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
        error::invalid(&format!("{text:?}: must be one of {}", names.join(", ")))
    })
}

/// Calls the setter of a setting by the setting's name, which is the setter's without `set_`. Settings after `text` are
/// texts.
macro_rules! set_by_name {
    ($context:expr, $name:expr, $value:expr, [$($key:literal => $setter:ident),* $(,)?], text [$($text_key:literal => $text_setter:ident),* $(,)?]) => {
        match $name {
            $($key => {
                $context.$setter($crate::settings::Setting::read($value)?).map_err($crate::error::client)?;
            })*
            $($text_key => {
                let text: String = $crate::settings::Setting::read($value)?;
                $context.$text_setter(&text).map_err($crate::error::client)?;
            })*
            _ => return Err($crate::error::unknown_setting($name)),
        }
    };
}
pub(crate) use set_by_name;
