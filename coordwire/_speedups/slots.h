/* The slots of classes made in Python, by their offsets.

   Rule: what a slot holds is checked each time it is read; an empty one is NULL. */

#ifndef COORDWIRE_SLOTS_H
#define COORDWIRE_SLOTS_H

#include "module.h"

#include <stdbool.h>
#include <stdint.h>

static inline PyObject **slot_at(PyObject *object, Py_ssize_t offset)
{
    return (PyObject **)((char *)object + offset);
}

/* The offset of a slot that a class has or inherits; -1 with a TypeError where it has none of that name. */
Py_ssize_t slot_offset(PyTypeObject *cls, PyObject *name);

/* Those of several slots; -1 with an exception. */
int find_slots(PyTypeObject *cls, const char *const *names, int count, Py_ssize_t *offsets);

/* Whether objects of a class are made by the allocator that all classes made in Python have. */
bool is_plain_class(const PyTypeObject *cls);

/* Make a type and put it into the module; NULL with an exception. */
PyTypeObject *make_type(PyObject *module, PyType_Spec *spec);

/* The same, kept by the module alone; 0, or -1 with an exception. */
int add_type(PyObject *module, PyType_Spec *spec);

/* How objects are traversed and freed that own what is from one of their pointers to another, and nothing else. */
#define OWNS(Type, first, last)                                                                \
    static int Type##_traverse(PyObject *self, visitproc visit, void *arg)                     \
    {                                                                                          \
        PyObject **const end = (PyObject **)&((Type *)self)->last;                             \
        Py_VISIT(Py_TYPE(self));                                                               \
        for (PyObject **at = (PyObject **)&((Type *)self)->first; at <= end; at++)             \
            Py_VISIT(*at);                                                                     \
        return 0;                                                                              \
    }                                                                                          \
    static int Type##_clear(PyObject *self)                                                    \
    {                                                                                          \
        PyObject **const end = (PyObject **)&((Type *)self)->last;                             \
        for (PyObject **at = (PyObject **)&((Type *)self)->first; at <= end; at++)             \
            Py_CLEAR(*at);                                                                     \
        return 0;                                                                              \
    }                                                                                          \
    static void Type##_dealloc(PyObject *self)                                                 \
    {                                                                                          \
        PyTypeObject *type = Py_TYPE(self);                                                    \
        PyObject_GC_UnTrack(self);                                                             \
        (void)Type##_clear(self);                                                              \
        type->tp_free(self);                                                                   \
        Py_DECREF(type);                                                                       \
    }

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
