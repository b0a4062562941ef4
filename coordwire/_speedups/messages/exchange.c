/* The steps of a Kafka connection, each in one call: the next request or response as an event, a request or a
   response as bytes.

   Strategy: an Exchange knows the classes that coordwire.kafka_endpoints uses, and keeps no connection: a call gets
   the receive buffer and what waits. It reads the frame in place, makes the event by the offsets of its slots, and
   only then changes the buffer and what waits. Rules: what is uncommon is left to the Python code, with nothing
   changed: the requests that may change a connection's state (SaslHandshake) or have no answer (Produce), frames
   that aren't whole or aren't served, and whatever has another class than the expected. Whatever is used is held:
   a collection may run any code while a frame is read. */

#include "frames.h"

enum { PRODUCE = 0, SASL_HANDSHAKE = 17, SHORTEST_RESPONSE = PREFIX + 4 };

/* The slots of a receive buffer, of a sent request, and of the events. */
enum { CHUNK, POSITION, IS_IDLE, BUFFER_SLOTS };
enum { SENT_MESSAGE, SENT_KEY, SENT_VERSION, SENT_NUMBER, SENT_SLOTS };
enum { REQUEST_FRAME, EXPECTS_RESPONSE, REQUEST_SLOTS };
enum { RESPONSE_SENT, RESPONSE_FRAME, RESPONSE_SLOTS };

static const char *const buffer_names[BUFFER_SLOTS] = {"chunk", "position", "is_idle"};
static const char *const sent_names[SENT_SLOTS] = {"message", "api_key", "version", "correlation_id"};
static const char *const request_names[REQUEST_SLOTS] = {"frame", "expects_response"};
static const char *const response_names[RESPONSE_SLOTS] = {"request", "frame"};

typedef struct Exchange {
    PyObject_HEAD
    Framer *requests, *responses;
    PyTypeObject *buffer, *sent, *request, *response;
    PyObject *append, *popleft; /* names of methods */
    Py_ssize_t buffer_offsets[BUFFER_SLOTS], sent_offsets[SENT_SLOTS], request_offsets[REQUEST_SLOTS],
        response_offsets[RESPONSE_SLOTS];
} Exchange;

static bool takes(const char *name, Py_ssize_t count, Py_ssize_t expected)
{
    if (count != expected)
        PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments, %zd given", name, expected, count);
    return count == expected;
}

/* --- receive --- */

/* Where the next frame is. The chunk is owned. */
typedef struct Place {
    PyObject *chunk;
    long long position;
} Place;

/* 1 with a place, 0 where there is nothing to read, -1 where Python has to look. */
static int find_place(const Exchange *exchange, PyObject *buffer, Place *place)
{
    if (!Py_IS_TYPE(buffer, exchange->buffer))
        return -1;
    PyObject *chunk = *slot_at(buffer, exchange->buffer_offsets[CHUNK]);
    PyObject *position = *slot_at(buffer, exchange->buffer_offsets[POSITION]);
    if (chunk == NULL || !PyBytes_CheckExact(chunk) || position == NULL || !PyLong_CheckExact(position)
        || !as_integer(position, &place->position) || place->position < 0)
        return -1;
    if (PyBytes_GET_SIZE(chunk) == 0)
        return *slot_at(buffer, exchange->buffer_offsets[IS_IDLE]) == Py_True ? 0 : -1;
    place->chunk = Py_NewRef(chunk);
    return 1;
}

/* Pass over the frame that was read at the place. */
static int skip(const Exchange *exchange, PyObject *buffer, const Place *place, PyObject *size)
{
    PyObject **chunk = slot_at(buffer, exchange->buffer_offsets[CHUNK]);
    PyObject **position = slot_at(buffer, exchange->buffer_offsets[POSITION]);
    long long end = place->position + PREFIX + PyLong_AsLongLong(size);
    PyObject *empty = NULL;
    if (end == PyBytes_GET_SIZE(place->chunk)) {
        end = 0;
        empty = PyBytes_FromStringAndSize(NULL, 0);
        if (empty == NULL)
            return -1;
    }
    PyObject *next = PyLong_FromLongLong(end);
    if (next == NULL) {
        Py_XDECREF(empty);
        return -1;
    }
    Py_XSETREF(*position, next);
    if (empty != NULL)
        Py_XSETREF(*chunk, empty);
    return 0;
}

/* An event of two parts, which it takes; NULL with an exception. */
static PyObject *make_event(PyTypeObject *cls, const Py_ssize_t *offsets, PyObject *first, PyObject *second)
{
    PyObject *event = cls->tp_alloc(cls, 0);
    if (event == NULL) {
        Py_DECREF(first);
        Py_DECREF(second);
        return NULL;
    }
    *slot_at(event, offsets[0]) = first;
    *slot_at(event, offsets[1]) = second;
    return event;
}

static inline PyObject *part_of(PyObject *frame, const Framer *framer, int part)
{
    return *slot_at(frame, framer->offsets[part]);
}

PyDoc_STRVAR(next_request_doc,
             "next_request($self, buffer, owed, /)\n--\n\n"
             "The event for the next request, whose header is appended to `owed`; None if there are no bytes, False\n"
             "if it isn't served.");

static PyObject *next_request(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const Exchange *exchange = (Exchange *)self;
    Framer *framer = exchange->requests;
    if (!takes("next_request", count, 2))
        return NULL;
    Place place;
    const int found = find_place(exchange, args[0], &place);
    if (found < 1)
        return Py_NewRef(found ? Py_False : Py_None);
    PyObject *event = NULL, *frame = NULL;
    const Py_ssize_t size = frame_size(framer, place.chunk, place.position);
    if (size >= 4) {
        const int16_t key
            = (int16_t)load16((const uint8_t *)PyBytes_AS_STRING(place.chunk) + place.position + PREFIX);
        if (key != PRODUCE && key != SASL_HANDSHAKE)
            frame = frame_at(framer, place.chunk, place.position, NULL);
        else
            frame = Py_NewRef(Py_None);
    } else
        frame = Py_NewRef(Py_None);
    if (frame == Py_None) {
        Py_DECREF(frame);
        event = Py_NewRef(Py_False);
    } else if (frame != NULL) {
        PyObject *header = Py_NewRef(part_of(frame, framer, HEADER));
        PyObject *length = Py_NewRef(part_of(frame, framer, SIZE));
        event = make_event(exchange->request, exchange->request_offsets, frame, Py_NewRef(Py_True));
        PyObject *done
            = event == NULL ? NULL : PyObject_CallMethodOneArg(args[1], exchange->append, header);
        if (done == NULL || skip(exchange, args[0], &place, length) < 0)
            Py_CLEAR(event);
        Py_XDECREF(done);
        Py_DECREF(length);
        Py_DECREF(header);
    }
    Py_DECREF(place.chunk);
    return event;
}

PyDoc_STRVAR(next_response_doc,
             "next_response($self, buffer, waiting, /)\n--\n\n"
             "The event for the next response, whose request is taken out of `waiting`, a dict by correlation id;\n"
             "None if there are no bytes, False if it isn't served.");

/* The request that waits for the response at a place, owned; NULL, perhaps with an exception, for none. */
static PyObject *find_request(const Exchange *exchange, const Place *place, PyObject *waiting, PyObject **number)
{
    if (PyBytes_GET_SIZE(place->chunk) - place->position < SHORTEST_RESPONSE)
        return NULL;
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(place->chunk) + place->position + PREFIX;
    *number = PyLong_FromLong((int32_t)load32(at));
    PyObject *sent = *number == NULL ? NULL : PyDict_GetItemWithError(waiting, *number);
    if (sent == NULL || !Py_IS_TYPE(sent, exchange->sent) || *slot_at(sent, exchange->sent_offsets[SENT_KEY]) == NULL
        || *slot_at(sent, exchange->sent_offsets[SENT_VERSION]) == NULL)
        return NULL;
    return Py_NewRef(sent);
}

static PyObject *next_response(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const Exchange *exchange = (Exchange *)self;
    Framer *framer = exchange->responses;
    if (!takes("next_response", count, 2))
        return NULL;
    Place place;
    const int found = PyDict_CheckExact(args[1]) ? find_place(exchange, args[0], &place) : -1;
    if (found < 1)
        return Py_NewRef(found ? Py_False : Py_None);
    PyObject *event = NULL, *number = NULL, *frame = NULL;
    PyObject *sent = find_request(exchange, &place, args[1], &number);
    if (sent != NULL) {
        PyObject *parts[2] = {Py_NewRef(*slot_at(sent, exchange->sent_offsets[SENT_KEY])),
                              Py_NewRef(*slot_at(sent, exchange->sent_offsets[SENT_VERSION]))};
        frame = frame_at(framer, place.chunk, place.position, parts);
        Py_DECREF(parts[0]);
        Py_DECREF(parts[1]);
    } else if (!PyErr_Occurred())
        frame = Py_NewRef(Py_None);
    if (frame == Py_None) {
        Py_DECREF(frame);
        event = Py_NewRef(Py_False);
    } else if (frame != NULL) {
        PyObject *length = Py_NewRef(part_of(frame, framer, SIZE));
        event = make_event(exchange->response, exchange->response_offsets, Py_NewRef(sent), frame);
        if (event != NULL
            && (PyDict_DelItem(args[1], number) < 0 || skip(exchange, args[0], &place, length) < 0))
            Py_CLEAR(event);
        Py_DECREF(length);
    }
    Py_XDECREF(sent);
    Py_XDECREF(number);
    Py_DECREF(place.chunk);
    return event;
}

/* --- send --- */

/* A message's api key, owned; NULL without an exception where it has none, or a special one. */
static PyObject *common_key(const Exchange *exchange, PyObject *message)
{
    PyObject *key = PyObject_GetAttr((PyObject *)Py_TYPE(message), exchange->requests->engine->api_key);
    long long number;
    if (key == NULL)
        PyErr_Clear();
    else if (!PyLong_CheckExact(key) || !as_integer(key, &number) || number == PRODUCE || number == SASL_HANDSHAKE)
        Py_CLEAR(key);
    return key;
}

PyDoc_STRVAR(write_request_doc,
             "write_request($self, message, version, number, client_id, waiting, /)\n--\n\n"
             "A request's frame; it is added to `waiting`, a dict by correlation id. None if it isn't served.");

static PyObject *write_request(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const Exchange *exchange = (Exchange *)self;
    if (!takes("write_request", count, 5))
        return NULL;
    PyObject *message = args[0], *version = args[1], *number = args[2], *waiting = args[4];
    if (!PyLong_CheckExact(number) || !PyDict_CheckExact(waiting))
        Py_RETURN_NONE;
    const int taken = PyDict_Contains(waiting, number);
    if (taken)
        return taken < 0 ? NULL : Py_NewRef(Py_None);
    PyObject *key = common_key(exchange, message);
    if (key == NULL)
        Py_RETURN_NONE;
    PyObject *wire = write_frame(exchange->requests, message, version, number, args[3]);
    if (wire != NULL && wire != Py_None) {
        PyObject *sent = exchange->sent->tp_alloc(exchange->sent, 0);
        if (sent != NULL) {
            PyObject *values[SENT_SLOTS] = {message, key, version, number};
            for (int i = 0; i < SENT_SLOTS; i++)
                *slot_at(sent, exchange->sent_offsets[i]) = Py_NewRef(values[i]);
        }
        if (sent == NULL || PyDict_SetItem(waiting, number, sent) < 0)
            Py_CLEAR(wire);
        Py_XDECREF(sent);
    }
    Py_DECREF(key);
    return wire;
}

PyDoc_STRVAR(write_response_doc,
             "write_response($self, message, version, event, owed, /)\n--\n\n"
             "The frame of the response to an event's request, whose header is taken from the left of `owed`; None\n"
             "if it isn't served. A version of None: the request's.");

static PyObject *write_response(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const Exchange *exchange = (Exchange *)self;
    const Framer *requests = exchange->requests;
    if (!takes("write_response", count, 4))
        return NULL;
    PyObject *message = args[0], *version = args[1], *event = args[2], *owed = args[3];
    PyObject *frame
        = Py_IS_TYPE(event, exchange->request) ? *slot_at(event, exchange->request_offsets[REQUEST_FRAME]) : NULL;
    if (frame == NULL || !Py_IS_TYPE(frame, requests->cls))
        Py_RETURN_NONE;
    PyObject *header = part_of(frame, requests, HEADER), *asked = part_of(frame, requests, API_KEY);
    if (version == Py_None)
        version = part_of(frame, requests, API_VERSION);
    if (header == NULL || !Py_IS_TYPE(header, Py_TYPE(requests->header)) || asked == NULL || version == NULL)
        Py_RETURN_NONE;
    PyObject *number = *slot_at(header, requests->header_offsets[0]);
    long long wanted, given;
    PyObject *key = common_key(exchange, message), *wire = NULL;
    if (number == NULL || key == NULL || !PyLong_CheckExact(asked) || !as_integer(asked, &wanted)
        || !as_integer(key, &given) || given != wanted) {
        Py_XDECREF(key);
        Py_RETURN_NONE;
    }
    Py_DECREF(key);
    PyObject *first = PySequence_GetItem(owed, 0);
    if (first == NULL) { /* IndexError: none is owed */
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    const bool next = first == header;
    Py_DECREF(first);
    if (!next)
        Py_RETURN_NONE;
    Py_INCREF(version);
    Py_INCREF(number);
    wire = write_frame(exchange->responses, message, version, number, NULL);
    Py_DECREF(version);
    Py_DECREF(number);
    if (wire != NULL && wire != Py_None) {
        PyObject *done = PyObject_CallMethodNoArgs(owed, exchange->popleft);
        if (done == NULL)
            Py_CLEAR(wire);
        Py_XDECREF(done);
    }
    return wire;
}

/* --- the type --- */

static int check_class(PyTypeObject *cls, const char *const *names, int count, Py_ssize_t *offsets)
{
    if (!is_plain(cls)) {
        PyErr_Format(PyExc_TypeError, "%.200s is made in another way", cls->tp_name);
        return -1;
    }
    return find_slots(cls, names, count, offsets);
}

static PyObject *exchange_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"requests", "responses", "buffer", "sent", "request", "response", NULL};
    PyObject *requests, *responses, *buffer, *sent, *request, *response;
    PyObject *module = PyType_GetModule(type);
    if (module == NULL)
        return NULL;
    Engine *engine = PyModule_GetState(module);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O!O!O!O!", names, engine->framer_type, &requests,
                                     engine->framer_type, &responses, &PyType_Type, &buffer, &PyType_Type, &sent,
                                     &PyType_Type, &request, &PyType_Type, &response))
        return NULL;
    if (!((Framer *)requests)->request || ((Framer *)responses)->request) {
        PyErr_SetString(PyExc_TypeError, "the framer of requests comes first, then that of responses");
        return NULL;
    }
    Exchange *exchange = (Exchange *)type->tp_alloc(type, 0);
    if (exchange == NULL)
        return NULL;
    exchange->requests = (Framer *)Py_NewRef(requests);
    exchange->responses = (Framer *)Py_NewRef(responses);
    exchange->buffer = (PyTypeObject *)Py_NewRef(buffer);
    exchange->sent = (PyTypeObject *)Py_NewRef(sent);
    exchange->request = (PyTypeObject *)Py_NewRef(request);
    exchange->response = (PyTypeObject *)Py_NewRef(response);
    exchange->append = PyUnicode_InternFromString("append");
    exchange->popleft = PyUnicode_InternFromString("popleft");
    if (exchange->append == NULL || exchange->popleft == NULL
        || find_slots(exchange->buffer, buffer_names, BUFFER_SLOTS, exchange->buffer_offsets) < 0
        || check_class(exchange->sent, sent_names, SENT_SLOTS, exchange->sent_offsets) < 0
        || check_class(exchange->request, request_names, REQUEST_SLOTS, exchange->request_offsets) < 0
        || check_class(exchange->response, response_names, RESPONSE_SLOTS, exchange->response_offsets) < 0)
        Py_CLEAR(exchange);
    return (PyObject *)exchange;
}

static int exchange_traverse(PyObject *self, visitproc visit, void *arg)
{
    Exchange *exchange = (Exchange *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(exchange->requests);
    Py_VISIT(exchange->responses);
    Py_VISIT(exchange->buffer);
    Py_VISIT(exchange->sent);
    Py_VISIT(exchange->request);
    Py_VISIT(exchange->response);
    return 0;
}

static void exchange_dealloc(PyObject *self)
{
    Exchange *exchange = (Exchange *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(exchange->requests);
    Py_CLEAR(exchange->responses);
    Py_CLEAR(exchange->buffer);
    Py_CLEAR(exchange->sent);
    Py_CLEAR(exchange->request);
    Py_CLEAR(exchange->response);
    Py_CLEAR(exchange->append);
    Py_CLEAR(exchange->popleft);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef exchange_methods[] = {
    {"next_request", (PyCFunction)(void (*)(void))next_request, METH_FASTCALL, next_request_doc},
    {"next_response", (PyCFunction)(void (*)(void))next_response, METH_FASTCALL, next_response_doc},
    {"write_request", (PyCFunction)(void (*)(void))write_request, METH_FASTCALL, write_request_doc},
    {"write_response", (PyCFunction)(void (*)(void))write_response, METH_FASTCALL, write_response_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot exchange_slots[] = {
    {Py_tp_doc, "The steps of a Kafka connection."},
    {Py_tp_new, exchange_new},
    {Py_tp_traverse, exchange_traverse},
    {Py_tp_dealloc, exchange_dealloc},
    {Py_tp_methods, exchange_methods},
    {0, NULL},
};

PyType_Spec exchange_spec = {
    .name = "coordwire._speedups._native.Exchange",
    .basicsize = sizeof(Exchange),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = exchange_slots,
};
