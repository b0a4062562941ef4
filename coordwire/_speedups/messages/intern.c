/* Values that are shared: made, and kept where they come again. See intern.h. */

#include "engine.h"

PyObject *make_text(const uint8_t *at, size_t size)
{
    if (size < 2) /* Python shares the texts of one character */
        return PyUnicode_DecodeUTF8((const char *)at, (Py_ssize_t)size, NULL);
    PyObject *text = PyUnicode_New((Py_ssize_t)size, 127);
    if (text == NULL || copy_ascii((uint8_t *)((PyASCIIObject *)text + 1), at, size))
        return text;
    Py_DECREF(text);
    return PyUnicode_DecodeUTF8((const char *)at, (Py_ssize_t)size, NULL);
}

/* Keep an object at its place if it was the last one seen there. */
static NOINLINE PyObject *offer(Interned *place, uint64_t tag, PyObject *object)
{
    if (place->candidate != tag)
        place->candidate = tag;
    else {
        place->tag = tag;
        Py_XSETREF(place->object, Py_NewRef(object)); /* of plain types: no one's code runs */
    }
    return object;
}

PyObject *share_text(Interned *place, uint64_t tag, const uint8_t *at, size_t size)
{
    PyObject *text = make_text(at, size);
    return text != NULL && PyUnicode_IS_COMPACT_ASCII(text) ? offer(place, tag, text) : text;
}

PyObject *share_number(Interned *place, int64_t number)
{
    PyObject *object = PyLong_FromLongLong(number);
    return object == NULL ? NULL : offer(place, (uint64_t)number, object);
}

static PyObject *make_uuid(const Engine *engine, PyObject *number)
{
    PyObject *uuid = number == NULL ? NULL : engine->uuid_type->tp_alloc(engine->uuid_type, 0);
    if (uuid == NULL)
        return NULL;
    *slot_at(uuid, engine->uuid_int) = Py_NewRef(number);
    *slot_at(uuid, engine->uuid_safety) = Py_NewRef(engine->safety);
    return uuid;
}

PyObject *read_uuid(Engine *engine, const uint8_t *at)
{
    const uint64_t high = load_word(at), low = load_word(at + 8), tag = (high ^ low >> 7) * INTERN_FACTOR;
    InternedUuid *place = engine->interned.uuids + (tag >> (64 - UUID_BITS));
    if (place->high == high && place->low == low && place->object != NULL
        && Py_IS_TYPE(place->object, engine->uuid_type)
        && *slot_at(place->object, engine->uuid_int) == place->number
        && *slot_at(place->object, engine->uuid_safety) == engine->safety)
        return Py_NewRef(place->object);
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *number = PyLong_FromUnsignedNativeBytes(at, 16, Py_ASNATIVEBYTES_BIG_ENDIAN);
#else
    PyObject *number = _PyLong_FromByteArray(at, 16, 0, 0);
#endif
    PyObject *uuid = make_uuid(engine, number);
    if (uuid == NULL || place->candidate != tag) {
        place->candidate = tag;
        Py_XDECREF(number);
        return uuid;
    }
    PyObject *last_number = place->number, *last = place->object;
    *place = (InternedUuid){high, low, 0, number, Py_NewRef(uuid)};
    Py_XDECREF(last_number);
    Py_XDECREF(last); /* weak references to it may call somebody's code */
    return uuid;
}

void clear_interned(InternTable *interned)
{
    Py_CLEAR(interned->empty);
    for (int i = 0; i < 1 << TEXT_BITS; i++)
        Py_CLEAR(interned->texts[i].object);
    for (int i = 0; i < 1 << NUMBER_BITS; i++)
        Py_CLEAR(interned->numbers[i].object);
    for (int i = 0; i < 1 << UUID_BITS; i++) {
        Py_CLEAR(interned->uuids[i].number);
        Py_CLEAR(interned->uuids[i].object);
    }
}
