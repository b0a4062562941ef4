/* The steps of a Kafka connection, each in one call: the next request or response as an event, a request or a
   response as bytes.

   Strategy: an Exchange knows the classes that coordwire.connection.kafka uses, and keeps no connection: a call gets
   the receive buffer and what waits. It reads the frame in place, makes the event by the offsets of its slots, and
   only then changes the buffer and what waits. Rules: what is uncommon is left to the Python code, with nothing
   changed: the requests that may change a connection's state (SaslHandshake) or have no answer (Produce), frames
   that aren't whole or aren't served, and whatever has another class than the expected. Whatever is used is held:
   a collection may run any code while a frame is read. */

#include "exchange.h"

static const char *const buffer_names[BUFFER_SLOTS] = {"chunk", "position", "is_idle"};
static const char *const sent_names[SENT_SLOTS] = {"message", "api_key", "version", "correlation_id"};
static const char *const request_names[REQUEST_SLOTS] = {"frame", "expects_response"};
static const char *const response_names[RESPONSE_SLOTS] = {"request", "frame"};

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

OWNS(Exchange, requests, popleft)

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
    {Py_tp_traverse, Exchange_traverse},
    {Py_tp_dealloc, Exchange_dealloc},
    {Py_tp_methods, exchange_methods},
    {0, NULL},
};

PyType_Spec exchange_spec = {
    .name = "coordwire._speedups._native.Exchange",
    .basicsize = sizeof(Exchange),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = exchange_slots,
};
