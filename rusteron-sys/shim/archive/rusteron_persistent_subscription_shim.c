/*
 * C takes a reference of each image that a persistent subscription works with, and never releases it
 * (aeron_archive_persistent_subscription.c:1884, 1963, 2196; 756 and 776 forget the image). An image that goes
 * before its subscription then stays mapped until the client closes. The file is compiled as a part of this one, with
 * releases of the references.
 */
#define aeron_image_poll rusteron_image_poll
#define aeron_image_controlled_poll rusteron_image_controlled_poll

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

#include "client/aeron_archive_persistent_subscription.c"

void rusteron_persistent_subscription_fail(
    aeron_archive_persistent_subscription_t *persistent_subscription, int code, const char *message)
{
    aeron_archive_persistent_subscription_transition(persistent_subscription, FAILED);
    aeron_archive_persistent_subscription_on_terminal_error(persistent_subscription, code, message);
}
