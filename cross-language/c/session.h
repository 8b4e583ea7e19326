/*
 * A session with a server: messages to the server, and messages from it, over Aeron's C client. CONTRACT.md defines the
 * messages. For one thread. The caller in Go uses these functions, too.
 */
#ifndef CROSS_LANGUAGE_SESSION_H
#define CROSS_LANGUAGE_SESSION_H

#include <stddef.h>
#include <stdint.h>

#define REQUEST_CHANNEL "aeron:ipc?term-length=4m|mtu=8k"
#define RESPONSE_CHANNEL "aeron:ipc?control-mode=response|term-length=4m|mtu=8k"

typedef struct session_stct session_t;

/* The reason why a function failed. After the first four, close the session and connect anew. */
typedef enum session_result_en
{
    SESSION_OK = 0,
    SESSION_NOT_CONNECTED,
    SESSION_BACK_PRESSURED,
    SESSION_TIMED_OUT,
    SESSION_CLOSED,
    SESSION_INVALID_REQUEST,
    SESSION_MALFORMED_RESPONSE,
    /* Aeron's client has failed. session_error() has its text. */
    SESSION_AERON
}
session_result_t;

typedef struct session_options_stct
{
    /* NULL stands for Aeron's default. */
    const char *aeron_dir;
    const char *request_channel;
    const char *response_channel;
    /* spin, yield, sleep-ns, backoff or noop */
    const char *idle;
    /* The longest time that session_connect() waits for a server. */
    int64_t timeout_ns;
}
session_options_t;

/* The name of the contract. */
const char *session_result_name(session_result_t result);

/* The text of the last failure of Aeron's client on this thread. */
const char *session_error(void);

/* A monotonic clock, for deadlines. */
int64_t session_now_ns(void);

/* Connects to a server. On success, close the session with session_close(). */
session_result_t session_connect(session_t **session, const session_options_t *options);

/* Sends a message, which Aeron copies. Waits under back pressure. */
session_result_t session_send(session_t *session, const uint8_t *message, size_t length, int64_t deadline_ns);

/* Waits for a message, which lasts until the next call. */
session_result_t session_receive(session_t *session, const uint8_t **message, size_t *length, int64_t deadline_ns);

void session_close(session_t *session);

#endif
