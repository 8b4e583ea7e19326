#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "aeron_alloc.h"
#include "aeron_client_conductor.h"
#include "aeron_cnc_file_descriptor.h"
#include "aeron_context.h"
#include "aeron_counters.h"
#include "aeron_image.h"
#include "command/aeron_control_protocol.h"
#include "concurrent/aeron_broadcast_receiver.h"
#include "util/aeron_error.h"

#include "rusteron_clock.h"

/* Types of requests, as bits. */
#define RUSTERON_REQUEST(type) (UINT32_C(1) << AERON_CLIENT_MANAGED_RESOURCE_TYPE_##type)

/* Declares the message as its type. A message that is shorter is refused by the function that this stands in. */
#define RUSTERON_MESSAGE(type) \
    const type *message = (const type *)buffer; \
    if (length < sizeof(type)) \
    { \
        return "too short"; \
    }

/* Returns whether the driver's next record overwrites the record at the cursor. */
static bool rusteron_is_lapped(const aeron_broadcast_receiver_t *receiver, int64_t cursor)
{
    int64_t tail_intent;
    AERON_GET_ACQUIRE(tail_intent, receiver->descriptor->tail_intent_counter);
    return (int64_t)((uint64_t)tail_intent - (uint64_t)cursor) >= (int64_t)receiver->capacity;
}

/*
 * C starts with the latest record, which was for clients that were there before. A forged one would close each client
 * that connects.
 */
int rusteron_broadcast_receiver_init(aeron_broadcast_receiver_t *receiver, void *buffer, size_t length)
{
    if (aeron_broadcast_receiver_init(receiver, buffer, length) < 0)
    {
        return -1;
    }

    AERON_GET_ACQUIRE(receiver->next_record, receiver->descriptor->tail_counter);
    receiver->cursor = receiver->next_record;
    return 0;
}

/* Returns whether a text of this length follows the fixed part of a message, which is complete. */
static bool rusteron_has_text(size_t message_length, size_t fixed_length, int32_t text_length)
{
    return text_length >= 0 && (size_t)text_length <= message_length - fixed_length;
}

/* The same for a text that C copies into an array of AERON_MAX_PATH bytes, with a terminator. */
static bool rusteron_has_path(size_t message_length, size_t fixed_length, int32_t text_length)
{
    return text_length < AERON_MAX_PATH && rusteron_has_text(message_length, fixed_length, text_length);
}

/* Returns whether the client has a counter with this id. */
static bool rusteron_has_counter(const aeron_client_conductor_t *conductor, int32_t counter_id)
{
    return counter_id >= 0 && counter_id <= conductor->counters_reader.max_counter_id;
}

/*
 * Returns why no request of these types may have this answer, or NULL. C completes any request that waits for the id,
 * and returns the resource as one of the request's type.
 */
static const char *rusteron_answer_refusal(aeron_client_conductor_t *conductor, int64_t correlation_id, uint32_t types)
{
    for (size_t i = 0, length = conductor->registering_resources.length; i < length; i++)
    {
        const aeron_client_registering_resource_t *request = conductor->registering_resources.array[i].resource;
        aeron_client_registration_status_t status;
        AERON_GET_ACQUIRE(status, request->registration_status);
        if (AERON_CLIENT_REGISTRATION_STATUS_AWAITING == status && correlation_id == request->registration_id)
        {
            const bool is_expected = 0 != (types & (UINT32_C(1) << request->type)) &&
                NULL == aeron_int64_to_ptr_hash_map_get(&conductor->resource_by_id_map, correlation_id);
            return is_expected ? NULL : "another request has its id";
        }
    }

    return NULL;
}

static const char *rusteron_image_refusal(
    aeron_client_conductor_t *conductor, const uint8_t *buffer, size_t length)
{
    const aeron_image_buffers_ready_t *message = (const aeron_image_buffers_ready_t *)buffer;
    size_t fixed_length = sizeof(*message) + sizeof(int32_t);
    int32_t text_length;

    /* The names of the log file and of the source, each behind its length. */
    for (int i = 0; i < 2; i++)
    {
        if (length < fixed_length)
        {
            return "too short";
        }
        memcpy(&text_length, buffer + fixed_length - sizeof(int32_t), sizeof(int32_t));
        if (!rusteron_has_path(length, fixed_length, text_length))
        {
            return "length of a name out of range";
        }
        fixed_length += AERON_ALIGN((size_t)text_length, sizeof(int32_t)) + sizeof(int32_t);
    }

    const aeron_image_key_t key =
        {
            .correlation_id = message->correlation_id,
            .subscription_registration_id = message->subscriber_registration_id,
        };
    return NULL == aeron_array_to_ptr_hash_map_get(
        &conductor->image_by_key_map, (const uint8_t *)&key, sizeof(aeron_image_key_t)) ?
        NULL : "the image is there";
}

/*
 * Returns why C must not handle the message, or NULL. The message is a copy. C converts negative lengths to size_t,
 * and finds the addresses of counters by any id.
 */
static const char *rusteron_refusal(
    aeron_client_conductor_t *conductor, int32_t type_id, const uint8_t *buffer, size_t length)
{
    switch (type_id)
    {
        case AERON_RESPONSE_ON_ERROR:
        {
            RUSTERON_MESSAGE(aeron_error_response_t)
            return rusteron_has_text(length, sizeof(*message), message->error_message_length) ?
                NULL : "length of the text out of range";
        }

        case AERON_RESPONSE_ON_PUBLICATION_READY:
        case AERON_RESPONSE_ON_EXCLUSIVE_PUBLICATION_READY:
        {
            RUSTERON_MESSAGE(aeron_publication_buffers_ready_t)
            if (!rusteron_has_path(length, sizeof(*message), message->log_file_length))
            {
                return "length of a name out of range";
            }
            if (!rusteron_has_counter(conductor, message->position_limit_counter_id) ||
                message->channel_status_indicator_id > conductor->counters_reader.max_counter_id)
            {
                return "no such counter";
            }
            return rusteron_answer_refusal(
                conductor,
                message->correlation_id,
                RUSTERON_REQUEST(PUBLICATION) | RUSTERON_REQUEST(EXCLUSIVE_PUBLICATION));
        }

        case AERON_RESPONSE_ON_SUBSCRIPTION_READY:
        {
            RUSTERON_MESSAGE(aeron_subscription_ready_t)
            if (message->channel_status_indicator_id > conductor->counters_reader.max_counter_id)
            {
                return "no such counter";
            }
            return rusteron_answer_refusal(conductor, message->correlation_id, RUSTERON_REQUEST(SUBSCRIPTION));
        }

        case AERON_RESPONSE_ON_AVAILABLE_IMAGE:
            return rusteron_image_refusal(conductor, buffer, length);

        case AERON_RESPONSE_ON_COUNTER_READY:
        case AERON_RESPONSE_ON_UNAVAILABLE_COUNTER:
        case AERON_RESPONSE_ON_STATIC_COUNTER:
        {
            /* The answer for a static counter has the same layout. */
            RUSTERON_MESSAGE(aeron_counter_update_t)
            if (!rusteron_has_counter(conductor, message->counter_id))
            {
                return "no such counter";
            }
            return AERON_RESPONSE_ON_UNAVAILABLE_COUNTER == type_id ? NULL :
                rusteron_answer_refusal(
                    conductor,
                    message->correlation_id,
                    AERON_RESPONSE_ON_STATIC_COUNTER == type_id ?
                        RUSTERON_REQUEST(STATIC_COUNTER) : RUSTERON_REQUEST(COUNTER));
        }

        case AERON_RESPONSE_ON_OPERATION_SUCCESS:
        {
            RUSTERON_MESSAGE(aeron_operation_succeeded_t)
            return rusteron_answer_refusal(conductor, message->correlation_id, RUSTERON_REQUEST(DESTINATION));
        }

        case AERON_RESPONSE_ON_NEXT_AVAILABLE_SESSION_ID:
        {
            RUSTERON_MESSAGE(aeron_next_available_session_id_response_t)
            return rusteron_answer_refusal(
                conductor, message->correlation_id, RUSTERON_REQUEST(NEXT_AVAILABLE_SESSION_ID));
        }

        case AERON_RESPONSE_ON_PUBLICATION_ERROR:
        {
            RUSTERON_MESSAGE(aeron_publication_error_t)
            return rusteron_has_text(
                length, offsetof(aeron_publication_error_t, error_message), message->error_message_length) ?
                NULL : "length of the text out of range";
        }

        default:
            /* C compares the lengths of the other messages, and has no use for their texts. */
            return NULL;
    }
}

/*
 * As aeron_broadcast_receiver_receive() for a client's conductor, but believes no record. C adds any length to its
 * cursor, and copies as many bytes. Behind a record that no driver writes, the next one cannot be found: the client
 * closes, as it does after records that it has missed. A message that no driver sends is reported and skipped.
 */
int rusteron_broadcast_receiver_receive(
    aeron_broadcast_receiver_t *receiver, aeron_broadcast_receiver_handler_t handler, void *clientd)
{
    aeron_client_conductor_t *conductor = (aeron_client_conductor_t *)clientd;
    const int64_t cursor = receiver->next_record;
    int64_t tail;
    AERON_GET_ACQUIRE(tail, receiver->descriptor->tail_counter);
    if (tail <= cursor)
    {
        return 0;
    }

    const size_t offset = (size_t)cursor & receiver->mask;
    const volatile aeron_broadcast_record_descriptor_t *record =
        (const volatile aeron_broadcast_record_descriptor_t *)(receiver->buffer + offset);
    if (rusteron_is_lapped(receiver, cursor))
    {
        AERON_SET_ERR(EINVAL, "%s", "unable to keep up with broadcast");
        return -1;
    }

    const bool is_aligned = 0 == offset % AERON_BROADCAST_RECORD_ALIGNMENT;
    const int32_t record_length = is_aligned ? record->length : 0;
    const int32_t type_id = is_aligned ? record->msg_type_id : 0;
    const size_t max_length = AERON_BROADCAST_PADDING_MSG_TYPE_ID == type_id ?
        receiver->capacity :
        AERON_BROADCAST_MAX_MESSAGE_LENGTH(receiver->capacity) + AERON_BROADCAST_RECORD_HEADER_LENGTH;
    if (record_length < (int32_t)AERON_BROADCAST_RECORD_HEADER_LENGTH ||
        (size_t)record_length > max_length ||
        (size_t)record_length > receiver->capacity - offset)
    {
        AERON_SET_ERR(
            EINVAL,
            "no driver writes such a record into its to-clients buffer: offset=%" PRIu64 " length=%" PRId32
            " type=0x%" PRIx32,
            (uint64_t)offset,
            record_length,
            (uint32_t)type_id);
        return -1;
    }

    const size_t length = (size_t)record_length - AERON_BROADCAST_RECORD_HEADER_LENGTH;
    receiver->cursor = cursor;
    receiver->record_offset = offset;
    receiver->next_record = (int64_t)((uint64_t)cursor +
        AERON_ALIGN((uint64_t)record_length, AERON_BROADCAST_RECORD_ALIGNMENT));
    if (AERON_BROADCAST_PADDING_MSG_TYPE_ID == type_id)
    {
        return 1;
    }

    if (length > receiver->scratch_buffer_capacity)
    {
        uint8_t *scratch_buffer;
        if (aeron_alloc((void **)&scratch_buffer, length) < 0)
        {
            AERON_APPEND_ERR("failed to allocate scratch buffer of capacity: %" PRIu64, (uint64_t)length);
            return -1;
        }
        aeron_free(receiver->scratch_buffer);
        receiver->scratch_buffer = scratch_buffer;
        receiver->scratch_buffer_capacity = length;
    }

    memcpy(receiver->scratch_buffer, receiver->buffer + offset + AERON_BROADCAST_RECORD_HEADER_LENGTH, length);
    aeron_acquire();
    if (rusteron_is_lapped(receiver, cursor))
    {
        AERON_SET_ERR(EINVAL, "%s", "unable to keep up with broadcast");
        return -1;
    }

    const char *reason = rusteron_refusal(conductor, type_id, receiver->scratch_buffer, length);
    if (NULL == reason)
    {
        handler(type_id, receiver->scratch_buffer, length, clientd);
    }
    else
    {
        char text[256];
        snprintf(
            text,
            sizeof(text),
            "message refused: %s, to-clients buffer offset=%" PRIu64 " length=%" PRIu64 " type=0x%" PRIx32,
            reason,
            (uint64_t)offset,
            (uint64_t)length,
            (uint32_t)type_id);
        conductor->error_handler(conductor->error_handler_clientd, AERON_ERROR_CODE_MALFORMED_COMMAND, text);
    }

    return 1;
}

/*
 * C's search for the client's heartbeat counter ends at the number of values. With fewer records of metadata, or
 * without a value, it goes on behind the file.
 */
int rusteron_client_conductor_init(aeron_client_conductor_t *conductor, aeron_context_t *context)
{
    const aeron_cnc_metadata_t *metadata = (const aeron_cnc_metadata_t *)context->cnc_map.addr;
    const int32_t lengths[] =
        {
            metadata->to_driver_buffer_length,
            metadata->to_clients_buffer_length,
            metadata->counter_metadata_buffer_length,
            metadata->counter_values_buffer_length
        };
    bool is_valid = aeron_cnc_is_file_length_sufficient(&context->cnc_map) &&
        lengths[3] >= AERON_COUNTERS_MANAGER_VALUE_LENGTH &&
        lengths[2] / AERON_COUNTERS_MANAGER_METADATA_LENGTH >= lengths[3] / AERON_COUNTERS_MANAGER_VALUE_LENGTH;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
    {
        is_valid = is_valid && 0 == lengths[i] % AERON_CACHE_LINE_LENGTH;
    }
    if (!is_valid)
    {
        AERON_SET_ERR(
            EINVAL,
            "no driver writes such lengths into cnc.dat: to-driver=%" PRId32 " to-clients=%" PRId32
            " counters-metadata=%" PRId32 " counters-values=%" PRId32,
            lengths[0],
            lengths[1],
            lengths[2],
            lengths[3]);
        return -1;
    }

    if (aeron_client_conductor_init(conductor, context) < 0)
    {
        return -1;
    }

    (void)rusteron_client_heartbeat(
        conductor, aeron_mpsc_rb_consumer_heartbeat_time_value(&conductor->to_driver_buffer));
    return 0;
}

/*
 * Finds the client's heartbeat counter and adds the client's name to its label. C would write to an offset that it
 * reads from the counter's record.
 */
static void rusteron_find_heartbeat(aeron_client_conductor_t *conductor)
{
    for (int32_t id = 0; id <= conductor->counters_reader.max_counter_id; id++)
    {
        aeron_counter_metadata_descriptor_t *metadata = (aeron_counter_metadata_descriptor_t *)(
            conductor->counters_reader.metadata + AERON_COUNTER_METADATA_OFFSET(id));
        int32_t state;
        int64_t client_id;
        AERON_GET_ACQUIRE(state, metadata->state);
        /* The driver may be writing the rest of any other record. */
        if (AERON_COUNTER_RECORD_ALLOCATED != state)
        {
            continue;
        }
        memcpy(&client_id, metadata->key, sizeof(client_id));
        if (AERON_COUNTER_CLIENT_HEARTBEAT_TIMESTAMP_TYPE_ID != metadata->type_id ||
            conductor->client_id != client_id)
        {
            continue;
        }

        int32_t length;
        AERON_GET_ACQUIRE(length, metadata->label_length);
        if (length >= 0 && length <= (int32_t)AERON_COUNTER_MAX_LABEL_LENGTH)
        {
            char name[AERON_COUNTER_MAX_LABEL_LENGTH + 1] = { 0 };
            const size_t left = AERON_COUNTER_MAX_LABEL_LENGTH - (size_t)length;
            snprintf(
                name,
                left + 1,
                " name=%s version=%s commit=%s",
                conductor->client_name,
                aeron_version_text(),
                aeron_version_gitsha());
            const size_t name_length = strlen(name);
            memcpy(metadata->label + length, name, name_length);
            AERON_SET_RELEASE(metadata->label_length, length + (int32_t)name_length);
        }
        conductor->heartbeat_timestamp.counter_id = id;
        conductor->heartbeat_timestamp.addr = aeron_counters_reader_addr(&conductor->counters_reader, id);
        return;
    }
}

/*
 * The conductor calls this before it looks for its heartbeat counter, which it then has. It compares the result with the
 * wall clock, and closes the client if the driver looks silent for too long.
 */
int64_t rusteron_mpsc_rb_consumer_heartbeat_time_value(aeron_mpsc_rb_t *ring_buffer)
{
    aeron_client_conductor_t *conductor = (aeron_client_conductor_t *)(
        (uint8_t *)ring_buffer - offsetof(aeron_client_conductor_t, to_driver_buffer));
    if (AERON_NULL_COUNTER_ID == conductor->heartbeat_timestamp.counter_id)
    {
        rusteron_find_heartbeat(conductor);
    }
    return rusteron_client_heartbeat(conductor, aeron_mpsc_rb_consumer_heartbeat_time_value(ring_buffer));
}
