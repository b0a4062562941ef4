/* The slots of classes made in Python, by their offsets.

   Rule: what a slot holds is checked each time it is read; an empty one is NULL. */

#ifndef COORDWIRE_SLOTS_H
#define COORDWIRE_SLOTS_H

#include "../module.h"

#include <stdbool.h>
#include <stdint.h>

/* The offset of a slot that this class itself has; -1 with a TypeError where it has none of that name. */
Py_ssize_t find_slot(PyTypeObject *cls, const char *name);

/* Whether objects of a class are made by the allocator that all classes made in Python have. */
bool is_plain_class(const PyTypeObject *cls);

/* The value, borrowed, or NULL. */
static inline PyObject *slot_value(PyObject *object, Py_ssize_t offset) { return *slot_at(object, offset); }

/* A number; false where the slot holds none that fits. */
static inline bool slot_number(PyObject *object, Py_ssize_t offset, int64_t *number)
{
    PyObject *value = slot_value(object, offset);
    if (value == NULL || !PyLong_Check(value))
        return false;
    *number = PyLong_AsLongLong(value);
    if (*number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return true;
}

/* Put a value there, whose reference is the caller's still. */
static inline void set_slot(PyObject *object, Py_ssize_t offset, PyObject *value)
{
    PyObject **place = slot_at(object, offset), *old = *place;
    *place = Py_NewRef(value);
    Py_XDECREF(old);
}

#endif
