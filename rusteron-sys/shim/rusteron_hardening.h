/*
 * The compiler reads this before each file. Where the optimiser is on, the C library's functions then know the lengths
 * of arrays, and end the process instead of writing behind one. A level that the user has chosen stays. Level 3 falls
 * back to 2 in headers that do not know it. Sanitizers look for themselves.
 */
#ifndef RUSTERON_HARDENING_H
#define RUSTERON_HARDENING_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define RUSTERON_SANITIZED
#endif
#endif

#if defined(memset)
/*
 * A guard renames the calls of memset, by a macro. Fortified headers would give the name another definition. What these
 * files copy into arrays has the arrays' length.
 */
#undef _FORTIFY_SOURCE
#define _FORTIFY_SOURCE 0
#elif !defined(_FORTIFY_SOURCE) && defined(__OPTIMIZE__) && !defined(RUSTERON_SANITIZED) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define _FORTIFY_SOURCE 3
#endif

#endif
