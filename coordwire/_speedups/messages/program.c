/* Programs: rows from coordwire.codec.program, checked, with the offsets of the slots that they name, and the
   steps of decoding and encoding laid down from them.

   Strategy: everything that memory safety depends on is found or checked here, once: offsets come from the
   class's member descriptors, kinds and flags must be known, inner programs must be programs. What a row says
   of least sizes, costs and defaults is believed, within bounds that keep sums from overflowing. */

#include "engine.h"

#include <structmember.h>

/* So that count (32 bits) times either fits 63 bits. */
#define MAX_MIN_SIZE ((int64_t)1 << 30)

bool is_plain(PyTypeObject *cls)
{
    if (!PyType_HasFeature(cls, Py_TPFLAGS_HEAPTYPE) || !PyType_IS_GC(cls) || cls->tp_itemsize != 0)
        return false;
#ifdef Py_TPFLAGS_MANAGED_DICT
    if (PyType_HasFeature(cls, Py_TPFLAGS_MANAGED_DICT))
        return false;
#endif
    return cls->tp_dictoffset == 0 && cls->tp_alloc == PyType_GenericAlloc && cls->tp_free == PyObject_GC_Del;
}

/* A tuple (name, kind, flags, tag, min_size, memory_cost, inner, default) as an Op. */
static int read_row(Program *program, PyTypeObject *type, PyObject *row, Op *op)
{
    PyObject *name, *inner, *default_value;
    int kind, flags;
    long long tag, min_size, memory_cost;
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "a row is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(
            row, "UiiLLLOO", &name, &kind, &flags, &tag, &min_size, &memory_cost, &inner, &default_value))
        return -1;
    if (kind < 0 || kind >= KINDS || flags < 0 || flags > ALL_FLAGS || tag < -1 || tag > UINT32_MAX || min_size < 1
        || min_size > MAX_MIN_SIZE || memory_cost < 0 || memory_cost > MAX_MIN_SIZE
        || (kind == STRUCT) != (inner != Py_None)
        || (inner != Py_None && !Py_IS_TYPE(inner, type))
        || ((flags & TO_END) && ((kind == STRUCT) != ((flags & IS_ARRAY) != 0) || (kind != STRUCT && kind != BYTES)))
        || ((flags & FRESH) && !(flags & IS_ARRAY) && kind != STRUCT)) {
        PyErr_Format(PyExc_ValueError, "the row of %U is wrong", name);
        return -1;
    }
    op->offset = slot_offset(program->cls, name);
    if (op->offset < 0)
        return -1;
    op->kind = (uint8_t)kind;
    op->flags = (uint8_t)flags;
    const int whole = kind == STRUCT ? STRUCTS_TO_END : BYTES_TO_END;
    op->code = (uint8_t)(flags & TO_END ? whole : flags & IS_ARRAY ? ARRAY : kind);
    op->tag = tag;
    /* Not the row's word alone: it is read unchecked. */
    op->min_size = min_size > wire_sizes[kind] ? min_size : wire_sizes[kind];
    op->memory_cost = memory_cost;
    op->default_value = Py_NewRef(default_value);
    if (inner != Py_None) {
        op->inner = (Program *)Py_NewRef(inner);
        if (op->inner->depth >= program->depth)
            program->depth = (uint8_t)(op->inner->depth + 1);
    }
    return 0;
}

/* Whether each op has a slot of its own, and the tagged ones are in order. */
static bool is_sound(const Program *program)
{
    const Op *ops = program->ops;
    for (Py_ssize_t i = 0; i < Py_SIZE(program); i++) {
        if (ops[i].offset == program->tags)
            return false;
        for (Py_ssize_t j = 0; j < i; j++)
            if (ops[i].offset == ops[j].offset)
                return false;
    }
    for (int i = program->inlined + 1; i < program->inlined + program->tagged; i++)
        if (ops[i - 1].tag >= ops[i].tag)
            return false;
    return program->depth <= MAX_DEPTH && (program->flexible || program->tagged == 0);
}

/* --- steps --- */

/* Room that a field's number or length needs at most, where it is written step by step. */
static int32_t room_of(const Op *op)
{
    return op->code == op->kind && op->kind < STRING ? wire_sizes[op->kind] : MAX_UVARINT;
}

/* How a field's value is read or written. */
static Step stepping(const Op *op, bool tagged, int64_t rest)
{
    uint8_t code = op->code;
    if (code == STRUCT && op->flags & NULLABLE)
        code = tagged ? TAGGED_MARKED : MARKED;
    else if (code == STRING && op->flags & COMPACT)
        code = COMPACT_STRING;
    else if (code == BYTES && op->flags & COMPACT)
        code = COMPACT_BYTES;
    return (Step){.code = code, .flags = op->flags, .offset = (uint16_t)op->offset, .rest = (int32_t)rest, .op = op};
}

/* How a field gets its default. */
static Step defaulting(const Op *op, bool tagged)
{
    Step step = {.code = FRESH_ONE, .offset = (uint16_t)op->offset, .op = op};
    if (!tagged && !(op->flags & FRESH))
        step = (Step){.code = CONSTANT, .offset = step.offset, .default_value = op->default_value};
    return step;
}

/* The steps of encoding: what the version lacks is looked at first. */
static void plan_writing(Program *program, Step *step)
{
    const Op *ops = program->ops, *tagged = ops + program->inlined, *absent = tagged + program->tagged;
    program->writing = step;
    for (const Op *op = absent; op < ops + Py_SIZE(program); op++)
        if (!(op->flags & IGNORABLE)) {
            *step = stepping(op, false, 0);
            step++->code = ABSENT;
        }
    int32_t rest = program->flexible;
    for (const Op *op = ops; op < tagged; op++)
        rest += room_of(op);
    program->room = rest;
    for (const Op *op = ops; op < tagged; op++)
        *step++ = stepping(op, false, rest -= room_of(op));
    const uint8_t last = program->flexible ? TAGS : NO_TAGS;
    *step++ = (Step){.code = last, .offset = (uint16_t)program->tags, .program = program};
    *step = (Step){.code = END};
}

/* Lay down the steps of decoding and encoding, and what each has after it. */
static int plan(Program *program)
{
    Py_ssize_t count = 2 * Py_SIZE(program) + 4 + 2 * program->tagged;
    Step *step = program->steps = PyMem_New(Step, count);
    if (step == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    const Op *ops = program->ops, *stop = ops + Py_SIZE(program);
    const Op *tagged = ops + program->inlined, *absent = tagged + program->tagged;
    int64_t rest = program->flexible;
    for (const Op *op = ops; op < tagged; op++)
        rest += least_of(op);
    if (rest > MAX_MIN_SIZE || program->cls->tp_basicsize > UINT16_MAX) {
        PyErr_SetString(PyExc_ValueError, "a struct of this size");
        return -1;
    }
    program->min_size = (int32_t)rest;
    for (const Op *op = ops; op < tagged; op++)
        *step++ = stepping(op, false, rest -= least_of(op));
    *step = (Step){.code = TAGS, .offset = (uint16_t)program->tags, .program = program};
    if (!program->flexible)
        *step = (Step){.code = CONSTANT, .offset = step->offset, .default_value = Py_None};
    step++;
    for (const Op *op = absent; op < stop; op++)
        *step++ = defaulting(op, false);
    for (const Op *op = tagged; op < absent; op++)
        *step++ = defaulting(op, true);
    *step++ = (Step){.code = END};
    program->known = step;
    for (const Op *op = tagged; op < absent; op++) {
        *step++ = stepping(op, true, 0);
        *step++ = (Step){.code = END};
    }
    plan_writing(program, step);
    return 0;
}

/* Whether objects are slots of the class's own, one an op and the tags, and nothing else. */
static bool is_all_slots(const Program *program)
{
    const PyTypeObject *cls = program->cls, *base = cls->tp_base;
    size_t slots = ((size_t)Py_SIZE(program) + 1) * sizeof(PyObject *);
    return is_plain(program->cls) && cls->tp_weaklistoffset == 0
        && (size_t)base->tp_basicsize == sizeof(PyObject) && (size_t)cls->tp_basicsize == sizeof(PyObject) + slots;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"cls", "flexible", "inline", "tagged", "absent", NULL};
    PyObject *cls, *places[3];
    int flexible;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!pO!O!O!", names, &PyType_Type, &cls, &flexible,
                                     &PyTuple_Type, &places[0], &PyTuple_Type, &places[1], &PyTuple_Type,
                                     &places[2]))
        return NULL;
    PyObject *module = PyType_GetModule(type);
    Engine *engine = module == NULL ? NULL : PyModule_GetState(module);
    if (engine == NULL || engine->current == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "bind() comes first");
        return NULL;
    }
    Py_ssize_t count = 0;
    for (int place = 0; place < 3; place++)
        count += PyTuple_GET_SIZE(places[place]);
    if (count > 1000 || !PyType_HasFeature((PyTypeObject *)cls, Py_TPFLAGS_HEAPTYPE)
        || !PyType_IS_GC((PyTypeObject *)cls)) {
        PyErr_SetString(PyExc_ValueError, "no class of a struct, or too many rows");
        return NULL;
    }
    Program *program = (Program *)type->tp_alloc(type, count);
    if (program == NULL)
        return NULL;
    program->engine = engine;
    program->module = Py_NewRef(module);
    program->cls = (PyTypeObject *)Py_NewRef(cls);
    program->flexible = flexible;
    program->inlined = (uint16_t)PyTuple_GET_SIZE(places[0]);
    program->tagged = (uint16_t)PyTuple_GET_SIZE(places[1]);
    program->depth = 1;
    static const char *const tags[] = {"tags"};
    if (find_slots(program->cls, tags, 1, &program->tags) < 0)
        goto fail;
    Op *op = program->ops;
    for (int place = 0; place < 3; place++)
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places[place]); i++)
            if (read_row(program, type, PyTuple_GET_ITEM(places[place], i), op++) < 0)
                goto fail;
    if (!is_sound(program)) {
        PyErr_SetString(PyExc_ValueError, "the rows don't go together");
        goto fail;
    }
    if (plan(program) < 0)
        goto fail;
    if (is_all_slots(program))
        program->freelist = adopt_class(program->cls);
    return (PyObject *)program;
fail:
    Py_DECREF(program);
    return NULL;
}

static int program_traverse(PyObject *self, visitproc visit, void *arg)
{
    Program *program = (Program *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(program->module);
    Py_VISIT(program->cls);
    for (Py_ssize_t i = 0; i < Py_SIZE(program); i++) {
        Py_VISIT(program->ops[i].inner);
        Py_VISIT(program->ops[i].default_value);
    }
    return 0;
}

static void program_dealloc(PyObject *self)
{
    Program *program = (Program *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(program->cls);
    for (Py_ssize_t i = 0; i < Py_SIZE(program); i++) {
        Py_CLEAR(program->ops[i].inner);
        Py_CLEAR(program->ops[i].default_value);
    }
    Py_CLEAR(program->module);
    PyMem_Free(program->steps);
    type->tp_free(self);
    Py_DECREF(type);
}

PyDoc_STRVAR(decode_doc,
             "decode($self, data, start, elements, memory, /)\n--\n\n"
             "The message after `start` and the position after it, within the budgets; None if refused.");

static PyObject *program_decode(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "decode() takes data, start, elements and memory");
        return NULL;
    }
    Py_ssize_t start = PyLong_AsSsize_t(args[1]);
    const Budgets budgets = {PyLong_AsLongLong(args[2]), PyLong_AsLongLong(args[3])};
    Py_buffer data;
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *message = NULL;
    const uint8_t *first = data.buf, *stop = first;
    if (start >= 0 && start <= data.len)
        message = engine_decode((Program *)self, first + start, first + data.len, &budgets, &stop, NULL);
    Py_ssize_t end = stop - first;
    PyBuffer_Release(&data);
    if (message == NULL)
        Py_RETURN_NONE;
    return Py_BuildValue("Nn", message, end);
}

PyDoc_STRVAR(encode_doc, "encode($self, message, /)\n--\n\nThe message's bytes; None if refused.");

static PyObject *program_encode(PyObject *self, PyObject *message)
{
    PyObject *wire = engine_encode((Program *)self, message, NULL, NULL);
    return wire == NULL ? Py_NewRef(Py_None) : wire;
}

static PyMethodDef program_methods[] = {
    {"decode", (PyCFunction)(void (*)(void))program_decode, METH_FASTCALL, decode_doc},
    {"encode", program_encode, METH_O, encode_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_doc, "A struct's fields in one version, as the engine runs them."},
    {Py_tp_new, program_new},
    {Py_tp_traverse, program_traverse},
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_methods, program_methods},
    {0, NULL},
};

PyType_Spec program_spec = {
    .name = "coordwire._speedups._native.Program",
    .basicsize = sizeof(Program),
    .itemsize = sizeof(Op),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = program_slots,
};
