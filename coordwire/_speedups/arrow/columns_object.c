/* `Columns`: the Arrow kernel as Python sees it, and `Memory`: what it filled, for pyarrow to hold.

   Strategy: `run` works without the interpreter's lock, unless there is little to do or checksums need it; `take`
   gives the blocks away, each as a buffer that pyarrow keeps; when pyarrow lets go of one, it is spare, to be filled
   again by the next caller, since fresh pages cost more than the decoding; the one that came back last is taken
   first, as the cache may still hold it. Rules: a block is either a kernel's, or a Memory's, or spare; a Memory is
   never written. What is spare belongs to the process, within bounds, under the interpreter's lock. */

#include "../crc32c/crc32c.h"
#include "../records/record_codec.h"

#include <stdlib.h>

#include "columns.h"

#define SPARES 8 /* blocks a role, at most */
#define KEPT (32 << 20) /* bytes of spare blocks, at most */
#define MOST_TABLE (INT32_MAX / 3) /* bytes: header keys may become 3 times as long, and have int32 offsets */
#define WORTH_LETTING_GO (128 << 10) /* bytes; with fewer it takes longer to get the interpreter's lock back */

typedef struct {
    PyObject_HEAD
    PyTypeObject *memory;
    struct columns columns;
    int busy;
} Columns;

typedef struct {
    PyObject_HEAD
    struct block block;
    Py_ssize_t used;
    enum role role;
} Memory;

static struct {
    struct block blocks[ROLES][SPARES];
    int counts[ROLES];
    size_t room; /* of all of them */
} spare;

static void give_back(enum role role, struct block block)
{
    if (spare.counts[role] == SPARES || block.room > KEPT - spare.room) {
        free(block.data);
    } else if (block.data) {
        spare.blocks[role][spare.counts[role]++] = block;
        spare.room += block.room;
    }
}

static void take_spare(enum role role, struct block *block)
{
    if (!block->data && spare.counts[role]) {
        *block = spare.blocks[role][--spare.counts[role]];
        spare.room -= block->room;
    }
}

static void memory_dealloc(Memory *self)
{
    PyTypeObject *type = Py_TYPE(self);
    give_back(self->role, self->block);
    type->tp_free(self);
    Py_DECREF(type);
}

static int memory_buffer(Memory *self, Py_buffer *view, int flags)
{
    return PyBuffer_FillInfo(view, (PyObject *)self, self->block.data, self->used, 1, flags);
}

static PyType_Slot memory_slots[] = {
    {Py_tp_doc, "Bytes that the kernel wrote; they return to it when no reference to this is left."},
    {Py_tp_dealloc, memory_dealloc},
    {Py_bf_getbuffer, memory_buffer},
    {0, NULL},
};

static PyType_Spec memory_spec = {
    .name = "coordwire._speedups._native.Memory",
    .basicsize = sizeof(Memory),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = memory_slots,
};

static PyObject *columns_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"wanted", "most", "view", "whole", NULL};
    unsigned wanted;
    long long most;
    int view, whole;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "ILpp:Columns", names, &wanted, &most, &view, &whole))
        return NULL;
    Columns *self = (Columns *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->columns.wanted = wanted;
    self->columns.most = most < 0 ? 0 : most < MOST_TABLE ? most : MOST_TABLE;
    self->columns.view = view;
    self->columns.whole = whole;
    self->columns.last = self->columns.last_offset = -1;
    self->memory = own_type(type, "Memory");
    if (!self->memory)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void columns_dealloc(Columns *self)
{
    PyTypeObject *type = Py_TYPE(self);
    for (int role = 0; role < ROLES; role++)
        give_back(role, self->columns.blocks[role]);
    Py_XDECREF(self->memory);
    type->tp_free(self);
    Py_DECREF(type);
}

/* run(data, position, body, buffer): whether the table is full, and the new position. */
static PyObject *columns_run_python(Columns *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || self->busy) {
        PyErr_SetString(PyExc_RuntimeError, "run takes 4 arguments, one call at a time");
        return NULL;
    }
    Py_ssize_t start = PyLong_AsSsize_t(args[1]);
    long buffer = PyErr_Occurred() ? -1 : PyLong_AsLong(args[3]);
    if (PyErr_Occurred())
        return NULL;
    if (start < 0 || buffer < 0 || buffer > INT32_MAX / 2) {
        PyErr_SetString(PyExc_ValueError, "a position and a buffer's number aren't negative");
        return NULL;
    }
    Py_buffer data, body = {0};
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    if (args[2] != Py_None && PyObject_GetBuffer(args[2], &body, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&data);
        return NULL;
    }
    for (int role = 0; role < ROLES; role++)
        take_spare(role, &self->columns.blocks[role]);
    struct source source = {body.obj ? body.buf : data.buf, (int32_t)buffer};
    size_t position = (size_t)start;
    int verdict;
    self->busy = 1;
    const Py_ssize_t size = body.obj ? body.len : data.len - start;
    PyThreadState *thread = size < WORTH_LETTING_GO || crc32c_needs_lock() ? NULL : PyEval_SaveThread();
    verdict = columns_run(
        &self->columns, data.buf, (size_t)data.len, &position, body.obj ? body.buf : NULL, (size_t)body.len, source);
    if (thread)
        PyEval_RestoreThread(thread);
    self->busy = 0;
    PyBuffer_Release(&data);
    if (body.obj)
        PyBuffer_Release(&body);
    if (verdict == NO_MEMORY)
        return PyErr_NoMemory();
    return Py_BuildValue("(Nn)", PyBool_FromLong(verdict == TABLE_FULL), (Py_ssize_t)position);
}

/* span(data, position, most) */
static PyObject *columns_span_python(Columns *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "span takes 3 arguments");
        return NULL;
    }
    Py_ssize_t position = PyLong_AsSsize_t(args[1]), most = PyErr_Occurred() ? -1 : PyLong_AsSsize_t(args[2]);
    if (PyErr_Occurred())
        return NULL;
    if (position < 0 || most < 0) {
        PyErr_SetString(PyExc_ValueError, "neither a position nor a size is negative");
        return NULL;
    }
    Py_buffer data;
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    size_t end = columns_span(data.buf, (size_t)data.len, (size_t)position, (size_t)most);
    PyBuffer_Release(&data);
    return PyLong_FromSize_t(end);
}

static PyObject *take_role(Columns *self, enum role role)
{
    size_t used = columns_used(&self->columns, role);
    struct block *block = &self->columns.blocks[role];
    if (!used || !block->data)
        return Py_NewRef(Py_None);
    Memory *memory = (Memory *)self->memory->tp_alloc(self->memory, 0);
    if (!memory)
        return NULL;
    memory->block = *block;
    memory->used = (Py_ssize_t)used;
    memory->role = role;
    *block = (struct block){0};
    return (PyObject *)memory;
}

static PyObject *columns_take(Columns *self, PyObject *unused)
{
    (void)unused;
    if (self->busy) {
        PyErr_SetString(PyExc_RuntimeError, "one call at a time");
        return NULL;
    }
    const struct extent *now = &self->columns.now;
    PyObject *memories = PyTuple_New(ROLES);
    for (int role = 0; memories && role < ROLES; role++) {
        PyObject *memory = take_role(self, role);
        if (memory)
            PyTuple_SET_ITEM(memories, role, memory);
        else
            Py_CLEAR(memories);
    }
    PyObject *result = memories ? Py_BuildValue("(LLN)", now->rows, now->headers, memories) : NULL;
    columns_next(&self->columns);
    return result;
}

static PyObject *count_rows(Columns *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(self->columns.now.rows);
}

static PyObject *columns_done(Columns *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(self->columns.done);
}

static PyObject *columns_last(Columns *self, void *unused)
{
    (void)unused;
    return Py_BuildValue("(LL)", (long long)self->columns.last, (long long)self->columns.last_offset);
}

static PyMethodDef columns_methods[] = {
    {"run", (PyCFunction)(void (*)(void))columns_run_python, METH_FASTCALL,
     "run(data, position, body, buffer)\n--\n\n"
     "Read batches from position on, or the one there whose records are body: whether the table is full, and\n"
     "the position after those read. If it isn't full, Python has to look at what is there."},
    {"span", (PyCFunction)(void (*)(void))columns_span_python, METH_FASTCALL,
     "span(data, position, most)\n--\n\nThe end of the uncompressed batches from position on, of most bytes or one."},
    {"take", (PyCFunction)columns_take, METH_NOARGS,
     "take()\n--\n\nThe rows, the headers, and a Memory or None for each role; begins the next table."},
    {0},
};

static PyGetSetDef columns_getset[] = {
    {"rows", (getter)count_rows, NULL, "The rows of the table so far.", NULL},
    {"last", (getter)columns_last, NULL, "The position and last offset of the last batch read to its end; -1 for none.", NULL},
    {"done", (getter)columns_done, NULL, "The records of the batch at hand that are in tables.", NULL},
    {0},
};

static PyType_Slot columns_slots[] = {
    {Py_tp_doc, "Columns(wanted, most, view, whole)\n--\n\nRecords as Arrow's columns."},
    {Py_tp_new, columns_new},
    {Py_tp_dealloc, columns_dealloc},
    {Py_tp_methods, columns_methods},
    {Py_tp_getset, columns_getset},
    {0, NULL},
};

static PyType_Spec columns_spec = {
    .name = "coordwire._speedups._native.Columns",
    .basicsize = sizeof(Columns),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = columns_slots,
};

int arrow_exec(PyObject *module)
{
    return add_type(module, &memory_spec) < 0 || add_type(module, &columns_spec) < 0 ? -1 : 0;
}
