/* CRC-32C (Castagnoli), the checksum of record batches.

   Strategy: the processor's own instruction where it has one, found at run time. On x86-64 three streams run at
   once, since an instruction takes three cycles and one can start every cycle; they are joined by carry-less
   multiplication. Short streams that begin anew again and again are none that the processor foresees, so the
   memory to come is fetched by us. On aarch64 one stream. Elsewhere the package `crc32c`, which coordwire.records
   uses there too: the other files have no second algorithm to call. Rules: no state but that package's function;
   nothing is read outside the bytes given (what is fetched into the cache needn't be there). */

#include "crc32c.h"

#include "../module.h"

#define BIG (64 << 10) /* bytes from which on other threads may run meanwhile */

static PyObject *package; /* its function; NULL where the processor has the instruction */

/* By the package, which lets other threads run where that is worth it. */
static int64_t by_package(uint32_t crc, const uint8_t *data, size_t size)
{
    if (size == 0)
        return crc;
    PyObject *view = PyMemoryView_FromMemory((char *)data, (Py_ssize_t)size, PyBUF_READ);
    PyObject *sum = view == NULL ? NULL : PyObject_CallFunction(package, "OI", view, (unsigned int)crc);
    Py_XDECREF(view);
    if (sum == NULL)
        return -1;
    crc = (uint32_t)PyLong_AsUnsignedLongMask(sum);
    Py_DECREF(sum);
    return PyErr_Occurred() ? -1 : (int64_t)crc;
}

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#if defined(__clang__) && __clang_major__ >= 14 /* where it is asked to be named; before GCC 11 it is unknown */
#define TARGET __attribute__((target("sse4.2,pclmul,crc32")))
#else
#define TARGET __attribute__((target("sse4.2,pclmul")))
#endif
#define LONG_BLOCK 2048
#define SHORT_BLOCK 256
#define LINE 64

static inline uint64_t load(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

/* A word of each stream. */
TARGET static inline void three_words(uint64_t sums[3], const uint8_t *at, const size_t block)
{
    sums[0] = _mm_crc32_u64(sums[0], load(at));
    sums[1] = _mm_crc32_u64(sums[1], load(at + block));
    sums[2] = _mm_crc32_u64(sums[2], load(at + 2 * block));
}

/* Three blocks at once, and as many bytes fetched `ahead`. `once` is x^(8 * block - 33) modulo the polynomial,
   bits reversed, and `twice` that for two blocks: multiplied by it, a block's checksum is what it becomes after
   as many more bytes. */
TARGET static inline __attribute__((always_inline)) uint64_t three_blocks(
    uint64_t sum, const uint8_t *at, const size_t block, const uint32_t once, const uint32_t twice, size_t ahead)
{
    uint64_t sums[3] = {sum, 0, 0};
    uintptr_t fetched = (uintptr_t)at + ahead;
    for (const uint8_t *end = at + block;;) {
        for (int line = 0; line < 3; line++, fetched += LINE)
            __builtin_prefetch((const void *)fetched);
        for (int word = 1; word < LINE / 8; word++, at += 8)
            three_words(sums, at, block);
        if (at + 8 == end)
            break;
        three_words(sums, at, block);
        at += 8;
    }
    sums[0] = _mm_crc32_u64(sums[0], load(at));
    sums[1] = _mm_crc32_u64(sums[1], load(at + block));
    __m128i moved = _mm_xor_si128(
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)sums[0]), _mm_cvtsi64_si128(twice), 0),
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)sums[1]), _mm_cvtsi64_si128(once), 0));
    return _mm_crc32_u64(sums[2], load(at + 2 * block) ^ (uint64_t)_mm_cvtsi128_si64(moved));
}

TARGET static uint32_t by_instruction(uint32_t crc, const uint8_t *at, size_t size, size_t ahead)
{
    uint64_t sum = crc;
    for (; size >= 3 * LONG_BLOCK; at += 3 * LONG_BLOCK, size -= 3 * LONG_BLOCK)
        sum = three_blocks(sum, at, LONG_BLOCK, 0xa51b6135, 0x82f89c77, ahead);
    for (; size >= 3 * SHORT_BLOCK; at += 3 * SHORT_BLOCK, size -= 3 * SHORT_BLOCK)
        sum = three_blocks(sum, at, SHORT_BLOCK, 0xb9e02b86, 0xdd7e3b0c, ahead);
    for (; size >= 8; at += 8, size -= 8)
        sum = _mm_crc32_u64(sum, load(at));
    for (; size; size--)
        sum = _mm_crc32_u8((uint32_t)sum, *at++);
    return (uint32_t)sum;
}

static int has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

#elif defined(__aarch64__) \
    && (defined(__ARM_FEATURE_CRC32) || (defined(__linux__) && defined(__GNUC__) && !defined(__clang__)))

#include <arm_acle.h>

#ifdef __ARM_FEATURE_CRC32 /* every processor that this is built for has it */
#define TARGET
#else
#include <asm/hwcap.h>
#include <sys/auxv.h>
#define TARGET __attribute__((target("+crc")))
#endif

TARGET static uint32_t by_instruction(uint32_t crc, const uint8_t *at, size_t size, size_t ahead)
{
    (void)ahead;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        crc = __crc32cd(crc, word);
    }
    while (size--)
        crc = __crc32cb(crc, *at++);
    return crc;
}

static int has_instruction(void)
{
#ifdef __ARM_FEATURE_CRC32
    return 1;
#else
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#endif
}

#else

static uint32_t by_instruction(uint32_t crc, const uint8_t *at, size_t size, size_t ahead)
{
    (void)at, (void)size, (void)ahead;
    return crc;
}

static int has_instruction(void)
{
    return 0;
}

#endif

int64_t crc32c(uint32_t crc, const uint8_t *data, size_t size)
{
    const size_t ahead = size >= 4 * CRC32C_AHEAD ? CRC32C_AHEAD : 0;
    if (size < BIG || crc32c_needs_lock())
        return crc32c_ahead(crc, data, size, ahead);
    int64_t sum;
    Py_BEGIN_ALLOW_THREADS;
    sum = crc32c_ahead(crc, data, size, ahead);
    Py_END_ALLOW_THREADS;
    return sum;
}

int64_t crc32c_ahead(uint32_t crc, const uint8_t *data, size_t size, size_t ahead)
{
    return package != NULL ? by_package(crc, data, size) : (int64_t)(uint32_t)~by_instruction(~crc, data, size, ahead);
}

int crc32c_needs_lock(void)
{
    return package != NULL;
}

int crc32c_is_fast(void)
{
    return has_instruction();
}

int crc32c_use_package(int is_used)
{
    if ((package != NULL) == (is_used || !has_instruction()))
        return 0;
    PyObject *module = package == NULL ? PyImport_ImportModule("crc32c") : NULL;
    if (package == NULL && module == NULL)
        return -1;
    Py_XSETREF(package, module == NULL ? NULL : PyObject_GetAttrString(module, "crc32c"));
    Py_XDECREF(module);
    return PyErr_Occurred() ? -1 : 0;
}
