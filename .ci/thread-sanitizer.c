/*
 * What ThreadSanitizer would need to know of Rust's standard library, which rustup ships without
 * instrumentation, and of memory that is mapped twice. Linked into the tests by `.ci/sanitize thread`
 * alone, by the linker's --wrap.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

/*
 * Arc counts down with release, and the last one out issues an acquire fence before it frees. No fence
 * is modelled, so let every such step acquire: what the counts of others released is seen either way.
 * (The standard library does the same with cfg(sanitize = "thread"), which it was not built with.)
 */
uint64_t __real___tsan_atomic64_fetch_sub(volatile uint64_t *address, uint64_t value, int order);

uint64_t __wrap___tsan_atomic64_fetch_sub(volatile uint64_t *address, uint64_t value, int order)
{
    return __real___tsan_atomic64_fetch_sub(
        address, value, __ATOMIC_RELEASE == order ? __ATOMIC_ACQ_REL : order);
}

/*
 * std::sync::Mutex is inlined, and with that instrumented, but for this function, which locks it when
 * another thread has it. It is a method of a structure that is nothing but the atomic.
 */
void RUSTERON_REAL_LOCK_CONTENDED(void *mutex);

void RUSTERON_WRAP_LOCK_CONTENDED(void *mutex)
{
    RUSTERON_REAL_LOCK_CONTENDED(mutex);
    __tsan_acquire(mutex);
}

/*
 * std::sync::Condvar unlocks and locks its mutex in this function, out of sight.
 */
void RUSTERON_REAL_CONDVAR_WAIT(void *condvar, void *mutex);

void RUSTERON_WRAP_CONDVAR_WAIT(void *condvar, void *mutex)
{
    __tsan_release(mutex);
    RUSTERON_REAL_CONDVAR_WAIT(condvar, mutex);
    __tsan_acquire(mutex);
}

/* As above, with a duration. */
bool RUSTERON_REAL_CONDVAR_WAIT_TIMEOUT(void *condvar, void *mutex, uint64_t seconds, uint32_t nanos);

bool RUSTERON_WRAP_CONDVAR_WAIT_TIMEOUT(void *condvar, void *mutex, uint64_t seconds, uint32_t nanos)
{
    __tsan_release(mutex);
    const bool notified = RUSTERON_REAL_CONDVAR_WAIT_TIMEOUT(condvar, mutex, seconds, nanos);
    __tsan_acquire(mutex);
    return notified;
}

/*
 * An acquire fence after a relaxed load, which is how Rust reads memory that is mapped for reading only:
 * it acquires what the last such load of this thread saw, or what was released there since. Who stores
 * without release is found out as before; fences that release are not modelled.
 */
static __thread volatile void *last_relaxed_load;

uint32_t __real___tsan_atomic32_load(const volatile uint32_t *address, int order);
uint64_t __real___tsan_atomic64_load(const volatile uint64_t *address, int order);
void __real___tsan_atomic_thread_fence(int order);

uint32_t __wrap___tsan_atomic32_load(const volatile uint32_t *address, int order)
{
    if (__ATOMIC_RELAXED == order)
    {
        last_relaxed_load = (volatile void *)address;
    }
    return __real___tsan_atomic32_load(address, order);
}

uint64_t __wrap___tsan_atomic64_load(const volatile uint64_t *address, int order)
{
    if (__ATOMIC_RELAXED == order)
    {
        last_relaxed_load = (volatile void *)address;
    }
    return __real___tsan_atomic64_load(address, order);
}

void __wrap___tsan_atomic_thread_fence(int order)
{
    __real___tsan_atomic_thread_fence(order);
    if (__ATOMIC_RELEASE != order && NULL != last_relaxed_load)
    {
        __tsan_acquire((void *)last_relaxed_load);
        last_relaxed_load = NULL;
    }
}

/*
 * std::thread::scope waits for its threads by a count, which each lowers, with release, in this method of
 * a structure of three words in whatever order: the count, a flag and a handle. The wait is inlined.
 */
void RUSTERON_REAL_SCOPE_LEAVE(uintptr_t *scope, bool panicked);

void RUSTERON_WRAP_SCOPE_LEAVE(uintptr_t *scope, bool panicked)
{
    for (int i = 0; i < 3; i++)
    {
        __tsan_release(scope + i);
    }
    RUSTERON_REAL_SCOPE_LEAVE(scope, panicked);
}

/*
 * A driver and its clients in the same process map the same files, each at an address of its own, and
 * ThreadSanitizer, which knows addresses only, sees neither their races nor what orders them: that the
 * subscriber's position, by way of the driver, lets the publisher overwrite what has been read. Here a
 * file that is mapped already is not mapped again.
 */
static struct mapping
{
    dev_t device;
    ino_t inode;
    size_t length;
    void *address;
    int protection;
    int users;
}
mappings[4096];

static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;

void *__real_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *address, size_t length);

void *__wrap_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    struct stat file;
    struct mapping *unused = NULL;

    if (!(flags & MAP_SHARED) || 0 != offset || fstat(fd, &file) < 0)
    {
        return __real_mmap64(address, length, protection, flags, fd, offset);
    }

    pthread_mutex_lock(&mappings_lock);
    for (size_t i = 0; i < sizeof(mappings) / sizeof(mappings[0]); i++)
    {
        struct mapping *mapping = &mappings[i];

        if (0 == mapping->users)
        {
            unused = NULL == unused ? mapping : unused;
        }
        else if (file.st_dev == mapping->device && file.st_ino == mapping->inode && length == mapping->length)
        {
            address = mapping->address;
            if (protection & ~mapping->protection)
            {
                /* By this descriptor: the one before may have been opened for reading only. */
                protection |= mapping->protection;
                if (MAP_FAILED == __real_mmap64(address, length, protection, flags | MAP_FIXED, fd, 0))
                {
                    address = MAP_FAILED;
                    goto out;
                }
                mapping->protection = protection;
            }
            mapping->users++;
            goto out;
        }
    }

    address = __real_mmap64(address, length, protection, flags, fd, offset);
    if (MAP_FAILED != address && NULL != unused)
    {
        *unused = (struct mapping){ file.st_dev, file.st_ino, length, address, protection, 1 };
    }

out:
    pthread_mutex_unlock(&mappings_lock);
    return address;
}

int __wrap_munmap(void *address, size_t length)
{
    int result = 0;

    pthread_mutex_lock(&mappings_lock);
    for (size_t i = 0; i < sizeof(mappings) / sizeof(mappings[0]); i++)
    {
        if (mappings[i].users > 0 && address == mappings[i].address && --mappings[i].users > 0)
        {
            goto out;
        }
    }
    result = __real_munmap(address, length);

out:
    pthread_mutex_unlock(&mappings_lock);
    return result;
}
