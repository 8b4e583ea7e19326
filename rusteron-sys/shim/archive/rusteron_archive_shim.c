/*
 * C defines the structure of a replay merge only in the file of its functions, so that file is compiled as a part of
 * this one.
 */
#define aeron_image_poll rusteron_image_poll
#define aeron_subscription_resolved_endpoint rusteron_subscription_resolved_endpoint
/* A merge compares times to notice that it makes no progress, and nobody else sees them. */
#define aeron_epoch_clock rusteron_steady_clock_ms
#include "client/aeron_archive_replay_merge.c"

#include "aeron_client.h"
#include "aeron_context.h"
#include "client/aeron_archive_recording_signal.h"
#include "rusteron_archive.h"

/*
 * As aeron_archive_replay_merge_handle_async_destination(), but forgets the replay destination if the driver has
 * refused it. Otherwise C would later ask the driver to remove the destination. The driver refuses that as well,
 * and a close never ends.
 */
static int rusteron_replay_merge_handle_destination(aeron_archive_replay_merge_t *replay_merge)
{
    /*
     * The first command of a merge adds the replay destination. The second adds the live destination, and the third
     * removes the replay destination. The removal by a failed close is no longer pending
     * (aeron_archive_replay_merge.c:758).
     */
    const bool is_replay_destination_pending =
        NULL != replay_merge->async_destination && !replay_merge->is_live_added;
    const int result = aeron_archive_replay_merge_handle_async_destination(replay_merge);
    if (result < 0 && is_replay_destination_pending)
    {
        aeron_free(replay_merge->replay_destination);
        replay_merge->replay_destination = NULL;
    }
    return result;
}

aeron_archive_proxy_t *rusteron_archive_proxy(aeron_archive_t *archive, int retry_attempts)
{
    aeron_archive_proxy_t *proxy = aeron_archive_proxy(archive);
    proxy->retry_attempts = retry_attempts;
    return proxy;
}

int rusteron_replay_merge_do_work(int *work_count_p, aeron_archive_replay_merge_t *replay_merge)
{
    if (rusteron_replay_merge_handle_destination(replay_merge) < 0)
    {
        AERON_APPEND_ERR("%s", "");
        aeron_archive_replay_merge_set_state(replay_merge, FAILED);
        return -1;
    }
    aeron_archive_control_response_poller_t *poller =
        aeron_archive_control_response_poller(replay_merge->aeron_archive);
    /*
     * The signal is of an earlier poll. A second poll in one call follows an answer, so there is one signal at
     * most.
     */
    poller->is_recording_signal = false;
    /*
     * C polls the pending command once more. It would forget a refusal that comes between both polls, and keep the
     * refused destination. C therefore does not see the command of the replay destination. Only a merge that
     * attempts the live join looks at it, and by then the destination has an image.
     */
    aeron_async_destination_t *pending = NULL;
    if (!replay_merge->is_live_added && ATTEMPT_LIVE_JOIN != replay_merge->state)
    {
        pending = replay_merge->async_destination;
        replay_merge->async_destination = NULL;
    }
    const int result = aeron_archive_replay_merge_do_work(work_count_p, replay_merge);
    if (NULL != pending)
    {
        replay_merge->async_destination = pending;
    }
    if (poller->is_recording_signal && poller->control_session_id == replay_merge->control_session_id)
    {
        aeron_archive_recording_signal_t signal =
        {
            .control_session_id = poller->control_session_id,
            .recording_id = poller->recording_id,
            .subscription_id = poller->subscription_id,
            .position = poller->position,
            .recording_signal_code = poller->recording_signal_code
        };
        aeron_archive_recording_signal_dispatch_signal(
            aeron_archive_get_archive_context(replay_merge->aeron_archive), &signal);
    }
    return result;
}

_Static_assert(
    0 == RESOLVE_REPLAY_PORT && 1 == GET_RECORDING_POSITION && 2 == REPLAY && 3 == CATCHUP && 4 == ATTEMPT_LIVE_JOIN &&
        5 == MERGED && 6 == FAILED,
    "rusteron-archive/src/replay_merge/state.rs has these numbers");

int rusteron_replay_merge_state(aeron_archive_replay_merge_t *replay_merge)
{
    return (int)replay_merge->state;
}

void rusteron_replay_merge_fail(aeron_archive_replay_merge_t *replay_merge)
{
    aeron_archive_replay_merge_set_state(replay_merge, FAILED);
}

typedef struct rusteron_closing_stct
{
    aeron_archive_replay_merge_t *replay_merge;
    aeron_idle_strategy_func_t idle_strategy_func;
    void *idle_strategy_state;
}
rusteron_closing_t;

static void rusteron_closing_idle(void *state, int work_count)
{
    rusteron_closing_t *closing = (rusteron_closing_t *)state;
    closing->idle_strategy_func(closing->idle_strategy_state, work_count);
    if (aeron_is_closed(closing->replay_merge->aeron))
    {
        /* The client frees it when the client is closed. */
        closing->replay_merge->async_destination = NULL;
    }
}

/*
 * Waits until the driver has answered the pending command, or the client is closed. A refusal does not prevent the
 * close: a destination that cannot be added or removed does not exist.
 */
static void rusteron_replay_merge_await_destination(aeron_archive_replay_merge_t *replay_merge)
{
    aeron_archive_context_t *context = aeron_archive_get_archive_context(replay_merge->aeron_archive);
    while (NULL != replay_merge->async_destination && !aeron_is_closed(replay_merge->aeron))
    {
        if (rusteron_replay_merge_handle_destination(replay_merge) < 0)
        {
            aeron_err_clear();
        }
        else if (NULL != replay_merge->async_destination)
        {
            if (aeron_archive_context_invoke_aeron_client(context) < 0)
            {
                /* An error that ends the client ends the loop. */
                aeron_err_clear();
            }
            context->idle_strategy_func(context->idle_strategy_state, 0);
        }
    }
}

/*
 * As C's close, which gives up at the first refusal, and then tries to remove the same destination in each call.
 * Fails only if the removal cannot be sent.
 */
static int rusteron_replay_merge_close_destinations(
    aeron_archive_replay_merge_t *replay_merge, bool is_subscription_kept)
{
    rusteron_replay_merge_await_destination(replay_merge);
    if (is_subscription_kept &&
        MERGED != replay_merge->state &&
        NULL != replay_merge->replay_destination &&
        !aeron_is_closed(replay_merge->aeron))
    {
        if (aeron_subscription_async_remove_destination(
            &replay_merge->async_destination,
            replay_merge->aeron,
            replay_merge->subscription,
            replay_merge->replay_destination) < 0)
        {
            AERON_APPEND_ERR("%s", "");
            return -1;
        }
        rusteron_replay_merge_await_destination(replay_merge);
    }
    /* In this state, C's close does not remove destinations. It then only stops the replay and frees. */
    replay_merge->state = MERGED;
    return aeron_archive_replay_merge_close(replay_merge);
}

int rusteron_replay_merge_close(aeron_archive_replay_merge_t *replay_merge, bool is_subscription_kept)
{
    aeron_archive_context_t *context = aeron_archive_get_archive_context(replay_merge->aeron_archive);
    rusteron_closing_t closing =
    {
        .replay_merge = replay_merge,
        .idle_strategy_func = context->idle_strategy_func,
        .idle_strategy_state = context->idle_strategy_state
    };
    context->idle_strategy_func = rusteron_closing_idle;
    context->idle_strategy_state = &closing;
    aeron_image_t *image = replay_merge->image;
    const int result = rusteron_replay_merge_close_destinations(replay_merge, is_subscription_kept);
    context->idle_strategy_func = closing.idle_strategy_func;
    context->idle_strategy_state = closing.idle_strategy_state;
    if (0 == result && NULL != image)
    {
        /*
         * C took a reference of the image, once (aeron_archive_replay_merge.c:616), and C's close forgets the
         * reference. The image would then stay mapped until the client closes.
         *
         * The reference has to be released here, before the caller closes the subscription. Until then the
         * conductor frees no image with a reference. Closing the subscription counts down twice for an image that
         * has not gone yet (aeron_client_conductor.c:1589, 1628), so that a release afterwards would be too late.
         * The count is atomic, and the pointer is not used again.
         */
        aeron_image_release(image);
    }
    return result;
}

typedef struct rusteron_closed_client_stct
{
    /* First, so that its address frees the whole. */
    aeron_t client;
    aeron_context_t context;
}
rusteron_closed_client_t;

static int rusteron_closed_client_do_work(void *conductor)
{
    return aeron_client_conductor_do_work((aeron_client_conductor_t *)conductor);
}

int rusteron_closed_client_create(aeron_t **closed_client, aeron_t *client)
{
    rusteron_closed_client_t *closed = NULL;
    if (aeron_alloc((void **)&closed, sizeof(rusteron_closed_client_t)) < 0)
    {
        AERON_APPEND_ERR("%s", "");
        return -1;
    }
    /* Of a closed conductor, C reads only the reason. */
    closed->client.conductor.is_closed = true;
    closed->client.conductor.fatal_error_code = client->conductor.fatal_error_code;
    closed->client.runner.do_work = rusteron_closed_client_do_work;
    closed->client.runner.agent_state = &closed->client.conductor;
    closed->client.context = &closed->context;
    closed->context.use_conductor_agent_invoker = true;
    *closed_client = &closed->client;
    return 0;
}
