/* Where a class made in Python has its slots; and `SlotMaker`, which makes its objects from all their values.

   Rule: a maker runs nothing of Python, so that it is only for classes whose `__init__` fills slots and does no more,
   as that of a dataclass. */

#include "slots.h"

#include <stddef.h>
#include <structmember.h>

Py_ssize_t find_slot(PyTypeObject *cls, const char *name)
{
    PyObject *attribute = PyObject_GetAttrString((PyObject *)cls, name);
    if (attribute == NULL)
        return -1;
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(attribute, &PyMemberDescr_Type) && PyDescr_TYPE(attribute) == cls) {
        const PyMemberDef *member = ((PyMemberDescrObject *)attribute)->d_member;
        if (member->type == T_OBJECT_EX && member->flags == 0)
            offset = member->offset;
    }
    Py_DECREF(attribute);
    if (offset < 0)
        PyErr_Format(PyExc_TypeError, "%.200s.%s is not a slot", cls->tp_name, name);
    return offset;
}

bool is_plain_class(const PyTypeObject *cls)
{
    return cls->tp_alloc == PyType_GenericAlloc && cls->tp_itemsize == 0
           && PyType_HasFeature((PyTypeObject *)cls, Py_TPFLAGS_HEAPTYPE);
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

/* The offset of a slot that a class has or inherits; -1 with a TypeError where there is none of that name. */
static Py_ssize_t inherited_slot(PyTypeObject *cls, PyObject *name)
{
    PyObject *attribute = PyUnicode_Check(name) ? PyObject_GetAttr((PyObject *)cls, name) : NULL;
    Py_ssize_t offset = -1;
    if (attribute != NULL && Py_IS_TYPE(attribute, &PyMemberDescr_Type)
        && PyType_IsSubtype(cls, PyDescr_TYPE(attribute))) {
        const PyMemberDef *member = ((PyMemberDescrObject *)attribute)->d_member;
        if (member->type == T_OBJECT_EX && member->flags == 0)
            offset = member->offset;
    }
    Py_XDECREF(attribute);
    if (offset < 0) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%.200s has no slot %R", cls->tp_name, name);
    }
    return offset;
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
        maker->offsets[index] = inherited_slot(cls, PyTuple_GET_ITEM(names, index));
        if (maker->offsets[index] < 0) {
            Py_DECREF(maker);
            return NULL;
        }
    }
    return (PyObject *)maker;
}

static int slot_maker_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((SlotMaker *)self)->cls);
    return 0;
}

static void slot_maker_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(((SlotMaker *)self)->cls);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef slot_maker_methods[] = {
    {"make", (PyCFunction)(void (*)(void))slot_maker_make, METH_FASTCALL, make_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slot_maker_slots[] = {
    {Py_tp_doc, (void *)slot_maker_doc},   {Py_tp_new, slot_maker_new},         {Py_tp_traverse, slot_maker_traverse},
    {Py_tp_dealloc, slot_maker_dealloc},   {Py_tp_methods, slot_maker_methods}, {0, NULL},
};

static PyType_Spec slot_maker_spec = {
    .name = "coordwire._speedups._native.SlotMaker",
    .basicsize = offsetof(SlotMaker, offsets),
    .itemsize = sizeof(Py_ssize_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slot_maker_slots,
};

int slots_exec(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &slot_maker_spec, NULL);
    if (type == NULL)
        return -1;
    int status = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return status;
}
