/* `BeatWalk`: heartbeats that say what they said before, of groups that nothing happens to.

   Strategy: a heartbeat is known by its bytes, and so is an answer that gives nothing new (`SteadyBeats`). Where its
   member and its group are as calm as that, all that a story does is to note when the member was heard; this does it
   in the slots of Python's own objects. Rules: all checks of a frame come before its first change; what is out of the
   ordinary in any way is declined, and nothing is changed for it: Python reads it. What is looked up is held until
   the frame is done. */

#include "beat_walk.h"

enum { CORRELATION = 4, HEAD = 8, SEEN_SIZE = 4, MS = 1000000 };

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

PyObject *beat_walk_take(PyObject *self, PyObject *entry)
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
