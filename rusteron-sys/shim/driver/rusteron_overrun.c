#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "aeron_alloc.h"
#include "aeron_driver_conductor.h"
#include "aeron_driver_receiver_proxy.h"
#include "aeron_position.h"
#include "aeron_publication_image.h"
#include "concurrent/aeron_counters_manager.h"
#include "concurrent/aeron_logbuffer_descriptor.h"
#include "media/aeron_receive_channel_endpoint.h"
#include "reports/aeron_loss_reporter.h"
#include "util/aeron_error.h"

#include "rusteron_driver_links.h"
#include "rusteron_driver_shim.h"

/*
 * Images that were overrun.
 *
 * A sender whose flow control does not wait for the slowest receiver goes on while a subscriber is
 * behind. Aeron's receiver drops all that lies beyond its window, and does not ask for it again.
 * Once the subscriber has read what is there, nothing of the stream can reach the image any more.
 * Aeron ends the image when no packet was accepted for aeron.image.liveness.timeout, 10 s, and only
 * then the subscriber joins the stream again. Here, the image ends as soon as it is certain that
 * nothing more comes.
 */

/*
 * An image that has ended keeps its log buffer for a while, so that images of a stream may not
 * follow at any rate.
 */
#define RUSTERON_SHORTEST_LIFE_NS INT64_C(1000000000)

/*
 * What is added to an image. Aeron leaves the pointer to it to hooks, which an image has none of.
 */
typedef struct rusteron_overrun_stct
{
    /* Where the last packet begins that the receiver has dropped. The receiver's. */
    int64_t dropped_position;
    /* The same, once such packets have followed one another. Written by the receiver. */
    volatile int64_t position;
    /* That of the counter; -1 while there is none. The conductor's. */
    int32_t counter_id;
}
rusteron_overrun_t;

static rusteron_overrun_t *rusteron_overrun(aeron_publication_image_t *image)
{
    void *overrun;
    AERON_GET_ACQUIRE(overrun, *(void *volatile *)&image->conductor_fields.subscribable.clientd);
    return (rusteron_overrun_t *)overrun;
}

/* Called by the receiver. */
int rusteron_publication_image_insert_packet(
    aeron_publication_image_t *image,
    aeron_receive_destination_t *destination,
    int32_t term_id,
    int32_t term_offset,
    const uint8_t *buffer,
    size_t length,
    struct sockaddr_storage *addr,
    struct timespec *media_receive_timestamp)
{
    const int64_t threshold = image->last_overrun_threshold;
    const int result = aeron_publication_image_insert_packet(
        image, destination, term_id, term_offset, buffer, length, addr, media_receive_timestamp);
    const int64_t position = aeron_logbuffer_compute_position(
        term_id, term_offset, image->position_bits_to_shift, image->initial_term_id);

    /* An invalid packet has a result of 0. */
    if (position > threshold && result > 0)
    {
        rusteron_overrun_t *overrun = rusteron_overrun(image);
        if (NULL == overrun)
        {
            return result;
        }
        /* A stray packet is followed by none like it. */
        const int64_t distance = position - overrun->dropped_position;
        if (0 != overrun->dropped_position && 0 <= distance && distance <= image->term_length)
        {
            AERON_SET_RELEASE(overrun->position, position);
        }
        overrun->dropped_position = position;
    }
    return result;
}

/*
 * Reads the length of a text; -1 unless the text ends before the report does. Other processes may
 * have written it.
 */
static int32_t rusteron_text_length_at(const aeron_loss_reporter_t *report, size_t offset)
{
    const size_t end = report->next_record_offset;
    int32_t length = -1;
    if (offset <= end && sizeof(length) <= end - offset)
    {
        memcpy(&length, report->buffer + offset, sizeof(length));
    }
    return length >= 0 && (size_t)length <= end - offset - sizeof(length) ? length : -1;
}

/* Finds the entry of the image's stream in the loss report. */
static aeron_loss_reporter_entry_offset_t rusteron_find_loss(
    const aeron_publication_image_t *image, const aeron_udp_channel_t *channel, const aeron_loss_reporter_t *report)
{
    size_t offset = 0;
    while (offset < report->next_record_offset)
    {
        const aeron_loss_reporter_entry_t *entry = (const aeron_loss_reporter_entry_t *)(report->buffer + offset);
        const size_t channel_offset = offset + sizeof(*entry);
        const int32_t channel_length = rusteron_text_length_at(report, channel_offset);
        if (channel_length < 0)
        {
            break;
        }
        const size_t source_offset =
            channel_offset + sizeof(int32_t) + AERON_ALIGN((size_t)channel_length, sizeof(int32_t));
        const int32_t source_length = rusteron_text_length_at(report, source_offset);
        if (source_length < 0)
        {
            break;
        }
        const uint8_t *channel_field = report->buffer + channel_offset;
        const uint8_t *source_field = report->buffer + source_offset;

        if (image->session_id == entry->session_id &&
            image->stream_id == entry->stream_id &&
            channel->uri_length == (size_t)channel_length &&
            0 == memcmp(channel->original_uri, channel_field + sizeof(int32_t), channel->uri_length) &&
            image->source_identity_length == (size_t)source_length &&
            0 == memcmp(image->source_identity, source_field + sizeof(int32_t), image->source_identity_length))
        {
            return (aeron_loss_reporter_entry_offset_t)offset;
        }

        const size_t end = source_offset + sizeof(int32_t) + (size_t)source_length;
        offset = AERON_ALIGN(end, AERON_LOSS_REPORTER_ENTRY_ALIGNMENT);
    }
    return -1;
}

/* Images of a stream that is overrun again and again have one entry of the loss report. */
static void rusteron_report_overrun(const aeron_publication_image_t *image, int64_t lost)
{
    const aeron_udp_channel_t *channel = image->conductor_fields.endpoint->conductor_fields.udp_channel;
    aeron_loss_reporter_t *report = image->conductor_fields.loss_report;
    if (NULL == report)
    {
        return;
    }

    const aeron_loss_reporter_entry_offset_t offset = rusteron_find_loss(image, channel, report);
    if (offset >= 0)
    {
        aeron_loss_reporter_record_observation(report, offset, lost, image->epoch_clock());
    }
    else if (aeron_loss_reporter_create_entry(
        report,
        lost,
        image->epoch_clock(),
        image->session_id,
        image->stream_id,
        channel->original_uri,
        channel->uri_length,
        image->source_identity,
        image->source_identity_length) < 0)
    {
        /* The report is full. */
        aeron_err_clear();
    }
}

/*
 * Shows the position of the last dropped packet in a counter, as the other positions of an image.
 */
static void rusteron_count_overrun(
    aeron_driver_conductor_t *conductor, aeron_publication_image_t *image, rusteron_overrun_t *overrun, int64_t position)
{
    aeron_counters_manager_t *manager = &conductor->counters_manager;
    if (overrun->counter_id < 0)
    {
        const aeron_udp_channel_t *channel = image->conductor_fields.endpoint->conductor_fields.udp_channel;
        overrun->counter_id = rusteron_count_stream(
            manager,
            "rcv-overrun",
            RUSTERON_OVERRUN_COUNTER_TYPE_ID,
            0,
            image->conductor_fields.managed_resource.registration_id,
            image->session_id,
            image->stream_id,
            channel->uri_length,
            channel->original_uri);
    }
    if (overrun->counter_id >= 0)
    {
        aeron_counter_set_release(aeron_counters_manager_addr(manager, overrun->counter_id), position);
    }
}

static void rusteron_free_counter(aeron_counters_manager_t *manager, rusteron_overrun_t *overrun)
{
    if (overrun->counter_id >= 0)
    {
        (void)aeron_counters_manager_free(manager, overrun->counter_id);
        overrun->counter_id = -1;
    }
}

/*
 * Ends an image as Aeron does when its packets have stopped: its subscriptions may join the stream
 * again.
 */
static void rusteron_end_image(
    aeron_driver_conductor_t *conductor, aeron_publication_image_t *image, int64_t lost, int64_t now_ns)
{
    rusteron_report_overrun(image, lost);
    for (size_t i = 0; i < conductor->network_subscriptions.length; i++)
    {
        aeron_subscription_link_t *link = &conductor->network_subscriptions.array[i];
        if (aeron_driver_conductor_is_subscribable_linked(link, &image->conductor_fields.subscribable))
        {
            rusteron_count_lost_bytes(&conductor->counters_manager, link->registration_id, lost);
        }
    }

    image->conductor_fields.state = AERON_PUBLICATION_IMAGE_STATE_LINGER;
    image->conductor_fields.time_of_last_state_change_ns = now_ns;
    aeron_receive_channel_endpoint_dec_image_ref_count(image->conductor_fields.endpoint);
    aeron_driver_receiver_proxy_on_remove_publication_image(conductor->context->receiver_proxy, image);
    aeron_driver_conductor_image_transition_to_linger(conductor, image);
    aeron_receive_channel_endpoint_try_remove_endpoint(image->conductor_fields.endpoint);
}

/* Called by the conductor. */
void rusteron_publication_image_track_rebuild(aeron_publication_image_t *image, int64_t now_ns)
{
    aeron_publication_image_track_rebuild(image, now_ns);
    if (AERON_PUBLICATION_IMAGE_STATE_ACTIVE != image->conductor_fields.state ||
        NULL == image->conductor_fields.endpoint)
    {
        return;
    }

    rusteron_overrun_t *overrun = rusteron_overrun(image);
    if (NULL == overrun)
    {
        if (aeron_alloc((void **)&overrun, sizeof(rusteron_overrun_t)) < 0)
        {
            aeron_err_clear();
            return;
        }
        overrun->counter_id = -1;
        AERON_SET_RELEASE(*(void *volatile *)&image->conductor_fields.subscribable.clientd, (void *)overrun);
        return;
    }

    int64_t position;
    AERON_GET_ACQUIRE(position, overrun->position);
    if (0 == position)
    {
        return;
    }

    aeron_driver_conductor_t *conductor = image->conductor_fields.endpoint->dispatcher.conductor_proxy->conductor;
    const int64_t received = aeron_counter_get_acquire(image->rcv_hwm_position.value_addr);
    if (received >= position)
    {
        /* The subscriber has caught up, and the receiver takes packets again. */
        rusteron_free_counter(&conductor->counters_manager, overrun);
        return;
    }
    rusteron_count_overrun(conductor, image, overrun, position);

    /*
     * What is missing before a packet that was received is asked for. Senders keep less than a
     * term. If nothing is missing, packets up to half a term after the subscriber's position could
     * still be taken. Another destination of a subscription may send what this one has not.
     */
    const int64_t rebuilt = aeron_counter_get_plain(image->rcv_pos_position.value_addr);
    const int64_t reach = received > rebuilt ? image->term_length : image->term_length / 2;
    const int64_t age_ns = now_ns - image->conductor_fields.time_of_last_state_change_ns;
    if (position - rebuilt > reach &&
        age_ns > AERON_MIN(RUSTERON_SHORTEST_LIFE_NS, image->conductor_fields.liveness_timeout_ns) &&
        aeron_driver_subscribable_has_working_positions(&image->conductor_fields.subscribable) &&
        aeron_publication_image_is_drained(image) &&
        AERON_UDP_CHANNEL_CONTROL_MODE_MANUAL != image->conductor_fields.endpoint->conductor_fields.udp_channel->control_mode)
    {
        rusteron_free_counter(&conductor->counters_manager, overrun);
        rusteron_end_image(conductor, image, position - rebuilt, now_ns);
    }
}

int rusteron_publication_image_close(aeron_counters_manager_t *manager, aeron_publication_image_t *image)
{
    rusteron_overrun_t *overrun = NULL == image ? NULL : rusteron_overrun(image);
    if (NULL != overrun)
    {
        rusteron_free_counter(manager, overrun);
        image->conductor_fields.subscribable.clientd = NULL;
        aeron_free(overrun);
    }
    return aeron_publication_image_close(manager, image);
}
