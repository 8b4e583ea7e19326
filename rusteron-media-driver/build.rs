//! Generates the settings of `Context` and the enumerations they take.

use rusteron_codegen::{ContextSpec, EnumSpec, Error, Generator, Setting};

fn main() {
    if let Err(error) = generate() {
        eprintln!("\nrusteron-media-driver: {error}\n");
        std::process::exit(1);
    }
}

fn generate() -> Result<(), Error> {
    println!("cargo::rerun-if-changed=build.rs");
    let version = std::env::var("DEP_AERON_VERSION").unwrap_or_default();
    println!("cargo::rustc-env=RUSTERON_AERON_VERSION={version}");
    // The tests compare with the sources.
    let source = std::env::var("DEP_AERON_SOURCE").unwrap_or_default();
    println!("cargo::rustc-env=RUSTERON_DRIVER_SOURCE={source}/aeron-driver/src/main/c");
    export_symbols();
    let generator = Generator::from_build_env(&["client.rs", "driver.rs"], &["aeronmd.h"])?
        .defaults_from_build_env(&[
            "aeron_driver_context.c",
            "aeron_driver_context.h",
            "aeron_retransmit_handler.h",
            "aeronmd.h",
            "concurrent/aeron_logbuffer_descriptor.h",
        ])?;
    generator.print_rerun_if_changed();
    let generator = enums().into_iter().fold(generator, Generator::enumeration).context(context());
    generator.write_to_out_dir("generated.rs")?;
    generator.write_coverage_to_out_dir("coverage.rs")?;
    generator.write_round_trips_to_out_dir("round_trips.rs")
}

/// Exports the program's functions, so that C finds them by name: by the function names in the
/// environment, and from libraries that the program has loaded. Aeron's own program, which is
/// linked with a shared library, exports them as well.
fn export_symbols() {
    let is_unix = std::env::var_os("CARGO_CFG_UNIX").is_some();
    if is_unix && std::env::var_os("CARGO_FEATURE_BINARY").is_some() {
        println!("cargo::rustc-link-arg-bins=-rdynamic");
    }
}

const RAW: &str = "rusteron_sys::driver";
const SUPPORT: &str = "rusteron_client::__private";

fn enums() -> [EnumSpec; 3] {
    [
        EnumSpec::new("aeron_threading_mode_t", "ThreadingMode", RAW)
            .summary(
                "How the driver's agents share threads: conductor, sender, receiver, and the native \
                 resource agent, which maps files and resolves names.",
            )
            .doc(
                "Dedicated",
                "Four threads, one for each agent: the lowest latency, on three cores.",
            )
            .doc("SharedNetwork", "Three threads: sender and receiver share one.")
            .doc("Shared", "One thread for all agents.")
            .doc("Invoker", "No thread: the application invokes all agents itself."),
        EnumSpec::new("aeron_thread_naming_t", "ThreadNaming", RAW)
            .summary("Which names the driver gives to its threads.")
            .doc("Classic", "The roles: `conductor`, `sender`, `receiver`.")
            .doc(
                "New",
                "Short names with a prefix: `aeron-md-cnd`, `aeron-md-snd`, `aeron-md-rcv`.",
            ),
        EnumSpec::new("aeron_inferable_boolean_t", "InferableBoolean", RAW)
            .summary("Yes, no, or whatever follows from the channel.")
            .doc("ForceFalse", "No.")
            .doc("ForceTrue", "Yes.")
            .doc("Infer", "Whatever follows from the channel."),
    ]
}

fn context() -> ContextSpec {
    let spec = ContextSpec::new("Context", "aeron_driver_context", RAW, SUPPORT);
    let spec = limited(corrected(described(strings(spec))));
    by_hand(spec)
}

fn strings(mut spec: ContextSpec) -> ContextSpec {
    spec = spec.setting(Setting::new("dir").path().copied().note(
        "The default is `/dev/shm/aeron-<user>` on Linux, and below the directory for temporary files \
         elsewhere.",
    ));
    for (agent, rust_name, thread, modes) in [
        ("conductor", "conductor", "the conductor, which answers clients", IDLE_NOT_SHARED),
        ("sender", "sender", "the sender, which sends to the network", IDLE_DEDICATED),
        ("receiver", "receiver", "the receiver, which receives from the network", IDLE_DEDICATED),
        ("sharednetwork", "shared_network", "sender and receiver together", IDLE_SHARED_NETWORK),
        ("shared", "shared", "conductor, sender and receiver together", IDLE_SHARED),
        (
            "native_resource_agent",
            "native_resource_agent",
            "the native resource agent, which maps files and resolves names",
            IDLE_NOT_SHARED,
        ),
    ] {
        let default = if agent == "native_resource_agent" { "Sleeping" } else { "Backoff" };
        let strategy = format!("set_{rust_name}_idle_strategy");
        spec = spec
            .setting(
                Setting::new(format!("{agent}_idle_strategy"))
                    .rename(format!("{rust_name}_idle_strategy"))
                    .choice("rusteron_client::IdleStrategyKind")
                    .summary(format!(
                        "Idle strategy of {thread}: spin, yield or sleep when there is no work. \
                         Spinning reacts soonest and takes a whole CPU. {modes} The default is \
                         [`{default}`](rusteron_client::IdleStrategyKind::{default})."
                    ))
                    .note(idle_example(agent)),
            )
            .setting(
                Setting::new(format!("{agent}_idle_strategy_init_args"))
                    .rename(format!("{rust_name}_idle_strategy_init_args"))
                    .copied()
                    .summary(format!(
                        "Parameters of the idle strategy of {thread}. For \
                         [`Sleeping`](rusteron_client::IdleStrategyKind::Sleeping), the duration of a \
                         sleep, such as `1ms`. For \
                         [`Backoff`](rusteron_client::IdleStrategyKind::Backoff), the number of spins, \
                         the number of yields, the shortest and the longest sleep, such as \
                         `10-20-1us-1ms`. Other strategies have none. There are none by default."
                    ))
                    .note(format!(
                        "Aeron reads the parameters when [`{strategy}`](Self::{strategy}) is called. Set \
                         the parameters first, then the strategy."
                    )),
            );
    }
    // The driver keeps these pointers and reads them when it starts and later.
    spec.setting(
        Setting::new("resolver_name")
            .retained()
            .summary("The name of this media driver for name resolution; none by default."),
    )
    .setting(Setting::new("resolver_interface").retained().summary(
        "The interface that name resolution binds to, as `hostname:port`; none by default. It \
                 takes a [resolver name](Self::set_resolver_name).",
    ))
    .setting(Setting::new("resolver_bootstrap_neighbor").retained().summary(
        "The neighbors to start name resolution with: `hostname:port` pairs separated by commas; \
         none by default.",
    ))
    .setting(
        Setting::new("name_resolver_init_args")
            .retained()
            .summary("Arguments of the name resolver; none by default."),
    )
}

// The threading modes in which an idle strategy is in use.
const IDLE_DEDICATED: &str = "In use with [`ThreadingMode::Dedicated`].";
const IDLE_NOT_SHARED: &str =
    "In use with [`ThreadingMode::Dedicated`] and [`ThreadingMode::SharedNetwork`].";
const IDLE_SHARED_NETWORK: &str = "In use with [`ThreadingMode::SharedNetwork`].";
const IDLE_SHARED: &str = "In use with [`ThreadingMode::Shared`], and with \
                           [`ThreadingMode::Invoker`] by \
                           [`DriverInvoker::idle`](crate::DriverInvoker::idle).";

fn idle_example(agent: &str) -> &'static str {
    match agent {
        "conductor" => {
            "```\n\
             use rusteron_client::IdleStrategyKind;\n\
             use rusteron_media_driver::{Context, ThreadingMode};\n\
             \n\
             # fn main() -> Result<(), rusteron_media_driver::Error> {\n\
             let mut context = Context::new()?;\n\
             context\n    \
             .set_threading_mode(ThreadingMode::Dedicated)?\n    \
             .set_conductor_idle_strategy_init_args(\"1ms\")?\n    \
             .set_conductor_idle_strategy(IdleStrategyKind::Sleeping)?\n    \
             .set_sender_idle_strategy(IdleStrategyKind::BusySpin)?;\n\
             # Ok(())\n\
             # }\n\
             ```"
        }
        _ => {
            "[`set_conductor_idle_strategy`](Self::set_conductor_idle_strategy) has an example with \
             parameters."
        }
    }
}

/// Settings without a comment in the header.
fn described(mut spec: ContextSpec) -> ContextSpec {
    for (name, summary) in [
        (
            "thread_naming",
            "Which names the driver gives to its threads. The default is \
             [`ThreadNaming::Classic`].",
        ),
        (
            "connect_enabled",
            "Whether the driver connects the sockets of unicast publications to their endpoint. \
             The default is `true`.",
        ),
        (
            "publication_reserved_session_id_low",
            "The lowest session id, inclusive, that the driver never picks by itself. The default \
             is -1.",
        ),
        (
            "publication_reserved_session_id_high",
            "The highest session id, inclusive, that the driver never picks by itself. The \
             default is 1000.",
        ),
        (
            "receiver_io_vector_capacity",
            "How many datagrams the receiver reads in one system call. The default is 4; Aeron \
             limits it to what it has room for.",
        ),
        (
            "sender_io_vector_capacity",
            "How many datagrams the sender reads or writes in one system call. The default is 16 \
             with segmentation offload, which Linux has, and 4 without; Aeron limits it to what \
             it has room for.",
        ),
        (
            "network_publication_max_messages_per_send",
            "How many datagrams of one publication are sent in one go, at most the sender's I/O \
             vector capacity. The default is 16 with segmentation offload, which Linux has, and 4 \
             without.",
        ),
        (
            "resource_free_limit",
            "How many closed resources are freed in one duty cycle. The default is 1.",
        ),
        (
            "conductor_cpu_affinity",
            "The CPU that the conductor's thread is bound to; -1, the default, for none.",
        ),
        (
            "receiver_cpu_affinity",
            "The CPU that the receiver's thread is bound to; -1, the default, for none.",
        ),
        (
            "sender_cpu_affinity",
            "The CPU that the sender's thread is bound to; -1, the default, for none.",
        ),
        (
            "native_resource_agent_cpu_affinity",
            "The CPU that the native resource agent's thread is bound to; -1, the default, for \
             none.",
        ),
        (
            "thread_affinity_use_cpuset_offsets",
            "Whether CPU numbers count within the CPUs that the process may use, instead of those \
             of the machine. The default is `false`.",
        ),
        (
            "thread_affinity_fail_on_validation_errors",
            "Whether the driver refuses to start when a CPU affinity cannot be honoured. The \
             default is `false`.",
        ),
        (
            "enable_experimental_features",
            "Whether features that Aeron calls experimental are available. The default is `false`.",
        ),
    ] {
        spec = spec.setting(Setting::new(name).summary(summary));
    }
    spec.setting(
        // Aeron forgot `neighbor_` in the getter's name.
        Setting::new("resolver_bootstrap_neighbor_resolution_interval_ns")
            .getter("resolver_bootstrap_resolution_interval_ns")
            .summary("How often the bootstrap neighbors are resolved again. The default is 10 s."),
    )
}

/// Settings whose comment in the header is wrong or hard to read, or whose type says too little.
fn corrected(mut spec: ContextSpec) -> ContextSpec {
    for (name, summary) in [
        (
            "term_buffer_sparse_file",
            "Whether log buffers are sparse files, whose pages take space when they are first accessed. \
             The default is `true`. With `false` a log buffer takes its space when it is added, or \
             is refused with [`StorageSpace`](crate::ErrorKind::StorageSpace). With `true` the first \
             access to a page, by a write or by a read such as a poll, ends the process with SIGBUS if \
             the file system has become full meanwhile.",
        ),
        (
            "perform_storage_checks",
            "Whether the driver compares each new log buffer with the space that is free at that \
             moment, and refuses one that does not fit. The default is `true`. What earlier \
             [sparse](Self::set_term_buffer_sparse_file) log buffers have yet to take does not count.",
        ),
        (
            "spies_simulate_connection",
            "Whether a spy subscription makes a network publication count as connected. The \
             default is `false`.",
        ),
        (
            "print_configuration",
            "Whether the driver prints its configuration to the standard output when it starts. \
             The default is `false`.",
        ),
        (
            "reliable_stream",
            "Whether lost messages are asked for again (`true`, the default) or skipped, where a \
             channel does not say.",
        ),
        (
            "tether_subscriptions",
            "Whether subscriptions take part in flow control, where a channel does not say. The \
             default is `true`.",
        ),
        (
            "rejoin_stream",
            "Whether a subscription may rejoin a stream that it left, where a channel does not \
             say. The default is `true`.",
        ),
        (
            "name_resolver_threshold_ns",
            "How long resolving a name may take before it counts as too long. The default is 5 s.",
        ),
        (
            "re_resolution_check_interval_ns",
            "How often the driver checks whether names resolve to other addresses. The default is \
             1 s.",
        ),
        (
            "stream_session_limit",
            "How many sessions of one stream a receiver supports. There is no limit by default.",
        ),
        (
            "untethered_window_limit_timeout_ns",
            "How long an untethered subscription may hold back flow control before it no longer \
             counts. The default is 5 s.",
        ),
        (
            "untethered_resting_timeout_ns",
            "How long an untethered subscription rests before it may rejoin a stream. The default \
             is 10 s.",
        ),
    ] {
        spec = spec.setting(Setting::new(name).summary(summary));
    }
    spec.setting(Setting::new("low_file_store_warning_threshold").summary(
        "The free space of the file store, in bytes, below which the driver warns. The default is \
         ten times 16 MiB.",
    ))
    .setting(
        Setting::new("file_page_size")
            .bytes()
            .note("Launching refuses what is no power of two from 4 KiB to 1 GiB."),
    )
    .setting(Setting::new("untethered_linger_timeout_ns").optional().summary(
        "How long an untethered subscription lingers once it no longer counts for flow \
                 control. It is not set by default, which is for the untethered window limit timeout.",
    ))
    .setting(Setting::new("client_liveness_timeout_ns").summary(
        "How long a client may be silent before the driver gives it up for dead. The default is \
         10 s.",
    ))
    .setting(Setting::new("driver_timeout_ms").summary(
        "How long clients let the driver be silent before they give it up for dead. The default is \
         10 s.",
    ))
    .setting(Setting::new("nak_multicast_group_size").summary(
        "The number of receivers expected in a multicast group, from which NAK delays follow. The \
         default is 10.",
    ))
}

/// Settings whose values the driver checks when it is launched, and those whose default C's sources have
/// in words.
fn limited(mut spec: ContextSpec) -> ContextSpec {
    const TERMS: &str = "Launching refuses what is no power of two from 64 KiB to 1 GiB.";
    const MTU: &str = "Launching refuses what is no multiple of 32 from 64 to 65504 bytes.";
    const WINDOW: &str = "0 is for half a term. Launching refuses more than 1 GiB.";
    for (name, note) in [
        (
            "to_conductor_buffer_length",
            "The default is 1 MiB and 768 bytes. Launching refuses less, more than `i32::MAX`, and what \
             is no power of two and 768 bytes.",
        ),
        (
            "to_clients_buffer_length",
            "The default is 1 MiB and 128 bytes. Launching refuses less, more than `i32::MAX`, and what \
             is no power of two and 128 bytes.",
        ),
        ("counters_buffer_length", "Launching refuses what is not within 1 MiB to 500 MiB."),
        ("error_buffer_length", "Launching refuses what is not within 4 MiB to `i32::MAX`."),
        ("term_buffer_length", TERMS),
        ("ipc_term_buffer_length", TERMS),
        ("mtu_length", MTU),
        ("ipc_mtu_length", MTU),
        ("publication_term_window_length", WINDOW),
        ("ipc_publication_term_window_length", WINDOW),
        ("socket_so_rcvbuf", "0 is for the operating system's default."),
        ("socket_so_sndbuf", "0 is for the operating system's default."),
        (
            "rcv_initial_window_length",
            "Launching refuses more than the operating system grants for `SO_RCVBUF`.",
        ),
        (
            "publication_unblock_timeout_ns",
            "Launching refuses what is no longer than the client liveness timeout.",
        ),
        (
            "timer_interval_ns",
            "Launching refuses what is no shorter than the client liveness timeout and the timeouts of \
             untethered subscriptions.",
        ),
        ("threading_mode", "The default is [`ThreadingMode::Dedicated`]."),
        ("receiver_group_consideration", "The default is [`InferableBoolean::Infer`]."),
        ("max_resend", "The default is 16."),
    ] {
        spec = spec.setting(Setting::new(name).note(note));
    }
    spec
}

fn by_hand(mut spec: ContextSpec) -> ContextSpec {
    let internal = "not offered: a struct of the driver's internals";
    let callback = "not offered: a boxed closure cannot be handed out while C may call it";
    for (name, rust_name) in [
        ("multicast_flowcontrol_supplier", "multicast_flow_control"),
        ("unicast_flowcontrol_supplier", "unicast_flow_control"),
        ("congestioncontrol_supplier", "congestion_control"),
        ("name_resolver_supplier", "name_resolver"),
        ("sender_wildcard_port_range", "sender_wildcard_port_range"),
        ("receiver_wildcard_port_range", "receiver_wildcard_port_range"),
    ] {
        spec = spec
            .hand_written(set(name), format!("Context::set_{rust_name}"))
            .hand_written(get(name), format!("Context::{rust_name}"));
    }
    for name in [
        "udp_channel_transport_bindings",
        "conductor_duty_cycle_tracker",
        "sender_duty_cycle_tracker",
        "receiver_duty_cycle_tracker",
        "name_resolver_time_tracker",
        "sender_port_manager",
        "receiver_port_manager",
    ] {
        spec = spec.hand_written(set(name), internal).hand_written(get(name), internal);
    }
    let no_choice = "not offered: Aeron has no interceptor of outgoing datagrams";
    spec = spec
        .hand_written(set("udp_channel_outgoing_interceptors"), no_choice)
        .hand_written(get("udp_channel_outgoing_interceptors"), no_choice);
    for (function, item) in [
        ("init", "Context::new"),
        ("close", "Drop of Context"),
        ("set_udp_channel_incoming_interceptors", "Context::set_incoming_interceptors"),
        ("get_udp_channel_incoming_interceptors", internal),
        ("set_receiver_group_tag", "Context::set_receiver_group_tag"),
        ("get_receiver_group_tag_is_present", "Context::receiver_group_tag"),
        ("get_receiver_group_tag_value", "Context::receiver_group_tag"),
        ("set_agent_on_start_function", "Context::set_agent_on_start"),
        ("get_agent_on_start_function", callback),
        ("get_agent_on_start_state", callback),
        ("set_driver_termination_validator", "Context::set_termination_validator"),
        ("get_driver_termination_validator", callback),
        ("get_driver_termination_validator_state", callback),
        ("set_driver_termination_hook", "Context::set_termination_hook"),
        ("get_driver_termination_hook", callback),
        ("get_driver_termination_hook_state", callback),
    ] {
        spec = spec.hand_written(format!("aeron_driver_context_{function}"), item);
    }
    spec
}

fn set(name: &str) -> String {
    format!("aeron_driver_context_set_{name}")
}

fn get(name: &str) -> String {
    format!("aeron_driver_context_get_{name}")
}
