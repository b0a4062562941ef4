/* The buffer that a message is written into, and what encode.c uses: writer.c and defaults.c.

   Rules: as encode.c has them. */

#ifndef COORDWIRE_MESSAGES_ENCODE_H
#define COORDWIRE_MESSAGES_ENCODE_H

#include "engine.h"

enum { FEW = 2048 };

typedef struct Writer {
    uint8_t *bytes;
    size_t size, room;
    const Engine *engine;
    uint8_t few[FEW];
} Writer;

/* writer.c: make room where there is too little; NULL without memory. */
uint8_t *writer_grow(Writer *writer, size_t size);

/* Where `size` more bytes may be written; NULL without memory. `wrote` then reports what was written. */
static inline uint8_t *reserve(Writer *writer, size_t size)
{
    return size <= writer->room - writer->size ? writer->bytes + writer->size : writer_grow(writer, size);
}

static inline int wrote(Writer *writer, const uint8_t *end)
{
    writer->size = (size_t)(end - writer->bytes);
    return 0;
}

static inline bool is_within(PyObject *value, long long least, long long most, long long *number)
{
    return as_integer(value, number) && *number >= least && *number <= most;
}

/* A UUID's number, borrowed; NULL for another object. */
static inline PyObject *uuid_number(const Engine *engine, PyObject *value)
{
    if (!Py_IS_TYPE(value, engine->uuid_type))
        return NULL;
    PyObject *number = *slot_at(value, engine->uuid_int);
    return number != NULL && PyLong_CheckExact(number) ? number : NULL;
}

/* Whether a value is its field's default, as far as that can be decided without calling the value. */
typedef enum { SET, DEFAULT, UNSURE } State;

/* defaults.c */
State state_of(const Engine *engine, const Op *op, PyObject *value);
State state_of_tags(PyObject *tags);

#endif
