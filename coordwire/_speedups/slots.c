/* Where a class made in Python has its slots; and `SlotMaker`, which makes its objects from all their values, and
   lists of the values that objects have.

   Rule: a maker runs nothing of Python, so that it is only for classes whose `__init__` fills slots and does no more,
   as that of a dataclass. */

#include "slots.h"

#include <stddef.h>
#include <structmember.h>

Py_ssize_t slot_offset(PyTypeObject *cls, PyObject *name)
{
    PyObject *descr = PyObject_GetAttr((PyObject *)cls, name);
    Py_ssize_t offset = -1;
    if (descr != NULL && Py_IS_TYPE(descr, &PyMemberDescr_Type) && PyType_IsSubtype(cls, PyDescr_TYPE(descr))) {
        const PyMemberDef *member = ((PyMemberDescrObject *)descr)->d_member;
        Py_ssize_t at = member->offset;
        if (member->type == T_OBJECT_EX && member->flags == 0 && at >= (Py_ssize_t)sizeof(PyObject)
            && at % (Py_ssize_t)sizeof(PyObject *) == 0
            && at + (Py_ssize_t)sizeof(PyObject *) <= PyDescr_TYPE(descr)->tp_basicsize)
            offset = at;
    }
    Py_XDECREF(descr);
    if (offset < 0)
        PyErr_Format(PyExc_TypeError, "%.200s.%S is not a slot", cls->tp_name, name);
    return offset;
}

int find_slots(PyTypeObject *cls, const char *const *names, int count, Py_ssize_t *offsets)
{
    for (int i = 0; i < count; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        offsets[i] = name == NULL ? -1 : slot_offset(cls, name);
        Py_XDECREF(name);
        if (offsets[i] < 0)
            return -1;
    }
    return 0;
}

bool is_plain_class(const PyTypeObject *cls)
{
    return cls->tp_alloc == PyType_GenericAlloc && cls->tp_itemsize == 0
           && PyType_HasFeature((PyTypeObject *)cls, Py_TPFLAGS_HEAPTYPE);
}

PyTypeObject *make_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type == NULL && !PyErr_Occurred()) /* CPython 3.11 leaves that out of some of its refusals */
        PyErr_NoMemory();
    else if (type != NULL && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

int add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = make_type(module, spec);
    Py_XDECREF(type);
    return type == NULL ? -1 : 0;
}

/* --- SlotMaker --- */

typedef struct {
    PyObject_VAR_HEAD
    PyTypeObject *cls;
    Py_ssize_t offsets[1];
} SlotMaker;

PyDoc_STRVAR(make_doc, "make(*values) -> object\n\nA new object with these values, in the order of the slots.");

static PyObject *slot_maker_make(PyObject *self, PyObject *const *values, Py_ssize_t count)
{
    SlotMaker *maker = (SlotMaker *)self;
    if (count != Py_SIZE(maker)) {
        PyErr_Format(PyExc_TypeError, "expected %zd values, got %zd", Py_SIZE(maker), count);
        return NULL;
    }
    PyObject *object = maker->cls->tp_alloc(maker->cls, 0);
    if (object != NULL)
        for (Py_ssize_t index = 0; index < count; index++)
            set_slot(object, maker->offsets[index], values[index]);
    return object;
}

PyDoc_STRVAR(lists_doc, "lists(objects) -> tuple[list, ...]\n\n"
                        "The values of each slot in a list, in the order of the objects; None where one is empty.");

static PyObject *slot_maker_lists(PyObject *self, PyObject *objects)
{
    const SlotMaker *maker = (SlotMaker *)self;
    PyObject *all = PySequence_Tuple(objects); /* which a collection can't change */
    const Py_ssize_t count = all == NULL ? 0 : PyTuple_GET_SIZE(all);
    for (Py_ssize_t at = 0; at < count; at++)
        if (!PyObject_TypeCheck(PyTuple_GET_ITEM(all, at), maker->cls)) {
            PyErr_Format(PyExc_TypeError, "expected objects of %.200s", maker->cls->tp_name);
            Py_CLEAR(all);
            return NULL;
        }
    PyObject *lists = all == NULL ? NULL : PyTuple_New(Py_SIZE(maker));
    for (Py_ssize_t index = 0; lists != NULL && index < Py_SIZE(maker); index++) {
        PyObject *list = PyList_New(count);
        if (list == NULL) {
            Py_CLEAR(lists);
            break;
        }
        for (Py_ssize_t at = 0; at < count; at++) {
            PyObject *value = slot_value(PyTuple_GET_ITEM(all, at), maker->offsets[index]);
            PyList_SET_ITEM(list, at, Py_NewRef(value == NULL ? Py_None : value));
        }
        PyTuple_SET_ITEM(lists, index, list);
    }
    Py_XDECREF(all);
    return lists;
}

PyDoc_STRVAR(slot_maker_doc, "SlotMaker(cls, names)\n\nMakes objects of a class from the values of these slots.");

static PyObject *slot_maker_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyTypeObject *cls;
    PyObject *names;
    if (keywords != NULL && PyDict_GET_SIZE(keywords)) {
        PyErr_SetString(PyExc_TypeError, "SlotMaker takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyType_Type, &cls, &PyTuple_Type, &names))
        return NULL;
    if (!is_plain_class(cls)) {
        PyErr_Format(PyExc_TypeError, "%.200s is not a class made in Python", cls->tp_name);
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(names);
    SlotMaker *maker = (SlotMaker *)type->tp_alloc(type, count);
    if (maker == NULL)
        return NULL;
    maker->cls = (PyTypeObject *)Py_NewRef(cls);
    for (Py_ssize_t index = 0; index < count; index++) {
        maker->offsets[index] = slot_offset(cls, PyTuple_GET_ITEM(names, index));
        if (maker->offsets[index] < 0) {
            Py_DECREF(maker);
            return NULL;
        }
    }
    return (PyObject *)maker;
}

OWNS(SlotMaker, cls, cls)

static PyMethodDef slot_maker_methods[] = {
    {"make", (PyCFunction)(void (*)(void))slot_maker_make, METH_FASTCALL, make_doc},
    {"lists", slot_maker_lists, METH_O, lists_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slot_maker_slots[] = {
    {Py_tp_doc, (void *)slot_maker_doc}, {Py_tp_new, slot_maker_new},         {Py_tp_traverse, SlotMaker_traverse},
    {Py_tp_dealloc, SlotMaker_dealloc},  {Py_tp_methods, slot_maker_methods}, {0, NULL},
};

PyType_Spec slot_maker_spec = {
    .name = "coordwire._speedups._native.SlotMaker",
    .basicsize = offsetof(SlotMaker, offsets),
    .itemsize = sizeof(Py_ssize_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slot_maker_slots,
};
