/* `Opened`: what `RecordBatch` is made of; see batch.c. */

#ifndef COORDWIRE_RECORDS_OPENED_H
#define COORDWIRE_RECORDS_OPENED_H

#include "record_codec.h"

#define LOG_OVERHEAD 12 /* bytes of a batch's offset and length, which the length doesn't count */

typedef struct {
    PyObject_HEAD
    Codec *codec;            /* that reads it; NULL if Python opened it */
    PyObject *source;        /* bytes or a memoryview that has it at `at`; or NULL */
    Py_ssize_t at, length;   /* in bytes */
    PyObject *view, *head;   /* its bytes and its header; NULL until they are asked for */
    PyObject *kept;          /* records, or None */
    Py_ssize_t position, size; /* visible to Python, which may change them */
} Opened;

/* The RecordBatch of `length` bytes at `at`, which are all there. */
PyObject *batch_at(Codec *codec, PyObject *source, Py_ssize_t at, Py_ssize_t length);

static inline uint32_t big32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline int64_t big64(const uint8_t *at)
{
    return (int64_t)((uint64_t)big32(at) << 32 | big32(at + 4));
}

#endif
