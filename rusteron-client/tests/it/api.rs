//! The crate's types and functions: traits of each type for threads, and for callers that catch a
//! panic; and every function that `aeronc.h` declares is used, replaced in Rust, or omitted for a
//! reason.

use std::panic::{RefUnwindSafe, UnwindSafe};

use rusteron_test_support::{Omissions, Sources, coverage_problems, declared_functions};

/// The number of functions in the header of Aeron 1.54.0.
const FUNCTIONS: usize = 229;

const OMITTED: Omissions<'_> = &[
    (
        "their format and va_list are C's, and cannot be made safe",
        &["aeron_fprintf", "aeron_set_fprintf_handler", "aeron_get_fprintf_handler"],
    ),
    (
        "a boxed closure cannot be handed out while C may call it",
        &[
            "aeron_context_get_error_handler",
            "aeron_context_get_error_handler_clientd",
            "aeron_context_get_publication_error_frame_handler",
            "aeron_context_get_publication_error_frame_handler_clientd",
            "aeron_context_get_on_new_publication",
            "aeron_context_get_on_new_publication_clientd",
            "aeron_context_get_on_new_exclusive_publication",
            "aeron_context_get_on_new_exclusive_publication_clientd",
            "aeron_context_get_on_new_subscription",
            "aeron_context_get_on_new_subscription_clientd",
            "aeron_context_get_on_available_counter",
            "aeron_context_get_on_available_counter_clientd",
            "aeron_context_get_on_unavailable_counter",
            "aeron_context_get_on_unavailable_counter_clientd",
            "aeron_context_get_on_close_client",
            "aeron_context_get_on_close_client_clientd",
        ],
    ),
    (
        "declared by C, defined nowhere",
        &["aeron_context_get_agent_on_start_function", "aeron_context_get_agent_on_start_state"],
    ),
    (
        "C's memory: a PublicationError is a copy of Rust's",
        &["aeron_publication_error_values_copy", "aeron_publication_error_values_delete"],
    ),
    (
        "frees what has this id, whoever holds it: dropping the handle is the way",
        &[
            "aeron_async_remove_publication",
            "aeron_async_remove_exclusive_publication",
            "aeron_async_remove_counter",
        ],
    ),
    (
        "an Image borrows its subscription, which keeps it meanwhile",
        &[
            "aeron_subscription_image_retain",
            "aeron_subscription_image_release",
            "aeron_image_release",
        ],
    ),
    ("Instant and SystemTime are Rust's clocks", &["aeron_nano_clock", "aeron_epoch_clock"]),
    (
        "a request over plain HTTP: what was fetched by other means goes to load_properties",
        &["aeron_properties_http_load", "aeron_properties_load"],
    ),
];

#[test]
fn header_is_covered() {
    let declared = declared_functions("aeron-client/src/main/c/aeronc.h");
    assert_eq!(declared.len(), FUNCTIONS);
    let here = env!("CARGO_MANIFEST_DIR");
    let sources = Sources::new()
        .rust_dir(format!("{here}/../rusteron-core/src"))
        .and_then(|sources| sources.rust_dir(format!("{here}/src")))
        .and_then(|sources| sources.rust_dir(env!("OUT_DIR")))
        .and_then(|sources| {
            sources.c_file(format!("{here}/../rusteron-sys/shim/client/rusteron_shim.c"))
        })
        .expect("sources");
    assert_eq!(coverage_problems(&declared, &sources, OMITTED), [""; 0]);
}

#[test]
fn each_type_has_its_thread_traits() {
    /// The answers for a type to which the implementation beside, which has precedence, does not
    /// apply.
    trait No {
        const SEND: bool = false;
        const SYNC: bool = false;
        const CLONE: bool = false;
        const DEFAULT: bool = false;
        const UNWIND: bool = false;
        const REF_UNWIND: bool = false;
    }
    struct Sending<T>(T);
    struct Sharing<T>(T);
    struct Cloning<T>(T);
    struct Defaulting<T>(T);
    struct Unwinding<T>(T);
    struct Witnessing<T>(T);
    impl<T> No for Sending<T> {}
    impl<T> No for Sharing<T> {}
    impl<T> No for Cloning<T> {}
    impl<T> No for Defaulting<T> {}
    impl<T> No for Unwinding<T> {}
    impl<T> No for Witnessing<T> {}
    impl<T: Send> Sending<T> {
        const SEND: bool = true;
    }
    impl<T: Sync> Sharing<T> {
        const SYNC: bool = true;
    }
    impl<T: Clone> Cloning<T> {
        const CLONE: bool = true;
    }
    impl<T: Default> Defaulting<T> {
        const DEFAULT: bool = true;
    }
    impl<T: UnwindSafe> Unwinding<T> {
        const UNWIND: bool = true;
    }
    impl<T: RefUnwindSafe> Witnessing<T> {
        const REF_UNWIND: bool = true;
    }
    macro_rules! traits_of {
        ($($name:ty: $expected:literal),* $(,)?) => {$(
            let mut traits = Vec::new();
            if <Sending<$name>>::SEND { traits.push("Send") }
            if <Sharing<$name>>::SYNC { traits.push("Sync") }
            if <Cloning<$name>>::CLONE { traits.push("Clone") }
            if <Defaulting<$name>>::DEFAULT { traits.push("Default") }
            if <Unwinding<$name>>::UNWIND { traits.push("UnwindSafe") }
            if <Witnessing<$name>>::REF_UNWIND { traits.push("RefUnwindSafe") }
            assert_eq!(traits.join(" "), $expected, stringify!($name));
        )*};
    }
    use rusteron_client::*;
    // A type that is missing here consists of numbers and texts, so it is `Send`, `Sync` and safe
    // to unwind past. Handles lead to the handlers of their client, and these can do anything when
    // they panic.
    traits_of! {
        // Handles that keep their client open.
        Aeron: "Send Sync Clone",
        Publication: "Send Sync",
        ExclusivePublication: "Send",
        AnyPublication: "Send",
        PublicationHandle: "Send Sync",
        Subscription: "Send",
        Counter: "Send Sync",
        Registration<Publication>: "Send",
        Registration<ExclusivePublication>: "Send",
        Registration<Subscription>: "Send",
        Registration<Counter>: "Send",
        DestinationRegistration: "Send",
        AsyncConnect: "Send Sync UnwindSafe RefUnwindSafe",
        Reconnect<Subscription>: "Send",
        SubscriptionAgent<u8, fn(&[u8], &Header<'_>) -> u8>: "Send",
        PublicationAgent<ExclusivePublication, Vec<u8>>: "Send",
        TaskReceiver<u8>: "Send Sync UnwindSafe RefUnwindSafe",
        TaskSender<u8>: "Send Sync UnwindSafe RefUnwindSafe",
        AgentEnded: "Send Sync Clone UnwindSafe RefUnwindSafe",
        ConductorAgent: "Send Sync",
        // Agents of the user's own, and what ends them.
        agent::AgentRunner: "Send Sync",
        agent::AgentRunnerBuilder<ConductorAgent>: "Send",
        agent::AgentInvoker<ConductorAgent>: "Send Sync",
        agent::CompositeAgent<(ConductorAgent,)>: "Send Sync",
        agent::ShutdownSignal: "Send Sync Clone Default UnwindSafe RefUnwindSafe",
        agent::AgentError: "Send Sync",
        agent::RunnerError: "Send Sync",
        agent::ErrorAction: "Send Sync Clone UnwindSafe RefUnwindSafe",
        // Types that borrow from the types above.
        BufferClaim<'static>: "Send Sync RefUnwindSafe",
        Image<'static>: "Send",
        Images<'static>: "Send",
        Header<'static>: "Clone UnwindSafe RefUnwindSafe",
        Messages<'static>: "",
        CountersReader<'static>: "Send Sync Clone UnwindSafe RefUnwindSafe",
        Counters<'static>: "Send Sync Clone UnwindSafe RefUnwindSafe",
        SubscriptionBuilder<'static>: "Send",
        // Types that own memory or a mapping of their own.
        Context: "Send Sync",
        Handler: "Send Sync",
        CncFile: "Send Sync UnwindSafe RefUnwindSafe",
        FragmentAssembler: "Send Sync Default UnwindSafe RefUnwindSafe",
        ImageFragmentAssembler: "Send Sync Default UnwindSafe RefUnwindSafe",
        Error: "Send Sync Clone UnwindSafe RefUnwindSafe",
        Registration<NextSessionId>: "Send",
        // Values.
        AnyIdleStrategy: "Send Sync Clone UnwindSafe RefUnwindSafe",
        Backoff: "Send Sync Clone Default UnwindSafe RefUnwindSafe",
        Sleeping: "Send Sync Clone Default UnwindSafe RefUnwindSafe",
        Yielding: "Send Sync Clone Default UnwindSafe RefUnwindSafe",
        BusySpin: "Send Sync Clone Default UnwindSafe RefUnwindSafe",
        NoOp: "Send Sync Clone Default UnwindSafe RefUnwindSafe",
        IdleFn<fn(usize)>: "Send Sync Clone UnwindSafe RefUnwindSafe",
        IdleStrategyKind: "Send Sync Clone UnwindSafe RefUnwindSafe",
    }
}
