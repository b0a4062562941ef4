/* The Arrow kernel: batches of magic 2 straight into columns, in one pass.

   Strategy: batch by batch, the checksum first, which brings the bytes into the cache, then record by record into
   memory that the previous table left. Validity bits are all set beforehand and cleared for nulls. Rules:
   whatever isn't an uncompressed batch of magic 2 with a right checksum and sound records is left to Python, which
   words the refusal; a table ends before the record that would make it larger than it may be; offsets of data are
   32 bits, which `most` and the size of a record keep them in. A header is copied before it is looked at, since
   the bytes may change at any time: what is said of a batch later is said of that copy. Nothing is built that
   isn't asked for. */

#include "rows.h"

#include <string.h>

#include "../crc32c/crc32c.h"
#include "../records/record_parser.h"

#define MOST_CODEC 4 /* the largest number that a codec has */

static int64_t number(const uint8_t *at, int size)
{
    uint64_t value = at[0] & 128 ? UINT64_MAX : 0;
    for (int index = 0; index < size; index++)
        value = value << 8 | at[index];
    return (int64_t)value;
}

/* Note the batch that begins at `position` among those of the table: 0, or -1 without memory. */
static int note_batch(struct columns *columns, const uint8_t *head, size_t position)
{
    struct block *block = &columns->blocks[BATCHES];
    if (columns_reserve(columns, block, (size_t)(columns->now.batches + 1) * sizeof(struct noted)) < 0)
        return -1;
    struct noted *noted = (struct noted *)block->data + columns->now.batches++;
    noted->position = (int64_t)position;
    memcpy(noted->head, head, HEADER);
    memset(noted->head + HEADER, 0, sizeof noted->head - HEADER);
    return 0;
}

/* The batch with this header, its records at `body`: -1 if it was read to its end, or why not. */
static int read_batch(struct columns *columns, const uint8_t *head, size_t position, const uint8_t *body,
                      const uint8_t *end, struct source source)
{
    const struct extent before = columns->now;
    const int64_t count = number(head + 57, 4);
    struct batch batch = {
        .at = body + columns->done_bytes,
        .end = end,
        .left = count - columns->done,
        .base_offset = number(head, 8),
        .base_timestamp = number(head + 27, 8),
        .stamp = number(head + 35, 8),
        .append = head[22] & 8,
        .source = source,
    };
    if (columns->wanted & WANT_BATCH && batch.left && note_batch(columns, head, position) < 0)
        return NO_MEMORY;
    int verdict = columns_rows(columns, &batch);
    if (verdict == -1 && batch.at != end)
        verdict = NOT_MINE;
    if (verdict == TABLE_FULL && columns->whole && !columns->done) {
        int64_t valid_records;
        if (kernel_walk(batch.at, end, batch.left, &valid_records) != end || valid_records != batch.left)
            verdict = NOT_MINE;
    }
    if (verdict == NO_MEMORY || (verdict == NOT_MINE && columns->whole)) {
        columns_forget(columns, &before);
        return verdict;
    }
    columns->done = count - batch.left;
    columns->done_bytes = (size_t)(batch.at - body);
    return verdict;
}

size_t columns_span(const uint8_t *data, size_t size, size_t position, size_t most)
{
    size_t end = position;
    while (end <= size && size - end >= HEADER && data[end + 16] == 2 && !(data[end + 22] & 7)) {
        int64_t length = number(data + end + 8, 4) + LOG_OVERHEAD;
        if (length < HEADER || (uint64_t)length > size - end
            || (end > position && end + (size_t)length - position > most))
            break;
        end += (size_t)length;
    }
    return end;
}

/* -1 if a header's checksum is that of the rest of it and the records; else why `columns_run` comes back. */
static int check_sum(const uint8_t *head, const uint8_t *records, size_t size)
{
    int64_t sum = crc32c_ahead(0, head + 21, HEADER - 21, 0);
    if (sum >= 0)
        sum = crc32c_ahead((uint32_t)sum, records, size, CRC32C_AHEAD);
    return sum < 0 ? NO_MEMORY : (uint32_t)sum == (uint32_t)number(head + 17, 4) ? -1 : NOT_MINE;
}

int columns_run(struct columns *columns, const uint8_t *data, size_t size, size_t *position, const uint8_t *body,
                size_t body_size, struct source source)
{
    for (;;) {
        uint8_t head[HEADER];
        if (columns->batch != *position) {
            columns->batch = *position;
            columns->done = 0;
            columns->done_bytes = 0;
        }
        if (*position > size || size - *position < HEADER)
            return NOT_MINE;
        memcpy(head, data + *position, HEADER);
        const int64_t length = number(head + 8, 4) + LOG_OVERHEAD, count = number(head + 57, 4);
        const int codec = head[22] & 7;
        if (head[16] != 2 || length < HEADER || length > INT32_MAX || (uint64_t)length > size - *position
            || count < 0 || (body ? codec < 1 || codec > MOST_CODEC : codec))
            return NOT_MINE;
        const uint8_t *records = body ? body : data + *position + HEADER;
        size_t bytes = body ? body_size : (size_t)length - HEADER;
        columns->hint = (int64_t)(body ? body_size : size - *position) + columns->now.size;
        if (columns->hint > columns->most)
            columns->hint = columns->most;
        if ((uint64_t)count * LEAST_RECORD > bytes || columns->done > count || columns->done_bytes > bytes)
            return NOT_MINE;
        int verdict = body || columns->done ? -1 : check_sum(head, records, bytes);
        if (verdict == -1)
            verdict = read_batch(columns, head, *position, records, records + bytes, source);
        if (verdict != -1)
            return verdict;
        columns->last = (int64_t)*position;
        columns->last_offset = (int64_t)((uint64_t)number(head, 8) + (uint64_t)number(head + 23, 4));
        *position += (size_t)length;
        if (body)
            return NOT_MINE;
    }
}
