/* `Exchange`: what exchange.c, which has its type, shares with its methods: those that receive are in
   exchange_receive.c, those that send in exchange_send.c. */

#ifndef COORDWIRE_MESSAGES_EXCHANGE_H
#define COORDWIRE_MESSAGES_EXCHANGE_H

#include "frames.h"

/* The api keys of the requests that are left to Python. */
enum { PRODUCE = 0, SASL_HANDSHAKE = 17 };

/* The slots of a receive buffer, of a sent request, and of the events. */
enum { CHUNK, POSITION, IS_IDLE, BUFFER_SLOTS };
enum { SENT_MESSAGE, SENT_KEY, SENT_VERSION, SENT_NUMBER, SENT_SLOTS };
enum { REQUEST_FRAME, EXPECTS_RESPONSE, REQUEST_SLOTS };
enum { RESPONSE_SENT, RESPONSE_FRAME, RESPONSE_SLOTS };

typedef struct Exchange {
    PyObject_HEAD
    Framer *requests, *responses;
    PyTypeObject *buffer, *sent, *request, *response;
    PyObject *append, *popleft; /* names of methods */
    Py_ssize_t buffer_offsets[BUFFER_SLOTS], sent_offsets[SENT_SLOTS], request_offsets[REQUEST_SLOTS],
        response_offsets[RESPONSE_SLOTS];
} Exchange;

static inline bool takes(const char *name, Py_ssize_t count, Py_ssize_t expected)
{
    if (count != expected)
        PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments, %zd given", name, expected, count);
    return count == expected;
}

/* A frame's part, borrowed. */
static inline PyObject *part_of(PyObject *frame, const Framer *framer, int part)
{
    return *slot_at(frame, framer->offsets[part]);
}

/* exchange_receive.c */
extern const char next_request_doc[], next_response_doc[];
PyObject *next_request(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *next_response(PyObject *self, PyObject *const *args, Py_ssize_t count);

/* exchange_send.c */
extern const char write_request_doc[], write_response_doc[];
PyObject *write_request(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *write_response(PyObject *self, PyObject *const *args, Py_ssize_t count);

#endif
