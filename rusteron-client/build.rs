//! Generates the settings of `Context` and the structures of constants.

use rusteron_codegen::{ConstantsSpec, ContextSpec, Error, Generator, Setting};

fn main() {
    if let Err(error) = generate() {
        eprintln!("\nrusteron-client: {error}\n");
        std::process::exit(1);
    }
}

fn generate() -> Result<(), Error> {
    println!("cargo::rerun-if-changed=build.rs");
    let generator = || Generator::from_build_env(&["client.rs"], &["aeronc.h"]);
    generator()?.print_rerun_if_changed();
    generator()?.context(context()).write_to_out_dir("settings.rs")?;
    constants(generator()?).write_to_out_dir("constants.rs")?;
    constants(generator()?.context(context())).write_coverage_to_out_dir("coverage.rs")
}

fn constants(generator: Generator) -> Generator {
    generator
        .constants(publication_constants())
        .constants(subscription_constants())
        .constants(counter_constants())
        .constants(cnc_constants())
        .constants(image_constants())
}

const RAW: &str = "rusteron_sys";
const SUPPORT: &str = "crate::ffi";

// The reason why a function is not reached through a generated method.
const CALLBACK: &str = "not offered: a boxed closure cannot be handed out while C may call it";

fn context() -> ContextSpec {
    let mut spec = ContextSpec::new("Context", "aeron_context", RAW, SUPPORT)
        .debug()
        .setting(Setting::new("dir").path().copied().note(
            "The default is `/dev/shm/aeron-<user>` on Linux, and below the directory for \
             temporary files elsewhere.",
        ))
        .setting(Setting::new("driver_timeout_ms").summary(
            "How long the media driver may be silent before the client gives it up for dead. \
                 The default is 10 s.",
        ))
        .setting(Setting::new("keepalive_interval_ns").summary(
            "How often the client tells the media driver that it is alive. The default is \
                 500 ms.",
        ))
        .setting(Setting::new("resource_linger_duration_ns").summary(
            "How long the client keeps the memory of a closed or unavailable resource mapped, \
                 for threads that may still be reading it. The default is 3 s.",
        ))
        .setting(Setting::new("idle_sleep_duration_ns").summary(
            "How often the conductor checks timeouts and sends keep-alives. The default is 16 ms. \
                 This does not set how long the conductor sleeps: \
                 [`set_idle_strategy`](Self::set_idle_strategy) does. The environment variable \
                 sets both, for contexts that are made afterwards.",
        ))
        .setting(
            Setting::new("idle_strategy_init_args")
                .copied()
                .summary(
                    "Parameters of the conductor's idle strategy. For \
                     [`Sleeping`](crate::IdleStrategyKind::Sleeping), the duration of a sleep, such as \
                     `1ms`. For [`Backoff`](crate::IdleStrategyKind::Backoff), the number of spins, the \
                     number of yields, the shortest and the longest sleep, such as `10-20-1us-1ms`. \
                     Other strategies have none. The default is the idle sleep duration in nanoseconds.",
                )
                .note(
                    "Aeron reads the parameters when [`set_idle_strategy`](Self::set_idle_strategy) is \
                     called, which has an example. Set the parameters first, then the strategy.",
                ),
        )
        .setting(Setting::new("idle_strategy").choice("crate::IdleStrategyKind").summary(
            "Idle strategy of the conductor's thread. The default is to sleep, \
                     until a command of this client ends the sleep.",
        ))
        .setting(Setting::new("pre_touch_mapped_memory").summary(
            "Whether to touch every page of a log buffer when it is mapped, so that the \
                 message path meets no page faults. The default is `false`.",
        ))
        .setting(Setting::new("client_name").copied().summary(
            "A name for this client, shown in the driver's counters and in tools; at most \
                     100 bytes. The default is empty.",
        ))
        .setting(Setting::new("use_conductor_agent_invoker").summary(
            "Whether the application does the conductor's work itself, by calling \
             [`Aeron::do_work`](crate::Aeron::do_work), instead of the client running it on a \
             thread of its own. The default is `false`.",
        ));
    for (function, item) in [
        ("aeron_context_set_idle_strategy", "Context::set_idle_strategy"),
        ("aeron_context_init", "Context::new"),
        ("aeron_context_close", "Drop of Context"),
        ("aeron_context_request_driver_termination", "request_driver_termination"),
        ("aeron_context_set_agent_on_start_function", "Context::set_agent_on_start"),
    ] {
        spec = spec.hand_written(function, item);
    }
    for (callback, item) in [
        ("error_handler", "Context::set_error_handler"),
        ("publication_error_frame_handler", "Context::set_publication_error_handler"),
        ("on_new_publication", "Context::set_on_new_publication"),
        ("on_new_exclusive_publication", "Context::set_on_new_exclusive_publication"),
        ("on_new_subscription", "Context::set_on_new_subscription"),
        ("on_available_counter", "Context::set_on_available_counter"),
        ("on_unavailable_counter", "Context::set_on_unavailable_counter"),
        ("on_close_client", "Context::set_on_close"),
    ] {
        spec = spec
            .hand_written(format!("aeron_context_set_{callback}"), item)
            .hand_written(format!("aeron_context_get_{callback}"), CALLBACK)
            .hand_written(format!("aeron_context_get_{callback}_clientd"), CALLBACK);
    }
    spec.hand_written("aeron_context_get_agent_on_start_function", "declared by C, defined nowhere")
        .hand_written("aeron_context_get_agent_on_start_state", "declared by C, defined nowhere")
}

fn publication_constants() -> ConstantsSpec {
    ConstantsSpec::new("aeron_publication_constants_t", "PublicationConstants", RAW, SUPPORT)
        .summary("What does not change during the life of a publication, shared or exclusive.")
        .doc("channel", "The channel, as it was given when the publication was added.")
        .doc(
            "registration_id",
            "The registration id of this publication with the media driver.\n\nWhen it differs \
             from `original_registration_id`, another publication was registered before.",
        )
        .doc(
            "original_registration_id",
            "The registration id with which the first publisher of this channel, stream and \
             session registered it with the media driver.",
        )
}

fn subscription_constants() -> ConstantsSpec {
    let reason = "a callback, which the caller passed when it added the subscription";
    ConstantsSpec::new("aeron_subscription_constants_t", "SubscriptionConstants", RAW, SUPPORT)
        .summary("What does not change during the life of a subscription.")
        .doc("channel", "The channel, as it was given when the subscription was added.")
        .doc("stream_id", "The stream id within the channel.")
        .skip("on_available_image", reason)
        .skip("on_unavailable_image", reason)
}

fn counter_constants() -> ConstantsSpec {
    ConstantsSpec::new("aeron_counter_constants_t", "CounterConstants", RAW, SUPPORT)
        .summary("What does not change during the life of a counter.")
        .doc("correlation_id", "The id of the request that added the counter to this client.")
        .doc(
            "registration_id",
            "The id by which the counter is registered: the one given for a static counter, and the \
             same as `correlation_id` for others.",
        )
        .doc("counter_id", "The counter's number, by which a reader finds it.")
}

fn cnc_constants() -> ConstantsSpec {
    ConstantsSpec::new("aeron_cnc_constants_t", "CncConstants", RAW, SUPPORT)
        .summary("What does not change in a media driver's files while it runs, as it is written.")
        .doc("cnc_version", "The version of the layout, `major << 16 | minor << 8 | patch`.")
        .doc(
            "to_driver_buffer_length",
            "The length in bytes of the buffer of commands to the driver.",
        )
        .doc(
            "to_clients_buffer_length",
            "The length in bytes of the buffer of announcements to clients.",
        )
        .doc(
            "counter_metadata_buffer_length",
            "The length in bytes of the buffer with the counters' types, keys and labels.",
        )
        .doc(
            "counter_values_buffer_length",
            "The length in bytes of the buffer with the counters' values.",
        )
        .doc("error_log_buffer_length", "The length in bytes of the buffer with the errors.")
        .doc(
            "client_liveness_timeout",
            "After how many nanoseconds of silence the driver gives a client up for dead.",
        )
        .doc("start_timestamp", "When the driver was started, in milliseconds since 1970.")
        .doc("pid", "The number of the driver's process.")
        .doc("file_page_size", "The size in bytes that the lengths of files are multiples of.")
}

fn image_constants() -> ConstantsSpec {
    ConstantsSpec::new("aeron_image_constants_t", "ImageConstants", RAW, SUPPORT)
        .summary("What does not change during the life of an image.")
        .skip("subscription", "a pointer: an image borrows from its subscription")
        .doc("correlation_id", "The id by which the media driver knows the image.")
        .doc(
            "session_id",
            "The session id of the stream of messages. Sessions are unique within a subscription \
             and across all publications of a source identity.",
        )
}
