/* A message to bytes: runs a program over the object's slots.

   Strategy: one pass into a buffer that grows, on the stack while the message is small, and one copy at the
   end. Rules: plain values of the right types and ranges only; what is unusual (a subclass, an object with
   __index__, an unset slot, a value outside its range) makes the whole encode give up, and the Python code
   decides. No Python code can run in between, so borrowed references and lists' items hold. Every function
   here returns -1 or NULL when it gives up, with or without an exception; engine_encode clears it. */

#include "writer.h"

static int write_struct(Writer *writer, const Program *program, PyObject *object);

uint8_t *writer_grow(Writer *writer, size_t size)
{
    if (size > (size_t)PY_SSIZE_T_MAX / 4 - writer->size)
        return NULL;
    size_t room = (writer->size + size) * 2;
    uint8_t *bytes = PyMem_Realloc(writer->bytes == writer->few ? NULL : writer->bytes, room);
    if (bytes == NULL)
        return NULL;
    if (writer->bytes == writer->few)
        memcpy(bytes, writer->few, writer->size);
    writer->bytes = bytes;
    writer->room = room;
    return bytes + writer->size;
}

/* --- lengths --- */

/* A length or count, -1 for null, with room for `more` bytes behind it: where they go. */
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

/* Bytes behind a length of `flags`; `bare`: without one. */
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

static inline int write_object(Writer *writer, const Program *inner, PyObject *value)
{
    return Py_IS_TYPE(value, inner->cls) ? write_struct(writer, inner, value) : -1;
}

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
    for (; items < stop; items++)
        if (write_object(writer, op->inner, *items) < 0)
            return -1;
    return 0;
}

/* Structs up to the end, each behind its size. */
static int write_sequence(Writer *writer, const Op *op, PyObject *value)
{
    PyObject **items;
    Py_ssize_t count;
    if (!items_of(value, &items, &count))
        return -1;
    for (PyObject **stop = items + count; items < stop; items++) {
        size_t start = writer->size;
        if (write_length(writer, 0, 4, 0) < 0 || write_object(writer, op->inner, *items) < 0)
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

/* Null, where it may stand; in a tagged field a struct's marker is another number. */
static int write_null(Writer *writer, const Op *op, uint8_t null_marker)
{
    if (!(op->flags & NULLABLE) || op->flags & BARE)
        return -1;
    if (op->code == STRUCT)
        return write_marker(writer, null_marker);
    return write_length(writer, op->flags, op->code == STRING || op->flags & SHORT ? 2 : 4, -1);
}

static inline int put_value(Writer *writer, const Op *op, PyObject *value, uint8_t null_marker)
{
    if (value == NULL) /* an attribute that was deleted */
        return -1;
    if (value == Py_None)
        return write_null(writer, op, null_marker);
    switch (op->code) {
    case STRUCT:
        if (op->flags & NULLABLE && write_marker(writer, 1) < 0)
            return -1;
        return write_object(writer, op->inner, value);
    case ARRAY: return write_array(writer, op, value);
    case REST: return write_bytes(writer, op->flags, true, value);
    case SEQUENCE: return write_sequence(writer, op, value);
    default: return write_leaves(writer, op->code, op->flags, &value, &value + 1);
    }
}

int write_value(Writer *writer, const Op *op, PyObject *value, uint8_t null_marker)
{
    return put_value(writer, op, value, null_marker);
}

/* --- structs --- */

static int write_struct(Writer *writer, const Program *program, PyObject *object)
{
    const Op *op = program->ops, *stop = op + program->inlined;
    for (; op < stop; op++)
        if (put_value(writer, op, *slot_at(object, op->offset), UINT8_MAX) < 0)
            return -1;
    stop = program->ops + Py_SIZE(program);
    for (op += program->tagged; op < stop; op++)
        if (!(op->flags & IGNORABLE)
            && state_of(writer->engine, op, *slot_at(object, op->offset)) != DEFAULT)
            return -1;
    if (program->flexible)
        return write_tags(writer, program, object);
    return state_of_tags(*slot_at(object, program->tags)) == DEFAULT ? 0 : -1;
}

PyObject *engine_encode(const Program *program, PyObject *message)
{
    Writer writer;
    writer.bytes = writer.few;
    writer.size = 0;
    writer.room = FEW;
    writer.engine = program->engine;
    if (program->engine->current == NULL) /* the module is going */
        return NULL;
    PyObject *wire = NULL;
    if (write_object(&writer, program, message) == 0)
        wire = PyBytes_FromStringAndSize((const char *)writer.bytes, (Py_ssize_t)writer.size);
    if (wire == NULL && PyErr_Occurred())
        PyErr_Clear();
    if (writer.bytes != writer.few)
        PyMem_Free(writer.bytes);
    return wire;
}
