//! Calls inside Aeron that go through a check in the shim first.
//!
//! Aeron's sources are compiled unchanged. In the files below, a macro on the compiler's command
//! line renames one call. For example, `aeron_image_create` becomes `rusteron_image_create`, a
//! function of the shim. The function checks the arguments that its caller trusts, and then calls
//! Aeron's function.
//!
//! With the feature `cmake`, the same macros are properties of the source files. The build fails if a guarded
//! call has gone from its file. `docs/design/aeron-faults.md` lists what the guards prevent.

use std::fs;
use std::path::{Path, PathBuf};

use crate::source::{Features, Sources};

/// A file of Aeron's, relative to the directory of its part, and the functions whose calls in it are guarded.
type Guard = (&'static str, &'static [&'static str]);

const CLIENT: &[Guard] = &[
    (
        "aeron_client_conductor.c",
        &[
            "aeron_broadcast_receiver_init",
            "aeron_broadcast_receiver_receive",
            "aeron_exclusive_publication_create",
            "aeron_image_create",
            "aeron_mpsc_rb_consumer_heartbeat_time_value",
            "aeron_publication_create",
        ],
    ),
    ("aeron_client.c", &["aeron_alloc", "aeron_client_conductor_init"]),
    ("aeron_subscription.c", &["aeron_image_poll", "aeron_image_controlled_poll"]),
    ("aeron_context.c", &["aeron_parse_duration_ns"]),
    ("uri/aeron_uri.c", &["aeron_parse_duration_ns"]),
    ("util/aeron_http_util.c", &["aeron_address_split"]),
    ("util/aeron_netutil.c", &["aeron_interface_split"]),
    ("util/aeron_properties_util.c", &["aeron_http_retrieve"]),
];

const DRIVER: &[Guard] = &[
    (
        "aeron_driver.c",
        &[
            "aeron_alloc",
            "aeron_driver_conductor_do_work",
            "aeron_driver_conductor_on_close",
            "aeron_error_log_exists",
            "aeron_map_existing_file",
        ],
    ),
    ("aeron_congestion_control.c", &["aeron_parse_duration_ns"]),
    (
        "aeron_driver_conductor.c",
        &[
            "aeron_address_split",
            "aeron_broadcast_transmitter_transmit",
            "aeron_counters_manager_free",
            "aeron_distinct_error_log_record",
            "aeron_driver_context_run_storage_checks",
            "aeron_driver_receiver_proxy_on_invalidate_image",
            "aeron_mpsc_rb_consumer_heartbeat_time",
            "aeron_mpsc_rb_controlled_read",
            "aeron_publication_image_close",
            "aeron_publication_image_track_rebuild",
            "aeron_uri_parse",
        ],
    ),
    ("aeron_data_packet_dispatcher.c", &["aeron_publication_image_insert_packet"]),
    ("aeron_driver_context.c", &["aeron_config_parse_duration_ns"]),
    (
        "aeron_driver_receiver.c",
        &[
            "aeron_publication_image_add_destination",
            "aeron_publication_image_invalidate",
            "aeron_publication_image_remove_destination",
            "aeron_receive_channel_endpoint_on_add_publication_image",
            "aeron_receive_channel_endpoint_remove_destination",
            "aeron_receive_channel_endpoint_update_control_address",
        ],
    ),
    ("aeron_name_resolver.c", &["aeron_address_split"]),
    ("aeron_flow_control.c", &["aeron_parse_duration_ns"]),
    ("aeron_publication_image.c", &["aeron_parse_duration_ns", "memset"]),
    ("aeron_ipc_publication.c", &["memset"]),
    (
        "aeron_network_publication.c",
        &["aeron_driver_conductor_proxy_on_publication_error", "memset"],
    ),
    ("media/aeron_udp_channel.c", &["aeron_uri_parse"]),
    ("media/aeron_udp_channel_transport.c", &["aeron_socket"]),
    ("media/aeron_receive_channel_endpoint.c", &["aeron_data_packet_dispatcher_on_setup"]),
    ("media/aeron_send_channel_endpoint.c", &["aeron_network_publication_on_nak"]),
    (
        "aeron_driver_native_resource_agent.c",
        &["aeron_driver_context_run_storage_checks", "aeron_name_resolver_init"],
    ),
    (
        "aeron_driver_name_resolver.c",
        &["aeron_clock_cached_epoch_time", "aeron_udp_channel_data_paths_init"],
    ),
];

/// Files that decode messages of an archive.
const ARCHIVE: &[Guard] = &[
    ("client/aeron_archive_async_client.c", &["aeron_subscription_controlled_poll"]),
    ("client/aeron_archive_context.c", &["aeron_config_parse_duration_ns"]),
    ("client/aeron_archive_control_response_poller.c", &["aeron_subscription_controlled_poll"]),
    ("client/aeron_archive_recording_descriptor_poller.c", &["aeron_subscription_controlled_poll"]),
    (
        "client/aeron_archive_recording_subscription_descriptor_poller.c",
        &["aeron_subscription_controlled_poll"],
    ),
];

/// Files that are compiled as a part of a file of the shim, and the calls that macros of that file rename.
pub(crate) const INCLUDED: &[Guard] = &[
    (
        "client/aeron_archive_replay_merge.c",
        &["aeron_epoch_clock", "aeron_image_poll", "aeron_subscription_resolved_endpoint"],
    ),
    (
        "client/aeron_archive_persistent_subscription.c",
        &[
            "aeron_archive_async_client_poll",
            "aeron_image_controlled_poll",
            "aeron_image_poll",
            "aeron_subscription_close",
            "aeron_subscription_image_at_index",
        ],
    ),
];

/// Returns the guarded files among the compiled ones, and the calls. Refuses a tree without a guarded call: its macro
/// would rename nothing.
pub(crate) fn guards(
    sources: &Sources,
    features: Features,
) -> Result<Vec<(PathBuf, &'static [&'static str])>, String> {
    let mut guards = checked(&sources.client_dir(), CLIENT)?;
    if features.driver {
        guards.extend(checked(&sources.driver_dir(), DRIVER)?);
    }
    if features.archive {
        guards.extend(checked(&sources.archive_dir(), ARCHIVE)?);
        checked(&sources.archive_dir(), INCLUDED)?;
    }
    Ok(guards)
}

/// Returns the paths of files in the directory of their part. Fails for a file without one of its
/// calls, and for one with two rows, which would be compiled twice.
fn checked(dir: &Path, part: &[Guard]) -> Result<Vec<(PathBuf, &'static [&'static str])>, String> {
    let mut guards: Vec<(PathBuf, &'static [&'static str])> = Vec::new();
    for (file, calls) in part {
        let path = dir.join(file);
        if guards.iter().any(|(other, _)| *other == path) {
            return Err(format!("{}: two rows of guards; put the calls into one", path.display()));
        }
        let text = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let text = String::from_utf8_lossy(&text);
        if let Some(call) = calls.iter().find(|call| !text.contains(&format!("{call}("))) {
            return Err(format!("{}: no call of {call}, which is guarded", path.display()));
        }
        guards.push((path, *calls));
    }
    Ok(guards)
}

/// Returns the name of the shim's function that replaces a call.
pub(crate) fn guarded(call: &str) -> String {
    format!("rusteron_{}", call.strip_prefix("aeron_").unwrap_or(call))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_with_two_rows_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("one.c"), "call(); other();").expect("a file");
        let both = checked(dir.path(), &[("one.c", &["call", "other"])]).expect("one row");
        assert_eq!(both, [(dir.path().join("one.c"), &["call", "other"][..])]);
        let refused = checked(dir.path(), &[("one.c", &["call"]), ("one.c", &["other"])]);
        let error = refused.expect_err("two rows");
        assert!(error.ends_with("one.c: two rows of guards; put the calls into one"), "{error}");
    }
}
