/* Headers into the columns of their own: names as texts, contents as bytes, one after the other for all rows. */

#include "rows.h"

#include <string.h>

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

/* As many of a record's headers as can be read: 0, or as `columns_headers` answers. */
static int put_headers(struct columns *columns, const struct record *record)
{
    struct block *blocks = columns->blocks;
    struct extent *now = &columns->now;
    const uint8_t *at = record->at;
    if (columns_reserve_headers(columns, now->headers + record->headers) < 0)
        return -1;
    int32_t *names = (int32_t *)blocks[NAME_PLACES].data, *contents = (int32_t *)blocks[CONTENT_PLACES].data;
    for (int64_t remaining = record->headers; remaining; remaining--) {
        struct header header;
        at = kernel_header(at, record->end, &header);
        if (!at || now->name + 3 * header.key_size > INT32_MAX || now->content + header.value_size > INT32_MAX)
            return 1;
        if (columns_reserve(columns, &blocks[NAME_DATA], (size_t)(now->name + 3 * header.key_size)) < 0
            || columns_reserve(columns, &blocks[CONTENT_DATA], (size_t)(now->content + header.value_size)) < 0)
            return -1;
        CHECK(now->headers < columns->header_room);
        names[now->headers] = (int32_t)now->name;
        contents[now->headers] = (int32_t)now->content;
        now->name += put_utf8(blocks[NAME_DATA].data + now->name, header.key, header.key_size);
        if (!header.value) {
            clear_bit(blocks[CONTENT_BITS].data, now->headers);
            now->content_nulls++;
        } else if (header.value_size) { /* without bytes there may be no block */
            memcpy(blocks[CONTENT_DATA].data + now->content, header.value, (size_t)header.value_size);
        }
        now->content += header.value_size;
        now->headers++;
        names[now->headers] = (int32_t)now->name;
        contents[now->headers] = (int32_t)now->content;
    }
    return 0;
}

int columns_headers(struct columns *columns, const struct record *record)
{
    const struct extent before = columns->now;
    int failed = put_headers(columns, record);
    if (failed)
        columns_forget(columns, &before);
    return failed;
}

int64_t columns_headers_size(const struct record *record)
{
    const uint8_t *at = record->at;
    struct header header;
    int64_t size = 0;
    for (int64_t remaining = record->headers; remaining; remaining--) {
        at = kernel_header(at, record->end, &header);
        if (!at)
            return -1;
        size += 16 + header.key_size + header.value_size;
    }
    return at == record->end ? size : -1;
}
