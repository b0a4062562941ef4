/* `FrameWalk`: chunks that hold one frame each, as most do, to lazy entries.

   Strategy: a chunk is taken where its connection is known, its direction is in step and holds nothing, and it is
   just one frame: a request that says nothing of the frames after it, or the answer to a request that waits. This
   does what `Connections`, `Conversation` and `PendingRequests` do with such a frame, in their own slots. Rules:
   all checks of a chunk come before its first change; anything else is declined, and nothing is changed for it:
   Python reads it; what may run Python (the collector, when objects are made) comes before slots are read. */

#include "frame_walk.h"

enum { PREFIX = 4, REQUEST_HEAD = 8, MASKED = 64, NEVER = 255 };

/* A chunk that may be taken: it is one frame of a direction that is in step. Borrowed from the chunk and the route,
   which the caller holds. */
typedef struct {
    PyObject *cutter, *conversation, *name, *data, *time, *packet;
    int64_t position;
    Py_ssize_t size; /* of the frame, without its prefix */
    const uint8_t *body;
    bool is_client;
} Frame;

enum Taken { FAILED = -1, DECLINED, DONE, GIVEN };

static PyObject *value_of(const FrameWalk *walk, PyObject *object, int index)
{
    return slot_value(object, walk->slots[index]);
}

static bool number_of(const FrameWalk *walk, PyObject *object, int index, int64_t *number)
{
    return slot_number(object, walk->slots[index], number) && *number >= 0 && *number < INT64_MAX / 2;
}

static void put(const FrameWalk *walk, PyObject *object, int index, PyObject *value)
{
    set_slot(object, walk->slots[index], value);
}

static uint32_t big32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int big16(const uint8_t *at) { return (int16_t)(uint16_t)((unsigned)at[0] << 8 | at[1]); }

static bool has_bit(uint64_t mask, int64_t key) { return key >= 0 && key < MASKED && (mask >> key & 1); }

/* Whether a chunk of a route is one frame that may be taken. */
static bool read_chunk(const FrameWalk *walk, PyObject *chunk, PyObject *route, int64_t limit, Frame *frame)
{
    frame->cutter = PyTuple_GET_ITEM(route, ROUTE_CUTTER);
    frame->conversation = PyTuple_GET_ITEM(route, ROUTE_CONVERSATION);
    frame->name = PyTuple_GET_ITEM(route, ROUTE_NAME);
    frame->is_client = PyTuple_GET_ITEM(route, ROUTE_IS_CLIENT) == Py_True;
    frame->time = PyTuple_GET_ITEM(chunk, 1);
    frame->data = PyTuple_GET_ITEM(chunk, 3);
    frame->packet = PyTuple_GET_ITEM(chunk, 4);
    if (!is_of(walk, frame->conversation, CONVERSATION) || !is_of(walk, frame->cutter, SPLITTER)
        || !PyBytes_CheckExact(frame->data) || !PyLong_CheckExact(frame->packet))
        return false;
    frame->size = PyBytes_GET_SIZE(frame->data) - PREFIX;
    if (frame->size < PREFIX || frame->size > limit || frame->size > INT32_MAX)
        return false;
    const uint8_t *data = (const uint8_t *)PyBytes_AS_STRING(frame->data);
    frame->body = data + PREFIX;
    PyObject *buffer = value_of(walk, frame->cutter, BUFFER);
    PyObject *early = PyTuple_GET_ITEM(route, ROUTE_EARLY);
    if (big32(data) != (uint32_t)frame->size || value_of(walk, frame->cutter, IN_STEP) != Py_True || buffer == NULL
        || !PyByteArray_CheckExact(buffer) || PyByteArray_GET_SIZE(buffer) != 0
        || !number_of(walk, frame->cutter, POSITION, &frame->position) || PyObject_IsTrue(frame->packet) != 1)
        return false;
    Py_ssize_t waiting = PyObject_Size(early);
    if (waiting < 0)
        PyErr_Clear();
    return waiting == 0;
}

/* What is counted and kept for a frame, made before anything is changed. */
typedef struct {
    PyObject *body, *number, *correlation, *position, *count, *cost;
} Made;

static void release(Made *made)
{
    Py_CLEAR(made->body);
    Py_CLEAR(made->number);
    Py_CLEAR(made->correlation);
    Py_CLEAR(made->position);
    Py_CLEAR(made->count);
    Py_CLEAR(made->cost);
}

/* What all entries have. */
static void fill(const FrameWalk *walk, PyObject *entry, const Frame *frame, const Made *made)
{
    PyObject *capture = value_of(walk, frame->conversation, CAPTURE), *connection = value_of(walk, frame->conversation, CONNECTION);
    put(walk, entry, E_CAPTURE, capture == NULL ? Py_None : capture);
    put(walk, entry, E_CONNECTION, connection == NULL ? Py_None : connection);
    put(walk, entry, E_NUMBER, made->number);
    put(walk, entry, E_FLOW, frame->name);
    put(walk, entry, E_TIME_NS, frame->time);
    put(walk, entry, E_DIRECTION, frame->is_client ? walk->request : walk->response);
    put(walk, entry, E_BODY, made->body);
    put(walk, entry, E_CORRELATION_ID, made->correlation);
    put(walk, entry, E_TOKEN, Py_False);
    put(walk, entry, E_MECHANISM, Py_None);
    put(walk, entry, E_DIALECT, walk->dialect);
    put(walk, entry, E_CALL, Py_None);
    put(walk, entry, E_RELEASED, walk->zero);
    put(walk, entry, E_PACKET, frame->packet);
    put(walk, entry, E_FIRST_PACKET, frame->packet);
    put(walk, entry, E_TEXT, Py_None);
    put(walk, entry, E_HIDDEN, Py_None);
}

static PyObject *new_entry(const FrameWalk *walk, PyObject *conversation)
{
    bool strict = value_of(walk, conversation, STRICT) == Py_True;
    PyTypeObject *cls = walk->kinds[strict ? STRICT_LAZY : LAZY];
    return cls->tp_alloc(cls, 0);
}

/* The requests that wait, of the capture and of the connection; false where they are not for this walk. */
typedef struct {
    PyObject *pending, *index, *all;
    int64_t count, cost, number;
} Waiting;

static bool read_waiting(const FrameWalk *walk, PyObject *conversation, Waiting *waiting)
{
    waiting->pending = value_of(walk, conversation, REQUESTS);
    waiting->index = value_of(walk, conversation, INDEX);
    PyObject *repeats = value_of(walk, conversation, REPEATS);
    if (!is_of(walk, waiting->pending, PENDING) || waiting->index == NULL || !PyDict_CheckExact(waiting->index)
        || repeats == NULL || !PyDict_CheckExact(repeats) || PyDict_GET_SIZE(repeats) != 0
        || !number_of(walk, conversation, COUNT, &waiting->count) || value_of(walk, conversation, STRICT) == NULL)
        return false;
    waiting->all = value_of(walk, waiting->pending, ALL);
    return waiting->all != NULL && PyDict_CheckExact(waiting->all)
           && number_of(walk, waiting->pending, COST, &waiting->cost)
           && number_of(walk, walk->summary, FRAMES, &waiting->number);
}

static bool make(const Frame *frame, const Waiting *waiting, int64_t count, int64_t cost, Made *made)
{
    made->number = PyLong_FromLongLong(waiting->number + 1);
    made->position = PyLong_FromLongLong(frame->position + PREFIX + frame->size);
    made->count = PyLong_FromLongLong(count);
    made->cost = PyLong_FromLongLong(cost);
    return made->number && made->position && made->count && made->cost;
}

static void note(const FrameWalk *walk, const Frame *frame, const Waiting *waiting, const Made *made)
{
    put(walk, frame->cutter, POSITION, made->position);
    put(walk, walk->summary, FRAMES, made->number);
    put(walk, frame->conversation, COUNT, made->count);
    put(walk, waiting->pending, COST, made->cost);
}

/* Whose a request is, borrowed, where its header may leave that out; NULL where it never does. False where Python
   reads it: it may name another client. As `_is_of_client` in coordwire/capture/conversation.py. */
static bool find_client(const FrameWalk *walk, const Frame *frame, PyObject **client)
{
    const int key = big16(frame->body), version = big16(frame->body + 2);
    const uint8_t *const firsts = (const uint8_t *)PyBytes_AS_STRING(walk->omitting);
    *client = NULL;
    if (key < 0 || key >= PyBytes_GET_SIZE(walk->omitting) || firsts[key] == NEVER)
        return true;
    *client = value_of(walk, frame->conversation, CLIENT);
    PyObject *naming = value_of(walk, frame->conversation, NAMING);
    if (*client == NULL || naming == NULL)
        return false;
    const uint8_t *const at = frame->body + REQUEST_HEAD;
    const Py_ssize_t room = frame->size - REQUEST_HEAD;
    if (PyBytes_CheckExact(naming) && PyBytes_GET_SIZE(naming) <= room
        && memcmp(at, PyBytes_AS_STRING(naming), (size_t)PyBytes_GET_SIZE(naming)) == 0)
        return true;
    return version >= firsts[key] && room >= 3 && at[0] == 0xFF && at[1] == 0xFF && at[2] == 0;
}

/* A request to its entry, which waits for its answer. asked: one that waits, not filled in. */
static enum Taken take_request(const FrameWalk *walk, const Frame *frame, PyObject *entry, PyObject *asked,
                               PyObject *forget)
{
    Waiting waiting;
    int64_t serial, budget, unnamed, cost = walk->reduced + walk->guess * frame->size;
    PyObject *client;
    if (!read_waiting(walk, frame->conversation, &waiting) || waiting.count >= walk->latest
        || value_of(walk, frame->conversation, TOKENS) != Py_False || value_of(walk, waiting.pending, BY_COST) != Py_None
        || !number_of(walk, waiting.pending, NEXT_SERIAL, &serial)
        || !number_of(walk, waiting.pending, BUDGET, &budget) || waiting.cost > budget - cost
        || !number_of(walk, waiting.pending, UNNAMED, &unnamed) || !find_client(walk, frame, &client))
        return DECLINED;
    enum Taken outcome = FAILED;
    Made made = {0};
    PyObject *key = PyLong_FromLong(big16(frame->body)), *version = PyLong_FromLong(big16(frame->body + 2));
    PyObject *own_serial = PyLong_FromLongLong(serial), *next_serial = PyLong_FromLongLong(serial + 1);
    PyObject *own_cost = PyLong_FromLongLong(cost), *size = PyLong_FromSsize_t(frame->size);
    PyObject *unnamed_count = PyLong_FromLongLong(unnamed + (client == Py_None));
    Py_XINCREF(client); /* while Python code may run */
    made.correlation = PyLong_FromLong((int32_t)big32(frame->body + 4));
    made.body = PyBytes_FromStringAndSize((const char *)frame->body, frame->size);
    if (!key || !version || !own_serial || !next_serial || !own_cost || !size || !unnamed_count || !made.correlation || !made.body
        || !make(frame, &waiting, waiting.count + 1, waiting.cost + cost, &made))
        goto cleanup;
    int known = PyDict_Contains(waiting.index, made.correlation);
    if (known != 0) {
        outcome = known < 0 ? FAILED : DECLINED;
        goto cleanup;
    }
    if (PyDict_SetItem(waiting.all, own_serial, asked) < 0)
        goto cleanup;
    if (PyDict_SetItem(waiting.index, made.correlation, asked) < 0) {
        (void)PyDict_DelItem(waiting.all, own_serial);
        PyErr_NoMemory();
        goto cleanup;
    }
    fill(walk, entry, frame, &made);
    put(walk, entry, E_API_KEY, key);
    put(walk, entry, E_API_VERSION, version);
    put(walk, entry, E_BODY_VERSION, version);
    put(walk, entry, E_REQUEST, Py_None);
    if (client != NULL)
        put(walk, entry, E_CLIENT_ID, client);
    put(walk, waiting.pending, UNNAMED, unnamed_count);
    put(walk, asked, A_ENTRY, entry);
    put(walk, asked, A_FORGET, forget);
    put(walk, asked, A_API_KEY, key);
    put(walk, asked, A_CORRELATION_ID, made.correlation);
    put(walk, asked, A_SIZE, size);
    put(walk, asked, A_ONE_WAY, Py_False);
    put(walk, asked, A_COST, own_cost);
    put(walk, asked, A_SERIAL, own_serial);
    put(walk, waiting.pending, NEXT_SERIAL, next_serial);
    note(walk, frame, &waiting, &made);
    outcome = GIVEN;
cleanup:
    release(&made);
    Py_XDECREF(key);
    Py_XDECREF(version);
    Py_XDECREF(own_serial);
    Py_XDECREF(next_serial);
    Py_XDECREF(own_cost);
    Py_XDECREF(size);
    Py_XDECREF(unnamed_count);
    Py_XDECREF(client);
    return outcome;
}

/* The request that a correlation id belongs to, borrowed, if its answer says nothing of other frames. */
static PyObject *find_asked(const FrameWalk *walk, const Waiting *waiting, PyObject *correlation)
{
    PyObject *asked = PyDict_GetItemWithError(waiting->index, correlation);
    int64_t key;
    if (!is_of(walk, asked, AWAITED) || !slot_number(asked, walk->slots[A_API_KEY], &key)
        || has_bit(walk->eager, key))
        return NULL;
    PyObject *request = value_of(walk, asked, A_ENTRY);
    bool known = request != NULL && PyObject_TypeCheck(request, walk->kinds[ENTRY])
                 && value_of(walk, request, E_API_KEY) != NULL;
    PyObject *version = known ? value_of(walk, request, E_API_VERSION) : NULL;
    return version != NULL && version != Py_None ? asked : NULL;
}

/* An answer to its entry. */
static enum Taken take_response(const FrameWalk *walk, const Frame *frame, PyObject *entry)
{
    Waiting waiting;
    int64_t owed, cost;
    if (!read_waiting(walk, frame->conversation, &waiting) || waiting.count < 1
        || !number_of(walk, frame->conversation, OWED_TOKENS, &owed) || owed != 0)
        return DECLINED;
    enum Taken outcome = FAILED;
    Made made = {.correlation = PyLong_FromLong((int32_t)big32(frame->body))};
    PyObject *asked = made.correlation == NULL ? NULL : find_asked(walk, &waiting, made.correlation);
    if (asked == NULL) {
        outcome = PyErr_Occurred() ? FAILED : DECLINED;
        release(&made);
        return outcome;
    }
    Py_INCREF(asked);
    PyObject *serial = value_of(walk, asked, A_SERIAL), *id = value_of(walk, asked, A_CORRELATION_ID);
    PyObject *request = value_of(walk, asked, A_ENTRY);
    PyObject *stored = serial == NULL ? NULL : PyDict_GetItemWithError(waiting.all, serial);
    if (stored != asked || id == NULL || !number_of(walk, asked, A_COST, &cost) || cost > waiting.cost) {
        outcome = PyErr_Occurred() ? FAILED : DECLINED;
        goto cleanup;
    }
    if (!make(frame, &waiting, waiting.count - 1, waiting.cost - cost, &made))
        goto cleanup;
    made.body = PyBytes_FromStringAndSize((const char *)frame->body, frame->size);
    if (made.body == NULL)
        goto cleanup;
    fill(walk, entry, frame, &made);
    PyObject *version = value_of(walk, request, E_API_VERSION);
    put(walk, entry, E_API_KEY, value_of(walk, request, E_API_KEY));
    put(walk, entry, E_API_VERSION, version);
    put(walk, entry, E_BODY_VERSION, version);
    put(walk, entry, E_CORRELATION_ID, id);
    put(walk, entry, E_REQUEST, request);
    if (PyDict_DelItem(waiting.all, serial) < 0 || PyDict_DelItem(waiting.index, made.correlation) < 0)
        goto cleanup;
    note(walk, frame, &waiting, &made);
    outcome = GIVEN;
cleanup:
    release(&made);
    Py_DECREF(asked);
    return outcome;
}

/* One frame; its entry in `entry`, a new reference, where it is given. */
static enum Taken take_frame(const FrameWalk *walk, const Frame *frame, PyObject **entry)
{
    PyObject *asked = NULL, *forget = NULL;
    *entry = NULL;
    if (frame->is_client && (frame->size < REQUEST_HEAD || has_bit(walk->telling, big16(frame->body))))
        return DECLINED;
    *entry = new_entry(walk, frame->conversation);
    if (*entry == NULL)
        return FAILED;
    enum Taken outcome = FAILED;
    if (frame->is_client) {
        PyTypeObject *awaited = walk->kinds[AWAITED];
        asked = awaited->tp_alloc(awaited, 0);
        forget = PyMethod_New(walk->forget, frame->conversation);
        if (asked != NULL && forget != NULL)
            outcome = take_request(walk, frame, *entry, asked, forget);
    } else {
        outcome = take_response(walk, frame, *entry);
    }
    Py_XDECREF(asked);
    Py_XDECREF(forget);
    if (outcome != GIVEN)
        Py_CLEAR(*entry);
    return outcome;
}

/* A chunk of any flow; its entry as in take_frame(). limit: bytes of a frame, at most. */
static enum Taken take_chunk(const FrameWalk *walk, PyObject *chunk, int64_t limit, PyObject **entry)
{
    *entry = NULL;
    if (!Py_IS_TYPE(chunk, walk->kinds[CHUNK]) || PyTuple_GET_SIZE(chunk) != 5) {
        PyErr_SetString(PyExc_TypeError, "expected a chunk");
        return FAILED;
    }
    PyObject *flow = PyTuple_GET_ITEM(chunk, 0), *id = PyLong_FromVoidPtr(flow);
    PyObject *route = id == NULL ? NULL : PyDict_GetItemWithError(walk->routes, id);
    Py_XDECREF(id);
    if (route == NULL)
        return PyErr_Occurred() ? FAILED : DECLINED;
    if (!Py_IS_TYPE(route, walk->kinds[ROUTE]) || PyTuple_GET_SIZE(route) != ROUTE_SIZE
        || PyTuple_GET_ITEM(route, ROUTE_FLOW) != flow)
        return DECLINED;
    if (PyTuple_GET_ITEM(route, ROUTE_CUTTER) == Py_None)
        return DONE;
    Py_INCREF(route);
    Frame frame;
    enum Taken outcome = DECLINED;
    if (read_chunk(walk, chunk, route, limit, &frame))
        outcome = take_frame(walk, &frame, entry);
    Py_DECREF(route);
    return outcome;
}

/* A number of bytes as an argument; -1 with an exception. */
static int64_t limit_of(PyObject *argument)
{
    const int64_t limit = PyLong_AsLongLong(argument);
    if (limit != -1 || !PyErr_Occurred())
        return limit < 0 ? 0 : limit;
    if (!PyErr_ExceptionMatches(PyExc_OverflowError))
        return -1;
    PyErr_Clear();
    return INT64_MAX;
}

PyObject *frame_walk_take(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "expected a chunk and a number of bytes");
        return NULL;
    }
    const int64_t limit = limit_of(arguments[1]);
    PyObject *entry = NULL;
    switch (limit < 0 ? FAILED : take_chunk((FrameWalk *)self, arguments[0], limit, &entry)) {
    case GIVEN: return entry;
    case DONE: Py_RETURN_TRUE;
    case DECLINED: Py_RETURN_NONE;
    default: return NULL;
    }
}

PyObject *frame_walk_take_run(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 4 || !PyList_CheckExact(arguments[0]) || !PyList_CheckExact(arguments[3])) {
        PyErr_SetString(PyExc_TypeError, "expected chunks, an index, a number of bytes and a list for entries");
        return NULL;
    }
    Py_ssize_t at = PyLong_AsSsize_t(arguments[1]);
    const int64_t limit = at < 0 ? -1 : limit_of(arguments[2]);
    const FrameWalk *walk = (FrameWalk *)self;
    enum Taken outcome = limit < 0 ? FAILED : DONE;
    while (outcome > DECLINED && at < PyList_GET_SIZE(arguments[0])) { /* which the collector may change */
        PyObject *chunk = Py_NewRef(PyList_GET_ITEM(arguments[0], at)), *entry = NULL;
        outcome = take_chunk(walk, chunk, limit, &entry);
        if (outcome == GIVEN && PyList_Append(arguments[3], entry) < 0)
            outcome = FAILED;
        at += outcome > DECLINED;
        Py_DECREF(chunk);
        Py_XDECREF(entry);
    }
    if (outcome == FAILED && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "expected an index and a number of bytes that can be");
    return outcome == FAILED ? NULL : PyLong_FromSsize_t(at);
}
