#include <string.h>

#include "aeron_alloc.h"
#include "aeron_exclusive_publication.h"
#include "aeron_image.h"
#include "aeron_log_buffer.h"
#include "aeron_publication.h"
#include "aeron_subscription.h"
#include "concurrent/aeron_counters_manager.h"
#include "util/aeron_error.h"
#include "util/aeron_http_util.h"
#include "util/aeron_parse_util.h"

#include "rusteron_shim.h"

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

    /* C has read these again, from memory that other processes write to. */
    (*image)->term_length_mask = term_length - 1;
    (*image)->position_bits_to_shift = (size_t)aeron_number_of_trailing_zeroes(term_length);
    (*image)->join_position = position;
    return 0;

refuse:
    rusteron_release_log_buffer(conductor, log_buffer);
    return -1;
}

/* Fills in a fault, unless there is one already or the value is as expected. */
static void rusteron_expect(
    rusteron_refusal_t *refusal, bool is_expected, const char *name, int64_t value, const char *expected)
{
    if (NULL == refusal->name && !is_expected)
    {
        refusal->name = name;
        refusal->value = value;
        refusal->expected = expected;
    }
}

/*
 * Reads what a publication computes addresses and lengths with, each value once, and checks it. Any process of the
 * driver's directory can overwrite the log buffer's metadata at any time. The counters of the driver's answer have been
 * checked (rusteron_broadcast_receiver_receive).
 */
static void rusteron_read_metadata(
    aeron_logbuffer_metadata_t *copy, rusteron_refusal_t *refusal, const aeron_log_buffer_t *log_buffer)
{
    const aeron_mapped_raw_log_t *log = &log_buffer->mapped_raw_log;
    const volatile aeron_logbuffer_metadata_t *shared =
        (const volatile aeron_logbuffer_metadata_t *)log->log_meta_data.addr;

    for (size_t i = 0; i < AERON_LOGBUFFER_PARTITION_COUNT; i++)
    {
        copy->term_tail_counters[i] = shared->term_tail_counters[i];
    }
    copy->active_term_count = shared->active_term_count;
    copy->initial_term_id = shared->initial_term_id;
    copy->mtu_length = shared->mtu_length;
    /* Checked against the file's length when it was mapped. */
    copy->term_length = (int32_t)log->term_length;

    rusteron_expect(
        refusal,
        0 == log->mapped_file.length % AERON_PAGE_MIN_SIZE,
        "file length of the log buffer",
        (int64_t)log->mapped_file.length,
        "a multiple of 4096");
    rusteron_expect(
        refusal,
        copy->mtu_length > (int32_t)AERON_DATA_HEADER_LENGTH &&
            copy->mtu_length <= AERON_MAX_UDP_PAYLOAD_LENGTH &&
            0 == copy->mtu_length % AERON_LOGBUFFER_FRAME_ALIGNMENT,
        "MTU of the log buffer",
        copy->mtu_length,
        "a multiple of 32 from 64 to 65504");
    rusteron_expect(
        refusal,
        copy->active_term_count >= 0,
        "active term count of the log buffer",
        copy->active_term_count,
        "at least 0");
}

/* Checks the tail from which an exclusive publication goes on. No other publisher moves it. */
static void rusteron_expect_own_tail(rusteron_refusal_t *refusal, const aeron_logbuffer_metadata_t *copy)
{
    if (NULL == refusal->name)
    {
        const int64_t raw_tail = copy->term_tail_counters[
            aeron_logbuffer_index_by_term_count(copy->active_term_count)];
        const int32_t term_id = aeron_logbuffer_term_id(raw_tail);
        const int64_t term_offset = raw_tail & INT64_C(0xFFFFFFFF);

        rusteron_expect(
            refusal,
            copy->active_term_count == aeron_logbuffer_compute_term_count(term_id, copy->initial_term_id),
            "active term id of the log buffer",
            term_id,
            "the initial term id plus the active term count");
        rusteron_expect(
            refusal,
            term_offset <= copy->term_length && 0 == term_offset % AERON_LOGBUFFER_FRAME_ALIGNMENT,
            "tail offset of the log buffer",
            term_offset,
            "a multiple of 32 up to the term length");
    }
}

/*
 * Makes a copy of the log buffer refer to a copy of its metadata that is checked, for Aeron's function that creates the
 * publication. Otherwise sets the error, and leaves the refusal with the pending request: the conductor writes its own
 * text there.
 */
static int rusteron_copy_log_buffer(
    aeron_log_buffer_t *copy,
    aeron_logbuffer_metadata_t *metadata,
    aeron_client_conductor_t *conductor,
    aeron_log_buffer_t *log_buffer,
    int64_t registration_id,
    int32_t stream_id,
    bool is_exclusive)
{
    rusteron_refusal_t refusal = { 0 };
    rusteron_read_metadata(metadata, &refusal, log_buffer);
    if (is_exclusive)
    {
        rusteron_expect_own_tail(&refusal, metadata);
    }
    if (NULL == refusal.name)
    {
        *copy = *log_buffer;
        copy->mapped_raw_log.log_meta_data.addr = (uint8_t *)metadata;
        return 0;
    }

    AERON_SET_ERR(
        EINVAL,
        "publication refused: %s is %" PRId64 ", expected %s, stream-id=%" PRId32 " registration-id=%" PRId64,
        refusal.name,
        refusal.value,
        refusal.expected,
        stream_id,
        registration_id);

    for (size_t i = 0; i < conductor->registering_resources.length; i++)
    {
        aeron_client_registering_resource_t *resource = conductor->registering_resources.array[i].resource;
        if (registration_id == resource->registration_id)
        {
            rusteron_set_refusal(resource, &refusal);
        }
    }

    rusteron_release_log_buffer(conductor, log_buffer);
    return -1;
}

/*
 * Defines the function that creates a kind of publication. Aeron's function gets a copy of the log buffer that was
 * checked, because it takes the position of an exclusive publication from the metadata; afterwards, the publication
 * refers to the log buffer. Other publishers move the tails of a shared publication, so each claim checks the tail that
 * it gets.
 */
#define RUSTERON_DEFINE_CREATE(kind, is_exclusive)                                                                    \
int rusteron_##kind##_create(                                                                                         \
    aeron_##kind##_t **publication,                                                                                   \
    aeron_client_conductor_t *conductor,                                                                              \
    const char *channel,                                                                                              \
    int32_t stream_id,                                                                                                \
    int32_t session_id,                                                                                               \
    int32_t position_limit_counter_id,                                                                                \
    int64_t *position_limit_addr,                                                                                     \
    int32_t channel_status_indicator_id,                                                                              \
    int64_t *channel_status_addr,                                                                                     \
    aeron_log_buffer_t *log_buffer,                                                                                   \
    int64_t original_registration_id,                                                                                 \
    int64_t registration_id)                                                                                          \
{                                                                                                                     \
    aeron_logbuffer_metadata_t metadata = { 0 };                                                                      \
    aeron_log_buffer_t copy;                                                                                          \
    if (rusteron_copy_log_buffer(                                                                                     \
        &copy, &metadata, conductor, log_buffer, registration_id, stream_id, is_exclusive) < 0)                       \
    {                                                                                                                 \
        return -1;                                                                                                    \
    }                                                                                                                 \
    if (aeron_##kind##_create(                                                                                        \
        publication,                                                                                                  \
        conductor,                                                                                                    \
        channel,                                                                                                      \
        stream_id,                                                                                                    \
        session_id,                                                                                                   \
        position_limit_counter_id,                                                                                    \
        position_limit_addr,                                                                                          \
        channel_status_indicator_id,                                                                                  \
        channel_status_addr,                                                                                          \
        &copy,                                                                                                        \
        original_registration_id,                                                                                     \
        registration_id) < 0)                                                                                         \
    {                                                                                                                 \
        rusteron_release_log_buffer(conductor, log_buffer);                                                           \
        return -1;                                                                                                    \
    }                                                                                                                 \
    (*publication)->log_buffer = log_buffer;                                                                          \
    (*publication)->log_meta_data = (aeron_logbuffer_metadata_t *)log_buffer->mapped_raw_log.log_meta_data.addr;      \
    return 0;                                                                                                         \
}

RUSTERON_DEFINE_CREATE(exclusive_publication, true)
RUSTERON_DEFINE_CREATE(publication, false)

/*
 * Returns whether C may poll, and the position. A publisher overwrites the log buffer as soon as the driver has freed
 * the counter, whether or not another resource has it yet.
 */
static bool rusteron_can_poll(const aeron_image_t *image, int64_t *position)
{
    int32_t state;
    bool is_closed;
    AERON_GET_ACQUIRE(is_closed, image->is_closed);
    *position = aeron_counter_get_acquire(image->subscriber_position);
    return !is_closed &&
        rusteron_owns_position(
            image->subscriber_position, image->key.subscription_registration_id, image->key.correlation_id) &&
        aeron_counters_reader_counter_state(
            &image->conductor->counters_reader, image->subscriber_position_id, &state) >= 0 &&
        AERON_COUNTER_RECORD_ALLOCATED == state &&
        rusteron_is_stream_position(*position, image->term_length_mask + 1);
}

bool rusteron_image_holds_publisher(const aeron_image_t *image)
{
    int64_t position;
    return rusteron_can_poll(image, &position);
}

static void rusteron_move_position(aeron_image_t *image, int64_t position)
{
    bool is_closed;
    AERON_GET_ACQUIRE(is_closed, image->is_closed);
    if (!is_closed)
    {
        aeron_counter_set_release(image->subscriber_position, position);
    }
}

/*
 * As aeron_image_controlled_poll(), which reads and moves on by any length in the log buffer. As in Rust's polls, a
 * length that no frame can have at its offset counts as unpublished.
 */
int rusteron_image_controlled_poll(
    aeron_image_t *image, aeron_controlled_fragment_handler_t handler, void *clientd, size_t fragment_limit)
{
    int64_t position;
    if (NULL == image || NULL == handler)
    {
        /* C says what is missing. */
        return aeron_image_controlled_poll(image, handler, clientd, fragment_limit);
    }
    if (!rusteron_can_poll(image, &position))
    {
        return 0;
    }

    const size_t index = aeron_logbuffer_index_by_position(position, image->position_bits_to_shift);
    const uint8_t *term = image->log_buffer->mapped_raw_log.term_buffers[index].addr;
    const int32_t term_length = image->term_length_mask + 1;
    const int64_t term_position = position - (position & image->term_length_mask);
    int64_t published = position;
    size_t fragments = 0;

    while (fragments < fragment_limit && position - term_position < term_length)
    {
        const int32_t offset = (int32_t)(position - term_position);
        aeron_data_header_t *frame = (aeron_data_header_t *)(term + offset);
        bool is_closed;
        int32_t frame_length;
        AERON_GET_ACQUIRE(is_closed, image->is_closed);
        AERON_GET_ACQUIRE(frame_length, frame->frame_header.frame_length);
        if (is_closed || frame_length < (int32_t)AERON_DATA_HEADER_LENGTH || frame_length > term_length - offset)
        {
            break;
        }

        const int32_t aligned_length = AERON_ALIGN(frame_length, AERON_LOGBUFFER_FRAME_ALIGNMENT);
        position += aligned_length;
        if (AERON_HDR_TYPE_PAD == frame->frame_header.type)
        {
            continue;
        }

        aeron_header_t header =
            {
                frame,
                image->metadata->initial_term_id,
                image->position_bits_to_shift,
                AERON_NULL_VALUE,
                (void *)image
            };
        const aeron_controlled_fragment_handler_action_t action = handler(
            clientd,
            (const uint8_t *)frame + AERON_DATA_HEADER_LENGTH,
            (size_t)frame_length - AERON_DATA_HEADER_LENGTH,
            &header);

        if (AERON_ACTION_ABORT == action)
        {
            position -= aligned_length;
            break;
        }
        fragments++;
        if (AERON_ACTION_BREAK == action)
        {
            break;
        }
        if (AERON_ACTION_COMMIT == action)
        {
            published = position;
            rusteron_move_position(image, position);
        }
    }

    if (position > published)
    {
        rusteron_move_position(image, position);
    }
    return (int)fragments;
}

typedef struct rusteron_fragment_handler_stct
{
    aeron_fragment_handler_t handler;
    void *clientd;
}
rusteron_fragment_handler_t;

static aeron_controlled_fragment_handler_action_t rusteron_continue(
    void *clientd, const uint8_t *buffer, size_t length, aeron_header_t *header)
{
    const rusteron_fragment_handler_t *fragment_handler = (const rusteron_fragment_handler_t *)clientd;
    fragment_handler->handler(fragment_handler->clientd, buffer, length, header);
    return AERON_ACTION_CONTINUE;
}

/* As aeron_image_poll(), with the same checks. */
int rusteron_image_poll(
    aeron_image_t *image, aeron_fragment_handler_t handler, void *clientd, size_t fragment_limit)
{
    rusteron_fragment_handler_t fragment_handler = { .handler = handler, .clientd = clientd };
    return NULL == handler ?
        aeron_image_poll(image, handler, clientd, fragment_limit) :
        rusteron_image_controlled_poll(image, rusteron_continue, &fragment_handler, fragment_limit);
}

/*
 * The driver writes the address into a counter's key, and with it a length, which any process can change. A replay merge
 * names an array of AERON_CLIENT_MAX_LOCAL_ADDRESS_STR_LEN bytes as one of AERON_URI_MAX_LENGTH.
 */
int rusteron_subscription_resolved_endpoint(aeron_subscription_t *subscription, char *address, size_t address_len)
{
    return aeron_subscription_resolved_endpoint(
        subscription, address, AERON_MIN(address_len, (size_t)AERON_CLIENT_MAX_LOCAL_ADDRESS_STR_LEN));
}

/*
 * Aeron computes the length of the host from the places of the delimiters, whatever their order, and copies as many
 * bytes as a negative length is as a size_t. The first of the characters is the only one if it begins the text.
 */
int rusteron_address_split(const char *address_str, aeron_parsed_address_t *parsed_address)
{
    if (NULL != address_str && '%' == *address_str)
    {
        AERON_SET_ERR(EINVAL, "host address invalid: %s", address_str);
        return -1;
    }
    return aeron_address_split(address_str, parsed_address);
}

/* The same for interfaces, whose prefix has to be the last part. */
int rusteron_interface_split(const char *interface_str, aeron_parsed_interface_t *parsed_interface)
{
    const char *prefix = NULL == interface_str ? NULL : strrchr(interface_str, '/');
    if ((NULL != interface_str && '%' == *interface_str) || (NULL != prefix && NULL != strpbrk(prefix, ":]")))
    {
        AERON_SET_ERR(EINVAL, "host address invalid: %s", interface_str);
        return -1;
    }
    return aeron_interface_split(interface_str, parsed_interface);
}

/*
 * Returns whether C's arrays hold the parts of a URL, to which a server may have redirected. C takes what is between a
 * slash and a later @ for a host of negative length, and sends more of a long request than its array has.
 */
static bool rusteron_fits_url(const char *url)
{
    static const char scheme[] = "http://";
    if (0 != strncmp(url, scheme, sizeof(scheme) - 1))
    {
        return true;
    }
    const char *authority = url + sizeof(scheme) - 1;
    const size_t authority_length = strcspn(authority, "/");
    return authority_length < AERON_MAX_HOST_LENGTH &&
        strlen(authority) < AERON_MAX_HTTP_PATH_AND_QUERY_LENGTH &&
        NULL == strchr(authority + authority_length, '@');
}

/*
 * Properties of a server. For an empty line, Aeron reads in front of its buffer. For blanks without a name, Aeron
 * writes in front of its buffer. Blanks at the beginning of a line have no meaning, and neither has an empty line.
 */
int rusteron_http_retrieve(aeron_http_response_t **response, const char *url, int64_t timeout_ns)
{
    if (!rusteron_fits_url(url))
    {
        AERON_SET_ERR(EINVAL, "URL %s is too long, or has an @ behind its host", url);
        return -1;
    }
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
