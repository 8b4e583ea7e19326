/* What clients and drivers have behind C's structures. */
#ifndef RUSTERON_BESIDE_H
#define RUSTERON_BESIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rusteron_clock.h"

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
    /* The loss report, opened at the first command of a client; -1 if that has failed. */
    int report_fd;
    bool is_open;
    int64_t next_look_ns;
    size_t next_client;
    size_t length;
    size_t capacity;
    rusteron_locked_client_t *array;
}
rusteron_locked_clients_t;

/* Every client and every driver has such a structure, see rusteron_alloc(). */
typedef struct rusteron_beside_stct
{
    rusteron_clock_t clock;
    /* A driver's. */
    rusteron_locked_clients_t clients;
}
rusteron_beside_t;

#define RUSTERON_BESIDE(owner) ((rusteron_beside_t *)((owner) + 1))
#define RUSTERON_CLOCK_OF(owner) (&RUSTERON_BESIDE(owner)->clock)

/*
 * Opens a driver's loss report for reading, so that other processes still get the lease that says
 * whether the driver is alive. -1 if that fails, or where there are no such locks: only Linux has
 * them.
 */
int rusteron_open_loss_report(const char *aeron_dir);

/* Returns whether a client has locked its byte, see rusteron_client_watch(). */
bool rusteron_is_client_locked(int loss_report, int64_t client_id);

#endif
