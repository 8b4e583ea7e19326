/*
 * Steps of the wall clock. Clients and drivers compare heartbeats, which are wall-clock times, with the wall clock. NTP
 * or a machine that resumes moves that clock by any amount at once, and then everybody looks dead, or the dead alive.
 * The monotonic clock does not step.
 */
#ifndef RUSTERON_CLOCK_H
#define RUSTERON_CLOCK_H

#include <stdint.h>

#include "aeron_client.h"

#define RUSTERON_NS_PER_MS INT64_C(1000000)

/* Both clocks at the latest look, and the heartbeat that is watched. All 0 at first. */
typedef struct rusteron_clock_stct
{
    int64_t epoch_ms;
    int64_t nano_ns;
    int64_t heartbeat_ms;
    /* When the heartbeat was given, by the monotonic clock. */
    int64_t heartbeat_ns;
}
rusteron_clock_t;

/* Returns by how many milliseconds the wall clock has stepped since the latest look. 0 if it has not. */
int64_t rusteron_clock_step(rusteron_clock_t *clock, int64_t epoch_ms, int64_t nano_ns);

/*
 * As aeron_driver_conductor_do_work(), follows the wall clock, and looks for clients that have
 * ended.
 */
int rusteron_driver_conductor_do_work(void *clientd);

/*
 * Returns the time of the driver's latest heartbeat, as an age that the monotonic clock has measured before the wall
 * clock's present time. Marks such as AERON_NULL_VALUE are returned as they are. On the conductor's thread only.
 */
int64_t rusteron_client_heartbeat(aeron_client_conductor_t *conductor, int64_t heartbeat_ms);

#endif
