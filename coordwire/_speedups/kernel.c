/* The record kernel's rare and long ways; see kernel.h. */

#include "kernel.h"

/* The raw value of a varint of at most `most` bytes. */
static const uint8_t *raw_varint(const uint8_t *at, const uint8_t *end, int most, uint64_t *raw)
{
    uint64_t value = 0;
    for (int index = 0; index < most; index++) {
        if (at >= end)
            return NULL;
        uint64_t byte = *at++;
        if (index == 9 && (byte & 127) > 1)
            return NULL; /* beyond 64 bits */
        value |= (byte & 127) << (7 * index);
        if (byte < 128) {
            *raw = value;
            return at;
        }
    }
    return NULL;
}

const uint8_t *kernel_long_varint(const uint8_t *at, const uint8_t *end, int32_t *number)
{
    uint64_t raw;
    at = raw_varint(at, end, 5, &raw);
    if (!at || raw >> 32)
        return NULL;
    *number = (int32_t)((uint32_t)(raw >> 1) ^ -(uint32_t)(raw & 1));
    return at;
}

const uint8_t *kernel_long_varlong(const uint8_t *at, const uint8_t *end, int64_t *number)
{
    uint64_t raw;
    at = raw_varint(at, end, 10, &raw);
    if (at)
        *number = (int64_t)(raw >> 1 ^ -(raw & 1));
    return at;
}

int kernel_headers_are_sound(const struct record *record)
{
    const uint8_t *at = record->at;
    struct header header;
    for (int32_t left = record->headers; left; left--) {
        at = kernel_header(at, record->end, &header);
        if (!at)
            return 0;
    }
    return at == record->end;
}

const uint8_t *kernel_walk(const uint8_t *at, const uint8_t *end, int64_t count, int64_t *done)
{
    struct record record;
    for (*done = 0; *done < count; ++*done) {
        const uint8_t *behind = kernel_record(at, end, 0, 0, &record);
        if (!behind || (record.headers && !kernel_headers_are_sound(&record)))
            break;
        at = behind;
    }
    return at;
}
