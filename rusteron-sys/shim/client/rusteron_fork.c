#if defined(__linux__)
#define _BSD_SOURCE
#define _GNU_SOURCE
#endif

#include "rusteron_shim.h"

#if defined(_MSC_VER)

uint64_t rusteron_fork_count(void)
{
    return 0;
}

void rusteron_fork_guard_add(rusteron_fork_guard_t *guard)
{
    (void)guard;
}

void rusteron_fork_guard_remove(rusteron_fork_guard_t *guard)
{
    (void)guard;
}

#else

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif

static pthread_once_t rusteron_fork_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t rusteron_fork_lock = PTHREAD_MUTEX_INITIALIZER;
/* Written by the only thread of a new process. */
static volatile uint64_t rusteron_forks = 0;
/* The links of a guard that is in no list are NULL. */
static rusteron_fork_guard_t rusteron_fork_guards = { .next = &rusteron_fork_guards, .previous = &rusteron_fork_guards };

static void rusteron_fork_unlink(rusteron_fork_guard_t *guard)
{
    guard->previous->next = guard->next;
    guard->next->previous = guard->previous;
    guard->next = NULL;
    guard->previous = NULL;
}

/* No other thread is changing the list at the moment of the fork. */
static void rusteron_fork_prepare(void)
{
    pthread_mutex_lock(&rusteron_fork_lock);
}

static void rusteron_fork_in_parent(void)
{
    pthread_mutex_unlock(&rusteron_fork_lock);
}

static void rusteron_fork_in_child(void)
{
    rusteron_forks++;

    while (rusteron_fork_guards.next != &rusteron_fork_guards)
    {
        rusteron_fork_guard_t *guard = rusteron_fork_guards.next;
        rusteron_fork_unlink(guard);

        if (0 != guard->length)
        {
            void *replaced = mmap(
                guard->address,
                guard->length,
                PROT_READ | PROT_WRITE,
                MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1,
                0);

            /* A child that shared the memory could write to it. */
            if (MAP_FAILED == replaced)
            {
                abort();
            }
        }

        if (NULL != guard->flag)
        {
            *guard->flag = true;
        }
    }

    pthread_mutex_unlock(&rusteron_fork_lock);
}

static void rusteron_fork_install(void)
{
    /* Fails for want of a few bytes of memory, as an allocation of Rust's does. */
    if (0 != pthread_atfork(rusteron_fork_prepare, rusteron_fork_in_parent, rusteron_fork_in_child))
    {
        abort();
    }
}

uint64_t rusteron_fork_count(void)
{
    pthread_once(&rusteron_fork_once, rusteron_fork_install);
    return rusteron_forks;
}

void rusteron_fork_guard_add(rusteron_fork_guard_t *guard)
{
    pthread_once(&rusteron_fork_once, rusteron_fork_install);
    pthread_mutex_lock(&rusteron_fork_lock);
    guard->next = rusteron_fork_guards.next;
    guard->previous = &rusteron_fork_guards;
    guard->next->previous = guard;
    rusteron_fork_guards.next = guard;
    pthread_mutex_unlock(&rusteron_fork_lock);
}

void rusteron_fork_guard_remove(rusteron_fork_guard_t *guard)
{
    pthread_mutex_lock(&rusteron_fork_lock);
    if (NULL != guard->next)
    {
        rusteron_fork_unlink(guard);
    }
    pthread_mutex_unlock(&rusteron_fork_lock);
}

#endif
