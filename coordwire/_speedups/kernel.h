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
    int64_t key_size, value_size;
    int64_t headers; /* how many stand between `at` and `end` */
    const uint8_t *at, *end;
};

struct header {
    const uint8_t *key, *value; /* the value NULL for null */
    int64_t key_size, value_size;
};

/* A number and the position behind it, NULL in doubt; by value, so that both stay in registers. */
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
        uint64_t more = at[1];
        raw = (raw & 127) | (more & 127) << 7;
        if (more < 128)
            return (struct varint){at + 2, kernel_unzigzag(raw)};
        more = at[2];
        if (more < 128)
            return (struct varint){at + 3, kernel_unzigzag(raw | more << 14)};
    }
    return kernel_long_varlong(at, end);
}

/* A length, -1 for none, and as many bytes: the position behind them, or NULL. */
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

/* One record but for its headers, which `kernel_header` reads: the position behind it, or NULL. Without headers
   it has been seen to end where it says; with them the last one has to end at `end`. Field by field. */
const uint8_t *kernel_any_record(
    const uint8_t *at, const uint8_t *end, int64_t base_offset, int64_t base_timestamp, struct record *record);

#define AHEAD 16 /* bytes that the short way may look beyond a record */

/* A varint of one byte or two, whose raw value is below 2^14. */
static inline int kernel_short(const uint8_t **at, uint64_t *raw)
{
    uint64_t low = (*at)[0];
    if (__builtin_expect(low < 128, 1)) {
        *raw = low;
        *at += 1;
        return 1;
    }
    uint64_t high = (*at)[1];
    *raw = (low & 127) | high << 7;
    *at += 2;
    return high < 128;
}

/* The same, the short way: without a check a byte, since lengths only ever move the position forward, so that a
   record which ends where it says has read nothing outside itself. Whatever isn't short goes the other way. */
static inline __attribute__((always_inline)) const uint8_t *kernel_record(
    const uint8_t *at, const uint8_t *end, int64_t base_offset, int64_t base_timestamp, struct record *record)
{
    const uint8_t *start = at, *last;
    uint64_t size, time, offset, key, value, headers;
    if (end - at <= AHEAD || !kernel_short(&at, &size) || size & 1 || end - at < (int64_t)(size >> 1) + AHEAD)
        goto any;
    last = at + (size >> 1);
    at++; /* the attributes, which say nothing yet */
    if (!kernel_short(&at, &time)) {
        uint64_t more = *at++;
        time = (time & ((1 << 14) - 1)) | more << 14;
        if (more > 127)
            goto any;
    }
    if (!kernel_short(&at, &offset) || !kernel_short(&at, &key))
        goto any;
    record->key = at;
    record->key_size = (int64_t)(key >> 1);
    if (key & 1) {
        if (key != 1)
            goto any;
        record->key = NULL;
    }
    at += record->key_size;
    if (at >= last || !kernel_short(&at, &value))
        goto any;
    record->value = at;
    record->value_size = (int64_t)(value >> 1);
    if (value & 1) {
        if (value != 1)
            goto any;
        record->value = NULL;
    }
    at += record->value_size;
    if (at >= last)
        goto any;
    headers = *at++;
    record->offset = (int64_t)((uint64_t)base_offset + (uint64_t)kernel_unzigzag(offset));
    record->timestamp = (int64_t)((uint64_t)base_timestamp + (uint64_t)kernel_unzigzag(time));
    record->headers = 0;
    if (__builtin_expect(!headers && at == last, 1))
        return last;
    if (headers & 1 || headers > 127 || (int64_t)headers > last - at)
        goto any;
    record->headers = (int64_t)(headers >> 1);
    record->at = at;
    record->end = last;
    return headers ? last : NULL;
any:
    return kernel_any_record(start, end, base_offset, base_timestamp, record);
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
