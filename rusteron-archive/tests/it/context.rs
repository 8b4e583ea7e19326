//! The archive's context, and with it that the C archive client is linked.

use std::time::Duration;

use rusteron_archive::{Context, ErrorKind};

#[test]
fn setters_and_getters() {
    let mut context = Context::new().expect("a context");
    context
        .set_control_request_stream_id(10)
        .and_then(|context| context.set_control_request_channel("aeron:ipc"))
        .and_then(|context| context.set_message_timeout(Duration::from_millis(1500)))
        .expect("valid settings");
    assert_eq!(context.control_request_stream_id(), 10);
    assert_eq!(context.control_request_channel(), "aeron:ipc");
    assert_eq!(context.message_timeout(), Duration::from_millis(1500));
}

#[test]
fn nul_byte_error_names_setting() {
    let mut context = Context::new().expect("a context");
    let error = context.set_control_request_channel("aeron:ipc\0").expect_err("a NUL byte");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("control_request_channel"), "{error}");
}

#[test]
fn several_contexts() {
    let contexts: Vec<Context> = (0..8).map(|_| Context::new().expect("a context")).collect();
    let defaults = Context::new().expect("a context").control_request_stream_id();
    drop(contexts.into_iter().skip(4).collect::<Vec<_>>());
    assert_eq!(Context::new().expect("a context").control_request_stream_id(), defaults);
}
