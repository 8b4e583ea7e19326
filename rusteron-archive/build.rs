//! Generates the settings of `Context`.

use rusteron_codegen::{ContextSpec, Error, Generator, Setting};

fn main() {
    if let Err(error) = generate() {
        eprintln!("\nrusteron-archive: {error}\n");
        std::process::exit(1);
    }
}

fn generate() -> Result<(), Error> {
    println!("cargo::rerun-if-changed=build.rs");
    let bindings = ["client.rs", "archive.rs"];
    let generator = Generator::from_build_env(&bindings, &["client/aeron_archive.h"])?;
    generator.print_rerun_if_changed();
    let generator = generator.context(context());
    generator.write_to_out_dir("generated.rs")?;
    generator.write_coverage_to_out_dir("coverage.rs")
}

fn context() -> ContextSpec {
    let mut spec = ContextSpec::new(
        "Context",
        "aeron_archive_context",
        "rusteron_sys::archive",
        "rusteron_client::__private",
    );
    // aeron_archive.h does not name the variables; they are in aeron_archive_context.h.
    for (name, variable, note) in [
        ("control_request_stream_id", "AERON_ARCHIVE_CONTROL_STREAM_ID", "The default is 10."),
        (
            "control_response_stream_id",
            "AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID",
            "The default is 20.",
        ),
        (
            "recording_events_stream_id",
            "AERON_ARCHIVE_RECORDING_EVENTS_STREAM_ID",
            "The default is 30.",
        ),
        ("message_timeout_ns", "AERON_ARCHIVE_MESSAGE_TIMEOUT", "The default is 10 s."),
        (
            "message_retry_attempts",
            "AERON_ARCHIVE_MESSAGE_RETRY_ATTEMPTS",
            "The default is 3; 0 is refused when connecting.",
        ),
        (
            "control_term_buffer_length",
            "AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH",
            "The default is 64 KiB.",
        ),
        (
            "control_mtu_length",
            "AERON_ARCHIVE_CONTROL_MTU_LENGTH",
            "The default is that of `AERON_MTU_LENGTH`, or 1408.",
        ),
    ] {
        spec = spec.setting(Setting::new(name).environment(variable).note(note));
    }
    for (name, variable, note) in [
        (
            "control_request_channel",
            "AERON_ARCHIVE_CONTROL_CHANNEL",
            "There is no default; connecting needs one.",
        ),
        (
            "control_response_channel",
            "AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL",
            "There is no default; connecting needs one.",
        ),
        (
            "recording_events_channel",
            "AERON_ARCHIVE_RECORDING_EVENTS_CHANNEL",
            "There is no default.",
        ),
    ] {
        spec = spec.setting(Setting::new(name).environment(variable).note(note).copied());
    }
    spec = spec
        .setting(
            Setting::new("client_name").copied().environment("AERON_ARCHIVE_CLIENT_NAME").summary(
                "A name for this client, shown by the archive; at most 100 bytes. The \
                     default is empty.",
            ),
        )
        .setting(
            // The header repeats the comment of the MTU here.
            Setting::new("control_term_buffer_sparse")
                .summary(
                    "Whether the term buffers of the control channels are sparse files. The \
                     default is `true`.",
                )
                .environment("AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE"),
        );
    let taken = "not offered: an archive is connected to with a client, which it keeps open";
    for (function, item) in [
        ("init", "Context::new"),
        ("close", "Drop of Context"),
        ("set_aeron", "Archive::connect"),
        ("get_aeron", "Archive::aeron"),
        ("set_owns_aeron_client", taken),
        ("get_owns_aeron_client", taken),
        ("set_aeron_directory_name", taken),
        ("get_aeron_directory_name", taken),
        ("set_idle_strategy", "Context::set_idle_strategy"),
        ("set_credentials_supplier", "Context::set_credentials_supplier"),
        ("set_recording_signal_consumer", "Context::set_recording_signal_consumer"),
        ("set_error_handler", "Context::set_error_handler"),
        ("set_delegating_invoker", "Context::set_delegating_invoker"),
    ] {
        spec = spec.hand_written(format!("aeron_archive_context_{function}"), item);
    }
    spec
}
