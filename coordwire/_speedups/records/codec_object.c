/* The life of a `Codec`: what it knows of the class `Record`, and its references.

   Strategy: Record is an ordinary slotted dataclass; the offsets of its slots are found once, from the class's
   descriptors, and checked. Rules: any other class is refused when the codec is made, and Python's own code runs
   instead. A codec has no state but its own: interpreters share nothing here. */

#include "record_codec.h"

static const char *const fields[FIELDS] = {"offset", "timestamp", "key", "value", "headers"};

PyObject *codec_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"record", NULL};
    PyTypeObject *record;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!:Codec", names, &PyType_Type, &record))
        return NULL;
    if (!is_slotted(record))
        return NULL;
    Codec *self = (Codec *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->record = (PyTypeObject *)Py_NewRef((PyObject *)record);
    if (!(self->run = own_type(type, "Run")) || !(self->body = own_type(type, "Body"))
        || !(self->walk = own_type(type, "Walk")) || !(self->opened = own_type(type, "Opened"))
        || !(self->empty = PyTuple_New(0)) || find_slots(record, fields, FIELDS, self->slots) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

int codec_traverse(Codec *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->record);
    Py_VISIT(self->run);
    Py_VISIT(self->body);
    Py_VISIT(self->walk);
    Py_VISIT(self->opened);
    Py_VISIT(self->batch);
    return 0;
}

/* Only what may lead back to it; the rest is needed as long as anything uses it. */
int codec_clear(Codec *self)
{
    Py_CLEAR(self->batch);
    return 0;
}

void codec_dealloc(Codec *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->record);
    Py_XDECREF(self->run);
    Py_XDECREF(self->body);
    Py_XDECREF(self->walk);
    Py_XDECREF(self->opened);
    Py_XDECREF(self->batch);
    Py_XDECREF(self->empty);
    for (int index = 0; index < NAMES; index++)
        Py_XDECREF(self->names[index]);
    PyMem_RawFree(self->spare.data);
    type->tp_free(self);
    Py_DECREF(type);
}

int is_codec(PyObject *value)
{
    return Py_TYPE(value)->tp_dealloc == (destructor)codec_dealloc; /* it has no subclasses */
}
