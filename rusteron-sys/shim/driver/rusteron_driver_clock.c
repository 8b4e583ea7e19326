#if defined(__linux__)
#define _BSD_SOURCE
#define _GNU_SOURCE
#endif

#include <stddef.h>

#include "aeron_driver.h"
#include "aeron_driver_conductor.h"
#include "aeron_driver_context.h"
#include "aeron_name_resolver.h"
#include "concurrent/aeron_counters_manager.h"
#include "concurrent/aeron_mpsc_rb.h"
#include "util/aeron_bitutil.h"
#include "util/aeron_clock.h"

#include "rusteron_client_liveness.h"
#include "rusteron_driver_home.h"
#include "rusteron_shim.h"

_Static_assert(
    0 == sizeof(aeron_driver_t) % _Alignof(rusteron_beside_t), "the structure behind a driver has to be aligned");

rusteron_beside_t *rusteron_beside(aeron_driver_conductor_t *conductor)
{
    return RUSTERON_BESIDE((aeron_driver_t *)((uint8_t *)conductor - offsetof(aeron_driver_t, conductor)));
}

/*
 * Moves a client's heartbeat by a step of the wall clock. A client that has noticed the step itself has written a time
 * that is not in the future; for a step back, that tells it from an older one. A client that writes meanwhile wins.
 */
static void rusteron_move_heartbeat(volatile int64_t *heartbeat_ms, int64_t step_ms, int64_t now_ms)
{
    int64_t before_ms;
    AERON_GET_ACQUIRE(before_ms, *heartbeat_ms);
    const int64_t after_ms = AERON_MIN(before_ms + step_ms, now_ms);

    if (step_ms > 0 || before_ms > now_ms)
    {
        (void)aeron_cas_int64(heartbeat_ms, before_ms, after_ms);
    }
}

/* Moves the times at which freed counters may be used again. */
static void rusteron_move_deadlines(aeron_counters_manager_t *counters, int64_t step_ms)
{
    for (int32_t i = 0; i <= counters->free_list_index; i++)
    {
        aeron_counter_metadata_descriptor_t *metadata = (aeron_counter_metadata_descriptor_t *)(
            counters->metadata + AERON_COUNTER_METADATA_OFFSET(counters->free_list[i]));
        AERON_SET_RELEASE(metadata->free_for_reuse_deadline_ms, metadata->free_for_reuse_deadline_ms + step_ms);
    }
}

/*
 * After a step of the wall clock, moves the times by which the driver tells the dead from the living, and gives a
 * heartbeat before the clients look for it. All times in the CnC file stay those of the wall clock.
 */
static void rusteron_follow_clock(aeron_driver_conductor_t *conductor)
{
    aeron_clock_cache_t *cached_clock = conductor->context->cached_clock;
    rusteron_clock_t *clock = &rusteron_beside(conductor)->clock;
    const int64_t now_ms = aeron_clock_cached_epoch_time(cached_clock);

    /* The cached time of the wall clock changes once in a while, and is as old as the other one then. */
    if (now_ms == clock->epoch_ms)
    {
        return;
    }

    const int64_t step_ms = rusteron_clock_step(clock, now_ms, aeron_clock_cached_nano_time(cached_clock));
    if (0 != step_ms)
    {
        aeron_mpsc_rb_consumer_heartbeat_time(&conductor->to_driver_commands, now_ms);
        for (size_t i = 0; i < conductor->clients.length; i++)
        {
            rusteron_move_heartbeat(conductor->clients.array[i].heartbeat_timestamp.value_addr, step_ms, now_ms);
        }
        rusteron_move_deadlines(&conductor->counters_manager, step_ms);
    }
}

/* The conductor calls this at its timer's interval, before it looks at its clients, and when it is closed. */
void rusteron_mpsc_rb_consumer_heartbeat_time(aeron_mpsc_rb_t *ring_buffer, int64_t now_ms)
{
    if (AERON_NULL_VALUE != now_ms)
    {
        aeron_driver_conductor_t *conductor = (aeron_driver_conductor_t *)(
            (uint8_t *)ring_buffer - offsetof(aeron_driver_conductor_t, to_driver_commands));
        rusteron_follow_clock(conductor);
        rusteron_driver_check_home(conductor->context);
    }
    aeron_mpsc_rb_consumer_heartbeat_time(ring_buffer, now_ms);
}

int rusteron_driver_conductor_do_work(void *clientd)
{
    aeron_driver_conductor_t *conductor = (aeron_driver_conductor_t *)clientd;
    const int work_count = aeron_driver_conductor_do_work(clientd);
    rusteron_follow_clock(conductor);
    rusteron_look_at_clients(conductor);
    return work_count;
}

/*
 * The resolver of names keeps its intervals and the ages of its neighbours by the wall clock, and tells others ages only. A
 * step forward would make it forget all names, and after a step back it would rest until the clock is there again. So
 * its time is the monotonic clock's. In the resolver's file, this stands for the conductor's cached wall clock.
 */
int64_t rusteron_clock_cached_epoch_time(aeron_clock_cache_t *cached_clock)
{
    return aeron_clock_cached_nano_time(cached_clock) / RUSTERON_NS_PER_MS;
}

int aeron_driver_name_resolver_do_work(aeron_name_resolver_t *resolver, int64_t now_ms);

static int rusteron_driver_name_resolver_do_work(aeron_name_resolver_t *resolver, int64_t now_ms)
{
    (void)now_ms;
    return aeron_driver_name_resolver_do_work(resolver, rusteron_steady_clock_ms());
}

int rusteron_name_resolver_init(aeron_name_resolver_t *resolver, const char *args, aeron_driver_context_t *context)
{
    const aeron_clock_func_t epoch_clock = context->epoch_clock;
    context->epoch_clock = rusteron_steady_clock_ms;
    const int result = aeron_name_resolver_init(resolver, args, context);
    context->epoch_clock = epoch_clock;

    if (result >= 0 && aeron_driver_name_resolver_do_work == resolver->do_work_func)
    {
        resolver->do_work_func = rusteron_driver_name_resolver_do_work;
    }
    return result;
}
