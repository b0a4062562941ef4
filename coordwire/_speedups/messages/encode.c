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

static int write_objects(Writer *writer, const Program *program, PyObject **item, PyObject **stop);
static int write_value(Writer *writer, const Op *op, PyObject *value, uint8_t null_marker);

/* --- lengths --- */

/* A length or count, -1 for null, with room for `more` bytes after it: where they go. */
static inline uint8_t *put_length(Writer *writer, uint8_t flags, int wide, Py_ssize_t length, size_t more)
{
    if (length > (wide == 2 ? INT16_MAX : INT32_MAX))
        return NULL;
    uint8_t *at = reserve(writer, MAX_UVARINT + more);
    if (at == NULL)
        return NULL;
    if (flags & COMPACT)
        return write_uvarint(at, (uint32_t)(length + 1));
    return wide == 2 ? store16(at, (uint16_t)length) : store32(at, (uint32_t)length);
}

static int write_length(Writer *writer, uint8_t flags, int wide, Py_ssize_t length)
{
    uint8_t *at = put_length(writer, flags, wide, length, 0);
    return at == NULL ? -1 : wrote(writer, at);
}

static int write_sized(Writer *writer, uint8_t flags, int wide, const void *bytes, Py_ssize_t size)
{
    uint8_t *at = put_length(writer, flags, wide, size, (size_t)size);
    if (at == NULL)
        return -1;
    memcpy(at, bytes, (size_t)size);
    return wrote(writer, at + size);
}

/* --- values without parts --- */

static inline uint8_t *store8(uint8_t *at, uint8_t value)
{
    *at = value;
    return at + 1;
}

/* Numbers in a row, most often one. */
#define NUMBERS(store, type, least, most)                                                                      \
    do {                                                                                                       \
        uint8_t *at = reserve(writer, (size_t)(stop - item) * sizeof(type));                                   \
        if (at == NULL)                                                                                        \
            return -1;                                                                                         \
        for (; item < stop; item++) {                                                                          \
            long long number;                                                                                  \
            if (!is_within(*item, least, most, &number))                                                       \
                return -1;                                                                                     \
            at = store(at, (type)number);                                                                      \
        }                                                                                                      \
        return wrote(writer, at);                                                                              \
    } while (0)

static int write_float(Writer *writer, PyObject *value)
{
    uint8_t *at = PyFloat_CheckExact(value) ? reserve(writer, 8) : NULL;
    return at == NULL ? -1 : wrote(writer, store64(at, as_bits(PyFloat_AS_DOUBLE(value))));
}

static int write_boolean(Writer *writer, PyObject *value)
{
    uint8_t *at = PyBool_Check(value) ? reserve(writer, 1) : NULL;
    if (at == NULL)
        return -1;
    *at = value == Py_True;
    return wrote(writer, at + 1);
}

static int write_uuid(Writer *writer, PyObject *value)
{
    PyObject *number = uuid_number(writer->engine, value);
    uint8_t *at = number == NULL ? NULL : reserve(writer, 16);
    if (at == NULL)
        return -1;
#if PY_VERSION_HEX >= 0x030D0000
    Py_ssize_t size = PyLong_AsNativeBytes(number, at, 16,
                                           Py_ASNATIVEBYTES_BIG_ENDIAN | Py_ASNATIVEBYTES_UNSIGNED_BUFFER
                                               | Py_ASNATIVEBYTES_REJECT_NEGATIVE);
    if (size < 0 || size > 16)
        return -1;
#else
    if (_PyLong_AsByteArray((PyLongObject *)number, at, 16, 0, 0) < 0)
        return -1;
#endif
    return wrote(writer, at + 16);
}

static inline int write_string(Writer *writer, uint8_t flags, PyObject *value)
{
    if (!PyUnicode_CheckExact(value))
        return -1;
    if (PyUnicode_IS_COMPACT_ASCII(value))
        return write_sized(writer, flags, 2, PyUnicode_1BYTE_DATA(value), PyUnicode_GET_LENGTH(value));
    PyObject *wire = PyUnicode_AsUTF8String(value); /* not AsUTF8AndSize, which the text would keep */
    if (wire == NULL)
        return -1;
    int done = write_sized(writer, flags, 2, PyBytes_AS_STRING(wire), PyBytes_GET_SIZE(wire));
    Py_DECREF(wire);
    return done;
}

/* Bytes after a length of `flags`; `bare`: without one. */
static int write_octets(Writer *writer, uint8_t flags, bool bare, const void *bytes, Py_ssize_t size)
{
    if (!bare)
        return write_sized(writer, flags, 4, bytes, size);
    uint8_t *at = reserve(writer, (size_t)size);
    if (at == NULL)
        return -1;
    memcpy(at, bytes, (size_t)size);
    return wrote(writer, at + size);
}

static int write_bytes(Writer *writer, uint8_t flags, bool bare, PyObject *value)
{
    if (PyBytes_CheckExact(value))
        return write_octets(writer, flags, bare, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    if (!PyByteArray_CheckExact(value) && !PyMemoryView_Check(value))
        return -1;
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) < 0)
        return -1;
    int done = write_octets(writer, flags, bare, view.buf, view.len);
    PyBuffer_Release(&view);
    return done;
}

/* Numbers, booleans, uuids, strings or bytes. */
static inline int write_leaves(Writer *writer, uint8_t kind, uint8_t flags, PyObject **item, PyObject **stop)
{
    switch (kind) {
    case INT8: NUMBERS(store8, uint8_t, INT8_MIN, INT8_MAX);
    case INT16: NUMBERS(store16, uint16_t, INT16_MIN, INT16_MAX);
    case INT32: NUMBERS(store32, uint32_t, INT32_MIN, INT32_MAX);
    case INT64: NUMBERS(store64, uint64_t, INT64_MIN, INT64_MAX);
    case UINT16: NUMBERS(store16, uint16_t, 0, UINT16_MAX);
    case UINT32: NUMBERS(store32, uint32_t, 0, UINT32_MAX);
    default: break;
    }
    for (; item < stop; item++) {
        int failed = kind == STRING    ? write_string(writer, flags, *item)
                     : kind == BYTES   ? write_bytes(writer, flags, false, *item)
                     : kind == UUID    ? write_uuid(writer, *item)
                     : kind == BOOLEAN ? write_boolean(writer, *item)
                                       : write_float(writer, *item);
        if (failed)
            return -1;
    }
    return 0;
}

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
    if (!(op->flags & NULLABLE) || op->flags & BARE)
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
    case REST: return write_bytes(writer, op->flags, true, value);
    case SEQUENCE: return write_sequence(writer, op, value);
    default: return write_leaves(writer, op->code, op->flags, &value, &value + 1);
    }
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

#define NUMBER(store, type, least, most)                                                                       \
    {                                                                                                          \
        long long number;                                                                                      \
        if (value == NULL || !is_within(value, least, most, &number))                                          \
            return -1;                                                                                         \
        at = store(at, (type)number);                                                                          \
        break;                                                                                                 \
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
        switch (step->code) {
        case INT8: NUMBER(store8, uint8_t, INT8_MIN, INT8_MAX)
        case INT16: NUMBER(store16, uint16_t, INT16_MIN, INT16_MAX)
        case INT32: NUMBER(store32, uint32_t, INT32_MIN, INT32_MAX)
        case INT64: NUMBER(store64, uint64_t, INT64_MIN, INT64_MAX)
        case UINT16: NUMBER(store16, uint16_t, 0, UINT16_MAX)
        case UINT32: NUMBER(store32, uint32_t, 0, UINT32_MAX)
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
            if (write_tags(writer, step->program, *item, write_value) < 0)
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
