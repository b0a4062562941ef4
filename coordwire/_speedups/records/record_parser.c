/* The record kernel's rare and long ways; see record_parser.h. */

#include "record_parser.h"

/* A varint of at most `most` bytes that holds `bits`. */
static struct varint varint(const uint8_t *at, const uint8_t *end, int most, int bits)
{
    uint64_t value = 0;
    for (int index = 0; index < most && at < end; index++) {
        uint64_t byte = *at++, part = byte & 127;
        if (bits - 7 * index < 7 && part >> (bits - 7 * index))
            break; /* beyond its type */
        value |= part << (7 * index);
        if (byte < 128)
            return (struct varint){at, kernel_unzigzag(value)};
    }
    return (struct varint){NULL, 0};
}

struct varint kernel_long_varint(const uint8_t *at, const uint8_t *end)
{
    return varint(at, end, 5, 32);
}

struct varint kernel_long_varlong(const uint8_t *at, const uint8_t *end)
{
    return varint(at, end, 10, 64);
}

const uint8_t *kernel_any_record(
    const uint8_t *at, const uint8_t *end, int64_t base_offset, int64_t base_timestamp, struct record *record)
{
    struct varint size = kernel_varint(at, end);
    if (!size.at || size.number < 1 || size.number > end - size.at)
        return NULL;
    end = size.at + size.number;
    struct varint time = kernel_varlong(size.at + 1, end); /* after the attributes, which say nothing yet */
    if (!time.at)
        return NULL;
    struct varint offset = kernel_varint(time.at, end);
    if (!offset.at)
        return NULL;
    at = kernel_bytes(offset.at, end, &record->key, &record->key_size);
    if (!at)
        return NULL;
    at = kernel_bytes(at, end, &record->value, &record->value_size);
    if (!at)
        return NULL;
    struct varint headers = kernel_varint(at, end);
    if (!headers.at)
        return NULL;
    record->offset = (int64_t)((uint64_t)base_offset + (uint64_t)offset.number);
    record->timestamp = (int64_t)((uint64_t)base_timestamp + (uint64_t)time.number);
    record->headers = headers.number;
    record->at = headers.at;
    record->end = end;
    if (headers.number)
        return headers.number < 0 || headers.number > (end - headers.at) / 2 ? NULL : end;
    return headers.at == end ? end : NULL;
}

int kernel_headers_are_sound(const struct record *record)
{
    const uint8_t *at = record->at;
    struct header header;
    for (int64_t remaining = record->headers; remaining; remaining--) {
        at = kernel_header(at, record->end, &header);
        if (!at)
            return 0;
    }
    return at == record->end;
}

const uint8_t *kernel_walk(const uint8_t *at, const uint8_t *end, int64_t count, int64_t *parsed)
{
    struct record record;
    for (*parsed = 0; *parsed < count; ++*parsed) {
        const uint8_t *after = kernel_record(at, end, 0, 0, &record);
        if (!after || (record.headers && !kernel_headers_are_sound(&record)))
            break;
        at = after;
    }
    return at;
}
