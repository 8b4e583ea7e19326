/*
 * The cross-language service in this process: the Rust code of the server, without messages and channels. CONTRACT.md
 * defines operations, encodings, bodies and statuses.
 *
 * The library owns sessions and results. The caller owns arguments and the callback's context. No function keeps a pointer
 * to an argument. The functions run on the calling thread and wait for nothing but the callback.
 */
#ifndef CROSS_LANGUAGE_H
#define CROSS_LANGUAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A pointer that must not be NULL is NULL. Nothing was called. */
#define CROSS_LANGUAGE_NULL_POINTER (-1)
/* A call of the session is under way: in another thread, or this is its callback. Nothing was called. */
#define CROSS_LANGUAGE_IN_USE (-2)

/* The objects of one caller. Threads can pass a session on. One call at a time uses it. */
typedef struct cross_language_session_stct cross_language_session_t;

/*
 * Answers a callback of the operation CALLBACK: writes an answer and returns 0, or returns another value to fail. Runs in
 * the thread of the call. Must return: no exception, no longjmp().
 */
typedef int32_t (*cross_language_callback_t)(void *context, int64_t argument, int64_t *answer);

/*
 * Creates a session. Free it with cross_language_session_free(). Without a callback (NULL), callbacks fail. `context` is
 * passed to the callback, and must live until the session is freed. It may be NULL.
 */
cross_language_session_t *cross_language_session_new(cross_language_callback_t callback, void *context);

/*
 * Frees a session and its last result. Returns 0, or CROSS_LANGUAGE_IN_USE in the session's own callback. Does nothing for
 * NULL. No other thread may use the session during this call or later.
 */
int32_t cross_language_session_free(cross_language_session_t *session);

/*
 * Calls an operation. Returns a status of the contract, 0 to 10, or one of the negative numbers above.
 *
 * The argument is a body in the encoding; it may be NULL if `argument_length` is 0. Unless the status is negative, `result`
 * is the result, or the text of the error, in the same encoding (in binary for UNKNOWN_ENCODING). The session owns the
 * result, until the next call or until the session is freed.
 */
int32_t cross_language_call(
    cross_language_session_t *session,
    uint8_t operation,
    uint8_t encoding,
    const uint8_t *argument,
    size_t argument_length,
    const uint8_t **result,
    size_t *result_length);

#ifdef __cplusplus
}
#endif

#endif
