/* The least that fields take on the wire, by their types. */

#include "engine.h"

const uint8_t wire_sizes[KINDS] = {1, 2, 4, 8, 2, 4, 8, 1, 16, 1, 1, 1, 1};

int32_t least_of(const Op *op)
{
    switch (op->code) {
    case BYTES_TO_END: case STRUCTS_TO_END: return 0;
    case ARRAY: return op->flags & COMPACT ? 1 : op->flags & SHORT ? 2 : 4;
    case STRUCT: return op->flags & NULLABLE ? 1 : op->inner->min_size;
    case STRING: return op->flags & COMPACT ? 1 : 2;
    case LONG_STRING:
    case BYTES: return op->flags & COMPACT ? 1 : 4;
    default: return wire_sizes[op->kind];
    }
}
