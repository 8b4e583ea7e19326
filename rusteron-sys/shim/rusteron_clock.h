/*
 * Steps of the wall clock. Clients and drivers compare heartbeats, which are wall-clock times, with the wall clock. NTP
 * or a machine that resumes moves that clock by any amount at once, and then everybody looks dead, or the dead alive.
 * The monotonic clock does not step.
 */
#ifndef RUSTERON_CLOCK_H
#define RUSTERON_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
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

/* A client that was seen to lock its byte of the driver's loss report. */
typedef struct rusteron_locked_client_stct
{
    int64_t client_id;
    /* Whether the latest look did not find the lock. */
    bool was_missed;
}
rusteron_locked_client_t;

/* All 0 at first. */
typedef struct rusteron_locked_clients_stct
{
    int report_fd;
    int64_t next_look_ns;
    size_t next_client;
    size_t length;
    size_t capacity;
    rusteron_locked_client_t *array;
}
rusteron_locked_clients_t;

/* Every client and every driver has such a structure behind C's, see rusteron_alloc(). */
typedef struct rusteron_beside_stct
{
    rusteron_clock_t clock;
    /* A driver's. */
    rusteron_locked_clients_t clients;
}
rusteron_beside_t;

#define RUSTERON_BESIDE(owner) ((rusteron_beside_t *)((owner) + 1))
#define RUSTERON_CLOCK_OF(owner) (&RUSTERON_BESIDE(owner)->clock)

/* Returns by how many milliseconds the wall clock has stepped since the latest look. 0 if it has not. */
int64_t rusteron_clock_step(rusteron_clock_t *clock, int64_t epoch_ms, int64_t nano_ns);

/* As aeron_driver_conductor_do_work(), follows the wall clock, and looks for clients that have ended. */
int rusteron_driver_conductor_do_work(void *clientd);

/*
 * Returns the time of the driver's latest heartbeat, as an age that the monotonic clock has measured before the wall
 * clock's present time. Marks such as AERON_NULL_VALUE are returned as they are. On the conductor's thread only.
 */
int64_t rusteron_client_heartbeat(aeron_client_conductor_t *conductor, int64_t heartbeat_ms);

#endif
