/* The Arrow kernel: batches of magic 2 straight into columns, in one pass.

   Strategy: batch by batch, the checksum first, which brings the bytes into the cache, then record by record into
   memory that the table before left behind. Validity bits are all set beforehand and cleared for nulls. Rules:
   whatever isn't an uncompressed batch of magic 2 with a right checksum and sound records is left to Python, which
   words the refusal; a table ends before the record that would make it larger than it may be; offsets of data are
   32 bits, which `most` and the size of a record keep them in. Nothing is built that isn't asked for. */

#include "columns_rows.h"

#include <string.h>

#include "crc32c.h"
#include "kernel.h"

#define HEADER 61

static int64_t number(const uint8_t *at, int size)
{
    uint64_t value = at[0] & 128 ? UINT64_MAX : 0;
    for (int index = 0; index < size; index++)
        value = value << 8 | at[index];
    return (int64_t)value;
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
    int verdict = columns_rows(columns, &batch);
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
        if (length < HEADER || length > INT32_MAX || (uint64_t)length > size - *position || count < 0
            || (!body && head[22] & 7))
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
