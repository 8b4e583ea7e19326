//! Every function that `aeronmd.h` declares is used, replaced in Rust, or omitted for a reason.

use rusteron_media_driver::{InferableBoolean, ThreadNaming, ThreadingMode};
use rusteron_test_support::{Omissions, Sources, coverage_problems, declared_functions};

/// The number of functions in the header of Aeron 1.54.0.
const FUNCTIONS: usize = 262;

const OMITTED: Omissions<'_> = &[
    (
        "a struct of the driver's internals, which the header declares and does not define",
        &[
            "aeron_driver_context_set_udp_channel_transport_bindings",
            "aeron_driver_context_get_udp_channel_transport_bindings",
            "aeron_driver_context_get_udp_channel_incoming_interceptors",
            "aeron_driver_context_set_conductor_duty_cycle_tracker",
            "aeron_driver_context_get_conductor_duty_cycle_tracker",
            "aeron_driver_context_set_sender_duty_cycle_tracker",
            "aeron_driver_context_get_sender_duty_cycle_tracker",
            "aeron_driver_context_set_receiver_duty_cycle_tracker",
            "aeron_driver_context_get_receiver_duty_cycle_tracker",
            "aeron_driver_context_set_name_resolver_time_tracker",
            "aeron_driver_context_get_name_resolver_time_tracker",
            "aeron_driver_context_set_sender_port_manager",
            "aeron_driver_context_get_sender_port_manager",
            "aeron_driver_context_set_receiver_port_manager",
            "aeron_driver_context_get_receiver_port_manager",
        ],
    ),
    (
        "Aeron has no interceptor of outgoing datagrams to choose: its three are for incoming ones",
        &[
            "aeron_driver_context_set_udp_channel_outgoing_interceptors",
            "aeron_driver_context_get_udp_channel_outgoing_interceptors",
        ],
    ),
    (
        "a boxed closure cannot be handed out while C may call it",
        &[
            "aeron_driver_context_get_agent_on_start_state",
            "aeron_driver_context_get_driver_termination_validator",
            "aeron_driver_context_get_driver_termination_validator_state",
            "aeron_driver_context_get_driver_termination_hook",
            "aeron_driver_context_get_driver_termination_hook_state",
        ],
    ),
    (
        "the client's header declares them as well, and the client's test finds them",
        &[
            "aeron_version_full",
            "aeron_version_major",
            "aeron_version_minor",
            "aeron_version_patch",
            "aeron_properties_buffer_load",
            "aeron_properties_file_load",
            "aeron_errcode",
            "aeron_errmsg",
            "aeron_default_path",
        ],
    ),
    ("the standard library removes directories", &["aeron_delete_directory"]),
    ("Instant and SystemTime are Rust's clocks", &["aeron_nano_clock", "aeron_epoch_clock"]),
];

#[test]
fn header_is_covered() {
    let declared = declared_functions("aeron-driver/src/main/c/aeronmd.h");
    assert_eq!(declared.len(), FUNCTIONS);
    let here = env!("CARGO_MANIFEST_DIR");
    let sources = Sources::new()
        .rust_dir(format!("{here}/src"))
        .and_then(|sources| sources.rust_dir(env!("OUT_DIR")))
        .and_then(|sources| {
            sources.c_file(format!("{here}/../rusteron-sys/shim/driver/rusteron_driver_shim.c"))
        })
        .expect("sources");
    assert_eq!(coverage_problems(&declared, &sources, OMITTED), [""; 0]);
}

#[test]
fn enumerations_are_complete() {
    let bindings = include_str!("../../../rusteron-sys/src/bindings/driver.rs");
    for (name, variants) in [
        ("aeron_threading_mode_enum", ThreadingMode::ALL.len()),
        ("aeron_thread_naming_enum", ThreadNaming::ALL.len()),
        ("aeron_inferable_boolean_enum", InferableBoolean::ALL.len()),
    ] {
        let values = bindings.matches(&format!("pub const {name}_")).count();
        assert_eq!(values, variants, "{name}");
    }
}
