/* CRC-32C; see crc32c.c. */

#ifndef COORDWIRE_CRC32C_CRC32C_H
#define COORDWIRE_CRC32C_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of `size` bytes after those whose checksum is `crc` (0 for none); -1 with an exception where the
   package has no memory. Called with the interpreter's lock; other threads may run meanwhile. */
int64_t crc32c(uint32_t crc, const uint8_t *data, size_t size);

#define CRC32C_AHEAD 8192 /* bytes of latency of memory, at the pace of a checksum */

/* The same, for who goes on reading after `data`: the memory so many bytes ahead is fetched too. Called with the lock
   or without it, unless it is needed. */
int64_t crc32c_ahead(uint32_t crc, const uint8_t *data, size_t size, size_t ahead);

/* Whether checksums need the interpreter's lock, as those of the package do. */
int crc32c_needs_lock(void);

/* Whether the processor has an instruction for it. */
int crc32c_is_fast(void);

/* Use the package `crc32c`, or no longer; it is always used where the processor has no instruction. 0, or -1 with an
   exception set. */
int crc32c_use_package(int is_used);

#endif
