/*
 * Addresses of fields in Aeron's internal structures. The C functions use the same fields, so both sides work on
 * the same handle. Nothing here changes Aeron.
 *
 * The `volatile` of Aeron's declarations is dropped: Rust accesses every shared field atomically, with the memory
 * order that the C code uses for the field.
 */
#ifndef RUSTERON_SHIM_H
#define RUSTERON_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aeronc.h"

/*
 * The start of a counter's record among the values: its value, and its owner. The driver frees the counters of a
 * client that it considers dead, and gives them to others after a while.
 */
typedef struct rusteron_counter_value_stct
{
    int64_t value;
    int64_t registration_id;
    int64_t owner_id;
    int64_t reference_id;
}
rusteron_counter_value_t;

/* The position of an exclusive publication: fields that follow each other in C's structure. */
typedef struct rusteron_next_frame_stct
{
    int64_t term_begin_position;
    int32_t term_offset;
    int32_t term_id;
    size_t active_partition_index;
}
rusteron_next_frame_t;

/* The fields of a publication that an offer reads and writes, and the mapping of its log buffer. */
typedef struct rusteron_publication_stct
{
    uint8_t *term_buffers[3];
    int64_t *term_tail_counters;
    int32_t *active_term_count;
    int32_t *is_connected;
    rusteron_counter_value_t *position_limit;
    /* The registration id of that counter, as long as the counter is the publication's. */
    int64_t position_limit_registration_id;
    bool *is_closed;
    /* NULL for a publication that is not exclusive. */
    rusteron_next_frame_t *next_frame;
    int64_t max_possible_position;
    size_t max_payload_length;
    size_t max_message_length;
    int32_t term_buffer_length;
    int32_t initial_term_id;
    int32_t session_id;
    int32_t stream_id;
    void *log_address;
    size_t log_length;
}
rusteron_publication_t;

void rusteron_publication_fields(aeron_publication_t *publication, rusteron_publication_t *fields);
void rusteron_exclusive_publication_fields(
    aeron_exclusive_publication_t *publication, rusteron_publication_t *fields);

/*
 * Results of aeron_publication_close() and aeron_exclusive_publication_close() that tell whether C calls the
 * notification. C's own result is 0 even if the conductor has closed the publication; then the notification is
 * neither called nor stored.
 */
typedef enum rusteron_close_result_enum
{
    /* The conductor closes it. The notification, if any, is called exactly once. */
    RUSTERON_CLOSE_BEGUN = 0,
    /* The client was closed before and frees the publication. The notification is never called. */
    RUSTERON_CLOSE_TOO_LATE = 1
}
rusteron_close_result_t;

rusteron_close_result_t rusteron_publication_close(
    aeron_publication_t *publication, aeron_notification_t on_close_complete, void *clientd);
rusteron_close_result_t rusteron_exclusive_publication_close(
    aeron_exclusive_publication_t *publication, aeron_notification_t on_close_complete, void *clientd);

/* Owners of destinations. That of a shared publication stands for an exclusive one as well: the command is the same. */
typedef enum rusteron_destination_owner_enum
{
    RUSTERON_OWNER_PUBLICATION,
    RUSTERON_OWNER_SUBSCRIPTION
}
rusteron_destination_owner_t;

/*
 * A stand-in for the publication or subscription in a destination command.
 *
 * C's command points to its owner, and the conductor reads the owner's type and registration id when it executes
 * the command. By then the owner can be freed: when the queue of commands is full, a close overtakes the command
 * (pending_close_action). A stand-in has only that type and id, and is freed only after the conductor has executed
 * the command. Pass the stand-in, as a pointer to its owner's type, only to the functions
 * aeron_*_async_add_destination(), ..._remove_destination() and ..._remove_destination_by_id().
 *
 * Returns NULL, with an error, if there is no memory. aeron_free() frees a stand-in.
 */
void *rusteron_destination_owner_create(rusteron_destination_owner_t type, int64_t registration_id);

/*
 * Cancels the command without waiting for its outcome, as C can for every other registration. The conductor frees
 * both the command and the stand-in. On failure, -1, neither is freed here: the command is freed with the client,
 * and the stand-in still belongs to the caller.
 */
int rusteron_async_destination_cancel(
    aeron_t *client, aeron_async_destination_t *async, void *owner);

/*
 * Cancels the request of a session id without waiting for it, as C can for every registration but this and
 * destinations. The conductor frees the command. On failure, -1, it is freed with the client.
 */
int rusteron_async_next_session_id_cancel(
    aeron_t *client, aeron_async_get_next_available_session_id_t *async);

/* A list of images as the conductor installs it. It starts with its change number. */
typedef struct rusteron_image_list_stct
{
    int64_t change_number;
}
rusteron_image_list_t;

/* The fields of a subscription that a poll reads and writes. */
typedef struct rusteron_subscription_stct
{
    rusteron_image_list_t **image_list;
    int64_t *last_image_list_change_number;
    bool *is_closed;
}
rusteron_subscription_t;

void rusteron_subscription_fields(aeron_subscription_t *subscription, rusteron_subscription_t *fields);

/* The fields of an image that a poll reads and writes. */
typedef struct rusteron_image_stct
{
    aeron_image_t *image;
    uint8_t *term_buffers[3];
    /*
     * The counter is the image's as long as its registration id is the subscription's and its reference id the
     * image's.
     */
    rusteron_counter_value_t *subscriber_position;
    bool *is_closed;
    size_t position_bits_to_shift;
    int64_t correlation_id;
    int64_t subscription_registration_id;
    int64_t join_position;
    int32_t term_length;
    int32_t initial_term_id;
    int32_t session_id;
}
rusteron_image_t;

/* The number of images in the list. */
size_t rusteron_image_list_length(const rusteron_image_list_t *list);

/* The fields of the image at an index below the length of the list. */
void rusteron_image_fields(const rusteron_image_list_t *list, size_t index, rusteron_image_t *fields);

/*
 * Whether the image holds up its publisher: the driver has not freed its position, so nothing from there on has been
 * overwritten. Reads of the log buffer that this is to confirm need an acquire fence behind them.
 */
bool rusteron_image_holds_publisher(const aeron_image_t *image);

/* As aeron_image_position(), which reads a position with a plain load while another thread may write it. */
int64_t rusteron_image_position(aeron_image_t *image);

/* Returns the effective user id of this process. Returns -1 on Windows, which has no such ids. */
int64_t rusteron_effective_user(void);

/* State of the command-and-control file in a directory. */
typedef enum rusteron_cnc_state_enum
{
    RUSTERON_CNC_ABSENT,
    RUSTERON_CNC_INCOMPLETE,
    RUSTERON_CNC_READY,
    RUSTERON_CNC_INCOMPATIBLE,
    RUSTERON_CNC_FAILED
}
rusteron_cnc_state_t;

/*
 * Reads the state once, without waiting. Sets aeron_errcode() and aeron_errmsg() for the last two states. If the
 * file is ready, sets `heartbeat_ms`, unless it is NULL, to the time of the driver's last heartbeat, 0 for none
 * yet. If the file is damaged, which aeron_init() then reports, the time is INT64_MAX.
 */
rusteron_cnc_state_t rusteron_cnc_state(const char *aeron_dir, int64_t *heartbeat_ms);

/*
 * To be called after aeron_init() has failed and before aeron_context_close(). A failed attempt has unmapped the
 * CnC file without recording that in the context. The context would unmap the same addresses again, and with them
 * any later mapping of another thread.
 */
void rusteron_context_forget_cnc(aeron_context_t *context);

/* Gets the time for which the conductor's thread sleeps when idle. Returns false if the thread does not sleep. */
bool rusteron_context_sleeps(const aeron_context_t *context, uint64_t *duration_ns);

/* An idle strategy of C, with its state. */
typedef struct rusteron_idle_stct
{
    void (*func)(void *state, int work_count);
    void *state;
}
rusteron_idle_t;

/*
 * Makes the conductor's thread call `idle` after each invocation, in place of its idle strategy. `idle` gets the
 * work count and the address of a pointer to `idler`, which belongs to the caller. Only before aeron_init().
 * Gets the previous strategy, whose state aeron_free() frees. Returns -1, with an error, if there is no memory.
 */
int rusteron_context_set_idle(
    aeron_context_t *context,
    void (*idle)(void *idler_address, int work_count),
    void *idler,
    rusteron_idle_t *previous);

/* The reason why the conductor of a client has closed. */
typedef struct rusteron_client_end_stct
{
    /* A code of Aeron's, without its sign. */
    int32_t code;
    /* For a driver timeout: the driver has said that it ends. */
    bool is_driver_shut_down;
    /* The time since the last heartbeat of the driver, or since the conductor's last duty cycle; otherwise 0. */
    int64_t elapsed_ms;
    /* The limit of that time. */
    int64_t timeout_ms;
}
rusteron_client_end_t;

/*
 * Gets the reason for the end of a client that is closed, by aeron_is_closed(). The conductor writes the fields that
 * this reads for the last time before that.
 */
void rusteron_client_end(aeron_t *client, rusteron_client_end_t *end);

/*
 * A watch tells whether the process of the driver in a directory has ended. It is a descriptor of the driver's loss
 * report, which that process alone maps for writing, from before the CnC file is complete until its end. Returns -1
 * if there is no complete CnC file, or the operating system or the file system cannot tell (only Linux can), or the
 * file belongs to another user. Otherwise gets the driver's start and process id.
 */
int rusteron_driver_watch(const char *aeron_dir, int64_t *start_timestamp, int64_t *pid);

/*
 * Watches the driver that a client has mapped, and gets its process id. Until the watch is closed,
 * or the process ends, the client's byte of the loss report is locked: the one whose offset is the
 * client's id. The driver looks at it.
 */
int rusteron_client_watch(aeron_t *client, int64_t *pid);

/* Returns true once the process has ended, whether or not a driver of another process has the directory now. */
bool rusteron_driver_is_gone(int watch);

void rusteron_driver_unwatch(int watch);

/*
 * The heartbeat that clients and successors write into the CnC file of a driver that is gone, in milliseconds since the
 * epoch. It is old for every timeout. A driver that ends in good order writes -1.
 */
#define RUSTERON_HEARTBEAT_OF_GONE_DRIVER 1

/* Milliseconds of the monotonic clock, for times that nobody else reads. */
int64_t rusteron_steady_clock_ms(void);

/* Makes the next duty cycle of a client's conductor look at the driver and give a heartbeat. On its thread only. */
void rusteron_client_look_at_driver(aeron_t *client);

/*
 * If the wall clock has stepped since the last call, makes the next duty cycle give a heartbeat by the stepped clock, before
 * the driver compares the old one with it. On the conductor's thread only.
 */
void rusteron_client_follow_clock(aeron_t *client);

/*
 * Makes the next duty cycle of a client's conductor find that the driver is gone, and writes that into the CnC file
 * for other clients. On the conductor's thread only.
 */
void rusteron_client_end_driver(aeron_t *client);

/* Writes into the CnC file in a directory that its driver is gone, if the file is still that driver's. */
void rusteron_driver_mark_gone(const char *aeron_dir, int64_t start_timestamp, int64_t pid);

/* The results of rusteron_lock_dir() without a lock: it cannot be locked, and another process has locked it. */
#define RUSTERON_LOCK_NONE (-1)
#define RUSTERON_LOCK_BUSY (-2)

/* Locks a directory against other callers of this function, until rusteron_unlock_dir(). */
int rusteron_lock_dir(const char *dir);

void rusteron_unlock_dir(int lock);

/* The tail of the queue of commands to the conductor's thread, which moves with each command. */
int64_t rusteron_command_position(aeron_t *client);

/*
 * Asks the driver of a client to close the client with an id, as that does itself when it ends. Returns false if the
 * buffer of commands to the driver is full. The driver ignores an id that it does not know.
 */
bool rusteron_close_client(aeron_t *client, int64_t client_id);

/*
 * The length of the list of requests that await the driver's answer, and a way to truncate it. Only for a client in
 * invoker mode. If a request does not fit into the driver's buffer, aeron_async_add_publication() and similar
 * functions free the request that they have just put at the end of this list.
 */
size_t rusteron_registering_count(const aeron_t *client);
void rusteron_registering_truncate(aeron_t *client, size_t count);

/* A value from which a publication would compute addresses or lengths, and that cannot be right. Texts are static. */
typedef struct rusteron_refusal_stct
{
    const char *name;
    int64_t value;
    const char *expected;
}
rusteron_refusal_t;

/* Leaves the reason with the request of a publication that this client refuses. Only on the conductor's thread. */
void rusteron_set_refusal(
    struct aeron_client_registering_resource_stct *registering, const rusteron_refusal_t *refusal);

/* State of a request. */
typedef enum rusteron_registration_enum
{
    RUSTERON_REGISTRATION_AWAITING,
    /* The driver has not answered in time. */
    RUSTERON_REGISTRATION_TIMED_OUT,
    /* This client refuses the publication that the driver has made. */
    RUSTERON_REGISTRATION_REFUSED,
    /* C's poll function gives the outcome. */
    RUSTERON_REGISTRATION_DECIDED
}
rusteron_registration_t;

/*
 * Returns the state of a request, and the reason of a refusal. To be called before the request's outcome is polled,
 * because a poll makes the conductor forget the request, and frees it.
 */
rusteron_registration_t rusteron_registration(
    struct aeron_client_registering_resource_stct *registering, rusteron_refusal_t *refusal);

/* As aeron_context_set_agent_on_start_function(), which is declared, but defined nowhere. */
int rusteron_context_set_agent_on_start(
    aeron_context_t *context, aeron_agent_on_start_func_t value, void *state);

/* Clears this thread's aeron_errcode() and aeron_errmsg(). */
void aeron_err_clear(void);

/* Frees what Aeron or the shim has allocated; NULL is nothing. */
void aeron_free(void *ptr);

/* The number of forks between this process and the one that first called this. Always 0 on Windows. */
uint64_t rusteron_fork_count(void);

/*
 * What a forked child must not share with its parent. In a child, zeros of its own replace the memory before fork()
 * returns, and the flag is set. The child can then neither read nor write the parent's memory through any address that
 * it has inherited. The guard is used up there.
 *
 * Does not apply to vfork() and posix_spawn(), whose children only execute another program.
 */
typedef struct rusteron_fork_guard_stct
{
    struct rusteron_fork_guard_stct *next;
    struct rusteron_fork_guard_stct *previous;
    /* A whole mapping, or one of length 0 for none. */
    void *address;
    size_t length;
    /* May be NULL. */
    bool *flag;
}
rusteron_fork_guard_t;

/* The guard stays where it is until it is removed. Memory and flag are live until then. */
void rusteron_fork_guard_add(rusteron_fork_guard_t *guard);
void rusteron_fork_guard_remove(rusteron_fork_guard_t *guard);

/* The mapping of a client's CnC file. */
void rusteron_client_cnc(aeron_t *client, void **address, size_t *length);

typedef void *(*rusteron_function_t)(void *first, void *second);

/*
 * Calls a function of C. If the function ends the thread by pthread_exit(), as Python's functions do after the end of
 * the interpreter, the thread sleeps for ever instead. An end would unwind the frames of the caller, and a Rust program
 * aborts when it catches that.
 */
void *rusteron_call_to_the_end(rusteron_function_t function, void *first, void *second);

#endif
