/* Batches of magic 2 without a Python frame: kept as they were opened.

   Strategy: `Opened` holds a batch's place alone; its view and its header are made when Python asks for them, and a
   Run over it looks at the header and the checksum when the first record is asked for. Rules: the place is set once;
   the position and size that Python sees are labels, as in its own code. */

#include "opened.h"

#include <stddef.h>
#include <structmember.h>

#include "run.h"

/* --- a batch --- */

PyObject *batch_at(Codec *codec, PyObject *source, Py_ssize_t at, Py_ssize_t length)
{
    Opened *batch = (Opened *)codec->batch->tp_alloc(codec->batch, 0);
    if (batch) {
        batch->codec = (Codec *)Py_NewRef((PyObject *)codec);
        batch->source = Py_NewRef(source);
        batch->kept = Py_NewRef(Py_None);
        batch->at = batch->position = at;
        batch->length = batch->size = length;
    }
    return (PyObject *)batch;
}

PyObject *codec_know(PyObject *self, PyObject *batch)
{
    Codec *codec = (Codec *)self;
    if (!PyType_Check(batch) || !PyType_IsSubtype((PyTypeObject *)batch, codec->opened)
        || ((PyTypeObject *)batch)->tp_basicsize != sizeof(Opened)) {
        PyErr_SetString(PyExc_TypeError, "know takes a subclass of Opened that has no more slots");
        return NULL;
    }
    Py_XSETREF(codec->batch, (PyTypeObject *)Py_NewRef(batch));
    Py_RETURN_NONE;
}

static PyObject *run_over(Codec *codec, PyObject *batch, int create_time)
{
    Run *run = (Run *)codec->run->tp_alloc(codec->run, 0);
    if (!run)
        return NULL;
    run->codec = (Codec *)Py_NewRef((PyObject *)codec);
    run->batch = Py_NewRef(batch);
    run->create_time = create_time;
    run->state = UNOPENED;
    return (PyObject *)run;
}

static PyObject *batch_iter(Opened *self)
{
    if (self->codec && self->kept == Py_None && Py_IS_TYPE(self, self->codec->batch))
        return run_over(self->codec, (PyObject *)self, 0);
    return PyObject_CallMethod((PyObject *)self, "records", NULL);
}

static PyObject *batch_view(Opened *self, void *unused)
{
    (void)unused;
    if (!self->view && self->source) {
        PyObject *buffer = PyMemoryView_FromObject(self->source);
        PyObject *view = buffer ? PySequence_GetSlice(buffer, self->at, self->at + self->length) : NULL;
        Py_XDECREF(buffer);
        if (!view)
            return NULL;
        Py_XSETREF(self->view, view);
    }
    if (!self->view)
        PyErr_SetString(PyExc_AttributeError, "_view");
    return Py_XNewRef(self->view);
}

static PyObject *batch_head(Opened *self, void *unused)
{
    (void)unused;
    if (!self->head) {
        PyObject *view = batch_view(self, NULL);
        PyObject *head = view ? PyObject_CallMethod((PyObject *)self, "_unpack", "O", view) : NULL;
        Py_XDECREF(view);
        if (!head)
            return NULL;
        Py_XSETREF(self->head, head);
    }
    return Py_NewRef(self->head);
}

static int batch_set_view(Opened *self, PyObject *view, void *unused)
{
    (void)unused;
    Py_XSETREF(self->view, Py_XNewRef(view));
    return 0;
}

static int batch_set_head(Opened *self, PyObject *head, void *unused)
{
    (void)unused;
    Py_XSETREF(self->head, Py_XNewRef(head));
    return 0;
}

static int batch_traverse(Opened *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->codec);
    Py_VISIT(self->source);
    Py_VISIT(self->view);
    Py_VISIT(self->head);
    Py_VISIT(self->kept);
    return 0;
}

static int batch_clear(Opened *self)
{
    Py_CLEAR(self->codec);
    Py_CLEAR(self->source);
    Py_CLEAR(self->view);
    Py_CLEAR(self->head);
    Py_CLEAR(self->kept);
    return 0;
}

static void batch_dealloc(Opened *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    batch_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef batch_members[] = {
    {"_first_chunk", T_OBJECT_EX, offsetof(Opened, kept), 0, "Records for the next iteration, or None."},
    {"position", T_PYSSIZET, offsetof(Opened, position), 0, "Its place, in bytes from the start of what was read."},
    {"size", T_PYSSIZET, offsetof(Opened, size), 0, "Its bytes, header included."},
    {0},
};

static PyGetSetDef batch_getset[] = {
    {"_view", (getter)batch_view, (setter)batch_set_view, "Its bytes.", NULL},
    {"_head", (getter)batch_head, (setter)batch_set_head, "Its header, as `_unpack` says.", NULL},
    {0},
};

static PyType_Slot batch_slots[] = {
    {Py_tp_doc, "A batch's place, and what was made of it."},
    {Py_tp_iter, batch_iter},
    {Py_tp_members, batch_members},
    {Py_tp_getset, batch_getset},
    {Py_tp_traverse, batch_traverse},
    {Py_tp_clear, batch_clear},
    {Py_tp_dealloc, batch_dealloc},
    {0, NULL},
};

static PyType_Spec batch_spec = {
    .name = "coordwire._speedups._native.Opened",
    .basicsize = sizeof(Opened),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = batch_slots,
};

int batch_exec(PyObject *module)
{
    return add_type(module, &batch_spec);
}

/* --- its records --- */

PyObject *codec_records(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Codec *codec = (Codec *)self;
    if (count != 2 || !codec->batch || !Py_IS_TYPE(args[0], codec->batch)) {
        PyErr_SetString(PyExc_TypeError, "records takes a RecordBatch and a bool");
        return NULL;
    }
    int create_time = PyObject_IsTrue(args[1]);
    return create_time < 0 ? NULL : run_over(codec, args[0], create_time);
}
