/* Types and slots: what the files of the record half need to make types and to fill objects of Python's classes.

   Rule: a slot is filled by its offset only if its class's own descriptor is that of a plain slot. */

#include "record_codec.h"

#include <structmember.h>

Py_ssize_t place_of_slot(PyTypeObject *type, const char *name)
{
    PyObject *attribute = PyObject_GetAttrString((PyObject *)type, name);
    if (!attribute)
        return -1;
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(attribute, &PyMemberDescr_Type)) {
        PyMemberDescrObject *descriptor = (PyMemberDescrObject *)attribute;
        PyMemberDef *member = descriptor->d_member;
        if (PyDescr_TYPE(descriptor) == type && member->type == T_OBJECT_EX && !(member->flags & READONLY)
            && member->offset >= (Py_ssize_t)sizeof(PyObject)
            && member->offset + (Py_ssize_t)sizeof(PyObject *) <= type->tp_basicsize)
            offset = member->offset;
    }
    Py_DECREF(attribute);
    if (offset < 0)
        PyErr_Format(PyExc_TypeError, "%s.%s is not a slot", type->tp_name, name);
    return offset;
}

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

int add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    int failed = !type || PyModule_AddType(module, (PyTypeObject *)type) < 0;
    Py_XDECREF(type);
    return failed ? -1 : 0;
}
