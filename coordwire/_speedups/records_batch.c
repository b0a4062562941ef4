/* Batches of magic 2 without a Python frame: opened where their header is in order, iterated where their checksum
   is right.

   Strategy: a `RecordBatch` is an ordinary slotted class, made as `Record` is, its header left unread; a Run over
   it looks at the header and the checksum when the first record is asked for. Rules: whatever is not in order is
   left to Python, which goes over the same bytes and words the refusal; a codec's bytes are asked of the batch
   itself, checks included; a run that ends before the bytes do leaves the rest to the judge. */

#include "records_run.h"

#include <stddef.h>
#include <structmember.h>

#include "crc32c.h"
#include "kernel.h"

#define LOG_OVERHEAD 12 /* bytes of offset and length, which the length doesn't count */
#define CODEC_BITS 0x07
#define APPEND_TIME 0x08
#define BIG (64 << 10) /* bytes from which on others may run meanwhile */

static inline uint32_t big32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline int64_t big64(const uint8_t *at)
{
    return (int64_t)((uint64_t)big32(at) << 32 | big32(at + 4));
}

static inline PyObject **part(Codec *codec, PyObject *batch, int which)
{
    return (PyObject **)((char *)batch + codec->parts[which]);
}

PyObject *codec_know(PyObject *self, PyObject *batch)
{
    static const char *const names[PARTS] = {"_view", "offset", "size", "_kept"};
    Codec *codec = (Codec *)self;
    Py_ssize_t parts[PARTS];
    if (!PyType_Check(batch)) {
        PyErr_SetString(PyExc_TypeError, "know takes a class");
        return NULL;
    }
    if (!is_slotted((PyTypeObject *)batch))
        return NULL;
    for (int which = 0; which < PARTS; which++)
        if ((parts[which] = place_of_slot((PyTypeObject *)batch, names[which])) < 0)
            return NULL;
    memcpy(codec->parts, parts, sizeof parts);
    Py_XSETREF(codec->batch, (PyTypeObject *)Py_NewRef(batch));
    Py_RETURN_NONE;
}

/* --- open --- */

/* The size of the batch at `at`; 0 if it isn't all there, isn't of magic 2 or can't be. */
static Py_ssize_t batch_size(const uint8_t *at, Py_ssize_t left)
{
    if (left < BATCH_HEADER || at[16] != 2)
        return 0;
    uint32_t length = big32(at + 8);
    if (length < BATCH_HEADER - LOG_OVERHEAD || length > INT32_MAX - LOG_OVERHEAD)
        return 0;
    return (Py_ssize_t)length <= left - LOG_OVERHEAD ? (Py_ssize_t)length + LOG_OVERHEAD : 0;
}

/* view[start:start + size], and the batch that is it. */
static PyObject *make_batch(Codec *codec, PyObject *view, PyObject *start, Py_ssize_t position, Py_ssize_t size)
{
    PyObject *batch = NULL, *stop = PyLong_FromSsize_t(position + size), *length = PyLong_FromSsize_t(size);
    PyObject *range = stop && length ? PySlice_New(start, stop, NULL) : NULL;
    PyObject *bytes = range ? PyObject_GetItem(view, range) : NULL;
    if (bytes)
        batch = codec->batch->tp_alloc(codec->batch, 0);
    if (batch) {
        *part(codec, batch, BATCH_VIEW) = Py_NewRef(bytes);
        *part(codec, batch, BATCH_OFFSET) = Py_NewRef(start);
        *part(codec, batch, BATCH_SIZE) = Py_NewRef(length);
        *part(codec, batch, BATCH_KEPT) = Py_NewRef(Py_None);
    }
    Py_XDECREF(bytes);
    Py_XDECREF(range);
    Py_XDECREF(length);
    Py_XDECREF(stop);
    return batch;
}

/* The batch at `position` of a memoryview and its size; None in doubt, and with size -1 at the end. */
static PyObject *open_at(Codec *codec, PyObject *source, PyObject *start, Py_ssize_t position, Py_ssize_t *size)
{
    Py_buffer view;
    *size = 0;
    if (PyObject_GetBuffer(source, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    if (position >= view.len)
        *size = -1;
    else if (position >= 0)
        *size = batch_size((const uint8_t *)view.buf + position, view.len - position);
    PyBuffer_Release(&view);
    return *size > 0 ? make_batch(codec, source, start, position, *size) : Py_NewRef(Py_None);
}

/* --- `Walk`: what `Batches` is made of --- */

typedef struct {
    PyObject_HEAD
    PyObject *codec; /* that opens what is in order; NULL or None: Python does it all */
    PyObject *view;
    Py_ssize_t position;
} Walk;

static PyObject *walk_next(Walk *self)
{
    if (self->codec && self->view && is_codec(self->codec) && ((Codec *)self->codec)->batch
        && PyMemoryView_Check(self->view)) {
        Py_ssize_t size;
        PyObject *start = PyLong_FromSsize_t(self->position);
        PyObject *batch = start ? open_at((Codec *)self->codec, self->view, start, self->position, &size) : NULL;
        Py_XDECREF(start);
        if (batch != Py_None) {
            self->position += batch ? size : 0;
            return batch;
        }
        Py_DECREF(batch);
        if (size < 0)
            return NULL;
    }
    return PyObject_CallMethod((PyObject *)self, "_next", NULL);
}

static int walk_traverse(Walk *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->codec);
    Py_VISIT(self->view);
    return 0;
}

static int walk_clear(Walk *self)
{
    Py_CLEAR(self->codec);
    Py_CLEAR(self->view);
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
    {"_view", T_OBJECT_EX, offsetof(Walk, view), 0, "What holds them, a memoryview."},
    {"position", T_PYSSIZET, offsetof(Walk, position), 0, "The byte at which the next would begin."},
    {0},
};

static PyType_Slot walk_slots[] = {
    {Py_tp_doc, "An iterator over batches; those that aren't in order are what its `_next` says."},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, walk_next},
    {Py_tp_members, walk_members},
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

int batch_exec(PyObject *module)
{
    return add_type(module, &walk_spec);
}

/* --- records --- */

PyObject *codec_records(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Codec *codec = (Codec *)self;
    if (count != 2 || !codec->batch || !Py_IS_TYPE(args[0], codec->batch)) {
        PyErr_SetString(PyExc_TypeError, "records takes a RecordBatch and a bool");
        return NULL;
    }
    int create_time = PyObject_IsTrue(args[1]);
    Run *run = create_time < 0 ? NULL : (Run *)codec->run->tp_alloc(codec->run, 0);
    if (!run)
        return NULL;
    run->codec = (Codec *)Py_NewRef(self);
    run->batch = Py_NewRef(args[0]);
    run->create_time = create_time;
    run->state = UNOPENED;
    return (PyObject *)run;
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

/* Look at the batch and find its records' bytes: 0, or -1 with an exception. */
static int open_batch(Run *self)
{
    PyObject *source = *part(self->codec, self->batch, BATCH_VIEW);
    self->state = BUSY; /* Python code may come back to this run */
    if (!source || PyObject_GetBuffer(source, &self->view, PyBUF_SIMPLE) < 0)
        return source ? -1 : leave_all(self);
    const uint8_t *head = self->view.buf;
    if (self->view.len < BATCH_HEADER)
        return leave_all(self);
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
    } else {
        if (checksum(head + 21, self->view.len - 21) != big32(head + 17))
            return leave_all(self);
        self->first = head + BATCH_HEADER;
    }
    self->at = self->first;
    self->end = (const uint8_t *)self->view.buf + self->view.len;
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

PyObject *run_aside(Run *self)
{
    if (self->state == UNOPENED)
        return open_batch(self) < 0 ? NULL : run_next(self);
    if (self->state != RESTING)
        return NULL;
    PyObject *rest = Py_NewRef(self->rest), *record = Py_TYPE(rest)->tp_iternext(rest);
    Py_DECREF(rest);
    return record;
}

PyObject *run_end(Run *self)
{
    self->state = BUSY;
    if (self->done == self->promised && self->at == self->end)
        return NULL;
    PyObject *rest = PyObject_CallMethod(
        self->batch, "_judged", "OnLO", self->packed ? self->view.obj : Py_None,
        (Py_ssize_t)(self->at - self->first), (long long)self->done, self->fixed ? self->stamp : Py_None);
    return leave_to(self, rest) < 0 ? NULL : run_aside(self);
}
