/* The methods of `Exchange` that send: a request or a response as bytes.

   Strategy: the frame is written first; what waits or is owed changes only once its bytes are there. Rules: as in
   exchange.c. */

#include "exchange.h"

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

const char write_request_doc[] = PyDoc_STR(
    "write_request($self, message, version, number, client_id, waiting, /)\n--\n\n"
    "A request's frame; it is added to `waiting`, a dict by correlation id. None if it isn't served.");

PyObject *write_request(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const Exchange *exchange = (Exchange *)self;
    if (!takes("write_request", count, 5))
        return NULL;
    PyObject *message = args[0], *version = args[1], *number = args[2], *waiting = args[4];
    if (!PyLong_CheckExact(number) || !PyDict_CheckExact(waiting))
        Py_RETURN_NONE;
    const int contains = PyDict_Contains(waiting, number);
    if (contains)
        return contains < 0 ? NULL : Py_NewRef(Py_None);
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

const char write_response_doc[] = PyDoc_STR(
    "write_response($self, message, version, event, owed, /)\n--\n\n"
    "The frame of the response to an event's request, whose header is taken from the left of `owed`; None\n"
    "if it isn't served. A version of None: the request's.");

PyObject *write_response(PyObject *self, PyObject *const *args, Py_ssize_t count)
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
    PyObject *header = part_of(frame, requests, HEADER), *api = part_of(frame, requests, API_KEY);
    if (version == Py_None)
        version = part_of(frame, requests, API_VERSION);
    if (header == NULL || !Py_IS_TYPE(header, Py_TYPE(requests->header)) || api == NULL || version == NULL)
        Py_RETURN_NONE;
    PyObject *number = *slot_at(header, requests->header_offsets[0]);
    long long expected_key, sent_key;
    PyObject *key = common_key(exchange, message), *wire = NULL;
    if (number == NULL || key == NULL || !PyLong_CheckExact(api) || !as_integer(api, &expected_key)
        || !as_integer(key, &sent_key) || sent_key != expected_key) {
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
        PyObject *removed = PyObject_CallMethodNoArgs(owed, exchange->popleft);
        if (removed == NULL)
            Py_CLEAR(wire);
        Py_XDECREF(removed);
    }
    return wire;
}
