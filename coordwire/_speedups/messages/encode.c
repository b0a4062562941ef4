/* A message to bytes: runs a program over the object's slots.

   Strategy: one pass into a buffer that grows, on the stack while the message is small, and one copy at the
   end. A struct is written by the steps of its program: room for its numbers and lengths is made once, at its
   start, and once more after whatever has a length. Rules: plain values of the right types and ranges only; what
   is unusual (a subclass, an object with __index__, an unset slot, a value outside its range) makes the whole
   encode give up, and the Python code decides. No Python code can run in between, so borrowed references and
   lists' items hold; but for the error of a text that is not UTF-8, whose making may set off a collection: nothing
   borrowed is looked at after it, as the encode gives up. Every function here returns -1 or NULL when it gives
   up, with or without an exception; engine_encode clears it. */

#include "encode.h"
#include "value_writers.h"

static int write_objects(Writer *writer, const Program *program, PyObject **item, PyObject **stop);
static int write_value(Writer *writer, const Op *op, PyObject *value, uint8_t null_marker);

/* --- values with parts --- */

/* The items of a list or tuple, borrowed; a subclass of either may give others when it is iterated. */
static inline bool items_of(PyObject *value, PyObject ***items, Py_ssize_t *count)
{
    if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value))
        return false;
    *items = PySequence_Fast_ITEMS(value);
    *count = Py_SIZE(value);
    return true;
}

static int write_array(Writer *writer, const Op *op, PyObject *value)
{
    PyObject **items;
    Py_ssize_t count;
    if (!items_of(value, &items, &count)
        || write_length(writer, op->flags, op->flags & SHORT ? 2 : 4, count) < 0)
        return -1;
    PyObject **stop = items + count;
    if (op->kind != STRUCT)
        return write_leaves(writer, op->kind, op->flags, items, stop);
    return write_objects(writer, op->inner, items, stop);
}

/* Structs up to the end, each after its size. */
static int write_sequence(Writer *writer, const Op *op, PyObject *value)
{
    PyObject **items;
    Py_ssize_t count;
    if (!items_of(value, &items, &count))
        return -1;
    for (PyObject **stop = items + count; items < stop; items++) {
        size_t start = writer->size;
        if (write_length(writer, 0, 4, 0) < 0 || write_objects(writer, op->inner, items, items + 1) < 0)
            return -1;
        size_t size = writer->size - start - 4;
        if (size > INT32_MAX)
            return -1;
        store32(writer->bytes + start, (uint32_t)size);
    }
    return 0;
}

static int write_marker(Writer *writer, uint8_t marker)
{
    uint8_t *at = reserve(writer, 1);
    if (at == NULL)
        return -1;
    *at = marker;
    return wrote(writer, at + 1);
}

/* Null, where it is allowed; in a tagged field a struct's marker is another number. */
static int write_null(Writer *writer, const Op *op, uint8_t null_marker)
{
    if (!(op->flags & NULLABLE) || op->flags & TO_END)
        return -1;
    if (op->code == STRUCT)
        return write_marker(writer, null_marker);
    return write_length(writer, op->flags, op->code == STRING || op->flags & SHORT ? 2 : 4, -1);
}

static int write_value(Writer *writer, const Op *op, PyObject *value, uint8_t null_marker)
{
    if (value == NULL) /* an attribute that was deleted */
        return -1;
    if (value == Py_None)
        return write_null(writer, op, null_marker);
    switch (op->code) {
    case STRUCT:
        if (op->flags & NULLABLE && write_marker(writer, 1) < 0)
            return -1;
        return write_objects(writer, op->inner, &value, &value + 1);
    case ARRAY: return write_array(writer, op, value);
    case BYTES_TO_END: return write_bytes(writer, op->flags, true, value);
    case STRUCTS_TO_END: return write_sequence(writer, op, value);
    default: return write_leaves(writer, op->code, op->flags, &value, &value + 1);
    }
}

/* --- tagged fields: the known ones that are set and the unknown ones, by number --- */

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
static Py_ssize_t unknown_of(PyObject *tags, Unknown **fields)
{
    if (tags == Py_None)
        return 0;
    if (tags == NULL || !PyDict_CheckExact(tags))
        return -1;
    Py_ssize_t count = PyDict_GET_SIZE(tags), at = 0, position = 0;
    if (count == 0)
        return 0;
    Unknown *all = *fields = PyMem_New(Unknown, count);
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

static int write_known(Writer *writer, const Op *op, PyObject *value)
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
                          const Unknown *unknown, Py_ssize_t count)
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
        if (state_of(writer->engine, op, value) == SET && write_known(writer, op, value) < 0)
            return -1;
    }
    for (; unknown < end; unknown++)
        if (write_unknown(writer, program, unknown) < 0)
            return -1;
    return 0;
}

static NOINLINE int write_tags(Writer *writer, const Program *program, PyObject *object)
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
    int status = count < 0 ? -1 : write_sections(writer, program, object, known, unknown, count);
    PyMem_Free(unknown);
    return status;
}

/* --- structs --- */

/* Copy text, most of which is short. */
static inline void copy_text(uint8_t *to, const uint8_t *from, size_t size)
{
    if (size > 16 || size < 4) {
        if (size)
            memcpy(to, from, size);
        return;
    }
    const size_t width = size < 8 ? 4 : 8;
    uint64_t first = 0, last = 0;
    if (width == 4) {
        memcpy(&first, from, 4);
        memcpy(&last, from + size - 4, 4);
        memcpy(to, &first, 4);
        memcpy(to + size - 4, &last, 4);
    } else {
        memcpy(&first, from, 8);
        memcpy(&last, from + size - 8, 8);
        memcpy(to, &first, 8);
        memcpy(to + size - 8, &last, 8);
    }
}

static inline bool is_number(PyObject *value, long long least, long long most, long long *number)
{
    return value != NULL && is_within(value, least, most, number);
}

/* Take the steps for each object. */
static int write_objects(Writer *writer, const Program *program, PyObject **item, PyObject **stop)
{
    if (item == stop)
        return 0;
    const Step *step;
    uint8_t *at;
start:
    if (!Py_IS_TYPE(*item, program->cls) || (at = reserve(writer, (size_t)program->room)) == NULL)
        return -1;
    for (step = program->writing;; step++) {
        PyObject *value = *slot_at(*item, step->offset);
        long long number;
        switch (step->code) {
        case INT8:
            if (!is_number(value, INT8_MIN, INT8_MAX, &number))
                return -1;
            at = store8(at, (uint8_t)number);
            break;
        case INT16:
            if (!is_number(value, INT16_MIN, INT16_MAX, &number))
                return -1;
            at = store16(at, (uint16_t)number);
            break;
        case INT32:
            if (!is_number(value, INT32_MIN, INT32_MAX, &number))
                return -1;
            at = store32(at, (uint32_t)number);
            break;
        case INT64:
            if (!is_number(value, INT64_MIN, INT64_MAX, &number))
                return -1;
            at = store64(at, (uint64_t)number);
            break;
        case UINT16:
            if (!is_number(value, 0, UINT16_MAX, &number))
                return -1;
            at = store16(at, (uint16_t)number);
            break;
        case UINT32:
            if (!is_number(value, 0, UINT32_MAX, &number))
                return -1;
            at = store32(at, (uint32_t)number);
            break;
        case BOOLEAN:
            if (value != Py_True && value != Py_False)
                return -1;
            *at++ = value == Py_True;
            break;
        case STRING:
        case COMPACT_STRING:
            if (value == Py_None && step->flags & NULLABLE) {
                at = step->code == STRING ? store16(at, UINT16_MAX) : store8(at, 0);
                break;
            }
            if (value != NULL && PyUnicode_CheckExact(value) && PyUnicode_IS_COMPACT_ASCII(value)) {
                size_t size = (size_t)PyUnicode_GET_LENGTH(value);
                if (size > MAX_STRING)
                    return -1;
                at = step->code == STRING ? store16(at, (uint16_t)size) : write_uvarint(at, (uint32_t)size + 1);
                wrote(writer, at);
                if ((at = reserve(writer, size + (size_t)step->rest)) == NULL)
                    return -1;
                copy_text(at, (const uint8_t *)((PyASCIIObject *)value + 1), size);
                at += size;
                break;
            }
            goto otherwise;
        case TAGS:
            if (value == Py_None && step->program->tagged == 0) {
                *at++ = 0;
                break;
            }
            wrote(writer, at);
            if (write_tags(writer, step->program, *item) < 0)
                return -1;
            at = writer->bytes + writer->size;
            break;
        case NO_TAGS:
            if (value != Py_None && state_of_tags(value) != DEFAULT)
                return -1;
            break;
        case ABSENT:
            if (state_of(writer->engine, step->op, value) != DEFAULT)
                return -1;
            break;
        case END:
            wrote(writer, at);
            if (++item == stop)
                return 0;
            goto start;
        default:
        otherwise:
            wrote(writer, at);
            if (write_value(writer, step->op, value, UINT8_MAX) < 0
                || (at = reserve(writer, (size_t)step->rest)) == NULL)
                return -1;
        }
    }
}

PyObject *engine_encode(const Program *program, PyObject *message, const Program *head, PyObject *header)
{
    Writer writer;
    writer.bytes = writer.few;
    writer.size = head == NULL ? 0 : 4; /* of the frame */
    writer.room = FEW;
    writer.engine = program->engine;
    if (program->engine->current == NULL) /* the module is going */
        return NULL;
    PyObject *wire = NULL;
    if ((head == NULL || write_objects(&writer, head, &header, &header + 1) == 0)
        && write_objects(&writer, program, &message, &message + 1) == 0
        && (head == NULL || writer.size - 4 <= INT32_MAX)) {
        if (head != NULL)
            store32(writer.bytes, (uint32_t)(writer.size - 4));
        wire = PyBytes_FromStringAndSize((const char *)writer.bytes, (Py_ssize_t)writer.size);
    }
    if (wire == NULL && PyErr_Occurred())
        PyErr_Clear();
    if (writer.bytes != writer.few)
        PyMem_Free(writer.bytes);
    return wire;
}
