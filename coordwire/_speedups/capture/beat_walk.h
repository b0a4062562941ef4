/* `BeatWalk`: what it keeps of one story, and the slots and attributes of Python's classes that it reads. */

#ifndef COORDWIRE_BEAT_WALK_H
#define COORDWIRE_BEAT_WALK_H

#include "slots.h"

enum { ENTRY, BEAT, MEMBER, SEEN, CLASSIC, MODERN, CONSUMER, KINDS };

enum {
    E_TIME_NS, E_CAPTURE, E_NUMBER, E_PACKET, E_DIRECTION, E_BODY, E_REQUEST,
    B_KEPT, B_MEMBER_ID, B_EPOCH, B_ANSWER, B_ANSWERED_EPOCH, B_INTERVAL_MS,
    M_LAST_SEEN_NS, M_SESSION_TIMEOUT_MS, M_PARKED, M_AWAY, M_GENERATION, M_ASSIGNED, M_OWNED, M_ASKED_NS,
    SLOTS
};

/* The attributes of groups and of what they have. */
enum {
    AVAILABLE_NS, DOUBTED, EPOCH_OF, BOUNDS, COMMON, GENERATION, GONE_BY, HAS_ANY, HEAP, INTERVAL_NS, KNOWN, LATE,
    LEAST_NS, MEMBERS, MOST_NS, NATIVE, OWN_SESSIONS, PENDING, PROGRESS, REBALANCE, SESSIONS, TIMEOUT, WATCHED, WORDS
};

/* So many objects are held for one frame; a session has at most as many intervals. */
enum { MOST_HELD = 32 };

typedef struct {
    PyObject_HEAD
    PyTypeObject *kinds[KINDS];
    PyObject *beats;   /* dict: a heartbeat's bytes without its correlation id to what it says */
    PyObject *waiting; /* ordered dict: where a request was seen to what it asked */
    PyObject *groups;  /* dict: as what a group is kept to the group */
    PyObject *words[WORDS];
    int64_t most, intervals; /* so many requests wait; so many intervals make a session */
    Py_ssize_t slots[SLOTS];
} BeatWalk;

/* The method `take`: one entry. */
PyObject *beat_walk_take(PyObject *self, PyObject *entry);

#endif
