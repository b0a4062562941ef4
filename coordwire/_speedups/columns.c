/* The Arrow kernel: batches of magic 2 straight into columns, in one pass.

   Strategy: batch by batch, the checksum first, which brings the bytes into the cache, then record by record into
   memory that the table before left behind. Validity bits are all set beforehand and cleared for nulls. Rules:
   whatever isn't an uncompressed batch of magic 2 with a right checksum and sound records is left to Python, which
   words the refusal; a table ends before the record that would make it larger than it may be; offsets of data are
   32 bits, which `most` and the size of a record keep them in. Nothing is built that isn't asked for. */

#include "columns.h"

#include <string.h>

#include "crc32c.h"
#include "kernel.h"

#define HEADER 61
#define MICROSECONDS (INT64_MAX / 1000)
#define SLICE_BITS 30

static int64_t number(const uint8_t *at, int size)
{
    uint64_t value = at[0] & 128 ? UINT64_MAX : 0;
    for (int index = 0; index < size; index++)
        value = value << 8 | at[index];
    return (int64_t)value;
}

static inline void clear_bit(uint8_t *bits, int64_t at)
{
    bits[at >> 3] &= (uint8_t)~(1 << (at & 7));
}

/* --- one record ------------------------------------------------------------------------------------------------ */

/* Copies; up to 63 bytes more may be read before `end` and written. */
static inline void copy(uint8_t *to, const uint8_t *from, int64_t size, const uint8_t *end)
{
    if (!size)
        return;
    if (size <= 256 && size + 64 <= end - from) {
        memcpy(to, from, 32);
        for (int64_t at = 32; at < size; at += 64) {
            memcpy(to + at, from + at, 32);
            memcpy(to + at + 32, from + at + 32, 32);
        }
    } else {
        memcpy(to, from, (size_t)size);
    }
}

static inline void put_view(struct view *view, const uint8_t *data, int64_t size, struct source source)
{
    view->size = (int32_t)size;
    if (size > 12) {
        int64_t at = data - source.base;
        memcpy(view->of.far.prefix, data, 4);
        view->of.far.buffer = source.buffer + (int32_t)(at >> SLICE_BITS);
        view->of.far.at = (int32_t)(at & ((1 << SLICE_BITS) - 1));
    } else {
        memset(view->of.all, 0, 12);
        if (size)
            memcpy(view->of.all, data, (size_t)size);
    }
}

/* A null in a column of keys or values; `row` is not counted yet. */
static void put_null(struct columns *columns, enum role bits, int64_t row, int64_t *nulls)
{
    clear_bit(columns->blocks[bits].data, row);
    ++*nulls;
}

/* What of a header key isn't UTF-8 becomes U+FFFD, a maximal subpart each, as Unicode recommends: the bytes
   written, three times `size` at most. */
static int64_t put_utf8(uint8_t *to, const uint8_t *from, int64_t size)
{
    uint8_t *start = to;
    for (int64_t at = 0; at < size;) {
        uint8_t first = from[at];
        int need = first < 128 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
        uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
        uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
        int have = 1;
        while (have < need && at + have < size && from[at + have] >= low && from[at + have] <= high) {
            low = 0x80;
            high = 0xBF;
            have++;
        }
        if (have == need) {
            memcpy(to, from + at, (size_t)have);
            to += have;
        } else {
            memcpy(to, "\xEF\xBF\xBD", 3);
            to += 3;
        }
        at += have;
    }
    return to - start;
}

/* The headers into their columns: 0, -1 without memory, 1 in doubt (the bytes changed under us). */
static int put_headers(struct columns *columns, const struct record *record)
{
    struct block *blocks = columns->blocks;
    struct extent *now = &columns->now;
    const uint8_t *at = record->at;
    size_t need = (size_t)(now->headers + record->headers);
    size_t bits = blocks[CONTENT_BITS].room;
    if (columns_reserve(columns, &blocks[NAME_PLACES], (need + 1) * 4) < 0 || columns_reserve(columns, &blocks[CONTENT_PLACES], (need + 1) * 4) < 0
        || columns_reserve(columns, &blocks[CONTENT_BITS], need / 8 + 1) < 0)
        return -1;
    if (blocks[CONTENT_BITS].room != bits || !now->headers)
        columns_set_bits(blocks[CONTENT_BITS].data, now->headers, (int64_t)blocks[CONTENT_BITS].room * 8);
    int32_t *names = (int32_t *)blocks[NAME_PLACES].data, *contents = (int32_t *)blocks[CONTENT_PLACES].data;
    for (int64_t left = record->headers; left; left--) {
        struct header header;
        at = kernel_header(at, record->end, &header);
        if (!at || now->name + 3 * (int64_t)header.key_size > INT32_MAX)
            return 1;
        if (columns_reserve(columns, &blocks[NAME_DATA], (size_t)(now->name + 3 * (int64_t)header.key_size)) < 0
            || columns_reserve(columns, &blocks[CONTENT_DATA], (size_t)(now->content + header.value_size)) < 0)
            return -1;
        names[now->headers] = (int32_t)now->name;
        contents[now->headers] = (int32_t)now->content;
        now->name += put_utf8(blocks[NAME_DATA].data + now->name, header.key, header.key_size);
        if (!header.value) {
            clear_bit(blocks[CONTENT_BITS].data, now->headers);
            now->content_nulls++;
        } else {
            memcpy(blocks[CONTENT_DATA].data + now->content, header.value, (size_t)header.value_size);
        }
        now->content += header.value_size;
        now->headers++;
        names[now->headers] = (int32_t)now->name;
        contents[now->headers] = (int32_t)now->content;
    }
    return 0;
}

/* What a record's headers take, as `max_bytes` counts; -1 in doubt. */
static int64_t headers_size(const struct record *record)
{
    const uint8_t *at = record->at;
    struct header header;
    int64_t size = 0;
    for (int64_t left = record->headers; left; left--) {
        at = kernel_header(at, record->end, &header);
        if (!at)
            return -1;
        size += 16 + header.key_size + header.value_size;
    }
    return at == record->end ? size : -1;
}

/* --- batches --------------------------------------------------------------------------------------------------- */

/* A batch as it is read. */
struct batch {
    const uint8_t *at, *end; /* of the records that are left */
    int64_t left;
    int64_t base_offset, base_timestamp, stamp;
    int append; /* `stamp` is that of all records */
    struct source source;
};

/* The columns' blocks as arrays, for the time that none of them grows. */
struct arrays {
    int64_t *offsets, *timestamps, *milliseconds;
    int32_t *batches, *key_places, *value_places, *header_places;
    uint8_t *keys, *values;
    int64_t key_room, value_room;
};

static inline struct arrays arrays_of(const struct columns *columns)
{
    const struct block *blocks = columns->blocks;
    struct arrays arrays = {
        .offsets = (int64_t *)blocks[OFFSETS].data,
        .timestamps = (int64_t *)blocks[TIMESTAMPS].data,
        .milliseconds = (int64_t *)blocks[MILLISECONDS].data,
        .batches = (int32_t *)blocks[BATCH_INDEX].data,
        .header_places = (int32_t *)blocks[HEADER_PLACES].data,
        .key_places = (int32_t *)blocks[KEY_PLACES].data,
        .value_places = (int32_t *)blocks[VALUE_PLACES].data,
        .keys = blocks[KEY_DATA].data,
        .values = blocks[VALUE_DATA].data,
        .key_room = (int64_t)blocks[KEY_DATA].room,
        .value_room = (int64_t)blocks[VALUE_DATA].room,
    };
    if (columns->row_room && !columns->now.rows) { /* where the first one's data begins */
        if (columns->wanted & WANT_HEADERS)
            arrays.header_places[0] = 0;
        if (columns->wanted & WANT_KEY)
            arrays.key_places[0] = 0;
        if (columns->wanted & WANT_VALUE)
            arrays.value_places[0] = 0;
    }
    return arrays;
}

/* Room for one more row and its data. */
static int reserve_record(struct columns *columns, int64_t key, int64_t value)
{
    struct block *blocks = columns->blocks;
    if (columns->now.rows == columns->row_room && columns_grow_rows(columns) < 0)
        return -1;
    return columns_reserve(columns, &blocks[KEY_DATA], (size_t)key) < 0 || columns_reserve(columns, &blocks[VALUE_DATA], (size_t)value) < 0
               ? -1 : 0;
}

/* Records into the columns until the batch ends (-1) or something comes in between. What is known of the table
   stands in variables of its own here: through a pointer the compiler would have to fear each byte written.
   `wanted` and `view` are the columns'; given as constants they make the loop that much shorter. */
static inline __attribute__((always_inline)) int read_records(
    struct columns *columns, struct batch *batch, const unsigned wanted, const int view)
{
    struct extent *now = &columns->now;
    struct arrays arrays = arrays_of(columns);
    const uint8_t *at = batch->at, *const end = batch->end;
    const int64_t most = columns->most;
    const int copy_key = !view && wanted & WANT_KEY, copy_value = !view && wanted & WANT_VALUE;
    int64_t row = now->rows, size = now->size, key = now->key, value = now->value, left = batch->left;
    int verdict = -1;
    for (; left; left--) {
        struct record record;
        const uint8_t *behind = kernel_record(at, end, batch->base_offset, batch->base_timestamp, &record);
        int64_t more = behind && record.headers ? headers_size(&record) : 0;
        if (!behind || more < 0) {
            verdict = NOT_MINE;
            break;
        }
        int64_t grown = size + 32 + record.key_size + record.value_size + more;
        if (grown > most && row) {
            verdict = TABLE_FULL;
            break;
        }
        if (row == columns->row_room || (copy_key && key + record.key_size > arrays.key_room)
            || (copy_value && value + record.value_size > arrays.value_room)) {
            now->rows = row;
            now->size = size;
            if (reserve_record(
                    columns, copy_key ? key + record.key_size : 0, copy_value ? value + record.value_size : 0) < 0) {
                verdict = NO_MEMORY;
                break;
            }
            arrays = arrays_of(columns);
        }
        if (wanted & WANT_HEADERS) {
            int failed = record.headers ? put_headers(columns, &record) : 0;
            if (failed) {
                verdict = failed < 0 ? NO_MEMORY : NOT_MINE;
                break;
            }
            arrays.header_places[row + 1] = (int32_t)now->headers;
        }
        int64_t stamp = batch->append ? batch->stamp : record.timestamp;
        if (wanted & WANT_OFFSET)
            arrays.offsets[row] = record.offset;
        if (wanted & WANT_MILLISECONDS)
            arrays.milliseconds[row] = stamp;
        if (wanted & WANT_TIMESTAMP) {
            if (stamp == -1 || stamp > MICROSECONDS || stamp < -MICROSECONDS) {
                put_null(columns, TIMESTAMP_BITS, row, &now->timestamp_nulls);
                stamp = 0;
            }
            arrays.timestamps[row] = stamp * 1000;
        }
        if (wanted & WANT_BATCH)
            arrays.batches[row] = (int32_t)now->batches - 1;
        if (wanted & WANT_KEY) {
            if (!record.key)
                put_null(columns, KEY_BITS, row, &now->key_nulls);
            if (view) {
                put_view((struct view *)arrays.key_places + row, record.key, record.key_size, batch->source);
            } else {
                copy(arrays.keys + key, record.key, record.key_size, end);
                key += record.key_size;
                arrays.key_places[row + 1] = (int32_t)key;
            }
        }
        if (wanted & WANT_VALUE) {
            if (!record.value)
                put_null(columns, VALUE_BITS, row, &now->value_nulls);
            if (view) {
                put_view((struct view *)arrays.value_places + row, record.value, record.value_size, batch->source);
            } else {
                copy(arrays.values + value, record.value, record.value_size, end);
                value += record.value_size;
                arrays.value_places[row + 1] = (int32_t)value;
            }
        }
        row++;
        size = grown;
        at = behind;
    }
    now->rows = row;
    now->size = size;
    now->key = key;
    now->value = value;
    batch->at = at;
    batch->left = left;
    return verdict;
}

#define USUAL (WANT_OFFSET | WANT_TIMESTAMP | WANT_KEY | WANT_VALUE | WANT_HEADERS)

static int read_any(struct columns *columns, struct batch *batch)
{
    if (columns->wanted == USUAL)
        return columns->view ? read_records(columns, batch, USUAL, 1) : read_records(columns, batch, USUAL, 0);
    return read_records(columns, batch, columns->wanted, columns->view);
}

/* The batch whose header is at `head`, its records at `body`: -1 if it was read to its end, or why not. */
static int read_batch(struct columns *columns, const uint8_t *head, size_t position, const uint8_t *body,
                      const uint8_t *end, struct source source)
{
    const struct extent before = columns->now;
    const int64_t count = number(head + 57, 4);
    struct batch batch = {
        .at = body + columns->behind,
        .end = end,
        .left = count - columns->done,
        .base_offset = number(head, 8),
        .base_timestamp = number(head + 27, 8),
        .stamp = number(head + 35, 8),
        .append = head[22] & 8,
        .source = source,
    };
    if (columns->wanted & WANT_BATCH && batch.left) {
        if (columns_reserve(columns, &columns->blocks[BATCHES], (size_t)(columns->now.batches + 1) * 8) < 0)
            return NO_MEMORY;
        ((int64_t *)columns->blocks[BATCHES].data)[columns->now.batches++] = (int64_t)position;
    }
    int verdict = read_any(columns, &batch);
    if (verdict == -1 && batch.at != end)
        verdict = NOT_MINE;
    if (verdict == TABLE_FULL && columns->whole && !columns->done) {
        int64_t sound;
        if (kernel_walk(batch.at, end, batch.left, &sound) != end || sound != batch.left)
            verdict = NOT_MINE;
    }
    if (verdict == NOT_MINE || verdict == NO_MEMORY) {
        columns_forget(columns, &before);
        return verdict;
    }
    columns->done = count - batch.left;
    columns->behind = (size_t)(batch.at - body);
    return verdict;
}

size_t columns_span(const uint8_t *data, size_t size, size_t position, size_t most)
{
    size_t end = position;
    while (end <= size && size - end >= HEADER && data[end + 16] == 2 && !(data[end + 22] & 7)) {
        int64_t length = number(data + end + 8, 4) + 12;
        if (length < HEADER || (uint64_t)length > size - end
            || (end > position && end + (size_t)length - position > most))
            break;
        end += (size_t)length;
    }
    return end;
}

int columns_run(struct columns *columns, const uint8_t *data, size_t size, size_t *position, const uint8_t *body,
                size_t body_size, struct source source)
{
    for (;;) {
        const uint8_t *head = data + *position;
        if (columns->batch != *position) {
            columns->batch = *position;
            columns->done = 0;
            columns->behind = 0;
        }
        if (*position > size || size - *position < HEADER || head[16] != 2)
            return NOT_MINE;
        int64_t length = number(head + 8, 4) + 12, count = number(head + 57, 4);
        if (length < HEADER || length > INT32_MAX || (uint64_t)length > size - *position || count < 0 || (!body && head[22] & 7))
            return NOT_MINE;
        const uint8_t *records = body ? body : head + HEADER;
        size_t bytes = body ? body_size : (size_t)length - HEADER;
        columns->hint = (int64_t)(body ? body_size : size - *position) + columns->now.size;
        if (columns->hint > columns->most)
            columns->hint = columns->most;
        if ((uint64_t)count * LEAST_RECORD > bytes || columns->done > count || columns->behind > bytes)
            return NOT_MINE;
        if (!body && !columns->done
            && crc32c_ahead(0, head + 21, (size_t)length - 21, CRC32C_AHEAD) != (uint32_t)number(head + 17, 4))
            return NOT_MINE;
        int verdict = read_batch(columns, head, *position, records, records + bytes, source);
        if (verdict != -1)
            return verdict;
        columns->last = (int64_t)*position;
        *position += (size_t)length;
        if (body)
            return NOT_MINE;
    }
}
