#include <string.h>

#include "aeron_alloc.h"
#include "aeron_image.h"
#include "aeron_log_buffer.h"
#include "aeron_subscription.h"
#include "concurrent/aeron_counters_manager.h"
#include "util/aeron_error.h"
#include "util/aeron_http_util.h"
#include "util/aeron_parse_util.h"

/*
 * Returns whether the image's position counter still belongs to the image. A driver that reaches the client's
 * timeout frees the client's counters, and later gives them to other clients. A client that was suspended meanwhile
 * learns of that after its next poll. Drivers that do not say which image a counter is for leave 0.
 */
static bool rusteron_owns_position(
    const volatile int64_t *position, int64_t subscription_registration_id, int64_t correlation_id)
{
    const volatile aeron_counter_value_descriptor_t *counter =
        (const volatile aeron_counter_value_descriptor_t *)position;
    int64_t registration_id;
    int64_t reference_id;
    AERON_GET_ACQUIRE(registration_id, counter->registration_id);
    AERON_GET_ACQUIRE(reference_id, counter->reference_id);
    return registration_id == subscription_registration_id && (reference_id == correlation_id || 0 == reference_id);
}

/* Returns whether a stream with such terms reaches the position, and a frame can start there. */
static bool rusteron_is_stream_position(int64_t position, int32_t term_length)
{
    const int64_t max_position = ((int64_t)term_length) * (INT64_C(1) << 31);
    return position >= 0 && position <= max_position && 0 == position % AERON_LOGBUFFER_FRAME_ALIGNMENT;
}

/* As the conductor does for an image that has gone. For an image that could not be made, the conductor does not. */
static void rusteron_release_log_buffer(aeron_client_conductor_t *conductor, aeron_log_buffer_t *log_buffer)
{
    if (--log_buffer->refcnt <= 0)
    {
        aeron_int64_to_ptr_hash_map_remove(&conductor->log_buffer_by_id_map, log_buffer->correlation_id);
        aeron_log_buffer_delete(log_buffer);
    }
}

/*
 * Aeron's client takes the join position of a stream from the driver, which computes it from a SETUP frame. The
 * polls of C and of Rust find the term by that position.
 */
int rusteron_image_create(
    aeron_image_t **image,
    aeron_subscription_t *subscription,
    aeron_client_conductor_t *conductor,
    aeron_log_buffer_t *log_buffer,
    int32_t subscriber_position_id,
    int64_t *subscriber_position,
    int64_t correlation_id,
    int32_t session_id,
    const char *source_identity,
    size_t source_identity_length)
{
    const int32_t term_length = (int32_t)log_buffer->mapped_raw_log.term_length;
    int64_t position = 0;
    bool is_owned = false;

    if (NULL != subscriber_position && subscriber_position_id <= conductor->counters_reader.max_counter_id)
    {
        position = aeron_counter_get_acquire(subscriber_position);
        is_owned = rusteron_owns_position(subscriber_position, subscription->registration_id, correlation_id);
    }

    if (!is_owned)
    {
        AERON_SET_ERR(
            EINVAL,
            "image refused: counter %" PRId32 " is not its position any more, session-id=%" PRId32 " stream-id=%" PRId32
            " source=%s",
            subscriber_position_id,
            session_id,
            subscription->stream_id,
            source_identity);
        goto refuse;
    }

    if (!rusteron_is_stream_position(position, term_length))
    {
        AERON_SET_ERR(
            EINVAL,
            "image refused: position %" PRId64 " is not in a stream with terms of %" PRId32 " bytes, session-id=%" PRId32
            " stream-id=%" PRId32 " source=%s",
            position,
            term_length,
            session_id,
            subscription->stream_id,
            source_identity);
        goto refuse;
    }

    if (aeron_image_create(
        image,
        subscription,
        conductor,
        log_buffer,
        subscriber_position_id,
        subscriber_position,
        correlation_id,
        session_id,
        source_identity,
        source_identity_length) < 0)
    {
        goto refuse;
    }

    return 0;

refuse:
    rusteron_release_log_buffer(conductor, log_buffer);
    return -1;
}

/*
 * Whether C's polls may read by the position. They believe each length that they find in the log buffer, which a
 * publisher overwrites as soon as the driver has freed the counter, whether or not another resource has it yet.
 */
static bool rusteron_can_poll(const aeron_image_t *image)
{
    int32_t state;

    /* C says what is wrong with a missing image. */
    return NULL == image ||
        (rusteron_owns_position(
            image->subscriber_position, image->key.subscription_registration_id, image->key.correlation_id) &&
        aeron_counters_reader_counter_state(
            &image->conductor->counters_reader, image->subscriber_position_id, &state) >= 0 &&
        AERON_COUNTER_RECORD_ALLOCATED == state &&
        rusteron_is_stream_position(
            aeron_counter_get_acquire(image->subscriber_position), image->term_length_mask + 1));
}

int rusteron_image_poll(
    aeron_image_t *image, aeron_fragment_handler_t handler, void *clientd, size_t fragment_limit)
{
    return rusteron_can_poll(image) ? aeron_image_poll(image, handler, clientd, fragment_limit) : 0;
}

int rusteron_image_controlled_poll(
    aeron_image_t *image, aeron_controlled_fragment_handler_t handler, void *clientd, size_t fragment_limit)
{
    return rusteron_can_poll(image) ? aeron_image_controlled_poll(image, handler, clientd, fragment_limit) : 0;
}

int rusteron_image_block_poll(
    aeron_image_t *image, aeron_block_handler_t handler, void *clientd, size_t block_length_limit)
{
    return rusteron_can_poll(image) ? aeron_image_block_poll(image, handler, clientd, block_length_limit) : 0;
}

/*
 * Properties of a server. For an empty line, Aeron reads in front of its buffer. For blanks without a name, Aeron
 * writes in front of its buffer. Blanks at the beginning of a line have no meaning, and neither has an empty line.
 */
int rusteron_http_retrieve(aeron_http_response_t **response, const char *url, int64_t timeout_ns)
{
    if (aeron_http_retrieve(response, url, timeout_ns) < 0)
    {
        return -1;
    }

    char *to = (*response)->buffer + (*response)->body_offset;
    bool is_line_start = true;
    for (const char *from = to; '\0' != *from; from++)
    {
        const bool is_blank = ' ' == *from || '\t' == *from || '\r' == *from || '\n' == *from;
        if (!is_line_start || !is_blank)
        {
            is_line_start = '\n' == *from;
            *to++ = *from;
        }
    }
    *to = '\0';
    return 0;
}

/* Aeron reads the character behind the terminator of a duration such as 5m. */
static char *rusteron_padded(const char *text)
{
    const size_t length = NULL == text ? 0 : strlen(text);
    char *padded = NULL;
    /* Cleared, as all that Aeron allocates. */
    if (NULL == text || aeron_alloc((void **)&padded, length + 2) < 0)
    {
        return NULL;
    }
    memcpy(padded, text, length);
    return padded;
}

int rusteron_parse_duration_ns(const char *str, uint64_t *result)
{
    char *padded = rusteron_padded(str);
    const int parsed = aeron_parse_duration_ns(padded, result);
    aeron_free(padded);
    return parsed;
}

uint64_t rusteron_config_parse_duration_ns(
    const char *name, const char *str, uint64_t def, uint64_t min, uint64_t max)
{
    char *padded = rusteron_padded(str);
    const uint64_t duration_ns = aeron_config_parse_duration_ns(name, padded, def, min, max);
    aeron_free(padded);
    return duration_ns;
}
