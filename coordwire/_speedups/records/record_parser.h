/* The record kernel: reading one record of magic 2 from bytes that may be hostile. It knows nothing of CPython.

   Strategy: the short forms are read inline with one check a byte, the long ones out of line. Every length is
   checked against the bytes left before it is believed, and every byte is read once: the memory may be another
   process's file. Rules: what is accepted is exactly what `coordwire.records.strict` accepts; in doubt NULL is
   given, and the judge words the refusal. Sums wrap at 64 bits, as Java's do. */

#ifndef COORDWIRE_RECORDS_RECORD_PARSER_H
#define COORDWIRE_RECORDS_RECORD_PARSER_H

#include <stddef.h>
#include <stdint.h>

#include "../compiler.h"

#define LEAST_RECORD 7 /* bytes: length, attributes, two deltas, two lengths, a count */

struct record {
    int64_t offset, timestamp;
    const uint8_t *key, *value; /* NULL for null */
    int64_t key_size, value_size;
    int64_t headers; /* how many are between `at` and `end` */
    const uint8_t *at, *end;
};

struct header {
    const uint8_t *key, *value; /* the value NULL for null */
    int64_t key_size, value_size;
};

/* A number and the position after it, NULL in doubt; by value, so that both stay in registers. */
struct varint {
    const uint8_t *at;
    int64_t number;
};

/* Varints of at most 5 bytes (or 10) that hold 32 bits (or 64). */
struct varint kernel_long_varint(const uint8_t *at, const uint8_t *end);
struct varint kernel_long_varlong(const uint8_t *at, const uint8_t *end);

static inline int64_t kernel_unzigzag(uint64_t raw)
{
    return (int64_t)(raw >> 1 ^ -(raw & 1));
}

static inline struct varint kernel_varint(const uint8_t *at, const uint8_t *end)
{
    if (at < end) {
        uint64_t low = at[0];
        if (low < 128)
            return (struct varint){at + 1, kernel_unzigzag(low)};
        if (end - at > 1) {
            uint64_t high = at[1];
            if (high < 128)
                return (struct varint){at + 2, kernel_unzigzag((low & 127) | high << 7)};
        }
    }
    return kernel_long_varint(at, end);
}

static inline struct varint kernel_varlong(const uint8_t *at, const uint8_t *end)
{
    if (end - at > 2) {
        uint64_t raw = at[0];
        if (raw < 128)
            return (struct varint){at + 1, kernel_unzigzag(raw)};
        uint64_t next_byte = at[1];
        raw = (raw & 127) | (next_byte & 127) << 7;
        if (next_byte < 128)
            return (struct varint){at + 2, kernel_unzigzag(raw)};
        next_byte = at[2];
        if (next_byte < 128)
            return (struct varint){at + 3, kernel_unzigzag(raw | next_byte << 14)};
    }
    return kernel_long_varlong(at, end);
}

/* A length, -1 for none, and as many bytes: the position after them, or NULL. */
static inline const uint8_t *kernel_bytes(
    const uint8_t *at, const uint8_t *end, const uint8_t **data, int64_t *size)
{
    struct varint length = kernel_varint(at, end);
    if (!length.at || length.number > end - length.at)
        return NULL;
    if (length.number < 0) {
        *data = NULL;
        *size = 0;
        return length.number == -1 ? length.at : NULL;
    }
    *data = length.at;
    *size = length.number;
    return length.at + length.number;
}

/* One record but for its headers, which `kernel_header` reads: the position after it, or NULL. Without headers
   it has been seen to end where it says; with them the last one has to end at `end`. Field by field. */
const uint8_t *kernel_any_record(
    const uint8_t *at, const uint8_t *end, int64_t base_offset, int64_t base_timestamp, struct record *record);

#define AHEAD 16 /* bytes that the short way may look beyond a record */

/* A byte as a whole register. Otherwise GCC, short of registers, puts it on the stack as one byte and reads it
   back as eight, for which the processor has to wait until it is really there. */
ALWAYS_INLINE uint64_t kernel_byte(const uint8_t *at)
{
    uint64_t byte = *at;
    IN_REGISTER(byte);
    return byte;
}

/* Two bytes, the first one lowest; in a register too. */
ALWAYS_INLINE uint64_t kernel_pair(const uint8_t *at)
{
    uint64_t pair = (uint64_t)at[0] | (uint64_t)at[1] << 8;
    IN_REGISTER(pair);
    return pair;
}

/* A varint of one byte or two, whose raw value is below 2^14. */
ALWAYS_INLINE int kernel_short(const uint8_t **at, uint64_t *raw)
{
    uint64_t low = kernel_byte(*at);
    if (LIKELY(low < 128)) {
        *raw = low;
        *at += 1;
        return 1;
    }
    uint64_t high = kernel_byte(*at + 1);
    *raw = (low & 127) | high << 7;
    *at += 2;
    return high < 128;
}

/* The same, for what more often takes two. */
ALWAYS_INLINE int kernel_short_pair(const uint8_t **at, uint64_t *raw)
{
    uint64_t pair = kernel_pair(*at);
    if (LIKELY((pair & 0x8080) == 0x80)) {
        *raw = (pair & 127) | pair >> 8 << 7;
        *at += 2;
        return 1;
    }
    *raw = pair & 127;
    *at += 1;
    return !(pair & 128);
}

/* A record of short numbers as it is there, up to its number of headers. */
struct short_record {
    uint64_t size, time, offset, key, value; /* raw: deltas, and sizes, 1 for null */
    uint64_t odd;                            /* bit 0: whether any of them is, which is rare */
    const uint8_t *key_at, *value_at, *headers, *last;
};

/* Whether an odd record's sizes are none below 0, but for those that are null; without a branch on any. */
static inline int kernel_odd_is_sound(const struct short_record *record)
{
    return !((record->size & 1) | (record->key & (record->key != 1)) | (record->value & (record->value != 1)));
}

/* Read one that ends at `limit` at the latest, after which AHEAD bytes are; false for any other. Without a check
   a byte, since lengths only ever move the position forward: a record that ends where it says has read nothing
   outside itself, which is the caller's to see by `headers`, and by `odd` whether its sizes are any. */
ALWAYS_INLINE int kernel_short_record(
    const uint8_t *at, const uint8_t *limit, struct short_record *record)
{
    if (!kernel_short_pair(&at, &record->size) || (int64_t)(record->size >> 1) > limit - at)
        return 0;
    record->last = at + (record->size >> 1);
    at++; /* the attributes, which say nothing yet */
    if (!kernel_short(&at, &record->time)) {
        uint64_t next_byte = *at++;
        record->time = (record->time & ((1 << 14) - 1)) | next_byte << 14;
        if (next_byte > 127)
            return 0;
    }
    if (!kernel_short(&at, &record->offset) || !kernel_short(&at, &record->key))
        return 0;
    record->key_at = at;
    at += record->key >> 1;
    if (at >= record->last || !kernel_short_pair(&at, &record->value))
        return 0;
    record->value_at = at;
    record->headers = at + (record->value >> 1);
    record->odd = record->size | record->time | record->offset | record->key | record->value;
    return 1;
}

/* A record the short way, or any other where that can't be gone. */
ALWAYS_INLINE const uint8_t *kernel_record(
    const uint8_t *at, const uint8_t *end, int64_t base_offset, int64_t base_timestamp, struct record *record)
{
    struct short_record parsed;
    if (end - at <= AHEAD || !kernel_short_record(at, end - AHEAD, &parsed) || parsed.headers >= parsed.last
        || (parsed.odd & 1 && !kernel_odd_is_sound(&parsed)))
        return kernel_any_record(at, end, base_offset, base_timestamp, record);
    uint64_t headers = *parsed.headers;
    record->key = parsed.key & 1 ? NULL : parsed.key_at;
    record->key_size = (int64_t)(parsed.key >> 1);
    record->value = parsed.value & 1 ? NULL : parsed.value_at;
    record->value_size = (int64_t)(parsed.value >> 1);
    record->offset = (int64_t)((uint64_t)base_offset + (uint64_t)kernel_unzigzag(parsed.offset));
    record->timestamp = (int64_t)((uint64_t)base_timestamp + (uint64_t)kernel_unzigzag(parsed.time));
    record->headers = (int64_t)(headers >> 1);
    record->at = parsed.headers + 1;
    record->end = parsed.last;
    if (LIKELY(!headers && record->at == parsed.last))
        return parsed.last;
    if (headers & 1 || headers > 127 || (int64_t)headers > parsed.last - record->at)
        return kernel_any_record(at, end, base_offset, base_timestamp, record);
    return headers ? parsed.last : NULL;
}

/* One header: the position after it, or NULL. */
static inline const uint8_t *kernel_header(const uint8_t *at, const uint8_t *end, struct header *header)
{
    at = kernel_bytes(at, end, &header->key, &header->key_size);
    if (!at || !header->key)
        return NULL;
    return kernel_bytes(at, end, &header->value, &header->value_size);
}

/* Whether the record's headers are sound and end where it does. */
int kernel_headers_are_sound(const struct record *record);

/* Walk over `count` records and keep nothing: the position after the last sound one; `*done` says how many. */
const uint8_t *kernel_walk(const uint8_t *at, const uint8_t *end, int64_t count, int64_t *parsed);

#endif
