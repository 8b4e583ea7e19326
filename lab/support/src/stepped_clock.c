/*
 * Preloaded into a process, moves its wall clock by the nanoseconds in the file that RUSTERON_CLOCK_STEP names. The file
 * is mapped, so another process steps the clock by writing to it. The monotonic clocks stay as they are.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

static _Atomic int64_t *step_ns;

__attribute__((constructor)) static void map_step(void)
{
    const char *path = getenv("RUSTERON_CLOCK_STEP");
    const int fd = NULL == path ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void *address = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*step_ns), PROT_READ, MAP_SHARED, fd, 0);
    if (MAP_FAILED != address)
    {
        step_ns = address;
    }
    if (fd >= 0)
    {
        close(fd);
    }
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    /* The vDSO's function, as libc has it; the system call until it is found. */
    static int (*_Atomic next)(clockid_t, struct timespec *);
    if (NULL == next)
    {
        next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    }
    const int result = NULL != next ? next(clock, time) : (int)syscall(SYS_clock_gettime, clock, time);
    if (0 == result && NULL != step_ns && (CLOCK_REALTIME == clock || CLOCK_REALTIME_COARSE == clock))
    {
        const int64_t now_ns = (int64_t)time->tv_sec * NS_PER_S + time->tv_nsec + *step_ns;
        time->tv_sec = now_ns / NS_PER_S;
        time->tv_nsec = now_ns % NS_PER_S;
    }
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (NULL != seconds)
    {
        *seconds = now.tv_sec;
    }
    return now.tv_sec;
}
