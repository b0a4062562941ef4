/* `FrameWalk`: what it keeps of one capture, and the slots of Python's classes that it reads and writes. */

#ifndef COORDWIRE_FRAME_WALK_H
#define COORDWIRE_FRAME_WALK_H

#include "../slots.h"

enum { ROUTE, SPLITTER, CONVERSATION, PENDING, AWAITED, ENTRY, SUMMARY, CHUNK, LAZY, STRICT_LAZY, KINDS };

enum {
    IN_STEP, BUFFER, POSITION,
    CAPTURE, STRICT, CONNECTION, REQUESTS, INDEX, REPEATS, COUNT, TOKENS, OWED_TOKENS, CLIENT, NAMING,
    BUDGET, COST, NEXT_SERIAL, ALL, BY_COST, UNNAMED,
    A_ENTRY, A_FORGET, A_API_KEY, A_CORRELATION_ID, A_SIZE, A_ONE_WAY, A_COST, A_SERIAL,
    E_CAPTURE, E_NUMBER, E_FLOW, E_TIME_NS, E_DIRECTION, E_BODY, E_API_KEY, E_API_VERSION, E_BODY_VERSION,
    E_CORRELATION_ID, E_REQUEST, E_TOKEN, E_MECHANISM, E_DIALECT, E_CALL, E_RELEASED, E_PACKET, E_FIRST_PACKET,
    E_CONNECTION, E_TEXT, E_HIDDEN, E_CLIENT_ID,
    FRAMES, SLOTS
};

/* A route's members. conversation: None where its conversation is not for this walk. */
enum { ROUTE_FLOW, ROUTE_LINK, ROUTE_CUTTER, ROUTE_IS_CLIENT, ROUTE_NAME, ROUTE_EARLY, ROUTE_CONVERSATION, ROUTE_SIZE };

typedef struct {
    PyObject_HEAD
    PyTypeObject *kinds[KINDS];
    PyObject *forget;  /* of a conversation: takes a request out of its index */
    PyObject *dialect; /* Kafka's */
    PyObject *routes;  /* dict: a flow's id to its route */
    PyObject *summary;
    PyObject *omitting; /* bytes: by api key, the first version whose requests may leave out their client, or NEVER */
    PyObject *request, *response, *zero; /* words, and a 0 */
    uint64_t telling, eager; /* api keys below 64, as bits */
    int64_t latest, reduced, guess;
    Py_ssize_t slots[SLOTS];
} FrameWalk;

static inline bool is_of(const FrameWalk *walk, PyObject *object, int kind)
{
    return object != NULL && Py_IS_TYPE(object, walk->kinds[kind]);
}

/* The method `take`: one chunk. */
PyObject *frame_walk_take(PyObject *self, PyObject *const *arguments, Py_ssize_t count);
/* The method `take_run`: chunks of a list up to the first that is declined. */
PyObject *frame_walk_take_run(PyObject *self, PyObject *const *arguments, Py_ssize_t count);

#endif
