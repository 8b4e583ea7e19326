#include <string.h>

#include "aeron_alloc.h"
#include "aeron_driver_conductor.h"
#include "aeron_driver_context.h"
#include "concurrent/aeron_counters_manager.h"
#include "util/aeron_arrayutil.h"
#include "util/aeron_error.h"

#include "rusteron_client_liveness.h"
#include "rusteron_shim.h"

/*
 * Clients whose process has ended. By Aeron's rules, a client is alive until its heartbeat is older
 * than aeron.client.liveness.timeout, 10 s, and meanwhile a subscriber that was killed holds its
 * publishers up. A client of rusteron locks a byte of the driver's loss report, see
 * rusteron_client_watch(). The kernel unlocks it when the process ends, whatever ends it, and in
 * any container. Only the conductor's thread comes here.
 */

/* The time between two looks. A client is taken for dead at the second one without its lock. */
#define RUSTERON_LOOK_INTERVAL_NS INT64_C(20000000)

/* Each look costs a system call. */
#define RUSTERON_CLIENTS_PER_LOOK ((size_t)64)

static rusteron_locked_client_t *rusteron_find_client(const rusteron_locked_clients_t *clients, int64_t client_id)
{
    for (size_t i = 0; i < clients->length; i++)
    {
        if (client_id == clients->array[i].client_id)
        {
            return &clients->array[i];
        }
    }
    return NULL;
}

void rusteron_look_at_client(aeron_driver_conductor_t *conductor, int64_t client_id)
{
    rusteron_locked_clients_t *clients = &rusteron_beside(conductor)->clients;
    if (!clients->is_open)
    {
        clients->report_fd = rusteron_open_loss_report(conductor->context->aeron_dir);
        clients->is_open = true;
    }
    if (NULL != rusteron_find_client(clients, client_id) ||
        !rusteron_is_client_locked(clients->report_fd, client_id))
    {
        return;
    }

    int result = 0;
    AERON_ARRAY_ENSURE_CAPACITY(result, (*clients), rusteron_locked_client_t)
    if (result < 0)
    {
        /* The array has been freed. */
        aeron_err_clear();
        clients->array = NULL;
        clients->length = 0;
        clients->capacity = 0;
        return;
    }
    clients->array[clients->length].client_id = client_id;
    clients->array[clients->length++].was_missed = false;
}

/* Forgets those that the driver has given up. */
static void rusteron_forget_clients(rusteron_locked_clients_t *clients, const aeron_driver_conductor_t *conductor)
{
    for (size_t i = clients->length; i-- > 0;)
    {
        bool is_client = false;
        for (size_t j = 0; j < conductor->clients.length && !is_client; j++)
        {
            is_client = conductor->clients.array[j].client_id == clients->array[i].client_id;
        }
        if (!is_client)
        {
            clients->array[i] = clients->array[--clients->length];
        }
    }
}

void rusteron_look_at_clients(aeron_driver_conductor_t *conductor)
{
    rusteron_locked_clients_t *clients = &rusteron_beside(conductor)->clients;
    const int64_t now_ns = aeron_clock_cached_nano_time(conductor->context->cached_clock);
    const size_t count = conductor->clients.length;
    if (0 == clients->length || now_ns < clients->next_look_ns)
    {
        return;
    }
    clients->next_look_ns = now_ns + RUSTERON_LOOK_INTERVAL_NS;

    for (size_t i = 0; i < count && i < RUSTERON_CLIENTS_PER_LOOK; i++)
    {
        const aeron_client_t *client = &conductor->clients.array[clients->next_client++ % count];
        rusteron_locked_client_t *locked = rusteron_find_client(clients, client->client_id);
        if (NULL == locked)
        {
            continue;
        }
        const bool is_missed = !rusteron_is_client_locked(clients->report_fd, client->client_id);
        if (is_missed && locked->was_missed)
        {
            /* Older than any timeout, and looked at in the next cycle. */
            aeron_counter_set_release(client->heartbeat_timestamp.value_addr, 0);
            conductor->timeout_check_deadline_ns = now_ns;
        }
        locked->was_missed = is_missed;
    }

    if (clients->length > count)
    {
        rusteron_forget_clients(clients, conductor);
    }
}

void rusteron_forget_all_clients(aeron_driver_conductor_t *conductor)
{
    rusteron_locked_clients_t *clients = &rusteron_beside(conductor)->clients;
    if (clients->report_fd >= 0 && clients->is_open)
    {
        rusteron_driver_unwatch(clients->report_fd);
    }
    aeron_free(clients->array);
    memset(clients, 0, sizeof(*clients));
}
