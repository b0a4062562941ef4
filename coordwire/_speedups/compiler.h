/* What C11 lacks and each compiler has in its own words: inlining, branch hints, overflow and leading zeros.

   Rules: the only file that knows compilers by name, but for crc32c.c, which knows their processors; whatever has
   no word for a hint does without it, and whatever has none for an operation computes it in plain C.
   COORDWIRE_PORTABLE takes the plain C everywhere, for tests. */

#ifndef COORDWIRE_COMPILER_H
#define COORDWIRE_COMPILER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(COORDWIRE_PORTABLE) /* Clang too */
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline)) /* for what is rarely called: it would take its callers' registers */
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define IN_REGISTER(number) __asm__("" : "+r"(number))
#elif defined(_MSC_VER)
#define ALWAYS_INLINE static __forceinline
#define NOINLINE __declspec(noinline)
#define LIKELY(condition) (condition)
#define IN_REGISTER(number) ((void)0)
#else
#define ALWAYS_INLINE static inline
#define NOINLINE
#define LIKELY(condition) (condition)
#define IN_REGISTER(number) ((void)0)
#endif

/* Whether a sum or difference is beyond 64 bits; what is left of it in `*result` anyway. */
#if defined(__GNUC__) && !defined(COORDWIRE_PORTABLE)
static inline bool add_overflows(int64_t a, int64_t b, int64_t *result) { return __builtin_add_overflow(a, b, result); }
static inline bool sub_overflows(int64_t a, int64_t b, int64_t *result) { return __builtin_sub_overflow(a, b, result); }
#else
static inline bool add_overflows(int64_t a, int64_t b, int64_t *result)
{
    *result = (int64_t)((uint64_t)a + (uint64_t)b);
    return ((a ^ *result) & (b ^ *result)) < 0;
}
static inline bool sub_overflows(int64_t a, int64_t b, int64_t *result)
{
    *result = (int64_t)((uint64_t)a - (uint64_t)b);
    return ((a ^ b) & (a ^ *result)) < 0;
}
#endif

/* How many bits a number takes that isn't 0. */
static inline int count_bits(uint64_t number)
{
#if defined(__GNUC__) && !defined(COORDWIRE_PORTABLE)
    return 64 - __builtin_clzll(number);
#else
    int bits = 0;
    for (int step = 32; step; step /= 2)
        if (number >> step) {
            number >>= step;
            bits += step;
        }
    return bits + 1;
#endif
}

/* 16 bytes from anywhere to anywhere. */
#if defined(__GNUC__) && !defined(COORDWIRE_PORTABLE)
typedef uint8_t many __attribute__((vector_size(16), aligned(1), may_alias));
static inline void copy_many(uint8_t *to, const uint8_t *from) { *(many *)to = *(const many *)from; }
#else
static inline void copy_many(uint8_t *to, const uint8_t *from) { memcpy(to, from, 16); }
#endif

#endif
