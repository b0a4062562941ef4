/* Bytes to a message: runs a program over the bytes.

   Strategy: one pass, a struct by the steps of its program. What a struct takes at least is checked once, at its
   start, and holds until its end: a length is accepted if, after its bytes, there are bytes for the rest of
   the struct, so that fields of a fixed size need no check of their own. Budgets are charged before anything is
   allocated. Rules: decode.h has those of what is made. A function here returns where its value ends, and NULL
   when it declines the bytes or memory is short, with or without an exception; engine_decode clears it. What a
   slot or item has got by then goes with its object. */

#include "decode.h"

static const uint8_t *run(Reader *reader, const Program *program, const Step *steps, PyObject **item,
                          PyObject **stop, const uint8_t *at);

bool more_made(Reader *reader)
{
    size_t count = (size_t)(reader->next - reader->made), size = count * sizeof(PyObject *);
    PyObject **larger = PyMem_Realloc(reader->made == reader->few ? NULL : reader->made, 2 * size);
    if (larger == NULL)
        return false;
    if (reader->made == reader->few)
        memcpy(larger, reader->few, size);
    reader->made = larger;
    reader->next = larger + count;
    reader->limit = larger + 2 * count;
    return true;
}

/* An empty list, with room. */
static inline PyObject *make_items(Reader *reader, Py_ssize_t size) { return keep(reader, make_list(size)); }

/* A field's default, a new one where it can be changed. */
static NOINLINE PyObject *default_value(Reader *reader, const Op *op)
{
    if (!(op->flags & FRESH))
        return Py_NewRef(op->default_value);
    if (op->flags & IS_ARRAY)
        return make_items(reader, 0);
    const Program *inner = op->inner;
    PyObject *object = make(reader, inner);
    for (const Op *child = inner->ops; object != NULL && child < inner->ops + Py_SIZE(inner); child++)
        if ((*slot_at(object, child->offset) = default_value(reader, child)) == NULL)
            Py_CLEAR(object);
    if (object != NULL)
        *slot_at(object, inner->tags) = Py_NewRef(Py_None);
    return object;
}

/* --- values without parts --- */

static inline PyObject *read_string(Reader *reader, const uint8_t *at, size_t size)
{
    if (reader->has_zero != NULL && size && memchr(at, 0, size) != NULL)
        *reader->has_zero = true;
    return read_text(&reader->engine->interned, at, size);
}

/* A length or count, -1 for null; `wide` bytes where it isn't compact, of which the first is there. */
static inline const uint8_t *read_length(uint8_t flags, int wide, const uint8_t *at, const uint8_t *end,
                                         int64_t *length)
{
    if (flags & COMPACT) {
        uint32_t value = *at++;
        if (value > 127 && (--at, !read_uvarint(&at, end, &value)))
            return NULL;
        *length = (int64_t)value - 1;
        return at;
    }
    if (end - at < wide)
        return NULL;
    *length = wide == 2 ? (int16_t)load16(at) : (int32_t)load32(at);
    return *length < -1 ? NULL : at + wide;
}

/* Text or bytes, after a length whose first byte is there, with `after` bytes after it; null where flags have
   it so. */
static NOINLINE const uint8_t *read_sized(Reader *reader, uint8_t kind, uint8_t flags, int32_t after,
                                       const uint8_t *at, const uint8_t *end, PyObject **value)
{
    int64_t length;
    at = read_length(flags, kind == STRING ? 2 : 4, at, end, &length);
    if (at == NULL || length > end - at - after)
        return NULL;
    if (length < 0) {
        *value = Py_NewRef(Py_None);
        return flags & NULLABLE ? at : NULL;
    }
    if (kind == BYTES)
        *value = PyBytes_FromStringAndSize((const char *)at, (Py_ssize_t)length);
    else if (kind == LONG_STRING || length <= MAX_STRING)
        *value = read_string(reader, at, (size_t)length);
    else
        return NULL;
    return *value == NULL ? NULL : at + length;
}

static inline PyObject *read_boolean(uint8_t byte)
{
    return byte > 1 ? NULL : Py_NewRef(byte ? Py_True : Py_False);
}

/* --- values with parts --- */

static inline const uint8_t *read_object(Reader *reader, const Program *inner, const uint8_t *at, PyObject **value)
{
    *value = NULL;
    return run(reader, inner, inner->steps, value, value + 1, at);
}

/* A struct after its marker: in a tagged field another number means null. */
static NOINLINE const uint8_t *read_marked(Reader *reader, const Program *inner, uint8_t null, const uint8_t *at,
                                        PyObject **value)
{
    uint8_t marker = *at++;
    if (marker == null) {
        *value = Py_NewRef(Py_None);
        return at;
    }
    return marker == 1 ? read_object(reader, inner, at, value) : NULL;
}

/* A value of a fixed size, whose bytes are there. */
ALWAYS_INLINE PyObject *read_fixed(Engine *engine, uint8_t kind, const uint8_t *at)
{
    switch (kind) {
    case INT8: return read_number(engine, (int8_t)*at);
    case INT16: return read_number(engine, (int16_t)load16(at));
    case INT32: return read_number(engine, (int32_t)load32(at));
    case INT64: return read_number(engine, (int64_t)load64(at));
    case UINT16: return read_number(engine, load16(at));
    case UINT32: return read_number(engine, load32(at));
    case FLOAT64: return PyFloat_FromDouble(as_double(load64(at)));
    case BOOLEAN: return read_boolean(*at);
    default: return read_uuid(engine, at);
    }
}

/* Items of a fixed size, whose bytes are there, up to the first that is refused: the items after those read.
   Inlined: the kind and size of each call are constants. */
ALWAYS_INLINE PyObject **read_fixed_items(Engine *engine, uint8_t kind, int size, const uint8_t *at, PyObject **item,
                                          PyObject **stop)
{
    for (; item < stop; item++, at += size)
        if ((*item = read_fixed(engine, kind, at)) == NULL)
            break;
    return item;
}

static const uint8_t *read_items(Reader *reader, const Op *op, Py_ssize_t count, const uint8_t *at, PyObject *list)
{
    Engine *engine = reader->engine;
    const uint8_t *end = reader->end;
    PyObject **first = ((PyListObject *)list)->ob_item, **item = first, **stop = first + count;
    const uint8_t flags = op->flags & (uint8_t)~NULLABLE; /* of the array: its elements never are null */
    int size = 0;
    switch (op->kind) {
    case INT8: item = read_fixed_items(engine, INT8, size = 1, at, first, stop); break;
    case INT16: item = read_fixed_items(engine, INT16, size = 2, at, first, stop); break;
    case INT32: item = read_fixed_items(engine, INT32, size = 4, at, first, stop); break;
    case INT64: item = read_fixed_items(engine, INT64, size = 8, at, first, stop); break;
    case UINT16: item = read_fixed_items(engine, UINT16, size = 2, at, first, stop); break;
    case UINT32: item = read_fixed_items(engine, UINT32, size = 4, at, first, stop); break;
    case FLOAT64: item = read_fixed_items(engine, FLOAT64, size = 8, at, first, stop); break;
    case BOOLEAN: item = read_fixed_items(engine, BOOLEAN, size = 1, at, first, stop); break;
    case UUID: item = read_fixed_items(engine, UUID, size = 16, at, first, stop); break;
    case STRING:
    case LONG_STRING:
    case BYTES: /* each checks its own bytes */
        for (; item < stop && at != NULL; item++) {
            *item = NULL;
            at = at < end ? read_sized(reader, op->kind, flags, 0, at, end, item) : NULL;
        }
        break;
    default: /* STRUCT */
        memset(first, 0, (size_t)count * sizeof(PyObject *));
        Py_SET_SIZE(list, count);
        return run(reader, op->inner, op->inner->steps, first, stop, at);
    }
    Py_SET_SIZE(list, item - first); /* those that failed are empty */
    return item == stop && at != NULL ? at + count * size : NULL;
}

static NOINLINE const uint8_t *read_array(Reader *reader, const Op *op, const uint8_t *at, PyObject **value)
{
    int64_t count;
    at = read_length(op->flags, op->flags & SHORT ? 2 : 4, at, reader->end, &count);
    if (at == NULL)
        return NULL;
    if (count < 0) {
        *value = Py_NewRef(Py_None);
        return op->flags & NULLABLE ? at : NULL;
    }
    if (count * op->min_size > reader->end - at || count > MAX_ARRAY_ELEMENTS
        || !charge(reader, count, op->memory_cost))
        return NULL;
    PyObject *list = *value = make_items(reader, (Py_ssize_t)count);
    if (list == NULL)
        return NULL;
    return count ? read_items(reader, op, (Py_ssize_t)count, at, list) : at;
}

/* Structs up to the end, each after its size. */
static NOINLINE const uint8_t *read_sequence(Reader *reader, const Op *op, const uint8_t *at, PyObject **value)
{
    const uint8_t *end = reader->end;
    PyObject *list = *value = make_items(reader, 0), *object;
    while (list != NULL && at < end) {
        if (end - at < 4)
            return NULL;
        int32_t size = (int32_t)load32(at);
        at += 4;
        if (size < 0 || size > end - at || !charge(reader, 1, op->memory_cost))
            return NULL;
        reader->end = at + size;
        at = read_object(reader, op->inner, at, &object);
        int failed = object == NULL ? -1 : PyList_Append(list, object);
        Py_XDECREF(object);
        if (failed || at != reader->end)
            return NULL;
    }
    reader->end = end;
    return list == NULL ? NULL : at;
}

/* --- structs --- */

/* A tagged field that the program knows, within its size; its slot is still empty. */
static const uint8_t *read_known(Reader *reader, const Step *step, PyObject *object, uint32_t size,
                                 const uint8_t *at)
{
    const uint8_t *end = reader->end, *stop = reader->end = at + size;
    if (size < (uint32_t)least_of(step->op))
        return NULL;
    at = run(reader, NULL, step, &object, &object + 1, at);
    reader->end = end;
    return at == stop ? at : NULL;
}

static const uint8_t *read_unknown(PyObject **tags, uint32_t tag, uint32_t size, const uint8_t *at)
{
    if (*tags == NULL && (*tags = PyDict_New()) == NULL)
        return NULL;
    PyObject *number = PyLong_FromLongLong(tag);
    PyObject *value = PyBytes_FromStringAndSize((const char *)at, (Py_ssize_t)size);
    int failed = number == NULL || value == NULL || PyDict_SetItem(*tags, number, value);
    Py_XDECREF(number);
    Py_XDECREF(value);
    return failed ? NULL : at + size;
}

/* The section of tagged fields: known ones fill their slots, unknown ones are kept. */
static NOINLINE const uint8_t *read_tags(Reader *reader, const Program *program, PyObject *object, const uint8_t *at)
{
    const uint8_t *end = reader->end;
    uint32_t count;
    if (!read_uvarint(&at, end, &count) || (int64_t)count * 2 > end - at || count > MAX_TAGGED_FIELDS
        || !charge(reader, count, reader->engine->tag_cost))
        return NULL;
    const Op *first = program->ops + program->inlined, *known = first, *stop = first + program->tagged;
    for (int64_t last = -1; count; count--) {
        uint32_t tag, size;
        if (!read_uvarint(&at, end, &tag) || !read_uvarint(&at, end, &size) || tag <= last || size > end - at)
            return NULL;
        last = tag;
        while (known < stop && known->tag < tag)
            known++;
        if (known < stop && known->tag == tag)
            at = read_known(reader, program->known + 2 * (known - first), object, size, at);
        else if (!is_barred(program, tag))
            at = read_unknown(slot_at(object, program->tags), tag, size, at);
        else
            return NULL;
        if (at == NULL)
            return NULL;
    }
    return at;
}

/* Whether a value of parts, or a length, was read and leaves what the rest of its struct takes. */
static inline bool has_rest(const uint8_t *at, const uint8_t *end, const Step *step)
{
    return at != NULL && end - at >= step->rest;
}

/* Take the steps for each object: one that is there already, with the bytes of its steps, or a new one. */
static const uint8_t *run(Reader *reader, const Program *program, const Step *steps, PyObject **item,
                          PyObject **stop, const uint8_t *at)
{
    const uint8_t *const end = reader->end;
    Engine *const engine = reader->engine;
    const Step *step = steps;
    PyObject *object;
start:
    object = *item;
    if (object == NULL && ((object = *item = make(reader, program)) == NULL || end - at < program->min_size))
        return NULL;
    for (;; step++) {
        PyObject **slot = slot_at(object, step->offset);
        switch (step->code) { /* what has a fixed size goes on, since its bytes are there */
        case INT8:
            if ((*slot = read_fixed(engine, INT8, at)) == NULL)
                return NULL;
            at += 1;
            break;
        case INT16:
            if ((*slot = read_fixed(engine, INT16, at)) == NULL)
                return NULL;
            at += 2;
            break;
        case INT32:
            if ((*slot = read_fixed(engine, INT32, at)) == NULL)
                return NULL;
            at += 4;
            break;
        case INT64:
            if ((*slot = read_fixed(engine, INT64, at)) == NULL)
                return NULL;
            at += 8;
            break;
        case UINT16:
            if ((*slot = read_fixed(engine, UINT16, at)) == NULL)
                return NULL;
            at += 2;
            break;
        case UINT32:
            if ((*slot = read_fixed(engine, UINT32, at)) == NULL)
                return NULL;
            at += 4;
            break;
        case FLOAT64:
            if ((*slot = read_fixed(engine, FLOAT64, at)) == NULL)
                return NULL;
            at += 8;
            break;
        case BOOLEAN:
            if ((*slot = read_fixed(engine, BOOLEAN, at)) == NULL)
                return NULL;
            at += 1;
            break;
        case UUID:
            if ((*slot = read_fixed(engine, UUID, at)) == NULL)
                return NULL;
            at += 16;
            break;
        case COMPACT_STRING: {
            uint32_t size = *at;
            if (size == 0 && step->flags & NULLABLE) {
                *slot = Py_NewRef(Py_None);
                at++;
                break;
            }
            if (size - 1 > 126 || size - 1 > end - at - 1 - step->rest) {
                at = read_sized(reader, STRING, step->flags, step->rest, at, end, slot);
                if (!has_rest(at, end, step))
                    return NULL;
                break;
            }
            if ((*slot = read_string(reader, at + 1, size - 1)) == NULL)
                return NULL;
            at += size;
            break;
        }
        case STRING:
        case LONG_STRING:
        case BYTES:
        case COMPACT_BYTES:
            at = read_sized(reader, step->op->kind, step->flags, step->rest, at, end, slot);
            if (!has_rest(at, end, step))
                return NULL;
            break;
        case BYTES_TO_END:
            *slot = PyBytes_FromStringAndSize((const char *)at, end - at);
            at = *slot == NULL ? NULL : end;
            if (!has_rest(at, end, step))
                return NULL;
            break;
        case STRUCT:
            if (!has_rest(at = read_object(reader, step->op->inner, at, slot), end, step))
                return NULL;
            break;
        case MARKED:
            if (!has_rest(at = read_marked(reader, step->op->inner, UINT8_MAX, at, slot), end, step))
                return NULL;
            break;
        case TAGGED_MARKED:
            if (!has_rest(at = read_marked(reader, step->op->inner, 0, at, slot), end, step))
                return NULL;
            break;
        case ARRAY:
            if (!has_rest(at = read_array(reader, step->op, at, slot), end, step))
                return NULL;
            break;
        case STRUCTS_TO_END:
            if (!has_rest(at = read_sequence(reader, step->op, at, slot), end, step))
                return NULL;
            break;
        case TAGS:
            if (*at == 0)
                at++;
            else if ((at = read_tags(reader, step->program, object, at)) == NULL)
                return NULL;
            if (*slot == NULL)
                *slot = Py_NewRef(Py_None);
            break;
        case CONSTANT: *slot = Py_NewRef(step->default_value); break;
        case FRESH_ONE:
            if (*slot == NULL && (*slot = default_value(reader, step->op)) == NULL)
                return NULL;
            break;
        default: /* END */
            if (++item == stop)
                return at;
            step = steps;
            goto start;
        }
    }
}

PyObject *engine_decode(const Program *program, const uint8_t *start, const uint8_t *end, const Budgets *budgets,
                        const uint8_t **stop, bool *has_zero)
{
    Engine *engine = program->engine;
    if (engine->current == NULL) /* the module is going */
        return NULL;
    Reader reader;
    reader.end = end;
    reader.engine = engine;
    reader.made = reader.next = reader.few;
    reader.limit = reader.few + MADE;
    reader.size = end - start;
    reader.has_zero = has_zero;
    reader.charged = budgets != NULL;
    if (budgets != NULL)
        reader.budgets = *budgets;
    PyObject *object;
    *stop = read_object(&reader, program, start, &object);
    if (*stop == NULL) {
        Py_XDECREF(object);
        PyErr_Clear();
        object = NULL;
    } else
        for (PyObject **made = reader.made; made < reader.next; made++)
            PyObject_GC_Track(*made);
    if (reader.made != reader.few)
        PyMem_Free(reader.made);
    return object;
}
