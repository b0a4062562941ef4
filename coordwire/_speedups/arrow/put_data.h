/* Keys and values into their columns: copies by large steps, and Arrow's views.

   Rule: all of it is inlined into the loops of rows.c, where sizes and buffers are in registers. */

#ifndef COORDWIRE_ARROW_PUT_DATA_H
#define COORDWIRE_ARROW_PUT_DATA_H

#include <string.h>

#include "../compiler.h"
#include "columns.h"

#define SLICE_BITS 30 /* a view's offset is an int32: a longer buffer is several for Arrow */
#define SPARE 64 /* bytes after a record that may be read, and after its data that may be written */

static inline void put_far_view(struct view *view, const uint8_t *data, int64_t size, int32_t buffer, int64_t at)
{
    view->size = (int32_t)size;
    memcpy(view->of.far.prefix, data, 4);
    view->of.far.buffer = buffer;
    view->of.far.at = (int32_t)at;
}

static inline void put_view(struct view *view, const uint8_t *data, int64_t size, struct source source)
{
    if (size > 12) {
        int64_t at = data - source.base;
        put_far_view(view, data, size, source.buffer + (int32_t)(at >> SLICE_BITS), at & ((1 << SLICE_BITS) - 1));
    } else {
        view->size = (int32_t)size;
        memset(view->of.all, 0, 12);
        if (size)
            memcpy(view->of.all, data, (size_t)size);
    }
}

/* Copies by large steps, up to SPARE - 1 bytes too many. */
ALWAYS_INLINE void copy(uint8_t *to, const uint8_t *from, uint64_t size)
{
    if (size <= 16) {
        copy_many(to, from);
    } else if (size <= 256) {
        for (uint64_t at = 0; at < size; at += 64)
            for (int part = 0; part < 64; part += 16)
                copy_many(to + at + part, from + at + part);
    } else {
        memcpy(to, from, size);
    }
}

/* A view into the bytes after `origin`; 12 bytes may be read wherever data is. */
ALWAYS_INLINE void put_fast_view(
    struct view *view, const uint8_t *data, uint64_t size, int32_t buffer, const uint8_t *origin)
{
    static const uint8_t masks[24] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    if (size > 12) {
        put_far_view(view, data, (int64_t)size, buffer, data - origin);
    } else {
        uint64_t head, head_mask;
        uint32_t tail, tail_mask;
        memcpy(&head, data, 8);
        memcpy(&tail, data + 8, 4);
        memcpy(&head_mask, masks + 12 - size, 8);
        memcpy(&tail_mask, masks + 20 - size, 4);
        head &= head_mask;
        tail &= tail_mask;
        view->size = (int32_t)size;
        memcpy(view->of.all, &head, 8);
        memcpy(view->of.all + 8, &tail, 4);
    }
}

#endif
