/*
 * What Rust needs of the archive client that its public header does not declare.
 */
#ifndef RUSTERON_ARCHIVE_H
#define RUSTERON_ARCHIVE_H

#include "aeronc.h"
#include "client/aeron_archive.h"

/* The code of a message of an archive that cannot be decoded; C has none. The text says what is wrong with it. */
#define RUSTERON_ARCHIVE_MALFORMED_MESSAGE (-3000)

/* aeron_archive_replay_merge_do_work(), which also gives signals of recordings to their consumer. */
int rusteron_replay_merge_do_work(int *work_count_p, aeron_archive_replay_merge_t *replay_merge);

/* Gives up a connection in the making, as aeron_archive_async_connect_poll() does when it fails. */
int aeron_archive_async_connect_delete(aeron_archive_async_connect_t *async);

/*
 * aeron_archive_replay_merge_close(), which waits for the media driver, but not once the client is closed, and gives back
 * the reference of the image, which C keeps. A destination that the driver has refused to add is not removed. The
 * subscription has to be there still.
 */
int rusteron_replay_merge_close(aeron_archive_replay_merge_t *replay_merge);

/*
 * aeron_archive_persistent_subscription_create(), ..._controlled_poll() and ..._close(), which give back the references
 * of images that C's own keep. What one of them has made is for the others, and for C's other functions.
 */
int rusteron_persistent_subscription_create(
    aeron_archive_persistent_subscription_t **persistent_subscription,
    aeron_archive_persistent_subscription_context_t *context);
int rusteron_persistent_subscription_controlled_poll(
    aeron_archive_persistent_subscription_t *persistent_subscription,
    aeron_controlled_fragment_handler_t handler,
    void *clientd,
    size_t fragment_limit);
/* As if C had met an error that ends it: it shows and reports the failure, and its session with the archive ends. */
void rusteron_persistent_subscription_fail(
    aeron_archive_persistent_subscription_t *persistent_subscription, int code, const char *message);
int rusteron_persistent_subscription_close(aeron_archive_persistent_subscription_t *persistent_subscription);

/*
 * A client that is closed for the same reason as `client`, which is, and of which whoever waits does the conductor's work:
 * in the place of `client` in an archive's context it makes a wait for the conductor end. Every call with it fails at once.
 */
int rusteron_closed_client_create(aeron_t **closed_client, aeron_t *client);
void rusteron_closed_client_delete(aeron_t *closed_client);

#endif
