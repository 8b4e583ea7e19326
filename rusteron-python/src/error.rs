//! Errors as Python exceptions.

use std::fmt;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use rusteron_archive::ArchiveError;
use rusteron_archive_server::{ServerError, ServerErrorKind};
use rusteron_client::{Error, ErrorKind};

use crate::exit;

/// Makes an exception of a class of `rusteron._errors`.
fn exception(class: &str, text: &str, kind: &str, code: i32) -> PyErr {
    Python::attach(|py| {
        let made =
            module(py).and_then(|module| exit::call(&module.getattr(class)?, (text, kind, code)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// Returns `rusteron._errors`. The first call gives the GIL away for a moment.
pub(crate) fn module<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("rusteron._errors").map(Bound::unbind))?;
    Ok(module.bind(py))
}

pub(crate) fn client(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    let text = error.to_string();
    let raised =
        exception(class_of(error.kind()), &text, &format!("{:?}", error.kind()), error.code());
    with_cause(raised, error.is_transient(), error.close_cause())
}

/// Sets the attributes `is_transient`, and `close_cause` if the client is closed.
fn with_cause(raised: PyErr, is_transient: bool, cause: Option<impl fmt::Display>) -> PyErr {
    Python::attach(|py| {
        let value = raised.value(py);
        let set = value.setattr("is_transient", is_transient).and_then(|()| match cause {
            Some(cause) => value.setattr("close_cause", cause.to_string()),
            None => Ok(()),
        });
        set.err().unwrap_or(raised)
    })
}

fn class_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotConnected => "NotConnected",
        ErrorKind::BackPressured => "BackPressured",
        ErrorKind::AdminAction => "AdminAction",
        ErrorKind::Unblocked => "Unblocked",
        ErrorKind::MaxPositionExceeded => "MaxPositionExceeded",
        ErrorKind::ClientClosed => "Closed",
        ErrorKind::DriverTimeout => "DriverTimeout",
        ErrorKind::InvalidArgument | ErrorKind::InvalidChannel => "InvalidArgument",
        _ => "Error",
    }
}

pub(crate) fn archive(error: ArchiveError) -> PyErr {
    let kind = format!("{:?}", error.kind());
    let raised = exception("ArchiveError", &error.to_string(), &kind, error.code());
    let is_transient = Error::from(error.clone()).is_transient();
    let raised = with_cause(raised, is_transient, error.close_cause());
    Python::attach(|py| {
        let value = raised.value(py);
        let set = value
            .setattr("operation", error.operation())
            .and_then(|()| value.setattr("relevant_id", error.relevant_id()))
            .and_then(|()| value.setattr("correlation_id", error.correlation_id().map(i64::from)));
        set.err().unwrap_or(raised)
    })
}

pub(crate) fn server(error: ServerError) -> PyErr {
    let (class, kind, is_transient) = match error.kind() {
        ServerErrorKind::Client(kind) => (class_of(kind), format!("{kind:?}"), kind.is_transient()),
        ServerErrorKind::InvalidArgument => {
            ("InvalidArgument", "InvalidArgument".to_owned(), false)
        }
        kind => ("Error", format!("{kind:?}"), false),
    };
    with_cause(exception(class, &error.to_string(), &kind, 0), is_transient, None::<&str>)
}

/// The error after a deadline, of the kind that the last attempt had.
pub(crate) fn timed_out(text: &str, kind: &str) -> PyErr {
    exception("TimedOut", text, kind, 0)
}

pub(crate) fn invalid(text: &str) -> PyErr {
    exception("InvalidArgument", text, "InvalidArgument", 0)
}

pub(crate) fn closed(noun: &str) -> PyErr {
    let raised = exception("Closed", &format!("the {noun} is closed"), "Closed", 0);
    with_cause(raised, false, Some("close() was called"))
}

/// Returns whether an exception is of a class of `rusteron._errors`.
pub(crate) fn is_a(py: Python<'_>, raised: &PyErr, class: &str) -> bool {
    module(py)
        .and_then(|module| module.getattr(class))
        .is_ok_and(|class| raised.is_instance(py, &class))
}

pub(crate) fn in_use(noun: &str) -> PyErr {
    let text = format!(
        "the {noun} is in use by another call, by a handler of its own poll, by a claim, by a kept view or by a merge"
    );
    exception("InUse", &text, "InUse", 0)
}

pub(crate) fn expired() -> PyErr {
    let text =
        "the message view has expired: its handler has returned; copy messages that you keep";
    exception("MessageExpired", text, "MessageExpired", 0)
}

/// The error for a driver of this process together with the keyword for the directory of another.
pub(crate) fn two_drivers(keyword: &str) -> PyErr {
    pyo3::exceptions::PyTypeError::new_err(format!("either a driver or {keyword}, not both"))
}

/// The error for a keyword that is the name of no setting.
pub(crate) fn unknown_setting(name: &str) -> PyErr {
    pyo3::exceptions::PyTypeError::new_err(format!(
        "unexpected keyword argument '{name}': no such setting"
    ))
}
