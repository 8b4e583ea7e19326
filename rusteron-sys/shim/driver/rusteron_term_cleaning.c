/*
 * The conductor zeroes what subscribers have passed, before publishers claim it again. Those lines are dirty in the caches
 * of other cores. An ordinary store fetches a line before it overwrites it, and evicts what the conductor's neighbours
 * want. Non-temporal stores fetch nothing, but go to memory. Which of them is faster depends on the processor, and on
 * where the hypervisor runs its cores at the moment, so the conductor compares the two every few pieces. A fixed choice
 * costs some machine a factor of two or three in the throughput of IPC.
 *
 * IPC terms of less than 256 KiB have no piece that is long enough to compare, and keep `memset`. So does AArch64, whose
 * `dc zva` fetches nothing.
 */
#include <stdbool.h>
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

/* So many comparisons in a row change the choice. A comparison during which the thread lost its core is one of them. */
#define RUSTERON_COMPARISONS_PER_CHANGE (3)

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

/* All drivers of the process share both. A conductor that reads an old value cleans a piece the other way. */
static rusteron_term_cleaning_t rusteron_term_cleaning = RUSTERON_TERM_CLEANING_ADAPTIVE;
static rusteron_stream_zeros_func_t rusteron_stream_zeros = rusteron_stream_zeros_sse2;

static uint64_t rusteron_streamed_total = 0;

/* The part of a piece that is whole lines, streamed, and what lies before and behind them, stored. */
static void rusteron_clean_streaming(uint8_t *to, size_t length)
{
    const size_t before = (size_t)(-(uintptr_t)to & (RUSTERON_LINE_LENGTH - 1));
    const size_t lines_length = (length - before) & ~(size_t)(RUSTERON_LINE_LENGTH - 1);
    memset(to, 0, before);
    __atomic_load_n(&rusteron_stream_zeros, __ATOMIC_RELAXED)(to + before, lines_length);
    memset(to + before + lines_length, 0, length - before - lines_length);

    /*
     * After this call Aeron releases a position limit, or sends a status message, with ordinary stores. x86-64 keeps
     * ordinary stores in order, but a later one can overtake a non-temporal one, which nothing else drains in bounded
     * time. When publishers come back to this piece, zeros that are still on their way erase a frame's length, and
     * subscribers stop there. With the fence, a publisher that acquires the limit sees the zeros, as with memset.
     */
    _mm_sfence();
    __atomic_fetch_add(&rusteron_streamed_total, length, __ATOMIC_RELAXED);
}

static void rusteron_clean_cached(uint8_t *to, size_t length)
{
    memset(to, 0, length);
}

/* Time from an empty queue of stores to an empty one: otherwise one way would wait for the other's stores. */
static int64_t rusteron_timed_clean(bool is_streaming, uint8_t *to)
{
    _mm_mfence();
    const int64_t start_ns = aeron_nano_clock();
    (is_streaming ? rusteron_clean_streaming : rusteron_clean_cached)(to, RUSTERON_COMPARED_LENGTH);
    _mm_mfence();
    return aeron_nano_clock() - start_ns;
}

static void rusteron_clean_adaptive(uint8_t *to, size_t length)
{
    /* Those of the conductor of this thread. */
    static _Thread_local bool is_streaming = false;
    static _Thread_local uint32_t pieces = 0;
    static _Thread_local uint32_t comparisons_against = 0;

    if (length >= 2 * RUSTERON_COMPARED_LENGTH && 0 == pieces++ % RUSTERON_PIECES_PER_COMPARISON)
    {
        /* The order alternates, because the second way meets lines that the processor has fetched ahead for the first. */
        const bool is_streaming_first = 0 != (pieces / RUSTERON_PIECES_PER_COMPARISON) % 2;
        const int64_t first_ns = rusteron_timed_clean(is_streaming_first, to);
        const int64_t second_ns = rusteron_timed_clean(!is_streaming_first, to + RUSTERON_COMPARED_LENGTH);
        const bool is_streaming_faster = is_streaming_first ? first_ns < second_ns : second_ns < first_ns;
        to += 2 * RUSTERON_COMPARED_LENGTH;
        length -= 2 * RUSTERON_COMPARED_LENGTH;

        comparisons_against = is_streaming_faster == is_streaming ? 0 : comparisons_against + 1;
        if (RUSTERON_COMPARISONS_PER_CHANGE == comparisons_against)
        {
            is_streaming = is_streaming_faster;
            comparisons_against = 0;
        }
    }

    if (is_streaming && length >= RUSTERON_MIN_STREAMED_LENGTH)
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

void rusteron_set_term_cleaning(rusteron_term_cleaning_t cleaning, size_t max_store_length)
{
    const rusteron_stream_zeros_func_t stream_zeros =
        max_store_length >= sizeof(__m512i) ? rusteron_stream_zeros_avx512 :
        max_store_length >= sizeof(__m256i) ? rusteron_stream_zeros_avx : rusteron_stream_zeros_sse2;

    __atomic_store_n(&rusteron_stream_zeros, stream_zeros, __ATOMIC_RELAXED);
    __atomic_store_n(&rusteron_term_cleaning, cleaning, __ATOMIC_RELAXED);
}

uint64_t rusteron_streamed_length(void)
{
    return __atomic_load_n(&rusteron_streamed_total, __ATOMIC_RELAXED);
}

#else

/* On AArch64, the C library's memset zeroes whole lines with `dc zva`, which fetches nothing and needs no fence here. */
static void rusteron_clean(uint8_t *to, size_t length)
{
    memset(to, 0, length);
}

void rusteron_set_term_cleaning(rusteron_term_cleaning_t cleaning, size_t max_store_length)
{
    (void)cleaning;
    (void)max_store_length;
}

uint64_t rusteron_streamed_length(void)
{
    return 0;
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
