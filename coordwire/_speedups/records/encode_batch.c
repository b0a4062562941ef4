/* A whole batch in one call: records, header, checksum.

   Rules: only an uncompressed batch of plain values, under the producers' own time; with anything else the answer
   is None, and Python's own code, which takes the same arguments, writes it or words the refusal. */

#include "record_codec.h"

#include "../crc32c/crc32c.h"
#include "body.h"

#define LOG_OVERHEAD 12 /* bytes of offset and length, which the length doesn't count */
#define TRANSACTIONAL 0x10
#define CONTROL 0x20

enum { RECORDS, BASE_OFFSET, LAST_OFFSET, MAX_TIMESTAMP, PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, LEADER_EPOCH,
       IS_TRANSACTIONAL, IS_CONTROL, ARGUMENTS };

/* What the header has beyond the records. */
struct head {
    int64_t last_offset, max_timestamp, producer_id, producer_epoch, base_sequence, leader_epoch;
    int attributes;
};

static inline char *put_big(char *at, uint64_t number, int size)
{
    for (int shift = 8 * size; shift;)
        *at++ = (char)(number >> (shift -= 8));
    return at;
}

static inline int within(PyObject *value, int bits, int64_t *number)
{
    return plain_int(value, number) && *number >= -((int64_t)1 << (bits - 1)) && *number < (int64_t)1 << (bits - 1);
}

static inline int flag(PyObject *value, int bit, int *attributes)
{
    if (value == Py_True)
        *attributes |= bit;
    return PyBool_Check(value);
}

/* The arguments, as far as the records needn't be known for it; 0 in doubt. */
static int read_head(PyObject *const *args, struct head *head)
{
    head->attributes = 0;
    return (args[LAST_OFFSET] == Py_None || plain_int(args[LAST_OFFSET], &head->last_offset))
           && (args[MAX_TIMESTAMP] == Py_None || plain_int(args[MAX_TIMESTAMP], &head->max_timestamp))
           && plain_int(args[PRODUCER_ID], &head->producer_id)
           && within(args[PRODUCER_EPOCH], 16, &head->producer_epoch)
           && within(args[BASE_SEQUENCE], 32, &head->base_sequence)
           && within(args[LEADER_EPOCH], 32, &head->leader_epoch)
           && flag(args[IS_TRANSACTIONAL], TRANSACTIONAL, &head->attributes)
           && flag(args[IS_CONTROL], CONTROL, &head->attributes);
}

static PyObject *write_batch(const Body *body, const struct head *head, int64_t delta)
{
    Py_ssize_t size = BATCH_HEADER + body->body.used;
    PyObject *batch = PyBytes_FromStringAndSize(NULL, size);
    if (!batch)
        return NULL;
    char *first = PyBytes_AS_STRING(batch), *at = put_big(first, (uint64_t)body->base_offset, 8);
    at = put_big(at, (uint64_t)(size - LOG_OVERHEAD), 4);
    at = put_big(at, (uint64_t)head->leader_epoch, 4);
    *at++ = 2; /* magic */
    char *sum = at;
    at = put_big(sum + 4, (uint64_t)head->attributes, 2);
    at = put_big(at, (uint64_t)delta, 4);
    at = put_big(at, (uint64_t)body->base_timestamp, 8);
    at = put_big(at, (uint64_t)head->max_timestamp, 8);
    at = put_big(at, (uint64_t)head->producer_id, 8);
    at = put_big(at, (uint64_t)head->producer_epoch, 2);
    at = put_big(at, (uint64_t)head->base_sequence, 4);
    at = put_big(at, (uint64_t)body->count, 4);
    memcpy(at, body->body.data, (size_t)body->body.used);
    const int64_t crc = crc32c(0, (const uint8_t *)sum + 4, (size_t)(first + size - sum - 4));
    if (crc < 0) {
        Py_DECREF(batch);
        return NULL;
    }
    put_big(sum, (uint64_t)crc, 4);
    return batch;
}

/* The batch around the records; None in doubt. */
static PyObject *around(const Body *body, PyObject *const *args, struct head *head)
{
    int64_t delta = body->next - 1;
    if (args[MAX_TIMESTAMP] == Py_None)
        head->max_timestamp = body->latest;
    if (args[LAST_OFFSET] != Py_None
        && (sub_overflows(head->last_offset, body->base_offset, &delta) || delta < body->next - 1))
        Py_RETURN_NONE;
    int64_t last;
    if (delta > MOST || add_overflows(body->base_offset, delta, &last)
        || body->body.used > MOST - BATCH_HEADER - LOG_OVERHEAD)
        Py_RETURN_NONE;
    return write_batch(body, head, delta);
}

PyObject *codec_encode(PyObject *codec, PyObject *const *args, Py_ssize_t count)
{
    struct head head = {0};
    int64_t base;
    if (count != ARGUMENTS) {
        PyErr_Format(PyExc_TypeError, "encode takes %d arguments", ARGUMENTS);
        return NULL;
    }
    PyObject *records = args[RECORDS];
    if (!(PyList_CheckExact(records) || PyTuple_CheckExact(records)) || !PySequence_Fast_GET_SIZE(records)
        || !(args[BASE_OFFSET] == Py_None || plain_int(args[BASE_OFFSET], &base)) || !read_head(args, &head))
        Py_RETURN_NONE;
    /* A tuple, as a list may change while a record's headers are asked whether they are true. */
    records = PySequence_Tuple(records);
    PyObject *bases[2] = {args[BASE_OFFSET], Py_None};
    PyObject *body = records ? codec_body(codec, bases, 2) : NULL;
    PyObject *batch = NULL;
    if (body)
        batch = body_put((Body *)body, ((PyTupleObject *)records)->ob_item, PyTuple_GET_SIZE(records), -1);
    if (batch == Py_True)
        Py_SETREF(batch, around((Body *)body, args, &head));
    Py_XDECREF(body);
    Py_XDECREF(records);
    return batch;
}
