#include "rusteron_shim.h"

#if defined(_MSC_VER)

void *rusteron_call_to_the_end(rusteron_function_t function, void *first, void *second)
{
    return function(first, second);
}

#else

#include <pthread.h>
#include <unistd.h>

static void rusteron_sleep_for_ever(void *unused)
{
    (void)unused;
    while (true)
    {
        pause();
    }
}

void *rusteron_call_to_the_end(rusteron_function_t function, void *first, void *second)
{
    void *returned;
    pthread_cleanup_push(rusteron_sleep_for_ever, NULL);
    returned = function(first, second);
    pthread_cleanup_pop(0);
    return returned;
}

#endif
