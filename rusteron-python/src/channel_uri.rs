//! Channels.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rusteron_client as rust;
use rusteron_client::{ChannelUriBuilder, ChannelUriError, Media};

use crate::error;

/// A channel as a parameter: a text, or a `ChannelUri`.
pub(crate) struct Channel(String);

impl Deref for Channel {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Channel {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<ChannelUri>() {
            Ok(uri) => Ok(Self(uri.get().0.to_string())),
            Err(_) => object.extract().map(Self),
        }
    }
}

/// A channel, such as `aeron:udp?endpoint=localhost:40123`, parsed and checked.
///
/// Parameters are keyword arguments, with underscores for hyphens. Wherever a channel is expected, its text will do.
///
/// >>> import rusteron
/// >>> channel = rusteron.ChannelUri.udp(endpoint="localhost:40123", term_length="64k")
/// >>> str(channel)
/// 'aeron:udp?endpoint=localhost:40123|term-length=64k'
/// >>> channel["endpoint"]
/// 'localhost:40123'
#[pyclass(frozen, eq, module = "rusteron")]
#[derive(PartialEq, Eq)]
pub(crate) struct ChannelUri(rust::ChannelUri);

impl ChannelUri {
    fn build(builder: ChannelUriBuilder, parameters: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut builder = builder;
        for (key, value) in parameters.into_iter().flatten() {
            let key = hyphens(&key.extract::<String>()?);
            // As Aeron writes them.
            let value = match value.extract::<bool>() {
                Ok(value) => value.to_string(),
                Err(_) => value.str()?.to_string(),
            };
            builder = builder.set_key(&key, value);
        }
        builder.build().map(Self).map_err(invalid)
    }
}

fn hyphens(key: &str) -> String {
    key.replace('_', "-")
}

fn invalid(error: ChannelUriError) -> PyErr {
    error::client(rust::Error::from(error))
}

#[pymethods]
impl ChannelUri {
    #[new]
    fn new(channel: Channel) -> PyResult<Self> {
        channel.parse().map(Self).map_err(invalid)
    }

    /// Makes a channel over shared memory.
    #[staticmethod]
    #[pyo3(signature = (**parameters))]
    fn ipc(parameters: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::build(rust::ChannelUri::ipc(), parameters)
    }

    /// Makes a channel over UDP.
    #[staticmethod]
    #[pyo3(signature = (**parameters))]
    fn udp(parameters: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::build(rust::ChannelUri::udp(), parameters)
    }

    /// Returns this channel with other parameters.
    #[pyo3(signature = (**parameters))]
    fn replace(&self, parameters: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::build(self.0.to_builder(), parameters)
    }

    /// "ipc" or "udp".
    #[getter]
    fn media(&self) -> &'static str {
        match self.0.media() {
            Media::Ipc => "ipc",
            _ => "udp",
        }
    }

    /// True if the channel is that of a spy.
    #[getter]
    fn is_spy(&self) -> bool {
        self.0.is_spy()
    }

    /// The parameters, in the order of the text.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let parameters = PyDict::new(py);
        for (key, value) in self.0.parameters() {
            parameters.set_item(key, value)?;
        }
        Ok(parameters)
    }

    /// Returns a parameter's text, or the default.
    #[pyo3(signature = (key, default=None))]
    fn get(&self, key: &str, default: Option<String>) -> Option<String> {
        self.0.get_key(&hyphens(key)).map(str::to_owned).or(default)
    }

    fn __getitem__(&self, key: &str) -> PyResult<&str> {
        let value = self.0.get_key(&hyphens(key));
        value.ok_or_else(|| pyo3::exceptions::PyKeyError::new_err(key.to_owned()))
    }

    fn __contains__(&self, key: &str) -> bool {
        self.0.get_key(&hyphens(key)).is_some()
    }

    /// Raises `InvalidArgument` if a value that a publication reads is not valid.
    fn check_publication(&self) -> PyResult<()> {
        self.0.check_publication().map_err(invalid)
    }

    /// Raises `InvalidArgument` if a value that a subscription reads is not valid.
    fn check_subscription(&self) -> PyResult<()> {
        self.0.check_subscription().map_err(invalid)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.to_string().hash(&mut hasher);
        hasher.finish()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("ChannelUri('{}')", self.0)
    }
}
