/* What the parts of the record kernel's Python side share. */

#ifndef COORDWIRE_RECORDS_RECORD_CODEC_H
#define COORDWIRE_RECORDS_RECORD_CODEC_H

#include "../slots.h"

enum { OFFSET, TIMESTAMP, KEY, VALUE, HEADERS, FIELDS };         /* of a Record */

#define BATCH_HEADER 61 /* bytes before the first record */

#define NAMES 64 /* header keys that are remembered; a power of two */

struct bytes { /* that grow */
    char *data;
    Py_ssize_t used, room;
};

/* `Record`, whose slots are filled and read directly, and the header keys met last. */
typedef struct {
    PyObject_HEAD
    PyTypeObject *record;
    PyTypeObject *run, *body, *walk, *opened;
    Py_ssize_t slots[FIELDS]; /* where a Record has its fields */
    PyTypeObject *batch;      /* `RecordBatch`, or NULL before it is known */
    PyObject *empty;          /* tuple */
    PyObject *names[NAMES];   /* ASCII, or NULL */
    struct bytes spare;       /* memory for the next Body, or none */
} Codec;

static inline PyObject **slot(Codec *codec, PyObject *record, int field)
{
    return (PyObject **)((char *)record + codec->slots[field]);
}

/* types.c: whether a class is nothing but slots; if not, with TypeError. */
int is_slotted(PyTypeObject *type);

/* Another type of the module that `type` is of, or NULL with an exception set. */
PyTypeObject *own_type(PyTypeObject *type, const char *name);

/* codec_object.c: the functions of the type. */
PyObject *codec_new(PyTypeObject *type, PyObject *args, PyObject *keywords);
int codec_traverse(Codec *self, visitproc visit, void *arg);
int codec_clear(Codec *self);
void codec_dealloc(Codec *self);
int is_codec(PyObject *value);

/* The types of the other files; each 0, or -1 with an exception set. */
int read_exec(PyObject *module);
int write_exec(PyObject *module);
int arrow_exec(PyObject *module);
int batch_exec(PyObject *module);
int walk_exec(PyObject *module);
int builder_exec(PyObject *module);

/* Codec's methods. */
PyObject *codec_read(PyObject *codec, PyObject *const *args, Py_ssize_t count);
PyObject *codec_know(PyObject *codec, PyObject *batch);
PyObject *codec_walk(PyObject *codec, PyObject *const *args, Py_ssize_t count);
PyObject *codec_records(PyObject *codec, PyObject *const *args, Py_ssize_t count);
PyObject *codec_encode(PyObject *codec, PyObject *const *args, Py_ssize_t count);
PyObject *codec_body(PyObject *codec, PyObject *const *args, Py_ssize_t count);

#endif
