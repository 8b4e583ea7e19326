/*
 * Functions of the archive client that Rust needs and the public header does not declare.
 */
#ifndef RUSTERON_ARCHIVE_H
#define RUSTERON_ARCHIVE_H

#include "aeronc.h"
#include "client/aeron_archive.h"

/* Error code for an archive's message that cannot be decoded; C has none. The text has the reason. */
#define RUSTERON_ARCHIVE_MALFORMED_MESSAGE (-3000)

typedef struct aeron_archive_proxy_stct aeron_archive_proxy_t;

/* As aeron_archive_replay_merge_do_work(), but also passes recording signals to their consumer. */
int rusteron_replay_merge_do_work(int *work_count_p, aeron_archive_replay_merge_t *replay_merge);

/*
 * Returns the sender of the session's requests, and sets the number of its attempts. With one attempt, its functions
 * do not wait: false with ENOTCONN says that the archive is not connected, and with -1 that there is no space now.
 */
aeron_archive_proxy_t *rusteron_archive_proxy(aeron_archive_t *archive, int retry_attempts);

int64_t aeron_archive_next_correlation_id(aeron_archive_t *aeron_archive);

/*
 * Polls for messages of the archive, and passes each one that is checked to the handler, with blocks of the lengths
 * of this schema. For a session whose requests are not C's: C's own requests miss the messages.
 */
int rusteron_archive_poll_messages(
    aeron_archive_t *archive,
    aeron_controlled_fragment_handler_t handler,
    void *clientd,
    size_t fragment_limit);

bool aeron_archive_proxy_start_recording(
    aeron_archive_proxy_t *archive_proxy,
    const char *recording_channel,
    int32_t recording_stream_id,
    bool local_source,
    bool auto_stop,
    int64_t correlation_id);

bool aeron_archive_proxy_extend_recording(
    aeron_archive_proxy_t *archive_proxy,
    int64_t recording_id,
    const char *recording_channel,
    int32_t recording_stream_id,
    bool local_source,
    bool auto_stop,
    int64_t correlation_id);

bool aeron_archive_proxy_stop_recording(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    const char *channel,
    int32_t stream_id);

bool aeron_archive_proxy_stop_recording_subscription(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t subscription_id);

bool aeron_archive_proxy_stop_recording_by_identity(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id);

bool aeron_archive_proxy_get_recording_position(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id);

bool aeron_archive_proxy_get_start_position(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id);

bool aeron_archive_proxy_get_stop_position(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id);

bool aeron_archive_proxy_get_max_recorded_position(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id);

bool aeron_archive_proxy_replay(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id,
    const char *replay_channel,
    int32_t replay_stream_id,
    aeron_archive_replay_params_t *params);

bool aeron_archive_proxy_stop_replay(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t replay_session_id);

bool aeron_archive_proxy_stop_all_replays(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id);

bool aeron_archive_proxy_list_recording(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id);

bool aeron_archive_proxy_list_recordings(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t from_recording_id,
    int32_t record_count);

bool aeron_archive_proxy_list_recordings_for_uri(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t from_recording_id,
    int32_t record_count,
    const char *channel_fragment,
    int32_t stream_id);

bool aeron_archive_proxy_list_recording_subscriptions(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int32_t pseudo_index,
    int32_t subscription_count,
    const char *channel_fragment,
    int32_t stream_id,
    bool apply_stream_id);

bool aeron_archive_proxy_find_last_matching_recording(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t min_recording_id,
    const char *channel_fragment,
    int32_t stream_id,
    int32_t session_id);

bool aeron_archive_proxy_truncate_recording(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id,
    int64_t position);

bool aeron_archive_proxy_purge_recording(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id);

bool aeron_archive_proxy_detach_segments(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id,
    int64_t new_start_position);

bool aeron_archive_proxy_delete_detached_segments(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id);

bool aeron_archive_proxy_purge_segments(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id,
    int64_t new_start_position);

bool aeron_archive_proxy_attach_segments(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id);

bool aeron_archive_proxy_migrate_segments(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t src_recording_id,
    int64_t dst_recording_id);

bool aeron_archive_proxy_update_channel(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t recording_id,
    const char *new_channel);

bool aeron_archive_proxy_replicate(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t src_recording_id,
    int32_t src_control_stream_id,
    const char *src_control_channel,
    aeron_archive_replication_params_t *params);

bool aeron_archive_proxy_stop_replication(
    aeron_archive_proxy_t *archive_proxy,
    int64_t correlation_id,
    int64_t replication_id);

/* Abandons a pending connection, as aeron_archive_async_connect_poll() does when it fails. */
int aeron_archive_async_connect_delete(aeron_archive_async_connect_t *async);

/*
 * As aeron_archive_replay_merge_close(), which waits for the media driver. Once the client is closed, this does not
 * wait. It also releases the image's reference, which C does not. A command that the driver refuses does not prevent
 * the close. The replay destination is removed only from a subscription that is kept; if this cannot be asked for,
 * the close fails, frees nothing, and can be tried again. The subscription has to be open still.
 */
int rusteron_replay_merge_close(aeron_archive_replay_merge_t *replay_merge, bool is_subscription_kept);

/*
 * As aeron_archive_persistent_subscription_create(), ..._controlled_poll() and ..._close(), which do not release
 * their references of images. These do. The functions share their structures with each other and with C's other
 * functions.
 */
int rusteron_persistent_subscription_create(
    aeron_archive_persistent_subscription_t **persistent_subscription,
    aeron_archive_persistent_subscription_context_t *context);
int rusteron_persistent_subscription_controlled_poll(
    aeron_archive_persistent_subscription_t *persistent_subscription,
    aeron_controlled_fragment_handler_t handler,
    void *clientd,
    size_t fragment_limit);
/*
 * Fails the subscription as a fatal error of C would: it shows and reports the failure, and its session with the
 * archive ends.
 */
void rusteron_persistent_subscription_fail(
    aeron_archive_persistent_subscription_t *persistent_subscription, int code, const char *message);
int rusteron_persistent_subscription_close(aeron_archive_persistent_subscription_t *persistent_subscription);

/*
 * Creates a client that is closed for the same reason as `client`, which has to be closed. The waiting thread does
 * the conductor's work of the created client. In place of `client` in an archive's context, it ends a wait for the
 * conductor. Every call with it fails at once.
 */
int rusteron_closed_client_create(aeron_t **closed_client, aeron_t *client);
void rusteron_closed_client_delete(aeron_t *closed_client);

#endif
