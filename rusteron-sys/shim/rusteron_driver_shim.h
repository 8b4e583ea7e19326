/*
 * Functions of the media driver that `aeronmd.h` does not offer: CPU affinity, loss for tests, and strategies by
 * name. Aeron's own program and tests reach the same functions through internal headers.
 */
#ifndef RUSTERON_DRIVER_SHIM_H
#define RUSTERON_DRIVER_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#include "aeronmd.h"

/* Rates of lost frames at an endpoint, from 0 for none to 1 for all. */
typedef struct rusteron_loss_stct
{
    double data_rate;
    double control_rate;
    int64_t seed;
}
rusteron_loss_t;

/*
 * Makes the channels that the driver opens for sending, or for receiving, lose frames. The structure is read
 * whenever a channel is opened, until the driver is closed. NULL means no loss.
 */
int rusteron_driver_context_set_send_loss(aeron_driver_context_t *context, rusteron_loss_t *loss);
int rusteron_driver_context_set_receive_loss(aeron_driver_context_t *context, rusteron_loss_t *loss);

/* Aeron's own strategies by name. Any other name is looked up as a function of the program. */
aeron_congestion_control_strategy_supplier_func_t aeron_congestion_control_strategy_supplier_load(
    const char *strategy_name);
aeron_name_resolver_supplier_func_t aeron_name_resolver_supplier_load(const char *name);

/*
 * Replaces the interceptors of incoming datagrams by the named interceptors, separated by commas. The context owns
 * them. NULL means none.
 */
int rusteron_driver_context_load_incoming_interceptors(aeron_driver_context_t *context, const char *names);

/*
 * Returns the name of an interceptor that lacks the functions for its direction, which Aeron calls without a check.
 * NULL if there is none.
 */
const char *rusteron_driver_context_unusable_interceptor(aeron_driver_context_t *context);

/*
 * Gives Aeron's interceptor `loss` a random state for each of a driver's agents. Aeron has one state per process,
 * which the threads of all drivers would write to at once.
 */
void rusteron_driver_context_part_loss_states(aeron_driver_context_t *context);

/*
 * Fails if the interceptor `fixed-loss` cannot read its arguments. With such arguments, a driver would be left half
 * made.
 */
int rusteron_driver_context_check_fixed_loss(aeron_driver_context_t *context);

/*
 * Keeps Aeron's name resolver from closing descriptors that it has not opened. If the resolver cannot bind its
 * socket, it would close descriptor 0, which is the process's standard input or any other file. Meanwhile, no
 * context may be initialised: that writes to the static bindings, which are copied here.
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
 * in every thread that makes them. Without effect on Windows.
 */
void rusteron_driver_context_set_dir_access(aeron_driver_context_t *context, rusteron_dir_access_t access);

/*
 * Gives the calling thread its own umask, 077. Threads that it starts share this umask. The process's other threads
 * keep theirs. Returns 0, or the errno of the system call. Returns ENOSYS if there is no such call.
 */
int rusteron_thread_umask(void);

/*
 * A turn of a driver with a manual main loop, in the order in which the loop's own messages wait least: the sender comes
 * first, after the application's offers, and the receiver last, before its polls. In between comes the conductor, unless
 * it had nothing to do microseconds ago; `*conductor_due_ns` is 0 at first, and the caller's to keep. With other threading
 * modes than INVOKER and SHARED, the same as aeron_driver_main_do_work.
 */
int rusteron_driver_main_do_work(aeron_driver_t *driver, int64_t *conductor_due_ns);

/* Stores with which conductors zero terms. */
typedef enum rusteron_term_cleaning_enum
{
    RUSTERON_TERM_CLEANING_ADAPTIVE,
    RUSTERON_TERM_CLEANING_CACHED,
    RUSTERON_TERM_CLEANING_STREAMING
}
rusteron_term_cleaning_t;

/*
 * For all drivers of the process, also while they run. Only x86-64, with a compiler like GCC, has streaming stores.
 * `max_store_length` is the length of the widest that the processor has: 64 (AVX-512F), 32 (AVX) or 16.
 */
void rusteron_set_term_cleaning(rusteron_term_cleaning_t cleaning, size_t max_store_length);

/* How many bytes the drivers of the process have cleaned with streaming stores. */
uint64_t rusteron_streamed_length(void);

/* UDP transport bindings of one driver that send and read several datagrams as one buffer. */
typedef struct rusteron_segmentation_offload_stct rusteron_segmentation_offload_t;

/* The type of the bindings' two counters. The key is an int32_t: 0 counts sends, 1 counts reads. */
#define RUSTERON_SEGMENTATION_OFFLOAD_COUNTER_TYPE_ID (54001)

/*
 * The types of three counters whose keys and labels have the layout of a stream's positions.
 * - Each subscription has one. Its owner is the client, and its value counts the bytes that the
 *   subscription's images lost because they were overrun.
 * - Each add of a shared publication that exists has one. Its owner is the client, its reference
 *   the registration id of the publication, and its value 0.
 * - Each image that is overrun has one until it takes packets again. Its value is the position of
 *   the last packet that the receiver has dropped.
 */
#define RUSTERON_SUBSCRIPTION_COUNTER_TYPE_ID (54002)
#define RUSTERON_SHARED_PUBLICATION_COUNTER_TYPE_ID (54003)
#define RUSTERON_OVERRUN_COUNTER_TYPE_ID (54004)

/*
 * Called on the sender's thread when a transport's buffers of several datagrams are refused. The transport sends single
 * datagrams from then on.
 */
typedef void (*rusteron_offload_refused_func_t)(int error_code, const char *address);

/*
 * Makes the context use such bindings, which have to be freed after the driver. `*offload` is NULL if the context has
 * other bindings than Aeron's default, or on other systems than Linux. Meanwhile, no context may be initialised.
 */
int rusteron_segmentation_offload_install(
    rusteron_segmentation_offload_t **offload,
    aeron_driver_context_t *context,
    rusteron_offload_refused_func_t on_refused);

/* Adds the bindings' counters to a driver that is initialised and not yet started. */
int rusteron_segmentation_offload_add_counters(
    rusteron_segmentation_offload_t *offload, aeron_driver_context_t *context);

void rusteron_segmentation_offload_free(rusteron_segmentation_offload_t *offload);

/*
 * Checks the CPU affinities and resolves them to CPUs of the machine, as Aeron's program does before
 * it starts a driver. Warnings go to the standard error output.
 */
int aeron_driver_validate_and_apply_affinity_configuration(aeron_driver_context_t *context);

/* The mappings of the two files that a driver keeps mapped for as long as it runs: CnC file and loss report. */
void rusteron_driver_context_mappings(aeron_driver_context_t *context, void *addresses[2], size_t lengths[2]);

/* What is where a driver has made its directory. */
typedef enum rusteron_driver_home_enum
{
    RUSTERON_DRIVER_HOME_OWN,
    /* No `cnc.dat`, or no directory. */
    RUSTERON_DRIVER_HOME_GONE,
    /* Another `cnc.dat`, or one that is being made. */
    RUSTERON_DRIVER_HOME_REPLACED,
    /* It cannot be read, or the operating system is Windows. */
    RUSTERON_DRIVER_HOME_UNKNOWN
}
rusteron_driver_home_t;

/*
 * Compares the `cnc.dat` that the driver has mapped with the one in its directory. Unless `dir` is NULL, writes a
 * descriptor of the driver's own directory there, for rusteron_delete_dir().
 */
rusteron_driver_home_t rusteron_driver_home(aeron_driver_context_t *context, int *dir);

/*
 * Deletes the contents of an open directory, and the directory if that is its name. Closes the descriptor. What others
 * make under the same name meanwhile stays.
 */
int rusteron_delete_dir(const char *path, int dir);

typedef void (*rusteron_driver_home_lost_t)(const char *dir, rusteron_driver_home_t home);

/*
 * Calls a function on the conductor's thread, once, if the driver's `cnc.dat` is gone or replaced. Allocates until
 * rusteron_driver_unwatch_home().
 */
int rusteron_driver_watch_home(aeron_driver_context_t *context, rusteron_driver_home_lost_t on_lost);
void rusteron_driver_unwatch_home(aeron_driver_context_t *context);

/*
 * Makes the storage checks, if they are on, compare new log buffers with the free space of the file system. With
 * `count_sparse`, what the sparse log buffers of this process's drivers there have yet to take does not count as free.
 */
void rusteron_driver_context_apply_storage_checks(aeron_driver_context_t *context, bool count_sparse);

#endif
