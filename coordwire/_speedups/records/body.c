/* `Body`: the records of one batch as they are written, and the batch around them.

   Strategy: a record's headers are written aside, then its size is known and its bytes go after those of the
   others, in memory that grows by half; the batch is one copy of them after its header. The codec keeps one such
   memory for the next batch, since fresh pages cost more than the writing. Rules: only plain values are taken (exact
   int, bytes, str, tuple, list); with any other, or one that doesn't fit, nothing changes and the answer is
   None: Python's own code then says what it was. Offsets are kept as deltas, which can't overflow. */

#include "record_codec.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

#include "../compiler.h"
#include "../crc32c/crc32c.h"
#include "body.h"
#include "header_writer.h"

#define KEPT (2 << 20) /* bytes that are kept at most: a batch of the largest size that brokers take by default */

/* A record's place in the batch: the deltas of its offset and time. Sets the bases by the first. */
static int place(Body *self, int64_t number, int64_t stamp, int64_t *delta, int64_t *time)
{
    if (!self->has_offset) {
        self->base_offset = number < 0 ? 0 : number;
        self->has_offset = 1;
    }
    if (!self->has_timestamp) {
        self->base_timestamp = stamp;
        self->has_timestamp = 1;
    }
    *delta = self->next;
    if (number != -1 && sub_overflows(number, self->base_offset, delta))
        return DOUBT;
    if (*delta < self->next || *delta > MOST || sub_overflows(stamp, self->base_timestamp, time))
        return DOUBT;
    return WRITTEN;
}

static inline int is_empty(Codec *codec, PyObject *headers)
{
    return headers == codec->empty || (headers && PyList_CheckExact(headers) && !PyList_GET_SIZE(headers));
}

/* One record of at most `room` bytes. */
ALWAYS_INLINE int write_record(Body *self, PyObject *record, Py_ssize_t room)
{
    Codec *codec = self->codec;
    if (!Py_IS_TYPE(record, codec->record))
        return DOUBT;
    PyObject *headers = *slot(codec, record, HEADERS);
    const char *tail = "";
    Py_ssize_t tail_size = 1;
    if (!is_empty(codec, headers)) {
        if (headers != self->headers || !headers) {
            Py_CLEAR(self->headers);
            Py_XINCREF(headers);
            int verdict = write_headers(&self->tail, headers);
            Py_CLEAR(self->headers); /* if one that was asked whether it is true came back here */
            if (verdict == WRITTEN && never_changes(headers))
                self->headers = headers;
            else
                Py_XDECREF(headers);
            if (verdict != WRITTEN)
                return verdict;
        }
        tail = self->tail.data;
        tail_size = self->tail.used;
    }
    int64_t number, stamp, delta, time;
    if (!plain_int(*slot(codec, record, OFFSET), &number) || !plain_int(*slot(codec, record, TIMESTAMP), &stamp)
        || place(self, number, stamp, &delta, &time) != WRITTEN)
        return DOUBT;
    PyObject *key = *slot(codec, record, KEY), *value = *slot(codec, record, VALUE);
    Py_ssize_t key_size = bytes_size(key), value_size = bytes_size(value);
    if (!key_size || !value_size)
        return DOUBT;
    Py_ssize_t size = 1 + varint_size(zigzag(time)) + varint_size((uint64_t)delta << 1) + key_size + value_size
                      + tail_size;
    if (size > MOST)
        return DOUBT;
    if (size > room - varint_size((uint64_t)size << 1))
        return FULL;
    if (reserve(&self->body, size + 5) < 0)
        return FAILED;
    char *at = put_varint(self->body.data + self->body.used, (uint64_t)size << 1);
    *at++ = 0; /* attributes */
    at = put_varint(at, zigzag(time));
    at = put_varint(at, (uint64_t)delta << 1);
    at = put_value(at, key);
    at = put_value(at, value);
    self->body.used = put_data(at, tail, tail_size) - self->body.data;
    self->next = delta + 1;
    if (stamp > self->latest)
        self->latest = stamp;
    return WRITTEN;
}

static PyObject *refusal(int verdict)
{
    return verdict == FAILED ? NULL : Py_NewRef(verdict == DOUBT ? Py_None : Py_False);
}

PyObject *body_put(Body *self, PyObject *const *records, Py_ssize_t count, Py_ssize_t room)
{
    const Body before = *self;
    int verdict = WRITTEN;
    for (Py_ssize_t index = 0; verdict == WRITTEN && index < count; index++)
        verdict = write_record(self, records[index], PY_SSIZE_T_MAX);
    if (verdict == WRITTEN && before.count && room >= 0 && self->body.used - before.body.used > room)
        verdict = FULL;
    if (verdict == WRITTEN) {
        self->count += count;
        Py_RETURN_TRUE;
    }
    self->body.used = before.body.used;
    self->has_offset = before.has_offset;
    self->has_timestamp = before.has_timestamp;
    self->count = before.count; /* with what headers appended when they were asked whether they are true */
    self->next = before.next;
    self->latest = before.latest;
    return refusal(verdict);
}

static PyObject *body_add(Body *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyTuple_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "add takes a tuple and an int");
        return NULL;
    }
    Py_ssize_t room = PyLong_AsSsize_t(args[1]);
    if (room == -1 && PyErr_Occurred())
        return NULL;
    return body_put(self, ((PyTupleObject *)args[0])->ob_item, PyTuple_GET_SIZE(args[0]), room);
}

PyObject *body_append(Body *self, PyObject *record, Py_ssize_t limit)
{
    int has_offset = self->has_offset, has_timestamp = self->has_timestamp;
    Py_ssize_t count = self->count;
    Py_ssize_t room = limit < 0 || !self->count ? PY_SSIZE_T_MAX : limit - BATCH_HEADER - self->body.used;
    int verdict = write_record(self, record, room);
    if (verdict == WRITTEN) {
        self->count++;
        Py_RETURN_TRUE;
    }
    if (self->count == count) { /* or its headers have appended another */
        self->has_offset = has_offset;
        self->has_timestamp = has_timestamp;
    }
    return refusal(verdict);
}

/* append(record, limit): `limit` is that of the whole batch, or None. */
static PyObject *body_py_append(Body *self, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t limit = -1;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "append takes a record and a limit");
        return NULL;
    }
    if (args[1] != Py_None) {
        int beyond;
        limit = (Py_ssize_t)PyLong_AsLongLongAndOverflow(args[1], &beyond);
        if (limit == -1 && PyErr_Occurred())
            return NULL;
        limit = beyond > 0 ? -1 : limit < 0 ? 0 : limit;
    }
    return body_append(self, args[0], limit);
}

static PyObject *body_records(Body *self, PyObject *unused)
{
    (void)unused;
    return PyBytes_FromStringAndSize(self->body.data, self->body.used);
}

/* batch(head, rest, packed): `head` is what is before the checksum, `middle` what is between it and the
   records, `packed` what a codec made of those, or None. */
static PyObject *body_batch(Body *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyBytes_Check(args[0]) || !PyBytes_Check(args[1])
        || PyBytes_GET_SIZE(args[0]) + 4 + PyBytes_GET_SIZE(args[1]) != BATCH_HEADER
        || !(args[2] == Py_None || PyBytes_Check(args[2]))) {
        PyErr_SetString(
            PyExc_TypeError, "batch takes the bytes of a header without its checksum, and perhaps records");
        return NULL;
    }
    Py_ssize_t head = PyBytes_GET_SIZE(args[0]), middle = PyBytes_GET_SIZE(args[1]), used = self->body.used;
    const char *records = self->body.data;
    if (args[2] != Py_None) {
        records = PyBytes_AS_STRING(args[2]);
        used = PyBytes_GET_SIZE(args[2]);
    }
    PyObject *batch = PyBytes_FromStringAndSize(NULL, BATCH_HEADER + used);
    if (!batch)
        return NULL;
    char *at = PyBytes_AS_STRING(batch), *sum = at + head;
    memcpy(at, PyBytes_AS_STRING(args[0]), (size_t)head);
    memcpy(sum + 4, PyBytes_AS_STRING(args[1]), (size_t)middle);
    if (used)
        memcpy(at + BATCH_HEADER, records, (size_t)used);
    const int64_t crc = crc32c(0, (const uint8_t *)sum + 4, (size_t)(middle + used));
    if (crc < 0) {
        Py_DECREF(batch);
        return NULL;
    }
    for (int index = 0; index < 4; index++)
        sum[index] = (char)(crc >> (24 - 8 * index));
    return batch;
}

PyObject *codec_body(PyObject *codec, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "body takes 2 arguments");
        return NULL;
    }
    Body *self = (Body *)((Codec *)codec)->body->tp_alloc(((Codec *)codec)->body, 0);
    if (!self)
        return NULL;
    self->codec = (Codec *)Py_NewRef(codec);
    self->latest = -1;
    self->body = ((Codec *)codec)->spare;
    ((Codec *)codec)->spare = (struct bytes){0};
    self->has_offset = args[0] != Py_None;
    self->has_timestamp = args[1] != Py_None;
    if (self->has_offset)
        self->base_offset = PyLong_AsLongLong(args[0]);
    if (self->has_timestamp && !PyErr_Occurred())
        self->base_timestamp = PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred())
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void body_dealloc(Body *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct bytes *spare = &self->codec->spare;
    if (!spare->data && self->body.room <= KEPT) {
        *spare = self->body;
        spare->used = 0;
    } else {
        PyMem_RawFree(self->body.data);
    }
    PyMem_RawFree(self->tail.data);
    Py_XDECREF(self->headers);
    Py_DECREF(self->codec);
    type->tp_free(self);
    Py_DECREF(type);
}

int is_body(PyObject *value)
{
    return Py_TYPE(value)->tp_dealloc == (destructor)body_dealloc; /* it has no subclasses */
}

static PyObject *body_size(Body *self, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(self->body.used);
}

static PyObject *body_base_offset(Body *self, void *unused)
{
    (void)unused;
    return self->has_offset ? PyLong_FromLongLong(self->base_offset) : Py_NewRef(Py_None);
}

static PyObject *body_base_timestamp(Body *self, void *unused)
{
    (void)unused;
    return self->has_timestamp ? PyLong_FromLongLong(self->base_timestamp) : Py_NewRef(Py_None);
}

static PyMethodDef body_methods[] = {
    {"add", (PyCFunction)(void (*)(void))body_add, METH_FASTCALL,
     "add(records, room)\n--\n\nWrite all or none: True; False beyond room (-1: any); None in doubt."},
    {"append", (PyCFunction)(void (*)(void))body_py_append, METH_FASTCALL,
     "append(record, limit)\n--\n\nThe same for one; limit: of the batch, header included, or None."},
    {"records", (PyCFunction)body_records, METH_NOARGS, "records()\n--\n\nThe records."},
    {"batch", (PyCFunction)(void (*)(void))body_batch, METH_FASTCALL,
     "batch(head, rest, packed)\n--\n\nThe batch: head, the checksum of what follows, rest, the records or what\n"
     "they were packed to."},
    {0},
};

static PyMemberDef body_members[] = {
    {"count", T_PYSSIZET, offsetof(Body, count), READONLY, "How many records it has."},
    {"next_delta", T_LONGLONG, offsetof(Body, next), READONLY, "The next offset, from the base offset on."},
    {"latest", T_LONGLONG, offsetof(Body, latest), READONLY, "The largest timestamp; -1 for none."},
    {0},
};

static PyGetSetDef body_getset[] = {
    {"size", (getter)body_size, NULL, "The bytes of the records.", NULL},
    {"base_offset", (getter)body_base_offset, NULL, "None before the first record sets it.", NULL},
    {"base_timestamp", (getter)body_base_timestamp, NULL, "None before the first record sets it.", NULL},
    {0},
};

static PyType_Slot body_slots[] = {
    {Py_tp_doc, "The records of one batch as they are written."},
    {Py_tp_methods, body_methods},
    {Py_tp_members, body_members},
    {Py_tp_getset, body_getset},
    {Py_tp_dealloc, body_dealloc},
    {0, NULL},
};

static PyType_Spec body_spec = {
    .name = "coordwire._speedups._native.Body",
    .basicsize = sizeof(Body),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = body_slots,
};

int write_exec(PyObject *module)
{
    return add_type(module, &body_spec);
}
