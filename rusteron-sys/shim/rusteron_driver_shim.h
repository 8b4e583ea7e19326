/*
 * What the media driver can do and `aeronmd.h` does not offer: CPU affinity, loss for tests, and
 * strategies by their names. Aeron's own program and tests reach the same functions through
 * internal headers.
 */
#ifndef RUSTERON_DRIVER_SHIM_H
#define RUSTERON_DRIVER_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#include "aeronmd.h"

/* How many of the frames that pass an endpoint are lost, from 0 for none to 1 for all. */
typedef struct rusteron_loss_stct
{
    double data_rate;
    double control_rate;
    int64_t seed;
}
rusteron_loss_t;

/*
 * Lets the channels that the driver opens for sending, or for receiving, lose frames. The structure
 * is read whenever a channel is opened, until the driver is closed. NULL is for no loss.
 */
int rusteron_driver_context_set_send_loss(aeron_driver_context_t *context, rusteron_loss_t *loss);
int rusteron_driver_context_set_receive_loss(aeron_driver_context_t *context, rusteron_loss_t *loss);

/* Aeron's own strategies by name; any other name is looked up as a function of the program. */
aeron_congestion_control_strategy_supplier_func_t rusteron_congestion_control_supplier(const char *name);
aeron_name_resolver_supplier_func_t rusteron_name_resolver_supplier(const char *name);

/*
 * Replaces the interceptors of incoming datagrams by those that are named, separated by commas; the
 * context owns them. NULL is for none.
 */
int rusteron_driver_context_load_incoming_interceptors(aeron_driver_context_t *context, const char *names);

/*
 * The name of an interceptor that lacks the functions for the direction that it is set for, which
 * Aeron calls without looking; NULL if there is none.
 */
const char *rusteron_driver_context_unusable_interceptor(aeron_driver_context_t *context);

/*
 * Gives Aeron's interceptor `loss` a random state for each of a driver's agents. Its own is one for
 * the process, which the threads of all drivers would write to at once.
 */
void rusteron_driver_context_part_loss_states(aeron_driver_context_t *context);

/*
 * Fails if the interceptor `fixed-loss` cannot read its arguments, for which a driver would be left
 * half made.
 */
int rusteron_driver_context_check_fixed_loss(aeron_driver_context_t *context);

/*
 * Keeps Aeron's name resolver from closing what it has not made: if it cannot bind its socket, it
 * would close descriptor 0, which is the process's standard input or anything else. No context may be
 * initialised meanwhile: that writes to the static bindings, which are copied here.
 */
void rusteron_driver_context_guard_resolver(aeron_driver_context_t *context);

/* The modes of log buffers. */
typedef enum rusteron_dir_access_enum
{
    RUSTERON_DIR_ACCESS_PRIVATE,
    RUSTERON_DIR_ACCESS_GROUP,
    RUSTERON_DIR_ACCESS_UMASK
}
rusteron_dir_access_t;

/*
 * Gives the files of log buffers the mode 0600 (PRIVATE), 0660 (GROUP), or 0666 without the umask's bits (UMASK),
 * whichever thread makes them. Without effect on Windows.
 */
void rusteron_driver_context_set_dir_access(aeron_driver_context_t *context, rusteron_dir_access_t access);

/*
 * Gives the calling thread its own umask, 077. Threads that it starts share this umask; the process's other threads keep
 * theirs. Returns 0, or the errno of the system call; ENOSYS where there is none.
 */
int rusteron_thread_umask(void);

/*
 * Checks the CPU affinities and resolves them to CPUs of the machine, as Aeron's program does before
 * it starts a driver. Warnings go to the standard error output.
 */
int rusteron_driver_context_apply_affinity(aeron_driver_context_t *context);

#endif
