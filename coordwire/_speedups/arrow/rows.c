/* A batch's records into columns, two ways.

   Strategy: the slow path takes any record, and looks before each one whether there is room for it and whether
   the table is full. The fast path takes a stretch of records for which all of that was seen beforehand: none
   of them has headers, a long number or a timestamp that might be none, and all of them fit, however their bytes
   are parted between keys and values. Whatever it doesn't accept it leaves to the slow path, which goes some
   records on. Rules: both put down the same; `wanted` and `view` are the columns', as constants they make a loop
   that much shorter. */

#include "rows.h"

#include <string.h>

#include "../records/record_parser.h"
#include "put_data.h"

#define MICROSECONDS (INT64_MAX / 1000)
#define LEAST_STEPS 8 /* records the slow path before the fast path is tried again, */
#define MOST_STEPS 512 /* ever more if that is in vain */

/* A null in a column of keys or values; `row` is not counted yet. */
static void put_null(struct columns *columns, enum role bits, int64_t row, int64_t *nulls)
{
    clear_bit(columns->blocks[bits].data, row);
    ++*nulls;
}

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
    if (columns_reserve(columns, &blocks[KEY_DATA], (size_t)key) < 0)
        return -1;
    return columns_reserve(columns, &blocks[VALUE_DATA], (size_t)value);
}

/* --- the slow path --- */

/* So many records: -1 if nothing came in between. What is known of the table is in variables of its
   own here: through a pointer the compiler would have to fear each byte written. */
ALWAYS_INLINE int slow_path(
    struct columns *columns, struct batch *batch, int steps, const unsigned wanted, const int view)
{
    struct extent *now = &columns->now;
    struct arrays arrays = arrays_of(columns);
    const uint8_t *at = batch->at, *const end = batch->end;
    const int64_t most = columns->most;
    const int copy_key = !view && wanted & WANT_KEY, copy_value = !view && wanted & WANT_VALUE;
    int64_t row = now->rows, size = now->size, key = now->key, value = now->value, left = batch->left;
    int verdict = -1;
    for (; left && steps; left--, steps--) {
        struct record record;
        const uint8_t *after = kernel_record(at, end, batch->base_offset, batch->base_timestamp, &record);
        int64_t header_bytes = after && record.headers ? columns_headers_size(&record) : 0;
        if (!after || header_bytes < 0) {
            verdict = NOT_MINE;
            break;
        }
        int64_t grown = size + 32 + record.key_size + record.value_size + header_bytes;
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
        CHECK(row < columns->row_room);
        CHECK(!copy_key || key + record.key_size <= arrays.key_room);
        CHECK(!copy_value || value + record.value_size <= arrays.value_room);
        if (wanted & WANT_HEADERS) {
            int failed = record.headers ? columns_headers(columns, &record) : 0;
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
                if (record.key_size && end - after >= SPARE)
                    copy(arrays.keys + key, record.key, (uint64_t)record.key_size);
                else if (record.key_size)
                    memcpy(arrays.keys + key, record.key, (size_t)record.key_size);
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
                if (record.value_size && end - after >= SPARE)
                    copy(arrays.values + value, record.value, (uint64_t)record.value_size);
                else if (record.value_size)
                    memcpy(arrays.values + value, record.value, (size_t)record.value_size);
                value += record.value_size;
                arrays.value_places[row + 1] = (int32_t)value;
            }
        }
        row++;
        size = grown;
        at = after;
    }
    now->rows = row;
    now->size = size;
    now->key = key;
    now->value = value;
    batch->at = at;
    batch->left = left;
    return verdict;
}

/* --- the fast path --- */

#define ROOM 4096 /* bytes of data that are worth to begin with */
#define DELTA (1 << 20) /* the most that a short record's timestamp is off its batch's */

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A stretch of records that fit: where the bytes end that it may take, and the rows. */
struct stretch {
    const uint8_t *limit;
    int64_t rows;
};

/* Have room for some data of the batch: how much there is. Without memory for it the slow path will tell. */
static int64_t room_for(struct columns *columns, enum role role, int64_t used, const struct batch *batch)
{
    struct block *block = &columns->blocks[role];
    (void)columns_reserve(columns, block, (size_t)(used + least(batch->end - batch->at, ROOM)));
    return (int64_t)block->room - used;
}

static struct stretch next_stretch(struct columns *columns, const struct batch *batch)
{
    const struct extent *now = &columns->now;
    const int64_t stamp = batch->append ? batch->stamp : batch->base_timestamp;
    const int64_t spare = columns->most - now->size;
    struct stretch next = {batch->at, 0};
    if (columns->wanted & WANT_TIMESTAMP && (stamp < DELTA || stamp > MICROSECONDS - DELTA))
        return next;
    const uint8_t *const base = batch->source.base;
    if (columns->view && (batch->at - base) >> SLICE_BITS != (batch->end - base) >> SLICE_BITS)
        return next;
    int64_t rows = least(least(batch->left, columns->row_room - now->rows), spare / 64);
    int64_t bytes = least(batch->end - batch->at - SPARE, spare - 32 * rows);
    if (!columns->view && columns->wanted & WANT_KEY)
        bytes = least(bytes, room_for(columns, KEY_DATA, now->key, batch));
    if (!columns->view && columns->wanted & WANT_VALUE)
        bytes = least(bytes, room_for(columns, VALUE_DATA, now->value, batch));
    if (rows > 0 && bytes > 0)
        next = (struct stretch){batch->at + bytes, rows};
    return next;
}

/* As many records as it likes. */
ALWAYS_INLINE void fast_path(
    struct columns *columns, struct batch *batch, const unsigned wanted, const int view)
{
    struct extent *now = &columns->now;
    const struct stretch stretch = next_stretch(columns, batch);
    if (!stretch.rows)
        return;
    const int64_t slice = (batch->at - batch->source.base) >> SLICE_BITS;
    const uint8_t *const origin = batch->source.base + (slice << SLICE_BITS);
    const int32_t buffer = batch->source.buffer + (int32_t)slice;
    const int64_t stamp = batch->append ? batch->stamp : batch->base_timestamp;
    const struct arrays arrays = arrays_of(columns);
    const uint64_t base_offset = (uint64_t)batch->base_offset;
    const uint8_t *at = batch->at;
    const int counted = !view && wanted & WANT_KEY && wanted & WANT_VALUE; /* by what is copied */
    int64_t row = now->rows, key = now->key, value = now->value, data = 0;
    for (const int64_t stop = row + stretch.rows; row < stop; row++) {
        struct short_record record;
        if (!kernel_short_record(at, stretch.limit, &record) || record.headers + 1 != record.last
            || *record.headers)
            break;
        const uint64_t key_size = record.key >> 1, value_size = record.value >> 1;
        uint64_t offset = record.offset >> 1, moved = record.time >> 1;
        if (record.odd & 1) {
            if (!kernel_odd_is_sound(&record))
                break;
            offset = (uint64_t)kernel_unzigzag(record.offset);
            moved = (uint64_t)kernel_unzigzag(record.time);
            if (wanted & WANT_KEY && record.key == 1)
                put_null(columns, KEY_BITS, row, &now->key_nulls);
            if (wanted & WANT_VALUE && record.value == 1)
                put_null(columns, VALUE_BITS, row, &now->value_nulls);
        }
        at = record.last;
        if (!counted)
            data += (int64_t)(key_size + value_size);
        if (wanted & WANT_OFFSET)
            arrays.offsets[row] = (int64_t)(base_offset + offset);
        const int64_t time = (int64_t)((uint64_t)stamp + moved);
        if (wanted & WANT_MILLISECONDS)
            arrays.milliseconds[row] = time;
        if (wanted & WANT_TIMESTAMP)
            arrays.timestamps[row] = time * 1000;
        if (wanted & WANT_KEY) {
            if (view) {
                put_fast_view((struct view *)arrays.key_places + row, record.key_at, key_size, buffer, origin);
            } else {
                copy(arrays.keys + key, record.key_at, key_size);
                key += (int64_t)key_size;
                arrays.key_places[row + 1] = (int32_t)key;
            }
        }
        if (wanted & WANT_VALUE) {
            if (view) {
                put_fast_view((struct view *)arrays.value_places + row, record.value_at, value_size, buffer, origin);
            } else {
                copy(arrays.values + value, record.value_at, value_size);
                value += (int64_t)value_size;
                arrays.value_places[row + 1] = (int32_t)value;
            }
        }
    }
    for (int64_t filled_row = now->rows; batch->append && filled_row < row; filled_row++) {
        if (wanted & WANT_MILLISECONDS)
            arrays.milliseconds[filled_row] = stamp;
        if (wanted & WANT_TIMESTAMP)
            arrays.timestamps[filled_row] = stamp * 1000;
    }
    for (int64_t filled_row = now->rows; filled_row < row; filled_row++) {
        if (wanted & WANT_HEADERS)
            arrays.header_places[filled_row + 1] = (int32_t)now->headers;
        if (wanted & WANT_BATCH)
            arrays.batches[filled_row] = (int32_t)now->batches - 1;
    }
    CHECK(row <= columns->row_room);
    CHECK(view || !(wanted & WANT_KEY) || key <= arrays.key_room);
    CHECK(view || !(wanted & WANT_VALUE) || value <= arrays.value_room);
    batch->left -= row - now->rows;
    batch->at = at;
    now->size += 32 * (row - now->rows) + (counted ? key - now->key + value - now->value : data);
    now->rows = row;
    now->key = key;
    now->value = value;
}

/* --- both --- */

#define USUAL (WANT_OFFSET | WANT_TIMESTAMP | WANT_KEY | WANT_VALUE | WANT_HEADERS)

/* The ways with constants, each a function of its own: together they would be short of registers. */
#define WAYS(name, wanted, view)                                                                               \
    static NOINLINE void fast_##name(struct columns *columns, struct batch *batch)           \
    {                                                                                                          \
        fast_path(columns, batch, wanted, view);                                                                   \
    }                                                                                                          \
    static NOINLINE int slow_##name(                                                       \
        struct columns *columns, struct batch *batch, int steps)                                               \
    {                                                                                                          \
        return slow_path(columns, batch, steps, wanted, view);                                                   \
    }

WAYS(copies, USUAL, 0)
WAYS(views, USUAL, 1)
WAYS(any, columns->wanted, columns->view)

int columns_rows(struct columns *columns, struct batch *batch)
{
    const int usual = columns->wanted == USUAL, view = columns->view;
    void (*const fast)(struct columns *, struct batch *)
        = !usual ? fast_any : view ? fast_views : fast_copies;
    int (*const slow)(struct columns *, struct batch *, int)
        = !usual ? slow_any : view ? slow_views : slow_copies;
    int verdict = -1, steps = LEAST_STEPS;
    while (batch->left && verdict == -1) {
        int64_t before = batch->left;
        fast(columns, batch);
        steps = batch->left < before ? LEAST_STEPS : steps < MOST_STEPS ? 2 * steps : steps;
        verdict = slow(columns, batch, steps);
    }
    return verdict;
}
