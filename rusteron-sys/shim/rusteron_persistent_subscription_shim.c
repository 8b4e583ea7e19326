/*
 * C takes a reference of each image that a persistent subscription works with, and never releases it
 * (aeron_archive_persistent_subscription.c:1884, 1963, 2196; 756 and 776 forget the image). An image that goes
 * before its subscription then stays mapped until the client closes. The file is compiled here once more, with
 * releases of the references. Only its functions that work with images are called; the other functions have unused
 * names.
 */
#define aeron_archive_persistent_subscription_close rusteron_persistent_subscription_close
#define aeron_archive_persistent_subscription_context_close rusteron_unused_persistent_subscription_context_close
#define aeron_archive_persistent_subscription_context_conclude rusteron_unused_persistent_subscription_context_conclude
#define aeron_archive_persistent_subscription_context_get_join_difference_counter rusteron_unused_persistent_subscription_context_get_join_difference_counter
#define aeron_archive_persistent_subscription_context_get_live_channel rusteron_unused_persistent_subscription_context_get_live_channel
#define aeron_archive_persistent_subscription_context_get_live_joined_counter rusteron_unused_persistent_subscription_context_get_live_joined_counter
#define aeron_archive_persistent_subscription_context_get_live_left_counter rusteron_unused_persistent_subscription_context_get_live_left_counter
#define aeron_archive_persistent_subscription_context_get_live_stream_id rusteron_unused_persistent_subscription_context_get_live_stream_id
#define aeron_archive_persistent_subscription_context_get_recording_id rusteron_unused_persistent_subscription_context_get_recording_id
#define aeron_archive_persistent_subscription_context_get_replay_channel rusteron_unused_persistent_subscription_context_get_replay_channel
#define aeron_archive_persistent_subscription_context_get_replay_stream_id rusteron_unused_persistent_subscription_context_get_replay_stream_id
#define aeron_archive_persistent_subscription_context_get_start_position rusteron_unused_persistent_subscription_context_get_start_position
#define aeron_archive_persistent_subscription_context_get_state_counter rusteron_unused_persistent_subscription_context_get_state_counter
#define aeron_archive_persistent_subscription_context_init rusteron_unused_persistent_subscription_context_init
#define aeron_archive_persistent_subscription_context_set_aeron rusteron_unused_persistent_subscription_context_set_aeron
#define aeron_archive_persistent_subscription_context_set_aeron_directory_name rusteron_unused_persistent_subscription_context_set_aeron_directory_name
#define aeron_archive_persistent_subscription_context_set_archive_context rusteron_unused_persistent_subscription_context_set_archive_context
#define aeron_archive_persistent_subscription_context_set_join_difference_counter rusteron_unused_persistent_subscription_context_set_join_difference_counter
#define aeron_archive_persistent_subscription_context_set_listener rusteron_unused_persistent_subscription_context_set_listener
#define aeron_archive_persistent_subscription_context_set_live_channel rusteron_unused_persistent_subscription_context_set_live_channel
#define aeron_archive_persistent_subscription_context_set_live_joined_counter rusteron_unused_persistent_subscription_context_set_live_joined_counter
#define aeron_archive_persistent_subscription_context_set_live_left_counter rusteron_unused_persistent_subscription_context_set_live_left_counter
#define aeron_archive_persistent_subscription_context_set_live_stream_id rusteron_unused_persistent_subscription_context_set_live_stream_id
#define aeron_archive_persistent_subscription_context_set_recording_id rusteron_unused_persistent_subscription_context_set_recording_id
#define aeron_archive_persistent_subscription_context_set_replay_channel rusteron_unused_persistent_subscription_context_set_replay_channel
#define aeron_archive_persistent_subscription_context_set_replay_stream_id rusteron_unused_persistent_subscription_context_set_replay_stream_id
#define aeron_archive_persistent_subscription_context_set_start_position rusteron_unused_persistent_subscription_context_set_start_position
#define aeron_archive_persistent_subscription_context_set_state_counter rusteron_unused_persistent_subscription_context_set_state_counter
#define aeron_archive_persistent_subscription_controlled_poll rusteron_persistent_subscription_controlled_poll
#define aeron_archive_persistent_subscription_create rusteron_persistent_subscription_create
#define aeron_archive_persistent_subscription_failure_reason rusteron_unused_persistent_subscription_failure_reason
#define aeron_archive_persistent_subscription_get_and_own_persistent_subscription_context rusteron_unused_persistent_subscription_get_and_own_persistent_subscription_context
#define aeron_archive_persistent_subscription_get_persistent_subscription_context rusteron_unused_persistent_subscription_get_persistent_subscription_context
#define aeron_archive_persistent_subscription_has_failed rusteron_unused_persistent_subscription_has_failed
#define aeron_archive_persistent_subscription_is_live rusteron_unused_persistent_subscription_is_live
#define aeron_archive_persistent_subscription_is_replaying rusteron_unused_persistent_subscription_is_replaying
#define aeron_archive_persistent_subscription_join_difference rusteron_unused_persistent_subscription_join_difference
#define aeron_archive_persistent_subscription_poll rusteron_unused_persistent_subscription_poll
#define aeron_archive_persistent_subscription_set_message_timeout_ns_for_testing rusteron_unused_persistent_subscription_set_message_timeout_ns_for_testing

#include "client/aeron_archive_persistent_subscription.h"
#include "client/aeron_archive_async_client.h"
#include "aeron_subscription.h"
#include "rusteron_archive.h"

/*
 * The reference can be released only before the subscription is closed. Until then the image exists for certain:
 * the conductor frees an image only without references, and this reference counts. Afterwards the image may be
 * gone. For an image that has not gone yet, closing counts down twice, once for the list and once for the lingering
 * (aeron_client_conductor.c:1589, 1628). So this reference no longer keeps the image.
 *
 * The count is atomic, and the image is not accessed here again: its pointer is forgotten at once.
 */
static void rusteron_release_image(aeron_image_t **image)
{
    if (NULL != *image)
    {
        aeron_image_release(*image);
        *image = NULL;
    }
}

static int rusteron_close_with_image(
    aeron_archive_persistent_subscription_t *persistent_subscription, aeron_subscription_t *subscription)
{
    const bool is_live = subscription == persistent_subscription->live_subscription;
    rusteron_release_image(is_live ? &persistent_subscription->live_image : &persistent_subscription->replay_image);
    return aeron_subscription_close(subscription, NULL, NULL);
}

/* C closes each of its two subscriptions in one place, where the variable `persistent_subscription` is in scope. */
#define aeron_subscription_close(subscription, on_close_complete, clientd) \
    rusteron_close_with_image(persistent_subscription, subscription)

/*
 * C gets images by index only from the live subscription while that has no image yet. C does not always remember
 * the result before it closes the subscription (2203, 2221).
 */
#define aeron_subscription_image_at_index(subscription, index) \
    (persistent_subscription->live_image = aeron_subscription_image_at_index(subscription, index))

/* C adds the failure of a poll to its work count, and reports it nowhere (2281). */
static int rusteron_async_client_poll(aeron_archive_persistent_subscription_t *persistent_subscription)
{
    const int work_count = aeron_archive_async_client_poll(persistent_subscription->archive);
    if (work_count < 0)
    {
        if (NULL != persistent_subscription->listener.on_error)
        {
            persistent_subscription->listener.on_error(
                persistent_subscription->listener.clientd, aeron_errcode(), aeron_errmsg());
        }
        return 1;
    }
    return work_count;
}

#define aeron_archive_async_client_poll(client) rusteron_async_client_poll(persistent_subscription)

/* As in build/guards.rs, declared here because the headers have been included by now. */
int rusteron_image_poll(
    aeron_image_t *image, aeron_fragment_handler_t handler, void *clientd, size_t fragment_limit);
int rusteron_image_controlled_poll(
    aeron_image_t *image, aeron_controlled_fragment_handler_t handler, void *clientd, size_t fragment_limit);
#define aeron_image_poll rusteron_image_poll
#define aeron_image_controlled_poll rusteron_image_controlled_poll

#include "client/aeron_archive_persistent_subscription.c"

void rusteron_persistent_subscription_fail(
    aeron_archive_persistent_subscription_t *persistent_subscription, int code, const char *message)
{
    aeron_archive_persistent_subscription_transition(persistent_subscription, FAILED);
    aeron_archive_persistent_subscription_on_terminal_error(persistent_subscription, code, message);
}
