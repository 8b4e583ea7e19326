//! Every function that `aeronmd.h` declares is used, replaced in Rust, or omitted for a reason.

use rusteron_codegen::{Omissions, Sources, coverage_problems};

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
    ("Instant and SystemTime are Rust's clocks", &["aeron_nano_clock", "aeron_epoch_clock"]),
];

#[test]
fn header_is_covered() {
    let header = include!(concat!(env!("OUT_DIR"), "/coverage.rs"));
    let here = env!("CARGO_MANIFEST_DIR");
    let sources = Sources::new()
        .rust_dir(format!("{here}/src"))
        .and_then(|sources| sources.rust_dir(format!("{here}/../rusteron-client/src")))
        .and_then(|sources| {
            sources.c_file(format!("{here}/../rusteron-sys/shim/rusteron_driver_shim.c"))
        })
        .expect("sources");
    assert_eq!(coverage_problems(header, &sources, OMITTED), [""; 0]);
}
