#if defined(__linux__)
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#endif

#include "aeron_alloc.h"
#include "aeron_driver_conductor.h"
#include "aeron_driver_context.h"
#include "concurrent/aeron_counters_manager.h"
#include "reports/aeron_loss_reporter.h"
#include "util/aeron_arrayutil.h"
#include "util/aeron_error.h"

#include "rusteron_client_liveness.h"

/*
 * Clients whose process has ended. By Aeron's rules, a client is alive until its heartbeat is older than
 * aeron.client.liveness.timeout, 10 s, and meanwhile a subscriber that was killed holds its publishers up. A client of
 * rusteron locks a byte of the driver's loss report, see rusteron_client_watch(). The kernel unlocks it when the process
 * ends, whatever ends it, and in any container. Only the conductor's thread comes here.
 */

#if defined(__linux__)

/* The time between two looks. A client is taken for dead at the second one without its lock. */
#define RUSTERON_LOOK_INTERVAL_NS INT64_C(20000000)

/* Each look costs a system call. */
#define RUSTERON_CLIENTS_PER_LOOK ((size_t)64)

static bool rusteron_open_report(rusteron_locked_clients_t *clients, const char *aeron_dir)
{
    char path[AERON_MAX_PATH];
    if (clients->report_fd > 0)
    {
        return true;
    }
    if (aeron_loss_reporter_resolve_filename(aeron_dir, path, sizeof(path)) < 0)
    {
        aeron_err_clear();
        return false;
    }
    /* For reading, so that other processes still get a lease that says whether the driver is alive. */
    clients->report_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return clients->report_fd > 0;
}

static bool rusteron_is_locked(const rusteron_locked_clients_t *clients, int64_t client_id)
{
    struct flock lock;
    memset(&lock, 0, sizeof(lock));
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = (off_t)client_id;
    lock.l_len = 1;
    /* Locks of more than this byte are not a client's. */
    return client_id >= 0 && 0 == fcntl(clients->report_fd, F_OFD_GETLK, &lock) &&
        F_RDLCK == lock.l_type && (off_t)client_id == lock.l_start && 1 == lock.l_len;
}

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
    int result = 0;
    if (NULL != rusteron_find_client(clients, client_id) ||
        !rusteron_open_report(clients, conductor->context->aeron_dir) ||
        !rusteron_is_locked(clients, client_id))
    {
        return;
    }

    AERON_ARRAY_ENSURE_CAPACITY(result, (*clients), rusteron_locked_client_t)
    if (result < 0)
    {
        aeron_err_clear();
        return;
    }
    clients->array[clients->length].client_id = client_id;
    clients->array[clients->length++].was_missed = false;
}

void rusteron_look_at_clients(aeron_driver_conductor_t *conductor)
{
    rusteron_locked_clients_t *clients = &rusteron_beside(conductor)->clients;
    const int64_t now_ns = aeron_clock_cached_nano_time(conductor->context->cached_clock);
    if (0 == clients->length || now_ns < clients->next_look_ns)
    {
        return;
    }
    clients->next_look_ns = now_ns + RUSTERON_LOOK_INTERVAL_NS;

    for (size_t i = 0, count = conductor->clients.length; i < count && i < RUSTERON_CLIENTS_PER_LOOK; i++)
    {
        const aeron_client_t *client = &conductor->clients.array[clients->next_client++ % count];
        rusteron_locked_client_t *locked = rusteron_find_client(clients, client->client_id);
        const bool is_missed = NULL != locked && !rusteron_is_locked(clients, client->client_id);
        if (is_missed && locked->was_missed)
        {
            /* Older than any timeout, and looked at in the next cycle. */
            aeron_counter_set_release(client->heartbeat_timestamp.value_addr, 0);
            conductor->timeout_check_deadline_ns = now_ns;
        }
        if (NULL != locked)
        {
            locked->was_missed = is_missed;
        }
    }

    /* Those that the driver has given up are forgotten. */
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

void rusteron_forget_all_clients(aeron_driver_conductor_t *conductor)
{
    rusteron_locked_clients_t *clients = &rusteron_beside(conductor)->clients;
    if (clients->report_fd > 0)
    {
        close(clients->report_fd);
    }
    aeron_free(clients->array);
    memset(clients, 0, sizeof(*clients));
}

#else

void rusteron_look_at_client(aeron_driver_conductor_t *conductor, int64_t client_id)
{
    (void)conductor;
    (void)client_id;
}

void rusteron_look_at_clients(aeron_driver_conductor_t *conductor)
{
    (void)conductor;
}

void rusteron_forget_all_clients(aeron_driver_conductor_t *conductor)
{
    (void)conductor;
}

#endif
