/* CRC-32C (Castagnoli), the checksum of record batches.

   Strategy: the processor's own instruction where it has one, found at run time. On x86-64 three streams run at
   once, since an instruction takes three cycles and one can start every cycle; they are joined by carry-less
   multiplication. Short streams that begin anew again and again are none that the processor foresees, so the
   memory to come is fetched by us. On aarch64 one stream. Elsewhere a table. Rules: no state but constants; nothing
   is read outside the bytes given (what is fetched into the cache needn't be there). */

#include "crc32c.h"

#include <string.h>

static const uint32_t table[256] = {
    0x00000000, 0xf26b8303, 0xe13b70f7, 0x1350f3f4, 0xc79a971f, 0x35f1141c, 0x26a1e7e8, 0xd4ca64eb,
    0x8ad958cf, 0x78b2dbcc, 0x6be22838, 0x9989ab3b, 0x4d43cfd0, 0xbf284cd3, 0xac78bf27, 0x5e133c24,
    0x105ec76f, 0xe235446c, 0xf165b798, 0x030e349b, 0xd7c45070, 0x25afd373, 0x36ff2087, 0xc494a384,
    0x9a879fa0, 0x68ec1ca3, 0x7bbcef57, 0x89d76c54, 0x5d1d08bf, 0xaf768bbc, 0xbc267848, 0x4e4dfb4b,
    0x20bd8ede, 0xd2d60ddd, 0xc186fe29, 0x33ed7d2a, 0xe72719c1, 0x154c9ac2, 0x061c6936, 0xf477ea35,
    0xaa64d611, 0x580f5512, 0x4b5fa6e6, 0xb93425e5, 0x6dfe410e, 0x9f95c20d, 0x8cc531f9, 0x7eaeb2fa,
    0x30e349b1, 0xc288cab2, 0xd1d83946, 0x23b3ba45, 0xf779deae, 0x05125dad, 0x1642ae59, 0xe4292d5a,
    0xba3a117e, 0x4851927d, 0x5b016189, 0xa96ae28a, 0x7da08661, 0x8fcb0562, 0x9c9bf696, 0x6ef07595,
    0x417b1dbc, 0xb3109ebf, 0xa0406d4b, 0x522bee48, 0x86e18aa3, 0x748a09a0, 0x67dafa54, 0x95b17957,
    0xcba24573, 0x39c9c670, 0x2a993584, 0xd8f2b687, 0x0c38d26c, 0xfe53516f, 0xed03a29b, 0x1f682198,
    0x5125dad3, 0xa34e59d0, 0xb01eaa24, 0x42752927, 0x96bf4dcc, 0x64d4cecf, 0x77843d3b, 0x85efbe38,
    0xdbfc821c, 0x2997011f, 0x3ac7f2eb, 0xc8ac71e8, 0x1c661503, 0xee0d9600, 0xfd5d65f4, 0x0f36e6f7,
    0x61c69362, 0x93ad1061, 0x80fde395, 0x72966096, 0xa65c047d, 0x5437877e, 0x4767748a, 0xb50cf789,
    0xeb1fcbad, 0x197448ae, 0x0a24bb5a, 0xf84f3859, 0x2c855cb2, 0xdeeedfb1, 0xcdbe2c45, 0x3fd5af46,
    0x7198540d, 0x83f3d70e, 0x90a324fa, 0x62c8a7f9, 0xb602c312, 0x44694011, 0x5739b3e5, 0xa55230e6,
    0xfb410cc2, 0x092a8fc1, 0x1a7a7c35, 0xe811ff36, 0x3cdb9bdd, 0xceb018de, 0xdde0eb2a, 0x2f8b6829,
    0x82f63b78, 0x709db87b, 0x63cd4b8f, 0x91a6c88c, 0x456cac67, 0xb7072f64, 0xa457dc90, 0x563c5f93,
    0x082f63b7, 0xfa44e0b4, 0xe9141340, 0x1b7f9043, 0xcfb5f4a8, 0x3dde77ab, 0x2e8e845f, 0xdce5075c,
    0x92a8fc17, 0x60c37f14, 0x73938ce0, 0x81f80fe3, 0x55326b08, 0xa759e80b, 0xb4091bff, 0x466298fc,
    0x1871a4d8, 0xea1a27db, 0xf94ad42f, 0x0b21572c, 0xdfeb33c7, 0x2d80b0c4, 0x3ed04330, 0xccbbc033,
    0xa24bb5a6, 0x502036a5, 0x4370c551, 0xb11b4652, 0x65d122b9, 0x97baa1ba, 0x84ea524e, 0x7681d14d,
    0x2892ed69, 0xdaf96e6a, 0xc9a99d9e, 0x3bc21e9d, 0xef087a76, 0x1d63f975, 0x0e330a81, 0xfc588982,
    0xb21572c9, 0x407ef1ca, 0x532e023e, 0xa145813d, 0x758fe5d6, 0x87e466d5, 0x94b49521, 0x66df1622,
    0x38cc2a06, 0xcaa7a905, 0xd9f75af1, 0x2b9cd9f2, 0xff56bd19, 0x0d3d3e1a, 0x1e6dcdee, 0xec064eed,
    0xc38d26c4, 0x31e6a5c7, 0x22b65633, 0xd0ddd530, 0x0417b1db, 0xf67c32d8, 0xe52cc12c, 0x1747422f,
    0x49547e0b, 0xbb3ffd08, 0xa86f0efc, 0x5a048dff, 0x8ecee914, 0x7ca56a17, 0x6ff599e3, 0x9d9e1ae0,
    0xd3d3e1ab, 0x21b862a8, 0x32e8915c, 0xc083125f, 0x144976b4, 0xe622f5b7, 0xf5720643, 0x07198540,
    0x590ab964, 0xab613a67, 0xb831c993, 0x4a5a4a90, 0x9e902e7b, 0x6cfbad78, 0x7fab5e8c, 0x8dc0dd8f,
    0xe330a81a, 0x115b2b19, 0x020bd8ed, 0xf0605bee, 0x24aa3f05, 0xd6c1bc06, 0xc5914ff2, 0x37faccf1,
    0x69e9f0d5, 0x9b8273d6, 0x88d28022, 0x7ab90321, 0xae7367ca, 0x5c18e4c9, 0x4f48173d, 0xbd23943e,
    0xf36e6f75, 0x0105ec76, 0x12551f82, 0xe03e9c81, 0x34f4f86a, 0xc69f7b69, 0xd5cf889d, 0x27a40b9e,
    0x79b737ba, 0x8bdcb4b9, 0x988c474d, 0x6ae7c44e, 0xbe2da0a5, 0x4c4623a6, 0x5f16d052, 0xad7d5351,
};

static uint32_t by_table(uint32_t crc, const uint8_t *at, size_t size)
{
    while (size--)
        crc = (crc >> 8) ^ table[(crc ^ *at++) & 255];
    return crc;
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

#define by_instruction(crc, at, size, ahead) by_table(crc, at, size)

static int has_instruction(void)
{
    return 0;
}

#endif

int crc32c_is_fast(void)
{
    return has_instruction();
}

uint32_t crc32c(uint32_t crc, const uint8_t *data, size_t size)
{
    return crc32c_ahead(crc, data, size, size >= 4 * CRC32C_AHEAD ? CRC32C_AHEAD : 0);
}

uint32_t crc32c_ahead(uint32_t crc, const uint8_t *data, size_t size, size_t ahead)
{
    (void)ahead; /* but for x86-64 */
    return ~(has_instruction() ? by_instruction(~crc, data, size, ahead) : by_table(~crc, data, size));
}

uint32_t crc32c_by_table(uint32_t crc, const uint8_t *data, size_t size)
{
    return ~by_table(~crc, data, size);
}
