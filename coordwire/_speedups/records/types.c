/* Types and slots: what the files of the record half need to make types and to fill objects of Python's classes.

   Rule: a slot is filled by its offset only if its class's own descriptor is that of a plain slot. */

#include "record_codec.h"

int is_slotted(PyTypeObject *type)
{
    if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !type->tp_itemsize && !type->tp_dictoffset
        && !type->tp_weaklistoffset && type->tp_base == &PyBaseObject_Type)
        return 1;
    PyErr_Format(PyExc_TypeError, "%s is not a plain slotted class", type->tp_name);
    return 0;
}

PyTypeObject *own_type(PyTypeObject *type, const char *name)
{
    PyObject *module = PyType_GetModule(type);
    PyObject *attribute = module ? PyObject_GetAttrString(module, name) : NULL;
    if (attribute && (!PyType_Check(attribute) || PyType_GetModule((PyTypeObject *)attribute) != module)) {
        PyErr_Format(PyExc_TypeError, "%s belongs to another class", name);
        Py_CLEAR(attribute);
    }
    return (PyTypeObject *)attribute;
}
