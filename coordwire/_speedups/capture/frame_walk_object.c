/* The type `FrameWalk`: its classes and slots are looked up once; `frame_walk.c` takes chunks.

   Rule: a class without one of these slots, or with an allocator of its own, is refused. */

#include "frame_walk.h"

static const struct {
    int kind;
    const char *name;
} places[SLOTS] = {
    {SPLITTER, "in_step"}, {SPLITTER, "buffer"}, {SPLITTER, "position"},
    {CONVERSATION, "capture"}, {CONVERSATION, "strict"}, {CONVERSATION, "connection"}, {CONVERSATION, "waiting"},
    {CONVERSATION, "_waiting"}, {CONVERSATION, "_repeats"}, {CONVERSATION, "_count"}, {CONVERSATION, "_tokens"},
    {CONVERSATION, "_owed_tokens"}, {CONVERSATION, "_client_id"}, {CONVERSATION, "_naming"},
    {PENDING, "budget"}, {PENDING, "cost"}, {PENDING, "_serial"}, {PENDING, "_all"}, {PENDING, "_by_cost"},
    {PENDING, "unnamed"},
    {AWAITED, "entry"}, {AWAITED, "forget"}, {AWAITED, "api_key"}, {AWAITED, "correlation_id"}, {AWAITED, "size"},
    {AWAITED, "one_way"}, {AWAITED, "cost"}, {AWAITED, "serial"},
    {ENTRY, "capture"}, {ENTRY, "number"}, {ENTRY, "flow"}, {ENTRY, "time_ns"}, {ENTRY, "direction"},
    {ENTRY, "body"}, {ENTRY, "api_key"}, {ENTRY, "api_version"}, {ENTRY, "body_version"},
    {ENTRY, "correlation_id"}, {ENTRY, "request"}, {ENTRY, "token"}, {ENTRY, "mechanism"}, {ENTRY, "dialect"},
    {ENTRY, "call"}, {ENTRY, "released"}, {ENTRY, "packet"}, {ENTRY, "first_packet"}, {ENTRY, "connection"},
    {ENTRY, "text"}, {ENTRY, "hidden"}, {ENTRY, "client_id"},
    {SUMMARY, "frames"},
};

PyDoc_STRVAR(take_doc, "take(chunk, limit) -> FrameEntry | bool | None\n\n"
                       "The entry of a chunk that is one frame of at most so many bytes; True if its connection isn't "
                       "read, None if it is declined.");

PyDoc_STRVAR(frame_walk_doc, "FrameWalk(kinds, forget, dialect, routes, summary, telling, eager, omitting, numbers)\n\n"
                             "Makes the lazy entries of one capture; see coordwire.capture.connections.");

static bool read_kinds(FrameWalk *walk, PyObject *kinds)
{
    if (PyTuple_GET_SIZE(kinds) != KINDS) {
        PyErr_Format(PyExc_TypeError, "expected %d classes", (int)KINDS);
        return false;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        PyObject *cls = PyTuple_GET_ITEM(kinds, kind);
        bool is_tuple = kind == ROUTE || kind == CHUNK;
        if (!PyType_Check(cls)
            || !(is_tuple ? PyType_IsSubtype((PyTypeObject *)cls, &PyTuple_Type)
                          : is_plain_class((PyTypeObject *)cls))) {
            PyErr_Format(PyExc_TypeError, "class %d is not such a class", kind);
            return false;
        }
        walk->kinds[kind] = (PyTypeObject *)Py_NewRef(cls);
    }
    for (int kind = LAZY; kind <= STRICT_LAZY; kind++) {
        const PyTypeObject *cls = walk->kinds[kind];
        if (!PyType_IsSubtype((PyTypeObject *)cls, walk->kinds[ENTRY])
            || cls->tp_basicsize != walk->kinds[ENTRY]->tp_basicsize) {
            PyErr_SetString(PyExc_TypeError, "a lazy entry has slots of its own");
            return false;
        }
    }
    for (int index = 0; index < SLOTS; index++)
        if (find_slots(walk->kinds[places[index].kind], &places[index].name, 1, walk->slots + index) < 0)
            return false;
    return true;
}

static PyObject *frame_walk_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *kinds, *forget, *dialect, *routes, *summary, *omitting;
    unsigned long long telling, eager;
    long long latest, reduced, guess;
    if (keywords != NULL && PyDict_GET_SIZE(keywords)) {
        PyErr_SetString(PyExc_TypeError, "FrameWalk takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "O!OOO!OKKO!(LLL)", &PyTuple_Type, &kinds, &forget, &dialect, &PyDict_Type,
                          &routes, &summary, &telling, &eager, &PyBytes_Type, &omitting, &latest, &reduced, &guess))
        return NULL;
    FrameWalk *walk = (FrameWalk *)type->tp_alloc(type, 0);
    if (walk == NULL)
        return NULL;
    walk->forget = Py_NewRef(forget);
    walk->dialect = Py_NewRef(dialect);
    walk->routes = Py_NewRef(routes);
    walk->summary = Py_NewRef(summary);
    walk->omitting = Py_NewRef(omitting);
    walk->telling = telling;
    walk->eager = eager;
    walk->latest = latest;
    walk->reduced = reduced;
    walk->guess = guess;
    walk->request = PyUnicode_InternFromString("request");
    walk->response = PyUnicode_InternFromString("response");
    walk->zero = PyLong_FromLong(0);
    if (!walk->request || !walk->response || !walk->zero || !read_kinds(walk, kinds)) {
        Py_DECREF(walk);
        return NULL;
    }
    if (!is_of(walk, summary, SUMMARY) || guess < 0 || guess > INT32_MAX || reduced < 0 || reduced > INT32_MAX) {
        PyErr_SetString(PyExc_TypeError, "expected a summary, and numbers that can be");
        Py_DECREF(walk);
        return NULL;
    }
    return (PyObject *)walk;
}

OWNS(FrameWalk, kinds, zero)

PyDoc_STRVAR(take_run_doc, "take_run(chunks, at, limit, entries) -> int\n\n"
                           "Take the chunks from an index on, and add their entries to a list; the index of the first\n"
                           "chunk that is declined, or after the last one.");

static PyMethodDef frame_walk_methods[] = {
    {"take", (PyCFunction)(void (*)(void))frame_walk_take, METH_FASTCALL, take_doc},
    {"take_run", (PyCFunction)(void (*)(void))frame_walk_take_run, METH_FASTCALL, take_run_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot frame_walk_slots[] = {
    {Py_tp_doc, (void *)frame_walk_doc},       {Py_tp_new, frame_walk_new},         {Py_tp_traverse, FrameWalk_traverse},
    {Py_tp_dealloc, FrameWalk_dealloc},       {Py_tp_methods, frame_walk_methods}, {0, NULL},
};

PyType_Spec frame_walk_spec = {
    .name = "coordwire._speedups._native.FrameWalk",
    .basicsize = sizeof(FrameWalk),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = frame_walk_slots,
};
