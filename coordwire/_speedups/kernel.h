/* The record kernel: reading one record of magic 2 from bytes that may be hostile. It knows nothing of CPython.

   Strategy: the short forms are read inline with one check a byte, the long ones out of line. Every length is
   checked against the bytes left before it is believed, and every byte is read once: the memory may be another
   process's file. Rules: what is accepted is exactly what `coordwire.records.judge` accepts; in doubt NULL is
   given, and the judge words the refusal. Sums wrap at 64 bits, as Java's do. */

#ifndef COORDWIRE_KERNEL_H
#define COORDWIRE_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define LEAST_RECORD 7 /* bytes: length, attributes, two deltas, two lengths, a count */

struct record {
    int64_t offset, timestamp;
    const uint8_t *key, *value; /* NULL for null */
    int32_t key_size, value_size;
    int32_t headers;              /* how many stand between `at` and `end` */
    const uint8_t *at, *end;
};

struct header {
    const uint8_t *key, *value; /* the value NULL for null */
    int32_t key_size, value_size;
};

/* A varint of at most 5 bytes (or 10) that holds 32 bits (or 64): the position behind it, or NULL. */
const uint8_t *kernel_long_varint(const uint8_t *at, const uint8_t *end, int32_t *number);
const uint8_t *kernel_long_varlong(const uint8_t *at, const uint8_t *end, int64_t *number);

static inline const uint8_t *kernel_varint(const uint8_t *at, const uint8_t *end, int32_t *number)
{
    if (at < end) {
        uint32_t low = at[0];
        if (low < 128) {
            *number = (int32_t)(low >> 1) ^ -(int32_t)(low & 1);
            return at + 1;
        }
        if (end - at > 1) {
            uint32_t high = at[1];
            if (high < 128) {
                low = (low & 127) | high << 7;
                *number = (int32_t)(low >> 1) ^ -(int32_t)(low & 1);
                return at + 2;
            }
        }
    }
    return kernel_long_varint(at, end, number);
}

static inline const uint8_t *kernel_varlong(const uint8_t *at, const uint8_t *end, int64_t *number)
{
    if (end - at > 2) {
        uint64_t raw = at[0], more = at[1];
        int size = 1;
        if (raw > 127) {
            raw = (raw & 127) | more << 7;
            size = 2;
            if (more > 127) {
                more = at[2];
                raw = (raw & (127 | 127 << 7)) | more << 14;
                size = 3;
                if (more > 127)
                    return kernel_long_varlong(at, end, number);
            }
        }
        *number = (int64_t)(raw >> 1 ^ -(raw & 1));
        return at + size;
    }
    return kernel_long_varlong(at, end, number);
}

/* A length and as many bytes, -1 for none. */
static inline const uint8_t *kernel_bytes(
    const uint8_t *at, const uint8_t *end, const uint8_t **data, int32_t *size)
{
    at = kernel_varint(at, end, size);
    if (!at)
        return NULL;
    if (*size < 0) {
        if (*size != -1)
            return NULL;
        *data = NULL;
        *size = 0;
        return at;
    }
    if (*size > end - at)
        return NULL;
    *data = at;
    return at + *size;
}

/* One record but for its headers, which `kernel_header` reads: the position behind it, or NULL. Without headers
   it has been seen to end where it says; with them the last one has to end at `end`. */
static inline const uint8_t *kernel_record(
    const uint8_t *at, const uint8_t *end, int64_t base_offset, int64_t base_timestamp, struct record *record)
{
    int32_t size, offset;
    int64_t timestamp;
    at = kernel_varint(at, end, &size);
    if (!at || size < 1 || size > end - at)
        return NULL;
    end = at + size;
    at++; /* the attributes, which say nothing yet */
    if (!(at = kernel_varlong(at, end, &timestamp)) || !(at = kernel_varint(at, end, &offset))
        || !(at = kernel_bytes(at, end, &record->key, &record->key_size))
        || !(at = kernel_bytes(at, end, &record->value, &record->value_size))
        || !(at = kernel_varint(at, end, &record->headers)))
        return NULL;
    record->offset = (int64_t)((uint64_t)base_offset + (uint64_t)(int64_t)offset);
    record->timestamp = (int64_t)((uint64_t)base_timestamp + (uint64_t)timestamp);
    record->at = at;
    record->end = end;
    if (record->headers)
        return record->headers < 0 || record->headers > (end - at) / 2 ? NULL : end;
    return at == end ? end : NULL;
}

/* One header: the position behind it, or NULL. */
static inline const uint8_t *kernel_header(const uint8_t *at, const uint8_t *end, struct header *header)
{
    at = kernel_bytes(at, end, &header->key, &header->key_size);
    if (!at || !header->key)
        return NULL;
    return kernel_bytes(at, end, &header->value, &header->value_size);
}

/* Whether the record's headers are sound and end where it does. */
int kernel_headers_are_sound(const struct record *record);

/* Walk over `count` records and keep nothing: the position behind the last sound one; `*done` says how many. */
const uint8_t *kernel_walk(const uint8_t *at, const uint8_t *end, int64_t count, int64_t *done);

#endif
