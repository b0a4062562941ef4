/* The Arrow kernel: batches of magic 2 straight into columns, in one pass.

   Strategy: batch by batch, the checksum first, which brings the bytes into the cache, then record by record into
   memory that the table before left behind. Validity bits are all set beforehand and cleared for nulls. Rules:
   whatever isn't an uncompressed batch of magic 2 with a right checksum and sound records is left to Python, which
   words the refusal; a table ends before the record that would make it larger than it may be; offsets of data are
   32 bits, which `most` and the size of a record keep them in. Nothing is built that isn't asked for. */

#include "columns.h"

#include <stdlib.h>
#include <string.h>

#include "crc32c.h"
#include "kernel.h"

#define HEADER 61
#define SLACK 64 /* bytes behind a block's used ones that copying may write */
#define MICROSECONDS (INT64_MAX / 1000)
#define SLICE_BITS 30

struct view {
    int32_t size;
    union {
        uint8_t all[12];
        struct {
            uint8_t prefix[4];
            int32_t buffer, at;
        } far;
    } of;
};

static int64_t number(const uint8_t *at, int size)
{
    uint64_t value = at[0] & 128 ? UINT64_MAX : 0;
    for (int index = 0; index < size; index++)
        value = value << 8 | at[index];
    return (int64_t)value;
}

/* --- memory --------------------------------------------------------------------------------------------------- */

static int grow(struct block *block, size_t room)
{
    room += room / 2 + 4096;
    uint8_t *data = realloc(block->data, room + SLACK);
    if (!data)
        return -1;
    block->data = data;
    block->room = room;
    return 0;
}

static inline int reserve(struct block *block, size_t room)
{
    return room <= block->room ? 0 : grow(block, room);
}

static size_t role_width(const struct columns *columns, int role)
{
    switch (role) {
    case OFFSETS:
    case TIMESTAMPS:
    case MILLISECONDS:
        return 8;
    case KEY_PLACES:
    case VALUE_PLACES:
        return columns->view ? sizeof(struct view) : 4;
    default:
        return 4;
    }
}

static const unsigned asks[ROW_ROLES] = {
    [OFFSETS] = WANT_OFFSET,       [TIMESTAMPS] = WANT_TIMESTAMP,    [MILLISECONDS] = WANT_MILLISECONDS,
    [BATCH_INDEX] = WANT_BATCH,    [KEY_PLACES] = WANT_KEY,          [VALUE_PLACES] = WANT_VALUE,
    [HEADER_PLACES] = WANT_HEADERS, [TIMESTAMP_BITS] = WANT_TIMESTAMP, [KEY_BITS] = WANT_KEY,
    [VALUE_BITS] = WANT_VALUE,
};

/* Bits from `from` on are set. */
static void set_bits(uint8_t *bits, int64_t from, int64_t to)
{
    for (; from < to && from & 7; from++)
        bits[from >> 3] |= (uint8_t)(1 << (from & 7));
    if (from < to)
        memset(bits + (from >> 3), 255, (size_t)((to + 7) / 8 - from / 8));
}

static inline void clear_bit(uint8_t *bits, int64_t at)
{
    bits[at >> 3] &= (uint8_t)~(1 << (at & 7));
}

static int grow_rows(struct columns *columns)
{
    int64_t room = columns->row_room + columns->row_room / 2 + 1024;
    for (int role = 0; role < ROW_ROLES; role++) {
        if (!(columns->wanted & asks[role]))
            continue;
        struct block *block = &columns->blocks[role];
        int bits = role >= TIMESTAMP_BITS;
        size_t need = bits ? (size_t)room / 8 + 1 : (size_t)(room + 1) * role_width(columns, role);
        if (reserve(block, need) < 0)
            return -1;
        if (bits)
            set_bits(block->data, columns->row_room, room);
    }
    columns->row_room = room;
    return 0;
}

void columns_next(struct columns *columns)
{
    columns->row_room = 0; /* blocks may be others now, and their bits anything */
    columns->now = (struct extent){0};
}

size_t columns_used(const struct columns *columns, enum role role)
{
    const struct extent *now = &columns->now;
    switch (role) {
    case KEY_PLACES:
    case VALUE_PLACES:
        return (size_t)(now->rows + !columns->view) * role_width(columns, role);
    case HEADER_PLACES:
        return (size_t)(now->rows + 1) * 4;
    case TIMESTAMP_BITS:
        return now->timestamp_nulls ? (size_t)(now->rows + 7) / 8 : 0;
    case KEY_BITS:
        return now->key_nulls ? (size_t)(now->rows + 7) / 8 : 0;
    case VALUE_BITS:
        return now->value_nulls ? (size_t)(now->rows + 7) / 8 : 0;
    case KEY_DATA:
        return (size_t)now->key;
    case VALUE_DATA:
        return (size_t)now->value;
    case NAME_PLACES:
    case CONTENT_PLACES:
        return (size_t)(now->headers + 1) * 4;
    case NAME_DATA:
        return (size_t)now->name;
    case CONTENT_DATA:
        return (size_t)now->content;
    case CONTENT_BITS:
        return now->content_nulls ? (size_t)(now->headers + 7) / 8 : 0;
    case BATCHES:
        return (size_t)now->batches * 8;
    default:
        return (size_t)now->rows * role_width(columns, role);
    }
}

/* --- one record ------------------------------------------------------------------------------------------------ */

/* Copies; up to 31 bytes more may be read before `end` and written. */
static inline void copy(uint8_t *to, const uint8_t *from, int32_t size, const uint8_t *end)
{
    if (size <= 256 && size + 32 <= end - from) {
        for (int32_t at = 0; at < size; at += 32)
            memcpy(to + at, from + at, 32);
    } else {
        memcpy(to, from, (size_t)size);
    }
}

static inline void put_view(struct view *view, const uint8_t *data, int32_t size, struct source source)
{
    view->size = size;
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

/* A key or value into its column. */
static inline int put_bytes(struct columns *columns, enum role places, enum role bits, enum role data,
                            const uint8_t *bytes, int32_t size, int64_t *used, int64_t *nulls,
                            const uint8_t *end, struct source source)
{
    int64_t row = columns->now.rows;
    if (!bytes) {
        clear_bit(columns->blocks[bits].data, row);
        ++*nulls;
    }
    if (columns->view) {
        put_view((struct view *)columns->blocks[places].data + row, bytes, size, source);
        return 0;
    }
    int32_t *place = (int32_t *)columns->blocks[places].data + row;
    struct block *block = &columns->blocks[data];
    place[0] = (int32_t)*used;
    if (reserve(block, (size_t)(*used + size)) < 0)
        return -1;
    if (size)
        copy(block->data + *used, bytes, size, end);
    *used += size;
    place[1] = (int32_t)*used;
    return 0;
}

/* What of a header key isn't UTF-8 becomes U+FFFD, a maximal subpart each, as Unicode recommends: the bytes
   written, three times `size` at most. */
static int64_t put_utf8(uint8_t *to, const uint8_t *from, int32_t size)
{
    uint8_t *start = to;
    for (int32_t at = 0; at < size;) {
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
    if (reserve(&blocks[NAME_PLACES], (need + 1) * 4) < 0 || reserve(&blocks[CONTENT_PLACES], (need + 1) * 4) < 0
        || reserve(&blocks[CONTENT_BITS], need / 8 + 1) < 0)
        return -1;
    if (blocks[CONTENT_BITS].room != bits || !now->headers)
        set_bits(blocks[CONTENT_BITS].data, now->headers, (int64_t)blocks[CONTENT_BITS].room * 8);
    int32_t *names = (int32_t *)blocks[NAME_PLACES].data, *contents = (int32_t *)blocks[CONTENT_PLACES].data;
    for (int32_t left = record->headers; left; left--) {
        struct header header;
        at = kernel_header(at, record->end, &header);
        if (!at || now->name + 3 * (int64_t)header.key_size > INT32_MAX)
            return 1;
        if (reserve(&blocks[NAME_DATA], (size_t)(now->name + 3 * (int64_t)header.key_size)) < 0
            || reserve(&blocks[CONTENT_DATA], (size_t)(now->content + header.value_size)) < 0)
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

/* A record into the columns, which have room for its row: as `put_headers` answers. */
static inline int put_record(
    struct columns *columns, const struct record *record, const uint8_t *end, struct source source)
{
    struct block *blocks = columns->blocks;
    struct extent *now = &columns->now;
    int64_t row = now->rows;
    if (columns->wanted & WANT_OFFSET)
        ((int64_t *)blocks[OFFSETS].data)[row] = record->offset;
    if (columns->wanted & WANT_TIMESTAMP) {
        int64_t stamp = record->timestamp;
        if (stamp == -1 || stamp > MICROSECONDS || stamp < -MICROSECONDS) {
            clear_bit(blocks[TIMESTAMP_BITS].data, row);
            now->timestamp_nulls++;
            stamp = 0;
        }
        ((int64_t *)blocks[TIMESTAMPS].data)[row] = stamp * 1000;
    }
    if (columns->wanted & WANT_MILLISECONDS)
        ((int64_t *)blocks[MILLISECONDS].data)[row] = record->timestamp;
    if (columns->wanted & WANT_BATCH)
        ((int32_t *)blocks[BATCH_INDEX].data)[row] = (int32_t)now->batches - 1;
    if (columns->wanted & WANT_KEY
        && put_bytes(columns, KEY_PLACES, KEY_BITS, KEY_DATA, record->key, record->key_size, &now->key,
                     &now->key_nulls, end, source) < 0)
        return -1;
    if (columns->wanted & WANT_VALUE
        && put_bytes(columns, VALUE_PLACES, VALUE_BITS, VALUE_DATA, record->value, record->value_size, &now->value,
                     &now->value_nulls, end, source) < 0)
        return -1;
    if (columns->wanted & WANT_HEADERS) {
        int32_t *place = (int32_t *)blocks[HEADER_PLACES].data + row;
        place[0] = (int32_t)now->headers;
        int verdict = record->headers ? put_headers(columns, record) : 0;
        if (verdict)
            return verdict;
        place[1] = (int32_t)now->headers;
    }
    now->rows++;
    return 0;
}

/* What a record's headers take, as `max_bytes` counts; -1 in doubt. */
static int64_t headers_size(const struct record *record)
{
    const uint8_t *at = record->at;
    struct header header;
    int64_t size = 0;
    for (int32_t left = record->headers; left; left--) {
        at = kernel_header(at, record->end, &header);
        if (!at)
            return -1;
        size += 16 + header.key_size + header.value_size;
    }
    return at == record->end ? size : -1;
}

/* --- batches --------------------------------------------------------------------------------------------------- */

/* Back to what the table had before: bits are set again. */
static void forget(struct columns *columns, const struct extent *before)
{
    for (int role = TIMESTAMP_BITS; role <= VALUE_BITS; role++)
        if (columns->wanted & asks[role] && columns->row_room)
            set_bits(columns->blocks[role].data, before->rows, columns->row_room);
    if (columns->now.headers && columns->blocks[CONTENT_BITS].data)
        set_bits(columns->blocks[CONTENT_BITS].data, before->headers,
                 (int64_t)columns->blocks[CONTENT_BITS].room * 8);
    columns->now = *before;
}

/* The batch whose header is at `head`, its records at `body`: -1 if it was read to its end, or why not. */
static int read_batch(struct columns *columns, const uint8_t *head, size_t position, const uint8_t *body,
                      const uint8_t *end, struct source source)
{
    const struct extent before = columns->now;
    const int64_t base_offset = number(head, 8), base_timestamp = number(head + 27, 8);
    const int64_t stamp = number(head + 35, 8), count = number(head + 57, 4);
    const int append = head[22] & 8;
    const uint8_t *at = body + columns->behind;
    int64_t done = columns->done;
    int verdict = -1;
    if (columns->wanted & WANT_BATCH && done < count) {
        if (reserve(&columns->blocks[BATCHES], (size_t)(columns->now.batches + 1) * 8) < 0)
            return NO_MEMORY;
        ((int64_t *)columns->blocks[BATCHES].data)[columns->now.batches++] = (int64_t)position;
    }
    while (done < count) {
        struct record record;
        const uint8_t *behind = kernel_record(at, end, base_offset, base_timestamp, &record);
        int64_t more = behind && record.headers ? headers_size(&record) : 0;
        if (!behind || more < 0) {
            verdict = NOT_MINE;
            break;
        }
        int64_t size = columns->now.size + 32 + record.key_size + record.value_size + more;
        if (size > columns->most && columns->now.rows) {
            verdict = TABLE_FULL;
            break;
        }
        if (columns->now.rows == columns->row_room && grow_rows(columns) < 0) {
            verdict = NO_MEMORY;
            break;
        }
        if (append)
            record.timestamp = stamp;
        int failed = put_record(columns, &record, end, source);
        if (failed) {
            verdict = failed < 0 ? NO_MEMORY : NOT_MINE;
            break;
        }
        columns->now.size = size;
        at = behind;
        done++;
    }
    if (verdict == -1 && at != end)
        verdict = NOT_MINE;
    if (verdict == TABLE_FULL && columns->whole && !columns->done) {
        int64_t sound;
        if (kernel_walk(at, end, count - done, &sound) != end || sound != count - done)
            verdict = NOT_MINE;
    }
    if (verdict == NOT_MINE || verdict == NO_MEMORY) {
        forget(columns, &before);
        return verdict;
    }
    columns->done = done;
    columns->behind = (size_t)(at - body);
    return verdict;
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
        if ((uint64_t)count * LEAST_RECORD > bytes || columns->done > count || columns->behind > bytes)
            return NOT_MINE;
        if (!body && !columns->done
            && crc32c(0, head + 21, (size_t)length - 21) != (uint32_t)number(head + 17, 4))
            return NOT_MINE;
        int verdict = read_batch(columns, head, *position, records, records + bytes, source);
        if (verdict != -1)
            return verdict;
        *position += (size_t)length;
        if (body)
            return NOT_MINE;
    }
}
