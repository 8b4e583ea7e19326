/*
 * What Rust needs of the archive client that its public header does not declare.
 */
#ifndef RUSTERON_ARCHIVE_H
#define RUSTERON_ARCHIVE_H

#include "aeronc.h"
#include "client/aeron_archive.h"

/* Gives up a connection in the making, as aeron_archive_async_connect_poll() does when it fails. */
int aeron_archive_async_connect_delete(aeron_archive_async_connect_t *async);

/* aeron_archive_replay_merge_close(), which waits for the media driver, but not once the client is closed. */
int rusteron_replay_merge_close(aeron_archive_replay_merge_t *replay_merge);

#endif
