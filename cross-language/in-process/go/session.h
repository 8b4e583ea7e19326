/* Sessions whose context is a handle of Go. */
#ifndef CROSS_LANGUAGE_GO_SESSION_H
#define CROSS_LANGUAGE_GO_SESSION_H

#include "../cross_language.h"

/* A function in Go. */
extern int32_t answerCallback(uintptr_t context, int64_t argument, int64_t *answer);

static int32_t answer(void *context, int64_t argument, int64_t *result)
{
    return answerCallback((uintptr_t)context, argument, result);
}

/* A handle is an integer, which is no pointer in Go. */
static cross_language_session_t *new_session(uintptr_t handle)
{
    return cross_language_session_new(answer, (void *)handle);
}

#endif
