//! Every function that `aeronc.h` declares is used, replaced in Rust, or omitted for a reason.

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
fn functions_of_the_header_are_covered() {
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
