/* `Run`: the records of one batch, each made when it is asked for.

   Strategy: the kernel finds a record's parts, then one `Record` is made of them. A record that the caller has
   let go of in the meantime is filled again instead of freed and made anew, as `zip` does with its tuples, and so
   are its bytes and numbers if nothing else refers to them and their size is right; equal timestamps, headers and header
   keys in a row are the same object. Rules: the run ends at the last record or, one word earlier, before the first
   that the kernel doubts; `done` and `position` say where, and the judge goes on. */

#include "run.h"

#include <string.h>

#include "record_parser.h"

#define LEAST_NUMBER 257 /* the ints below it are everybody's */

static PyObject *header_name(Codec *codec, const uint8_t *data, int64_t size)
{
    if (size == 0)
        return PyUnicode_New(0, 0);
    unsigned place = ((unsigned)size * 7 + data[0] * 5u + data[size - 1]) % NAMES;
    PyObject *known = codec->names[place];
    if (known && PyUnicode_GET_LENGTH(known) == size && !memcmp(PyUnicode_1BYTE_DATA(known), data, (size_t)size))
        return Py_NewRef(known);
    PyObject *name = PyUnicode_DecodeUTF8((const char *)data, size, "surrogateescape");
    if (name && size <= 256 && PyUnicode_IS_COMPACT_ASCII(name))
        Py_XSETREF(codec->names[place], Py_NewRef(name));
    return name;
}

/* The headers of a record: a tuple; or NULL, with an exception set unless they are in doubt. */
static PyObject *make_headers(Codec *codec, const struct record *record)
{
    const uint8_t *at = record->at;
    PyObject *headers = PyTuple_New(record->headers);
    if (!headers)
        return NULL;
    for (int64_t index = 0; index < record->headers; index++) {
        struct header header;
        PyObject *pair, *name, *value;
        at = kernel_header(at, record->end, &header);
        if (!at || !(pair = PyTuple_New(2)))
            goto failed;
        PyTuple_SET_ITEM(headers, index, pair);
        if (!(name = header_name(codec, header.key, header.key_size)))
            goto failed;
        PyTuple_SET_ITEM(pair, 0, name);
        if (!header.value)
            value = Py_NewRef(Py_None);
        else if (!(value = PyBytes_FromStringAndSize((const char *)header.value, header.value_size)))
            goto failed;
        PyTuple_SET_ITEM(pair, 1, value);
        PyObject_GC_UnTrack(pair); /* str and bytes make no cycle */
    }
    if (at != record->end)
        goto failed;
    PyObject_GC_UnTrack(headers);
    return headers;
failed:
    Py_DECREF(headers);
    return NULL;
}

/* Whether a view's bytes can't change; a view that is only read may be of some that can. */
static int is_lasting(const Py_buffer *view)
{
    PyObject *owner = view->obj && PyMemoryView_Check(view->obj) ? PyMemoryView_GET_BASE(view->obj) : view->obj;
    return owner && PyBytes_CheckExact(owner);
}

/* The headers, which are those of the record before if their bytes are; as `make_headers` answers. Few that may
   change are copied, read there and remembered by that. */
static PyObject *find_headers(Run *self, struct record *record)
{
    uint8_t copy[COPIED]; /* the run's own may be needed while memory is got */
    size_t size = (size_t)(record->end - record->at);
    if (self->headers && self->headers_size == size && PyTuple_GET_SIZE(self->headers) == record->headers
        && !memcmp(self->headers_at, record->at, size))
        return Py_NewRef(self->headers);
    int lasting = is_lasting(&self->view), copied = !lasting && size <= COPIED;
    if (copied) {
        record->at = memcpy(copy, record->at, size);
        record->end = copy + size;
    }
    PyObject *headers = make_headers(self->codec, record);
    if (headers && (lasting || copied)) {
        Py_XSETREF(self->headers, Py_NewRef(headers));
        self->headers_at = copied ? memcpy(self->copy, copy, size) : record->at;
        self->headers_size = size;
    }
    return headers;
}

/* Set a key or value. What is there already is written over if only this record has it: its hash, then, has
   no other user either. */
static inline int set_bytes(PyObject **place, const uint8_t *data, int64_t size)
{
    PyObject *old = *place;
    if (old && data && Py_REFCNT(old) == 1 && PyBytes_CheckExact(old) && PyBytes_GET_SIZE(old) == size) {
        memcpy(PyBytes_AS_STRING(old), data, (size_t)size);
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif
        ((PyBytesObject *)old)->ob_shash = -1;
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
        return 0;
    }
    PyObject *value = data ? PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)size) : Py_NewRef(Py_None);
    if (!value)
        return -1;
    *place = value;
    Py_XDECREF(old);
    return 0;
}

/* Write over an int that only this record has; 0 if it isn't one or the number doesn't fit. */
static inline int overwrite(PyObject *old, int64_t number)
{
#if PY_VERSION_HEX < 0x030C0000 && PYLONG_BITS_IN_DIGIT == 30
    if (old && Py_REFCNT(old) == 1 && PyLong_CheckExact(old)) {
        digit *digits = ((PyLongObject *)old)->ob_digit;
        if (Py_SIZE(old) == 1 && number >= LEAST_NUMBER && number <= PyLong_MASK) {
            digits[0] = (digit)number;
            return 1;
        }
        if (Py_SIZE(old) == 2 && number > PyLong_MASK && !(number >> (2 * PyLong_SHIFT))) {
            digits[0] = (digit)(number & PyLong_MASK);
            digits[1] = (digit)(number >> PyLong_SHIFT);
            return 1;
        }
    }
#else
    (void)old;
    (void)number;
#endif
    return 0;
}

static inline int set_offset(PyObject **place, int64_t number)
{
    PyObject *old = *place, *offset;
    if (overwrite(old, number))
        return 0;
    if (!(offset = PyLong_FromLongLong(number)))
        return -1;
    *place = offset;
    Py_XDECREF(old);
    return 0;
}

static inline int set_stamp(Run *self, PyObject **place, int64_t timestamp)
{
    PyObject *old = *place, *before = self->stamp, *stamp;
    if (self->fixed || (before && self->last == timestamp)) {
        *place = Py_NewRef(before);
        Py_XDECREF(old);
        return 0;
    }
    int is_overwritten = overwrite(old, timestamp);
    if (!(stamp = is_overwritten ? old : PyLong_FromLongLong(timestamp)))
        return -1;
    *place = stamp;
    self->stamp = Py_NewRef(stamp);
    self->last = timestamp;
    Py_XDECREF(before);
    if (!is_overwritten)
        Py_XDECREF(old);
    return 0;
}

/* A record to fill: one without other references, or a new one. */
static PyObject *blank(Run *self)
{
    PyObject *record = self->given[self->turn];
    self->given[self->turn] = NULL;
    if (record && Py_REFCNT(record) == 1)
        return record;
    Py_XDECREF(record);
    return self->codec->record->tp_alloc(self->codec->record, 0);
}

/* The next record; NULL at the end, in doubt, or with an exception. */
ALWAYS_INLINE PyObject *next_record(Run *self)
{
    struct record parsed;
    const uint8_t *at = self->at;
    int64_t done = self->done;
    if (done >= self->count)
        return NULL;
    const uint8_t *after = kernel_record(at, self->end, self->base_offset, self->base_timestamp, &parsed);
    if (!after) {
        self->count = done;
        return NULL;
    }
    self->at = after; /* now, as a call that re-enters this run gets the one after it */
    self->done = done + 1;
    PyObject *headers = parsed.headers ? find_headers(self, &parsed) : Py_NewRef(self->codec->empty);
    PyObject *record = headers ? blank(self) : NULL; /* what that still holds may do anything when it goes */
    if (!record || set_offset(slot(self->codec, record, OFFSET), parsed.offset) < 0
        || set_stamp(self, slot(self->codec, record, TIMESTAMP), parsed.timestamp) < 0
        || set_bytes(slot(self->codec, record, KEY), parsed.key, parsed.key_size) < 0
        || set_bytes(slot(self->codec, record, VALUE), parsed.value, parsed.value_size) < 0) {
        self->at = at;
        self->done = done;
        if (!headers && !PyErr_Occurred())
            self->count = done; /* in doubt */
        Py_XDECREF(record);
        Py_XDECREF(headers);
        return NULL;
    }
    Py_XSETREF(*slot(self->codec, record, HEADERS), headers);
    Py_XSETREF(self->given[self->turn], Py_NewRef(record));
    self->turn ^= 1;
    return record;
}

static PyObject *run_next(Run *self)
{
    PyObject *record;
    Py_INCREF(self); /* as Python code may let go of it meanwhile */
    if (self->state != RUNNING && (self->state != UNOPENED || run_open(self) != RUNNING))
        record = run_aside(self);
    else if (!(record = next_record(self)) && self->batch && !PyErr_Occurred())
        record = run_end(self);
    Py_DECREF(self);
    return record;
}

static PyObject *run_walk(Run *self, PyObject *unused)
{
    int64_t done;
    int state = self->state;
    (void)unused;
    if (state == BUSY)
        return run_refuse();
    self->state = BUSY;
    Py_BEGIN_ALLOW_THREADS;
    self->at = kernel_walk(self->at, self->end, self->count - self->done, &done);
    Py_END_ALLOW_THREADS;
    self->state = state;
    self->done += done;
    self->count = self->done;
    Py_RETURN_NONE;
}

static PyObject *run_done(Run *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(self->done);
}

static PyObject *run_position(Run *self, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(self->at - self->first);
}

static int run_traverse(Run *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->codec); /* but not view.obj: a memoryview may not be cleared while it is exported */
    Py_VISIT(self->given[0]);
    Py_VISIT(self->given[1]);
    Py_VISIT(self->batch);
    Py_VISIT(self->rest);
    return 0;
}

static int run_clear(Run *self)
{
    self->state = ENDED;
    Py_CLEAR(self->given[0]);
    Py_CLEAR(self->given[1]);
    Py_CLEAR(self->batch);
    Py_CLEAR(self->rest);
    return 0;
}

static void run_dealloc(Run *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    run_clear(self);
    PyBuffer_Release(&self->view);
    Py_XDECREF(self->stamp);
    Py_XDECREF(self->headers);
    Py_XDECREF(self->codec);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef run_methods[] = {
    {"walk", (PyCFunction)run_walk, METH_NOARGS, "walk()\n--\n\nGo to the end and make nothing."},
    {0},
};

static PyGetSetDef run_getset[] = {
    {"done", (getter)run_done, NULL, "How many records were read.", NULL},
    {"position", (getter)run_position, NULL, "The position after the last of them.", NULL},
    {0},
};

static PyType_Slot run_slots[] = {
    {Py_tp_doc, "The records of one batch, as far as the kernel doesn't doubt them."},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, run_next},
    {Py_tp_methods, run_methods},
    {Py_tp_getset, run_getset},
    {Py_tp_traverse, run_traverse},
    {Py_tp_clear, run_clear},
    {Py_tp_dealloc, run_dealloc},
    {0, NULL},
};

static PyType_Spec run_spec = {
    .name = "coordwire._speedups._native.Run",
    .basicsize = sizeof(Run),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE
             | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = run_slots,
};

PyObject *codec_read(PyObject *codec, PyObject *const *args, Py_ssize_t count)
{
    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "read takes 5 arguments");
        return NULL;
    }
    int64_t numbers[4] = {0};
    for (int index = 1; index < 5; index++) {
        if (index == 4 && args[4] == Py_None)
            break;
        numbers[index - 1] = PyLong_AsLongLong(args[index]);
        if (numbers[index - 1] == -1 && PyErr_Occurred())
            return NULL;
    }
    Run *self = (Run *)((Codec *)codec)->run->tp_alloc(((Codec *)codec)->run, 0);
    if (!self)
        return NULL;
    self->codec = (Codec *)Py_NewRef(codec);
    if (PyObject_GetBuffer(args[0], &self->view, PyBUF_SIMPLE) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    self->first = self->at = self->view.buf;
    self->end = self->at + self->view.len;
    self->count = numbers[0];
    self->base_offset = numbers[1];
    self->base_timestamp = numbers[2];
    if (args[4] != Py_None) {
        self->fixed = 1;
        self->stamp = Py_NewRef(args[4]);
    }
    return (PyObject *)self;
}

int read_exec(PyObject *module)
{
    return add_type(module, &run_spec);
}
