//! Every function that `aeron_archive.h` declares is used, replaced in Rust, or omitted for a reason.

use rusteron_test_support::{Omissions, Sources, coverage_problems, declared_functions};

/// The number of functions in the header of Aeron 1.54.0.
const FUNCTIONS: usize = 138;

const OMITTED: Omissions<'_> = &[
    (
        "an archive is connected to with a client, which it keeps open",
        &[
            "aeron_archive_context_get_owns_aeron_client",
            "aeron_archive_context_set_aeron_directory_name",
            "aeron_archive_context_get_aeron_directory_name",
        ],
    ),
    (
        "the session, or the subscription, owns it",
        &[
            "aeron_archive_get_and_own_archive_context",
            "aeron_archive_get_and_own_control_response_subscription",
            "aeron_archive_persistent_subscription_get_persistent_subscription_context",
            "aeron_archive_persistent_subscription_get_and_own_persistent_subscription_context",
        ],
    ),
    (
        "a persistent subscription is made with a client, which it keeps open",
        &["aeron_archive_persistent_subscription_context_set_aeron_directory_name"],
    ),
    (
        "C's context exists only while a subscription is made of Rust's",
        &[
            "aeron_archive_persistent_subscription_context_get_recording_id",
            "aeron_archive_persistent_subscription_context_get_live_channel",
            "aeron_archive_persistent_subscription_context_get_live_stream_id",
            "aeron_archive_persistent_subscription_context_get_replay_channel",
            "aeron_archive_persistent_subscription_context_get_replay_stream_id",
            "aeron_archive_persistent_subscription_context_get_start_position",
        ],
    ),
    (
        "it adds 200, which C has done before Rust sees a number",
        &["aeron_archive_client_map_archive_to_client_error_code"],
    ),
];

#[test]
fn header_is_covered() {
    let declared = declared_functions("aeron-archive/src/main/c/client/aeron_archive.h");
    assert_eq!(declared.len(), FUNCTIONS);
    let here = env!("CARGO_MANIFEST_DIR");
    let sources = Sources::new()
        .rust_dir(format!("{here}/src"))
        .and_then(|sources| sources.rust_dir(env!("OUT_DIR")))
        .expect("sources");
    assert_eq!(coverage_problems(&declared, &sources, OMITTED), [""; 0]);
}
