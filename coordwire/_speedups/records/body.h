/* `Body`: the records of one batch as they are written; see body.c. */

#ifndef COORDWIRE_RECORDS_BODY_H
#define COORDWIRE_RECORDS_BODY_H

#include "record_codec.h"
#include "put.h"

typedef struct {
    PyObject_HEAD
    Codec *codec;
    struct bytes body, tail; /* the records; the headers of one */
    PyObject *headers;       /* whose are in `tail`, if they never change */
    Py_ssize_t count;
    int has_offset, has_timestamp; /* whether the bases are set */
    int64_t base_offset, base_timestamp;
    int64_t next;   /* the delta of the next offset */
    int64_t latest; /* timestamp */
} Body;

/* `count` records, all or none: True; False beyond `room` (-1 for any); None in doubt. */
PyObject *body_put(Body *self, PyObject *const *records, Py_ssize_t count, Py_ssize_t room);

int is_body(PyObject *value);

/* One record; `limit`: the bytes of the whole batch, -1 for any. Answers as `body_put`. */
PyObject *body_append(Body *self, PyObject *record, Py_ssize_t limit);

#endif
