/* The memory of the Arrow kernel's columns: how it grows, and what of it is in use; see columns.c.

   Strategy: a block grows to what a full table will take if it goes on as it began, and large ones are of huge
   pages, since fresh pages cost more than the decoding. Rules: `allocate` is the only function that gives a block
   memory; it takes what is needed beside what is foreseen and never gives less than the former, so that an estimate
   may be as wrong as it likes. After a block's `room` there are SLACK bytes more. */

#define _DEFAULT_SOURCE

#include "columns.h"

#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define FORESEEN (32 << 10) /* bytes of a table from which on its shape is known */
#define HUGE_PAGE (2 << 20)
#define MOST_NEEDED (SIZE_MAX / 8) /* bytes, so that no sum overflows */

/* Memory for `room` bytes and SLACK with what a block holds; NULL if there is none, and nothing has changed. Large
   ones are of huge pages where the system has them to give. */
static uint8_t *move(const struct block *block, size_t room)
{
    size_t size = room + SLACK;
#ifdef MADV_HUGEPAGE
    if (size >= HUGE_PAGE) {
        size = (size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
        uint8_t *data = aligned_alloc(HUGE_PAGE, size);
        if (!data)
            return NULL;
        (void)madvise(data, size, MADV_HUGEPAGE); /* a wish */
        if (block->room)
            memcpy(data, block->data, block->room);
        free(block->data);
        return data;
    }
#endif
    return realloc(block->data, size);
}

/* Give a block room for `need` bytes at least, for `foreseen` if there is so much memory; 0, or -1 without any. */
static int allocate(struct block *block, size_t need, size_t foreseen)
{
    if (need > MOST_NEEDED)
        return -1;
    size_t room = foreseen > MOST_NEEDED ? MOST_NEEDED : foreseen > need ? foreseen : need;
    uint8_t *data = move(block, room);
    if (!data && room > need)
        data = move(block, room = need);
    if (!data)
        return -1;
    block->data = data;
    block->room = room;
    return 0;
}

/* What a block that needs `need` bytes now will take in a full table if that goes on as it began, which is at most
   the table's size unless one record is more than that, and a part more. Only an estimate: rows count for 32 bytes
   in `now.size` whatever they take, so that it may be less than `need`. */
static size_t foresee(const struct columns *columns, size_t need)
{
    double foreseen = (double)need;
    if (columns->now.size > FORESEEN && (double)columns->hint > foreseen) {
        foreseen *= (double)columns->hint / (double)columns->now.size;
        if (foreseen > (double)columns->hint)
            foreseen = (double)columns->hint;
    }
    if (foreseen < (double)need)
        foreseen = (double)need;
    return (size_t)(foreseen * 1.25) + 4096;
}

int columns_grow(const struct columns *columns, struct block *block, size_t need)
{
    return allocate(block, need, foresee(columns, need));
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

int columns_grow_headers(struct columns *columns, int64_t need)
{
    struct block *blocks = columns->blocks;
    const int64_t room = need + need / 2 + 64;
    if (columns_reserve(columns, &blocks[NAME_PLACES], (size_t)(room + 1) * 4) < 0
        || columns_reserve(columns, &blocks[CONTENT_PLACES], (size_t)(room + 1) * 4) < 0
        || columns_reserve(columns, &blocks[CONTENT_BITS], (size_t)room / 8 + 1) < 0)
        return -1;
    columns_set_bits(blocks[CONTENT_BITS].data, columns->header_room, room);
    columns->header_room = room;
    return 0;
}

void columns_next(struct columns *columns)
{
    columns->row_room = columns->header_room = 0; /* blocks may be others now, and their bits anything */
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
        return (size_t)now->batches * sizeof(struct noted);
    default:
        return (size_t)now->rows * role_width(columns, role);
    }
}

/* Back to what the table had before: the bits of the rows and headers that go are set again, and no others have
   been cleared. */
void columns_forget(struct columns *columns, const struct extent *before)
{
    const struct extent *now = &columns->now;
    for (int role = TIMESTAMP_BITS; role <= VALUE_BITS; role++)
        if (columns->wanted & asks[role] && now->rows > before->rows)
            columns_set_bits(columns->blocks[role].data, before->rows, now->rows);
    if (now->headers > before->headers)
        columns_set_bits(columns->blocks[CONTENT_BITS].data, before->headers, now->headers);
    columns->now = *before;
}
