/*
 * Tells ThreadSanitizer about Rust's standard library, which rustup ships without instrumentation, and about memory
 * that is mapped twice. Only `.ci/sanitize thread` links this file into the tests, by the linker's --wrap.
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
 * Arc counts down with release. The last owner issues an acquire fence before it frees. ThreadSanitizer models no
 * fence, so let every such step acquire. The step then sees the releases of the other owners, as after the fence.
 * (With cfg(sanitize = "thread"), the standard library does the same. rustup's library is built without that cfg.)
 */
uint64_t __real___tsan_atomic64_fetch_sub(volatile uint64_t *address, uint64_t value, int order);

uint64_t __wrap___tsan_atomic64_fetch_sub(volatile uint64_t *address, uint64_t value, int order)
{
    return __real___tsan_atomic64_fetch_sub(
        address, value, __ATOMIC_RELEASE == order ? __ATOMIC_ACQ_REL : order);
}

/*
 * std::sync::Mutex is inlined and therefore instrumented, except this function. The function locks a mutex that another
 * thread holds. It is a method of a structure that contains only the atomic.
 */
void RUSTERON_REAL_LOCK_CONTENDED(void *mutex);

void RUSTERON_WRAP_LOCK_CONTENDED(void *mutex)
{
    RUSTERON_REAL_LOCK_CONTENDED(mutex);
    __tsan_acquire(mutex);
}

/*
 * std::sync::Condvar unlocks and locks its mutex in this function. ThreadSanitizer sees neither.
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
 * Models an acquire fence after a relaxed load. Rust reads memory that is mapped for reading only in this way. The
 * fence acquires the address of this thread's last relaxed load, with all releases there up to the fence. Stores
 * without release are still reported. Release fences are not modelled.
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
 * std::thread::scope waits until a count of its threads is zero. Each thread lowers the count, with release, in this
 * method. Its structure has three words, in an unspecified order: the count, a flag and a handle. The wait is inlined.
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
 * A driver and its clients in the same process map the same files, each at an address of its own. ThreadSanitizer knows
 * addresses only. It would see neither races between these mappings nor their order. For example, the subscriber's
 * position lets the driver, and then the publisher, overwrite messages that were read. This function therefore maps
 * each file once.
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
                /* Maps with this descriptor, because the earlier descriptor may be open for reading only. */
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
