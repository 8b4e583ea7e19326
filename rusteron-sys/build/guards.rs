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
use std::path::Path;

use crate::source::Features;

/// A file of Aeron's, relative to its tree, and the functions whose calls in it are guarded.
pub(crate) struct Guard {
    pub(crate) file: &'static str,
    pub(crate) calls: &'static [&'static str],
}

const CLIENT: &[Guard] = &[
    Guard {
        file: "aeron-client/src/main/c/aeron_client_conductor.c",
        calls: &[
            "aeron_broadcast_receiver_init",
            "aeron_broadcast_receiver_receive",
            "aeron_exclusive_publication_create",
            "aeron_image_create",
            "aeron_mpsc_rb_consumer_heartbeat_time_value",
            "aeron_publication_create",
        ],
    },
    Guard {
        file: "aeron-client/src/main/c/aeron_client.c",
        calls: &["aeron_client_conductor_init"],
    },
    Guard {
        file: "aeron-client/src/main/c/aeron_subscription.c",
        calls: &["aeron_image_poll", "aeron_image_controlled_poll"],
    },
    Guard { file: "aeron-client/src/main/c/aeron_context.c", calls: &["aeron_parse_duration_ns"] },
    Guard { file: "aeron-client/src/main/c/uri/aeron_uri.c", calls: &["aeron_parse_duration_ns"] },
    Guard {
        file: "aeron-client/src/main/c/util/aeron_properties_util.c",
        calls: &["aeron_http_retrieve"],
    },
];

const DRIVER: &[Guard] = &[
    Guard {
        file: "aeron-driver/src/main/c/aeron_driver.c",
        calls: &["aeron_driver_conductor_on_close"],
    },
    Guard {
        file: "aeron-driver/src/main/c/aeron_congestion_control.c",
        calls: &["aeron_parse_duration_ns"],
    },
    Guard {
        file: "aeron-driver/src/main/c/aeron_driver_conductor.c",
        calls: &["aeron_mpsc_rb_controlled_read"],
    },
    Guard {
        file: "aeron-driver/src/main/c/aeron_driver_context.c",
        calls: &["aeron_config_parse_duration_ns"],
    },
    Guard {
        file: "aeron-driver/src/main/c/aeron_flow_control.c",
        calls: &["aeron_parse_duration_ns"],
    },
    Guard {
        file: "aeron-driver/src/main/c/aeron_publication_image.c",
        calls: &["aeron_parse_duration_ns", "memset"],
    },
    Guard { file: "aeron-driver/src/main/c/aeron_ipc_publication.c", calls: &["memset"] },
    Guard { file: "aeron-driver/src/main/c/aeron_network_publication.c", calls: &["memset"] },
    Guard {
        file: "aeron-driver/src/main/c/media/aeron_udp_channel_transport.c",
        calls: &["aeron_socket"],
    },
    Guard {
        file: "aeron-driver/src/main/c/media/aeron_receive_channel_endpoint.c",
        calls: &["aeron_data_packet_dispatcher_on_setup"],
    },
    Guard {
        file: "aeron-driver/src/main/c/media/aeron_send_channel_endpoint.c",
        calls: &["aeron_network_publication_on_nak"],
    },
    Guard {
        file: "aeron-driver/src/main/c/aeron_driver_name_resolver.c",
        calls: &["aeron_udp_channel_data_paths_init"],
    },
];

/// Files that decode messages of an archive, and files that poll images themselves.
const ARCHIVE: &[Guard] = &[
    Guard {
        file: "aeron-archive/src/main/c/client/aeron_archive_async_client.c",
        calls: &["aeron_subscription_controlled_poll"],
    },
    Guard {
        file: "aeron-archive/src/main/c/client/aeron_archive_context.c",
        calls: &["aeron_config_parse_duration_ns"],
    },
    Guard {
        file: "aeron-archive/src/main/c/client/aeron_archive_control_response_poller.c",
        calls: &["aeron_subscription_controlled_poll"],
    },
    Guard {
        file: "aeron-archive/src/main/c/client/aeron_archive_recording_descriptor_poller.c",
        calls: &["aeron_subscription_controlled_poll"],
    },
    Guard {
        file: "aeron-archive/src/main/c/client/aeron_archive_recording_subscription_descriptor_poller.c",
        calls: &["aeron_subscription_controlled_poll"],
    },
    Guard {
        file: "aeron-archive/src/main/c/client/aeron_archive_replay_merge.c",
        calls: &["aeron_image_poll"],
    },
];

/// Compilers that fortify replace the declaration of `memset` by an inline function, whose name the macro would change
/// with the calls. Guarded files are not fortified.
pub(crate) const GUARDED_FLAG: &str = "-U_FORTIFY_SOURCE";

/// Returns the guards of the compiled files.
pub(crate) fn guards(features: Features) -> impl Iterator<Item = &'static Guard> {
    let driver = features.driver.then_some(DRIVER).into_iter().flatten();
    let archive = features.archive.then_some(ARCHIVE).into_iter().flatten();
    CLIENT.iter().chain(driver).chain(archive)
}

/// Refuses a tree without a guarded call: its macro would rename nothing.
pub(crate) fn check(tree: &Path, features: Features) -> Result<(), String> {
    for guard in guards(features) {
        let path = tree.join(guard.file);
        let text = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let text = String::from_utf8_lossy(&text);
        for call in guard.calls {
            if !text.contains(&format!("{call}(")) {
                return Err(format!("{}: no call of {call}, which is guarded", path.display()));
            }
        }
    }
    Ok(())
}

/// Returns the name of the shim's function that replaces a call.
pub(crate) fn guarded(call: &str) -> String {
    format!("rusteron_{}", call.strip_prefix("aeron_").unwrap_or(call))
}
