/* Which fields have their defaults and need not be written.

   Strategy: a value is compared with its default only where both are of one plain type; a struct's default is
   that of all its fields. Rule: what can't be decided without running Python code is UNSURE, and the encode gives
   up. */

#include "encode.h"

/* Whether there are unknown tagged fields. */
State state_of_tags(PyObject *tags)
{
    if (tags == Py_None)
        return DEFAULT;
    return tags == NULL || !PyDict_CheckExact(tags) ? UNSURE : PyDict_GET_SIZE(tags) ? SET : DEFAULT;
}

/* Whether a struct's fields all have their defaults, and there are no unknown tagged fields. */
static State state_of_struct(const Engine *engine, const Program *inner, PyObject *value)
{
    if (!Py_IS_TYPE(value, inner->cls))
        return UNSURE;
    State result = state_of_tags(*slot_at(value, inner->tags));
    for (const Op *op = inner->ops; op < inner->ops + Py_SIZE(inner) && result != UNSURE; op++) {
        State state = state_of(engine, op, *slot_at(value, op->offset));
        if (state != DEFAULT)
            result = state;
    }
    return result;
}

/* Whether a value is its field's default, as far as that can be decided without calling the value. */
State state_of(const Engine *engine, const Op *op, PyObject *value)
{
    if (value == NULL)
        return UNSURE;
    if (value == op->default_value && !(op->flags & FRESH))
        return DEFAULT;
    if (op->default_value == Py_None && !(op->flags & FRESH))
        return SET;
    if (value == Py_None)
        return op->flags & EVER_NULL ? SET : UNSURE;
    if (op->flags & FRESH) {
        if (!(op->flags & IS_ARRAY))
            return state_of_struct(engine, op->inner, value);
        return !PyList_CheckExact(value) ? UNSURE : PyList_GET_SIZE(value) ? SET : DEFAULT;
    }
    if (!Py_IS_TYPE(value, Py_TYPE(op->default_value)))
        return UNSURE;
    PyObject *default_value = op->default_value;
    if (op->kind == UUID) {
        value = uuid_number(engine, value);
        default_value = uuid_number(engine, default_value);
    } else if (!PyLong_CheckExact(value) && !PyUnicode_CheckExact(value) && !PyBytes_CheckExact(value)
               && !PyFloat_CheckExact(value) && !PyBool_Check(value))
        return UNSURE;
    if (value == NULL || default_value == NULL)
        return UNSURE;
    int equal = PyObject_RichCompareBool(value, default_value, Py_EQ); /* of builtin types: no one's code */
    return equal < 0 ? UNSURE : equal ? DEFAULT : SET;
}
