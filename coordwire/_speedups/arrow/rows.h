/* What columns.c and rows.c have in common: a batch as its records go into the columns. */

#ifndef COORDWIRE_ARROW_ROWS_H
#define COORDWIRE_ARROW_ROWS_H

#include "columns.h"
#include "../records/record_parser.h"

struct batch {
    const uint8_t *at, *end; /* of the records that are left */
    int64_t left;
    int64_t base_offset, base_timestamp, stamp;
    int append; /* `stamp` is that of all records */
    struct source source;
};

/* Records into the columns until the batch ends (-1) or something comes in between, which is reported. */
int columns_rows(struct columns *columns, struct batch *batch);

/* --- headers.c --- */

/* A record's headers into their columns, all or none: 0, -1 without memory, 1 in doubt (the bytes changed while they
   were read, or Arrow's int32 offsets can't reach so far). */
int columns_headers(struct columns *columns, const struct record *record);

/* What they take, as `max_bytes` counts; -1 in doubt. */
int64_t columns_headers_size(const struct record *record);

static inline void clear_bit(uint8_t *bits, int64_t at)
{
    bits[at >> 3] &= (uint8_t)~(1 << (at & 7));
}

#endif
