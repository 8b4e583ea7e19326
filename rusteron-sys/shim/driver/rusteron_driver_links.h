/* Counters of subscriptions and shared publications. */
#ifndef RUSTERON_DRIVER_LINKS_H
#define RUSTERON_DRIVER_LINKS_H

#include <stddef.h>
#include <stdint.h>

#include "aeron_driver_conductor.h"

/* Called after the conductor has handled a client's command, which has `length` bytes. */
void rusteron_driver_links_on_command(
    aeron_driver_conductor_t *conductor, int32_t type_id, const void *command, size_t length);

#endif
