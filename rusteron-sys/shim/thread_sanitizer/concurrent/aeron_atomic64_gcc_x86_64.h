/*
 * Aeron's atomics in a form that ThreadSanitizer understands. Only `just sanitize thread` has C find this
 * file in place of Aeron's file of the same name (`-iquote`).
 *
 * Aeron 1.54.0 orders memory by volatile accesses and compiler barriers here, and by fences in
 * aeron_atomic64_c11.h. ThreadSanitizer sees synchronisation in neither. Below, the accesses themselves acquire and
 * release, which is no more than Aeron's accesses amount to on x86-64.
 */
#ifndef AERON_ATOMIC64_GCC_X86_64_H
#define AERON_ATOMIC64_GCC_X86_64_H

#include <stdbool.h>
#include <stdint.h>

#define AERON_GET_ACQUIRE(dst, src)                                           \
do                                                                            \
{                                                                             \
    AERON_ATOMIC_ASSERT_VOLATILE_LVALUE(                                      \
        src,                                                                  \
        "AERON_GET_ACQUIRE: src must be a volatile lvalue");                  \
    dst = __atomic_load_n(&(src), __ATOMIC_ACQUIRE);                          \
}                                                                             \
while (false)

#define AERON_SET_RELEASE(dst, src)                                           \
do                                                                            \
{                                                                             \
    AERON_ATOMIC_ASSERT_VOLATILE_LVALUE(                                      \
        dst,                                                                  \
        "AERON_SET_RELEASE: dst must be a volatile lvalue");                  \
    __atomic_store_n(&(dst), (src), __ATOMIC_RELEASE);                        \
}                                                                             \
while (false)

#define AERON_GET_AND_ADD_INT64(original, dst, value)                         \
do                                                                            \
{                                                                             \
    original = __atomic_fetch_add(&(dst), (int64_t)(value), __ATOMIC_SEQ_CST);\
}                                                                             \
while (false)

#define AERON_GET_AND_ADD_INT32(original, dst, value)                         \
do                                                                            \
{                                                                             \
    original = __atomic_fetch_add(&(dst), (int32_t)(value), __ATOMIC_SEQ_CST);\
}                                                                             \
while (false)

inline bool aeron_cas_int64(volatile int64_t *dst, int64_t expected, int64_t desired)
{
    return __atomic_compare_exchange_n(
        dst, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

inline bool aeron_cas_uint64(volatile uint64_t *dst, uint64_t expected, uint64_t desired)
{
    return __atomic_compare_exchange_n(
        dst, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

inline bool aeron_cas_int32(volatile int32_t *dst, int32_t expected, int32_t desired)
{
    return __atomic_compare_exchange_n(
        dst, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* ThreadSanitizer does not model fences. Code that relies on fences alone is reported. */
inline void aeron_acquire(void)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

inline void aeron_release(void)
{
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

#define AERON_DECL_ALIGNED(declaration, amt) declaration __attribute__((aligned(amt)))

#endif
