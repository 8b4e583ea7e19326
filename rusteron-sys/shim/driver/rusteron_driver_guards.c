#if defined(__linux__)
#define _BSD_SOURCE
#define _GNU_SOURCE
#endif

#include <stdio.h>
#include <string.h>
#if !defined(_MSC_VER)
#include <fcntl.h>
#endif

#include "aeron_alloc.h"
#include "aeron_driver_conductor.h"
#include "aeron_driver_conductor_proxy.h"
#include "aeron_driver_native_resource_agent_proxy.h"
#include "aeron_driver_receiver.h"
#include "aeron_driver_receiver_proxy.h"
#include "aeron_network_publication.h"
#include "aeron_publication_image.h"
#include "aeron_data_packet_dispatcher.h"
#include "aeron_socket.h"
#include "command/aeron_control_protocol.h"
#include "concurrent/aeron_counters_manager.h"
#include "concurrent/aeron_logbuffer_descriptor.h"
#include "concurrent/aeron_mpsc_rb.h"
#include "media/aeron_receive_channel_endpoint.h"
#include "media/aeron_udp_channel_transport_bindings.h"
#include "protocol/aeron_udp_protocol.h"
#include "uri/aeron_uri.h"
#include "util/aeron_arrayutil.h"
#include "util/aeron_bitutil.h"
#include "util/aeron_math.h"

#include "rusteron_client_liveness.h"
#include "rusteron_driver_links.h"

/*
 * A SETUP frame has the initial term of a stream, and the active term. Aeron computes a position from the
 * difference without checking that the difference is not negative. Subscribers index the log buffer by that
 * position.
 */
int rusteron_data_packet_dispatcher_on_setup(
    aeron_data_packet_dispatcher_t *dispatcher,
    aeron_receive_channel_endpoint_t *endpoint,
    aeron_receive_destination_t *destination,
    aeron_setup_header_t *header,
    uint8_t *buffer,
    size_t length,
    struct sockaddr_storage *addr)
{
    if (aeron_sub_wrap_i32(header->active_term_id, header->initial_term_id) < 0)
    {
        aeron_counter_increment(dispatcher->receiver->invalid_frames_counter);
        return 0;
    }

    return aeron_data_packet_dispatcher_on_setup(dispatcher, endpoint, destination, header, buffer, length, addr);
}

/*
 * The number of bytes from the offset on that are frames of the publication, one behind the other, as far as `length`
 * goes; -1 if there is anything else before. Behind padding that is longer than what is asked for, Aeron sends on to the
 * end of the term, so the frames up to there are checked as well.
 */
static int32_t rusteron_framed_length(
    const aeron_network_publication_t *publication,
    const uint8_t *term,
    int32_t term_id,
    int32_t term_offset,
    int32_t length)
{
    const int32_t term_length = publication->term_length_mask + 1;
    int32_t end = term_offset + length;
    int32_t offset = term_offset;

    while (offset < end)
    {
        const aeron_data_header_t *frame = (const aeron_data_header_t *)(term + offset);
        int32_t frame_length;
        AERON_GET_ACQUIRE(frame_length, frame->frame_header.frame_length);
        if (frame_length <= 0)
        {
            break;
        }

        if (frame->term_offset != offset ||
            frame->term_id != term_id ||
            frame->session_id != publication->session_id ||
            frame->stream_id != publication->stream_id ||
            frame_length > term_length - offset)
        {
            return -1;
        }

        offset += AERON_ALIGN(frame_length, AERON_LOGBUFFER_FRAME_ALIGNMENT);
        if (AERON_HDR_TYPE_PAD == frame->frame_header.type && offset > end)
        {
            end = term_length;
        }
    }

    return offset - term_offset;
}

/*
 * Aeron sends again from where a NAK frame says, and takes what is there for the header of a frame. In the middle of
 * a message it is the message's bytes: of these Aeron computes lengths, and by them reads and sends what lies behind
 * the term. Only frames that have been sent are looked at, and no more than Aeron would send again at once. Those that
 * come later are not sent again, as Aeron may do so after a delay, when others have been written there.
 */
int rusteron_network_publication_on_nak(
    aeron_network_publication_t *publication, int32_t term_id, int32_t term_offset, int32_t length)
{
    const int32_t term_length = publication->term_length_mask + 1;
    const int64_t sender_position = aeron_counter_get_plain(publication->snd_pos_position.value_addr);
    const int64_t position = aeron_logbuffer_compute_position(
        term_id, term_offset, publication->position_bits_to_shift, publication->initial_term_id);
    const int64_t bottom =
        sender_position - (term_length >> 1) - (int64_t)aeron_compute_max_message_length((size_t)term_length);
    int32_t framed_length = 0;

    if (position < 0)
    {
        framed_length = -1;
    }
    else if (bottom <= position && position < sender_position && length > 0)
    {
        const size_t index = aeron_logbuffer_index_by_position(position, publication->position_bits_to_shift);
        const size_t most = publication->flow_control->max_retransmission_length(
            publication->flow_control->state,
            term_offset,
            (size_t)length,
            (size_t)term_length,
            publication->mtu_length);
        length = most < (size_t)length ? (int32_t)most : length;
        framed_length = rusteron_framed_length(
            publication, publication->mapped_raw_log->term_buffers[index].addr, term_id, term_offset, length);
    }

    if (framed_length <= 0)
    {
        /* As Aeron counts those that it ignores. */
        aeron_counter_increment_release(publication->snd_naks_received_counter.value_addr);
        if (framed_length < 0)
        {
            aeron_counter_increment(publication->retransmit_handler.invalid_packets_counter);
        }
        return 0;
    }

    return aeron_network_publication_on_nak(
        publication, term_id, term_offset, framed_length < length ? framed_length : length);
}

void aeron_driver_name_resolver_receive(
    aeron_udp_channel_data_paths_t *data_paths,
    aeron_udp_channel_transport_t *transport,
    void *receiver_clientd,
    void *endpoint_clientd,
    void *destination_clientd,
    uint8_t *buffer,
    size_t length,
    struct sockaddr_storage *addr,
    struct timespec *media_receive_timestamp);

/* Returns whether each entry, name included, lies within the datagram. Aeron reports entries of an unknown type. */
static bool rusteron_has_resolution_entries(const uint8_t *buffer, size_t length)
{
    size_t offset = sizeof(aeron_frame_header_t);

    while (offset < length)
    {
        const aeron_resolution_header_t *entry = (const aeron_resolution_header_t *)(buffer + offset);
        const size_t remaining = length - offset;
        size_t header_length;
        int16_t name_length;

        if (remaining < sizeof(aeron_resolution_header_t))
        {
            return false;
        }

        if (AERON_RES_HEADER_TYPE_NAME_TO_IP4_MD == entry->res_type)
        {
            header_length = sizeof(aeron_resolution_header_ipv4_t);
        }
        else if (AERON_RES_HEADER_TYPE_NAME_TO_IP6_MD == entry->res_type)
        {
            header_length = sizeof(aeron_resolution_header_ipv6_t);
        }
        else
        {
            return true;
        }

        if (remaining < header_length)
        {
            return false;
        }

        /* The last field of both headers. */
        memcpy(&name_length, buffer + offset + header_length - sizeof(name_length), sizeof(name_length));
        if (name_length < 0)
        {
            return false;
        }

        const size_t entry_length = AERON_ALIGN(header_length + (size_t)name_length, sizeof(int64_t));
        if (remaining < entry_length)
        {
            return false;
        }

        offset += entry_length;
    }

    return true;
}

/*
 * Aeron compares the length of an entry with the length of the whole datagram, even for a later entry, and does not
 * check the sign of a name's length. A datagram without a header counts as invalid in Aeron.
 */
static void rusteron_driver_name_resolver_receive(
    aeron_udp_channel_data_paths_t *data_paths,
    aeron_udp_channel_transport_t *transport,
    void *receiver_clientd,
    void *endpoint_clientd,
    void *destination_clientd,
    uint8_t *buffer,
    size_t length,
    struct sockaddr_storage *addr,
    struct timespec *media_receive_timestamp)
{
    aeron_driver_name_resolver_receive(
        data_paths,
        transport,
        receiver_clientd,
        endpoint_clientd,
        destination_clientd,
        buffer,
        rusteron_has_resolution_entries(buffer, length) ? length : 0,
        addr,
        media_receive_timestamp);
}

/* The name resolver calls this once, with its own receive function. */
int rusteron_udp_channel_data_paths_init(
    aeron_udp_channel_data_paths_t *data_paths,
    aeron_udp_channel_interceptor_bindings_t *outgoing_interceptor_bindings,
    aeron_udp_channel_interceptor_bindings_t *incoming_interceptor_bindings,
    aeron_udp_channel_transport_bindings_t *media_bindings,
    aeron_udp_transport_recv_func_t recv_func,
    aeron_driver_context_t *context,
    aeron_udp_channel_transport_affinity_t affinity)
{
    (void)recv_func;
    return aeron_udp_channel_data_paths_init(
        data_paths,
        outgoing_interceptor_bindings,
        incoming_interceptor_bindings,
        media_bindings,
        rusteron_driver_name_resolver_receive,
        context,
        affinity);
}

/*
 * A child of this process would inherit the sockets of an embedded driver, and occupy their ports after the driver has
 * closed them. Without SOCK_CLOEXEC (macOS), a child that starts between the two calls inherits the socket.
 */
aeron_socket_t rusteron_socket(int domain, int type, int protocol)
{
#if defined(SOCK_CLOEXEC)
    return aeron_socket(domain, type | SOCK_CLOEXEC, protocol);
#else
    const aeron_socket_t socket_fd = aeron_socket(domain, type, protocol);
#if !defined(_MSC_VER)
    if (socket_fd >= 0)
    {
        (void)fcntl(socket_fd, F_SETFD, FD_CLOEXEC);
    }
#endif
    return socket_fd;
#endif
}

static void rusteron_driver_free_log_buffer(int32_t type_id, const void *message, size_t length, void *clientd)
{
    aeron_driver_context_t *context = (aeron_driver_context_t *)clientd;
    if (AERON_DRIVER_NATIVE_RESOURCE_AGENT_COMMAND_TYPE_FREE_LOG_BUFFER == type_id)
    {
        const aeron_driver_native_resource_agent_proxy_cmd_free_log_buffer_t *command =
            (const aeron_driver_native_resource_agent_proxy_cmd_free_log_buffer_t *)message;
        context->raw_log_free_func(command->mapped_raw_log, command->log_file_name);
        aeron_free(command->mapped_raw_log);
        aeron_free((void *)command->log_file_name);
    }
}

/*
 * If the driver ends while a UDP publication or an image waits, the conductor sends the log buffer to the native
 * resource agent to be freed. That agent is closed before the conductor (aeron_driver.c:772, 1445), so the command
 * stays in the queue, and the log buffer stays mapped.
 */
void rusteron_driver_conductor_on_close(void *clientd)
{
    aeron_driver_context_t *context = ((aeron_driver_conductor_t *)clientd)->context;
    rusteron_forget_all_clients((aeron_driver_conductor_t *)clientd);
    aeron_driver_conductor_on_close(clientd);
    aeron_spsc_rb_read(
        &context->native_resource_agent_command_queue, rusteron_driver_free_log_buffer, context, SIZE_MAX);
}

/* The length of a text's beginning of at most `most` bytes, without a part of a character in UTF-8 at its end. */
static int32_t rusteron_text_length(const void *text, int32_t length, int32_t most)
{
    const uint8_t *bytes = (const uint8_t *)text;
    if (length <= most)
    {
        return length;
    }
    int32_t end = most;
    while (end > 0 && most - end < 3 && 0x80 == (bytes[end] & 0xC0))
    {
        end--;
    }
    return 0x80 == (bytes[end] & 0xC0) ? most : end;
}

/*
 * A client chooses the reason. Aeron's array on the conductor's stack is as long as the base of the command and the
 * longest text, without the other fields. What is sent is as long as the structure and the text.
 */
void rusteron_driver_receiver_proxy_on_invalidate_image(
    aeron_driver_receiver_proxy_t *receiver_proxy,
    int64_t image_correlation_id,
    int64_t position,
    int32_t reason_length,
    const char *reason)
{
    const size_t array_length = sizeof(aeron_command_base_t) + AERON_ERROR_MAX_TEXT_LENGTH + 1;
    const int32_t most = (int32_t)(array_length - sizeof(aeron_command_receiver_invalidate_image_t));
    aeron_driver_receiver_proxy_on_invalidate_image(
        receiver_proxy,
        image_correlation_id,
        position,
        rusteron_text_length(reason, reason_length, most),
        reason);
}

/* Aeron keeps the reason of each rejection of an image, and frees the last one only. */
void rusteron_publication_image_invalidate(
    aeron_publication_image_t *image, int32_t reason_length, const char *reason)
{
    aeron_free((void *)image->invalidation_reason);
    image->invalidation_reason = NULL;
    aeron_publication_image_invalidate(image, reason_length, reason);
}

static bool rusteron_has_destination(
    const aeron_receive_channel_endpoint_t *endpoint, const aeron_receive_destination_t *destination)
{
    for (size_t i = 0; i < endpoint->destinations.length; i++)
    {
        if (endpoint->destinations.array[i].destination == destination)
        {
            return true;
        }
    }
    return false;
}

/*
 * Makes the pointers to the addresses of publishers point into their own connections. Aeron grows and reorders the array
 * without that.
 */
static void rusteron_own_control_addresses(aeron_publication_image_t *image)
{
    for (size_t i = 0; i < image->connections.length; i++)
    {
        aeron_publication_image_connection_t *connection = &image->connections.array[i];
        if (!connection->destination->has_control_addr && NULL != connection->control_addr)
        {
            connection->control_addr = &connection->resolved_control_address_for_implicit_unicast_channels;
        }
    }
}

/* A datagram adds the connection of its destination; with a connection for each, this does not grow the array. */
static int rusteron_reserve_connections(
    aeron_publication_image_t *image, const aeron_receive_channel_endpoint_t *endpoint)
{
    const size_t capacity = endpoint->destinations.length;
    if (capacity > image->connections.capacity)
    {
        if (aeron_array_ensure_capacity(
            (uint8_t **)&image->connections.array,
            sizeof(aeron_publication_image_connection_t),
            image->connections.capacity,
            capacity) < 0)
        {
            return -1;
        }
        image->connections.capacity = capacity;
        rusteron_own_control_addresses(image);
    }
    return 0;
}

int rusteron_publication_image_add_destination(
    aeron_publication_image_t *image, aeron_receive_destination_t *destination)
{
    return rusteron_reserve_connections(image, image->endpoint) < 0 ?
        -1 : aeron_publication_image_add_destination(image, destination);
}

int rusteron_publication_image_remove_destination(aeron_publication_image_t *image, aeron_udp_channel_t *channel)
{
    const int deleted = aeron_publication_image_remove_destination(image, channel);
    rusteron_own_control_addresses(image);
    return deleted;
}

/*
 * The conductor frees a destination after the receiver has removed it. Aeron's receiver leaves it in the list of those
 * to whose control addresses it sends status messages. In an image, Aeron looks for a connection by the channel, from
 * the end on, and may find that of another destination with an equal channel.
 */
int rusteron_receive_channel_endpoint_remove_destination(
    aeron_receive_channel_endpoint_t *endpoint,
    aeron_udp_channel_t *channel,
    aeron_receive_destination_t **destination_out)
{
    aeron_driver_receiver_t *receiver = endpoint->receiver_proxy->receiver;
    aeron_receive_destination_t *destination = NULL;
    /* If a destination cannot be added, Aeron passes NULL, at which its function would write. */
    const int deleted = aeron_receive_channel_endpoint_remove_destination(endpoint, channel, &destination);
    if (NULL != destination_out)
    {
        *destination_out = destination;
    }
    if (NULL == destination)
    {
        return deleted;
    }

    for (size_t i = receiver->pending_setups.length; i-- > 0;)
    {
        if (receiver->pending_setups.array[i].destination == destination)
        {
            aeron_array_fast_unordered_remove(
                (uint8_t *)receiver->pending_setups.array,
                sizeof(aeron_driver_receiver_pending_setup_entry_t),
                i,
                receiver->pending_setups.length - 1);
            receiver->pending_setups.length--;
        }
    }

    for (size_t i = 0; i < receiver->images.length; i++)
    {
        aeron_publication_image_t *image = receiver->images.array[i].image;
        for (size_t j = 0; endpoint == image->endpoint && j < image->connections.length; j++)
        {
            aeron_publication_image_connection_t *connection = &image->connections.array[j];
            if (connection->destination == destination)
            {
                aeron_publication_image_connection_t *last =
                    &image->connections.array[image->connections.length - 1];
                const aeron_publication_image_connection_t removed = *connection;
                *connection = *last;
                *last = removed;
                break;
            }
        }
    }
    return deleted;
}

/* The destination of an image's first connection may have been removed while the conductor made the image. */
int rusteron_receive_channel_endpoint_on_add_publication_image(
    aeron_receive_channel_endpoint_t *endpoint, aeron_publication_image_t *image)
{
    for (size_t i = image->connections.length; i-- > 0;)
    {
        if (!rusteron_has_destination(endpoint, image->connections.array[i].destination))
        {
            aeron_array_fast_unordered_remove(
                (uint8_t *)image->connections.array,
                sizeof(aeron_publication_image_connection_t),
                i,
                image->connections.length - 1);
            image->connections.length--;
        }
    }
    rusteron_own_control_addresses(image);
    return rusteron_reserve_connections(image, endpoint) < 0 ?
        -1 : aeron_receive_channel_endpoint_on_add_publication_image(endpoint, image);
}

/* The same while the conductor resolved the name of a destination's control address again. */
void rusteron_receive_channel_endpoint_update_control_address(
    aeron_receive_channel_endpoint_t *endpoint,
    aeron_receive_destination_t *destination,
    struct sockaddr_storage *address)
{
    if (rusteron_has_destination(endpoint, destination))
    {
        aeron_receive_channel_endpoint_update_control_address(endpoint, destination, address);
    }
}

/*
 * Clients and hosts cause most of the conductor's errors, and choose a part of their texts: a
 * client that asks for other wrong channels each time would fill the log, in which no other error
 * is then seen. Once half of the log is used, a text ends behind the place that found the error,
 * and one without a place at its first colon. Aeron counts longer texts that begin so as the same
 * error.
 */
int rusteron_distinct_error_log_record(aeron_distinct_error_log_t *log, int error_code, const char *description)
{
    char text[256];
    aeron_mutex_lock(&log->mutex);
    const bool is_cut = log->next_offset > log->buffer_capacity / 2;
    aeron_mutex_unlock(&log->mutex);

    if (is_cut)
    {
        const char *place_end = strstr(description, "] ");
        const size_t length =
            NULL == place_end ? strcspn(description, ":") : (size_t)(place_end - description) + 1;
        snprintf(text, sizeof(text), "%.*s", (int)AERON_MIN(length, sizeof(text)), description);
        description = text;
    }
    return aeron_distinct_error_log_record(log, error_code, description);
}

/*
 * A receiver on the network chooses the text. Aeron sends one byte more than its array on the sender's stack has, if
 * the text is of the greatest length.
 */
void rusteron_driver_conductor_proxy_on_publication_error(
    aeron_driver_conductor_proxy_t *conductor_proxy,
    int64_t registration_id,
    int64_t destination_registration_id,
    int32_t session_id,
    int32_t stream_id,
    int64_t receiver_id,
    int64_t group_tag,
    struct sockaddr_storage *src_address,
    int32_t error_code,
    int32_t error_length,
    const uint8_t *error_text)
{
    aeron_driver_conductor_proxy_on_publication_error(
        conductor_proxy,
        registration_id,
        destination_registration_id,
        session_id,
        stream_id,
        receiver_id,
        group_tag,
        src_address,
        error_code,
        rusteron_text_length(error_text, error_length, AERON_ERROR_MAX_TEXT_LENGTH - 1),
        error_text);
}

/* Returns whether the text at the end of a command is within it. C adds its signed length to a size_t. */
static bool rusteron_has_its_text(int32_t type_id, const uint8_t *message, size_t length)
{
    size_t fixed_length = 0;
    switch (type_id)
    {
        case AERON_COMMAND_ADD_PUBLICATION:
        case AERON_COMMAND_ADD_EXCLUSIVE_PUBLICATION:
            fixed_length = sizeof(aeron_publication_command_t);
            break;

        case AERON_COMMAND_ADD_SUBSCRIPTION:
            fixed_length = sizeof(aeron_subscription_command_t);
            break;

        case AERON_COMMAND_ADD_DESTINATION:
        case AERON_COMMAND_REMOVE_DESTINATION:
        case AERON_COMMAND_ADD_RCV_DESTINATION:
        case AERON_COMMAND_REMOVE_RCV_DESTINATION:
            fixed_length = sizeof(aeron_destination_command_t);
            break;

        case AERON_COMMAND_TERMINATE_DRIVER:
            fixed_length = sizeof(aeron_terminate_driver_command_t);
            break;

        case AERON_COMMAND_REJECT_IMAGE:
            fixed_length = offsetof(aeron_reject_image_command_t, reason_text);
            break;

        default:
            return true;
    }

    int32_t text_length;
    if (length < fixed_length)
    {
        return false;
    }
    memcpy(&text_length, message + fixed_length - sizeof(int32_t), sizeof(int32_t));
    return text_length >= 0 && (size_t)text_length <= length - fixed_length;
}

/*
 * Aeron prints a channel of an unknown transport up to the next zero byte, but a command's text has
 * none: bytes of the heap after it reached the client and the error log.
 */
int rusteron_uri_parse(size_t uri_length, const char *uri, aeron_uri_t *params)
{
    char text[AERON_URI_MAX_LENGTH];
    if (uri_length >= sizeof(text))
    {
        return aeron_uri_parse(uri_length, uri, params);
    }
    memcpy(text, uri, uri_length);
    text[uri_length] = '\0';
    return aeron_uri_parse(uri_length, text, params);
}

/*
 * As aeron_mpsc_rb_controlled_read() for the driver's conductor, but believes no record of the commands' buffer. C
 * clears as many bytes as the records' lengths add up to, also behind the file. Behind a record that no client writes,
 * the next one cannot be found: all commands up to the tail are dropped. The handler gets a copy, which no process
 * changes after the checks. A command whose text is not in it looks empty, which is an error for C.
 */
size_t rusteron_mpsc_rb_controlled_read(
    aeron_mpsc_rb_t *ring_buffer, aeron_rb_controlled_handler_t handler, void *clientd, size_t message_count_limit)
{
    const int64_t head = ring_buffer->descriptor->head_position;
    const size_t head_index = (size_t)head & (ring_buffer->capacity - 1);
    const size_t block_length = ring_buffer->capacity - head_index;
    size_t messages_read = 0;
    size_t bytes_read = 0;

    while (bytes_read < block_length && messages_read < message_count_limit)
    {
        const size_t index = head_index + bytes_read;
        aeron_rb_record_descriptor_t *record = (aeron_rb_record_descriptor_t *)(ring_buffer->buffer + index);
        int32_t record_length = INT32_MAX;
        if (0 == index % AERON_RB_ALIGNMENT)
        {
            AERON_GET_ACQUIRE(record_length, record->length);
        }
        if (record_length <= 0)
        {
            break;
        }

        const int32_t type_id = record->msg_type_id;
        const size_t aligned_length = AERON_ALIGN((size_t)record_length, AERON_RB_ALIGNMENT);
        if ((size_t)record_length < AERON_RB_RECORD_HEADER_LENGTH || aligned_length > block_length - bytes_read)
        {
            int64_t tail;
            AERON_GET_ACQUIRE(tail, ring_buffer->descriptor->tail_position);
            const uint64_t pending = (uint64_t)tail - (uint64_t)head;
            const bool is_possible = pending > bytes_read && pending <= ring_buffer->capacity;
            bytes_read = is_possible ? (size_t)pending : block_length;
            break;
        }
        bytes_read += aligned_length;
        if (AERON_RB_PADDING_MSG_TYPE_ID == type_id)
        {
            continue;
        }

        const size_t length = (size_t)record_length - AERON_RB_RECORD_HEADER_LENGTH;
        uint8_t *copy;
        /* Cleared, and longer than what C reads of a command before it compares the length. */
        if (aeron_alloc((void **)&copy, length + sizeof(aeron_reject_image_command_t)) < 0)
        {
            bytes_read -= aligned_length;
            break;
        }
        memcpy(copy, ring_buffer->buffer + AERON_RB_MESSAGE_OFFSET(index), length);
        const aeron_rb_read_action_t action = handler(
            type_id, copy, rusteron_has_its_text(type_id, copy, length) ? length : 0, clientd);
        rusteron_driver_links_on_command((aeron_driver_conductor_t *)clientd, type_id, copy, length);
        rusteron_look_at_client(
            (aeron_driver_conductor_t *)clientd, ((const aeron_correlated_command_t *)copy)->client_id);
        aeron_free(copy);

        if (AERON_RB_ABORT == action)
        {
            bytes_read -= aligned_length;
            break;
        }
        messages_read++;
        if (AERON_RB_BREAK == action)
        {
            break;
        }
    }

    if (0 != bytes_read)
    {
        const size_t in_block = bytes_read < block_length ? bytes_read : block_length;
        memset(ring_buffer->buffer + head_index, 0, in_block);
        memset(ring_buffer->buffer, 0, bytes_read - in_block);
        AERON_SET_RELEASE(ring_buffer->descriptor->head_position, head + (int64_t)bytes_read);
    }
    return messages_read;
}
