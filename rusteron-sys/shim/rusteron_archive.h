/*
 * What Rust needs of the archive client and its public header does not declare.
 */
#ifndef RUSTERON_ARCHIVE_H
#define RUSTERON_ARCHIVE_H

#include "aeronc.h"
#include "client/aeron_archive.h"
#include "client/aeron_archive_proxy.h"

/* Error code for an archive's message that cannot be decoded; C has none. The text has the reason. */
#define RUSTERON_ARCHIVE_MALFORMED_MESSAGE (-3000)

/* As aeron_archive_replay_merge_do_work(), but also passes recording signals to their consumer. */
int rusteron_replay_merge_do_work(int *work_count_p, aeron_archive_replay_merge_t *replay_merge);

/* The state, an aeron_archive_replay_merge_state_t. */
int rusteron_replay_merge_state(aeron_archive_replay_merge_t *replay_merge);

/* Ends the work of the merge, as C does after an error. */
void rusteron_replay_merge_fail(aeron_archive_replay_merge_t *replay_merge);

/*
 * Returns the sender of the session's requests, and sets the number of its attempts. With one attempt, its functions
 * do not wait: false with ENOTCONN says that the archive is not connected, and with -1 that there is no space now.
 */
aeron_archive_proxy_t *rusteron_archive_proxy(aeron_archive_t *archive, int retry_attempts);

int64_t aeron_archive_next_correlation_id(aeron_archive_t *aeron_archive);

/* Abandons a pending connection, as aeron_archive_async_connect_poll() does when it fails. */
int aeron_archive_async_connect_delete(aeron_archive_async_connect_t *async);

/*
 * Polls for messages of the archive, and passes each one that is checked to the handler, with blocks of the lengths
 * of this schema. For a session whose requests are not C's: C's own requests miss the messages.
 */
int rusteron_archive_poll_messages(
    aeron_archive_t *archive,
    aeron_controlled_fragment_handler_t handler,
    void *clientd,
    size_t fragment_limit);

/*
 * As aeron_archive_replay_merge_close(), which waits for the media driver. Once the client is closed, this does not
 * wait. It also releases the image's reference, which C does not. A command that the driver refuses does not prevent
 * the close. The replay destination is removed only from a subscription that is kept; if this cannot be asked for,
 * the close fails, frees nothing, and can be tried again. The subscription has to be open still.
 */
int rusteron_replay_merge_close(aeron_archive_replay_merge_t *replay_merge, bool is_subscription_kept);

/*
 * Fails the subscription as a fatal error of C would: it shows and reports the failure, and its session with the
 * archive ends.
 */
void rusteron_persistent_subscription_fail(
    aeron_archive_persistent_subscription_t *persistent_subscription, int code, const char *message);

/*
 * Returns the position after the last message that came from a replay or a live stream that is over: the next replay
 * begins there. Negative before the first one.
 */
int64_t rusteron_persistent_subscription_position(
    const aeron_archive_persistent_subscription_t *persistent_subscription);

/* Returns whether there is a session with the archive, which asks for replays. */
bool rusteron_persistent_subscription_has_session(
    const aeron_archive_persistent_subscription_t *persistent_subscription);

/*
 * Creates a client that is closed for the same reason as `client`, which has to be closed. The waiting thread does
 * the conductor's work of the created client. In place of `client` in an archive's context, it ends a wait for the
 * conductor. Every call with it fails at once. aeron_free() frees it.
 */
int rusteron_closed_client_create(aeron_t **closed_client, aeron_t *client);

#endif
