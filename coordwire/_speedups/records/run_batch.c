/* The batch of a `Run`: where the records' bytes are, and what follows the last record that was read from them.

   Rules: whatever is not in order is left to Python, which goes over the same bytes and words the refusal; a
   codec's bytes are asked of the batch itself, checks included; a run that ends before the bytes do leaves the
   rest to Python's exact reader. Nothing here calls run.c, which makes the records. */

#include "opened.h"

#include "../crc32c/crc32c.h"
#include "record_parser.h"
#include "run.h"

#define CODEC_BITS 0x07
#define APPEND_TIME 0x08

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

/* The batch's bytes, into `first` and `end`: its view, or if that was not requested a part of its source.
   0, or -1 with an exception, or 1 if it hasn't any or no header is in them. */
static int find_bytes(Run *self)
{
    const Opened *batch = (Opened *)self->batch;
    int has_view = batch->view != NULL;
    PyObject *source = has_view ? batch->view : batch->source;
    if (!source)
        return 1;
    Py_INCREF(source); /* Python code may give the bytes */
    int failed = PyObject_GetBuffer(source, &self->view, PyBUF_SIMPLE) < 0;
    Py_DECREF(source);
    if (failed)
        return -1;
    self->first = self->at = (const uint8_t *)self->view.buf + (has_view ? 0 : batch->at);
    self->end = self->first + (has_view ? self->view.len : batch->length);
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
        const int64_t crc = crc32c(0, head + 21, (size_t)(self->end - head - 21));
        if (crc < 0)
            return -1;
        if (crc != big32(head + 17))
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

int run_open(Run *self)
{
    self->state = BUSY; /* Python code, or another thread, may come back to this run */
    if (open_batch(self) < 0)
        self->state = ENDED;
    return self->state;
}

PyObject *run_aside(Run *self)
{
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
