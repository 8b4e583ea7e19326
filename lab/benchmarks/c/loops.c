/*
 * The loops of a C program: offer, poll and nothing else, with the C compiler free to optimise
 * around the calls. Rust starts the threads, owns the handles, and idles, as it does for the loops
 * in Rust.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aeronc.h"
#include "concurrent/aeron_atomic.h"

/* Idles with the strategy behind `clientd`; a work count other than 0 starts it over. */
typedef void (*rusteron_idle_t)(void *clientd, size_t work_count);

typedef struct rusteron_message_stct
{
    const uint8_t *buffer;
    size_t length;
    /* How many are offered between two looks at whether to go on. */
    size_t burst_length;
}
rusteron_message_t;

/* Returns whether waiting helps a refused offer. */
static bool is_retryable(int64_t result)
{
    return AERON_PUBLICATION_BACK_PRESSURED == result || AERON_PUBLICATION_ADMIN_ACTION == result ||
        AERON_PUBLICATION_NOT_CONNECTED == result;
}

/* Publishes until told to stop. Returns 0, or the result of an offer that cannot succeed later. */
int64_t rusteron_publish(
    aeron_exclusive_publication_t *publication,
    const rusteron_message_t *message,
    const volatile bool *running,
    rusteron_idle_t idle,
    void *idle_clientd,
    uint64_t *accepted)
{
    const uint8_t *buffer = message->buffer;
    const size_t length = message->length;
    uint64_t messages = 0;
    int64_t result = 0;

    while (*running)
    {
        for (size_t i = 0; i < message->burst_length; i++)
        {
            bool is_first = true;
            while ((result = aeron_exclusive_publication_offer(publication, buffer, length, NULL, NULL)) < 0)
            {
                if (!is_retryable(result))
                {
                    goto end;
                }
                if (!*running)
                {
                    result = 0;
                    goto end;
                }
                if (is_first)
                {
                    idle(idle_clientd, 1);
                    is_first = false;
                }
                idle(idle_clientd, 0);
            }
            messages++;
        }
    }
    result = 0;
end:
    *accepted = messages;
    return result;
}

static void count_bytes(void *clientd, const uint8_t *buffer, size_t length, aeron_header_t *header)
{
    (void)buffer;
    (void)header;
    *(uint64_t *)clientd += length;
}

/* Receives until told to stop. Returns 0, or -1 if the poll fails. */
int rusteron_receive(
    aeron_subscription_t *subscription,
    size_t fragment_limit,
    const volatile bool *running,
    volatile uint64_t *received_bytes,
    rusteron_idle_t idle,
    void *idle_clientd,
    uint64_t *received)
{
    uint64_t bytes = 0;
    bool has_idled = false;
    int result = 0;

    while (*running)
    {
        int fragments = aeron_subscription_poll(subscription, count_bytes, &bytes, fragment_limit);
        if (fragments < 0)
        {
            result = -1;
            break;
        }
        if (fragments > 0)
        {
            AERON_SET_RELEASE(*received_bytes, bytes);
            if (has_idled)
            {
                idle(idle_clientd, 1);
                has_idled = false;
            }
        }
        else
        {
            idle(idle_clientd, 0);
            has_idled = true;
        }
    }

    *received = bytes;
    return result;
}
