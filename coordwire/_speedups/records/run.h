/* `Run`, and what run.c, which makes records of the bytes, asks of run_batch.c, which checks the batch that they
   are in and hands on to Python. */

#ifndef COORDWIRE_RECORDS_RUN_H
#define COORDWIRE_RECORDS_RUN_H

#include "record_codec.h"

enum {
    RUNNING,  /* over bytes that the kernel reads */
    UNOPENED, /* over a batch that was not looked at yet */
    BUSY,     /* in Python code, or without the lock */
    RESTING,  /* over what `rest` gives */
    ENDED,
};

#define COPIED 128 /* bytes of headers that may change are remembered */

typedef struct {
    PyObject_HEAD
    Codec *codec;
    Py_buffer view;
    const uint8_t *first, *at, *end; /* the records' first byte, the next one's, the byte after the last */
    int64_t count, done;
    int64_t base_offset, base_timestamp;
    int64_t last;        /* the timestamp that `stamp` is */
    PyObject *stamp;     /* that of the record before, or of all of them */
    int fixed;           /* `stamp` is that of all */
    PyObject *headers;   /* those read last, from the bytes that follow */
    const uint8_t *headers_at;
    size_t headers_size;
    uint8_t copy[COPIED]; /* where they are, if the bytes may change */
    PyObject *given[2];  /* the two last records that were given out */
    int turn;
    PyObject *batch;     /* the RecordBatch, or NULL if the bytes belong to none */
    PyObject *rest;      /* an iterator */
    int state, packed, create_time;
    int64_t promised;    /* records, by the batch's header */
} Run;

/* Look at the batch of an unopened run; its new state: RUNNING, RESTING, or ENDED with an exception. */
int run_open(Run *self);

/* The next record of a run that isn't running; it has been opened. */
PyObject *run_aside(Run *self);

/* ValueError: somebody else is at it. */
PyObject *run_refuse(void);

/* What comes after the last record that run.c has read: the end, or what Python's exact reader says. */
PyObject *run_end(Run *self);

#endif
