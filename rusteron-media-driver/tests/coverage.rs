//! Every function that `aeronmd.h` declares, and the Rust item that reaches it.

#![allow(missing_docs)]

use std::path::Path;
use std::time::Duration;

use rusteron_client::{AeronVersion, load_properties, load_properties_file};
use rusteron_codegen::{Row, Sources, coverage, coverage_problems};
use rusteron_media_driver::{
    Context, DriverInvoker, Error, MediaDriver, is_driver_active, load_properties_from,
};

/// So many functions has the header of Aeron 1.54.0.
const FUNCTIONS: usize = 262;
const MOST_REASONS: usize = 4;

#[test]
fn every_function_of_the_header_is_reached_or_has_a_reason() {
    // Names the generated methods of `Context`, which the tables below leave out.
    let generated = include!(concat!(env!("OUT_DIR"), "/coverage.rs"));
    assert_eq!(generated.declared.len(), FUNCTIONS);
    let table = [context(), driver(), shared_with_the_client(), omitted()].concat();
    let here = env!("CARGO_MANIFEST_DIR");
    let sources = Sources::new()
        .rust_dir(format!("{here}/src"))
        .and_then(|sources| sources.rust_dir(format!("{here}/../rusteron-client/src")))
        .and_then(|sources| {
            sources.c_file(format!("{here}/../rusteron-sys/shim/rusteron_driver_shim.c"))
        })
        .expect("sources");
    let problems = coverage_problems(generated, &table, &sources, MOST_REASONS);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn context() -> Vec<Row> {
    coverage! {
        calls aeron_driver_context_init => Context::new;
        calls aeron_driver_context_close => drop::<Context>, drop::<MediaDriver>;
        calls aeron_flow_control_strategy_supplier_by_name => Context::set_unicast_flow_control;
        calls aeron_driver_context_set_unicast_flowcontrol_supplier
            => Context::set_unicast_flow_control;
        calls aeron_driver_context_get_unicast_flowcontrol_supplier => Context::unicast_flow_control;
        calls aeron_driver_context_set_multicast_flowcontrol_supplier
            => Context::set_multicast_flow_control;
        calls aeron_driver_context_get_multicast_flowcontrol_supplier
            => Context::multicast_flow_control;
        calls aeron_driver_context_set_congestioncontrol_supplier => Context::set_congestion_control;
        calls aeron_driver_context_get_congestioncontrol_supplier => Context::congestion_control;
        calls aeron_driver_context_set_name_resolver_supplier => Context::set_name_resolver;
        calls aeron_driver_context_get_name_resolver_supplier => Context::name_resolver;
        calls aeron_driver_context_set_receiver_group_tag => Context::set_receiver_group_tag;
        calls aeron_driver_context_get_receiver_group_tag_is_present => Context::receiver_group_tag;
        calls aeron_driver_context_get_receiver_group_tag_value => Context::receiver_group_tag;
        calls aeron_driver_context_set_sender_wildcard_port_range
            => Context::set_sender_wildcard_port_range;
        calls aeron_driver_context_get_sender_wildcard_port_range
            => Context::sender_wildcard_port_range;
        calls aeron_driver_context_set_receiver_wildcard_port_range
            => Context::set_receiver_wildcard_port_range;
        calls aeron_driver_context_get_receiver_wildcard_port_range
            => Context::receiver_wildcard_port_range;
        calls aeron_driver_context_set_udp_channel_incoming_interceptors
            => Context::set_incoming_interceptors;
        calls aeron_driver_context_set_agent_on_start_function
            => Context::set_agent_on_start as fn(_, fn(&str)) -> _;
        calls aeron_driver_context_get_agent_on_start_function => MediaDriver::launch;
        calls aeron_set_thread_affinity_on_start => Context::set_conductor_cpu_affinity;
        calls aeron_driver_context_set_driver_termination_validator
            => Context::set_termination_validator as fn(_, fn(&[u8]) -> bool) -> _;
        calls aeron_driver_context_set_driver_termination_hook
            => Context::set_termination_hook as fn(_, fn()) -> _;
    }
    .to_vec()
}

fn driver() -> Vec<Row> {
    coverage! {
        calls aeron_driver_init => MediaDriver::launch, DriverInvoker::launch;
        calls aeron_driver_start => MediaDriver::launch, DriverInvoker::launch;
        calls aeron_driver_close => drop::<MediaDriver>, drop::<DriverInvoker>;
        calls aeron_driver_main_do_work => DriverInvoker::do_work;
        calls aeron_driver_main_idle_strategy => DriverInvoker::idle;
        calls aeron_delete_directory => MediaDriver::launch;
        calls aeron_properties_http_load => load_properties_from;
        replaces aeron_properties_load => load_properties_from;
        replaces aeron_is_driver_active => is_driver_active as fn(&'static Path, Duration) -> _;
    }
    .to_vec()
}

/// Declared by both headers.
fn shared_with_the_client() -> Vec<Row> {
    coverage! {
        calls aeron_version_full, aeron_version_major, aeron_version_minor, aeron_version_patch
            => AeronVersion::linked;
        calls aeron_errcode => Error::code;
        calls aeron_errmsg => Error::message;
        calls aeron_default_path => rusteron_client::Context::default_dir;
        calls aeron_properties_buffer_load => load_properties;
        replaces aeron_properties_file_load => load_properties_file as unsafe fn(&'static Path) -> _;
    }
    .to_vec()
}

fn omitted() -> Vec<Row> {
    coverage! {
        omits aeron_driver_context_set_udp_channel_transport_bindings,
            aeron_driver_context_get_udp_channel_transport_bindings,
            aeron_driver_context_get_udp_channel_incoming_interceptors,
            aeron_driver_context_set_conductor_duty_cycle_tracker,
            aeron_driver_context_get_conductor_duty_cycle_tracker,
            aeron_driver_context_set_sender_duty_cycle_tracker,
            aeron_driver_context_get_sender_duty_cycle_tracker,
            aeron_driver_context_set_receiver_duty_cycle_tracker,
            aeron_driver_context_get_receiver_duty_cycle_tracker,
            aeron_driver_context_set_name_resolver_time_tracker,
            aeron_driver_context_get_name_resolver_time_tracker,
            aeron_driver_context_set_sender_port_manager,
            aeron_driver_context_get_sender_port_manager,
            aeron_driver_context_set_receiver_port_manager,
            aeron_driver_context_get_receiver_port_manager:
            "a struct of the driver's internals, which the header declares and does not define";
        omits aeron_driver_context_set_udp_channel_outgoing_interceptors,
            aeron_driver_context_get_udp_channel_outgoing_interceptors:
            "Aeron has no interceptor of outgoing datagrams to choose: its three are for incoming ones";
        omits aeron_driver_context_get_agent_on_start_state,
            aeron_driver_context_get_driver_termination_validator,
            aeron_driver_context_get_driver_termination_validator_state,
            aeron_driver_context_get_driver_termination_hook,
            aeron_driver_context_get_driver_termination_hook_state:
            "a boxed closure cannot be handed out while C may call it";
        omits aeron_nano_clock, aeron_epoch_clock: "Instant and SystemTime are Rust's clocks";
    }
    .to_vec()
}
