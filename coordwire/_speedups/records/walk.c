/* `Walk`: from batch to batch without a Python frame; what `Batches` is made of.

   Strategy: a batch of magic 2 that is all there is opened with nothing of it read but its length. Rules: whatever
   else is there is left to the `_next` of the subclass, which goes over the same bytes. */

#include "opened.h"

#include <stddef.h>
#include <structmember.h>

/* The size of the batch at `at`; 0 if it isn't all there, isn't of magic 2 or can't be. */
static Py_ssize_t batch_size(const uint8_t *at, Py_ssize_t available)
{
    if (available < BATCH_HEADER || at[16] != 2)
        return 0;
    uint32_t length = big32(at + 8);
    if (length < BATCH_HEADER - LOG_OVERHEAD || length > INT32_MAX - LOG_OVERHEAD)
        return 0;
    return (Py_ssize_t)length <= available - LOG_OVERHEAD ? (Py_ssize_t)length + LOG_OVERHEAD : 0;
}

enum { DOUBT = 0, END = -1, FAILED = -2 };

/* The size of the batch at `position`, or one of these. */
static Py_ssize_t size_at(PyObject *source, Py_ssize_t position)
{
    Py_buffer view;
    Py_ssize_t size = DOUBT;
    if (PyObject_GetBuffer(source, &view, PyBUF_SIMPLE) < 0)
        return FAILED;
    if (position >= view.len)
        size = END;
    else if (position >= 0)
        size = batch_size((const uint8_t *)view.buf + position, view.len - position);
    PyBuffer_Release(&view);
    return size;
}

typedef struct {
    PyObject_HEAD
    PyObject *codec;  /* that opens what is in order; NULL or None: Python does it all */
    PyObject *source; /* bytes or a memoryview, or NULL */
    Py_ssize_t position;
} Walk;

/* The batch of `size` bytes at the position, after which that moves. */
static PyObject *step(Walk *self, Py_ssize_t size)
{
    PyObject *codec = Py_NewRef(self->codec), *source = Py_NewRef(self->source);
    Py_ssize_t at = self->position;
    self->position += size; /* now, as Python code may run where memory is got */
    PyObject *batch = batch_at((Codec *)codec, source, at, size);
    if (!batch)
        self->position = at;
    Py_DECREF(source);
    Py_DECREF(codec);
    return batch;
}

static PyObject *walk_next(Walk *self)
{
    if (self->codec && self->source && is_codec(self->codec) && ((Codec *)self->codec)->batch
        && (PyBytes_CheckExact(self->source) || PyMemoryView_Check(self->source))) {
        Py_ssize_t size = size_at(self->source, self->position);
        if (size > 0)
            return step(self, size);
        if (size != DOUBT)
            return NULL;
    }
    return PyObject_CallMethod((PyObject *)self, "_next", NULL);
}

static int walk_traverse(Walk *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->codec);
    Py_VISIT(self->source);
    return 0;
}

static int walk_clear(Walk *self)
{
    Py_CLEAR(self->codec);
    Py_CLEAR(self->source);
    return 0;
}

static void walk_dealloc(Walk *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    walk_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef walk_members[] = {
    {"_quick", T_OBJECT, offsetof(Walk, codec), 0, "The Codec that opens batches, or None."},
    {"position", T_PYSSIZET, offsetof(Walk, position), 0, "The byte at which the next would begin."},
    {0},
};

/* A view of bytes is made when it is first asked for. */
static PyObject *walk_view(Walk *self, void *unused)
{
    (void)unused;
    if (!self->source)
        return PyErr_Format(PyExc_AttributeError, "_view");
    if (PyBytes_CheckExact(self->source)) {
        PyObject *view = PyMemoryView_FromObject(self->source);
        if (!view)
            return NULL;
        Py_SETREF(self->source, view);
    }
    return Py_NewRef(self->source);
}

static int walk_set_view(Walk *self, PyObject *view, void *unused)
{
    (void)unused;
    Py_XSETREF(self->source, Py_XNewRef(view));
    return 0;
}

static PyGetSetDef walk_getset[] = {
    {"_view", (getter)walk_view, (setter)walk_set_view, "What holds them, a memoryview.", NULL},
    {0},
};

PyObject *codec_walk(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Codec *codec = (Codec *)self;
    if (count != 2 || !PyType_Check(args[0]) || !PyType_IsSubtype((PyTypeObject *)args[0], codec->walk)
        || !PyBytes_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "walk takes a subclass of Walk and bytes");
        return NULL;
    }
    Walk *walk = (Walk *)((PyTypeObject *)args[0])->tp_alloc((PyTypeObject *)args[0], 0);
    if (walk) {
        walk->codec = Py_NewRef(self);
        walk->source = Py_NewRef(args[1]);
    }
    return (PyObject *)walk;
}

static PyType_Slot walk_slots[] = {
    {Py_tp_doc, "An iterator over batches; those that aren't in order are what its `_next` says."},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, walk_next},
    {Py_tp_members, walk_members},
    {Py_tp_getset, walk_getset},
    {Py_tp_traverse, walk_traverse},
    {Py_tp_clear, walk_clear},
    {Py_tp_dealloc, walk_dealloc},
    {0, NULL},
};

static PyType_Spec walk_spec = {
    .name = "coordwire._speedups._native.Walk",
    .basicsize = sizeof(Walk),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = walk_slots,
};

int walk_exec(PyObject *module)
{
    return add_type(module, &walk_spec);
}
