/* The section of a struct's tagged fields: the known ones that are set and the unknown ones, by number.

   Rules: as encode.c has them; what can't be decided without running Python code makes the encode give up. A
   known field's value is written by the function that encode.c passes, so that this file doesn't call encode.c. */

#include "encode.h"

typedef struct Unknown {
    uint32_t tag;
    PyObject *value;
} Unknown;

static int by_tag(const void *first, const void *second)
{
    uint32_t a = ((const Unknown *)first)->tag, b = ((const Unknown *)second)->tag;
    return (a > b) - (a < b);
}

/* Unknown tagged fields by number: how many, -1 to give up. They are borrowed, the array is the caller's. */
static Py_ssize_t unknown_of(PyObject *tags, Unknown **found)
{
    if (tags == Py_None)
        return 0;
    if (tags == NULL || !PyDict_CheckExact(tags))
        return -1;
    Py_ssize_t count = PyDict_GET_SIZE(tags), at = 0, position = 0;
    if (count == 0)
        return 0;
    Unknown *all = *found = PyMem_New(Unknown, count);
    if (all == NULL)
        return -1;
    PyObject *key, *value;
    while (PyDict_Next(tags, &position, &key, &value)) {
        long long tag;
        if (at == count || !PyLong_CheckExact(key) || !is_within(key, 0, UINT32_MAX, &tag))
            return -1;
        all[at++] = (Unknown){(uint32_t)tag, value};
    }
    qsort(all, (size_t)at, sizeof *all, by_tag);
    return at;
}

static int write_unknown(Writer *writer, const Program *program, const Unknown *unknown)
{
    uint8_t *at = reserve(writer, MAX_UVARINT);
    if (at == NULL)
        return -1;
    wrote(writer, write_uvarint(at, unknown->tag));
    if (!PyBytes_CheckExact(unknown->value) || is_barred(program, unknown->tag))
        return -1;
    Py_ssize_t size = PyBytes_GET_SIZE(unknown->value);
    if (size > INT32_MAX || (at = reserve(writer, MAX_UVARINT + (size_t)size)) == NULL)
        return -1;
    at = write_uvarint(at, (uint32_t)size);
    memcpy(at, PyBytes_AS_STRING(unknown->value), (size_t)size);
    return wrote(writer, at + size);
}

static int write_known(Writer *writer, const Op *op, PyObject *value, WriteValue *write_value)
{
    uint8_t *at = reserve(writer, 2 * MAX_UVARINT);
    if (at == NULL)
        return -1;
    size_t head = (size_t)(write_uvarint(at, (uint32_t)op->tag) - writer->bytes), start = head + MAX_UVARINT;
    writer->size = start;
    if (write_value(writer, op, value, 0) < 0)
        return -1;
    size_t size = writer->size - start;
    if (size > INT32_MAX)
        return -1;
    at = write_uvarint(writer->bytes + head, (uint32_t)size); /* its bytes move up to it */
    memmove(at, writer->bytes + start, size);
    return wrote(writer, at + size);
}

static int write_sections(Writer *writer, const Program *program, PyObject *object, uint32_t known,
                          const Unknown *unknown, Py_ssize_t count, WriteValue *write_value)
{
    const Op *op = program->ops + program->inlined, *stop = op + program->tagged;
    const Unknown *end = unknown + count;
    uint8_t *at = reserve(writer, MAX_UVARINT);
    if (at == NULL || count > INT32_MAX)
        return -1;
    wrote(writer, write_uvarint(at, known + (uint32_t)count));
    for (; op < stop; op++) {
        for (; unknown < end && unknown->tag < op->tag; unknown++)
            if (write_unknown(writer, program, unknown) < 0)
                return -1;
        if (unknown < end && unknown->tag == op->tag)
            return -1;
        PyObject *value = *slot_at(object, op->offset);
        if (state_of(writer->engine, op, value) == SET && write_known(writer, op, value, write_value) < 0)
            return -1;
    }
    for (; unknown < end; unknown++)
        if (write_unknown(writer, program, unknown) < 0)
            return -1;
    return 0;
}

int write_tags(Writer *writer, const Program *program, PyObject *object, WriteValue *write_value)
{
    const Op *op = program->ops + program->inlined, *stop = op + program->tagged;
    uint32_t known = 0;
    for (; op < stop; op++) {
        State state = state_of(writer->engine, op, *slot_at(object, op->offset));
        if (state == UNSURE)
            return -1;
        known += state == SET;
    }
    Unknown *unknown = NULL;
    Py_ssize_t count = unknown_of(*slot_at(object, program->tags), &unknown);
    int done = count < 0 ? -1 : write_sections(writer, program, object, known, unknown, count, write_value);
    PyMem_Free(unknown);
    return done;
}
