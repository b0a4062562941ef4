/* The type `BeatWalk`: its classes and slots are looked up once; `beat_walk.c` takes entries.

   Rule: a class without one of these slots is refused. */

#include "beat_walk.h"

static const struct {
    int kind;
    const char *name;
} places[SLOTS] = {
    {ENTRY, "time_ns"}, {ENTRY, "capture"}, {ENTRY, "number"}, {ENTRY, "packet"}, {ENTRY, "direction"},
    {ENTRY, "body"}, {ENTRY, "request"},
    {BEAT, "kept"}, {BEAT, "member_id"}, {BEAT, "epoch"}, {BEAT, "answer"}, {BEAT, "answered_epoch"},
    {BEAT, "interval_ms"},
    {MEMBER, "last_seen_ns"}, {MEMBER, "session_timeout_ms"}, {MEMBER, "parked"}, {MEMBER, "away"},
    {MEMBER, "generation"}, {MEMBER, "assigned"}, {MEMBER, "owned"}, {MEMBER, "asked_ns"},
};

static const char *const words[WORDS] = {
    "available_ns", "_doubted", "_epoch_of", "_bounds", "_common", "generation", "_gone_by", "has_any", "_heap",
    "interval_ns", "_known", "_late", "least_ns", "members", "most_ns", "_native", "_own_sessions", "pending",
    "progress", "rebalance", "_sessions", "timeout", "_watched",
};

PyDoc_STRVAR(take_doc, "take(entry) -> Seen | None\n\n"
                       "Where a heartbeat or its answer was seen, if that is all that it says; None if it is declined.");

PyDoc_STRVAR(beat_walk_doc, "BeatWalk(kinds, beats, waiting, groups, most, intervals)\n\n"
                            "Takes the steady heartbeats of one story; see coordwire.groups.steady_beats.");

static bool read_kinds(BeatWalk *walk, PyObject *kinds)
{
    if (PyTuple_GET_SIZE(kinds) != KINDS) {
        PyErr_Format(PyExc_TypeError, "expected %d classes", (int)KINDS);
        return false;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        PyObject *cls = PyTuple_GET_ITEM(kinds, kind);
        bool fits = PyType_Check(cls) && PyType_HasFeature((PyTypeObject *)cls, Py_TPFLAGS_HEAPTYPE);
        if (!fits || (kind == SEEN && !PyType_IsSubtype((PyTypeObject *)cls, &PyTuple_Type))) {
            PyErr_Format(PyExc_TypeError, "class %d is not such a class", kind);
            return false;
        }
        walk->kinds[kind] = (PyTypeObject *)Py_NewRef(cls);
    }
    for (int index = 0; index < SLOTS; index++) {
        walk->slots[index] = find_slot(walk->kinds[places[index].kind], places[index].name);
        if (walk->slots[index] < 0)
            return false;
    }
    for (int word = 0; word < WORDS; word++) {
        walk->words[word] = PyUnicode_InternFromString(words[word]);
        if (walk->words[word] == NULL)
            return false;
    }
    return true;
}

static PyObject *beat_walk_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *kinds, *beats, *waiting, *groups;
    long long most, intervals;
    if (keywords != NULL && PyDict_GET_SIZE(keywords)) {
        PyErr_SetString(PyExc_TypeError, "BeatWalk takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "O!O!O!O!LL", &PyTuple_Type, &kinds, &PyDict_Type, &beats, &PyODict_Type, &waiting,
                          &PyODict_Type, &groups, &most, &intervals))
        return NULL;
    if (most < 0 || intervals < 0 || intervals > MOST_HELD) {
        PyErr_SetString(PyExc_TypeError, "expected numbers that can be");
        return NULL;
    }
    BeatWalk *walk = (BeatWalk *)type->tp_alloc(type, 0);
    if (walk == NULL)
        return NULL;
    walk->beats = Py_NewRef(beats);
    walk->waiting = Py_NewRef(waiting);
    walk->groups = Py_NewRef(groups);
    walk->most = most;
    walk->intervals = intervals;
    if (!read_kinds(walk, kinds))
        Py_CLEAR(walk);
    return (PyObject *)walk;
}

static int beat_walk_traverse(PyObject *self, visitproc visit, void *arg)
{
    BeatWalk *walk = (BeatWalk *)self;
    Py_VISIT(Py_TYPE(self));
    for (int kind = 0; kind < KINDS; kind++)
        Py_VISIT(walk->kinds[kind]);
    Py_VISIT(walk->beats);
    Py_VISIT(walk->waiting);
    Py_VISIT(walk->groups);
    return 0;
}

static int beat_walk_clear(PyObject *self)
{
    BeatWalk *walk = (BeatWalk *)self;
    Py_CLEAR(walk->beats);
    Py_CLEAR(walk->waiting);
    Py_CLEAR(walk->groups);
    return 0;
}

static void beat_walk_dealloc(PyObject *self)
{
    BeatWalk *walk = (BeatWalk *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    (void)beat_walk_clear(self);
    for (int kind = 0; kind < KINDS; kind++)
        Py_CLEAR(walk->kinds[kind]);
    for (int word = 0; word < WORDS; word++)
        Py_CLEAR(walk->words[word]);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef beat_walk_methods[] = {
    {"take", beat_walk_take, METH_O, take_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot beat_walk_slots[] = {
    {Py_tp_doc, (void *)beat_walk_doc},     {Py_tp_new, beat_walk_new},         {Py_tp_traverse, beat_walk_traverse},
    {Py_tp_clear, beat_walk_clear},         {Py_tp_dealloc, beat_walk_dealloc}, {Py_tp_methods, beat_walk_methods},
    {0, NULL},
};

static PyType_Spec beat_walk_spec = {
    .name = "coordwire._speedups._native.BeatWalk",
    .basicsize = sizeof(BeatWalk),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = beat_walk_slots,
};

int beat_walk_exec(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &beat_walk_spec, NULL);
    if (type == NULL)
        return -1;
    int status = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return status;
}
