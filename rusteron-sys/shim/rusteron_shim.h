/*
 * What Rust needs to know about Aeron's internal structures: the addresses of the very fields that
 * the C functions use, so that both sides work on the same handle. Nothing here changes Aeron.
 *
 * The `volatile` of Aeron's declarations is dropped: Rust accesses every shared field atomically,
 * with the memory order that the C code uses for it.
 */
#ifndef RUSTERON_SHIM_H
#define RUSTERON_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aeronc.h"

/* The fields of an exclusive publication that an offer reads and writes. */
typedef struct rusteron_exclusive_publication_stct
{
    uint8_t *term_buffers[3];
    int64_t *term_tail_counters;
    int32_t *active_term_count;
    int32_t *is_connected;
    int64_t *position_limit;
    bool *is_closed;
    int64_t *term_begin_position;
    int32_t *term_offset;
    int32_t *term_id;
    size_t *active_partition_index;
    int64_t max_possible_position;
    size_t max_payload_length;
    size_t max_message_length;
    int32_t term_buffer_length;
    int32_t initial_term_id;
    int32_t session_id;
    int32_t stream_id;
}
rusteron_exclusive_publication_t;

void rusteron_exclusive_publication_fields(
    aeron_exclusive_publication_t *publication, rusteron_exclusive_publication_t *fields);

/* A list of images as the conductor installs it; starts with its change number. */
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
    int64_t *subscriber_position;
    bool *is_closed;
    size_t position_bits_to_shift;
    int64_t correlation_id;
    int32_t term_length;
    int32_t initial_term_id;
    int32_t session_id;
}
rusteron_image_t;

/* The number of images in the list. */
size_t rusteron_image_list_length(const rusteron_image_list_t *list);

/* The fields of the image at an index below the length of the list. */
void rusteron_image_fields(const rusteron_image_list_t *list, size_t index, rusteron_image_t *fields);

/* How far the command-and-control file in a directory has come. */
typedef enum rusteron_cnc_state_enum
{
    RUSTERON_CNC_ABSENT,
    RUSTERON_CNC_INCOMPLETE,
    RUSTERON_CNC_READY,
    RUSTERON_CNC_INCOMPATIBLE,
    RUSTERON_CNC_FAILED
}
rusteron_cnc_state_t;

/* Looks once, without waiting. Sets aeron_errcode() and aeron_errmsg() for the last two states. */
rusteron_cnc_state_t rusteron_cnc_state(const char *aeron_dir);

/*
 * To be called after aeron_init() has failed and before aeron_context_close(): a failed attempt has
 * unmapped the CnC file already without saying so in the context, which would unmap the same
 * addresses again, and with them whatever another thread has mapped there since.
 */
void rusteron_context_forget_cnc(aeron_context_t *context);

/*
 * The length of the list of requests that await the driver's answer, and a way to cut it back. Only
 * for a client in invoker mode: aeron_async_add_publication() and its relatives, when the request
 * does not fit into the driver's buffer, free what they have just put at the end of this list.
 */
size_t rusteron_registering_count(const aeron_t *client);
void rusteron_registering_truncate(aeron_t *client, size_t count);

/*
 * Whether the driver has not answered a request in time. To be called before the request's outcome has
 * been polled, which would make the conductor forget it.
 */
bool rusteron_registration_has_timed_out(struct aeron_client_registering_resource_stct *registering);

/* What aeron_context_set_agent_on_start_function() is declared to do, and defined nowhere to do. */
int rusteron_context_set_agent_on_start(
    aeron_context_t *context, aeron_agent_on_start_func_t value, void *state);

/* Forgets this thread's aeron_errcode() and aeron_errmsg(). */
void rusteron_err_clear(void);

#endif
