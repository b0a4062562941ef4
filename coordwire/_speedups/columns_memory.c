/* The memory of the Arrow kernel's columns: how it grows, and what of it is in use; see columns.c.

   Strategy: a block grows to what a full table will take if it goes on as it began, and large ones are of huge
   pages, since fresh pages cost more than the decoding. Rule: behind a block's `room` there are SLACK bytes more. */

#define _DEFAULT_SOURCE

#include "columns.h"

#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define FORESEEN (32 << 10) /* bytes of a table from which on its shape is known */
#define HUGE_PAGE (2 << 20)

/* Other memory for what a block holds. Large ones are of huge pages where the system has them to give. */
static uint8_t *move(const struct block *block, size_t room)
{
#ifdef MADV_HUGEPAGE
    if (room >= HUGE_PAGE) {
        room = (room + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
        uint8_t *data = aligned_alloc(HUGE_PAGE, room);
        if (!data)
            return NULL;
        (void)madvise(data, room, MADV_HUGEPAGE); /* a wish */
        if (block->room)
            memcpy(data, block->data, block->room);
        free(block->data);
        return data;
    }
#endif
    return realloc(block->data, room);
}

/* Room for `room` bytes and more: as much as a full table will take if it goes on like this, which is less than
   its size unless one record is more than a table. */
int columns_grow(const struct columns *columns, struct block *block, size_t room)
{
    if (columns->now.size > FORESEEN && (size_t)columns->hint > room) {
        double foreseen = (double)room * (double)columns->hint / (double)columns->now.size;
        room = foreseen < (double)columns->hint ? (size_t)foreseen : (size_t)columns->hint;
    }
    room += room / 4 + 4096;
    uint8_t *data = move(block, room + SLACK);
    if (!data)
        return -1;
    block->data = data;
    block->room = room;
    return 0;
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

void columns_set_bits(uint8_t *bits, int64_t from, int64_t to)
{
    for (; from < to && from & 7; from++)
        bits[from >> 3] |= (uint8_t)(1 << (from & 7));
    if (from < to)
        memset(bits + (from >> 3), 255, (size_t)((to + 7) / 8 - from / 8));
}

int columns_grow_rows(struct columns *columns)
{
    int64_t room = columns->row_room + columns->row_room / 2 + 1024;
    for (int role = 0; role < ROW_ROLES; role++) {
        if (!(columns->wanted & asks[role]))
            continue;
        struct block *block = &columns->blocks[role];
        int bits = role >= TIMESTAMP_BITS;
        size_t need = bits ? (size_t)room / 8 + 1 : (size_t)(room + 1) * role_width(columns, role);
        if (columns_reserve(columns, block, need) < 0)
            return -1;
        if (bits)
            columns_set_bits(block->data, columns->row_room, room);
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

/* Back to what the table had before: bits are set again. */
void columns_forget(struct columns *columns, const struct extent *before)
{
    for (int role = TIMESTAMP_BITS; role <= VALUE_BITS; role++)
        if (columns->wanted & asks[role] && columns->row_room)
            columns_set_bits(columns->blocks[role].data, before->rows, columns->row_room);
    if (columns->now.headers && columns->blocks[CONTENT_BITS].data)
        columns_set_bits(columns->blocks[CONTENT_BITS].data, before->headers,
                 (int64_t)columns->blocks[CONTENT_BITS].room * 8);
    columns->now = *before;
}
