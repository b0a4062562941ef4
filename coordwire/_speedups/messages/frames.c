/* Frames: size, header and message in one call.

   Strategy: a Framer is one direction. It fills the frames' own class by slot offset, and writes the header from
   an object that it keeps for that; the programs of a header and a message it asks for once an api and version.
   Rules: None means that it doesn't accept or know it; coordwire.frames then does it, and words the refusal.
   Only what was found is remembered, so that untrusted bytes can't make it grow. */

#include "frames.h"

enum { HEADER_ELEMENTS = 1000, HEADER_MEMORY = 1 << 20 };

/* The slots of headers; responses have the first. */
enum { CORRELATION_ID, CLIENT_ID, REQUEST_API_KEY, REQUEST_API_VERSION };

static const char *const frame_names[FRAME_SLOTS]
    = {"header", "message", "api_key", "api_version", "size", "deviations", "body_version"};
static const char *const header_names[HEADER_SLOTS]
    = {"correlation_id", "client_id", "request_api_key", "request_api_version"};

typedef struct Route {
    const Program *header, *message; /* borrowed from the framer, which never drops them */
} Route;

static bool is_route(const Framer *framer, PyObject *known)
{
    PyTypeObject *type = framer->engine->program_type;
    return PyTuple_CheckExact(known) && PyTuple_GET_SIZE(known) == 2
        && Py_IS_TYPE(PyTuple_GET_ITEM(known, 0), type) && Py_IS_TYPE(PyTuple_GET_ITEM(known, 1), type)
        && ((Program *)PyTuple_GET_ITEM(known, 0))->cls == Py_TYPE(framer->header);
}

/* 1 where there is a route, 0 where there is none, -1 with an exception. */
static int find_route(Framer *framer, int64_t key, int64_t version, Route *route)
{
    if (key != (int16_t)key || version != (int16_t)version || framer->engine->current == NULL)
        return 0;
    PyObject *place = read_number(framer->engine, key * 65536 + (uint16_t)version);
    if (place == NULL)
        return -1;
    PyObject *known = PyDict_GetItemWithError(framer->routes, place);
    if (known == NULL && !PyErr_Occurred()) {
        PyObject *new_route = PyObject_CallFunction(framer->route, "LL", (long long)key, (long long)version);
        if (new_route != NULL && is_route(framer, new_route))
            known = PyDict_SetDefault(framer->routes, place, new_route);
        Py_XDECREF(new_route);
    }
    Py_DECREF(place);
    if (known == NULL)
        return PyErr_Occurred() ? -1 : 0;
    *route = (Route){(Program *)PyTuple_GET_ITEM(known, 0), (Program *)PyTuple_GET_ITEM(known, 1)};
    return 1;
}

/* --- read --- */

/* A frame of these parts, which it takes; NULL with an exception. */
static PyObject *make_frame(Framer *framer, PyObject *header, PyObject *message, int64_t key, int64_t version,
                            Py_ssize_t size)
{
    Engine *engine = framer->engine;
    PyObject *values[FRAME_SLOTS] = {
        [HEADER] = header,
        [MESSAGE] = message,
        [API_KEY] = read_number(engine, key),
        [API_VERSION] = read_number(engine, version),
        [SIZE] = read_number(engine, size),
        [DEVIATIONS] = PyList_New(0),
        [BODY_VERSION] = framer->request ? NULL : read_number(engine, version),
    };
    PyObject *frame = framer->cls->tp_alloc(framer->cls, 0); /* last: it is never visible half filled */
    bool is_complete = frame != NULL;
    for (int i = 0; i < FRAME_SLOTS - framer->request; i++) {
        is_complete &= values[i] != NULL;
        if (frame != NULL)
            *slot_at(frame, framer->offsets[i]) = values[i];
        else
            Py_XDECREF(values[i]);
    }
    if (!is_complete)
        Py_CLEAR(frame);
    return frame;
}

/* What a frame consists of; `key` and `version` are a response's before it is read. */
typedef struct Parts {
    PyObject *header, *message;
    long long key, version;
} Parts;

/* The parts at `at`, up to `end`: 1 if they are read, 0 if the frame isn't served, -1 with an exception.
   `has_zero`: set if a text of the message has a zero; NULL where that is not asked. */
static int read_parts(Framer *framer, const uint8_t *at, const uint8_t *end, PyObject *const *args, bool *has_zero,
                      Parts *parts)
{
    parts->key = parts->version = 0;
    if (framer->request) {
        if (end - at < 4)
            return 0;
        parts->key = (int16_t)load16(at);
        parts->version = (int16_t)load16(at + 2);
    } else if (!PyLong_CheckExact(args[0]) || !PyLong_CheckExact(args[1]) || !as_integer(args[0], &parts->key)
               || !as_integer(args[1], &parts->version))
        return 0;
    Route route;
    int known = find_route(framer, parts->key, parts->version, &route);
    if (known < 1)
        return known;
    const Budgets budgets = {HEADER_ELEMENTS, HEADER_MEMORY};
    const uint8_t *stop;
    parts->header = engine_decode(route.header, at, end, &budgets, &stop, NULL);
    if (parts->header == NULL)
        return 0;
    parts->message = engine_decode(route.message, stop, end, NULL, &stop, has_zero);
    if (parts->message != NULL && stop == end)
        return 1;
    Py_DECREF(parts->header);
    Py_XDECREF(parts->message);
    return 0;
}

/* The frame whose parts are at `at`, up to `end`; None if it isn't served. The key and version are a response's. */
static PyObject *read_frame(Framer *framer, const uint8_t *at, const uint8_t *end, PyObject *const *args)
{
    Parts parts;
    int known = read_parts(framer, at, end, args, NULL, &parts);
    if (known < 1)
        return known ? NULL : Py_NewRef(Py_None);
    return make_frame(framer, parts.header, parts.message, parts.key, parts.version, end - at);
}

PyDoc_STRVAR(parts_doc,
             "parts($self, data, api_key=0, version=0, /)\n--\n\n"
             "The header and the message of the frame that bytes without a size prefix hold, and whether a text of\n"
             "the message has a zero; None if it isn't served. The key and version are a response's.");

static PyObject *framer_parts(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Framer *framer = (Framer *)self;
    if (count != (framer->request ? 1 : 3)) {
        PyErr_SetString(PyExc_TypeError, "parts() takes data, and of responses api_key and version");
        return NULL;
    }
    if (!PyBytes_CheckExact(args[0]))
        Py_RETURN_NONE;
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(args[0]);
    bool has_zero = false;
    Parts parts;
    int known = read_parts(framer, at, at + PyBytes_GET_SIZE(args[0]), args + 1, &has_zero, &parts);
    if (known < 1)
        return known ? NULL : Py_NewRef(Py_None);
    return Py_BuildValue("NNO", parts.header, parts.message, has_zero ? Py_True : Py_False);
}

PyDoc_STRVAR(read_doc,
             "read($self, data, prefixed, api_key=0, version=0, /)\n--\n\n"
             "The frame that bytes hold, with or without its size prefix; None if it isn't served. The key and\n"
             "version are a response's.");

static PyObject *framer_read(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Framer *framer = (Framer *)self;
    if (count != (framer->request ? 2 : 4)) {
        PyErr_SetString(PyExc_TypeError, "read() takes data and prefixed, and of responses api_key and version");
        return NULL;
    }
    if (!PyBytes_CheckExact(args[0]))
        Py_RETURN_NONE;
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(args[0]), *end = at + PyBytes_GET_SIZE(args[0]);
    if (args[1] == Py_True) {
        if (end - at < PREFIX || (int32_t)load32(at) != end - at - PREFIX
            || !engine_takes(framer->engine, end - at - PREFIX))
            Py_RETURN_NONE;
        at += PREFIX;
    }
    return read_frame(framer, at, end, args + 2);
}

Py_ssize_t frame_size(const Framer *framer, PyObject *data, long long position)
{
    const Py_ssize_t length = PyBytes_GET_SIZE(data);
    if (position < 0 || position > length - PREFIX)
        return -1;
    const int32_t size = (int32_t)load32((const uint8_t *)PyBytes_AS_STRING(data) + position);
    if (size < 0 || size > length - PREFIX - position || !engine_takes(framer->engine, size))
        return -1;
    return size;
}

PyObject *frame_at(Framer *framer, PyObject *data, long long position, PyObject *const *parts)
{
    const Py_ssize_t size = frame_size(framer, data, position);
    if (size < 0)
        Py_RETURN_NONE;
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(data) + position + PREFIX;
    return read_frame(framer, at, at + size, parts);
}

PyDoc_STRVAR(read_next_doc,
             "read_next($self, data, position, api_key=0, version=0, /)\n--\n\n"
             "The frame whose size prefix is at a position in a stream's bytes, whatever follows it; None if it\n"
             "isn't whole or isn't served. The key and version are a response's.");

static PyObject *framer_read_next(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Framer *framer = (Framer *)self;
    long long position;
    if (count != (framer->request ? 2 : 4)) {
        PyErr_SetString(PyExc_TypeError,
                        "read_next() takes data and position, and of responses api_key and version");
        return NULL;
    }
    if (!PyBytes_CheckExact(args[0]) || !PyLong_CheckExact(args[1]) || !as_integer(args[1], &position))
        Py_RETURN_NONE;
    return frame_at(framer, args[0], position, args + 2);
}

/* --- write --- */

PyObject *write_frame(Framer *framer, PyObject *message, PyObject *version, PyObject *correlation_id,
                      PyObject *client_id)
{
    PyObject *key = PyObject_GetAttr((PyObject *)Py_TYPE(message), framer->engine->api_key);
    long long number = 0, which = 0;
    Route route;
    int known = 0;
    if (key == NULL)
        PyErr_Clear();
    else if (PyLong_CheckExact(key) && as_integer(key, &number) && PyLong_CheckExact(version)
             && as_integer(version, &which))
        known = find_route(framer, number, which, &route);
    PyObject *wire = NULL;
    if (known > 0 && route.message->cls == Py_TYPE(message)) {
        PyObject *values[HEADER_SLOTS] = {correlation_id, client_id, key, version};
        PyObject *last[HEADER_SLOTS] = {NULL};
        for (int i = 0; i < (framer->request ? HEADER_SLOTS : 1); i++) {
            PyObject **slot = slot_at(framer->header, framer->header_offsets[i]);
            last[i] = *slot;
            *slot = values[i]; /* borrowed while it is written: see encode.c for whose code runs */
        }
        wire = engine_encode(route.message, message, route.header, framer->header);
        for (int i = 0; i < (framer->request ? HEADER_SLOTS : 1); i++)
            *slot_at(framer->header, framer->header_offsets[i]) = last[i];
    }
    Py_XDECREF(key);
    if (wire != NULL || known < 0)
        return wire;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(write_doc,
             "write($self, message, version, correlation_id, client_id=None, /)\n--\n\n"
             "A message's frame, size prefix and header included; None if it isn't served.");

static PyObject *framer_write(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Framer *framer = (Framer *)self;
    if (count != (framer->request ? 4 : 3)) {
        PyErr_SetString(PyExc_TypeError, "write() takes message, version, correlation_id, and of requests client_id");
        return NULL;
    }
    return write_frame(framer, args[0], args[1], args[2], framer->request ? args[3] : NULL);
}

/* --- the type --- */

static PyObject *framer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"frame", "header", "request", "route", NULL};
    PyObject *cls, *header, *route;
    int request;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OpO", names, &PyType_Type, &cls, &header, &request, &route))
        return NULL;
    if (!is_plain((PyTypeObject *)cls)) {
        PyErr_SetString(PyExc_TypeError, "no class of frames");
        return NULL;
    }
    PyObject *module = PyType_GetModule(type);
    Framer *framer = module == NULL ? NULL : (Framer *)type->tp_alloc(type, 0);
    if (framer == NULL)
        return NULL;
    framer->module = Py_NewRef(module);
    framer->engine = PyModule_GetState(module);
    framer->request = request;
    framer->cls = (PyTypeObject *)Py_NewRef(cls);
    framer->header = Py_NewRef(header);
    framer->route = Py_NewRef(route);
    framer->routes = PyDict_New();
    if (framer->routes == NULL || find_slots(framer->cls, frame_names, FRAME_SLOTS - request, framer->offsets) < 0
        || find_slots(Py_TYPE(header), header_names, request ? HEADER_SLOTS : 1, framer->header_offsets) < 0)
        Py_CLEAR(framer);
    return (PyObject *)framer;
}

OWNS(Framer, cls, module)

static PyMethodDef framer_methods[] = {
    {"read", (PyCFunction)(void (*)(void))framer_read, METH_FASTCALL, read_doc},
    {"read_next", (PyCFunction)(void (*)(void))framer_read_next, METH_FASTCALL, read_next_doc},
    {"parts", (PyCFunction)(void (*)(void))framer_parts, METH_FASTCALL, parts_doc},
    {"write", (PyCFunction)(void (*)(void))framer_write, METH_FASTCALL, write_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot framer_slots[] = {
    {Py_tp_doc, "Reads and writes the frames of one direction."},
    {Py_tp_new, framer_new},
    {Py_tp_traverse, Framer_traverse},
    {Py_tp_dealloc, Framer_dealloc},
    {Py_tp_methods, framer_methods},
    {0, NULL},
};

PyType_Spec framer_spec = {
    .name = "coordwire._speedups._native.Framer",
    .basicsize = sizeof(Framer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = framer_slots,
};
