/* A record's headers as they are written. */

#include "header_writer.h"

#include <string.h>

static inline PyObject *item_of(PyObject *pair, Py_ssize_t index)
{
    return PyTuple_CheckExact(pair) ? PyTuple_GET_ITEM(pair, index) : PyList_GET_ITEM(pair, index);
}

static inline Py_ssize_t length_of(PyObject *value)
{
    if (PyTuple_CheckExact(value))
        return PyTuple_GET_SIZE(value);
    return PyList_CheckExact(value) ? PyList_GET_SIZE(value) : -1;
}

/* A header whose key is given as UTF-8. */
static inline int put_header(struct bytes *tail, const char *name, Py_ssize_t size, PyObject *value)
{
    Py_ssize_t value_size = bytes_size(value);
    if (!value_size || size > MOST)
        return DOUBT;
    if (reserve(tail, 10 + size + value_size) < 0)
        return FAILED;
    tail->used = put_value(put_bytes(tail->data + tail->used, name, size), value) - tail->data;
    return WRITTEN;
}

/* A header whose key isn't ASCII: an error handler of Python may be asked, and may change what they are in. */
static NOINLINE int put_encoded(struct bytes *tail, PyObject *name, PyObject *value)
{
    int verdict = DOUBT;
    Py_INCREF(name);
    Py_INCREF(value);
    PyObject *text = PyUnicode_AsEncodedString(name, "utf-8", "surrogateescape");
    if (text && PyBytes_Check(text))
        verdict = put_header(tail, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), value);
    else
        PyErr_Clear();
    Py_XDECREF(text);
    Py_DECREF(value);
    Py_DECREF(name);
    return verdict;
}

/* A header into `tail`. */
static int write_header(struct bytes *tail, PyObject *pair)
{
    if (length_of(pair) != 2)
        return DOUBT;
    PyObject *name = item_of(pair, 0), *value = item_of(pair, 1);
    if (!PyUnicode_CheckExact(name))
        return DOUBT;
    if (PyUnicode_IS_COMPACT_ASCII(name))
        return put_header(tail, (const char *)PyUnicode_1BYTE_DATA(name), PyUnicode_GET_LENGTH(name), value);
    return put_encoded(tail, name, value);
}

int write_headers(struct bytes *tail, PyObject *headers)
{
    tail->used = 0;
    Py_ssize_t count = headers ? length_of(headers) : -1;
    if (count < 0) { /* any false value means none */
        int has_headers = headers ? PyObject_IsTrue(headers) : 1;
        PyErr_Clear();
        if (has_headers)
            return DOUBT;
        count = 0;
    }
    if (count > MOST)
        return DOUBT;
    if (reserve(tail, 10) < 0)
        return FAILED;
    tail->used = put_varint(tail->data, (uint64_t)count << 1) - tail->data;
    for (Py_ssize_t index = 0; index < count; index++) {
        int verdict = length_of(headers) == count ? write_header(tail, item_of(headers, index)) : DOUBT;
        if (verdict != WRITTEN)
            return verdict;
    }
    return WRITTEN;
}

int never_changes(PyObject *headers)
{
    if (!PyTuple_CheckExact(headers))
        return 0;
    for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(headers); index++)
        if (!PyTuple_CheckExact(PyTuple_GET_ITEM(headers, index)))
            return 0;
    return 1;
}
