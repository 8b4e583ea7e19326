#include <stddef.h>
#include <string.h>

#include "aeron_driver_conductor.h"
#include "aeron_position.h"
#include "command/aeron_control_protocol.h"
#include "concurrent/aeron_broadcast_transmitter.h"
#include "concurrent/aeron_counters_manager.h"
#include "util/aeron_error.h"

#include "rusteron_driver_links.h"
#include "rusteron_driver_shim.h"

/*
 * Counters that tell what Aeron's do not: which client has added which subscription, with an image or without, and
 * which further clients share a publication. They are made when the driver's answer goes out. They are freed with the
 * link, or with the client, whose heartbeat counter the conductor frees last. The counters themselves are all the state
 * there is. Only the conductor's thread comes here.
 */

/* The counters of Aeron come first: no link is counted while more than half of the counters are in use. */
static bool rusteron_has_counters_to_spare(const aeron_counters_manager_t *manager)
{
    return manager->id_high_water_mark - manager->free_list_index < manager->max_counter_id / 2;
}

int32_t rusteron_count_stream(
    aeron_counters_manager_t *manager,
    const char *name,
    int32_t type_id,
    int64_t client_id,
    int64_t registration_id,
    int32_t session_id,
    int32_t stream_id,
    size_t channel_length,
    const char *channel)
{
    if (!rusteron_has_counters_to_spare(manager))
    {
        return -1;
    }

    const int32_t counter_id = aeron_stream_counter_allocate(
        manager, name, type_id, client_id, registration_id, session_id, stream_id, channel_length, channel, "");
    if (counter_id < 0)
    {
        aeron_err_clear();
    }
    return counter_id;
}

static const aeron_subscription_link_t *rusteron_find_subscription_among(
    const aeron_subscription_link_t *links, size_t length, int64_t registration_id)
{
    /* The latest is the last. */
    for (size_t i = length; i > 0; i--)
    {
        if (registration_id == links[i - 1].registration_id)
        {
            return &links[i - 1];
        }
    }
    return NULL;
}

static const aeron_subscription_link_t *rusteron_find_subscription(
    const aeron_driver_conductor_t *conductor, int64_t registration_id)
{
    const aeron_subscription_link_t *link = rusteron_find_subscription_among(
        conductor->network_subscriptions.array, conductor->network_subscriptions.length, registration_id);
    if (NULL == link)
    {
        link = rusteron_find_subscription_among(
            conductor->ipc_subscriptions.array, conductor->ipc_subscriptions.length, registration_id);
    }
    return NULL != link ? link : rusteron_find_subscription_among(
        conductor->spy_subscriptions.array, conductor->spy_subscriptions.length, registration_id);
}

/* Returns the client that has added a publication by the command with this registration id. */
static const aeron_client_t *rusteron_find_publisher(
    const aeron_driver_conductor_t *conductor, int64_t registration_id)
{
    for (size_t i = 0; i < conductor->clients.length; i++)
    {
        const aeron_client_t *client = &conductor->clients.array[i];
        for (size_t j = 0; j < client->publication_links.length; j++)
        {
            if (registration_id == client->publication_links.array[j].registration_id)
            {
                return client;
            }
        }
    }
    return NULL;
}

/* As aeron_broadcast_transmitter_transmit(), of the conductor's only transmitter. */
int rusteron_broadcast_transmitter_transmit(
    aeron_broadcast_transmitter_t *transmitter, int32_t msg_type_id, const void *msg, size_t length)
{
    aeron_driver_conductor_t *conductor =
        (aeron_driver_conductor_t *)((uint8_t *)transmitter - offsetof(aeron_driver_conductor_t, to_clients));

    if (AERON_RESPONSE_ON_SUBSCRIPTION_READY == msg_type_id)
    {
        const aeron_subscription_ready_t *ready = msg;
        const aeron_subscription_link_t *link = rusteron_find_subscription(conductor, ready->correlation_id);
        if (NULL != link)
        {
            (void)rusteron_count_stream(
                &conductor->counters_manager, "sub", RUSTERON_SUBSCRIPTION_COUNTER_TYPE_ID, link->client_id,
                link->registration_id, link->has_session_id ? link->session_id : 0, link->stream_id,
                (size_t)link->channel_length, link->channel);
        }
    }
    else if (AERON_RESPONSE_ON_PUBLICATION_READY == msg_type_id)
    {
        const aeron_publication_buffers_ready_t *ready = msg;
        const aeron_client_t *client = ready->correlation_id != ready->registration_id ?
            rusteron_find_publisher(conductor, ready->correlation_id) : NULL;
        if (NULL != client)
        {
            const int32_t counter_id = rusteron_count_stream(
                &conductor->counters_manager, "pub-shared", RUSTERON_SHARED_PUBLICATION_COUNTER_TYPE_ID, client->client_id,
                ready->correlation_id, ready->session_id, ready->stream_id, 0, "");
            if (counter_id >= 0)
            {
                aeron_counters_manager_counter_reference_id(
                    &conductor->counters_manager, counter_id, ready->registration_id);
            }
        }
    }

    return aeron_broadcast_transmitter_transmit(transmitter, msg_type_id, msg, length);
}

static const aeron_counter_metadata_descriptor_t *rusteron_metadata(
    const aeron_counters_manager_t *manager, int32_t counter_id)
{
    return (const aeron_counter_metadata_descriptor_t *)(manager->metadata + AERON_COUNTER_METADATA_OFFSET(counter_id));
}

static const aeron_counter_value_descriptor_t *rusteron_value(
    const aeron_counters_manager_t *manager, int32_t counter_id)
{
    return (const aeron_counter_value_descriptor_t *)(manager->values + AERON_COUNTER_OFFSET(counter_id));
}

/* Frees the counters of the links of a client, or those of one link. */
static void rusteron_free_links(aeron_counters_manager_t *manager, bool is_client, int64_t id)
{
    for (int32_t i = 0; i <= manager->id_high_water_mark && i <= manager->max_counter_id; i++)
    {
        const aeron_counter_metadata_descriptor_t *metadata = rusteron_metadata(manager, i);
        const aeron_counter_value_descriptor_t *value = rusteron_value(manager, i);
        if (AERON_COUNTER_RECORD_ALLOCATED == metadata->state &&
            (RUSTERON_SUBSCRIPTION_COUNTER_TYPE_ID == metadata->type_id ||
            RUSTERON_SHARED_PUBLICATION_COUNTER_TYPE_ID == metadata->type_id) &&
            id == (is_client ? value->owner_id : value->registration_id))
        {
            (void)aeron_counters_manager_free(manager, i);
        }
    }
}

void rusteron_count_lost_bytes(aeron_counters_manager_t *manager, int64_t registration_id, int64_t lost)
{
    for (int32_t i = 0; i <= manager->id_high_water_mark && i <= manager->max_counter_id; i++)
    {
        const aeron_counter_metadata_descriptor_t *metadata = rusteron_metadata(manager, i);
        if (AERON_COUNTER_RECORD_ALLOCATED == metadata->state &&
            RUSTERON_SUBSCRIPTION_COUNTER_TYPE_ID == metadata->type_id &&
            registration_id == rusteron_value(manager, i)->registration_id)
        {
            aeron_counter_get_and_add_release(aeron_counters_manager_addr(manager, i), lost);
        }
    }
}

void rusteron_driver_links_on_command(
    aeron_driver_conductor_t *conductor, int32_t type_id, const void *command, size_t length)
{
    int64_t id;
    if (AERON_COMMAND_REMOVE_SUBSCRIPTION == type_id && length >= sizeof(aeron_remove_subscription_command_t))
    {
        id = ((const aeron_remove_subscription_command_t *)command)->registration_id;
    }
    /* Older clients send no flags, as the conductor allows. */
    else if (
        AERON_COMMAND_REMOVE_PUBLICATION == type_id && length >= offsetof(aeron_remove_publication_command_t, flags))
    {
        id = ((const aeron_remove_publication_command_t *)command)->registration_id;
    }
    else
    {
        return;
    }

    /* The driver may have refused the command. */
    if (NULL == rusteron_find_subscription(conductor, id) && NULL == rusteron_find_publisher(conductor, id))
    {
        rusteron_free_links(&conductor->counters_manager, false, id);
    }
}

/* As aeron_counters_manager_free() for the conductor, which frees a client's heartbeat counter after its links. */
int rusteron_counters_manager_free(aeron_counters_manager_t *manager, int32_t counter_id)
{
    if (counter_id >= 0 && counter_id <= manager->max_counter_id &&
        AERON_COUNTER_CLIENT_HEARTBEAT_TIMESTAMP_TYPE_ID == rusteron_metadata(manager, counter_id)->type_id)
    {
        rusteron_free_links(manager, true, rusteron_value(manager, counter_id)->registration_id);
    }
    return aeron_counters_manager_free(manager, counter_id);
}
