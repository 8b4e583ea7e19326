/*
 * The conductor zeroes what subscribers have passed, before publishers claim it again. Those lines are dirty in the caches
 * of other cores. An ordinary store fetches a line before it overwrites it, and evicts what the conductor's neighbours
 * want. Non-temporal stores fetch nothing, but go to memory. Which of them is faster depends on the processor, and on
 * where the hypervisor runs its cores at the moment, so the conductor compares the two every few pieces.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "concurrent/aeron_logbuffer_descriptor.h"
#include "util/aeron_bitutil.h"
#include "util/aeron_clock.h"

#include "rusteron_driver_shim.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define RUSTERON_LINE_LENGTH (64)

/* Below this length the fence costs more than the stores gain. */
#define RUSTERON_MIN_STREAMED_LENGTH (4 * 1024)

/* Long enough for both ways to fill a core's queue of stores, short enough not to matter if one is slow. */
#define RUSTERON_COMPARED_LENGTH (8 * 1024)
#define RUSTERON_PIECES_PER_COMPARISON (16)

/* So many comparisons in a row turn a decision. A comparison during which the thread lost its core counts once. */
#define RUSTERON_MAX_VOTES (3)

/* All drivers of the process share it. A conductor that reads an old value cleans a piece the other way. */
static rusteron_term_cleaning_t rusteron_term_cleaning = RUSTERON_TERM_CLEANING_ADAPTIVE;

typedef void (*rusteron_stream_zeros_func_t)(uint8_t *lines, size_t length);

__attribute__((target("avx512f")))
static void rusteron_stream_zeros_avx512(uint8_t *lines, size_t length)
{
    for (size_t i = 0; i < length; i += sizeof(__m512i))
    {
        _mm512_stream_si512((void *)(lines + i), _mm512_setzero_si512());
    }
}

__attribute__((target("avx")))
static void rusteron_stream_zeros_avx(uint8_t *lines, size_t length)
{
    for (size_t i = 0; i < length; i += sizeof(__m256i))
    {
        _mm256_stream_si256((__m256i *)(lines + i), _mm256_setzero_si256());
    }
}

static void rusteron_stream_zeros_sse2(uint8_t *lines, size_t length)
{
    for (size_t i = 0; i < length; i += sizeof(__m128i))
    {
        _mm_stream_si128((__m128i *)(lines + i), _mm_setzero_si128());
    }
}

static rusteron_stream_zeros_func_t rusteron_stream_zeros_func(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
    {
        return rusteron_stream_zeros_avx512;
    }
    return __builtin_cpu_supports("avx") ? rusteron_stream_zeros_avx : rusteron_stream_zeros_sse2;
}

/* The part of a piece that is whole lines, streamed, and what lies before and behind them, stored. */
static void rusteron_clean_streaming(uint8_t *to, size_t length)
{
    static _Thread_local rusteron_stream_zeros_func_t stream_zeros = NULL;
    if (NULL == stream_zeros)
    {
        stream_zeros = rusteron_stream_zeros_func();
    }

    const size_t before = (size_t)(-(uintptr_t)to & (RUSTERON_LINE_LENGTH - 1));
    const size_t lines_length = (length - before) & ~(size_t)(RUSTERON_LINE_LENGTH - 1);
    memset(to, 0, before);
    stream_zeros(to + before, lines_length);
    memset(to + before + lines_length, 0, length - before - lines_length);

    /*
     * After this call Aeron releases a position limit with an ordinary store. x86-64 keeps ordinary stores in order, but a
     * later one can overtake a non-temporal one, which nothing else drains in bounded time. Publishers come back to this
     * piece some limits later, about two and a half terms: zeros that are still on their way then erase a frame's length,
     * and subscribers stop there. With the fence, whoever acquires the limit sees the zeros, as with memset.
     */
    _mm_sfence();
}

static int64_t rusteron_timed_clean(void (*clean)(uint8_t *, size_t), uint8_t *to, size_t length)
{
    const int64_t start_ns = aeron_nano_clock();
    clean(to, length);
    return aeron_nano_clock() - start_ns;
}

static void rusteron_clean_cached(uint8_t *to, size_t length)
{
    memset(to, 0, length);
}

static void rusteron_clean_adaptive(uint8_t *to, size_t length)
{
    /* Above 0, the conductor of this thread streams. */
    static _Thread_local int votes = 0;
    static _Thread_local uint32_t pieces = 0;

    if (length >= 2 * RUSTERON_COMPARED_LENGTH && 0 == pieces++ % RUSTERON_PIECES_PER_COMPARISON)
    {
        const int64_t cached_ns = rusteron_timed_clean(rusteron_clean_cached, to, RUSTERON_COMPARED_LENGTH);
        to += RUSTERON_COMPARED_LENGTH;
        const int64_t streaming_ns = rusteron_timed_clean(rusteron_clean_streaming, to, RUSTERON_COMPARED_LENGTH);
        to += RUSTERON_COMPARED_LENGTH;
        length -= 2 * RUSTERON_COMPARED_LENGTH;

        const int vote = streaming_ns < cached_ns ? 1 : -1;
        if (votes + vote <= RUSTERON_MAX_VOTES && votes + vote >= -RUSTERON_MAX_VOTES)
        {
            votes += vote;
        }
    }

    if (votes > 0 && length >= RUSTERON_MIN_STREAMED_LENGTH)
    {
        rusteron_clean_streaming(to, length);
    }
    else
    {
        rusteron_clean_cached(to, length);
    }
}

static void rusteron_clean(uint8_t *to, size_t length)
{
    const rusteron_term_cleaning_t cleaning = __atomic_load_n(&rusteron_term_cleaning, __ATOMIC_RELAXED);

    if (length < RUSTERON_MIN_STREAMED_LENGTH || RUSTERON_TERM_CLEANING_CACHED == cleaning)
    {
        rusteron_clean_cached(to, length);
    }
    else if (RUSTERON_TERM_CLEANING_STREAMING == cleaning)
    {
        rusteron_clean_streaming(to, length);
    }
    else
    {
        rusteron_clean_adaptive(to, length);
    }
}

void rusteron_set_term_cleaning(rusteron_term_cleaning_t cleaning)
{
    __atomic_store_n(&rusteron_term_cleaning, cleaning, __ATOMIC_RELAXED);
}

#else

/* On AArch64, the C library's memset zeroes whole lines with `dc zva`, which fetches nothing and needs no fence. */
static void rusteron_clean(uint8_t *to, size_t length)
{
    memset(to, 0, length);
}

void rusteron_set_term_cleaning(rusteron_term_cleaning_t cleaning)
{
    (void)cleaning;
}

#endif

/*
 * Replaces memset where the driver cleans. It cleans up to a position that a client writes, in pieces whose first eight
 * bytes come last. Behind a position between two frames, a piece can be shorter than these, and then the length of the
 * rest is negative.
 */
void *rusteron_memset(void *to, int value, size_t length)
{
    (void)value;
    if (length <= AERON_LOGBUFFER_TERM_MAX_LENGTH)
    {
        rusteron_clean((uint8_t *)to, length);
    }
    return to;
}
