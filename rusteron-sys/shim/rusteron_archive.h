/*
 * Functions of the archive client that Rust needs and the public header does not declare.
 */
#ifndef RUSTERON_ARCHIVE_H
#define RUSTERON_ARCHIVE_H

#include "aeronc.h"
#include "client/aeron_archive.h"

/* Error code for an archive's message that cannot be decoded; C has none. The text has the reason. */
#define RUSTERON_ARCHIVE_MALFORMED_MESSAGE (-3000)

/* As aeron_archive_replay_merge_do_work(), but also passes recording signals to their consumer. */
int rusteron_replay_merge_do_work(int *work_count_p, aeron_archive_replay_merge_t *replay_merge);

/* Abandons a pending connection, as aeron_archive_async_connect_poll() does when it fails. */
int aeron_archive_async_connect_delete(aeron_archive_async_connect_t *async);

/*
 * As aeron_archive_replay_merge_close(), which waits for the media driver. Once the client is closed, this does not
 * wait. It also releases the image's reference, which C does not. A destination that the driver has refused to add
 * is not removed. The subscription has to be open still.
 */
int rusteron_replay_merge_close(aeron_archive_replay_merge_t *replay_merge);

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
