/* Counters beside Aeron's: of subscriptions, shared publications and images that were overrun. */
#ifndef RUSTERON_DRIVER_LINKS_H
#define RUSTERON_DRIVER_LINKS_H

#include <stddef.h>
#include <stdint.h>

#include "aeron_driver_conductor.h"

/*
 * Allocates a counter whose key and label have the layout of a stream's positions; -1 if there is
 * none to spare for a counter that is not Aeron's.
 */
int32_t rusteron_count_stream(
    aeron_counters_manager_t *manager,
    const char *name,
    int32_t type_id,
    int64_t client_id,
    int64_t registration_id,
    int32_t session_id,
    int32_t stream_id,
    size_t channel_length,
    const char *channel);

/* Adds bytes that a subscription has lost to its counter. */
void rusteron_count_lost_bytes(aeron_counters_manager_t *manager, int64_t registration_id, int64_t lost);

/* Called after the conductor has handled a client's command, which has `length` bytes. */
void rusteron_driver_links_on_command(
    aeron_driver_conductor_t *conductor, int32_t type_id, const void *command, size_t length);

#endif
