/* Bytes to a message: runs a program over the bytes.

   Strategy: one pass. A Reader holds the bytes left and the budgets left; each read checks the bytes left
   before it believes a length, and charges the budgets before it allocates. Rules: reader.h has those of what
   is made. Every function here returns NULL or -1 when it dislikes the bytes or memory is short, with or
   without an exception; engine_decode clears it. */

#include "reader.h"

/* Bytes from which on a message is large: fewer seldom hold as many lists as set off a collection. */
enum { LARGE = 8192 };

static int fill(Reader *reader, const Program *program, PyObject *object);

/* A field's default, a new one where it can be changed. */
static PyObject *standard(Reader *reader, const Op *op)
{
    if (!(op->flags & FRESH))
        return Py_NewRef(op->standard);
    if (op->flags & IS_ARRAY)
        return make_list(reader, 0);
    const Program *inner = op->inner;
    PyObject *object = make(reader, inner);
    for (const Op *each = inner->ops; object != NULL && each < inner->ops + Py_SIZE(inner); each++)
        if ((*slot_at(object, each->offset) = standard(reader, each)) == NULL)
            Py_CLEAR(object);
    if (object != NULL)
        *slot_at(object, inner->tags) = Py_NewRef(Py_None);
    return object;
}

static PyObject *read_uuid(Reader *reader)
{
    const Engine *engine = reader->engine;
    PyObject *uuid = engine->uuid_type->tp_alloc(engine->uuid_type, 0);
    if (uuid == NULL)
        return NULL;
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *number = PyLong_FromUnsignedNativeBytes(reader->at, 16, Py_ASNATIVEBYTES_BIG_ENDIAN);
#else
    PyObject *number = _PyLong_FromByteArray(reader->at, 16, 0, 0);
#endif
    *slot_at(uuid, engine->uuid_int) = number;
    *slot_at(uuid, engine->uuid_safety) = Py_NewRef(engine->safety);
    if (number == NULL)
        Py_CLEAR(uuid);
    return uuid;
}

/* --- lengths --- */

/* A length or count, -1 for null; `wide` bytes where it isn't compact. */
static inline bool read_length(Reader *reader, uint8_t flags, size_t wide, int64_t *length)
{
    if (flags & COMPACT) {
        uint32_t value;
        if (!read_uvarint(&reader->at, reader->end, &value))
            return false;
        *length = (int64_t)value - 1;
    } else {
        if (left(reader) < wide)
            return false;
        *length = wide == 2 ? (int16_t)load16(reader->at) : (int32_t)load32(reader->at);
        reader->at += wide;
    }
    return *length >= -1;
}

/* --- values without parts --- */

/* `null`: whether it may be null, which elements of arrays never are. */
static inline PyObject *read_string(Reader *reader, uint8_t flags, bool null)
{
    int64_t length;
    if (!read_length(reader, flags, 2, &length))
        return NULL;
    if (length < 0)
        return null ? Py_NewRef(Py_None) : NULL;
    if (length > MAX_STRING || (size_t)length > left(reader))
        return NULL;
    PyObject *text = read_text(reader->at, (size_t)length);
    reader->at += length;
    return text;
}

static PyObject *read_bytes(Reader *reader, uint8_t flags, bool null)
{
    int64_t length;
    if (!read_length(reader, flags, 4, &length))
        return NULL;
    if (length < 0)
        return null ? Py_NewRef(Py_None) : NULL;
    if ((size_t)length > left(reader))
        return NULL;
    PyObject *value = PyBytes_FromStringAndSize((const char *)reader->at, (Py_ssize_t)length);
    reader->at += length;
    return value;
}

static PyObject *read_boolean(uint8_t byte)
{
    return byte > 1 ? NULL : Py_NewRef(byte ? Py_True : Py_False);
}

#define READ(size, make)                                                                                       \
    do {                                                                                                       \
        if (left(reader) < (size))                                                                             \
            return NULL;                                                                                       \
        const uint8_t *at = reader->at;                                                                        \
        reader->at += (size);                                                                                  \
        return make;                                                                                           \
    } while (0)

/* --- values with parts --- */

static PyObject *read_object(Reader *reader, const Program *inner)
{
    PyObject *object = make(reader, inner);
    if (object != NULL && fill(reader, inner, object) < 0)
        Py_CLEAR(object);
    return object;
}

/* A struct, behind its marker where it may be null: in a tagged field another number says so. */
static PyObject *read_struct(Reader *reader, const Op *op, uint8_t null)
{
    if (op->flags & NULLABLE) {
        if (left(reader) < 1)
            return NULL;
        uint8_t marker = *reader->at++;
        if (marker == null)
            return Py_NewRef(Py_None);
        if (marker != 1)
            return NULL;
    }
    return read_object(reader, op->inner);
}

/* Every item of a list whose bytes are known to be there, or that checks its own. */
#define EACH(size, make)                                                                                       \
    for (; item < stop; item++) {                                                                              \
        const uint8_t *at = reader->at;                                                                        \
        if ((*item = make) == NULL)                                                                            \
            return -1;                                                                                         \
        reader->at = at + (size);                                                                              \
    }                                                                                                          \
    return 0;

static int read_items(Reader *reader, const Op *op, PyObject **item, PyObject **stop)
{
    switch (op->kind) {
    case INT8: EACH(1, read_number(reader, (int8_t)*at))
    case INT16: EACH(2, read_number(reader, (int16_t)load16(at)))
    case INT32: EACH(4, read_number(reader, (int32_t)load32(at)))
    case INT64: EACH(8, PyLong_FromLongLong((int64_t)load64(at)))
    case UINT16: EACH(2, read_number(reader, load16(at)))
    case UINT32: EACH(4, PyLong_FromLongLong(load32(at)))
    case FLOAT64: EACH(8, PyFloat_FromDouble(as_double(load64(at))))
    case BOOLEAN: EACH(1, read_boolean(*at))
    case UUID: EACH(16, read_uuid(reader))
    case STRING:
        for (; item < stop; item++)
            if ((*item = read_string(reader, op->flags, false)) == NULL)
                return -1;
        return 0;
    case BYTES:
        for (; item < stop; item++)
            if ((*item = read_bytes(reader, op->flags, false)) == NULL)
                return -1;
        return 0;
    default: /* STRUCT */
        for (; item < stop; item++)
            if ((*item = read_object(reader, op->inner)) == NULL)
                return -1;
        return 0;
    }
}

static PyObject *read_array(Reader *reader, const Op *op)
{
    int64_t count;
    if (!read_length(reader, op->flags, op->flags & SHORT ? 2 : 4, &count))
        return NULL;
    if (count < 0)
        return op->flags & NULLABLE ? Py_NewRef(Py_None) : NULL;
    /* fixed sizes: `least` is the program's word, not to be relied on for what is read unchecked */
    static const uint8_t sizes[KINDS] = {1, 2, 4, 8, 2, 4, 8, 1, 16, 1, 1, 1};
    int64_t least = op->least > sizes[op->kind] ? op->least : sizes[op->kind];
    if (count * least > (int64_t)left(reader) || !charge(reader, count, op->cost))
        return NULL;
    PyObject *list = make_list(reader, (Py_ssize_t)count);
    if (list == NULL)
        return NULL;
    PyObject **items = ((PyListObject *)list)->ob_item;
    if (count && read_items(reader, op, items, items + count) < 0)
        Py_CLEAR(list);
    return list;
}

/* Bytes up to the end. */
static PyObject *read_rest(Reader *reader)
{
    size_t size = left(reader);
    const char *at = (const char *)reader->at;
    reader->at = reader->end;
    return PyBytes_FromStringAndSize(at, (Py_ssize_t)size);
}

/* Structs up to the end, each behind its size. */
static PyObject *read_sequence(Reader *reader, const Op *op)
{
    const uint8_t *end = reader->end;
    PyObject *list = make_list(reader, 0);
    if (list == NULL)
        return NULL;
    while (reader->at < end) {
        if (end - reader->at < 4)
            goto fail;
        int32_t size = (int32_t)load32(reader->at);
        reader->at += 4;
        if (size < 0 || size > end - reader->at || !charge(reader, 1, op->cost))
            goto fail;
        reader->end = reader->at + size;
        PyObject *object = read_object(reader, op->inner);
        if (object == NULL)
            goto fail;
        int failed = PyList_Append(list, object);
        Py_DECREF(object);
        if (failed || reader->at != reader->end)
            goto fail;
    }
    reader->end = end;
    return list;
fail:
    Py_DECREF(list);
    return NULL;
}

static inline PyObject *read_value(Reader *reader, const Op *op, uint8_t null_marker)
{
    switch (op->code) {
    case INT8: READ(1, read_number(reader, (int8_t)*at));
    case INT16: READ(2, read_number(reader, (int16_t)load16(at)));
    case INT32: READ(4, read_number(reader, (int32_t)load32(at)));
    case INT64: READ(8, PyLong_FromLongLong((int64_t)load64(at)));
    case UINT16: READ(2, read_number(reader, load16(at)));
    case UINT32: READ(4, PyLong_FromLongLong(load32(at)));
    case FLOAT64: READ(8, PyFloat_FromDouble(as_double(load64(at))));
    case BOOLEAN: READ(1, read_boolean(*at));
    case UUID: {
        if (left(reader) < 16)
            return NULL;
        PyObject *uuid = read_uuid(reader);
        reader->at += 16;
        return uuid;
    }
    case STRING: return read_string(reader, op->flags, op->flags & NULLABLE);
    case BYTES: return read_bytes(reader, op->flags, op->flags & NULLABLE);
    case STRUCT: return read_struct(reader, op, null_marker);
    case ARRAY: return read_array(reader, op);
    case REST: return read_rest(reader);
    default: return read_sequence(reader, op);
    }
}

/* --- structs --- */

/* A tagged field that the program knows, within its size; its slot is still empty. */
static int read_known(Reader *reader, const Op *op, PyObject *object, uint32_t size)
{
    const uint8_t *end = reader->end;
    reader->end = reader->at + size;
    PyObject *value = *slot_at(object, op->offset) = read_value(reader, op, 0);
    if (value == NULL || reader->at != reader->end)
        return -1;
    reader->end = end;
    return 0;
}

static int read_unknown(Reader *reader, PyObject **tags, uint32_t tag, uint32_t size)
{
    if (*tags == NULL && (*tags = PyDict_New()) == NULL)
        return -1;
    PyObject *number = PyLong_FromLongLong(tag);
    PyObject *value = PyBytes_FromStringAndSize((const char *)reader->at, (Py_ssize_t)size);
    reader->at += size;
    int done = number == NULL || value == NULL ? -1 : PyDict_SetItem(*tags, number, value);
    Py_XDECREF(number);
    Py_XDECREF(value);
    return done;
}

/* The section of tagged fields: known ones fill their slots, unknown ones are kept. */
static int read_tags(Reader *reader, const Program *program, PyObject *object)
{
    uint32_t count;
    if (!read_uvarint(&reader->at, reader->end, &count))
        return -1;
    const Op *op = program->ops + program->inlined, *stop = op + program->tagged;
    PyObject **tags = slot_at(object, program->tags);
    if (count) {
        if ((uint64_t)count * 2 > left(reader) || !charge(reader, count, reader->engine->tag_cost))
            return -1;
        int64_t last = -1;
        const Op *known = op;
        for (; count; count--) {
            uint32_t tag, size;
            if (!read_uvarint(&reader->at, reader->end, &tag) || !read_uvarint(&reader->at, reader->end, &size)
                || tag <= last || size > left(reader))
                return -1;
            last = tag;
            while (known < stop && known->tag < tag)
                known++;
            bool is_known = known < stop && known->tag == tag;
            if (!is_known && is_barred(program, tag))
                return -1;
            if (is_known ? read_known(reader, known, object, size) : read_unknown(reader, tags, tag, size))
                return -1;
        }
    }
    for (; op < stop; op++) {
        PyObject **slot = slot_at(object, op->offset);
        if (*slot == NULL && (*slot = standard(reader, op)) == NULL)
            return -1;
    }
    if (*tags == NULL)
        *tags = Py_NewRef(Py_None);
    return 0;
}

/* Read a struct's fields into an object whose slots are empty. */
static int fill(Reader *reader, const Program *program, PyObject *object)
{
    const Op *op = program->ops, *stop = op + program->inlined;
    for (; op < stop; op++)
        if ((*slot_at(object, op->offset) = read_value(reader, op, UINT8_MAX)) == NULL)
            return -1;
    stop = program->ops + Py_SIZE(program);
    for (op += program->tagged; op < stop; op++)
        if ((*slot_at(object, op->offset) = standard(reader, op)) == NULL)
            return -1;
    if (program->flexible)
        return read_tags(reader, program, object);
    *slot_at(object, program->tags) = Py_NewRef(Py_None);
    return 0;
}

PyObject *engine_decode(const Program *program, const uint8_t *start, const uint8_t *end, const Budgets *budgets,
                        const uint8_t **stop)
{
    Reader reader = {.at = start, .end = end, .size = end - start, .engine = program->engine};
    if (program->engine->current == NULL) /* the module is going */
        return NULL;
    if (budgets != NULL) {
        reader.charged = true;
        reader.budgets = *budgets;
    }
    PyObject *object;
    if (reader.size < LARGE) {
        int collecting = PyGC_Disable();
        object = read_object(&reader, program);
        if (collecting)
            PyGC_Enable();
    } else {
        reader.room = LARGE / 8; /* it grows with what is made, not with what the bytes might claim */
        reader.made = PyMem_New(PyObject *, reader.room);
        object = reader.made == NULL ? NULL : read_object(&reader, program);
        for (size_t i = 0; object != NULL && i < reader.count; i++)
            PyObject_GC_Track(reader.made[i]);
        PyMem_Free(reader.made);
    }
    *stop = reader.at;
    if (object == NULL && PyErr_Occurred())
        PyErr_Clear();
    return object;
}
