//! Every function of `aeron_archive.h` is reached by an item of this crate, or has a reason why not.

#![allow(missing_docs)]

use rusteron_archive::*;
use rusteron_codegen::{Sources, coverage_problems};

/// So many functions has the header of Aeron 1.54.0.
const FUNCTIONS: usize = 138;
const MOST_REASONS: usize = 17;

#[test]
fn every_function_of_the_header_is_reached_or_has_a_reason() {
    let generated = include!(concat!(env!("OUT_DIR"), "/coverage.rs"));
    assert_eq!(generated.declared.len(), FUNCTIONS);
    let sources = Sources::new().rust_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap();
    type Text = &'static str;
    let table = rusteron_codegen::coverage! {
        calls aeron_archive_context_init => Context::new;
        calls aeron_archive_context_close => drop::<Context>;
        calls aeron_archive_context_set_aeron, aeron_archive_context_set_owns_aeron_client
            => Archive::connect;
        replaces aeron_archive_context_get_aeron => Archive::aeron;
        omits aeron_archive_context_get_owns_aeron_client,
            aeron_archive_context_set_aeron_directory_name,
            aeron_archive_context_get_aeron_directory_name:
            "an archive is connected to with a client, which it keeps open";
        calls aeron_archive_context_set_idle_strategy => Context::set_idle_strategy;
        calls aeron_archive_context_set_credentials_supplier
            => Context::set_credentials_supplier as fn(_, NoCredentials) -> _;
        calls aeron_archive_context_set_recording_signal_consumer
            => Context::set_recording_signal_consumer as fn(_, fn(&RecordingSignal)) -> _;
        calls aeron_archive_context_set_error_handler
            => Context::set_error_handler as fn(_, fn(&ArchiveError)) -> _;
        calls aeron_archive_context_set_delegating_invoker
            => Context::set_delegating_invoker as fn(_, fn()) -> _;

        replaces aeron_archive_connect => Archive::connect;
        calls aeron_archive_async_connect => Archive::async_connect;
        calls aeron_archive_async_connect_poll => AsyncConnect::poll;
        calls aeron_archive_close => drop::<Archive>;
        calls aeron_archive_get_archive_context => Archive::context;
        calls aeron_archive_get_archive_id => Archive::archive_id;
        calls aeron_archive_control_session_id => Archive::control_session_id;
        calls aeron_archive_get_control_response_subscription => Archive::is_connected;
        omits aeron_archive_get_and_own_archive_context,
            aeron_archive_get_and_own_control_response_subscription,
            aeron_archive_persistent_subscription_get_persistent_subscription_context,
            aeron_archive_persistent_subscription_get_and_own_persistent_subscription_context:
            "the session, or the subscription, owns it";
        calls aeron_archive_poll_for_recording_signals => Archive::poll_for_recording_signals;
        calls aeron_archive_poll_for_error_response => Archive::poll_for_error_response;
        calls aeron_archive_check_for_error_response => Archive::check_for_error_response;

        replaces aeron_archive_add_recorded_publication
            => Archive::add_recorded_publication as fn(_, Text, _) -> _;
        replaces aeron_archive_add_recorded_exclusive_publication
            => Archive::add_recorded_exclusive_publication as fn(_, Text, _) -> _;
        calls aeron_archive_start_recording => Archive::start_recording as fn(_, Text, _, _, _) -> _;
        calls aeron_archive_extend_recording => Archive::extend_recording as fn(_, _, Text, _, _, _) -> _;
        calls aeron_archive_get_recording_position => Archive::recording_position;
        calls aeron_archive_get_start_position => Archive::start_position;
        calls aeron_archive_get_stop_position => Archive::stop_position;
        calls aeron_archive_get_max_recorded_position => Archive::max_recorded_position;
        calls aeron_archive_stop_recording_subscription => Archive::stop_recording_subscription;
        calls aeron_archive_try_stop_recording_subscription
            => Archive::try_stop_recording_subscription;
        calls aeron_archive_stop_recording_channel_and_stream => Archive::stop_recording as fn(_, Text, _) -> _;
        calls aeron_archive_try_stop_recording_channel_and_stream
            => Archive::try_stop_recording as fn(_, Text, _) -> _;
        calls aeron_archive_try_stop_recording_by_identity
            => Archive::try_stop_recording_by_identity;
        replaces aeron_archive_stop_recording_publication => Archive::stop_recording_publication;
        replaces aeron_archive_stop_recording_exclusive_publication
            => Archive::stop_recording_exclusive_publication;

        calls aeron_archive_find_last_matching_recording => Archive::find_last_matching_recording;
        calls aeron_archive_list_recording => Archive::recording;
        calls aeron_archive_list_recordings => Archive::recordings;
        calls aeron_archive_list_recordings_for_uri => Archive::recordings_for_uri;
        calls aeron_archive_list_recording_subscriptions => Archive::recording_subscriptions;

        replaces aeron_archive_replay_params_init => ReplayParams::new;
        calls aeron_archive_start_replay => Archive::start_replay as fn(_, _, Text, _, _) -> _;
        replaces aeron_archive_replay => Archive::replay as fn(_, _, Text, _, _) -> _;
        calls aeron_archive_stop_replay => Archive::stop_replay;
        calls aeron_archive_stop_all_replays => Archive::stop_all_replays;

        replaces aeron_archive_replication_params_init => ReplicationParams::new;
        calls aeron_archive_replicate => Archive::replicate as fn(_, _, Text, _, _) -> _;
        calls aeron_archive_stop_replication => Archive::stop_replication;
        calls aeron_archive_try_stop_replication => Archive::try_stop_replication;

        calls aeron_archive_truncate_recording => Archive::truncate_recording;
        calls aeron_archive_purge_recording => Archive::purge_recording;
        calls aeron_archive_detach_segments => Archive::detach_segments;
        calls aeron_archive_delete_detached_segments => Archive::delete_detached_segments;
        calls aeron_archive_purge_segments => Archive::purge_segments;
        calls aeron_archive_attach_segments => Archive::attach_segments;
        calls aeron_archive_migrate_segments => Archive::migrate_segments;
        calls aeron_archive_update_channel => Archive::update_channel as fn(_, _, Text) -> _;
        replaces aeron_archive_segment_file_base_position
            => RecordingDescriptor::segment_file_base_position;

        replaces aeron_archive_recording_pos_find_counter_id_by_recording_id
            => RecordingPos::find_by_recording_id;
        replaces aeron_archive_recording_pos_find_counter_id_by_session_id
            => RecordingPos::find_by_session_id;
        replaces aeron_archive_recording_pos_get_recording_id => RecordingPos::recording_id;
        replaces aeron_archive_recording_pos_get_source_identity => RecordingPos::source_identity;
        replaces aeron_archive_recording_pos_is_active => RecordingPos::is_active;

        calls aeron_archive_replay_merge_init => ReplayMergeBuilder::start;
        replaces aeron_archive_replay_merge_close => ReplayMerge::into_parts;
        replaces aeron_archive_replay_merge_do_work => ReplayMerge::do_work;
        replaces aeron_archive_replay_merge_poll
            => ReplayMerge::poll::<fn(&[u8], &rusteron_client::Header<'_>)>;
        calls aeron_archive_replay_merge_image => ReplayMerge::image;
        calls aeron_archive_replay_merge_is_merged => ReplayMerge::is_merged;
        calls aeron_archive_replay_merge_has_failed => ReplayMerge::has_failed;
        calls aeron_archive_replay_merge_is_live_added => ReplayMerge::is_live_added;

        calls aeron_archive_persistent_subscription_context_init,
            aeron_archive_persistent_subscription_context_close,
            aeron_archive_persistent_subscription_context_set_aeron,
            aeron_archive_persistent_subscription_context_set_archive_context,
            aeron_archive_persistent_subscription_context_set_state_counter,
            aeron_archive_persistent_subscription_context_set_join_difference_counter,
            aeron_archive_persistent_subscription_context_set_live_left_counter,
            aeron_archive_persistent_subscription_context_set_live_joined_counter
            => PersistentSubscription::new;
        replaces aeron_archive_persistent_subscription_create => PersistentSubscription::new;
        calls aeron_archive_persistent_subscription_context_set_recording_id,
            aeron_archive_persistent_subscription_context_set_live_channel,
            aeron_archive_persistent_subscription_context_set_live_stream_id,
            aeron_archive_persistent_subscription_context_set_replay_channel,
            aeron_archive_persistent_subscription_context_set_replay_stream_id
            => PersistentSubscriptionContext::new as fn(_, Text, _, Text, _) -> _;
        calls aeron_archive_persistent_subscription_context_set_start_position
            => PersistentSubscriptionContext::start_position;
        calls aeron_archive_persistent_subscription_context_set_listener
            => PersistentSubscriptionContext::listener as fn(_, fn(&PersistentSubscriptionEvent)) -> _;
        omits aeron_archive_persistent_subscription_context_set_aeron_directory_name:
            "a persistent subscription is made with a client, which it keeps open";
        omits aeron_archive_persistent_subscription_context_get_recording_id,
            aeron_archive_persistent_subscription_context_get_live_channel,
            aeron_archive_persistent_subscription_context_get_live_stream_id,
            aeron_archive_persistent_subscription_context_get_replay_channel,
            aeron_archive_persistent_subscription_context_get_replay_stream_id,
            aeron_archive_persistent_subscription_context_get_start_position:
            "C's context exists only while a subscription is made of Rust's";
        replaces aeron_archive_persistent_subscription_context_get_state_counter,
            aeron_archive_persistent_subscription_context_get_join_difference_counter,
            aeron_archive_persistent_subscription_context_get_live_left_counter,
            aeron_archive_persistent_subscription_context_get_live_joined_counter
            => PersistentSubscription::counters;
        replaces aeron_archive_persistent_subscription_close => drop::<PersistentSubscription>;
        replaces aeron_archive_persistent_subscription_poll
            => PersistentSubscription::poll::<fn(&[u8], &MessageInfo)>;
        replaces aeron_archive_persistent_subscription_controlled_poll
            => PersistentSubscription::controlled_poll::<
                fn(&[u8], &MessageInfo) -> rusteron_client::Action,
            >;
        calls aeron_archive_persistent_subscription_is_live => PersistentSubscription::is_live;
        calls aeron_archive_persistent_subscription_is_replaying
            => PersistentSubscription::is_replaying;
        replaces aeron_archive_persistent_subscription_has_failed
            => PersistentSubscription::failure;
        calls aeron_archive_persistent_subscription_failure_reason
            => PersistentSubscription::failure;
        omits aeron_archive_client_map_archive_to_client_error_code:
            "it adds 200, which C has done before Rust sees a number";
    };
    let problems = coverage_problems(generated, &table, &sources, MOST_REASONS);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

struct NoCredentials;

impl CredentialsSupplier for NoCredentials {
    fn encoded_credentials(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn on_challenge(&mut self, _encoded_challenge: &[u8]) -> Vec<u8> {
        Vec::new()
    }
}
