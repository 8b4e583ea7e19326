#if !defined(_MSC_VER)
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>
#endif

#include "aeron_agent.h"
#include "aeron_alloc.h"
#include "aeron_client.h"
#include "aeron_cnc_file_descriptor.h"
#include "aeron_context.h"
#include "aeron_exclusive_publication.h"
#include "aeron_image.h"
#include "aeron_log_buffer.h"
#include "aeron_publication.h"
#include "aeron_subscription.h"
#include "concurrent/aeron_counters_manager.h"
#include "util/aeron_error.h"
#include "util/aeron_fileutil.h"

#include "rusteron_beside.h"
#include "rusteron_shim.h"

_Static_assert(
    offsetof(rusteron_image_list_t, change_number) == offsetof(aeron_image_list_t, change_number),
    "an image list must start with its change number");

_Static_assert(
    AERON_LOGBUFFER_PARTITION_COUNT == 3, "the number of term buffers is part of the shim's structs");

#if !defined(_MSC_VER)
/* Rust's IoSlice is a struct iovec on Unix, and is passed to C as an aeron_iovec_t. */
_Static_assert(
    sizeof(struct iovec) == sizeof(aeron_iovec_t) &&
    _Alignof(struct iovec) == _Alignof(aeron_iovec_t) &&
    offsetof(struct iovec, iov_base) == offsetof(aeron_iovec_t, iov_base) &&
    offsetof(struct iovec, iov_len) == offsetof(aeron_iovec_t, iov_len),
    "aeron_iovec_t must be laid out as struct iovec");
#endif

/* The stand-in for a publication or subscription, see the header. */
typedef union rusteron_destination_owner_un
{
    aeron_client_command_base_t base;
    aeron_publication_t publication;
    aeron_subscription_t subscription;
}
rusteron_destination_owner_union_t;

_Static_assert(
    offsetof(aeron_publication_t, command_base) == 0 &&
    offsetof(aeron_subscription_t, command_base) == 0,
    "the conductor reads the type of a resource through a pointer to its command base");

#define RUSTERON_AT_SAME_OFFSET(field, aeron_field) \
    (offsetof(rusteron_counter_value_t, field) == offsetof(aeron_counter_value_descriptor_t, aeron_field))

_Static_assert(
    RUSTERON_AT_SAME_OFFSET(value, counter_value) &&
    RUSTERON_AT_SAME_OFFSET(registration_id, registration_id) &&
    RUSTERON_AT_SAME_OFFSET(owner_id, owner_id) &&
    RUSTERON_AT_SAME_OFFSET(reference_id, reference_id),
    "rusteron_counter_value_t must be laid out as the start of an aeron_counter_value_descriptor_t");

#define RUSTERON_NEXT_FRAME_OFFSET(field) \
    (offsetof(aeron_exclusive_publication_t, field) - \
        offsetof(aeron_exclusive_publication_t, term_begin_position))

_Static_assert(
    offsetof(rusteron_next_frame_t, term_offset) == RUSTERON_NEXT_FRAME_OFFSET(term_offset) &&
    offsetof(rusteron_next_frame_t, term_id) == RUSTERON_NEXT_FRAME_OFFSET(term_id) &&
    offsetof(rusteron_next_frame_t, active_partition_index) ==
        RUSTERON_NEXT_FRAME_OFFSET(active_partition_index) &&
    sizeof(((rusteron_next_frame_t *)0)->active_partition_index) ==
        sizeof(((aeron_exclusive_publication_t *)0)->active_partition_index),
    "rusteron_next_frame_t must be laid out as the end of an aeron_exclusive_publication_t");

/* Both kinds of publication have these fields under the same names, at other offsets. */
#define RUSTERON_PUBLICATION_FIELDS(publication) \
    .term_buffers = \
        { \
            (publication)->log_buffer->mapped_raw_log.term_buffers[0].addr, \
            (publication)->log_buffer->mapped_raw_log.term_buffers[1].addr, \
            (publication)->log_buffer->mapped_raw_log.term_buffers[2].addr \
        }, \
    .term_tail_counters = (int64_t *)(publication)->log_meta_data->term_tail_counters, \
    .active_term_count = (int32_t *)&(publication)->log_meta_data->active_term_count, \
    .is_connected = (int32_t *)&(publication)->log_meta_data->is_connected, \
    .position_limit = (rusteron_counter_value_t *)(publication)->position_limit, \
    .position_limit_registration_id = (publication)->original_registration_id, \
    .is_closed = (bool *)&(publication)->is_closed, \
    .max_possible_position = (publication)->max_possible_position, \
    .max_payload_length = (publication)->max_payload_length, \
    .max_message_length = (publication)->max_message_length, \
    /* C reads the length from the metadata again, where another process can have overwritten it. */ \
    .term_buffer_length = (int32_t)(publication)->log_buffer->mapped_raw_log.term_length, \
    .initial_term_id = (publication)->initial_term_id, \
    .session_id = (publication)->session_id, \
    .stream_id = (publication)->stream_id, \
    .log_address = (publication)->log_buffer->mapped_raw_log.mapped_file.addr, \
    .log_length = (publication)->log_buffer->mapped_raw_log.mapped_file.length

void rusteron_publication_fields(aeron_publication_t *publication, rusteron_publication_t *fields)
{
    *fields = (rusteron_publication_t){ RUSTERON_PUBLICATION_FIELDS(publication) };
}

void rusteron_exclusive_publication_fields(
    aeron_exclusive_publication_t *publication, rusteron_publication_t *fields)
{
    *fields = (rusteron_publication_t)
        {
            RUSTERON_PUBLICATION_FIELDS(publication),
            .next_frame = (rusteron_next_frame_t *)&publication->term_begin_position
        };
}

/*
 * The result for an open conductor. The conductor's thread can have closed it meanwhile; then that is the reason of
 * the failure. Without a thread, the conductor cannot have been closed. The failure then is that the driver's
 * buffer has no space for the command; it comes after the publication was freed and the notification called.
 */
static rusteron_close_result_t rusteron_close_result(const aeron_client_conductor_t *conductor, int result)
{
    if (result < 0)
    {
        aeron_err_clear();
        return conductor->invoker_mode ? RUSTERON_CLOSE_BEGUN : RUSTERON_CLOSE_TOO_LATE;
    }

    return RUSTERON_CLOSE_BEGUN;
}

/* Marks a publication as closed, unless the publication or its client is closed already. */
static bool rusteron_mark_closed(volatile bool *publication_is_closed, aeron_client_conductor_t *conductor)
{
    bool is_closed;
    AERON_GET_ACQUIRE(is_closed, *publication_is_closed);
    if (is_closed || aeron_client_conductor_is_closed(conductor))
    {
        return false;
    }

    AERON_SET_RELEASE(*publication_is_closed, true);
    return true;
}

#define RUSTERON_DEFINE_CLOSE(kind)                                                                                   \
rusteron_close_result_t rusteron_##kind##_close(                                                                      \
    aeron_##kind##_t *publication, aeron_notification_t on_close_complete, void *clientd)                             \
{                                                                                                                     \
    aeron_client_conductor_t *conductor = publication->conductor;                                                     \
    if (!rusteron_mark_closed(&publication->is_closed, conductor))                                                    \
    {                                                                                                                 \
        return RUSTERON_CLOSE_TOO_LATE;                                                                               \
    }                                                                                                                 \
    return rusteron_close_result(                                                                                     \
        conductor,                                                                                                    \
        aeron_client_conductor_async_close_##kind(conductor, publication, on_close_complete, clientd));               \
}

RUSTERON_DEFINE_CLOSE(publication)
RUSTERON_DEFINE_CLOSE(exclusive_publication)

void *rusteron_destination_owner_create(rusteron_destination_owner_t type, int64_t registration_id)
{
    rusteron_destination_owner_union_t *owner = NULL;
    if (aeron_alloc((void **)&owner, sizeof(*owner)) < 0)
    {
        return NULL;
    }

    switch (type)
    {
        case RUSTERON_OWNER_PUBLICATION:
            owner->publication.registration_id = registration_id;
            owner->base.type = AERON_CLIENT_MANAGED_RESOURCE_TYPE_PUBLICATION;
            break;

        case RUSTERON_OWNER_SUBSCRIPTION:
            owner->subscription.registration_id = registration_id;
            owner->base.type = AERON_CLIENT_MANAGED_RESOURCE_TYPE_SUBSCRIPTION;
            break;
    }

    return owner;
}

int rusteron_async_destination_cancel(aeron_t *client, aeron_async_destination_t *async, void *owner)
{
    /*
     * The conductor executes commands in order. At this command, it has executed the destination command. It finds
     * the destination among the registering resources by id and type, and frees it; then it calls the notification.
     * It sends nothing to the driver, because there is nothing to remove for this type.
     */
    return aeron_client_conductor_async_remove_resource(
        async->registration_id,
        AERON_CLIENT_MANAGED_RESOURCE_TYPE_DESTINATION,
        &client->conductor,
        aeron_free,
        owner);
}

int rusteron_async_next_session_id_cancel(
    aeron_t *client, aeron_async_get_next_available_session_id_t *async)
{
    /* As for a destination. A later answer of the driver finds no registration. */
    return aeron_client_conductor_async_remove_resource(
        async->registration_id,
        AERON_CLIENT_MANAGED_RESOURCE_TYPE_NEXT_AVAILABLE_SESSION_ID,
        &client->conductor,
        NULL,
        NULL);
}

void rusteron_subscription_fields(aeron_subscription_t *subscription, rusteron_subscription_t *fields)
{
    fields->image_list =
        (rusteron_image_list_t **)&subscription->conductor_fields.image_lists_head.next_list;
    fields->last_image_list_change_number = (int64_t *)&subscription->last_image_list_change_number;
    fields->is_closed = (bool *)&subscription->is_closed;
}

size_t rusteron_image_list_length(const rusteron_image_list_t *list)
{
    return ((const aeron_image_list_t *)list)->length;
}

void rusteron_image_fields(const rusteron_image_list_t *list, size_t index, rusteron_image_t *fields)
{
    aeron_image_t *image = ((const aeron_image_list_t *)list)->array[index];

    fields->image = image;
    for (size_t i = 0; i < AERON_LOGBUFFER_PARTITION_COUNT; i++)
    {
        fields->term_buffers[i] = image->log_buffer->mapped_raw_log.term_buffers[i].addr;
    }

    fields->subscriber_position = (rusteron_counter_value_t *)image->subscriber_position;
    fields->is_closed = (bool *)&image->is_closed;
    fields->position_bits_to_shift = image->position_bits_to_shift;
    fields->correlation_id = image->key.correlation_id;
    fields->subscription_registration_id = image->key.subscription_registration_id;
    fields->join_position = image->join_position;
    fields->session_id = image->session_id;
    fields->term_length = image->term_length_mask + 1;
    fields->initial_term_id = image->metadata->initial_term_id;
}

int64_t rusteron_image_position(aeron_image_t *image)
{
    bool is_closed;
    AERON_GET_ACQUIRE(is_closed, image->is_closed);
    if (is_closed)
    {
        return image->final_position;
    }

    int64_t position;
    AERON_GET_ACQUIRE(position, *image->subscriber_position);
    return position;
}

int64_t rusteron_effective_user(void)
{
#if defined(_MSC_VER)
    return -1;
#else
    return (int64_t)geteuid();
#endif
}

static int64_t rusteron_cnc_heartbeat(aeron_cnc_metadata_t *metadata)
{
    aeron_mpsc_rb_t to_driver;

    if (aeron_mpsc_rb_init(
        &to_driver, aeron_cnc_to_driver_buffer(metadata), (size_t)metadata->to_driver_buffer_length) < 0)
    {
        aeron_err_clear();
        return INT64_MAX;
    }

    return aeron_mpsc_rb_consumer_heartbeat_time_value(&to_driver);
}

rusteron_cnc_state_t rusteron_cnc_state(const char *aeron_dir, int64_t *heartbeat_ms)
{
    aeron_mapped_file_t mapped_file = { .addr = NULL, .length = 0 };
    aeron_cnc_metadata_t *metadata = NULL;
    char filename[AERON_MAX_PATH];

    /* The other failure with EINVAL, distinguished from an incompatible version below. */
    if (aeron_cnc_resolve_filename(aeron_dir, filename, sizeof(filename)) < 0)
    {
        return RUSTERON_CNC_FAILED;
    }

    switch (aeron_cnc_map_readonly_file_and_load_metadata(aeron_dir, &mapped_file, &metadata))
    {
        case AERON_CNC_LOAD_SUCCESS:
            if (NULL != heartbeat_ms)
            {
                *heartbeat_ms = rusteron_cnc_heartbeat(metadata);
            }
            aeron_unmap(&mapped_file);
            return RUSTERON_CNC_READY;

        case AERON_CNC_LOAD_AWAIT_FILE:
            return RUSTERON_CNC_ABSENT;

        case AERON_CNC_LOAD_AWAIT_MMAP:
        case AERON_CNC_LOAD_AWAIT_VERSION:
        case AERON_CNC_LOAD_AWAIT_CNC_DATA:
            return RUSTERON_CNC_INCOMPLETE;

        case AERON_CNC_LOAD_FAILED:
        default:
            return EINVAL == aeron_errcode() ? RUSTERON_CNC_INCOMPATIBLE : RUSTERON_CNC_FAILED;
    }
}

void rusteron_context_forget_cnc(aeron_context_t *context)
{
    context->cnc_map.addr = NULL;
    context->cnc_map.length = 0;
}

bool rusteron_context_sleeps(const aeron_context_t *context, uint64_t *duration_ns)
{
    if (aeron_idle_strategy_sleeping_idle != context->idle_strategy_func)
    {
        return false;
    }

    *duration_ns = *(const uint64_t *)context->idle_strategy_state;
    return true;
}

int rusteron_context_set_idle(
    aeron_context_t *context,
    void (*idle)(void *idler_address, int work_count),
    void *idler,
    rusteron_idle_t *previous)
{
    /* The context frees its strategy's state. */
    void **state = NULL;
    if (aeron_alloc((void **)&state, sizeof(void *)) < 0)
    {
        AERON_APPEND_ERR("%s", "failed to allocate the state of an idle strategy");
        return -1;
    }

    *state = idler;
    previous->func = context->idle_strategy_func;
    previous->state = context->idle_strategy_state;
    context->idle_strategy_state = state;
    context->idle_strategy_func = idle;
    return 0;
}

void rusteron_client_end(aeron_t *client, rusteron_client_end_t *end)
{
    aeron_client_conductor_t *conductor = &client->conductor;
    const int64_t ns_per_ms = 1000 * 1000;

    *end = (rusteron_client_end_t){ .code = conductor->fatal_error_code };

    if (AERON_CLIENT_ERROR_DRIVER_TIMEOUT == end->code)
    {
        const int64_t heartbeat_ms = aeron_mpsc_rb_consumer_heartbeat_time_value(&conductor->to_driver_buffer);

        end->is_driver_shut_down = AERON_NULL_VALUE == heartbeat_ms;
        end->elapsed_ms = (conductor->nano_clock() - RUSTERON_CLOCK_OF(client)->heartbeat_ns) / ns_per_ms;
        end->timeout_ms = (int64_t)conductor->driver_timeout_ms;
    }
    else if (AERON_CLIENT_ERROR_CONDUCTOR_SERVICE_TIMEOUT == end->code)
    {
        end->elapsed_ms = (conductor->nano_clock() - conductor->time_of_last_service_ns) / ns_per_ms;
        end->timeout_ms = (int64_t)conductor->inter_service_timeout_ns / ns_per_ms;
    }
}

int64_t rusteron_command_position(aeron_t *client)
{
    return aeron_mpsc_rb_producer_position(client->conductor.command_rb);
}

bool rusteron_close_client(aeron_t *client, int64_t client_id)
{
    const aeron_correlated_command_t command = { .client_id = client_id, .correlation_id = AERON_NULL_VALUE };
    return AERON_RB_SUCCESS == aeron_mpsc_rb_write(
        &client->conductor.to_driver_buffer, AERON_COMMAND_CLIENT_CLOSE, &command, sizeof(command));
}

size_t rusteron_registering_count(const aeron_t *client)
{
    return client->conductor.registering_resources.length;
}

void rusteron_registering_truncate(aeron_t *client, size_t count)
{
    if (client->conductor.registering_resources.length > count)
    {
        client->conductor.registering_resources.length = count;
    }
}

/* The conductor frees and reads these fields for counters only. */
void rusteron_set_refusal(
    struct aeron_client_registering_resource_stct *registering, const rusteron_refusal_t *refusal)
{
    registering->counter.label_buffer = refusal->name;
    registering->counter.registration_id = refusal->value;
    registering->counter.key_buffer = (const uint8_t *)refusal->expected;
}

rusteron_registration_t rusteron_registration(
    struct aeron_client_registering_resource_stct *registering, rusteron_refusal_t *refusal)
{
    aeron_client_registration_status_t status;
    AERON_GET_ACQUIRE(status, registering->registration_status);
    if (AERON_CLIENT_REGISTRATION_STATUS_AWAITING == status)
    {
        return RUSTERON_REGISTRATION_AWAITING;
    }
    if (AERON_CLIENT_REGISTRATION_STATUS_TIMED_OUT == status)
    {
        return RUSTERON_REGISTRATION_TIMED_OUT;
    }
    const bool is_publication = AERON_CLIENT_MANAGED_RESOURCE_TYPE_PUBLICATION == registering->type ||
        AERON_CLIENT_MANAGED_RESOURCE_TYPE_EXCLUSIVE_PUBLICATION == registering->type;
    if (is_publication && NULL != registering->counter.label_buffer)
    {
        refusal->name = registering->counter.label_buffer;
        refusal->value = registering->counter.registration_id;
        refusal->expected = (const char *)registering->counter.key_buffer;
        return RUSTERON_REGISTRATION_REFUSED;
    }
    return RUSTERON_REGISTRATION_DECIDED;
}

int rusteron_context_set_agent_on_start(
    aeron_context_t *context, aeron_agent_on_start_func_t value, void *state)
{
    context->agent_on_start_func = value;
    context->agent_on_start_state = state;
    return 0;
}

void rusteron_client_cnc(aeron_t *client, void **address, size_t *length)
{
    *address = client->context->cnc_map.addr;
    *length = client->context->cnc_map.length;
}

#if defined(_MSC_VER)

void *rusteron_call_to_the_end(rusteron_function_t function, void *first, void *second)
{
    return function(first, second);
}

#else

static void rusteron_sleep_for_ever(void *unused)
{
    (void)unused;
    while (true)
    {
        pause();
    }
}

void *rusteron_call_to_the_end(rusteron_function_t function, void *first, void *second)
{
    void *returned;
    pthread_cleanup_push(rusteron_sleep_for_ever, NULL);
    returned = function(first, second);
    pthread_cleanup_pop(0);
    return returned;
}

#endif
