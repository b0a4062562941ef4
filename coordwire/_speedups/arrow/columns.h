/* Records as Arrow's columns: memory that grows, one block a role; see columns.c. Knows nothing of CPython. */

#ifndef COORDWIRE_ARROW_COLUMNS_H
#define COORDWIRE_ARROW_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

/* What each block holds. Those up to ROW_ROLES have one element a row (or one more), of `role_width` bytes. */
enum role {
    OFFSETS,
    TIMESTAMPS, /* microseconds */
    MILLISECONDS,
    BATCH_INDEX, /* of the row's batch among those of the table: int32 */
    KEY_PLACES,  /* int32, one more than rows; or Arrow's views */
    VALUE_PLACES,
    HEADER_PLACES,
    TIMESTAMP_BITS, /* validity: an element is 8 rows */
    KEY_BITS,
    VALUE_BITS,
    ROW_ROLES,
    KEY_DATA = ROW_ROLES,
    VALUE_DATA,
    NAME_PLACES, /* of header keys, one more than there are headers */
    NAME_DATA,
    CONTENT_PLACES, /* of header values */
    CONTENT_DATA,
    CONTENT_BITS,
    BATCHES, /* the table's batches: `struct noted` */
    ROLES
};

/* Columns that can be asked for. */
enum {
    WANT_OFFSET = 1,
    WANT_TIMESTAMP = 2,
    WANT_MILLISECONDS = 4,
    WANT_BATCH = 8,
    WANT_KEY = 16,
    WANT_VALUE = 32,
    WANT_HEADERS = 64
};

struct block {
    uint8_t *data;
    size_t room; /* bytes */
};

#define HEADER 61 /* bytes of a batch before its records */
#define LOG_OVERHEAD 12 /* of which its length doesn't count so many */

/* A batch as it was when it was read: where it begins, and its header. */
struct noted {
    int64_t position;
    uint8_t head[64]; /* HEADER of them */
};

/* What a table has so far. */
struct extent {
    int64_t rows, headers, batches;
    int64_t size; /* as `max_bytes` counts */
    int64_t key, value, name, content; /* bytes of data */
    int64_t key_nulls, value_nulls, content_nulls, timestamp_nulls;
};

struct columns {
    unsigned wanted;
    int view;     /* keys and values as views into what is read */
    int whole;    /* nothing of a batch is kept unless all of it is sound; else what is before the first bad record */
    int64_t most; /* a table's size */
    int64_t hint; /* what the table may come to, from the bytes that are left */
    struct block blocks[ROLES];
    int64_t row_room, header_room; /* elements for which all blocks have room, their validity bits set */
    struct extent now;
    int64_t last;  /* the position of the last batch read to its end, -1 for none, */
    int64_t last_offset; /* and that of its last record */
    size_t batch;  /* the position of the batch at hand */
    int64_t done;  /* its records that are in tables */
    size_t done_bytes; /* and their bytes */
};

/* Where the bytes of a batch's records are, and where views find them: in 1 GB slices from number `buffer` on. */
struct source {
    const uint8_t *base;
    int32_t buffer;
};

/* One of Arrow's views: short bytes themselves, or where they are. */
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

/* Why `columns_run` came back. */
enum { TABLE_FULL, NOT_MINE, NO_MEMORY };

/* Read batch after batch from `*position` on, which goes on after each. Stops before what isn't an uncompressed
   sound batch of magic 2. With `body`, the records of a compressed batch, reads that one batch only. */
int columns_run(struct columns *columns, const uint8_t *data, size_t size, size_t *position, const uint8_t *body,
                size_t body_size, struct source source);

/* Where the uncompressed batches of magic 2 end that begin at `position`, as many as `most` bytes hold, or one;
   by their lengths alone. */
size_t columns_span(const uint8_t *data, size_t size, size_t position, size_t most);

/* Begin the next table: `columns->now` was taken. */
void columns_next(struct columns *columns);

/* Bytes that a block has in use. */
size_t columns_used(const struct columns *columns, enum role role);

/* --- memory: memory.c --- */

#define SLACK 96 /* bytes after a block's room that copying may write */

/* Checked in the builds with assertions, which the sanitizers' are. */
#ifdef COORDWIRE_DEBUG
#undef NDEBUG
#include <assert.h>
#define CHECK(condition) assert(condition)
#else
#define CHECK(condition) ((void)0)
#endif

/* Give a block room for at least `need` bytes; 0, or -1 without memory. */
int columns_grow(const struct columns *columns, struct block *block, size_t need);

/* See to it that a block has room for at least `need` bytes; 0, or -1 without memory. */
static inline int columns_reserve(const struct columns *columns, struct block *block, size_t need)
{
    if (need > block->room && columns_grow(columns, block, need) < 0)
        return -1;
    CHECK(need <= block->room);
    return 0;
}

/* Room for more rows, their validity bits set; 0, or -1 without memory. */
int columns_grow_rows(struct columns *columns);

/* The same for `need` headers in all. */
int columns_grow_headers(struct columns *columns, int64_t need);

static inline int columns_reserve_headers(struct columns *columns, int64_t need)
{
    return need <= columns->header_room ? 0 : columns_grow_headers(columns, need);
}

/* Set the bits from `from` up to `to`, and perhaps some after. */
void columns_set_bits(uint8_t *bits, int64_t from, int64_t to);

/* Back to what the table had before. */
void columns_forget(struct columns *columns, const struct extent *before);

#endif
