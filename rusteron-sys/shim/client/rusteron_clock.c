#include <stddef.h>

#include "aeron_alloc.h"
#include "aeron_client.h"
#include "aeron_client_conductor.h"
#include "util/aeron_bitutil.h"

#include "rusteron_beside.h"
#include "rusteron_shim.h"

/* No timeout of Aeron's is so short that a smaller step matters. Slewing moves the clock by far less between two looks. */
#define RUSTERON_SHORTEST_STEP_MS INT64_C(100)

_Static_assert(
    0 == sizeof(aeron_t) % _Alignof(rusteron_beside_t), "the structure behind a client has to be aligned");

/* Aeron allocates clients and drivers, and nothing else, in the files that call this in place of aeron_alloc(). */
int rusteron_alloc(void **ptr, size_t size)
{
    return aeron_alloc(ptr, size + sizeof(rusteron_beside_t));
}

int64_t rusteron_steady_clock_ms(void)
{
    return aeron_nano_clock() / RUSTERON_NS_PER_MS;
}

int64_t rusteron_clock_step(rusteron_clock_t *clock, int64_t epoch_ms, int64_t nano_ns)
{
    const int64_t step_ms =
        (epoch_ms - clock->epoch_ms) - (nano_ns - clock->nano_ns) / RUSTERON_NS_PER_MS;
    const bool is_first = 0 == clock->epoch_ms;

    clock->epoch_ms = epoch_ms;
    clock->nano_ns = nano_ns;
    return is_first || (-RUSTERON_SHORTEST_STEP_MS < step_ms && step_ms < RUSTERON_SHORTEST_STEP_MS) ? 0 : step_ms;
}

static aeron_t *rusteron_client_of(aeron_client_conductor_t *conductor)
{
    return (aeron_t *)((uint8_t *)conductor - offsetof(aeron_t, conductor));
}

int64_t rusteron_client_heartbeat(aeron_client_conductor_t *conductor, int64_t heartbeat_ms)
{
    rusteron_clock_t *clock = RUSTERON_CLOCK_OF(rusteron_client_of(conductor));
    const int64_t now_ms = conductor->epoch_clock();
    const int64_t now_ns = conductor->nano_clock();

    if (AERON_NULL_VALUE == heartbeat_ms || RUSTERON_HEARTBEAT_OF_GONE_DRIVER == heartbeat_ms)
    {
        return heartbeat_ms;
    }

    if (heartbeat_ms != clock->heartbeat_ms)
    {
        /*
         * A connecting client trusts the wall clock, as C has just done. Later, the heartbeat was given after the
         * latest look at it, whatever the wall clock says.
         */
        const int64_t age_ns = now_ms > heartbeat_ms ? (now_ms - heartbeat_ms) * RUSTERON_NS_PER_MS : 0;
        const int64_t since_look_ns = now_ns - conductor->time_of_last_keepalive_ns;
        const bool is_first = 0 == clock->heartbeat_ms;
        clock->heartbeat_ms = heartbeat_ms;
        clock->heartbeat_ns = now_ns - (is_first || age_ns < since_look_ns ? age_ns : since_look_ns);
    }

    return now_ms - (now_ns - clock->heartbeat_ns) / RUSTERON_NS_PER_MS;
}

void rusteron_client_look_at_driver(aeron_t *client)
{
    aeron_client_conductor_t *conductor = &client->conductor;
    const int64_t now_ns = conductor->nano_clock();

    const int64_t keepalive_ns = now_ns - (int64_t)conductor->keepalive_interval_ns - 1;
    const int64_t service_ns = now_ns - (int64_t)conductor->idle_sleep_duration_ns - 1;

    /* An earlier time stays: by it the conductor notices that it has not run for too long. */
    conductor->time_of_last_keepalive_ns = AERON_MIN(conductor->time_of_last_keepalive_ns, keepalive_ns);
    conductor->time_of_last_service_ns = AERON_MIN(conductor->time_of_last_service_ns, service_ns);
}

void rusteron_client_follow_clock(aeron_t *client)
{
    aeron_client_conductor_t *conductor = &client->conductor;

    if (0 != rusteron_clock_step(
        RUSTERON_CLOCK_OF(client), conductor->epoch_clock(), conductor->nano_clock()))
    {
        rusteron_client_look_at_driver(client);
    }
}
