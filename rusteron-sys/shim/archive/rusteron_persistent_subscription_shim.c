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

/*
 * C sends a request again if no answer has come in time, and reports that nowhere (662, 1317, 1407, 1765). The id is
 * forgotten so that one missing answer is reported once, however often the request is tried.
 */
static void rusteron_report_missing_answer(
    aeron_archive_persistent_subscription_t *persistent_subscription,
    aeron_archive_persistent_subscription_async_archive_op_t *op)
{
    if (0 == op->correlation_id || op->response_received || aeron_nano_clock() - op->deadline_ns < 0)
    {
        return;
    }
    op->correlation_id = 0;
    if (NULL != persistent_subscription->listener.on_error)
    {
        persistent_subscription->listener.on_error(
            persistent_subscription->listener.clientd,
            ETIMEDOUT,
            "The archive has not answered a request within the message timeout, and is asked again.");
    }
}

#define aeron_archive_async_client_try_send_list_recording_request(...) \
    (rusteron_report_missing_answer(persistent_subscription, &persistent_subscription->list_recording_request.op), \
    aeron_archive_async_client_try_send_list_recording_request(__VA_ARGS__))
#define aeron_archive_async_client_try_send_replay_request(...) \
    (rusteron_report_missing_answer(persistent_subscription, &persistent_subscription->replay_request), \
    aeron_archive_async_client_try_send_replay_request(__VA_ARGS__))
#define aeron_archive_async_client_try_send_replay_token_request(...) \
    (rusteron_report_missing_answer(persistent_subscription, &persistent_subscription->replay_token_request), \
    aeron_archive_async_client_try_send_replay_token_request(__VA_ARGS__))
#define aeron_archive_async_client_try_send_max_recorded_position_request(...) \
    (rusteron_report_missing_answer(persistent_subscription, &persistent_subscription->max_recorded_position.op), \
    aeron_archive_async_client_try_send_max_recorded_position_request(__VA_ARGS__))

/* C passes the listener of its session in one place, which replaces the function for answers (1003). */
static int rusteron_async_client_create(
    aeron_archive_async_client_t **client,
    aeron_archive_context_t *context,
    aeron_archive_async_client_listener_t *listener);
#define aeron_archive_async_client_create(client, context, listener) \
    rusteron_async_client_create(client, context, listener)

#include "client/aeron_archive_persistent_subscription.c"

#undef aeron_archive_async_client_create

static bool rusteron_is_awaited(
    const aeron_archive_persistent_subscription_async_archive_op_t *op, int64_t correlation_id)
{
    return correlation_id == op->correlation_id && !op->response_received;
}

/*
 * An archive reports the failure of a running replay as a second answer to its request. C stores it where it never
 * looks again, or drops it if the next request has been sent (831-861).
 */
static void rusteron_on_control_response(
    void *clientd, int64_t correlation_id, int64_t relevant_id, int32_t code, const char *error_message)
{
    aeron_archive_persistent_subscription_t *persistent_subscription = clientd;
    if (aeron_archive_client_controlResponseCode_ERROR != code ||
        rusteron_is_awaited(&persistent_subscription->max_recorded_position.op, correlation_id) ||
        rusteron_is_awaited(&persistent_subscription->list_recording_request.op, correlation_id) ||
        rusteron_is_awaited(&persistent_subscription->replay_request, correlation_id) ||
        rusteron_is_awaited(&persistent_subscription->replay_token_request, correlation_id))
    {
        aeron_archive_persistent_subscription_on_archive_control_response(
            clientd, correlation_id, relevant_id, code, error_message);
    }
    else if (NULL != persistent_subscription->listener.on_error)
    {
        char message[AERON_ERROR_MAX_TOTAL_LENGTH];
        snprintf(message, sizeof(message), "The archive reports: %s", error_message);
        persistent_subscription->listener.on_error(
            persistent_subscription->listener.clientd, (int)relevant_id, message);
    }
}

static int rusteron_async_client_create(
    aeron_archive_async_client_t **client,
    aeron_archive_context_t *context,
    aeron_archive_async_client_listener_t *listener)
{
    listener->on_control_response = rusteron_on_control_response;
    return aeron_archive_async_client_create(client, context, listener);
}

int64_t rusteron_persistent_subscription_position(
    const aeron_archive_persistent_subscription_t *persistent_subscription)
{
    return persistent_subscription->position;
}

bool rusteron_persistent_subscription_has_session(
    const aeron_archive_persistent_subscription_t *persistent_subscription)
{
    return AWAIT_ARCHIVE_CONNECTION != persistent_subscription->state && FAILED != persistent_subscription->state;
}

void rusteron_persistent_subscription_fail(
    aeron_archive_persistent_subscription_t *persistent_subscription, int code, const char *message)
{
    aeron_archive_persistent_subscription_transition(persistent_subscription, FAILED);
    aeron_archive_persistent_subscription_on_terminal_error(persistent_subscription, code, message);
}
