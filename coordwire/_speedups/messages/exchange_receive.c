/* The methods of `Exchange` that receive: the next request or response as an event.

   Strategy: the frame is read in place, the event made by the offsets of its slots, and only then the buffer and
   what waits are changed. Rules: as in exchange.c. */

#include "exchange.h"

enum { SHORTEST_RESPONSE = PREFIX + 4 };

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

/* What a buffer has after the frame that was read at the place: made first, so that passing over cannot fail. */
typedef struct After {
    PyObject *chunk, *position; /* owned */
} After;

/* 0, or -1 with an exception. */
static int find_after(const Place *place, PyObject *size, After *after)
{
    long long end = place->position + PREFIX + PyLong_AsLongLong(size);
    const bool is_last = end == PyBytes_GET_SIZE(place->chunk);
    after->position = PyLong_FromLongLong(is_last ? 0 : end);
    if (after->position == NULL)
        return -1;
    after->chunk = is_last ? PyBytes_FromStringAndSize(NULL, 0) : Py_NewRef(place->chunk);
    return 0; /* the empty bytes are always there */
}

static void pass_over(const Exchange *exchange, PyObject *buffer, After *after)
{
    Py_XSETREF(*slot_at(buffer, exchange->buffer_offsets[POSITION]), after->position);
    Py_XSETREF(*slot_at(buffer, exchange->buffer_offsets[CHUNK]), after->chunk);
}

static void drop_after(After *after)
{
    Py_DECREF(after->chunk);
    Py_DECREF(after->position);
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

const char next_request_doc[] = PyDoc_STR(
    "next_request($self, buffer, owed, /)\n--\n\n"
    "The event for the next request, whose header is appended to `owed`; None if there are no bytes, False\n"
    "if it isn't served.");

PyObject *next_request(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const Exchange *exchange = (Exchange *)self;
    Framer *framer = exchange->requests;
    if (!takes("next_request", count, 2))
        return NULL;
    Place place;
    const int status = find_place(exchange, args[0], &place);
    if (status < 1)
        return Py_NewRef(status ? Py_False : Py_None);
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
        PyObject *header = part_of(frame, framer, HEADER), *length = part_of(frame, framer, SIZE); /* the event's */
        After after;
        event = make_event(exchange->request, exchange->request_offsets, frame, Py_NewRef(Py_True));
        if (event != NULL && find_after(&place, length, &after) < 0)
            Py_CLEAR(event);
        if (event != NULL) {
            PyObject *result = PyObject_CallMethodOneArg(args[1], exchange->append, header);
            if (result != NULL)
                pass_over(exchange, args[0], &after);
            else {
                drop_after(&after);
                Py_CLEAR(event);
            }
            Py_XDECREF(result);
        }
    }
    Py_DECREF(place.chunk);
    return event;
}

const char next_response_doc[] = PyDoc_STR(
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

PyObject *next_response(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const Exchange *exchange = (Exchange *)self;
    Framer *framer = exchange->responses;
    if (!takes("next_response", count, 2))
        return NULL;
    Place place;
    const int status = PyDict_CheckExact(args[1]) ? find_place(exchange, args[0], &place) : -1;
    if (status < 1)
        return Py_NewRef(status ? Py_False : Py_None);
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
        PyObject *length = part_of(frame, framer, SIZE); /* the event's */
        After after;
        event = make_event(exchange->response, exchange->response_offsets, Py_NewRef(sent), frame);
        if (event != NULL && find_after(&place, length, &after) < 0)
            Py_CLEAR(event);
        if (event != NULL && PyDict_DelItem(args[1], number) == 0)
            pass_over(exchange, args[0], &after);
        else if (event != NULL) {
            drop_after(&after);
            Py_CLEAR(event);
        }
    }
    Py_XDECREF(sent);
    Py_XDECREF(number);
    Py_DECREF(place.chunk);
    return event;
}
