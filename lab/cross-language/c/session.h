/*
 * A session with the service: messages to it, and messages from it. CONTRACT.md defines the messages. session.c reaches a
 * server over Aeron's C client. The library of in_process.rs has the service itself, in the caller's process. Both serve
 * C, and other languages with an interface for C. A session is for one thread at a time.
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

#define SESSION_RESULT_NAMES \
    { "OK", "NOT_CONNECTED", "BACK_PRESSURED", "TIMED_OUT", "CLOSED", "INVALID_REQUEST", "MALFORMED_RESPONSE", "AERON" }

typedef struct session_options_stct
{
    /* NULL stands for Aeron's default. */
    const char *aeron_dir;
    const char *request_channel;
    const char *response_channel;
    /* spin, yield or backoff */
    const char *idle;
    /* The longest time that session_connect() waits for a server. */
    int64_t timeout_ns;
}
session_options_t;

/* Connects to a server. On success, close the session with session_close(). */
session_result_t session_connect(session_t **session, const session_options_t *options);

/* Sends a message, which is copied. Waits under back pressure. Deadlines are times of CLOCK_MONOTONIC. */
session_result_t session_send(session_t *session, const uint8_t *message, size_t length, int64_t deadline_ns);

/* Waits for a message, which lasts until the next call. */
session_result_t session_receive(session_t *session, const uint8_t **message, size_t *length, int64_t deadline_ns);

void session_close(session_t *session);

/* The text of the last failure of Aeron's client on this thread. */
const char *session_error(void);

#endif
