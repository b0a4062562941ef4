/* Batches of magic 2 without a Python frame: kept as they were opened, iterated where their checksum is right.

   Strategy: `Opened` holds a batch's place alone; its view and its header are made when Python asks for them, and a
   Run over it looks at the header and the checksum when the first record is asked for. Rules: the place is set once;
   the position and size that Python sees are labels, as in its own code. Whatever is not in order is left to Python,
   which goes over the same bytes and words the refusal; a codec's bytes are asked of the batch itself, checks
   included; a run that ends before the bytes do leaves the rest to the judge. */

#include "opened.h"

#include <stddef.h>
#include <structmember.h>

#include "../crc32c/crc32c.h"
#include "record_parser.h"
#include "run.h"

#define CODEC_BITS 0x07
#define APPEND_TIME 0x08
#define BIG (64 << 10) /* bytes from which on others may run meanwhile */

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
        PyObject *whole = PyMemoryView_FromObject(self->source);
        PyObject *view = whole ? PySequence_GetSlice(whole, self->at, self->at + self->length) : NULL;
        Py_XDECREF(whole);
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
    {"_kept", T_OBJECT_EX, offsetof(Opened, kept), 0, "Records for the next iteration, or None."},
    {"position", T_PYSSIZET, offsetof(Opened, position), 0, "Where it stands, in bytes from the start of what was read."},
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

/* Leave the records to an iterator, which is taken over; -1 with an exception if there is none. */
static int leave_to(Run *self, PyObject *rest)
{
    if (!rest)
        return -1;
    if (!PyIter_Check(rest)) {
        PyErr_SetString(PyExc_TypeError, "no iterator");
        Py_DECREF(rest);
        return -1;
    }
    Py_XSETREF(self->rest, rest);
    self->state = RESTING;
    return 0;
}

/* Leave all of them to Python's own code. */
static int leave_all(Run *self)
{
    return leave_to(
        self, PyObject_CallMethod(self->batch, "_exactly", "O", self->create_time ? Py_True : Py_False));
}

static uint32_t checksum(const uint8_t *at, Py_ssize_t size)
{
    uint32_t crc;
    if (size < BIG)
        return crc32c(0, at, (size_t)size);
    Py_BEGIN_ALLOW_THREADS;
    crc = crc32c(0, at, (size_t)size);
    Py_END_ALLOW_THREADS;
    return crc;
}

/* The batch's bytes, into `first` and `end`: its view, or if nobody has asked for that a part of its source.
   0, or -1 with an exception, or 1 if it hasn't any or no header is in them. */
static int find_bytes(Run *self)
{
    const Opened *batch = (Opened *)self->batch;
    int whole = batch->view != NULL;
    PyObject *source = whole ? batch->view : batch->source;
    if (!source)
        return 1;
    Py_INCREF(source); /* Python code may give the bytes */
    int failed = PyObject_GetBuffer(source, &self->view, PyBUF_SIMPLE) < 0;
    Py_DECREF(source);
    if (failed)
        return -1;
    self->first = self->at = (const uint8_t *)self->view.buf + (whole ? 0 : batch->at);
    self->end = self->first + (whole ? self->view.len : batch->length);
    return self->end - self->first < BATCH_HEADER;
}

/* Look at the batch and find its records' bytes: 0, or -1 with an exception. */
static int open_batch(Run *self)
{
    int missing = find_bytes(self);
    if (missing)
        return missing < 0 ? -1 : leave_all(self);
    const uint8_t *head = self->first;
    uint32_t attributes = (uint32_t)head[21] << 8 | head[22];
    int64_t latest = big64(head + 35);
    self->promised = (int32_t)big32(head + 57);
    self->base_offset = big64(head);
    self->base_timestamp = big64(head + 27);
    self->packed = (attributes & CODEC_BITS) != 0;
    if (self->packed) {
        PyObject *body = PyObject_CallMethod(self->batch, "payload", NULL);
        if (!body)
            return -1;
        PyBuffer_Release(&self->view);
        int failed = PyObject_GetBuffer(body, &self->view, PyBUF_SIMPLE) < 0;
        Py_DECREF(body); /* the view has it */
        if (failed)
            return -1;
        self->first = self->view.buf;
        self->end = self->first + self->view.len;
    } else {
        if (checksum(head + 21, self->end - head - 21) != big32(head + 17))
            return leave_all(self);
        self->first = head + BATCH_HEADER;
    }
    self->at = self->first;
    if (self->promised < 0 || self->promised > (self->end - self->first) / LEAST_RECORD)
        return leave_all(self);
    if (attributes & APPEND_TIME && !self->create_time) {
        self->stamp = PyLong_FromLongLong(latest);
        if (!self->stamp)
            return -1;
        self->fixed = 1;
    }
    self->count = self->promised;
    self->state = RUNNING;
    return 0;
}

PyObject *run_refuse(void)
{
    return PyErr_Format(PyExc_ValueError, "generator already executing"); /* which is what runs in Python's code */
}

PyObject *run_aside(Run *self)
{
    if (self->state == UNOPENED) {
        self->state = BUSY; /* Python code, or another thread, may come back to this run */
        if (open_batch(self) == 0)
            return run_next(self);
        self->state = ENDED;
    }
    if (self->state == BUSY)
        return run_refuse();
    if (self->state == ENDED)
        return NULL;
    PyObject *rest = Py_NewRef(self->rest), *record = Py_TYPE(rest)->tp_iternext(rest);
    Py_DECREF(rest);
    return record;
}

PyObject *run_end(Run *self)
{
    self->state = ENDED;
    if (self->done == self->promised && self->at == self->end)
        return NULL;
    self->state = BUSY;
    PyObject *rest = PyObject_CallMethod(
        self->batch, "_judged", "OnLO", self->packed ? self->view.obj : Py_None,
        (Py_ssize_t)(self->at - self->first), (long long)self->done, self->fixed ? self->stamp : Py_None);
    if (leave_to(self, rest) == 0)
        return run_aside(self);
    self->state = ENDED;
    return NULL;
}
