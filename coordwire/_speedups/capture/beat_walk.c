/* `BeatWalk`: heartbeats that say what they said before, of groups that nothing happens to.

   Strategy: a heartbeat is known by its bytes, and so is an answer that gives nothing new (`SteadyBeats`). Where its
   member and its group are as calm as that, all that a story does is to note when the member was heard; this does it
   in the slots of Python's own objects. Rules: all checks of a frame come before its first change; what is out of the
   ordinary in any way is declined, and nothing is changed for it: Python reads it. What is looked up is held until
   the frame is done. */

#include "slots.h"

enum { ENTRY, BEAT, MEMBER, SEEN, CLASSIC, MODERN, CONSUMER, KINDS };

enum {
    E_TIME_NS, E_CAPTURE, E_NUMBER, E_PACKET, E_DIRECTION, E_BODY, E_REQUEST,
    B_KEPT, B_MEMBER_ID, B_EPOCH, B_ANSWER, B_ANSWERED_EPOCH, B_INTERVAL_MS,
    M_LAST_SEEN_NS, M_SESSION_TIMEOUT_MS, M_PARKED, M_AWAY, M_GENERATION, M_ASSIGNED, M_OWNED, M_ASKED_NS,
    SLOTS
};

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

/* The attributes of groups and of what they have. */
enum {
    AVAILABLE_NS, DOUBTED, EPOCH_OF, BOUNDS, COMMON, GENERATION, GONE_BY, HAS_ANY, HEAP, INTERVAL_NS, KNOWN, LATE,
    LEAST_NS, MEMBERS, MOST_NS, NATIVE, OWN_SESSIONS, PENDING, PROGRESS, REBALANCE, SESSIONS, TIMEOUT, WATCHED, WORDS
};

static const char *const words[WORDS] = {
    "available_ns", "_doubted", "_epoch_of", "_bounds", "_common", "generation", "_gone_by", "has_any", "_heap",
    "interval_ns", "_known", "_late", "least_ns", "members", "most_ns", "_native", "_own_sessions", "pending",
    "progress", "rebalance", "_sessions", "timeout", "_watched",
};

enum { CORRELATION = 4, HEAD = 8, SEEN_SIZE = 4, MOST_HELD = 32, MS = 1000000 };

typedef struct {
    PyObject_HEAD
    PyTypeObject *kinds[KINDS];
    PyObject *beats;   /* dict: a heartbeat's bytes without its correlation id to what it says */
    PyObject *waiting; /* ordered dict: where a request was seen to what it asked */
    PyObject *groups;  /* dict: as what a group is kept to the group */
    PyObject *words[WORDS];
    int64_t most, intervals; /* so many requests wait; so many intervals make a session */
    Py_ssize_t slots[SLOTS];
} BeatWalk;

/* What was looked up for one frame. */
typedef struct {
    const BeatWalk *walk;
    PyObject *objects[MOST_HELD];
    int count;
} Held;

static PyObject *hold(Held *held, PyObject *object)
{
    if (object == NULL)
        PyErr_Clear();
    else
        held->objects[held->count++] = object;
    return object;
}

static void let_go(Held *held)
{
    while (held->count)
        Py_DECREF(held->objects[--held->count]);
}

static PyObject *value_of(const BeatWalk *walk, PyObject *object, int index)
{
    return slot_value(object, walk->slots[index]);
}

static bool is_of(const BeatWalk *walk, const PyObject *object, int kind)
{
    return object != NULL && Py_IS_TYPE(object, walk->kinds[kind]);
}

/* Numbers are of those that can be added up without a look. */
static bool is_number(PyObject *value, int64_t *number)
{
    if (value == NULL || !PyLong_Check(value))
        return false;
    *number = PyLong_AsLongLong(value);
    if (*number == -1 && PyErr_Occurred())
        PyErr_Clear();
    return *number >= 0 && *number < INT64_MAX / 4;
}

static bool number_of(const BeatWalk *walk, PyObject *object, int index, int64_t *number)
{
    return is_number(value_of(walk, object, index), number);
}

/* An attribute, held; NULL where there is none. */
static PyObject *part(Held *held, PyObject *object, int word)
{
    if (object == NULL || held->count == MOST_HELD)
        return NULL;
    return hold(held, PyObject_GetAttr(object, held->walk->words[word]));
}

static bool number_part(Held *held, PyObject *object, int word, int64_t *number)
{
    return is_number(part(held, object, word), number);
}

/* An entry of a dict, held; NULL where there is none. */
static PyObject *look_up(Held *held, PyObject *dict, PyObject *key)
{
    if (dict == NULL || key == NULL || !PyDict_Check(dict) || held->count == MOST_HELD)
        return NULL;
    PyObject *found = PyDict_GetItemWithError(dict, key);
    return hold(held, Py_XNewRef(found));
}

static bool is_empty(PyObject *object)
{
    if (object == NULL || !(PyList_CheckExact(object) || PyAnySet_Check(object) || PyDict_Check(object)))
        return false;
    return PyObject_Size(object) == 0;
}

static bool contains(PyObject *set, PyObject *key) { return set != NULL && PySet_Check(set) && PySet_Contains(set, key) == 1; }

/* Where an entry was seen, held. */
static PyObject *place_of(Held *held, PyObject *entry)
{
    static const int values[SEEN_SIZE] = {E_TIME_NS, E_CAPTURE, E_NUMBER, E_PACKET};
    const BeatWalk *walk = held->walk;
    PyTypeObject *seen = walk->kinds[SEEN];
    for (int index = 0; index < SEEN_SIZE; index++)
        if (value_of(walk, entry, values[index]) == NULL)
            return NULL;
    PyObject *place = hold(held, seen->tp_alloc(seen, SEEN_SIZE));
    if (place != NULL)
        for (int index = 0; index < SEEN_SIZE; index++) {
            PyObject *value = value_of(walk, entry, values[index]);
            PyTuple_SET_ITEM(place, index, Py_NewRef(value == NULL ? Py_None : value));
        }
    return place;
}

static PyObject *body_of(const BeatWalk *walk, PyObject *entry)
{
    PyObject *body = value_of(walk, entry, E_BODY);
    return body != NULL && PyBytes_CheckExact(body) ? body : NULL;
}

/* What a request is known to say, held. */
static PyObject *find_beat(Held *held, PyObject *entry)
{
    const PyObject *body = body_of(held->walk, entry);
    if (body == NULL || PyBytes_GET_SIZE(body) <= HEAD || !PyDict_GET_SIZE(held->walk->beats))
        return NULL;
    Py_ssize_t size = PyBytes_GET_SIZE(body);
    PyObject *key = hold(held, PyBytes_FromStringAndSize(NULL, size - CORRELATION));
    if (key == NULL)
        return NULL;
    char *to = PyBytes_AS_STRING(key);
    const char *from = ((const PyBytesObject *)body)->ob_sval;
    memcpy(to, from, CORRELATION);
    memcpy(to + CORRELATION, from + HEAD, (size_t)(size - HEAD));
    PyObject *beat = look_up(held, held->walk->beats, key);
    return is_of(held->walk, beat, BEAT) ? beat : NULL;
}

/* The group of a heartbeat, if it is of a known class, and its member; both held, or NULL. */
static PyObject *find_group(Held *held, PyObject *beat, PyObject **member)
{
    const BeatWalk *walk = held->walk;
    PyObject *group = look_up(held, walk->groups, value_of(walk, beat, B_KEPT));
    *member = NULL;
    if (group == NULL || !(is_of(walk, group, CLASSIC) || is_of(walk, group, MODERN) || is_of(walk, group, CONSUMER)))
        return NULL;
    *member = look_up(held, part(held, group, MEMBERS), value_of(walk, beat, B_MEMBER_ID));
    return group;
}

/* A request that is known; where it was seen, borrowed, or NULL. */
static PyObject *take_request(Held *held, PyObject *entry)
{
    const BeatWalk *walk = held->walk;
    PyObject *beat = find_beat(held, entry), *member = NULL;
    int64_t time_ns, asked_ns;
    if (beat == NULL || PyODict_SIZE(walk->waiting) >= walk->most || !number_of(walk, entry, E_TIME_NS, &time_ns)
        || find_group(held, beat, &member) == NULL || !is_of(walk, member, MEMBER)
        || !number_of(walk, member, M_ASKED_NS, &asked_ns))
        return NULL;
    PyObject *place = place_of(held, entry);
    if (place == NULL)
        return NULL;
    if (PyODict_SetItem(walk->waiting, place, beat) < 0) {
        PyErr_Clear();
        return NULL;
    }
    if (time_ns > asked_ns)
        set_slot(member, walk->slots[M_ASKED_NS], value_of(walk, entry, E_TIME_NS));
    return place;
}

/* Whether a classic member is heard without more to it: `ClassicGroup.stays`. */
static bool is_calm_classic(Held *held, PyObject *group, PyObject *member, PyObject *beat, int64_t time_ns)
{
    const BeatWalk *walk = held->walk;
    int64_t available_ns, seen_ns, timeout_ms = 0, generation, epoch;
    PyObject *timeout = value_of(walk, member, M_SESSION_TIMEOUT_MS), *current;
    if (timeout == NULL || (timeout != Py_None && !is_number(timeout, &timeout_ms)) || timeout_ms > INT32_MAX
        || !number_of(walk, member, M_LAST_SEEN_NS, &seen_ns) || !number_part(held, group, AVAILABLE_NS, &available_ns)
        || !number_of(walk, beat, B_EPOCH, &epoch))
        return false;
    if (timeout_ms && time_ns > (seen_ns > available_ns ? seen_ns : available_ns) + timeout_ms * MS)
        return false;
    current = part(held, group, GENERATION);
    if (current != Py_None && (!is_number(current, &generation) || epoch > generation))
        return false;
    return is_empty(part(held, group, GONE_BY));
}

/* After what silence a member is out, by what was learned; false where a configuration says it. */
static bool find_most(Held *held, PyObject *timeout, int64_t interval_ns, int64_t *least_ns, int64_t *most_ns)
{
    PyObject *bounds = part(held, timeout, BOUNDS), *most = part(held, bounds, MOST_NS);
    if (part(held, part(held, timeout, KNOWN), HAS_ANY) != Py_False || !number_part(held, bounds, LEAST_NS, least_ns))
        return false;
    if (most == Py_None)
        most = part(held, part(held, timeout, COMMON), MOST_NS);
    if (most != Py_None && !is_number(most, most_ns))
        return false;
    if (most == Py_None || *most_ns == 0) {
        *most_ns = held->walk->intervals * interval_ns;
        if (*most_ns < *least_ns)
            *most_ns = *least_ns;
    }
    return true;
}

/* Whether a member is heard without more to it, and no member is out by then: `ModernGroup.goes_on`. */
static bool is_calm_modern(Held *held, PyObject *group, PyObject *member, PyObject *beat, PyObject *asked)
{
    const BeatWalk *walk = held->walk;
    PyObject *name = value_of(walk, beat, B_MEMBER_ID), *epoch = value_of(walk, beat, B_ANSWERED_EPOCH);
    PyObject *assigned = value_of(walk, member, M_ASSIGNED), *owned = value_of(walk, member, M_OWNED);
    int64_t asked_ns, interval_ms, interval_ns, least_ns, most_ns, available_ns, seen_ns, first_ns;
    int64_t answered, current, own, counted;
    if (part(held, group, REBALANCE) != Py_None || !is_empty(part(held, group, DOUBTED))
        || value_of(walk, member, M_SESSION_TIMEOUT_MS) != Py_None || value_of(walk, member, M_AWAY) != Py_False
        || assigned == NULL || owned == NULL || (owned != assigned && !is_of(walk, group, CONSUMER)))
        return false;
    if (!is_number(epoch, &answered) || !number_part(held, group, GENERATION, &current) || answered > current
        || !number_of(walk, member, M_GENERATION, &own) || own != answered)
        return false;
    PyObject *progress = part(held, group, PROGRESS), *late = part(held, progress, LATE);
    if (late == NULL || !PySet_CheckExact(late)
        || contains(late, name) != (assigned != Py_None && owned != assigned)
        || !is_number(look_up(held, part(held, progress, EPOCH_OF), name), &counted) || counted != answered)
        return false;
    PyObject *timeout = part(held, group, TIMEOUT);
    if (!number_of(walk, beat, B_INTERVAL_MS, &interval_ms) || !number_part(held, timeout, INTERVAL_NS, &interval_ns)
        || interval_ms > INT32_MAX || (interval_ms && interval_ms * MS != interval_ns) || interval_ns > INT64_MAX / 64
        || !find_most(held, timeout, interval_ns, &least_ns, &most_ns))
        return false;
    if (!number_of(walk, asked, E_TIME_NS, &asked_ns) || !number_of(walk, member, M_LAST_SEEN_NS, &seen_ns)
        || !number_part(held, group, AVAILABLE_NS, &available_ns))
        return false;
    int64_t silence_ns = asked_ns - (seen_ns > available_ns ? seen_ns : available_ns);
    if (silence_ns > least_ns || silence_ns > most_ns)
        return false;
    /* No session began before the heap's first says. */
    PyObject *heap = part(held, part(held, group, SESSIONS), HEAP);
    if (heap == NULL || !PyList_CheckExact(heap) || PyList_GET_SIZE(heap) == 0)
        return false;
    PyObject *first = PyList_GET_ITEM(heap, 0);
    if (!PyTuple_CheckExact(first) || PyTuple_GET_SIZE(first) != 2 || !is_number(PyTuple_GET_ITEM(first, 0), &first_ns)
        || asked_ns - first_ns > most_ns)
        return false;
    if (!is_of(walk, group, CONSUMER))
        return true;
    PyObject *natives = part(held, group, NATIVE);
    return natives != NULL && PySet_CheckExact(natives) && PySet_GET_SIZE(natives)
           && is_empty(part(held, part(held, group, OWN_SESSIONS), HEAP));
}

static bool is_answer(const BeatWalk *walk, PyObject *beat, PyObject *entry)
{
    const PyObject *body = body_of(walk, entry), *answer = value_of(walk, beat, B_ANSWER);
    if (body == NULL || answer == NULL || !PyBytes_CheckExact(answer) || PyBytes_GET_SIZE(body) < CORRELATION)
        return false;
    Py_ssize_t size = PyBytes_GET_SIZE(answer);
    return PyBytes_GET_SIZE(body) == size + CORRELATION
           && memcmp(PyBytes_AS_STRING(body) + CORRELATION, PyBytes_AS_STRING(answer), (size_t)size) == 0;
}

/* An answer that is known, to a request of its own; where it was seen, borrowed, or NULL. */
static PyObject *take_response(Held *held, PyObject *entry, PyObject *asked)
{
    const BeatWalk *walk = held->walk;
    PyObject *asked_at = place_of(held, asked), *beat = asked_at, *member = NULL;
    int64_t time_ns;
    if (asked_at == NULL || !number_of(walk, entry, E_TIME_NS, &time_ns))
        return NULL;
    PyObject *waits = look_up(held, walk->waiting, asked_at);
    const PyObject *asked_body = body_of(walk, asked);
    if (asked_body == NULL || PyBytes_GET_SIZE(asked_body) == 0)
        return NULL;
    beat = is_of(walk, waits, BEAT) ? waits : find_beat(held, asked);
    if (beat == NULL || !is_answer(walk, beat, entry))
        return NULL;
    PyObject *group = find_group(held, beat, &member);
    PyObject *name = value_of(walk, beat, B_MEMBER_ID);
    if (group == NULL || !is_of(walk, member, MEMBER) || value_of(walk, member, M_PARKED) != Py_False
        || !is_empty(part(held, group, PENDING)) || !contains(part(held, part(held, group, SESSIONS), WATCHED), name))
        return NULL;
    bool calm = is_of(walk, group, CLASSIC) ? is_calm_classic(held, group, member, beat, time_ns)
                                            : is_calm_modern(held, group, member, beat, asked);
    PyObject *place = calm ? place_of(held, entry) : NULL;
    if (place == NULL)
        return NULL;
    if (waits != NULL && PyODict_DelItem(walk->waiting, asked_at) < 0) {
        PyErr_Clear();
        return NULL;
    }
    set_slot(member, walk->slots[M_LAST_SEEN_NS], value_of(walk, entry, E_TIME_NS));
    return place;
}

PyDoc_STRVAR(take_doc, "take(entry) -> Seen | None\n\n"
                       "Where a heartbeat or its answer was seen, if that is all that it says; None if it is declined.");

static PyObject *beat_walk_take(PyObject *self, PyObject *entry)
{
    const BeatWalk *walk = (const BeatWalk *)self;
    if (!PyObject_TypeCheck(entry, walk->kinds[ENTRY])) {
        PyErr_SetString(PyExc_TypeError, "expected a frame's entry");
        return NULL;
    }
    Held held = {.walk = walk};
    PyObject *asked = value_of(walk, entry, E_REQUEST), *place = NULL;
    if (asked == Py_None) {
        const PyObject *direction = value_of(walk, entry, E_DIRECTION);
        if (direction != NULL && PyUnicode_Check(direction)
            && PyUnicode_CompareWithASCIIString((PyObject *)direction, "request") == 0)
            place = take_request(&held, entry);
    } else if (asked != NULL && PyObject_TypeCheck(asked, walk->kinds[ENTRY])) {
        place = take_response(&held, entry, hold(&held, Py_NewRef(asked)));
    }
    place = Py_NewRef(place == NULL ? Py_None : place);
    let_go(&held);
    return place;
}

/* --- its life --- */

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
