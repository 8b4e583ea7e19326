#define _POSIX_C_SOURCE 200809L

#include "session.h"

#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "aeron_client_error.h"
#include "aeronc.h"

#define REQUEST_STREAM 3001
#define RESPONSE_STREAM 3002
#define CHANNEL_LENGTH 4096

typedef enum idle_en
{
    IDLE_SPIN,
    IDLE_YIELD,
    IDLE_BACKOFF
}
idle_t;

static const char *const IDLE_NAMES[] = { "spin", "yield", "backoff" };

struct session_stct
{
    aeron_context_t *context;
    aeron_t *aeron;
    aeron_subscription_t *responses;
    aeron_exclusive_publication_t *requests;
    aeron_fragment_assembler_t *assembler;
    size_t max_message_length;
    idle_t idle;
    /* How often in a row there was nothing to do. */
    unsigned idle_count;
    /* Whether the server has opened its response channel. */
    bool is_answered;

    uint8_t *message;
    size_t message_length;
    size_t message_capacity;
    bool has_message;
    bool is_out_of_memory;
};

const char *session_error(void)
{
    return aeron_errmsg();
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_ns(long nanoseconds)
{
    const struct timespec duration = { .tv_sec = 0, .tv_nsec = nanoseconds };
    nanosleep(&duration, NULL);
}

static void idle(session_t *session)
{
    const unsigned count = session->idle_count++;
    switch (session->idle)
    {
        case IDLE_YIELD:
            sched_yield();
            break;

        case IDLE_BACKOFF:
            /* Spins, then yields, then sleeps from 1 microsecond to 1 millisecond. */
            if (count >= 30)
            {
                sleep_ns(count < 40 ? 1000L << (count - 30) : 1000000L);
            }
            else if (count >= 10)
            {
                sched_yield();
            }
            break;

        case IDLE_SPIN:
            break;
    }
}

static void on_message(void *clientd, const uint8_t *buffer, size_t length, aeron_header_t *header)
{
    session_t *session = clientd;
    (void)header;
    if (length > session->message_capacity)
    {
        uint8_t *message = realloc(session->message, length);
        if (NULL == message)
        {
            session->is_out_of_memory = true;
            return;
        }
        session->message = message;
        session->message_capacity = length;
    }
    if (length > 0)
    {
        memcpy(session->message, buffer, length);
    }
    session->message_length = length;
    session->has_message = true;
}

/*
 * Returns true if the last error says that the driver still closes a socket of the address, and there is time to try
 * again. The last caller over UDP may have used the same address.
 */
static bool is_address_closing(int64_t deadline_ns)
{
    if (-AERON_ERROR_CODE_RESOURCE_TEMPORARILY_UNAVAILABLE != aeron_errcode() || now_ns() >= deadline_ns)
    {
        return false;
    }
    sleep_ns(1000000);
    return true;
}

static session_result_t add_streams(session_t *session, const session_options_t *options, int64_t deadline_ns)
{
    aeron_async_add_subscription_t *add_subscription = NULL;
    while (NULL == session->responses)
    {
        int result = NULL != add_subscription ?
            aeron_async_add_subscription_poll(&session->responses, add_subscription) :
            aeron_async_add_subscription(
                &add_subscription, session->aeron, options->response_channel, RESPONSE_STREAM, NULL, NULL, NULL, NULL);
        if (result < 0)
        {
            if (!is_address_closing(deadline_ns))
            {
                return SESSION_AERON;
            }
            add_subscription = NULL;
        }
        idle(session);
    }

    aeron_subscription_constants_t subscription;
    char channel[CHANNEL_LENGTH];
    if (aeron_subscription_constants(session->responses, &subscription) < 0)
    {
        return SESSION_AERON;
    }
    const int length = snprintf(
        channel,
        sizeof(channel),
        "%s%cresponse-correlation-id=%" PRId64,
        options->request_channel,
        NULL == strchr(options->request_channel, '?') ? '?' : '|',
        subscription.registration_id);
    if (length < 0 || (size_t)length >= sizeof(channel))
    {
        return SESSION_INVALID_REQUEST;
    }

    aeron_async_add_exclusive_publication_t *add_publication = NULL;
    while (NULL == session->requests)
    {
        int result = NULL != add_publication ?
            aeron_async_add_exclusive_publication_poll(&session->requests, add_publication) :
            aeron_async_add_exclusive_publication(&add_publication, session->aeron, channel, REQUEST_STREAM);
        if (result < 0)
        {
            if (!is_address_closing(deadline_ns))
            {
                return SESSION_AERON;
            }
            add_publication = NULL;
        }
        idle(session);
    }
    aeron_publication_constants_t publication;
    if (aeron_exclusive_publication_constants(session->requests, &publication) < 0)
    {
        return SESSION_AERON;
    }
    session->max_message_length = publication.max_message_length;

    while (!aeron_exclusive_publication_is_connected(session->requests))
    {
        if (now_ns() >= deadline_ns)
        {
            return SESSION_NOT_CONNECTED;
        }
        idle(session);
    }
    return SESSION_OK;
}

session_result_t session_connect(session_t **result, const session_options_t *options)
{
    session_t *session = calloc(1, sizeof(session_t));
    if (NULL == session)
    {
        return SESSION_AERON;
    }
    while (session->idle <= IDLE_BACKOFF && 0 != strcmp(options->idle, IDLE_NAMES[session->idle]))
    {
        session->idle++;
    }
    if (session->idle > IDLE_BACKOFF)
    {
        free(session);
        return SESSION_INVALID_REQUEST;
    }
    session_result_t status = SESSION_AERON;
    if (aeron_context_init(&session->context) == 0 &&
        (NULL == options->aeron_dir || aeron_context_set_dir(session->context, options->aeron_dir) == 0) &&
        aeron_init(&session->aeron, session->context) == 0 &&
        aeron_start(session->aeron) == 0 &&
        aeron_fragment_assembler_create(&session->assembler, on_message, session) == 0)
    {
        status = add_streams(session, options, now_ns() + options->timeout_ns);
    }
    if (SESSION_OK != status)
    {
        session_close(session);
        return status;
    }
    session->idle_count = 0;
    *result = session;
    return SESSION_OK;
}

session_result_t session_send(session_t *session, const uint8_t *message, size_t length, int64_t deadline_ns)
{
    if (length > session->max_message_length)
    {
        return SESSION_INVALID_REQUEST;
    }
    int64_t position;
    while ((position = aeron_exclusive_publication_offer(session->requests, message, length, NULL, NULL)) < 0)
    {
        switch (position)
        {
            case AERON_PUBLICATION_NOT_CONNECTED:
                return SESSION_NOT_CONNECTED;

            case AERON_PUBLICATION_BACK_PRESSURED:
            case AERON_PUBLICATION_ADMIN_ACTION:
                break;

            case AERON_PUBLICATION_ERROR:
                return SESSION_AERON;

            default:
                return SESSION_CLOSED;
        }
        if (now_ns() >= deadline_ns)
        {
            return SESSION_BACK_PRESSURED;
        }
        idle(session);
    }
    session->idle_count = 0;
    return SESSION_OK;
}

session_result_t session_receive(session_t *session, const uint8_t **message, size_t *length, int64_t deadline_ns)
{
    session->has_message = false;
    while (true)
    {
        const int fragments = aeron_subscription_poll(
            session->responses, aeron_fragment_assembler_handler, session->assembler, 1);
        if (session->has_message)
        {
            *message = session->message;
            *length = session->message_length;
            session->idle_count = 0;
            return SESSION_OK;
        }
        if (fragments < 0 || session->is_out_of_memory)
        {
            return SESSION_AERON;
        }
        if (fragments > 0)
        {
            continue;
        }
        if (aeron_is_closed(session->aeron))
        {
            return SESSION_CLOSED;
        }
        const bool has_responses = aeron_subscription_is_connected(session->responses);
        session->is_answered = session->is_answered || has_responses;
        if (!aeron_exclusive_publication_is_connected(session->requests) || (session->is_answered && !has_responses))
        {
            return SESSION_NOT_CONNECTED;
        }
        if (now_ns() >= deadline_ns)
        {
            return SESSION_TIMED_OUT;
        }
        idle(session);
    }
}

void session_close(session_t *session)
{
    /* Closing the client closes its publications and subscriptions. */
    if (NULL != session->aeron)
    {
        aeron_close(session->aeron);
    }
    if (NULL != session->context)
    {
        aeron_context_close(session->context);
    }
    if (NULL != session->assembler)
    {
        aeron_fragment_assembler_delete(session->assembler);
    }
    free(session->message);
    free(session);
}
