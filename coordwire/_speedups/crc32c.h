/* CRC-32C; see crc32c.c. */

#ifndef COORDWIRE_CRC32C_H
#define COORDWIRE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of `size` bytes behind those whose checksum is `crc` (0 for none). */
uint32_t crc32c(uint32_t crc, const uint8_t *data, size_t size);

/* The same without the processor's help. */
uint32_t crc32c_by_table(uint32_t crc, const uint8_t *data, size_t size);

/* Whether the processor helps. */
int crc32c_is_fast(void);

#endif
