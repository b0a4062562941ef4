/* What frames.c offers to exchange.c. */

#ifndef COORDWIRE_MESSAGES_FRAMES_H
#define COORDWIRE_MESSAGES_FRAMES_H

#include "engine.h"

enum { PREFIX = 4 };

/* The slots of frames, as they are named in frames.c; only responses have the last. */
enum { HEADER, MESSAGE, API_KEY, API_VERSION, SIZE, DEVIATIONS, BODY_VERSION, FRAME_SLOTS };

enum { HEADER_SLOTS = 4 };

typedef struct Framer {
    PyObject_HEAD
    PyTypeObject *cls; /* of frames */
    PyObject *header;  /* an object to write from */
    PyObject *route;   /* (api key, version) -> the programs of header and message, or None */
    PyObject *routes;  /* what it said, by key * 65536 + version */
    PyObject *module;  /* owned: a type that is cleared lets go of it while its objects live */
    Engine *engine;    /* in its state */
    bool request;
    Py_ssize_t offsets[FRAME_SLOTS], header_offsets[HEADER_SLOTS];
} Framer;

/* The size of the frame whose prefix is at a position of bytes; -1 where it isn't whole or exceeds the budget. */
Py_ssize_t frame_size(const Framer *framer, PyObject *data, long long position);

/* That frame; None if it isn't served. `parts`: a response's api key and version. */
PyObject *frame_at(Framer *framer, PyObject *data, long long position, PyObject *const *parts);

/* A message's frame as bytes; None if it isn't served. `client_id`: of requests. */
PyObject *write_frame(Framer *framer, PyObject *message, PyObject *version, PyObject *correlation_id,
                      PyObject *client_id);

#endif
