//! Settings of contexts as keyword arguments.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt};
use rusteron_archive_server::{ArchiveThreadingMode, Checksum};
use rusteron_client::IdleStrategyKind;
use rusteron_media_driver::{InferableBoolean, ThreadingMode};

use crate::error;

/// A duration: a number of seconds, or a `datetime.timedelta`.
pub(crate) struct Seconds(pub(crate) Duration);

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let is_number = object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyInt>();
        if !is_number {
            return object.extract().map(Self);
        }
        let seconds: f64 = object.extract()?;
        let duration = Duration::try_from_secs_f64(seconds)
            .map_err(|reason| error::invalid(&format!("{seconds} seconds: {reason}")))?;
        Ok(Self(duration))
    }
}

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

as_it_is!(bool, u8, i32, u32, i64, u64, usize, String, PathBuf);

impl Setting for Duration {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(value.extract::<Seconds>()?.0)
    }
}

impl<T: Setting> Setting for Option<T> {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if value.is_none() { Ok(None) } else { T::read(value).map(Some) }
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

impl Setting for ArchiveThreadingMode {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        choice(value, &[("dedicated", Self::Dedicated), ("shared", Self::Shared)])
    }
}

impl Setting for Checksum {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        choice(value, &[("crc-32", Self::Crc32), ("crc-32c", Self::Crc32c)])
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

/// Passes each keyword argument to a function, and names the argument in its error. Parameters of idle strategies come
/// first, because Aeron reads them when the strategy is set.
pub(crate) fn each_setting(
    settings: Option<&Bound<'_, PyDict>>,
    mut set: impl FnMut(&str, &Bound<'_, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    for is_parameters in [true, false] {
        for (name, value) in settings.into_iter().flatten() {
            let name: String = name.extract()?;
            if name.ends_with("_init_args") == is_parameters {
                set(&name, &value).map_err(|error| named(error, &name))?;
            }
        }
    }
    Ok(())
}

/// Says which setting a value of the wrong type or an unknown word was for.
fn named(error: PyErr, name: &str) -> PyErr {
    Python::attach(|py| {
        let text = format!("{name}: {}", error.value(py));
        if error.to_string().contains(name) {
            error
        } else if error.get_type(py).is(py.get_type::<pyo3::exceptions::PyTypeError>()) {
            pyo3::exceptions::PyTypeError::new_err(text)
        } else if error::is_a(py, &error, "InvalidArgument") {
            error::invalid(&text)
        } else {
            error
        }
    })
}

/// Calls the setter of a setting by the setting's name; `raise` makes an exception of its error. Use:
/// `for_each_setting!(set_by_name!(context, name, value, raise))`.
macro_rules! set_by_name {
    (($context:ident, $name:ident, $value:ident, $raise:path) $(($language:ident $kind:ident $getter:ident $setter:ident))*) => {{
        $(if $name == stringify!($getter) {
            return $crate::settings::set!($language $kind $context.$setter, $name, $value, $raise);
        })*
        Err($crate::error::unknown_setting($name))
    }};
}

macro_rules! set {
    (rust $kind:ident $context:ident.$setter:ident, $name:ident, $value:ident, $raise:path) => {
        Err($crate::error::unknown_setting($name))
    };
    (any text $context:ident.$setter:ident, $name:ident, $value:ident, $raise:path) => {{
        let text: String = $crate::settings::Setting::read($value)?;
        $context.$setter(&text).map(drop).map_err($raise)
    }};
    (any path $context:ident.$setter:ident, $name:ident, $value:ident, $raise:path) => {{
        let path: std::path::PathBuf = $crate::settings::Setting::read($value)?;
        $context.$setter(&path).map(drop).map_err($raise)
    }};
    (any $kind:ident $context:ident.$setter:ident, $name:ident, $value:ident, $raise:path) => {
        $context.$setter($crate::settings::Setting::read($value)?).map(drop).map_err($raise)
    };
}

pub(crate) use {set, set_by_name};
